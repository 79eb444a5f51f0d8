//! Two tracers on one run must tell the same: strace stops the program at each call and prints it, the recorder in the
//! kernel watches both. Where they differ, one of them is wrong.

use crate::common;
use crate::common::{Row, in_thread, may_record, record};
use crate::harness;
use crate::harness::Run;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use trace::agree::{Agreement, Comparison, Fact};
use trace::record::{Strace, Tracer};
use trace::strace::{ImportOptions, Importer};
use trace::{Op, Paths, flag};

/// Rows by thread, in order.
type Threads = BTreeMap<u32, Vec<Row>>;

/// Records a command under strace by the recorder in the kernel, and imports both. Rows by thread, of the threads that
/// strace saw.
fn both(command: &[OsString], directory: &Path) -> Option<(Threads, Threads)> {
    if !may_record() {
        return None;
    }
    // Not where the command works: what it reads must not grow as it is traced reading it.
    let outside = tempfile::tempdir().expect("a directory");
    let text = outside.path().join("strace.out");
    let strace = Strace::find(None).expect("strace, which tests need (apt-get install strace)");
    let mut argv: Vec<OsString> = vec!["strace".into()];
    argv.extend(strace.describe().options.iter().map(OsString::from));
    argv.extend(["-o".into(), text.clone().into(), "--".into()]);
    argv.extend_from_slice(command);
    let recorded = record(&argv, directory);
    assert_eq!(recorded.totals.lost, 0, "the ring is large enough for a test");
    assert_eq!(recorded.imported.summary.problems, []);
    if let Some(kept) = std::env::var_os("TORTURE_DUMP") {
        std::fs::copy(&text, Path::new(&kept).join("strace.out")).expect("the copy");
    }
    let mut rows = Vec::new();
    let mut importer = Importer::new(ImportOptions::default());
    let file = std::io::BufReader::new(std::fs::File::open(&text).expect("strace's output"));
    importer.read(file, &mut |batch| common::collect(&mut rows, &batch)).expect("strace's text");
    let imported = importer.finish(&mut |batch| common::collect(&mut rows, &batch)).expect("strace's text");
    assert_eq!(imported.summary.problems, []);
    let judge = in_thread(rows);
    // What no call shows, strace does not see.
    let calls = recorded.rows.into_iter().filter(|row| !matches!(row.event.op, Op::MapRead | Op::MapWrite)).collect();
    let mut ours = in_thread(calls);
    ours.retain(|tid, _| judge.contains_key(tid));
    Some((judge, ours))
}

/// What both can tell: everything but times, identities, and lengths known from elsewhere than the calls. Where strace
/// does not know an offset, `judge`'s row says so, and ours is not compared.
fn comparable(row: &Row, judge: &Row) -> String {
    let e = &row.event;
    // strace prints the end of a process after the kernel has closed what it had open: whose close of a pipe is the
    // last is another's.
    let unsure = if e.op == Op::Close && e.flags & flag::FOREIGN != 0 { flag::LAST } else { 0 };
    let path = |p: &Option<Vec<u8>>| p.as_ref().map_or("-".into(), |p| p.escape_ascii().to_string());
    format!(
        "{} flags={:#x} mode={:?} errno={} ret={} offset={:?}/{:?} len={:?} {} {} {} {}",
        e.op.name(),
        e.flags & !unsure,
        e.mode,
        e.errno,
        if e.op == Op::Mmap { 0 } else { e.ret },
        e.offset.filter(|_| judge.event.offset.is_some()),
        e.offset2.filter(|_| judge.event.offset2.is_some()),
        e.req_bytes,
        path(&row.path),
        path(&row.path2),
        path(&row.caller_dir),
        path(&row.caller_dir2),
    )
}

fn agree(command: &[&str], directory: &Path) {
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let Some((judge, ours)) = own_calls_by_both(&command, directory) else { return };
    let mut differences = Vec::new();
    let mut calls = 0;
    for (tid, theirs) in &judge {
        let ours = &ours[tid];
        calls += theirs.len();
        for (i, (a, b)) in theirs.iter().zip(ours).enumerate() {
            let (said, seen) = (comparable(a, a), comparable(b, a));
            if said != seen {
                differences.push(format!("thread {tid}, call {i}:\n  strace {said}\n  kernel {seen}"));
            }
        }
        if theirs.len() != ours.len() {
            differences.push(format!("thread {tid}: {} calls by strace, {} by the kernel", theirs.len(), ours.len()));
        }
    }
    assert!(calls > 0, "nothing was compared");
    let shown = differences.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differences in {calls} calls:\n{shown}", differences.len());
    eprintln!("{calls} calls of {} threads agree", judge.len());
}

/// The rows of the command's own calls alone.
fn own_calls_by_both(command: &[OsString], directory: &Path) -> Option<(Threads, Threads)> {
    let (judge, mut ours) = both(command, directory)?;
    assert_eq!(judge.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>(), "the threads");
    // The command's first thread was strace's own before its exec.
    let first = judge.values().min_by_key(|rows| rows[0].event.t_ns).expect("a thread")[0].clone();
    let rows = ours.get_mut(&first.event.tid).expect("the first thread");
    let own = rows.iter().position(|row| comparable(row, &first) == comparable(&first, &first)).expect("its exec");
    rows.drain(..own);
    Some((judge, ours))
}

/// A row as the comparison takes it.
fn fact(row: &Row) -> Option<Fact> {
    let mut paths = Paths::default();
    let mut interned = |path: &Option<Vec<u8>>| path.as_deref().map(|path| paths.intern(path));
    let event = trace::profile::Row {
        path: interned(&row.path),
        path2: interned(&row.path2),
        caller_dir: interned(&row.caller_dir),
        caller_dir2: interned(&row.caller_dir2),
        ..row.event
    };
    Fact::of_event(&event.into(), &paths)
}

fn compared(judge: &Threads, ours: &Threads) -> Agreement {
    let mut comparison = Comparison::default();
    for (name, side) in [("left", judge), ("right", ours)] {
        let facts: Vec<Fact> = side.values().flatten().filter_map(fact).collect();
        harness::dump(name, facts.iter());
        facts.into_iter().for_each(|fact| if name == "left" { comparison.left(fact) } else { comparison.right(fact) });
    }
    comparison.finish()
}

/// Programs of several processes, with the files that each call was about.
fn agree_on_files(tool: &str, script: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    if !Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success()) {
        testkit::skip(format!("{tool} is not installed"));
        return;
    }
    let made = "mkdir -p src/sub && for i in $(seq 60); do echo \"int f$i(void) { return $i; }\" > src/f$i.c; cp \
        src/f$i.c src/sub/; done";
    let prepared = Command::new("sh").arg("-ec").arg(made).current_dir(directory.path()).status().expect("sh");
    assert!(prepared.success());
    let command = ["sh", "-ec", &format!("cd {} && {script}", directory.path().display())].map(OsString::from);
    let Some((judge, ours)) = own_calls_by_both(&command, directory.path()) else { return };
    let agreement = compared(&judge, &ours);
    eprintln!(
        "{tool}: {} calls, {} files compared, {} differences",
        agreement.calls,
        agreement.files_compared,
        agreement.total()
    );
    agreement.differences.iter().take(12).for_each(|difference| eprintln!("{difference}"));
    assert!(agreement.calls > 500, "{} calls", agreement.calls);
    assert_eq!(
        (agreement.total(), agreement.received),
        (0, 0),
        "{tool}: left is strace, right the recorder in the kernel"
    );
}

#[test]
fn rsync() {
    agree_on_files(
        "rsync",
        "rsync -a src/ copy/ && echo more >> src/f1.c && rm src/f2.c && rsync -a --delete src/ copy/",
    );
}

#[test]
fn git() {
    let author = "-c user.name=n -c user.email=e@example.org";
    agree_on_files(
        "git",
        &format!(
            "cd src && git init -q . && git add . && git {author} commit -qm one && cd .. && git clone -q src clone"
        ),
    );
}

#[test]
fn make() {
    let makefile = "all: $(patsubst %.c,%.o,$(wildcard *.c))";
    agree_on_files("make", &format!("cd src && echo '{makefile}' > Makefile && make -s -j3"));
}

/// What is hard to record, one call at a time: the files must be the same too. (Two calls that overlap are told by
/// strace in the order in which it came to see them, so there it may take a descriptor for what the number stood for
/// before.)
#[test]
fn the_torture_program() {
    let run =
        Run { seed: 5, operations: 3_000, processes: 3, threads: 2, serial: true, everything: false, rooted: false };
    let Some(stage) = harness::stage(&run) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let Some((judge, ours)) = own_calls_by_both(&stage.command, directory.path()) else { return };
    let agreement = compared(&judge, &ours);
    assert!(agreement.calls > run.operations / 2, "{} calls", agreement.calls);
    // A path does not tell which description came over a socket.
    let received = stage.received();
    assert!(agreement.received <= received, "{} of {received} received", agreement.received);
    harness::assert_none_differ(&run, "left is strace, right the recorder in the kernel", &agreement);
}

#[test]
fn a_shell_script() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = format!(
        "cd {} && mkdir -p a/b/c && echo hello > a/b/f && cat a/b/f >> g && ln a/b/f h && ln -s ../g a/s && cat a/s && \
         mv a/b a/d && cat a/d/f && (cd a/d && echo x >> f && ls -la . .. >/dev/null) && stat nothing; \
         cp -a a e && rm -r e && truncate -s 100 g && touch g && chmod 600 g && rmdir a/d/c && \
         for i in 1 2 3 4 5; do (for j in 1 2 3; do echo $i$j >> f$i; cat f$i > /dev/null; done) & done; wait; \
         tail -c 3 g | od > /dev/null; dd if=g of=k bs=7 count=3 seek=2 conv=notrunc 2>/dev/null; sync k; find . -type \
         f | sort | xargs wc > w; tar cf t.tar a && tar tf t.tar > /dev/null && gzip t.tar; exec 3<g; read x <&3; sh \
         -c 'kill -9 $$'; exit 3",
        directory.path().display()
    );
    agree(&["sh", "-c", &script], directory.path());
}

#[test]
fn a_directory_renamed_while_it_is_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = format!(
        "cd {} && mkdir -p one/two && exec 5>one/two/file && cd one/two && mv ../../one ../../other && echo text >&5 \
         && ls > list && cat list && pwd && cd .. && echo more >&5 && rm two/file && echo gone >&5",
        directory.path().display()
    );
    agree(&["sh", "-c", &script], directory.path());
}

#[test]
fn sockets_bound_to_paths() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = "import os, socket\n\
        def bound(path, of=socket.AF_UNIX):\n\
        \x20s = socket.socket(of)\n\
        \x20try: s.bind(path)\n\
        \x20except OSError: pass\n\
        \x20return s\n\
        open('file', 'w').close(); os.mkdir('d')\n\
        s = bound('d/s'); bound('d/s'); bound('none/s'); bound('file/s'); bound(os.path.abspath('t'))\n\
        bound('\\0abstract'); bound(''); bound(('127.0.0.1', 0), socket.AF_INET); bound('x' * 107)\n\
        try: s.bind('again')\n\
        except OSError: pass\n\
        os.chmod('d/s', 0o600); os.stat('d/s'); os.rename('d/s', 'u'); os.unlink('u'); os.unlink('t')\n";
    let script = format!("cd {} && python3 -c \"$1\"", directory.path().display());
    agree(&["sh", "-c", &script, "sh", program], directory.path());
}

/// Opened as a path, a socket is a name like others; the torture program met one now and then (its seed 5).
#[test]
fn a_socket_opened_as_a_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = "import os, socket\n\
        def refused(call, *given, **more):\n\
        \x20try: call(*given, **more)\n\
        \x20except OSError: pass\n\
        socket.socket(socket.AF_UNIX).bind('s'); os.mkfifo('p')\n\
        to = os.open('to', os.O_RDWR | os.O_CREAT)\n\
        for name in 's', 'p', '/dev/null', 'to':\n\
        \x20fd = os.open(name, os.O_PATH)\n\
        \x20refused(os.copy_file_range, fd, to, 5, offset_src=3, offset_dst=7)\n\
        \x20refused(os.copy_file_range, to, fd, 5, offset_src=3, offset_dst=7)\n\
        \x20refused(os.pread, fd, 4, 2); refused(os.fsync, fd); os.fstat(fd); refused(os.fchmod, fd, 0o600)\n\
        \x20os.close(os.dup(fd)); os.close(fd)\n";
    let script = format!("cd {} && python3 -c \"$1\"", directory.path().display());
    agree(&["sh", "-c", &script, "sh", program], directory.path());
}

#[test]
fn a_program_with_threads() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = "import os, threading\n\
        def work(n):\n\
        \x20for i in range(200):\n\
        \x20\x20p = f'f{n}'\n\
        \x20\x20fd = os.open(p, os.O_RDWR | os.O_CREAT)\n\
        \x20\x20os.pwrite(fd, b'x' * (i + 1), i)\n\
        \x20\x20os.preadv(fd, [bytearray(10), bytearray(7)], 3)\n\
        \x20\x20os.writev(fd, [b'ab', b'cde'])\n\
        \x20\x20os.fstat(fd); os.stat(p); os.close(fd)\n\
        \x20\x20os.rename(p, p + 'x'); os.unlink(p + 'x')\n\
        ts = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n\
        [t.start() for t in ts]; [t.join() for t in ts]\n";
    let script = format!("cd {} && python3 -c \"$1\"", directory.path().display());
    agree(&["sh", "-c", &script, "sh", program], directory.path());
}
