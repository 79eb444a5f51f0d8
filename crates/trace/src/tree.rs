//! The walk of a path through names that are known: one for every model of a traced file system.
//!
//! Components, `.` and `..`, symbolic links and their number, and slashes at the end are here, as `path_resolution(7)` has them. What a name
//! leads to, and whether one that is not known is taken to be there, is the model's ([`Names`]).

use posix::LINKS_MAX;
use std::borrow::Cow;

/// What a walk asks a model.
pub trait Names {
    /// What a name leads to.
    type Node: Copy;

    /// The root directory.
    fn root(&self) -> Self::Node;

    /// The directory that a directory is in; the root is in itself.
    fn parent(&self, directory: Self::Node) -> Self::Node;

    /// What a name in a directory leads to. A model that believes in what it does not know makes it here; `last`: it ends the path.
    fn child(&mut self, directory: Self::Node, name: &[u8], last: bool) -> Option<Self::Node>;

    /// What a node is to a walk.
    fn what(&self, node: Self::Node) -> What<'_>;
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
        /// The directory that its name is in.
        dir: N,
        /// Its name there; empty where the path ends in none (`/`, `..`).
        name: Cow<'p, [u8]>,
        /// Itself.
        node: N,
    },
    /// At a name that is not there (`ENOENT`).
    Missing {
        /// The directory that it was looked up in.
        dir: N,
        /// The name.
        name: Cow<'p, [u8]>,
        /// What of the path follows it; `None` where components follow and some are those of a link's target.
        rest: Option<&'p [u8]>,
    },
    /// At something that is no directory, and a slash or a component after it (`ENOTDIR`).
    NotDirectory,
    /// At a link whose target is not known; `last`: nothing follows it.
    Unknown {
        /// The link.
        link: N,
        /// Whether nothing follows it.
        last: bool,
    },
    /// At one link too many (`ELOOP`).
    Loop,
}

/// The name of what the path ends at without naming it.
const NO_NAME: Cow<'static, [u8]> = Cow::Borrowed(b"");

/// Walks a path from a directory, an absolute one from the root. `follow`: a link at its end is followed, as one with a slash after it always is.
pub fn walk<'p, T: Names>(names: &mut T, from: T::Node, path: &'p [u8], follow: bool) -> Walk<'p, T::Node> {
    let mut node = if path.first() == Some(&b'/') { names.root() } else { from };
    let (mut dir, mut own_name) = (node, NO_NAME);
    // How many bytes at the end of what is left are the path's own: what is before them is of links.
    let (mut rest, mut own_bytes, mut links) = (path, path.len(), 0);
    let mut holds_names = names.what(node) == What::Directory;
    let mut owned: Vec<u8>;
    while let Some((name, after)) = next_component(rest) {
        let last = after.iter().all(|&b| b == b'/');
        if !holds_names {
            return Walk::NotDirectory;
        }
        match name {
            b"." => {}
            b".." => {
                node = names.parent(node);
                (dir, own_name) = (names.parent(node), NO_NAME);
            }
            _ => {
                let Some(child) = names.child(node, name, last) else {
                    let rest = match own_end(path, own_bytes, after.len()) {
                        None if last => Some(&b""[..]),
                        rest => rest,
                    };
                    return Walk::Missing { dir: node, name: own(path, own_bytes, name, after), rest };
                };
                let what = names.what(child);
                holds_names = what == What::Directory;
                match what {
                    What::Link(target) if !last || follow || !after.is_empty() => {
                        let Some(target) = target else { return Walk::Unknown { link: child, last } };
                        links += 1;
                        if links > LINKS_MAX {
                            return Walk::Loop;
                        }
                        own_bytes = own_bytes.min(after.len());
                        owned = [target, after].concat();
                        // What a link leads on from is a directory: the one it is in, or the root.
                        holds_names = true;
                        if target.first() == Some(&b'/') {
                            node = names.root();
                        }
                        (dir, own_name) = (node, NO_NAME);
                        rest = &owned;
                        continue;
                    }
                    What::Other if !after.is_empty() => return Walk::NotDirectory,
                    _ => (dir, own_name, node) = (node, own(path, own_bytes, name, after), child),
                }
            }
        }
        rest = after;
    }
    Walk::Found { dir, name: own_name, node }
}

/// The last `len` bytes of a path, if so many of its own are left.
fn own_end(path: &[u8], own_bytes: usize, len: usize) -> Option<&[u8]> {
    path.get(path.len().checked_sub(len)?..).filter(|_| len <= own_bytes)
}

/// A name with `after` behind it: in the path where it is the path's own.
fn own<'p>(path: &'p [u8], own_bytes: usize, name: &[u8], after: &[u8]) -> Cow<'p, [u8]> {
    let end = own_end(path, own_bytes, name.len() + after.len());
    end.and_then(|end| end.get(..name.len())).map_or_else(|| Cow::Owned(name.to_vec()), Cow::Borrowed)
}

/// The first component of a path and what follows it; `None` where only slashes are left.
fn next_component(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = path.iter().position(|&b| b != b'/')?;
    let path = &path[start..];
    let end = memchr::memchr(b'/', path).unwrap_or(path.len());
    Some(path.split_at(end))
}

/// The components of a path, `.` and `..` included.
pub fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
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

    /// `/a/f` a file, and links in `/a`; a node is an index.
    const NODES: [(usize, &str, What<'static>); 11] = [
        (0, "", What::Directory),
        (0, "a", What::Directory),
        (1, "f", What::Other),
        (1, "l", What::Link(Some(b"/a/f"))),
        (1, "up", What::Link(Some(b"../a"))),
        (1, "self", What::Link(Some(b"self"))),
        (1, "dangling", What::Link(Some(b"new"))),
        (1, "unknown", What::Link(None)),
        (1, "here", What::Link(Some(b""))),
        (1, "top", What::Link(Some(b"/"))),
        (1, "deep", What::Link(Some(b"new/b"))),
    ];

    /// `/c1` leads to `/c2` and so on, to `/a`.
    struct Known {
        chain: usize,
        targets: Vec<String>,
    }

    impl Known {
        fn new(chain: usize) -> Known {
            let target = |at: usize| if at == chain { "a".to_owned() } else { format!("c{}", at + 1) };
            Known { chain, targets: (0..=chain).map(target).collect() }
        }
    }

    impl Names for Known {
        type Node = usize;

        fn root(&self) -> usize {
            0
        }

        fn parent(&self, directory: usize) -> usize {
            NODES[directory].0
        }

        fn child(&mut self, directory: usize, name: &[u8], _: bool) -> Option<usize> {
            let link = std::str::from_utf8(name).ok()?.strip_prefix('c').and_then(|at| at.parse::<usize>().ok());
            if let Some(at) = link.filter(|&at| directory == 0 && at <= self.chain) {
                return Some(NODES.len() + at);
            }
            (1..NODES.len()).find(|&at| NODES[at].0 == directory && NODES[at].1.as_bytes() == name)
        }

        fn what(&self, node: usize) -> What<'_> {
            match NODES.get(node) {
                Some((_, _, what)) => *what,
                None => What::Link(Some(self.targets[node - NODES.len()].as_bytes())),
            }
        }
    }

    fn walked(path: &str, follow: bool) -> Walk<'_, usize> {
        walk(&mut Known::new(0), 1, path.as_bytes(), follow)
    }

    fn found(path: &str, follow: bool) -> Option<usize> {
        match walked(path, follow) {
            Walk::Found { node, .. } => Some(node),
            _ => None,
        }
    }

    #[test]
    fn dots_and_slashes() {
        assert_eq!(found("/a/../a/.//f", true), Some(2));
        assert_eq!(found("/..//../a/", true), Some(1), "`..` at the root stays there");
        assert_eq!((found("", true), found("/", true), found("f", true)), (Some(1), Some(0), Some(2)));
        let place = Walk::Found { dir: 0, name: b"a"[..].into(), node: 1 };
        assert_eq!((walked("/a/.", true), walked("top/a", true)), (place.clone(), place));
        assert_eq!(walked("/a/..", true), Walk::Found { dir: 0, name: b""[..].into(), node: 0 });
    }

    #[test]
    fn links_are_followed_on_the_way_and_at_the_end_as_asked() {
        assert_eq!((found("l", true), found("l", false)), (Some(2), Some(3)));
        assert_eq!((found("up/up/f", false), found("up/", false), found("up", false)), (Some(2), Some(1), Some(4)));
        assert_eq!((found("here/f", true), found("here", true), found("top", true)), (Some(2), Some(1), Some(0)));
        assert_eq!(found("here/../a", true), Some(1), "a target of nothing leads to where it is");
        assert_eq!(walked("up/l", true), Walk::Found { dir: 1, name: b"f"[..].into(), node: 2 });
        assert_eq!(walked("unknown", true), Walk::Unknown { link: 7, last: true });
        assert_eq!(walked("unknown/f", false), Walk::Unknown { link: 7, last: false });
    }

    #[test]
    fn only_directories_hold_names() {
        for path in ["f/x", "f/.", "f/..", "f/", "l/", "l/x"] {
            assert_eq!(walked(path, false), Walk::NotDirectory, "{path}");
        }
    }

    #[test]
    fn what_is_missing_is_told_with_what_follows() {
        let missing = |name: &'static str, rest: Option<&'static [u8]>| Walk::Missing {
            dir: 1,
            name: Cow::Borrowed(name.as_bytes()),
            rest,
        };
        assert_eq!(walked("new", true), missing("new", Some(b"")));
        assert_eq!(walked("/a/new//b/", true), missing("new", Some(b"//b/")));
        assert_eq!(walked("dangling", true), missing("new", Some(b"")));
        assert_eq!(walked("dangling/b", true), missing("new", Some(b"/b")));
        assert_eq!(walked("up/new/b", true), missing("new", Some(b"/b")));
        assert_eq!(walked("deep", true), missing("new", None));
    }

    #[test]
    fn as_many_links_as_the_kernel_follows() {
        let links = LINKS_MAX as usize;
        let ended = |chain| walk(&mut Known::new(chain), 0, b"/c0", true);
        assert!(matches!(ended(links - 1), Walk::Found { node: 1, .. }));
        assert_eq!(ended(links), Walk::Loop);
        assert_eq!(walked("self", true), Walk::Loop);
        assert_eq!(found("self", false), Some(5));
    }
}
