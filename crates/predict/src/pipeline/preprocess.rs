//! Stage 1: what each call asks for, whatever the caches hold.
//!
//! Builds the name tree from the snapshot, keeps it up to date as calls create, rename and remove, resolves every path
//! as the kernel walks it, follows descriptors to files, knows lengths and holes, and splits each call into [`Step`]s.
//! Where the trace and the tree disagree the trace is believed and the surprise counted.

mod data;
mod descriptors;
mod names;

use super::annotated::{Annotated, NodeId, Note, Role, SlotId, Stable, Status, Step, Transfer};
use super::options::Calls;
use super::tree::Tree;
use super::walk::{End, Must, Walked, Walker};
use posix::{Errno, FileKind};
use rustc_hash::FxHashMap;
use system::vector::Class;
use trace::disposition::disposition;
use trace::profile::IMPLIED_DIRECTORIES_MAX;
use trace::snapshot::Snapshot;
use trace::{Batch, Call, Event, OfdId, Op, Opened, PathId, Range, Target, flag};

/// Unit of allocation that holes are kept in, bytes. Targets with other block sizes see the same holes.
const BLOCK_BYTES: u64 = 4096;

/// Offsets and lengths beyond this are no file's: a damaged trace must not overflow sums.
const BYTES_MAX: u64 = 1 << 62;
/// What one call moves at most (`MAX_RW_COUNT` of Linux).
const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;

/// Steps after which a part of a batch ends: a path of thousands of components has as many at every call. Ordinary
/// batches have fewer in all.
const STEPS_MAX: usize = 1 << 14;

/// Directories that time is reported under; more than these are reported with their parent.
const REPORT_DIRECTORIES_MAX: usize = 1 << 16;
/// Depth below the root to which directories are reported apart.
const REPORT_DEPTH_MAX: u16 = 24;

/// A directory that time is reported under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportDirectory {
    /// Its path when it was first seen.
    pub path: Vec<u8>,
    /// The report directory above; the root is its own.
    pub parent: u32,
    depth: u16,
}

impl ReportDirectory {
    /// Depth below the root.
    pub fn depth(&self) -> u16 {
        self.depth
    }
}

/// The last call that changed a directory's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// It made a name in this directory.
    Made(NodeId),
    /// It removed one from it.
    Removed(NodeId),
    /// It did something else, or there was none.
    Other,
}

/// An open file description.
#[derive(Clone, Copy, Debug)]
struct OpenFile {
    node: NodeId,
    flags: u32,
    written: bool,
    position: u64,
    /// Directory bytes already returned by getdents.
    listed_bytes: u64,
}

/// The stage's state: the tree and the open descriptions.
#[derive(Debug)]
pub struct Preprocess {
    walker: Walker,
    files: FxHashMap<OfdId, OpenFile>,
    changed: Change,
    reports: Vec<ReportDirectory>,
    surprises: u64,
    calls: Calls,
}

impl Preprocess {
    /// A tree with the names of a snapshot.
    pub fn new(snapshot: &Snapshot, calls: Calls) -> Preprocess {
        let mut stage = Preprocess {
            walker: Walker::new(),
            files: FxHashMap::default(),
            changed: Change::Other,
            reports: vec![ReportDirectory { path: b"/".to_vec(), parent: 0, depth: 0 }],
            surprises: 0,
            calls,
        };
        stage.load(snapshot);
        stage
    }

    fn load(&mut self, snapshot: &Snapshot) {
        let mut hard_links: FxHashMap<(u64, u64), NodeId> = FxHashMap::default();
        for entry in &snapshot.entries {
            if self.is_too_deep() {
                break;
            }
            let mut dir = NodeId::ROOT;
            let mut parts = trace::tree::components(&entry.path).peekable();
            while let Some(part) = parts.next() {
                let name = self.walker.tree.names.intern(part);
                let slot = self.walker.tree.slot_of(dir, name, &mut None);
                let known = self.walker.tree.slot(slot).node;
                if parts.peek().is_some() {
                    dir = known;
                    if known == NodeId::NONE {
                        self.walker.implied_directories += 1;
                        dir = self.walker.add(slot, FileKind::Directory, 0);
                    }
                    continue;
                }
                if known != NodeId::NONE {
                    continue;
                }
                let inode = entry.shared_inode();
                if let Some(&node) = inode.and_then(|inode| hard_links.get(&inode)) {
                    self.walker.tree.attach(slot, node);
                    continue;
                }
                let node = self.walker.add(slot, entry.kind, entry.size_bytes.min(BYTES_MAX));
                hard_links.extend(inode.map(|inode| (inode, node)));
                if let Some(target) = &entry.target {
                    self.walker.tree.set_link_target(node, target);
                }
            }
        }
        self.walker.tree.names.sweep();
    }

    /// The tree as it stands: for warming caches and naming files.
    pub fn tree(&self) -> &Tree {
        &self.walker.tree
    }

    /// The report directories so far.
    pub fn report_directories(&self) -> &[ReportDirectory] {
        &self.reports
    }

    /// Events whose trace contradicted the model.
    pub fn surprises(&self) -> u64 {
        self.surprises
    }

    /// Names that were there before the trace and that no snapshot told of.
    pub fn discovered_names(&self) -> u64 {
        self.walker.discovered_names
    }

    /// Whether the recording tells of more directories than any file system has, by nothing but the depth of its paths
    /// ([`IMPLIED_DIRECTORIES_MAX`]). Then it is not gone on with.
    pub fn is_too_deep(&self) -> bool {
        self.walker.implied_directories > IMPLIED_DIRECTORIES_MAX
    }

    /// Annotates events of a batch from the one at `first` on, and answers how many of the batch are done now: all,
    /// unless their paths are very long or a signal asks to stop. Batches come in the order of the trace, and so do
    /// their parts.
    pub fn annotate(&mut self, batch: &Batch, first: usize, out: &mut Annotated) -> usize {
        out.clear();
        out.first = first;
        if first == 0 {
            self.walker.begin_batch(batch);
        }
        for event in batch.events.get(first..).unwrap_or_default() {
            if out.steps.len() >= STEPS_MAX || self.is_too_deep() || posix::interrupt::requested() {
                break;
            }
            let first_step = u32::try_from(out.steps.len()).unwrap_or(u32::MAX);
            let mut call = CallNote::default();
            let status = match status_of(event) {
                Status::Modelled if self.calls == Calls::Replayed && disposition(event).is_err() => Status::NotReplayed,
                status => status,
            };
            let mapped = matches!(event.op(), Op::MapRead | Op::MapWrite);
            if status == Status::NotReplayed && !mapped {
                // What it did is done by whatever stands in for it.
                self.call(event, batch, out, &mut call);
                call.status = status;
            } else if status == Status::Modelled {
                call.status = Status::Modelled;
                self.call(event, batch, out, &mut call);
            } else {
                call.status = status;
                if event.op() == Op::Close && event.head.flags & flag::IMPLIED != 0 {
                    self.close(event, out, &mut call);
                }
            }
            if call.surprise {
                self.surprises += 1;
            }
            let directory = self.report_of(call.dir);
            out.notes.push(Note {
                status: call.status,
                first_step,
                node: call.node,
                directory,
                lookups: call.lookups,
                failed_at: call.failed_at,
                surprise: call.surprise,
            });
        }
        first + out.notes.len()
    }

    /// The report directory of a directory, made when first asked for.
    fn report_of(&mut self, dir: NodeId) -> u32 {
        let mut chain = Vec::new();
        let mut at = dir;
        let mut report = loop {
            let node = self.walker.tree.node(at);
            if node.report != u32::MAX {
                break node.report;
            }
            if chain.len() > usize::from(u16::MAX) {
                break 0;
            }
            chain.push(at);
            at = node.dir;
        };
        while let Some(dir) = chain.pop() {
            let above = &self.reports[report as usize];
            if above.depth < REPORT_DEPTH_MAX && self.reports.len() < REPORT_DIRECTORIES_MAX {
                let (depth, mut path) = (above.depth + 1, above.path.clone());
                if path.last() != Some(&b'/') {
                    path.push(b'/');
                }
                let slot = self.walker.tree.node(dir).slot;
                let name = if slot == SlotId::NONE {
                    b"(deleted)"
                } else {
                    self.walker.tree.names.get(self.walker.tree.slot(slot).name)
                };
                path.extend_from_slice(name);
                let number = self.reports.len() as u32;
                self.reports.push(ReportDirectory { path, parent: report, depth });
                report = number;
            }
            self.walker.tree.node_mut(dir).report = report;
        }
        report
    }
}

/// The note of an event while its call is being taken apart.
#[derive(Clone, Copy, Debug)]
struct CallNote {
    status: Status,
    node: NodeId,
    dir: NodeId,
    lookups: u16,
    failed_at: u16,
    surprise: bool,
}

impl Default for CallNote {
    fn default() -> Self {
        CallNote {
            status: Status::Modelled,
            node: NodeId::NONE,
            dir: NodeId::ROOT,
            lookups: 0,
            failed_at: 0,
            surprise: false,
        }
    }
}

/// Whether an event is priced at all, from the event alone.
pub fn status_of(event: &Event) -> Status {
    if event.head.flags & flag::FOREIGN != 0 {
        return Status::Foreign;
    }
    match event.op() {
        Op::Close if event.head.flags & flag::IMPLIED != 0 => Status::Process,
        Op::Fcntl if event.head.flags & flag::DESCRIPTOR_FLAGS != 0 => Status::Process,
        Op::Dup | Op::Chdir | Op::Fchdir | Op::Clone | Op::Exit => Status::Process,
        Op::Exec => Status::Exec,
        Op::Msync => Status::Mapped,
        Op::IoUring => Status::IoUring,
        Op::Ioctl | Op::Other => Status::Other,
        Op::Fcntl if event.head.flags & flag::NO_LOCK != 0 => Status::Other,
        _ if event.head.flags & flag::UNFINISHED != 0 => Status::Unfinished,
        _ => Status::Modelled,
    }
}

/// The class of a call that is nothing but itself: on a path or descriptor, without data.
fn plain_class(op: Op) -> Option<Class> {
    Some(match op {
        Op::Stat => Class::Stat,
        Op::Access => Class::Access,
        Op::ReadLink => Class::ReadLink,
        Op::StatFs => Class::StatFs,
        Op::GetXattr => Class::GetXattr,
        Op::ListXattr => Class::ListXattr,
        Op::Chmod => Class::Chmod,
        Op::Chown => Class::Chown,
        Op::Utimens => Class::Utimens,
        Op::SetXattr => Class::SetXattr,
        Op::RemoveXattr => Class::RemoveXattr,
        Op::Fstat => Class::Fstat,
        Op::Fchmod => Class::Fchmod,
        Op::Fchown => Class::Fchown,
        Op::Futimens => Class::Futimens,
        Op::Mmap => Class::Mmap,
        Op::Fcntl => Class::Fcntl,
        Op::Fadvise | Op::Readahead => Class::Fadvise,
        _ => return None,
    })
}

fn changes_attributes(op: Op) -> bool {
    use Op::{Chmod, Chown, Fchmod, Fchown, Futimens, RemoveXattr, SetXattr, Utimens};
    matches!(op, Chmod | Chown | Utimens | SetXattr | RemoveXattr | Fchmod | Fchown | Futimens)
}

impl Preprocess {
    fn call(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let failed = event.head.errno.is_some();
        match &event.call {
            Call::Open { .. } if !failed => self.open(event, batch, out, call),
            Call::Close(_) => self.close(event, out, call),
            Call::Read(_) | Call::MapRead(_) => self.read(event, batch, out, call),
            Call::Write(_) | Call::MapWrite(_) => self.write(event, batch, out, call),
            Call::Copy { .. } => self.copy(event, batch, out, call),
            Call::Seek(_) => self.seek(event, batch, out, call),
            Call::GetDents { .. } => self.get_dents(event, batch, out, call),
            Call::Sync | Call::SyncFs(_) => out.steps.push(Step::SyncAll),
            Call::Fsync(of) | Call::Fdatasync(of) | Call::SyncRange { range: Range { of, .. }, .. } => {
                self.sync(event, of, batch, out, call);
            }
            Call::Ftruncate { of, len } => self.change_space(event, of, *len, batch, out, call),
            Call::Fallocate(range) => self.change_space(event, &range.of, range.bytes, batch, out, call),
            Call::Truncate { len, .. } if !failed => self.truncate(event, *len, batch, out, call),
            Call::Unlink(_) if !failed => self.unlink(event, batch, out, call),
            Call::Rmdir(_) if !failed => self.rmdir(event, batch, out, call),
            Call::Rename { .. } if !failed => self.rename(event, batch, out, call),
            Call::Link { .. } if !failed => self.link(event, batch, out, call),
            Call::Mkdir { .. } | Call::Symlink { .. } | Call::Mknod { .. } if !failed => {
                self.make(event, batch, out, call)
            }
            _ => self.plain(event, batch, out, call),
        }
    }

    /// Calls that only look at or change attributes, and every path call that failed.
    fn plain(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let class = plain_class(event.op());
        let on_descriptor = event.ofd().is_some() && event.op() != Op::Open;
        if on_descriptor {
            let Some(node) = self.file_of(event.ofd(), event.path(), batch, out, call) else { return };
            out.steps.push(Step::Call(self.outcome_class(event, class)));
            if event.head.errno.is_none() && changes_attributes(event.op()) {
                out.steps.push(Step::Changed { node });
            }
            if let Call::Fadvise { range, how: Some(flag::ADVICE_DONT_NEED) } = &event.call
                && event.head.errno.is_none()
            {
                out.steps.push(self.dont_need(range, node));
            }
            return;
        }
        let Some(path) = event.path() else {
            call.status = Status::Unidentified;
            return;
        };
        let follow = self.follows(event);
        let must = must_of(event);
        let mut walked = self.walker.walk(out, batch, path, event.caller_dir(), follow, must);
        if let Call::Rename { to: Target { path: Some(path2), caller_dir }, .. }
        | Call::Link { to: Target { path: Some(path2), caller_dir }, .. } = event.call
            && walked.end == End::Found
        {
            call.lookups = walked.lookups;
            walked = self.walker.walk(out, batch, path2, caller_dir, false, Must::Nothing);
        }
        self.note(call, &walked);
        let missing = event.head.errno == Some(Errno::ENOENT);
        if walked.end != End::Found {
            call.failed_at = call.lookups;
            call.surprise |= event.head.errno.is_none();
            // The failed lookup is the call, unless it failed at something that is there (ENOTDIR, ELOOP).
            if self.last_is_absent(out, &walked) {
                self.set_role(out, &walked, failing_role(event.op()));
                return;
            }
        } else if missing && call.lookups > 0 {
            // The trace says something is missing that the model has; nothing says which, so the last.
            call.surprise = true;
            call.failed_at = call.lookups;
            if let Some(Step::Lookup { child, role, .. }) = walked.last_step.and_then(|at| out.steps.get_mut(at)) {
                (*child, *role) = (NodeId::NONE, failing_role(event.op()));
                return;
            }
        }
        out.steps.push(Step::Call(self.outcome_class(event, class)));
        if event.head.errno.is_none() && changes_attributes(event.op()) && walked.end == End::Found {
            out.steps.push(Step::Changed { node: walked.node });
        }
    }

    /// A call that fails after its walk costs about an access; only getxattr and readlink have classes of their own for
    /// that.
    fn outcome_class(&self, event: &Event, class: Option<Class>) -> Class {
        match (event.op(), class) {
            (Op::GetXattr, Some(_)) if event.head.errno.is_some() => Class::GetXattrMissing,
            (Op::ReadLink, Some(_)) if event.head.errno.is_some() => Class::ReadLinkNone,
            (Op::ReadLink | Op::Access | Op::Fcntl | Op::Fadvise | Op::Mmap, Some(class)) => class,
            (_, Some(class)) if event.head.errno.is_none() => class,
            _ if event.ofd().is_some() => Class::Fstat,
            _ => Class::Access,
        }
    }

    fn follows(&self, event: &Event) -> bool {
        use Op::{Mkdir, Mknod, ReadLink, Rename, Rmdir, Symlink, Unlink};
        let exclusive =
            event.op() == Op::Open && event.head.flags & flag::CREATE != 0 && event.head.flags & flag::EXCL != 0;
        // A link by a descriptor walks one path, that of the new name.
        let never = matches!(event.op(), Mkdir | Mknod | ReadLink | Rename | Rmdir | Symlink | Unlink);
        !never && !exclusive && event.head.flags & flag::NOFOLLOW == 0
    }

    fn note(&self, call: &mut CallNote, walked: &Walked) {
        call.lookups = call.lookups.saturating_add(walked.lookups);
        call.surprise |= walked.surprise;
        call.dir = walked.dir;
        if walked.end == End::Found {
            call.node = walked.node;
            if self.walker.tree.node(walked.node).kind == FileKind::Directory {
                call.dir = walked.node;
            }
        }
    }

    fn last_is_absent(&self, out: &Annotated, walked: &Walked) -> bool {
        let last = walked.last_step.and_then(|at| out.steps.get(at));
        matches!(last, Some(Step::Lookup { child: NodeId::NONE, .. }))
    }

    fn set_role(&self, out: &mut Annotated, walked: &Walked, to: Role) {
        if let Some(Step::Lookup { role, .. }) = walked.last_step.and_then(|at| out.steps.get_mut(at)) {
            *role = to;
        }
    }
}

/// What a call is that fails on a missing name.
fn failing_role(op: Op) -> Role {
    if op == Op::Open { Role::FailsToOpen } else { Role::Fails }
}

/// The bytes a call moved.
fn transferred(event: &Event) -> u64 {
    u64::try_from(event.head.ret).unwrap_or(0).min(TRANSFER_BYTES_MAX)
}

/// The file's length as the trace has it; 0 where it does not say.
fn size_before(event: &Event) -> u64 {
    event.size_before().unwrap_or(0).min(BYTES_MAX)
}

/// What must be there for a plain call to have ended as it did.
fn must_of(event: &Event) -> Must {
    let size = size_before(event);
    let exists = |kind| Must::All(kind, size);
    let Some(errno) = event.head.errno else {
        return exists(if event.op() == Op::ReadLink { FileKind::Symlink } else { FileKind::File });
    };
    match (errno, event.op()) {
        (Errno::EEXIST, Op::Mkdir) | (Errno::ENOTEMPTY, Op::Rmdir) => exists(FileKind::Directory),
        (Errno::EEXIST, Op::Open | Op::Symlink | Op::Mknod) | (Errno::EADDRINUSE, Op::Mknod) => exists(FileKind::File),
        (Errno::EISDIR, Op::Open | Op::Unlink) => exists(FileKind::Directory),
        (Errno::EINVAL, Op::ReadLink) => exists(FileKind::File),
        (Errno::ENODATA | Errno::ERANGE | Errno::EOPNOTSUPP, _) => exists(FileKind::File),
        _ => Must::Nothing,
    }
}
