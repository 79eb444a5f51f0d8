//! How a mount ends: by signals, by being killed, with an image that cannot be written. What is there afterwards is
//! what a crash may leave, and what had been put onto stable storage is never lost.

use super::{Place, SYSTEMS, bytes_of};
use crate::common;
use crate::common::process::{Running, until};
use crate::common::{run, succeeds};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use testkit::{Need, need};

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
        assert!(second.lines().all(common::is_of_another_run), "{second}");
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
                let refused = common::umount(place.at(), &["mnt"]);
                assert_eq!(common::code(&refused), 3, "{what}: {}", common::stderr(&refused));
                assert!(place.is_mounted() && common::stderr(&refused).contains("--force"), "{what}");
                assert!(fs::write(place.mnt().join("late"), "late").is_err(), "{what}");
                succeeds(&common::umount(place.at(), &["--force", "mnt"]));
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

impl Place {
    /// Another place with a copy of the image as it is now: what a crash would leave.
    fn copy(&self) -> Place {
        let copy = Place { dir: tempfile::tempdir().unwrap(), source: self.source.clone() };
        fs::copy(self.at().join("disk.img"), copy.at().join("disk.img")).unwrap();
        fs::create_dir(copy.mnt()).unwrap();
        copy
    }

    /// Repairs what has neither a log nor Soft Updates.
    fn recover(&self, name: &str) -> Result<(), String> {
        let replayed = ["journal=", "softdep"].iter().any(|word| self.source.contains(word));
        if replayed || name.starts_with("lfs") {
            return Ok(());
        }
        let repaired = run(self.at(), &["fsck", "disk.img", "--repair", "--in-place"]);
        if [0, 1].contains(&common::code(&repaired)) { Ok(()) } else { Err(common::stderr(&repaired)) }
    }

    /// What [`an_idle_mount_writes_everything`] writes.
    fn write_some(&self) {
        let below = self.mnt().join("d/e");
        fs::create_dir_all(&below).unwrap();
        for n in 0..5 {
            fs::write(below.join(format!("f{n}")), bytes_of(n, 50_000)).unwrap();
        }
        fs::remove_file(below.join("f4")).unwrap();
    }

    /// Mounts it, looks whether all of that is there, and unmounts it.
    fn holds_what_was_written(&self) -> Result<(), String> {
        let mounted = run(self.at(), &["mount", &self.source, "mnt"]);
        if !mounted.status.success() {
            return Err(common::stderr(&mounted));
        }
        let below = self.mnt().join("d/e");
        let missing: Vec<u64> = (0..4)
            .filter(|&n| fs::read(below.join(format!("f{n}"))).unwrap_or_default() != bytes_of(n, 50_000))
            .collect();
        let is_removed = !below.join("f4").exists();
        let unmounted = common::umount(self.at(), &["mnt"]);
        match (unmounted.status.success(), missing.is_empty() && is_removed) {
            (true, true) => Ok(()),
            (true, false) => Err(format!("not there: {missing:?}; f4 removed: {is_removed}")),
            (false, _) => Err(common::stderr(&unmounted)),
        }
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
            place.write_some();
            if synced {
                File::open(place.mnt()).unwrap().sync_all().unwrap();
            }
            mounted.push((name, place, server));
        }
        for (name, place, server) in mounted {
            if !synced {
                // No time at which it has been written can be named: where others have the machine, a write takes
                // seconds.
                until("a copy of the image holds everything", || {
                    std::thread::sleep(Duration::from_millis(200));
                    let copy = place.copy();
                    copy.recover(name).is_ok_and(|()| copy.holds_what_was_written().is_ok())
                });
            }
            server.signal("KILL");
            server.ends();
            succeeds(&run(place.at(), &["drive", "list"]));
            place.recover(name).and_then(|()| place.holds_what_was_written()).unwrap_or_else(|problem| {
                panic!("{name}, synced {synced}: {problem}");
            });
            place.is_clean();
        }
    }
}
