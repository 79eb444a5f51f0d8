//! strace on this machine: where it is, what it can do, and the options that suit.

use super::RecordError;
use crate::strace::traced_calls;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The strace to use.
#[derive(Clone, Debug)]
pub(super) struct Tracer {
    pub program: PathBuf,
    /// As it states it ("6.1").
    pub version: String,
    /// Everything before `-o`, but for `-p`.
    pub options: Vec<String>,
    /// What had to be left out, for the user.
    pub notes: Vec<String>,
}

/// `--seccomp-bpf` came with 5.3: calls that are not traced do not stop.
const SECCOMP: (u32, u32) = (5, 3);
/// `--absolute-timestamps=precision:ns` and `--syscall-times=ns` came with 5.6.
const NANOSECONDS: (u32, u32) = (5, 6);
/// The oldest whose output and `-e trace=?name` we know.
const OLDEST: (u32, u32) = (4, 26);

impl Tracer {
    /// Finds strace and tries it. `attach`: for processes that run already.
    pub fn find(program: Option<PathBuf>, attach: bool) -> Result<Tracer, RecordError> {
        let program = program.unwrap_or_else(|| PathBuf::from("strace"));
        let version = version(&program)?;
        let number = number(&version);
        if number < OLDEST {
            let found = version.clone();
            return Err(RecordError::StraceTooOld { found, oldest: format!("{}.{}", OLDEST.0, OLDEST.1) });
        }
        let mut tracer = Tracer { program, version, options: Vec::new(), notes: Vec::new() };
        tracer.options = options(number, number >= SECCOMP && !attach);
        if attach {
            return Ok(tracer);
        }
        if number < SECCOMP {
            tracer.notes.push(format!(
                "strace {} has no --seccomp-bpf (5.3 and later have): every system call stops, so the recording disturbs more",
                tracer.version
            ));
        }
        let Err(first) = tracer.try_out() else { return Ok(tracer) };
        tracer.options = options(number, false);
        match tracer.try_out() {
            Ok(()) => {
                tracer.notes.push(format!(
                    "strace --seccomp-bpf does not work here ({}): every system call stops, so the recording disturbs more",
                    first.trim()
                ));
                Ok(tracer)
            }
            Err(said) => Err(RecordError::CannotTrace { said: said.trim().to_owned() }),
        }
    }

    /// Traces a program that does nothing.
    fn try_out(&self) -> Result<(), String> {
        let output = Command::new(&self.program)
            .args(&self.options)
            .args(["-o", "/dev/null", "--", "/bin/sh", "-c", ":"])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| e.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(if said.trim().is_empty() { output.status.to_string() } else { said })
    }

    /// The options as they are given for a command, for the record.
    pub fn all_options(&self, output: &str) -> Vec<OsString> {
        let mut all: Vec<OsString> = self.options.iter().map(OsString::from).collect();
        all.extend(["-o".into(), output.into()]);
        all
    }
}

fn options(version: (u32, u32), seccomp: bool) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let mut add = |option: &str| options.push(option.to_owned());
    add("-f");
    if seccomp {
        add("--seccomp-bpf");
    }
    if version >= NANOSECONDS {
        add("--absolute-timestamps=format:unix,precision:ns");
        add("--syscall-times=ns");
    } else {
        add("-ttt");
        add("-T");
    }
    add("-yy");
    add("-s0");
    add("-q");
    add("-e");
    // Signals that by default do nothing. Others can kill, and strace is silent about deaths by signals not asked for.
    add("signal=!SIGCHLD,SIGCONT,SIGURG,SIGWINCH");
    // With -s0 the lengths of vectors would be cut off.
    add("-e");
    add("abbrev=!readv,writev,preadv,pwritev,preadv2,pwritev2");
    add("-e");
    let names: Vec<String> = traced_calls().map(|name| format!("?{name}")).collect();
    add(&format!("trace={}", names.join(",")));
    options
}

fn version(program: &PathBuf) -> Result<String, RecordError> {
    let output = match Command::new(program).arg("-V").stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(RecordError::StraceMissing),
        Err(source) => return Err(RecordError::Io { what: format!("cannot run {}", program.display()), source }),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().and_then(|line| line.rsplit_once("version ")).map(|(_, v)| v.trim().to_owned());
    version
        .ok_or_else(|| RecordError::CannotTrace { said: format!("{} -V does not state a version", program.display()) })
}

/// Major and minor number.
fn number(version: &str) -> (u32, u32) {
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(number("6.1"), (6, 1));
        assert_eq!(number("4.26"), (4, 26));
        assert_eq!(number("5.10-0.1.dirty"), (5, 10));
        assert_eq!(number("UNKNOWN"), (0, 0));
    }

    #[test]
    fn options_by_version() {
        assert!(options((5, 2), false).contains(&"-ttt".to_owned()));
        assert!(options((6, 1), true).contains(&"--seccomp-bpf".to_owned()));
        assert!(options((6, 1), true).iter().any(|o| o.starts_with("trace=") && o.contains("?openat,")));
    }
}
