//! Telling a device what holds nothing of value any more.
//!
//! A discard takes effect when the device gets it, which may be some time after the operation that asked for it:
//! whoever writes to the same place meanwhile waits for it first, or it would take the new data with it.

use crate::program::{Direction, IoId, Step};
use crate::{Cx, Pbn};

/// Where one begins and ends, and its request.
type Discard = (Pbn, (Pbn, IoId));

impl Cx {
    /// Tells the device that a place holds nothing of value any more (a trim); nobody waits for it. The bytes there are
    /// anything from now on. Nothing happens where the device has no such command.
    pub fn discard(&mut self, pbn: Pbn, bytes: u64) -> Option<IoId> {
        if !self.discards.supported || bytes < Pbn::BYTES {
            return None;
        }
        self.cpu(self.costs.request_ns);
        if let Err(error) = self.image.give_up(pbn, bytes) {
            self.note_image_error(error);
        }
        let (mut first, mut end) = (pbn, pbn.after(bytes));
        // Of two for the same place the later one begins when the earlier one is complete, and stands for both.
        for (earlier, (earlier_end, _)) in self.wait_for_discards_of(pbn, bytes) {
            self.discards.under_way.remove(&earlier);
            (first, end) = (first.min(earlier), end.max(earlier_end));
        }
        let io = self.ios.insert(Direction::Discard, pbn, bytes, self.now_ns);
        self.discards.under_way.insert(first, (end, io));
        self.program.push(Step::Start { io, wait: false });
        Some(io)
    }

    /// A request that writes waits until nothing of its place is still to be discarded.
    pub(crate) fn wait_for_discards(&mut self, io: IoId) {
        if !self.discards.under_way.is_empty()
            && let Some(io) = self.ios.get(io)
        {
            let (pbn, bytes) = (io.pbn, io.bytes);
            self.wait_for_discards_of(pbn, bytes);
        }
    }

    fn wait_for_discards_of(&mut self, pbn: Pbn, bytes: u64) -> Vec<Discard> {
        let under_way = &self.discards.under_way;
        // The one that begins before the place may reach into it.
        let from = under_way.range(..=pbn).next_back().map_or(pbn, |(first, _)| *first);
        let there = under_way.range(from..pbn.after(bytes)).map(|(first, of)| (*first, *of));
        let there: Vec<Discard> = there.filter(|(_, (end, _))| *end > pbn).collect();
        for (_, (_, io)) in &there {
            self.wait_for(*io);
        }
        there
    }

    /// A discard is complete.
    pub(crate) fn discarded(&mut self, id: IoId) {
        let Some(pbn) = self.ios.get(id).map(|io| io.pbn) else { return };
        let under_way = &mut self.discards.under_way;
        if let Some((first, (_, io))) = under_way.range(..=pbn).next_back()
            && *io == id
        {
            let first = *first;
            under_way.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::cx::Transfers;
    use crate::nodes::Nodes;
    use crate::payload::Image;
    use crate::{Block, BlockId, Costs, Encode, Ino, Lbn, ReadAhead, Replacement};

    struct Nothing;

    impl Encode for Nothing {
        fn encode(&self, _id: BlockId, _pbn: Pbn, _out: &mut [u8]) {}
    }

    fn cx() -> Cx {
        let transfers = Transfers { largest_bytes: 1 << 16, read_ahead: ReadAhead::None, cluster_writes: true };
        let cache = Cache::new(1 << 20, Replacement::Lru);
        let mut cx = Cx::new(cache, Nodes::new(8), Costs::FREE, transfers, Image::of_given(), 0);
        cx.discards.supported = true;
        cx
    }

    /// What a write of 4 KB at a place waits for.
    fn waits_of_write(cx: &mut Cx, pbn: Pbn) -> Vec<IoId> {
        let block = Block::data(Ino(3), Lbn(pbn.0 as i64), pbn, 4096);
        cx.make(&block);
        cx.program.clear();
        cx.write(&mut Nothing, block.id, false);
        let (mut waits, mut written) = (Vec::new(), None);
        for step in &cx.program {
            match *step {
                Step::Wait { io } => waits.push(io),
                Step::Start { io, .. } => written = Some(io),
                Step::Cpu { .. } => {}
            }
        }
        cx.complete(written.unwrap_or_else(|| panic!("it is written")));
        waits
    }

    #[test]
    fn a_write_waits_for_discards_of_its_place_and_no_others() {
        let mut cx = cx();
        let first = cx.discard(Pbn(64), 64 * 512).unwrap_or_else(|| panic!("taken"));
        let second = cx.discard(Pbn(256), 8 * 512).unwrap_or_else(|| panic!("taken"));
        assert_eq!(waits_of_write(&mut cx, Pbn(56)), []);
        assert_eq!(waits_of_write(&mut cx, Pbn(64)), [first]);
        assert_eq!(waits_of_write(&mut cx, Pbn(60)), [first]);
        assert_eq!(waits_of_write(&mut cx, Pbn(124)), [first]);
        assert_eq!(waits_of_write(&mut cx, Pbn(128)), []);
        assert_eq!(waits_of_write(&mut cx, Pbn(256)), [second]);
        cx.complete(first);
        assert_eq!(waits_of_write(&mut cx, Pbn(64)), []);
        cx.discards.supported = false;
        assert_eq!(cx.discard(Pbn(0), 4096), None);
    }

    #[test]
    fn of_two_discards_of_one_place_the_later_stands_for_both() {
        let mut cx = cx();
        let long = cx.discard(Pbn(0), 100 * 512).unwrap_or_else(|| panic!("taken"));
        cx.program.clear();
        let inside = cx.discard(Pbn(40), 8 * 512).unwrap_or_else(|| panic!("taken"));
        assert!(cx.program.contains(&Step::Wait { io: long }));
        // Beside the shorter one, but within the longer one.
        assert_eq!(waits_of_write(&mut cx, Pbn(80)), [inside]);
        cx.complete(long);
        assert_eq!(waits_of_write(&mut cx, Pbn(8)), [inside]);
        cx.complete(inside);
        assert_eq!(waits_of_write(&mut cx, Pbn(40)), []);
        assert!(cx.discards.under_way.is_empty());
    }
}
