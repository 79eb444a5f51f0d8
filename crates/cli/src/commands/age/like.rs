//! `fsage age TARGET --like NAME`: a plan for the target, from a personality, before it is aged.

use crate::{failure, output, progress, target};
use aging::format::Reader;
use aging::plan::PlannedFor;
use aging::plan::personality::{self, Churn, Options, builtin};
use posix::{FsUsage, Target, WorkspaceOptions};
use std::path::Path;

/// What is planned.
pub(super) struct Like<'a> {
    /// A personality that comes with fsage, or a file.
    pub(super) name: &'a str,
    pub(super) days: u32,
    pub(super) fill: Option<f64>,
    pub(super) seed: u64,
    pub(super) room: Option<u64>,
}

impl Like<'_> {
    /// Plans for the target into a file.
    pub(super) fn plan(&self, target: &Target, path: &Path) -> failure::Result<Reader> {
        let (personality, input) = match Path::new(self.name) {
            file if file.extension().is_some() => {
                let (personality, input) = personality::read(file)?;
                (personality, Some(input))
            }
            _ => (builtin::get(self.name)?, None),
        };
        let planned_for = self.planned_for(target)?;
        let options = Options {
            planned_for,
            days: self.days,
            utilisation: None,
            fill: self.fill,
            churn: Churn::Implied,
            seed: self.seed,
            input,
        };
        let bar = progress::bar(1000, "planning");
        let mut tell = |done: f64| {
            // A share of 0 to 1; a cast saturates.
            bar.set_position((done * 1000.0) as u64);
            !posix::interrupt::requested()
        };
        let planned = aging::plan::write(path, planned_for, |writer| {
            personality::plan(&personality, &options, writer, &mut tell)
        });
        bar.finish_and_clear();
        planned?;
        Ok(Reader::open(path)?)
    }

    /// The size of a scratch file system is known once it has been made; a directory's is df's, or what is asked for of
    /// it.
    fn planned_for(&self, target: &Target) -> failure::Result<PlannedFor> {
        let site = target::open(target, &WorkspaceOptions::default())?;
        let usage = site.handle().usage();
        site.close()?;
        let usage = usage?;
        let capacity_bytes = match (self.room, target) {
            (Some(bytes), _) => bytes,
            (None, Target::Scratch(_) | Target::Lab(_)) => usage.total_bytes,
            (None, _) if in_use(&usage) <= 0.1 => usage.total_bytes,
            (None, _) => {
                return Err(failure::usage(format!(
                    "{}: {:.0} % of this file system are in use by others; say how much of it to age: --room SIZE",
                    output::shown(Path::new(&target.to_string())),
                    in_use(&usage) * 100.0
                )));
            }
        };
        Ok(PlannedFor { capacity_bytes, block_bytes: u64::from(usage.block_bytes) })
    }
}

fn in_use(usage: &FsUsage) -> f64 {
    1.0 - usage.free_bytes as f64 / usage.total_bytes.max(1) as f64
}
