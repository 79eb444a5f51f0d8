//! Placement by allocation group, for plans made from trees whose paths are unknown.
//!
//! Such a plan has one directory for each group of the original file system, and each file in the directory of its
//! inode's group, as file systems place a file near its directory (`aging97`, section 3.3). Here those directories are
//! made in distinct groups of the target: directories are made until there is one for each, and the others removed.
//!
//! On ext4 with flexible groups the unit is the flexible group, which is what its allocators work with.

use super::error::{AgeError, advice};
use super::nodes::write_derived;
use super::replay::Replay;
use crate::AgingOp;
use layout::geometry::{Groups, InodeRule};
use posix::{At, Call, Errno, FileSystem};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// So many directories in a row that serve nobody end the search.
const FRUITLESS_MAX: u32 = 256;

impl<F: FileSystem> Replay<'_, F> {
    /// Makes the plan's first `count` directories, each in the group it stands for (modulo the groups there are).
    pub(super) fn place_in_groups(&mut self, count: u32, groups: &Result<Groups, String>) -> Result<(), AgeError> {
        let groups = match groups {
            Ok(groups) if groups.inodes != InodeRule::Unknown => groups,
            Ok(_) => {
                self.not_placed("its inodes belong to no allocation group");
                return Ok(());
            }
            Err(why) => {
                self.not_placed(why);
                return Ok(());
            }
        };
        let units = groups.count().div_ceil(groups.per_flex.max(1)).max(1);
        let wanted = self.ahead.first_directories(usize::try_from(count).unwrap_or(usize::MAX))?;
        // Directories still without a place, by the unit they are to be in.
        let mut waiting: BTreeMap<u64, Vec<AgingOp>> = BTreeMap::new();
        for (group, op) in wanted.iter().enumerate().rev() {
            waiting.entry(group as u64 % units).or_default().push(op.clone());
        }
        let (mut spare, mut fruitless, mut number) = (Vec::new(), 0, 0u64);
        while !waiting.is_empty() && fruitless < FRUITLESS_MAX {
            let trial = format!("trial-{number:x}");
            number += 1;
            let ino = self.make_trial(&trial)?;
            let unit = groups.of_inode(ino).map(|group| group / groups.per_flex.max(1));
            let op = unit.and_then(|unit| {
                let list = waiting.get_mut(&unit)?;
                let op = list.pop();
                if list.is_empty() {
                    waiting.remove(&unit);
                }
                op
            });
            match op {
                Some(op) => {
                    fruitless = 0;
                    self.name_trial(&trial, &op)?;
                }
                None => {
                    fruitless += 1;
                    spare.push(trial);
                }
            }
        }
        // Only now: a directory removed at once would be made in the same place again.
        for trial in spare {
            self.must("removing directory", &trial, |at| Call::Rmdir { at })?;
        }
        let unplaced: usize = waiting.values().map(Vec::len).sum();
        let placed = wanted.len() - unplaced;
        let modulo = if u64::from(count) > units { ", modulo, as it has fewer" } else { "" };
        let kind = if groups.per_flex > 1 { "flexible block groups" } else { "allocation groups" };
        self.result.notes.push(format!(
            "{placed} of the plan's {count} group directories were made in the group they stand for (the target has \
             {units} {kind}{modulo})"
        ));
        Ok(())
    }

    fn not_placed(&mut self, why: &str) {
        let note = format!(
            "the plan has a directory for each allocation group of the original; here they lie where the file system \
             puts them, as {why}"
        );
        self.result.notes.push(note);
    }

    fn make_trial(&mut self, name: &str) -> Result<u64, AgeError> {
        self.must("making directory", name, |at| Call::Mkdir { at, mode: posix::Mode(0o755) })?;
        let stat = self.fs.call(&Call::Stat { at: name.into(), follow: false }).stat();
        stat.map(|stat| stat.ino).map_err(|errno| self.placing("looking at", name, errno))
    }

    fn name_trial(&mut self, trial: &str, op: &AgingOp) -> Result<(), AgeError> {
        let mut name = op.name.as_deref().map(<[u8]>::to_vec).unwrap_or_default();
        if op.name.is_none() {
            write_derived(&mut name, op.node, true);
        }
        let to = At::from(Path::new(OsStr::from_bytes(&name)));
        self.must("renaming", trial, |from| Call::Rename { from, to, noreplace: true, exchange: false })?;
        self.placed.insert(op.node);
        Ok(())
    }

    fn must<'c>(
        &mut self,
        what: &'static str,
        name: &'c str,
        call: impl FnOnce(At<'c>) -> Call<'c>,
    ) -> Result<(), AgeError> {
        let done = self.fs.call(&call(name.into())).result;
        done.map(drop).map_err(|errno| self.placing(what, name, errno))
    }

    fn placing(&self, what: &'static str, name: &str, errno: Errno) -> AgeError {
        let (target, path) = (self.target.clone(), name.to_owned());
        AgeError::Target { target, what, path, operation: 0, errno, advice: advice(errno) }
    }
}
