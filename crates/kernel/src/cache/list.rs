//! Doubly linked lists through the slots of a table: an order that costs two words a slot and no allocation.

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// Links of every slot; a slot is in at most one list that uses these links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links(Vec<[u32; 2]>);

/// A list: first (oldest) and last (newest) slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl Default for List {
    fn default() -> List {
        List { first: NONE, last: NONE }
    }
}

impl List {
    pub(crate) fn is_empty(self) -> bool {
        self.first == NONE
    }
}

impl Links {
    /// Appends a slot that is in no list.
    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, slot: u32) {
        let at = slot as usize;
        if at >= self.0.len() {
            self.0.resize(at + 1, [NONE; 2]);
        }
        self.0[at] = [list.last, NONE];
        match list.last {
            NONE => list.first = slot,
            last => self.0[last as usize][1] = slot,
        }
        list.last = slot;
    }

    /// Takes out a slot that is in this list.
    #[inline]
    pub(crate) fn remove(&mut self, list: &mut List, slot: u32) {
        let [before, after] = self.0[slot as usize];
        match before {
            NONE => list.first = after,
            before => self.0[before as usize][1] = after,
        }
        match after {
            NONE => list.last = before,
            after => self.0[after as usize][0] = before,
        }
    }

    /// Makes a slot of this list the last.
    #[inline]
    pub(crate) fn renew(&mut self, list: &mut List, slot: u32) {
        if list.last != slot {
            self.remove(list, slot);
            self.push(list, slot);
        }
    }

    /// The slot behind one.
    #[inline]
    pub(crate) fn next(&self, slot: u32) -> Option<u32> {
        let next = self.0.get(slot as usize)?[1];
        (next != NONE).then_some(next)
    }

    pub(crate) fn iter(&self, list: List) -> impl Iterator<Item = u32> + '_ {
        let first = (list.first != NONE).then_some(list.first);
        std::iter::successors(first, |&slot| self.next(slot))
    }
}
