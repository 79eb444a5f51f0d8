//! Blocks that set out for the disk, with the bytes that the file system makes of them.

use super::{Barriers, Cx};
use crate::payload::Piece;
use crate::program::{Direction, IoId, Step};
use crate::{Block, BlockId, Contents, Durability, Encode, Ino, Lbn, Pbn};

impl Cx {
    /// Starts writing a block in memory, and waits for it or not (`bwrite`, `bawrite`).
    pub fn write(&mut self, encode: &mut impl Encode, id: BlockId, wait: bool) {
        if let Some(slot) = self.cache.find(id) {
            self.start_write(encode, &[slot], wait);
        }
    }

    /// Writes those dirty blocks of a file that are among `blocks` blocks from `first` on; neighbours on the disk go in
    /// one request (`cluster_wbuild`). Nobody waits.
    pub fn write_run(&mut self, encode: &mut impl Encode, ino: Ino, first: Lbn, blocks: u32) {
        let mut slots = std::mem::take(&mut self.scratch);
        for n in 0..blocks {
            let slot = self.cache.find(BlockId { ino, lbn: first.plus(n) });
            slots.extend(slot.filter(|&slot| self.cache.get(slot).dirty));
        }
        self.write_neighbours(encode, &slots, true);
        slots.clear();
        self.scratch = slots;
    }

    /// Starts writing blocks where they lie; neighbours in a file that are neighbours on the disk go in one request,
    /// unless the file system [writes them alone](Encode::gathers_late). Blocks that are not dirty are passed over.
    /// Nobody waits.
    pub fn write_in_place(&mut self, encode: &mut impl Encode, ids: &[BlockId]) {
        let mut slots = std::mem::take(&mut self.scratch);
        slots.extend(ids.iter().filter_map(|&id| self.cache.find(id)).filter(|&slot| self.cache.get(slot).dirty));
        self.write_sorted(encode, &mut slots);
        slots.clear();
        self.scratch = slots;
    }

    fn write_sorted(&mut self, encode: &mut impl Encode, slots: &mut Vec<u32>) {
        slots.sort_unstable_by_key(|&slot| self.cache.get(slot).id);
        slots.dedup();
        let gathers = encode.gathers_late();
        self.write_neighbours(encode, slots, gathers);
    }

    /// Writes slots that are in order of their names: neighbours together, or each alone.
    fn write_neighbours(&mut self, encode: &mut impl Encode, slots: &[u32], together: bool) {
        let together = together && self.transfers.cluster_writes;
        let mut rest = slots;
        while let [first, ..] = rest {
            let mut run = 1;
            let mut bytes = self.cache.get(*first).bytes;
            while together && run < rest.len() {
                let (last, next) = (self.cache.get(rest[run - 1]), self.cache.get(rest[run]));
                let follows = next.id == BlockId { lbn: last.id.lbn.plus(1), ..last.id }
                    && next.id.ino != Ino::DEVICE
                    && next.pbn == last.pbn.after(u64::from(last.bytes));
                if !follows || bytes + next.bytes > self.transfers.largest_bytes {
                    break;
                }
                bytes += next.bytes;
                run += 1;
            }
            let (now, later) = rest.split_at(run);
            self.start_write(encode, now, false);
            rest = later;
        }
    }

    /// Puts the write of neighbouring blocks into the program. The only place where blocks set out for the disk: what
    /// has to precede a block (a log record) or to be left out of it (an unsafe pointer) is decided by
    /// [`Encode::sets_out`] and [`Encode::encode`].
    fn start_write(&mut self, encode: &mut impl Encode, slots: &[u32], wait: bool) {
        let Some(&first) = slots.first() else { return };
        for &slot in slots {
            self.settle(slot);
        }
        self.cpu(self.costs.request_ns);
        let bytes = slots.iter().map(|&slot| u64::from(self.cache.get(slot).bytes)).sum();
        let io = self.ios.insert(Direction::Write, self.cache.get(first).pbn, bytes, self.now_ns);
        let mut recorded = Vec::new();
        for &slot in slots {
            let id = self.cache.get(slot).id;
            encode.sets_out(self, id, io);
            self.save(encode, slot, &mut recorded);
            self.cache.set_clean(slot);
            self.cache.set_io(slot, Some(io));
            let id = self.cache.get(slot).id;
            if let Some(io) = self.ios.get_mut(io) {
                io.blocks.push(id);
            }
        }
        if self.record_bytes
            && let Some(io) = self.ios.get_mut(io)
        {
            io.contents = Some(recorded.into_boxed_slice());
        }
        self.settle_image();
        self.wait_for_discards(io);
        self.program.push(Step::Start { io, wait });
        if wait && self.barriers == Barriers::Writes {
            self.sync_image();
        }
    }

    /// Starts writing a file's dirty blocks, data and indirect blocks; with anything but [`Durability::Started`] waits
    /// for all that are on their way.
    pub fn flush_file(&mut self, encode: &mut impl Encode, ino: Ino, how: Durability) {
        let mut slots = std::mem::take(&mut self.scratch);
        slots.extend(self.cache.dirty_of(ino));
        self.write_sorted(encode, &mut slots);
        slots.clear();
        self.scratch = slots;
        if how != Durability::Started {
            self.wait_for_file(ino);
        }
    }

    /// Waits for all blocks of a file that are on their way.
    pub fn wait_for_file(&mut self, ino: Ino) {
        if self.cache.file(ino).is_none_or(|file| file.under_way == 0) {
            return;
        }
        let mut ios: Vec<IoId> = self.cache.blocks_of(ino).filter_map(|slot| self.cache.get(slot).io).collect();
        ios.sort_unstable_by_key(|io| (self.ios.get(*io).map(|io| io.issued_ns), *io));
        ios.dedup();
        for io in ios {
            self.wait_for(io);
        }
    }

    /// Starts writing everything dirty: files, then what belongs to none, in order of their numbers; waits for it
    /// unless [`Durability::Started`].
    pub fn flush_all(&mut self, encode: &mut impl Encode, how: Durability) {
        let mut files: Vec<Ino> = self.cache.dirty_files().map(|file| file.ino).collect();
        files.sort_unstable_by_key(|ino| (*ino == Ino::DEVICE, *ino));
        for ino in files {
            self.flush_file(encode, ino, Durability::Started);
        }
        if how != Durability::Started {
            self.wait_for_writes();
        }
    }

    /// Waits for every write under way.
    pub fn wait_for_writes(&mut self) {
        for io in self.ios.writes() {
            self.wait_for(io);
        }
    }

    /// Waits for every write that this program has started so far.
    pub fn wait_for_own_writes(&mut self) {
        let started = |step: &Step| match *step {
            Step::Start { io, wait: false } => Some(io),
            _ => None,
        };
        let own: Vec<IoId> = self.program.iter().filter_map(started).collect();
        for io in own {
            if self.ios.get(io).is_some_and(|io| io.direction == Direction::Write) {
                self.wait_for(io);
            }
        }
    }

    /// Has the device put what it has acknowledged onto the medium, and waits for that or not.
    pub fn flush_device(&mut self, wait: bool) -> IoId {
        self.cpu(self.costs.request_ns);
        let io = self.ios.insert(Direction::Flush, Pbn(0), 0, self.now_ns);
        self.program.push(Step::Start { io, wait });
        if self.barriers != Barriers::None {
            self.sync_image();
        }
        io
    }

    /// Has the file system be told of each completed write of blocks from now on
    /// ([`Volume::arrived`](crate::Volume::arrived)).
    pub fn tell_of_writes(&mut self) {
        self.tells = true;
    }

    /// The disk has something else of a block than memory has, though it has just been written: it is changed again,
    /// without being used. A block that is not in memory any more is put there; one that is on its way again is left
    /// alone.
    pub fn differs(&mut self, block: &Block) {
        let slot = self.cache.find(block.id).unwrap_or_else(|| self.cache.insert(block));
        let on_its_way = self.cache.get(slot).io.is_some_and(|io| self.ios.get(io).is_some());
        if !on_its_way {
            self.cache.set_dirty(slot, self.now_ns);
        }
    }

    /// Puts a block's bytes into the image, together with those before it, and into what is recorded. Whoever saves
    /// [settles](Cx::settle_image).
    pub(crate) fn save(&mut self, encode: &impl Encode, slot: u32, recorded: &mut Vec<u8>) {
        let buffer = *self.cache.get(slot);
        let bytes = match buffer.contents {
            Contents::Metadata if self.image.is_full() => {
                let mut made = vec![0; buffer.bytes as usize];
                encode.encode(buffer.id, buffer.pbn, &mut made);
                Some(Piece::Made(made))
            }
            Contents::Metadata => None,
            Contents::Data => self.payloads.share(slot).map(Piece::Payload),
        };
        if self.record_bytes {
            let end = recorded.len() + buffer.bytes as usize;
            recorded.extend_from_slice(bytes.as_deref().unwrap_or_default());
            recorded.resize(end, 0);
        }
        let saved = match bytes {
            Some(bytes) => self.image.gather(buffer.pbn, bytes),
            None => self.image.discard(buffer.pbn, buffer.bytes.into()),
        };
        if let Err(error) = saved {
            self.note_image_error(error);
        }
    }
}
