//! `fsage mount` and `fsage umount`: the kernel as the judge of the mounted file systems, `fsage fsck` of what they
//! leave.
//!
//! validation/mount.sh does more of the same, with suites of others, for longer.

use crate::common;
use crate::common::process::{Running, until};
use crate::common::{fails, run, succeeds};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use testkit::{Need, Tool, need, tool};

/// Each file system that is mounted: how its image is made, and the target of the image in the modes that differ.
const SYSTEMS: [(&str, &[&str], &str); 9] = [
    ("ufs1", &["mkfs", "ffs", "--size", "64M"], "IMAGE"),
    ("ufs2-big-endian", &["mkfs", "ffs", "--size", "64M", "--ufs", "2", "--endian", "big"], "IMAGE"),
    ("noorder", &["mkfs", "ffs", "--size", "64M"], "ffs:noorder,image=IMAGE"),
    ("softdep", &["mkfs", "ffs", "--size", "64M"], "ffs:softdep,image=IMAGE"),
    ("softdep+j", &["mkfs", "ffs", "--size", "64M"], "ffs:softdep+j,image=IMAGE"),
    ("journal", &["mkfs", "ffs", "--size", "64M"], "ffs:journal=async,image=IMAGE"),
    ("journal-sync", &["mkfs", "ffs", "--size", "64M"], "ffs:journal=sync,image=IMAGE"),
    ("lfs", &["mkfs", "lfs", "--size", "64M"], "IMAGE"),
    ("lfs-small-blocks", &["mkfs", "lfs", "--size", "32M", "--bsize", "4K", "--fsize", "1K"], "IMAGE"),
];

/// A new image, and a directory to mount it on. Whatever a failed test leaves mounted goes with it.
struct Place {
    dir: tempfile::TempDir,
    source: String,
}

impl Place {
    fn new(make: &[&str], source: &str) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let (kind, options) = make.split_at(2);
        succeeds(&run(dir.path(), &[kind, &["disk.img"], options].concat()));
        fs::create_dir(dir.path().join("mnt")).unwrap();
        let source = source.replace("IMAGE", "disk.img");
        Place { dir, source }
    }

    fn at(&self) -> &Path {
        self.dir.path()
    }

    fn mnt(&self) -> PathBuf {
        self.at().join("mnt")
    }

    fn mount(&self, options: &[&str]) -> PathBuf {
        succeeds(&run(self.at(), &[&["mount"], options, &[&self.source, "mnt"]].concat()));
        self.mnt()
    }

    fn umount(&self) {
        succeeds(&run(self.at(), &["umount", "mnt"]));
        assert!(!self.is_mounted());
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.lines().any(|line| line.split(' ').nth(1) == self.mnt().to_str())
    }

    #[track_caller]
    fn is_clean(&self) {
        succeeds(&run(self.at(), &["fsck", "disk.img"]));
    }

    /// A server in the foreground, once it is mounted.
    fn serve(&self, options: &[&str]) -> Running {
        let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
        command.args(["mount", "--foreground"]).args(options).args([&self.source, "mnt"]).current_dir(self.at());
        let running = Running::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()));
        until("it is mounted", || self.is_mounted());
        running
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_mounted() {
            let _ = Command::new("umount").arg("-l").arg(self.mnt()).status();
        }
    }
}

fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

fn bytes_of(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    random(seed).fill_bytes(&mut bytes);
    bytes
}

#[test]
fn what_is_written_is_there_after_a_remount() {
    if !need(Need::Fuse) {
        return;
    }
    for (name, make, source) in SYSTEMS {
        let place = Place::new(make, source);
        let mnt = place.mount(&[]);
        let sizes = [0, 1, 511, 512, 8191, 8192, 8193, 100_000, 3 << 20];
        for (n, len) in sizes.into_iter().enumerate() {
            fs::DirBuilder::new().mode(0o750).create(mnt.join(format!("d{n}"))).unwrap();
            fs::write(mnt.join(format!("d{n}/file")), bytes_of(n as u64, len)).unwrap();
        }
        let long = "x".repeat(255);
        fs::write(mnt.join(&long), "long").unwrap();
        symlink("d3/file", mnt.join("short")).unwrap();
        symlink("y".repeat(1000), mnt.join("far")).unwrap();
        fs::hard_link(mnt.join("d7/file"), mnt.join("again")).unwrap();
        fs::rename(mnt.join("d0"), mnt.join("d1/below")).unwrap();
        fs::rename(mnt.join("d2/file"), mnt.join("d4/file")).unwrap();
        // A hole between what is there and what comes behind it.
        let sparse = File::create(mnt.join("sparse")).unwrap();
        sparse.write_all_at(b"end", 5 << 20).unwrap();
        assert!(sparse.metadata().unwrap().blocks() < 1000, "{name}");
        drop(sparse);
        // 1815 and 2100: beyond what a time has on the disk, but for UFS2, it is the nearest that there is.
        let (early, late) = (-4_870_000_000_i64, 4_102_444_800_u64);
        let times = fs::FileTimes::new()
            .set_accessed(SystemTime::UNIX_EPOCH - Duration::from_secs(early.unsigned_abs()))
            .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(late));
        File::open(mnt.join("d8")).unwrap().set_times(times).unwrap();
        let wide = name.starts_with("ufs2");
        let kept = if wide { (early, late as i64) } else { (i32::MIN.into(), i32::MAX.into()) };
        let seen = |at: &Path| {
            let times = fs::metadata(at.join("d8")).unwrap();
            assert_eq!((times.atime(), times.mtime()), kept, "{name}");
            for (n, len) in sizes.into_iter().enumerate().filter(|(n, _)| ![0, 2, 4].contains(n)) {
                assert!(fs::read(at.join(format!("d{n}/file"))).unwrap() == bytes_of(n as u64, len), "{name} {n}");
            }
            assert!(fs::read(at.join("d4/file")).unwrap() == bytes_of(2, 511), "{name}");
            assert!(fs::read(at.join("again")).unwrap() == bytes_of(7, 100_000), "{name}");
            assert_eq!(fs::metadata(at.join("again")).unwrap().nlink(), 2, "{name}");
            assert_eq!(fs::read(at.join("short")).unwrap(), bytes_of(3, 512), "{name}");
            assert_eq!(fs::read_link(at.join("far")).unwrap().as_os_str().len(), 1000, "{name}");
            assert_eq!(fs::read(at.join(&long)).unwrap(), b"long", "{name}");
            assert_eq!(fs::metadata(at.join("d1/below")).unwrap().permissions().mode() & 0o7777, 0o750, "{name}");
            let mut sparse = File::open(at.join("sparse")).unwrap();
            let mut bytes = Vec::new();
            sparse.read_to_end(&mut bytes).unwrap();
            assert!(bytes.len() == (5 << 20) + 3 && bytes[..5 << 20].iter().all(|b| *b == 0), "{name}");
            assert!(bytes.ends_with(b"end"), "{name}");
            assert_eq!(fs::metadata(at).unwrap().nlink(), 2 + 8, "{name}: d1 to d8");
        };
        seen(&mnt);
        place.umount();
        place.is_clean();
        let mnt = place.mount(&["--read-only"]);
        seen(&mnt);
        place.umount();
    }
}

#[test]
fn a_file_that_is_open_outlives_its_name_and_gives_its_space_back() {
    if !need(Need::Fuse) {
        return;
    }
    for (name, make, source) in SYSTEMS {
        let place = Place::new(make, source);
        let mnt = place.mount(&[]);
        let free = || rustix::fs::statvfs(&mnt).unwrap().f_bfree;
        let before = free();
        let data = bytes_of(1, 2 << 20);
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(mnt.join("file")).unwrap();
        file.write_all(&data).unwrap();
        fs::remove_file(mnt.join("file")).unwrap();
        // Its number is nobody else's while it is open.
        fs::write(mnt.join("other"), "other").unwrap();
        assert_ne!(fs::metadata(mnt.join("other")).unwrap().ino(), file.metadata().unwrap().ino(), "{name}");
        fs::remove_file(mnt.join("other")).unwrap();
        let mut read = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut read).unwrap();
        assert!(read == data && file.metadata().unwrap().nlink() == 0, "{name}");
        drop(file);
        // A log's free space counts what is not written yet, and the kernel forgets a file a moment after its last
        // close.
        if !name.starts_with("lfs") {
            until("the space is free again", || free() == before);
        }
        place.umount();
        place.is_clean();
    }
}

/// Random writes, reads, cuts and extensions of one file, also through a mapping's cache, beside the same in memory
/// (what fsx does).
#[test]
fn random_operations_on_a_file_agree_with_memory() {
    if !need(Need::Fuse) {
        return;
    }
    for (seed, (name, make, source)) in (1..).zip(SYSTEMS) {
        let place = Place::new(make, source);
        let mnt = place.mount(&["--cache", "8M"]);
        let path = mnt.join("file");
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let mut model: Vec<u8> = Vec::new();
        let mut random = random(seed);
        for step in 0..3000 {
            let draw = random.next_u64();
            let at = (draw >> 8) as usize % (1 << 20);
            let len = 1 + (random.next_u64() as usize >> 8) % 60_000;
            match draw % 10 {
                0..4 => {
                    let bytes = bytes_of(draw, len);
                    file.write_all_at(&bytes, at as u64).unwrap();
                    model.resize(model.len().max(at + len), 0);
                    model[at..at + len].copy_from_slice(&bytes);
                }
                4..7 => {
                    let mut bytes = vec![0; len];
                    let n = file.read_at(&mut bytes, at as u64).unwrap();
                    let expected = model.get(at.min(model.len())..(at + len).min(model.len())).unwrap();
                    assert!(bytes[..n] == *expected, "{name}: seed {seed}, step {step}: {len} bytes at {at}");
                }
                7 => {
                    file.set_len(at as u64).unwrap();
                    model.resize(at, 0);
                }
                8 => file.sync_data().unwrap(),
                _ => {
                    drop(file);
                    file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
                    assert_eq!(file.metadata().unwrap().len(), model.len() as u64, "{name}: seed {seed}, step {step}");
                }
            }
        }
        drop(file);
        place.umount();
        place.is_clean();
        let mnt = place.mount(&["--read-only"]);
        assert!(fs::read(mnt.join("file")).unwrap() == model, "{name}: seed {seed}: after a remount");
        place.umount();
    }
}

#[test]
fn an_image_in_use_is_locked_and_one_that_is_read_stays_as_it_is() {
    if !need(Need::Fuse) {
        return;
    }
    for (name, make, source) in SYSTEMS {
        let place = Place::new(make, source);
        let before = fs::read(place.at().join("disk.img")).unwrap();
        fs::create_dir(place.at().join("other")).unwrap();
        let mnt = place.mount(&["--read-only"]);
        // Several may read.
        succeeds(&run(place.at(), &["mount", "--read-only", &place.source, "other"]));
        fails(&run(place.at(), &["mount", &place.source, "other"]), 3, &["disk.img", "in use"]);
        assert_eq!(fs::write(mnt.join("x"), "").unwrap_err().raw_os_error(), Some(30), "{name}: EROFS");
        succeeds(&run(place.at(), &["umount", "other"]));
        place.umount();
        assert!(fs::read(place.at().join("disk.img")).unwrap() == before, "{name}");
        place.mount(&[]);
        for options in [&["--read-only"][..], &[]] {
            fails(&run(place.at(), &[&["mount"], options, &[&place.source, "other"]].concat()), 3, &["in use"]);
        }
        // A repair in place wrote below a mounted file system.
        if !name.starts_with("lfs") {
            fails(
                &run(place.at(), &["fsck", "disk.img", "--repair", "--in-place"]),
                3,
                &["disk.img", "in use", "umount"],
            );
            fs::write(place.at().join("old.undo"), "").unwrap();
            fails(&run(place.at(), &["fsck", "disk.img", "--revert", "old.undo"]), 3, &["disk.img", "in use"]);
        }
        place.umount();
        place.is_clean();
    }
}

#[test]
fn what_cannot_be_mounted_or_unmounted_says_why() {
    if !need(Need::Fuse) {
        return;
    }
    let place = Place::new(SYSTEMS[0].1, "IMAGE");
    let at = place.at();
    fs::write(at.join("text"), "no file system").unwrap();
    fails(&run(at, &["mount", "text", "mnt"]), 4, &["text"]);
    fails(&run(at, &["mount", "none.img", "mnt"]), 4, &["none.img"]);
    fails(&run(at, &["mount", "disk.img", "text"]), 3, &["text"]);
    fails(&run(at, &["mount", "lfs:image=disk.img", "mnt"]), 2, &["log-structured"]);
    fails(&run(at, &["mount", "ffs:none", "mnt"]), 2, &["'none' is no option"]);
    fails(&run(at, &["umount", "mnt"]), 2, &["no file system of fsage"]);
    assert!(!place.is_mounted());
    place.is_clean();
    // In use: it stays mounted.
    let mnt = place.mount(&[]);
    let file = File::create(mnt.join("file")).unwrap();
    fails(&run(at, &["umount", "mnt"]), 3, &["is in use"]);
    assert!(place.is_mounted());
    drop(file);
    place.umount();
}

/// As in a container that was not given the device: the image is not touched.
#[test]
fn without_fuse_the_device_is_named_and_what_to_do() {
    if !need(Need::Root) || !need(Need::Mount) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    succeeds(&run(at, &["mkfs", "ffs", "disk.img", "--size", "8M"]));
    fs::create_dir(at.join("mnt")).unwrap();
    let before = fs::read(at.join("disk.img")).unwrap();
    let script = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && exec \"$0\" mount \"$@\"";
    for options in [&["--foreground"][..], &[]] {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script, env!("CARGO_BIN_EXE_fsage")]);
        let output = command.args(options).args(["disk.img", "mnt"]).current_dir(at).output().unwrap();
        fails(&output, 3, &["/dev/fuse", "modprobe fuse", "--device /dev/fuse"]);
    }
    assert!(fs::read(at.join("disk.img")).unwrap() == before);
}

#[test]
fn a_new_file_system_in_memory_is_mounted_and_goes() {
    if !need(Need::Fuse) {
        return;
    }
    for target in ["ffs:noorder,size=16M", "ffs:softdep,size=16M", "ffs:journal=async,size=16M", "lfs:size=16M"] {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("mnt")).unwrap();
        succeeds(&run(dir.path(), &["mount", target, "mnt"]));
        fs::write(dir.path().join("mnt/file"), "text").unwrap();
        assert_eq!(fs::read(dir.path().join("mnt/file")).unwrap(), b"text");
        succeeds(&run(dir.path(), &["umount", "mnt"]));
        assert!(!dir.path().join("mnt/file").exists());
        assert_eq!(common::names(dir.path()), ["mnt"]);
    }
}

/// Further signals, while it was written back, ended the server: files were empty, and fsck found damage.
#[test]
fn a_signal_unmounts_cleanly() {
    if !need(Need::Fuse) {
        return;
    }
    for (signal, (name, make, source)) in ["INT", "TERM"].into_iter().cycle().zip(SYSTEMS) {
        let place = Place::new(make, source);
        let server = place.serve(&[]);
        fs::write(place.mnt().join("file"), bytes_of(3, 3_000_000)).unwrap();
        for signal in [signal, "HUP", "INT", "TERM"] {
            server.signal(signal);
        }
        let output = server.output();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!place.is_mounted());
        place.is_clean();
        place.mount(&["--read-only"]);
        assert!(fs::read(place.mnt().join("file")).unwrap() == bytes_of(3, 3_000_000), "{name}");
        place.umount();
    }
}

/// The parent of a server in the background ended, and the server mounted afterwards.
#[test]
fn a_signal_before_it_is_mounted_leaves_nothing_mounted() {
    if !need(Need::Fuse) {
        return;
    }
    let moments = [5, 10, 20, 40, 80, 160];
    // One that ignores SIGTERM lets its child ignore it, too.
    let signals: [(&str, &[&str]); 3] = [("", &["TERM"]), ("", &["INT", "TERM", "INT"]), ("trap '' TERM;", &["INT"])];
    for (after_ms, (ignores, signals)) in moments.into_iter().flat_map(|at| signals.map(|signals| (at, signals))) {
        let place = Place::new(&["mkfs", "ffs", "--size", "64M"], "ffs:softdep,image=IMAGE");
        let mut command = testkit::process::with_default_signals("sh");
        command.args(["-c", &format!("{ignores} exec \"$@\""), "sh", env!("CARGO_BIN_EXE_fsage")]);
        command.args(["mount", &place.source, "mnt"]).current_dir(place.at());
        let running = Running::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
        std::thread::sleep(Duration::from_millis(after_ms));
        signals.iter().for_each(|signal| running.signal(signal));
        let status = running.ends();
        // Before it has begun, a signal ends it as any program.
        assert_eq!(place.is_mounted(), status.success(), "{status}, {ignores}{signals:?} after {after_ms} ms");
        if status.success() {
            place.umount();
        }
        place.is_clean();
    }
}

/// What a process had put onto stable storage is there whenever the server is killed; the rest is repaired, and the
/// dead mount is taken away by whatever is run next.
#[test]
fn killed_at_any_time_it_leaves_what_fsck_repairs() {
    if !need(Need::Fuse) {
        return;
    }
    for (name, make, source) in SYSTEMS {
        for round in 0..3_u64 {
            let place = Place::new(make, source);
            let server = place.serve(&[]);
            let mnt = place.mnt();
            let synced = bytes_of(round, 200_000);
            fs::create_dir(mnt.join("kept")).unwrap();
            let file = File::create(mnt.join("kept/file")).unwrap();
            (&file).write_all(&synced).unwrap();
            file.sync_all().unwrap();
            for directory in ["kept", ""] {
                File::open(mnt.join(directory)).unwrap().sync_all().unwrap();
            }
            for n in 0..100 * round {
                fs::create_dir(mnt.join(format!("d{n}"))).unwrap();
                fs::write(mnt.join(format!("d{n}/file")), bytes_of(n, (n * 177) as usize)).unwrap();
                if n % 3 == 0 {
                    fs::remove_dir_all(mnt.join(format!("d{}", n / 2))).unwrap_or_default();
                }
            }
            server.signal("KILL");
            server.ends();
            drop(file);
            // Any command sweeps the dead mount; that of another test may have begun before, and not be done.
            succeeds(&run(place.at(), &["drive", "list"]));
            until(&format!("{name}: the dead mount is gone"), || !place.is_mounted());
            let replayed = source.contains("journal=") || source.contains("+j");
            if !replayed && !name.starts_with("lfs") {
                let repaired = run(place.at(), &["fsck", "disk.img", "--repair", "--in-place"]);
                assert!([0, 1].contains(&common::code(&repaired)), "{name}: {}", common::stderr(&repaired));
            }
            if !replayed {
                place.is_clean();
            }
            place.mount(&[]);
            assert!(fs::read(mnt.join("kept/file")).unwrap() == synced, "{name}, round {round}: synced and lost");
            fs::write(mnt.join("more"), "more").unwrap();
            place.umount();
            place.is_clean();
        }
    }
}

/// A sweep in a mount namespace that was made before did not see the mount, took it for gone and forgot it: it stayed,
/// dead, and no later command took it down. Seen in a suite whose other tests run commands in namespaces of their own.
#[test]
fn a_dead_mount_is_left_to_those_who_see_it() {
    if !need(Need::Fuse) || !need(Need::Mount) {
        return;
    }
    let (_, make, source) = SYSTEMS[0];
    let place = Place::new(make, source);
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", "read go && exec \"$0\" drive list"]);
    command.arg(env!("CARGO_BIN_EXE_fsage")).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut elsewhere = Running::start(&mut command);
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).unwrap();
    until("it is elsewhere", || namespace(&elsewhere.pid().to_string()) != namespace("self"));
    let server = place.serve(&[]);
    server.signal("KILL");
    server.ends();
    elsewhere.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(elsewhere.ends().success());
    succeeds(&run(place.at(), &["drive", "list"]));
    until("the dead mount is gone", || !place.is_mounted());
}

/// A killed mount of Soft Updates is used at once, and what the crash has left is given back beside that. The full
/// check is the judge: it finds something before, and nothing after.
#[test]
fn a_killed_mount_of_soft_updates_is_checked_beside_the_next_one() {
    if !need(Need::Fuse) {
        return;
    }
    let (mut given_back, mut round) = (0, 0_u64);
    // Where others have the processors, all of it may be on the disk before it is killed: then there is nothing to see.
    for _ in 0..20 {
        if round == 4 {
            break;
        }
        let place = Place::new(&["mkfs", "ffs", "--size", "64M"], "ffs:softdep,image=IMAGE");
        let server = place.serve(&[]);
        let mnt = place.mnt();
        let kept = bytes_of(round, 200_000);
        let synced = |path: PathBuf, bytes: &[u8]| {
            let file = File::create(path).unwrap();
            (&file).write_all(bytes).unwrap();
            file.sync_all().unwrap();
        };
        synced(mnt.join("kept"), &kept);
        for n in 0..300 {
            fs::create_dir(mnt.join(format!("d{n}"))).unwrap();
            synced(mnt.join(format!("d{n}/file")), &bytes_of(n, (n * 177) as usize));
        }
        // All of it is on the disk; what is removed from now on is only partly.
        for n in 0..200 {
            fs::remove_dir_all(mnt.join(format!("d{n}"))).unwrap();
            // Names go to the disk with that of a new file, what they led to does not yet.
            if n % 50 == round {
                synced(mnt.join(format!("s{n}")), b"");
            }
        }
        server.signal("KILL");
        server.ends();
        succeeds(&run(place.at(), &["drive", "list"]));
        let damaged = run(place.at(), &["fsck", "disk.img"]);
        if common::code(&damaged) == 0 {
            continue;
        }
        assert_eq!(common::code(&damaged), 1, "{}", common::stderr(&damaged));

        place.mount(&["--log", "log"]);
        let log = || fs::read_to_string(place.at().join("log")).unwrap_or_default();
        let mut n = 0;
        until("the check in the background has ended", || {
            // Beside it somebody works.
            fs::write(mnt.join(format!("new{n}")), bytes_of(n, 5_000)).unwrap();
            n += 1;
            log().contains("in the background")
        });
        assert!(log().contains("checked in the background"), "{}", log());
        given_back += u32::from(log().contains("given back"));
        assert!(fs::read(mnt.join("kept")).unwrap() == kept, "round {round}");
        for n in 200..300 {
            let file = fs::read(mnt.join(format!("d{n}/file"))).unwrap();
            assert!(file == bytes_of(n, (n * 177) as usize), "round {round}: d{n}/file");
        }
        for n in 0..n {
            assert!(fs::read(mnt.join(format!("new{n}"))).unwrap() == bytes_of(n, 5_000), "round {round}: new{n}");
        }
        place.umount();
        place.is_clean();
        // Nobody has to look any more.
        place.mount(&["--log", "second"]);
        place.umount();
        let second = fs::read_to_string(place.at().join("second")).unwrap_or_default();
        // Any run may find what others have left.
        assert!(second.lines().all(|line| line.ends_with("left by a run that was killed")), "{second}");
        round += 1;
    }
    assert!(given_back > 0, "no crash has left anything");
}

/// Unmounted before the check has ended, it is one that nobody has checked, and the next mount begins again.
#[test]
fn a_check_that_is_cut_short_begins_again() {
    if !need(Need::Fuse) {
        return;
    }
    let place = Place::new(&["mkfs", "ffs", "--size", "256M"], "ffs:softdep,image=IMAGE");
    let server = place.serve(&[]);
    for n in 0..2_000 {
        fs::write(place.mnt().join(format!("f{n}")), "content").unwrap();
    }
    File::open(place.mnt().join("f0")).unwrap().sync_all().unwrap();
    server.signal("KILL");
    server.ends();
    succeeds(&run(place.at(), &["drive", "list"]));
    // However far it has come.
    place.mount(&[]);
    place.umount();
    place.mount(&["--log", "log"]);
    let log = || fs::read_to_string(place.at().join("log")).unwrap_or_default();
    let first = fs::read(place.mnt().join("f0")).unwrap();
    let dirty = common::code(&run(place.at(), &["fsck", "disk.img"]));
    if dirty != 0 {
        until("the check in the background has ended", || log().contains("checked in the background"));
    }
    assert_eq!(first, b"content");
    place.umount();
    place.is_clean();
}

#[test]
fn permissions_are_those_of_the_files() {
    if !need(Need::Fuse) {
        return;
    }
    let Some(setpriv) = tool(Tool::Setpriv) else { return };
    let place = Place::new(SYSTEMS[0].1, "IMAGE");
    let mnt = place.mount(&[]);
    fs::set_permissions(place.at(), fs::Permissions::from_mode(0o755)).unwrap();
    let as_nobody = |script: &str| {
        let mut command = Command::new(&setpriv);
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--", "sh", "-c", script]).current_dir(&mnt);
        command.output().unwrap()
    };
    fs::write(mnt.join("secret"), "secret").unwrap();
    fs::set_permissions(mnt.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(!as_nobody("cat secret").status.success());
    assert!(!as_nobody("touch file").status.success(), "the root directory is root's");
    fs::create_dir(mnt.join("all")).unwrap();
    fs::set_permissions(mnt.join("all"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(mnt.join("all/roots"), "").unwrap();
    let made = as_nobody("cd all && echo text >mine && mkdir dir && ln -s mine link && mkfifo pipe && cat mine");
    assert_eq!(String::from_utf8_lossy(&made.stdout), "text\n", "{}", String::from_utf8_lossy(&made.stderr));
    for name in ["mine", "dir", "link", "pipe"] {
        let meta = fs::symlink_metadata(mnt.join("all").join(name)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (65534, 65534), "{name}");
    }
    assert!(!as_nobody("rm -f all/roots").status.success(), "a sticky directory");
    // A write takes the set-id bits away.
    assert!(as_nobody("chmod 6755 all/mine && echo more >>all/mine").status.success());
    assert_eq!(fs::metadata(mnt.join("all/mine")).unwrap().mode() & 0o7777, 0o755);
    // A directory's group is inherited.
    fs::create_dir(mnt.join("group")).unwrap();
    std::os::unix::fs::chown(mnt.join("group"), None, Some(7)).unwrap();
    fs::set_permissions(mnt.join("group"), fs::Permissions::from_mode(0o2777)).unwrap();
    assert!(as_nobody("mkdir group/dir && touch group/file").status.success());
    let of = |name: &str| fs::metadata(mnt.join("group").join(name)).map(|m| (m.gid(), m.mode() & 0o2000)).unwrap();
    assert_eq!((of("dir"), of("file")), ((7, 0o2000), (7, 0)));
    place.umount();
    place.is_clean();
}

#[test]
fn fio_finds_every_byte_that_it_wrote() {
    if !need(Need::Fuse) {
        return;
    }
    let Some(fio) = tool(Tool::Fio) else { return };
    for (name, make, source) in SYSTEMS {
        let place = Place::new(make, source);
        let mnt = place.mount(&[]);
        let mut command = Command::new(&fio);
        command.args(["--name=v", "--size=8m", "--rw=randwrite", "--bs=4k-64k", "--verify=crc32c", "--verify_fatal=1"]);
        command.args(["--ioengine=psync", "--randseed=7"]).arg(format!("--directory={}", mnt.display()));
        let output = command.current_dir(place.at()).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        place.umount();
        place.is_clean();
    }
}

#[test]
fn a_full_file_system_says_so_and_stays_whole() {
    if !need(Need::Fuse) {
        return;
    }
    for (name, make, source) in SYSTEMS {
        let small: Vec<&str> = make.iter().map(|word| if word.ends_with('M') { "8M" } else { word }).collect();
        let place = Place::new(&small, source);
        let mnt = place.mount(&[]);
        let mut made = 0;
        let error = loop {
            assert!(made < 10_000, "{name}: it is never full");
            if let Err(error) = fs::write(mnt.join(format!("f{made}")), bytes_of(made, 50_000)) {
                break error;
            }
            made += 1;
        };
        assert_eq!(error.raw_os_error(), Some(28), "{name}: ENOSPC: {error}");
        for n in 0..made {
            assert!(fs::read(mnt.join(format!("f{n}"))).unwrap() == bytes_of(n, 50_000), "{name}: {n} of {made}");
        }
        for n in 0..made / 2 {
            fs::remove_file(mnt.join(format!("f{n}"))).unwrap();
        }
        until("there is room again", || fs::write(mnt.join("again"), bytes_of(1, 50_000)).is_ok());
        place.umount();
        place.is_clean();
    }
}

#[test]
fn a_directory_is_listed_whole_while_it_is_emptied() {
    if !need(Need::Fuse) {
        return;
    }
    for (name, make, source) in SYSTEMS {
        let place = Place::new(make, source);
        let mnt = place.mount(&[]);
        fs::create_dir(mnt.join("many")).unwrap();
        for n in 0..2000 {
            File::create(mnt.join(format!("many/file-{n}"))).unwrap();
        }
        assert_eq!(common::names(&mnt.join("many")).len(), 2000, "{name}");
        for entry in fs::read_dir(mnt.join("many")).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        fs::remove_dir(mnt.join("many")).unwrap();
        place.umount();
        place.is_clean();
    }
}

/// What the image refuses the caller gets as EIO; which place of which file it was is in the log.
#[test]
fn what_the_image_refuses_is_told_with_its_place() {
    if !need(Need::Fuse) {
        return;
    }
    for (name, make, source) in SYSTEMS {
        let place = Place::new(make, source);
        let mnt = place.mount(&[]);
        fs::write(mnt.join("file"), bytes_of(1, 8 << 20)).unwrap();
        place.umount();
        let mnt = place.mount(&["--read-only", "--log", "log"]);
        // Somebody cuts the image under it.
        OpenOptions::new().write(true).open(place.at().join("disk.img")).unwrap().set_len(1 << 20).unwrap();
        let error = fs::read(mnt.join("file")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(5), "{name}: EIO: {error}");
        let said = fs::read_to_string(place.at().join("log")).unwrap();
        assert!(said.contains("disk.img: cannot read") && said.contains("at byte"), "{name}: {said}");
        place.umount();
    }
}

/// The file of a snapshot is an image of the disk as it was, through the mount and out of the image.
/// A host disk that fills up below a sparse image: nothing is lost in silence, nothing is written after what could not
/// be, and what was synced before is there once the image is recovered as after a crash.
#[test]
fn an_image_that_cannot_be_written_stays_as_a_crash_leaves_it() {
    if !testkit::needs(&[Need::Fuse, Need::Mount]) {
        return;
    }
    let mut no_log = 0;
    for (name, make, source) in SYSTEMS {
        // However much there is room for: what fails first differs.
        for room in [300 << 10, 700 << 10, 1100 << 10] {
            let what = format!("{name}, room for {room}");
            let place = Place::new(make, source);
            if room > 300 << 10 {
                // A log is made, where there is to be one.
                place.mount(&[]);
                place.umount();
            }
            let small = place.at().join("small");
            fs::create_dir(&small).unwrap();
            let tmpfs = |options: &str| {
                let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&small).status();
                assert!(mounted.unwrap().success());
            };
            tmpfs("size=64M");
            let _small = Unmounted(small.clone());
            let image = small.join("disk.img");
            // Holes stay holes.
            let copied =
                Command::new("cp").arg("--sparse=always").args([&place.at().join("disk.img"), &image]).status();
            assert!(copied.unwrap().success());
            let used = fs::metadata(&image).unwrap().blocks() * 512;
            tmpfs(&format!("remount,size={}", used + room));
            let source = source.replace("IMAGE", "small/disk.img");
            let mounted = run(place.at(), &["mount", "--log", "log", &source, "mnt"]);
            let mut synced = Vec::new();
            if common::code(&mounted) == 0 {
                for n in 0..30 {
                    let write = || {
                        let file = File::create(place.mnt().join(format!("f{n}")))?;
                        (&file).write_all(&bytes_of(n, 60_000))?;
                        if n % 2 == 0 {
                            file.sync_all().and_then(|()| File::open(place.mnt())?.sync_all())
                        } else {
                            Ok(())
                        }
                    };
                    match write() {
                        Ok(()) if n % 2 == 0 => synced.push(n),
                        _ => {}
                    }
                }
                let refused = run(place.at(), &["umount", "mnt"]);
                assert_eq!(common::code(&refused), 3, "{what}: {}", common::stderr(&refused));
                assert!(place.is_mounted() && common::stderr(&refused).contains("--force"), "{what}");
                assert!(fs::write(place.mnt().join("late"), "late").is_err(), "{what}");
                succeeds(&run(place.at(), &["umount", "--force", "mnt"]));
                let said = fs::read_to_string(place.at().join("log")).unwrap();
                assert!(said.contains("small/disk.img: cannot write"), "{what}: {said}");
            }
            // With room again.
            tmpfs("remount,size=64M");
            let replayed = ["journal=", "softdep"].iter().any(|word| source.contains(word)) || name.starts_with("lfs");
            // Without room for a log it was not mounted.
            let cut_short = common::code(&mounted) != 0;
            no_log += u32::from(cut_short);
            if !replayed || cut_short {
                let repaired = run(place.at(), &["fsck", "small/disk.img", "--repair", "--in-place"]);
                assert!([0, 1].contains(&common::code(&repaired)), "{what}: {}", common::stderr(&repaired));
            }
            succeeds(&run(place.at(), &["mount", &source, "mnt"]));
            for n in synced {
                let there = fs::read(place.mnt().join(format!("f{n}"))).unwrap_or_default();
                assert!(there == bytes_of(n, 60_000), "{what}: f{n} was synced");
            }
            fs::write(place.mnt().join("last"), bytes_of(99, 200_000)).unwrap();
            place.umount();
            succeeds(&run(place.at(), &["fsck", "small/disk.img"]));
        }
    }
    assert!(no_log > 0, "a log was never cut short while it was made");
}

/// Unmounts when it goes.
struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// What has been dirty for five seconds is on the disk though nobody calls any more, in every mode; and so is the whole
/// at once, if the root is synced.
#[test]
fn an_idle_mount_writes_everything() {
    if !need(Need::Fuse) {
        return;
    }
    for synced in [true, false] {
        let mut mounted = Vec::new();
        for (name, make, source) in SYSTEMS {
            let place = Place::new(make, source);
            let server = place.serve(&[]);
            let below = place.mnt().join("d/e");
            fs::create_dir_all(&below).unwrap();
            for n in 0..5 {
                fs::write(below.join(format!("f{n}")), bytes_of(n, 50_000)).unwrap();
            }
            fs::remove_file(below.join("f4")).unwrap();
            if synced {
                File::open(place.mnt()).unwrap().sync_all().unwrap();
            }
            mounted.push((name, place, server, SystemTime::now()));
        }
        for (name, place, server, since) in mounted {
            if !synced {
                // The image alone says when it is done: it was written since, and then not any more. What is never
                // written is found missing.
                let written = || fs::metadata(place.at().join("disk.img")).unwrap().modified().unwrap();
                until("it was written, and then not for six seconds", || {
                    written() > since && written().elapsed().is_ok_and(|quiet| quiet.as_secs() >= 6)
                });
            }
            server.signal("KILL");
            server.ends();
            succeeds(&run(place.at(), &["drive", "list"]));
            let replayed = ["journal=", "softdep"].iter().any(|word| place.source.contains(word));
            if !replayed && !name.starts_with("lfs") {
                let repaired = run(place.at(), &["fsck", "disk.img", "--repair", "--in-place"]);
                assert!([0, 1].contains(&common::code(&repaired)), "{name}: {}", common::stderr(&repaired));
            }
            place.mount(&[]);
            let below = place.mnt().join("d/e");
            for n in 0..4 {
                let there = fs::read(below.join(format!("f{n}"))).unwrap_or_default();
                assert!(there == bytes_of(n, 50_000), "{name}, synced {synced}: f{n}");
            }
            assert!(!below.join("f4").exists(), "{name}");
            place.umount();
            place.is_clean();
        }
    }
}

#[test]
fn a_snapshot_stays_as_it_was() {
    if !need(Need::Fuse) {
        return;
    }
    let place = Place::new(&["mkfs", "ffs", "--size", "16M"], "ffs:softdep,image=IMAGE");
    let mnt = place.mount(&[]);
    fs::write(mnt.join("a"), vec![b'a'; 100_000]).unwrap();
    fs::write(mnt.join("gone"), vec![b'g'; 300_000]).unwrap();
    place.umount();
    let mnt = place.mount(&["--snapshot", "today"]);
    fs::write(mnt.join("a"), vec![b'b'; 120_000]).unwrap();
    fs::remove_file(mnt.join("gone")).unwrap();
    fs::write(mnt.join("new"), vec![b'n'; 1_000_000]).unwrap();
    let live = fs::read(mnt.join(".snap/today")).unwrap();
    assert!(OpenOptions::new().write(true).open(mnt.join(".snap/today")).and_then(|file| file.set_len(0)).is_err());
    place.umount();
    place.is_clean();
    succeeds(&run(place.at(), &["cp", "disk.img:/.snap/today", "."]));
    assert!(fs::read(place.at().join("today")).unwrap() == live, "the same through the mount and out of the image");
    succeeds(&run(place.at(), &["fsck", "today"]));
    fs::write(place.at().join("more"), vec![b'm'; 400_000]).unwrap();
    succeeds(&run(place.at(), &["cp", "more", "disk.img:/"]));
    place.is_clean();
    fs::create_dir(place.at().join("later")).unwrap();
    succeeds(&run(place.at(), &["cp", "disk.img:/.snap/today", "later"]));
    assert!(fs::read(place.at().join("later/today")).unwrap() == live, "copying into the image keeps it, too");
    fs::create_dir(place.at().join("then")).unwrap();
    succeeds(&run(place.at(), &["cp", "today:/a", "today:/gone", "then"]));
    assert_eq!(fs::read(place.at().join("then/a")).unwrap(), vec![b'a'; 100_000]);
    assert_eq!(fs::read(place.at().join("then/gone")).unwrap(), vec![b'g'; 300_000]);
    let again = run(place.at(), &["mount", "--snapshot", "again", "ffs:softdep,image=disk.img", "mnt"]);
    fails(&again, 3, &["snapshot"]);
    place.is_clean();
    let mnt = place.mount(&[]);
    fs::remove_file(mnt.join(".snap/today")).unwrap();
    place.umount();
    place.is_clean();
}

/// One for which there is no room any more is given up. The kernel had its size in memory for a day.
#[test]
fn a_snapshot_that_is_given_up_is_empty_at_once() {
    if !need(Need::Fuse) {
        return;
    }
    let place = Place::new(&["mkfs", "ffs", "--size", "8M"], "ffs:softdep,image=IMAGE");
    let mnt = place.mount(&[]);
    fs::write(mnt.join("a"), vec![b'a'; 4_000_000]).unwrap();
    place.umount();
    let mnt = place.mount(&["--snapshot", "today"]);
    let len = || fs::metadata(mnt.join(".snap/today")).unwrap().len();
    assert!(len() > 4_000_000);
    // Blocks of `a` are kept as they were until nothing is free.
    fs::write(mnt.join("b"), vec![b'b'; 2_500_000]).unwrap();
    let a = OpenOptions::new().write(true).open(mnt.join("a")).unwrap();
    a.write_all_at(&vec![b'c'; 4_000_000], 0).unwrap();
    a.sync_all().unwrap();
    assert_eq!(len(), 0);
    assert_eq!(fs::read(mnt.join(".snap/today")).unwrap(), b"");
    drop(a);
    place.umount();
    place.is_clean();
}
