//! A run that the clean-up tests stop in its middle:
//! `work_until_stopped TARGET [panic|keep|finish|stubborn|crowd|deep|mounted]`.
//!
//! Opens a workspace, says where on standard output, and makes files until a signal ends it. `panic` panics after a
//! while, `finish` ends by itself, `keep` keeps the workspace and ends, `stubborn` ignores the first signal, `crowd`
//! has three processes: two make directories, one is blocked for ever.
//! `deep` makes directories in directories and ends by itself, `mounted` mounts something in its way and does.
//! `output` as what it does makes a file on its way to a place in the directory TARGET, and a temporary directory, and
//! waits. With `sweep` as its only argument it sweeps up after killed runs and says what it removed.

use posix::output::Output;
use posix::{
    Call, FileSystem, Mode, OpenFlags, Outcome, Process, Step, Target, Workspace, WorkspaceOptions, cleanup, interrupt,
};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().unwrap_or_else(|| ".".to_string());
    let how = arguments.next().unwrap_or_default();
    if target == "sweep" {
        let report = cleanup::sweep();
        report.removed.iter().for_each(|line| println!("{line}"));
        report.troubles.iter().for_each(|line| println!("trouble: {line}"));
        return ExitCode::SUCCESS;
    }
    match run(&target, &how) {
        Ok(()) => interrupt::exit_code().map_or(ExitCode::SUCCESS, ExitCode::from),
        Err((code, message)) => {
            eprintln!("{message}");
            ExitCode::from(code)
        }
    }
}

fn run(target: &str, how: &str) -> Result<(), (u8, String)> {
    interrupt::install().map_err(|e| (3, e.to_string()))?;
    if how == "output" {
        let failed = |e: std::io::Error| (3, e.to_string());
        let (output, mut file) = Output::create(&Path::new(target).join("result"), 0o600).map_err(failed)?;
        let temporary = cleanup::Temporary::new().map_err(failed)?;
        file.write_all(b"half a result")
            .and_then(|()| std::fs::write(temporary.path().join("x"), "y"))
            .map_err(failed)?;
        println!("{}", output.temporary().display());
        let _ = std::io::stdout().flush();
        while !interrupt::requested() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        return Ok(());
    }
    let target = Target::parse(target).map_err(|e| (2, e.to_string()))?;
    let options = WorkspaceOptions { keep: how == "keep", ..WorkspaceOptions::default() };
    let workspace = Workspace::open(&target, &options).map_err(|e| (code_of(&e), e.to_string()))?;
    let mut fs = workspace.fs();
    println!("{}", workspace.path().display());
    let _ = std::io::stdout().flush();
    if how == "crowd" {
        let crowd: Vec<Box<dyn Process>> = vec![Box::new(Maker::new("a")), Box::new(Maker::new("b")), Box::new(Waiter)];
        let ended = fs.run(crowd);
        drop(fs);
        workspace.close().map_err(|e| (3, e.to_string()))?;
        return match ended {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            other => Err((1, format!("{other:?}"))),
        };
    }
    if how == "deep" {
        let mut path = std::path::PathBuf::new();
        for _ in 0..500 {
            path.push("d");
            fs.call(&Call::Mkdir { at: path.as_path().into(), mode: Mode(0o755) })
                .result
                .map_err(|e| (1, e.to_string()))?;
        }
    }
    if how == "mounted" {
        let point = workspace.path().join("point");
        let mounted = std::fs::create_dir(&point).and_then(|()| Ok(rustix::mount::mount_bind(&point, &point)?));
        mounted.map_err(|e| (1, e.to_string()))?;
    }
    if matches!(how, "deep" | "mounted") {
        drop(fs);
        return workspace.close().map_err(|e| (3, e.to_string()));
    }
    let mut n = 0u64;
    loop {
        if how == "stubborn" {
            fs.pause_ns(1_000_000);
            std::thread::sleep(std::time::Duration::from_millis(1));
        } else if interrupt::requested() {
            break;
        }
        let name = format!("file{}", n % 500);
        let open = Call::Open {
            at: Path::new(&name).into(),
            flags: OpenFlags { create: true, ..OpenFlags::WRITE },
            mode: Mode(0o644),
        };
        let fd = fs.call(&open).fd().map_err(|e| (1, e.to_string()))?;
        let written = fs.call(&Call::Write { fd, offset: None, len_bytes: 100_000, data: None });
        written.count().map_err(|e| (1, e.to_string()))?;
        // Every other file stays open: a killed run has descriptors.
        if n.is_multiple_of(2) {
            let _ = fs.call(&Call::Close { fd });
        }
        n += 1;
        match (how, n) {
            ("panic", 300) => panic!("in the middle of a run"),
            ("finish" | "keep", 300) => break,
            _ => {}
        }
    }
    drop(fs);
    workspace.close().map_err(|e| (3, e.to_string()))
}

/// Makes and removes a directory for ever.
struct Maker {
    name: &'static str,
    made: bool,
}

impl Maker {
    fn new(name: &'static str) -> Maker {
        Maker { name, made: false }
    }
}

impl Process for Maker {
    fn next(&mut self, _: Option<&Outcome>) -> Step<'_> {
        self.made = !self.made;
        let at = self.name.into();
        Step::Call(if self.made { Call::Mkdir { at, mode: Mode(0o755) } } else { Call::Rmdir { at } })
    }
}

struct Waiter;

impl Process for Waiter {
    fn next(&mut self, _: Option<&Outcome>) -> Step<'_> {
        Step::Blocked
    }
}

/// As the command line has it.
fn code_of(error: &impl fault::Fault) -> u8 {
    match error.kind() {
        fault::Kind::Interrupted => posix::interrupt::exit_code().unwrap_or(130),
        _ => 3,
    }
}
