//! Stage 1: what each call asks for, whatever the caches hold.
//!
//! Builds the name tree from the snapshot, keeps it up to date as calls create, rename and remove, resolves every path as the
//! kernel walks it, follows descriptors to files, knows lengths and holes, and splits each call into [`Step`]s. Where the
//! trace and the tree disagree the trace is believed and the surprise counted.

use super::annotated::{Annotated, NodeId, Note, Role, SlotId, Stable, Status, Step};
use super::names::NameId;
use super::tree::Tree;
use super::walk::{End, Memo, Must, Parsed, Walked};
use crate::vector::Class;
use posix::{Errno, FileKind};
use rustc_hash::FxHashMap;
use trace::snapshot::Snapshot;
use trace::{Batch, Event, OfdId, Op, PathId, flag};

/// Unit of allocation that holes are kept in, bytes. Targets with other block sizes see the same holes.
const BLOCK_BYTES: u64 = 4096;

/// Offsets and lengths beyond this are no file's: a damaged trace must not overflow sums.
const BYTES_MAX: u64 = 1 << 62;
/// What one call moves at most (`MAX_RW_COUNT` of Linux).
const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;

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
    pub(super) tree: Tree,
    files: FxHashMap<OfdId, OpenFile>,
    // Of the current batch.
    pub(super) parsed: Vec<Parsed>,
    pub(super) components: Vec<NameId>,
    pub(super) starts: Vec<(NodeId, u64)>,
    pub(super) memos: Vec<Option<Memo>>,
    pub(super) memo_steps: Vec<Step>,
    // Scratch of one walk: the components still to come, last first.
    pub(super) pending: Vec<NameId>,
    /// The slot that the next component probably has.
    pub(super) hint: SlotId,
    /// Counts changes after which a directory path may lead elsewhere.
    pub(super) directory_epoch: u64,
    reports: Vec<ReportDirectory>,
    /// Names that were there before the trace and that no snapshot told of.
    pub(super) discovered_names: u64,
    surprises: u64,
}

impl Preprocess {
    /// A tree with the names of a snapshot.
    pub fn new(snapshot: &Snapshot) -> Preprocess {
        let mut stage = Preprocess {
            tree: Tree::new(),
            files: FxHashMap::default(),
            parsed: Vec::new(),
            components: Vec::new(),
            starts: Vec::new(),
            memos: Vec::new(),
            memo_steps: Vec::new(),
            pending: Vec::new(),
            hint: SlotId::NONE,
            directory_epoch: 0,
            reports: vec![ReportDirectory { path: b"/".to_vec(), parent: 0, depth: 0 }],
            discovered_names: 0,
            surprises: 0,
        };
        stage.load(snapshot);
        stage
    }

    fn load(&mut self, snapshot: &Snapshot) {
        let mut hard_links: FxHashMap<(u64, u64), NodeId> = FxHashMap::default();
        for entry in &snapshot.entries {
            let mut dir = NodeId::ROOT;
            let mut parts = entry.path.split(|&c| c == b'/').filter(|p| !p.is_empty()).peekable();
            while let Some(part) = parts.next() {
                let name = self.tree.names.intern(part);
                let slot = self.tree.slot_of(dir, name, &mut None);
                let known = self.tree.slot(slot).node;
                if parts.peek().is_some() {
                    dir = if known == NodeId::NONE { self.add(slot, FileKind::Directory, 0) } else { known };
                    continue;
                }
                if known != NodeId::NONE {
                    continue;
                }
                let shared = entry.kind != FileKind::Directory && entry.nlink > 1 && entry.ino != 0;
                let same = shared.then(|| hard_links.get(&(entry.dev, entry.ino)).copied()).flatten();
                if let Some(node) = same {
                    self.tree.attach(slot, node);
                    continue;
                }
                let node = self.add(slot, entry.kind, entry.size_bytes.min(BYTES_MAX));
                if shared {
                    hard_links.insert((entry.dev, entry.ino), node);
                }
                if let Some(target) = &entry.target {
                    self.tree.set_link_target(node, target);
                }
            }
        }
        self.tree.names.sweep();
    }

    fn add(&mut self, slot: SlotId, kind: FileKind, size_bytes: u64) -> NodeId {
        let node = self.tree.new_node(kind, size_bytes);
        self.tree.node_mut(node).report = u32::MAX;
        self.tree.attach(slot, node);
        node
    }

    /// The tree as it stands: for warming caches and naming files.
    pub fn tree(&self) -> &Tree {
        &self.tree
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
        self.discovered_names
    }

    /// Annotates one batch; batches come in the order of the trace.
    pub fn annotate(&mut self, batch: &Batch, out: &mut Annotated) {
        out.clear();
        self.parsed.clear();
        self.components.clear();
        self.starts.clear();
        self.memos.clear();
        self.memo_steps.clear();
        self.tree.names.sweep();
        for event in &batch.events {
            let first_step = u32::try_from(out.steps.len()).unwrap_or(u32::MAX);
            let mut call = CallNote::default();
            let status = status_of(event);
            if status == Status::Modelled {
                call.status = Status::Modelled;
                self.call(event, batch, out, &mut call);
            } else {
                call.status = status;
                if event.op == Op::Close && event.flags & flag::IMPLIED != 0 {
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
    }

    /// The report directory of a directory, made when first asked for.
    fn report_of(&mut self, dir: NodeId) -> u32 {
        let mut chain = Vec::new();
        let mut at = dir;
        let mut report = loop {
            let node = self.tree.node(at);
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
                let slot = self.tree.node(dir).slot;
                let name =
                    if slot == SlotId::NONE { b"(deleted)" } else { self.tree.names.get(self.tree.slot(slot).name) };
                path.extend_from_slice(name);
                let number = self.reports.len() as u32;
                self.reports.push(ReportDirectory { path, parent: report, depth });
                report = number;
            }
            self.tree.node_mut(dir).report = report;
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
    if event.flags & flag::FOREIGN != 0 {
        return Status::Foreign;
    }
    match event.op {
        Op::Close if event.flags & flag::IMPLIED != 0 => Status::Process,
        Op::Dup | Op::Chdir | Op::Fchdir | Op::Clone | Op::Exit => Status::Process,
        Op::Exec => Status::Exec,
        Op::Msync => Status::Mapped,
        Op::IoUring => Status::IoUring,
        Op::Ioctl | Op::Other => Status::Other,
        _ if event.flags & flag::UNFINISHED != 0 => Status::Unfinished,
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
        let failed = event.errno != 0;
        match event.op {
            Op::Open if !failed => self.open(event, batch, out, call),
            Op::Close => self.close(event, out, call),
            Op::Read => self.read(event, batch, out, call),
            Op::Write => self.write(event, batch, out, call),
            Op::Copy => self.copy(event, batch, out, call),
            Op::Seek => self.seek(event, batch, out, call),
            Op::GetDents => self.get_dents(event, batch, out, call),
            Op::Sync | Op::SyncFs => out.steps.push(Step::SyncAll),
            Op::Fsync | Op::Fdatasync | Op::SyncRange => self.sync(event, batch, out, call),
            Op::Ftruncate | Op::Fallocate => self.change_space(event, batch, out, call),
            Op::Truncate if !failed => self.truncate(event, batch, out, call),
            Op::Unlink if !failed => self.unlink(event, batch, out, call),
            Op::Rmdir if !failed => self.rmdir(event, batch, out, call),
            Op::Rename if !failed => self.rename(event, batch, out, call),
            Op::Link if !failed => self.link(event, batch, out, call),
            Op::Mkdir | Op::Symlink | Op::Mknod if !failed => self.make(event, batch, out, call),
            _ => self.plain(event, batch, out, call),
        }
    }

    /// Calls that only look at or change attributes, and every path call that failed.
    fn plain(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let class = plain_class(event.op);
        let on_descriptor = event.ofd.is_some() && event.op != Op::Open;
        if on_descriptor {
            let Some(node) = self.file_of(event.ofd, event.path, batch, out, call) else { return };
            out.steps.push(Step::Call(self.outcome_class(event, class)));
            if event.errno == 0 && changes_attributes(event.op) {
                out.steps.push(Step::Changed { node });
            }
            return;
        }
        let Some(path) = event.path else {
            call.status = Status::Unidentified;
            return;
        };
        let follow = self.follows(event);
        let must = must_of(event);
        let mut walked = self.walk(out, batch, path, event.caller_dir, follow, must);
        if let (Op::Rename | Op::Link, Some(path2)) = (event.op, event.path2)
            && walked.end == End::Found
        {
            call.lookups = walked.lookups;
            walked = self.walk(out, batch, path2, event.caller_dir2, false, Must::Nothing);
        }
        self.note(call, &walked);
        let missing = Errno(event.errno) == Errno::ENOENT;
        if walked.end != End::Found {
            call.failed_at = call.lookups;
            call.surprise |= event.errno == 0;
            // The failed lookup is the call, unless it failed at something that is there (ENOTDIR, ELOOP).
            if self.last_is_absent(out, &walked) {
                self.set_role(out, &walked, Role::Fails);
                return;
            }
        } else if missing && call.lookups > 0 {
            // The trace says something is missing that the model has; nothing says which, so the last.
            call.surprise = true;
            call.failed_at = call.lookups;
            if let Some(Step::Lookup { child, role, .. }) = walked.last_step.and_then(|at| out.steps.get_mut(at)) {
                (*child, *role) = (NodeId::NONE, Role::Fails);
                return;
            }
        }
        out.steps.push(Step::Call(self.outcome_class(event, class)));
        if event.errno == 0 && changes_attributes(event.op) && walked.end == End::Found {
            out.steps.push(Step::Changed { node: walked.node });
        }
    }

    /// A call that fails after its walk costs about an access; only getxattr has a class of its own for that.
    fn outcome_class(&self, event: &Event, class: Option<Class>) -> Class {
        match (event.op, class) {
            (Op::GetXattr, Some(_)) if event.errno != 0 => Class::GetXattrMissing,
            (Op::ReadLink | Op::Access | Op::Fcntl | Op::Fadvise | Op::Mmap, Some(class)) => class,
            (_, Some(class)) if event.errno == 0 => class,
            _ if event.ofd.is_some() => Class::Fstat,
            _ => Class::Access,
        }
    }

    fn follows(&self, event: &Event) -> bool {
        use Op::{Link, Mkdir, Mknod, ReadLink, Rename, Rmdir, Symlink, Unlink};
        let exclusive = event.op == Op::Open && event.flags & flag::CREATE != 0 && event.flags & flag::EXCL != 0;
        let never = matches!(event.op, Link | Mkdir | Mknod | ReadLink | Rename | Rmdir | Symlink | Unlink);
        !never && !exclusive && event.flags & flag::NOFOLLOW == 0
    }

    fn note(&self, call: &mut CallNote, walked: &Walked) {
        call.lookups = call.lookups.saturating_add(walked.lookups);
        call.surprise |= walked.surprise;
        call.dir = walked.dir;
        if walked.end == End::Found {
            call.node = walked.node;
            if self.tree.node(walked.node).kind == FileKind::Directory {
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

    // ---- descriptors ----------------------------------------------------------------------------------

    /// The file behind a descriptor; one that was open before the trace began is found by its path.
    fn file_of(
        &mut self,
        ofd: Option<OfdId>,
        path: Option<PathId>,
        batch: &Batch,
        out: &mut Annotated,
        call: &mut CallNote,
    ) -> Option<NodeId> {
        let node = match ofd.and_then(|ofd| self.files.get(&ofd)) {
            Some(file) => Some(file.node),
            None => path.map(|path| {
                let node = self.silent(out, batch, path, FileKind::File, 0);
                if let Some(ofd) = ofd {
                    self.install(ofd, node, 0);
                }
                node
            }),
        };
        match node {
            Some(node) => {
                call.node = node;
                let record = self.tree.node(node);
                call.dir = if record.kind == FileKind::Directory { node } else { record.dir };
            }
            None => call.status = Status::Unidentified,
        }
        node
    }

    fn install(&mut self, ofd: OfdId, node: NodeId, flags: u32) {
        let file = OpenFile { node, flags, written: false, position: 0, listed_bytes: 0 };
        self.tree.node_mut(node).opens += 1;
        if let Some(old) = self.files.insert(ofd, file) {
            // Never re-used within a trace; if it is all the same, the old one is closed.
            let node = self.tree.node_mut(old.node);
            node.opens = node.opens.saturating_sub(1);
        }
    }

    fn open(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(path) = event.path else {
            call.status = Status::Unidentified;
            return;
        };
        let has = |bits: u32| event.flags & bits != 0;
        let kind = if has(flag::DIRECTORY | flag::TMPFILE) { FileKind::Directory } else { FileKind::File };
        let must =
            if has(flag::CREATE) && !has(flag::TMPFILE) { Must::Parents } else { Must::All(kind, size_before(event)) };
        let walked = self.walk(out, batch, path, event.caller_dir, self.follows(event), must);
        self.note(call, &walked);
        let mut node = walked.node;
        if has(flag::TMPFILE) {
            node = self.tree.new_node(FileKind::File, 0);
            self.tree.node_mut(node).dir = walked.node;
            out.steps.push(Step::Call(Class::Create));
            out.steps.push(Step::Made { dir: walked.node, slot: SlotId::NONE, node, directory: false });
            call.node = node;
        } else if walked.end == End::Absent {
            node = self.make_at(out, &walked, FileKind::File, Class::Create);
            call.node = node;
        } else if walked.end == End::Broken {
            // Only a loop of links can do this to a call that succeeded.
            call.surprise = true;
            out.steps.push(Step::Call(Class::Open));
            return;
        } else {
            call.surprise |= has(flag::CREATE) && has(flag::EXCL);
            let directory = self.tree.node(node).kind == FileKind::Directory;
            out.steps.push(Step::Call(if directory { Class::OpenDir } else { Class::Open }));
            let size_bytes = self.tree.node(node).size_bytes;
            if has(flag::TRUNC) && !directory && size_bytes > 0 {
                out.steps.push(Step::Truncate { node, from_bytes: size_bytes, to_bytes: 0, opened: true });
                self.tree.set_size(node, 0, BLOCK_BYTES);
            }
        }
        if let Some(ofd) = event.ofd {
            self.install(ofd, node, event.flags);
        }
    }

    fn close(&mut self, event: &Event, out: &mut Annotated, call: &mut CallNote) {
        let Some(file) = event.ofd.and_then(|ofd| self.files.get(&ofd).copied()) else {
            // Opened before the trace or of no interest: a close that frees nothing we know of.
            if event.flags & flag::IMPLIED == 0 {
                out.steps.push(Step::Call(Class::Close));
            }
            return;
        };
        call.node = file.node;
        call.dir = self.tree.node(file.node).dir;
        let last = event.flags & flag::LAST != 0;
        let written = last && file.written;
        let implied = event.flags & flag::IMPLIED != 0;
        if !implied {
            out.steps.push(Step::Call(if written { Class::CloseWritten } else { Class::Close }));
        }
        if last && let Some(ofd) = event.ofd {
            self.files.remove(&ofd);
            let node = self.tree.node_mut(file.node);
            node.opens = node.opens.saturating_sub(1);
            self.reap(out, file.node, !implied);
        }
    }

    fn reap(&mut self, out: &mut Annotated, node: NodeId, on_close: bool) {
        let mut forgotten = Vec::new();
        let gone = self.tree.reap(node, &mut forgotten);
        out.steps.extend(forgotten.into_iter().map(|slot| Step::Forgotten { slot }));
        if let Some(gone) = gone {
            out.steps.push(Step::Freed { node, size_bytes: gone.size_bytes, on_close });
        }
    }

    // ---- data -----------------------------------------------------------------------------------------

    fn read(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(node) = self.file_of(event.ofd, event.path, batch, out, call) else { return };
        let len_bytes = transferred(event);
        let offset = self.position(event.ofd, event.offset);
        if len_bytes == 0 {
            out.steps.push(Step::Call(Class::ReadOverhead));
            return;
        }
        let direct = self.flags_of(event.ofd) & flag::DIRECT != 0;
        self.read_step(out, call, node, offset, len_bytes, direct, false);
        if event.flags & flag::POSITIONAL == 0 {
            self.advance(event.ofd, offset + len_bytes);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn read_step(
        &mut self,
        out: &mut Annotated,
        call: &mut CallNote,
        node: NodeId,
        offset: u64,
        len_bytes: u64,
        direct: bool,
        copy: bool,
    ) {
        let end = offset.saturating_add(len_bytes);
        if end > self.tree.node(node).size_bytes {
            // The file was longer than we knew: its length was unknown, or someone untraced wrote it.
            call.surprise |= self.tree.node(node).size_bytes > 0;
            self.tree.node_mut(node).size_bytes = end;
        }
        let size_bytes = self.tree.node(node).size_bytes;
        out.steps.push(Step::Read { node, offset, len_bytes, size_bytes, direct, copy });
    }

    fn write(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(node) = self.file_of(event.ofd, event.path, batch, out, call) else { return };
        let len_bytes = transferred(event);
        if len_bytes == 0 {
            out.steps.push(Step::Call(Class::WriteOverhead));
            return;
        }
        let flags = self.flags_of(event.ofd);
        let append = flags & flag::APPEND != 0;
        let offset = match event.offset {
            Some(offset) => offset.min(BYTES_MAX),
            None if append => self.tree.node(node).size_bytes,
            None => self.position(event.ofd, None),
        };
        let stable = if flags & flag::SYNC != 0 {
            Stable::All
        } else if flags & flag::DSYNC != 0 || event.flags & flag::RWF_SYNC != 0 {
            Stable::Data
        } else {
            Stable::No
        };
        self.write_step(out, node, offset, len_bytes, flags & flag::DIRECT != 0, false, stable);
        if let Some(file) = event.ofd.and_then(|ofd| self.files.get_mut(&ofd)) {
            file.written = true;
        }
        if event.flags & flag::POSITIONAL == 0 {
            self.advance(event.ofd, offset + len_bytes);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn write_step(
        &mut self,
        out: &mut Annotated,
        node: NodeId,
        offset: u64,
        len_bytes: u64,
        direct: bool,
        copy: bool,
        stable: Stable,
    ) {
        let size_bytes = self.tree.node(node).size_bytes;
        let new_bytes = self.tree.write_range(node, offset, len_bytes, BLOCK_BYTES);
        out.steps.push(Step::Write { node, offset, len_bytes, size_bytes, new_bytes, direct, copy, stable });
    }

    /// copy_file_range, sendfile, splice, FICLONE: a file at one or both ends.
    fn copy(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let known = |ofd: Option<OfdId>, files: &FxHashMap<OfdId, OpenFile>| {
            ofd.and_then(|ofd| files.get(&ofd)).map(|file| file.node)
        };
        let to = known(event.ofd2, &self.files);
        let from = match known(event.ofd, &self.files) {
            None if event.ofd.is_some() || to.is_none() => self.file_of(event.ofd, event.path, batch, out, call),
            found => found,
        };
        call.node = to.or(from).unwrap_or(NodeId::NONE);
        if call.node == NodeId::NONE {
            call.status = Status::Unidentified;
            return;
        }
        call.dir = self.tree.node(call.node).dir;
        let reflink = event.flags & flag::SHARED != 0 && event.ret == 0;
        let len_bytes = match (reflink, from) {
            (true, Some(from)) => event.req_bytes.unwrap_or(self.tree.node(from).size_bytes).min(BYTES_MAX),
            _ => transferred(event),
        };
        if len_bytes == 0 {
            out.steps.push(Step::Call(Class::ReadOverhead));
            return;
        }
        let (from_offset, to_offset) =
            (self.position(event.ofd, event.offset), self.position(event.ofd2, event.offset2));
        let both = from.is_some() && to.is_some();
        if both {
            out.steps.push(Step::CallAt(Class::CopyRange, if reflink { 0 } else { len_bytes }));
        }
        if let Some(from) = from.filter(|_| !reflink) {
            self.read_step(out, call, from, from_offset, len_bytes, false, both);
        }
        if let Some(to) = to {
            if reflink {
                self.tree.write_range(to, to_offset, len_bytes, BLOCK_BYTES);
                out.steps.push(Step::Allocate { node: to, grew: true });
            } else {
                self.write_step(out, to, to_offset, len_bytes, false, both, Stable::No);
            }
            if let Some(file) = event.ofd2.and_then(|ofd| self.files.get_mut(&ofd)) {
                file.written = true;
            }
        }
        if !reflink {
            self.advance(event.ofd, from_offset + len_bytes);
            self.advance(event.ofd2, to_offset + len_bytes);
        }
    }

    fn position(&self, ofd: Option<OfdId>, offset: Option<u64>) -> u64 {
        let own = || ofd.and_then(|ofd| self.files.get(&ofd)).map_or(0, |file| file.position);
        offset.unwrap_or_else(own).min(BYTES_MAX)
    }

    fn advance(&mut self, ofd: Option<OfdId>, to: u64) {
        if let Some(file) = ofd.and_then(|ofd| self.files.get_mut(&ofd)) {
            file.position = to;
        }
    }

    fn flags_of(&self, ofd: Option<OfdId>) -> u32 {
        ofd.and_then(|ofd| self.files.get(&ofd)).map_or(0, |file| file.flags)
    }

    fn seek(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        self.file_of(event.ofd, event.path, batch, out, call);
        out.steps.push(Step::Call(Class::Seek));
        call.status = Status::Modelled;
        if let (Ok(to), Some(file)) = (u64::try_from(event.ret), event.ofd.and_then(|ofd| self.files.get_mut(&ofd))) {
            file.position = to;
            if to == 0 {
                file.listed_bytes = 0;
            }
        }
    }

    fn get_dents(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(node) = self.file_of(event.ofd, event.path, batch, out, call) else { return };
        let returned = u64::try_from(event.ret).unwrap_or(0);
        let listed = event.ofd.and_then(|ofd| self.files.get(&ofd)).map_or(0, |f| f.listed_bytes);
        let directory = self.tree.node(node);
        // The directory may be larger than we know of: without a snapshot the trace is all there is.
        let total_bytes = directory.dirent_bytes.max(listed + returned);
        let known = u64::from(directory.entries);
        let mean_bytes = directory.dirent_bytes.saturating_sub(48).checked_div(known).unwrap_or(32);
        let entries = known.max(total_bytes.saturating_sub(48) / mean_bytes.max(24));
        out.steps.push(Step::ReadDir {
            node,
            entries,
            share_bytes: returned,
            total_bytes,
            first: listed == 0 && returned > 0,
            end: returned == 0,
        });
        if let Some(file) = event.ofd.and_then(|ofd| self.files.get_mut(&ofd)) {
            file.listed_bytes = if returned == 0 { 0 } else { listed + returned };
        }
    }

    fn sync(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(node) = self.file_of(event.ofd, event.path, batch, out, call) else { return };
        if event.errno != 0 {
            out.steps.push(Step::Call(Class::FsyncClean));
            return;
        }
        let directory = self.tree.node(node).kind == FileKind::Directory;
        out.steps.push(match event.op {
            Op::SyncRange => Step::SyncRange { node },
            _ => Step::Sync { node, data_only: event.op == Op::Fdatasync, directory },
        });
    }

    fn change_space(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(node) = self.file_of(event.ofd, event.path, batch, out, call) else { return };
        let bytes = event.req_bytes.unwrap_or(0).min(BYTES_MAX);
        if event.errno != 0 {
            out.steps.push(Step::Call(Class::Fstat));
            return;
        }
        let from_bytes = self.tree.node(node).size_bytes;
        if event.op == Op::Ftruncate {
            out.steps.push(Step::Truncate { node, from_bytes, to_bytes: bytes, opened: false });
            self.tree.set_size(node, bytes, BLOCK_BYTES);
            return;
        }
        // The kernel's mode bits: linux/falloc.h.
        const KEEP_SIZE: u32 = 1;
        const PUNCH_HOLE: u32 = 2;
        const COLLAPSE_RANGE: u32 = 8;
        let mode = event.flags >> flag::SUB_SHIFT;
        let offset = event.offset.unwrap_or(0).min(BYTES_MAX);
        if mode & PUNCH_HOLE != 0 {
            let freed = self.tree.allocated_in(node, offset, bytes);
            out.steps.push(Step::CallAt(Class::TruncateCached, freed));
            self.tree.punch(node, offset, bytes, BLOCK_BYTES);
            out.steps.push(Step::Allocate { node, grew: true });
        } else if mode & COLLAPSE_RANGE != 0 {
            out.steps.push(Step::CallAt(Class::TruncateCached, bytes));
            self.tree.node_mut(node).size_bytes = from_bytes.saturating_sub(bytes);
            out.steps.push(Step::Allocate { node, grew: true });
        } else {
            let new = self.tree.allocate(node, offset, bytes, mode & KEEP_SIZE != 0, BLOCK_BYTES);
            out.steps.push(Step::CallAt(Class::Fallocate, new));
            out.steps.push(Step::Allocate { node, grew: new > 0 });
        }
    }

    // ---- names ----------------------------------------------------------------------------------------

    fn truncate(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let size = size_before(event);
        let Some(walked) = self.walk_event(event, batch, out, call, true, Must::All(FileKind::File, size)) else {
            return;
        };
        let to_bytes = event.req_bytes.unwrap_or(0).min(BYTES_MAX);
        let from_bytes = self.tree.node(walked.node).size_bytes;
        out.steps.push(Step::Truncate { node: walked.node, from_bytes, to_bytes, opened: false });
        self.tree.set_size(walked.node, to_bytes, BLOCK_BYTES);
    }

    fn unlink(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let size = size_before(event);
        let Some(walked) = self.walk_event(event, batch, out, call, false, Must::All(FileKind::File, size)) else {
            return;
        };
        if walked.slot == SlotId::NONE || walked.node == NodeId::ROOT {
            call.surprise = true;
            return;
        }
        let record = *self.tree.node(walked.node);
        let (last, open) = (record.links <= 1 && record.opens == 0, record.opens > 0);
        let size_bytes = if record.links <= 1 { record.size_bytes } else { 0 };
        self.tree.detach(walked.slot);
        if record.kind != FileKind::File {
            self.directory_epoch += 1;
        }
        out.steps.push(Step::Unlinked {
            dir: walked.dir,
            slot: walked.slot,
            node: walked.node,
            size_bytes,
            last,
            open,
        });
        self.reap(out, walked.node, false);
    }

    fn rmdir(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(walked) = self.walk_event(event, batch, out, call, false, Must::All(FileKind::Directory, 0)) else {
            return;
        };
        call.dir = walked.dir;
        if walked.slot == SlotId::NONE || walked.node == NodeId::ROOT {
            call.surprise = true;
            return;
        }
        out.steps.push(Step::Call(Class::Rmdir));
        call.surprise |= self.tree.node(walked.node).entries > 0;
        self.tree.detach(walked.slot);
        self.directory_epoch += 1;
        out.steps.push(Step::RemovedDirectory { dir: walked.dir, slot: walked.slot });
        self.reap(out, walked.node, false);
    }

    fn make(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(walked) = self.walk_event(event, batch, out, call, false, Must::Parents) else { return };
        let (kind, class) = match event.op {
            Op::Mkdir => (FileKind::Directory, Class::Mkdir),
            Op::Symlink => (FileKind::Symlink, Class::Symlink),
            _ => (FileKind::Special, Class::Create),
        };
        if walked.slot == SlotId::NONE {
            call.surprise = true;
            out.steps.push(Step::Call(class));
            return;
        }
        if walked.end == End::Found {
            // The trace made what we think is there: whoever removed it was not traced.
            call.surprise = true;
            self.tree.detach(walked.slot);
            self.reap(out, walked.node, false);
            self.directory_epoch += 1;
        }
        let node = self.make_at(out, &walked, kind, class);
        call.node = node;
        if let (Op::Symlink, Some(target)) = (event.op, event.path2) {
            let target = batch.paths.get(target);
            self.tree.node_mut(node).size_bytes = target.len() as u64;
            self.tree.set_link_target(node, target);
        }
    }

    /// Makes a file at the absent end of a walk.
    fn make_at(&mut self, out: &mut Annotated, walked: &Walked, kind: FileKind, class: Class) -> NodeId {
        self.set_role(out, walked, Role::Makes);
        let node = self.add(walked.slot, kind, 0);
        out.steps.push(Step::Call(class));
        let directory = kind == FileKind::Directory;
        out.steps.push(Step::Made { dir: walked.dir, slot: walked.slot, node, directory });
        node
    }

    fn rename(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some((from, to)) = self.walk_two(event, batch, out, call) else { return };
        if event.flags & flag::EXCHANGE != 0 && to.end == End::Found && to.slot != SlotId::NONE {
            out.steps.push(Step::Call(Class::Rename));
            let (a, b) = (self.tree.detach(from.slot), self.tree.detach(to.slot));
            self.tree.attach(from.slot, b);
            self.tree.attach(to.slot, a);
            self.directory_epoch += 1;
            out.steps.push(Step::Exchanged { from_dir: from.dir, to_dir: to.dir });
            return;
        }
        let moved = self.tree.slot(from.slot).node;
        if to.end == End::Found && to.node == moved {
            // Two names of one file: POSIX says that nothing happens.
            out.steps.push(Step::Call(Class::Access));
            return;
        }
        let over = if to.end == End::Found { to.node } else { NodeId::NONE };
        let (mut over_bytes, mut over_last) = (0, false);
        if over != NodeId::NONE {
            let record = *self.tree.node(over);
            over_last = record.links <= 1 && record.opens == 0;
            over_bytes = if over_last { record.size_bytes } else { 0 };
            self.tree.detach(to.slot);
        } else {
            self.set_role(out, &to, Role::Makes);
        }
        out.steps.push(Step::Call(if over == NodeId::NONE { Class::Rename } else { Class::RenameOver }));
        self.tree.detach(from.slot);
        self.tree.attach(to.slot, moved);
        if self.tree.node(moved).kind == FileKind::Directory {
            self.tree.node_mut(moved).report = u32::MAX;
        }
        let is_file = |id: NodeId| id == NodeId::NONE || self.tree.node(id).kind == FileKind::File;
        if !is_file(moved) || !is_file(over) {
            self.directory_epoch += 1;
        }
        call.node = moved;
        out.steps.push(Step::Renamed {
            from_dir: from.dir,
            from_slot: from.slot,
            to_dir: to.dir,
            to_slot: to.slot,
            over,
            over_bytes,
            over_last,
        });
        if over != NodeId::NONE {
            self.reap(out, over, false);
        }
    }

    fn link(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some((from, to)) = self.walk_two(event, batch, out, call) else { return };
        if to.end == End::Found {
            call.surprise = true;
            self.tree.detach(to.slot);
            self.reap(out, to.node, false);
            self.directory_epoch += 1;
        } else {
            self.set_role(out, &to, Role::Makes);
        }
        out.steps.push(Step::Call(Class::Link));
        self.tree.attach(to.slot, from.node);
        call.node = from.node;
        out.steps.push(Step::Linked { dir: to.dir, slot: to.slot, node: from.node });
    }

    /// The walk of a successful one-path call; `None` if there is nothing to go on.
    fn walk_event(
        &mut self,
        event: &Event,
        batch: &Batch,
        out: &mut Annotated,
        call: &mut CallNote,
        follow: bool,
        must: Must,
    ) -> Option<Walked> {
        let Some(path) = event.path else {
            call.status = Status::Unidentified;
            return None;
        };
        let walked = self.walk(out, batch, path, event.caller_dir, follow, must);
        self.note(call, &walked);
        if walked.end == End::Broken {
            call.surprise = true;
            out.steps.push(Step::Call(Class::Access));
            return None;
        }
        Some(walked)
    }

    /// Both walks of a successful rename or link: the first leads to a named file, the second to a name.
    fn walk_two(
        &mut self,
        event: &Event,
        batch: &Batch,
        out: &mut Annotated,
        call: &mut CallNote,
    ) -> Option<(Walked, Walked)> {
        let Some(path2) = event.path2 else {
            call.status = Status::Unidentified;
            return None;
        };
        let size = size_before(event);
        let from = self.walk_event(event, batch, out, call, false, Must::All(FileKind::File, size))?;
        let to = self.walk(out, batch, path2, event.caller_dir2, false, Must::Parents);
        self.note(call, &to);
        call.dir = to.dir;
        if from.slot == SlotId::NONE || to.slot == SlotId::NONE || to.end == End::Broken {
            call.surprise = true;
            out.steps.push(Step::Call(Class::Access));
            return None;
        }
        Some((from, to))
    }
}

/// The bytes a call moved.
fn transferred(event: &Event) -> u64 {
    u64::try_from(event.ret).unwrap_or(0).min(TRANSFER_BYTES_MAX)
}

/// The file's length as the trace has it; 0 where it does not say.
fn size_before(event: &Event) -> u64 {
    event.size_before.unwrap_or(0).min(BYTES_MAX)
}

/// What must be there for a plain call to have ended as it did.
fn must_of(event: &Event) -> Must {
    let size = size_before(event);
    let exists = |kind| Must::All(kind, size);
    match (Errno(event.errno), event.op) {
        (Errno(0), Op::ReadLink) => exists(FileKind::Symlink),
        (Errno(0), _) => exists(FileKind::File),
        (Errno::EEXIST, Op::Mkdir) | (Errno::ENOTEMPTY, Op::Rmdir) => exists(FileKind::Directory),
        (Errno::EEXIST, Op::Open | Op::Symlink | Op::Mknod) => exists(FileKind::File),
        (Errno::EISDIR, Op::Open | Op::Unlink) => exists(FileKind::Directory),
        (Errno::EINVAL, Op::ReadLink) => exists(FileKind::File),
        (Errno::ENODATA | Errno::ERANGE | Errno::EOPNOTSUPP, _) => exists(FileKind::File),
        _ => Must::Nothing,
    }
}
