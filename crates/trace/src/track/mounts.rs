//! Bind mounts: directories that stand in the place of others.
//!
//! The tree of names knows nothing of them. A path that crosses one is translated when it comes in, to the path by
//! which the tree, and so every reader of the trace, knows the file.
//!
//! As in the kernel, a place is a mount and an entry in it: the same directory is covered where it is seen through one
//! mount and not where it is seen through another. Mounts of other file systems change no path: their names stand in
//! the tree beside those that they cover. What the kernel does with mounts by itself (propagation to peers) is not
//! followed.

use super::names::{File, Names, Node};
use posix::LINKS_MAX;
use rustc_hash::{FxHashMap, FxHashSet};
use slotmap::{Key as _, SlotMap, new_key_type};

new_key_type! {
    /// A mount; the null key is what is mounted at the root.
    pub(super) struct Mount;
}

/// An entry as it is seen through a mount; by default, none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pub mount: Mount,
    pub node: Node,
}

/// So many mounts may be unmounted before it is looked who is still in them.
const DETACHED_MIN: usize = 64;

/// One mount.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// What it covers; `None` once it is unmounted: those in it stay there.
    point: Option<Spot>,
    /// What is seen there: its name, and the file itself, which counts as open while it is mounted. Of another file
    /// system, what it covers stands for its root.
    top: Node,
    file: File,
}

/// What a path across mounts means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Translated {
    /// The path without mounts; `None` if it crosses none.
    pub path: Option<Vec<u8>>,
    /// The same where a symbolic link at its end is followed, if only that crosses one; empty if that is not known.
    pub followed: Option<Vec<u8>>,
    /// Through which mount the end is seen, links followed.
    pub mount: Mount,
    /// It leads across a mount to what has no name any more, or to nothing that is known.
    pub unknown: bool,
    /// The first of these; where `followed` is not `None`, only if that is followed.
    pub nameless: Option<(Spot, File)>,
}

/// How a path is translated.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// What is mounted on its last component is meant, not what that covers.
    pub enter: bool,
    /// The call showed that every directory on the way exists.
    pub exists: bool,
}

/// The bind mounts of one mount namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct Mounts {
    all: SlotMap<Mount, Bound>,
    over: FxHashMap<Spot, Mount>,
    /// Those unmounted: somebody may still be in them.
    detached: Vec<Mount>,
    /// How many of them somebody was in when it was last looked.
    occupied: usize,
}

/// Who walks: where their root directory is, and whether they found every directory on the way.
#[derive(Clone, Copy, Debug)]
struct Walker {
    root: Spot,
    exists: bool,
}

/// Where a walk got to.
enum Step {
    At(Spot),
    /// A name that is not known, in which directory; `None` where more was to follow, and for a link whose target is
    /// not known.
    Lost(Option<Vec<u8>>),
    /// What is mounted there has no name any more.
    Nameless(Spot),
}

impl Mounts {
    /// Whether nothing is or was mounted.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The tree's root directory. What is mounted on it is not seen by those who have it for their root.
    pub fn root(names: &Names) -> Spot {
        Spot { mount: Mount::null(), node: names.root() }
    }

    /// Where a file is that is mounted, if this mount is of it.
    pub fn seen_at(&self, mount: Mount, file: File) -> Option<Spot> {
        self.all.get(mount).filter(|bound| bound.file == file).map(|bound| Spot { mount, node: bound.top })
    }

    /// What is seen in this place: what covers it, if anything does. It may have no name any more.
    fn enter(&self, spot: Spot) -> Spot {
        let mut at = spot;
        while let Some(&mount) = self.over.get(&at) {
            at = Spot { mount, node: self.all[mount].top };
        }
        at
    }

    /// The directory above, and whether that leads out of a mount, or is kept from leading out of the root.
    fn up(&self, names: &Names, root: Spot, spot: Spot) -> (Spot, bool) {
        let (mut at, mut left) = (spot, false);
        // Nothing is above the root, nor above what is mounted nowhere: one stays, but for what is mounted there.
        let stay = || {
            let stayed = self.enter(spot);
            (stayed, stayed.node != names.root())
        };
        loop {
            if at == root {
                return stay();
            }
            let Some(bound) = self.all.get(at.mount).filter(|bound| bound.top == at.node) else { break };
            match bound.point {
                Some(point) if names.is_live(point.node) => (at, left) = (point, left || point.node != at.node),
                _ => return stay(),
            }
        }
        let parent = Spot { node: names.parent_of(at.node), ..at };
        let above = self.enter(parent);
        (above, left || above.node != parent.node)
    }

    /// Walks a path with all links, and notes whether it crosses a mount.
    fn walk(&self, names: &Names, by: Walker, start: Spot, path: &[u8], links: &mut u32, crossed: &mut bool) -> Step {
        let mut at = start;
        if path.first() == Some(&b'/') {
            at = by.root;
            *crossed |= at.node != names.root();
        }
        let end = path.iter().rposition(|&b| b != b'/').map_or(0, |last| last + 1);
        let mut left = path[..end].split(|&b| b == b'/').peekable();
        while let Some(name) = left.next() {
            at = match self.step(names, by, at, name, links, crossed) {
                Step::At(spot) | Step::Nameless(spot) => spot,
                // What follows is there, in directories that are not known so far, where nothing is mounted.
                Step::Lost(Some(known)) if by.exists && left.peek().is_some() => {
                    let rest = left.flat_map(|name| [b"/", name].concat());
                    return Step::Lost(Some(known.into_iter().chain(rest).collect()));
                }
                Step::Lost(_) if left.peek().is_some() => return Step::Lost(None),
                lost => return lost,
            };
        }
        if names.is_live(at.node) { Step::At(at) } else { Step::Nameless(at) }
    }

    /// One component of a path, a link followed.
    fn step(&self, names: &Names, by: Walker, at: Spot, name: &[u8], links: &mut u32, crossed: &mut bool) -> Step {
        let (next, crosses) = match name {
            b"" | b"." => (at, false),
            b".." => self.up(names, by.root, at),
            _ if !names.is_live(at.node) => return Step::Lost(None),
            _ => match names.child(at.node, name) {
                None => return Step::Lost(Some([&names.path_of(at.node)[..], b"/", name].concat())),
                Some(node) if names.is_link(node) => {
                    *links += 1;
                    // What a tracer showed of where it leads begins at the tree's root.
                    let by = if names.is_guessed(node) { Walker { root: Mounts::root(names), ..by } } else { by };
                    return match names.target(node) {
                        Some(target) if *links <= LINKS_MAX => self.walk(names, by, at, target, links, crossed),
                        _ => Step::Lost(None),
                    };
                }
                Some(node) => {
                    let covered = Spot { node, ..at };
                    let seen = self.enter(covered);
                    (seen, seen.node != covered.node)
                }
            },
        };
        *crossed |= crosses;
        if names.is_live(next.node) { Step::At(next) } else { Step::Nameless(next) }
    }

    /// Translates a path that starts in a place, as somebody sees it whose root directory is `root`.
    pub fn translate(&self, names: &Names, root: Spot, start: Spot, path: &[u8], how: How) -> Translated {
        let How { enter, exists } = how;
        let by = Walker { root, exists };
        let mut translated = Translated { mount: start.mount, ..Translated::default() };
        let (mut at, mut links) = (start, 0);
        // The path so far is that of `anchor`, and what of the text follows it.
        let (mut anchor, mut since, mut crossed) = (start.node, 0, false);
        if path.first() == Some(&b'/') {
            at = root;
            (anchor, crossed) = (at.node, at.node != names.root());
        }
        // How deep the walk is in directories that are not known, where nothing is mounted.
        let mut unknown_depth = 0;
        let mut end = 0;
        while end < path.len() {
            let begin = end + path[end..].iter().take_while(|&&b| b == b'/').count();
            end = begin + memchr::memchr(b'/', &path[begin..]).unwrap_or(path.len() - begin);
            let name = &path[begin..end];
            let last = path[end..].iter().all(|&b| b == b'/');
            if unknown_depth > 0 {
                match name {
                    b"" | b"." => {}
                    b".." => unknown_depth -= 1,
                    _ => unknown_depth += 1,
                }
                continue;
            }
            let node = names.is_live(at.node).then(|| names.child(at.node, name)).flatten();
            let is_link = node.is_some_and(|node| names.is_link(node));
            if last && !matches!(name, b"" | b"." | b"..") {
                // Behind a slash, even a link that nobody follows is.
                if is_link && end == path.len() {
                    let mut crosses = false;
                    match self.step(names, by, at, name, &mut links, &mut crosses) {
                        Step::At(spot) => {
                            translated.mount = spot.mount;
                            translated.followed = crosses.then(|| names.path_of(spot.node));
                        }
                        Step::Lost(missing) if crosses => translated.followed = Some(missing.unwrap_or_default()),
                        Step::Lost(_) => {}
                        Step::Nameless(spot) => {
                            (translated.followed, translated.mount) = (Some(Vec::new()), spot.mount);
                            translated.nameless = Some((spot, self.all[spot.mount].file));
                        }
                    }
                    break;
                }
                if !enter && !is_link {
                    translated.mount = at.mount;
                    break;
                }
            }
            let mut crosses = false;
            match self.step(names, by, at, name, &mut links, &mut crosses) {
                // Not known so far, but there: `..` leads back.
                Step::Lost(Some(_)) if exists && node.is_none() && names.is_live(at.node) && !last => unknown_depth = 1,
                Step::Lost(_) => {
                    translated.unknown = crosses || !names.is_live(anchor);
                    break;
                }
                // From there, `..` leads on.
                Step::At(spot) | Step::Nameless(spot) => at = spot,
            }
            translated.mount = at.mount;
            if crosses {
                (anchor, since, crossed) = (at.node, end, true);
            }
        }
        if !translated.unknown && !names.is_live(at.node) {
            translated.unknown = true;
            translated.nameless = self.all.get(at.mount).map(|bound| (at, bound.file));
        }
        if crossed && !translated.unknown && names.is_live(anchor) {
            let mut text = names.path_of(anchor);
            let rest = &path[since..];
            if !rest.is_empty() && rest.first() != Some(&b'/') {
                text.push(b'/');
            }
            if text == b"/" && rest.first() == Some(&b'/') {
                text.clear();
            }
            text.extend_from_slice(rest);
            translated.path = Some(text);
        }
        translated
    }

    /// The path by which the kernel shows a place.
    pub fn shown(&self, names: &Names, spot: Spot) -> Vec<u8> {
        let mut shown = Vec::new();
        let mut at = spot;
        loop {
            if let Some(bound) = self.all.get(at.mount).filter(|bound| bound.top == at.node) {
                match bound.point {
                    Some(point) => at = point,
                    None => break,
                }
            } else if at.node == names.root() || !names.is_live(at.node) {
                break;
            } else {
                shown.splice(0..0, [b"/", names.name(at.node)].concat());
                at.node = names.parent_of(at.node);
            }
        }
        if shown.is_empty() { b"/".to_vec() } else { shown }
    }

    /// A copy for another namespace.
    pub fn copy(&self, names: &mut Names) -> Mounts {
        let copy = self.clone();
        for bound in copy.all.values().filter(|bound| bound.point.is_some()) {
            names.opened(bound.file);
        }
        copy
    }

    /// Mounts what is seen in one place on another, where one may stand that is covered; `below`: with what is mounted
    /// below it.
    pub fn bind(&mut self, names: &mut Names, from: Spot, to: Spot, below: bool) {
        let to = self.enter(to);
        let seen = self.all.get(from.mount).filter(|bound| bound.top == from.node);
        let file = seen.map_or_else(|| names.file_of(from.node), |bound| bound.file);
        let mount = self.insert(names, Bound { point: Some(to), top: from.node, file });
        if below {
            self.clone().copy_below(names, from, mount, self);
        }
        self.over.insert(to, mount);
    }

    /// Mounts another file system on a place.
    pub fn cover(&mut self, names: &mut Names, to: Spot) {
        let to = self.enter(to);
        self.bind(names, to, to, false);
    }

    /// Nobody is in this namespace any more.
    pub fn clear(&mut self, names: &mut Names) {
        for bound in self.all.values().filter(|bound| bound.point.is_some()) {
            names.closed(bound.file);
        }
        *self = Mounts::default();
    }

    fn insert(&mut self, names: &mut Names, bound: Bound) -> Mount {
        names.opened(bound.file);
        self.all.insert(bound)
    }

    /// Copies what is mounted below a place into a mount of the same.
    fn copy_below(&self, names: &mut Names, from: Spot, into: Mount, new: &mut Mounts) {
        for (&point, &mount) in &self.over {
            if point.mount == from.mount && names.is_live(point.node) && names.is_below(point.node, from.node) {
                let Bound { top, file, .. } = self.all[mount];
                let point = Spot { mount: into, ..point };
                let copy = new.insert(names, Bound { point: Some(point), top, file });
                new.over.insert(point, copy);
                if names.is_live(top) {
                    self.copy_below(names, Spot { mount, node: top }, copy, new);
                }
            }
        }
    }

    /// Moves a mount, of which the top is seen in a place.
    pub fn move_to(&mut self, from: Spot, to: Spot) {
        let to = self.enter(to);
        let Some(bound) = self.all.get_mut(from.mount).filter(|bound| bound.top == from.node) else { return };
        if let Some(point) = bound.point.replace(to) {
            self.over.remove(&point);
        }
        self.over.insert(to, from.mount);
    }

    /// Unmounts what is seen in a place, and what is mounted in it.
    pub fn unmount(&mut self, names: &mut Names, from: Spot) {
        let from = self.enter(from);
        if self.all.get(from.mount).is_none_or(|bound| bound.top != from.node) {
            return;
        }
        let mut doomed = vec![from.mount];
        while let Some(mount) = doomed.pop() {
            if let Some(point) = self.all[mount].point.take() {
                self.over.remove(&point);
                names.closed(self.all[mount].file);
                self.detached.push(mount);
            }
            doomed.extend(self.over.iter().filter(|(point, _)| point.mount == mount).map(|(_, &above)| above));
        }
    }

    /// Whether so many are unmounted that those nobody is in are to be [forgotten](Self::forget_all_but).
    pub fn is_crowded(&self) -> bool {
        self.detached.len() > DETACHED_MIN.max(2 * self.occupied)
    }

    /// Forgets those unmounted but for these, which somebody is in.
    pub fn forget_all_but(&mut self, occupied: &FxHashSet<Mount>) {
        self.detached.retain(|mount| occupied.contains(mount) || self.all.remove(*mount).is_none());
        self.occupied = self.detached.len();
    }
}
