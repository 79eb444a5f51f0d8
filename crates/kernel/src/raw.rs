//! The disk as one file (`/dev/rsd0a`): bytes on a drive in virtual time, read and written by one process without a
//! file system.
//!
//! For what works on whole disks: checking, and a log's rolling forward. What such a program reads goes through the
//! buffer cache in blocks; reads in sequence are made in requests that double up to the kernel's largest, and waited
//! for. Writes go to the drive at once, as the program makes them.

use crate::cache::Cache;
use crate::{Block, BlockId, CacheCounters, Costs, DeviceCounters, LabError, Machine, Pbn, ReadAhead, Transfers};
use device::store::Store;
use device::{Device, Operation, Request};
use std::cell::RefCell;
use std::io;

/// A store on a drive, and the clock of the process that uses it.
pub struct RawDisk<S> {
    under: S,
    /// Reading takes time too.
    state: RefCell<State>,
}

/// What it has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawTimes {
    /// Since the start, nanoseconds.
    pub elapsed_ns: u64,
    /// Of that, the processor's.
    pub processor_ns: u64,
    /// Requests.
    pub device: DeviceCounters,
    /// Blocks found in memory and not.
    pub cache: CacheCounters,
}

struct State {
    device: Box<dyn Device>,
    cache: Cache,
    costs: Costs,
    transfers: Transfers,
    block_bytes: u64,
    times: RawTimes,
    /// Where the last request to read ended, and how many blocks the next one in sequence may have.
    read_end: u64,
    window: u64,
    unflushed: bool,
}

impl<S: Store> RawDisk<S> {
    /// A store on a drive of a machine, read in blocks of so many bytes, a multiple of 512. Its own bytes cost nothing:
    /// only when they are read and written here.
    ///
    /// # Errors
    /// The drive is too small.
    pub fn new(under: S, device: Box<dyn Device>, machine: &Machine, block_bytes: u32) -> Result<RawDisk<S>, LabError> {
        let there_bytes = device.capacity_sectors().saturating_mul(u64::from(device.sector_bytes()));
        if under.len_bytes() > there_bytes {
            return Err(LabError::DeviceTooSmall { needed_bytes: under.len_bytes(), there_bytes });
        }
        assert!(block_bytes > 0 && u64::from(block_bytes).is_multiple_of(Pbn::BYTES), "blocks of {block_bytes} bytes");
        let memory = &machine.memory;
        let state = State {
            device,
            cache: Cache::new(memory.buffer_cache_bytes.value, memory.replacement),
            costs: machine.costs(),
            transfers: machine.transfers(),
            block_bytes: block_bytes.into(),
            times: RawTimes::default(),
            read_end: u64::MAX,
            window: 1,
            unflushed: false,
        };
        Ok(RawDisk { under, state: RefCell::new(state) })
    }

    /// The processor works on something else.
    pub fn compute(&self, ns: u64) {
        self.state.borrow_mut().cpu(ns);
    }

    /// Waits until what was written is on the medium.
    ///
    /// # Errors
    /// The drive refuses.
    pub fn flush(&self) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if std::mem::take(&mut state.unflushed) {
            state.times.device.flushes += 1;
            state.request(Request::flush())?;
        }
        Ok(())
    }

    /// What it has cost so far.
    pub fn times(&self) -> RawTimes {
        let state = self.state.borrow();
        RawTimes { cache: state.cache.counters(), ..state.times }
    }

    /// The bytes again.
    pub fn into_store(self) -> S {
        self.under
    }
}

impl<S: Store> Store for RawDisk<S> {
    fn len_bytes(&self) -> u64 {
        self.under.len_bytes()
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        self.under.read_at(at, buf)?;
        self.state.borrow_mut().read(at, buf.len() as u64, self.under.len_bytes())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.under.write_at(at, bytes)?;
        let len_bytes = self.under.len_bytes();
        self.state.get_mut().write(at, bytes.len() as u64, len_bytes)
    }

    fn discard(&mut self, at: u64, len_bytes: u64) -> io::Result<()> {
        self.under.discard(at, len_bytes)
    }
}

impl State {
    fn cpu(&mut self, ns: u64) {
        self.times.processor_ns += ns;
        self.times.elapsed_ns += ns;
    }

    fn request(&mut self, request: Request) -> io::Result<()> {
        self.cpu(self.costs.request_ns);
        let done = self.device.serve(self.times.elapsed_ns, request).map_err(io::Error::other)?;
        self.times.elapsed_ns = self.times.elapsed_ns.max(done.at_ns);
        Ok(())
    }

    /// Moves a range of the disk, in whole sectors and as many requests as it takes.
    fn transfer(&mut self, operation: Operation, from: u64, to: u64) -> io::Result<()> {
        let sector = u64::from(self.device.sector_bytes());
        let largest = u64::from(self.transfers.largest_bytes / self.device.sector_bytes()).max(1);
        let largest = largest.min(self.device.max_transfer_sectors().into());
        let (mut at, end) = (from / sector, to.div_ceil(sector));
        while at < end {
            let sectors = largest.min(end - at) as u32;
            let bytes = u64::from(sectors) * sector;
            let counters = &mut self.times.device;
            let request = if operation == Operation::Read {
                (counters.reads, counters.read_bytes) = (counters.reads + 1, counters.read_bytes + bytes);
                Request::read(at, sectors)
            } else {
                (counters.writes, counters.write_bytes) = (counters.writes + 1, counters.write_bytes + bytes);
                Request::write(at, sectors)
            };
            self.request(request)?;
            at += u64::from(sectors);
        }
        Ok(())
    }

    fn block(&self, number: u64, disk_bytes: u64) -> Block {
        let at = number * self.block_bytes;
        // As many bytes as there are: less than 2^32, as a block has no more.
        Block::device(Pbn(at / Pbn::BYTES), self.block_bytes.min(disk_bytes - at) as u32)
    }

    fn blocks(&self, at: u64, len: u64) -> std::ops::Range<u64> {
        at / self.block_bytes..(at + len).div_ceil(self.block_bytes)
    }

    fn read(&mut self, at: u64, len: u64, disk_bytes: u64) -> io::Result<()> {
        self.cpu(self.costs.call_ns + self.costs.copy_ns(len));
        for number in self.blocks(at, len) {
            self.cpu(self.costs.block_ns);
            let block = self.block(number, disk_bytes);
            if let Some(slot) = self.cache.find(block.id) {
                self.cache.counters.hits += 1;
                self.cache.touch(slot);
                continue;
            }
            self.cache.counters.misses += 1;
            let run = self.run_from(number, disk_bytes);
            self.cache.counters.prefetched += run - 1;
            let end = ((number + run) * self.block_bytes).min(disk_bytes);
            self.transfer(Operation::Read, number * self.block_bytes, end)?;
            self.read_end = end;
            for number in number..number + run {
                self.keep(number, disk_bytes);
            }
        }
        Ok(())
    }

    /// How many blocks the next request to read has: as far as they are not in memory and reads go on in sequence.
    fn run_from(&mut self, first: u64, disk_bytes: u64) -> u64 {
        let most = (u64::from(self.transfers.largest_bytes) / self.block_bytes).max(1);
        let in_sequence = first * self.block_bytes == self.read_end;
        self.window = match self.transfers.read_ahead {
            ReadAhead::Cluster if in_sequence => (self.window * 2).min(most),
            ReadAhead::Block if in_sequence => most.min(2),
            _ => 1,
        };
        let last = disk_bytes.div_ceil(self.block_bytes);
        let free = |number: &u64| {
            let id = BlockId::device(Pbn(number * self.block_bytes / Pbn::BYTES));
            *number < last && !self.cache.contains(id)
        };
        (first..first + self.window).take_while(free).count().max(1) as u64
    }

    fn write(&mut self, at: u64, len: u64, disk_bytes: u64) -> io::Result<()> {
        self.cpu(self.costs.call_ns + self.costs.copy_ns(len));
        let blocks = self.blocks(at, len);
        self.cpu(self.costs.block_ns * (blocks.end - blocks.start));
        self.transfer(Operation::Write, at, at + len)?;
        self.unflushed = true;
        // Of a block that is not in memory, the rest is still unknown.
        for number in blocks {
            let whole =
                at <= number * self.block_bytes && at + len >= ((number + 1) * self.block_bytes).min(disk_bytes);
            if whole || self.cache.contains(self.block(number, disk_bytes).id) {
                self.keep(number, disk_bytes);
            }
        }
        Ok(())
    }

    /// A block is in memory now; others make room.
    fn keep(&mut self, number: u64, disk_bytes: u64) {
        let block = self.block(number, disk_bytes);
        match self.cache.find(block.id) {
            Some(slot) => self.cache.touch(slot),
            None => {
                self.cache.insert(&block);
            }
        }
        while self.cache.bytes() > self.cache.capacity_bytes() {
            let Some(slot) = self.cache.first_to_leave() else { break };
            self.cache.remove(slot);
            self.cache.counters.evicted += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::fixed::FixedDevice;
    use device::store::SparseStore;

    const MIB: u64 = 1 << 20;
    const SERVICE_NS: u64 = 1_000_000;

    /// A disk of 64 MB on which every request takes a millisecond, and a machine that computes in no time.
    fn disk(cache_bytes: u64) -> RawDisk<SparseStore> {
        let mut machine = Machine::load("pentium-120").expect("a machine");
        machine.memory.buffer_cache_bytes.value = cache_bytes;
        let device = Box::new(FixedDevice::new(64 * MIB, SERVICE_NS));
        let disk = RawDisk::new(SparseStore::new(64 * MIB), device, &machine, 8192).expect("a disk");
        disk.state.borrow_mut().costs = Costs::FREE;
        disk.state.borrow_mut().transfers =
            Transfers { largest_bytes: 64 << 10, read_ahead: ReadAhead::Cluster, cluster_writes: true };
        disk
    }

    fn requests(disk: &RawDisk<SparseStore>) -> (u64, u64) {
        let times = disk.times();
        let device = times.device;
        assert_eq!(times.elapsed_ns, (device.reads + device.writes + device.flushes) * SERVICE_NS, "{times:?}");
        (device.reads, device.writes)
    }

    #[test]
    fn what_is_in_memory_is_not_read_again() {
        let disk = disk(MIB);
        let mut buf = [0; 128];
        for at in (0..8192).step_by(128) {
            disk.read_at(at, &mut buf).expect("bytes");
        }
        assert_eq!(requests(&disk), (1, 0));
        // Over the border of two blocks, the first of which is there.
        disk.read_at(8192 - 64, &mut buf).expect("bytes");
        assert_eq!(requests(&disk), (2, 0));
    }

    #[test]
    fn reads_in_sequence_come_in_longer_requests() {
        let disk = disk(MIB);
        let mut block = vec![0; 8192];
        for number in 0..31 {
            disk.read_at(number * 8192, &mut block).expect("bytes");
        }
        // 1, 2, 4, 8, 8 and 8 blocks.
        assert_eq!(requests(&disk), (6, 0));
        assert_eq!(disk.times().device.read_bytes, 31 * 8192);
        disk.read_at(40 * MIB, &mut block).expect("bytes");
        disk.read_at(20 * MIB, &mut block).expect("bytes");
        assert_eq!(requests(&disk), (8, 0), "elsewhere, a block at a time");
    }

    #[test]
    fn memory_has_an_end() {
        let disk = disk(4 * 8192);
        let mut buf = [0; 512];
        for _ in 0..2 {
            for number in [9, 7, 5, 3, 1] {
                disk.read_at(number * 8192, &mut buf).expect("bytes");
            }
        }
        assert_eq!(requests(&disk), (10, 0));
        assert!(disk.times().cache.evicted >= 6);
    }

    #[test]
    fn a_write_is_on_the_drive_at_once_and_in_memory_afterwards() {
        let mut disk = disk(MIB);
        disk.write_at(3 * 8192 + 512, &[7; 512]).expect("room");
        assert_eq!(requests(&disk), (0, 1));
        let mut buf = [0; 1024];
        disk.read_at(3 * 8192, &mut buf).expect("bytes");
        assert_eq!((requests(&disk), buf[512]), ((1, 1), 7), "the rest of the block was not there");
        disk.write_at(5 * 8192, &[7; 8192]).expect("room");
        disk.read_at(5 * 8192, &mut buf).expect("bytes");
        assert_eq!(requests(&disk), (1, 2));
        disk.flush().expect("a flush");
        disk.flush().expect("nothing to flush");
        assert_eq!(disk.times().device.flushes, 1);
        assert_eq!(requests(&disk), (1, 2));
    }

    #[test]
    fn a_disk_larger_than_the_drive_is_refused() {
        let machine = Machine::load("pentium-120").expect("a machine");
        let device = Box::new(FixedDevice::new(MIB, 0));
        assert!(matches!(
            RawDisk::new(SparseStore::new(2 * MIB), device, &machine, 8192).err(),
            Some(LabError::DeviceTooSmall { needed_bytes,
                there_bytes }) if needed_bytes == 2 * MIB && there_bytes == MIB
        ));
    }
}
