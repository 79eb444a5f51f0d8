//! Whom the recorder records: processes that run already, control groups, whoever touches a mount, programs in a
//! container, 32-bit programs. Each test's program works on files of names that nobody else uses, so that what is
//! recorded can be told.

use crate::common::{Recorded, Row, compiled, import, may_record, record, record_while};
use capture::{Options, Recorder};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use trace::record::Target;
use trace::{Op, flag};

/// Rows about a path at or below a directory.
fn below<'r>(rows: &'r [Row], directory: &Path) -> Vec<&'r Row> {
    let inside = |path: &[u8]| path.starts_with(directory.as_os_str().as_bytes());
    rows.iter().filter(|row| inside(row.path()) || row.path2.as_deref().is_some_and(inside)).collect()
}

fn count(rows: &[&Row], op: Op, end: &str) -> usize {
    let matches = |row: &&&Row| row.event.op == op && row.event.errno == 0 && row.path().ends_with(end.as_bytes());
    rows.iter().filter(matches).count()
}

/// Waits until something is so, for a minute at most.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it took a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program that does what it is told on standard input, line by line, and answers each line when it has done it.
struct Told(Child, BufReader<std::process::ChildStdout>);

impl Told {
    fn shell(directory: &Path, before: impl FnOnce(&mut Command)) -> Told {
        let mut command = Command::new("bash");
        command.args(["-c", "echo ready; while read -r line; do eval \"$line\"; echo done; done"]);
        command.current_dir(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        before(&mut command);
        let mut child = command.spawn().expect("bash");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let mut told = Told(child, out);
        told.answer();
        told
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).expect("an answer");
        line
    }

    fn tell(&mut self, what: &str) {
        writeln!(self.0.stdin.as_ref().expect("its input"), "{what}").expect("told");
        assert_eq!(self.answer(), "done\n");
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn processes_that_run_already_with_what_they_started_and_start() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let root = std::fs::canonicalize(directory.path()).expect("its path");
    let mut told = Told::shell(&root, |_| {});
    // A child that is there before the recording, and the descriptor it inherited.
    told.tell(
        "exec 7>inherited; echo 12345678 >&7; mkfifo go; (read x < go; echo child >&7; echo child > by_child) & \
        child=$!; cd /",
    );
    let mut stranger = Told::shell(&root, |_| {});
    let recorded = record_while(&Target::Processes(vec![told.pid()]), || {
        told.tell(&format!(
            "echo parent >&7; cd {}; cat by_nobody 2>/dev/null; echo x > by_parent; echo go > go; wait",
            root.display()
        ));
        stranger.tell("echo stranger > by_stranger");
    });
    let rows = below(&recorded.rows, &root);
    let inherited: Vec<(Option<u64>, i64)> = rows
        .iter()
        .filter(|r| r.event.op == Op::Write && r.path().ends_with(b"/inherited"))
        .map(|r| (r.event.offset, r.event.ret))
        .collect();
    assert_eq!(
        inherited,
        [(Some(9), 7), (Some(16), 6)],
        "by both, through a descriptor from before, behind what was there"
    );
    assert_eq!(count(&rows, Op::Open, "/by_child"), 1);
    assert_eq!(count(&rows, Op::Open, "/by_parent"), 1);
    assert!(
        rows.iter().any(|row| row.path().ends_with(b"/by_nobody") && row.event.errno == 2),
        "by a program started since"
    );
    assert!(!rows.iter().any(|row| row.path().ends_with(b"/by_stranger")), "a stranger is not recorded");
    assert_eq!(recorded.imported.summary.problems, []);
    // The process lives on, and works.
    told.tell("echo again > again");
    assert!(root.join("again").exists());
}

#[test]
fn threads_of_a_process_that_runs_already() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let root = std::fs::canonicalize(directory.path()).expect("its path");
    let program = "import sys, threading\n\
        go = threading.Barrier(4)\n\
        def work(n):\n\
        \x20go.wait()\n\
        \x20open(f'by_thread_{n}', 'w').close()\n\
        ts = [threading.Thread(target=work, args=(n,)) for n in range(3)]\n\
        [t.start() for t in ts]\n\
        print('ready', flush=True)\n\
        sys.stdin.readline()\n\
        go.wait()\n\
        [t.join() for t in ts]\n\
        print('done', flush=True)\n\
        sys.stdin.readline()\n";
    let mut child = Command::new("python3")
        .args(["-c", program])
        .current_dir(&root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let mut told = Told(child, out);
    assert_eq!(told.answer(), "ready\n");
    let pid = told.pid();
    let recorded = record_while(&Target::Processes(vec![pid]), || told.tell(""));
    let opens: Vec<&Row> = recorded
        .rows
        .iter()
        .filter(|r| r.event.op == Op::Open && r.path().starts_with(root.as_os_str().as_bytes()))
        .collect();
    assert_eq!(opens.len(), 3, "one by each thread");
    assert!(opens.iter().all(|row| row.event.pid == pid && row.event.tid != pid), "{opens:?}");
}

/// Processes that end while they are taken in are not waited for: the recording ends with the last of them. A zombie's
/// end was counted before it was wanted.
#[test]
fn who_has_ended_already_is_not_waited_for() {
    if !may_record() {
        return;
    }
    // The one wanted is an end that nobody has asked for; then one that forks all the time while it is taken in.
    let mut zombie = Command::new("true").spawn().expect("true");
    let pid = zombie.id();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    wait_until(state);
    let mut recorder =
        Recorder::start(&Target::Processes(vec![pid]), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    wait_until(|| {
        recorder.drain(&mut |_| {});
        recorder.has_ended()
    });
    zombie.wait().expect("its end");
    for _ in 0..5 {
        let mut forks =
            Command::new("sh").args(["-c", "for i in $(seq 300); do true & done; sleep 1"]).spawn().expect("sh");
        let target = Target::Processes(vec![forks.id()]);
        let mut recorder = Recorder::start(&target, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        forks.wait().expect("its end");
        wait_until(|| {
            recorder.drain(&mut |_| {});
            recorder.has_ended()
        });
    }
}

/// A thread that makes no call after the recording began shows itself by its faults.
#[test]
fn a_thread_that_makes_no_call() {
    const PROGRAM: &str = r#"
        #include <fcntl.h>
        #include <pthread.h>
        #include <stdio.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <unistd.h>

        static volatile char *told, *pages;

        static void *work(void *unused)
        {
            printf("%ld\n", (long)syscall(SYS_gettid));
            fflush(stdout);
            told[1] = 1;
            while (!told[0]);
            pages[3 * 4096] = 1;
            pages[5 * 4096] = 1;
            told[1] = 2;
            for (;;);
            return unused;
        }

        int main(void)
        {
            pthread_t thread;
            int fd = open("told", O_RDWR), other = open("pages", O_RDWR);
            told = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            pages = mmap(0, 16 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
            madvise((void *)pages, 16 * 4096, MADV_RANDOM);
            pthread_create(&thread, 0, work, 0);
            for (;;) pause();
        }
    "#;
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let root = std::fs::canonicalize(directory.path()).expect("its path");
    let Some(program) = compiled(PROGRAM, &root) else { return };
    std::fs::write(root.join("told"), [0; 4096]).expect("written");
    // Page by page, as what the cache keeps in one piece gets dirty in one; written back, as what is dirty already does
    // not get dirty.
    let mut pages = std::fs::File::create(root.join("pages")).expect("a file");
    for _ in 0..16 {
        pages.write_all(&[0; 4096]).expect("written");
    }
    pages.sync_all().expect("written back");
    let mut child = Command::new(program)
        .current_dir(&root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let mut told = Told(child, out);
    let tid: u32 = told.answer().trim().parse().expect("a number");
    let says = |what: u8| std::fs::read(root.join("told")).expect("read")[1] == what;
    wait_until(|| says(1));
    let recorded = record_while(&Target::Processes(vec![told.pid()]), || {
        let file = std::fs::OpenOptions::new().write(true).open(root.join("told")).expect("opened");
        std::os::unix::fs::FileExt::write_all_at(&file, &[1], 0).expect("written");
        wait_until(|| says(2));
    });
    if !recorded.imported.summary.coverage.accesses_seen {
        testkit::skip("this kernel has no tracepoints of faults");
        return;
    }
    let file = root.join("pages").into_os_string().into_encoded_bytes();
    let written: Vec<(u32, u32, Option<u64>)> = recorded
        .rows
        .iter()
        .filter(|r| r.event.op == Op::MapWrite && r.path() == file)
        .map(|r| (r.event.pid, r.event.tid, r.event.offset))
        .collect();
    assert_eq!(written, [3, 5].map(|page| (told.pid(), tid, Some(page * 4096))));
}

#[test]
fn a_control_group_and_those_in_it() {
    if !may_record() {
        return;
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    let Some(hierarchy) = mounts.lines().find_map(|l| {
        let mut words = l.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| Path::new(point).to_owned())
    }) else {
        testkit::skip("there is no cgroup2 here");
        return;
    };
    let outer = hierarchy.join(format!("fsage-test-{}", std::process::id()));
    let inner = outer.join("inner");
    if let Err(e) = std::fs::create_dir(&outer).and_then(|()| std::fs::create_dir(&inner)) {
        testkit::skip(format!("no control group can be made ({e})"));
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let root = std::fs::canonicalize(directory.path()).expect("its path");
    let mut inside = Told::shell(&root, |_| {});
    std::fs::write(inner.join("cgroup.procs"), inside.pid().to_string()).expect("moved");
    let mut outside = Told::shell(&root, |_| {});
    let recorded = record_while(&Target::Cgroup(outer.clone()), || {
        inside.tell("echo x > by_inside; cat by_inside > by_cat");
        outside.tell("echo x > by_outside");
    });
    drop((inside, outside));
    // A group is free some time after its last process has ended.
    for _ in 0..1000 {
        if std::fs::remove_dir(&inner).and_then(|()| std::fs::remove_dir(&outer)).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let rows = below(&recorded.rows, &root);
    assert_eq!((count(&rows, Op::Open, "/by_inside"), count(&rows, Op::Open, "/by_cat")), (2, 1));
    assert_eq!(count(&rows, Op::Open, "/by_outside"), 0);
    let no = capture::Recorder::start(&Target::Cgroup(root.clone()), &capture::Options::default());
    assert!(matches!(no, Err(capture::CaptureError::NoCgroup { .. })), "{no:?}");
}

/// Runs a script as root in a mount namespace of its own; what it prints.
fn in_own_namespace(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "bash", "-ec", script]);
    command
}

#[test]
fn whoever_touches_a_mount() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let root = std::fs::canonicalize(directory.path()).expect("its path");
    let (point, other) = (root.join("mounted"), root.join("other"));
    std::fs::create_dir(&point).expect("a directory");
    std::fs::create_dir(&other).expect("a directory");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&point).status();
    if !mounted.is_ok_and(|status| status.success()) {
        testkit::skip("nothing can be mounted here");
        return;
    }
    let mut one = Told::shell(&root, |_| {});
    let mut two = Told::shell(&point, |_| {});
    let recorded = record_while(&Target::Mount(point.clone()), || {
        one.tell(&format!(
            "echo x > {}/absolute; echo x > other/elsewhere; cat other/elsewhere > /dev/null",
            point.display()
        ));
        two.tell("echo y > relative; stat relative > /dev/null; cp ../other/elsewhere copied; mv relative renamed");
        one.tell(&format!("stat {}/absolute >/dev/null; rm mounted/absolute", point.display()));
    });
    drop((one, two));
    testkit::unmount(&point);
    let rows: Vec<&Row> = recorded.rows.iter().collect();
    assert_eq!(count(&rows, Op::Open, "/mounted/absolute"), 1);
    assert_eq!(count(&rows, Op::Write, "/mounted/absolute"), 1);
    assert_eq!(count(&rows, Op::Open, "/mounted/relative"), 1);
    assert_eq!(count(&rows, Op::Stat, "/mounted/absolute"), 1);
    assert_eq!(count(&rows, Op::Open, "/mounted/copied"), 1);
    assert!(rows.iter().any(|row| row.event.op == Op::Rename && row.path().ends_with(b"/mounted/relative")));
    let elsewhere: Vec<&&Row> = rows
        .iter()
        .filter(|row| row.event.op == Op::Write && !row.path().starts_with(point.as_os_str().as_bytes()))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

#[test]
fn a_container_tells_paths_as_its_processes_see_them() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let root = std::fs::canonicalize(directory.path()).expect("its path");
    // Where the root was goes below a directory of our own, which the container sees by the same name: another name
    // might be taken.
    let beside = tempfile::tempdir().expect("a directory");
    let own = std::fs::canonicalize(beside.path()).expect("its path");
    ["old", "box"].iter().for_each(|name| std::fs::create_dir(own.join(name)).expect("a directory"));
    let script = format!(
        "mount --rbind / {0}; cd {0}; pivot_root . {0}{1}/old; cd /; umount -l {1}/old; cd {1}/box; echo x > inside; \
         cat inside {1}/box/inside",
        root.display(),
        own.display()
    );
    if in_own_namespace("mount --rbind / /mnt").status().is_ok_and(|s| !s.success()) {
        testkit::skip("no mount namespace can be made here");
        return;
    }
    let argv: Vec<OsString> =
        std::iter::once("unshare".into()).chain(in_own_namespace(&script).get_args().map(Into::into)).collect();
    let recorded = record(&argv, Path::new("/"));
    assert!(recorded.status.success(), "{}", recorded.status);
    let rows: Vec<&Row> = recorded.rows.iter().collect();
    assert_eq!(count(&rows, Op::Write, "inside"), 1);
    let write = rows.iter().find(|r| r.event.op == Op::Write && r.path().ends_with(b"inside")).expect("the write");
    assert_eq!(write.path(), own.join("box/inside").as_os_str().as_encoded_bytes());
    let files: std::collections::BTreeSet<_> =
        rows.iter().filter(|r| r.path().ends_with(b"/box/inside")).filter_map(|r| r.event.file).collect();
    assert_eq!(files.len(), 1, "one file by relative and by absolute path");
}

#[test]
fn a_program_under_another_root_directory() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let root = std::fs::canonicalize(directory.path()).expect("its path");
    // What is inside of the root is named from outside: one tree of names for all processes.
    let program = format!(
        "import os\nos.chroot('{0}')\nos.chdir('/')\nopen('/absolute', 'w').write('x')\nopen('relative', \
         'w').write('y')\n\
         os.rename('/absolute', '/moved')\nos.stat('moved')\n",
        root.display()
    );
    let recorded = record(&["python3".into(), "-c".into(), program.into()], Path::new("/"));
    if !recorded.status.success() {
        testkit::skip("chroot is not allowed here");
        return;
    }
    let rows = below(&recorded.rows, &root);
    let path = |name: &str| root.join(name).into_os_string().into_encoded_bytes();
    let of = |op: Op| rows.iter().filter(|r| r.event.op == op).map(|r| r.path().to_vec()).collect::<Vec<_>>();
    assert_eq!(of(Op::Write), [path("absolute"), path("relative")]);
    assert_eq!(of(Op::Rename), [path("absolute")]);
    assert_eq!(of(Op::Stat).last(), Some(&path("moved")));
}

#[test]
fn calls_by_the_32_bit_entry_and_unknown_numbers_are_counted() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    // getpid by the 32-bit entry (20 there, writev here), and a number no kernel knows.
    let source = "#include <unistd.h>\n#include <sys/syscall.h>\n\
        int main(void) \
        { int r; for (int i = 0; i < 3; i++) __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20) : \"memory\");\n\
        syscall(500); syscall(4000); return r == getpid() ? 0 : 1; }\n";
    let Some(program) = compiled(source, directory.path()) else { return };
    let recorded: Recorded = record(&[program], directory.path());
    assert_eq!(recorded.status.code(), Some(0), "the 32-bit entry works here");
    let others = &recorded.imported.summary.coverage.other_by_name;
    assert_eq!(others.get("32-bit call 20"), Some(&3), "{others:?}");
    assert_eq!(others.get("call 500"), Some(&1), "{others:?}");
    assert_eq!(others.get("call 4000"), Some(&1), "{others:?}");
    assert!(!recorded.rows.iter().any(|r| r.event.op == Op::Write), "number 20 is no writev there");
}

#[test]
fn a_process_killed_in_the_middle_of_a_call() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    // Killed once the kernel says that it is inside of call 0, the read.
    let script =
        "mkfifo pipe; (exec 3<>pipe; read x <&3) & until grep -q '^0 ' /proc/$!/syscall; do :; done; kill -9 $!; wait";
    let recorded = record(&["bash".into(), "-c".into(), script.into()], directory.path());
    // The kernel ends the call before the process, as one that a signal interrupted.
    let cut = |r: &&Row| r.event.flags & flag::UNFINISHED != 0 || r.event.errno == posix::Errno::EINTR.0;
    let cut: Vec<&Row> = recorded.rows.iter().filter(|r| r.event.op == Op::Read).filter(cut).collect();
    assert_eq!(cut.len(), 1, "the read of the pipe");
    assert!(cut[0].path().ends_with(b"/pipe") && cut[0].event.blocked_ns > Some(0), "{:?}", cut[0]);
    let tid = cut[0].event.tid;
    let end = recorded.rows.iter().find(|r| r.event.tid == tid && r.event.op == Op::Exit).expect("its end");
    assert_eq!(end.event.ret, 128 + 9);
    // Records cut short anywhere else are as if nothing had been recorded later.
    let half = &recorded.records[..recorded.records.len() / 2];
    let (rows, imported) = import(half);
    assert!(!rows.is_empty() && imported.summary.problems.len() <= 1, "{:?}", imported.summary.problems);
}
