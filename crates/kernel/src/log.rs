//! Writing a log: blocks go out together, one behind the other, to a place that they had not before.
//!
//! A log-structured file system says here in which order its blocks follow one another; the bytes that lie between them
//! (summaries, inode blocks) are made when they set out.

use crate::cache::NONE;
use crate::payload::Piece;
use crate::program::{Direction, IoId, Step};
use crate::{Block, BlockId, Contents, Cx, Encode, Pbn};

/// What follows the head of a write to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPiece {
    /// A block in memory. It lies here from now on, and is clean.
    Cached(BlockId),
    /// A block that is in no cache: a cleaner has read it, at the place it names, and passes it on to here.
    Passing(Block),
    /// Bytes that are in no block of the cache.
    Made {
        /// How many.
        bytes: u32,
    },
}

/// Who makes the bytes that are in no block.
pub trait LogEncode: Encode {
    /// Fills in piece `piece` of the write that begins at `pbn`. `out` is as long as the piece and zeroed.
    fn encode_piece(&self, pbn: Pbn, piece: usize, out: &mut [u8]);

    /// Fills in the head of a write, given the first bytes of each piece behind it.
    fn encode_head(&self, write: &LogWrite<'_>, firsts: &[[u8; 4]], out: &mut [u8]);
}

/// A write to the log.
#[derive(Clone, Copy, Debug)]
pub struct LogWrite<'a> {
    /// Where it begins.
    pub pbn: Pbn,
    /// Length of its head.
    pub head_bytes: u32,
    /// What is behind the head.
    pub pieces: &'a [LogPiece],
    /// Whether the head has a request of its own that is not started yet.
    pub head_apart: bool,
}

/// What a write to the log has become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRequests {
    /// The requests that have been started.
    pub started: Vec<IoId>,
    /// The head's, if it was to be kept apart: it is to be [started](Cx::start).
    pub head: Option<IoId>,
}

impl Cx {
    /// Puts a write to the log into the program, as requests of at most the largest transfer that nobody waits for.
    /// Blocks are copied into a piece of memory for each request (`lfs_writeseg` of 4.4BSD), so that they may change
    /// while it is on its way.
    pub fn write_log(&mut self, encode: &impl LogEncode, write: &LogWrite<'_>) -> LogRequests {
        let mut slots = std::mem::take(&mut self.scratch);
        for piece in write.pieces {
            let slot = match piece {
                LogPiece::Cached(id) => self.cache.find(*id).unwrap_or(NONE),
                LogPiece::Passing(_) | LogPiece::Made { .. } => NONE,
            };
            // On its way already: memory for copies is bounded, here by one of each block.
            if slot != NONE
                && let Some(io) = self.cache.get(slot).io
            {
                self.wait_for(io);
            }
            slots.push(slot);
        }
        let wanted = self.image.is_full();
        // Mostly nobody's bytes are kept anywhere.
        let bare = !self.record_bytes && !self.keeps_bytes();
        let first = self.log_request(write.pbn);
        if write.head_bytes > 0 {
            let mut head = vec![0; if wanted { write.head_bytes as usize } else { 0 }];
            if wanted {
                let firsts = self.firsts(encode, write);
                encode.encode_head(write, &firsts, &mut head);
            }
            self.add_bytes(first, write.pbn, write.head_bytes, wanted.then_some(head));
        }
        let mut requests = LogRequests { started: Vec::new(), head: write.head_apart.then_some(first) };
        let mut pbn = write.pbn.after(write.head_bytes.into());
        let (mut at, mut so_far) = (first, write.head_bytes);
        for (number, (piece, slot)) in write.pieces.iter().zip(&slots).enumerate() {
            let bytes = match *piece {
                LogPiece::Cached(_) if *slot == NONE => continue,
                LogPiece::Cached(_) => self.cache.get(*slot).bytes,
                LogPiece::Passing(block) => block.bytes,
                LogPiece::Made { bytes } => bytes,
            };
            let alone = write.head_apart && at == first;
            if so_far > 0 && (alone || so_far + bytes > self.transfers.largest_bytes) {
                self.start_full(&mut requests, at);
                at = self.log_request(pbn);
                so_far = 0;
            }
            if !matches!(piece, LogPiece::Made { .. }) {
                self.cpu(self.costs.copy_ns(bytes.into()));
            }
            match *piece {
                LogPiece::Cached(id) if bare => self.add_bare(at, (id, *slot), pbn, bytes),
                LogPiece::Passing(_) | LogPiece::Made { .. } if bare => {
                    if let Some(io) = self.ios.get_mut(at) {
                        io.bytes += u64::from(bytes);
                    }
                }
                LogPiece::Cached(id) => self.add_cached(encode, at, (id, *slot), pbn),
                LogPiece::Passing(block) => self.add_passing(encode, at, &block, pbn),
                LogPiece::Made { bytes } => {
                    let mut made = vec![0; if wanted { bytes as usize } else { 0 }];
                    if wanted {
                        encode.encode_piece(write.pbn, number, &mut made);
                    }
                    self.add_bytes(at, pbn, bytes, wanted.then_some(made));
                }
            }
            so_far += bytes;
            pbn = pbn.after(bytes.into());
        }
        self.settle_image();
        self.start_full(&mut requests, at);
        slots.clear();
        self.scratch = slots;
        requests
    }

    /// A request has all that it takes: it starts, unless it is the head's.
    fn start_full(&mut self, requests: &mut LogRequests, io: IoId) {
        if requests.head != Some(io) {
            requests.started.push(io);
            self.start(io, false);
        }
    }

    /// Hands a request over that has been kept apart.
    pub fn start(&mut self, io: IoId, wait: bool) {
        self.cpu(self.costs.request_ns);
        self.wait_for_discards(io);
        self.program.push(Step::Start { io, wait });
    }

    fn log_request(&mut self, pbn: Pbn) -> IoId {
        let io = self.ios.insert(Direction::Write, pbn, 0, self.now_ns);
        if let Some(io) = self.ios.get_mut(io) {
            io.copied = true;
            io.contents = self.record_bytes.then(Box::default);
        }
        io
    }

    /// The first bytes of each piece.
    fn firsts(&mut self, encode: &impl LogEncode, write: &LogWrite<'_>) -> Vec<[u8; 4]> {
        let mut firsts = Vec::with_capacity(write.pieces.len());
        for (number, piece) in write.pieces.iter().enumerate() {
            let mut made;
            match *piece {
                LogPiece::Made { bytes } => {
                    made = vec![0; bytes as usize];
                    encode.encode_piece(write.pbn, number, &mut made);
                }
                LogPiece::Passing(block) => made = self.bytes_passing(encode, &block, write.pbn),
                LogPiece::Cached(id) => {
                    let Some(slot) = self.cache.find(id) else { continue };
                    if self.cache.get(slot).contents == Contents::Data {
                        firsts.push(self.payloads.get(slot).and_then(<[u8]>::first_chunk).copied().unwrap_or_default());
                        continue;
                    }
                    made = vec![0; self.cache.get(slot).bytes as usize];
                    encode.encode(id, write.pbn, &mut made);
                }
            }
            firsts.push(made.first_chunk().copied().unwrap_or_default());
        }
        firsts
    }

    /// A block in memory joins a request, where no block has bytes.
    #[inline]
    fn add_bare(&mut self, at: IoId, (id, slot): (BlockId, u32), pbn: Pbn, bytes: u32) {
        self.cache.get_mut(slot).pbn = pbn;
        self.cache.set_clean(slot);
        self.cache.set_io(slot, Some(at));
        if let Some(io) = self.ios.get_mut(at) {
            io.bytes += u64::from(bytes);
            io.blocks.push(id);
        }
    }

    /// A block in memory joins a request.
    fn add_cached(&mut self, encode: &impl Encode, io: IoId, (id, slot): (BlockId, u32), pbn: Pbn) {
        self.cache.get_mut(slot).pbn = pbn;
        let mut recorded = Vec::new();
        self.save(encode, slot, &mut recorded);
        self.cache.set_clean(slot);
        self.cache.set_io(slot, Some(io));
        let bytes = self.cache.get(slot).bytes;
        if let Some(io) = self.ios.get_mut(io) {
            io.bytes += u64::from(bytes);
            io.blocks.push(id);
            append(&mut io.contents, &recorded);
        }
    }

    /// A block that is in no cache joins a request.
    fn add_passing(&mut self, encode: &impl Encode, io: IoId, block: &Block, pbn: Pbn) {
        let known = self.image.is_full() || block.contents == Contents::Data && self.image.may_have_bytes();
        let made = known.then(|| self.bytes_passing(encode, block, pbn)).filter(|made| !made.is_empty());
        self.add_bytes(io, pbn, block.bytes, made);
    }

    /// The bytes of a block that is in no cache; none if nobody has given any.
    fn bytes_passing(&mut self, encode: &impl Encode, block: &Block, pbn: Pbn) -> Vec<u8> {
        let mut made = vec![0; block.bytes as usize];
        match block.contents {
            Contents::Metadata => encode.encode(block.id, pbn, &mut made),
            Contents::Data => match self.image.settle_and_read(block.pbn, &mut made) {
                Ok(true) => {}
                Ok(false) => made.clear(),
                Err(error) => self.note_image_error(error),
            },
        }
        made
    }

    /// Bytes that are in no block join a request.
    fn add_bytes(&mut self, io: IoId, pbn: Pbn, bytes: u32, made: Option<Vec<u8>>) {
        let zeros = if self.record_bytes && made.is_none() { vec![0; bytes as usize] } else { Vec::new() };
        if let Some(io) = self.ios.get_mut(io) {
            io.bytes += u64::from(bytes);
            append(&mut io.contents, made.as_ref().unwrap_or(&zeros));
        }
        let saved = match made {
            Some(made) => self.image.gather(pbn, Piece::Made(made)),
            None => self.image.discard(pbn, bytes.into()),
        };
        if let Err(error) = saved {
            self.note_image_error(error);
        }
    }

    // ---- writing past the cache

    /// Whether somebody wants the bytes of blocks that are no process's data: an image, a crash test.
    pub fn wants_metadata(&self) -> bool {
        self.image.is_full()
    }

    /// Writes bytes that are in no block of the cache (a log), in requests of at most the largest transfer. Nobody
    /// waits. `made` has the bytes if somebody [wants](Cx::wants_metadata) them.
    pub fn write_through(&mut self, pbn: Pbn, bytes: u64, made: Option<&[u8]>) -> Vec<IoId> {
        debug_assert!(made.is_none_or(|made| made.len() as u64 == bytes), "as many bytes as are written");
        let most = u64::from(self.transfers.largest_bytes).max(Pbn::BYTES) / Pbn::BYTES * Pbn::BYTES;
        let mut started = Vec::new();
        let mut done = 0;
        while done < bytes {
            let piece = most.min(bytes - done);
            let here = pbn.after(done);
            let made = made.and_then(|made| made.get(done as usize..(done + piece) as usize));
            self.cpu(self.costs.copy_ns(piece));
            let io = self.log_request(here);
            self.add_bytes(io, here, piece as u32, made.map(<[u8]>::to_vec));
            self.settle_image();
            self.start(io, false);
            started.push(io);
            done += piece;
        }
        started
    }

    // ---- reading a log

    /// The bytes at a place of the disk, if every block has some: for whoever has [read](Cx::read_through) it. Says
    /// whether that is so.
    pub fn on_disk(&mut self, pbn: Pbn, out: &mut [u8]) -> bool {
        if !self.image.is_full() {
            return false;
        }
        let read = self.image.settle_and_read(pbn, out);
        let known = read.is_ok();
        if let Err(error) = read {
            self.note_image_error(error);
        }
        known
    }

    /// Reads a place of the disk into memory that is not the cache's (a cleaner's), in requests of at most the largest
    /// transfer, and waits for all of it.
    pub fn read_through(&mut self, pbn: Pbn, bytes: u64) {
        let most = u64::from(self.transfers.largest_bytes).max(Pbn::BYTES);
        let mut done = 0;
        let mut last = None;
        while done < bytes {
            let piece = most.min(bytes - done);
            self.cpu(self.costs.request_ns);
            let io = self.ios.insert(Direction::Read, pbn.after(done), piece, self.now_ns);
            self.program.push(Step::Start { io, wait: false });
            if let Some(before) = last.replace(io) {
                self.wait_for(before);
            }
            done += piece;
        }
        if let Some(io) = last {
            self.wait_for(io);
        }
    }

    /// Has a block in memory whose bytes have been read already, by [`read_through`](Cx::read_through).
    pub fn adopt(&mut self, block: &Block) {
        self.cpu(self.costs.block_ns);
        if self.cache.contains(block.id) {
            return;
        }
        let slot = self.cache.insert(block);
        if block.contents == Contents::Data {
            self.load_payload(slot);
        }
    }
}

fn append(contents: &mut Option<Box<[u8]>>, bytes: &[u8]) {
    if let Some(contents) = contents {
        let mut longer = std::mem::take(contents).into_vec();
        longer.extend_from_slice(bytes);
        *contents = longer.into_boxed_slice();
    }
}
