//! A seeded trace with a mix like that of a compile: many lookups that fail, header files opened again and again, small
//! reads, objects written under a temporary name and renamed.

use columnar::FileError;
use posix::{Errno, FileKind};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::Path;
use trace::profile::{Meta, Row, Writer, WriterOptions};
use trace::{Batch, Event, OfdId, Op, PathId, Paths, Snapshot, SnapshotEntry, flag};

const BATCH: usize = 1 << 16;
const DIRECTORIES: u64 = 400;
const HEADERS: u64 = 20;
const SOURCES: u64 = 25;

struct Generator {
    rng: Xoshiro256PlusPlus,
    calls: Vec<Row>,
    paths: Paths,
    seq: u64,
    t_ns: u64,
    ofd: u64,
    writer: Writer,
}

/// Writes a workload profile of about `calls` calls.
///
/// # Errors
/// The disk.
pub fn compile_like(directory: &Path, calls: u64, seed: u64) -> Result<(), FileError> {
    let mut g = Generator {
        rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        calls: Vec::new(),
        paths: Paths::default(),
        seq: 0,
        t_ns: 0,
        ofd: 0,
        writer: Writer::create(directory, WriterOptions::default())?,
    };
    while g.seq < calls {
        g.compile_one()?;
    }
    g.flush()?;
    let Generator { writer, .. } = g;
    writer.finish(Meta { coverage_share: Some(1.0), ..Meta::default() }, &snapshot()).map(|_| ())
}

fn snapshot() -> Snapshot {
    let mut entries = Vec::new();
    let mut add = |path: String, kind, size_bytes| {
        let mut entry = SnapshotEntry::implied(path.into_bytes(), kind);
        entry.size_bytes = size_bytes;
        entries.push(entry);
    };
    for path in ["/home", "/home/user", "/home/user/project", "/home/user/project/src", "/home/user/project/out"] {
        add(path.into(), FileKind::Directory, 4096);
    }
    for d in 0..DIRECTORIES {
        add(directory(d), FileKind::Directory, 4096);
        (0..HEADERS).for_each(|f| add(format!("{}/header{f}.h", directory(d)), FileKind::File, size_of(d, f)));
        (0..SOURCES).for_each(|f| add(format!("{}/source{f}.c", directory(d)), FileKind::File, size_of(d, f + 100)));
    }
    Snapshot::from_entries(entries)
}

fn directory(d: u64) -> String {
    format!("/home/user/project/src/module{d}")
}

fn size_of(d: u64, f: u64) -> u64 {
    500 + (d * 7919 + f * 104_729) % 40_000
}

impl Generator {
    fn pick(&mut self, n: u64) -> u64 {
        stats::random::below(&mut self.rng, n)
    }

    fn flush(&mut self) -> Result<(), FileError> {
        let events = self.calls.drain(..).map(Event::from).collect();
        let paths = std::mem::take(&mut self.paths);
        self.writer.push(&Batch { events, paths, ..Batch::default() })
    }

    fn path(&mut self, path: &str) -> Option<PathId> {
        Some(self.paths.intern(path.as_bytes()))
    }

    fn event(&mut self, op: Op) -> &mut Row {
        let (seq, t_ns) = (self.seq, self.t_ns);
        self.seq += 1;
        self.t_ns += 2_000;
        self.calls.push(Row { dur_ns: 1_000, ..Row::new(seq, t_ns, op) });
        let last = self.calls.len() - 1;
        &mut self.calls[last]
    }

    fn on_path(&mut self, op: Op, path: &str) -> &mut Row {
        let path = self.path(path);
        let event = self.event(op);
        event.path = path;
        event
    }

    fn missing(&mut self, op: Op, path: &str) {
        let event = self.on_path(op, path);
        (event.errno, event.ret) = (Errno::ENOENT.0, -1);
    }

    fn open(&mut self, path: &str, flags: u32) -> (OfdId, Option<PathId>) {
        self.ofd += 1;
        let ofd = OfdId(self.ofd);
        let event = self.on_path(Op::Open, path);
        (event.flags, event.ret, event.ofd) = (flags, 3, Some(ofd));
        (ofd, event.path)
    }

    fn on(&mut self, op: Op, file: (OfdId, Option<PathId>), offset: u64, bytes: u64) {
        let event = self.event(op);
        (event.ofd, event.path) = (Some(file.0), file.1);
        if matches!(op, Op::Read | Op::Write) {
            (event.offset, event.req_bytes, event.ret) = (Some(offset), Some(bytes), bytes as i64);
        }
        if op == Op::Close {
            event.flags = flag::LAST;
        }
    }

    fn read_whole(&mut self, path: &str, bytes: u64) {
        let file = self.open(path, flag::READ);
        self.on(Op::Fstat, file, 0, 0);
        self.on(Op::Read, file, 0, bytes);
        self.on(Op::Read, file, bytes, 0);
        self.on(Op::Close, file, 0, 0);
    }

    fn compile_one(&mut self) -> Result<(), FileError> {
        if self.calls.len() > BATCH - 1024 {
            self.flush()?;
        }
        let (d, f) = (self.pick(DIRECTORIES), self.pick(SOURCES));
        let source = format!("{}/source{f}.c", directory(d));
        self.on_path(Op::Stat, &source);
        self.read_whole(&source, size_of(d, f + 100));
        for _ in 0..30 {
            // A header is looked for in a few directories and found in one; near ones are popular.
            let near = self.pick(8);
            let home = (d + near * near) % DIRECTORIES;
            let h = self.pick(HEADERS);
            for miss in 1..=self.pick(4) {
                let wrong = directory((home + miss) % DIRECTORIES);
                self.missing(Op::Open, &format!("{wrong}/only-{home}-{h}.h"));
            }
            let header = format!("{}/header{h}.h", directory(home));
            if self.pick(3) == 0 {
                self.on_path(Op::Stat, &header);
            } else {
                self.read_whole(&header, size_of(home, h));
            }
        }
        let object = format!("/home/user/project/out/m{d}-{f}.o");
        let temporary = format!("/home/user/project/out/tmp{}.s", self.seq);
        let file = self.open(&temporary, flag::WRITE | flag::CREATE | flag::EXCL);
        for i in 0..6 {
            self.on(Op::Write, file, i * 4096, 4096);
        }
        self.on(Op::Close, file, 0, 0);
        if self.pick(2) == 0 {
            let to = self.path(&object);
            let event = self.on_path(Op::Rename, &temporary);
            event.path2 = to;
        } else {
            self.on_path(Op::Unlink, &temporary);
        }
        Ok(())
    }
}
