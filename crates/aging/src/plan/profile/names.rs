//! The names of a traced workload, by which its calls are understood: what was there, and what became of it.

use posix::FileKind;
use rustc_hash::FxHashMap;
use trace::Snapshot;
use trace::profile::IMPLIED_DIRECTORIES_MAX;
use trace::tree::{self, What};

/// Index of a node.
pub(super) type Id = u32;

/// The root directory `/`.
pub(super) const ROOT: Id = 0;

pub(super) struct Node {
    pub(super) kind: FileKind,
    /// Where it is; several for hard links, none once it is gone. The first is the one that is planned.
    pub(super) places: Vec<(Id, Box<[u8]>)>,
    children: FxHashMap<Box<[u8]>, Id>,
    target: Option<Box<[u8]>>,
    pub(super) size_bytes: u64,
    /// Where it was, and how long, when the trace began; `None` for what the trace made.
    pub(super) initial: Option<(Id, Box<[u8]>, u64)>,
}

/// Where a path leads.
pub(super) enum Walk {
    Found(Id),
    /// The directory is there, the name in it is not.
    Missing(Id, Box<[u8]>),
    /// Into a file, or around a loop of links.
    Nowhere,
}

pub(super) struct Names {
    pub(super) nodes: Vec<Node>,
    /// Directories that nothing but names deeper in them told of.
    pub(super) implied_directories: usize,
}

impl Names {
    pub(super) fn new(snapshot: &Snapshot) -> Names {
        let root = Node {
            kind: FileKind::Directory,
            places: Vec::new(),
            children: FxHashMap::default(),
            target: None,
            size_bytes: 0,
            initial: None,
        };
        let mut names = Names { nodes: vec![root], implied_directories: 0 };
        let mut inodes: FxHashMap<(u64, u64), Id> = FxHashMap::default();
        for entry in &snapshot.entries {
            if names.is_too_deep() {
                break;
            }
            let Some(parent) = entry.parent() else { continue };
            let Some(dir) = names.directory(parent) else { continue };
            let linked = entry.nlink > 1 && entry.ino != 0 && entry.kind != FileKind::Directory;
            if let Some(&id) = inodes.get(&(entry.dev, entry.ino)).filter(|_| linked) {
                names.attach(id, dir, entry.name());
                continue;
            }
            if names.child(dir, entry.name()).is_some() {
                continue;
            }
            let size_bytes = if entry.kind == FileKind::Directory { 0 } else { entry.size_bytes };
            let id = names.add(dir, entry.name(), entry.kind, size_bytes);
            names.nodes[id as usize].target = entry.target.as_deref().map(Into::into);
            names.nodes[id as usize].initial = Some((dir, entry.name().into(), size_bytes));
            if linked {
                inodes.insert((entry.dev, entry.ino), id);
            }
        }
        names
    }

    pub(super) fn get(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Node> {
        self.nodes.get_mut(id as usize)
    }

    pub(super) fn child(&self, dir: Id, name: &[u8]) -> Option<Id> {
        self.get(dir)?.children.get(name).copied()
    }

    /// A new node in a directory.
    pub(super) fn add(&mut self, dir: Id, name: &[u8], kind: FileKind, size_bytes: u64) -> Id {
        let id = Id::try_from(self.nodes.len()).unwrap_or(Id::MAX);
        let node =
            Node { kind, places: Vec::new(), children: FxHashMap::default(), target: None, size_bytes, initial: None };
        self.nodes.push(node);
        self.attach(id, dir, name);
        id
    }

    /// One that was there when the trace began, though no snapshot shows it.
    pub(super) fn add_initial(&mut self, dir: Id, name: &[u8], kind: FileKind, size_bytes: u64) -> Id {
        let id = self.add(dir, name, kind, size_bytes);
        self.nodes[id as usize].initial = Some((dir, name.into(), size_bytes));
        id
    }

    pub(super) fn add_symlink(&mut self, dir: Id, name: &[u8], target: &[u8]) -> Id {
        let id = self.add(dir, name, FileKind::Symlink, target.len() as u64);
        self.nodes[id as usize].target = Some(target.into());
        id
    }

    /// Gives a node a further name.
    pub(super) fn attach(&mut self, id: Id, dir: Id, name: &[u8]) {
        if let Some(parent) = self.get_mut(dir) {
            parent.children.insert(name.into(), id);
        }
        if let Some(node) = self.get_mut(id) {
            node.places.push((dir, name.into()));
        }
    }

    /// Takes a name away; answers whether it was the planned one.
    pub(super) fn detach(&mut self, id: Id, dir: Id, name: &[u8]) -> bool {
        if let Some(parent) = self.get_mut(dir) {
            parent.children.remove(name);
        }
        let Some(node) = self.get_mut(id) else { return false };
        let at = node.places.iter().position(|(d, n)| *d == dir && **n == *name);
        at.inspect(|at| drop(node.places.remove(*at))) == Some(0)
    }

    pub(super) fn is_empty_directory(&self, id: Id) -> bool {
        self.get(id).is_some_and(|n| n.children.is_empty())
    }

    /// Whether a directory is another, or in it.
    pub(super) fn is_within(&self, mut id: Id, above: Id) -> bool {
        for _ in 0..self.nodes.len() {
            if id == above {
                return true;
            }
            match self.get(id).and_then(|n| n.places.first()) {
                Some((parent, _)) => id = *parent,
                None => return false,
            }
        }
        false
    }

    /// The directory of a path, made (as one that was there) with those above it where it is not known.
    pub(super) fn directory(&mut self, path: &[u8]) -> Option<Id> {
        match tree::walk(&mut Known { names: self, made: true }, ROOT, path, true) {
            tree::Walk::Found { node, .. } => self.get(node).filter(|n| n.kind == FileKind::Directory).map(|_| node),
            _ => None,
        }
    }

    /// Whether the recording tells of more directories than any file system has, by nothing but the depth of its paths.
    pub(super) fn is_too_deep(&self) -> bool {
        self.implied_directories > IMPLIED_DIRECTORIES_MAX
    }

    /// Follows an absolute path. A directory on the way that is not known is where the walk stops: [`Walk::Missing`] names it.
    pub(super) fn walk(&mut self, path: &[u8], follow: bool) -> Walk {
        match tree::walk(&mut Known { names: self, made: false }, ROOT, path, follow) {
            // What a link of unknown target stands for at the end of a path is told by the link.
            tree::Walk::Found { node, .. } | tree::Walk::Unknown { link: node, last: true } => Walk::Found(node),
            tree::Walk::Missing { dir, name, .. } => Walk::Missing(dir, (*name).into()),
            tree::Walk::NotDirectory | tree::Walk::Unknown { .. } | tree::Walk::Loop => Walk::Nowhere,
        }
    }
}

/// The names as a walk finds them.
struct Known<'n> {
    names: &'n mut Names,
    /// Whether a name that is not known is made: a directory that was there.
    made: bool,
}

impl tree::Names for Known<'_> {
    type Node = Id;

    fn root(&self) -> Id {
        ROOT
    }

    fn parent(&self, directory: Id) -> Id {
        self.names.get(directory).and_then(|n| n.places.first()).map_or(ROOT, |(parent, _)| *parent)
    }

    fn child(&mut self, directory: Id, name: &[u8], _last: bool) -> Option<Id> {
        let known = self.names.child(directory, name);
        if known.is_none() && self.made {
            self.names.implied_directories += 1;
            return Some(self.names.add_initial(directory, name, FileKind::Directory, 0));
        }
        known
    }

    fn what(&self, node: Id) -> What<'_> {
        match self.names.get(node) {
            Some(Node { kind: FileKind::Directory, .. }) => What::Directory,
            Some(Node { kind: FileKind::Symlink, target, .. }) => What::Link(target.as_deref()),
            Some(Node { kind: FileKind::File | FileKind::Special, .. }) | None => What::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_up_from_a_file_leads_nowhere() {
        let mut names = Names::new(&Snapshot::default());
        let dir = names.directory(b"/d").expect("made");
        let file = names.add(dir, b"f", FileKind::File, 0);
        assert!(matches!(names.walk(b"/d/f", true), Walk::Found(id) if id == file));
        for path in [&b"/d/f/.."[..], b"/d/f/.", b"/d/f/"] {
            assert!(matches!(names.walk(path, true), Walk::Nowhere), "a file holds no names");
        }
    }

    #[test]
    fn a_link_with_a_slash_after_it_is_followed() {
        let mut names = Names::new(&Snapshot::default());
        let dir = names.directory(b"/d").expect("made");
        let link = names.add_symlink(ROOT, b"l", b"d");
        assert!(matches!(names.walk(b"/l/", false), Walk::Found(id) if id == dir));
        assert!(matches!(names.walk(b"/l", false), Walk::Found(id) if id == link));
    }

    #[test]
    fn directories_are_made_through_a_link_that_leads_to_none() {
        let mut names = Names::new(&Snapshot::default());
        names.add_symlink(ROOT, b"l", b"a/b");
        let made = names.directory(b"/l/c").expect("made");
        assert!(matches!(names.walk(b"/a/b/c", true), Walk::Found(id) if id == made));
        assert_eq!(names.implied_directories, 3);
    }
}
