//! Names as a trace tells of them: the walk of a path, written once for every model of them, and the tree that most
//! models are.
//!
//! `.` and `..`, symbolic links and their number, and slashes at the end are as `path_resolution(7)` has them. What a
//! name leads to, and whether one that is not known is taken to be there, is the model's ([`Names`]). Two models keep
//! their names themselves: the importer's, which follows identities, and the predictor's, whose names are numbers.
//! Those of replay and of plans are a [`Tree`]. Other walks are other things: that of mounts turns one path into
//! another, and a snapshot's opens what it meets.

use crate::profile::IMPLIED_DIRECTORIES_MAX;
use crate::{Provenance, Snapshot};
use posix::{FileKind, LINKS_MAX};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

/// What a walk asks a model.
pub trait Names {
    /// What a name leads to.
    type Node: Copy;

    /// The root directory.
    fn root(&self) -> Self::Node;

    /// The directory that a directory is in; the root is in itself.
    fn up(&mut self, directory: Self::Node) -> Self::Node;

    /// What a name in a directory leads to. A model that believes in what it does not know makes it here; `last`: it
    /// ends the path.
    fn child(&mut self, directory: Self::Node, name: &[u8], last: bool) -> Option<Self::Node>;

    /// What a node is to a walk.
    fn what(&self, node: Self::Node) -> What<'_>;

    /// Whether a node is a directory all the same, since names are looked up in it.
    fn believe(&mut self, _node: Self::Node) -> bool {
        false
    }

    /// Where a link in a directory leads on from.
    fn follow(&mut self, directory: Self::Node, absolute: bool) -> Self::Node {
        if absolute { self.root() } else { directory }
    }
}

/// What a node is to a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'t> {
    /// Names are looked up in it: a directory, or what may be one.
    Directory,
    /// A symbolic link, with its target where that is known.
    Link(Option<&'t [u8]>),
    /// Neither.
    Other,
}

/// Where a walk ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walk<'p, N> {
    /// At a node.
    Found {
        /// The directory that its name is in, and the name; `None` where the path ends in none (`/`, `..`).
        place: Option<(N, Cow<'p, [u8]>)>,
        /// Itself.
        node: N,
    },
    /// At a name that is not there (`ENOENT`).
    Missing {
        /// The directory that it was looked up in.
        dir: N,
        /// The name.
        name: Cow<'p, [u8]>,
        /// Whether it ends the path.
        last: bool,
    },
    /// At something that is no directory, and a slash or a component after it (`ENOTDIR`).
    NotDirectory,
    /// At a link whose target is not known; `last`: it ends the path.
    Unknown {
        /// The link.
        link: N,
        /// Whether nothing follows it.
        last: bool,
    },
    /// At one link too many (`ELOOP`), or one whose target is longer than a link's can be.
    Loop,
}

/// The longest target of a link, bytes (`PATH_MAX` less the zero at its end).
const TARGET_BYTES_MAX: usize = 4095;

/// Walks a path from a directory, an absolute one from the root. `follow`: a link at its end is followed, as one with a
/// slash after it always is (but by calls that make or remove a name, which see the link itself).
pub fn walk<'p, T: Names>(names: &mut T, from: T::Node, path: &'p [u8], follow: bool) -> Walk<'p, T::Node> {
    let mut node = if path.first() == Some(&b'/') { names.root() } else { from };
    // The path, or the target of a link and what follows it.
    let mut text = Cow::Borrowed(path);
    let (mut at, mut place, mut links) = (0, None, 0);
    let mut is_directory = names.what(node) == What::Directory;
    while let Some(component) = next_component(&text, at) {
        if !is_directory && !names.believe(node) {
            return Walk::NotDirectory;
        }
        is_directory = true;
        let (name, after) = (&text[component.clone()], &text[component.end..]);
        at = component.end;
        match name {
            b"." => continue,
            b".." => {
                (node, place) = (names.up(node), None);
                continue;
            }
            _ => {}
        }
        let last = after.iter().all(|&b| b == b'/');
        let Some(child) = names.child(node, name, last) else {
            return Walk::Missing { dir: node, name: cut(text, component), last };
        };
        match names.what(child) {
            What::Link(target) if !last || follow || !after.is_empty() => {
                let Some(target) = target else { return Walk::Unknown { link: child, last } };
                links += 1;
                if links > LINKS_MAX || target.len() > TARGET_BYTES_MAX {
                    return Walk::Loop;
                }
                let absolute = target.first() == Some(&b'/');
                text = Cow::Owned([target, after].concat());
                (node, at, place) = (names.follow(node, absolute), 0, None);
            }
            what => {
                is_directory = what == What::Directory;
                (node, place) = (child, Some((node, component)));
            }
        }
    }
    if !is_directory && text.ends_with(b"/") && !names.believe(node) {
        return Walk::NotDirectory;
    }
    Walk::Found { place: place.map(|(dir, name)| (dir, cut(text, name))), node }
}

/// The component of a text at or behind a place; `None` where only slashes are left.
fn next_component(text: &[u8], at: usize) -> Option<Range<usize>> {
    let start = at + text[at..].iter().position(|&b| b != b'/')?;
    let end = memchr::memchr(b'/', &text[start..]).map_or(text.len(), |len| start + len);
    Some(start..end)
}

fn cut(text: Cow<'_, [u8]>, part: Range<usize>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(path) => Cow::Borrowed(&path[part]),
        Cow::Owned(text) => Cow::Owned(text[part].to_vec()),
    }
}

/// The components of a path, `.` and `..` included.
pub fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&b| b == b'/').filter(|component| !component.is_empty())
}

/// An object of a [`Tree`], by the order in which they became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(u32);

impl Node {
    /// The root directory.
    pub const ROOT: Node = Node(0);

    /// Its index among the [objects](Tree::objects).
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of an object; `more` is what the user of the tree wants to know besides.
#[derive(Debug)]
pub struct Object<T> {
    /// `None`: seen to exist, kind not yet known.
    pub kind: Option<FileKind>,
    /// Target of a symbolic link, where known.
    pub target: Option<Box<[u8]>>,
    /// Where it was when the trace began: its directory then, and its name there. `None`: made by the trace.
    pub origin: Option<(Node, Box<[u8]>)>,
    /// Whether it was there by what the trace implies alone.
    pub implied: bool,
    /// Length now.
    pub size_bytes: u64,
    /// Length when the trace began (a lower bound of what is implied).
    pub initial_bytes: u64,
    /// Names it has now.
    pub names: u32,
    /// The rest.
    pub more: T,
    /// The directory that it was put in last; the root is in itself.
    parent: Node,
    /// How many of its `children` are there.
    living: usize,
    /// By name; `None`: known not to be there.
    children: FxHashMap<Box<[u8]>, Option<Node>>,
}

/// A tree of names: what was there when a trace began, and what became of it.
#[derive(Debug)]
pub struct Tree<T> {
    objects: Vec<Object<T>>,
    implied_directories: usize,
}

impl<T: Default> Default for Tree<T> {
    /// Nothing but the root directory.
    fn default() -> Self {
        let mut tree = Tree { objects: Vec::new(), implied_directories: 0 };
        tree.add(Some(FileKind::Directory), None);
        tree.objects[0].origin = Some((Node::ROOT, Box::default()));
        tree
    }
}

impl<T: Default> Tree<T> {
    /// What is known of an object.
    pub fn get(&self, node: Node) -> &Object<T> {
        &self.objects[node.index()]
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, node: Node) -> &mut Object<T> {
        &mut self.objects[node.index()]
    }

    /// Every object, in the order they became known.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = (Node, &Object<T>)> + DoubleEndedIterator {
        self.objects.iter().enumerate().map(|(i, object)| (Node(i as u32), object))
    }

    /// Whether an object can hold names.
    pub fn is_dir(&self, node: Node) -> bool {
        self.get(node).kind == Some(FileKind::Directory)
    }

    /// The object of a name in a directory.
    pub fn child(&self, dir: Node, name: &[u8]) -> Option<Node> {
        self.get(dir).children.get(name).copied().flatten()
    }

    /// Whether a directory is another, or in it.
    pub fn is_within(&self, mut node: Node, above: Node) -> bool {
        // A trace may have told of a directory inside itself.
        for _ in 0..self.objects.len() {
            if node == above || node == Node::ROOT {
                break;
            }
            node = self.get(node).parent;
        }
        node == above
    }

    /// Whether a directory has no names.
    pub fn is_empty(&self, dir: Node) -> bool {
        self.get(dir).living == 0
    }

    /// Whether a name was [looked for and not there](Self::note_absent).
    pub fn is_absent(&self, dir: Node, name: &[u8]) -> bool {
        self.get(dir).children.get(name) == Some(&None)
    }

    /// A new object without a name.
    pub fn add(&mut self, kind: Option<FileKind>, target: Option<&[u8]>) -> Node {
        let node = Node(u32::try_from(self.objects.len()).expect("fewer than 2^32 files"));
        self.objects.push(Object {
            kind,
            target: target.map(Into::into),
            origin: None,
            implied: false,
            size_bytes: 0,
            initial_bytes: 0,
            names: 0,
            more: T::default(),
            parent: Node::ROOT,
            living: 0,
            children: FxHashMap::default(),
        });
        node
    }

    /// A new object that was there when the trace began, though nothing tells of it but the trace.
    pub fn imply(&mut self, dir: Node, name: &[u8], kind: Option<FileKind>) -> Node {
        let node = self.add(kind, None);
        let object = self.get_mut(node);
        (object.origin, object.implied) = (Some((dir, name.into())), true);
        self.attach(dir, name, node);
        node
    }

    /// The same of a directory of which nothing but a name deeper in it tells.
    pub fn imply_directory(&mut self, dir: Node, name: &[u8]) -> Node {
        self.implied_directories += 1;
        self.imply(dir, name, Some(FileKind::Directory))
    }

    /// Whether so many directories are implied by the depth of paths alone that no file system has them.
    pub fn is_too_deep(&self) -> bool {
        self.implied_directories > IMPLIED_DIRECTORIES_MAX
    }

    /// Gives an object a name, which what had it before loses.
    pub fn attach(&mut self, dir: Node, name: &[u8], node: Node) {
        self.detach(dir, name);
        let object = self.get_mut(node);
        object.names += 1;
        if node != Node::ROOT {
            object.parent = dir;
        }
        let dir = self.get_mut(dir);
        dir.kind.get_or_insert(FileKind::Directory);
        dir.living += 1;
        dir.children.insert(name.into(), Some(node));
    }

    /// Takes a name away.
    pub fn detach(&mut self, dir: Node, name: &[u8]) -> Option<Node> {
        let dir = self.get_mut(dir);
        let node = dir.children.remove(name).flatten()?;
        dir.living -= 1;
        self.get_mut(node).names -= 1;
        Some(node)
    }

    /// Remembers that a name was looked for and not there.
    pub fn note_absent(&mut self, dir: Node, name: &[u8]) {
        self.get_mut(dir).children.entry(name.into()).or_insert(None);
    }

    /// Puts the names of a snapshot into the tree, with the directories above them that it does not list. Answers of
    /// each entry in which directory it is, and which object; `None` where it contradicts those before it. Ends behind
    /// the entry with which the tree is [too deep](Self::is_too_deep).
    pub fn load(&mut self, snapshot: &Snapshot) -> Vec<Option<(Node, Node)>> {
        let mut inodes: FxHashMap<(u64, u64), Node> = FxHashMap::default();
        let mut places = Vec::with_capacity(snapshot.entries.len());
        for entry in &snapshot.entries {
            if self.is_too_deep() {
                break;
            }
            let Some(parent) = entry.parent() else {
                places.push((entry.path == b"/").then_some((Node::ROOT, Node::ROOT)));
                continue;
            };
            let dir = self.directory(parent).filter(|&dir| self.child(dir, entry.name()).is_none());
            let inode = entry.shared_inode();
            places.push(dir.map(|dir| {
                let known = inode.and_then(|inode| inodes.get(&inode).copied());
                let node = known.unwrap_or_else(|| {
                    let node = self.add(Some(entry.kind), entry.target.as_deref());
                    let object = self.get_mut(node);
                    object.origin = Some((dir, entry.name().into()));
                    object.implied = entry.provenance == Provenance::Trace;
                    if entry.kind != FileKind::Directory {
                        (object.size_bytes, object.initial_bytes) = (entry.size_bytes, entry.size_bytes);
                    }
                    node
                });
                self.attach(dir, entry.name(), node);
                inodes.extend(inode.map(|inode| (inode, node)));
                (dir, node)
            }));
        }
        places
    }

    /// The directory of a snapshot's path, implied with those above it where it is not known.
    fn directory(&mut self, path: &[u8]) -> Option<Node> {
        match self.walk_making(path, false, |tree, dir, name, _| Some(tree.imply_directory(dir, name))) {
            Walk::Found { node, .. } => Some(node).filter(|&node| self.is_dir(node)),
            _ => None,
        }
    }

    /// [Walks](walk) a path from the root.
    pub fn walk<'p>(&self, path: &'p [u8], follow: bool) -> Walk<'p, Node> {
        walk(&mut &*self, Node::ROOT, path, follow)
    }

    /// The same; `missing` makes what is not there, and is told its directory, its name, and whether that ends the
    /// path.
    pub fn walk_making<'p, F>(&mut self, path: &'p [u8], follow: bool, missing: F) -> Walk<'p, Node>
    where
        F: FnMut(&mut Tree<T>, Node, &[u8], bool) -> Option<Node>,
    {
        self.walk_making_from(Node::ROOT, path, follow, missing)
    }

    /// The same from a directory.
    pub fn walk_making_from<'p, F>(&mut self, from: Node, path: &'p [u8], follow: bool, missing: F) -> Walk<'p, Node>
    where
        F: FnMut(&mut Tree<T>, Node, &[u8], bool) -> Option<Node>,
    {
        walk(&mut Making { tree: self, missing }, from, path, follow)
    }

    fn what(&self, node: Node) -> What<'_> {
        let object = self.get(node);
        match object.kind {
            // A kind not yet known becomes a directory once there is a name in it; a walk only reads.
            Some(FileKind::Directory) | None => What::Directory,
            Some(FileKind::Symlink) => What::Link(object.target.as_deref()),
            Some(FileKind::File | FileKind::Special) => What::Other,
        }
    }
}

impl<T: Default> Names for &Tree<T> {
    type Node = Node;

    fn root(&self) -> Node {
        Node::ROOT
    }

    fn up(&mut self, directory: Node) -> Node {
        self.get(directory).parent
    }

    fn child(&mut self, directory: Node, name: &[u8], _last: bool) -> Option<Node> {
        Tree::child(self, directory, name)
    }

    fn what(&self, node: Node) -> What<'_> {
        Tree::what(self, node)
    }
}

/// See [`Tree::walk_making`].
struct Making<'t, T, F> {
    tree: &'t mut Tree<T>,
    missing: F,
}

impl<T: Default, F: FnMut(&mut Tree<T>, Node, &[u8], bool) -> Option<Node>> Names for Making<'_, T, F> {
    type Node = Node;

    fn root(&self) -> Node {
        Node::ROOT
    }

    fn up(&mut self, directory: Node) -> Node {
        self.tree.get(directory).parent
    }

    fn child(&mut self, directory: Node, name: &[u8], last: bool) -> Option<Node> {
        self.tree.child(directory, name).or_else(|| (self.missing)(self.tree, directory, name, last))
    }

    fn what(&self, node: Node) -> What<'_> {
        self.tree.what(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SnapshotEntry;

    /// `/a/f` a file, and links in `/a`.
    fn tree() -> Tree<()> {
        let mut tree = Tree::default();
        let mut put = |dir, name: &str, kind, target: Option<&str>| {
            let node = tree.add(Some(kind), target.map(str::as_bytes));
            tree.attach(dir, name.as_bytes(), node);
            node
        };
        let a = put(Node::ROOT, "a", FileKind::Directory, None);
        put(a, "f", FileKind::File, None);
        let links = [("l", "/a/f"), ("up", "../a"), ("self", "self"), ("here", ""), ("top", "/"), ("deep", "new/b")];
        for (name, target) in links.into_iter().chain([("dangling", "new"), ("slash", "f/")]) {
            put(a, name, FileKind::Symlink, Some(target));
        }
        put(a, "unknown", FileKind::Symlink, None);
        tree
    }

    /// Where a path leads that starts in `/a`.
    fn walked(path: &str, follow: bool) -> Walk<'_, Node> {
        let tree = tree();
        walk(&mut &tree, at(&tree, "/a"), path.as_bytes(), follow)
    }

    fn at(tree: &Tree<()>, path: &str) -> Node {
        match tree.walk(path.as_bytes(), false) {
            Walk::Found { node, .. } => node,
            other => panic!("{path}: {other:?}"),
        }
    }

    /// Where it is, by a path without links; empty where it is not there.
    fn found(path: &str, follow: bool) -> &'static str {
        let tree = tree();
        let known = ["/", "/a", "/a/f", "/a/l", "/a/up"];
        match walked(path, follow) {
            Walk::Found { node, .. } => known.into_iter().find(|path| at(&tree, path) == node).expect("one of these"),
            _ => "",
        }
    }

    fn missing<'p>(dir: &str, name: &'p str, last: bool) -> Walk<'p, Node> {
        Walk::Missing { dir: at(&tree(), dir), name: name.as_bytes().into(), last }
    }

    #[test]
    fn dots_and_slashes() {
        assert_eq!(
            (found("/a/../a/.//f", true), found("/..//../a/", true)),
            ("/a/f", "/a"),
            "`..` at the root stays there"
        );
        assert_eq!((found("", true), found("/", true), found("f", true)), ("/a", "/", "/a/f"));
        let place = Walk::Found { place: Some((Node::ROOT, b"a"[..].into())), node: at(&tree(), "/a") };
        assert_eq!((walked("/a/.", true), walked("top/a", true)), (place.clone(), place));
        assert_eq!(walked("/a/..", true), Walk::Found { place: None, node: Node::ROOT });
    }

    #[test]
    fn links_are_followed_on_the_way_and_at_the_end_as_asked() {
        assert_eq!((found("l", true), found("l", false)), ("/a/f", "/a/l"));
        assert_eq!((found("up/up/f", false), found("up/", false), found("up", false)), ("/a/f", "/a", "/a/up"));
        assert_eq!((found("here/f", true), found("here", true), found("top", true)), ("/a/f", "/a", "/"));
        assert_eq!(found("here/../a", true), "/a", "a target of nothing leads to where it is");
        let (a, f) = (at(&tree(), "/a"), at(&tree(), "/a/f"));
        assert_eq!(walked("up/l", true), Walk::Found { place: Some((a, b"f"[..].into())), node: f });
        let link = at(&tree(), "/a/unknown");
        assert_eq!(walked("unknown", true), Walk::Unknown { link, last: true });
        assert_eq!(walked("unknown/f", false), Walk::Unknown { link, last: false });
    }

    #[test]
    fn only_directories_hold_names() {
        for path in ["f/x", "f/.", "f/..", "f/", "l/", "l/x", "slash/"] {
            assert_eq!(walked(path, false), Walk::NotDirectory, "{path}");
        }
        assert_eq!(walked("slash", true), Walk::NotDirectory);
    }

    #[test]
    fn what_is_missing_is_told_with_whether_it_ends_the_path() {
        assert_eq!(
            (walked("new", true), walked("new//", true)),
            (missing("/a", "new", true), missing("/a", "new", true))
        );
        assert_eq!(
            (walked("new/b", true), walked("dangling/b", true)),
            (missing("/a", "new", false), missing("/a", "new", false))
        );
        assert_eq!(
            (walked("dangling", true), walked("deep", true)),
            (missing("/a", "new", true), missing("/a", "new", false))
        );
        assert_eq!(walked("up/up/new", true), missing("/a", "new", true));
    }

    #[test]
    fn as_many_links_as_the_kernel_follows() {
        assert_eq!(walked("self", true), Walk::Loop);
        let mut tree = Tree::<()>::default();
        for n in 0..LINKS_MAX {
            let link = tree.add(Some(FileKind::Symlink), Some(format!("c{}", n + 1).as_bytes()));
            tree.attach(Node::ROOT, format!("c{n}").as_bytes(), link);
        }
        assert!(matches!(tree.walk(b"/c0", true), Walk::Missing { last: true, .. }), "40 are followed");
        let link = tree.add(Some(FileKind::Symlink), Some(b"/"));
        tree.attach(Node::ROOT, b"c40", link);
        assert_eq!(tree.walk(b"/c0", true), Walk::Loop);
    }

    #[test]
    fn what_is_implied_is_made_on_the_way_through_links_too() {
        let mut tree = tree();
        let made = tree.directory(b"/a/dangling/c").expect("made");
        assert_eq!((made, tree.implied_directories), (at(&tree, "/a/new/c"), 2));
        assert!(tree.get(made).implied && tree.is_within(made, at(&tree, "/a")) && !tree.is_empty(at(&tree, "/a/new")));
        assert_eq!(tree.directory(b"/a/f"), None);
    }

    #[test]
    fn absent_is_not_unknown() {
        let mut tree = tree();
        let a = at(&tree, "/a");
        assert!(!tree.is_absent(a, b"f") && !tree.is_absent(a, b"g"));
        let file = tree.detach(a, b"f").expect("there");
        assert_eq!((tree.get(file).names, tree.detach(a, b"f")), (0, None));
        tree.note_absent(a, b"f");
        assert!(tree.is_absent(a, b"f"));
        tree.attach(a, b"f", file);
        tree.note_absent(a, b"f");
        assert_eq!(tree.child(a, b"f"), Some(file), "what is there is not absent");
    }

    #[test]
    fn a_snapshot_with_names_of_one_file_and_directories_that_it_does_not_list() {
        let entry = |path: &str| SnapshotEntry {
            nlink: 2,
            ino: 7,
            size_bytes: 5,
            provenance: Provenance::Before,
            ..SnapshotEntry::implied(path.into(), FileKind::File)
        };
        let mut tree = Tree::<()>::default();
        let places = tree.load(&Snapshot::from_entries(vec![entry("/d/a"), entry("/b"), entry("/d/a/x")]));
        let (file, dir) = (at(&tree, "/b"), at(&tree, "/d"));
        assert_eq!(places, [Some((Node::ROOT, file)), Some((dir, file)), None], "a file holds no names");
        let object = tree.get(file);
        assert_eq!((object.names, object.size_bytes, object.implied), (2, 5, false));
        assert!(tree.get(dir).implied);
        // Renamed, it keeps where it was.
        tree.detach(Node::ROOT, b"d");
        tree.attach(Node::ROOT, b"e", dir);
        assert_eq!(tree.get(at(&tree, "/e")).origin, Some((Node::ROOT, b"d"[..].into())));
    }
}
