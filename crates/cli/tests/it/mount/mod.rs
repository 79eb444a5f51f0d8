//! `fsage mount` and `fsage umount`: the kernel as the judge of the mounted file systems, `fsage fsck` of what they
//! leave.
//!
//! validation/mount.sh does more of the same, with suites of others, for longer.

mod ends;
mod server;

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
        succeeds(&common::umount(self.at(), &["mnt"]));
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
        succeeds(&common::umount(place.at(), &["other"]));
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
        succeeds(&common::umount(dir.path(), &["mnt"]));
        assert!(!dir.path().join("mnt/file").exists());
        assert_eq!(common::names(dir.path()), ["mnt"]);
    }
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
