//! The first pass over a trace: what must be there before it can run, and how many of its calls overlap.

use super::ReplayError;
use super::at_start::AtStart;
use super::order::Order;
use super::rights::{self, Refusals};
use posix::{Errno, Fallocate, FileKind};
use rustc_hash::{FxHashMap, FxHashSet};
use trace::disposition::{copy_ends, disposition};
use trace::tree::{Node, Object, Tree, Walk};
use trace::{Batch, Call, Event, Named, OfdId, Opened, PathId, Provenance, Range, Snapshot, Via, flag};

/// What an attribute of unknown length is taken to hold.
const ATTRIBUTE_BYTES: u64 = 32;

/// What the first pass found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Rows of the trace.
    pub events: u64,
    /// Calls the replay will make.
    pub issued: u64,
    /// Of these, calls that began while another was in flight.
    pub overlapped: u64,
    /// Most calls in flight at once.
    pub in_flight_max: usize,
    /// Most traced threads alive at once (from first to last call).
    pub threads_max: usize,
    /// Number of traced threads.
    pub threads: usize,
    /// Last call of each thread.
    pub last_of_thread: FxHashMap<u32, u64>,
    /// Descriptions the trace never closes (their process ended), with the last call on each.
    pub last_use: FxHashMap<OfdId, u64>,
    /// Descriptions of files that get a name by way of them.
    pub named_later: FxHashSet<OfdId>,
    /// Calls that replay on a path, made on a descriptor of what that path does not lead to.
    pub off_path: FxHashSet<u64>,
    /// Calls of chmod and fchmod on directories.
    pub modes_of_directories: FxHashSet<u64>,
    /// Objects by their state when the trace began.
    pub initial: InitialState,
    /// The most by which the trace's files outgrow the initial state, bytes.
    pub growth_bytes: u64,
    /// The most names it adds.
    pub growth_names: u64,
}

/// What is made before the replay, in the order of paths: every name after its directory.
#[derive(Debug, Default)]
pub(super) struct InitialState {
    entries: Vec<Initial>,
}

impl InitialState {
    pub(super) fn entries(&self) -> &[Initial] {
        &self.entries
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The absolute path of an entry in the traced system; `None` is the root's, which is empty. Kept nowhere: the
    /// paths of a deep tree are longer than all its names together.
    pub(super) fn path(&self, mut entry: Option<usize>) -> Vec<u8> {
        let mut names: Vec<&[u8]> = Vec::new();
        while let Some(at) = entry {
            let Initial { dir, name, .. } = &self.entries[at];
            names.push(name);
            entry = *dir;
        }
        names.iter().rev().flat_map(|name| [&b"/"[..], name]).collect::<Vec<_>>().concat()
    }
}

/// A name to make before the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Initial {
    /// The entry of its directory; `None`: it is in the root.
    pub dir: Option<usize>,
    /// Its name there.
    pub name: Box<[u8]>,
    /// What it is.
    pub kind: FileKind,
    /// Length (files).
    pub size_bytes: u64,
    /// Permission bits.
    pub mode: u16,
    /// Rights that the traced user did not have to it (4 to read, 2 to write, 1 to search or execute).
    pub lacks: u8,
    /// Bytes of an attribute that it has.
    pub attribute_bytes: Option<u64>,
    /// Target (symbolic links).
    pub target: Option<Vec<u8>>,
    /// Index of an earlier entry that this is another name of.
    pub link_to: Option<usize>,
    /// Whether the data must really be there.
    pub needs_data: bool,
    /// Whether it was inferred from the trace.
    pub reconstructed: bool,
}

/// Reads the trace once.
pub(super) fn scan(
    snapshot: &Snapshot,
    batches: impl Iterator<Item = Result<Batch, ReplayError>>,
    mut progress: impl FnMut(u64) -> Result<(), ReplayError>,
) -> Result<Scan, ReplayError> {
    let mut scanner = Scanner::new(snapshot)?;
    for batch in batches {
        let batch = batch?;
        for event in &batch.events {
            if posix::interrupt::requested() {
                return Err(ReplayError::Interrupted { stage: "reading the trace", calls: 0 });
            }
            scanner.event(event, &batch);
            if scanner.names.is_too_deep() {
                return Err(ReplayError::TooDeep { place: format!("call {}", event.head.seq) });
            }
        }
        progress(scanner.scan.events)?;
    }
    Ok(scanner.finish(snapshot))
}

struct Scanner {
    scan: Scan,
    /// Which object a path means, and which of them were there at the start: fed with every call's effect in order.
    names: Tree<AtStart>,
    /// Directory and object of each snapshot entry; the root is in itself.
    entries: Vec<Option<(Node, Node)>>,
    /// How many objects were known before the trace was read.
    listed: usize,
    open: FxHashMap<OfdId, (Option<Node>, u64)>,
    refusals: Refusals,
    /// Calls that set the mode of what may turn out to be a directory.
    modes_set: Vec<(u64, Node)>,
    order: Order,
    first_of_thread: FxHashMap<u32, u64>,
    growth: i64,
    grown_names: i64,
}

impl Scanner {
    fn new(snapshot: &Snapshot) -> Result<Scanner, ReplayError> {
        let mut names = Tree::default();
        let entries = names.load(snapshot);
        let listed = names.objects().len();
        if let Some(entry) = snapshot.entries[..entries.len()].last().filter(|_| names.is_too_deep()) {
            let place = format!("snapshot, {}", trace::profile::escape(&entry.path));
            return Err(ReplayError::TooDeep { place });
        }
        Ok(Scanner {
            listed,
            scan: Scan::default(),
            names,
            entries,
            open: FxHashMap::default(),
            refusals: Refusals::default(),
            modes_set: Vec::new(),
            order: Order::default(),
            first_of_thread: FxHashMap::default(),
            growth: 0,
            grown_names: 0,
        })
    }

    fn event(&mut self, e: &Event, batch: &Batch) {
        self.scan.events += 1;
        if disposition(e).is_err() {
            // A foreign call says nothing of the modelled tree; chdir proves a directory.
            if let Call::Chdir(at) = &e.call
                && e.head.errno.is_none()
                && e.head.flags & flag::FOREIGN == 0
            {
                self.existing(at.path, batch, true, Some(FileKind::Directory));
            }
            return;
        }
        self.count(e);
        if let Some(dir) = e.caller_dir() {
            self.existing(Some(dir), batch, true, Some(FileKind::Directory));
        }
        if self.is_off_path(e, batch) {
            self.scan.off_path.insert(e.head.seq);
        } else if e.head.errno.is_none() {
            self.succeeded(e, batch)
        } else {
            self.failed(e, batch)
        }
        self.scan.growth_bytes = self.scan.growth_bytes.max(u64::try_from(self.growth).unwrap_or(0));
        self.scan.growth_names = self.scan.growth_names.max(u64::try_from(self.grown_names).unwrap_or(0));
    }

    fn count(&mut self, e: &Event) {
        let scan = &mut self.scan;
        scan.issued += 1;
        self.order.produce(e.head.seq, e.head.t_ns, e.head.t_ns.saturating_add(e.head.dur_ns));
        self.order.complete(e.head.seq);
        let in_flight = self.order.in_flight();
        scan.overlapped += u64::from(in_flight > 1);
        scan.in_flight_max = scan.in_flight_max.max(in_flight);
        self.first_of_thread.entry(e.head.tid).or_insert(e.head.seq);
        scan.last_of_thread.insert(e.head.tid, e.head.seq);
        for ofd in [e.ofd(), e.ofd2()].into_iter().flatten() {
            if let Some(open) = self.open.get_mut(&ofd) {
                open.1 = e.head.seq;
            }
        }
    }

    fn succeeded(&mut self, e: &Event, batch: &Batch) {
        let follow = e.head.flags & flag::NOFOLLOW == 0;
        match &e.call {
            Call::Open { at, ofd, .. } => self.open_ok(e, at, *ofd, batch, follow),
            Call::Close(of) => {
                if let Some(ofd) = of.ofd {
                    self.open.remove(&ofd);
                }
            }
            Call::Read(range) | Call::Write(range) | Call::Fallocate(range) => self.data(e, &range.of, batch),
            Call::Ftruncate { of, .. } => self.data(e, of, batch),
            Call::Copy { .. } => self.copy(e, batch),
            Call::SyncRange { range: Range { of, .. }, .. }
            | Call::Fsync(of)
            | Call::Fdatasync(of)
            | Call::Fstat(of)
            | Call::Seek(of)
            | Call::Fchmod { of, .. }
            | Call::Fchown(of)
            | Call::Futimens(of) => {
                if let Some(node) = self.described(of.ofd, of.path, batch, None) {
                    self.size_seen(node, of.size_before);
                    self.mode_seen(node, e);
                }
            }
            Call::GetDents { of, .. } => {
                self.described(of.ofd, of.path, batch, Some(FileKind::Directory));
            }
            Call::Stat(at) | Call::Access { at, .. } | Call::Chmod { at, .. } | Call::Chown(at) | Call::Utimens(at) => {
                if let Some(node) = self.existing(at.path, batch, follow, None) {
                    self.size_seen(node, at.size_before);
                    self.mode_seen(node, e);
                }
            }
            Call::StatFs(on) | Call::ListXattr(on) => {
                self.existing(on.path, batch, follow, None);
            }
            Call::GetXattr(on) | Call::SetXattr { on, .. } | Call::RemoveXattr(on) => {
                if let Some(node) = self.existing(on.path, batch, follow, None) {
                    self.attribute_seen(node, e);
                }
            }
            Call::Truncate { at, len } => {
                if let Some(node) = self.existing(at.path, batch, true, Some(FileKind::File)) {
                    self.size_seen(node, at.size_before);
                    self.resize(node, len.unwrap_or(0));
                }
            }
            Call::ReadLink { at, .. } => {
                if let Some(node) = self.existing(at.path, batch, false, Some(FileKind::Symlink)) {
                    let object = self.names.get_mut(node);
                    if object.implied && object.target.is_none() {
                        object.size_bytes = u64::try_from(e.head.ret).unwrap_or(0);
                    }
                }
            }
            Call::Mkdir { at, .. } => self.create(at.path, batch, FileKind::Directory, None),
            Call::Mknod { at, .. } => self.create(at.path, batch, FileKind::File, None),
            Call::Symlink { at, target } => {
                let target = target.map(|t| batch.paths.get(t));
                self.create(at.path, batch, FileKind::Symlink, target);
            }
            Call::Unlink(at) => self.remove(at.path, batch, None),
            Call::Rmdir(at) => self.remove(at.path, batch, Some(FileKind::Directory)),
            Call::Rename { from, to } => self.rename(from.path, to.path, e.head.flags & flag::EXCHANGE != 0, batch),
            Call::Link { from, to } => {
                let node = if let Via::Ofd(ofd) = from.via {
                    self.scan.named_later.insert(ofd);
                    self.described(Some(ofd), from.path, batch, None)
                } else {
                    self.existing(from.path, batch, follow, None)
                };
                // No file system links a directory, whatever a file says.
                let Some(node) = node.filter(|&node| !self.names.is_dir(node)) else { return };
                if let Some((dir, name)) = self.free_name(to.path, batch) {
                    self.names.attach(dir, &name, node);
                    self.grown_names += 1;
                }
            }
            _ => {}
        }
    }

    /// Whether a call on a descriptor has a path that leads elsewhere: its file was moved, lost its name or never had
    /// one.
    fn is_off_path(&self, e: &Event, batch: &Batch) -> bool {
        let (Call::StatFs(on)
        | Call::ListXattr(on)
        | Call::GetXattr(on)
        | Call::SetXattr { on, .. }
        | Call::RemoveXattr(on)) = e.call
        else {
            return false;
        };
        let Via::Ofd(ofd) = on.via else { return false };
        let open = self.open.get(&ofd).and_then(|(node, _)| *node);
        let (Some(open), Some(path)) = (open, on.path) else { return false };
        let walk = self.names.walk(batch.paths.get(path), true);
        !matches!(walk, Walk::Found { node, .. } if node == open)
    }

    /// What a successful call on an attribute says of the beginning: that there was one.
    fn attribute_seen(&mut self, node: Node, e: &Event) {
        let shown = &mut self.names.get_mut(node).more;
        if !shown.attribute_changed && shown.attribute_bytes.is_none() {
            shown.attribute_bytes = match e.call {
                Call::GetXattr(_) => u64::try_from(e.head.ret).ok(),
                Call::RemoveXattr(_) => Some(ATTRIBUTE_BYTES),
                _ => None,
            };
        }
        shown.attribute_changed |= !matches!(e.call, Call::GetXattr(_));
    }

    /// What a call says of the right to execute, as it was before.
    fn mode_seen(&mut self, node: Node, e: &Event) {
        if matches!(e.call, Call::Chmod { .. } | Call::Fchmod { .. })
            && self.names.get(node).kind.is_none_or(|k| k == FileKind::Directory)
        {
            self.modes_set.push((e.head.seq, node));
        }
        let executable = match e.call {
            Call::Access { mode: Some(asked), .. } if asked & 1 != 0 => e.head.errno.is_none(),
            // Nothing from here on speaks of the time before.
            Call::Chmod { .. } | Call::Fchmod { .. } => false,
            _ => return,
        };
        self.names.get_mut(node).more.executable.get_or_insert(executable);
    }

    /// What a failure proves to be there, or not to be.
    fn failed(&mut self, e: &Event, batch: &Batch) {
        let Some(errno) = e.head.errno else { return };
        self.refusals.note(e, batch);
        let follow = e.head.flags & flag::NOFOLLOW == 0;
        // A refused chmod succeeds in the replay, whose user owns what it made: it must not close a directory.
        let refused = match &e.call {
            Call::Chmod { at, .. } => at.path.and_then(|path| match self.names.walk(batch.paths.get(path), follow) {
                Walk::Found { node, .. } => Some(node),
                _ => None,
            }),
            Call::Fchmod { of, .. } => of.ofd.and_then(|ofd| self.open.get(&ofd)?.0),
            _ => None,
        };
        self.modes_set.extend(refused.map(|node| (e.head.seq, node)));
        let (path, kind) = match (errno, &e.call) {
            (Errno::EEXIST, Call::Open { at, .. }) => (at.path, Some(FileKind::File)),
            (Errno::EEXIST, Call::Mkdir { at, .. }) => (at.path, Some(FileKind::Directory)),
            (Errno::EEXIST, Call::Symlink { at, .. } | Call::Mknod { at, .. }) => (at.path, None),
            (Errno::EADDRINUSE, Call::Mknod { at, .. }) => (at.path, None),
            (Errno::EEXIST, Call::Link { to, .. } | Call::Rename { to, .. }) => (to.path, None),
            (Errno::ENOTEMPTY, Call::Rmdir(at)) => (at.path, Some(FileKind::Directory)),
            (Errno::EISDIR, Call::Open { at, .. }) => (at.path, Some(FileKind::Directory)),
            (Errno::ENOTDIR, Call::Rmdir(at)) => (at.path, Some(FileKind::File)),
            (Errno::EINVAL, Call::ReadLink { at, .. }) => (at.path, None),
            (Errno::EACCES, Call::Access { at, .. }) => {
                // A directory on the way may have refused: that the name is there is not said.
                let Some(path) = at.path else { return };
                let walk = self.names.walk(batch.paths.get(path), follow);
                if let Walk::Found { node, .. } = walk {
                    self.mode_seen(node, e);
                }
                return;
            }
            (Errno::ENODATA, Call::GetXattr(on) | Call::RemoveXattr(on)) => (on.path, None),
            // Which of two paths was meant is not known.
            (Errno::ENOENT, Call::Link { .. } | Call::Rename { .. }) => return,
            (Errno::ENOENT, _) => {
                let Some(path) = e.path() else { return };
                if let Walk::Missing { dir, name, last } = self.names.walk(batch.paths.get(path), follow) {
                    // Looked up in, so a directory: anything else would have said ENOTDIR.
                    self.be_kind(dir, Some(FileKind::Directory));
                    self.names.get_mut(dir).more.searched = true;
                    if last {
                        self.names.note_absent(dir, &name);
                    }
                }
                return;
            }
            _ => return,
        };
        // With a slash at its end these calls see the link itself, and a walk does not: nothing is learnt.
        if path.is_some_and(|path| batch.paths.get(path).ends_with(b"/")) {
            return;
        }
        self.existing(path, batch, false, kind);
    }

    fn open_ok(&mut self, e: &Event, at: &Named, ofd: Option<OfdId>, batch: &Batch, follow: bool) {
        let Some(path) = at.path else { return };
        let has = |bit: u32| e.head.flags & bit != 0;
        let walk = self.names.walk(batch.paths.get(path), follow && !has(flag::EXCL));
        let node = if has(flag::TMPFILE) {
            self.existing(at.path, batch, true, Some(FileKind::Directory));
            Some(self.names.add(Some(FileKind::File), None))
        } else if let (Walk::Missing { dir, name, last: true }, true) = (&walk, has(flag::CREATE)) {
            // Without a length the importer saw it come into being; with one it was there.
            if at.size_before.is_some_and(|s| s > 0) && !self.names.is_absent(*dir, name) {
                self.existing(at.path, batch, true, Some(FileKind::File))
            } else {
                let node = self.names.add(Some(FileKind::File), None);
                self.names.attach(*dir, name, node);
                self.names.get_mut(*dir).more.searched = true;
                self.grown_names += 1;
                Some(node)
            }
        } else {
            let kind = if has(flag::DIRECTORY) {
                Some(FileKind::Directory)
            } else if has(flag::WRITE) {
                Some(FileKind::File)
            } else {
                None
            };
            self.existing(at.path, batch, follow, kind)
        };
        if let Some(node) = node {
            self.names.get_mut(node).more.opened |= rights::opened_for(e);
            self.size_seen(node, at.size_before);
            if has(flag::TRUNC) {
                self.resize(node, 0);
            }
        }
        if let Some(ofd) = ofd {
            self.open.insert(ofd, (node, e.head.seq));
        }
    }

    /// A call that reads or changes the data of one file.
    fn data(&mut self, e: &Event, of: &Opened, batch: &Batch) {
        let moved = u64::try_from(e.head.ret).unwrap_or(0);
        let Some(node) = self.described(of.ofd, of.path, batch, Some(FileKind::File)) else { return };
        self.size_seen(node, of.size_before);
        let size = self.names.get(node).size_bytes;
        match e.call {
            Call::Read(range) => self.reads(node, range.offset.map_or(0, |o| o.saturating_add(moved)), moved),
            // An append of unknown place grows the file by what it wrote.
            Call::Write(range) => self.writes(node, range.offset.unwrap_or(size).saturating_add(moved), moved),
            Call::Ftruncate { len, .. } => self.resize(node, len.unwrap_or(0)),
            Call::Fallocate(range) => {
                let [.., bits] = (e.head.flags >> flag::SUB_SHIFT & 0xff).to_be_bytes();
                let len = range.bytes.unwrap_or(0);
                let end = match Fallocate::from_bits(bits) {
                    Fallocate::PunchHole => size,
                    Fallocate::CollapseRange => return self.resize(node, size.saturating_sub(len)),
                    Fallocate::InsertRange => size.saturating_add(len),
                    // What is reserved beyond the end takes space as well.
                    _ => range.offset.unwrap_or(0).saturating_add(len),
                };
                self.writes(node, end, 1);
            }
            _ => {}
        }
    }

    fn copy(&mut self, e: &Event, batch: &Batch) {
        let moved = u64::try_from(e.head.ret).unwrap_or(0);
        let end = |offset: Option<u64>| offset.map_or(0, |o| o.saturating_add(moved));
        let (from, to) = copy_ends(e);
        if let Some(from) = from.and_then(|_| self.described(from, e.path(), batch, Some(FileKind::File))) {
            self.reads(from, end(e.offset()), moved);
        }
        if let Some(to) = to.and_then(|_| self.described(to, e.path2(), batch, Some(FileKind::File))) {
            self.writes(to, end(e.offset2()), moved);
        }
    }

    fn reads(&mut self, node: Node, end: u64, moved: u64) {
        if moved == 0 {
            return;
        }
        let object = self.names.get_mut(node);
        object.more.needs_data = true;
        if !object.more.changed && object.implied {
            object.initial_bytes = object.initial_bytes.max(end);
            object.size_bytes = object.size_bytes.max(end);
        }
    }

    fn writes(&mut self, node: Node, end: u64, moved: u64) {
        if moved == 0 {
            return;
        }
        let object = self.names.get_mut(node);
        object.more.needs_data = true;
        object.more.changed = true;
        if end > object.size_bytes {
            self.growth = self.growth.saturating_add_unsigned(end - object.size_bytes);
            object.size_bytes = end;
        }
    }

    fn resize(&mut self, node: Node, to: u64) {
        let object = self.names.get_mut(node);
        object.more.needs_data = true;
        object.more.changed = true;
        // A longer truncate makes a hole: it takes no space until written.
        if to < object.size_bytes {
            self.growth = self.growth.saturating_sub_unsigned(object.size_bytes - to);
        }
        object.size_bytes = to;
    }

    fn size_seen(&mut self, node: Node, size_before: Option<u64>) {
        let object = self.names.get_mut(node);
        if let (Some(size), true, false, None | Some(FileKind::File)) =
            (size_before, object.implied, object.more.changed, object.kind)
        {
            object.initial_bytes = object.initial_bytes.max(size);
            object.size_bytes = object.initial_bytes;
        }
    }

    fn create(&mut self, path: Option<PathId>, batch: &Batch, kind: FileKind, target: Option<&[u8]>) {
        if let Some((dir, name)) = self.free_name(path, batch) {
            let node = self.names.add(Some(kind), target);
            self.names.attach(dir, &name, node);
            self.grown_names += 1;
        }
    }

    fn remove(&mut self, path: Option<PathId>, batch: &Batch, kind: Option<FileKind>) {
        if self.existing(path, batch, false, kind).is_none() {
            return;
        }
        let Some(path) = path else { return };
        if let Walk::Found { place: Some((dir, name)), node } = self.names.walk(batch.paths.get(path), false) {
            self.names.detach(dir, &name);
            self.names.note_absent(dir, &name);
            self.lost_a_name(node);
        }
    }

    fn lost_a_name(&mut self, node: Node) {
        self.grown_names -= 1;
        let object = self.names.get_mut(node);
        if object.names == 0 && matches!(object.kind, None | Some(FileKind::File)) {
            object.more.needs_data = true;
            self.growth = self.growth.saturating_sub_unsigned(object.size_bytes);
        }
    }

    fn rename(&mut self, from: Option<PathId>, to: Option<PathId>, exchange: bool, batch: &Batch) {
        self.existing(from, batch, false, None);
        if exchange {
            self.existing(to, batch, false, None);
        }
        let (Some(from), Some(to)) = (from, to) else { return };
        let Walk::Found { place: Some((from_dir, from_name)), node } = self.names.walk(batch.paths.get(from), false)
        else {
            return;
        };
        let over = match self.names.walk(batch.paths.get(to), false) {
            Walk::Found { place: Some((dir, name)), node } => Some((dir, name, node)),
            _ => None,
        };
        match over {
            // Two names of one file: rename does nothing.
            Some((_, _, other)) if other == node => {}
            Some((dir, name, other)) => {
                self.names.detach(from_dir, &from_name);
                self.names.detach(dir, &name);
                self.names.attach(dir, &name, node);
                if exchange {
                    self.names.attach(from_dir, &from_name, other);
                } else {
                    self.names.note_absent(from_dir, &from_name);
                    self.lost_a_name(other);
                }
            }
            None => {
                if let Some((dir, name)) = self.free_name(Some(to), batch) {
                    self.names.detach(from_dir, &from_name);
                    self.names.note_absent(from_dir, &from_name);
                    self.names.attach(dir, &name, node);
                }
            }
        }
    }

    /// The object a description refers to; one that the trace did not open was open when it began.
    fn described(
        &mut self,
        ofd: Option<OfdId>,
        path: Option<PathId>,
        batch: &Batch,
        kind: Option<FileKind>,
    ) -> Option<Node> {
        match ofd.and_then(|o| self.open.get(&o)) {
            Some((node, _)) => {
                let node = (*node)?;
                self.be_kind(node, kind);
                Some(node)
            }
            None => {
                let node = self.existing(path, batch, true, kind);
                if let Some(node) = node {
                    // Who opened it is not known; the replay has to.
                    self.names.get_mut(node).more.opened = rights::READ | rights::WRITE;
                }
                if let Some(ofd) = ofd {
                    self.open.insert(ofd, (node, self.scan.events.saturating_sub(1)));
                }
                node
            }
        }
    }

    /// The object of a path that the trace shows to exist; made part of the initial state if nothing explains it.
    fn existing(&mut self, path: Option<PathId>, batch: &Batch, follow: bool, kind: Option<FileKind>) -> Option<Node> {
        let path = batch.paths.get(path?);
        // What has a slash after it is a directory.
        let kind = if path.ends_with(b"/") { Some(FileKind::Directory) } else { kind };
        let walk = self.names.walk_making(path, follow, |names, dir, name, last| {
            // What the trace showed or made absent, and what is in a directory of its own making, was not there.
            let unseen = names.get(dir).origin.is_some() && !names.is_absent(dir, name);
            unseen.then(|| if last { names.imply(dir, name, kind) } else { names.imply_directory(dir, name) })
        });
        let Walk::Found { place, node } = walk else { return None };
        let looked_in = place.map_or(node, |(dir, _)| dir);
        self.names.get_mut(looked_in).more.searched = true;
        self.be_kind(node, kind);
        Some(node)
    }

    fn be_kind(&mut self, node: Node, kind: Option<FileKind>) {
        let object = self.names.get_mut(node);
        if object.kind.is_none() {
            object.kind = kind;
        }
    }

    /// Where a name is about to be made: its directory exists, it does not.
    fn free_name(&mut self, path: Option<PathId>, batch: &Batch) -> Option<(Node, Vec<u8>)> {
        let walk = self.names.walk_making(batch.paths.get(path?), false, |names, dir, name, last| {
            let unseen = !last && names.get(dir).origin.is_some();
            unseen.then(|| match names.is_absent(dir, name) {
                // Something unseen has made it, after the beginning.
                true => {
                    let made = names.add(Some(FileKind::Directory), None);
                    names.attach(dir, name, made);
                    made
                }
                false => names.imply_directory(dir, name),
            })
        });
        let (dir, name) = match walk {
            Walk::Missing { dir, name, last: true } => (dir, name),
            // The trace says that it was not there: something unseen had removed it.
            Walk::Found { place: Some((dir, name)), .. } => {
                self.names.detach(dir, &name);
                (dir, name)
            }
            _ => return None,
        };
        self.names.get_mut(dir).more.searched = true;
        Some((dir, name.into_owned()))
    }

    fn finish(mut self, snapshot: &Snapshot) -> Scan {
        self.scan.threads = self.first_of_thread.len();
        self.scan.threads_max = most_alive(&self.first_of_thread, &self.scan.last_of_thread);
        self.scan.last_use = self.open.iter().map(|(ofd, (_, seq))| (*ofd, *seq)).collect();
        let is_directory = |(_, node): &(u64, Node)| self.names.is_dir(*node);
        self.scan.modes_of_directories =
            self.modes_set.iter().filter(|set| is_directory(set)).map(|set| set.0).collect();
        self.refusals.settle(&mut self.names);
        self.scan.initial = initial_state(&self.names, &self.entries, self.listed, snapshot);
        self.scan
    }
}

/// A name of the initial state before all are in order: its directory and object, and the rest.
type Unordered = (Node, Node, Initial);

/// The snapshot's entries, the directories that lead to them and are not listed in it, and what the trace implied;
/// without what is behind directories that no call got through.
fn initial_state(
    names: &Tree<AtStart>,
    entries: &[Option<(Node, Node)>],
    listed: usize,
    snapshot: &Snapshot,
) -> InitialState {
    let out_of_reach = rights::out_of_reach(names);
    let mut out: Vec<Unordered> = Vec::with_capacity(entries.len());
    // The first entry of each object; the root is none.
    let mut made: FxHashMap<Node, usize> = FxHashMap::default();
    let in_snapshot: FxHashSet<Node> = entries.iter().flatten().map(|(_, node)| *node).collect();
    let (above, implied): (Vec<_>, Vec<_>) = names
        .objects()
        .filter(|(node, object)| object.origin.is_some() && *node != Node::ROOT && !in_snapshot.contains(node))
        .partition(|(node, _)| node.index() < listed);
    let inferred = |list: Vec<(Node, &Object<AtStart>)>, out: &mut Vec<Unordered>, made: &mut FxHashMap<_, _>| {
        for (node, object) in list {
            let Some((dir, name)) = object.origin.as_ref().filter(|(dir, _)| !out_of_reach.contains(dir)) else {
                continue;
            };
            let kind = object.kind.unwrap_or(FileKind::File);
            made.insert(node, out.len());
            let initial = Initial {
                dir: None,
                name: name.clone(),
                kind,
                size_bytes: if kind == FileKind::File { object.initial_bytes } else { 0 },
                attribute_bytes: object.more.attribute_bytes,
                mode: if kind == FileKind::Directory || object.more.executable == Some(true) { 0o755 } else { 0o644 },
                // A link of known length and unknown target points nowhere.
                target: (kind == FileKind::Symlink)
                    .then(|| vec![b'x'; usize::try_from(object.size_bytes.clamp(1, 255)).unwrap_or(1)]),
                lacks: object.more.lacks,
                link_to: None,
                needs_data: object.more.needs_data,
                reconstructed: true,
            };
            out.push((*dir, node, initial));
        }
    };
    inferred(above, &mut out, &mut made);
    for (entry, place) in snapshot.entries.iter().zip(entries) {
        let Some((dir, node)) = place.filter(|(dir, node)| *node != Node::ROOT && !out_of_reach.contains(dir)) else {
            continue;
        };
        let object = names.get(node);
        let link_to = made.get(&node).copied();
        made.entry(node).or_insert(out.len());
        let implied = entry.provenance == Provenance::Trace;
        let executable = if implied && object.more.executable == Some(true) { 0o111 } else { 0 };
        let initial = Initial {
            dir: None,
            name: entry.name().into(),
            kind: entry.kind,
            size_bytes: if entry.kind == FileKind::File { object.initial_bytes } else { 0 },
            attribute_bytes: object.more.attribute_bytes,
            mode: entry.mode | executable,
            lacks: object.more.lacks,
            target: entry.target.clone(),
            link_to,
            needs_data: object.more.needs_data,
            reconstructed: implied,
        };
        out.push((dir, node, initial));
    }
    inferred(implied, &mut out, &mut made);
    in_order_of_paths(out, &made)
}

/// Component by component, so that each comes after its directory. Of a file with several names, the first stays before
/// those that link to it: these are all of the snapshot, in its order.
fn in_order_of_paths(unordered: Vec<Unordered>, made: &FxHashMap<Node, usize>) -> InitialState {
    let mut below: FxHashMap<Node, Vec<usize>> = FxHashMap::default();
    for (i, (dir, ..)) in unordered.iter().enumerate() {
        below.entry(*dir).or_default().push(i);
    }
    // The last first, as they are taken from the end.
    let name = |i: usize| &unordered[i].2.name;
    below.values_mut().for_each(|list| list.sort_by(|&a, &b| name(b).cmp(name(a))));
    let mut order = Vec::with_capacity(unordered.len());
    let mut next = below.remove(&Node::ROOT).unwrap_or_default();
    while let Some(i) = next.pop() {
        order.push(i);
        next.extend(below.remove(&unordered[i].1).unwrap_or_default());
    }
    assert_eq!(order.len(), unordered.len(), "every name is in a directory that is in the root or in another");
    let mut place = vec![0; unordered.len()];
    for (now, &was) in order.iter().enumerate() {
        place[was] = now;
    }
    let dirs: Vec<Option<usize>> =
        unordered.iter().map(|(dir, ..)| (*dir != Node::ROOT).then(|| place[made[dir]])).collect();
    let mut sorted: Vec<(usize, Initial)> = unordered
        .into_iter()
        .zip(dirs)
        .zip(&place)
        .map(|(((_, _, entry), dir), &now)| {
            let link_to = entry.link_to.map(|i| place[i]);
            (now, Initial { dir, link_to, ..entry })
        })
        .collect();
    sorted.sort_unstable_by_key(|(now, _)| *now);
    InitialState { entries: sorted.into_iter().map(|(_, entry)| entry).collect() }
}

/// The most threads alive at once, each from its first to its last call.
fn most_alive(first: &FxHashMap<u32, u64>, last: &FxHashMap<u32, u64>) -> usize {
    let mut edges: Vec<(u64, bool)> = first.values().map(|&s| (s, true)).collect();
    edges.extend(last.values().map(|&s| (s, false)));
    // At one call a thread begins before it ends, so starts sort first.
    edges.sort_by_key(|&(seq, start)| (seq, !start));
    let (mut alive, mut most) = (0usize, 0);
    for (_, start) in edges {
        if start {
            alive += 1;
            most = most.max(alive);
        } else {
            alive = alive.saturating_sub(1);
        }
    }
    most
}
