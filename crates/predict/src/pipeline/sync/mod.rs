//! What of each file is not stable yet, and what a sync of one makes stable of the others.
//!
//! Changes carry the time of a clock that each commit advances, so a change is committed if its time is not above the
//! commit's. How far a commit reaches is a matter of the [`Family`] of the file system, in `family`; the pages are in
//! `pages`.

mod family;

pub(super) use family::Carries;
use family::{Commit, Syncs, family_of};

use super::annotated::{DirtyKind, NodeId};
use system::{Behaviour, Family, SystemProfile};

/// Of fewer files made nobody asks whether they are still there.
const OPERATIONS_MIN: usize = 1024;

/// What decides how a system syncs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyncRules {
    family: Family,
    behaviour: Behaviour,
}

impl SyncRules {
    /// Those of a system.
    pub fn of(profile: &SystemProfile) -> SyncRules {
        SyncRules { family: family_of(profile), behaviour: profile.behaviour }
    }

    /// What was found of the system by trying.
    pub fn behaviour(&self) -> Behaviour {
        self.behaviour
    }
}

/// What matters about a file beyond its pages: when its metadata last changed.
#[derive(Clone, Copy, Debug)]
struct File {
    made: u32,
    grew: u32,
    names: u32,
    attributes: u32,
    committed: u32,
    /// The directory it was made in.
    dir: NodeId,
    /// Of a directory: when a new file in it was last synced.
    new_synced: u32,
    /// Names and inodes that it has added to what the log carries since the commit of everything at `logged_since`.
    logged: u32,
    logged_since: u32,
    /// Dirty pages in new blocks.
    new_pages: u64,
    /// Where what has made it longer begins, of which no length is on the device.
    longer_from: Option<u64>,
}

const UNTOUCHED: File = File {
    made: 0,
    grew: 0,
    names: 0,
    attributes: 0,
    committed: 0,
    dir: NodeId::NONE,
    new_synced: 0,
    logged: 0,
    logged_since: 0,
    new_pages: 0,
    longer_from: None,
};

/// What a sync finds, and what it takes along.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// What is dirty of the file.
    pub kind: DirtyKind,
    /// Whose data is written besides.
    pub carries: Carries,
    /// Dirty pages of others in new blocks, as far as the sync waits for them.
    pub other_pages: u64,
    /// Names and inodes that others changed, as far as its log has to carry them.
    pub logged: u64,
}

/// The state of every file.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    rules: SyncRules,
    files: Vec<File>,
    clock: u32,
    /// The last commit of everything.
    committed: u32,
    new_pages: u64,
    /// Names made, moved or removed and inodes changed since then.
    logged: u64,
    /// Where that matters, files made since then; some may be gone.
    operations: Vec<NodeId>,
    operations_limit: usize,
    /// Changes of metadata since anything was committed, and when that was.
    pub metadata_changes: u64,
    pub committed_ns: Option<f64>,
    /// The last sync has left something to commit ([`Behaviour::sync_leaves_changes`]).
    left: bool,
}

impl Ledger {
    pub fn new(rules: SyncRules) -> Ledger {
        Ledger {
            rules,
            files: Vec::new(),
            clock: 1,
            committed: 0,
            new_pages: 0,
            logged: 0,
            operations: Vec::new(),
            operations_limit: OPERATIONS_MIN,
            metadata_changes: 0,
            committed_ns: None,
            left: false,
        }
    }

    fn get(&self, node: NodeId) -> File {
        self.files.get(node.index()).copied().unwrap_or(UNTOUCHED)
    }

    fn file(&mut self, node: NodeId) -> &mut File {
        let at = node.index();
        if at >= self.files.len() {
            self.files.resize(at + 1 + at / 2, UNTOUCHED);
        }
        &mut self.files[at]
    }

    /// A file was made, in a directory if it has a name.
    pub fn made(&mut self, node: NodeId, dir: NodeId) {
        self.forget(node);
        let clock = self.clock;
        *self.file(node) = File { made: clock, names: clock, dir, ..UNTOUCHED };
        self.log(node);
        if self.rules.family == Family::Segments {
            self.operation(node);
        }
    }

    /// Remembers a file whose name is not committed. Now and then those are forgotten that are gone or stable by now,
    /// so that no more are kept than there are.
    fn operation(&mut self, node: NodeId) {
        self.operations.push(node);
        if self.operations.len() > self.operations_limit {
            let mut kept = std::mem::take(&mut self.operations);
            kept.sort_unstable();
            kept.dedup();
            kept.retain(|&node| self.is_new(node));
            self.operations_limit = OPERATIONS_MIN.max(2 * kept.len());
            self.operations = kept;
        }
    }

    /// A file is gone, or its number stands for another.
    pub fn forget(&mut self, node: NodeId) {
        self.cleaned(node);
        *self.file(node) = UNTOUCHED;
    }

    /// Names in a directory changed.
    pub fn names(&mut self, dir: NodeId) {
        let clock = self.clock;
        self.file(dir).names = clock;
    }

    /// A name of a file was made, moved or removed.
    pub fn renamed(&mut self, node: NodeId) {
        self.log(node);
        self.changed(node);
    }

    /// The log has one name or inode more to carry, because of a file.
    fn log(&mut self, node: NodeId) {
        self.logged += 1;
        let since = self.committed;
        let file = self.file(node);
        file.logged = if file.logged_since == since { file.logged + 1 } else { 1 };
        file.logged_since = since;
    }

    /// Attributes of a file changed, its length and blocks among them.
    pub fn changed(&mut self, node: NodeId) {
        let clock = self.clock;
        self.file(node).attributes = clock;
    }

    /// Attributes of a file changed by a call for that: the log has one inode more to carry.
    pub fn set_attributes(&mut self, node: NodeId) {
        let file = self.get(node);
        if !self.is_open(&file, file.attributes.max(file.made)) {
            self.log(node);
        }
        self.changed(node);
    }

    /// A file has other blocks.
    pub fn grew(&mut self, node: NodeId) {
        let clock = self.clock;
        let file = self.file(node);
        (file.grew, file.attributes) = (clock, clock);
    }

    /// Pages in new blocks became dirty. `longer_from`: the length before, if they lie beyond it.
    pub fn wrote_new(&mut self, node: NodeId, pages: u64, longer_from: Option<u64>) {
        let file = self.file(node);
        file.new_pages += pages;
        file.longer_from = file.longer_from.or(longer_from);
        self.new_pages += pages;
    }

    /// A file has no dirty pages any more.
    pub fn cleaned(&mut self, node: NodeId) {
        if let Some(file) = self.files.get_mut(node.index()) {
            self.new_pages -= file.new_pages.min(self.new_pages);
            (file.new_pages, file.longer_from) = (0, None);
        }
    }

    /// Bytes before `to_bytes` that have made the file longer, on a device that does not know of that length.
    pub fn longer_bytes(&self, node: NodeId, to_bytes: u64) -> u64 {
        self.get(node).longer_from.map_or(0, |from| to_bytes.saturating_sub(from))
    }

    /// The length of a file as the device knows it, of one that is `size_bytes` long.
    pub fn length_on_device(&self, node: NodeId, size_bytes: u64) -> u64 {
        self.get(node).longer_from.unwrap_or(size_bytes)
    }

    /// A file has data in new blocks.
    pub fn has_new_data(&self, node: NodeId) -> bool {
        self.get(node).new_pages > 0
    }

    /// A file was made since the trace began.
    pub fn was_made(&self, node: NodeId) -> bool {
        self.get(node).made != 0
    }

    /// A file was made, and that is not committed.
    pub fn is_new(&self, node: NodeId) -> bool {
        let file = self.get(node);
        self.is_open(&file, file.made)
    }

    /// Whether a change of an inode is not committed.
    fn is_open(&self, file: &File, stamp: u32) -> bool {
        let reached = match self.rules.family {
            Family::Log | Family::Segments => self.committed,
            Family::Each => 0,
        };
        stamp > reached.max(file.committed)
    }

    /// Another new file of the directory was synced since this one was made: by its sync, or beside where it wrote, a
    /// part of what this one's has to do is done.
    fn is_late(&self, file: &File) -> bool {
        file.dir != NodeId::NONE && file.made > file.committed && self.get(file.dir).new_synced >= file.made
    }

    /// What a sync of a file with so many dirty pages finds.
    pub fn found(&self, node: NodeId, data_only: bool, directory: bool, dirty_pages: u64) -> Found {
        let file = self.get(node);
        let open = |stamp| self.is_open(&file, stamp);
        let kind = if directory {
            // Others' changes too, where a directory's sync commits them.
            let others =
                self.rules.behaviour.directory_commits == Some(true) && (self.metadata_changes > 0 || self.left);
            if open(file.names) || open(file.made) || others { DirtyKind::Names } else { DirtyKind::CleanDirectory }
        } else if open(file.made) {
            if self.is_late(&file) { DirtyKind::Late } else { DirtyKind::Create }
        } else if open(file.grew) {
            DirtyKind::Append
        } else if file.new_pages > 0 {
            // Another's sync has committed the inode; the blocks of this data are still to be allocated.
            if file.made > file.committed { DirtyKind::Late } else { DirtyKind::Append }
        } else if dirty_pages > 0 || (open(file.attributes) && !data_only) {
            DirtyKind::Overwrite
        } else {
            DirtyKind::Clean
        };
        let SyncRules { family, behaviour } = self.rules;
        let commits = commits(kind, data_only);
        let own = if file.logged_since == self.committed { file.logged } else { 0 };
        let waits = commits && family.waits_for_others(behaviour);
        Found {
            kind,
            carries: if commits { family.carries(is_operation(kind), behaviour) } else { Carries::Nothing },
            other_pages: if waits { self.new_pages - file.new_pages.min(self.new_pages) } else { 0 },
            logged: if commits && family.logs_names() { self.logged.saturating_sub(own.into()) } else { 0 },
        }
    }

    /// Files whose data a sync takes along, other than its own.
    pub fn carried(&self, carries: Carries, node: NodeId, mut waiting: impl Iterator<Item = NodeId>) -> Vec<NodeId> {
        match carries {
            Carries::Nothing => Vec::new(),
            Carries::NewData => waiting.by_ref().filter(|&other| other != node && self.has_new_data(other)).collect(),
            Carries::Operations => {
                self.operations.iter().copied().filter(|&other| other != node && self.is_new(other)).collect()
            }
        }
    }

    /// A sync that found this is over.
    pub fn synced(&mut self, node: NodeId, kind: DirtyKind, data_only: bool, now_ns: f64) {
        let is_file = !matches!(kind, DirtyKind::Clean | DirtyKind::CleanDirectory | DirtyKind::Names);
        self.left = match self.rules.behaviour.sync_leaves_changes {
            Some(true) if is_file => true,
            Some(true) if kind == DirtyKind::Names => false,
            _ => self.left,
        };
        if !commits(kind, data_only) {
            return;
        }
        (self.metadata_changes, self.committed_ns) = (0, Some(now_ns));
        let clock = self.clock;
        let file = self.file(node);
        file.committed = clock;
        let dir = file.dir;
        if dir != NodeId::NONE && matches!(kind, DirtyKind::Create | DirtyKind::Late) {
            self.file(dir).new_synced = clock;
        }
        match self.rules.family.commits(is_operation(kind)) {
            Commit::Own => {}
            Commit::All => self.everything(),
        }
        self.clock = clock.saturating_add(1);
    }

    fn everything(&mut self) {
        self.committed = self.clock;
        self.logged = 0;
        self.operations.clear();
    }

    /// Names and inodes changed since everything was committed; whether anything was.
    pub fn pending(&self) -> (u64, bool) {
        (self.logged, self.metadata_changes > 0)
    }

    /// Everything was written and committed.
    pub fn synced_all(&mut self, now_ns: f64) {
        (self.metadata_changes, self.committed_ns, self.left) = (0, Some(now_ns), false);
        self.everything();
        for file in &mut self.files {
            file.committed = self.clock;
        }
        self.clock = self.clock.saturating_add(1);
    }
}

/// Overwriting changes nothing that fdatasync has to commit; all else forces the log.
fn commits(kind: DirtyKind, data_only: bool) -> bool {
    match kind {
        DirtyKind::Clean | DirtyKind::CleanDirectory => false,
        DirtyKind::Overwrite => !data_only,
        _ => true,
    }
}

/// Whether names are not committed.
fn is_operation(kind: DirtyKind) -> bool {
    matches!(kind, DirtyKind::Create | DirtyKind::Late | DirtyKind::Names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(family: Family) -> Ledger {
        Ledger::new(SyncRules { family, behaviour: Behaviour::default() })
    }

    /// Every file ever made was remembered until the next commit of everything, which a program may never ask for.
    #[test]
    fn what_is_gone_is_forgotten() {
        for family in [Family::Log, Family::Each, Family::Segments] {
            let mut ledger = ledger(family);
            for number in 0..100_000 {
                let node = NodeId(number % 7);
                ledger.made(node, NodeId::ROOT);
                ledger.forget(node);
            }
            assert!(ledger.operations.len() <= OPERATIONS_MIN + 1, "{family:?}: {}", ledger.operations.len());
        }
    }

    /// SQLite syncs its journal, then the directory: under `data=journal` the second took as long as the first, and was
    /// priced as nothing.
    #[test]
    fn a_directorys_sync_commits_what_changed_elsewhere() {
        let kinds = |directory_commits, sync_leaves_changes| {
            let behaviour = Behaviour { directory_commits, sync_leaves_changes, ..Behaviour::default() };
            let mut ledger = Ledger::new(SyncRules { family: Family::Log, behaviour });
            let (dir, elsewhere, file) = (NodeId(1), NodeId(2), NodeId(3));
            ledger.made(file, elsewhere);
            ledger.names(elsewhere);
            ledger.metadata_changes += 1;
            let mut kinds = Vec::new();
            for node in [dir, dir, file, dir, dir] {
                if node == file {
                    ledger.grew(file);
                    ledger.metadata_changes += 1;
                }
                let kind = ledger.found(node, false, node == dir, u64::from(node == file)).kind;
                ledger.synced(node, kind, false, 0.0);
                kinds.push(kind);
            }
            kinds
        };
        use DirtyKind::{Append, CleanDirectory as Clean, Create, Names};
        assert_eq!(kinds(None, None), [Clean, Clean, Create, Clean, Clean]);
        assert_eq!(kinds(Some(true), Some(false)), [Names, Clean, Append, Clean, Clean]);
        assert_eq!(kinds(Some(true), Some(true)), [Names, Clean, Append, Names, Clean]);
    }

    #[test]
    fn those_that_are_there_are_carried() {
        let mut ledger = ledger(Family::Segments);
        for number in 1..=5000 {
            ledger.made(NodeId(number), NodeId::ROOT);
        }
        ledger.forget(NodeId(17));
        let found = ledger.found(NodeId(1), false, false, 0);
        assert_eq!(ledger.carried(found.carries, NodeId(1), std::iter::empty()).len(), 4998);
        ledger.synced(NodeId(1), found.kind, false, 0.0);
        assert_eq!(ledger.found(NodeId(2), false, false, 0).kind, DirtyKind::Clean);
    }
}
