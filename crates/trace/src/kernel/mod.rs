//! Importing what the recorder in the kernel writes (`crates/capture`).
//!
//! What lives here: the records' layout ([`wire`]), which system calls are recorded and how their arguments are laid
//! out ([`CALLS`]), and the [`Importer`] that turns records into calls of the [tracker](crate::track). What may not:
//! what calls mean, and the loading of programs into the kernel.
//!
//! A call's record is written when it returns, so records are in the order of returns, which is the order of effects.
//! The order of starts is found by looking ahead: a record is taken in when [`AHEAD`] later ones have been read, and
//! all calls known by then take their places in the order of their starts. Calls that sleep have a record of their
//! start, so only a call that keeps a processor busy for longer than [`AHEAD`] calls of others can come late (counted).

mod calls;
mod decode;
mod files;
mod order;
mod turns;
pub mod wire;

pub use crate::syscalls::{CALLS, How};
pub use calls::{CWD_ARG, FIRST_UNKNOWN, NO_ARG, SPEC_BYTES, SPECS, Spec, spec_flag, specs};

use crate::Batch;
use crate::analysis::Decode;
use crate::profile::{Gap, Meta, Tracer as MetaTracer};
use crate::strace::{ImportError, ImportOptions, Imported, Problem, Sink, Summary};
use crate::track::{Call, CloneFlags, Closing, Fd, Outcome, Place, Spent, TrackOptions, Tracker};
use calls::Table;
use decode::{Look, Parts, decode};
use files::Files;
use order::Order;
use rustc_hash::FxHashMap;
use turns::Turns;
use wire::{Kind, Record, call_flag, fault_flag, feature, fork_flag, request_flag};

/// Records read ahead of the one that is taken in.
pub const AHEAD: usize = 4096;

/// What calls by the 32-bit entry are called, with their number: their arguments are not looked at.
pub(crate) const COMPAT_CALL: &str = "32-bit call";

/// Why a record was not understood.
type Reason = &'static str;

/// Streams records into batches of events. Feed it whole records, then [`finish`](Importer::finish).
#[derive(Debug)]
pub struct Importer {
    options: ImportOptions,
    table: Table,
    tracker: Tracker,
    files: Files,
    order: Order,
    summary: Summary,
    /// Records read and not yet taken in, from `taken` on.
    ahead: Vec<u8>,
    taken: usize,
    ahead_count: usize,
    /// Calls that have begun and wait.
    running: FxHashMap<u32, Running>,
    /// Paths of images by thread, until their execve returns.
    images: FxHashMap<u32, Vec<u8>>,
    /// Root directories that were told, by thread, until its next call: by ids.
    roots: FxHashMap<u32, u64>,
    /// They are told when a call returns, not when it begins.
    roots_late: bool,
    turns: Turns,
    clock: Option<wire::Start>,
    first_tid: Option<u32>,
    first_ns: Option<u64>,
    last_ns: u64,
    record_number: u64,
}

/// A call that has begun.
#[derive(Debug)]
struct Running {
    flags: u16,
    body: Vec<u8>,
    start_ns: u64,
    closing: Option<Closing>,
}

/// What is true of every recording of the kernel's recorder.
fn says() -> Meta {
    Meta {
        tracer: MetaTracer { name: "ebpf".into(), version: String::new(), options: Vec::new() },
        clock: "CLOCK_MONOTONIC in the kernel, nanoseconds".into(),
        ..Meta::default()
    }
}

impl Importer {
    /// An importer at the start of a recording.
    pub fn new(options: ImportOptions) -> Importer {
        let tracker = Tracker::new(TrackOptions { keep_removed: options.keep_removed, cwd: options.cwd.clone() });
        Importer {
            options,
            table: Table::new(),
            tracker,
            files: Files::default(),
            order: Order::default(),
            summary: Summary::default(),
            ahead: Vec::new(),
            taken: 0,
            ahead_count: 0,
            running: FxHashMap::default(),
            images: FxHashMap::default(),
            roots: FxHashMap::default(),
            roots_late: false,
            turns: Turns::default(),
            clock: None,
            first_tid: None,
            first_ns: None,
            last_ns: 0,
            record_number: 0,
        }
    }

    /// Takes in the next whole records.
    ///
    /// # Errors
    /// The sink fails. What is no record is counted, and the rest of the chunk left out.
    pub fn bytes(&mut self, chunk: &[u8], sink: &mut Sink<'_>) -> Result<(), ImportError> {
        self.summary.bytes += chunk.len() as u64;
        let mut rest = chunk;
        loop {
            let before = rest;
            match wire::next(&mut rest) {
                Ok(None) => return Ok(()),
                Ok(Some(record)) => {
                    self.read(record, &before[..before.len() - rest.len()]);
                    while self.ahead_count > AHEAD {
                        self.take_one(sink)?;
                    }
                }
                Err(reason) => {
                    self.record_number += 1;
                    self.problem(before, reason);
                    return Ok(());
                }
            }
        }
    }

    /// A record is read: the starts of calls take part in the order from here on.
    fn read(&mut self, record: Record<'_>, whole: &[u8]) {
        let body = &mut &record.body[..];
        match record.kind {
            Some(kind @ (Kind::Call | Kind::Enter)) => {
                if let Some((tid, start_ns)) = wire::Call::peek(body) {
                    self.order.saw(tid, start_ns, kind == Kind::Enter);
                }
            }
            Some(Kind::Exec) => {
                if let Some(exec) = wire::Exec::read(body).filter(|exec| exec.tid != exec.old_tid) {
                    self.order.saw_renumbered(exec.old_tid, exec.tid);
                }
            }
            Some(Kind::Fault) => {
                if let Some(fault) = wire::Fault::read(body) {
                    self.order.saw_beside(fault.tid, fault.start_ns);
                }
            }
            Some(Kind::Request) => {
                if let Some(request) = wire::Request::read(body) {
                    self.order.saw_beside(request.tid, request.start_ns);
                }
            }
            _ => {}
        }
        if self.taken > 0 && self.taken * 2 >= self.ahead.len() {
            self.ahead.drain(..self.taken);
            self.taken = 0;
        }
        self.ahead.extend_from_slice(whole);
        self.ahead_count += 1;
    }

    fn take_one(&mut self, sink: &mut Sink<'_>) -> Result<(), ImportError> {
        let ahead = std::mem::take(&mut self.ahead);
        let mut rest = ahead.get(self.taken..).unwrap_or_default();
        let before = rest;
        let record = wire::next(&mut rest).ok().flatten().expect("what was read once is a record");
        self.taken += before.len() - rest.len();
        self.ahead_count -= 1;
        self.record_number += 1;
        self.summary.lines += 1;
        if let Err(reason) = self.take(record) {
            self.problem(record.body, reason);
        }
        self.ahead = ahead;
        if self.tracker.is_full() || self.turns.are_many() {
            sink(Batch { schedule: self.turns.take(), ..self.tracker.take() })?;
        }
        Ok(())
    }

    /// Hands over what is left and ends.
    ///
    /// # Errors
    /// The sink fails, or nothing was recorded.
    pub fn finish(mut self, sink: &mut Sink<'_>) -> Result<Imported, ImportError> {
        while self.ahead_count > 0 {
            self.take_one(sink)?;
        }
        if self.summary.lines == 0 {
            return Err(ImportError::Empty { name: self.options.name.clone() });
        }
        let mut unfinished: Vec<(u32, Running)> = self.running.drain().collect();
        unfinished.sort_unstable_by_key(|(_, running)| running.start_ns);
        for (tid, running) in unfinished {
            self.abandon(tid, running);
        }
        for place in self.order.left() {
            // Its record did not come: nothing may wait for it.
            self.tracker.skip_place(place);
        }
        self.turns.finish();
        loop {
            let batch = Batch { schedule: self.turns.take(), ..self.tracker.take() };
            if batch.events.is_empty() && batch.schedule.is_empty() {
                break;
            }
            sink(batch)?;
        }
        let (events, late) = self.tracker.counts();
        self.summary.events = events;
        self.summary.late_events = late + self.order.late();
        self.summary.started_unix_ns = self.first_ns.and_then(|first| self.unix_ns(first));
        self.summary.wall_ns = self.first_ns.map_or(0, |first| self.last_ns.saturating_sub(first));
        self.summary.idle_ns = self.summary.wall_ns.saturating_sub(self.tracker.busy_ns());
        self.summary.coverage = self.tracker.coverage().clone();
        Ok(Imported::new(self.summary, self.tracker, says()))
    }

    fn unix_ns(&self, at_ns: u64) -> Option<u64> {
        let clock = self.clock?;
        clock.realtime_ns.checked_add(at_ns)?.checked_sub(clock.monotonic_ns)
    }

    fn problem(&mut self, bytes: &[u8], reason: Reason) {
        self.summary.unparsed_lines += 1;
        if self.summary.problems.len() < self.options.problems_listed {
            let excerpt: String = bytes.iter().take(40).map(|b| format!("{b:02x}")).collect();
            self.summary.problems.push(Problem { line: self.record_number, reason: reason.to_owned(), excerpt });
        }
    }

    fn since_start(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.first_ns.unwrap_or(at_ns))
    }

    fn at(&mut self, at_ns: u64) -> u64 {
        self.last_ns = self.last_ns.max(at_ns);
        self.since_start(at_ns)
    }

    fn take(&mut self, record: Record<'_>) -> Result<(), Reason> {
        const SHORT: Reason = "a record shorter than its kind";
        let mut rest = record.body;
        let rest = &mut rest;
        match record.kind.ok_or("a record of an unknown kind")? {
            Kind::Start => {
                let start = wire::Start::read(rest).ok_or(SHORT)?;
                if !(wire::VERSION_READ..=wire::VERSION).contains(&start.version) {
                    return Err("records of another version of fsage's recorder");
                }
                let has = |feature: u16| start.features & u32::from(feature) != 0;
                self.tracker.sees_beyond_calls(has(feature::FAULTS), has(feature::REQUESTS));
                self.roots_late = has(feature::ONE_MOUNT);
                self.turns.are_told(has(feature::TURNS));
                self.clock.get_or_insert(start);
            }
            Kind::File => {
                let file = wire::File::read(rest).ok_or(SHORT)?;
                self.files.tell(record.flags, &file, rest).ok_or("a file whose names are damaged")?;
            }
            Kind::Call => return self.returned(record),
            Kind::Enter => return self.entered(record),
            Kind::Fork => {
                let fork = wire::Fork::read(rest).ok_or(SHORT)?;
                let at_ns = self.at(fork.at_ns);
                self.turns.began(fork.child_tid, fork.parent_tid, at_ns);
                self.forked(record.flags, &fork);
            }
            Kind::Exec => {
                let exec = wire::Exec::read(rest).ok_or(SHORT)?;
                let at_ns = self.at(exec.at_ns);
                if exec.tid != exec.old_tid {
                    self.turns.renumbered(exec.old_tid, exec.tid, at_ns);
                    self.tracker.superseded(exec.tid, exec.old_tid);
                    if let Some(running) = self.running.remove(&exec.old_tid) {
                        self.running.insert(exec.tid, running);
                    }
                    self.order.renumber(exec.old_tid, exec.tid, exec.at_ns);
                    if let Some(root) = self.roots.remove(&exec.old_tid) {
                        self.roots.insert(exec.tid, root);
                    }
                }
                if let Some(path) = wire::string(rest) {
                    self.images.insert(exec.tid, path.to_vec());
                }
            }
            Kind::Exit => {
                let exit = wire::Exit::read(rest).ok_or(SHORT)?;
                self.exited(&exit);
            }
            Kind::Lost => {
                let lost = wire::Lost::read(rest).ok_or(SHORT)?;
                let at_ns = self.at(lost.at_ns);
                self.summary.lost_events = self.summary.lost_events.saturating_add(lost.records);
                if self.summary.gaps.len() < crate::profile::GAPS_MAX {
                    self.summary.gaps.push(Gap { at_ns, events: lost.records });
                }
            }
            Kind::Fault => {
                let fault = wire::Fault::read(rest).ok_or(SHORT)?;
                self.fault(record.flags, &fault);
            }
            Kind::Request => {
                let request = wire::Request::read(rest).ok_or(SHORT)?;
                self.request(record.flags, &request);
            }
            Kind::Turn => {
                let turn = wire::Turn::read(rest).ok_or(SHORT)?;
                // What was before the first call is before the trace.
                let since = |at_ns| self.since_start(at_ns);
                let (off_ns, woke_ns, on_ns) = (since(turn.off_ns), since(turn.woke_ns), since(turn.on_ns));
                let turn = wire::Turn { off_ns, woke_ns, on_ns, ..turn };
                self.turns.turn(record.flags, &turn).ok_or("a turn whose times contradict each other")?;
            }
            Kind::Own => {
                let own = wire::Own::read(rest).ok_or(SHORT)?;
                self.turns.recorder(own.tid, self.since_start(own.at_ns), own.own_ns);
            }
            Kind::Root => {
                let root = wire::Root::read(rest).ok_or(SHORT)?;
                self.roots.insert(root.tid, root.id);
            }
        }
        Ok(())
    }

    fn know(&mut self, tid: u32, pid: u32) {
        if self.tracker.knows(tid) {
            return;
        }
        if tid == pid {
            self.tracker.know(tid);
        } else {
            // A thread of a process that ran before the recording, or whose beginning was lost.
            self.tracker.know(pid);
            self.tracker.spawn(pid, tid, CloneFlags { files: true, fs: true, thread: true, own_mounts: false });
        }
    }

    fn forked(&mut self, flags: u16, fork: &wire::Fork) {
        // Whoever had the number is gone: its end was lost, or something was told of it afterwards.
        if let Some(running) = self.running.remove(&fork.child_tid) {
            self.abandon(fork.child_tid, running);
        }
        self.images.remove(&fork.child_tid);
        self.roots.remove(&fork.child_tid);
        self.tracker.exited(fork.child_tid);
        let has = |flag| flags & flag != 0;
        let same = has(fork_flag::SAME_PROCESS);
        let shared = CloneFlags {
            files: has(fork_flag::SHARES_FILES),
            fs: has(fork_flag::SHARES_FS),
            own_mounts: has(fork_flag::OWN_MOUNTS),
            thread: same,
        };
        self.tracker.spawn(fork.parent_tid, fork.child_tid, shared);
    }

    fn exited(&mut self, exit: &wire::Exit) {
        if let Some(running) = self.running.remove(&exit.tid) {
            self.abandon(exit.tid, running);
        }
        let at_ns = self.at(exit.at_ns);
        let signal = i64::from(exit.code & 0x7f);
        let status = if signal == 0 { i64::from(exit.code >> 8 & 0xff) } else { 128 + signal };
        self.summary.exits += 1;
        if self.first_tid == Some(exit.tid) {
            self.summary.first_status = Some(status);
        }
        self.images.remove(&exit.tid);
        self.roots.remove(&exit.tid);
        self.know(exit.tid, exit.pid);
        self.turns.exits(exit.tid, at_ns);
        self.tracker.exit(exit.tid, at_ns, status);
    }

    /// All calls that started before `end_ns` take their places.
    fn start_until(&mut self, end_ns: u64) {
        while let Some((tid, start_ns)) = self.order.next_start(end_ns) {
            self.first_ns.get_or_insert(start_ns);
            let place = self.tracker.start();
            if let Some(other) = self.order.give(tid, start_ns, place) {
                self.tracker.skip_place(other);
            }
        }
    }

    fn entered(&mut self, record: Record<'_>) -> Result<(), Reason> {
        let parts = Parts::read(record.flags, record.body).ok_or("a call cut short")?;
        let (tid, start_ns) = (parts.call.tid, parts.call.start_ns);
        self.start_until(start_ns.saturating_add(1));
        self.know(tid, parts.call.pid);
        if let Some(old) = self.running.remove(&tid) {
            // Its return was lost.
            self.abandon(tid, old);
        }
        let mut running = Running { flags: record.flags, body: record.body.to_vec(), start_ns, closing: None };
        if let Some((_, How::Close)) = self.table.get(parts.call.nr) {
            let look = Look { files: &self.files };
            if let Some(Call::Close { fd }) = decode(How::Close, &parts, &look) {
                running.closing = Some(self.tracker.begin_close(tid, self.since_start(start_ns), &fd));
            }
        }
        self.running.insert(tid, running);
        Ok(())
    }

    fn returned(&mut self, record: Record<'_>) -> Result<(), Reason> {
        let parts = Parts::read(record.flags, record.body).ok_or("a call cut short")?;
        let call = &parts.call;
        let end_ns = call.start_ns.saturating_add(call.dur_ns);
        self.start_until(end_ns.max(call.start_ns.saturating_add(1)));
        self.last_ns = self.last_ns.max(end_ns);
        let mut closing = None;
        if let Some(running) = self.running.remove(&call.tid) {
            if running.start_ns == call.start_ns {
                closing = running.closing;
            } else {
                self.abandon(call.tid, running);
            }
        }
        self.know(call.tid, call.pid);
        self.first_tid.get_or_insert(call.tid);
        let place = self.order.take(call.tid, call.start_ns);
        self.call(&parts, place, closing);
        Ok(())
    }

    /// The place of what is no call, and when it ended.
    fn beside(&mut self, pid: u32, tid: u32, start_ns: u64, dur_ns: u64) -> Option<Place> {
        let end_ns = start_ns.saturating_add(dur_ns);
        self.start_until(end_ns.max(start_ns.saturating_add(1)));
        self.last_ns = self.last_ns.max(end_ns);
        self.know(pid, pid);
        self.order.take(tid, start_ns)
    }

    fn fault(&mut self, flags: u16, fault: &wire::Fault) {
        let place = self.beside(fault.pid, fault.tid, fault.start_ns, fault.dur_ns);
        self.know(fault.tid, fault.pid);
        let access = Call::Access {
            write: flags & fault_flag::WRITE != 0,
            file: self.files.seen(fault.id),
            offset: fault.offset,
        };
        let ret = i64::try_from(fault.bytes).unwrap_or(i64::MAX);
        let out = Outcome { ret, errno: 0, dur_ns: fault.dur_ns, seen: None, unfinished: false };
        let blocked_ns = fault.blocked_ns.min(fault.dur_ns);
        let spent = Spent { running_ns: fault.dur_ns - blocked_ns, blocked_ns };
        let at_ns = self.since_start(fault.start_ns);
        self.summary.calls += 1;
        self.tracker.spent(spent).call(fault.tid, at_ns, place, b"", &access, &out);
    }

    fn request(&mut self, flags: u16, request: &wire::Request) {
        let place = self.beside(request.pid, request.tid, request.start_ns, request.dur_ns);
        // A ring's own thread in the kernel is none of the process's.
        let tid = if self.tracker.knows(request.tid) { request.tid } else { request.pid };
        let errno = u16::try_from(-i64::from(request.res)).unwrap_or(0);
        let ret = if errno == 0 { i64::from(request.res) } else { -1 };
        let out = Outcome { ret, errno, dur_ns: request.dur_ns, seen: None, unfinished: false };
        let call = decode::request(request, flags, self.files.seen(request.id));
        let opcode = usize::try_from(request.opcode).unwrap_or(usize::MAX);
        let mut name = match calls::REQUESTS.get(opcode) {
            Some(name) => format!("io_uring {name}"),
            None => format!("io_uring request {opcode}"),
        };
        if flags & request_flag::SILENT != 0 {
            name.push_str(" without completion");
        }
        let at_ns = self.since_start(request.start_ns);
        self.summary.calls += 1;
        self.tracker.call(tid, at_ns, place, name.as_bytes(), &call, &out);
    }

    /// A call that began and will not return: its thread ended, or the recording.
    fn abandon(&mut self, tid: u32, running: Running) {
        let place = self.order.take(tid, running.start_ns);
        if let Some(parts) = Parts::read(running.flags | call_flag::UNFINISHED, &running.body) {
            let parts = Parts { call: wire::Call { tid, ..parts.call }, ..parts };
            self.call(&parts, place, running.closing);
        }
    }

    fn call(&mut self, parts: &Parts<'_>, place: Option<Place>, closing: Option<Closing>) {
        let call = &parts.call;
        let compat = parts.flags & call_flag::COMPAT != 0;
        let known = self.table.get(call.nr).filter(|_| !compat);
        let image = match known {
            Some((_, How::Exec | How::ExecAt)) => self.images.remove(&call.tid),
            _ => None,
        };
        let mut parts = *parts;
        if let (Some(path), None, Some((_, How::Exec))) = (&image, parts.strings[0], known) {
            // The path could not be read from the memory of the program that is gone.
            parts.strings[0] = Some(path);
        }
        let root = self.roots.remove(&call.tid).and_then(|id| self.files.seen(id));
        let root_after = self.roots_late && matches!(known, Some((_, How::Chroot)));
        if !root_after {
            self.tracker.saw_root(call.tid, root);
        }
        let look = Look { files: &self.files };
        let unfinished = parts.flags & call_flag::UNFINISHED != 0;
        let errno = match call.ret {
            -4095..=-1 if !unfinished => decode::errno(call.ret),
            _ => 0,
        };
        let out = Outcome {
            ret: if errno != 0 || unfinished { -1 } else { call.ret },
            errno,
            dur_ns: call.dur_ns,
            seen: look.seen(parts.facts[2]),
            unfinished,
        };
        let spent = Spent {
            running_ns: call.dur_ns.saturating_sub(call.off_cpu_ns),
            blocked_ns: call.blocked_ns.min(call.off_cpu_ns),
        };
        let at_ns = self.since_start(call.start_ns);
        if let Some(closing) = closing {
            self.summary.calls += 1;
            self.tracker.end_timed_close(closing, place, &out, spent);
            return;
        }
        let unnamed: String;
        let (name, asked) = match known {
            Some((name, how)) => (name, decode(how, &parts, &look)),
            None => {
                unnamed = if compat { format!("{COMPAT_CALL} {}", call.nr) } else { format!("call {}", call.nr) };
                (&*unnamed, Some(Call::Other { fd: None, at: None }))
            }
        };
        let Some(asked) = asked else {
            self.summary.other_lines += 1;
            if let Some(place) = place {
                self.tracker.skip_place(place);
            }
            return;
        };
        if let (Some(fd), Some(fact)) = (moved_on(&asked), parts.facts[0])
            && let Some(append) = self.files.regular_appends(fact.id)
        {
            self.tracker.saw_description(call.tid, fd, fact.pos, fact.size, append);
        }
        self.summary.calls += 1;
        self.tracker.spent(spent).call(call.tid, at_ns, place, name.as_bytes(), &asked, &out);
        if root_after {
            self.tracker.saw_root(call.tid, root);
        }
    }
}

/// The descriptor whose offset or length a call is about, if it is of the record's first fact.
fn moved_on<'c, 'a>(call: &'c Call<'a>) -> Option<&'c Fd<'a>> {
    match call {
        Call::Transfer { fd, .. } | Call::Seek { fd, .. } | Call::Ftruncate { fd, .. } | Call::Fallocate { fd, .. } => {
            Some(fd)
        }
        Call::Copy { from, reflink: false, .. } => Some(from),
        _ => None,
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
