//! Calls from their beginning to their return, which strace writes on one line or on several.

use super::decode::{Form, decode};
use super::lex::{self, Args, Return};
use super::reason::{NO_CALL, Reason};
use super::told::TOLD;
use super::{Importer, constants, value};
use crate::syscalls::How;
use crate::track::{Call, CloneFlags, Cloning, Closing, Fd, Outcome, Place};

/// Room kept for the texts of calls that start, so that each need not ask for its own.
const SPARE_TEXTS_MAX: usize = 64;
const SPARE_TEXT_BYTES_MAX: usize = 4096;

/// A call that has started.
#[derive(Debug)]
pub(super) struct Running {
    start_ns: u64,
    place: Option<Place>,
    form: Option<Form>,
    /// From the name on.
    text: Vec<u8>,
    closing: Option<Closing>,
    pub(super) clone: Option<RunningClone>,
    /// Of an execve: what it had of others when it began.
    unsharing: Option<Cloning>,
}

/// A clone that is running.
#[derive(Debug)]
pub(super) struct RunningClone {
    pub(super) flags: CloneFlags,
    pub(super) begun: Option<Cloning>,
}

impl Importer {
    /// A call that started and returned on one line.
    pub(super) fn whole_call(&mut self, tid: u32, at_ns: u64, text: &[u8], place: Option<Place>) -> Result<(), Reason> {
        let mut args = Args::default();
        let (name, ret) = parse_call(text, &mut args)?;
        if let Some(told) = name.strip_prefix(TOLD) {
            return self.take_told(tid, told, args.get(0));
        }
        let form = self.forms.get(name);
        self.returned(&ret);
        let call = if form == Some(Form::Ignored) { None } else { decode(form, &args, &ret) };
        let Some(call) = call else {
            self.summary.other_lines += 1;
            self.last_ns = self.last_ns.max(at_ns.saturating_add(ret.dur_ns.unwrap_or(0)));
            if let Some(place) = place {
                self.tracker.skip_place(place);
            }
            return Ok(());
        };
        self.hand_over(tid, at_ns, place, name, &call, &ret)
    }

    fn hand_over(
        &mut self,
        tid: u32,
        start_ns: u64,
        place: Option<Place>,
        name: &[u8],
        call: &Call<'_>,
        ret: &Return<'_>,
    ) -> Result<(), Reason> {
        let out = outcome(ret)?;
        self.summary.calls += 1;
        self.parents_changed |= matches!(call, Call::Clone(_));
        self.last_ns = self.last_ns.max(start_ns.saturating_add(out.dur_ns));
        self.tracker.call(tid, self.since_start(start_ns), place, name, call, &out);
        Ok(())
    }

    fn returned(&mut self, ret: &Return<'_>) {
        if ret.dur_ns.is_some() {
            self.with_duration += 1;
        } else if ret.value.is_some() {
            self.without_duration += 1;
            self.summary.without_duration += 1;
        }
    }

    /// A call has started.
    pub(super) fn start(&mut self, tid: u32, at_ns: u64, text: &[u8], place: Option<Place>) {
        let (name, rest) = lex::name(text).unwrap_or((b"", b""));
        let form = self.forms.get(name);
        let rest = rest.get(1..).unwrap_or_default();
        let mut own = self.spare_texts.pop().unwrap_or_default();
        own.extend_from_slice(text);
        let mut running =
            Running { start_ns: at_ns, place: None, form, text: own, closing: None, clone: None, unsharing: None };
        // A read of a pipe can take for ever; it need not keep its place.
        let first = lex::first_arg(rest);
        let foreign = value::fd(first).is_some_and(|fd: Fd<'_>| self.tracker.is_foreign_fd(tid, &fd));
        let keeps_place = match form {
            None | Some(Form::Ignored | Form::NewFd | Form::Call(How::IoUringEnter | How::Unshare)) => false,
            Some(Form::Call(How::Close | How::Fork | How::Clone | How::Clone3)) => true,
            Some(_) => !foreign,
        };
        running.place = match (keeps_place, place) {
            (true, place) => Some(place.unwrap_or_else(|| self.tracker.start())),
            (false, Some(place)) => {
                self.tracker.skip_place(place);
                None
            }
            (false, None) => None,
        };
        let at_once = matches!(
            form,
            Some(Form::Call(How::Close | How::Fork | How::Clone | How::Clone3 | How::Exec | How::ExecAt))
        );
        match at_once.then(|| decode(form, &lex::partial_args(rest), &Return::default())).flatten() {
            Some(Call::Clone(flags)) => {
                let begun = self.tracker.begin_clone(tid, flags);
                running.clone = Some(RunningClone { flags, begun });
                self.cloning.push(tid);
            }
            Some(Call::Exec { .. }) => running.unsharing = self.tracker.begin_exec(tid),
            Some(Call::Close { fd }) => {
                running.closing = Some(self.tracker.begin_close(tid, self.since_start(at_ns), &fd));
            }
            _ => {}
        }
        self.running.insert(tid, running);
    }

    /// A call goes on, and usually returns.
    pub(super) fn resume(
        &mut self,
        tid: u32,
        at_ns: u64,
        (name, rest): (&[u8], &[u8]),
        unfinished: bool,
        place: Option<Place>,
    ) -> Result<(), Reason> {
        let Some(mut running) = self.running.remove(&tid) else { return Err("a call resumed that had not started") };
        match place {
            Some(place) if running.place.is_some() || unfinished => self.tracker.skip_place(place),
            Some(_) => running.place = place,
            None => {}
        }
        self.last_ns = self.last_ns.max(at_ns);
        running.text.extend_from_slice(rest);
        if unfinished {
            self.running.insert(tid, running);
            return Ok(());
        }
        let text = std::mem::take(&mut running.text);
        let place = running.place;
        if let Some(clone) = running.clone.take() {
            self.cloned(tid, clone, &text);
        }
        if let Some(begun) = running.unsharing.take() {
            let ok = parse_call(&text, &mut Args::default()).is_ok_and(|(_, ret)| ret.value == Some(0));
            self.tracker.end_exec(tid, begun, ok);
        }
        let result = self.finish_call(tid, running, &text, name);
        self.give_back(text);
        if result.is_err()
            && let Some(place) = place
        {
            self.tracker.skip_place(place);
        }
        result
    }

    /// Keeps the room of a text for another's.
    fn give_back(&mut self, mut text: Vec<u8>) {
        if self.spare_texts.len() < SPARE_TEXTS_MAX && text.capacity() <= SPARE_TEXT_BYTES_MAX {
            text.clear();
            self.spare_texts.push(text);
        }
    }

    /// A clone has returned, or will not.
    fn cloned(&mut self, tid: u32, clone: RunningClone, text: &[u8]) {
        self.cloning.retain(|&parent| parent != tid);
        self.parents_changed = true;
        let Some(begun) = clone.begun else { return };
        let child = parse_call(text, &mut Args::default())
            .ok()
            .and_then(|(_, ret)| u32::try_from(ret.value?).ok())
            .filter(|&tid| tid > 0);
        match child {
            Some(child) => self.tracker.spawn_begun(tid, child, clone.flags, begun),
            None => self.tracker.drop_clone(begun),
        }
    }

    fn finish_call(&mut self, tid: u32, running: Running, text: &[u8], resumed: &[u8]) -> Result<(), Reason> {
        let mut args = Args::default();
        let parsed = parse_call(text, &mut args).and_then(|(name, ret)| {
            if name != resumed && resumed != b"???" {
                return Err("a call resumed under another name");
            }
            let closed = if running.closing.is_some() { Some(outcome(&ret)?) } else { None };
            Ok((name, ret, closed))
        });
        let (name, ret, closed) = match parsed {
            Ok(parsed) => parsed,
            Err(reason) => {
                if let Some(closing) = running.closing {
                    self.tracker.drop_close(closing);
                }
                return Err(reason);
            }
        };
        self.returned(&ret);
        let start_ns = running.start_ns;
        if let (Some(closing), Some(out)) = (running.closing, closed) {
            self.summary.calls += 1;
            self.tracker.end_close(closing, running.place, &out);
            return Ok(());
        }
        let call = if running.form == Some(Form::Ignored) { None } else { decode(running.form, &args, &ret) };
        match call {
            Some(call) => self.hand_over(tid, start_ns, running.place, name, &call, &ret),
            None => {
                self.summary.other_lines += 1;
                if let Some(place) = running.place {
                    self.tracker.skip_place(place);
                }
                Ok(())
            }
        }
    }

    /// A started call that will not return: its thread ended, or went on without our seeing the return.
    pub(super) fn abandon(&mut self, tid: u32) {
        let Some(mut running) = self.running.remove(&tid) else { return };
        if let Some(clone) = running.clone.take() {
            self.cloned(tid, clone, b"");
        }
        if let Some(begun) = running.unsharing.take() {
            self.tracker.drop_clone(begun);
        }
        let out = Outcome { ret: -1, errno: 0, dur_ns: 0, seen: None, unfinished: true };
        if let Some(closing) = running.closing {
            self.tracker.end_close(closing, running.place, &out);
            return;
        }
        let (name, rest) = lex::name(&running.text).unwrap_or((b"", b""));
        let args = lex::partial_args(rest.get(1..).unwrap_or_default());
        let form = running.form.filter(|&form| form != Form::Ignored);
        match form.and_then(|form| decode(Some(form), &args, &Return::default())) {
            Some(call) => {
                self.summary.calls += 1;
                self.tracker.call(tid, self.since_start(running.start_ns), running.place, name, &call, &out);
            }
            None => {
                self.summary.other_lines += 1;
                if let Some(place) = running.place {
                    self.tracker.skip_place(place);
                }
            }
        }
    }
}

/// The name and the result; the arguments go into an empty list.
#[inline]
pub(super) fn parse_call<'a>(text: &'a [u8], args: &mut Args<'a>) -> Result<(&'a [u8], Return<'a>), Reason> {
    let (name, rest) = lex::name(text).ok_or(NO_CALL)?;
    let Some(rest) = rest.strip_prefix(b"(") else { return Err(NO_CALL) };
    let rest = lex::split_args(rest, args)?;
    Ok((name, lex::returned(rest)?))
}

fn outcome<'a>(ret: &Return<'a>) -> Result<Outcome<'a>, Reason> {
    let errno = match ret.error {
        Some(name) => constants::errno(name).ok_or("an error name that Linux does not have")?,
        None => 0,
    };
    Ok(Outcome {
        ret: ret.value.unwrap_or(-1),
        errno,
        dur_ns: ret.dur_ns.unwrap_or(0),
        seen: ret.decoration.map(value::seen_behind),
        unfinished: ret.value.is_none() && errno == 0,
    })
}
