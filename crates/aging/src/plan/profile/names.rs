//! The names of a traced workload, by which its calls are understood: what was there, and what became of it.

use posix::FileKind;
use trace::Snapshot;
use trace::tree::{self, Node, Object, Tree};

/// A name in a directory.
pub(super) type Place = (Node, Box<[u8]>);

/// Where a path leads.
pub(super) enum Walk {
    Found(Node),
    /// The directory is there, the name in it is not.
    Missing(Node, Box<[u8]>),
    /// Into a file, around a loop of links, or into a directory that has been removed.
    Nowhere,
}

/// The tree, with where each object is: several places for hard links, none once it is gone. The first is the one that
/// is planned.
pub(super) struct Names {
    pub(super) tree: Tree<Vec<Place>>,
}

impl Names {
    pub(super) fn new(snapshot: &Snapshot) -> Names {
        let mut tree = Tree::<Vec<Place>>::default();
        let listed = tree.load(snapshot);
        let origins: Vec<_> = tree.objects().skip(1).map(|(node, object)| (node, object.origin.clone())).collect();
        for (node, origin) in origins {
            tree.get_mut(node).more.extend(origin);
        }
        for (entry, (dir, node)) in snapshot.entries.iter().zip(listed).filter_map(|(entry, at)| Some((entry, at?))) {
            let place = (dir, entry.name().into());
            let object = tree.get_mut(node);
            if node != Node::ROOT && object.origin.as_ref() != Some(&place) {
                object.more.push(place);
            }
        }
        Names { tree }
    }

    pub(super) fn get(&self, node: Node) -> &Object<Vec<Place>> {
        self.tree.get(node)
    }

    pub(super) fn get_mut(&mut self, node: Node) -> &mut Object<Vec<Place>> {
        self.tree.get_mut(node)
    }

    pub(super) fn is_kind(&self, node: Node, kind: FileKind) -> bool {
        self.get(node).kind == Some(kind)
    }

    /// A new object in a directory.
    pub(super) fn add(&mut self, dir: Node, name: &[u8], kind: FileKind, target: Option<&[u8]>) -> Node {
        let node = self.tree.add(Some(kind), target);
        self.get_mut(node).size_bytes = target.map_or(0, |target| target.len() as u64);
        self.attach(node, dir, name);
        node
    }

    /// A file that must have been there, though no snapshot shows it.
    pub(super) fn suppose(&mut self, dir: Node, name: &[u8], size_bytes: u64) -> Node {
        let node = self.tree.imply(dir, name, Some(FileKind::File));
        let object = self.get_mut(node);
        (object.size_bytes, object.initial_bytes) = (size_bytes, size_bytes);
        object.more.push((dir, name.into()));
        node
    }

    /// Gives an object a further name.
    pub(super) fn attach(&mut self, node: Node, dir: Node, name: &[u8]) {
        self.tree.attach(dir, name, node);
        self.get_mut(node).more.push((dir, name.into()));
    }

    /// Takes a name away; answers whether it was the planned one.
    pub(super) fn detach(&mut self, node: Node, dir: Node, name: &[u8]) -> bool {
        self.tree.detach(dir, name);
        self.tree.note_absent(dir, name);
        let places = &mut self.get_mut(node).more;
        let at = places.iter().position(|(d, n)| *d == dir && **n == *name);
        at.inspect(|at| drop(places.remove(*at))) == Some(0)
    }

    /// The directory of a path, made (as one that was there) with those above it where it is not known.
    pub(super) fn directory(&mut self, path: &[u8]) -> Option<Node> {
        match self.walk_implying(path, true, true) {
            tree::Walk::Found { node, .. } => Some(node).filter(|&node| self.tree.is_dir(node)),
            _ => None,
        }
    }

    /// Follows an absolute path. Directories on the way that are not known are made as in
    /// [`directory`](Names::directory).
    pub(super) fn walk(&mut self, path: &[u8], follow: bool) -> Walk {
        match self.walk_implying(path, follow, false) {
            // What a link of unknown target stands for at the end of a path is told by the link.
            tree::Walk::Found { node, .. } | tree::Walk::Unknown { link: node, last: true } => Walk::Found(node),
            tree::Walk::Missing { dir, name, last: true } => Walk::Missing(dir, (*name).into()),
            _ => Walk::Nowhere,
        }
    }

    /// Makes directories of which nothing is known; `whole`: what the path ends at is one too. What has lost its name
    /// is not there.
    fn walk_implying<'p>(&mut self, path: &'p [u8], follow: bool, whole: bool) -> tree::Walk<'p, Node> {
        self.tree.walk_making(path, follow, |tree, dir, name, last| {
            if (last && !whole) || tree.is_absent(dir, name) {
                return None;
            }
            let node = tree.imply_directory(dir, name);
            tree.get_mut(node).more.push((dir, name.into()));
            Some(node)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::SnapshotEntry;

    #[test]
    fn a_link_of_unknown_target_is_what_a_path_ends_at() {
        let snapshot = Snapshot::from_entries(vec![SnapshotEntry::implied(b"/l".to_vec(), FileKind::Symlink)]);
        let mut names = Names::new(&snapshot);
        assert!(matches!(names.walk(b"/l", true), Walk::Found(node) if names.is_kind(node, FileKind::Symlink)));
        assert!(matches!(names.walk(b"/l/f", true), Walk::Nowhere));
    }

    #[test]
    fn every_object_is_planned_somewhere() {
        let linked = |path: &[u8]| {
            let entry = SnapshotEntry::implied(path.to_vec(), FileKind::File);
            SnapshotEntry { nlink: 2, ino: 7, ..entry }
        };
        let names = Names::new(&Snapshot::from_entries(vec![linked(b"/d/a"), linked(b"/d/b")]));
        let places: Vec<_> = names.tree.objects().skip(1).map(|(_, object)| object.more.len()).collect();
        assert_eq!(places, [1, 2], "the directory, which nothing lists, and the file");
    }
}
