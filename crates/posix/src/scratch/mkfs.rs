//! Formatting: one command line per file system, quiet, its error output kept for the message.
#![allow(unsafe_code)]

use crate::{ScratchKind, ScratchSpec, SetupError, interrupt};
use rustix::fs::{MemfdFlags, memfd_create};
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A mkfs that was found, and the arguments it will be given before the device.
#[derive(Debug)]
pub(super) struct Tool {
    target: String,
    name: &'static str,
    path: PathBuf,
    arguments: Vec<String>,
}

impl Tool {
    /// Looks for the mkfs of a kind, before anything is made.
    pub(super) fn find(spec: &ScratchSpec) -> Result<Tool, SetupError> {
        let (name, package) = match spec.kind {
            ScratchKind::Ext4 => ("mkfs.ext4", "e2fsprogs"),
            ScratchKind::Xfs => ("mkfs.xfs", "xfsprogs"),
            ScratchKind::Btrfs => ("mkfs.btrfs", "btrfs-progs"),
        };
        let target = spec.text.clone();
        match find(name) {
            Some(path) => Ok(Tool { target, name, path, arguments: arguments(spec) }),
            None => Err(SetupError::MissingTool { target, tool: name, package }),
        }
    }

    /// Formats the device; answers the command line for the record.
    pub(super) fn run(&self, device: &Path) -> Result<String, SetupError> {
        let command = std::iter::once(self.name.to_string()).chain(self.arguments.iter().map(|a| quoted(a)));
        let command = command.collect::<Vec<_>>().join(" ");
        let trouble = |e: std::io::Error| SetupError::from_io(&self.path, "run it", e);
        // Into memory, not a pipe: nobody reads while we wait.
        let errors = memfd_create(c"mkfs errors", MemfdFlags::CLOEXEC).map_err(|e| trouble(e.into()))?;
        let mut errors = std::fs::File::from(errors);
        let mut command_line = Command::new(&self.path);
        die_with_us(&mut command_line);
        let mut child = command_line
            .args(&self.arguments)
            .arg(device)
            .env("LC_ALL", "C")
            // Has mke2fs write the zeros of its journal and tables. Else it asks the device to zero them, and the
            // image's host writes these blocks for the first time when the journal is first used, which takes longer.
            .env("UNIX_IO_NOZEROOUT", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors.try_clone().map_err(trouble)?)
            .spawn()
            .map_err(trouble)?;
        let status = loop {
            match child.try_wait().map_err(trouble)? {
                Some(status) => break status,
                None if interrupt::requested() => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(SetupError::Interrupted);
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        if status.success() {
            return Ok(command);
        }
        if interrupt::requested() {
            return Err(SetupError::Interrupted);
        }
        let mut text = Vec::new();
        let _ = errors.rewind().and_then(|()| errors.read_to_end(&mut text));
        let stderr = complaint(&String::from_utf8_lossy(&text));
        Err(SetupError::Mkfs { target: self.target.clone(), command, status: status.to_string(), stderr })
    }
}

/// Has a child killed when we are: it would hold on to the loop device.
fn die_with_us(command: &mut Command) {
    // SAFETY: between fork and exec only prctl(2) is called, which is a plain system call.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
}

/// mkfs lives in sbin, which an ordinary `PATH` may not name.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin", "/sbin", "/usr/local/sbin"].into_iter().map(PathBuf::from);
    std::env::split_paths(&path).chain(sbin).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// None of them is to discard, which would punch holes into the preallocated image. ext4 writes its inode tables and
/// journal now, not in the background during the measurement.
fn arguments(spec: &ScratchSpec) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|w| w.to_string()).collect::<Vec<_>>();
    match spec.kind {
        ScratchKind::Xfs | ScratchKind::Btrfs => {
            let mut arguments = words(&["-q", "-f", "-K"]);
            arguments.extend(spec.mkfs_options.iter().cloned());
            arguments
        }
        ScratchKind::Ext4 => {
            // mke2fs heeds the last -E only: the user's joins ours, and wins where they differ.
            let mut extended = "nodiscard,lazy_itable_init=0,lazy_journal_init=0".to_string();
            let mut others = Vec::new();
            let mut options = spec.mkfs_options.iter();
            while let Some(option) = options.next() {
                match option.strip_prefix("-E") {
                    Some("") => extended.extend(options.next().map(|value| format!(",{value}"))),
                    Some(value) => extended.extend([",", value]),
                    None => others.push(option.clone()),
                }
            }
            let mut arguments = words(&["-q", "-F", "-E"]);
            arguments.push(extended);
            arguments.extend(others);
            arguments
        }
    }
}

/// An argument as a shell would need it written.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=,.:/+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_string();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// What a tool says is wrong, on one line: how it is to be used, which many print behind that, says nothing about what
/// is wrong.
fn complaint(stderr: &str) -> String {
    let usage = |line: &&str| line.to_ascii_lowercase().starts_with("usage:");
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said: Vec<&str> = lines.iter().copied().take_while(|line| !usage(line)).collect();
    let said = if said.is_empty() { lines.iter().copied().take(1).collect() } else { said };
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    fn line(text: &str) -> String {
        match Target::parse(text) {
            Ok(Target::Scratch(spec)) => arguments(&spec).iter().map(|a| quoted(a)).collect::<Vec<_>>().join(" "),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn extended_options_of_ext4_are_joined() {
        let ours = "-q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0";
        assert_eq!(line("ext4:1G"), ours);
        assert_eq!(line("ext4:1G,-E 'stride=4,stripe_width=8',-m 0"), format!("{ours},stride=4,stripe_width=8 -m 0"));
        assert_eq!(line("ext4:1G,-Estride=4,-O ^has_journal"), format!("{ours},stride=4 -O '^has_journal'"));
    }

    #[test]
    fn options_follow_ours() {
        assert_eq!(line("xfs:1G,-m reflink=0"), "-q -f -K -m reflink=0");
        assert_eq!(line("btrfs:1G,-L \"it's\""), r"-q -f -K -L 'it'\''s'");
    }

    /// `mkfs.xfs`'s usage came as one line with `\\n\\t` in it.
    #[test]
    fn a_tool_s_usage_is_left_out() {
        let said = "/usr/sbin/mkfs.ext4: invalid option -- 'Q'\nUsage: mkfs.ext4 [-c|-l filename]\n\t[-i bytes]\n";
        assert_eq!(super::complaint(said), "/usr/sbin/mkfs.ext4: invalid option -- 'Q'");
        assert_eq!(super::complaint("Usage: mkfs\n\t[-i]\n"), "Usage: mkfs");
        assert_eq!(super::complaint("one\n\n  two \n"), "one; two");
    }
}
