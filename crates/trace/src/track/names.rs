//! Names and files: which file each path names now, so far as the trace alone can tell.
//!
//! A tree of directory entries over a table of files. An entry is made when a call shows that the name exists, moved by
//! rename and dropped when it is removed; a file lives while it has a name or an open description. Memory is bounded
//! by the names that are live, not by the length of the trace. Symbolic links are followed where the trace showed
//! their target; a path through a link of unknown target is unknown, not guessed.
//!
//! Entries and files are named by ids that carry a generation: the id of a name that is gone never names what took its
//! place. What keeps an entry's id over calls (working directories) asks [`Names::is_live`] first. An old id that is
//! used all the same is a bug of ours: it panics in debug builds and stands for an unknown file otherwise.
//! [`Names::check`] says what holds after every call.

use super::call::{Inode, Kind};
use crate::FileId;
use crate::tree::{self, What};
use rustc_hash::FxHashMap;
use slotmap::{Key as _, SlotMap, new_key_type};

new_key_type! {
    /// A directory entry.
    pub(super) struct Node;

    /// A file.
    pub(super) struct File;
}

#[derive(Debug)]
struct Entry {
    parent: Node,
    name: Box<[u8]>,
    file: File,
    children: FxHashMap<Box<[u8]>, Node>,
    birth: Birth,
    /// The tracer printed a path through this entry: it is no symbolic link.
    canonical: bool,
    /// It is in [`Names::touched`].
    touched: bool,
    /// A rename of the trace put it where it is.
    moved: bool,
    /// Where it was when the trace began, if a rename has moved it since.
    moved_from: Option<Box<[u8]>>,
}

/// Where a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Birth {
    /// It was there when the trace began.
    Before,
    /// The trace made it.
    Made,
    /// An open with `O_CREAT` without `O_EXCL` made or found it; nothing else was known of the name.
    Opened,
}

/// What is known of a file.
#[derive(Debug)]
pub(super) struct FileState {
    pub id: FileId,
    pub kind: Kind,
    /// Length now.
    pub size: Option<u64>,
    /// Length when the trace began: the first length seen before the trace changed it.
    pub first_size: Option<u64>,
    /// The trace has changed the length or the content.
    pub changed: bool,
    /// While all it did was append to an unknown length: how much.
    pub appended: Option<u64>,
    /// Permission bits, where a stat or the creation told.
    pub mode: Option<u16>,
    /// A symbolic link's target.
    pub target: Option<Box<[u8]>>,
    /// It is taken for a symbolic link because that would explain a path the tracer printed.
    pub guessed: bool,
    /// How many names it has that are not in the tree; `None` if the trace does not tell.
    pub links_elsewhere: Option<u32>,
    /// Whether a name of it was removed: a descriptor opened by that name is shown as deleted, under the last name it
    /// had.
    pub lost_a_name: bool,
    /// Who it is, from a tracer that knows.
    inode: Option<Inode>,
    /// The directory that a removed one was in: `..` of those who still have it open leads there. Counts as an open
    /// description of that.
    was_in: Option<File>,
    opens: u32,
    /// One of its names; a directory has only one.
    node: Option<Node>,
    /// The others.
    more: Vec<Node>,
}

/// Where a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// The directory of the last component, if the walk got that far.
    pub parent: Option<Node>,
    /// The entry, if known to exist.
    pub node: Option<Node>,
}

/// A name that was there when the trace began and was removed by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Its absolute path when the trace began.
    pub path: Vec<u8>,
    /// What it was.
    pub kind: Kind,
    /// Its length when the trace began, where the trace showed it.
    pub size_bytes: Option<u64>,
    /// Its permission bits, where the trace showed them.
    pub mode: Option<u16>,
    /// A symbolic link's target.
    pub target: Option<Vec<u8>>,
}

/// The identity of what an old id stands for; never told.
const UNKNOWN_ID: FileId = FileId(u64::MAX);

impl Entry {
    fn new(parent: Node, name: &[u8], file: File, birth: Birth) -> Entry {
        let children = FxHashMap::default();
        Entry {
            parent,
            name: name.into(),
            file,
            children,
            birth,
            canonical: false,
            touched: false,
            moved: false,
            moved_from: None,
        }
    }
}

impl FileState {
    fn new(id: FileId, kind: Kind) -> FileState {
        FileState {
            id,
            kind,
            size: None,
            first_size: None,
            changed: false,
            appended: Some(0),
            mode: None,
            target: None,
            guessed: false,
            links_elsewhere: None,
            lost_a_name: false,
            inode: None,
            was_in: None,
            opens: 0,
            node: None,
            more: Vec::new(),
        }
    }
}

impl FileState {
    /// How many names it has in the tree.
    fn names(&self) -> u32 {
        let more = u32::try_from(self.more.len()).expect("fewer than 2^32 names of a file");
        more + u32::from(self.node.is_some())
    }
}

/// The tree.
#[derive(Debug)]
pub(super) struct Names {
    entries: SlotMap<Node, Entry>,
    files: SlotMap<File, FileState>,
    /// The files of which it is known who they are.
    inodes: FxHashMap<Inode, File>,
    root: Node,
    /// What an old id stands for in a release build.
    nowhere: Entry,
    unknown: FileState,
    next_id: u64,
    /// How many times a name was moved: paths remembered from before may be of the past.
    moves: u64,
    /// Kept only when asked: it grows with the names removed.
    removed: Option<Vec<Removed>>,
    /// The directories in which names were looked up, by the paths they had when the trace began. Kept with `removed`.
    touched: Vec<Vec<u8>>,
}

impl Names {
    /// An empty tree. `keep_removed`: remember the names that were there before and are gone.
    pub fn new(keep_removed: bool) -> Self {
        let mut names = Names {
            entries: SlotMap::with_key(),
            files: SlotMap::with_key(),
            inodes: FxHashMap::default(),
            root: Node::null(),
            nowhere: Entry::new(Node::null(), b"", File::null(), Birth::Opened),
            unknown: FileState::new(UNKNOWN_ID, Kind::Unknown),
            next_id: 0,
            moves: 0,
            removed: keep_removed.then(Vec::new),
            touched: Vec::new(),
        };
        let file = names.new_file(Kind::Directory);
        let root = Entry { canonical: true, ..Entry::new(Node::null(), b"", file, Birth::Before) };
        names.root = names.entries.insert(root);
        let root = names.root;
        names.file_mut(file).node = Some(root);
        names
    }

    /// The root directory's entry.
    pub fn root(&self) -> Node {
        self.root
    }

    /// Whether the entry is still there.
    pub fn is_live(&self, node: Node) -> bool {
        self.entries.contains_key(node)
    }

    fn entry(&self, node: Node) -> &Entry {
        let entry = self.entries.get(node);
        debug_assert!(entry.is_some(), "the id of a name that is gone was used");
        entry.unwrap_or(&self.nowhere)
    }

    fn entry_mut(&mut self, node: Node) -> &mut Entry {
        match self.entries.get_mut(node) {
            Some(entry) => entry,
            None => {
                debug_assert!(false, "the id of a name that is gone was used");
                self.nowhere = Entry::new(Node::null(), b"", File::null(), Birth::Opened);
                &mut self.nowhere
            }
        }
    }

    /// What is known of a file.
    pub fn file(&self, file: File) -> &FileState {
        let state = self.files.get(file);
        debug_assert!(state.is_some(), "the id of a file that is gone was used");
        state.unwrap_or(&self.unknown)
    }

    /// The same, to change.
    pub fn file_mut(&mut self, file: File) -> &mut FileState {
        match self.files.get_mut(file) {
            Some(state) => state,
            None => {
                debug_assert!(false, "the id of a file that is gone was used");
                self.unknown = FileState::new(UNKNOWN_ID, Kind::Unknown);
                &mut self.unknown
            }
        }
    }

    /// The file an entry names.
    pub fn file_of(&self, node: Node) -> File {
        self.entry(node).file
    }

    /// A file's identity over its life.
    pub fn id(&self, file: File) -> Option<FileId> {
        Some(self.file(file).id).filter(|&id| id != UNKNOWN_ID)
    }

    /// The identity of the file an entry names.
    pub fn id_of(&self, node: Node) -> Option<FileId> {
        self.id(self.entry(node).file)
    }

    /// The directory an entry is in; the root is in itself.
    pub fn parent_of(&self, node: Node) -> Node {
        if node == self.root { node } else { self.entry(node).parent }
    }

    /// An entry's name; the root's is empty.
    pub fn name(&self, node: Node) -> &[u8] {
        &self.entry(node).name
    }

    /// A name of a file, if it has one.
    pub fn node_of(&self, file: File) -> Option<Node> {
        self.file(file).node
    }

    /// How many names a file has.
    pub fn links(&self, file: File) -> Option<u32> {
        let state = self.file(file);
        state.links_elsewhere.map(|elsewhere| elsewhere + state.names())
    }

    /// A file that the trace made; it has no name yet.
    pub fn made_file(&mut self, kind: Kind) -> File {
        let file = self.new_file(kind);
        self.file_mut(file).links_elsewhere = Some(0);
        file
    }

    /// A new file without a name.
    pub fn new_file(&mut self, kind: Kind) -> File {
        let state = FileState::new(FileId(self.next_id), kind);
        self.next_id += 1;
        self.files.insert(state)
    }

    /// Counts an open description of the file.
    pub fn opened(&mut self, file: File) {
        self.file_mut(file).opens += 1;
    }

    /// Forgets an open description of the file.
    pub fn closed(&mut self, file: File) {
        let state = self.file_mut(file);
        state.opens = state.opens.saturating_sub(1);
        self.free_if_dead(file);
    }

    fn free_if_dead(&mut self, file: File) {
        let mut next = Some(file);
        while let Some(file) = next.take() {
            let state = self.file(file);
            if state.node.is_some() || state.opens > 0 {
                return;
            }
            if let Some(inode) = state.inode.filter(|inode| self.inodes.get(inode) == Some(&file)) {
                self.inodes.remove(&inode);
            }
            next = self.files.remove(file).and_then(|state| state.was_in);
            if let Some(above) = next {
                self.file_mut(above).opens -= 1;
            }
        }
    }

    /// Where a path leads from a directory whose name is gone, which the kernel still finds the way up from: the
    /// directory that still has a name, and the rest of the path.
    pub fn up_from_removed<'p>(&self, directory: File, path: &'p [u8]) -> Option<(Node, &'p [u8])> {
        let (mut at, mut rest) = (directory, path);
        loop {
            let end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
            let (name, tail) = rest.split_at(end);
            rest = &tail[tail.iter().take_while(|&&b| b == b'/').count()..];
            match name {
                b"." => {}
                b".." => {
                    at = self.file(at).was_in?;
                    if let Some(node) = self.node_of(at) {
                        return Some((node, rest));
                    }
                }
                _ => return None,
            }
        }
    }

    /// The file that the kernel knows as `inode`.
    pub fn with_inode(&self, inode: Inode) -> Option<File> {
        self.inodes.get(&inode).copied()
    }

    /// The same, made known without a name if it was not.
    pub fn of_inode(&mut self, inode: Inode) -> File {
        self.with_inode(inode).unwrap_or_else(|| {
            let file = self.new_file(Kind::Unknown);
            self.identify(file, inode);
            file
        })
    }

    /// Takes note of who a file is. `false`: it is another, so far as is known.
    pub fn identify(&mut self, file: File, inode: Inode) -> bool {
        match (self.file(file).inode, self.with_inode(inode)) {
            (Some(known), _) => known == inode,
            (None, Some(other)) => other == file,
            (None, None) => {
                self.file_mut(file).inode = Some(inode);
                self.inodes.insert(inode, file);
                true
            }
        }
    }

    /// The file at a path that the tracer printed, of which it said who it is. A name of another file is one that went
    /// without our seeing it go.
    pub fn canonical_inode(&mut self, path: &[u8], inode: Inode) -> Option<File> {
        if let Some(file) = self.with_inode(inode) {
            return Some(file);
        }
        let stale = self.canonical(path, false).filter(|&node| self.file(self.file_of(node)).inode.is_some());
        if let Some(stale) = stale {
            self.forget(stale);
        }
        let node = self.canonical(path, true)?;
        let file = self.file_of(node);
        self.identify(file, inode);
        Some(file)
    }

    /// The entry of this name in a directory.
    pub fn child(&self, dir: Node, name: &[u8]) -> Option<Node> {
        self.entry(dir).children.get(name).copied()
    }

    /// Makes a name for a file. The name must not exist.
    pub fn add(&mut self, dir: Node, name: &[u8], file: File, birth: Birth) -> Node {
        debug_assert!(self.child(dir, name).is_none(), "a name was made twice");
        let node = self.entries.insert(Entry::new(dir, name, file, birth));
        let parent = self.entry_mut(dir);
        parent.children.insert(name.into(), node);
        let parent = parent.file;
        // What has a name in it is a directory, whether or not a call said so.
        if self.file(parent).kind == Kind::Unknown {
            self.file_mut(parent).kind = Kind::Directory;
        }
        let state = self.file_mut(file);
        match state.node {
            None => state.node = Some(node),
            Some(_) => state.more.push(node),
        }
        node
    }

    /// The name was removed by the trace.
    pub fn remove(&mut self, node: Node) {
        if let (Some(_), false) = (&self.removed, self.entry(node).birth != Birth::Before)
            && let Some(path) = self.first_path(node)
        {
            let state = self.file(self.entry(node).file);
            let removed = Removed {
                path,
                kind: state.kind,
                size_bytes: if state.changed { state.first_size } else { state.first_size.or(state.size) },
                mode: state.mode,
                target: state.target.as_deref().map(<[u8]>::to_vec),
            };
            self.removed.get_or_insert_default().push(removed);
        }
        let (file, above) = (self.file_of(node), self.file_of(self.parent_of(node)));
        self.forget(node);
        if self.files.get(file).is_some_and(|state| state.kind == Kind::Directory && state.node.is_none()) {
            self.opened(above);
            self.file_mut(file).was_in = Some(above);
        }
    }

    /// The name and all below it are unknown from here on (it is gone, or was never what we took it for).
    pub fn forget(&mut self, node: Node) {
        if node == self.root || !self.is_live(node) {
            return;
        }
        self.detach(node);
        // A stack, not recursion: a chain of a million directories must not overflow ours.
        let mut doomed = vec![node];
        while let Some(node) = doomed.pop() {
            let Some(entry) = self.entries.remove(node) else { continue };
            doomed.extend(entry.children.into_values());
            let state = self.file_mut(entry.file);
            state.lost_a_name = true;
            if state.node == Some(node) {
                state.node = state.more.pop();
            } else {
                state.more.retain(|&other| other != node);
            }
            self.free_if_dead(entry.file);
        }
    }

    /// Takes an entry out of its directory. It keeps its name; the caller puts it somewhere or drops it.
    fn detach(&mut self, node: Node) {
        let entry = self.entry_mut(node);
        let (parent, name) = (entry.parent, std::mem::take(&mut entry.name));
        self.entry_mut(parent).children.remove(&name);
        self.entry_mut(node).name = name;
    }

    /// Moves an entry, with all below it, over what has the new name.
    ///
    /// The kernel puts nothing below itself and replaces files and empty directories only. Where the tree says
    /// otherwise, the tree is wrong: what contradicts the kernel is forgotten.
    pub fn rename(&mut self, node: Node, dir: Node, name: &[u8]) {
        if node == self.root || self.is_below(dir, node) {
            return self.forget(node);
        }
        self.moves += 1;
        self.note_origin(node);
        // Out of the old place first, so that it does not go with what it replaces.
        self.detach(node);
        if let Some(old) = self.child(dir, name) {
            self.remove(old);
        }
        let entry = self.entry_mut(node);
        (entry.parent, entry.name, entry.moved) = (dir, name.into(), true);
        self.entry_mut(dir).children.insert(name.into(), node);
    }

    /// Swaps two entries; of names of one file the kernel swaps nothing.
    pub fn exchange(&mut self, a: Node, b: Node) {
        if a == b || self.file_of(a) == self.file_of(b) {
            return;
        }
        if self.is_below(a, b) || self.is_below(b, a) {
            self.forget(a);
            return self.forget(b);
        }
        self.moves += 1;
        self.note_origin(a);
        self.note_origin(b);
        let (dir_a, dir_b) = (self.entry(a).parent, self.entry(b).parent);
        let name_a = std::mem::take(&mut self.entry_mut(a).name);
        let name_b = std::mem::take(&mut self.entry_mut(b).name);
        self.entry_mut(dir_a).children.insert(name_a.clone(), b);
        self.entry_mut(dir_b).children.insert(name_b.clone(), a);
        let entry = self.entry_mut(a);
        (entry.parent, entry.name, entry.moved) = (dir_b, name_b, true);
        let entry = self.entry_mut(b);
        (entry.parent, entry.name, entry.moved) = (dir_a, name_a, true);
    }

    fn note_origin(&mut self, node: Node) {
        if self.removed.is_some()
            && self.entry(node).birth == Birth::Before
            && self.entry(node).moved_from.is_none()
            && let Some(path) = self.first_path(node)
        {
            self.entry_mut(node).moved_from = Some(path.into());
        }
    }

    /// Whether an entry is another or below it.
    pub fn is_below(&self, mut node: Node, above: Node) -> bool {
        while node != self.root && self.is_live(node) {
            if node == above {
                return true;
            }
            node = self.entry(node).parent;
        }
        above == self.root
    }

    /// How many times a name was moved so far.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Whether the trace made the name where it is, or moved it there.
    pub fn is_by_trace(&self, node: Node) -> bool {
        let entry = self.entry(node);
        entry.birth == Birth::Made || entry.moved
    }

    /// Where the name comes from.
    pub fn birth(&self, node: Node) -> Birth {
        self.entry(node).birth
    }

    /// The path an entry has now.
    pub fn path(&self, node: Node, out: &mut Vec<u8>) {
        out.clear();
        self.push_path(node, out);
        if out.is_empty() {
            out.push(b'/');
        }
    }

    /// The path an entry has now.
    pub fn path_of(&self, node: Node) -> Vec<u8> {
        let mut path = Vec::new();
        self.path(node, &mut path);
        path
    }

    fn push_path(&self, node: Node, out: &mut Vec<u8>) {
        let mut chain = Vec::new();
        let mut at = node;
        while at != self.root {
            chain.push(at);
            at = self.entry(at).parent;
        }
        for &node in chain.iter().rev() {
            out.push(b'/');
            out.extend_from_slice(&self.entry(node).name);
        }
    }

    /// The path an entry had when the trace began; `None` if the trace made it or a directory above it.
    pub fn first_path(&self, node: Node) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let mut at = node;
        let mut path = Vec::new();
        while at != self.root {
            let entry = self.entry(at);
            if entry.birth != Birth::Before {
                return None;
            }
            if let Some(from) = &entry.moved_from {
                path.extend_from_slice(from);
                break;
            }
            names.push(at);
            at = entry.parent;
        }
        for &node in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(&self.entry(node).name);
        }
        Some(path)
    }

    /// The trace looked up a name in this directory, or read it.
    pub fn touch(&mut self, dir: Node) {
        if self.removed.is_some() && self.is_live(dir) && !self.entry(dir).touched {
            self.entry_mut(dir).touched = true;
            self.touched.extend(self.first_path(dir));
        }
    }

    /// The directories touched so far, by the paths they had when the trace began, taken out.
    pub fn take_touched(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.touched)
    }

    /// The names removed so far, taken out.
    pub fn take_removed(&mut self) -> Vec<Removed> {
        self.removed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Visits all live entries but the root's.
    pub fn for_each(&self, mut visit: impl FnMut(Node)) {
        let mut stack = vec![self.root];
        while let Some(node) = stack.pop() {
            for &child in self.entry(node).children.values() {
                visit(child);
                stack.push(child);
            }
        }
    }

    /// The deepest known entry on a path without links, and what of the path is left (with its leading slash).
    pub fn deepest<'p>(&self, path: &'p [u8]) -> (Node, &'p [u8]) {
        let mut at = self.root;
        let mut rest = path;
        loop {
            let trimmed = &rest[rest.iter().take_while(|&&b| b == b'/').count()..];
            let end = memchr::memchr(b'/', trimmed).unwrap_or(trimmed.len());
            match self.child(at, &trimmed[..end]) {
                Some(child) if !trimmed.is_empty() => (at, rest) = (child, &trimmed[end..]),
                _ => return (at, rest),
            }
        }
    }

    /// The entry of a path that the tracer printed, which has no symbolic links in it. Entries on the way that were
    /// taken for links are replaced; with `make`, missing ones are made.
    pub fn canonical(&mut self, path: &[u8], make: bool) -> Option<Node> {
        let mut at = self.root;
        let mut rest = path;
        loop {
            while let [b'/', tail @ ..] = rest {
                rest = tail;
            }
            if rest.is_empty() {
                return Some(at);
            }
            let end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
            let (name, tail) = rest.split_at(end);
            let found = match self.child(at, name) {
                // A link at the end can be what was opened (`O_PATH | O_NOFOLLOW`).
                Some(node) if self.is_link(node) && (!tail.is_empty() || self.file(self.file_of(node)).guessed) => {
                    self.forget(node);
                    None
                }
                found => found,
            };
            at = match found {
                Some(node) => node,
                None if make => {
                    let file = self.new_file(if tail.is_empty() { Kind::Unknown } else { Kind::Directory });
                    self.add(at, name, file, Birth::Before)
                }
                None => return None,
            };
            self.entry_mut(at).canonical = true;
            rest = tail;
        }
    }

    /// Whether what the entry is needs no guess: the tracer printed a path through it, or the trace made it.
    fn is_certain(&self, node: Node) -> bool {
        self.entry(node).canonical || self.entry(node).birth == Birth::Made
    }

    /// Whether the entry is known for a symbolic link.
    pub fn is_link(&self, node: Node) -> bool {
        self.file(self.file_of(node)).kind == Kind::Symlink
    }

    /// Whether the entry is taken for a link that leads where a tracer showed.
    pub fn is_guessed(&self, node: Node) -> bool {
        self.file(self.file_of(node)).guessed
    }

    /// A symbolic link's target, if known.
    pub fn target(&self, node: Node) -> Option<&[u8]> {
        self.file(self.file_of(node)).target.as_deref()
    }

    /// The tracer printed `real` for what was given as `given` (both absolute): somewhere on the way is a symbolic
    /// link. The simplest explanation is taken: the link is where the two paths part, seen from their ends, unless the
    /// trace showed that name to be no link.
    pub fn learn_link(&mut self, given: &[u8], real: &[u8]) {
        let (mut short, mut target) = (given, real);
        while let (Some((dir, name)), Some((real_dir, real_name))) = (split_name(short), split_name(target)) {
            if name != real_name || dir.is_empty() || real_dir.is_empty() {
                break;
            }
            (short, target) = (dir, real_dir);
        }
        // From the top down: the first name that can be a link is taken for it.
        loop {
            if let Some((dir, name)) = split_name(short) {
                let parent = self.walk(self.root, dir, true, true).node;
                let old = parent.and_then(|parent| self.child(parent, name));
                if let (Some(parent), false) = (parent, old.is_some_and(|old| self.is_certain(old))) {
                    if let Some(old) = old {
                        self.forget(old);
                    }
                    let link = self.new_file(Kind::Symlink);
                    let state = self.file_mut(link);
                    (state.target, state.guessed) = (Some(target.into()), true);
                    self.add(parent, name, link, Birth::Before);
                    return;
                }
            }
            if short.len() >= given.len() {
                return;
            }
            // One component more of each.
            let more = given[short.len() + 1..].iter().position(|&b| b == b'/');
            let longer = more.map_or(given.len(), |more| short.len() + 1 + more);
            target = real.get(..target.len() + longer - short.len()).unwrap_or(real);
            short = &given[..longer];
        }
    }

    /// Walks a path from a directory. With `make`, missing entries are made, since the call showed that they exist.
    /// With `follow`, a link at the last component is followed.
    pub fn walk(&mut self, start: Node, path: &[u8], follow: bool, make: bool) -> Walk {
        match tree::walk(&mut WalkNames { names: self, make }, start, path, follow) {
            tree::Walk::Found { node, .. } => Walk { parent: Some(self.parent_of(node)), node: Some(node) },
            tree::Walk::Missing { dir, last: true, .. } => Walk { parent: Some(dir), node: None },
            _ => Walk { parent: None, node: None },
        }
    }

    /// Where an open that makes a file would put it: the directory and the name, at the end of all links.
    pub fn walk_to_make(&mut self, start: Node, path: &[u8], follow: bool) -> Option<(Node, Vec<u8>)> {
        match tree::walk(&mut WalkNames { names: self, make: false }, start, path, follow) {
            tree::Walk::Missing { dir, name, last: true } => Some((dir, name.into_owned())),
            _ => None,
        }
    }
}

/// The names as a walk finds them.
struct WalkNames<'n> {
    names: &'n mut Names,
    /// Whether a name that is not known is made.
    make: bool,
}

impl tree::Names for WalkNames<'_> {
    type Node = Node;

    fn root(&self) -> Node {
        self.names.root
    }

    fn up(&mut self, directory: Node) -> Node {
        self.names.parent_of(directory)
    }

    fn child(&mut self, directory: Node, name: &[u8], last: bool) -> Option<Node> {
        let known = self.names.child(directory, name);
        if known.is_none() && self.make {
            let file = self.names.new_file(if last { Kind::Unknown } else { Kind::Directory });
            return Some(self.names.add(directory, name, file, Birth::Before));
        }
        known
    }

    fn what(&self, node: Node) -> What<'_> {
        let state = self.names.file(self.names.file_of(node));
        match state.kind {
            Kind::Symlink => What::Link(state.target.as_deref()),
            // What a file was taken for is not held against the call that went through it.
            _ => What::Directory,
        }
    }
}

#[cfg(test)]
impl Names {
    /// What holds after every call: entries are a tree; directories and entries agree; every file is counted right.
    /// `open`: the files of all open descriptions.
    pub fn check(&self, open: &[Option<File>]) {
        let mut names: FxHashMap<File, u32> = FxHashMap::default();
        let mut seen = 0;
        let mut stack = vec![self.root];
        while let Some(node) = stack.pop() {
            seen += 1;
            assert!(seen <= self.entries.len(), "an entry is reached twice");
            let entry = &self.entries[node];
            *names.entry(entry.file).or_insert(0) += 1;
            for (name, &child) in &entry.children {
                let below = self.entries.get(child).expect("a directory holds an entry that is gone");
                assert_eq!((below.parent, &below.name), (node, name), "directory and entry agree");
                stack.push(child);
            }
        }
        assert_eq!(seen, self.entries.len(), "entries that no directory holds");
        let mut opens: FxHashMap<File, u32> = FxHashMap::default();
        let above = self.files.values().map(|state| state.was_in);
        for file in open.iter().copied().chain(above).flatten() {
            *opens.entry(file).or_insert(0) += 1;
        }
        for (file, state) in &self.files {
            let count = |of: &FxHashMap<File, u32>| of.get(&file).copied().unwrap_or(0);
            assert_eq!(
                (state.names(), state.opens),
                (count(&names), count(&opens)),
                "names and opens of {:?}",
                state.id
            );
            assert!(state.names() + state.opens > 0, "{:?} is kept by nobody", state.id);
            for &node in state.node.iter().chain(&state.more) {
                assert_eq!(self.entries.get(node).map(|entry| entry.file), Some(file), "a name of {:?}", state.id);
            }
        }
        for file in names.keys().chain(opens.keys()) {
            assert!(self.files.contains_key(*file), "a file that is gone has a name or is open");
        }
    }
}

/// Splits `/a/b/c` into `/a/b` and `c`; `None` at the root.
fn split_name(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = memchr::memrchr(b'/', path)?;
    let (dir, name) = (&path[..slash], &path[slash + 1..]);
    (!name.is_empty() && name != b"." && name != b"..").then_some((dir, name))
}
