//! A volume without a clock and without a device: operations take effect, and what they ask of the disk is done at
//! once.
//!
//! For what depends on the file system alone (where its policies put things, what its structures hold) and for tests of
//! volumes. The cache, clustering and delayed writes are those of the lab; the programs are thrown away, counted.

use crate::cache::Cache;
use crate::cx::{Barriers, Cx, Transfers};
use crate::nodes::Nodes;
use crate::payload::Image;
use crate::program::{Direction, IoId, Step};
use crate::{BlockId, Contents, Costs, Ino, Lbn, Replacement, Volume};
use posix::Errno;

/// What a run has asked of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Of those, waited for by the operation.
    pub synchronous_writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

/// A volume and the kernel state it works on.
#[derive(Debug)]
pub struct Untimed<V> {
    volume: V,
    cx: Cx,
    requests: Requests,
    /// A list that is used again.
    leaving: Vec<BlockId>,
    /// Blocks that were written since, where those of files do not stay in memory.
    written: Option<Vec<BlockId>>,
}

impl<V: Volume> Untimed<V> {
    /// A volume with a cache of its own. `inodes` is how many inodes stay in memory.
    pub fn new(volume: V, cache_bytes: u64, inodes: usize, transfers: Transfers, epoch_ns: i64) -> Untimed<V> {
        Untimed::with_image(volume, cache_bytes, inodes, transfers, epoch_ns, Image::of_given())
    }

    /// The same, with bytes kept in an image.
    pub fn with_image(
        volume: V,
        cache_bytes: u64,
        inodes: usize,
        transfers: Transfers,
        epoch_ns: i64,
        image: Image,
    ) -> Untimed<V> {
        let cache = Cache::new(cache_bytes, Replacement::Lru);
        let cx = Cx::new(cache, Nodes::new(inodes), Costs::FREE, transfers, image, epoch_ns);
        Untimed { volume, cx, requests: Requests::default(), leaving: Vec::new(), written: None }
    }

    /// The volume.
    pub fn volume(&self) -> &V {
        &self.volume
    }

    /// Gives the volume back. What is dirty in the cache is lost; the volume's own structures are complete.
    pub fn into_volume(self) -> V {
        self.volume
    }

    /// The kernel state, to look at.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// The first trouble with the image since this was last asked for; what was written since may not be there.
    pub fn take_image_error(&mut self) -> Option<std::io::Error> {
        self.cx.image_error.take()
    }

    /// What was asked of the disk so far.
    pub fn requests(&self) -> Requests {
        self.requests
    }

    /// Says which requests go through to the stable storage below the image.
    pub fn set_barriers(&mut self, barriers: Barriers) {
        self.cx.barriers = barriers;
    }

    /// Files' blocks leave memory once they are written: who has the image has them in a cache of its own, and what is
    /// in none is read past ours.
    pub fn forget_what_is_written(&mut self) {
        self.written = Some(Vec::new());
    }

    /// The date is this, nanoseconds since 1970, `now_ns` after the beginning. For real time: the date may jump, the
    /// other only grows.
    pub fn set_clock(&mut self, now_ns: u64, date_ns: i64) {
        self.cx.now_ns = self.cx.now_ns.max(now_ns);
        self.cx.epoch_ns = date_ns.saturating_sub_unsigned(self.cx.now_ns);
    }

    /// Files made from now on belong to this user and group.
    pub fn set_owner(&mut self, uid: u32, gid: u32) {
        self.cx.owner = (uid, gid);
    }

    /// Puts what was written to the image onto stable storage.
    ///
    /// # Errors
    /// Those of the store below.
    pub fn sync_image(&mut self) -> std::io::Result<()> {
        self.cx.image.sync()
    }

    /// Whether something could not be written to the image. Since then nothing is, and what the operations do stays in
    /// memory.
    pub fn image_has_failed(&self) -> bool {
        self.cx.image.has_failed()
    }

    /// Bytes of blocks that have changed and are not written yet.
    pub fn dirty_bytes(&self) -> u64 {
        self.cx.cache.dirty_bytes()
    }

    /// Fills `out` with a file's bytes from `offset` on, of an image that has all bytes; the file is that long. What is
    /// in no block in memory is read past the cache.
    ///
    /// # Errors
    /// The file system's; what is wrong with the image is [noted](Untimed::take_image_error).
    pub fn read_file(&mut self, ino: Ino, offset: u64, out: &mut [u8]) -> Result<(), Errno> {
        let result = self.copy_out(ino, offset, out);
        self.settle();
        result
    }

    fn copy_out(&mut self, ino: Ino, offset: u64, out: &mut [u8]) -> Result<(), Errno> {
        let size = u64::from(self.volume.block_bytes());
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let (lbn, within) = (Lbn((at / size) as i64), (at % size) as usize);
            let rest = out.get_mut(done..).unwrap_or_default();
            let of_block = rest.len().min(size as usize - within);
            let buffer = self.cx.cache.find(BlockId { ino, lbn });
            if let Some(payload) = buffer.and_then(|slot| self.cx.payloads.get(slot)) {
                let (place, _) = rest.split_at_mut(of_block);
                let there = payload.get(within..).unwrap_or_default();
                let len = place.len().min(there.len());
                let (known, beyond) = place.split_at_mut(len);
                known.copy_from_slice(&there[..len]);
                beyond.fill(0);
                done += of_block;
                continue;
            }
            let ahead = u32::try_from((rest.len() + within) as u64 / size).unwrap_or(u32::MAX);
            let Some(mapped) = self.volume.map(&mut self.cx, ino, lbn, ahead)? else {
                rest.get_mut(..of_block).unwrap_or_default().fill(0);
                done += of_block;
                continue;
            };
            // As far as the blocks are neighbours and none of them is in memory.
            let mut blocks = 1;
            while blocks <= mapped.ahead && !self.cx.cache.contains(BlockId { ino, lbn: lbn.plus(blocks) }) {
                blocks += 1;
            }
            let span = if blocks == 1 { u64::from(mapped.bytes) } else { u64::from(blocks) * size } as usize;
            let (place, _) = rest.split_at_mut(rest.len().min(if blocks == 1 { of_block } else { span - within }));
            let len = place.len().min(span.saturating_sub(within));
            let (there, beyond) = place.split_at_mut(len);
            beyond.fill(0);
            if let Err(error) = self.cx.image.read_full(mapped.pbn.bytes() + within as u64, there) {
                self.cx.note_image_error(error);
                return Err(Errno::EIO);
            }
            done += place.len();
        }
        Ok(())
    }

    /// Does a piece of the file system's own work, which waits for idle time, if nobody has called for `idle_ns`; says
    /// whether there was any.
    pub fn idle_work(&mut self, idle_ns: u64) -> bool {
        let due = self.volume.idle_work_after_ns(&self.cx).is_some_and(|after_ns| after_ns <= idle_ns);
        let did = due && self.volume.work(&mut self.cx, true);
        self.settle();
        did
    }

    /// Lets time pass: only timestamps show it.
    pub fn pause_ns(&mut self, ns: u64) {
        self.cx.now_ns = self.cx.now_ns.saturating_add(ns);
    }

    /// An inode is in use: it is brought into memory if it is not there.
    pub fn touch(&mut self, ino: Ino) {
        if !self.cx.nodes.touch(ino) {
            self.cx.nodes.insert(ino);
            while let Some(gone) = self.cx.nodes.evict() {
                self.volume.unload(&mut self.cx, gone);
            }
        }
    }

    /// Forgets an inode that is no more.
    pub fn forget(&mut self, ino: Ino) {
        self.cx.nodes.remove(ino);
    }

    /// Runs an operation. Whatever it asks of the disk is done when this returns, and the cache is no larger than it
    /// may be.
    #[inline]
    pub fn run<R>(&mut self, operation: impl FnOnce(&mut V, &mut Cx) -> R) -> R {
        let result = operation(&mut self.volume, &mut self.cx);
        self.settle();
        if self.cx.cache.bytes() > self.cx.cache.capacity_bytes() {
            self.make_room();
        }
        // The file system's own daemon works as soon as there is something to do.
        while self.volume.wants_work(&self.cx) && self.volume.work(&mut self.cx, false) {
            self.settle();
        }
        result
    }

    /// Completes every request of the program so far.
    fn settle(&mut self) {
        if self.cx.program.is_empty() {
            return;
        }
        let program = std::mem::take(&mut self.cx.program);
        self.cx.begun += 1;
        for step in &program {
            if let Step::Start { io, wait } = *step {
                self.complete(io, wait);
            }
        }
        self.cx.program = program;
        self.cx.program.clear();
        if !self.cx.arrived.is_empty() {
            for io in std::mem::take(&mut self.cx.arrived) {
                self.volume.arrived(&mut self.cx, io);
            }
        }
        for id in self.written.iter_mut().flat_map(|written| written.drain(..)) {
            let is_data = self.cx.cache.block(id).is_some_and(|block| block.contents == Contents::Data);
            if is_data && !self.cx.cache.is_dirty(id) && self.cx.io_of(id).is_none() {
                self.cx.forget(id);
            }
        }
    }

    fn complete(&mut self, id: IoId, wait: bool) {
        let io = self.cx.ios.get(id).expect("what completes is under way");
        match io.direction {
            Direction::Read => {
                self.requests.reads += 1;
                self.requests.bytes_read += io.bytes;
            }
            Direction::Write => {
                self.requests.writes += 1;
                self.requests.synchronous_writes += u64::from(wait);
                self.requests.bytes_written += io.bytes;
                if let Some(written) = &mut self.written {
                    written.extend(&io.blocks);
                }
            }
            Direction::Flush | Direction::Discard => {}
        }
        self.cx.complete(id);
    }

    /// Gives blocks up until the cache is a little smaller than it may be; dirty ones are written first.
    fn make_room(&mut self) {
        let target = self.cx.cache.capacity_bytes() / 16 * 15;
        let mut leaving = std::mem::take(&mut self.leaving);
        let mut bytes = self.cx.cache.bytes();
        for slot in self.cx.cache.leaving() {
            if bytes <= target {
                break;
            }
            let buffer = self.cx.cache.get(slot);
            bytes -= u64::from(buffer.bytes);
            leaving.push(buffer.id);
        }
        self.volume.write_back(&mut self.cx, &leaving);
        self.settle();
        for id in leaving.drain(..) {
            // What the file system could not write, for want of room, is needed still.
            if !self.cx.cache.is_dirty(id) {
                self.cx.forget(id);
            }
        }
        self.leaving = leaving;
    }
}
