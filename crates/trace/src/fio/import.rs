//! From a log's lines to calls.
//!
//! Of an action fio asks nothing but that it happened, so a read or write counts as complete, and an open as one for
//! reading and writing: a log does not say. A trim becomes a hole (`fallocate` with `FALLOC_FL_PUNCH_HOLE`).

use crate::analysis::Decode;
use crate::lines::Lines;
use crate::profile::{Meta, Tracer};
use crate::strace::{ImportError, ImportOptions, Imported, Problem, Sink, Summary};
use crate::track::{At, Call, Fd, Outcome, Start, TrackOptions, Tracker};
use crate::{Op, flag};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The one thread a log has.
const TID: u32 = 1;
/// The lowest descriptor given out: those below are a program's standard streams.
const FIRST_FD: i32 = 3;
/// `FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE`
const PUNCH_HOLE: u32 = 3;

/// Streams a log into batches of events.
#[derive(Debug)]
pub struct Importer {
    options: ImportOptions,
    lines: Lines,
    log: Log,
}

#[derive(Debug)]
struct Log {
    tracker: Tracker,
    summary: Summary,
    version: Option<u64>,
    files: FxHashMap<Vec<u8>, File>,
    free_fds: Vec<i32>,
    next_fd: i32,
    first_ns: Option<u64>,
    now_ns: u64,
}

/// A file of the log.
#[derive(Clone, Copy, Debug, Default)]
struct File {
    fd: Option<i32>,
    /// Where what the log wrote ends.
    written_to: u64,
    /// How long the file was when the log began, at least.
    needed: u64,
}

type Reason = &'static str;

impl Importer {
    /// An importer at the start of a log.
    pub fn new(options: ImportOptions) -> Self {
        let track = TrackOptions { keep_removed: options.keep_removed, cwd: options.cwd.clone() };
        let log = Log {
            tracker: Tracker::new(track),
            summary: Summary::default(),
            version: None,
            files: FxHashMap::default(),
            free_fds: Vec::new(),
            next_fd: FIRST_FD,
            first_ns: None,
            now_ns: 0,
        };
        Importer { options, lines: Lines::default(), log }
    }
}

impl Decode for Importer {
    fn bytes(&mut self, chunk: &[u8], sink: &mut Sink<'_>) -> Result<(), ImportError> {
        let Importer { options, lines, log } = self;
        lines.split(chunk, |line| {
            log.line(line, options)?;
            if log.tracker.is_full() {
                sink(log.tracker.take())?;
            }
            Ok(())
        })
    }

    fn finish(mut self: Box<Self>, sink: &mut Sink<'_>) -> Result<Imported, ImportError> {
        if let Some(rest) = self.lines.take_rest() {
            // A last action cut short reads like another one (`write 0 4096` as `write 0 4`).
            self.log.summary.lines += 1;
            self.log.summary.bytes += rest.len() as u64;
            self.log.summary.truncated_last_line = Some(self.log.summary.lines);
            self.log.problem(&rest, "the last line is cut short", &self.options);
        }
        let mut log = self.log;
        if log.version.is_none() {
            return Err(ImportError::Empty { name: self.options.name });
        }
        log.tracker.drain(sink)?;
        let (events, late) = log.tracker.counts();
        let mut summary = log.summary;
        (summary.events, summary.late_events) = (events, late);
        summary.wall_ns = log.first_ns.map_or(0, |first| log.now_ns.saturating_sub(first));
        summary.idle_ns = summary.wall_ns;
        summary.coverage = log.tracker.coverage().clone();
        let version = log.version.unwrap_or_default();
        let sizes = log.files.into_iter().filter(|(_, file)| file.needed > 0);
        let cwd = self.options.cwd;
        let sizes = sizes.map(|(name, file)| (absolute(&name, cwd.as_deref()), file.needed)).collect();
        Ok(Imported::new(summary, log.tracker, says(version)).with_least_sizes(sizes))
    }
}

/// What is true of every log.
fn says(version: u64) -> Meta {
    let time = if version >= 3 { "microseconds since the run began" } else { "the sum of the waits before" };
    Meta {
        tracer: Tracer {
            name: "fio".into(),
            version: String::new(),
            options: vec![format!("iolog version {version}")],
        },
        clock: format!("fio: {time}; a log has no durations, they are 0"),
        ..Meta::default()
    }
}

/// The name as the tracker's snapshot has it.
fn absolute(name: &[u8], cwd: Option<&[u8]>) -> Vec<u8> {
    let whole = match (name.first(), cwd) {
        (Some(b'/'), _) | (_, None) => name.to_vec(),
        (_, Some(cwd)) => [cwd, b"/", name].concat(),
    };
    crate::track::normalise(&whole).into_owned()
}

impl Log {
    fn line(&mut self, line: &[u8], options: &ImportOptions) -> Result<(), ImportError> {
        self.summary.lines += 1;
        self.summary.bytes += line.len() as u64 + 1;
        if line.is_empty() {
            self.summary.notes += 1;
            return Ok(());
        }
        if let Some(version) = super::version(line) {
            // Several jobs that write one log leave a first line each.
            self.summary.notes += 1;
            return self.begins(version, options);
        }
        let Some(version) = self.version else {
            return Err(unusable(options, "the first line is none of fio's (\"fio version 3 iolog\")"));
        };
        match self.action(line, version, options) {
            Ok(()) => {}
            Err(Bad::Line(reason)) => self.problem(line, reason, options),
            Err(Bad::Relative) => {
                let number = self.summary.lines;
                return Err(unusable(
                    options,
                    &format!("line {number}: the file's name is relative; say with --cwd DIR where fio ran"),
                ));
            }
        }
        Ok(())
    }

    fn begins(&mut self, version: u64, options: &ImportOptions) -> Result<(), ImportError> {
        if !(2..=3).contains(&version) {
            return Err(unusable(options, &format!("a log of version {version}; versions 2 and 3 are read")));
        }
        if self.version.is_some_and(|first| first != version) {
            return Err(unusable(options, "two logs of different versions in one file; take them apart"));
        }
        self.version = Some(version);
        Ok(())
    }

    fn problem(&mut self, line: &[u8], reason: Reason, options: &ImportOptions) {
        self.summary.unparsed_lines += 1;
        if self.summary.problems.len() < options.problems_listed {
            let excerpt: String = line.escape_ascii().take(120).map(char::from).collect();
            self.summary.problems.push(Problem { line: self.summary.lines, reason: reason.to_owned(), excerpt });
        }
    }

    fn action(&mut self, line: &[u8], version: u64, options: &ImportOptions) -> Result<(), Bad> {
        // fio reads with scanf: any run of blanks separates.
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let mut next = || fields.next().ok_or(Bad::Line("a field is missing"));
        if version >= 3 {
            let at_us = number(next()?).ok_or(Bad::Line("the time stamp is no number"))?;
            self.now_ns = self.now_ns.max(at_us.saturating_mul(1000));
        }
        let (name, action) = (next()?, next()?);
        let range = match (fields.next(), fields.next(), fields.next()) {
            (None, ..) => None,
            (Some(offset), Some(length), None) => {
                let both = number(offset).zip(number(length));
                Some(both.ok_or(Bad::Line("offset or length is no number"))?)
            }
            _ => return Err(Bad::Line("a file, an action, and for I/O offset and length are expected")),
        };
        if action == b"wait" {
            let (wait_us, _) = range.ok_or(Bad::Line("a wait without its microseconds"))?;
            self.now_ns = self.now_ns.saturating_add(wait_us.saturating_mul(1000));
            self.summary.other_lines += 1;
            return Ok(());
        }
        self.first_ns.get_or_insert(self.now_ns);
        if name.first() != Some(&b'/') && options.cwd.is_none() {
            return Err(Bad::Relative);
        }
        match range {
            None => self.file_action(name, action),
            Some((offset, length)) => self.transfer(name, action, offset, length),
        }
    }

    fn file_action(&mut self, name: &[u8], action: &[u8]) -> Result<(), Bad> {
        match action {
            b"add" => {
                self.files.entry(name.to_vec()).or_default();
                self.summary.other_lines += 1;
            }
            b"open" => {
                let fd = self.free_fds.pop().unwrap_or(self.next_fd);
                if fd == self.next_fd {
                    self.next_fd = self
                        .next_fd
                        .checked_add(1)
                        .ok_or(Bad::Line("more files are open than any process can have"))?;
                }
                if let Some(before) = self.files.entry(name.to_vec()).or_default().fd.replace(fd) {
                    // fio has one descriptor a file and lets go of the one before.
                    self.call(b"close", &Call::Close { fd: plain(before) }, 0);
                    self.free_fds.push(before);
                }
                self.call(
                    b"open",
                    &Call::Open { at: path(name), flags: flag::READ | flag::WRITE, mode: None },
                    i64::from(fd),
                );
            }
            b"close" => {
                let fd = self.opened(name)?;
                if let Some(file) = self.files.get_mut(name) {
                    file.fd = None;
                }
                self.free_fds.push(fd);
                self.call(b"close", &Call::Close { fd: plain(fd) }, 0);
            }
            b"unlink" => self.call(b"unlink", &Call::Unlink { at: path(name) }, 0),
            _ => return Err(Bad::Line("an action that fio's logs do not have")),
        }
        Ok(())
    }

    fn transfer(&mut self, name: &[u8], action: &[u8], offset: u64, length: u64) -> Result<(), Bad> {
        const TOO_FAR: Bad = Bad::Line("offset and length lie beyond any file's end");
        let (end, ret) = match (offset.checked_add(length), i64::try_from(length)) {
            (Some(end), Ok(ret)) if i64::try_from(end).is_ok() => (end, ret),
            _ => return Err(TOO_FAR),
        };
        let fd = plain(self.opened(name)?);
        let write = action == b"write";
        let (call, ret) = match action {
            b"read" | b"write" => {
                let (len, offset) = (Some(length), Some(offset));
                (Call::Transfer { write, fd, len, offset, sync: false, append: false }, ret)
            }
            b"sync" => (on_fd(Op::Fsync, fd), 0),
            b"datasync" => (on_fd(Op::Fdatasync, fd), 0),
            b"trim" => (Call::Fallocate { fd, mode: PUNCH_HOLE, offset, len: length }, 0),
            _ => return Err(Bad::Line("an action that fio's logs do not have")),
        };
        if let Some(file) = self.files.get_mut(name) {
            match action {
                b"write" => file.written_to = file.written_to.max(end),
                b"read" if end > file.written_to => file.needed = file.needed.max(end),
                _ => {}
            }
        }
        let kernel_name: &[u8] = match action {
            b"read" => b"pread64",
            b"write" => b"pwrite64",
            b"sync" => b"fsync",
            b"datasync" => b"fdatasync",
            _ => b"fallocate",
        };
        self.call(kernel_name, &call, ret);
        Ok(())
    }

    fn opened(&self, name: &[u8]) -> Result<i32, Bad> {
        self.files.get(name).and_then(|file| file.fd).ok_or(Bad::Line("the file is not open"))
    }

    fn call(&mut self, name: &[u8], call: &Call<'_>, ret: i64) {
        let out = Outcome { ret, errno: 0, dur_ns: 0, seen: None, unfinished: false };
        let since = self.now_ns.saturating_sub(self.first_ns.unwrap_or(0));
        self.summary.calls += 1;
        self.tracker.call(TID, since, None, name, call, &out);
    }
}

/// Why a line is not taken in.
enum Bad {
    Line(Reason),
    Relative,
}

fn unusable(options: &ImportOptions, message: &str) -> ImportError {
    ImportError::Unusable { name: options.name.clone(), message: message.to_owned() }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn plain<'a>(number: i32) -> Fd<'a> {
    Fd { number, seen: None }
}

fn path(name: &[u8]) -> At<'_> {
    At { start: Start::Cwd(None), path: Some(Cow::Borrowed(name)) }
}

fn on_fd<'a>(op: Op, fd: Fd<'a>) -> Call<'a> {
    Call::OnFd { op, fd, offset: None, len: None, mode: None }
}
