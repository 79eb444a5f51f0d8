//! Importing what strace writes.
//!
//! What lives here: the notation, one file per layer (a line's outer form, its arguments, values, constants, which
//! system call asks what), and the [`Importer`] that streams lines through them into the
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

mod births;
mod calls;
pub(crate) mod constants;
mod decode;
mod digits;
pub(crate) mod imported;
mod lex;
mod line;
mod notation;
mod profile;
mod reason;
pub(crate) mod sink;
pub(crate) mod summary;
mod told;
mod value;

pub use imported::Imported;
pub use profile::{ImportedProfile, import, import_file};
pub use sink::Sink;
pub use summary::{ImportError, Problem, Summary};
pub(crate) use told::told;

use crate::analysis::Decode;
use crate::track::{Coverage, Place, TrackOptions, Tracker};
use births::Held;
use calls::{Running, parse_call};
use decode::Forms;
pub(crate) use decode::{may_set_mounts, rooted, traced_calls};
use lex::Args;
use line::{Body, Head, Leader};
pub(crate) use notation::{Keeps, Notation};
use reason::{NO_CALL, Reason};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::io::BufRead;
use std::path::PathBuf;

/// The longest line taken in; strace's own lines are far shorter, so a longer one is no trace.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Lines without a usable time stamp before the input is refused.
const PATIENCE: u64 = 50;

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
        self.tracker.drain(sink)?;
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
            Body::Changed { text, to } => {
                let taken = self.take_body(tid, at_ns, Body::Unfinished(text), place);
                self.supersede(to, tid);
                taken
            }
            Body::Superseded(by) => {
                self.supersede(tid, by);
                Ok(())
            }
        }
    }

    /// An exec makes a thread go on under the number of its process's first, which is gone.
    fn supersede(&mut self, tid: u32, by: u32) {
        if !self.tracker.knows(by) {
            return; // Another line told it.
        }
        self.abandon(tid);
        self.tracker.superseded(tid, by);
        if let Some(running) = self.running.remove(&by) {
            self.running.insert(tid, running);
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
}

impl Decode for Importer {
    fn bytes(&mut self, chunk: &[u8], sink: &mut Sink<'_>) -> Result<(), ImportError> {
        Importer::bytes(self, chunk, sink)
    }

    fn finish(self: Box<Self>, sink: &mut Sink<'_>) -> Result<Imported, ImportError> {
        Importer::finish(*self, sink)
    }
}
