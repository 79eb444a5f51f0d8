//! What the command-line tests share: running the binary, and the files they run it on.

pub mod plan_file;
pub mod process;

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::process::Stdio;
use trace::profile::{Meta, Row, Writer, WriterOptions};
use trace::{Batch, OfdId, Op, Snapshot, flag};

/// The binary under test.
pub fn fsage() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsage"));
    // Sentences stay in their lines.
    command.env_remove("RUST_BACKTRACE").env("COLUMNS", "1000");
    // One time in every result, so that two of the same run are the same; what is kept for the user is kept among the
    // tests' files.
    command.env("SOURCE_DATE_EPOCH", "1700000000").env("XDG_DATA_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs it with arguments in a directory.
pub fn run(directory: &Path, args: &[&str]) -> Output {
    fsage().current_dir(directory).args(args).output().expect("the binary runs")
}

/// Its exit code.
pub fn code(output: &Output) -> i32 {
    output.status.code().expect("it exited by itself")
}

/// What it said on standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether a line on standard error is about what another run has left: whichever command comes next takes that down,
/// and tells it, also what a test beside it has just killed.
pub fn is_of_another_run(line: &str) -> bool {
    line.ends_with(", left by a run that was killed")
}

/// Asserts an exit code and that every given text is in the error message.
#[track_caller]
pub fn fails(output: &Output, expected: i32, texts: &[&str]) {
    let said = stderr(output);
    assert_eq!(code(output), expected, "{said}");
    assert!(output.stdout.is_empty(), "a failure prints nothing on standard output");
    assert!(said.starts_with("fsage: "), "{said}");
    for text in texts {
        assert!(said.contains(text), "{text:?} is not in: {said}");
    }
}

/// Asserts success, and gives what it printed on standard output.
#[track_caller]
pub fn succeeds(output: &Output) -> String {
    assert_eq!(code(output), 0, "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).expect("output is UTF-8")
}

/// Where commands work in a target directory: in private directories, and on ext4 in one within each.
pub fn works_in(target: &Path) -> Vec<PathBuf> {
    let below = |path: &Path| -> Vec<PathBuf> {
        // They come and go meanwhile.
        std::fs::read_dir(path).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
    };
    let private = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("fsage-"));
    let outer = below(target);
    let inner = outer.iter().flat_map(|path| below(path)).filter(private);
    inner.collect::<Vec<_>>().into_iter().chain(outer).collect()
}

/// A small recorded trace: a shell script that writes, copies, links, lists and removes a few files.
pub fn trace_text() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/small.strace")
}

/// That trace imported as `small.workload` into a directory.
pub fn small_workload(directory: &Path) -> PathBuf {
    let output = directory.join("small.workload");
    let trace = trace_text();
    succeeds(&fsage().arg("import").arg(trace).arg("-o").arg(&output).output().expect("the binary runs"));
    output
}

/// A system profile written by hand: everything costs the same, with an interval where rounds are given.
pub fn small_system(directory: &Path, name: &str, cost_ns: f64) -> PathBuf {
    let mut text = format!("format_version = 1\nname = \"{name}\"\nprovenance = \"written by hand for a test\"\n");
    text.push_str(
        "[parameters]\ndata_cache_bytes = 1073741824\nwriteback_bytes_per_s = 1e8\nwriteback_files_per_s = 1e4\n",
    );
    text.push_str("[entries]\n");
    // It has no processor whose caches things could be far from, and an inode in each block: where the neighbours lie,
    // which goes by the order of names, does not matter.
    let not_here = |class| {
        use system::vector::Class::{LookupFar, LookupFarInOrder, LookupNearMiss, ReadFar, ReadFarByte, ReadFirstNext};
        matches!(class, LookupFar | LookupFarInOrder | LookupNearMiss | ReadFar | ReadFarByte | ReadFirstNext)
    };
    for class in system::vector::Class::ALL.iter().filter(|class| !not_here(**class)) {
        let points: &[u64] = if class.is_curve() { class.points() } else { &[0] };
        for at in points {
            text.push_str(&format!(
                "{} = \"{}ns\"\n",
                system::vector::entry_name(*class, *at),
                cost_ns + *at as f64 * 0.1
            ));
        }
    }
    let path = directory.join(format!("{name}.system"));
    std::fs::write(&path, text).expect("the directory takes files");
    path
}

/// A workload of many calls on many files, four on each.
pub fn long_workload(profile: &Path, calls: u64) {
    let mut writer = Writer::create(profile, WriterOptions::default()).expect("a new profile");
    let mut batch = Batch::default();
    for n in 0..calls {
        let file = n / 4;
        let path = Some(batch.paths.intern(format!("/d{}/e{}/f{file}", file % 100, file % 1000).as_bytes()));
        let op = [Op::Open, Op::Write, Op::Close, Op::Stat][usize::try_from(n % 4).expect("small")];
        let mut event = Row { pid: 1, tid: 1, path, dur_ns: 900, ..Row::new(n, n * 1000, op) };
        if op != Op::Stat {
            event.ofd = Some(OfdId(1 + file));
            event.flags = if op == Op::Open { flag::CREATE | flag::WRITE } else { flag::LAST };
            event.mode = (op == Op::Open).then_some(0o644);
            event.req_bytes = (op == Op::Write).then_some(100);
        }
        batch.events.push(event.into());
        if batch.events.len() == 65_536 {
            writer.push(&batch).expect("written");
            batch = Batch::default();
        }
    }
    writer.push(&batch).expect("written");
    writer.finish(Meta::default(), &Snapshot::default()).expect("a whole profile");
}

/// The names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("the directory is there")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Makes a test of each of these functions for either tracer.
#[allow(unused_macros)] // Not every file of tests records.
macro_rules! with_each_tracer {
    ($($name:ident),* $(,)?) => {
        mod strace {
            $(#[test] fn $name() { super::$name("strace") })*
        }
        mod ebpf {
            $(#[test] fn $name() { super::$name("ebpf") })*
        }
    };
}
#[allow(unused_imports)]
pub(crate) use with_each_tracer;

/// Runs a script in a directory, with processes, mounts and a list of the clean-up of its own: others would be told of
/// what is in theirs, too.
#[track_caller]
pub fn apart(directory: &Path, script: &str) {
    let script = format!("mkdir -p /run/fsage && mount -t tmpfs list /run/fsage || exit 9\n{script}\nexit 0");
    let mut command = testkit::process::with_default_signals("unshare");
    // Whatever it started ends with it.
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", &script, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_fsage")).current_dir(directory);
    let output = command.stdin(Stdio::null()).output().expect("unshare runs");
    println!("{}", String::from_utf8_lossy(&output.stdout));
    succeeds(&output);
}

/// Unmounts with `fsage umount`. "In use" is asked again: what this process has open, its other threads' children have
/// open too, from fork(2) to execve(2).
#[track_caller]
pub fn umount(directory: &Path, args: &[&str]) -> Output {
    let mut output = None;
    process::until("it is not in use", || {
        let said = run(directory, &[&["umount"], args].concat());
        let is_free = !stderr(&said).contains("is in use");
        output = Some(said);
        is_free
    });
    output.expect("it has run")
}
