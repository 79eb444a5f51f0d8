//! Telling a device what holds nothing of value any more.
//!
//! A discard takes effect when the device gets it, which may be some time after the operation that asked for it: whoever writes to
//! the same place meanwhile waits for it first, or it would take the new data with it.

use crate::program::{Direction, IoId, Step};
use crate::{Cx, Pbn};
use std::collections::BTreeMap;

/// Discards that are not complete.
#[derive(Debug, Default)]
pub(crate) struct Discards {
    /// Whether the device takes any.
    pub(crate) supported: bool,
    /// By first place: the place behind the last, and the request. They never overlap.
    under_way: BTreeMap<Pbn, (Pbn, IoId)>,
}

/// Where one begins and ends, and its request.
type Discard = (Pbn, (Pbn, IoId));

impl Cx {
    /// Tells the device that a place holds nothing of value any more (a trim); nobody waits for it. The bytes there are anything
    /// from now on. Nothing happens where the device has no such command.
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
