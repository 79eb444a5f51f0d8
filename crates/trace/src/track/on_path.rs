//! Calls on paths: what they do to names and lengths.

use super::call::{At, Attrs, Fd, Inode, Kind, Outcome, Seen};
use super::descriptors::Slot;
use super::mounts::{How, Spot};
use super::names::{Birth, File, Node};
use super::resolve::{Located, is_foreign, normalise, split_last, unescape_into};
use super::sequence::Draft;
use super::{Ctx, ENOENT, Tracker};
use crate::profile::Row;
use crate::{Op, flag};
use posix::Errno;

/// Flags of mount(2), `<linux/mount.h>`.
const MS_REMOUNT: u64 = 32;
const MS_BIND: u64 = 4096;
const MS_MOVE: u64 = 8192;
const MS_REC: u64 = 16384;
const MS_SHARED: u64 = 1 << 20;
/// The name by which a `mount` is counted that makes a mount pass on to its peers what is mounted below it.
pub(crate) const SHARED_MOUNT: &str = "mount(MS_SHARED)";
/// `MS_UNBINDABLE`, `MS_PRIVATE`, `MS_SLAVE`, `MS_SHARED`
const MS_PROPAGATION: u64 = 0xf << 17;

/// A socket's permission bits, of which the process's mask is taken.
const SOCKET_MODE: u16 = 0o777;

/// Whether an open makes a file empty: also one for reading alone.
fn truncates(flags: u32) -> bool {
    flags & (flag::TRUNC | flag::PATH_ONLY) == flag::TRUNC
}

impl Tracker {
    /// The event of a call on a path.
    fn path_event(&mut self, ctx: Ctx, op: Op, at: &At<'_>, out: &Outcome<'_>) -> (Draft, Located) {
        // What removes or makes a name does so in the directory, whatever is mounted on the name.
        let names_only = matches!(op, Op::Rename | Op::Unlink | Op::Rmdir | Op::Mkdir | Op::Mknod | Op::Symlink);
        let located = self.locate(ctx, at, How { enter: !names_only, exists: out.ok() });
        let mut event = self.event(ctx, op, out);
        event.path = located.path;
        event.caller_dir = located.caller_dir;
        if located.foreign {
            event.flags |= flag::FOREIGN;
        }
        if located.by_mount || self.by_proc {
            event.flags |= flag::BY_MOUNT;
        }
        (event, located)
    }

    /// Where a symbolic link at the path's end leads across a mount, the path without is told in its place.
    fn tell_followed(&mut self, event: &mut Row, located: &Located, follow: bool) {
        if let (true, Some(path)) = (follow, located.followed.as_ref().filter(|path| !path.is_empty())) {
            event.path = Some(self.out.intern(path));
            event.caller_dir = None;
            event.flags |= flag::BY_MOUNT;
        }
    }

    /// Finds the file a path names and fills it in. A success shows that it exists, `ENOENT` that it does not.
    fn find(&mut self, event: &mut Row, located: &Located, at: &At<'_>, follow: bool) -> Option<File> {
        if let Some((_, file)) = located.nameless(follow) {
            self.describe_file(event, file);
            return Some(file);
        }
        self.find_node(event, located, at, follow).map(|node| self.names.file_of(node))
    }

    /// The same of the name.
    fn find_node(&mut self, event: &mut Row, located: &Located, at: &At<'_>, follow: bool) -> Option<Node> {
        self.tell_followed(event, located, follow);
        let exists = event.errno == 0 && event.flags & flag::UNFINISHED == 0;
        let walk = self.walk(located, at, follow, exists);
        event.parent = walk.parent.and_then(|parent| self.names.id_of(parent));
        let node = walk.node?;
        if event.errno == ENOENT && self.is_refuted(at, node) {
            self.names.forget(node);
            return None;
        }
        self.describe_node(event, node);
        Some(node)
    }

    /// Whether a call's `ENOENT` shows that a name we know went without our seeing it go. It does not for the empty
    /// path, which no call accepts, nor for a name that the trace made: the call overlapped the one that made or
    /// removed it. Nor for a path that ends in `.` or `..`: what is missing is on the way there.
    fn is_refuted(&self, at: &At<'_>, node: Node) -> bool {
        at.path.as_deref().is_some_and(|path| split_last(path).is_some()) && self.names.birth(node) != Birth::Made
    }

    fn describe_node(&self, event: &mut Row, node: Node) {
        self.describe_file(event, self.names.file_of(node));
        event.parent = self.names.id_of(self.names.parent_of(node));
    }

    pub(super) fn on_path(
        &mut self,
        ctx: Ctx,
        op: Op,
        at: &At<'_>,
        nofollow: bool,
        (mode, len): (Option<u16>, Option<u64>),
        out: &Outcome<'_>,
    ) {
        let (mut event, located) = self.path_event(ctx, op, at, out);
        (event.mode, event.req_bytes) = (mode, len);
        if nofollow {
            event.flags |= flag::NOFOLLOW;
        }
        let file = self.find(&mut event, &located, at, !nofollow && op != Op::ReadLink);
        if let (Some(file), true) = (file, out.ok()) {
            let state = self.names.file_mut(file);
            match op {
                Op::ReadLink => state.kind = Kind::Symlink,
                Op::Chmod => state.mode = mode.or(state.mode),
                _ => {}
            }
        }
        self.emit(ctx, event);
    }

    pub(super) fn stat(&mut self, ctx: Ctx, at: &At<'_>, nofollow: bool, attrs: Option<Attrs>, out: &Outcome<'_>) {
        let (mut event, located) = self.path_event(ctx, Op::Stat, at, out);
        if nofollow {
            event.flags |= flag::NOFOLLOW;
        }
        let file = self.find(&mut event, &located, at, !nofollow);
        if let (Some(file), Some(attrs), true) = (file, attrs, out.ok()) {
            self.saw_attrs(file, attrs);
            if attrs.kind == Kind::Regular {
                event.size_before = attrs.size;
            }
        }
        self.emit(ctx, event);
    }

    pub(super) fn truncate(&mut self, ctx: Ctx, at: &At<'_>, len: u64, out: &Outcome<'_>) {
        let (mut event, located) = self.path_event(ctx, Op::Truncate, at, out);
        event.req_bytes = Some(len);
        if let (Some(file), true) = (self.find(&mut event, &located, at, true), out.ok()) {
            self.set_size(file, Some(len));
        }
        self.emit(ctx, event);
    }

    pub(super) fn open(&mut self, ctx: Ctx, at: &At<'_>, flags: u32, mode: Option<u16>, out: &Outcome<'_>) {
        let (mut event, mut located) = self.path_event(ctx, Op::Open, at, out);
        event.flags |= flags;
        event.mode = mode;
        let follow = flags & flag::NOFOLLOW == 0 && flags & (flag::CREATE | flag::EXCL) != flag::CREATE | flag::EXCL;
        let fd = i32::try_from(out.ret).ok().filter(|_| out.ok());
        self.tell_followed(&mut event, &located, follow);
        let Some(fd) = fd else {
            let walk = self.walk(&located, at, follow, false);
            event.parent = walk.parent.and_then(|parent| self.names.id_of(parent));
            if let Some(node) = walk.node {
                if out.errno == ENOENT && flags & flag::CREATE == 0 && self.is_refuted(at, node) {
                    self.names.forget(node);
                } else {
                    self.describe_node(&mut event, node);
                }
            }
            return self.emit(ctx, event);
        };
        let mut path = std::mem::take(&mut self.unescaped);
        path.clear();
        let mut mount = located.mount;
        match out.seen {
            Some(Seen::Path { raw, .. }) => mount = self.shown(ctx, raw, &mut path).unwrap_or(mount),
            Some(Seen::Foreign) => located.foreign = true,
            Some(Seen::Unnamed(_)) | None => {}
        }
        // The path behind the new descriptor decides: /proc/self/fd/3 can be a file, and /tmp/null a device.
        if path.first() == Some(&b'/') && path != self.path {
            located.foreign = is_foreign(&path);
        }
        if let (Some(Seen::Path { raw, who, .. }), false) = (out.seen, located.foreign)
            && self.mounts_of(ctx).is_some()
            && (who.is_some() || self.is_shown_as(ctx, &located, at, follow, raw))
        {
            // What a mount covers is shown by the path of what covers it: the path given is sure, and who it is.
            path.clear();
            mount = located.mount;
        }
        let file = if located.foreign {
            event.flags |= flag::FOREIGN;
            None
        } else {
            let is_gone = matches!(out.seen, Some(Seen::Path { deleted: true, .. }));
            let unnamed = flags & flag::TMPFILE != 0;
            let led_to = if unnamed { split_last(&path).map(|(dir, _)| dir) } else { Some(&path[..]) };
            if let Some(led_to) = led_to.filter(|path| path.first() == Some(&b'/') && (unnamed || !is_gone))
                && (event.flags & flag::FOREIGN != 0 || event.path.is_none())
            {
                // By way of /proc, or of a root of its own: where it led is told in the place of what was given. A file
                // made without a name is shown below its directory, by a name that nothing finds it by.
                event.path = Some(self.out.intern(led_to));
                event.caller_dir = None;
                event.flags |= flag::BY_MOUNT;
            }
            event.flags &= !flag::FOREIGN;
            // A file that never had a name is shown as one whose name is gone.
            let again = if flags & flag::TMPFILE == 0 { self.nameless_start(ctx, at, out.seen) } else { None };
            let file = match again.or(located.nameless(follow).map(|(_, file)| file)) {
                Some(file) => {
                    self.describe_file(&mut event, file);
                    if truncates(flags) {
                        self.set_size(file, Some(0));
                    }
                    Some(file)
                }
                None => self.open_file(&mut event, &located, at, &path, follow),
            };
            match out.seen {
                Some(Seen::Path { who: Some(who), .. }) => {
                    self.identified(&mut event, file, Some(&path[..]).filter(|path| !path.is_empty()), who.inode)
                }
                Some(Seen::Unnamed(who)) => self.identified(&mut event, file, None, who.inode),
                _ => file,
            }
        };
        if path.is_empty() && flags & flag::TMPFILE == 0 {
            // As given, it may lead through names that are moved later.
            let node =
                self.walk(&located, at, follow, false).node.filter(|&node| Some(self.names.file_of(node)) == file);
            match node.or_else(|| self.names.node_of(file?)) {
                Some(node) => self.names.path(node, &mut path),
                None => path.clone_from(&self.path),
            }
        }
        let ofd = self.fds.new_ofd(file, located.foreign, &mut self.names);
        let state = self.fds.ofd_mut(ofd);
        event.ofd = Some(state.id);
        state.offset = Some(0);
        state.append = Some(flags & flag::APPEND != 0);
        state.mount = mount;
        if let Some(Seen::Path { raw, .. }) = out.seen {
            state.raw.extend_from_slice(raw);
        }
        if !path.is_empty() {
            state.path.set(&path);
        }
        if let Some(Seen::Path { who: Some(who), .. } | Seen::Unnamed(who)) = out.seen {
            self.fds.identify(ofd, who);
        }
        self.unescaped = path;
        self.emit(ctx, event);
        let slot = Slot { ofd, cloexec: flags & flag::CLOEXEC != 0 };
        if let Some(old) = self.fds.put(ctx.thread.table, fd, slot) {
            // Its close was not traced.
            self.fds.release(old, &mut self.names);
        }
    }

    /// Whether the kernel would show what we take a path to lead to as the tracer shows it.
    fn is_shown_as(&mut self, ctx: Ctx, located: &Located, at: &At<'_>, follow: bool, raw: &[u8]) -> bool {
        let walk = self.walk(located, at, follow, false);
        let (node, name) = match walk.node {
            Some(node) => (Some(node), Vec::new()),
            None => {
                let start = located.start.filter(|&start| self.names.is_live(start));
                let made =
                    start.zip(located.rest(at)).and_then(|(start, rest)| self.names.walk_to_make(start, rest, follow));
                made.map_or((None, Vec::new()), |(dir, name)| (Some(dir), [b"/", &name[..]].concat()))
            }
        };
        let (Some(node), Some(mounts)) = (node, self.mounts_of(ctx)) else { return false };
        let mut shown = mounts.shown(&self.names, Spot { mount: located.mount, node });
        if shown == b"/" && !name.is_empty() {
            shown.clear();
        }
        shown.extend_from_slice(&name);
        let mut path = Vec::new();
        unescape_into(raw, &mut path);
        shown == path
    }

    /// The file that was opened, by who the tracer says it is rather than by name. `path`: as the tracer shows it.
    fn identified(&mut self, event: &mut Row, file: Option<File>, path: Option<&[u8]>, inode: Inode) -> Option<File> {
        if file.is_some_and(|file| self.names.identify(file, inode)) {
            return file;
        }
        let file = match path {
            Some(path) => self.names.canonical_inode(path, inode)?,
            None => self.names.of_inode(inode),
        };
        self.describe_file(event, file);
        if truncates(event.flags) {
            self.set_size(file, Some(0));
        }
        Some(file)
    }

    /// Which file an open opened or made. `path` is the one behind the new descriptor, empty if not shown.
    fn open_file(
        &mut self,
        event: &mut Row,
        located: &Located,
        at: &At<'_>,
        path: &[u8],
        follow: bool,
    ) -> Option<File> {
        if event.flags & flag::TMPFILE != 0 {
            let dir = match split_last(path) {
                Some((dir, _)) if path.first() == Some(&b'/') => self.names.canonical(dir, true),
                _ => self.walk(located, at, true, true).node,
            };
            event.parent = dir.and_then(|dir| self.names.id_of(dir));
            let file = self.names.made_file(Kind::Regular);
            let state = self.names.file_mut(file);
            (state.size, state.mode) = (Some(0), event.mode);
            event.file = Some(state.id);
            return Some(file);
        }
        let itself = flag::PATH_ONLY | flag::NOFOLLOW;
        let known = if path.is_empty() {
            self.walk(located, at, follow, false).node
        } else if event.flags & itself == itself {
            // The one open that succeeds on a symbolic link.
            self.names.walk(self.names.root(), path, false, false).node
        } else {
            let node = self.names.canonical(path, false);
            if path != self.path && !self.leads_to(located, at, follow, node, path) {
                self.learn_link(located, at, path);
            }
            node
        };
        let exclusive = event.flags & (flag::CREATE | flag::EXCL) == flag::CREATE | flag::EXCL;
        if let (true, Some(stale)) = (exclusive, known) {
            self.names.forget(stale); // It was made just now, so what we knew was gone.
        }
        let node = match known.filter(|_| !exclusive) {
            Some(node) => node,
            None => self.opened_unknown(event, located, at, (path, follow))?,
        };
        self.describe_node(event, node);
        self.names.touch(self.names.parent_of(node));
        let file = self.names.file_of(node);
        let born_now = event.flags & flag::CREATE != 0 && known.is_none_or(|_| exclusive);
        if born_now {
            event.size_before = None;
        }
        if event.flags & flag::DIRECTORY != 0 {
            self.names.file_mut(file).kind = Kind::Directory;
        }
        if truncates(event.flags) {
            self.set_size(file, Some(0));
        }
        Some(file)
    }

    /// Makes the entry of a file that open succeeded on and that we did not know.
    fn opened_unknown(
        &mut self,
        event: &Row,
        located: &Located,
        at: &At<'_>,
        (path, follow): (&[u8], bool),
    ) -> Option<Node> {
        if event.flags & flag::CREATE == 0 {
            return if path.is_empty() {
                self.walk(located, at, true, true).node
            } else {
                self.names.canonical(path, true)
            };
        }
        let (dir, name) = if let (Some(made), true) = (&located.followed, follow) {
            let (dir, name) = self.parent_in(self.names.root(), made)?;
            (dir, name.to_vec())
        } else if path.is_empty() {
            let start = located.start.filter(|&start| self.names.is_live(start))?;
            let given = located.rest(at)?;
            // The directory is there, as the open showed.
            self.parent_in(start, given)?;
            self.names.walk_to_make(start, given, follow)?
        } else {
            let (dir, name) = self.parent_in(self.names.root(), path)?;
            (dir, name.to_vec())
        };
        let file = self.names.new_file(Kind::Regular);
        self.names.file_mut(file).mode = event.mode;
        if let Some(stale) = self.names.child(dir, &name) {
            self.names.forget(stale);
        }
        // A directory that the trace made holds only what the trace put there.
        let certain = event.flags & flag::EXCL != 0 || self.names.birth(dir) == Birth::Made || self.names_known;
        if certain {
            let state = self.names.file_mut(file);
            (state.size, state.links_elsewhere) = (Some(0), Some(0));
        }
        Some(self.names.add(dir, &name, file, if certain { Birth::Made } else { Birth::Opened }))
    }

    /// Whether our tree takes the given path to the same place as the path the tracer printed.
    fn leads_to(&mut self, located: &Located, at: &At<'_>, follow: bool, real: Option<Node>, path: &[u8]) -> bool {
        if let (Some(followed), true) = (&located.followed, follow) {
            return followed[..] == *path;
        }
        let given = self.walk(located, at, follow, false);
        if given.node.is_some() || real.is_some() {
            return given.node == real;
        }
        // The file itself is new to us: its directory and name decide.
        let (Some(start), Some(given)) = (located.start.filter(|&s| self.names.is_live(s)), located.rest(at)) else {
            return false;
        };
        let Some((dir, name)) = split_last(path) else { return false };
        match self.names.walk_to_make(start, given, follow) {
            Some((parent, last)) => last == name && Some(parent) == self.names.canonical(dir, false),
            None => false,
        }
    }

    /// The given path led to a file of another path: some component is a symbolic link.
    fn learn_link(&mut self, located: &Located, at: &At<'_>, path: &[u8]) {
        let has_dots = self.path.split(|&b| b == b'/').any(|name| name == b"." || name == b"..");
        if located.start.is_none() || has_dots || at.path.is_none() {
            return; // Where `..` leads depends on the links we are looking for.
        }
        let given = normalise(&self.path);
        if given != path {
            self.names.learn_link(&given, path);
        }
    }

    /// mkdir, mknod, symlink.
    pub(super) fn make(
        &mut self,
        ctx: Ctx,
        (op, flags): (Op, u32),
        at: &At<'_>,
        (kind, mode): (Kind, Option<u16>),
        target: Option<&[u8]>,
        out: &Outcome<'_>,
    ) {
        let (mut event, located) = self.path_event(ctx, op, at, out);
        event.flags |= flags;
        event.mode = mode;
        event.path2 = target.map(|target| self.out.intern(target));
        if out.ok() {
            if let Some((dir, name)) = self.parent_and_name(&located, at) {
                if let Some(stale) = self.names.child(dir, name) {
                    self.names.forget(stale);
                }
                let file = self.names.made_file(kind);
                let state = self.names.file_mut(file);
                state.mode = mode;
                state.target = target.map(Into::into);
                state.size = if kind == Kind::Regular { Some(0) } else { None };
                let node = self.names.add(dir, name, file, Birth::Made);
                self.describe_node(&mut event, node);
                event.size_before = None;
            }
        } else {
            let walk = self.walk(&located, at, false, false);
            event.parent = walk.parent.and_then(|parent| self.names.id_of(parent));
            event.file = walk.node.and_then(|node| self.names.id_of(node));
        }
        self.emit(ctx, event);
    }

    /// bind makes its name as mknod does. Where the socket could not be bound, no file system was at fault.
    pub(super) fn bind(&mut self, ctx: Ctx, at: &At<'_>, out: &Outcome<'_>) {
        let by_socket =
            matches!(Errno(out.errno), Errno::EBADF | Errno::EINVAL | Errno::ENOTSOCK | Errno::EAFNOSUPPORT);
        let flags = flag::BOUND | if by_socket { flag::FOREIGN } else { 0 };
        self.make(ctx, (Op::Mknod, flags), at, (Kind::Special, Some(SOCKET_MODE)), None, out);
    }

    /// unlink, rmdir.
    pub(super) fn remove(&mut self, ctx: Ctx, op: Op, at: &At<'_>, out: &Outcome<'_>) {
        let (mut event, located) = self.path_event(ctx, op, at, out);
        if let (Some(node), true) = (self.find_node(&mut event, &located, at, false), out.ok()) {
            let file = self.names.file_of(node);
            if op == Op::Rmdir {
                self.names.file_mut(file).kind = Kind::Directory;
            }
            self.names.remove(node);
        }
        self.emit(ctx, event);
    }

    pub(super) fn rename(
        &mut self,
        ctx: Ctx,
        from: &At<'_>,
        to: &At<'_>,
        noreplace: bool,
        exchange: bool,
        out: &Outcome<'_>,
    ) {
        let (mut event, source) = self.path_event(ctx, Op::Rename, from, out);
        if noreplace {
            event.flags |= flag::NOREPLACE;
        }
        if exchange {
            event.flags |= flag::EXCHANGE;
        }
        // Both paths are located before either is walked: locating can teach us names, and so forget others.
        let target = self.locate(ctx, to, How { enter: false, exists: out.ok() });
        (event.path2, event.caller_dir2) = (target.path, target.caller_dir);
        if target.by_mount {
            event.flags |= flag::BY_MOUNT;
        }
        // ENOENT may be about either path, so a failure here says nothing about the first.
        let walk = self.walk(&source, from, false, out.ok());
        event.parent = walk.parent.and_then(|parent| self.names.id_of(parent));
        if let Some(node) = walk.node {
            self.describe_node(&mut event, node);
        }
        match walk.node.filter(|_| out.ok()) {
            Some(node) => self.renamed(node, &target, to, exchange),
            None if out.ok() => self.replaced(&target, to, exchange),
            None => {}
        }
        self.emit(ctx, event);
    }

    /// What we do not know was moved to this name; if exchanged, what had it went where we do not know.
    fn replaced(&mut self, target: &Located, to: &At<'_>, exchange: bool) {
        let Some((dir, name)) = self.parent_and_name(target, to) else { return };
        match self.names.child(dir, name) {
            Some(old) if exchange => self.names.forget(old),
            Some(old) => self.names.remove(old),
            None => {}
        }
        let file = self.names.new_file(Kind::Unknown);
        self.names.add(dir, name, file, Birth::Made);
    }

    fn renamed(&mut self, node: Node, target: &Located, to: &At<'_>, exchange: bool) {
        if exchange {
            match self.walk(target, to, false, true).node {
                Some(other) => self.names.exchange(node, other),
                None => self.names.forget(node), // Another took its place.
            }
            return;
        }
        let Some((dir, name)) = self.parent_and_name(target, to) else {
            return self.names.forget(node); // It went somewhere we cannot name.
        };
        if let Some(old) = self.names.child(dir, name) {
            // Two names of one file: rename does nothing (rename(2)).
            if old == node || self.names.file_of(old) == self.names.file_of(node) {
                return;
            }
        }
        self.names.rename(node, dir, name);
    }

    pub(super) fn link(&mut self, ctx: Ctx, from: &At<'_>, to: &At<'_>, follow: bool, out: &Outcome<'_>) {
        let (mut event, source) = self.path_event(ctx, Op::Link, from, out);
        if !follow {
            event.flags |= flag::NOFOLLOW;
        }
        let target = self.locate(ctx, to, How { enter: false, exists: out.ok() });
        (event.path2, event.caller_dir2) = (target.path, target.caller_dir);
        if target.by_mount {
            event.flags |= flag::BY_MOUNT;
        }
        self.tell_followed(&mut event, &source, follow);
        let walk = self.walk(&source, from, follow, out.ok());
        event.parent = walk.parent.and_then(|parent| self.names.id_of(parent));
        if let Some(node) = walk.node {
            self.describe_node(&mut event, node);
        }
        if let (Some(node), true) = (walk.node, out.ok()) {
            self.linked(self.names.file_of(node), &target, to);
        }
        self.emit(ctx, event);
    }

    pub(super) fn link_fd(&mut self, ctx: Ctx, from: &Fd<'_>, to: &At<'_>, out: &Outcome<'_>) {
        let mut event = self.event(ctx, Op::Link, out);
        let ofd = self.ofd(ctx, from, out.errno);
        if let Some(ofd) = ofd {
            self.describe_ofd(&mut event, ofd);
        }
        let target = self.locate(ctx, to, How { enter: false, exists: out.ok() });
        (event.path2, event.caller_dir2) = (target.path, target.caller_dir);
        if target.by_mount {
            event.flags |= flag::BY_MOUNT;
        }
        if let (Some(file), true) = (ofd.and_then(|ofd| self.fds.ofd(ofd).file), out.ok()) {
            self.linked(file, &target, to);
        }
        self.emit(ctx, event);
    }

    /// A file got another name.
    fn linked(&mut self, file: File, target: &Located, to: &At<'_>) {
        if let Some((dir, name)) = self.parent_and_name(target, to) {
            // Hold the file: forgetting a stale entry of the same name must not free it.
            self.names.opened(file);
            if let Some(stale) = self.names.child(dir, name) {
                self.names.forget(stale);
            }
            self.names.add(dir, name, file, Birth::Made);
            self.names.closed(file);
        }
    }

    /// A bind mount, or another. It is no activity on files: counted by name.
    pub(super) fn mount(&mut self, ctx: Ctx, name: &[u8], from: &At<'_>, to: &At<'_>, flags: u64, out: &Outcome<'_>) {
        let (bound, moved) = (flags & MS_BIND != 0, flags & MS_MOVE != 0);
        let mounts = out.ok() && flags & (MS_REMOUNT | MS_PROPAGATION) == 0;
        let to_spot = mounts.then(|| self.spot(ctx, to)).flatten();
        let from_spot = (mounts && (bound || moved)).then(|| self.spot(ctx, from)).flatten();
        // ENOENT may be about either path, so a failure says nothing about this one.
        let (mut event, located) = self.path_event(ctx, Op::Other, to, out);
        if let Some(node) = self.walk(&located, to, true, out.ok()).node {
            self.describe_node(&mut event, node);
        }
        let is_shared = out.ok() && flags & MS_SHARED != 0;
        self.not_modelled(ctx, if is_shared { SHARED_MOUNT.as_bytes() } else { name }, event);
        let mounts = &mut self.mounts[self.fs[ctx.thread.fs.0 as usize].namespace];
        match (to_spot, from_spot) {
            (Some(to), Some(from)) if bound => mounts.bind(&mut self.names, from, to, flags & MS_REC != 0),
            (Some(to), Some(from)) => mounts.move_to(from, to),
            (Some(to), None) if !bound && !moved => mounts.cover(&mut self.names, to),
            _ => {}
        }
    }

    pub(super) fn unmount(&mut self, ctx: Ctx, name: &[u8], at: &At<'_>, out: &Outcome<'_>) {
        let spot = (out.ok() && self.mounts_of(ctx).is_some()).then(|| self.spot(ctx, at)).flatten();
        self.other(ctx, name, None, Some(at), out);
        if let Some(spot) = spot {
            let mounts = &mut self.mounts[self.fs[ctx.thread.fs.0 as usize].namespace];
            mounts.unmount(&mut self.names, spot);
            if mounts.is_crowded() {
                let contexts = self.fs.iter().filter(|fs| fs.users > 0);
                let in_them = contexts.flat_map(|fs| [Some(fs.mount), fs.root.map(|(spot, _)| spot.mount)]).flatten();
                mounts.forget_all_but(&in_them.chain(self.fds.mounts()).collect());
            }
        }
    }

    /// A call on files that is not modelled: counted by name.
    pub(super) fn other(&mut self, ctx: Ctx, name: &[u8], fd: Option<&Fd<'_>>, at: Option<&At<'_>>, out: &Outcome<'_>) {
        let mut event = self.event(ctx, Op::Other, out);
        if let Some(at) = at {
            let (described, located) = self.path_event(ctx, Op::Other, at, out);
            event = described;
            self.find(&mut event, &located, at, true);
        } else if let Some(fd) = fd
            && let Some(ofd) = self.ofd(ctx, fd, out.errno)
        {
            self.describe_ofd(&mut event, ofd);
        }
        self.not_modelled(ctx, name, event);
    }

    fn not_modelled(&mut self, ctx: Ctx, name: &[u8], event: Draft) {
        if event.flags & flag::FOREIGN == 0 {
            let name = String::from_utf8_lossy(name);
            match self.coverage.other_by_name.get_mut(name.as_ref()) {
                Some(count) => *count += 1,
                None => {
                    self.coverage.other_by_name.insert(name.into_owned(), 1);
                }
            }
        }
        self.emit(ctx, event);
    }
}
