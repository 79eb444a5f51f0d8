//! Doubly linked lists through the slots of a table: an order that costs two words a slot, no hashing and no
//! allocation.

/// No slot: beyond either end of a list.
pub(super) const END: u32 = u32::MAX;

/// What stands in for a neighbour of a slot that is in no list.
const ABSENT: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

const OUT: Link = Link { newer: ABSENT, older: ABSENT };

/// Links of every slot; a slot is in at most one of the lists that use them.
#[derive(Clone, Debug, Default)]
pub(super) struct Links(Vec<Link>);

/// A list: its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    /// The slot that came in last, or [`END`].
    pub newest: u32,
    /// The slot that came in first, or [`END`].
    pub oldest: u32,
}

impl Default for List {
    fn default() -> List {
        List { newest: END, oldest: END }
    }
}

impl Links {
    /// Whether a slot is in a list.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.0.get(id as usize).is_some_and(|link| link.newer != ABSENT)
    }

    /// Makes room for a slot; says whether it is in a list.
    #[inline]
    pub fn reserve(&mut self, id: u32) -> bool {
        let at = id as usize;
        if at >= self.0.len() {
            self.0.resize(at + 1 + at / 2, OUT);
        }
        self.0[at].newer != ABSENT
    }

    /// Marks a slot as in a list of which nobody needs the order.
    #[inline]
    pub fn mark(&mut self, id: u32) {
        self.0[id as usize] = Link { newer: END, older: END };
    }

    /// The slot that came in after one, or [`END`].
    #[inline]
    pub fn newer(&self, id: u32) -> u32 {
        self.0[id as usize].newer
    }

    /// Makes a slot the newest of a list; it must be in none, and room must be reserved.
    #[inline]
    pub fn push(&mut self, list: &mut List, id: u32) {
        self.0[id as usize] = Link { newer: END, older: list.newest };
        if list.newest != END {
            self.0[list.newest as usize].newer = id;
        } else {
            list.oldest = id;
        }
        list.newest = id;
    }

    /// Puts a slot between `at`, which is in the list, and the one that is older than that.
    #[inline]
    pub fn push_before(&mut self, list: &mut List, id: u32, at: u32) {
        let older = self.0[at as usize].older;
        self.0[id as usize] = Link { newer: at, older };
        self.0[at as usize].older = id;
        if older != END {
            self.0[older as usize].newer = id;
        } else {
            list.oldest = id;
        }
    }

    /// Takes a slot out of its list.
    #[inline]
    pub fn remove(&mut self, list: &mut List, id: u32) {
        self.unlink(list, id);
        self.0[id as usize] = OUT;
    }

    /// Makes a slot of a list its newest.
    #[inline]
    pub fn renew(&mut self, list: &mut List, id: u32) {
        if list.newest != id {
            self.unlink(list, id);
            self.push(list, id);
        }
    }

    /// Marks a slot as in no list, without looking at its neighbours.
    #[inline]
    pub fn clear(&mut self, id: u32) {
        self.0[id as usize] = OUT;
    }

    #[inline]
    fn unlink(&mut self, list: &mut List, id: u32) {
        let Link { newer, older } = self.0[id as usize];
        if newer == END {
            list.newest = older
        } else {
            self.0[newer as usize].older = older
        }
        if older == END { list.oldest = newer } else { self.0[older as usize].newer = newer }
    }
}
