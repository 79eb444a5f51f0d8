//! What traced calls mean: descriptors, offsets, sizes, working directories and names, kept as the kernel keeps them.
//!
//! What lives here: the state of the traced processes ([`Tracker`]), one file per concept (descriptor tables, names,
//! the order of events, coverage). What may not: any tracer's notation; importers decode into [`Call`]s.
//!
//! Effects are applied when a call returns (a close: when it starts, as the kernel frees the number first), events
//! come out in the order of call starts. What the trace does not tell stays unknown; where the tracer prints
//! what stands behind a descriptor, that is taken as the truth, and a difference from our tables is counted.
//! Memory is bounded by live descriptors, live names and running calls.

mod by_proc;
mod call;
#[cfg(test)]
mod check;
mod coverage;
mod descriptors;
mod history;
#[cfg(test)]
mod model;
mod mounts;
mod names;
mod on_fd;
mod on_map;
mod on_path;
mod process;
mod resolve;
mod sequence;
mod tree;

pub use call::{At, Attrs, Call, CloneFlags, Fd, Inode, Kind, Outcome, Seen, Spent, Start, Who};
pub use coverage::{ByOp, Coverage};
pub use history::{Change, History};
pub use names::Removed;
pub(crate) use on_path::SHARED_MOUNT;
pub(crate) use process::Cloning;
pub(crate) use resolve::{is_foreign, normalise, unescape_into};
pub(crate) use sequence::Place;
pub use tree::Standing;

use crate::profile::Row;
use crate::{Batch, OfdId, Op, flag};
use columnar::FileError;
use descriptors::{Descriptors, Ofd, Table};
use mounts::{Mount, Mounts, Spot};
use names::{File, Names};
use rustc_hash::FxHashMap;
use sequence::{Draft, Interned, Parked, Sequence};
use std::collections::BTreeMap;

/// `EBADF`
const EBADF: u16 = 9;

/// `EINVAL`
const EINVAL: u16 = 22;
/// `ENOENT`
const ENOENT: u16 = 2;

/// State of the traced processes, and the events made so far.
#[derive(Debug)]
pub struct Tracker {
    threads: FxHashMap<u32, Thread>,
    /// By the thread that is in a clone, the child that has shown itself: when the clone returns, that may have ended
    /// already.
    born: FxHashMap<u32, u32>,
    fs: Vec<FsContext>,
    free_fs: Vec<FsId>,
    fds: Descriptors,
    names: Names,
    /// By mount namespace; the first is that in which the trace began.
    mounts: Vec<Mounts>,
    free_namespaces: Vec<usize>,
    out: Sequence,
    coverage: Coverage,
    first_cwd: Option<Vec<u8>>,
    /// Every name in a directory that is used is known: what is not in the tree was not there.
    names_known: bool,
    /// Where the time of the call at hand went, if the tracer knows.
    spent: Option<Spent>,
    /// The call at hand went by way of `/proc`, and is told without.
    by_proc: bool,
    /// Scratch: the absolute path of the argument at hand.
    path: Vec<u8>,
    /// Scratch: an unescaped path.
    unescaped: Vec<u8>,
}

/// What a tracker is to do beyond making events.
#[derive(Clone, Debug, Default)]
pub struct TrackOptions {
    /// Remember names that were there when the trace began and are gone ([`Tracker::take_removed`]). Takes memory for
    /// each.
    pub keep_removed: bool,
    /// The working directory of the first process, for traces that do not show it.
    pub cwd: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    pid: u32,
    table: Table,
    fs: FsId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FsId(u32);

/// A working directory, shared by threads and by `CLONE_FS`.
#[derive(Clone, Debug, Default)]
struct FsContext {
    /// As the tracer last printed it, in its escapes.
    raw: Vec<u8>,
    /// Unescaped; empty while unknown.
    cwd: Interned,
    /// Its entry in the tree, and through which mount it is seen.
    node: Option<names::Node>,
    mount: Mount,
    /// The mounts that these threads see: an index of [`Tracker::mounts`].
    namespace: usize,
    /// The directory itself, which stays one as long as somebody works in it.
    directory: Option<File>,
    /// The root directory of these threads, if it is not the tree's (chroot), and the directory itself.
    root: Option<(Spot, File)>,
    /// [`Names::moves`] when the path was last known to be right.
    moves: u64,
    users: u32,
}

/// The call at hand: who, when, and its place in the order.
#[derive(Clone, Copy, Debug)]
struct Ctx {
    tid: u32,
    thread: Thread,
    t_ns: u64,
    place: Option<Place>,
}

/// A close that has taken effect and not yet returned.
#[derive(Debug)]
pub(crate) struct Closing(Parked);

impl Tracker {
    /// A tracker that knows nothing yet.
    pub fn new(options: TrackOptions) -> Self {
        Tracker {
            threads: FxHashMap::default(),
            born: FxHashMap::default(),
            fs: Vec::new(),
            free_fs: Vec::new(),
            fds: Descriptors::default(),
            names: Names::new(options.keep_removed),
            mounts: vec![Mounts::default()],
            free_namespaces: Vec::new(),
            out: Sequence::default(),
            coverage: Coverage::default(),
            first_cwd: options.cwd,
            names_known: false,
            spent: None,
            by_proc: false,
            path: Vec::new(),
            unescaped: Vec::new(),
        }
    }

    /// One call that has returned (or never will: [`Outcome::unfinished`]). `name` is the system call's, for the count
    /// of calls not modelled; `place` is what [`start`](Self::start) gave.
    pub(crate) fn call(
        &mut self,
        tid: u32,
        t_ns: u64,
        place: Option<Place>,
        name: &[u8],
        call: &Call<'_>,
        out: &Outcome<'_>,
    ) {
        let ctx = Ctx { tid, thread: self.thread(tid), t_ns, place };
        let direct = self.without_proc(ctx, call);
        self.by_proc = direct.is_some();
        match direct.as_ref().unwrap_or(call) {
            Call::Open { at, flags, mode } => self.open(ctx, at, *flags, *mode, out),
            Call::Close { fd } => {
                let event = self.close(ctx, fd);
                self.closed(event, place, out);
            }
            Call::CloseRange { first, last, cloexec, unshare } => {
                self.close_range(ctx, (*first, *last), *cloexec, *unshare, out)
            }
            call @ Call::Transfer { .. } => self.transfer(ctx, call, out),
            Call::Seek { fd, by, whence } => self.seek(ctx, fd, *by, *whence, out),
            Call::OnFd { op, fd, offset, len, mode } => self.on_fd(ctx, *op, fd, (*offset, *len, *mode), out),
            Call::OnPath { op, at, nofollow, mode, len } => self.on_path(ctx, *op, at, *nofollow, (*mode, *len), out),
            Call::Truncate { at, len } => self.truncate(ctx, at, *len, out),
            Call::Ftruncate { fd, len } => self.ftruncate(ctx, fd, *len, out),
            Call::Fallocate { fd, mode, offset, len } => self.fallocate(ctx, fd, *mode, *offset, *len, out),
            call @ Call::Copy { .. } => self.copy(ctx, call, out),
            Call::Stat { at, nofollow, attrs } => self.stat(ctx, at, *nofollow, *attrs, out),
            Call::Fstat { fd, attrs } => self.fstat(ctx, fd, *attrs, out),
            Call::Mkdir { at, mode } => self.make(ctx, (Op::Mkdir, 0), at, (Kind::Directory, *mode), None, out),
            Call::Mknod { at, kind, mode } => self.make(ctx, (Op::Mknod, 0), at, (*kind, *mode), None, out),
            Call::Bind { at } => self.bind(ctx, at, out),
            Call::Symlink { target, at } => {
                self.make(ctx, (Op::Symlink, 0), at, (Kind::Symlink, None), target.as_deref(), out);
            }
            Call::Rmdir { at } => self.remove(ctx, Op::Rmdir, at, out),
            Call::Unlink { at } => self.remove(ctx, Op::Unlink, at, out),
            Call::Rename { from, to, noreplace, exchange } => self.rename(ctx, from, to, *noreplace, *exchange, out),
            Call::Link { from, to, follow } => self.link(ctx, from, to, *follow, out),
            Call::LinkFd { from, to } => self.link_fd(ctx, from, to, out),
            call @ Call::Mmap { .. } => self.mmap(ctx, call, out),
            Call::Access { write, file, offset } => self.access(ctx, *write, *file, *offset, out),
            Call::Msync { len } => {
                if out.ok() && !self.coverage.accesses_seen {
                    self.coverage.data_map_accesses += len.div_ceil(coverage::PAGE_BYTES);
                }
                self.plain(ctx, Op::Msync, Some(*len), out);
            }
            Call::Sync => self.plain(ctx, Op::Sync, None, out),
            Call::Dup { fd, to, cloexec } => self.dup(ctx, fd, *to, *cloexec, out),
            Call::Control { fd, about } => self.control(ctx, fd, *about, out),
            Call::SetFd { fd, cloexec } => self.set_fd(ctx, fd, *cloexec, out),
            Call::SetFl { fd, append } => self.set_fl(ctx, fd, *append, out),
            Call::Chdir { at } => self.chdir(ctx, at, out),
            Call::Fchdir { fd } => self.fchdir(ctx, fd, out),
            Call::Exec { at } => self.exec(ctx, at, out),
            Call::Clone(flags) => self.clone_call(ctx, *flags, out),
            Call::Unshare { files, fs, own_mounts } => self.unshare(ctx, *files, *fs, *own_mounts, out),
            Call::Chroot { at } => self.chroot(ctx, name, at, out),
            Call::Mount { from, to, flags } => self.mount(ctx, name, from, to, *flags, out),
            Call::Unmount { at } => self.unmount(ctx, name, at, out),
            Call::NewFd => self.new_fd(ctx, out),
            Call::IoUringSetup { polled } => {
                self.coverage.io_uring_setups += 1;
                self.coverage.io_uring_polled += u64::from(*polled && out.ok());
                self.new_fd(Ctx { place: None, ..ctx }, out);
                self.plain(ctx, Op::IoUring, None, out);
            }
            Call::IoUringEnter => {
                if !self.coverage.requests_seen {
                    self.coverage.io_uring_submitted += u64::try_from(out.ret).unwrap_or(0);
                }
                self.skip(ctx);
            }
            Call::AioSubmit => {
                let requests = u64::try_from(out.ret).unwrap_or(0);
                if requests > 0 {
                    self.coverage.other_calls += requests;
                    *self.coverage.other_by_name.entry("io_submit request".into()).or_default() += requests;
                }
                self.skip(ctx);
            }
            Call::Other { fd, at } => self.other(ctx, name, fd.as_ref(), at.as_ref(), out),
        }
        self.spent = None;
    }

    /// Where the next call's time went, of a tracer that knows it.
    pub(crate) fn spent(&mut self, spent: Spent) -> &mut Tracker {
        self.spent = Some(spent);
        self
    }

    /// The tracer tells of accesses through mappings, and of io_uring requests: none of them is unseen.
    pub(crate) fn sees_beyond_calls(&mut self, accesses: bool, requests: bool) {
        self.coverage.accesses_seen = accesses;
        self.coverage.requests_seen = requests;
    }

    /// What a tracer in the kernel saw of an ordinary file's description when a call on it began. Taken in where
    /// nothing was known: a descriptor from before the trace. What the calls told since is in their order, which this
    /// is not.
    pub(crate) fn saw_description(&mut self, tid: u32, fd: &Fd<'_>, offset: u64, size: u64, append: bool) {
        let ctx = Ctx { tid, thread: self.thread(tid), t_ns: 0, place: None };
        let Some(ofd) = self.ofd(ctx, fd, EBADF) else { return };
        let state = self.fds.ofd_mut(ofd);
        if state.foreign {
            return;
        }
        state.offset.get_or_insert(offset);
        state.append.get_or_insert(append);
        if let Some(file) = state.file
            && self.names.file(file).size.is_none()
        {
            self.names.file_mut(file).kind = Kind::Regular;
            self.saw_size(file, size);
        }
    }

    /// Takes a place in the order for a call that has started and not returned.
    pub(crate) fn start(&mut self) -> Place {
        self.out.start()
    }

    /// Gives a place back: the call turned out not to concern files.
    pub(crate) fn skip_place(&mut self, place: Place) {
        self.out.skip(place);
    }

    fn skip(&mut self, ctx: Ctx) {
        if let Some(place) = ctx.place {
            self.out.skip(place);
        }
    }

    /// Whether a batch is worth taking.
    pub(crate) fn is_full(&self) -> bool {
        self.out.is_full()
    }

    /// The events finished since the last batch.
    pub(crate) fn take(&mut self) -> Batch {
        self.out.take()
    }

    /// Hands over what is left at the end.
    pub(crate) fn drain(&mut self, sink: &mut dyn FnMut(Batch) -> Result<(), FileError>) -> Result<(), FileError> {
        loop {
            let batch = self.take();
            if batch.events.is_empty() {
                return Ok(());
            }
            sink(batch)?;
        }
    }

    /// What was and was not covered.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// The descriptions that arrived over a socket after their last close was told, and how often.
    pub(crate) fn returned(&self) -> &BTreeMap<OfdId, u64> {
        self.fds.returned()
    }

    /// Events made so far, and how many of them lost their place in the order.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.out.count(), self.out.late())
    }

    /// Time in which at least one call on files was running.
    pub(crate) fn busy_ns(&self) -> u64 {
        self.out.busy_ns()
    }

    /// The directories in which the trace looked up names or which it read, by the paths they had when it began
    /// ([`TrackOptions::keep_removed`]).
    pub fn take_touched(&mut self) -> Vec<Vec<u8>> {
        self.names.take_touched()
    }

    /// The names that were there when the trace began and were removed since ([`TrackOptions::keep_removed`]).
    pub fn take_removed(&mut self) -> Vec<Removed> {
        self.names.take_removed()
    }

    #[inline]
    fn event(&self, ctx: Ctx, op: Op, out: &Outcome<'_>) -> Draft {
        self.out.draft(Row {
            dur_ns: out.dur_ns,
            pid: ctx.thread.pid,
            tid: ctx.tid,
            flags: if out.unfinished { flag::UNFINISHED } else { 0 },
            errno: out.errno,
            ret: out.ret,
            // What the kernel does on the way (a close at exec) takes no time of its own.
            running_ns: self.spent.filter(|_| out.dur_ns > 0).map(|spent| spent.running_ns),
            blocked_ns: self.spent.filter(|_| out.dur_ns > 0).map(|spent| spent.blocked_ns),
            ..Row::new(0, ctx.t_ns, op)
        })
    }

    fn emit(&mut self, ctx: Ctx, event: Draft) {
        self.coverage.count(&event);
        self.out.put(ctx.place, &event);
    }

    /// A call about no particular file.
    fn plain(&mut self, ctx: Ctx, op: Op, len: Option<u64>, out: &Outcome<'_>) {
        let mut event = self.event(ctx, op, out);
        event.req_bytes = len;
        self.emit(ctx, event);
    }

    /// Fills in what is known of a file.
    fn describe_file(&self, event: &mut Row, file: File) {
        let state = self.names.file(file);
        event.file = self.names.id(file);
        event.size_before = if state.kind == Kind::Directory { None } else { state.size };
        event.parent = self.names.node_of(file).and_then(|node| self.names.id_of(self.names.parent_of(node)));
    }

    /// Fills in what is known of a description.
    fn describe_ofd(&mut self, event: &mut Row, ofd: Ofd) {
        let state = self.fds.ofd_mut(ofd);
        event.ofd = Some(state.id);
        if state.foreign {
            event.flags |= flag::FOREIGN;
        }
        event.path = self.out.intern_cached(&mut state.path);
        if let Some(file) = state.file {
            self.describe_file(event, file);
        }
    }

    /// The trace changed a file's length or content.
    fn set_size(&mut self, file: File, size: Option<u64>) {
        let state = self.names.file_mut(file);
        if !state.changed {
            state.first_size = state.first_size.or(state.size);
            state.changed = true;
        }
        state.appended = None;
        state.size = size;
    }

    /// The trace appended to a file of unknown length.
    fn appended(&mut self, file: File, bytes: u64) {
        let state = self.names.file_mut(file);
        state.changed = true;
        state.appended = state.appended.and_then(|before| before.checked_add(bytes));
    }

    /// The trace showed a file's length.
    fn saw_size(&mut self, file: File, size: u64) {
        let state = self.names.file_mut(file);
        state.size = Some(size);
        // Before any change this is the first length; after appends alone, it is that much shorter.
        if let (None, Some(appended)) = (state.first_size, state.appended) {
            state.first_size = size.checked_sub(appended);
        }
    }
}
