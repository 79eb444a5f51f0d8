//! What an operation does in time: a list of steps, made while the operation takes effect, executed afterwards.

use crate::{BlockId, Pbn};

/// An input or output request of the file system; it may become several device requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IoId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// One step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The processor works.
    Cpu {
        /// For so long.
        ns: u64,
    },
    /// Hands a request to the device and goes on, or waits until it is complete.
    Start {
        /// The request.
        io: IoId,
        /// Whether the program goes on only after its completion.
        wait: bool,
    },
    /// Waits for a request that this or another program has started; passes at once if it is complete.
    Wait {
        /// The request.
        io: IoId,
    },
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Disk to memory.
    Read,
    /// Memory to disk.
    Write,
    /// Everything that the device has acknowledged onto the medium.
    Flush,
    /// What is there is of no value any more (a trim).
    Discard,
}

/// A request from the moment it is put into a program until it is complete.
#[derive(Clone, Debug)]
pub struct Io {
    /// What it does.
    pub direction: Direction,
    /// Where; meaningless for a flush.
    pub pbn: Pbn,
    /// How much; 0 for a flush.
    pub bytes: u64,
    /// The blocks it moves, in order of address.
    pub blocks: Vec<BlockId>,
    /// Device requests not yet complete; set when the request is handed over.
    pub(crate) parts: u32,
    /// Whether it has been handed to the device.
    pub(crate) started: bool,
    /// Whether every part so far is durable.
    pub(crate) durable: bool,
    /// When the operation that asks for it took effect.
    pub(crate) issued_ns: u64,
    /// Entries of the log of completed requests when it was handed over.
    pub(crate) submitted_after: u64,
    /// The bytes it writes, if they are recorded.
    pub(crate) contents: Option<Box<[u8]>>,
    /// Whether it writes a copy of its blocks: they may change before it is complete.
    pub(crate) copied: bool,
    /// Actors that wait for it.
    pub(crate) waiters: Vec<u32>,
    generation: u32,
    live: bool,
}

/// All requests under way, in reused places.
#[derive(Clone, Debug, Default)]
pub struct Ios {
    slots: Vec<Io>,
    free: Vec<u32>,
    live: usize,
}

impl Ios {
    /// A new request. `blocks` may be filled afterwards through [`get_mut`](Ios::get_mut).
    pub(crate) fn insert(&mut self, direction: Direction, pbn: Pbn, bytes: u64, issued_ns: u64) -> IoId {
        self.live += 1;
        if let Some(slot) = self.free.pop() {
            let io = &mut self.slots[slot as usize];
            io.generation = io.generation.wrapping_add(1);
            (io.direction, io.pbn, io.bytes, io.issued_ns) = (direction, pbn, bytes, issued_ns);
            (io.parts, io.started, io.durable) = (0, false, true);
            (io.live, io.copied) = (true, false);
            return IoId { slot, generation: io.generation };
        }
        let slot = self.slots.len() as u32;
        let blocks = Vec::new();
        let waiters = Vec::new();
        self.slots.push(Io {
            direction,
            pbn,
            bytes,
            blocks,
            parts: 0,
            started: false,
            durable: true,
            issued_ns,
            submitted_after: 0,
            contents: None,
            copied: false,
            waiters,
            generation: 0,
            live: true,
        });
        IoId { slot, generation: 0 }
    }

    /// The request, unless it is complete.
    pub fn get(&self, id: IoId) -> Option<&Io> {
        self.slots.get(id.slot as usize).filter(|io| io.live && io.generation == id.generation)
    }

    pub(crate) fn get_mut(&mut self, id: IoId) -> Option<&mut Io> {
        self.slots.get_mut(id.slot as usize).filter(|io| io.live && io.generation == id.generation)
    }

    /// Forgets a complete request; its lists stay allocated for the next.
    pub(crate) fn remove(&mut self, id: IoId) {
        let Some(io) = self.get_mut(id) else { return };
        io.live = false;
        io.contents = None;
        io.blocks.clear();
        io.waiters.clear();
        self.free.push(id.slot);
        self.live -= 1;
    }

    /// The writes that are not complete.
    pub(crate) fn writes(&self) -> Vec<IoId> {
        let live = (0..).zip(&self.slots).filter(|(_, io)| io.live && io.direction == Direction::Write);
        live.map(|(slot, io)| IoId { slot, generation: io.generation }).collect()
    }

    /// Some actors wait no longer.
    pub(crate) fn forget_waiters(&mut self, who: impl Fn(u32) -> bool) {
        for io in &mut self.slots {
            io.waiters.retain(|actor| !who(*actor));
        }
    }

    /// How many are not complete.
    pub fn under_way(&self) -> usize {
        self.live
    }
}
