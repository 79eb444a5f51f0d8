//! A dense least-recently-used list: ids index arrays, nothing is hashed or allocated per touch.

use super::list::{END, Links, List};

/// Recency order over small integer ids. Without a limit nothing is ever evicted and no order is kept, which is faster.
#[derive(Clone, Debug)]
pub struct Lru {
    links: Links,
    list: List,
    len: usize,
    limit: Option<usize>,
}

impl Lru {
    /// An empty list that holds at most `limit` ids (at least one); `None`: any number.
    pub fn new(limit: Option<usize>) -> Lru {
        Lru { links: Links::default(), list: List::default(), len: 0, limit: limit.map(|n| n.max(1)) }
    }

    /// How many ids are in.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether an id is in.
    pub fn contains(&self, id: u32) -> bool {
        self.links.contains(id)
    }

    /// The id that would be evicted next.
    pub fn oldest(&self) -> Option<u32> {
        (self.list.oldest != END).then_some(self.list.oldest)
    }

    /// Makes an id the newest, letting it in if it was out; says whether it was in. The caller evicts with
    /// [`pop_over_limit`](Lru::pop_over_limit).
    #[inline]
    pub fn touch(&mut self, id: u32) -> bool {
        let was_in = self.links.reserve(id);
        if self.limit.is_none() {
            if !was_in {
                self.links.mark(id);
                self.len += 1;
            }
            return was_in;
        }
        if was_in {
            self.links.renew(&mut self.list, id);
        } else {
            self.len += 1;
            self.links.push(&mut self.list, id);
        }
        was_in
    }

    /// Evicts the oldest id if there are more than the limit.
    #[inline]
    pub fn pop_over_limit(&mut self) -> Option<u32> {
        if self.len <= self.limit? { None } else { self.pop_oldest() }
    }

    /// Evicts the oldest id. A list without a limit keeps no order and gives nothing.
    pub fn pop_oldest(&mut self) -> Option<u32> {
        let id = self.oldest()?;
        self.remove(id);
        Some(id)
    }

    /// Takes an id out; says whether it was in.
    pub fn remove(&mut self, id: u32) -> bool {
        if !self.contains(id) {
            return false;
        }
        if self.limit.is_some() {
            self.links.remove(&mut self.list, id);
        } else {
            self.links.clear(id);
        }
        self.len -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Lru;
    use proptest::prelude::*;

    /// The obvious list.
    struct Naive {
        order: Vec<u32>,
        limit: usize,
    }

    impl Naive {
        fn touch(&mut self, id: u32) -> bool {
            let at = self.order.iter().position(|&x| x == id);
            if let Some(at) = at {
                self.order.remove(at);
            }
            self.order.push(id);
            at.is_some()
        }
    }

    proptest! {
        #[test]
        fn is_the_naive_list(limit in 1usize..20, ops in prop::collection::vec((0u32..40, 0u8..8), 0..400)) {
            let mut lru = Lru::new(Some(limit));
            let mut naive = Naive { order: Vec::new(), limit };
            for (id, op) in ops {
                if op == 0 {
                    let at = naive.order.iter().position(|&x| x == id);
                    prop_assert_eq!(lru.remove(id), at.is_some());
                    if let Some(at) = at { naive.order.remove(at); }
                } else {
                    prop_assert_eq!(lru.touch(id), naive.touch(id));
                    let evicted = (naive.order.len() > naive.limit).then(|| naive.order.remove(0));
                    prop_assert_eq!(lru.pop_over_limit(), evicted);
                }
                prop_assert_eq!(lru.len(), naive.order.len());
                prop_assert_eq!(lru.oldest(), naive.order.first().copied());
                for id in 0..40 {
                    prop_assert_eq!(lru.contains(id), naive.order.contains(&id));
                }
            }
        }

        #[test]
        fn without_a_limit_nothing_leaves(ids in prop::collection::vec(0u32..100, 0..200)) {
            let mut lru = Lru::new(None);
            let mut seen = std::collections::BTreeSet::new();
            for id in ids {
                prop_assert_eq!(lru.touch(id), !seen.insert(id));
                prop_assert_eq!(lru.pop_over_limit(), None);
            }
            prop_assert_eq!(lru.len(), seen.len());
        }
    }
}
