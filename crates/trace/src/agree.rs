//! Whether two tellings of one run agree: two tracers', or a tracer's and a program's own that knows the truth.
//!
//! They are held against each other thread by thread and call by call: what was asked, what the kernel answered, and
//! which file it was about. Numbers of files and descriptions differ between tellings, so they are paired: one file of
//! the one must always be the same file of the other, both ways. What one side does not know is not compared, and the
//! shares of what was known are counted, so that an agreement about nothing shows. Order between threads is not
//! compared.

use crate::profile::Reader;
use crate::{Batch, Call, Event, FileId, Op, Paths, flag};
use columnar::FileError;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::Path;

/// How far ahead a call that the other side lacks is looked for.
const AHEAD: usize = 24;
/// How many differences are kept whole; all are counted.
const KEPT: usize = 500;
const EINTR: u16 = posix::Errno::EINTR.0;

/// One call as one side tells it. `None`: not known, or not applicable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Who called.
    pub tid: u32,
    /// Where its side tells of it (nanoseconds since the trace began, or a place in a file), for the reader of a
    /// difference.
    pub at: u64,
    /// What was asked.
    pub op: Op,
    /// Flags ([`flag`]), and which of them are known.
    pub flags: u32,
    #[allow(missing_docs)]
    pub flags_known: u32,
    /// What it returned, and the error number.
    pub ret: i64,
    #[allow(missing_docs)]
    pub errno: u16,
    /// Offsets, bytes asked for, mode, and the file's length before: as in [`Event`].
    pub offset: Option<u64>,
    #[allow(missing_docs)]
    pub offset2: Option<u64>,
    #[allow(missing_docs)]
    pub bytes: Option<u64>,
    #[allow(missing_docs)]
    pub mode: Option<u16>,
    #[allow(missing_docs)]
    pub size_before: Option<u64>,
    /// The paths as they were given to the call.
    pub path: Option<Box<[u8]>>,
    #[allow(missing_docs)]
    pub path2: Option<Box<[u8]>>,
    /// The file, in the side's own numbers.
    pub file: Option<u64>,
    /// The description, in the side's own numbers.
    pub ofd: Option<u64>,
    /// How it ended.
    pub end: End,
}

/// How a call ended, so far as its side knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It returned.
    Returned,
    /// It returned after having been begun again by the kernel any number of times, which the other side may show as
    /// calls that were interrupted.
    Restarted,
    /// It was cut off. The other side may have its end, or nothing of it.
    Unknown,
}

/// What sets apart how a call was to be done, and every telling must know.
const ASKED: u32 = flag::POSITIONAL
    | flag::NOREPLACE
    | flag::EXCHANGE
    | flag::RWF_SYNC
    | flag::READ
    | flag::WRITE
    | flag::CREATE
    | flag::EXCL
    | flag::TRUNC
    | flag::APPEND
    | flag::DIRECTORY
    | flag::DIRECT
    | flag::SYNC
    | flag::DSYNC
    | flag::PATH_ONLY
    | flag::TMPFILE
    | flag::NOATIME
    | flag::CLOEXEC
    | flag::NOFOLLOW
    | 0xff << flag::SUB_SHIFT;

impl Fact {
    /// A call that returned 0 and of which nothing else is known.
    pub fn new(tid: u32, op: Op) -> Fact {
        Fact {
            tid,
            at: 0,
            op,
            flags: 0,
            flags_known: 0,
            ret: 0,
            errno: 0,
            offset: None,
            offset2: None,
            bytes: None,
            mode: None,
            size_before: None,
            path: None,
            path2: None,
            file: None,
            ofd: None,
            end: End::Returned,
        }
    }

    /// What a recorded event tells; `None` for what is no call of the program's: a close that the kernel did, a fault
    /// on a mapped file, an end.
    pub fn of_event(event: &Event, paths: &Paths) -> Option<Fact> {
        if event.head.flags & flag::IMPLIED != 0 || matches!(event.op(), Op::MapRead | Op::MapWrite | Op::Exit) {
            return None;
        }
        let given = |path: Option<crate::PathId>, dir: Option<crate::PathId>| -> Option<Box<[u8]>> {
            // Across a bind mount the path is another than was given.
            let path = paths.get(path.filter(|_| event.head.flags & flag::BY_MOUNT == 0)?);
            let Some(dir) = dir else { return Some(path.into()) };
            let rest = path.strip_prefix(paths.get(dir))?;
            Some(rest.strip_prefix(b"/").unwrap_or(rest).into())
        };
        // The path of a call on a descriptor is the description's, which was given to another call.
        let on_path = event.call.named().is_some() || event.caller_dir().is_some();
        let path2 = match event.call {
            Call::Symlink { target, .. } => target.map(|id| paths.get(id).into()),
            _ => given(event.path2(), event.caller_dir2()),
        };
        Some(Fact {
            tid: event.head.tid,
            at: event.head.t_ns,
            op: event.op(),
            flags: event.head.flags,
            flags_known: ASKED,
            ret: event.head.ret,
            errno: event.head.errno.map_or(0, |errno| errno.0),
            offset: event.offset(),
            offset2: event.offset2(),
            bytes: event.req_bytes(),
            mode: event.mode(),
            size_before: event.size_before(),
            path: if on_path { given(event.path(), event.caller_dir()) } else { None },
            path2,
            file: event.file().map(|FileId(id)| id),
            ofd: event.ofd().map(|ofd| ofd.0),
            end: if event.head.flags & flag::UNFINISHED != 0 { End::Unknown } else { End::Returned },
        })
    }
}

/// What was told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Aspect {
    /// Only the left side has the call.
    OnlyLeft,
    /// Only the right side has it.
    OnlyRight,
    Result,
    Flags,
    Offset,
    Bytes,
    Mode,
    SizeBefore,
    Path,
    /// The same file of one side is two of the other.
    File,
    /// The same description of one side is two of the other.
    Description,
}

impl Aspect {
    /// In words, for tables.
    pub fn name(self) -> &'static str {
        match self {
            Aspect::OnlyLeft => "only on the left",
            Aspect::OnlyRight => "only on the right",
            Aspect::Result => "result",
            Aspect::Flags => "flags",
            Aspect::Offset => "offset",
            Aspect::Bytes => "bytes",
            Aspect::Mode => "mode",
            Aspect::SizeBefore => "length before",
            Aspect::Path => "path",
            Aspect::File => "file",
            Aspect::Description => "description",
        }
    }
}

/// One difference.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What differs.
    pub aspect: Aspect,
    /// The thread, and how many of its calls agreed in kind before.
    pub tid: u32,
    #[allow(missing_docs)]
    pub nth: u64,
    /// The call as the sides tell it.
    pub left: Option<Fact>,
    #[allow(missing_docs)]
    pub right: Option<Fact>,
    /// Of files and descriptions: the latest calls that paired either side's with another.
    pub against: Vec<Pair>,
}

/// A call in which the two sides told of one file, or description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Its numbers.
    pub left: u64,
    #[allow(missing_docs)]
    pub right: u64,
    /// The call.
    pub tid: u32,
    #[allow(missing_docs)]
    pub op: Op,
    /// Where the right side tells of it ([`Fact::at`]).
    pub at: u64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {}, call {}: {}", self.tid, self.nth, self.aspect.name())?;
        for (side, fact) in [("left", &self.left), ("right", &self.right)] {
            let Some(fact) = fact else { continue };
            write!(f, "\n  {side:>5}: {} = {} (errno {})", fact.op.name(), fact.ret, fact.errno)?;
            for path in [&fact.path, &fact.path2].into_iter().flatten() {
                write!(f, " \"{}\"", path.escape_ascii())?;
            }
            let numbers = [
                ("offset", fact.offset),
                ("offset2", fact.offset2),
                ("bytes", fact.bytes),
                ("mode", fact.mode.map(u64::from)),
                ("length", fact.size_before),
                ("file", fact.file),
                ("description", fact.ofd),
            ];
            for (name, number) in numbers {
                if let Some(number) = number {
                    write!(f, " {name} {number}")?;
                }
            }
            write!(f, " flags {:#x} at {}", fact.flags, fact.at)?;
        }
        for pair in &self.against {
            let Pair { left, right, tid, op, at } = pair;
            write!(f, "\n  against: {left} was {right} in {} of thread {tid} at {at}", op.name())?;
        }
        Ok(())
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    /// Calls that both sides have.
    pub calls: u64,
    /// Of these, how many told the same file on both sides, or one side a file that the other did not know.
    pub files_compared: u64,
    #[allow(missing_docs)]
    pub files_unknown: u64,
    /// Calls cut off that only one side has.
    pub cut_off: u64,
    /// Descriptions that one side told as new in a call that makes none, and the other knew: they came over a socket. A
    /// side that shows descriptors by their paths, as strace does, cannot tell whose they are: the call that brings
    /// them is none on files, and a path is the same for every description of a file. How many there can be, who
    /// compares has to know.
    pub received: u64,
    /// Differences by aspect and operation.
    pub counts: BTreeMap<(Aspect, Op), u64>,
    /// The first of them.
    pub differences: Vec<Difference>,
}

impl Agreement {
    /// How many differences.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// A comparison that is being fed, each thread of either side in the order of its calls.
///
/// Calls are compared as soon as both sides have them; which numbers stand for the same is settled at the end, by the
/// right side's times, as one thread's calls say what another's are about. So the calls that tell of a file or a
/// description are kept until then.
#[derive(Debug, Default)]
pub struct Comparison {
    threads: FxHashMap<u32, Pending>,
    tellings: Vec<Telling>,
    files: Pairs,
    descriptions: Pairs,
    agreement: Agreement,
}

/// A call in which both sides tell of a file or of a description.
#[derive(Debug)]
struct Telling {
    tid: u32,
    nth: u64,
    left: Fact,
    right: Fact,
}

#[derive(Debug, Default)]
struct Pending {
    left: VecDeque<Fact>,
    right: VecDeque<Fact>,
    done: u64,
}

impl Comparison {
    /// A call of the left side.
    pub fn left(&mut self, fact: Fact) {
        let tid = fact.tid;
        self.threads.entry(tid).or_default().left.push_back(fact);
        self.proceed(tid, AHEAD);
    }

    /// A call of the right side.
    pub fn right(&mut self, fact: Fact) {
        let tid = fact.tid;
        self.threads.entry(tid).or_default().right.push_back(fact);
        self.proceed(tid, AHEAD);
    }

    /// Both sides have ended.
    pub fn finish(mut self) -> Agreement {
        let mut tids: Vec<u32> = self.threads.keys().copied().collect();
        tids.sort_unstable();
        for tid in tids {
            self.proceed(tid, 0);
            let Some(pending) = self.threads.remove(&tid) else { continue };
            let nth = pending.done;
            for fact in pending.left {
                self.alone(tid, nth, Aspect::OnlyLeft, fact);
            }
            for fact in pending.right {
                self.alone(tid, nth, Aspect::OnlyRight, fact);
            }
        }
        let mut tellings = std::mem::take(&mut self.tellings);
        tellings.sort_by_key(|telling| telling.right.at);
        tellings.into_iter().for_each(|telling| self.settle(telling));
        self.agreement
    }

    /// Compares what a thread has on both sides, but for the last `kept` calls, which are needed to look ahead.
    fn proceed(&mut self, tid: u32, kept: usize) {
        let Some(mut pending) = self.threads.remove(&tid) else { return };
        while pending.left.len() > kept && pending.right.len() > kept {
            self.step(tid, &mut pending);
        }
        self.threads.insert(tid, pending);
    }

    fn step(&mut self, tid: u32, pending: &mut Pending) {
        let (Some(left), Some(right)) = (pending.left.front(), pending.right.front()) else { return };
        let missing = |here: &Fact, there: &VecDeque<Fact>| there.iter().take(AHEAD).position(|fact| alike(here, fact));
        // The side whose call turns up sooner on the other has something in between that the other lacks.
        let found = if alike(left, right) {
            None
        } else {
            Some((missing(left, &pending.right), missing(right, &pending.left)))
        };
        if matches!(found, None | Some((None, None))) && left.op == right.op {
            let mut pairs = [pending.left.pop_front(), pending.right.pop_front()];
            if let [Some(left), Some(right)] = &mut pairs {
                skip_restarts(left, &mut pending.left, right, &pending.right);
                skip_restarts(right, &mut pending.right, left, &pending.left);
            }
            if let [Some(left), Some(right)] = pairs {
                pending.done += 1;
                self.compare(tid, pending.done, left, right);
            }
            return;
        }
        let nth = pending.done;
        let lone_left = match found.unwrap_or((None, None)) {
            (Some(r), Some(l)) => l <= r,
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (None, None) => {
                let both =
                    [(Aspect::OnlyLeft, pending.left.pop_front()), (Aspect::OnlyRight, pending.right.pop_front())];
                for (aspect, fact) in both {
                    if let Some(fact) = fact {
                        self.alone(tid, nth, aspect, fact);
                    }
                }
                return;
            }
        };
        let (aspect, fact) = if lone_left {
            (Aspect::OnlyLeft, pending.left.pop_front())
        } else {
            (Aspect::OnlyRight, pending.right.pop_front())
        };
        if let Some(fact) = fact {
            self.alone(tid, nth, aspect, fact);
        }
    }

    fn alone(&mut self, tid: u32, nth: u64, aspect: Aspect, fact: Fact) {
        if fact.end == End::Unknown {
            self.agreement.cut_off += 1;
            return;
        }
        let op = fact.op;
        let (left, right) = if aspect == Aspect::OnlyLeft { (Some(fact), None) } else { (None, Some(fact)) };
        self.differ(op, Difference { aspect, tid, nth, left, right, against: Vec::new() });
    }

    fn compare(&mut self, tid: u32, nth: u64, left: Fact, right: Fact) {
        self.agreement.calls += 1;
        let ended = left.end != End::Unknown && right.end != End::Unknown;
        let known = left.flags_known & right.flags_known;
        let mut aspects: Vec<Aspect> = Vec::new();
        let mut check = |aspect, differs: bool| {
            if differs {
                aspects.push(aspect);
            }
        };
        check(Aspect::Result, ended && (left.ret, left.errno) != (right.ret, right.errno));
        check(Aspect::Flags, ended && (left.flags ^ right.flags) & known != 0);
        check(Aspect::Bytes, differ(left.bytes, right.bytes));
        check(Aspect::Mode, differ(left.mode, right.mode));
        check(Aspect::Path, differ(left.path.as_ref(), right.path.as_ref()));
        check(Aspect::Path, differ(left.path2.as_ref(), right.path2.as_ref()));
        if ended && left.errno == 0 {
            check(Aspect::Offset, differ(left.offset, right.offset));
            check(Aspect::Offset, differ(left.offset2, right.offset2));
            check(Aspect::SizeBefore, differ(left.size_before, right.size_before));
        }
        aspects.dedup();
        for aspect in aspects {
            let op = left.op;
            let (left, right) = (Some(left.clone()), Some(right.clone()));
            self.differ(op, Difference { aspect, tid, nth, left, right, against: Vec::new() });
        }
        match (left.file, right.file) {
            (Some(_), Some(_)) => self.agreement.files_compared += 1,
            (None, None) => {}
            _ => self.agreement.files_unknown += 1,
        }
        if left.file.zip(right.file).is_some() || left.ofd.zip(right.ofd).is_some() {
            self.tellings.push(Telling { tid, nth, left, right });
        }
    }

    /// Whether the numbers of a call stand for what they stood for before.
    fn settle(&mut self, telling: Telling) {
        let Telling { tid, nth, left, right } = telling;
        self.note_received(&left, &right);
        let (op, at) = (right.op, right.at);
        let pair = |(left, right)| Pair { left, right, tid, op, at };
        let file = left.file.zip(right.file).map_or_else(Vec::new, |numbers| self.files.pair(pair(numbers)));
        let ofd = left.ofd.zip(right.ofd).map_or_else(Vec::new, |numbers| self.descriptions.pair(pair(numbers)));
        for (aspect, against) in [(Aspect::File, file), (Aspect::Description, ofd)] {
            if !against.is_empty() {
                let (op, left, right) = (left.op, Some(left.clone()), Some(right.clone()));
                self.differ(op, Difference { aspect, tid, nth, left, right, against });
            }
        }
    }

    /// [`Agreement::received`]: the description that one side takes for a new one, and its file if the name had gone on
    /// the way. Where both first tell of it in a call that makes none, it came too, and the file alone shows that one
    /// side did not know it.
    fn note_received(&mut self, left: &Fact, right: &Fact) {
        let (Some(l), Some(r)) = (left.ofd, right.ofd) else { return };
        let files = left.file.zip(right.file).filter(|&(l, r)| self.files.is_new_on_one_side(l, r, right.op));
        let arrived = right.op != Op::Open && self.descriptions.is_new(l, r) && files.is_some();
        let received = arrived || self.descriptions.is_new_on_one_side(l, r, right.op);
        if !received || !self.descriptions.received.insert((l, r)) {
            return;
        }
        self.agreement.received += 1;
        self.files.received.extend(files);
    }

    fn differ(&mut self, op: Op, difference: Difference) {
        *self.agreement.counts.entry((difference.aspect, op)).or_insert(0) += 1;
        if self.agreement.differences.len() < KEPT {
            self.agreement.differences.push(difference);
        }
    }
}

/// Compares two recordings of one run.
///
/// # Errors
/// A profile cannot be read; the error names file and place.
pub fn profiles(left: &Path, right: &Path) -> Result<Agreement, FileError> {
    let (left, right) = (Reader::open(left)?, Reader::open(right)?);
    let (mut of_left, mut of_right) = (left.batches()?, right.batches()?);
    let mut comparison = Comparison::default();
    let (mut batch, mut more) = (Batch::default(), (true, true));
    // By turns, so that few calls wait for their like on the other side.
    while more.0 || more.1 {
        more.0 = more.0 && of_left.next_into(&mut batch)?;
        if more.0 {
            batch
                .events
                .iter()
                .filter_map(|event| Fact::of_event(event, &batch.paths))
                .for_each(|fact| comparison.left(fact));
        }
        more.1 = more.1 && of_right.next_into(&mut batch)?;
        if more.1 {
            batch
                .events
                .iter()
                .filter_map(|event| Fact::of_event(event, &batch.paths))
                .for_each(|fact| comparison.right(fact));
        }
    }
    Ok(comparison.finish())
}

fn differ<T: PartialEq>(left: Option<T>, right: Option<T>) -> bool {
    matches!((left, right), (Some(l), Some(r)) if l != r)
}

/// Whether two tellings ask the same.
fn alike(left: &Fact, right: &Fact) -> bool {
    left.op == right.op
        && !differ(left.path.as_ref(), right.path.as_ref())
        && !differ(left.path2.as_ref(), right.path2.as_ref())
        && !differ(left.bytes, right.bytes)
}

/// Where the kernel began a call again, one side has all its beginnings, and the other (`whole`) its end, or that it
/// was cut off. All beginnings but the last were interrupted: leaves the last in `fact`. The same calls that follow on
/// the other side have theirs too: those that the program saw interrupted need at least one each.
fn skip_restarts(fact: &mut Fact, behind: &mut VecDeque<Fact>, whole: &Fact, behind_whole: &VecDeque<Fact>) {
    if whole.end == End::Returned || fact.end == End::Restarted || fact.errno != EINTR {
        return;
    }
    let same = |next: &&Fact| next.op == whole.op && next.bytes == whole.bytes;
    let is_interrupted = |next: &&Fact| next.errno == EINTR;
    let interrupted = behind.iter().take_while(same).take_while(is_interrupted).count();
    let last = behind.get(interrupted).filter(same);
    let passed = match whole.end {
        End::Returned => 0,
        End::Restarted if whole.errno == EINTR => {
            interrupted.saturating_sub(behind_whole.iter().take_while(same).take_while(is_interrupted).count())
        }
        End::Restarted => interrupted + usize::from(last.is_some()),
        End::Unknown => interrupted + usize::from(last.is_some_and(|next| next.end == End::Unknown)),
    };
    for _ in 0..passed {
        if let Some(next) = behind.pop_front() {
            *fact = next;
        }
    }
}

/// Numbers of one side paired with those of the other.
#[derive(Debug, Default)]
struct Pairs {
    of_left: FxHashMap<u64, Pair>,
    of_right: FxHashMap<u64, Pair>,
    contradicted: FxHashSet<(u64, u64)>,
    /// Pairs beside those: [`Agreement::received`].
    received: FxHashSet<(u64, u64)>,
}

impl Pairs {
    /// Whether one side tells a number for the first time, and the other knows its own from before. Two opens make two
    /// descriptions.
    fn is_new_on_one_side(&self, left: u64, right: u64, op: Op) -> bool {
        match (self.of_left.get(&left), self.of_right.get(&right)) {
            (None, Some(known)) | (Some(known), None) => op != Op::Open || known.op != Op::Open,
            _ => false,
        }
    }

    /// Whether both sides tell their numbers for the first time.
    fn is_new(&self, left: u64, right: u64) -> bool {
        !self.of_left.contains_key(&left) && !self.of_right.contains_key(&right)
    }

    /// Takes a pair, and returns what speaks against it. A pair that cannot be is taken over, so that it is told once
    /// and not for ever.
    fn pair(&mut self, pair: Pair) -> Vec<Pair> {
        if self.received.contains(&(pair.left, pair.right)) {
            return Vec::new();
        }
        let before = [self.of_left.insert(pair.left, pair), self.of_right.insert(pair.right, pair)];
        let is_other = |other: &Pair| (other.left, other.right) != (pair.left, pair.right);
        let against: Vec<Pair> = before.into_iter().flatten().filter(is_other).collect();
        if against.is_empty() || self.contradicted.insert((pair.left, pair.right)) { against } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(op: Op, path: &str, ret: i64) -> Fact {
        Fact { path: Some(path.as_bytes().into()), ret, ..Fact::new(7, op) }
    }

    fn agreement(left: &[Fact], right: &[Fact]) -> Agreement {
        let mut comparison = Comparison::default();
        left.iter().for_each(|fact| comparison.left(fact.clone()));
        right.iter().for_each(|fact| comparison.right(fact.clone()));
        comparison.finish()
    }

    fn counts(left: &[Fact], right: &[Fact]) -> Vec<(Aspect, Op, u64)> {
        agreement(left, right).counts.into_iter().map(|((aspect, op), n)| (aspect, op, n)).collect()
    }

    #[test]
    fn equal_tellings_agree() {
        let calls = [call(Op::Open, "a", 3), call(Op::Unlink, "b", 0)];
        let agreed = agreement(&calls, &calls);
        assert_eq!((agreed.calls, agreed.total()), (2, 0));
    }

    #[test]
    fn each_aspect_is_seen() {
        let one = Fact {
            offset: Some(5),
            bytes: Some(9),
            mode: Some(1),
            size_before: Some(3),
            flags_known: flag::READ,
            ..call(Op::Open, "a", 3)
        };
        let cases = [
            (Aspect::Result, Fact { ret: 4, ..one.clone() }),
            (Aspect::Result, Fact { errno: 2, ..one.clone() }),
            (Aspect::Flags, Fact { flags: flag::READ, ..one.clone() }),
            (Aspect::Offset, Fact { offset: Some(6), ..one.clone() }),
            (Aspect::Bytes, Fact { bytes: Some(6), ..one.clone() }),
            (Aspect::Mode, Fact { mode: Some(6), ..one.clone() }),
            (Aspect::SizeBefore, Fact { size_before: Some(6), ..one.clone() }),
            (Aspect::Path, call(Op::Open, "b", 3)),
        ];
        for (aspect, other) in cases {
            assert_eq!(counts(std::slice::from_ref(&one), &[other]), [(aspect, Op::Open, 1)]);
        }
    }

    #[test]
    fn what_one_side_does_not_know_is_not_compared() {
        let one = Fact { offset: Some(5), file: Some(8), ..call(Op::Read, "a", 3) };
        let agreed = agreement(&[one], &[Fact { ret: 3, ..Fact::new(7, Op::Read) }]);
        assert_eq!((agreed.total(), agreed.files_compared, agreed.files_unknown), (0, 0, 1));
    }

    #[test]
    fn a_file_is_one_file() {
        let fact = |file| Fact { file: Some(file), ..Fact::new(7, Op::Fsync) };
        assert_eq!(counts(&[fact(1), fact(2), fact(1)], &[fact(10), fact(20), fact(10)]), []);
        assert_eq!(counts(&[fact(1), fact(2)], &[fact(10), fact(10)]), [(Aspect::File, Op::Fsync, 1)]);
        assert_eq!(counts(&[fact(1), fact(1)], &[fact(10), fact(20)]), [(Aspect::File, Op::Fsync, 1)]);
    }

    #[test]
    fn a_call_that_one_side_lacks_is_told_once() {
        let all: Vec<Fact> = (0..60).map(|i| call(Op::Stat, &format!("{i}"), i)).collect();
        let mut fewer = all.clone();
        fewer.remove(20);
        assert_eq!(counts(&all, &fewer), [(Aspect::OnlyLeft, Op::Stat, 1)]);
        assert_eq!(counts(&fewer, &all), [(Aspect::OnlyRight, Op::Stat, 1)]);
        let mut other = all.clone();
        other[30] = call(Op::Mkdir, "x", 0);
        assert_eq!(counts(&all, &other), [(Aspect::OnlyLeft, Op::Stat, 1), (Aspect::OnlyRight, Op::Mkdir, 1)]);
    }

    #[test]
    fn a_call_cut_off_may_be_missing_or_have_any_end() {
        let cut = Fact { end: End::Unknown, ..call(Op::Unlink, "a", 0) };
        assert_eq!(agreement(std::slice::from_ref(&cut), &[]).cut_off, 1);
        assert_eq!(counts(&[cut], &[call(Op::Unlink, "a", -1)]), []);
        assert_eq!(counts(&[call(Op::Unlink, "a", 0)], &[]), [(Aspect::OnlyLeft, Op::Unlink, 1)]);
    }

    #[test]
    fn a_call_begun_again_is_one() {
        let interrupted = Fact { errno: 4, ..call(Op::Read, "", -1) };
        let truth = Fact { end: End::Restarted, ..interrupted.clone() };
        let after = call(Op::Stat, "a", 0);
        let shown = [interrupted.clone(), interrupted.clone(), interrupted.clone(), after.clone()];
        assert_eq!(counts(&[truth.clone(), after.clone()], &shown), []);
        let done = Fact { ret: 5, errno: 0, ..truth };
        let shown = [interrupted.clone(), Fact { end: End::Returned, ..done.clone() }, interrupted, after.clone()];
        assert_eq!(counts(&[done, after], &shown), [(Aspect::OnlyRight, Op::Read, 1)]);
    }

    #[test]
    fn a_description_received_is_new_to_who_sees_paths() {
        let fact = |op, ofd, file| Fact { ofd: Some(ofd), file: Some(file), ..Fact::new(7, op) };
        let left = [fact(Op::Open, 1, 1), fact(Op::Close, 1, 1), fact(Op::Fstat, 2, 1), fact(Op::Close, 2, 1)];
        let right = [fact(Op::Open, 1, 1), fact(Op::Close, 1, 1), fact(Op::Fstat, 1, 1), fact(Op::Close, 1, 1)];
        let agreed = agreement(&left, &right);
        assert_eq!((agreed.total(), agreed.received), (0, 1));
        // Of another file, which both know, it is not.
        let other = [fact(Op::Open, 5, 5), fact(Op::Open, 1, 1), fact(Op::Fstat, 2, 5)];
        let right = [fact(Op::Open, 5, 5), fact(Op::Open, 1, 1), fact(Op::Fstat, 1, 1)];
        assert_eq!(counts(&other, &right), [(Aspect::File, Op::Fstat, 1)]);
        // Torture by both tracers, seed 5: neither had told of it before, and its name was gone while the file had
        // another.
        let unlink = |file| Fact { file: Some(file), ..Fact::new(7, Op::Unlink) };
        let arrived =
            agreement(&[unlink(1), fact(Op::Close, 9, 2), unlink(1)], &[unlink(1), fact(Op::Close, 8, 1), unlink(1)]);
        assert_eq!((arrived.total(), arrived.received), (0, 1));
        // Two opens are two descriptions.
        let opens = [fact(Op::Open, 1, 1), fact(Op::Open, 2, 1)];
        let one = [fact(Op::Open, 1, 1), fact(Op::Open, 1, 1)];
        assert_eq!(counts(&opens, &one), [(Aspect::Description, Op::Open, 1)]);
    }

    // Torture by both tracers, seed 5: a thread with a lower number closed what another had opened and sent, after a
    // third unlinked it.
    #[test]
    fn numbers_are_settled_by_time_not_by_thread() {
        let fact = |tid, at, op, ofd, file| Fact { at, ofd, file: Some(file), ..Fact::new(tid, op) };
        let told = |sent, gone| {
            [
                fact(1, 40, Op::Close, Some(sent), gone),
                fact(2, 30, Op::Unlink, None, 1),
                fact(3, 10, Op::Open, Some(1), 1),
                fact(3, 20, Op::Close, Some(1), 1),
            ]
        };
        let agreed = agreement(&told(9, 2), &told(1, 1));
        assert_eq!((agreed.total(), agreed.received), (0, 1));
    }

    // Torture in the kernel, seed 7, a million operations racing: two interrupted reads in a row.
    #[test]
    fn two_calls_begun_again_are_two() {
        let interrupted = Fact { errno: 4, ..call(Op::Read, "", -1) };
        let truth = Fact { end: End::Restarted, ..interrupted.clone() };
        let shown = vec![interrupted.clone(); 5];
        assert_eq!(counts(&[truth.clone(), truth.clone()], &shown), []);
        assert_eq!(counts(&[truth.clone(), truth.clone()], &shown[..2]), []);
        assert_eq!(counts(&[truth.clone(), truth], &shown[..1]), [(Aspect::OnlyLeft, Op::Read, 1)]);
    }

    // Torture by strace, seed 3, racing: two clones in a row, the first of which was begun again.
    #[test]
    fn a_call_begun_again_before_another_of_its_kind_is_one() {
        let interrupted = Fact { errno: 4, ..call(Op::Clone, "", -1) };
        let done = |ret| Fact { end: End::Restarted, ..call(Op::Clone, "", ret) };
        let shown = [interrupted, call(Op::Clone, "", 22_873), call(Op::Clone, "", 22_880)];
        assert_eq!(counts(&[done(22_873), done(22_880)], &shown), []);
    }

    proptest::proptest! {
        /// Calls of one kind, what each returned (`None`: interrupted), how often the kernel began it again, and
        /// whether the thread was killed in one more: no difference; and one for each end that is told otherwise, or
        /// not at all (but for what one cut off can stand for).
        #[test]
        fn calls_begun_again_in_a_row_agree_and_another_end_is_seen(
            calls in proptest::collection::vec((proptest::option::of(0..9_i64), 0..4_usize), 1..8),
            cut in proptest::option::of((0..4_usize, proptest::bool::ANY)),
        ) {
            let interrupted = Fact { errno: 4, ..call(Op::Read, "", -1) };
            let unknown = Fact { end: End::Unknown, ..call(Op::Read, "", 0) };
            let (mut truth, mut shown) = (Vec::new(), Vec::new());
            for (ret, again) in calls {
                let end = ret.map_or(interrupted.clone(), |ret| call(Op::Read, "", ret));
                shown.extend(std::iter::repeat_n(interrupted.clone(), again));
                shown.push(end.clone());
                truth.push(Fact { end: End::Restarted, ..end });
            }
            if let Some((again, seen)) = cut {
                truth.push(unknown.clone());
                shown.extend(std::iter::repeat_n(interrupted, again));
                shown.extend(seen.then_some(unknown));
            }
            proptest::prop_assert_eq!(counts(&truth, &shown), []);
            for (i, fact) in shown.iter().enumerate() {
                if fact.errno == 0 && fact.end == End::Returned {
                    let mut otherwise = shown.clone();
                    otherwise[i].ret += 10;
                    proptest::prop_assert_ne!(counts(&truth, &otherwise), []);
                    otherwise.remove(i);
                    let stands_for_it = cut.is_some_and(|(_, seen)| seen);
                    proptest::prop_assert!(stands_for_it || !counts(&truth, &otherwise).is_empty());
                }
            }
        }
    }

    // Torture, seed 2: a thread was killed in a read that the kernel had begun again.
    #[test]
    fn a_call_cut_off_may_have_been_begun_again_before() {
        let read = |errno, end| Fact { errno, end, ..call(Op::Read, "", -1) };
        let truth = [read(0, End::Unknown)];
        let interrupted = read(4, End::Returned);
        assert_eq!(counts(&truth, &[interrupted.clone(), interrupted.clone(), read(0, End::Unknown)]), []);
        assert_eq!(counts(&truth, &[interrupted.clone(), interrupted.clone()]), []);
        // What was killed does not go on.
        let shown = [interrupted, read(0, End::Returned)];
        assert_eq!(counts(&truth, &shown), [(Aspect::OnlyRight, Op::Read, 1)]);
    }

    #[test]
    fn paths_are_compared_as_given() {
        use crate::profile::Row;
        let mut paths = Paths::default();
        let event = Row {
            path: Some(paths.intern(b"/d/./a")),
            caller_dir: Some(paths.intern(b"/d")),
            ..Row::new(0, 0, Op::Unlink)
        };
        let fact = Fact::of_event(&event.into(), &paths).expect("a call");
        assert_eq!(fact.path.as_deref(), Some(&b"./a"[..]));
        let root = Row { caller_dir: Some(paths.intern(b"/")), ..event };
        assert_eq!(Fact::of_event(&root.into(), &paths).expect("a call").path.as_deref(), Some(&b"d/./a"[..]));
        let read = Row { path: event.path, ..Row::new(0, 0, Op::Read) };
        assert_eq!(Fact::of_event(&read.into(), &paths).expect("a call").path, None);
        let close = Row { flags: flag::IMPLIED, ..Row::new(0, 0, Op::Close) };
        assert_eq!(Fact::of_event(&close.into(), &paths), None);
    }
}
