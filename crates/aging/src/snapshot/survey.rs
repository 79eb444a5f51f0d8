//! The layout of a tree from a snapshot with block lists: the figures of a survey of the tree at that moment, but for
//! free space.

use super::{Blocks, Snapshot, expand_name};
use layout::{Available, GroupCount, Listed, ListedFile, Source, Survey, SurveyOptions};
use posix::{Errno, FileKind};
use std::collections::BTreeMap;
use units::text::printable;

/// Why free space is not known.
const NO_FREE: &str = "a snapshot holds where files lie, and not which space is free";

impl Snapshot {
    /// What a survey of the tree at that moment would have found; `target` is what it is called. `None` where the
    /// snapshot has no block lists.
    ///
    /// Names are visited in the order in which the system listed them, which is the order of a survey's walk.
    /// Modification times of a simulated snapshot are simulated, and so is the moment that hot files are counted back
    /// from.
    pub fn survey(&self, target: &str, options: &SurveyOptions) -> Option<Survey> {
        let mut survey = self.layout(target, options)?;
        survey.source.notes.push(self.origin());
        Some(survey)
    }

    /// The same without a note of where it is from.
    pub(super) fn layout(&self, target: &str, options: &SurveyOptions) -> Option<Survey> {
        let meta = &self.meta;
        let blocks = meta.blocks.as_ref().filter(|_| self.lists.is_some())?;
        let groups = blocks.groups.known();
        let split = match (&blocks.no_split, &blocks.groups) {
            (Some(why), _) | (None, Available::Unavailable(why)) => Err(why.clone()),
            (None, Available::Known(groups)) => Ok(groups.clone()),
        };
        let source = Source {
            target: target.to_owned(),
            method: layout::Method::Snapshot,
            fs_type: meta.fs_type.clone(),
            options: blocks.options.clone(),
            block_bytes: u64::from(blocks.block_bytes),
            total_bytes: meta.total_bytes,
            free_bytes: meta.free_bytes,
            taken_unix_s: options.taken_unix_s.unwrap_or_else(|| self.moment_ns().div_euclid(1_000_000_000)),
            addresses: blocks.addresses,
            groups: groups.map(|g| GroupCount { kind: g.kind, count: g.count(), per_flex: g.per_flex }),
            notes: blocks.notes.clone(),
        };
        let mut listed = Listed::new(source, split, blocks.span, options);
        self.visit(&mut listed);
        let walked = listed.walked();
        walked.other_file_systems = meta.other_file_systems;
        walked.unreadable = self.unreadable();
        let relative = |line: &String| line.strip_prefix('/').unwrap_or(line).to_owned();
        walked.unreadable_examples = meta.first_unreadable.iter().map(relative).collect();
        Some(listed.finished(blocks.unavailable.clone(), NO_FREE))
    }

    /// What could not be read, by the reason, as a survey counts it: rows give theirs. Of a directory, that its place
    /// is not told is none, as of most file systems; and what was gone when it was opened is nobody's loss. What has no
    /// row with a reason comes last.
    fn unreadable(&self) -> BTreeMap<String, u64> {
        let mut by_reason = BTreeMap::new();
        let mut left = self.meta.unreadable;
        let none_has = self.meta.blocks.as_ref().is_some_and(|blocks| blocks.unavailable.is_some());
        for (index, entry) in self.entries().iter().enumerate() {
            let Some(Blocks::Unknown(why)) = self.blocks(index) else { continue };
            let errno = Errno::from_name(why.as_bytes());
            let counts = match entry.inode.kind {
                FileKind::File => !none_has && errno != Some(Errno::ENOENT),
                _ => errno.is_some_and(|errno| errno != Errno::ENOENT),
            };
            if counts && left > 0 {
                left -= 1;
                *by_reason.entry(why.to_owned()).or_default() += 1;
            }
        }
        if left > 0 {
            *by_reason.entry("not readable when the snapshot was taken".to_owned()).or_default() += left;
        }
        by_reason
    }

    /// When the walk began; of a simulated one the day that it is for.
    fn moment_ns(&self) -> i64 {
        if self.meta.simulated { self.meta.taken_ns } else { self.meta.began_ns }
    }

    /// What it is a snapshot of, for the notes.
    fn origin(&self) -> String {
        let meta = &self.meta;
        let (root, host) = (printable(&meta.root), printable(&meta.host));
        let when = if meta.simulated {
            format!("on simulated day {:.3}", meta.taken_ns as f64 / 86_400e9)
        } else {
            expand_name("%F %H:%M:%S UTC", meta.taken_ns).unwrap_or_default()
        };
        format!("from a snapshot of {root} on {host}, taken {when}")
    }

    /// Tells every name, depth first, each directory in the order of its listing.
    fn visit(&self, listed: &mut Listed) {
        let entries = self.entries();
        // The root is its own parent and nobody's child.
        let mut order: Vec<u32> = (1..entries.len()).filter_map(|i| u32::try_from(i).ok()).collect();
        let parent = |i: u32| entries.get(i as usize).map_or(0, |e| e.parent);
        order.sort_by_key(|i| (parent(*i), self.position(*i as usize)));
        let children = |of: u32| {
            let from = order.partition_point(|i| parent(*i) < of);
            from..order.partition_point(|i| parent(*i) <= of)
        };
        listed.enter();
        let mut stack = vec![children(0)];
        while let Some(rest) = stack.last_mut() {
            let Some(index) = rest.next().and_then(|at| order.get(at)).copied() else {
                stack.pop();
                listed.leave();
                continue;
            };
            let Some(entry) = entries.get(index as usize) else { continue };
            match entry.inode.kind {
                FileKind::Directory => {
                    listed.enter();
                    stack.push(children(index));
                }
                FileKind::File => self.tell(listed, index as usize),
                FileKind::Symlink | FileKind::Special => listed.walked().others += 1,
            }
        }
    }

    fn tell(&self, listed: &mut Listed, index: usize) {
        let Some(entry) = self.entries().get(index) else { return };
        let inode = &entry.inode;
        let extents: Vec<posix::Extent> = match self.blocks(index) {
            Some(Blocks::Known(extents)) => extents.collect(),
            // Where none has a list, files are counted all the same; one without is among the unreadable ones.
            _ if self.meta.blocks.as_ref().is_some_and(|b| b.unavailable.is_some()) => Vec::new(),
            _ => return,
        };
        let file =
            ListedFile { ino: inode.ino, nlink: inode.nlink, size_bytes: inode.size_bytes, mtime_ns: inode.mtime_ns };
        listed.file(file, &extents, || self.path(index).get(1..).unwrap_or_default().to_vec());
    }
}
