//! The tree of names while a trace is read: which object a path meant, and which of them were there at the start.
//!
//! Fed with the snapshot first and then with every call's effect in order, it answers what the rebuild must know: files
//! that the trace uses and the snapshot lacks, and through renames and links, which initial file a call touched.

use posix::FileKind;
use rustc_hash::FxHashMap;

/// Symbolic links followed before giving up, as the kernel does (`MAXSYMLINKS`).
const MAX_LINKS: u32 = 40;

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
        let mut budget = MAX_LINKS;
        self.walk_budgeted(from, path, follow, &mut budget)
    }

    fn walk_budgeted<'p>(&self, from: Node, path: &'p [u8], follow: bool, budget: &mut u32) -> Walk<'p> {
        let mut dir = if path.first() == Some(&b'/') { self.root() } else { from };
        let (mut holder, mut name) = (dir, Vec::new());
        let mut node = dir;
        let mut rest = path;
        while let Some((component, after)) = next_component(rest) {
            rest = after;
            // A kind not yet known becomes a directory once something is looked up in it; a walk only reads.
            match self.get(node).kind {
                Some(FileKind::Directory) | None => dir = node,
                Some(_) => return Walk::Stuck,
            }
            match component {
                b"." => continue,
                b".." => {
                    node = self.get(dir).parent;
                    (holder, name) = (self.get(node).parent, Vec::new());
                    continue;
                }
                _ => {}
            }
            match self.get(dir).children.get(component) {
                Some(Some(child)) => {
                    node = *child;
                    (holder, name) = (dir, component.to_vec());
                }
                other => {
                    return Walk::Missing { dir, name: component.to_vec(), rest, known: other.is_some() };
                }
            }
            let last = next_component(rest).is_none();
            // A trailing slash follows a link as well.
            if self.get(node).kind == Some(FileKind::Symlink) && (!last || follow || rest.first() == Some(&b'/')) {
                let Some(target) = &self.get(node).target else { return Walk::Stuck };
                if *budget == 0 {
                    return Walk::Stuck;
                }
                *budget -= 1;
                match self.walk_budgeted(dir, target, true, budget) {
                    Walk::Found { dir: d, name: n, node: found } => (holder, name, node) = (d, n, found),
                    // The missing name lies on the link's own path; what was to follow cannot be said in one slice.
                    Walk::Missing { dir, name, rest: inner, known } if last && next_component(inner).is_none() => {
                        return Walk::Missing { dir, name, rest: b"", known };
                    }
                    _ => return Walk::Stuck,
                }
            }
        }
        Walk::Found { dir: holder, name, node }
    }
}

/// The first component of a path and what follows it; `None` where only slashes are left.
pub(super) fn next_component(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = path.iter().position(|&b| b != b'/')?;
    let path = &path[start..];
    let end = path.iter().position(|&b| b == b'/').unwrap_or(path.len());
    Some(path.split_at(end))
}

/// The components of a path, `.` and `..` included.
pub(super) fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = path;
    std::iter::from_fn(move || {
        let (component, after) = next_component(rest)?;
        rest = after;
        Some(component)
    })
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
}
