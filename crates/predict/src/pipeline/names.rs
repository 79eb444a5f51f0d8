//! Interned path components, so that a walk compares numbers.

use rustc_hash::FxHashMap;

/// An interned component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// The table of components. Names that no slot of the tree holds are freed by [`sweep`](Names::sweep), so that
/// temporary names do not pile up.
#[derive(Debug, Default)]
pub struct Names {
    index: FxHashMap<Box<[u8]>, NameId>,
    names: Vec<Box<[u8]>>,
    holders: Vec<u32>,
    free: Vec<NameId>,
    candidates: Vec<NameId>,
}

impl Names {
    /// The number of a component. It stays valid until the next sweep, or as long as it is held.
    pub fn intern(&mut self, name: &[u8]) -> NameId {
        if let Some(&id) = self.index.get(name) {
            return id;
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.names[id.0 as usize] = name.into();
                id
            }
            None => {
                let id = NameId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
                self.names.push(name.into());
                self.holders.push(0);
                id
            }
        };
        self.index.insert(name.into(), id);
        self.candidates.push(id);
        id
    }

    /// The bytes of a component.
    pub fn get(&self, id: NameId) -> &[u8] {
        self.names.get(id.0 as usize).map_or(&[], |n| n)
    }

    /// Keeps a component.
    pub fn hold(&mut self, id: NameId) {
        self.holders[id.0 as usize] += 1;
    }

    /// Undoes one [`hold`](Names::hold).
    pub fn release(&mut self, id: NameId) {
        let holders = &mut self.holders[id.0 as usize];
        assert!(*holders > 0, "a name is released as often as it is held");
        *holders -= 1;
        if *holders == 0 {
            self.candidates.push(id);
        }
    }

    /// Frees what nobody holds. Numbers that are not held are invalid afterwards.
    pub fn sweep(&mut self) {
        for id in std::mem::take(&mut self.candidates) {
            let at = id.0 as usize;
            if self.holders[at] == 0 && self.index.get(&self.names[at]) == Some(&id) {
                self.index.remove(&self.names[at]);
                self.names[at] = Box::default();
                self.free.push(id);
            }
        }
    }

    /// How many components are interned.
    pub fn len(&self) -> usize {
        self.index.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_lives_as_long_as_it_is_held() {
        let mut names = Names::default();
        let a = names.intern(b"a");
        let b = names.intern(b"b");
        names.hold(a);
        names.sweep();
        assert_eq!((names.get(a), names.len()), (b"a".as_slice(), 1));
        let c = names.intern(b"c");
        assert_eq!(c, b, "the number of b is free");
        names.release(a);
        names.sweep();
        assert_eq!(names.len(), 0);
    }
}
