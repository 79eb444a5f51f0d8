//! The bytes of blocks in memory, by the cache's slots.

use std::sync::Arc;

/// The bytes of some of the blocks in memory.
#[derive(Clone, Default)]
pub(crate) struct Payloads {
    by_slot: Vec<Option<Arc<[u8]>>>,
    /// How many there are.
    held: usize,
    /// Memory for the next ones: to take it from the allocator each time costs page faults. As much as was once in use.
    spare: Vec<Arc<[u8]>>,
}

impl Payloads {
    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// The bytes of a slot, to be written: they stay as they are.
    pub(crate) fn share(&self, slot: u32) -> Option<Arc<[u8]>> {
        self.by_slot.get(slot as usize)?.clone()
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&[u8]> {
        self.by_slot.get(slot as usize)?.as_deref()
    }

    /// The bytes of a slot. One that has none gets `bytes` of them, with anything in them: `make` fills them.
    pub(crate) fn get_or_insert_with(&mut self, slot: u32, bytes: usize, make: impl FnOnce(&mut [u8])) -> &mut [u8] {
        let slot = slot as usize;
        if self.by_slot.len() <= slot {
            self.by_slot.resize_with(slot + 1, || None);
        }
        let place = &mut self.by_slot[slot];
        if place.is_none() {
            self.held += 1;
            let mut payload = match self.spare.pop() {
                Some(spare) if spare.len() == bytes => spare,
                _ => zeros(bytes),
            };
            make(Arc::get_mut(&mut payload).expect("what is spare or new is nobody else's"));
            *place = Some(payload);
        }
        // Copied where it is on its way to the image.
        Arc::make_mut(place.as_mut().expect("it has just been made"))
    }

    /// Makes those of a slot, if it has any, shorter, or longer by zeros.
    pub(crate) fn resize(&mut self, slot: u32, bytes: usize) {
        if let Some(Some(payload)) = self.by_slot.get_mut(slot as usize) {
            let mut other = payload.to_vec();
            other.resize(bytes, 0);
            *payload = other.into();
        }
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(mut payload) = self.by_slot.get_mut(slot as usize).and_then(Option::take) else { return };
        self.held -= 1;
        if Arc::get_mut(&mut payload).is_some() {
            self.spare.push(payload);
        }
    }
}

fn zeros(bytes: usize) -> Arc<[u8]> {
    std::iter::repeat_n(0, bytes).collect()
}
