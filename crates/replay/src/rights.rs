//! Rights that the traced user did not have: what refused his calls (`EACCES`) has to refuse them again.
//!
//! A refusal says that a directory on the way may not be searched, or that what the path leads to may not be read,
//! written or executed; it does not say which. The whole trace does: a name found, made or missed in a directory shows
//! that it may be searched. The first directory on the way of which nothing shows that is taken to be what refused;
//! where every one is searched, the file at the end. Either way the calls are refused again. Names that were refused to
//! a call that makes or removes them are not looked at: what is missing there may be the right to write the directory.

use super::at_start::AtStart;
use posix::{Errno, FileKind};
use rustc_hash::{FxHashMap, FxHashSet};
use trace::tree::{Node, Object, Tree, Walk, components};
use trace::{Batch, Call, Event, flag};

/// The right to search a directory, or to execute a file.
pub(super) const SEARCH: u8 = 1;
/// The right to write.
pub(super) const WRITE: u8 = 2;
/// The right to read.
pub(super) const READ: u8 = 4;

/// What an opened file was opened for.
pub(super) fn opened_for(e: &Event) -> u8 {
    let right = |bit: u32, right: u8| if e.head.flags & bit != 0 { right } else { 0 };
    right(flag::READ, READ) | right(flag::WRITE, WRITE)
}

/// The paths that were refused, with the rights to what they lead to that were asked for; none: only a directory can
/// have refused.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    asked: FxHashMap<Box<[u8]>, u8>,
}

impl Refusals {
    /// Remembers a call that was refused.
    pub(super) fn note(&mut self, e: &Event, batch: &Batch) {
        if e.head.errno != Some(Errno::EACCES) {
            return;
        }
        let asked = match &e.call {
            Call::Stat(_) | Call::ReadLink { .. } | Call::StatFs(_) => 0,
            Call::Access { mode, .. } => mode.map_or(0, |mode| (mode & 7) as u8),
            Call::Open { .. } if e.head.flags & (flag::CREATE | flag::TMPFILE) == 0 => opened_for(e),
            Call::Truncate { .. } => WRITE,
            _ => return,
        };
        let Some(path) = e.path() else { return };
        *self.asked.entry(batch.paths.get(path).into()).or_default() |= asked;
    }

    /// Takes the rights from what refused.
    pub(super) fn settle(self, names: &mut Tree<AtStart>) {
        if self.asked.is_empty() {
            return;
        }
        let searched = searched(names);
        // What is implied depends on the order in which it becomes known.
        let mut asked: Vec<_> = self.asked.into_iter().collect();
        asked.sort_unstable();
        for (path, rights) in asked {
            refuse(names, &searched, &path, rights);
        }
    }
}

/// The directories in which the trace looked names up, and those above them.
fn searched(names: &Tree<AtStart>) -> FxHashSet<Node> {
    let mut searched = FxHashSet::from_iter([Node::ROOT]);
    for (node, object) in names.objects() {
        let mut next = match object.kind {
            // It may be on the way to what was found, which does not tell of links.
            Some(FileKind::Symlink) => above(object),
            _ => Some(node).filter(|_| object.more.searched),
        };
        while let Some(directory) = next.filter(|&directory| searched.insert(directory)) {
            next = above(names.get(directory));
        }
    }
    searched
}

/// The directory that an object was in when the trace began.
fn above(object: &Object<AtStart>) -> Option<Node> {
    object.origin.as_ref().map(|(dir, _)| *dir)
}

/// Finds what refused a path, and takes the right from it.
fn refuse(names: &mut Tree<AtStart>, searched: &FxHashSet<Node>, path: &[u8], rights: u8) {
    let mut ahead = components(path).peekable();
    let mut dir = Node::ROOT;
    while let Some(name) = ahead.next() {
        let last = ahead.peek().is_none();
        let kind = if last { FileKind::File } else { FileKind::Directory };
        let walk = names.walk_making_from(dir, name, true, |names, dir, name, end| {
            let unseen =
                end && (!last || rights != 0) && names.get(dir).origin.is_some() && !names.is_absent(dir, name);
            unseen.then(|| names.imply(dir, name, Some(kind)))
        });
        let Walk::Found { node, .. } = walk else { return };
        let object = names.get_mut(node);
        if object.origin.is_none() {
            return;
        }
        match (last, object.kind) {
            (false, Some(FileKind::Directory) | None) if searched.contains(&node) => dir = node,
            (false, Some(FileKind::Directory) | None) => {
                object.kind = Some(FileKind::Directory);
                object.more.lacks |= SEARCH;
                return;
            }
            (true, Some(FileKind::File) | None) => {
                let shown = &mut object.more;
                let executed = if shown.executable == Some(true) { SEARCH } else { 0 };
                shown.lacks |= rights & !shown.opened & !executed;
                return;
            }
            _ => return,
        }
    }
}

/// The directories behind a closed one, and those that are closed.
pub(super) fn out_of_reach(names: &Tree<AtStart>) -> FxHashSet<Node> {
    let mut out = FxHashSet::default();
    // A directory is known before what is in it.
    for (node, object) in names.objects() {
        if object.more.lacks & SEARCH != 0 || above(object).is_some_and(|dir| out.contains(&dir)) {
            out.insert(node);
        }
    }
    out
}
