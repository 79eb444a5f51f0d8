//! Threads and processes: what fork, exec, chdir and exit do to tables and working directories.

use super::call::{At, CloneFlags, Fd, Kind, Outcome, Seen};
use super::descriptors::{Slot, Table};
use super::mounts::{Mounts, Spot};
use super::names::File;
use super::resolve::{is_foreign, unescape_into};
use super::{Ctx, FsContext, FsId, Thread, Tracker};
use crate::Op;

/// What a clone that is running took of its parent's when it began, where another thread can change that meanwhile.
#[derive(Debug)]
pub(crate) struct Cloning {
    table: Option<Table>,
    fs: Option<FsId>,
}

impl Tracker {
    /// Whether this thread has been seen.
    pub(crate) fn knows(&self, tid: u32) -> bool {
        self.threads.contains_key(&tid)
    }

    /// Whether a thread has a descriptor of this number, so far as is known.
    pub(crate) fn has_fd(&self, tid: u32, number: i32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| self.fds.get(thread.table, number).is_some())
    }

    /// Makes a thread known.
    pub(crate) fn know(&mut self, tid: u32) {
        self.thread(tid);
    }

    /// The thread, if there is only one.
    pub(crate) fn sole_thread(&self) -> Option<u32> {
        if self.threads.len() == 1 { self.threads.keys().next().copied() } else { None }
    }

    /// The thread, made known as a process of its own if it is new: it was there before the trace began.
    pub(super) fn thread(&mut self, tid: u32) -> Thread {
        if let Some(&thread) = self.threads.get(&tid) {
            return thread;
        }
        let thread = Thread { pid: tid, table: self.fds.new_table(), fs: self.new_fs(FsContext::default()) };
        self.threads.insert(tid, thread);
        if let Some(cwd) = self.first_cwd.take() {
            self.set_cwd(Ctx { tid, thread, t_ns: 0, place: None }, &cwd);
        }
        thread
    }

    fn new_fs(&mut self, fs: FsContext) -> FsId {
        let fs = FsContext { users: 1, ..fs };
        if let Some(directory) = fs.directory {
            self.names.opened(directory);
        }
        if let Some((_, root)) = fs.root {
            self.names.opened(root);
        }
        match self.free_fs.pop() {
            Some(id) => {
                self.fs[id.0 as usize] = fs;
                id
            }
            None => {
                self.fs.push(fs);
                FsId(u32::try_from(self.fs.len() - 1).expect("fewer than 2^32 live processes"))
            }
        }
    }

    fn leave_fs(&mut self, id: FsId) {
        let fs = &mut self.fs[id.0 as usize];
        fs.users = fs.users.saturating_sub(1);
        if fs.users == 0 {
            let left = std::mem::take(fs);
            self.free_fs.push(id);
            if let Some(directory) = left.directory {
                self.names.closed(directory);
            }
            if let Some((_, root)) = left.root {
                self.names.closed(root);
            }
            self.leave_namespace(left.namespace);
        }
    }

    /// Makes a directory the working one.
    pub(super) fn work_in(&mut self, id: FsId, directory: Option<File>) {
        if let Some(directory) = directory {
            self.names.opened(directory);
        }
        if let Some(left) = std::mem::replace(&mut self.fs[id.0 as usize].directory, directory) {
            self.names.closed(left);
        }
    }

    /// A thread or process came to be, of a clone that has not returned. Does nothing if it is known already.
    pub(crate) fn spawn(&mut self, parent: u32, child: u32, flags: CloneFlags) {
        self.born.insert(parent, child);
        self.add(parent, child, flags);
    }

    fn add(&mut self, parent: u32, child: u32, flags: CloneFlags) {
        if self.knows(child) || child == 0 {
            return;
        }
        let from = self.thread(parent);
        let table = if flags.files { self.fds.share(from.table) } else { self.fds.copy(from.table) };
        let fs = if flags.fs {
            self.fs[from.fs.0 as usize].users += 1;
            from.fs
        } else {
            self.new_fs(self.fs[from.fs.0 as usize].clone())
        };
        let pid = if flags.thread { from.pid } else { child };
        self.threads.insert(child, Thread { pid, table, fs });
        if flags.own_mounts {
            self.unshare_mounts(child);
        }
    }

    /// A clone has begun, in a process of which other threads may change what the new one gets before its return or its
    /// child shows itself. `None`: nobody can.
    pub(crate) fn begin_clone(&mut self, parent: u32, flags: CloneFlags) -> Option<Cloning> {
        let Thread { table, fs, .. } = self.thread(parent);
        let table = (!flags.files && self.fds.is_shared(table)).then(|| self.fds.copy(table));
        let fs = (!flags.fs && self.fs[fs.0 as usize].users > 1).then(|| self.new_fs(self.fs[fs.0 as usize].clone()));
        (table.is_some() || fs.is_some()).then_some(Cloning { table, fs })
    }

    /// The child of a clone that had begun, with what its parent had between then and now.
    pub(crate) fn spawn_begun(&mut self, parent: u32, child: u32, flags: CloneFlags, begun: Cloning) {
        if self.knows(child) {
            return self.drop_clone(begun);
        }
        let from = self.thread(parent);
        self.spawn(parent, child, flags);
        let mut thread = self.thread(child);
        if let Some(table) = begun.table {
            self.fds.copied_until_now(table, from.table);
            let late = std::mem::replace(&mut thread.table, table);
            self.release_table(late);
        }
        if let Some(fs) = begun.fs {
            self.leave_fs(std::mem::replace(&mut thread.fs, fs));
        }
        self.threads.insert(child, thread);
    }

    /// An exec has begun, which gives the thread a table of its own at some moment.
    pub(crate) fn begin_exec(&mut self, tid: u32) -> Option<Cloning> {
        self.begin_clone(tid, CloneFlags { fs: true, ..CloneFlags::default() })
    }

    /// The exec has returned: where it took effect, with what the table held between then and now.
    pub(crate) fn end_exec(&mut self, tid: u32, begun: Cloning, ok: bool) {
        match begun.table {
            Some(table) if ok => {
                let thread = self.thread(tid);
                self.fds.copied_until_now(table, thread.table);
                self.release_table(thread.table);
                self.threads.insert(tid, Thread { table, ..thread });
            }
            _ => self.drop_clone(begun),
        }
    }

    /// A clone that had begun has no child.
    pub(crate) fn drop_clone(&mut self, begun: Cloning) {
        if let Some(table) = begun.table {
            self.release_table(table);
        }
        if let Some(fs) = begun.fs {
            self.leave_fs(fs);
        }
    }

    /// A table that no thread ever used goes.
    fn release_table(&mut self, table: Table) {
        for ofd in self.fds.leave(table) {
            self.fds.release(ofd, &mut self.names);
        }
    }

    pub(super) fn clone_call(&mut self, ctx: Ctx, flags: CloneFlags, out: &Outcome<'_>) {
        let born = self.born.remove(&ctx.tid);
        if let (true, Ok(child)) = (out.ok(), u32::try_from(out.ret))
            && born != Some(child)
        {
            self.add(ctx.tid, child, flags);
        }
        self.plain(ctx, Op::Clone, None, out);
    }

    /// A thread ended. `status` is what it exited with, or 128 and the signal that killed it.
    pub(crate) fn exit(&mut self, tid: u32, t_ns: u64, status: i64) {
        let ctx = Ctx { tid, thread: self.thread(tid), t_ns, place: None };
        let out = Outcome { ret: status, errno: 0, dur_ns: 0, seen: None, unfinished: false };
        self.plain(ctx, Op::Exit, None, &out);
        self.threads.remove(&tid);
        self.born.remove(&tid);
        for ofd in self.fds.leave(ctx.thread.table) {
            self.implied_close(ctx, ofd);
        }
        self.leave_fs(ctx.thread.fs);
    }

    /// A thread has exited, and nothing tells when.
    pub(crate) fn exited(&mut self, tid: u32) {
        self.born.remove(&tid);
        if let Some(old) = self.threads.remove(&tid) {
            self.release_table(old.table);
            self.leave_fs(old.fs);
        }
    }

    /// Another thread's exec took this thread's number: this thread is gone, that one goes on under its number.
    pub(crate) fn superseded(&mut self, tid: u32, by: u32) {
        if tid == by {
            return;
        }
        // The table is the other thread's too, or nobody's.
        self.exited(tid);
        if let Some(thread) = self.threads.remove(&by) {
            self.threads.insert(tid, thread);
        }
    }

    /// A thread is known by another number from here on.
    pub(crate) fn renumber(&mut self, from: u32, to: u32) {
        if let Some(mut thread) = self.threads.remove(&from) {
            if thread.pid == from {
                thread.pid = to;
            }
            self.threads.insert(to, thread);
        }
    }

    /// Gives a thread a descriptor table of its own.
    pub(super) fn unshare_table(&mut self, tid: u32) {
        let thread = self.thread(tid);
        if self.fds.is_shared(thread.table) {
            let table = self.fds.copy(thread.table);
            self.fds.leave(thread.table);
            self.threads.insert(tid, Thread { table, ..thread });
        }
    }

    pub(super) fn unshare(&mut self, ctx: Ctx, files: bool, fs: bool, own_mounts: bool, out: &Outcome<'_>) {
        self.skip(ctx);
        if !out.ok() {
            return;
        }
        if files {
            self.unshare_table(ctx.tid);
        }
        if fs || own_mounts {
            let thread = self.thread(ctx.tid);
            let copy = self.fs[thread.fs.0 as usize].clone();
            let own = self.new_fs(copy);
            self.leave_fs(thread.fs);
            self.threads.insert(ctx.tid, Thread { fs: own, ..thread });
        }
        if own_mounts {
            self.unshare_mounts(ctx.tid);
        }
    }

    /// Gives a process a mount namespace of its own.
    fn unshare_mounts(&mut self, tid: u32) {
        let fs = self.thread(tid).fs.0 as usize;
        let copy = self.mounts[self.fs[fs].namespace].copy(&mut self.names);
        let own = self.free_namespaces.pop().unwrap_or_else(|| {
            self.mounts.push(Mounts::default());
            self.mounts.len() - 1
        });
        self.mounts[own] = copy;
        let left = std::mem::replace(&mut self.fs[fs].namespace, own);
        self.leave_namespace(left);
    }

    /// Forgets the mounts that nobody sees any more. What this process began with stays.
    fn leave_namespace(&mut self, left: usize) {
        if left != 0 && !self.fs.iter().any(|fs| fs.users > 0 && fs.namespace == left) {
            self.mounts[left].clear(&mut self.names);
            self.free_namespaces.push(left);
        }
    }

    pub(super) fn exec(&mut self, ctx: Ctx, at: &At<'_>, out: &Outcome<'_>) {
        self.on_path(ctx, Op::Exec, at, false, (None, None), out);
        if !out.ok() {
            return;
        }
        self.unshare_table(ctx.tid);
        let ctx = Ctx { thread: self.thread(ctx.tid), ..ctx };
        for ofd in self.fds.take_cloexec(ctx.thread.table) {
            self.implied_close(ctx, ofd);
        }
    }

    pub(super) fn chdir(&mut self, ctx: Ctx, at: &At<'_>, out: &Outcome<'_>) {
        self.on_path(ctx, Op::Chdir, at, false, (None, None), out);
        if !out.ok() {
            return;
        }
        let place = self.place(ctx, at);
        let mut path = std::mem::take(&mut self.path);
        match place {
            Some((spot, file)) if !self.names.is_live(spot.node) => {
                self.stand(ctx, &path, file);
                if spot != Spot::default() {
                    self.fs[ctx.thread.fs.0 as usize].mount = spot.mount;
                }
            }
            _ => {
                if let Some((spot, file)) = place {
                    self.names.path(spot.node, &mut path);
                    self.names.file_mut(file).kind = Kind::Directory;
                }
                self.enter(ctx, &path);
                self.fs[ctx.thread.fs.0 as usize].mount = place.unwrap_or_default().0.mount;
            }
        }
        self.path = path;
    }

    pub(super) fn fchdir(&mut self, ctx: Ctx, fd: &Fd<'_>, out: &Outcome<'_>) {
        self.on_fd(ctx, Op::Fchdir, fd, (None, None, None), out);
        if let (Some(ofd), true) = (self.ofd(ctx, fd, out.errno), out.ok()) {
            let state = self.fds.ofd(ofd);
            let (path, file, mount) = (state.path.bytes().to_vec(), state.file, state.mount);
            match file {
                Some(file) => self.stand(ctx, &path, file),
                None => self.enter(ctx, &path),
            }
            self.fs[ctx.thread.fs.0 as usize].mount = mount;
        }
    }

    /// Makes a directory the working one, whether or not it still has a name.
    fn stand(&mut self, ctx: Ctx, path: &[u8], directory: File) {
        let fs = &mut self.fs[ctx.thread.fs.0 as usize];
        fs.raw.clear();
        fs.cwd.set(path);
        fs.node = self.names.node_of(directory);
        fs.moves = self.names.moves();
        self.work_in(ctx.thread.fs, Some(directory));
    }

    /// It is no activity on files: counted by name.
    pub(super) fn chroot(&mut self, ctx: Ctx, name: &[u8], at: &At<'_>, out: &Outcome<'_>) {
        let place = out.ok().then(|| self.place(ctx, at));
        self.other(ctx, name, None, Some(at), out);
        if let Some(place) = place {
            // An unknown root makes every absolute path unknown.
            let (spot, file) = place.unwrap_or_else(|| (Spot::default(), self.names.new_file(Kind::Directory)));
            self.root_at(ctx.thread.fs, spot, file);
        }
    }

    /// The root directory of a thread, as a tracer in the kernel or the system itself shows it.
    pub(crate) fn saw_root(&mut self, tid: u32, seen: Option<Seen<'_>>) {
        let Some(Seen::Path { raw, deleted: false, who }) = seen else { return };
        let ctx = Ctx { tid, thread: self.thread(tid), t_ns: 0, place: None };
        let fs = &self.fs[ctx.thread.fs.0 as usize];
        let known = fs.root;
        let spot = known.map_or(Mounts::root(&self.names), |(spot, _)| spot);
        // What we know of it is more than a path can tell, which leads to what is mounted over it.
        let mut path = std::mem::take(&mut self.unescaped);
        unescape_into(raw, &mut path);
        let is_ours = self.names.is_live(spot.node) && self.mounts[fs.namespace].shown(&self.names, spot) == path;
        if is_ours || known.zip(who).is_some_and(|((_, file), who)| self.names.identify(file, who.inode)) {
            self.unescaped = path;
            return;
        }
        let mount = self.shown(ctx, raw, &mut path).unwrap_or_default();
        let node = if is_foreign(&path) { None } else { self.names.canonical(&path, true) };
        if let Some(node) = node {
            let file = self.names.file_of(node);
            self.names.file_mut(file).kind = Kind::Directory;
            self.root_at(ctx.thread.fs, Spot { mount, node }, file);
        }
        self.unescaped = path;
    }

    /// The working directory of a thread when the trace began, as the system itself showed it.
    pub(crate) fn saw_cwd(&mut self, tid: u32, raw: &[u8]) {
        let ctx = Ctx { tid, thread: self.thread(tid), t_ns: 0, place: None };
        self.see_cwd(ctx, raw);
    }

    fn root_at(&mut self, id: FsId, spot: Spot, file: File) {
        let root = (spot != Mounts::root(&self.names)).then_some((spot, file));
        if root.is_some() {
            self.names.opened(file);
        }
        if let Some((_, left)) = std::mem::replace(&mut self.fs[id.0 as usize].root, root) {
            self.names.closed(left);
        }
    }

    /// Makes a path the working directory; what the tracer prints next may correct it.
    fn enter(&mut self, ctx: Ctx, path: &[u8]) {
        self.fs[ctx.thread.fs.0 as usize].raw.clear();
        self.set_cwd(ctx, path);
    }

    /// A descriptor of something that is no file came to be.
    pub(super) fn new_fd(&mut self, ctx: Ctx, out: &Outcome<'_>) {
        if let (true, Ok(fd)) = (out.ok(), i32::try_from(out.ret)) {
            let foreign = !matches!(out.seen, Some(Seen::Path { .. } | Seen::Unnamed(_)));
            if foreign {
                let ofd = self.fds.new_ofd(None, true, &mut self.names);
                if let Some(old) = self.fds.put(ctx.thread.table, fd, Slot { ofd, cloexec: false }) {
                    self.fds.release(old, &mut self.names);
                }
            }
        }
        self.skip(ctx);
    }

    /// Whether a call on this descriptor is on something foreign, so far as is known.
    pub(crate) fn is_foreign_fd(&mut self, tid: u32, fd: &Fd<'_>) -> bool {
        match fd.seen {
            Some(Seen::Foreign) => true,
            Some(Seen::Path { raw, .. }) => super::resolve::is_foreign(raw),
            Some(Seen::Unnamed(_)) => false,
            None => {
                let thread = self.thread(tid);
                self.fds.get(thread.table, fd.number).is_some_and(|slot| self.fds.ofd(slot.ofd).foreign)
            }
        }
    }
}
