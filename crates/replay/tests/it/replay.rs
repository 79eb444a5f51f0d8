//! Replays against the truth: random programs run for real under strace, imported, replayed elsewhere; the tree they
//! leave and what their calls returned must be the same.
//!
//! `FSAGE_REPLAY_SEEDS=200` runs more programs than CI does, `FSAGE_REPLAY_SEED=17` one.

// Helpers fail by panicking. `&*` makes the temporary `&File` that Read, Write and Seek borrow mutably.
#![allow(clippy::unwrap_used, clippy::borrow_deref_ref)]

use posix::{FileKind, Mounted};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use replay::{Initially, Pace, ReplayOptions, ReplayResult, Source, Threads, replay_on};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use trace::disposition::Skip;
use trace::profile::Row;
use trace::snapshot::WalkLimits;
use trace::strace::{ImportOptions, Importer};
use trace::{Batch, Op, Snapshot, SnapshotEntry};

/// Runs this test binary's [`program`] instead of tests: the traced process.
const CHILD: &str = "FSAGE_TEST_PROGRAM";

/// An attribute that any user may set.
const ATTRIBUTE: &str = "user.fsage-test";

/// Whether strace may trace here; where not, the test is skipped.
fn strace_works() -> bool {
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    let works = tried.is_ok_and(|output| output.status.success());
    testkit::have(works.then_some(()).ok_or("strace is not installed or may not trace here")).is_some()
}

struct Dice(Xoshiro256PlusPlus);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let i = usize::try_from(self.below(of.len() as u64)).unwrap();
        &of[i]
    }

    /// A name among few, so that calls meet and fail; some awkward.
    fn name(&mut self) -> String {
        (*self.one_of(&["a", "b", "c", "d", "e", "f", "g h", "i\nj", "ünï", "k.tmp"])).to_owned()
    }

    fn path(&mut self) -> PathBuf {
        let mut path = PathBuf::new();
        for _ in 0..self.below(3) {
            match self.below(12) {
                0 => path.push("."),
                1 => path.push(".."),
                n => path.push(["p", "q", "r"][usize::try_from(n % 3).unwrap()]),
            }
        }
        path.push(self.name());
        path
    }
}

/// What is there before the program runs.
fn furnish(dir: &Path, seed: u64) {
    let mut dice = Dice::new(seed);
    for sub in ["p", "q", "r", "p/q", "p/r", "q/p"] {
        fs::create_dir_all(dir.join(sub)).unwrap();
    }
    for _ in 0..30 {
        let path = dir.join(dice.one_of(&[".", "p", "q", "p/q", "q/p"])).join(dice.name());
        match dice.below(6) {
            0 => drop(symlink(dice.path(), &path)),
            1 => drop(symlink(dir.join(dice.path()), &path)),
            2 => drop(fs::hard_link(dir.join("p").join(dice.name()), &path)),
            _ => drop(fs::write(&path, vec![7; usize::try_from(dice.below(20_000)).unwrap()])),
        }
    }
}

/// A random program: files opened, used and left open, names made, moved and removed, by relative and absolute paths.
fn program(dir: &Path, seed: u64, calls: u64) {
    let mut dice = Dice::new(seed ^ 0x5eed);
    std::env::set_current_dir(dir).unwrap();
    let mut open: Vec<fs::File> = Vec::new();
    for i in 0..calls {
        let given = dice.path();
        let path = if dice.below(4) == 0 { dir.join(&given) } else { given };
        let other = dice.path();
        // Failures are part of the program.
        match dice.below(26) {
            0..=4 => {
                let mut options = fs::OpenOptions::new();
                options.read(dice.below(3) > 0).write(dice.below(2) > 0);
                options.create(dice.below(2) > 0).truncate(dice.below(5) == 0).append(dice.below(6) == 0);
                if let Ok(file) = options.open(&path)
                    && file.metadata().is_ok_and(|m| m.is_file())
                {
                    open.push(file);
                }
            }
            5 => drop(fs::OpenOptions::new().write(true).create_new(true).open(&path)),
            6..=8 if !open.is_empty() => {
                let file = dice.one_of(&open);
                drop((&*file).write(&vec![1; usize::try_from(dice.below(9000)).unwrap()]));
            }
            9 | 10 if !open.is_empty() => {
                let len = usize::try_from(dice.below(9000)).unwrap();
                drop((&*dice.one_of(&open)).read(&mut vec![0; len]));
            }
            11 if !open.is_empty() => drop(dice.one_of(&open).read_at(&mut [0; 512], 700)),
            12 if !open.is_empty() => drop(dice.one_of(&open).write_at(&[3; 512], 2000)),
            13 if !open.is_empty() => {
                let to = *dice.one_of(&[SeekFrom::Start(100), SeekFrom::End(0), SeekFrom::Current(50)]);
                drop((&*dice.one_of(&open)).seek(to));
            }
            14 if !open.is_empty() => drop(dice.one_of(&open).set_len(i * 37 % 30_000)),
            15 if !open.is_empty() => drop(dice.one_of(&open).sync_data()),
            16 if open.len() > 3 => {
                let at = usize::try_from(dice.below(open.len() as u64)).unwrap();
                drop(open.swap_remove(at));
            }
            17 if !open.is_empty() => open.extend(dice.one_of(&open).try_clone()),
            18 => drop(fs::create_dir(&path)),
            19 => drop(fs::remove_dir(&path)),
            20 => drop(fs::remove_file(&path)),
            21 => drop(fs::rename(&path, &other)),
            22 => drop(fs::hard_link(&path, &other)),
            // Links into the tree only: what lies elsewhere differs between machines.
            23 => drop(symlink(if dice.below(2) == 0 { dir.join(&other) } else { other }, &path)),
            24 => drop(fs::read_dir(path).map(Iterator::count)),
            25 => {
                drop(fs::symlink_metadata(&path).and_then(|_| fs::metadata(&path)).and_then(|_| fs::read_link(&other)))
            }
            _ => drop(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))),
        }
    }
}

/// What a program asks of descriptors opened with `O_PATH` (bsdtar and rsync, of directories): their flags, which the
/// kernel answers, while it refuses locks on them.
fn flags_of_locations(dir: &Path) {
    use rustix::fs::{CWD, Mode, OFlags, fcntl_getfl, openat};
    use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
    std::env::set_current_dir(dir).unwrap();
    for path in [".", "p", "p/q"] {
        let location = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        fcntl_setfd(&location, FdFlags::CLOEXEC).unwrap();
        assert_eq!(fcntl_getfd(&location), Ok(FdFlags::CLOEXEC));
        assert!(fcntl_getfl(&location).unwrap().contains(OFlags::PATH));
    }
}

/// What vim does to keep the rights of a file: it sets a list of rights that says no more than the file's mode, which
/// leaves no attribute to be found the next time.
fn rights_that_leave_no_attribute(dir: &Path) {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let (file, name) = (dir.join("rights"), "system.posix_acl_access");
    fs::write(&file, "").unwrap();
    let id = [0xff; 4];
    let entries = [(1_u8, 6_u8), (4, 4), (0x20, 4)].map(|(who, what)| [&[who, 0, what, 0], &id[..]].concat());
    let rights = [&[2, 0, 0, 0], &entries.concat()[..]].concat();
    for _ in 0..2 {
        assert_eq!(getxattr(&file, name, &mut [0; 132]), Err(rustix::io::Errno::NODATA));
        setxattr(&file, name, &rights, XattrFlags::empty()).unwrap();
    }
}

/// What cp does where the source turns out to be a pipe, and RocksDB to a file it opens.
fn pipes_and_hints(dir: &Path) {
    use rustix::fs::copy_file_range;
    let (read, write) = rustix::pipe::pipe().unwrap();
    rustix::io::write(&write, b"text").unwrap();
    let file = fs::File::create(dir.join("copy")).unwrap();
    assert_eq!(copy_file_range(&read, None, &file, None, 4), Err(rustix::io::Errno::INVAL));
    rustix::fs::fcntl_add_seals(&file, rustix::fs::SealFlags::GROW).unwrap_err();
    rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
}

/// What bash asks of a program.
fn may_execute(dir: &Path) {
    use rustix::fs::{Access, access};
    assert_eq!(access(dir.join("tool"), Access::EXEC_OK), Ok(()));
    assert_eq!(access(dir.join("text"), Access::EXEC_OK), Err(rustix::io::Errno::ACCESS));
    assert_eq!(access(dir.join("text"), Access::READ_OK), Ok(()));
}

/// What a shell does that looks for programs where its user may not look, and what is refused where he may.
fn is_refused(dir: &Path) {
    use rustix::fs::{Access, access, stat};
    use rustix::io::Errno;
    let refused = Err(Errno::ACCESS);
    let is_there = |path: &str| stat(dir.join(path)).map(|_| ());
    for path in ["above/closed/tool", "closed/inner/file", "closed/tool", "unlisted/bin/tool", "unlisted/bin/other"] {
        assert_eq!(is_there(path), refused, "{path}");
        assert_eq!(access(dir.join(path), Access::EXEC_OK), refused, "{path}");
        assert_eq!(fs::File::open(dir.join(path)).unwrap_err().raw_os_error(), Some(Errno::ACCESS.raw_os_error()));
    }
    // What was refused first was not refused by the first directory on its way.
    assert_eq!((is_there("above/file"), is_there("above/missing")), (Ok(()), Err(Errno::NOENT)));
    assert_eq!((is_there("closed"), is_there("linked")), (Ok(()), Ok(())));
    for (path, may_read, may_write) in
        [("unreadable", false, true), ("unwritable", true, false), ("hidden", false, false)]
    {
        assert_eq!(fs::File::open(dir.join(path)).is_ok(), may_read, "{path}");
        assert_eq!(fs::OpenOptions::new().append(true).open(dir.join(path)).is_ok(), may_write, "{path}");
        assert_eq!(access(dir.join(path), Access::EXEC_OK), refused, "{path}");
    }
}

/// What finds attributes that nobody set before its eyes, takes one away, and sets another.
fn attributes_from_before(dir: &Path) {
    use rustix::fs::{XattrFlags, fgetxattr, getxattr, removexattr, setxattr};
    use rustix::io::Errno;
    let (marked, opened, made) = (dir.join("marked"), fs::File::open(dir.join("opened")).unwrap(), dir.join("made"));
    assert_eq!(getxattr(&marked, "user.other", &mut [0; 64]), Err(Errno::NODATA));
    assert_eq!(getxattr(&marked, ATTRIBUTE, &mut [0; 64]), Ok(5));
    removexattr(&marked, ATTRIBUTE).unwrap();
    assert_eq!(getxattr(&marked, ATTRIBUTE, &mut [0; 64]), Err(Errno::NODATA));
    assert_eq!(fgetxattr(&opened, ATTRIBUTE, &mut [0; 64]), Ok(5));
    assert_eq!(getxattr(dir.join("directory"), ATTRIBUTE, &mut [0; 64]), Ok(5));
    removexattr(dir.join("taken"), ATTRIBUTE).unwrap();
    fs::write(&made, "").unwrap();
    setxattr(&made, ATTRIBUTE, b"value", XattrFlags::empty()).unwrap();
    fs::rename(&made, &marked).unwrap();
    assert_eq!(getxattr(&marked, ATTRIBUTE, &mut [0; 64]), Ok(5));
}

/// What takes the right to execute away and gives it back, and asks each time.
fn may_execute_no_more(dir: &Path) {
    use rustix::fs::{Access, access};
    let (script, closed) = (dir.join("script"), dir.join("closed"));
    let execute = || access(&script, Access::EXEC_OK).is_ok();
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    fs::write(&script, "").unwrap();
    assert!(!execute());
    for (mode, may) in [(0o755, true), (0o644, false), (0o700, true), (0o400, false)] {
        set(&script, mode);
        assert_eq!(execute(), may, "{mode:o}");
    }
    let file = fs::File::open(&script).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
    assert!(execute());
    file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    assert!(!execute());
    // A directory stays open to its owner in the replay, whoever that is.
    fs::create_dir(&closed).unwrap();
    set(&closed, 0o600);
    set(&closed, 0o755);
    fs::write(closed.join("inside"), "").unwrap();
}

/// What cp asks of a link that leads nowhere: its own attributes.
fn attributes_of_links(dir: &Path) {
    use rustix::fs::{lgetxattr, listxattr, llistxattr};
    use rustix::io::Errno;
    let link = dir.join("leads-nowhere");
    symlink("nowhere", &link).unwrap();
    assert_eq!(llistxattr(&link, &mut [0; 64]), Ok(0));
    assert_eq!(lgetxattr(&link, "trusted.none", &mut [0; 64]), Err(Errno::NODATA));
    assert_eq!(listxattr(&link, &mut [0; 64]), Err(Errno::NOENT));
}

/// The traced process: several programs of processes that follow one another or run at once, and threads of one.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else {
        // Not traced, it shows that a child that fails is seen to fail.
        assert!(!run_self("nowhere|0|0|no such child").stderr(std::process::Stdio::null()).status().unwrap().success());
        return;
    };
    let [dir, seed, calls, how]: [&str; 4] = what.split('|').collect::<Vec<_>>().try_into().unwrap();
    let (dir, seed, calls): (PathBuf, u64, u64) = (dir.into(), seed.parse().unwrap(), calls.parse().unwrap());
    match how {
        "one" => program(&dir, seed, calls),
        "flags of locations" => flags_of_locations(&dir),
        "rights" => rights_that_leave_no_attribute(&dir),
        "pipes and hints" => pipes_and_hints(&dir),
        "may execute" => may_execute(&dir),
        "attributes from before" => attributes_from_before(&dir),
        "may execute no more" => may_execute_no_more(&dir),
        "is refused" => is_refused(&dir),
        "attributes of links" => attributes_of_links(&dir),
        "several" => {
            // Each in a directory of its own: what they do must not depend on who is first.
            let mut children = Vec::new();
            for i in 0..3 {
                let own = dir.join(format!("own{i}"));
                fs::create_dir(&own).unwrap();
                furnish(&own, seed + i);
                let what = format!("{}|{}|{calls}|one", own.display(), seed + i);
                children.push(run_self(&what).spawn().unwrap());
            }
            let shared = fs::OpenOptions::new().append(true).create(true).open(dir.join("log")).unwrap();
            for mut child in children {
                assert!(child.wait().unwrap().success());
                (&shared).write_all(b"one more has ended\n").unwrap();
            }
        }
        other => panic!("no such child: {other}"),
    }
}

fn run_self(what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "replay::child", "--nocapture", "--test-threads=1"]).env(CHILD, what);
    command.stdout(std::process::Stdio::null());
    command
}

/// Outcomes are checked, not times: emptying the machine's caches would only take long.
fn checking() -> ReplayOptions {
    ReplayOptions { differences_max: 1000, initially: Initially::Rebuilt, ..ReplayOptions::default() }
}

struct Traced {
    batches: Vec<Batch>,
    snapshot: Snapshot,
}

/// Runs the program under strace; `dir` is where it may change something.
fn trace(dir: &Path, what: &str, scratch: &Path) -> Traced {
    let snapshot = Snapshot::of_tree(&[dir], &WalkLimits::default()).unwrap().snapshot;
    let text = scratch.join("strace.txt");
    let child = run_self(what);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-ttt", "-T", "-yy", "-s0", "-e", "abbrev=!readv,writev,preadv,pwritev", "-o"]).arg(&text);
    strace.args(["-e", "trace=%file,%desc,%process"]).arg(child.get_program()).args(child.get_args());
    let output = strace.env(CHILD, what).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let mut batches = Vec::new();
    let mut importer = Importer::new(ImportOptions { name: text.clone(), ..ImportOptions::default() });
    let mut keep = |batch: Batch| {
        batches.push(batch);
        Ok(())
    };
    importer.read(BufReader::new(fs::File::open(&text).unwrap()), &mut keep).unwrap();
    let imported = importer.finish(&mut keep).unwrap();
    assert_eq!(imported.summary.unparsed_lines, 0, "{:?}", imported.summary.problems);
    Traced { batches, snapshot }
}

fn replay_in(target: &Path, traced: &Traced, options: &ReplayOptions) -> (Mounted, ReplayResult) {
    let mut mounted = Mounted::open(target).unwrap();
    let open = || -> Result<Source<'_>, _> { Ok(Box::new(traced.batches.iter().cloned().map(Ok))) };
    let result = replay_on(&mut mounted, &traced.snapshot, &open, options, &mut |_| {}).unwrap();
    assert_eq!(mounted.open_descriptors(), 0, "descriptors left open");
    (mounted, result)
}

/// Kind, length (of a link, of its target) and number of names of everything below a directory.
fn tree(dir: &Path) -> BTreeMap<OsString, (FileKind, u64, u64)> {
    fn walk(base: &Path, dir: &Path, out: &mut BTreeMap<OsString, (FileKind, u64, u64)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let kind = match meta.file_type() {
                t if t.is_dir() => FileKind::Directory,
                t if t.is_symlink() => FileKind::Symlink,
                t if t.is_file() => FileKind::File,
                _ => FileKind::Special,
            };
            let len = if kind == FileKind::Directory { 0 } else { meta.len() };
            // Not every file system counts subdirectories in a directory's links.
            let names = if kind == FileKind::Directory { 1 } else { meta.nlink() };
            out.insert(path.strip_prefix(base).unwrap().as_os_str().to_owned(), (kind, len, names));
            if kind == FileKind::Directory {
                walk(base, &path, out);
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(dir, dir, &mut out);
    out
}

fn check(seed: u64, how: &str, calls: u64, options: &ReplayOptions) -> ReplayResult {
    let scratch = tempfile::Builder::new().prefix("fsage-replay-test").tempdir().unwrap();
    let base = scratch.path().canonicalize().unwrap();
    // Deep, so that `..` in paths and links never leads out of what is compared.
    let (top, target) = (base.join("top"), base.join("target"));
    let dir = top.join("1/2/3/4/5/6/7/8/9/10/11/12/traced");
    fs::create_dir_all(&dir).unwrap();
    fs::create_dir(&target).unwrap();
    furnish(&dir, seed);
    let traced = trace(&top, &format!("{}|{seed}|{calls}|{how}", dir.display()), &base);
    let (mounted, result) = replay_in(&target, &traced, options);
    let replayed = mounted.path().join("root").join(top.strip_prefix("/").unwrap());
    let (before, after) = (tree(&top), tree(&replayed));
    let differing: Vec<_> = before
        .iter()
        .filter(|(path, was)| after.get(*path) != Some(was))
        .map(|(path, was)| (path, was, after.get(path)))
        .collect();
    let extra: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(
        differing.is_empty() && extra.is_empty(),
        "seed {seed}: {differing:#?}, only in the replay: {extra:#?}, {:#?}",
        result.differences
    );
    let inside: Vec<_> = result.differences.first.iter().filter(|d| d.path.contains("fsage-replay-test")).collect();
    assert!(inside.is_empty(), "seed {seed}: {inside:#?}");
    result
}

fn seeds(default: u64) -> Vec<u64> {
    let number = |name: &str| testkit::parameter(name);
    match number("FSAGE_REPLAY_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("FSAGE_REPLAY_SEEDS").unwrap_or(default)).collect(),
    }
}

#[test]
fn random_programs_leave_the_same_tree() {
    if !strace_works() {
        return;
    }
    for seed in seeds(6) {
        let result = check(seed, "one", 400, &checking());
        assert!(result.calls > 300, "seed {seed}: {result:#?}");
        assert_eq!(result.concurrency.replay_threads, 1);
    }
}

#[test]
fn concurrent_programs_leave_the_same_tree() {
    if !strace_works() {
        return;
    }
    for seed in seeds(2) {
        for threads in [Threads::Auto, Threads::Keep, Threads::Single] {
            let options = ReplayOptions { threads, ..checking() };
            check(seed, "several", 150, &options);
        }
    }
}

#[test]
fn a_paced_replay_takes_its_time() {
    if !strace_works() {
        return;
    }
    let options = ReplayOptions { pace: Pace::Recorded, ..checking() };
    check(3, "one", 50, &options);
}

/// A name that the trace had removed came back by nobody's call: it was rebuilt twice, so the rebuild failed and
/// nothing was replayed. What a path with a slash at its end leads to was rebuilt as a file.
#[test]
fn a_name_that_comes_back_unseen_is_rebuilt_once() {
    let target = tempfile::tempdir().unwrap();
    let there = [("/d", FileKind::Directory), ("/f", FileKind::File)];
    let entries = there.map(|(path, kind)| SnapshotEntry::implied(path.into(), kind));
    let mut batch = Batch::default();
    let calls = [(Op::Rmdir, "/d"), (Op::Mkdir, "/d/x"), (Op::Unlink, "/f"), (Op::Mkdir, "/f/x"), (Op::Stat, "/seen/")];
    for (seq, (op, path)) in (0..).zip(calls) {
        let path = Some(batch.paths.intern(path.as_bytes()));
        batch.events.push(Row { path, dur_ns: 10, ..Row::new(seq, 1000 * seq, op) }.into());
    }
    let traced = Traced { batches: vec![batch], snapshot: Snapshot::from_entries(entries.into()) };
    let (_, result) = replay_in(target.path(), &traced, &checking());
    let calls: Vec<_> = result.per_op.iter().map(|op| (op.op.as_str(), op.count, op.failed)).collect();
    let found = |name: &str| calls.iter().find(|(op, ..)| *op == name).map(|&(_, count, failed)| (count, failed));
    assert_eq!(
        (found("rmdir"), found("unlink"), found("stat")),
        (Some((1, 0)), Some((1, 0)), Some((1, 0))),
        "{calls:?}"
    );
    assert_eq!(found("mkdir"), Some((2, 2)), "nothing that is replayed makes the two again: {calls:?}");
}

/// Found by `chmod -R 644` on what was somebody else's: it was refused (`EPERM`), the replay's user owns what it has
/// made, and no call after it got through the directory; on `/` the replay stopped. As an ordinary user: nothing is
/// closed to root.
#[test]
fn a_mode_that_was_refused_closes_no_directory() {
    if !testkit::as_ordinary_user("replay::a_mode_that_was_refused_closes_no_directory") {
        return;
    }
    let target = tempfile::tempdir().unwrap();
    let entries = [("/d", FileKind::Directory), ("/d/f", FileKind::File)];
    let entries = entries.map(|(path, kind)| SnapshotEntry::implied(path.into(), kind));
    let mut batch = Batch::default();
    let calls = [(Op::Stat, "/d/f"), (Op::Chmod, "/d"), (Op::Stat, "/d/f"), (Op::Chmod, "/"), (Op::Stat, "/d/f")];
    for (seq, (op, path)) in (0..).zip(calls) {
        let path = Some(batch.paths.intern(path.as_bytes()));
        let refused = op == Op::Chmod;
        let (errno, ret) = if refused { (posix::Errno::EPERM.0, -1) } else { (0, 0) };
        let mode = refused.then_some(0o644);
        batch.events.push(Row { path, dur_ns: 10, errno, ret, mode, ..Row::new(seq, 1000 * seq, op) }.into());
    }
    let traced = Traced { batches: vec![batch], snapshot: Snapshot::from_entries(entries.into()) };
    for initially in [Initially::Rebuilt, Initially::Cold, Initially::Warm] {
        let (mounted, result) = replay_in(target.path(), &traced, &ReplayOptions { initially, ..checking() });
        let calls = |name: &str| result.per_op.iter().find(|op| op.op == name).map(|op| (op.count, op.failed));
        assert_eq!((calls("stat"), calls("chmod")), (Some((3, 0)), Some((2, 0))));
        fs::remove_dir_all(mounted.path().join("root")).unwrap();
    }
}

/// Found by recording bsdtar: the replay put locks in the place of 2,045 `fcntl(F_GETFL)`, and the kernel refused them.
#[test]
fn flags_of_a_descriptor_are_no_locks() {
    if !strace_works() {
        return;
    }
    let result = check(1, "flags of locations", 0, &checking());
    assert!(result.per_op.iter().all(|op| op.op != "fcntl"), "{:?}", result.per_op);
    assert!(result.skipped[&Skip::Bookkeeping] >= 9, "{:?}", result.skipped);
}

/// Found by recording `cp -a`: `llistxattr` of a link that leads nowhere became `listxattr`, which has no file to look
/// at.
#[test]
fn attributes_of_a_link_are_its_own() {
    if !strace_works() {
        return;
    }
    let result = check(1, "attributes of links", 0, &checking());
    let calls = |name: &str| result.per_op.iter().find(|op| op.op == name).map(|op| (op.count, op.failed));
    assert_eq!((calls("listxattr"), calls("getxattr")), (Some((2, 1)), Some((1, 1))));
}

/// Found by recording vim: the stand-in for the attribute it set was found where the trace had found none.
#[test]
fn an_attribute_the_trace_did_not_find_is_not_found() {
    if !strace_works() {
        return;
    }
    let result = check(1, "rights", 0, &checking());
    let calls = |name: &str| result.per_op.iter().find(|op| op.op == name).map(|op| (op.count, op.failed));
    assert_eq!((calls("setxattr"), calls("getxattr")), (Some((2, 0)), Some((2, 2))));
}

/// Found by recording a shell, whose `cp /dev/stdin here` tried `copy_file_range` on a pipe, and RocksDB, whose
/// `F_SET_RW_HINT` became a lock.
#[test]
fn what_failed_at_a_pipe_or_is_no_lock_is_left_out() {
    if !strace_works() {
        return;
    }
    let result = check(1, "pipes and hints", 0, &checking());
    let calls = |name: &str| result.per_op.iter().find(|op| op.op == name).map(|op| (op.count, op.failed));
    assert_eq!((calls("copy"), calls("fcntl")), (None, Some((1, 0))), "{:?}", result.per_op);
}

/// Found by recording javac: the link `/usr/bin/javac` led to a program that no snapshot listed, so that the rebuilt
/// one could not be executed.
#[test]
fn a_program_that_could_be_executed_can_be() {
    if !strace_works() {
        return;
    }
    let scratch = tempfile::Builder::new().prefix("fsage-replay-test").tempdir().unwrap();
    let base = scratch.path().canonicalize().unwrap();
    let (dir, target) = (base.join("traced"), base.join("target"));
    for made in [&dir, &target] {
        fs::create_dir(made).unwrap();
    }
    for (name, mode) in [("tool", 0o755), ("text", 0o644)] {
        fs::write(dir.join(name), "#!/bin/true").unwrap();
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut traced = trace(&dir, &format!("{}|0|0|may execute", dir.display()), &base);
    traced.snapshot.entries.retain(|entry| entry.name() != b"tool");
    let (_, result) = replay_in(&target, &traced, &checking());
    let inside: Vec<_> = result.differences.first.iter().filter(|d| d.path.contains("fsage-replay-test")).collect();
    assert!(inside.is_empty(), "{inside:#?}");
}

/// Found by recording an ordinary user's shell, whose path of programs led below `/root`: where it was refused, replays
/// found nothing (`ENOENT`), and where it may not read, they read. What was not refused stays as it is, and it can be
/// removed.
#[test]
fn what_refused_the_traced_user_refuses_again() {
    if !testkit::as_ordinary_user("replay::what_refused_the_traced_user_refuses_again") || !strace_works() {
        return;
    }
    let scratch = tempfile::Builder::new().prefix("fsage-replay-test").tempdir().unwrap();
    let base = scratch.path().canonicalize().unwrap();
    let (dir, target) = (base.join("traced"), base.join("target"));
    for made in ["traced/above/closed", "traced/closed/inner", "traced/unlisted/bin", "target"] {
        fs::create_dir_all(base.join(made)).unwrap();
    }
    let mode = |path: &str, mode| fs::set_permissions(dir.join(path), fs::Permissions::from_mode(mode)).unwrap();
    for (name, rights) in [("above/file", 0o644), ("unreadable", 0o222), ("unwritable", 0o444), ("hidden", 0)] {
        fs::write(dir.join(name), "text").unwrap();
        mode(name, rights);
    }
    fs::write(dir.join("closed/inner/file"), "text").unwrap();
    fs::hard_link(dir.join("closed/inner/file"), dir.join("linked")).unwrap();
    // The snapshot of a user who may see it all.
    let all = Snapshot::of_tree(&[&dir], &WalkLimits::default()).unwrap().snapshot;
    let closed = ["above/closed", "closed", "unlisted"];
    closed.iter().for_each(|path| mode(path, 0));
    let mut traced = trace(&dir, &format!("{}|0|0|is refused", dir.display()), &base);
    closed.iter().for_each(|path| mode(path, 0o755));
    assert!(!traced.snapshot.entries.iter().any(|entry| entry.path.ends_with(b"inner")));
    traced.snapshot.entries.retain(|entry| ![&b"unlisted"[..], b"hidden"].contains(&entry.name()));
    let seen = traced.snapshot.clone();
    let states = [Initially::Rebuilt, Initially::Cold, Initially::Warm];
    for (snapshot, initially) in [&seen, &all].into_iter().flat_map(|snapshot| states.map(|state| (snapshot, state))) {
        traced.snapshot = snapshot.clone();
        let (mounted, result) = replay_in(&target, &traced, &ReplayOptions { initially, ..checking() });
        let differences = &result.differences;
        let inside: Vec<_> = differences.first.iter().filter(|d| d.path.contains("fsage-replay-test")).collect();
        assert!(inside.is_empty(), "{inside:#?}");
        let replayed = mounted.path().join("root").join(dir.strip_prefix("/").unwrap());
        let rights = |path: &str| fs::symlink_metadata(replayed.join(path)).unwrap().mode() & 0o777;
        assert_eq!(closed.map(|path| rights(path) & 0o711), [0o600; 3]);
        let kept =
            ["above", "above/file", "linked", "unreadable", "unwritable", "hidden"].map(|path| rights(path) & 0o700);
        assert_eq!(kept, [0o700, 0o600, 0o600, 0o200, 0o400, 0]);
        // Even by who has no way around a closed directory, as `rm -r` has none.
        fs::remove_dir_all(mounted.path().join("root")).unwrap();
    }
}

/// Whoever finds an attribute that the trace did not set found one that was there before.
#[test]
fn attributes_from_before_the_trace_are_there() {
    if !strace_works() {
        return;
    }
    let scratch = tempfile::Builder::new().prefix("fsage-replay-test").tempdir().unwrap();
    let base = scratch.path().canonicalize().unwrap();
    let (dir, target) = (base.join("traced"), base.join("target"));
    for made in [&dir, &target, &dir.join("directory")] {
        fs::create_dir(made).unwrap();
    }
    for name in ["marked", "opened", "taken"] {
        fs::write(dir.join(name), "").unwrap();
    }
    for name in ["marked", "opened", "taken", "directory"] {
        let set = rustix::fs::setxattr(dir.join(name), ATTRIBUTE, b"value", rustix::fs::XattrFlags::empty());
        if set == Err(rustix::io::Errno::OPNOTSUPP) {
            return testkit::skip(format!("{} has no attributes of users", dir.display()));
        }
        set.unwrap();
    }
    let traced = trace(&dir, &format!("{}|0|0|attributes from before", dir.display()), &base);
    let (_, result) = replay_in(&target, &traced, &checking());
    let inside: Vec<_> = result.differences.first.iter().filter(|d| d.path.contains("fsage-replay-test")).collect();
    assert!(inside.is_empty(), "{inside:#?}");
    let calls = |name: &str| result.per_op.iter().find(|op| op.op == name).map(|op| (op.count, op.failed));
    assert_eq!((calls("getxattr"), calls("removexattr")), (Some((6, 2)), Some((2, 0))));
}

/// Every chmod gave its file the right to execute, so that `access` found it where the trace had not.
#[test]
fn the_right_to_execute_is_taken_away_as_in_the_trace() {
    if !strace_works() {
        return;
    }
    let result = check(1, "may execute no more", 0, &checking());
    let calls = |name: &str| result.per_op.iter().find(|op| op.op == name).map(|op| (op.count, op.failed));
    assert_eq!((calls("chmod"), calls("fchmod")), (Some((6, 0)), Some((2, 0))));
}

/// Found by recording npm: the snapshot listed names below a directory that it did not list itself, whose own directory
/// it did list. The rebuild made it before there was anything to make it in.
#[test]
fn a_directory_missing_in_the_snapshot_is_made_in_its_place() {
    let scratch = tempfile::Builder::new().prefix("fsage-replay-test").tempdir().unwrap();
    let (tree_before, target) = (scratch.path().join("before"), scratch.path().join("target"));
    fs::create_dir_all(tree_before.join("a/b/c")).unwrap();
    fs::create_dir(&target).unwrap();
    fs::write(tree_before.join("a/first"), "of several names").unwrap();
    for name in ["a/b/c/one", "a/b/c/two", "a/z"] {
        fs::hard_link(tree_before.join("a/first"), tree_before.join(name)).unwrap();
    }
    let tree_before = tree_before.canonicalize().unwrap();
    let mut snapshot = Snapshot::of_tree(&[&tree_before], &WalkLimits::default()).unwrap().snapshot;
    snapshot.entries.retain(|entry| entry.name() != b"b");
    let (mounted, _) = replay_in(&target, &Traced { batches: Vec::new(), snapshot }, &checking());
    let rebuilt = mounted.path().join("root").join(tree_before.strip_prefix("/").unwrap());
    assert_eq!(tree(&rebuilt), tree(&tree_before));
}
