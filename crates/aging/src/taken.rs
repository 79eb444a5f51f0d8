//! Which names of a directory are taken, where a plan gives names.
//!
//! Of two nodes in one directory no two may have one name. Names that a plan gives are kept here; names derived from
//! numbers ([`AgingOp::derived_name`](crate::AgingOp::derived_name)) differ by themselves, and are kept by nobody: they
//! are taken where a name that is given looks like one.

use crate::{AgingOp, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::sync::Arc;

/// Names given to the nodes alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    in_dir: FxHashMap<NodeId, FxHashSet<Arc<[u8]>>>,
    of_node: FxHashMap<NodeId, (NodeId, Arc<[u8]>)>,
}

impl Taken {
    /// Whether a node may have a name in a directory. `derived` answers whether a node is in that directory, is a
    /// directory if so asked, and has no name of its own.
    pub(crate) fn is_free(
        &self,
        (node, directory): (NodeId, bool),
        dir: NodeId,
        name: Option<&[u8]>,
        derived: impl FnOnce(NodeId, bool) -> bool,
    ) -> bool {
        let by_number = || {
            let other = name.and_then(parsed);
            other.is_some_and(|(other, is_directory)| other != node && derived(other, is_directory))
        };
        let given = || {
            let Some(names) = self.in_dir.get(&dir) else { return false };
            let by_itself = || AgingOp::derived_name(node, directory).into_bytes();
            let name = name.map_or_else(|| Cow::Owned(by_itself()), Cow::Borrowed);
            let own = self.of_node.get(&node).is_some_and(|(at, own)| *at == dir && **own == *name);
            names.contains(&*name) && !own
        };
        !given() && !by_number()
    }

    /// Whether a node has a name that the plan gave it.
    pub(crate) fn has_given(&self, node: NodeId) -> bool {
        self.of_node.contains_key(&node)
    }

    /// Gives a node a name, in place of the one it had. The name is free.
    pub(crate) fn take(&mut self, node: NodeId, dir: NodeId, name: Option<&[u8]>) {
        self.free(node);
        let Some(name) = name else { return };
        let name: Arc<[u8]> = name.into();
        let new = self.in_dir.entry(dir).or_default().insert(Arc::clone(&name));
        assert!(new, "a name is taken once: is_free was asked");
        self.of_node.insert(node, (dir, name));
    }

    /// Takes a node's name away.
    pub(crate) fn free(&mut self, node: NodeId) {
        let Some((dir, name)) = self.of_node.remove(&node) else { return };
        if let Some(names) = self.in_dir.get_mut(&dir) {
            names.remove(&name);
            if names.is_empty() {
                self.in_dir.remove(&dir);
            }
        }
    }
}

/// The node whose derived name a name is, and whether as a directory.
fn parsed(name: &[u8]) -> Option<(NodeId, bool)> {
    let (directory, digits) = match name.split_first()? {
        (b'd', digits) => (true, digits),
        (b'f', digits) => (false, digits),
        _ => return None,
    };
    let node = NodeId(u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
    // A number has one spelling.
    (AgingOp::derived_name(node, directory).as_bytes() == name).then_some((node, directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_derived() {
        assert_eq!(parsed(b"f1a"), Some((NodeId(26), false)));
        assert_eq!(parsed(b"d0"), Some((NodeId(0), true)));
        for name in [&b"f"[..], b"f01", b"f1A", b"f+1", b"g1", b"", b"f11111111111111111", b"f1 "] {
            assert_eq!(parsed(name), None, "{}", name.escape_ascii());
        }
    }
}
