//! Workspaces on targets that are full, read-only, vanish, or are not there.

use crate::common::{can_make_scratch, close, create, open, write};
use fault::{Fault as _, Kind};
use posix::{
    CacheState, Call, Errno, FileSystem, Mode, Mounted, OpenFlags, SetupError, Target, Unavailable, Workspace,
    WorkspaceOptions,
};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use testkit::{Need, Tool};

fn workspace(target: &str) -> Result<Workspace, SetupError> {
    Workspace::open(&Target::parse(target).unwrap(), &WorkspaceOptions::default())
}

fn opened(target: &str) -> Workspace {
    workspace(target).unwrap_or_else(|e| panic!("{target}: {e}"))
}

#[test]
fn a_directory_gets_a_private_directory_for_a_while() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let ours = opened(dir.path().to_str().unwrap());
    let private = ours.path().ancestors().find(|path| path.parent() == Some(dir.path())).expect("below the target");
    assert!(private.file_name().unwrap().to_str().unwrap().starts_with("fsage-"));
    assert_eq!(private.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(ours.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let mut deeper = ours.subdir("a/b").unwrap();
    create(&mut deeper, "f").unwrap();
    assert!(ours.path().join("a/b/f").exists());
    ours.close().unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// On ext4 without a journal a replay took 391 ms where another had just removed its files, and 57 ms elsewhere.
#[test]
fn on_ext4_the_work_is_apart_from_what_was_there_before() {
    let dir = tempfile::tempdir().unwrap();
    // The judge is e2fsprogs: whether there is such a flag here, and whether it is set.
    let probe = dir.path().join("probe");
    std::fs::create_dir(&probe).unwrap();
    let run =
        |tool: &str, args: &[&str], path: &Path| Command::new(tool).args(args).arg(path).output().expect("it runs");
    let spreads = run("chattr", &["+T"], &probe).status.success();
    std::fs::remove_dir(&probe).unwrap();
    let ours = opened(dir.path().to_str().unwrap());
    let between: Vec<&Path> = ours.path().ancestors().take_while(|path| *path != dir.path()).collect();
    assert_eq!(between.len(), if spreads { 2 } else { 1 }, "{}", ours.path().display());
    if spreads {
        let flags = String::from_utf8(run("lsattr", &["-d"], between[1]).stdout).unwrap();
        assert!(flags.split(' ').next().unwrap().contains('T'), "{flags}");
    }
    create(&mut ours.fs(), "f").unwrap();
    ours.close().unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn unfit_targets_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("none");
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    for (target, kind, says) in [
        (missing.to_str().unwrap(), Kind::Usage, "no such directory"),
        (file.to_str().unwrap(), Kind::Usage, "not a directory"),
        ("ffs@st32430n", Kind::Usage, "has no directory of this machine"),
        ("/proc", Kind::Environment, "/proc"),
    ] {
        let error = workspace(target).err().unwrap_or_else(|| panic!("{target} was opened"));
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[test]
fn too_little_room_is_said_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let target = Target::Directory(dir.path().to_path_buf());
    let bytes = WorkspaceOptions { need_bytes: 1 << 60, ..WorkspaceOptions::default() };
    let error = Workspace::open(&target, &bytes).unwrap_err();
    assert!(matches!(error, SetupError::NoSpace { .. }) && error.kind() == Kind::Environment, "{error}");
    let total = Mounted::open(dir.path()).unwrap().usage().unwrap().total_inodes;
    if total > 0 {
        let inodes = WorkspaceOptions { need_inodes: 1 << 60, ..WorkspaceOptions::default() };
        let error = Workspace::open(&target, &inodes).unwrap_err();
        assert!(matches!(error, SetupError::NoInodes { .. }), "{error}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    if can_make_scratch("ext4:4096T") {
        let error = workspace("ext4:4096T").unwrap_err();
        assert!(matches!(error, SetupError::NoSpace { .. }), "{error}");
        let error = workspace("ext4:4096T,backing=ram").unwrap_err();
        assert!(matches!(error, SetupError::NoMemory { .. }), "{error}");
    }
}

#[test]
fn without_root_a_scratch_target_says_so() {
    if !testkit::as_ordinary_user("targets::without_root_a_scratch_target_says_so") {
        return;
    }
    let error = workspace("ext4:64M").unwrap_err();
    assert!(matches!(error, SetupError::NeedsRoot { .. }) && error.kind() == Kind::Environment, "{error}");
}

#[test]
fn a_target_that_vanishes_is_an_error_and_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let ours = opened(dir.path().to_str().unwrap());
    let mut fs = ours.fs();
    std::fs::remove_dir(ours.path()).unwrap();
    assert_eq!(create(&mut fs, "f"), Err(Errno::ENOENT));
    assert!(fs.subdir("x").is_err());
    ours.close().unwrap();

    let ours = opened(dir.path().to_str().unwrap());
    let moved = dir.path().join("moved");
    std::fs::rename(ours.path(), &moved).unwrap();
    let error = ours.close().unwrap_err();
    assert!(error.to_string().contains("no longer there"), "{error}");
    assert!(moved.exists());
}

#[test]
fn a_full_file_system_answers_and_is_cleaned_up() {
    for target in ["ext4:16M", "xfs:300M", "btrfs:120M"] {
        if !can_make_scratch(target) {
            continue;
        }
        let ours = opened(target);
        let mut fs = ours.fs();
        let fd = create(&mut fs, "f").unwrap();
        let mut end = 0;
        let errno = loop {
            match write(&mut fs, fd, Some(end), 8 << 20)
                .and_then(|n| fs.call(&Call::Fdatasync { fd }).result.map(|_| n))
            {
                Ok(n) => end += n,
                Err(errno) => break errno,
            }
            assert!(end < 400 << 20, "{target}: more than there is");
        };
        assert_eq!(errno, Errno::ENOSPC, "{target}");
        drop(fs);
        ours.close().unwrap();
    }
}

#[test]
fn a_read_only_target_is_refused() {
    for target in ["ext4:16M,mount=ro", "xfs:300M,mount=ro"] {
        if can_make_scratch(target) {
            let error = workspace(target).unwrap_err();
            assert!(error.to_string().contains("read-only") && error.kind() == Kind::Environment, "{error}");
        }
    }
}

#[test]
fn what_mkfs_and_mount_say_is_passed_on() {
    if !can_make_scratch("ext4:16M") {
        return;
    }
    let error = workspace("ext4:16M,-O nonsense").unwrap_err();
    assert!(error.to_string().contains("nonsense"), "{error}");
    let error = workspace("ext4:16M,mount=nonsense").unwrap_err();
    assert!(matches!(error, SetupError::Mount { .. }), "{error}");
}

#[test]
fn the_record_says_how_a_scratch_system_was_made() {
    let target = "ext4:64M,-E stride=4,mount=noatime";
    if !can_make_scratch(target) {
        return;
    }
    let ours = opened(target);
    let e = ours.fs().environment();
    assert_eq!((e.target.as_str(), e.fs_type.name()), (target, "ext4"));
    assert!(e.mount_options.contains("noatime"), "{e:?}");
    assert!(
        e.mkfs.starts_with("mkfs.ext4 ") && e.mkfs.contains("lazy_itable_init=0") && e.mkfs.ends_with("stride=4"),
        "{e:?}"
    );
    assert!(e.device.starts_with("loop device"), "{e:?}");
    println!("{}", e.device);
    assert!(e.total_bytes > 40 << 20 && e.used_share < 0.9, "{e:?}");
}

/// A small tree, then everything dropped; root can, and can check.
#[test]
fn caches_are_cold_when_they_are_said_to_be() {
    for target in ["ext4:64M", "xfs:300M", "btrfs:160M"] {
        if !can_make_scratch(target) {
            continue;
        }
        let ours = opened(target);
        let mut fs = ours.fs();
        for n in 0..20 {
            let mut deeper = fs.subdir(format!("d{}", n % 5)).unwrap();
            let fd = create(&mut deeper, Path::new(&format!("f{n}"))).unwrap();
            write(&mut deeper, fd, None, 100_000).unwrap();
            close(&mut deeper, fd).unwrap();
        }
        let fd = open(&mut fs, "d0/f0", OpenFlags::READ).unwrap();
        assert_eq!(fs.evict(fd).unwrap(), CacheState::Cold, "{target}");
        close(&mut fs, fd).unwrap();
        let dropped = fs.drop_caches_explained().unwrap();
        if dropped.why.contains("drop_caches") {
            testkit::skip(dropped.why);
            continue;
        }
        assert!(dropped.checked_files > 0, "{target}: {dropped:?}");
        assert_eq!(dropped.data, CacheState::Cold, "{target}: {dropped:?}");
        let dropped = fs.drop_caches_explained().unwrap();
        assert_eq!(dropped.state(), CacheState::Cold, "{target}: {dropped:?}");
        // Another program's opinion.
        if !testkit::need(Need::Tool(Tool::Fincore)) {
            continue;
        }
        let fd = open(&mut fs, "d1/f1", OpenFlags::READ).unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), fd.0);
        let output =
            Command::new("fincore").args(["--raw", "--noheadings", "--output", "PAGES", &path]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0", "{target}: {output:?}");
        // A name held in memory by an open file is noticed.
        let fds: Vec<_> =
            (0..20).map(|n| open(&mut fs, Path::new(&format!("d{}/f{n}", n % 5)), OpenFlags::READ)).collect();
        assert_eq!(fds.into_iter().filter(Result::is_ok).count(), 20);
        let dropped = fs.drop_caches_explained().unwrap();
        assert_eq!((dropped.data, dropped.names), (CacheState::Cold, CacheState::Unverified), "{target}: {dropped:?}");
    }
}

/// The extents of a file as `filefrag -v` prints them: logical start, physical start, length, in bytes.
fn filefrag(path: &str) -> Vec<(u64, u64, u64)> {
    let output = Command::new("filefrag").args(["-v", "-b1", path]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers = |field: &str| -> Vec<u64> {
        field.split("..").filter_map(|n| n.trim().trim_end_matches(':').parse().ok()).collect()
    };
    text.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.splitn(5, ':').collect();
            fields.first()?.trim().parse::<u64>().ok()?;
            let (logical, physical) = (numbers(fields.get(1)?), numbers(fields.get(2)?));
            Some((*logical.first()?, *physical.first()?, fields.get(3)?.trim().parse().ok()?))
        })
        .collect()
}

#[test]
fn extents_are_those_of_filefrag() {
    for target in ["ext4:64M", "xfs:300M", "btrfs:160M"] {
        if !can_make_scratch(target) || !testkit::need(Need::Tool(Tool::Filefrag)) {
            continue;
        }
        let ours = opened(target);
        let mut fs = ours.fs();
        let fd = create(&mut fs, "f").unwrap();
        // Every other MiB written, then some of it in pieces: more than one extent.
        for n in 0..300 {
            write(&mut fs, fd, Some(n * 3 * 8192), 8192).unwrap();
            if n % 50 == 0 {
                fs.call(&Call::Fsync { fd }).result.unwrap();
            }
        }
        fs.call(&Call::Fsync { fd }).result.unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), fd.0);
        let found = fs.extents(fd).unwrap();
        let theirs = filefrag(&path);
        let plain: Vec<_> = found.iter().map(|e| (e.logical_bytes, e.physical_bytes, e.len_bytes)).collect();
        assert!(plain.len() > 256, "{target}: {} extents test only one batch", plain.len());
        assert_eq!(plain, theirs, "{target}");
        assert_eq!(found.iter().all(|e| e.flags.logical_address), target.starts_with("btrfs"));
        let fallocate = Call::Fallocate { fd, how: posix::Fallocate::Allocate, offset: 20 << 20, len_bytes: 1 << 20 };
        fs.call(&fallocate).result.unwrap();
        assert!(fs.extents(fd).unwrap().last().is_some_and(|e| e.flags.unwritten), "{target}");
        let tiny = create(&mut fs, "tiny").unwrap();
        assert_eq!(fs.extents(tiny).unwrap(), [], "{target}");
    }
}

#[test]
fn free_space_adds_up() {
    for target in ["ext4:64M", "xfs:300M", "btrfs:160M"] {
        if !can_make_scratch(target) {
            continue;
        }
        let ours = opened(target);
        let mut fs = ours.fs();
        let fd = create(&mut fs, "f").unwrap();
        write(&mut fs, fd, None, 5 << 20).unwrap();
        close(&mut fs, fd).unwrap(); // or ext4 holds blocks ready for it, which are neither free nor in use
        fs.call(&Call::SyncFs).result.unwrap();
        let fd = open(&mut fs, "f", OpenFlags::READ).unwrap();
        let free = match fs.free_extents() {
            Ok(free) => free,
            Err(Unavailable::Unsupported { .. }) => {
                assert!(target.starts_with("btrfs"), "{target} has GETFSMAP");
                continue;
            }
            Err(error) => panic!("{target}: {error}"),
        };
        let usage = fs.usage().unwrap();
        let sum: u64 = free.iter().map(|e| e.len_bytes).sum();
        assert!(free.windows(2).all(|w| w[0].physical_bytes + w[0].len_bytes < w[1].physical_bytes), "{target}");
        assert!(free.iter().all(|e| e.physical_bytes + e.len_bytes <= 300 << 20), "{target}");
        // xfs keeps some blocks back from what it calls free.
        let slack = if target.starts_with("xfs") { usage.total_bytes / 10 } else { 0 };
        assert!(
            sum >= usage.free_bytes && sum <= usage.free_bytes + slack,
            "{target}: {sum} against {}",
            usage.free_bytes
        );
        // The file's own blocks are not free.
        for extent in fs.extents(fd).unwrap() {
            let overlaps = |f: &posix::FreeExtent| {
                f.physical_bytes < extent.physical_bytes + extent.len_bytes
                    && extent.physical_bytes < f.physical_bytes + f.len_bytes
            };
            assert!(!free.iter().any(overlaps), "{target}: {extent:?} is free and in use");
        }
    }
}

#[test]
fn a_scratch_target_goes_with_its_last_handle() {
    if !can_make_scratch("ext4:16M") {
        return;
    }
    let ours = opened("ext4:16M");
    let mut fs = ours.fs();
    drop(ours);
    // The workspace is gone, the handle is not: it works until it goes too.
    assert!(fs.call(&Call::Mkdir { at: "d".into(), mode: Mode(0o755) }).result.is_ok());
}

/// Images of loop devices, by the kernel's names.
fn attached() -> Vec<std::path::PathBuf> {
    let devices = std::fs::read_dir("/sys/block").unwrap();
    let backing = devices.filter_map(|device| std::fs::read(device.ok()?.path().join("loop/backing_file")).ok());
    backing.map(|path| std::ffi::OsStr::from_bytes(path.trim_ascii_end()).into()).collect()
}

// In a suite beside two others, xfs_repair looked at an aged image while a child of another thread, which had not
// come to its execve yet, still held the file system.
#[test]
fn an_image_that_stays_is_let_go_before_close_returns() {
    if !can_make_scratch("ext4:16M") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = std::fs::canonicalize(dir.path()).unwrap().join("image");
    let options = WorkspaceOptions { image: Some(posix::Image::New(image.clone())), ..WorkspaceOptions::default() };
    let ours = Workspace::open(&Target::parse("ext4:16M").unwrap(), &options).unwrap();
    let held = std::fs::File::open(ours.path()).unwrap();
    assert!(attached().contains(&image), "{:?}", attached());
    let holder = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(500));
        drop(held);
    });
    // Its second name does not hide it.
    std::fs::rename(&image, image.with_extension("moved")).unwrap();
    ours.close().unwrap();
    let left = attached();
    assert!(!left.iter().any(|path| path.starts_with(image.parent().unwrap())), "{left:?}");
    holder.join().unwrap();
}
