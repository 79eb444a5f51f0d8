//! What must hold of a tracker after every call. For tests.

use super::Tracker;

impl Tracker {
    /// Checks tables, descriptions, names and files against each other.
    ///
    /// # Panics
    /// Where they disagree.
    pub(crate) fn check(&self) {
        let mut open = self.fds.check();
        open.extend(self.fs.iter().filter(|fs| fs.users > 0).map(|fs| fs.directory));
        open.extend(self.fs.iter().filter(|fs| fs.users > 0).map(|fs| fs.root.map(|(_, file)| file)));
        self.names.check(&open);
        for fs in self.fs.iter().filter(|fs| fs.users > 0) {
            if let Some(node) = fs.node.filter(|&node| self.names.is_live(node)) {
                let mut path = Vec::new();
                self.names.path(node, &mut path);
                assert_eq!(path.first(), Some(&b'/'));
            }
        }
    }
}
