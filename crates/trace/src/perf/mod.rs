//! Importing the text of `perf trace`.
//!
//! What lives here: the form of its lines (`line`), its arguments in strace's notation (`arguments`), and the
//! [`Importer`] that streams them into the [tracker](crate::track). What may not: what calls mean, and what each system
//! call asks, which strace's decoder knows.
//!
//! The form understood is that of `perf trace -o FILE` (perf 4.x to 6.x), with `-T` and `--no-comm` or without, of one
//! thread or many. What perf does not tell stays unknown:
//!
//! * **Names.** Without its BPF program or the `vfs_getname` probe, perf prints a path's address. Then which file an
//!   `open` opened is not known, and these paths are counted (`unread_names`).
//! * **What is behind descriptors** perf reads from /proc when it prints, often long after: by then the number may
//!   stand for another file. It is taken for descriptors alone that the trace did not see made (open before it began,
//!   made by `pipe` or received).
//! * **`clone3`** hides its flags behind an address. A child that runs a program before its parent goes on is a
//!   process; any other is taken for a thread.
//! * **Working directories** are not printed: `--cwd` gives the first process's.

mod arguments;
mod line;

use crate::analysis::Decode;
use crate::lines::Lines;
use crate::profile::{GAPS_MAX, Gap, Meta, Tracer};
use crate::strace::{ImportError, ImportOptions, Imported, Keeps, Notation, Problem, Sink, Summary};
use crate::track::{At, Call, CloneFlags, Closing, Fd, Outcome, Place, Start, TrackOptions, Tracker};
use line::{Body, Line, Parsed, Reason, Ret};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// The thread where perf prints none.
const ONLY_TID: u32 = 1;
/// Lines that are not perf's before the input is refused.
const PATIENCE: u64 = 50;
/// Calls of one thread that wait for returns printed out of order.
const OUT_OF_ORDER_MAX: usize = 3;
/// Lines of new processes kept back until their parents' `clone` returns, in bytes.
const HELD_BYTES_MAX: usize = 8 << 20;

/// Whether a line is one of perf's.
pub(crate) fn is_line(text: &[u8]) -> bool {
    matches!(line::parse(text), Ok(Parsed::Call(_)))
}

/// Streams perf's text into batches of events.
#[derive(Debug)]
pub struct Importer {
    options: ImportOptions,
    lines: Lines,
    trace: Trace,
}

#[derive(Debug)]
struct Trace {
    notation: Notation,
    tracker: Tracker,
    summary: Summary,
    /// Calls that have begun, by thread. More than one where perf printed a return, told by another processor, behind
    /// the beginning of the thread's next call.
    running: FxHashMap<u32, Vec<Running>>,
    /// The first thread of each thread's process.
    process: FxHashMap<u32, u32>,
    /// Threads that showed themselves before their parents' `clone` returned, in this order.
    unborn: VecDeque<u32>,
    /// Their lines.
    held: Vec<Held>,
    held_bytes: usize,
    first_tid: Option<u32>,
    first_ns: Option<u64>,
    last_ns: u64,
    calls_seen: u64,
    lost: u64,
    gaps: Vec<Gap>,
    /// `-S` puts a summary behind the calls.
    in_summary: bool,
}

#[derive(Debug)]
struct Running {
    start_ns: u64,
    place: Option<Place>,
    name: Vec<u8>,
    args: Vec<u8>,
    closing: Option<Closing>,
}

#[derive(Debug)]
struct Held {
    tid: u32,
    number: u64,
    place: Option<Place>,
    text: Vec<u8>,
}

impl Importer {
    /// An importer at the start of a text.
    pub fn new(options: ImportOptions) -> Self {
        let track = TrackOptions { keep_removed: options.keep_removed, cwd: options.cwd.clone() };
        let trace = Trace {
            notation: Notation::new(),
            tracker: Tracker::new(track),
            summary: Summary::default(),
            running: FxHashMap::default(),
            process: FxHashMap::default(),
            unborn: VecDeque::new(),
            held: Vec::new(),
            held_bytes: 0,
            first_tid: None,
            first_ns: None,
            last_ns: 0,
            calls_seen: 0,
            lost: 0,
            gaps: Vec::new(),
            in_summary: false,
        };
        Importer { options, lines: Lines::default(), trace }
    }
}

/// No line was a call's.
fn useless(lines: u64, options: &ImportOptions) -> ImportError {
    let name = options.name.clone();
    if lines == 0 {
        return ImportError::Empty { name };
    }
    let message = "no line looks like perf trace's output. Expected lines such as \
                   `2.223 ( 0.166 ms): cat/958 close(fd: 4)    = 0` (perf trace -o FILE)";
    ImportError::Unusable { name, message: message.to_owned() }
}

impl Decode for Importer {
    fn bytes(&mut self, chunk: &[u8], sink: &mut Sink<'_>) -> Result<(), ImportError> {
        let Importer { options, lines, trace } = self;
        lines.split(chunk, |text| {
            trace.summary.lines += 1;
            trace.summary.bytes += text.len() as u64 + 1;
            let number = trace.summary.lines;
            if let Err(reason) = trace.line(text) {
                trace.problem(number, text, reason, options.problems_listed);
            }
            for (number, text, reason) in trace.release_born() {
                trace.problem(number, &text, reason, options.problems_listed);
            }
            if trace.calls_seen == 0 && number >= PATIENCE {
                return Err(useless(number, options));
            }
            if trace.tracker.is_full() {
                sink(trace.tracker.take())?;
            }
            Ok(())
        })
    }

    fn finish(mut self: Box<Self>, sink: &mut Sink<'_>) -> Result<Imported, ImportError> {
        if let Some(rest) = self.lines.take_rest() {
            // A return cut short reads like another one (`= 4096` as `= 40`).
            let trace = &mut self.trace;
            trace.summary.lines += 1;
            trace.summary.bytes += rest.len() as u64;
            let number = trace.summary.lines;
            trace.summary.truncated_last_line = Some(number);
            trace.problem(number, &rest, "the last line is cut short", self.options.problems_listed);
        }
        if self.trace.calls_seen == 0 {
            return Err(useless(self.trace.summary.lines, &self.options));
        }
        let mut trace = self.trace;
        trace.give_up_on_parents();
        for (number, text, reason) in trace.release_born() {
            trace.problem(number, &text, reason, self.options.problems_listed);
        }
        let mut tids: Vec<u32> = trace.running.keys().copied().collect();
        tids.sort_unstable();
        for tid in tids {
            trace.abandon(tid, 0);
        }
        trace.tracker.drain(sink)?;
        let (events, late) = trace.tracker.counts();
        let mut summary = trace.summary;
        (summary.events, summary.late_events) = (events, late);
        summary.wall_ns = trace.first_ns.map_or(0, |first| trace.last_ns.saturating_sub(first));
        summary.idle_ns = summary.wall_ns.saturating_sub(trace.tracker.busy_ns());
        summary.coverage = trace.tracker.coverage().clone();
        let says = Meta {
            tracer: Tracer { name: "perf trace".into(), version: String::new(), options: Vec::new() },
            clock: "perf trace: microseconds since its first call (-T: since the machine started)".into(),
            ..Meta::default()
        };
        (summary.lost_events, summary.gaps) = (trace.lost, trace.gaps);
        Ok(Imported::new(summary, trace.tracker, says))
    }
}

impl Trace {
    fn problem(&mut self, number: u64, text: &[u8], reason: Reason, listed: usize) {
        self.summary.unparsed_lines += 1;
        if self.summary.problems.len() < listed {
            let excerpt: String = text.escape_ascii().take(120).map(char::from).collect();
            self.summary.problems.push(Problem { line: number, reason: reason.to_owned(), excerpt });
        }
    }

    fn since_start(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.first_ns.unwrap_or(at_ns))
    }

    fn line(&mut self, text: &[u8]) -> Result<(), Reason> {
        self.in_summary |= text.trim_ascii() == b"Summary of events:";
        if self.in_summary {
            self.summary.notes += 1;
            return Ok(());
        }
        let line = match line::parse(text) {
            Ok(Parsed::Call(line)) => line,
            Ok(Parsed::Lost(events)) => {
                self.summary.notes += 1;
                self.lost = self.lost.saturating_add(events);
                if self.gaps.len() < GAPS_MAX {
                    self.gaps.push(Gap { at_ns: self.since_start(self.last_ns), events });
                }
                return Ok(());
            }
            Ok(Parsed::Other) => {
                self.summary.notes += 1;
                return Ok(());
            }
            Err(_) if text.is_empty() => {
                self.summary.notes += 1;
                return Ok(());
            }
            Err(reason) => return Err(reason),
        };
        self.calls_seen += 1;
        if let Some(at_ns) = line.at_ns {
            // Lines of several processors come a little out of order.
            self.first_ns = Some(self.first_ns.map_or(at_ns, |first| first.min(at_ns)));
            self.last_ns = self.last_ns.max(at_ns.saturating_add(line.dur_ns.unwrap_or(0)));
        }
        let tid = line.tid.unwrap_or(ONLY_TID);
        self.first_tid.get_or_insert(tid);
        if line.tid.is_some() && self.waits(tid, &line) {
            let begins = match line.body {
                Body::Whole { name, .. } | Body::Begun { name, .. } => self.notation.keeps(name) != Keeps::Nothing,
                Body::Continued { .. } => false,
            };
            let place = begins.then(|| self.tracker.start());
            self.held_bytes += text.len();
            self.held.push(Held { tid, number: self.summary.lines, place, text: text.to_vec() });
            if self.held_bytes > HELD_BYTES_MAX {
                self.give_up_on_parents();
            }
            return Ok(());
        }
        self.take(tid, &line, None)
    }

    /// Whether a line has to wait until its thread's parent is known.
    fn waits(&mut self, tid: u32, line: &Line<'_>) -> bool {
        if self.tracker.knows(tid) {
            return false;
        }
        if self.unborn.contains(&tid) {
            return true;
        }
        let born = matches!(line.body, Body::Continued { name, ret: Ret::Value(0) } if makes_process(name));
        if born {
            self.unborn.push_back(tid);
        }
        born
    }

    /// Takes the threads whose parents have not shown themselves for processes of their own.
    fn give_up_on_parents(&mut self) {
        for tid in std::mem::take(&mut self.unborn) {
            self.tracker.know(tid);
        }
    }

    /// Takes in the lines kept back whose threads are known now; gives back those that were not understood.
    fn release_born(&mut self) -> Vec<(u64, Vec<u8>, Reason)> {
        let mut problems = Vec::new();
        while self.held.iter().any(|held| !self.unborn.contains(&held.tid)) {
            let (born, held): (Vec<Held>, Vec<Held>) =
                std::mem::take(&mut self.held).into_iter().partition(|held| !self.unborn.contains(&held.tid));
            self.held = held;
            self.held_bytes = self.held.iter().map(|held| held.text.len()).sum();
            for held in born {
                let Ok(Parsed::Call(line)) = line::parse(&held.text) else { continue };
                if let Err(reason) = self.take(held.tid, &line, held.place) {
                    if let Some(place) = held.place {
                        self.tracker.skip_place(place);
                    }
                    problems.push((held.number, held.text, reason));
                }
            }
        }
        problems
    }

    fn take(&mut self, tid: u32, line: &Line<'_>, place: Option<Place>) -> Result<(), Reason> {
        let at_ns = line.at_ns.unwrap_or(self.last_ns);
        match line.body {
            Body::Begun { name, args } => {
                self.abandon(tid, OUT_OF_ORDER_MAX - 1);
                self.begin(tid, at_ns, name, args, place);
                Ok(())
            }
            Body::Whole { name, args, ret } => {
                if ret == Ret::Never && (name == b"exit" || name == b"exit_group") {
                    if let Some(place) = place {
                        self.tracker.skip_place(place);
                    }
                    self.exit(tid, at_ns, name == b"exit_group", args);
                    return Ok(());
                }
                let call = Running { start_ns: at_ns, place, name: name.to_vec(), args: args.to_vec(), closing: None };
                self.hand_over(tid, call, line.dur_ns, ret)
            }
            Body::Continued { name, ret } => {
                let begun = self.running.entry(tid).or_default();
                match begun.iter().position(|running| running.name == name) {
                    Some(at) => {
                        let running = begun.remove(at);
                        self.hand_over(tid, running, line.dur_ns, ret)
                    }
                    None => {
                        self.unstarted(tid, at_ns, name, ret);
                        Ok(())
                    }
                }
            }
        }
    }

    /// A call has begun and not returned.
    fn begin(&mut self, tid: u32, at_ns: u64, name: &[u8], args: &[u8], place: Option<Place>) {
        let fd = arguments::argument(args, b"fd").or_else(|| arguments::argument(args, b"oldfd"));
        let foreign = fd.and_then(line::digits).is_some_and(|(number, _)| {
            let fd = i32::try_from(number).map(|number| Fd { number, seen: None });
            fd.is_ok_and(|fd| self.tracker.is_foreign_fd(tid, &fd))
        });
        let keeps = match self.notation.keeps(name) {
            Keeps::Nothing => false,
            Keeps::Always => true,
            Keeps::UnlessForeign => !foreign,
        };
        let place = match (keeps, place) {
            (true, place) => Some(place.unwrap_or_else(|| self.tracker.start())),
            (false, Some(place)) => {
                self.tracker.skip_place(place);
                None
            }
            (false, None) => None,
        };
        let mut running = Running { start_ns: at_ns, place, name: name.to_vec(), args: args.to_vec(), closing: None };
        if name == b"close" {
            let since = self.since_start(at_ns);
            let mut text = Vec::new();
            self.translate(tid, &running, &mut text);
            if let Ok(Some(Call::Close { fd })) = self.notation.call(name, &text, None) {
                running.closing = Some(self.tracker.begin_close(tid, since, &fd));
            }
        }
        self.running.entry(tid).or_default().push(running);
    }

    /// The arguments in strace's notation.
    fn translate(&self, tid: u32, call: &Running, text: &mut Vec<u8>) -> arguments::Unread {
        arguments::translate(&call.name, &call.args, &|fd| !self.tracker.has_fd(tid, fd), text)
    }

    /// A call has returned.
    fn hand_over(&mut self, tid: u32, running: Running, dur_ns: Option<u64>, ret: Ret<'_>) -> Result<(), Reason> {
        let (value, errno) = match ret {
            Ret::Value(value) => (Some(value), 0),
            Ret::Error(name) => (None, Notation::errno(name)?),
            Ret::Never => (None, 0),
            // perf leaves out the number of a process that it has not heard of.
            Ret::Blank if makes_process(&running.name) => (self.unborn.front().map(|&tid| i64::from(tid)), 0),
            Ret::Blank => (Some(0), 0),
        };
        self.summary.without_duration += u64::from(dur_ns.is_none() && value.is_some());
        let since = self.since_start(running.start_ns);
        let unfinished = value.is_none() && errno == 0;
        let out = Outcome { ret: value.unwrap_or(-1), errno, dur_ns: dur_ns.unwrap_or(0), seen: None, unfinished };
        if let Some(closing) = running.closing {
            self.summary.calls += 1;
            self.tracker.end_close(closing, running.place, &out);
            return Ok(());
        }
        let mut text = Vec::new();
        let unread = self.translate(tid, &running, &mut text);
        let mut call = self.notation.call(&running.name, &text, value)?;
        if let (true, Some(Call::Copy { from, .. })) = (unread.offset, &call) {
            // Where it copied from or to is not known, so neither is what became of the descriptions' offsets.
            call = Some(Call::Other { fd: Some(*from), at: None });
        }
        let Some(mut call) = call else {
            self.summary.other_lines += 1;
            if let Some(place) = running.place {
                self.tracker.skip_place(place);
            }
            return Ok(());
        };
        self.summary.calls += 1;
        self.summary.unread_names += unread.names;
        let child = if out.ok() { u32::try_from(out.ret).ok().filter(|&child| child > 0) } else { None };
        if let (Call::Clone(flags), Some(child)) = (&mut call, child) {
            if running.name == b"clone3" && !self.runs_program(child) {
                *flags = CloneFlags { files: true, fs: true, thread: true, own_mounts: false };
            }
            let process = if flags.thread { self.process.get(&tid).copied().unwrap_or(tid) } else { child };
            self.process.insert(child, process);
            self.unborn.retain(|&unborn| unborn != child);
        }
        self.tracker.call(tid, since, running.place, &running.name, &call, &out);
        Ok(())
    }

    /// Whether a child ran a program before its parent went on: only `vfork` and `posix_spawn` make parents wait.
    fn runs_program(&self, child: u32) -> bool {
        self.held.iter().filter(|held| held.tid == child).any(|held| match line::parse(&held.text) {
            Ok(Parsed::Call(Line { body: Body::Whole { name, .. } | Body::Begun { name, .. }, .. })) => {
                name == b"execve" || name == b"execveat"
            }
            _ => false,
        })
    }

    /// A call returned that began before the trace did, or on a line that perf lost.
    fn unstarted(&mut self, tid: u32, at_ns: u64, name: &[u8], ret: Ret<'_>) {
        self.summary.other_lines += 1;
        if makes_process(name) || self.notation.keeps(name) == Keeps::Nothing {
            return;
        }
        self.summary.unstarted_calls += 1;
        if name.starts_with(b"execve") && ret == Ret::Value(0) {
            // Which program is not known; that its parent's descriptors are gone is.
            let call = Call::Exec { at: At { start: Start::Cwd(None), path: None } };
            let out = Outcome { ret: 0, errno: 0, dur_ns: 0, seen: None, unfinished: false };
            let since = self.since_start(at_ns);
            self.tracker.call(tid, since, None, name, &call, &out);
        }
    }

    fn exit(&mut self, tid: u32, at_ns: u64, whole_process: bool, args: &[u8]) {
        self.summary.exits += 1;
        let code = arguments::argument(args, b"error_code").and_then(line::digits).map_or(0, |(code, _)| code & 0xff);
        let status = i64::try_from(code).unwrap_or(0);
        if self.first_tid == Some(tid) {
            self.summary.first_status = Some(status);
        }
        let since = self.since_start(at_ns);
        let mut ending = FxHashSet::from_iter([tid]);
        if whole_process {
            let process = self.process.get(&tid).copied().unwrap_or(tid);
            ending.extend(self.process.iter().filter(|(_, of)| **of == process).map(|(tid, _)| *tid));
            ending.insert(process);
        }
        let mut others: Vec<u32> =
            ending.into_iter().filter(|&other| other != tid && self.tracker.knows(other)).collect();
        others.sort_unstable();
        for ending in others.into_iter().chain([tid]) {
            self.abandon(ending, 0);
            self.running.remove(&ending);
            self.tracker.exit(ending, since, status);
            self.process.remove(&ending);
        }
    }

    /// Of a thread's calls that have begun, all but the last few will not return.
    fn abandon(&mut self, tid: u32, but: usize) {
        while let Some(begun) = self.running.get_mut(&tid).filter(|begun| begun.len() > but) {
            let running = begun.remove(0);
            let place = running.place;
            if self.hand_over(tid, running, None, Ret::Never).is_err()
                && let Some(place) = place
            {
                self.tracker.skip_place(place);
            }
        }
    }
}

fn makes_process(name: &[u8]) -> bool {
    matches!(name, b"clone" | b"clone3" | b"fork" | b"vfork")
}
