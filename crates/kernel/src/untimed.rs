//! A volume without a clock and without a device: operations take effect, and what they ask of the disk is done at once.
//!
//! For what depends on the file system alone (where its policies put things, what its structures hold) and for tests of
//! volumes. The cache, clustering and delayed writes are those of the lab; the programs are thrown away, counted.

use crate::cache::Cache;
use crate::cx::{Cx, Transfers};
use crate::nodes::Nodes;
use crate::payload::Image;
use crate::program::{Direction, IoId, Step};
use crate::{BlockId, Costs, Ino, Replacement, Volume};

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
        Untimed { volume, cx, requests: Requests::default(), leaving: Vec::new() }
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

    /// An inode is no more.
    pub fn gone(&mut self, ino: Ino) {
        self.cx.nodes.remove(ino);
    }

    /// Runs an operation. Whatever it asks of the disk is done when this returns, and the cache is no larger than it may be.
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
    }

    fn complete(&mut self, id: IoId, wait: bool) {
        let Some(io) = self.cx.ios.get(id) else { return };
        match io.direction {
            Direction::Read => {
                self.requests.reads += 1;
                self.requests.bytes_read += io.bytes;
            }
            Direction::Write => {
                self.requests.writes += 1;
                self.requests.synchronous_writes += u64::from(wait);
                self.requests.bytes_written += io.bytes;
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
