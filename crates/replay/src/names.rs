//! The tree of names while a trace is read: which object a path meant, and which of them were there at the start.
//!
//! Fed with the snapshot first and then with every call's effect in order, it answers what the rebuild must know: files
//! that the trace uses and the snapshot lacks, and through renames and links, which initial file a call touched.

use posix::FileKind;
use rustc_hash::FxHashMap;
use trace::tree::{self, What};

/// An object of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Node(u32);

/// What is known of an object.
#[derive(Debug)]
pub(super) struct Object {
    /// `None`: seen to exist, kind not yet known.
    pub kind: Option<FileKind>,
    /// Target of a symbolic link, where known.
    pub target: Option<Box<[u8]>>,
    /// Where it was when the trace began: its directory then, and its name there. `None`: made by the trace.
    pub origin: Option<(Node, Box<[u8]>)>,
    /// Whether it was inferred from the trace, not listed in the snapshot.
    pub reconstructed: bool,
    /// Length now.
    pub size_bytes: u64,
    /// Length when the trace began (a lower bound where reconstructed).
    pub initial_bytes: u64,
    /// Whether it could be executed when the trace began: what the trace's first word on that says, `None` where it says nothing.
    pub executable: Option<bool>,
    /// Bytes of an attribute that was there when the trace began, as the trace's first word on the file's attributes shows; `None` where
    /// it says nothing.
    pub attribute_bytes: Option<u64>,
    /// Whether the trace has set or removed an attribute, so that what it says from then on is not of the beginning.
    pub attribute_changed: bool,
    /// Whether the trace has changed its data.
    pub changed: bool,
    /// Whether its initial data must really be there: it is read, overwritten or freed.
    pub needs_data: bool,
    /// Names it has now.
    pub names: u32,
    /// The directory holding it (directories only).
    parent: Node,
    children: FxHashMap<Box<[u8]>, Option<Node>>,
}

/// Where a walk ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Walk<'p> {
    /// At an object: its directory, its name there, itself.
    Found { dir: Node, name: Vec<u8>, node: Node },
    /// At a name that is not there; `rest` are the components after it. `known` says that the trace itself showed or
    /// made it absent.
    Missing { dir: Node, name: Vec<u8>, rest: &'p [u8], known: bool },
    /// Through something that is not a directory, too many links, or a link whose target is unknown.
    Stuck,
}

/// The tree.
#[derive(Debug)]
pub(super) struct Names {
    objects: Vec<Object>,
}

impl Names {
    /// A tree of nothing but the root directory.
    pub fn new() -> Self {
        let mut names = Names { objects: Vec::new() };
        names.add(Some(FileKind::Directory), None);
        names.objects[0].origin = Some((Node(0), Box::default()));
        names
    }

    /// The root directory.
    pub fn root(&self) -> Node {
        Node(0)
    }

    /// What is known of an object.
    pub fn get(&self, node: Node) -> &Object {
        &self.objects[node.0 as usize]
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, node: Node) -> &mut Object {
        &mut self.objects[node.0 as usize]
    }

    /// Every object, in the order they became known.
    pub fn iter(&self) -> impl Iterator<Item = (Node, &Object)> {
        self.objects.iter().enumerate().map(|(i, o)| (Node(u32::try_from(i).unwrap_or(u32::MAX)), o))
    }

    /// A new object without a name.
    pub fn add(&mut self, kind: Option<FileKind>, target: Option<&[u8]>) -> Node {
        let node = Node(u32::try_from(self.objects.len()).expect("fewer than 2^32 files"));
        self.objects.push(Object {
            kind,
            target: target.map(Into::into),
            origin: None,
            reconstructed: false,
            size_bytes: 0,
            initial_bytes: 0,
            changed: false,
            executable: None,
            attribute_bytes: None,
            attribute_changed: false,
            needs_data: false,
            names: 0,
            parent: Node(0),
            children: FxHashMap::default(),
        });
        node
    }

    /// Gives an object a name.
    pub fn attach(&mut self, dir: Node, name: &[u8], node: Node) {
        self.get_mut(node).names += 1;
        if self.is_dir(node) || self.get(node).kind.is_none() {
            self.get_mut(node).parent = dir;
        }
        let dir = self.get_mut(dir);
        dir.kind.get_or_insert(FileKind::Directory);
        dir.children.insert(name.into(), Some(node));
    }

    /// Takes a name away, and remembers that it is gone.
    pub fn detach(&mut self, dir: Node, name: &[u8]) -> Option<Node> {
        let old = self.get_mut(dir).children.insert(name.into(), None).flatten();
        if let Some(node) = old {
            let object = self.get_mut(node);
            object.names = object.names.saturating_sub(1);
        }
        old
    }

    /// Remembers that a name was looked for and not there.
    pub fn note_absent(&mut self, dir: Node, name: &[u8]) {
        self.get_mut(dir).children.entry(name.into()).or_insert(None);
    }

    /// Whether an object can hold names.
    pub fn is_dir(&self, node: Node) -> bool {
        self.get(node).kind == Some(FileKind::Directory)
    }

    /// Walks a path from a directory; an absolute path from the root.
    pub fn walk<'p>(&self, from: Node, path: &'p [u8], follow: bool) -> Walk<'p> {
        match tree::walk(&mut &*self, from, path, follow) {
            tree::Walk::Found { dir, name, node } => Walk::Found { dir, name: name.into_owned(), node },
            tree::Walk::Missing { dir, name, rest: Some(rest) } => {
                let known = self.get(dir).children.contains_key(&*name);
                Walk::Missing { dir, name: name.into_owned(), rest, known }
            }
            // What was to follow is partly of a link.
            tree::Walk::Missing { rest: None, .. } => Walk::Stuck,
            tree::Walk::NotDirectory | tree::Walk::Unknown { .. } | tree::Walk::Loop => Walk::Stuck,
        }
    }
}

impl tree::Names for &Names {
    type Node = Node;

    fn root(&self) -> Node {
        Names::root(self)
    }

    fn parent(&self, directory: Node) -> Node {
        self.get(directory).parent
    }

    fn child(&mut self, directory: Node, name: &[u8], _last: bool) -> Option<Node> {
        self.get(directory).children.get(name).copied().flatten()
    }

    fn what(&self, node: Node) -> What<'_> {
        let object = self.get(node);
        match object.kind {
            // A kind not yet known becomes a directory once something is looked up in it; a walk only reads.
            Some(FileKind::Directory) | None => What::Directory,
            Some(FileKind::Symlink) => What::Link(object.target.as_deref()),
            Some(FileKind::File | FileKind::Special) => What::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (Names, Node, Node) {
        let mut n = Names::new();
        let root = n.root();
        let a = n.add(Some(FileKind::Directory), None);
        n.attach(root, b"a", a);
        let f = n.add(Some(FileKind::File), None);
        n.attach(a, b"f", f);
        let l = n.add(Some(FileKind::Symlink), Some(b"/a/f"));
        n.attach(a, b"l", l);
        let up = n.add(Some(FileKind::Symlink), Some(b"../a"));
        n.attach(a, b"up", up);
        (n, a, f)
    }

    fn found(w: Walk<'_>) -> Option<Node> {
        match w {
            Walk::Found { node, .. } => Some(node),
            _ => None,
        }
    }

    #[test]
    fn walks_through_links_and_dot_dot() {
        let (n, a, f) = tree();
        assert_eq!(found(n.walk(a, b"/a/../a/./f", true)), Some(f));
        assert_eq!(found(n.walk(a, b"l", true)), Some(f));
        assert_ne!(found(n.walk(a, b"l", false)), Some(f));
        assert_eq!(found(n.walk(a, b"up/up/f", true)), Some(f));
        assert_eq!(found(n.walk(a, b"up", true)), Some(a));
        assert_eq!(n.walk(a, b"f/x", true), Walk::Stuck);
        assert_eq!(found(n.walk(a, b"/..//../a", true)), Some(a), "`..` at the root stays there");
    }

    #[test]
    fn tells_absent_from_unknown() {
        let (mut n, a, _) = tree();
        assert!(matches!(n.walk(a, b"/a/new", true), Walk::Missing { known: false, .. }));
        n.detach(a, b"f");
        assert!(matches!(n.walk(a, b"/a/f", true), Walk::Missing { known: true, .. }));
        n.note_absent(a, b"q");
        assert!(matches!(n.walk(a, b"q", true), Walk::Missing { known: true, .. }));
    }

    #[test]
    fn a_renamed_directory_keeps_its_origin() {
        let mut n = Names::new();
        let root = n.root();
        let d = n.add(Some(FileKind::Directory), None);
        n.get_mut(d).origin = Some((root, b"d"[..].into()));
        n.attach(root, b"d", d);
        let f = n.add(Some(FileKind::File), None);
        n.get_mut(f).origin = Some((d, b"f"[..].into()));
        n.attach(d, b"f", f);
        n.detach(root, b"d");
        n.attach(root, b"e", d);
        let Walk::Found { node, .. } = n.walk(root, b"/e/f", true) else { panic!("found by its new path") };
        assert_eq!(n.get(node).origin, Some((d, b"f"[..].into())));
        assert_eq!(n.get(d).origin, Some((root, b"d"[..].into())));
    }

    #[test]
    fn a_link_cycle_ends() {
        let mut n = Names::new();
        let root = n.root();
        let l = n.add(Some(FileKind::Symlink), Some(b"l"));
        n.attach(root, b"l", l);
        assert_eq!(n.walk(root, b"/l", true), Walk::Stuck);
    }

    #[test]
    fn a_path_through_a_link_to_nothing_is_missing_where_the_link_leads() {
        let mut n = Names::new();
        let root = n.root();
        let l = n.add(Some(FileKind::Symlink), Some(b"new"));
        n.attach(root, b"l", l);
        let missing = Walk::Missing { dir: root, name: b"new".to_vec(), rest: b"/b", known: false };
        assert_eq!(n.walk(root, b"/l/b", true), missing);
    }

    #[test]
    fn a_file_with_a_slash_after_it_is_no_directory() {
        let (n, a, _) = tree();
        assert_eq!(n.walk(a, b"f/", true), Walk::Stuck);
    }
}
