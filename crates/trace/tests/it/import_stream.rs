//! Streams of lines: interleaving, damage, refusal, size.

use crate::import_common::{Row, import, trace, try_import};
use fault::{Fault as _, Kind};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use trace::strace::ImportError;
use trace::{Op, flag};

const TOOLS: &str = include_str!("../data/tools.strace");

#[test]
fn events_come_in_the_order_of_starts() {
    let import = import(
        "\
1 1700000000.000001 clone(child_stack=NULL, flags=CLONE_VM|CLONE_FILES|CLONE_FS|CLONE_THREAD) = 2 <0.000001>
1 1700000000.000010 fsync(3</w/f> <unfinished ...>
2 1700000000.000020 write(4</w/g>, \"\"..., 5) = 5 <0.000001>
2 1700000000.000030 read(5<pipe:[1]>,  <unfinished ...>
1 1700000000.000040 <... fsync resumed>) = 0 <0.000030>
1 1700000000.000050 close(3</w/f> <unfinished ...>
2 1700000000.000060 <... read resumed>\"\"..., 10) = 10 <0.000030>
2 1700000000.000070 openat(AT_FDCWD</w>, \"h\", O_RDONLY) = 3</w/h> <0.000001>
1 1700000000.000080 <... close resumed>) = 0 <0.000030>
2 1700000000.000090 read(3</w/h>, \"\"..., 10) = 10 <0.000001>
",
    );
    let order: Vec<_> = import.rows.iter().map(|r| (r.event.op, r.event.t_ns, r.event.dur_ns)).collect();
    let want = [
        (Op::Clone, 0, 1000),
        (Op::Fsync, 9000, 30_000),
        (Op::Write, 19_000, 1000),
        (Op::Close, 49_000, 30_000),
        // A read of a pipe does not hold the others back.
        (Op::Read, 29_000, 30_000),
        (Op::Open, 69_000, 1000),
        (Op::Read, 89_000, 1000),
    ];
    assert_eq!(order, want);
    // The number 3 was free when the close had started.
    assert_eq!((import.rows[6].event.offset, import.rows[6].path()), (Some(0), "/w/h"));
    assert!(import.rows.iter().enumerate().all(|(i, r)| r.event.seq == i as u64));
}

#[test]
fn a_call_that_never_returns_is_told_as_unfinished() {
    let import = import(
        "\
1 1700000000.000001 openat(AT_FDCWD</w>, \"f\", O_RDONLY) = 3</w/f> <0.000001>
1 1700000000.000002 read(3</w/f>,  <unfinished ...>
2 1700000000.000003 unlink(\"/w/g\" <unfinished ...>
1 1700000000.000004 <... read resumed> <unfinished ...>) = ?
1 1700000000.000005 +++ killed by SIGKILL +++
",
    );
    let told: Vec<_> = import.rows.iter().map(|r| (r.event.op, r.event.flags & flag::UNFINISHED != 0)).collect();
    assert_eq!(told, [(Op::Open, false), (Op::Read, true), (Op::Unlink, true), (Op::Exit, false), (Op::Close, false)]);
    assert_eq!(import.rows[2].path(), "/w/g");
    assert_eq!(import.summary.first_status, Some(137));
    assert_eq!(import.summary.coverage.unfinished_calls, 2);
}

#[test]
fn children_wait_until_their_parent_is_known() {
    // Two vforks run at once; only their returns tell whose child is whose.
    let import = import(
        "\
1 1700000000.000001 openat(AT_FDCWD</one>, \"f\", O_RDONLY) = 3</one/f> <0.000001>
2 1700000000.000002 openat(AT_FDCWD</two>, \"f\", O_RDONLY) = 3</two/f> <0.000001>
1 1700000000.000003 vfork( <unfinished ...>
2 1700000000.000004 vfork( <unfinished ...>
11 1700000000.000005 unlink(\"a\") = 0 <0.000001>
22 1700000000.000006 unlink(\"a\") = 0 <0.000001>
22 1700000000.000007 read(3</two/f>, \"\"..., 10) = 10 <0.000001>
2 1700000000.000008 <... vfork resumed>) = 22 <0.000004>
11 1700000000.000009 execve(\"/bin/true\", [...], 0x7f /* 1 var */ <unfinished ...>
1 1700000000.000010 <... vfork resumed>) = 11 <0.000007>
11 1700000000.000011 <... execve resumed>) = 0 <0.000002>
2 1700000000.000012 read(3</two/f>, \"\"..., 10) = 10 <0.000001>
",
    );
    let unlinks: Vec<_> =
        import.rows.iter().filter(|r| r.event.op == Op::Unlink).map(|r| (r.event.tid, r.path())).collect();
    assert_eq!(unlinks, [(11, "/one/a"), (22, "/two/a")]);
    let reads: Vec<_> = import.rows.iter().filter(|r| r.event.op == Op::Read).map(|r| r.event.offset).collect();
    assert_eq!(reads, [Some(0), Some(10)]);
    assert!(import.rows.is_sorted_by_key(|r| r.event.t_ns), "what was kept back keeps its place");
}

// Torture under strace, seeds 1 and 77: another thread gave the number 3 to another file while vfork ran, and the
// child's first use of 3 was taken for a file that nobody had opened.
#[test]
fn a_child_has_the_descriptors_of_when_its_clone_began() {
    let import = import(
        "\
1 1700000000.000001 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD) = 2 \
<0.000001>
1 1700000000.000002 openat(AT_FDCWD</w>, \"old\", O_RDONLY) = 3</w/old> <0.000001>
1 1700000000.000003 read(3</w/old>, \"\"..., 10) = 10 <0.000001>
1 1700000000.000004 vfork( <unfinished ...>
2 1700000000.000005 close(3</w/old>) = 0 <0.000001>
2 1700000000.000006 openat(AT_FDCWD</w>, \"new\", O_RDONLY) = 3</w/new> <0.000001>
2 1700000000.000007 openat(AT_FDCWD</w>, \"more\", O_RDONLY) = 4</w/more> <0.000001>
2 1700000000.000008 read(4</w/more>, \"\"..., 7) = 7 <0.000001>
11 1700000000.000009 read(3</w/old>, \"\"..., 10) = 10 <0.000001>
11 1700000000.000010 read(4</w/more>, \"\"..., 7) = 7 <0.000001>
11 1700000000.000011 +++ exited with 0 +++
1 1700000000.000012 <... vfork resumed>) = 11 <0.000008>
2 1700000000.000013 read(3</w/new>, \"\"..., 10) = 10 <0.000001>
",
    );
    let reads: Vec<_> = import
        .rows
        .iter()
        .filter(|r| r.event.op == Op::Read)
        .map(|r| (r.event.tid, r.path(), r.event.offset))
        .collect();
    let want = [
        (1, "/w/old", Some(0)),
        (2, "/w/more", Some(0)),
        (11, "/w/old", Some(10)),
        // Opened while vfork ran, and the child has it: the copy was made behind it.
        (11, "/w/more", Some(7)),
        (2, "/w/new", Some(0)),
    ];
    assert_eq!(reads, want);
}

// Torture under strace, seed 1: execve gave the process a table of its own while another process still changed the one
// they had shared.
#[test]
fn a_program_has_the_descriptors_of_when_its_execve_began() {
    let import = import(
        "\
1 1700000000.000001 openat(AT_FDCWD</w>, \"old\", O_RDONLY) = 3</w/old> <0.000001>
1 1700000000.000002 clone(child_stack=NULL, flags=CLONE_FILES|SIGCHLD) = 2 <0.000001>
1 1700000000.000003 read(3</w/old>, \"\"..., 10) = 10 <0.000001>
2 1700000000.000004 execve(\"/bin/true\", [...], 0x7f /* 1 var */ <unfinished ...>
1 1700000000.000005 close(3</w/old>) = 0 <0.000001>
1 1700000000.000006 openat(AT_FDCWD</w>, \"new\", O_RDONLY) = 3</w/new> <0.000001>
2 1700000000.000007 <... execve resumed>) = 0 <0.000003>
2 1700000000.000008 read(3</w/old>, \"\"..., 10) = 10 <0.000001>
1 1700000000.000009 read(3</w/new>, \"\"..., 10) = 10 <0.000001>
",
    );
    let reads: Vec<_> =
        import.rows.iter().filter(|r| r.event.op == Op::Read).map(|r| (r.path(), r.event.offset)).collect();
    assert_eq!(reads, [("/w/old", Some(0)), ("/w/old", Some(10)), ("/w/new", Some(0))]);
}

// Torture under strace and in the kernel at once, seed 5: the parent's failed pwrite64 made up a description for 14,
// the child inherited it, and what came into the child over a socket was taken for the same as what came into the
// parent.
#[test]
fn a_wrong_argument_does_not_show_that_a_descriptor_is_open() {
    let import = import(
        "\
1 1700000000.000001 pwrite64(14, \"\"..., 2770, -5) = -1 EINVAL (Invalid argument) <0.000001>
1 1700000000.000002 dup3(14, 14, 0) = -1 EINVAL (Invalid argument) <0.000001>
1 1700000000.000003 clone(child_stack=NULL, flags=SIGCHLD) = 2 <0.000001>
2 1700000000.000004 fstat(14</w/f>, {st_mode=S_IFREG|0615, st_size=61985, ...}) = 0 <0.000001>
1 1700000000.000005 fstat(14</w/f>, {st_mode=S_IFREG|0615, st_size=61985, ...}) = 0 <0.000001>
1 1700000000.000006 pwrite64(14</w/f>, \"\"..., 2770, -5) = -1 EINVAL (Invalid argument) <0.000001>
",
    );
    let found: Vec<_> = import.rows.iter().filter(|r| r.event.op != Op::Clone).map(|r| r.event.ofd).collect();
    assert_eq!((found[0], found[1]), (None, None));
    assert!(found[2].is_some() && found[3].is_some() && found[2] != found[3], "{found:?}");
    assert_eq!(found[4], found[3], "what is shown is open");
}

// Torture under strace and in the kernel at once, seed 5: 3 was opened by a name that is gone, and the file has another
// name since, which is called the same. That one was forgotten as well, and what was opened by it was a new file.
#[test]
fn a_deleted_name_does_not_take_with_it_the_one_that_was_moved_there() {
    for (moving, other) in [
        ("renameat2(AT_FDCWD</w>, \"x\", AT_FDCWD</w>, \"d\", 0)", ""),
        (
            "renameat2(AT_FDCWD</w>, \"x\", AT_FDCWD</w>, \"d\", RENAME_EXCHANGE)",
            "1 1700000000.000005 mknodat(AT_FDCWD</w>, \"d\", S_IFREG|0600) = 0 <0.000001>\n",
        ),
    ] {
        let import = import(&format!(
            "\
1 1700000000.000001 newfstatat(AT_FDCWD</w>, \"x\", {{st_mode=S_IFREG|0600, st_size=7, ...}}, 0) = 0 <0.000001>
1 1700000000.000002 linkat(AT_FDCWD</w>, \"x\", AT_FDCWD</w>, \"d\", 0) = 0 <0.000001>
1 1700000000.000003 openat(AT_FDCWD</w>, \"d\", O_RDONLY) = 3</w/d> <0.000001>
1 1700000000.000004 unlink(\"/w/d\") = 0 <0.000001>
{other}1 1700000000.000006 {moving} = 0 <0.000001>
1 1700000000.000007 fstat(3</w/d>(deleted), {{st_mode=S_IFREG|0600, st_size=7, ...}}) = 0 <0.000001>
1 1700000000.000008 openat(AT_FDCWD</w>, \"d\", O_RDONLY) = 4</w/d> <0.000001>
"
        ));
        let files: Vec<_> = import
            .rows
            .iter()
            .filter(|r| matches!(r.event.op, Op::Open | Op::Stat | Op::Fstat))
            .map(|r| r.event.file)
            .collect();
        assert!(files.len() == 4 && files[0].is_some(), "{files:?}");
        assert!(files.iter().all(|&file| file == files[0]), "{moving}: {files:?}");
    }
}

// Torture under strace, seed 3: 33's parent was known once 22's lines were let go, and 33's later lines overtook its
// first.
#[test]
fn lines_kept_back_stay_in_the_order_of_their_thread() {
    let import = import(
        "\
1 1700000000.000001 clone(child_stack=0x7f, flags=CLONE_FS <unfinished ...>
2 1700000000.000002 vfork( <unfinished ...>
33 1700000000.000003 unlink(\"/w/a\") = 0 <0.000001>
22 1700000000.000004 clone(child_stack=0x7f, flags=CLONE_FS <unfinished ...>
33 1700000000.000005 unlink(\"/w/b\") = 0 <0.000001>
22 1700000000.000006 <... clone resumed>) = 33 <0.000002>
33 1700000000.000007 unlink(\"/w/c\") = 0 <0.000001>
1 1700000000.000008 <... clone resumed>) = 44 <0.000007>
33 1700000000.000009 unlink(\"/w/d\") = 0 <0.000001>
2 1700000000.000010 <... vfork resumed>) = 22 <0.000008>
33 1700000000.000011 unlink(\"/w/e\") = 0 <0.000001>
",
    );
    let unlinks: Vec<_> = import.rows.iter().filter(|r| r.event.op == Op::Unlink).map(|r| r.path()).collect();
    assert_eq!(unlinks, ["/w/a", "/w/b", "/w/c", "/w/d", "/w/e"]);
    assert_eq!(import.summary.problems, []);
}

// Torture under strace, seed 1: a directory that was removed while it was the working one was taken for another when it
// was opened.
#[test]
fn a_removed_directory_that_is_opened_again_is_the_same() {
    let import = import(
        "\
1 1700000000.000001 mkdir(\"/w/d\", 0700) = 0 <0.000001>
1 1700000000.000002 chdir(\"/w/d\") = 0 <0.000001>
1 1700000000.000003 rmdir(\"/w/d\") = 0 <0.000001>
1 1700000000.000004 openat(AT_FDCWD</w/d (deleted)>, \".\", O_RDONLY) = 3</w/d (deleted)> <0.000001>
1 1700000000.000005 openat(3</w/d (deleted)>, \"./\", O_RDONLY) = 4</w/d (deleted)> <0.000001>
1 1700000000.000006 mkdir(\"/w/d\", 0700) = 0 <0.000001>
1 1700000000.000007 chdir(\"/w/d\") = 0 <0.000001>
1 1700000000.000008 openat(AT_FDCWD</w/d>, \".\", O_RDWR|O_TMPFILE, 0600) = 5</w/d/#7 (deleted)> <0.000001>
",
    );
    let files: Vec<_> = import.rows.iter().map(|r| r.event.file).collect();
    assert!(files[7] != files[5], "a new file in it: {files:?}");
    assert!(files[0].is_some() && files[..5].iter().all(|&file| file == files[0]), "{files:?}");
    assert_ne!(files[5], files[0]);
}

// make -j3 by both tracers at once: dup2 of a pipe, which keeps no place while it runs, stood behind the execve that
// followed it.
#[test]
fn a_call_that_was_kept_back_and_kept_no_place_stands_where_it_returned() {
    let import = import(
        "\
1 1700000000.000001 vfork( <unfinished ...>
2 1700000000.000002 vfork( <unfinished ...>
33 1700000000.000003 dup2(5<pipe:[7]>, 1 <unfinished ...>
44 1700000000.000004 unlink(\"/w/a\") = 0 <0.000001>
33 1700000000.000005 <... dup2 resumed>) = 1<pipe:[7]> <0.000002>
33 1700000000.000006 execve(\"/usr/bin/cc\", [\"cc\"], 0x7f /* 1 var */ <unfinished ...>
1 1700000000.000007 <... vfork resumed>) = 33 <0.000006>
33 1700000000.000008 <... execve resumed>) = 0 <0.000002>
2 1700000000.000009 <... vfork resumed>) = 44 <0.000007>
",
    );
    let ops: Vec<_> = import.rows.iter().filter(|r| r.event.tid == 33).map(|r| r.event.op).collect();
    assert_eq!(ops, [Op::Dup, Op::Exec]);
    assert_eq!(import.summary.problems, []);
}

// Torture under strace, seed 3: of three closes that close_range did, two stood behind later calls of a thread whose
// lines were kept back.
#[test]
fn the_closes_of_one_call_stand_together() {
    let import = import(
        "\
1 1700000000.000001 clone(child_stack=0x7f, flags=CLONE_FS <unfinished ...>
2 1700000000.000002 vfork( <unfinished ...>
33 1700000000.000003 openat(AT_FDCWD</w>, \"f\", O_RDONLY) = 3</w/f> <0.000001>
33 1700000000.000004 dup2(3</w/f>, 4) = 4</w/f> <0.000001>
33 1700000000.000005 dup2(3</w/f>, 5) = 5</w/f> <0.000001>
33 1700000000.000006 close_range(3, 5, 0) = 0 <0.000001>
33 1700000000.000007 unlink(\"/w/f\") = 0 <0.000001>
1 1700000000.000008 <... clone resumed>) = 33 <0.000007>
2 1700000000.000009 <... vfork resumed>) = 22 <0.000008>
",
    );
    let ops: Vec<_> = import.rows.iter().filter(|r| r.event.tid == 33).map(|r| r.event.op).collect();
    assert_eq!(ops, [Op::Open, Op::Dup, Op::Dup, Op::Close, Op::Close, Op::Close, Op::Unlink]);
}

#[test]
fn the_form_without_an_output_file() {
    let import = import(
        "\
1700000000.000001 openat(AT_FDCWD</w>, \"f\", O_RDONLY) = 3</w/f> <0.000001>
1700000000.000002 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLDstrace: Process 12 attached
 <unfinished ...>
[pid    12] 1700000000.000003 read(3</w/f>, \"\"..., 10) = 10 <0.000001>
[pid    11] 1700000000.000004 <... clone resumed>, child_tidptr=0x7f) = 12 <0.000003>
strace: Process 12 detached
[pid    11] 1700000000.000005 read(3</w/f>, \"\"..., 10) = 10 <0.000001>
[pid    12] 1700000000.000006 +++ exited with 0 +++
1700000000.000007 --- SIGCHLD {si_signo=SIGCHLD, si_pid=12} ---
1700000000.000008 read(3</w/f>, \"\"..., 10) = 5 <0.000001>
1700000000.000009 +++ exited with 0 +++
",
    );
    let reads: Vec<_> =
        import.rows.iter().filter(|r| r.event.op == Op::Read).map(|r| (r.event.tid, r.event.offset)).collect();
    assert_eq!(reads, [(12, Some(0)), (11, Some(10)), (11, Some(20))]);
    assert_eq!(import.summary.notes, 2);
}

#[test]
fn a_thread_that_executes_takes_over_its_process() {
    let import = import(
        "\
1 1700000000.000001 openat(AT_FDCWD</w>, \"f\", O_RDONLY) = 3</w/f> <0.000001>
1 1700000000.000002 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 2 <0.000001>
1 1700000000.000003 read(0<pipe:[1]>,  <unfinished ...>
2 1700000000.000004 execve(\"/bin/cat\", [...], 0x7f /* 1 var */ <unfinished ...>
1 1700000000.000005 <... read resumed> <unfinished ...>) = ?
1 1700000000.000006 +++ superseded by execve in pid 2 +++
1 1700000000.000007 <... execve resumed>) = 0 <0.000003>
1 1700000000.000008 read(3</w/f>, \"\"..., 10) = 10 <0.000001>
1 1700000000.000009 +++ exited with 0 +++
",
    );
    let read = import.rows.iter().rfind(|r| r.event.op == Op::Read).expect("a read");
    assert_eq!((read.event.pid, read.event.offset), (1, Some(0)));
    let exec = import.rows.iter().find(|r| r.event.op == Op::Exec).expect("an exec");
    assert_eq!(exec.event.flags & flag::UNFINISHED, 0);
}

/// Two threads' calls as separate lines, and the same calls with each split in two at a random place in time.
fn random_run(seed: u64) -> (String, String) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |n: u64| rng.next_u64() % n;
    let call = |tid: u64, k: u64| match k {
        0 => (format!("lseek({tid}</w/{tid}>, 0, SEEK_SET"), ") = 0".to_owned()),
        1 => (format!("write({tid}</w/{tid}>, \"x)=\\\"\"..., 7"), ") = 7".to_owned()),
        2 => (format!("read({tid}</w/{tid}>, "), "\"\"..., 9) = 3".to_owned()),
        3 => (
            format!("newfstatat({tid}</w/{tid}>, \"\", "),
            "{st_mode=S_IFREG|0644, st_size=40, ...}, AT_EMPTY_PATH) = 0".to_owned(),
        ),
        _ => (format!("unlink(\"/w/no{tid}\""), ") = -1 ENOENT (No such file or directory)".to_owned()),
    };
    let mut plain = String::new();
    let mut split = String::new();
    let mut open: [Option<(String, u64, String)>; 2] = [None, None];
    let mut now = 1_700_000_000_000_000_u64;
    let stamp = |t: u64| format!("{}.{:06}", t / 1_000_000, t % 1_000_000);
    for tid in [5_u64, 6] {
        now += 1;
        let line =
            format!("{tid} {} openat(AT_FDCWD</w>, \"{tid}\", O_RDWR) = {tid}</w/{tid}> <0.000001>\n", stamp(now));
        plain.push_str(&line);
        split.push_str(&line);
    }
    for _ in 0..40 {
        now += 1 + below(5);
        let who = usize::from(below(2) == 1);
        let tid = 5 + who as u64;
        match open[who].take() {
            Some((name, start, rest)) => {
                let took = now - start;
                split.push_str(&format!("{tid} {} <... {name} resumed>{rest} <0.{took:06}>\n", stamp(now)));
            }
            None => {
                let (begin, rest) = call(tid, below(5));
                let name = begin.split('(').next().unwrap_or_default().to_owned();
                split.push_str(&format!("{tid} {} {begin} <unfinished ...>\n", stamp(now)));
                open[who] = Some((name, now, rest));
            }
        }
    }
    for (who, slot) in open.iter_mut().enumerate() {
        now += 1;
        if let Some((name, start, rest)) = slot.take() {
            let took = now - start;
            split.push_str(&format!("{} {} <... {name} resumed>{rest} <0.{took:06}>\n", 5 + who, stamp(now)));
        }
    }
    // The plain form: each call on the line where it started, with its result.
    let mut pending: Vec<(String, String)> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for line in split.lines().skip(2) {
        let tid = line.split(' ').next().unwrap_or_default().to_owned();
        if let Some(begin) = line.strip_suffix(" <unfinished ...>") {
            pending.push((tid, lines.len().to_string()));
            lines.push(begin.to_owned());
        } else if let Some((_, rest)) = line.split_once(" resumed>") {
            let at = pending.iter().position(|(t, _)| *t == tid).expect("a start");
            let (_, index) = pending.remove(at);
            lines[index.parse::<usize>().expect("an index")].push_str(rest);
        }
    }
    for line in lines {
        plain.push_str(&line);
        plain.push('\n');
    }
    (plain, split)
}

#[test]
fn interleaved_threads_give_the_events_of_the_sequential_trace() {
    for seed in 0..500 {
        let (plain, split) = random_run(seed);
        let text = |rows: &[Row]| {
            rows.iter().map(|r| format!("{} t={} d={}", r.text(), r.event.t_ns, r.event.dur_ns)).collect::<Vec<_>>()
        };
        let (a, b) = (import(&plain), import(&split));
        assert_eq!(text(&a.rows), text(&b.rows), "seed {seed}:\n{split}");
    }
}

#[test]
fn refused_input_says_why_and_what_to_do() {
    let refusal = |text: &str| try_import(text.as_bytes()).err().map(|e| (e.to_string(), e.kind()));
    for (text, word) in [
        ("12 03:34:36 close(3) = 0 <0.000001>\n", "-t or -tt"),
        ("03:34:36.123456 close(3) = 0 <0.000001>\n", "-t or -tt"),
        ("12 1700000000 close(3) = 0 <0.000001>\n", "whole seconds"),
        ("12      0.000035 close(3) = 0 <0.000001>\n", "-r"),
        ("12 close(3) = 0 <0.000001>\n", "no time stamps"),
        ("12 1700000000.000001 close(3) = 0\n", "-T"),
        ("", "empty"),
        ("hello\nworld\n", "no line looks like"),
    ] {
        let (message, kind) = refusal(text).unwrap_or_else(|| panic!("{text:?} was taken"));
        assert!(message.contains(word), "{text:?}: {message}");
        assert_eq!(kind, Kind::BadInput);
    }
    // At length, the refusal comes early.
    let long = "12 03:34:36 close(3) = 0 <0.000001>\n".repeat(100_000);
    assert!(matches!(try_import(long.as_bytes()), Err(ImportError::TimeOfDay { .. })));
}

#[test]
fn lines_not_understood_are_counted_with_their_numbers() {
    let text = "\
1 1700000000.000001 close(3</w/f>) = 0 <0.000001>
rubbish
1 1700000000.000002 close(4</w/f) = 0 <0.000001>
1 1700000000.000003 <... read resumed>5) = 5 <0.000001>
1 1700000000.000004 close(5</w/g>) = -1 EWHAT (?) <0.000001>
1 1700000000.000005 03:04:05 close(5</w/g>) = 0 <0.000001>
1 1700000000.000006 close(6</w/h>) = 0 <0.000001>
";
    let import = try_import(text.as_bytes()).expect("an import");
    let lines: Vec<u64> = import.summary.problems.iter().map(|p| p.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6]);
    assert_eq!(import.summary.unparsed_lines, 5);
    assert_eq!(import.rows.len(), 2);
}

#[test]
fn a_last_line_cut_short_is_reported_and_its_call_kept() {
    let whole = trace(&["close(3</w/f>) = 0", "openat(AT_FDCWD</w>, \"g\", O_RDONLY) = 4</w/g>"]);
    let second = whole.find('\n').expect("a line") + 1;
    for cut in second + 1..whole.len() - 1 {
        let import = try_import(&whole.as_bytes()[..cut]).expect("an import");
        assert_eq!(import.summary.truncated_last_line, Some(2), "cut at {cut}");
        assert_eq!((import.summary.lines, import.summary.unparsed_lines), (2, 1), "cut at {cut}");
        let started = whole[second..cut].contains("openat(");
        assert_eq!(import.rows.len(), 1 + usize::from(started), "cut at {cut}: {}", &whole[second..cut]);
        if started {
            assert_ne!(import.rows[1].event.flags & flag::UNFINISHED, 0);
        }
    }
    let import = try_import(&whole.as_bytes()[..whole.len() - 1]).expect("an import");
    assert_eq!(import.summary.truncated_last_line, None, "only the newline is missing");
    assert_eq!(import.rows.len(), 2);
}

/// Every line of an import is accounted for, whatever the damage.
fn check_accounts(text: &[u8]) {
    let Ok(import) = try_import(text) else { return };
    let s = &import.summary;
    let newlines = text.iter().filter(|&&b| b == b'\n').count() as u64;
    assert_eq!(s.lines, newlines + u64::from(text.last().is_some_and(|&b| b != b'\n')));
    assert!(s.unparsed_lines <= s.lines + s.calls);
    assert_eq!(s.events, import.rows.len() as u64);
    assert!(import.rows.iter().enumerate().all(|(i, r)| r.event.seq == i as u64));
    assert_eq!(s.problems.len() as u64, s.unparsed_lines.min(1000));
    for row in &import.rows {
        assert!(row.path.as_ref().is_none_or(|p| p.first() == Some(&b'/')), "{}", row.text());
    }
}

#[test]
fn damaged_traces_neither_panic_nor_lose_lines() {
    let lines: Vec<&[u8]> = TOOLS.as_bytes().split_inclusive(|&b| b == b'\n').collect();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    for round in 0..3000 {
        let from = (rng.next_u64() as usize) % lines.len();
        let mut text: Vec<u8> = lines[from..(from + 12).min(lines.len())].concat();
        for _ in 0..=rng.next_u64() % 6 {
            let at = (rng.next_u64() as usize) % text.len();
            let other = (rng.next_u64() as usize) % text.len();
            const SPICE: &[u8] = b"\"<>(){}[],= \\/-?\n0x9\xff\0";
            match rng.next_u64() % 6 {
                0 => text[at] = rng.next_u64() as u8,
                1 => text[at] = SPICE[(rng.next_u64() as usize) % SPICE.len()],
                2 => drop(text.remove(at)),
                3 => text.insert(at, SPICE[(rng.next_u64() as usize) % SPICE.len()]),
                4 => text.truncate(at.max(1)),
                _ => {
                    let (a, b) = (at.min(other), at.max(other));
                    let piece: Vec<u8> = text[a..b.min(a + 40)].to_vec();
                    text.splice(at..at, piece);
                }
            }
            if text.is_empty() {
                text.push(b'\n');
            }
        }
        let result = std::panic::catch_unwind(|| check_accounts(&text));
        assert!(result.is_ok(), "round {round}: {}", text.escape_ascii());
    }
}

#[test]
fn ten_thousand_descriptors_and_a_path_of_a_thousand_components() {
    let mut text = String::new();
    let mut line = |call: &str| text.push_str(&format!("7 1700000000.000001 {call} <0.000001>\n"));
    let deep = "/d".repeat(1000);
    line(&format!("mkdir(\"{deep}\", 0755) = 0"));
    for fd in 3..10_003 {
        line(&format!("openat(AT_FDCWD</w>, \"f{fd}\", O_RDWR|O_CREAT|O_EXCL, 0600) = {fd}</w/f{fd}>"));
    }
    for fd in 3..10_003 {
        line(&format!("write({fd}</w/f{fd}>, \"\"..., {fd}) = {fd}"));
    }
    line("fork() = 8");
    line(&format!("openat(AT_FDCWD</w>, \"{deep}/x\", O_RDONLY) = 10003<{deep}/x>"));
    line("close_range(3, 4294967295, 0) = 0");
    text.push_str("8 1700000000.000002 lseek(10002</w/f10002>, 0, SEEK_CUR) = 10002 <0.000001>\n");
    let import = import(&text);
    let closes = import.rows.iter().filter(|r| r.event.op == Op::Close).count();
    assert_eq!(closes, 10_001);
    assert_eq!(import.rows.last().map(|r| r.event.size_before), Some(Some(10_002)));
    assert_eq!(import.rows.iter().filter(|r| r.path().len() >= 2000).count(), 3);
}

/// `rsync -a` over 11,000 files: the paths of a close that waited for its return were ids of a batch that had been
/// handed over, out of range in the next one or another path there.
#[test]
fn a_close_keeps_its_path_over_batches() {
    for others_after in [0, 40_000] {
        let mut text = String::new();
        let mut line = |tid: u32, call: &str| text.push_str(&format!("{tid} 1700000000.000001 {call}\n"));
        line(8, "openat(AT_FDCWD</w>, \"mine\", O_RDONLY) = 5</w/mine> <0.000001>");
        for i in 0..16_382 {
            line(7, &format!("unlink(\"/w/before{i}\") = 0 <0.000001>"));
        }
        // The last event of the first batch comes out while the close is running.
        line(7, "unlink(\"/w/last\" <unfinished ...>");
        line(8, "close(5</w/mine> <unfinished ...>");
        line(7, "<... unlink resumed>) = 0 <0.000001>");
        for i in 0..others_after {
            line(7, &format!("unlink(\"/w/after{i}\") = 0 <0.000001>"));
        }
        line(8, "<... close resumed>) = 0 <0.000001>");
        let import = import(&text);
        let closes: Vec<_> = import.rows.iter().filter(|r| r.event.op == Op::Close).map(Row::path).collect();
        assert_eq!(closes, ["/w/mine"], "{others_after} calls later");
    }
}
