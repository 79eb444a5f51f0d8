//! From arguments to files: descriptors against our tables, paths against working directories and the tree.

use super::call::{At, Fd, Seen, Start, Who};
use super::descriptors::{Ofd, Slot};
use super::mounts::{How, Mount, Mounts, Spot};
use super::names::{File, Node, Walk};
use super::{Ctx, Kind, Tracker};
use crate::PathId;
use std::borrow::Cow;

/// A path argument resolved to a directory to start in and a path from there. The absolute path is in
/// [`Tracker::path`].
#[derive(Clone, Debug, Default)]
pub(super) struct Located {
    pub path: Option<PathId>,
    pub caller_dir: Option<PathId>,
    /// Where the walk starts; `None`: unknown, or foreign.
    pub start: Option<Node>,
    /// Bytes at the beginning of the given path that have been walked to get there.
    pub walked: usize,
    pub foreign: bool,
    /// Where the path crosses bind mounts: the same without.
    pub translated: Option<Box<[u8]>>,
    /// The path is not as it was given: it crosses a mount, or begins at another root directory than the tree's.
    pub by_mount: bool,
    /// The same where only a symbolic link at its end leads across one.
    pub followed: Option<Box<[u8]>>,
    /// Through which mount its end is seen.
    pub mount: Mount,
    /// What it leads to across a mount, if that has no name any more; by a link at its end where `followed` is not
    /// `None`.
    nameless: Option<(Spot, File)>,
}

impl Located {
    /// What it leads to across a mount, if that has no name any more.
    pub fn nameless(&self, follow: bool) -> Option<(Spot, File)> {
        self.nameless.filter(|_| follow || self.followed.is_none())
    }

    /// What is left to be walked of the path.
    pub fn rest<'p>(&'p self, at: &'p At<'_>) -> Option<&'p [u8]> {
        match &self.translated {
            Some(path) => Some(path),
            None => at.path.as_deref()?.get(self.walked..),
        }
    }
}

impl Tracker {
    /// The description behind a descriptor argument, made known if it was not. `None` if the descriptor is not open, or
    /// nothing shows that it is.
    pub(super) fn ofd(&mut self, ctx: Ctx, fd: &Fd<'_>, errno: u16) -> Option<Ofd> {
        let slot = self.fds.get(ctx.thread.table, fd.number);
        let known = match (slot, fd.seen) {
            (Some(slot), None) => Some(self.follow_moves(slot.ofd)),
            (Some(slot), seen @ Some(_)) => self.is_seen(ctx, slot.ofd, seen).then_some(slot.ofd),
            // What else is wrong with the arguments is an error before the kernel looks the descriptor up (pwrite at a
            // negative offset, dup3 to the same number): it says nothing about whether there is one.
            (None, None) if errno == super::EBADF || errno == super::EINVAL || fd.number < 0 => return None,
            (None, _) => None,
        };
        if known.is_some() {
            return known;
        }
        let rival = self.fds.rival(ctx.thread.table, fd.number).filter(|rival| self.is_seen(ctx, rival.ofd, fd.seen));
        let (ofd, cloexec) = match (rival, self.passed(fd.seen)) {
            (Some(rival), _) => (rival.ofd, rival.cloexec),
            (None, Some(ofd)) => (ofd, false),
            (None, None) => (self.adopt(ctx, fd.seen), slot.is_some_and(|slot| slot.cloexec)),
        };
        if let Some(old) = self.fds.put(ctx.thread.table, fd.number, Slot { ofd, cloexec }) {
            self.coverage.resynchronised_descriptors += 1;
            self.fds.release(old, &mut self.names);
        }
        Some(ofd)
    }

    /// Whether a description of ours can be what the tracer saw.
    fn is_seen(&mut self, ctx: Ctx, ofd: Ofd, seen: Option<Seen<'_>>) -> bool {
        match seen {
            None => true,
            Some(Seen::Foreign) => self.still_foreign(ofd).is_some(),
            Some(Seen::Path { raw, deleted, who }) if self.is_blank(ofd) => {
                let is_known = who.is_some_and(|who| self.fds.with(who).is_some());
                if !is_known {
                    self.reveal(ctx, ofd, raw, deleted, who);
                }
                !is_known
            }
            Some(Seen::Path { raw, deleted, who: Some(who) }) => match self.fds.ofd(ofd).who {
                Some(known) if known == who => {
                    self.see_path(ctx, ofd, raw);
                    true
                }
                Some(_) => false,
                None => {
                    let same = self.still_path(ctx, ofd, raw, deleted).is_some()
                        && self.fds.ofd(ofd).file.is_none_or(|file| self.names.identify(file, who.inode));
                    if same {
                        self.fds.identify(ofd, who);
                    }
                    same
                }
            },
            Some(Seen::Path { raw, deleted, who: None }) => self.still_path(ctx, ofd, raw, deleted).is_some(),
            Some(Seen::Unnamed(who)) if self.is_blank(ofd) => {
                let is_known = self.fds.with(who).is_some();
                if !is_known {
                    self.reveal_unnamed(ofd, who);
                }
                !is_known
            }
            Some(Seen::Unnamed(who)) => match self.fds.ofd(ofd).who {
                Some(known) => known == who,
                None => {
                    let file = self.fds.ofd(ofd).file;
                    let same = file.is_some_and(|file| self.names.identify(file, who.inode));
                    if same {
                        self.fds.identify(ofd, who);
                    }
                    same
                }
            },
        }
    }

    /// The description that came into a process over a socket, from one that has it too, if the tracer knows which it
    /// is.
    fn passed(&self, seen: Option<Seen<'_>>) -> Option<Ofd> {
        match seen {
            Some(Seen::Path { who: Some(who), .. } | Seen::Unnamed(who)) => self.fds.with(who),
            _ => None,
        }
    }

    /// Takes the path that the tracer saw behind a description.
    fn see_path(&mut self, ctx: Ctx, ofd: Ofd, raw: &[u8]) {
        if self.fds.ofd(ofd).raw == raw {
            return;
        }
        let mut path = std::mem::take(&mut self.unescaped);
        let node = self.fds.ofd(ofd).file.and_then(|file| self.names.node_of(file));
        match node.filter(|_| self.mounts_of(ctx).is_some()) {
            Some(node) => self.names.path(node, &mut path),
            None => {
                self.shown(ctx, raw, &mut path);
            }
        }
        self.fds.ofd_mut(ofd).show(raw, &path, self.names.moves());
        self.unescaped = path;
    }

    /// The mounts that a thread sees, if there are any.
    pub(super) fn mounts_of(&self, ctx: Ctx) -> Option<&Mounts> {
        let mounts = &self.mounts[self.fs[ctx.thread.fs.0 as usize].namespace];
        (!mounts.is_empty()).then_some(mounts)
    }

    /// The same with the root directory, where names mean something else than what the tree alone says: there are
    /// mounts, or the root directory is not the tree's.
    fn sight(&self, ctx: Ctx) -> Option<(&Mounts, Spot)> {
        let fs = &self.fs[ctx.thread.fs.0 as usize];
        let mounts = &self.mounts[fs.namespace];
        match fs.root {
            Some((root, _)) => Some((mounts, root)),
            None => (!mounts.is_empty()).then(|| (mounts, Mounts::root(&self.names))),
        }
    }

    /// Whether names mean to a thread what the tree alone says.
    pub(super) fn sees_the_tree(&self, ctx: Ctx) -> bool {
        self.sight(ctx).is_none()
    }

    /// A path that the tracer shows, unescaped, and as the tree knows it. The mount through which it is seen, where
    /// there are mounts.
    pub(super) fn shown(&self, ctx: Ctx, raw: &[u8], path: &mut Vec<u8>) -> Option<Mount> {
        unescape_into(raw, path);
        let mounts = self.mounts_of(ctx).filter(|_| !is_foreign(path))?;
        let (root, how) = (Mounts::root(&self.names), How { enter: true, exists: true });
        let translated = mounts.translate(&self.names, root, root, path, how);
        if let Some(translated) = translated.path {
            *path = translated;
        }
        Some(translated.mount)
    }

    /// The place that a path leads to, links followed, made known if it was not, and what is there: a file that has no
    /// name any more is in no place unless it is mounted. Leaves the path in [`Tracker::path`].
    pub(super) fn place(&mut self, ctx: Ctx, at: &At<'_>) -> Option<(Spot, File)> {
        let unknown = self.coverage.unknown_directory_calls;
        let located = self.locate(ctx, at, How { enter: true, exists: true });
        self.coverage.unknown_directory_calls = unknown; // It is counted as the call's own.
        if let Some(nameless) = located.nameless(true) {
            return Some(nameless);
        }
        let node = self.walk(&located, at, true, true).node?;
        Some((Spot { mount: located.mount, node }, self.names.file_of(node)))
    }

    /// The same, the place alone.
    pub(super) fn spot(&mut self, ctx: Ctx, at: &At<'_>) -> Option<Spot> {
        self.place(ctx, at).map(|(spot, _)| spot).filter(|&spot| spot != Spot::default())
    }

    /// Brings the path of a description up to date where the tracer does not print it: its file may have been renamed.
    fn follow_moves(&mut self, ofd: Ofd) -> Ofd {
        let moves = self.names.moves();
        let state = self.fds.ofd_mut(ofd);
        if state.moves != moves && state.raw.is_empty() {
            state.moves = moves;
            if let Some(node) = state.file.and_then(|file| self.names.node_of(file)) {
                self.names.path(node, &mut self.unescaped);
                state.path.set(&self.unescaped);
            }
        }
        ofd
    }

    /// The same for the working directory.
    fn follow_cwd(&mut self, ctx: Ctx) {
        let moves = self.names.moves();
        let fs = &mut self.fs[ctx.thread.fs.0 as usize];
        if fs.moves != moves {
            fs.moves = moves;
            if let Some(node) = fs.node.filter(|&node| self.names.is_live(node)) {
                self.names.path(node, &mut self.unescaped);
                fs.cwd.set(&self.unescaped);
            }
        }
    }

    fn still_foreign(&mut self, ofd: Ofd) -> Option<Ofd> {
        let state = self.fds.ofd_mut(ofd);
        if !state.foreign && state.file.is_none() && state.path.bytes().is_empty() {
            state.foreign = true;
        }
        state.foreign.then_some(ofd)
    }

    /// Checks a description of ours against the printed path; `None` if it must be another one.
    fn still_path(&mut self, ctx: Ctx, ofd: Ofd, raw: &[u8], deleted: bool) -> Option<Ofd> {
        let state = self.fds.ofd(ofd);
        let file = state.file;
        if state.raw != raw && self.is_shown_by_mount(ctx, ofd, raw) {
            // As the kernel shows what is seen through that mount, which may be mounted nowhere any more.
            let mut path = std::mem::take(&mut self.unescaped);
            if let Some(node) = file.and_then(|file| self.names.node_of(file)) {
                self.names.path(node, &mut path);
            }
            self.fds.ofd_mut(ofd).show(raw, &path, self.names.moves());
            self.unescaped = path;
        }
        let state = self.fds.ofd(ofd);
        if state.raw != raw {
            let mut path = std::mem::take(&mut self.unescaped);
            self.shown(ctx, raw, &mut path);
            let same = state.path.bytes() == &path[..]
                || file.is_some_and(|file| {
                    // A name that is gone is shown under its directory's present path, and as what it was last: we know
                    // that it is gone, or that the file lost a name, or it was moved since.
                    let state = self.fds.ofd(ofd);
                    let moved = state.moves != self.names.moves() || self.names.node_of(file).is_none();
                    let lost = self.names.file(file).lost_a_name;
                    if deleted && (moved || lost || last_name(&path) == last_name(state.path.bytes())) {
                        return true;
                    }
                    let node = self.names.walk(self.names.root(), &path, false, false).node;
                    node.is_some_and(|node| self.names.file_of(node) == file)
                });
            if same {
                self.fds.ofd_mut(ofd).show(raw, &path, self.names.moves());
            }
            self.unescaped = path;
            if !same {
                return None;
            }
        }
        if let (true, Some(file)) = (deleted, file) {
            // The name went without our seeing it go. One that the trace made or moved there is still to go, in a call
            // that runs now, or it is not the one that went: the file was opened by an earlier name that was called the
            // same.
            let path = self.fds.ofd(ofd).path.bytes();
            if let Some(node) = self.names.walk(self.names.root(), path, false, false).node
                && self.names.file_of(node) == file
                && !self.names.is_by_trace(node)
            {
                self.names.forget(node);
            }
        }
        Some(ofd)
    }

    /// Whether the kernel shows a description of ours in this way, by the mount through which it was opened.
    fn is_shown_by_mount(&mut self, ctx: Ctx, ofd: Ofd, raw: &[u8]) -> bool {
        let state = self.fds.ofd(ofd);
        let (Some(mounts), Some(node)) = (self.mounts_of(ctx), state.file.and_then(|file| self.names.node_of(file)))
        else {
            return false;
        };
        let shown = mounts.shown(&self.names, Spot { mount: state.mount, node });
        unescape_into(raw, &mut self.unescaped);
        shown == self.unescaped
    }

    /// A description for a descriptor we did not see made: inherited, received, or lost from the trace.
    fn adopt(&mut self, ctx: Ctx, seen: Option<Seen<'_>>) -> Ofd {
        let ofd = self.fds.new_ofd(None, seen == Some(Seen::Foreign), &mut self.names);
        match seen {
            Some(Seen::Path { raw, deleted, who }) => self.reveal(ctx, ofd, raw, deleted, who),
            Some(Seen::Unnamed(who)) => self.reveal_unnamed(ofd, who),
            Some(Seen::Foreign) | None => {}
        }
        ofd
    }

    /// Nothing is known of a description: the calls on it so far did not show what is behind it.
    fn is_blank(&self, ofd: Ofd) -> bool {
        let state = self.fds.ofd(ofd);
        state.file.is_none() && !state.foreign && state.path.bytes().is_empty()
    }

    /// Takes what the tracer saw behind a description of which nothing was known.
    fn reveal(&mut self, ctx: Ctx, ofd: Ofd, raw: &[u8], deleted: bool, who: Option<Who>) {
        let mut path = std::mem::take(&mut self.unescaped);
        let mount = self.shown(ctx, raw, &mut path).unwrap_or_default();
        let foreign = is_foreign(&path);
        let file = match who {
            _ if foreign => None,
            // What a mount covers is shown by the path of what covers it.
            Some(who) if self.mounts_of(ctx).is_some() => Some(self.names.of_inode(who.inode)),
            _ => self.adopted_file(&path, deleted, who),
        };
        if let Some(file) = file {
            self.names.opened(file);
        }
        if let Some(who) = who {
            self.fds.identify(ofd, who);
        }
        let state = self.fds.ofd_mut(ofd);
        (state.file, state.foreign, state.mount) = (file, foreign, mount);
        state.show(raw, &path, self.names.moves());
        self.unescaped = path;
    }

    /// The same where only the file itself was seen.
    fn reveal_unnamed(&mut self, ofd: Ofd, who: Who) {
        let file = self.names.of_inode(who.inode);
        self.names.opened(file);
        self.fds.identify(ofd, who);
        self.fds.ofd_mut(ofd).file = Some(file);
    }

    fn adopted_file(&mut self, path: &[u8], deleted: bool, who: Option<Who>) -> Option<File> {
        match who {
            Some(who) if deleted => Some(self.names.of_inode(who.inode)),
            Some(who) => self.names.canonical_inode(path, who.inode),
            None if deleted => Some(self.names.new_file(Kind::Unknown)),
            None => self.names.canonical(path, true).map(|node| self.names.file_of(node)),
        }
    }

    /// Takes the working directory's printed path as the truth.
    pub(super) fn see_cwd(&mut self, ctx: Ctx, raw: &[u8]) {
        let fs = &mut self.fs[ctx.thread.fs.0 as usize];
        // A printed directory that is gone from the tree was forgotten: the trace says that it is there.
        if fs.raw == raw && fs.node.is_none_or(|node| self.names.is_live(node)) {
            return;
        }
        fs.raw.clear();
        fs.raw.extend_from_slice(raw);
        let is_known = fs.node.is_some_and(|node| self.names.is_live(node));
        if is_known && self.mounts_of(ctx).is_some() {
            // What a mount covers is shown by the path of what covers it.
            return self.follow_cwd(ctx);
        }
        let mut path = std::mem::take(&mut self.unescaped);
        let mount = self.shown(ctx, raw, &mut path).unwrap_or_default();
        let fs = &self.fs[ctx.thread.fs.0 as usize];
        let believed = fs.cwd.bytes();
        if !believed.is_empty() && believed != path && path.first() == Some(&b'/') && !is_foreign(&path) {
            let node = self.names.canonical(&path, false);
            if node.is_none() || node != fs.node {
                // A chdir through a symbolic link (or else the directory was renamed, which we knew).
                let believed = believed.to_vec();
                self.names.learn_link(&believed, &path);
            }
        }
        if !is_foreign(&path) && path.first() == Some(&b'/') {
            self.names.canonical(&path, true);
        }
        self.set_cwd(ctx, &path);
        self.fs[ctx.thread.fs.0 as usize].mount = mount;
        self.unescaped = path;
    }

    /// Sets the working directory by path.
    pub(super) fn set_cwd(&mut self, ctx: Ctx, path: &[u8]) {
        let absolute = path.first() == Some(&b'/');
        let node = if absolute && !is_foreign(path) {
            self.names.walk(self.names.root(), path, true, true).node
        } else {
            None
        };
        if let Some(node) = node {
            let file = self.names.file_of(node);
            self.names.file_mut(file).kind = Kind::Directory;
        }
        let fs = &mut self.fs[ctx.thread.fs.0 as usize];
        fs.cwd.set(if absolute { path } else { b"" });
        fs.node = node;
        fs.moves = self.names.moves();
        let directory = node.map(|node| self.names.file_of(node));
        self.work_in(ctx.thread.fs, directory);
    }

    /// The directory that an open of `.` opened again, where the tracer says that its name is gone: no path leads to
    /// it.
    pub(super) fn nameless_start(&mut self, ctx: Ctx, at: &At<'_>, seen: Option<Seen<'_>>) -> Option<File> {
        let path = at.path.as_deref()?;
        match (seen, &at.start) {
            (Some(Seen::Path { deleted: true, .. }), Start::Cwd(_)) if is_itself(path) => {
                self.fs[ctx.thread.fs.0 as usize].directory
            }
            (Some(Seen::Path { deleted: true, .. }), Start::Fd(fd)) if is_itself(path) => {
                self.ofd(ctx, fd, super::EBADF).and_then(|ofd| self.fds.ofd(ofd).file)
            }
            _ => None,
        }
    }

    /// Resolves a path argument; its absolute path is left in [`Tracker::path`], empty if unknown.
    pub(super) fn locate(&mut self, ctx: Ctx, at: &At<'_>, how: How) -> Located {
        self.path.clear();
        let mut located = Located::default();
        let mut mount = Mount::default();
        // Where the path starts that has no name any more, but is mounted.
        let mut mounted = None;
        let Some(given) = at.path.as_deref() else { return located };
        if given.first() == Some(&b'/') {
            let root = self.fs[ctx.thread.fs.0 as usize].root;
            let node = root.map_or(self.names.root(), |(root, _)| root.node);
            if self.names.is_live(node) {
                located.start = Some(node);
                if node != self.names.root() {
                    located.by_mount = true;
                    self.names.path(node, &mut self.path);
                }
            } else {
                // Nothing is below it, nor above.
                located.nameless = root.filter(|_| is_only_dots(given));
                mounted = root.map(|(root, _)| root).filter(|&root| root != Spot::default());
                if mounted.is_none() {
                    self.coverage.unknown_directory_calls += u64::from(located.nameless.is_none());
                    return located;
                }
            }
            self.path.extend_from_slice(given);
        } else {
            // The directory that the path starts in, named or not.
            let mut removed = None;
            match at.start {
                Start::Cwd(raw) => {
                    match raw {
                        Some(raw) => self.see_cwd(ctx, raw),
                        None => self.follow_cwd(ctx),
                    }
                    let fs = &mut self.fs[ctx.thread.fs.0 as usize];
                    located.start = fs.node.filter(|&node| self.names.is_live(node));
                    mount = fs.mount;
                    removed = fs.directory;
                    located.caller_dir = self.out.intern_cached(&mut fs.cwd);
                    self.path.extend_from_slice(fs.cwd.bytes());
                }
                Start::Fd(fd) => {
                    if let Some(ofd) = self.ofd(ctx, &fd, super::EBADF) {
                        let state = self.fds.ofd_mut(ofd);
                        located.caller_dir = self.out.intern_cached(&mut state.path);
                        self.path.extend_from_slice(state.path.bytes());
                        located.start = state.file.and_then(|file| self.names.node_of(file));
                        mount = state.mount;
                        removed = state.file;
                    }
                }
            }
            if let (None, Some(directory)) = (located.start, removed) {
                mounted = self.mounts_of(ctx).and_then(|mounts| mounts.seen_at(mount, directory));
                match self.names.up_from_removed(directory, given).filter(|_| mounted.is_none()) {
                    Some((start, rest)) => {
                        (located.start, located.walked) = (Some(start), given.len() - rest.len());
                    }
                    None if is_itself(given) => located.nameless = Some((Spot::default(), directory)),
                    None => {}
                }
            }
            if self.path.is_empty() {
                self.coverage.unknown_directory_calls += 1;
                return located;
            }
            if self.path.last() != Some(&b'/') && !given.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(given);
        }
        located.foreign = is_foreign(&self.path);
        if located.foreign {
            located.start = None;
        } else if let (Some((mounts, root)), Some(start)) =
            (self.sight(ctx), located.start.map(|node| Spot { mount, node }).or(mounted))
        {
            let rest = &given[located.walked..];
            let translated = mounts.translate(&self.names, root, start, rest, how);
            located.mount = translated.mount;
            located.followed = translated.followed.map(Into::into);
            located.nameless = translated.nameless;
            if translated.unknown {
                located.start = None;
            } else if let Some(path) = translated.path {
                self.path.clone_from(&path);
                located.start = Some(self.names.root());
                located.caller_dir = None;
                located.by_mount = true;
                located.translated = Some(path.into());
            }
        }
        located.path = Some(self.out.intern(&self.path));
        located
    }

    /// Walks a located path. With `exists`, the call showed that it exists.
    pub(super) fn walk(&mut self, located: &Located, at: &At<'_>, follow: bool, exists: bool) -> Walk {
        if let (Some(path), true) = (&located.followed, follow) {
            if path.is_empty() {
                return Walk { parent: None, node: None };
            }
            return self.names.walk(self.names.root(), path, true, exists);
        }
        match (located.start, located.rest(at)) {
            (Some(start), Some(path)) if self.names.is_live(start) => {
                let walk = self.names.walk(start, path, follow, exists);
                if let Some(parent) = walk.parent {
                    self.names.touch(parent);
                }
                walk
            }
            _ => Walk { parent: None, node: None },
        }
    }

    /// The directory and last component of a located path, the directory made known to exist. `None` if unknown or
    /// if there is no such component (`.`, `..`).
    pub(super) fn parent_and_name<'p>(&mut self, located: &'p Located, at: &'p At<'_>) -> Option<(Node, &'p [u8])> {
        let (start, path) = (located.start.filter(|&start| self.names.is_live(start))?, located.rest(at)?);
        self.parent_in(start, path)
    }

    /// The same from a directory's entry.
    pub(super) fn parent_in<'p>(&mut self, start: Node, path: &'p [u8]) -> Option<(Node, &'p [u8])> {
        let (dir, name) = split_last(path)?;
        let node = if dir.is_empty() { Some(start) } else { self.names.walk(start, dir, true, true).node };
        self.names.touch(node?);
        Some((node?, name))
    }
}

/// Whether a relative path leads to the directory that it starts in.
fn is_itself(path: &[u8]) -> bool {
    path.first() == Some(&b'.') && path.split(|&b| b == b'/').all(|name| matches!(name, b"" | b"."))
}

/// Whether an absolute path leads no further than the root.
fn is_only_dots(path: &[u8]) -> bool {
    path.split(|&b| b == b'/').all(|name| matches!(name, b"" | b"." | b".."))
}

/// Splits a path into its directory (with the slash; empty if there is none) and last component.
pub(super) fn split_last(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = path.iter().rposition(|&b| b != b'/')? + 1;
    let path = &path[..end];
    let cut = memchr::memrchr(b'/', path).map_or(0, |i| i + 1);
    let (dir, name) = path.split_at(cut);
    (name != b"." && name != b"..").then_some((dir, name))
}

fn last_name(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..])
}

/// Whether an absolute path lies on no file system we model: /proc, /sys, /dev (but not /dev/shm, where files live),
/// and the names the kernel gives to objects that are none (`/memfd:x`, `/SYSV...`).
pub(crate) fn is_foreign(path: &[u8]) -> bool {
    let normal = if has_dots(path) { normalise(path) } else { Cow::Borrowed(path) };
    let (first, rest) = first_name(&normal);
    match first {
        b"proc" | b"sys" => true,
        b"dev" => first_name(rest).0 != b"shm",
        b"" => path.is_empty(),
        _ => {
            first.starts_with(b"memfd:")
                || first.starts_with(b"SYSV")
                || first == b"[aio]"
                || first == b"anon_hugepage"
                || first.starts_with(b"dmabuf:")
        }
    }
}

/// Whether a component of the path is `.` or `..`.
fn has_dots(path: &[u8]) -> bool {
    memchr::memchr_iter(b'.', path).any(|dot| {
        let begins = dot == 0 || path[dot - 1] == b'/';
        begins && matches!(&path[dot + 1..], [] | [b'/', ..] | [b'.'] | [b'.', b'/', ..])
    })
}

/// The first component of a path, empty if there is none, and what follows it.
fn first_name(mut path: &[u8]) -> (&[u8], &[u8]) {
    while let [b'/', tail @ ..] = path {
        path = tail;
    }
    path.split_at(path.iter().position(|&b| b == b'/').unwrap_or(path.len()))
}

/// A path without `.`, `..` and repeated slashes, as if there were no symbolic links.
pub(crate) fn normalise(path: &[u8]) -> Cow<'_, [u8]> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for component in path.split(|&b| b == b'/') {
        match component {
            b"" | b"." => {}
            b".." => {
                kept.pop();
            }
            _ => kept.push(component),
        }
    }
    let mut out = Vec::with_capacity(path.len());
    for component in kept {
        out.push(b'/');
        out.extend_from_slice(component);
    }
    if out.is_empty() {
        out.push(b'/');
    }
    Cow::Owned(out)
}

/// Undoes C escapes, as tracers print them: `\n \t \r \v \f \" \\`, octal and hexadecimal numbers.
pub(crate) fn unescape_into(raw: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut rest = raw;
    while let Some(i) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..i]);
        let (byte, used) = unescape_one(&rest[i + 1..]);
        out.push(byte);
        rest = &rest[i + 1 + used..];
    }
    out.extend_from_slice(rest);
}

/// The byte an escape stands for and how many bytes it took after the backslash.
fn unescape_one(rest: &[u8]) -> (u8, usize) {
    match rest.first() {
        Some(b'n') => (b'\n', 1),
        Some(b't') => (b'\t', 1),
        Some(b'r') => (b'\r', 1),
        Some(b'v') => (0x0b, 1),
        Some(b'f') => (0x0c, 1),
        Some(b'x') => {
            let digits = rest[1..].iter().take(2).take_while(|b| b.is_ascii_hexdigit()).count();
            let value = rest[1..=digits].iter().fold(0, |v, &b| v * 16 + hex_digit(b));
            (value, 1 + digits)
        }
        Some(b'0'..=b'7') => {
            let digits = rest.iter().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
            let value = rest[..digits].iter().fold(0u8, |v, &b| v.wrapping_mul(8).wrapping_add(b - b'0'));
            (value, digits)
        }
        Some(&other) => (other, 1),
        None => (b'\\', 0),
    }
}

fn hex_digit(b: u8) -> u8 {
    match b {
        b'0'..=b'9' => b - b'0',
        b'a'..=b'f' => b - b'a' + 10,
        b'A'..=b'F' => b - b'A' + 10,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unescape(raw: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        unescape_into(raw, &mut out);
        out
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape(br#"a\n\t\"\\\377\74b\x41\0"#), b"a\n\t\"\\\xff<bA\0");
        assert_eq!(unescape(br"\1234"), b"S4");
        assert_eq!(unescape(br"end\"), b"end\\");
        assert_eq!(unescape(br"\x"), b"\0");
    }

    #[test]
    fn foreign_paths() {
        for path in [
            "/proc/self/maps",
            "//proc",
            "/sys",
            "/dev/null",
            "/memfd:x",
            "/a/../proc/1",
            "/dev/./pts/0",
            "/.//proc",
            "/.a/../sys",
        ] {
            assert!(is_foreign(path.as_bytes()), "{path}");
        }
        for path in
            ["/", "/procx", "/dev/shm/a", "/home/dev/x", "/proc/../home", "/a/proc", "/.proc", "/..a/proc", "/proc/.."]
        {
            assert!(!is_foreign(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn last_components() {
        assert_eq!(split_last(b"/a/b/"), Some((&b"/a/"[..], &b"b"[..])));
        assert_eq!(split_last(b"b"), Some((&b""[..], &b"b"[..])));
        assert_eq!(split_last(b"/"), None);
        assert_eq!(split_last(b"a/.."), None);
    }
}
