//! What is written back, and what a sync commits besides.

use super::costs::{cost, rest_cost};
use super::{BLOCK, Fake};
use posix::FileKind;
use system::Family;
use system::vector::Class;

impl Fake {
    pub(super) fn sync_node(&mut self, node: usize, data_only: bool) -> u64 {
        let mut ns = self.sync_one(node, data_only);
        if ns > cost(Class::FsyncClean, 0) && std::mem::take(&mut self.settled) {
            ns += cost(Class::SyncFirst, 0);
        }
        if self.journals_data {
            self.write_back();
        }
        ns
    }

    pub(super) fn write_back(&mut self) {
        for node in std::mem::take(&mut self.dirty) {
            let node = &mut self.nodes[node];
            (node.new_bytes, node.over_bytes, node.over_runs, node.ever_synced) = (0, 0, 0, true);
        }
    }

    pub(super) fn sync_one(&mut self, node: usize, data_only: bool) -> u64 {
        // Another process, which is further on its own clock, may have it.
        let rested_ns = self.now_ns.saturating_sub(self.device_ns);
        let is_directory = self.nodes[node].kind == FileKind::Directory;
        // Nothing but blocks that there were has to be written: no log is.
        if data_only && !is_directory && self.nodes[node].new_bytes == 0 && self.nodes[node].over_bytes > 0 {
            return self.sync_overwritten(node) + rest_cost(rested_ns);
        }
        self.sync_all_of(node, data_only)
    }

    pub(super) fn sync_overwritten(&mut self, node: usize) -> u64 {
        self.dirty.remove(&node);
        let file = &mut self.nodes[node];
        let (bytes, runs) = (std::mem::take(&mut file.over_bytes), std::mem::take(&mut file.over_runs));
        let scattered = runs > 1 || bytes <= BLOCK;
        cost(if scattered { Class::FdatasyncOverwrite } else { Class::FdatasyncContiguous }, bytes)
    }

    pub(super) fn sync_all_of(&mut self, node: usize, data_only: bool) -> u64 {
        use Class::*;
        let of = |fsync: Class, fdatasync: Class| if data_only { fdatasync } else { fsync };
        let names = std::mem::take(&mut self.empty_made);
        if self.nodes[node].kind == FileKind::Directory {
            let elsewhere = std::mem::take(&mut self.uncommitted) && self.directory_commits;
            let changed = std::mem::take(&mut self.nodes[node].names_changed) || elsewhere;
            return cost(if changed { of(FsyncDir, FdatasyncDir) } else { FsyncDirClean }, 0);
        }
        let total = self.dirty_bytes();
        self.uncommitted = self.leaves_changes;
        self.dirty.remove(&node);
        let file = &mut self.nodes[node];
        let (new, over) = (std::mem::take(&mut file.new_bytes), std::mem::take(&mut file.over_bytes));
        let runs = std::mem::take(&mut file.over_runs);
        let synced = std::mem::replace(&mut file.ever_synced, true);
        let (dir, made_ns) = (file.dir, file.made_ns);
        let late = self.nodes[dir].new_synced_ns.is_some_and(|ns| ns > made_ns);
        let ns = match (new + over, synced, new > 0) {
            (0, true, _) => return cost(FsyncClean, 0),
            (bytes, false, true) if late => cost(of(FsyncLate, FdatasyncLate), bytes),
            (bytes, false, _) => cost(of(FsyncCreate, FdatasyncCreate), bytes),
            (bytes, true, true) => cost(of(FsyncAppend, FdatasyncAppend), bytes),
            (bytes, true, false) if runs > 1 || bytes <= BLOCK => cost(of(FsyncOverwrite, FdatasyncOverwrite), bytes),
            (bytes, true, false) => cost(of(FsyncContiguous, FdatasyncContiguous), bytes),
        };
        if !synced {
            self.nodes[dir].new_synced_ns = Some(self.now_ns);
        }
        self.commit(synced);
        let others = total - new - over;
        ns + if others > 0 { cost(FsyncOther, others) } else { 0 } + if names > 0 { cost(FsyncLog, names) } else { 0 }
    }

    /// What the sync of a file, new unless it was synced before, does to the others.
    pub(super) fn commit(&mut self, synced: bool) {
        let writes = match self.family {
            Family::Log => false,
            Family::Segments if !synced => true,
            _ => return,
        };
        for &other in &self.dirty {
            let other = &mut self.nodes[other];
            if writes && !other.ever_synced {
                other.new_bytes = 0;
            }
            other.ever_synced = true;
        }
    }
}
