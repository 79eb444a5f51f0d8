//! The same calls on the laboratory and on the real kernel: same answers, same error numbers, same contents.

use crate::common;
use crate::common::{MB, free_machine, lab_with, volume};
use device::fixed::FixedDevice;
use kernel::payload::Image;
use kernel::testing::Metadata;
use posix::{
    AccessMode, At, Call, Errno, Fallocate, Fd, FileKind, FileSystem, Mode, Mounted, OpenFlags, Reply, SetTime, Whence,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::{Path, PathBuf};

struct Random(Xoshiro256PlusPlus);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }
    fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }

    fn path(&mut self) -> PathBuf {
        let mut path = String::new();
        if self.chance(20) {
            path.push('/');
        }
        for n in 0..=self.below(3) {
            if n > 0 {
                path.push_str(if self.chance(20) { "//" } else { "/" });
            }
            let long = "n".repeat(if self.chance(2) { 255 } else { 256 });
            let common = ["a", "b", "c", "d"];
            let rare = ["a", "..", ".", "link", "loop", "gone", long.as_str()];
            path.push_str(if self.chance(8) { self.pick(&rare) } else { self.pick(&common) });
        }
        if self.chance(15) {
            path.push('/');
        }
        PathBuf::from(path)
    }
}

/// Descriptors of the same opening on both sides.
type Pair = (Fd, Fd);

struct Sides<'a> {
    lab: &'a mut dyn FileSystem,
    real: &'a mut dyn FileSystem,
    open: Vec<Pair>,
    /// The directory that paths start in, some levels below the root: `..` in symbolic links may climb.
    base: Pair,
    log: Vec<String>,
}

struct Answers {
    lab: Result<Reply, Errno>,
    real: Result<Reply, Errno>,
}

/// What must be equal of an answer.
fn essence(result: Result<Reply, Errno>) -> String {
    match result {
        Ok(Reply::Stat(s)) => {
            // How long a directory is, how much space a file has, is each file system's own matter.
            let size = if s.kind == FileKind::Directory { 0 } else { s.size_bytes };
            format!("{:?} {:o} {} {} {size}", s.kind, s.mode.0, s.nlink, s.uid)
        }
        Ok(Reply::Fd(_)) => "a descriptor".into(),
        Ok(reply) => format!("{reply:?}"),
        Err(errno) => errno.to_string(),
    }
}

impl Sides<'_> {
    /// Makes a call on both sides, with descriptors replaced.
    fn both(&mut self, make: impl Fn(bool) -> Call<'static>) -> Answers {
        let (ours, theirs) = (make(true), make(false));
        let (lab, real) = (self.lab.call(&ours).result, self.real.call(&theirs).result);
        self.log.push(format!("{ours:?} -> {}", essence(lab)));
        if essence(lab) != essence(real) {
            let tail = self.log.len().saturating_sub(40);
            panic!("{:#?}\nlaboratory: {}\nkernel:     {}", &self.log[tail..], essence(lab), essence(real));
        }
        Answers { lab, real }
    }

    fn same_contents(&mut self, (ours, theirs): Pair) {
        let size = |fs: &mut dyn FileSystem, fd| fs.call(&Call::Fstat { fd }).stat().map(|s| (s.kind, s.size_bytes));
        let Ok((FileKind::File, bytes @ 1..)) = size(self.lab, ours) else { return };
        let mut one = vec![0; bytes as usize];
        let mut other = one.clone();
        let read = (self.lab.read_into(ours, 0, &mut one), self.real.read_into(theirs, 0, &mut other));
        assert_eq!(read.0, read.1);
        if one != other {
            let at = one.iter().zip(&other).position(|(a, b)| a != b);
            let tail = self.log.len().saturating_sub(40);
            panic!("{:#?}\ncontents differ at {at:?} of {bytes}", &self.log[tail..]);
        }
    }
}

/// Lives as long as the test: calls borrow from it.
fn keep<T: ?Sized>(what: Box<T>) -> &'static T {
    Box::leak(what)
}

fn is_directory(lab: &mut dyn FileSystem, fd: Fd) -> bool {
    lab.call(&Call::Fstat { fd }).stat().is_ok_and(|s| s.kind == FileKind::Directory)
}

fn step(random: &mut Random, sides: &mut Sides<'_>) {
    let pair = (!sides.open.is_empty()).then(|| random.pick(&sides.open));
    let stale = (Fd(900), Fd(900));
    let (ours, theirs) = if random.chance(30) { stale } else { pair.unwrap_or(stale) };
    let fd = move |lab: bool| if lab { ours } else { theirs };
    let base = (random.chance(4) && pair.is_some()).then_some(());
    let (p, q) = (random.path(), random.path());
    let (p, q): (&'static Path, &'static Path) = (keep(p.into_boxed_path()), keep(q.into_boxed_path()));
    let start = sides.base;
    let from_base = move |lab: bool| if lab { start.0 } else { start.1 };
    let at = move |lab: bool| At { dir: Some(if base.is_some() { fd(lab) } else { from_base(lab) }), path: p };
    let to = move |lab: bool| At { dir: Some(from_base(lab)), path: q };
    let mode = Mode(0o644);
    let offset = random.below(3) * 8000 + random.below(9000);
    let len_bytes = random.pick(&[0, 1, 100, 4096, 8192, 10_000, 30_000]);
    match random.below(34) {
        0..=4 => {
            let write = random.chance(2);
            let flags = OpenFlags {
                read: random.chance(2) || !write,
                write,
                create: random.chance(2),
                exclusive: random.chance(4),
                truncate: write && random.chance(4),
                append: random.chance(5),
                directory: random.chance(8),
                nofollow: random.chance(6),
                path_only: random.chance(12),
                ..OpenFlags::default()
            };
            // O_CREAT with O_DIRECTORY means different things in different kernels, and FIFOs hold no data here.
            let special = sides.lab.call(&Call::Stat { at: at(true), follow: true }).stat();
            if (flags.create && flags.directory) || special.is_ok_and(|s| s.kind == FileKind::Special) {
                return;
            }
            let answers = sides.both(|lab| Call::Open { at: at(lab), flags, mode });
            if let (Ok(Reply::Fd(a)), Ok(Reply::Fd(b))) = (answers.lab, answers.real) {
                sides.open.push((a, b));
            }
        }
        5..=6 => {
            if sides.both(|lab| Call::Close { fd: fd(lab) }).lab.is_ok() {
                sides.open.retain(|pair| *pair != (ours, theirs));
            }
        }
        7..=9 => {
            let data: &'static [u8] = keep(
                (0..len_bytes)
                    .map(|n| (n as u8).wrapping_mul(31) ^ offset as u8)
                    .collect::<Vec<u8>>()
                    .into_boxed_slice(),
            );
            let offset = (!random.chance(3)).then_some(offset);
            sides.both(|lab| Call::Write { fd: fd(lab), offset, len_bytes, data: Some(data) });
        }
        10..=11 => {
            // A directory's own offset may be any number.
            let directory = is_directory(sides.lab, ours);
            let offset = (directory || !random.chance(3)).then_some(offset);
            sides.both(|lab| Call::Read { fd: fd(lab), offset, len_bytes });
        }
        12 => {
            let whence = random.pick(&[Whence::Set, Whence::Current, Whence::End]);
            let offset = offset as i64 - 4000;
            if !is_directory(sides.lab, ours) {
                sides.both(|lab| Call::Seek { fd: fd(lab), offset, whence });
            }
        }
        13 => {
            sides.both(|lab| Call::Ftruncate { fd: fd(lab), len_bytes: offset });
        }
        14 => {
            sides.both(|lab| Call::Truncate { at: at(lab), len_bytes: offset });
        }
        15..=16 => {
            sides.both(|lab| Call::Mkdir { at: at(lab), mode: Mode(0o755) });
        }
        17 => {
            sides.both(|lab| Call::Rmdir { at: at(lab) });
        }
        18..=19 => {
            sides.both(|lab| Call::Unlink { at: at(lab) });
        }
        20..=23 => {
            let noreplace = random.chance(5);
            sides.both(|lab| Call::Rename { from: at(lab), to: to(lab), noreplace, exchange: false });
        }
        24 => {
            sides.both(|lab| Call::Link { from: at(lab), to: to(lab), follow: false });
        }
        25 => {
            let target = random.pick(&["a", "b/c", "../a", "loop", "c/", "gone", "d/../b", "."]);
            sides.both(|lab| Call::Symlink { target: Path::new(target), at: at(lab) });
        }
        26 => {
            let kind = random.pick(&[FileKind::File, FileKind::Special, FileKind::Directory]);
            sides.both(|lab| Call::Mknod { at: at(lab), kind, mode });
        }
        27 => {
            let follow = random.chance(2);
            sides.both(|lab| Call::Stat { at: at(lab), follow });
        }
        28 => {
            sides.both(|lab| Call::Fstat { fd: fd(lab) });
        }
        29 => match random.below(4) {
            0 => _ = sides.both(|lab| Call::ReadLink { at: at(lab) }),
            1 if is_directory(sides.lab, ours) => {
                // From the start: what shows of later entries is left open by POSIX.
                sides.both(|lab| Call::Seek { fd: fd(lab), offset: 0, whence: Whence::Set });
                sides.both(|lab| Call::GetDents { fd: fd(lab), len_bytes: 1 << 20 });
            }
            2 => {
                let mode = AccessMode { execute: random.chance(2), read: true, write: false };
                sides.both(|lab| Call::Access { at: at(lab), mode });
            }
            _ => _ = sides.both(|lab| Call::StatFs { at: at(lab) }),
        },
        30 => match random.below(3) {
            0 => _ = sides.both(|lab| Call::Fchmod { fd: fd(lab), mode: Mode(0o600) }),
            1 => _ = sides.both(|lab| Call::Chmod { at: at(lab), mode: Mode(0o755) }),
            _ => {
                let time = SetTime::To(5_000_000_000);
                sides.both(|lab| Call::Utimens { at: at(lab), follow: true, atime: time, mtime: SetTime::Omit });
            }
        },
        31 => match random.below(3) {
            0 => _ = sides.both(|lab| Call::Fsync { fd: fd(lab) }),
            1 => _ = sides.both(|lab| Call::Fdatasync { fd: fd(lab) }),
            _ => _ = sides.both(|_| Call::SyncFs),
        },
        32 => {
            let how = Fallocate::PunchHole;
            let file = sides.lab.call(&Call::Fstat { fd: ours }).stat().is_ok_and(|s| s.kind == FileKind::File);
            if file && offset.is_multiple_of(7) {
                // Whole blocks only: what a file system does with the rest of a block is not the kernel's.
                let (offset, len_bytes) = (offset / 8192 * 8192, 8192);
                sides.both(|lab| Call::Fallocate { fd: fd(lab), how, offset, len_bytes });
            }
        }
        _ => {
            if let Some(pair) = pair {
                sides.same_contents(pair);
            }
        }
    }
}

fn nested(fs: &mut dyn FileSystem) -> Fd {
    for path in ["p", "p/q", "p/q/r"] {
        fs.call(&Call::Mkdir { at: path.into(), mode: Mode(0o755) }).result.unwrap();
    }
    fs.call(&Call::Open { at: "p/q/r".into(), flags: OpenFlags::DIRECTORY, mode: Mode(0) }).fd().unwrap()
}

fn compare(seed: u64, steps: usize, cache_bytes: u64) {
    let dir = tempfile::tempdir().unwrap();
    let mut real = Mounted::open(dir.path()).unwrap();
    let device = FixedDevice::new(64 * MB, 1_000_000);
    let mut lab =
        lab_with(volume(64 * MB, Metadata::Delayed), device, free_machine(cache_bytes), Image::full_in_memory(64 * MB));
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
    let base = (nested(&mut lab), nested(&mut real));
    let mut sides = Sides { lab: &mut lab, real: &mut real, open: Vec::new(), base, log: Vec::new() };
    for n in 0..steps {
        step(&mut random, &mut sides);
        if n % 512 == 511 {
            sides.lab.drop_caches().unwrap();
        }
        while sides.open.len() > 12 {
            let pair = sides.open.remove(0);
            sides.same_contents(pair);
            sides.both(|lab| Call::Close { fd: if lab { pair.0 } else { pair.1 } });
        }
    }
}

fn umask_is_known() -> bool {
    // Modes are compared as asked for: the usual mask of 022 takes nothing from 0644 and 0755.
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    text.lines().any(|line| line.trim() == "Umask:\t0022")
}

#[test]
fn random_calls_have_the_real_kernels_answers() {
    if !umask_is_known() {
        testkit::skip("needs the umask 022");
        return;
    }
    for seed in 0..10 {
        compare(seed, 4000, if seed % 2 == 0 { 8 * MB } else { 256 << 10 });
    }
}

/// Found by seed 100: an empty write through `O_APPEND` leaves the offset where it is.
#[test]
fn an_empty_append_does_not_move_the_offset() {
    let dir = tempfile::tempdir().unwrap();
    let mut real = Mounted::open(dir.path()).unwrap();
    let mut lab = common::lab();
    let offset = |fs: &mut dyn FileSystem| {
        let flags = OpenFlags { read: true, append: true, ..OpenFlags::CREATE_NEW };
        let fd = fs.call(&Call::Open { at: "f".into(), flags, mode: Mode(0o644) }).fd().unwrap();
        fs.call(&Call::Write { fd, offset: Some(0), len_bytes: 3, data: Some(b"abc") }).count().unwrap();
        fs.call(&Call::Write { fd, offset: None, len_bytes: 0, data: Some(b"") }).count().unwrap();
        fs.call(&Call::Seek { fd, offset: 0, whence: Whence::Current }).count().unwrap()
    };
    assert_eq!((offset(&mut lab), offset(&mut real)), (0, 0));
}

/// Where walks lead that would leave the root if they could, by the names of the directories of a small tree.
fn walks_that_would_leave(fs: &mut dyn FileSystem) -> Vec<String> {
    let mode = Mode(0o755);
    for path in ["/a", "/a/b", "/a/b/c"] {
        fs.call(&Call::Mkdir { at: path.into(), mode }).result.unwrap();
    }
    for (link, target) in [("/a/b/c/up", "../../.."), ("/abs", "/a"), ("/above", "/../../a/b"), ("/top", "/..")] {
        fs.call(&Call::Symlink { target: Path::new(target), at: link.into() }).result.unwrap();
    }
    let b = fs.call(&Call::Open { at: "/a/b".into(), flags: OpenFlags::DIRECTORY, mode }).fd().unwrap();
    let stat = |fs: &mut dyn FileSystem, at: At<'_>| fs.call(&Call::Stat { at, follow: true }).stat().map(|s| s.ino);
    let named = [("root", "/"), ("a", "/a"), ("b", "/a/b"), ("c", "/a/b/c")];
    let inodes = named.map(|(name, path)| (stat(fs, path.into()).unwrap(), name));
    let name_of = |ino| inodes.iter().find(|known| known.0 == ino).map_or("outside", |known| known.1);
    let paths =
        ["/..", "..", "/../../a", "a/../../..", "abs/b", "above/c", "top/a", "a/b/c/up/..", "up", "up/a", "d/.."];
    let look = |fs: &mut dyn FileSystem, found: &mut Vec<String>| {
        for (path, dir) in paths.into_iter().flat_map(|path| [(path, None), (path, Some(b))]) {
            let at = At { dir, path: Path::new(path) };
            let there = stat(fs, at).map(name_of);
            let opened = fs.call(&Call::Open { at, flags: OpenFlags::DIRECTORY, mode }).fd();
            if let Ok(fd) = opened {
                fs.call(&Call::Close { fd });
            }
            let from = if dir.is_some() { "b" } else { "root" };
            found.push(format!("{path} from {from}: {there:?}, {:?}", opened.err()));
        }
    };
    let mut found = Vec::new();
    look(fs, &mut found);
    let rename = |from: &'static str, to: &'static str| Call::Rename {
        from: from.into(),
        to: to.into(),
        noreplace: false,
        exchange: false,
    };
    // What a link's text cannot tell: it is moved, and what walks start in is.
    for call in [rename("/a/b/c/up", "/up"), rename("/a/b", "/d")] {
        fs.call(&call).result.unwrap();
    }
    look(fs, &mut found);
    let root = fs.call(&Call::Rmdir { at: "up/..".into() }).result;
    found.push(format!("{root:?}"));
    fs.call(&Call::Close { fd: b });
    found
}

/// The laboratory's own walk against the kernel's: as root in a thread with a root directory of its own, else by
/// openat2.
#[test]
fn contained_walks_end_where_the_kernels_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut mounted = Mounted::open(dir.path()).unwrap();
    let (mut ours, mut kernels) = (Vec::new(), Vec::new());
    mounted.contained(&mut |fs| kernels = walks_that_would_leave(fs)).unwrap();
    let mut lab = common::lab();
    // The run's own directory in an image: there is something above it.
    let mode = Mode(0o755);
    lab.call(&Call::Mkdir { at: "/own".into(), mode }).result.unwrap();
    let own = lab.call(&Call::Stat { at: "/own".into(), follow: true }).stat().unwrap().ino;
    lab.set_root(kernel::Ino(u32::try_from(own).unwrap()));
    lab.contained(&mut |fs| ours = walks_that_would_leave(fs)).unwrap();
    assert_eq!(ours, kernels);
    assert!(kernels.iter().all(|line| !line.contains("outside")), "a walk has left: {kernels:#?}");
    assert_eq!(mounted.open_descriptors(), 0);
}
