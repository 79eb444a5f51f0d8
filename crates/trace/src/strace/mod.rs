//! Importing what strace writes.
//!
//! What lives here: the notation, one file per layer (a line's outer form, its arguments, values, constants, which system
//! call asks what), and the [`Importer`] that streams lines through them into the
//! [tracker](crate::track). What may not: what calls mean.
//!
//! The form understood is that of `strace -f -ttt -T -yy` (strace 4.26 to 6.x), with `-o` (thread numbers in front) or
//! without (`[pid 12]`), whatever `-s`, `-v`, `-X` or `--absolute-timestamps=precision` say:
//!
//! * time stamps must be seconds since the epoch with a fraction (`-ttt`). `-t` and `-tt` lack the day, so that
//!   midnight and the end of daylight saving time reorder calls: refused. So are `-r` and whole seconds.
//! * durations (`-T`) must be there: a trace without any is refused, as the time in calls cannot be told from the
//!   time between them.
//! * what stands behind descriptors (`-y`, `-yy`) should be shown. Without, offsets, paths and working directories
//!   are kept from the calls alone; descriptors inherited and directories entered before the trace are unknown.
//! * `-s0` is best for size, but hides the lengths in readv and writev; `-e abbrev='!readv,writev,...'` shows them.
//!
//! A line that is not understood is counted and listed with its number; nothing is dropped silently.

pub(crate) mod constants;
mod decode;
mod lex;
mod line;
mod notation;
mod profile;
mod summary;
mod value;

pub use profile::{ImportedProfile, import, import_file};
pub use summary::{ImportError, Problem, Summary};

use crate::Batch;
use crate::analysis::Decode;
use crate::profile::{Meta, ProfileError};
use crate::track::{
    Call, CloneFlags, Cloning, Closing, Coverage, Fd, Outcome, Place, Removed, Seen, TrackOptions, Tracker,
};
use decode::{Form, Forms, decode};
pub(crate) use decode::{may_set_mounts, rooted, traced_calls};
use lex::{Args, Return};
use line::{Body, Head, Leader, Reason};
pub(crate) use notation::{Keeps, Notation};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::io::BufRead;
use std::path::PathBuf;

/// The longest line taken in; strace's own lines are far shorter, so a longer one is no trace.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Lines without a usable time stamp before the input is refused.
const PATIENCE: u64 = 50;
/// Lines of threads of unknown parent kept back at most, in bytes.
const HELD_BYTES_MAX: usize = 32 << 20;

/// Room kept for the texts of calls that start, so that each need not ask for its own.
const SPARE_TEXTS_MAX: usize = 64;
const SPARE_TEXT_BYTES_MAX: usize = 4096;

/// Where batches go, for good: the events a sink is given are its own.
pub type Sink<'s> = dyn FnMut(Batch) -> Result<(), ProfileError> + 's;

/// How to import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// What to call the input in messages.
    pub name: PathBuf,
    /// The working directory of the first process, for traces without `-y`.
    pub cwd: Option<Vec<u8>>,
    /// Remember the names that were there before and are gone ([`Imported::take_removed`]).
    pub keep_removed: bool,
    /// How many lines that were not understood are listed; all are counted.
    pub problems_listed: usize,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions { name: PathBuf::from("trace"), cwd: None, keep_removed: false, problems_listed: 20 }
    }
}

/// What the names of the recorder's own lines begin with.
const TOLD: &[u8] = b"fsage_";

/// A line in strace's notation that says what strace does not: where a thread stood when it was attached to, `what` being its working
/// directory (`cwd`) or its root directory (`root`), at the time of another line.
pub(crate) fn told(tid: u32, stamp: &[u8], what: &str, path: &[u8]) -> Vec<u8> {
    let mut line = format!("{tid} ").into_bytes();
    line.extend_from_slice(stamp);
    line.extend_from_slice(format!(" fsage_{what}(\"").as_bytes());
    for &byte in path {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', byte]),
            b' '..=b'~' => line.push(byte),
            _ => line.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    line.extend_from_slice(b"\") = 0 <0.000000000>\n");
    line
}

/// Whether a line is one that this module can use.
pub(crate) fn is_line(line: &[u8]) -> bool {
    matches!(line::leader(line), Leader::Stamped(head) if line::body(head.rest).is_ok())
}

/// Streams strace's text into batches of events. Feed it lines or a reader, then [`finish`](Importer::finish).
#[derive(Debug)]
pub struct Importer {
    options: ImportOptions,
    forms: Forms,
    tracker: Tracker,
    summary: Summary,
    /// Calls that have started, by thread.
    running: FxHashMap<u32, Running>,
    /// Threads inside a fork or clone whose child has not shown itself.
    cloning: Vec<u32>,
    /// Lines of threads that could be any of several running clones' child.
    held: VecDeque<Held>,
    held_bytes: usize,
    /// The threads that they are of: what else these do waits behind.
    held_threads: FxHashSet<u32>,
    /// A clone began to have a child, or ended: lines kept back may be free.
    parents_changed: bool,
    /// A line that strace's own message cut in two.
    cut: Vec<u8>,
    /// The beginning of a line whose end has not been read yet.
    carry: Vec<u8>,
    /// Room for the texts of calls that start.
    spare_texts: Vec<Vec<u8>>,
    line_number: u64,
    first_tid: Option<u32>,
    first_ns: Option<u64>,
    last_ns: u64,
    with_duration: u64,
    without_duration: u64,
    leaders: Leaders,
}

/// How often each unusable kind of time stamp was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Leaders {
    stamped: u64,
    time_of_day: u64,
    whole_seconds: u64,
    relative: u64,
    unstamped: u64,
}

#[derive(Debug)]
struct Running {
    start_ns: u64,
    place: Option<Place>,
    form: Option<Form>,
    /// From the name on.
    text: Vec<u8>,
    closing: Option<Closing>,
    clone: Option<RunningClone>,
    /// Of an execve: what it had of others when it began.
    unsharing: Option<Cloning>,
}

/// A clone that is running.
#[derive(Debug)]
struct RunningClone {
    flags: CloneFlags,
    begun: Option<Cloning>,
}

/// A line kept back.
#[derive(Debug)]
struct Held {
    tid: u32,
    number: u64,
    /// The place in the order that its call takes, if it begins one, or if that kept none when it began.
    place: Option<Place>,
    line: Vec<u8>,
}

impl Importer {
    /// An importer at the start of a trace.
    pub fn new(options: ImportOptions) -> Self {
        let tracker = Tracker::new(TrackOptions { keep_removed: options.keep_removed, cwd: options.cwd.clone() });
        Importer {
            options,
            forms: Forms::new(),
            tracker,
            summary: Summary::default(),
            running: FxHashMap::default(),
            cloning: Vec::new(),
            held: VecDeque::new(),
            held_bytes: 0,
            held_threads: FxHashSet::default(),
            parents_changed: false,
            cut: Vec::new(),
            carry: Vec::new(),
            spare_texts: Vec::new(),
            line_number: 0,
            first_tid: None,
            first_ns: None,
            last_ns: 0,
            with_duration: 0,
            without_duration: 0,
            leaders: Leaders::default(),
        }
    }

    /// Reads a whole trace, handing over batches as they fill. A last line without its newline counts as cut short.
    ///
    /// # Errors
    /// Reading fails, the sink fails, or the input is of a kind that cannot be used ([`ImportError`] says which and
    /// what to do).
    pub fn read(&mut self, mut input: impl BufRead, sink: &mut Sink<'_>) -> Result<(), ImportError> {
        loop {
            let buffer = match input.fill_buf() {
                Ok(buffer) => buffer,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(ImportError::Read { name: self.options.name.clone(), source }),
            };
            if buffer.is_empty() {
                return self.end_of_input(sink);
            }
            let used = buffer.len();
            self.bytes(buffer, sink)?;
            input.consume(used);
        }
    }

    /// Takes in the next bytes of a trace, cut anywhere.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn bytes(&mut self, chunk: &[u8], sink: &mut Sink<'_>) -> Result<(), ImportError> {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(end);
            if self.carry.is_empty() {
                self.line(line, sink)?;
            } else {
                self.keep(line);
                let mut whole = std::mem::take(&mut self.carry);
                self.line(&whole, sink)?;
                whole.clear();
                self.carry = whole;
            }
            rest = behind.get(1..).unwrap_or_default();
        }
        self.keep(rest);
        Ok(())
    }

    /// Keeps the beginning of a line; of one longer than lines are, no more than shows that.
    fn keep(&mut self, part: &[u8]) {
        if self.carry.len() < LINE_BYTES_MAX {
            self.carry.extend_from_slice(part);
        }
    }

    /// Takes in a last line that lacks its newline.
    fn end_of_input(&mut self, sink: &mut Sink<'_>) -> Result<(), ImportError> {
        let last = std::mem::take(&mut self.carry);
        if last.is_empty() { Ok(()) } else { self.last_line(&last, sink) }
    }

    /// Takes in one line, without its newline.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), ImportError> {
        self.line_number += 1;
        self.summary.lines += 1;
        self.summary.bytes += line.len() as u64 + 1;
        if let Err(reason) = self.take_line(line) {
            self.problem(self.line_number, line, reason);
        }
        self.check_usable(false)?;
        if self.tracker.is_full() {
            sink(self.tracker.take())?;
        }
        Ok(())
    }

    /// The last line, whose newline is missing: a call cut short has started and not returned.
    fn last_line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), ImportError> {
        let whole = match line::leader(line) {
            Leader::Stamped(head) => match line::body(head.rest) {
                Ok(Body::Call(text)) => {
                    let whole = parse_call(text, &mut Args::default()).is_ok_and(|(_, ret)| ret.dur_ns.is_some());
                    if !whole && lex::name(text).is_some_and(|(_, rest)| rest.first() == Some(&b'(')) {
                        self.stamped(head);
                        if let Some(tid) = head.tid.or(self.tracker.sole_thread()) {
                            self.start(tid, head.at_ns, text, None);
                        }
                    }
                    whole
                }
                Ok(Body::Resumed { .. }) => lex::returned_ends(head.rest),
                other => other.is_ok(),
            },
            _ => false,
        };
        if whole {
            return self.line(line, sink);
        }
        self.line_number += 1;
        self.summary.lines += 1;
        self.summary.bytes += line.len() as u64;
        self.summary.truncated_last_line = Some(self.line_number);
        self.problem(self.line_number, line, "the last line is cut short");
        Ok(())
    }

    /// Ends the trace: calls still running are told as unfinished, and the last batches handed over.
    ///
    /// # Errors
    /// The sink fails, or the input turns out to have been of no use (empty, no time stamps, no durations).
    pub fn finish(mut self, sink: &mut Sink<'_>) -> Result<Imported, ImportError> {
        self.end_of_input(sink)?;
        if !self.cut.is_empty() {
            let cut = std::mem::take(&mut self.cut);
            self.problem(self.line_number, &cut, "a line cut in two, without its other half");
        }
        self.release_held(true);
        let mut tids: Vec<u32> = self.running.keys().copied().collect();
        tids.sort_unstable();
        for tid in tids {
            self.abandon(tid);
        }
        self.check_usable(true)?;
        loop {
            let batch = self.tracker.take();
            if batch.events.is_empty() {
                break;
            }
            sink(batch)?;
        }
        let (events, late) = self.tracker.counts();
        self.summary.events = events;
        self.summary.late_events = late;
        self.summary.started_unix_ns = self.first_ns;
        self.summary.wall_ns = self.first_ns.map_or(0, |first| self.last_ns.saturating_sub(first));
        self.summary.idle_ns = self.summary.wall_ns.saturating_sub(self.tracker.busy_ns());
        self.summary.coverage = self.tracker.coverage().clone();
        Ok(Imported::new(self.summary, self.tracker, profile::says()))
    }

    /// What was covered so far.
    pub fn coverage(&self) -> &Coverage {
        self.tracker.coverage()
    }

    fn problem(&mut self, line: u64, text: &[u8], reason: Reason) {
        self.summary.unparsed_lines += 1;
        if self.summary.problems.len() < self.options.problems_listed {
            let excerpt: String = text.escape_ascii().take(120).map(char::from).collect();
            self.summary.problems.push(Problem { line, reason: reason.to_owned(), excerpt });
        }
    }

    /// Refuses input of which nothing can be used, once that is clear.
    fn check_usable(&self, at_end: bool) -> Result<(), ImportError> {
        let name = || self.options.name.clone();
        let l = self.leaders;
        if l.stamped == 0 && (at_end || self.summary.lines >= PATIENCE) {
            if self.summary.lines == 0 {
                return Err(ImportError::Empty { name: name() });
            }
            let kinds = [l.time_of_day, l.whole_seconds, l.relative, l.unstamped];
            let most = kinds.into_iter().max().unwrap_or(0);
            return Err(if most == 0 {
                ImportError::NotStrace { name: name() }
            } else if most == l.time_of_day {
                ImportError::TimeOfDay { name: name() }
            } else if most == l.whole_seconds {
                ImportError::WholeSeconds { name: name() }
            } else if most == l.relative {
                ImportError::RelativeTime { name: name() }
            } else {
                ImportError::NoTimestamps { name: name() }
            });
        }
        if self.with_duration == 0 && self.without_duration > 0 && (at_end || self.without_duration >= PATIENCE) {
            return Err(ImportError::NoDurations { name: name() });
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), Reason> {
        if line.len() >= LINE_BYTES_MAX {
            return Err("longer than any line of strace's");
        }
        if !self.cut.is_empty() {
            let mut whole = std::mem::take(&mut self.cut);
            whole.extend_from_slice(line);
            return self.take_whole_line(&whole);
        }
        self.take_whole_line(line)
    }

    fn take_whole_line(&mut self, line: &[u8]) -> Result<(), Reason> {
        let head = match line::leader(line) {
            Leader::Stamped(head) => head,
            other => return self.unstamped(line, other),
        };
        if line.ends_with(b" attached") {
            // strace's own message lands in the middle of a line when both go to one terminal or file.
            if let Some(at) = memchr::memmem::rfind(line, b"strace: Process ") {
                self.cut.extend_from_slice(&line[..at]);
                self.summary.notes += 1;
                return Ok(());
            }
        }
        self.stamped(head);
        let body = line::body(head.rest)?;
        let Some(tid) = self.admit(head, &body, line) else { return Ok(()) };
        self.first_tid.get_or_insert(tid);
        let taken = self.take_body(tid, head.at_ns, body, None);
        self.release_held(false);
        taken
    }

    fn stamped(&mut self, head: Head<'_>) {
        self.leaders.stamped += 1;
        self.first_ns.get_or_insert(head.at_ns);
        self.last_ns = self.last_ns.max(head.at_ns);
    }

    fn unstamped(&mut self, line: &[u8], leader: Leader<'_>) -> Result<(), Reason> {
        if line.starts_with(b"strace: ") || line.is_empty() {
            self.summary.notes += 1;
            return Ok(());
        }
        let l = &mut self.leaders;
        match leader {
            Leader::TimeOfDay => {
                l.time_of_day += 1;
                Err("a time of day (-t, -tt) instead of seconds since the epoch")
            }
            Leader::WholeSeconds => {
                l.whole_seconds += 1;
                Err("a time stamp without a fraction")
            }
            Leader::Relative => {
                l.relative += 1;
                Err("a time stamp relative to the previous line")
            }
            Leader::Unstamped => {
                l.unstamped += 1;
                Err("a call without a time stamp")
            }
            _ => Err("no line of strace's"),
        }
    }

    /// The thread a line belongs to, made known to the tracker; `None` if the line has to wait.
    fn admit(&mut self, head: Head<'_>, body: &Body<'_>, line: &[u8]) -> Option<u32> {
        let Some(tid) = head.tid else { return Some(self.tracker.sole_thread().unwrap_or(0)) };
        if self.held_threads.contains(&tid) {
            self.hold(tid, body, line);
            return None;
        }
        if self.tracker.knows(tid) {
            return Some(tid);
        }
        // Without -o, the first process has no number until a second one appears.
        let anonymous = self.tracker.knows(0) && tid != 0;
        if anonymous && (matches!(body, Body::Resumed { .. }) || self.cloning.is_empty()) {
            self.renumber(0, tid);
            return Some(tid);
        }
        match self.cloning.len() {
            0 => Some(tid),
            1 => {
                self.adopt(tid);
                Some(tid)
            }
            _ => {
                self.hold(tid, body, line);
                None
            }
        }
    }

    /// Keeps a line back until its thread's parent is known.
    fn hold(&mut self, tid: u32, body: &Body<'_>, line: &[u8]) {
        self.held_bytes += line.len();
        let has_event = matches!(body, Body::Call(_) | Body::Unfinished(_) | Body::Resumed { .. });
        let place = has_event.then(|| self.tracker.start());
        self.held.push_back(Held { tid, number: self.line_number, place, line: line.to_vec() });
        self.held_threads.insert(tid);
        if self.held_bytes > HELD_BYTES_MAX {
            self.release_held(true);
        }
    }

    fn renumber(&mut self, from: u32, to: u32) {
        self.tracker.renumber(from, to);
        if self.first_tid == Some(from) {
            self.first_tid = Some(to);
        }
        if let Some(running) = self.running.remove(&from) {
            self.running.insert(to, running);
        }
        for tid in &mut self.cloning {
            if *tid == from {
                *tid = to;
            }
        }
    }

    /// Makes a new thread the child of the clone that has been running longest.
    fn adopt(&mut self, child: u32) {
        if self.cloning.is_empty() {
            return;
        }
        let parent = self.cloning.remove(0);
        self.parents_changed = true;
        if let Some(clone) = self.running.get_mut(&parent).and_then(|running| running.clone.as_mut()) {
            let (flags, begun) = (clone.flags, clone.begun.take());
            self.spawn(parent, child, flags, begun);
        }
    }

    fn spawn(&mut self, parent: u32, child: u32, flags: CloneFlags, begun: Option<Cloning>) {
        match begun {
            Some(begun) => self.tracker.spawn_begun(parent, child, flags, begun),
            None => self.tracker.spawn(parent, child, flags),
        }
    }

    /// Takes in the lines kept back, as far as their threads' parents are known now. With `all`, guesses.
    fn release_held(&mut self, all: bool) {
        if self.held.is_empty() || !(all || self.parents_changed) {
            return;
        }
        self.parents_changed = false;
        let mut at = 0;
        while let Some(held) = self.held.get(at) {
            let tid = held.tid;
            if !self.tracker.knows(tid) {
                if !all && self.cloning.len() > 1 {
                    at += 1;
                    continue;
                }
                self.adopt(tid);
            }
            if let Some(held) = self.held.remove(at) {
                self.held_bytes -= held.line.len();
                self.take_held(held);
            }
            // What a line tells may free lines before it, of threads that were unknown then.
            if std::mem::take(&mut self.parents_changed) {
                at = 0;
            }
        }
        self.held_threads = self.held.iter().map(|held| held.tid).collect();
    }

    fn take_held(&mut self, held: Held) {
        let Leader::Stamped(head) = line::leader(&held.line) else { return };
        let taken = line::body(head.rest).and_then(|body| self.take_body(held.tid, head.at_ns, body, held.place));
        if let Err(reason) = taken {
            if let Some(place) = held.place {
                self.tracker.skip_place(place);
            }
            self.problem(held.number, &held.line, reason);
        }
    }

    /// `place`: the call's place in the order, if it has one already.
    fn take_body(&mut self, tid: u32, at_ns: u64, body: Body<'_>, place: Option<Place>) -> Result<(), Reason> {
        match body {
            Body::Call(text) => {
                if self.running.contains_key(&tid) {
                    self.abandon(tid);
                }
                self.whole_call(tid, at_ns, text, place)
            }
            Body::Unfinished(text) => {
                if self.running.contains_key(&tid) {
                    self.abandon(tid);
                }
                lex::name(text).filter(|(_, rest)| rest.first() == Some(&b'(')).ok_or(NO_CALL)?;
                self.start(tid, at_ns, text, place);
                Ok(())
            }
            Body::Resumed { name, rest, unfinished } => self.resume(tid, at_ns, (name, rest), unfinished, place),
            Body::Signal => {
                self.summary.signals += 1;
                Ok(())
            }
            Body::Exited(status) => {
                self.ended(tid, at_ns, status);
                Ok(())
            }
            Body::Killed(signal) => {
                self.ended(tid, at_ns, 128 + constants::signal(signal).unwrap_or(0));
                Ok(())
            }
            Body::Superseded(by) => {
                self.abandon(tid);
                self.tracker.superseded(tid, by);
                if let Some(running) = self.running.remove(&by) {
                    self.running.insert(tid, running);
                }
                Ok(())
            }
        }
    }

    fn ended(&mut self, tid: u32, at_ns: u64, status: i64) {
        self.abandon(tid);
        self.summary.exits += 1;
        if self.first_tid == Some(tid) {
            self.summary.first_status = Some(status);
        }
        self.tracker.exit(tid, self.since_start(at_ns), status);
    }

    fn since_start(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.first_ns.unwrap_or(at_ns))
    }

    /// A call that started and returned on one line.
    fn whole_call(&mut self, tid: u32, at_ns: u64, text: &[u8], place: Option<Place>) -> Result<(), Reason> {
        let mut args = Args::default();
        let (name, ret) = parse_call(text, &mut args)?;
        if let Some(told) = name.strip_prefix(TOLD) {
            return self.told(tid, told, args.get(0));
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

    /// A line that the recorder put before strace's own ([`told`]).
    fn told(&mut self, tid: u32, what: &[u8], path: &[u8]) -> Result<(), Reason> {
        self.summary.notes += 1;
        let raw = path.strip_prefix(b"\"").and_then(|path| path.strip_suffix(b"\"")).ok_or(NO_CALL)?;
        match what {
            b"cwd" => self.tracker.saw_cwd(tid, raw),
            b"root" => self.tracker.saw_root(tid, Some(Seen::Path { raw, deleted: false, who: None })),
            _ => return Err(NO_CALL),
        }
        Ok(())
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
    fn start(&mut self, tid: u32, at_ns: u64, text: &[u8], place: Option<Place>) {
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
            None | Some(Form::Ignored | Form::NewFd | Form::IoUringEnter | Form::Unshare) => false,
            Some(Form::Close | Form::Fork | Form::Clone | Form::Clone3) => true,
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
        let at_once =
            matches!(form, Some(Form::Close | Form::Fork | Form::Clone | Form::Clone3 | Form::Exec | Form::ExecAt));
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
    fn resume(
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
    fn abandon(&mut self, tid: u32) {
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

impl Decode for Importer {
    fn bytes(&mut self, chunk: &[u8], sink: &mut Sink<'_>) -> Result<(), ImportError> {
        Importer::bytes(self, chunk, sink)
    }

    fn finish(self: Box<Self>, sink: &mut Sink<'_>) -> Result<Imported, ImportError> {
        Importer::finish(*self, sink)
    }
}

/// An imported trace: what is to be said of it, and the state it ended in.
#[derive(Debug)]
pub struct Imported {
    /// Counts.
    pub summary: Summary,
    tracker: Tracker,
    /// What the notation itself says for `meta.json`: tracer and clock.
    says: Meta,
    /// Files of which the trace reads so many bytes that it did not write.
    least_sizes: FxHashMap<Vec<u8>, u64>,
}

impl Imported {
    /// The end of an import; `says` is what the notation itself tells for `meta.json`.
    pub(crate) fn new(summary: Summary, tracker: Tracker, says: Meta) -> Self {
        Imported { summary, tracker, says, least_sizes: FxHashMap::default() }
    }

    /// With lengths that files (by absolute path) must have had when the trace began.
    pub(crate) fn with_least_sizes(mut self, sizes: FxHashMap<Vec<u8>, u64>) -> Self {
        self.least_sizes = sizes;
        self
    }

    /// The names that were there before and are gone ([`ImportOptions::keep_removed`]).
    pub fn take_removed(&mut self) -> Vec<Removed> {
        self.tracker.take_removed()
    }

    /// The directories in which the trace looked up names or which it read, by the paths they had when it began.
    pub fn take_touched(&mut self) -> Vec<Vec<u8>> {
        self.tracker.take_touched()
    }

    /// The names the trace implies were there when it began, with what it tells of them. Sorted by nothing.
    pub fn implied_snapshot(&mut self) -> Vec<crate::SnapshotEntry> {
        let mut entries = self.tracker.implied_snapshot();
        for entry in entries.iter_mut().filter(|entry| entry.kind == posix::FileKind::File) {
            if let Some(&least) = self.least_sizes.get(&entry.path) {
                entry.size_bytes = entry.size_bytes.max(least);
            }
        }
        entries
    }

    /// What became of a path that is there at the end of the trace.
    pub fn history(&self, path: &[u8]) -> crate::track::History {
        self.tracker.history(path)
    }

    /// Whether the trace met an absolute path: used it, or one below it.
    pub fn has_met(&self, path: &[u8]) -> bool {
        self.tracker.has_met(path)
    }
}

const NO_CALL: Reason = "neither a call nor anything else strace prints";

/// The name and the result; the arguments go into an empty list.
#[inline]
fn parse_call<'a>(text: &'a [u8], args: &mut Args<'a>) -> Result<(&'a [u8], Return<'a>), Reason> {
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
