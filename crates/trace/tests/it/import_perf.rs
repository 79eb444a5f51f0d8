//! The text of `perf trace`: what its lines mean, and perf's own count of calls as the judge of a real one.

use crate::import_common;
use crate::import_common::{Import, Row, decode};
use fault::{Fault as _, Kind};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use trace::profile::Meta;
use trace::strace::{ImportError, ImportOptions};
use trace::{Op, flag, perf};

fn try_import(text: &[u8], piece: usize) -> Result<(Import, Meta), ImportError> {
    let options = ImportOptions { cwd: Some(b"/home/u".to_vec()), problems_listed: 1000, ..ImportOptions::default() };
    decode(Box::new(perf::Importer::new(options)), text, piece)
}

fn import(text: &str) -> (Import, Meta) {
    let (import, meta) = try_import(text.as_bytes(), usize::MAX).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(import.summary.problems, [], "in {text}");
    (import, meta)
}

/// What a row says apart from numbers of files.
fn said(row: &Row) -> (u32, u32, Op, &str, u64, u64, i64) {
    let e = &row.event;
    (e.pid, e.tid, e.op, row.path(), e.t_ns, e.dur_ns, e.ret)
}

const NAMED: &str = include_str!("../data/named.perf");

#[test]
fn names_and_numbers() {
    let (import, meta) = import(NAMED);
    let notes = "/home/u/notes, a: b.txt";
    let rows: Vec<_> = import.rows.iter().map(said).collect();
    assert_eq!(
        rows[..11],
        [
            (7, 7, Op::Open, notes, 0, 20_000, 3),
            (7, 7, Op::Write, notes, 100_000, 10_000, 100),
            (7, 7, Op::Read, notes, 200_000, 10_000, 50),
            (7, 7, Op::Seek, notes, 300_000, 10_000, 0),
            (7, 7, Op::Read, notes, 400_000, 10_000, 100),
            (7, 7, Op::Read, "/home/u/was open", 500_000, 10_000, 10),
            (7, 7, Op::Rename, notes, 600_000, 10_000, 0),
            (7, 7, Op::Fstat, "/tmp/n", 700_000, 10_000, 0),
            (7, 7, Op::Close, "/tmp/n", 800_000, 10_000, 0),
            (7, 7, Op::Unlink, "/tmp/x", 900_000, 10_000, -1),
            (7, 7, Op::Exit, "", 1_100_000, 0, 3),
        ]
    );
    let open = &import.rows[0].event;
    let flags = flag::READ | flag::WRITE | flag::CREATE | flag::CLOEXEC;
    assert_eq!((open.flags, open.mode), (flags, Some(0o600)));
    let offsets: Vec<_> = import.rows[1..5].iter().map(|row| row.event.offset).collect();
    assert_eq!(offsets, [Some(0), Some(10), None, Some(0)]);
    assert_eq!(import.rows[6].event.flags, flag::NOREPLACE);
    assert_eq!(import.rows[9].event.errno, 2);
    assert_eq!((import.summary.unread_names, import.summary.first_status), (0, Some(3)));
    assert_eq!(meta.lost_events, 12);
    assert_eq!(meta.gaps.iter().map(|gap| (gap.at_ns, gap.events)).collect::<Vec<_>>(), [(910_000, 12)]);
    assert_eq!(meta.tracer.name, "perf trace");
}

/// A child can show itself before its parent's `clone` returns; only that return tells whose child it is.
#[test]
fn children_before_their_parents() {
    let text = r#"     0.000 ( 0.020 ms): sh/7 openat(dfd: CWD, filename: "/a", flags: RDONLY) = 3
         ? (         ): sh/8  ... [continued]: vfork())                               = 0
     0.110 ( 0.010 ms): sh/8 read(fd: 3, buf: 0x7f00, count: 5)                       = 5
     0.120 (         ): sh/8 execve(filename: "/bin/cat", argv: 0x1, envp: 0x2)    ...
     0.100 ( 0.090 ms): sh/7 vfork()                                                  = 8
     0.120 ( 0.080 ms): cat/8  ... [continued]: execve())                             = 0
         ? (         ): sh/9  ... [continued]: clone3())                              = 0
     0.310 ( 0.010 ms): sh/9 read(fd: 3, buf: 0x7f00, count: 5)                       = 5
     0.300 ( 0.050 ms): sh/7 clone3(uargs: 0x7f, size: 88)                            = 9
         ? (         ): sh/10  ... [continued]: clone())                              = 0
     0.410 ( 0.010 ms): sh/10 read(fd: 3, buf: 0x7f00, count: 5)                      = 5
     0.400 ( 0.050 ms): sh/7 clone(clone_flags: CHILD_CLEARTID|CHILD_SETTID|0x11)     = 
     0.500 ( 0.010 ms): cat/8 read(fd: 3, buf: 0x7f00, count: 5)                      = 5
"#;
    let (import, _) = import(text);
    let mut rows: Vec<_> =
        import.rows.iter().map(|row| (row.event.pid, row.event.tid, row.event.op, row.path())).collect();
    rows.sort_by_key(|&(_, tid, ..)| tid);
    assert_eq!(
        rows,
        [
            (7, 7, Op::Open, "/a"),
            (7, 7, Op::Clone, ""),
            (7, 7, Op::Clone, ""),
            (7, 7, Op::Clone, ""),
            (8, 8, Op::Read, "/a"),
            (8, 8, Op::Exec, "/bin/cat"),
            (8, 8, Op::Read, "/a"),
            // clone3 whose child runs no program: a thread.
            (7, 9, Op::Read, "/a"),
            (10, 10, Op::Read, "/a"),
        ]
    );
    let offsets: Vec<_> =
        import.rows.iter().filter(|row| row.event.op == Op::Read).map(|row| row.event.offset).collect();
    assert_eq!(offsets.iter().flatten().copied().collect::<std::collections::BTreeSet<_>>(), [0, 5, 10, 15].into());
}

/// Seen on two processors: the shell's `wait4` stands before its `vfork` has returned.
#[test]
fn a_return_behind_the_next_beginning() {
    let text = r#"     0.000 (         ): sh/7 vfork()                                               ...
     0.200 (         ): sh/7 openat(dfd: CWD, filename: "/a", flags: RDONLY)        ...
     0.000 ( 0.190 ms): sh/7  ... [continued]: vfork())                               = 8
     0.200 ( 0.050 ms): sh/7  ... [continued]: openat())                              = 3
"#;
    let (import, _) = import(text);
    let rows: Vec<_> = import.rows.iter().map(|row| (row.event.op, row.event.ret, row.event.dur_ns)).collect();
    assert_eq!(rows, [(Op::Clone, 8, 190_000), (Op::Open, 3, 50_000)]);
    assert_eq!(import.summary.coverage.unfinished_calls, 0);
}

#[test]
fn addresses_are_counted_and_name_nothing() {
    let text = "     0.000 ( 0.020 ms): openat(dfd: CWD, filename: 0x46b1fed0, flags: WRONLY|CREAT, mode: IRUGO) = 3\n\
                \x20    0.100 ( 0.010 ms): write(fd: 3</tmp/other>, buf: 0x7f00, count: 100)        = 100\n";
    let (import, _) = import(text);
    assert_eq!(import.summary.unread_names, 1);
    assert!(import.rows.iter().all(|row| row.path.is_none() && row.event.file.is_none()));
    assert_eq!(import.rows[1].event.offset, Some(0));
    // The working directory, which was given.
    let found: Vec<_> = import.implied.iter().map(|entry| (entry.path.as_slice(), entry.kind)).collect();
    let directory = posix::FileKind::Directory;
    assert_eq!(found, [(&b"/home"[..], directory), (b"/home/u", directory)]);
}

#[test]
fn what_is_not_perfs_is_refused() {
    let text = "nothing of the kind\n".repeat(60);
    for (text, part) in [(text.as_str(), "perf trace"), ("", "empty")] {
        let error = try_import(text.as_bytes(), usize::MAX).err().unwrap_or_else(|| panic!("taken in: {text}"));
        assert_eq!(error.kind(), Kind::BadInput);
        assert!(error.to_string().contains(part), "{error}");
    }
    // A last line cut short could say anything.
    let cut = NAMED.trim_end_matches(" = ?\n");
    let (import, _) = try_import(cut.as_bytes(), usize::MAX).unwrap();
    assert_eq!(import.summary.truncated_last_line, Some(14));
}

proptest! {
    #[test]
    fn any_split_is_the_same(piece in 1usize..200) {
        let whole = import(NAMED).0;
        let split = try_import(NAMED.as_bytes(), piece).unwrap().0;
        prop_assert_eq!((whole.rows, whole.summary), (split.rows, split.summary));
    }

    #[test]
    fn any_bytes_are_survived(
        lines in proptest::collection::vec(0usize..14, 1..30),
        cuts in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
    ) {
        let all: Vec<&str> = NAMED.lines().collect();
        let mut text: Vec<u8> = lines.iter().flat_map(|&i| format!("{}\n", all[i]).into_bytes()).collect();
        for (at, byte) in cuts {
            let at = at % text.len();
            text[at] = byte;
        }
        let lines = text.iter().filter(|&&b| b == b'\n').count() as u64;
        if let Ok((import, _)) = try_import(&text, usize::MAX) {
            prop_assert!(import.summary.lines >= lines);
        }
    }
}

/// Two tracers of one script count the same calls and failures.
#[test]
fn strace_counts_the_same_calls() {
    let dir = tempfile::tempdir().unwrap();
    // On a machine that is busy perf loses events now and then.
    let mut attempts = 0;
    let by_perf = loop {
        let Some(text) = record(dir.path(), "perf", &["trace", "-m", "4096", "-S"], &["--"]) else { return };
        let (by_perf, meta) = try_import(&text, 1000).unwrap_or_else(|e| panic!("{e}"));
        if meta.lost_events == 0 {
            break by_perf;
        }
        attempts += 1;
        assert!(attempts < 20, "perf lost {} events, as {attempts} times before", meta.lost_events);
    };
    assert_eq!(by_perf.summary.problems, []);
    // Its summary's lines are there, and are not mistaken for calls.
    assert!(by_perf.summary.notes > 50, "{:?}", by_perf.summary);
    let Some(text) = record(dir.path(), "strace", &["-f", "-ttt", "-T", "-yy", "-s0"], &[]) else { return };
    let by_strace = import_common::try_import(&text).unwrap_or_else(|e| panic!("{e}"));
    let count = |import: &Import| {
        let mut counts = BTreeMap::<Op, (u64, u64)>::new();
        for row in import.rows.iter().filter(|row| row.event.flags & flag::IMPLIED == 0) {
            // perf is there when the first program has begun, strace a call earlier; strace alone tells how it is
            // waited for.
            if ![Op::Exec, Op::Clone].contains(&row.event.op) {
                let count = counts.entry(row.event.op).or_default();
                count.0 += 1;
                count.1 += u64::from(row.event.errno != 0);
            }
        }
        counts
    };
    let (perfs, straces) = (count(&by_perf), count(&by_strace));
    assert!(straces.len() > 15, "{straces:?}");
    assert_eq!(perfs, straces);
    let programs = |import: &Import| {
        let started = import.rows.iter().filter(|row| row.event.op == Op::Exec && row.event.errno == 0);
        started.map(|row| row.event.pid).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(programs(&by_perf), programs(&by_strace));
}

/// A shell's work under a tracer, in a directory of its own. `None` where it cannot trace.
fn record(dir: &Path, tracer: &str, before: &[&str], behind: &[&str]) -> Option<Vec<u8>> {
    let (work, file) = (dir.join("work"), dir.join(tracer));
    std::fs::create_dir(&work).expect("a directory");
    // perf hears each processor by itself: of a program that moves between them, returns can stand before their
    // beginnings, and calls be lost.
    let allowed = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("0").trim();
    let first: String = allowed.chars().take_while(char::is_ascii_digit).collect();
    // perf puts a directory of its own in front of the PATH, in which the shell would look as well.
    let script = "PATH=/usr/bin:/bin; mkdir a; echo one > a/f; cp a/f a/g; mv a/g a/h; ln a/h a/i; ln -s h a/l; cat \
        a/f; ls -l a; rm -r a";
    let done = Command::new("taskset")
        .args(["-c", &first, tracer])
        .args(before)
        .arg("-o")
        .arg(&file)
        .args(behind)
        .args(["sh", "-c", script])
        .current_dir(&work)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output();
    std::fs::remove_dir_all(&work).expect("our directory");
    match done {
        Ok(output) if output.status.success() => Some(std::fs::read(&file).expect("the trace")),
        Ok(output) => {
            testkit::skip(format!("{tracer} cannot trace here: {}", String::from_utf8_lossy(&output.stderr)));
            None
        }
        Err(error) => {
            testkit::skip(format!("taskset cannot be run: {error}"));
            None
        }
    }
}
