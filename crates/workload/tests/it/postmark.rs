//! PostMark against the program it is made after: the same files, calls and counts for the same settings.

use crate::fake::Fake;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::{Need, Tool};
use workload::postmark::{self, Options};
use workload::{BenchResult, Benchmark as _, Phase, Repeat, Unit, WorkloadError};

/// Several settings, and the commands that give them to the program.
fn settings() -> Vec<(Options, &'static str)> {
    let once = Options { repeat: Repeat::once(), ..Options::default() };
    vec![
        (once.clone(), ""),
        (
            Options { seed: 7, transactions: 900, bias_read: Some(8), bias_create: Some(3), ..once.clone() },
            "set seed 7\nset transactions 900\nset bias read 8\nset bias create 3\n",
        ),
        (
            Options { number: 40, size_low: 5000, size_high: 70_000, subdirectories: 7, seed: 9, ..once.clone() },
            "set number 40\nset size 5000 70000\nset subdirectories 7\nset seed 9\n",
        ),
        (
            Options { read_block: 5000, write_block: 8192, size_high: 30_000, transactions: 300, ..once.clone() },
            "set read 5000\nset write 8192\nset size 500 30000\nset transactions 300\n",
        ),
        (
            Options { buffering: false, bias_read: None, transactions: 200, number: 100, ..once.clone() },
            "set buffering false\nset bias read -1\nset transactions 200\nset number 100\n",
        ),
        (
            // The table fills up: no file is created in some transactions.
            Options { number: 30, transactions: 300, bias_create: Some(9), ..once },
            "set number 30\nset transactions 300\nset bias create 9\n",
        ),
    ]
}

/// Runs the program in a directory; its standard output.
fn original(mut command: Command, location: &Path, settings: &str) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let commands = format!("set location {}\n{settings}run\nquit\n", location.display());
    child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

/// The report without its times: every number followed by "per second" depends on them, and so do the first two lines.
fn without_times(report: &str) -> Vec<String> {
    let from = report.find("Files:").unwrap();
    report[from..]
        .lines()
        .filter(|line| line.starts_with('\t'))
        .map(|line| line.split(" (").next().unwrap().to_owned())
        .collect()
}

fn run(options: &Options) -> (BenchResult, Fake) {
    let mut fs = Fake::default();
    let result = workload::run_on(&mut fs, options, &mut |_| {}).unwrap();
    assert!(fs.nodes().is_empty() && fs.descriptors() == 0);
    (result, fs)
}

#[test]
fn the_report_of_the_program_but_for_its_times() {
    if !testkit::need(Need::Tool(Tool::Postmark)) {
        return;
    }
    for (options, commands) in settings() {
        let directory = tempfile::tempdir().unwrap();
        let theirs = original(Command::new("postmark"), directory.path(), commands);
        let ours = postmark::text(&run(&options).0.targets[0]).unwrap();
        assert_eq!(without_times(&ours), without_times(&theirs), "{commands}");
        let shape = |text: &str| {
            let from = text.find("Time:").unwrap();
            let to = text.rfind("per second)").unwrap();
            text[from..to].chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect::<String>()
        };
        let units = |text: String| text.replace("megabytes", "bytes").replace("kilobytes", "bytes");
        assert_eq!(units(shape(&ours)), units(shape(&theirs)), "the layout");
    }
}

/// The calls that touch files of the benchmark, in words.
fn traced(strace: &str, location: &Path) -> Vec<String> {
    let location = format!("{}/", location.display());
    let mut calls = Vec::new();
    let mut open = None;
    for line in strace.lines() {
        let name = line.split(&location).nth(1).map(|rest| rest.split('"').next().unwrap());
        let call = line.split('(').next().unwrap();
        let last = |line: &str| line[..line.rfind(')').unwrap()].rsplit(", ").next().unwrap().to_owned();
        match (call, name) {
            ("openat" | "open", Some(name)) => {
                let how = match line {
                    _ if line.contains("O_APPEND") => "append",
                    _ if line.contains("O_CREAT") => "create",
                    _ => "open",
                };
                open = Some(name);
                calls.push(format!("{how} {name}"));
            }
            ("unlink", Some(name)) => calls.push(format!("unlink {name}")),
            ("write" | "read", None) if !line.contains("(0,") && !line.contains("(1,") => {
                if let (Some(name), false) = (open, last(line) == "0") {
                    calls.push(format!("{call} {name} {}", last(line)));
                }
            }
            ("fstat" | "newfstatat", None) if line.contains("(3,") => {
                calls.extend(open.map(|name| format!("fstat {name}")))
            }
            ("lseek", None) => calls.extend(open.map(|name| format!("lseek {name}"))),
            ("close", None) => calls.extend(open.take().map(|name| format!("close {name}"))),
            _ => {}
        }
    }
    calls
}

#[test]
fn the_calls_of_the_program_one_by_one() {
    if !testkit::needs(&[Need::Tool(Tool::Postmark), Need::Tool(Tool::Strace)]) {
        return;
    }
    for (options, commands) in settings() {
        let directory = tempfile::tempdir().unwrap();
        let (files, trace) = (directory.path().join("files"), directory.path().join("trace"));
        std::fs::create_dir(&files).unwrap();
        let mut strace = Command::new("strace");
        strace
            .args(["-e", "trace=open,openat,read,write,close,unlink,fstat,newfstatat,lseek", "-o"])
            .arg(&trace)
            .arg("postmark");
        original(strace, &files, commands);
        let theirs = traced(&String::from_utf8_lossy(&std::fs::read(&trace).unwrap()), &files);
        if theirs.is_empty() {
            testkit::skip("strace may not trace here");
            return;
        }
        let top = "fsage-bench-postmark.0-0/";
        let fs = run(&options).1;
        // What follows is the removal of the directories.
        let ours: Vec<String> = fs
            .log
            .iter()
            .take_while(|line| !line.starts_with("opendir"))
            .filter(|line| line.contains(top))
            .map(|line| line.replace(top, ""))
            .collect();
        let words = ["create", "append", "open", "fstat", "lseek", "read", "write", "close", "unlink"];
        let ours: Vec<String> =
            ours.into_iter().filter(|line| words.contains(&line.split(' ').next().unwrap())).collect();
        // The program asks for the offset and the block size of a file it appends to in the other order.
        let sorted = |calls: &[String]| {
            let mut calls = calls.to_vec();
            for pair in 1..calls.len() {
                if calls[pair].starts_with("lseek") && calls[pair - 1].starts_with("fstat") {
                    calls.swap(pair - 1, pair);
                }
            }
            calls
        };
        let (ours, theirs) = (sorted(&ours), sorted(&theirs));
        let differ = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        assert_eq!(differ.map(|at| (&ours[at], &theirs[at])), None, "{commands}: call {differ:?}");
        assert_eq!(ours.len(), theirs.len());
    }
}

#[test]
fn what_is_counted_and_how_it_is_timed() {
    let (result, fs) = run(&Options { repeat: Repeat::once(), ..Options::default() });
    // The program's own numbers for its defaults, as it printed them.
    let text = postmark::text(&result.targets[0]).unwrap();
    assert!(text.contains("\t764 created") && text.contains("\t243 read") && text.contains("\t257 appended"), "{text}");
    let phases = &result.targets[0].points[0].phases;
    let units: Vec<(Phase, Unit)> = phases.iter().map(|phase| (phase.phase, phase.unit)).collect();
    let expected = [
        (Phase::Create, Unit::FilesPerSecond),
        (Phase::Transactions, Unit::TransactionsPerSecond),
        (Phase::Delete, Unit::FilesPerSecond),
    ];
    assert_eq!(units, expected);
    let create = &phases[0].rounds[0];
    assert_eq!((create.files, phases[1].rounds[0].completed), (500, 500));
    assert_eq!(create.time_ns(true), create.elapsed_ns, "nothing is synced");
    assert!(fs.logged("syncfs").is_empty() && fs.logged("drop").len() == 1);
}

#[test]
fn a_pool_without_files_ends_the_run_and_nothing_is_left() {
    let options = Options { number: 5, bias_create: Some(0), repeat: Repeat::once(), ..Options::default() };
    let mut fs = Fake::default();
    let error = workload::run_on(&mut fs, &options, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("out of files after 5 transactions"), "{error}");
    assert!(fs.nodes().is_empty() && fs.descriptors() == 0);
    let refused = |options: Options| assert!(matches!(options.check(), Err(WorkloadError::Options(_))));
    refused(Options { size_low: 2, size_high: 1, ..options.clone() });
    refused(Options { bias_read: Some(11), ..options.clone() });
    refused(Options { seed: 0, ..options });
}
