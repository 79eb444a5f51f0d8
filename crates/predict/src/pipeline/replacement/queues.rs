//! The lists of a policy, and what it notes of each chunk.

use crate::pipeline::list::{END, Links, List};

/// Which of a policy's lists: an index, or this for none.
const NOWHERE: u8 = u8::MAX;

/// What is noted of a chunk.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Pages used in the pass that goes on.
    used: u64,
    list: u8,
    /// What the policy counts of its uses.
    bits: u8,
    pages: u8,
}

const OUT: Slot = Slot { used: 0, list: NOWHERE, bits: 0, pages: 0 };

/// What a touch is to a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Nothing new: nobody asked for these pages, or for others of them before in the same pass.
    GoesOn,
    /// Its first use since it came in.
    First,
    /// It was used before.
    Again,
}

/// `N` lists.
#[derive(Clone, Debug)]
pub(super) struct Queues<const N: usize> {
    links: Links,
    slots: Vec<Slot>,
    lists: [List; N],
    pages: [u64; N],
}

impl<const N: usize> Default for Queues<N> {
    fn default() -> Self {
        Queues { links: Links::default(), slots: Vec::new(), lists: [List::default(); N], pages: [0; N] }
    }
}

impl<const N: usize> Queues<N> {
    /// Pages in a list.
    #[inline]
    pub fn pages(&self, list: usize) -> u64 {
        self.pages[list]
    }

    /// The chunk that has been in a list for longest.
    #[inline]
    pub fn oldest(&self, list: usize) -> Option<u32> {
        let oldest = self.lists[list].oldest;
        (oldest != END).then_some(oldest)
    }

    /// The chunk that came into the same list after one.
    #[inline]
    pub fn newer(&self, id: u32) -> Option<u32> {
        let newer = self.links.newer(id);
        (newer != END).then_some(newer)
    }

    /// Which list a chunk is in.
    #[inline]
    pub fn list_of(&self, id: u32) -> Option<usize> {
        let list = self.slots.get(id as usize)?.list;
        (list != NOWHERE).then_some(usize::from(list))
    }

    /// Pages of a chunk.
    #[inline]
    pub fn pages_of(&self, id: u32) -> u64 {
        self.slots.get(id as usize).map_or(0, |slot| slot.pages.into())
    }

    /// What the policy counts of a chunk.
    #[inline]
    pub fn bits(&mut self, id: u32) -> &mut u8 {
        &mut self.slots[id as usize].bits
    }

    /// Notes a use of pages of a chunk.
    #[inline]
    pub fn pass(&mut self, id: u32, used: u64) -> Pass {
        let slot = &mut self.slots[id as usize];
        if used & slot.used != 0 {
            slot.used = used;
            return Pass::Again;
        }
        let is_first = slot.used == 0 && used != 0;
        slot.used |= used;
        if is_first { Pass::First } else { Pass::GoesOn }
    }

    /// Lets a chunk into a list, as its newest.
    #[inline]
    pub fn push(&mut self, list: usize, id: u32, pages: u8, used: u64) {
        self.let_in(list, id, pages, used);
        self.links.push(&mut self.lists[list], id);
    }

    /// Lets a chunk into the list of `at`, as the one that is just older.
    #[inline]
    pub fn push_before(&mut self, list: usize, id: u32, pages: u8, used: u64, at: u32) {
        self.let_in(list, id, pages, used);
        self.links.push_before(&mut self.lists[list], id, at);
    }

    #[inline]
    fn let_in(&mut self, list: usize, id: u32, pages: u8, used: u64) {
        let is_in = self.links.reserve(id);
        assert!(!is_in, "a chunk comes in once");
        let at = id as usize;
        if at >= self.slots.len() {
            self.slots.resize(at + 1 + at / 2, OUT);
        }
        self.slots[at] = Slot { used, list: list as u8, bits: 0, pages };
        self.pages[list] += u64::from(pages);
    }

    /// Makes a chunk the newest of a list, its own or another.
    #[inline]
    pub fn shift(&mut self, list: usize, id: u32) {
        let slot = &mut self.slots[id as usize];
        let from = usize::from(slot.list);
        if from == list {
            self.links.renew(&mut self.lists[list], id);
            return;
        }
        slot.list = list as u8;
        let pages = u64::from(slot.pages);
        self.pages[from] -= pages;
        self.pages[list] += pages;
        self.links.remove(&mut self.lists[from], id);
        self.links.push(&mut self.lists[list], id);
    }

    /// Takes a chunk out, if it is in.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        let Some(list) = self.list_of(id) else { return };
        self.pages[list] -= self.pages_of(id);
        self.links.remove(&mut self.lists[list], id);
        self.slots[id as usize] = OUT;
    }

    /// A chunk has another number of pages now.
    #[inline]
    pub fn resize(&mut self, id: u32, pages: u8) {
        let Some(list) = self.list_of(id) else { return };
        self.pages[list] = self.pages[list] - self.pages_of(id) + u64::from(pages);
        self.slots[id as usize].pages = pages;
    }
}
