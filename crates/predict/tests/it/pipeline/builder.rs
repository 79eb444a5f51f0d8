//! Tiny traces by hand, and a system whose every entry is another prime.

use predict::pipeline::{InMemory, PredictOptions, SystemPrediction, predict};
use std::collections::BTreeMap;
use system::vector::{Class, entry_name};
use system::{Entry, SystemProfile};
use trace::profile::Row;
use trace::{Batch, Event, OfdId, Op, PathId, Paths, Snapshot, SnapshotEntry, flag};

/// A workload under construction. Calls take 1 us each in the trace.
#[derive(Clone, Default)]
pub struct Trace {
    entries: Vec<SnapshotEntry>,
    calls: Vec<Row>,
    paths: Paths,
    cwd: Option<PathId>,
    next_ofd: u64,
}

impl Trace {
    pub fn new() -> Trace {
        Trace::default()
    }

    /// A name that is there at the start: `/d/` a directory, `/d/f` a file of a size.
    pub fn has(mut self, path: &str, size_bytes: u64) -> Trace {
        let kind = if path.ends_with('/') { posix::FileKind::Directory } else { posix::FileKind::File };
        let mut entry = SnapshotEntry::implied(path.trim_end_matches('/').into(), kind);
        entry.size_bytes = size_bytes;
        self.entries.push(entry);
        self
    }

    pub fn has_link(mut self, path: &str, target: &str) -> Trace {
        let mut entry = SnapshotEntry::implied(path.into(), posix::FileKind::Symlink);
        entry.target = Some(target.into());
        self.entries.push(entry);
        self
    }

    /// Two names of one file.
    pub fn has_hard_links(mut self, paths: [&str; 2], size_bytes: u64) -> Trace {
        for path in paths {
            let mut entry = SnapshotEntry::implied(path.into(), posix::FileKind::File);
            (entry.size_bytes, entry.nlink, entry.ino, entry.dev) = (size_bytes, 2, 77, 1);
            self.entries.push(entry);
        }
        self
    }

    /// Later relative paths start here.
    pub fn in_directory(&mut self, path: &str) {
        self.cwd = Some(self.paths.intern(path.as_bytes()));
    }

    /// A call without anything but its operation; the result can be changed.
    pub fn call(&mut self, op: Op) -> &mut Row {
        let seq = self.calls.len() as u64;
        self.calls.push(Row { dur_ns: 1000, ..Row::new(seq, seq * 2000, op) });
        self.calls.last_mut().expect("just pushed")
    }

    fn path(&mut self, path: &str) -> (PathId, Option<PathId>) {
        if path.starts_with('/') {
            return (self.paths.intern(path.as_bytes()), None);
        }
        let cwd = self.cwd.expect("a relative path needs a directory");
        let mut whole = self.paths.get(cwd).to_vec();
        whole.push(b'/');
        whole.extend_from_slice(path.as_bytes());
        (self.paths.intern(&whole), Some(cwd))
    }

    pub fn on(&mut self, op: Op, path: &str) -> &mut Row {
        let (path, caller) = self.path(path);
        let event = self.call(op);
        (event.path, event.caller_dir) = (Some(path), caller);
        event
    }

    pub fn on_two(&mut self, op: Op, from: &str, to: &str) -> &mut Row {
        let (path2, caller2) = self.path(to);
        let event = self.on(op, from);
        (event.path2, event.caller_dir2) = (Some(path2), caller2);
        event
    }

    pub fn fails(&mut self, op: Op, path: &str, errno: posix::Errno) -> &mut Row {
        let event = self.on(op, path);
        (event.errno, event.ret) = (errno.0, -1);
        event
    }

    pub fn open(&mut self, path: &str, flags: u32) -> OfdId {
        self.next_ofd += 1;
        let ofd = OfdId(self.next_ofd);
        let event = self.on(Op::Open, path);
        (event.flags, event.ret, event.ofd) = (flags, 3, Some(ofd));
        ofd
    }

    pub fn create(&mut self, path: &str) -> OfdId {
        self.open(path, flag::WRITE | flag::CREATE)
    }

    pub fn fd(&mut self, op: Op, ofd: OfdId) -> &mut Row {
        let event = self.call(op);
        event.ofd = Some(ofd);
        event
    }

    pub fn close(&mut self, ofd: OfdId) {
        self.fd(Op::Close, ofd).flags = flag::LAST;
    }

    pub fn read(&mut self, ofd: OfdId, offset: u64, len: u64) {
        let event = self.fd(Op::Read, ofd);
        (event.offset, event.req_bytes, event.ret) = (Some(offset), Some(len), len as i64);
    }

    pub fn write(&mut self, ofd: OfdId, offset: u64, len: u64) {
        let event = self.fd(Op::Write, ofd);
        (event.offset, event.req_bytes, event.ret) = (Some(offset), Some(len), len as i64);
    }

    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// The workload of the first `calls` calls.
    pub fn workload(&self, calls: usize) -> InMemory {
        let events = self.calls.iter().take(calls).map(Event::from).collect();
        let batch = Batch { events, paths: self.paths.clone(), ..Batch::default() };
        InMemory { snapshot: Snapshot::from_entries(self.entries.clone()), batches: vec![batch] }
    }

    pub fn predict_with(&self, system: &SystemProfile, options: &PredictOptions) -> SystemPrediction {
        let workload = self.workload(self.calls());
        predict(&workload, std::slice::from_ref(system), options).expect("a prediction").systems.remove(0)
    }

    pub fn predict(&self) -> SystemPrediction {
        self.predict_with(&primes(), &PredictOptions::default())
    }

    /// The request vector of each call: entries and how often, in the vector of the trace up to it less that before.
    pub fn vectors(&self, system: &SystemProfile, options: &PredictOptions) -> Vec<String> {
        let mut before: BTreeMap<String, f64> = BTreeMap::new();
        let mut vectors = Vec::new();
        for calls in 1..=self.calls() {
            let workload = self.workload(calls);
            let prediction = predict(&workload, std::slice::from_ref(system), options).expect("a prediction");
            let now: BTreeMap<String, f64> =
                prediction.systems[0].by_entry.iter().map(|e| (e.entry.clone(), e.weight)).collect();
            let mut parts = Vec::new();
            let names: std::collections::BTreeSet<&String> = now.keys().chain(before.keys()).collect();
            for name in names {
                let weight = now.get(name).unwrap_or(&0.0) - before.get(name).unwrap_or(&0.0);
                if weight.abs() > 1e-9 {
                    let rounded = (weight * 1e6).round() / 1e6;
                    parts.push(if rounded == 1.0 { name.clone() } else { format!("{rounded}*{name}") });
                }
            }
            vectors.push(parts.join(" "));
            before = now;
        }
        vectors
    }
}

/// The request vectors of a trace on a cold system of primes.
pub fn cold(trace: &Trace) -> Vec<String> {
    trace.vectors(&primes(), &PredictOptions::default())
}

/// A system with all entries at their default points, each another prime number of nanoseconds; unbounded caches.
pub fn primes() -> SystemProfile {
    let mut candidates = (2u64..).filter(|n| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    let mut system = SystemProfile { name: "primes".into(), ..SystemProfile::default() };
    // Without prices by the distance of inodes and for directories of few names, which have tests of their own,
    // `lus_nc` and `lur_nc` stand for all; a device that has rested is as fast, and so is the first sync.
    let apart = [Class::LookupNearMiss, Class::LookupFewMiss, Class::SyncIdle, Class::SyncFirst];
    for &class in Class::ALL.iter().filter(|class| !apart.contains(class)) {
        let points = if class.is_curve() { class.points() } else { &[0] };
        for &at in points {
            let prime = candidates.next().expect("there is always another prime");
            system.entries.insert(entry_name(class, at), Entry::exactly(prime as f64));
        }
    }
    system
}
