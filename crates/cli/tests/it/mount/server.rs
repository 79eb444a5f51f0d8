//! The process that serves a mount and the one that has started it: what each waits for, and what the user is told.
//! Nobody who does not read, answer or go on holds either of them up.

use super::{Place, bytes_of};
use crate::common::process::{Running, status_field, until};
use crate::common::{fails, run, stderr, succeeds};
use std::fs;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::{Need, need};

/// A pipe that nobody reads, and that takes no more.
fn unread() -> (PipeReader, PipeWriter) {
    let (reader, mut full) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while full.write(&[0; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    (reader, full)
}

/// A command of ours in a directory; of what it writes messages can be had.
fn fsage(at: &Path, args: &[&str]) -> Command {
    let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
    command.args(args).current_dir(at).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Runs a script with mounts and a list of the clean-up of its own: others would be told of what is in theirs, too. Its
/// standard input is a pipe that nobody reads, to be written to as `2>&0`.
fn apart(directory: &Path, script: &str) {
    let script = format!("mkdir -p /run/fsage && mount -t tmpfs list /run/fsage || exit 9\n{script}\nexit 0");
    let (_reader, full) = unread();
    let mut command = testkit::process::with_default_signals("unshare");
    command.args(["-m", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_fsage")]).current_dir(directory);
    let output = Running::start(command.stdin(full).stdout(Stdio::piped()).stderr(Stdio::piped())).output();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    succeeds(&output);
}

/// What was to say why nothing is mounted waited for its reader, and no signal ended it.
#[test]
fn a_mount_that_fails_ends_though_nobody_reads_why() {
    if !need(Need::Fuse) {
        return;
    }
    let d = tempfile::tempdir().unwrap();
    fs::write(d.path().join("text"), "no file system").unwrap();
    fs::create_dir(d.path().join("mnt")).unwrap();
    let (_errors, full) = unread();
    let mount = Running::start(fsage(d.path(), &["mount", "text", "mnt"]).stderr(full));
    assert_eq!(mount.ends().code(), Some(4));
}

/// The same of what any command says when it fails.
#[test]
fn an_unmounting_that_fails_ends_though_nobody_reads_why() {
    let d = tempfile::tempdir().unwrap();
    let (_errors, full) = unread();
    let umount = Running::start(fsage(d.path(), &["umount", "."]).stderr(full));
    assert_eq!(umount.ends().code(), Some(2));
}

/// No command began where a dead mount was to be told of and nobody read that.
#[test]
fn a_command_begins_though_nobody_reads_what_it_has_swept() {
    if !need(Need::Fuse) || !need(Need::Mount) {
        return;
    }
    let d = tempfile::tempdir().unwrap();
    let script = r#"
        "$1" mkfs ffs disk.img --size 8M && mkdir mnt || exit 10
        "$1" mount --foreground disk.img mnt </dev/null & server=$!
        until mountpoint -q mnt; do kill -0 $server || exit 11; sleep 0.05; done
        kill -KILL $server; wait $server
        grep -q "$PWD/mnt fuse.fsage" /proc/self/mounts || exit 12
        timeout -s KILL 200 "$1" mkfs ffs new.img --size 8M 2>&0 </dev/null || exit 13
        grep "$PWD/mnt " /proc/self/mounts && exit 14
        "$1" fsck new.img </dev/null || exit 15
    "#;
    apart(d.path(), script);
}

/// The server waited for room in the pipe to its caller, which waited for it to say that it is mounted. More than a
/// pipe holds is passed on whole to a reader who reads.
#[test]
fn a_server_may_say_more_than_a_pipe_holds_before_it_has_mounted() {
    if !need(Need::Fuse) || !need(Need::Mount) {
        return;
    }
    let d = tempfile::tempdir().unwrap();
    // What cannot be swept is told by each run: by the caller itself, and by the server.
    let script = r#"
        "$1" mkfs ffs disk.img --size 8M && mkdir mnt && echo none >text || exit 10
        name=$(printf 'x%.0s' $(seq 200))
        for n in $(seq 400); do echo none >/run/fsage/$n-$name.json; done
        # Where others have the processors, the caller may not read for a second: that is taken for nobody.
        for round in $(seq 20); do
            timeout -s KILL 200 "$1" mount text mnt 2>said </dev/null; [ $? = 4 ] || exit 11
            [ "$(grep -c '^fsage: .*remove it by hand$' said)" = 800 ] && break
            [ $round != 20 ] || exit 12
        done
        tail -n 1 said | grep -q "^fsage: $PWD/text: no UFS1" || exit 13
        timeout -s KILL 200 "$1" mount disk.img mnt 2>said </dev/null || exit 14
        mountpoint -q mnt || exit 15
        timeout -s KILL 200 "$1" umount mnt 2>said </dev/null || exit 16
    "#;
    apart(d.path(), script);
}

/// A server as `fsage mount` starts it, whose caller this test is; it has said that it is mounted.
fn called(place: &Place) -> Running {
    let mut command = fsage(place.at(), &["mount", "--foreground", "--tell-ready", &place.source, "mnt"]);
    let mut server = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(server.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "mounted\n");
    server
}

fn small() -> Place {
    Place::new(&["mkfs", "ffs", "--size", "8M"], "IMAGE")
}

/// Writes a file, and waits until the server has written it to the image by itself, which takes it some seconds.
fn is_written_back(place: &Place) {
    let bytes = bytes_of(1, 4096);
    fs::write(place.mnt().join("file"), &bytes).unwrap();
    until("it is written back", || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        fs::read(place.at().join("disk.img")).unwrap().chunks(512).any(|sector| sector == &bytes[..512])
    });
}

/// Until its caller went on, which a terminal may have stopped, a server wrote nothing back and heard no signal.
#[test]
fn a_server_whose_caller_is_stopped_writes_back_and_hears_signals() {
    if !need(Need::Fuse) {
        return;
    }
    let place = small();
    let mut server = called(&place);
    let silent = server.child.stdin.take();
    is_written_back(&place);
    server.signal("TERM");
    succeeds(&server.output());
    drop(silent);
    assert!(!place.is_mounted());
    place.is_clean();
}

/// It was to be mounted by who has ended.
#[test]
fn a_server_whose_caller_ends_before_it_answers_does_not_stay() {
    if !need(Need::Fuse) {
        return;
    }
    let place = small();
    let mut server = called(&place);
    drop(server.child.stdin.take());
    succeeds(&server.output());
    assert!(!place.is_mounted());
    place.is_clean();
}

#[test]
fn a_server_whose_caller_has_answered_stays_when_that_ends() {
    if !need(Need::Fuse) {
        return;
    }
    let place = small();
    let mut server = called(&place);
    server.child.stdin.take().unwrap().write_all(&[1]).unwrap();
    // Meanwhile it has looked often.
    is_written_back(&place);
    assert!(server.child.try_wait().unwrap().is_none());
    place.umount();
    succeeds(&server.output());
    place.is_clean();
}

/// Whether a process has a handler for SIGTERM.
fn hears_term(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (15 - 1) != 0
}

/// It said that what it had made had been removed: it makes nothing, and had unmounted.
#[test]
fn an_unmounting_that_is_interrupted_says_how_far_it_has_come() {
    if !need(Need::Fuse) {
        return;
    }
    let place = small();
    let server = place.serve(&[]);
    fs::write(place.mnt().join("file"), bytes_of(2, 100_000)).unwrap();
    // It waits for the server to write everything.
    server.signal("STOP");
    let umount = Running::start(&mut fsage(place.at(), &["umount", "mnt"]));
    until("it hears signals", || hears_term(umount.pid()));
    umount.signal("TERM");
    server.signal("CONT");
    let output = umount.output();
    fails(&output, 143, &["fsage: interrupted; ", "mnt is unmounted; ", "disk.img is in use until the rest of it is"]);
    assert!(!stderr(&output).contains("removed, but"), "{}", stderr(&output));
    assert!(!place.is_mounted());
    succeeds(&server.output());
    place.is_clean();
}

/// A child of a process that runs; `None`: that has ended.
fn child_of(parent: &Running) -> Option<u32> {
    let (mut child, of) = (None, parent.pid());
    until("it has started another or has ended", || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
        child = pids.find(|pid| status_field(*pid, "PPid:") == Some(of));
        let status = fs::read_to_string(format!("/proc/{of}/status")).unwrap();
        child.is_some() || status.contains("State:\tZ")
    });
    child
}

/// It said the same, and not what its server had said.
#[test]
fn a_mount_that_is_interrupted_says_that_nothing_is_mounted_and_what_its_server_said() {
    if !need(Need::Fuse) {
        return;
    }
    let place = small();
    fs::write(place.at().join("text"), "no file system").unwrap();
    for (image, in_time, words) in [("text", 4, "/text: no UFS1 "), ("disk.img", 0, "")] {
        // The server may be quicker than the signal.
        let is_tested = (0..50).any(|_| {
            let mount = Running::start(&mut fsage(place.at(), &["mount", image, "mnt"]));
            if child_of(&mount).is_some() {
                mount.signal("TERM");
            }
            let output = mount.output();
            if output.status.code() == Some(in_time) {
                if in_time == 0 {
                    place.umount();
                }
                return false;
            }
            fails(&output, 143, &[words, "fsage: interrupted; nothing is mounted\n"]);
            assert!(!stderr(&output).contains("removed, but"), "{}", stderr(&output));
            assert!(!place.is_mounted());
            true
        });
        assert!(is_tested, "{image}: no signal came before the end");
    }
    succeeds(&run(place.at(), &["fsck", "disk.img"]));
}

/// Nothing was said where the server was killed, by what ends processes where memory is short, say.
#[test]
fn a_mount_whose_server_is_killed_says_so() {
    if !need(Need::Fuse) {
        return;
    }
    // Nothing that others would find to sweep.
    let d = tempfile::tempdir().unwrap();
    fs::write(d.path().join("text"), "no file system").unwrap();
    fs::create_dir(d.path().join("mnt")).unwrap();
    let is_tested = (0..50).any(|_| {
        let mount = Running::start(&mut fsage(d.path(), &["mount", "text", "mnt"]));
        if let Some(server) = child_of(&mount) {
            // It may have ended by itself.
            let _ = Command::new("kill").args(["-s", "KILL", &server.to_string()]).stderr(Stdio::null()).status();
        }
        let output = mount.output();
        if output.status.code() == Some(4) {
            return false;
        }
        fails(&output, 3, &["fsage: the process in the background was killed; "]);
        true
    });
    assert!(is_tested, "it was always quicker");
}
