//! What a file system has of the kernel while an operation takes effect: the buffer cache, and the program that says
//! what the operation costs.

mod writing;

use crate::cache::Cache;
use crate::costs::Costs;
use crate::discards_under_way::Discards;
use crate::nodes::Nodes;
use crate::payload::{Image, filler};
use crate::payloads::Payloads;
use crate::program::{Direction, IoId, Ios, Step};
use crate::{Block, BlockId, Contents, Ino, Lbn, Pbn};
use std::io;

/// How the kernel reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfers {
    /// The largest request that the kernel makes of neighbouring blocks (`MAXPHYS`; 64 KB in 4.4BSD).
    pub largest_bytes: u32,
    /// How it reads ahead.
    pub read_ahead: ReadAhead,
    /// Whether it writes neighbouring blocks in one request.
    pub cluster_writes: bool,
}

/// How blocks are read before they are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAhead {
    /// Not at all.
    None,
    /// One block, after two read in sequence (`breadn` of 4.3BSD).
    Block,
    /// A window that doubles while reads go on in sequence (`cluster_read` of 4.4BSD).
    #[default]
    Cluster,
}

/// Which requests put what was written onto the stable storage below the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Barriers {
    /// None: who has the image sees to that.
    #[default]
    None,
    /// Flushes of the device.
    Flushes,
    /// Flushes, and every write that an operation waits for: a power failure leaves what the order of writes promises.
    Writes,
}

/// The kernel's state as operations see it.
///
/// Everything here happens at once; time is only noted. A block that some program still reads or writes can be in the
/// cache already: whoever needs it complete has a step in its own program that waits for that.
pub struct Cx {
    pub(crate) now_ns: u64,
    /// How many programs have been begun.
    pub(crate) begun: u64,
    /// Date of time 0, nanoseconds since 1970.
    pub(crate) epoch_ns: i64,
    pub(crate) cache: Cache,
    pub(crate) nodes: Nodes,
    pub(crate) ios: Ios,
    pub(crate) discards: Discards,
    pub(crate) program: Vec<Step>,
    pub(crate) costs: Costs,
    pub(crate) transfers: Transfers,
    pub(crate) image: Image,
    /// Bytes of blocks in memory.
    pub(crate) payloads: Payloads,
    /// The first trouble with the image.
    pub(crate) image_error: Option<io::Error>,
    /// Whether requests carry the bytes they write, for the log.
    pub(crate) record_bytes: bool,
    /// Metadata blocks that were changed, since somebody last asked; `None` while nobody wants to know.
    changes: Option<Vec<BlockId>>,
    /// Reused lists of slots.
    pub(crate) scratch: Vec<u32>,
    /// Whose new files are: user and group.
    pub(crate) owner: (u32, u32),
    pub(crate) barriers: Barriers,
    /// Whether the file system wants to be told of completed writes.
    pub(crate) tells: bool,
    /// Completed writes that it has not been told of.
    pub(crate) arrived: Vec<IoId>,
}

impl Cx {
    pub(crate) fn new(
        cache: Cache,
        nodes: Nodes,
        costs: Costs,
        transfers: Transfers,
        image: Image,
        epoch_ns: i64,
    ) -> Cx {
        Cx {
            now_ns: 0,
            begun: 0,
            epoch_ns,
            cache,
            nodes,
            ios: Ios::default(),
            discards: Discards::default(),
            program: Vec::new(),
            costs,
            transfers,
            image,
            payloads: Payloads::default(),
            image_error: None,
            record_bytes: false,
            changes: None,
            scratch: Vec::new(),
            owner: (0, 0),
            barriers: Barriers::None,
            tells: false,
            arrived: Vec::new(),
        }
    }

    /// Another kernel in just this state; `None` where the image's store has only one set of bytes, or has failed.
    pub(crate) fn duplicate(&self) -> Option<Cx> {
        if self.image_error.is_some() {
            return None;
        }
        let image = self.image.duplicate()?;
        Some(Cx {
            now_ns: self.now_ns,
            begun: self.begun,
            epoch_ns: self.epoch_ns,
            cache: self.cache.clone(),
            nodes: self.nodes.clone(),
            ios: self.ios.clone(),
            discards: self.discards.clone(),
            program: self.program.clone(),
            costs: self.costs,
            transfers: self.transfers,
            image,
            payloads: self.payloads.clone(),
            image_error: None,
            record_bytes: self.record_bytes,
            changes: self.changes.clone(),
            scratch: Vec::new(),
            owner: self.owner,
            barriers: self.barriers,
            tells: self.tells,
            arrived: self.arrived.clone(),
        })
    }

    /// Virtual time at which the operation takes effect.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Which program this is: another number for each that is begun.
    pub fn program_number(&self) -> u64 {
        self.begun
    }

    /// The date then, nanoseconds since 1970: what timestamps show.
    pub fn date_ns(&self) -> i64 {
        self.epoch_ns.saturating_add_unsigned(self.now_ns)
    }

    /// User and group that a file made by this operation belongs to: root's in a laboratory.
    pub fn owner(&self) -> (u32, u32) {
        self.owner
    }

    /// What the processor spends on operations.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// How the kernel reads and writes.
    pub fn transfers(&self) -> &Transfers {
        &self.transfers
    }

    /// The buffer cache, to look at.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// How many inodes that are not open stay in memory (`desiredvnodes`).
    pub fn inode_capacity(&self) -> usize {
        self.nodes.capacity()
    }

    /// Whether anybody has a file open.
    pub fn is_open(&self, ino: Ino) -> bool {
        self.nodes.get(ino).is_some_and(|node| node.opens > 0)
    }

    /// The program so far.
    pub fn program(&self) -> &[Step] {
        &self.program
    }

    /// The requests that programs name.
    pub fn ios(&self) -> &Ios {
        &self.ios
    }

    /// The processor works.
    #[inline]
    pub fn cpu(&mut self, ns: u64) {
        if ns == 0 {
            return;
        }
        match self.program.last_mut() {
            Some(Step::Cpu { ns: before }) => *before += ns,
            _ => self.program.push(Step::Cpu { ns }),
        }
    }

    /// Waits for a request that this or an earlier program has started; nothing if it is complete.
    pub fn wait_for(&mut self, io: IoId) {
        if let Some(request) = self.ios.get(io) {
            let wrote = request.direction == Direction::Write;
            self.program.push(Step::Wait { io });
            if wrote && self.barriers == Barriers::Writes {
                self.sync_image();
            }
        }
    }

    /// What the image was told is on stable storage before anything else is.
    fn sync_image(&mut self) {
        if let Err(error) = self.image.sync() {
            self.note_image_error(error);
        }
    }

    /// Waits until a block is neither being read nor written; of a write that has a copy of it, it is independent.
    fn settle(&mut self, slot: u32) {
        if let Some(io) = self.cache.get(slot).io
            && self.ios.get(io).is_some_and(|io| !io.copied)
        {
            self.wait_for(io);
        }
    }

    /// The request that moves a block in memory now.
    pub fn io_of(&self, id: BlockId) -> Option<IoId> {
        self.cache.find(id).and_then(|slot| self.cache.get(slot).io)
    }

    // ---- reading

    /// Has a block in memory, reading and waiting if it is not. Says whether it was (`bread`).
    pub fn read(&mut self, block: &Block) -> bool {
        self.cpu(self.costs.block_ns);
        if let Some(slot) = self.cache.find(block.id) {
            self.cache.counters.hits += 1;
            self.cache.touch(slot);
            self.settle(slot);
            return true;
        }
        self.cache.counters.misses += 1;
        self.start_read(block, 1, true);
        false
    }

    /// The same so many times more for a block that has just been read. `false` if that takes steps of its own, because
    /// the block is not there or is being moved; then nothing is done.
    pub fn read_again(&mut self, id: BlockId, times: u64) -> bool {
        let found = self.cache.find(id).filter(|&slot| self.cache.get(slot).io.is_none());
        if let Some(slot) = found
            && times > 0
        {
            self.cpu(self.costs.block_ns * times);
            self.cache.counters.hits += times;
            self.cache.touch(slot);
        }
        found.is_some()
    }

    /// Reads a run of neighbouring full blocks of a file in one request, as far as they are not in memory and one
    /// request goes, and waits for it or not. Returns how many blocks are read.
    pub fn read_run(&mut self, first: &Block, blocks: u32, wait: bool) -> u32 {
        let most = (self.transfers.largest_bytes / first.bytes.max(1)).max(1);
        let mut run = 0;
        while run < blocks.min(most) && !self.cache.contains(BlockId { lbn: first.id.lbn.plus(run), ..first.id }) {
            run += 1;
        }
        if run > 0 {
            self.cpu(self.costs.block_ns * u64::from(run));
            let asked_for = u64::from(wait);
            self.cache.counters.misses += asked_for;
            self.cache.counters.prefetched += u64::from(run) - asked_for;
            self.start_read(first, run, wait);
        }
        run
    }

    fn start_read(&mut self, first: &Block, blocks: u32, wait: bool) {
        self.cpu(self.costs.request_ns);
        let bytes = u64::from(first.bytes) * u64::from(blocks);
        let io = self.ios.insert(Direction::Read, first.pbn, bytes, self.now_ns);
        for n in 0..blocks {
            let block = Block {
                id: BlockId { lbn: first.id.lbn.plus(n), ..first.id },
                pbn: first.pbn.after(u64::from(first.bytes) * u64::from(n)),
                ..*first
            };
            let slot = self.cache.insert(&block);
            self.cache.set_io(slot, Some(io));
            if block.contents == Contents::Data {
                self.load_payload(slot);
            }
            if let Some(io) = self.ios.get_mut(io) {
                io.blocks.push(block.id);
            }
        }
        self.program.push(Step::Start { io, wait });
    }

    // ---- changing

    /// Has a block in memory of which `len` bytes are about to be written: a `fresh` one without reading it, its rest
    /// zeros, one that is written whole without reading it, any other as it is on the disk. It begins at byte
    /// `file_offset` of its file.
    pub fn take_for_writing(&mut self, block: &Block, file_offset: u64, len: u32, fresh: bool) {
        if !fresh && len < block.bytes {
            self.read(block);
            return;
        }
        self.take(block);
        if len < block.bytes {
            self.zero(block.id, file_offset, 0);
        }
    }

    /// Has a new block in memory without reading it: all of it will be written (`getblk`). If it is there already, it
    /// takes the new place and length.
    pub fn take(&mut self, block: &Block) {
        self.cpu(self.costs.block_ns);
        match self.cache.find(block.id) {
            None => {
                let slot = self.cache.insert(block);
                self.cache.get_mut(slot).blank = true;
            }
            Some(slot) => {
                self.settle(slot);
                self.cache.touch(slot);
                self.cache.get_mut(slot).pbn = block.pbn;
                self.resize_slot(slot, block.bytes);
            }
        }
    }

    /// Marks a block in memory as changed; it is written later (`bdwrite`). A block that is being written is waited for
    /// first.
    pub fn dirty(&mut self, id: BlockId) {
        if let Some(slot) = self.cache.find(id) {
            self.settle(slot);
            self.set_dirty(slot);
        }
    }

    fn set_dirty(&mut self, slot: u32) {
        if let Some(changes) = &mut self.changes {
            let buffer = self.cache.get(slot);
            if buffer.contents == Contents::Metadata && changes.last() != Some(&buffer.id) {
                changes.push(buffer.id);
            }
        }
        self.cache.set_dirty(slot, self.now_ns);
    }

    /// Has a list kept of the metadata blocks that are changed from now on, or no longer. A file system with a log of
    /// its own (write-ahead) asks for it.
    pub fn note_changes(&mut self, wanted: bool) {
        self.changes = wanted.then(Vec::new);
    }

    /// Takes the list so far: in the order of the changes, a block more than once if it was changed more than once.
    pub fn take_changes(&mut self, each: &mut dyn FnMut(BlockId)) {
        if let Some(changes) = &mut self.changes {
            changes.drain(..).for_each(each);
        }
    }

    /// Has a block in memory, reading it if it is not there, and marks it as changed.
    pub fn change(&mut self, block: &Block) {
        let Some(slot) = self.cache.find(block.id) else {
            self.read(block);
            return self.dirty(block.id);
        };
        self.cpu(self.costs.block_ns);
        self.cache.counters.hits += 1;
        self.cache.touch(slot);
        self.settle(slot);
        self.set_dirty(slot);
    }

    /// Has a new block in memory without reading it, and marks it as changed.
    pub fn make(&mut self, block: &Block) {
        self.take(block);
        self.dirty(block.id);
    }

    /// A block in memory lies elsewhere from now on, and is changed for that.
    pub fn relocate(&mut self, id: BlockId, pbn: Pbn) {
        if let Some(slot) = self.cache.find(id) {
            self.settle(slot);
            self.cache.get_mut(slot).pbn = pbn;
            self.set_dirty(slot);
        }
    }

    /// A block in memory has another length from now on.
    pub fn resize(&mut self, id: BlockId, bytes: u32) {
        if let Some(slot) = self.cache.find(id) {
            self.settle(slot);
            self.resize_slot(slot, bytes);
        }
    }

    fn resize_slot(&mut self, slot: u32, bytes: u32) {
        if self.cache.get(slot).bytes == bytes {
            return;
        }
        self.cache.resize(slot, bytes);
        self.payloads.resize(slot, bytes as usize);
    }

    /// A block is of no use any more: what it holds is not written. If it is on its way, that is waited for.
    pub fn forget(&mut self, id: BlockId) {
        if let Some(slot) = self.cache.find(id) {
            self.settle(slot);
            self.drop_slot(slot);
        }
    }

    /// The same for all blocks of a file whose number is `from` or greater; its indirect blocks are not concerned.
    pub fn forget_from(&mut self, ino: Ino, from: Lbn) {
        let from = from.max(Lbn(0));
        self.forget_where(ino, |lbn| lbn >= from);
    }

    /// The same for all blocks of a file.
    pub fn forget_file(&mut self, ino: Ino) {
        self.forget_where(ino, |_| true);
    }

    fn forget_where(&mut self, ino: Ino, concerned: impl Fn(Lbn) -> bool) {
        let mut slots = std::mem::take(&mut self.scratch);
        slots.extend(self.cache.blocks_of(ino).filter(|&slot| concerned(self.cache.get(slot).id.lbn)));
        for &slot in &slots {
            self.settle(slot);
            self.drop_slot(slot);
        }
        slots.clear();
        self.scratch = slots;
    }

    pub(crate) fn drop_slot(&mut self, slot: u32) {
        if self.cache.get(slot).payload {
            self.payloads.remove(slot);
        }
        self.cache.remove(slot);
    }

    // ---- bytes

    /// Fills part of a data block in memory with what a process wrote, or with nobody knows what. Keeps the bytes if
    /// they were given or the image wants all. Does not mark the block.
    pub fn fill(&mut self, id: BlockId, file_offset: u64, at: u32, len: u32, data: Option<&[u8]>) {
        let Some(slot) = self.cache.find(id) else { return };
        let wanted = data.is_some() || self.cache.get(slot).payload || self.image.is_full();
        if !wanted {
            self.cache.get_mut(slot).blank = false;
            return;
        }
        let range = at as usize..(at + len) as usize;
        let whole = range.len() == self.cache.get(slot).bytes as usize;
        let payload = self.payload_of(slot, file_offset - u64::from(at), whole);
        let place = &mut payload[range];
        match data {
            Some(data) if data.len() == place.len() => place.copy_from_slice(data),
            _ => filler(id.ino, file_offset, place),
        }
    }

    /// The end of a data block in memory, from byte `at` on, reads as zeros from now on (the file was cut there). Does
    /// not mark the block.
    pub fn zero(&mut self, id: BlockId, file_offset: u64, at: u32) {
        let Some(slot) = self.cache.find(id) else { return };
        if !(self.image.is_full() || self.cache.get(slot).payload) {
            return;
        }
        let payload = self.payload_of(slot, file_offset - u64::from(at), at == 0);
        if let Some(place) = payload.get_mut(at as usize..) {
            place.fill(0);
        }
    }

    /// The bytes of a block in memory; made on demand, anything if the whole of them is overwritten.
    fn payload_of(&mut self, slot: u32, file_offset: u64, overwritten: bool) -> &mut [u8] {
        let full = self.image.is_full();
        let Self { cache, payloads, .. } = self;
        let buffer = cache.get_mut(slot);
        let zeros = full || buffer.blank;
        buffer.payload = true;
        let (ino, bytes) = (buffer.id.ino, buffer.bytes as usize);
        payloads.get_or_insert_with(slot, bytes, |payload| match () {
            () if overwritten => {}
            () if zeros => payload.fill(0),
            () => filler(ino, file_offset, payload),
        })
    }

    /// Takes over a block's bytes from the image, if it has any.
    pub(crate) fn load_payload(&mut self, slot: u32) {
        let (pbn, bytes) = (self.cache.get(slot).pbn, self.cache.get(slot).bytes);
        if !self.image.may_have_bytes() {
            return;
        }
        let payload = self.payloads.get_or_insert_with(slot, bytes as usize, |_| {});
        match self.image.settle_and_read(pbn, payload) {
            Ok(true) => return self.cache.get_mut(slot).payload = true,
            Ok(false) => {}
            Err(error) => self.note_image_error(error),
        }
        self.payloads.remove(slot);
    }

    /// What was [saved](Cx::save) is written.
    pub(crate) fn settle_image(&mut self) {
        if let Err(error) = self.image.settle() {
            self.note_image_error(error);
        }
    }

    /// A request is complete: its blocks are where they should be.
    pub(crate) fn complete(&mut self, id: IoId) {
        let io = self.ios.get(id).expect("what completes is under way");
        if io.direction == Direction::Discard {
            self.discarded(id);
            return self.ios.remove(id);
        }
        if self.tells && io.direction == Direction::Write && !io.blocks.is_empty() {
            self.arrived.push(id);
        }
        for &block in &io.blocks {
            if let Some(slot) = self.cache.find(block)
                && self.cache.get(slot).io == Some(id)
            {
                self.cache.set_io(slot, None);
            }
        }
        self.ios.remove(id);
    }

    /// Whether anybody's bytes are kept.
    pub(crate) fn keeps_bytes(&self) -> bool {
        self.image.is_full() || !self.payloads.is_empty() || self.image.may_have_bytes()
    }

    pub(crate) fn note_image_error(&mut self, error: io::Error) {
        self.image_error.get_or_insert(error);
    }

    /// The bytes of a file's block as a process would read them; `mapped` is where it lies.
    pub(crate) fn bytes_of(&mut self, id: BlockId, mapped: Option<(Pbn, u32)>, file_offset: u64, out: &mut [u8]) {
        if let Some(payload) = self.cache.find(id).and_then(|slot| self.payloads.get(slot)) {
            let len = out.len().min(payload.len());
            out.fill(0);
            out[..len].copy_from_slice(&payload[..len]);
            return;
        }
        let Some((pbn, bytes)) = mapped else { return out.fill(0) };
        let len = out.len().min(bytes as usize);
        let (there, beyond) = out.split_at_mut(len);
        beyond.fill(0);
        match self.image.settle_and_read(pbn, there) {
            Ok(true) => {}
            Ok(false) => filler(id.ino, file_offset, there),
            Err(error) => {
                there.fill(0);
                self.note_image_error(error);
            }
        }
    }
}

impl std::fmt::Debug for Cx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx").field("now_ns", &self.now_ns).field("program", &self.program).finish_non_exhaustive()
    }
}
