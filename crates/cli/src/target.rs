//! Targets on the command line: parsing, sweeping up after killed runs, opening and closing.

use crate::progress;
use anyhow::Context as _;
use posix::{Target, Workspace, WorkspaceOptions};

/// A target argument.
pub fn parse(text: &str) -> Result<Target, String> {
    Target::parse(text).map_err(|error| error.to_string())
}

/// Options of every command that works in a target.
#[derive(clap::Args, Clone, Debug)]
pub struct TargetArgs {
    /// Leave the private directory (and a scratch file system, mounted) where it is, and say where.
    #[arg(long)]
    pub keep: bool,
}

impl TargetArgs {
    /// Makes a target ready, with room for what the run will use.
    pub fn open(&self, target: &Target, need_bytes: u64, need_inodes: u64) -> anyhow::Result<Workspace> {
        let options = WorkspaceOptions { keep: self.keep, need_bytes, need_inodes, ..WorkspaceOptions::default() };
        Ok(Workspace::open(target, &options)?)
    }

    /// Removes what the run made, unless it is to be kept.
    pub fn close(&self, workspace: Workspace) -> anyhow::Result<()> {
        let target = workspace.target().to_string();
        if let (true, Some(path)) = (self.keep, workspace.kept()) {
            progress::note(&format!("kept {}", crate::output::shown(path)));
        }
        workspace.close().with_context(|| format!("cleaning up in target '{target}'"))
    }
}

/// Removes what runs that were killed have left, and says so.
pub fn sweep() {
    let report = posix::cleanup::sweep();
    for line in report.removed.iter().chain(&report.troubles) {
        progress::note(line);
    }
}
