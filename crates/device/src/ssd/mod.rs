//! Flash drives: channels, dies, a page-mapped translation layer, a write buffer and a host link.
//!
//! Requests are worked out when they are submitted: each link, channel and die knows until when it is taken, and work
//! is appended in order of submission. Reads of different dies overlap, reads queue behind programs and collection on
//! their own die. The structure is that of MQSim (Tavakkol et al., FAST 2018) and NVMeVirt (Kim et al., FAST 2023), in
//! outline.

mod ftl;
mod spec;

pub use ftl::Ftl;
pub use spec::SsdSpec;

use crate::{Completion, Device, FlashCounts, Operation, Request, RequestError};
use ftl::Page;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A flash drive.
#[derive(Clone, Debug)]
pub struct Ssd {
    spec: SsdSpec,
    times: Times,
    ftl: Ftl,
    /// Bytes of all write requests so far.
    host_bytes: u64,
    /// Of each direction, to the host and from it: writes that wait for room do not hold up reads.
    link_free_ns: [u64; 2],
    channel_free_ns: Vec<u64>,
    die_free_ns: Vec<u64>,
    /// Units in the buffer that wait for a page to fill.
    gathering: Vec<u32>,
    /// When pages in the buffer are programmed, and their units; ascending by submission.
    programming: VecDeque<(u64, u64)>,
    buffered_units: u64,
    /// The page each die was last given to program, and when it is done.
    last_program: Vec<Option<(Page, u64)>>,
    /// Completions of submitted requests, earliest first; the number keeps the order of submission among equals.
    outstanding: BinaryHeap<Reverse<(u64, u64, u64, bool)>>,
    submitted: u64,
    /// Pages of the read being worked out, kept to save allocations.
    pages: Vec<(Page, u32)>,
}

/// The specification's times in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    read: u64,
    program: u64,
    erase: u64,
    channel_unit: u64,
    link_sector: u64,
    read_command: u64,
    read_unit: u64,
    write_command: u64,
    write_unit: u64,
}

/// Which way data go over the host link.
#[derive(Clone, Copy, Debug)]
enum Direction {
    ToHost,
    FromHost,
}

impl Ssd {
    /// An empty drive. `spec` has been checked, as every specification that [`crate::Drive`] hands out has.
    pub fn new(spec: SsdSpec) -> Ssd {
        let ns = |us: f64| (us * 1e3).round() as u64;
        let transfer = |bytes: u32, mb_per_s: f64| (f64::from(bytes) * 1e3 / mb_per_s).round() as u64;
        let times = Times {
            read: ns(spec.read_us),
            program: ns(spec.program_us),
            erase: ns(spec.erase_us),
            channel_unit: transfer(spec.mapping_bytes, spec.channel_mb_per_s),
            link_sector: transfer(spec.sector_bytes, spec.link_mb_per_s),
            read_command: ns(spec.read_command_us),
            read_unit: ns(spec.read_unit_us),
            write_command: ns(spec.write_command_us),
            write_unit: ns(spec.write_unit_us),
        };
        Ssd {
            times,
            ftl: Ftl::new(&spec),
            host_bytes: 0,
            link_free_ns: [0; 2],
            channel_free_ns: vec![0; spec.channels as usize],
            die_free_ns: vec![0; spec.dies() as usize],
            gathering: Vec::with_capacity(spec.units_per_page() as usize),
            programming: VecDeque::new(),
            buffered_units: 0,
            last_program: vec![None; spec.dies() as usize],
            outstanding: BinaryHeap::new(),
            submitted: 0,
            pages: Vec::new(),
            spec,
        }
    }

    /// The translation layer.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// The figures it was made from.
    pub fn spec(&self) -> &SsdSpec {
        &self.spec
    }

    fn sectors_per_unit(&self) -> u64 {
        u64::from(self.spec.mapping_bytes / self.spec.sector_bytes)
    }

    /// Logical units a request touches: first and behind the last.
    fn units(&self, request: &Request) -> (u32, u32) {
        let per_unit = self.sectors_per_unit();
        ((request.lbn.0 / per_unit) as u32, request.end().0.div_ceil(per_unit) as u32)
    }

    /// Works out a request that the drive begins at `start_ns`.
    fn run(&mut self, start_ns: u64, request: &Request) -> u64 {
        match request.operation {
            Operation::Read => self.read(start_ns, request),
            Operation::Write => self.write(start_ns, request),
            Operation::Flush => self.flush(start_ns),
            Operation::Trim => self.trim(start_ns, request),
        }
    }

    /// Takes a direction of the link for so many sectors from `ready_ns`; when they are over.
    fn link(&mut self, direction: Direction, ready_ns: u64, sectors: u64) -> u64 {
        let free_ns = &mut self.link_free_ns[direction as usize];
        *free_ns = ready_ns.max(*free_ns) + sectors * self.times.link_sector;
        *free_ns
    }

    fn read(&mut self, start_ns: u64, request: &Request) -> u64 {
        let (first, end) = self.units(request);
        let command_ns = start_ns + self.times.read_command + u64::from(end - first - 1) * self.times.read_unit;
        let data_ns = self.read_units(command_ns, first, end);
        self.link(Direction::ToHost, data_ns, u64::from(request.sectors))
    }

    /// Reads units from flash into the controller; those in the write buffer or never written take no time.
    fn read_units(&mut self, ready_ns: u64, first: u32, end: u32) -> u64 {
        let mut pages = std::mem::take(&mut self.pages);
        pages.clear();
        for unit in first..end {
            if self.buffered(ready_ns, unit) {
                continue;
            }
            match (self.ftl.page_of(unit), pages.last_mut()) {
                (Some(page), Some((last, units))) if *last == page => *units += 1,
                (Some(page), _) => pages.push((page, 1)),
                (None, _) => {}
            }
        }
        let mut done_ns = ready_ns;
        for &(page, units) in &pages {
            let read_ns = ready_ns.max(self.die_free_ns[page.die as usize]) + self.times.read;
            let channel = (page.die % self.spec.channels) as usize;
            let over_ns = read_ns.max(self.channel_free_ns[channel]) + u64::from(units) * self.times.channel_unit;
            self.channel_free_ns[channel] = over_ns;
            self.die_free_ns[page.die as usize] = over_ns;
            done_ns = done_ns.max(over_ns);
        }
        self.pages = pages;
        done_ns
    }

    /// Whether a unit is still in the write buffer: gathered, or on the page its die is programming.
    fn buffered(&self, now_ns: u64, unit: u32) -> bool {
        if self.gathering.contains(&unit) {
            return true;
        }
        let Some(page) = self.ftl.page_of(unit) else { return false };
        self.last_program[page.die as usize].is_some_and(|(last, done_ns)| last == page && done_ns > now_ns)
    }

    fn write(&mut self, start_ns: u64, request: &Request) -> u64 {
        let (first, end) = self.units(request);
        self.host_bytes += u64::from(request.sectors) * u64::from(self.spec.sector_bytes);
        let per_unit = self.sectors_per_unit();
        let mut command_ns = start_ns + self.times.write_command + u64::from(end - first) * self.times.write_unit;
        // A unit written in part is read first.
        let (head, tail) = (!request.lbn.0.is_multiple_of(per_unit), !request.end().0.is_multiple_of(per_unit));
        if head {
            command_ns = command_ns.max(self.read_units(command_ns, first, first + 1));
        }
        if tail && !(head && end - first == 1) {
            command_ns = command_ns.max(self.read_units(command_ns, end - 1, end));
        }
        let mut at_ns = command_ns;
        for unit in first..end {
            let (from, to) = (u64::from(unit) * per_unit, (u64::from(unit) + 1) * per_unit);
            let sectors = to.min(request.end().0) - from.max(request.lbn.0);
            let room_ns = self.room(at_ns);
            at_ns = self.link(Direction::FromHost, room_ns, sectors);
            self.gather(at_ns, unit);
        }
        at_ns
    }

    /// When the write buffer has room for another unit.
    fn room(&mut self, ready_ns: u64) -> u64 {
        let capacity = self.spec.write_buffer_bytes / u64::from(self.spec.mapping_bytes);
        let mut at_ns = ready_ns;
        self.release(at_ns);
        while self.buffered_units >= capacity {
            let Some(&(done_ns, _)) = self.programming.front() else { break };
            at_ns = at_ns.max(done_ns);
            self.release(at_ns);
        }
        at_ns
    }

    /// Puts a unit that has come over the link into the write buffer, which programs every full page.
    fn gather(&mut self, now_ns: u64, unit: u32) {
        self.buffered_units += 1;
        self.gathering.push(unit);
        if self.gathering.len() == self.spec.units_per_page() as usize {
            self.program(now_ns);
        }
    }

    /// Frees the buffer of pages that are programmed by now.
    fn release(&mut self, now_ns: u64) {
        while let Some(&(done_ns, units)) = self.programming.front() {
            if done_ns > now_ns {
                break;
            }
            self.buffered_units -= units;
            self.programming.pop_front();
        }
    }

    /// Programs what has been gathered; when it is on flash.
    fn program(&mut self, ready_ns: u64) -> u64 {
        if self.gathering.is_empty() {
            return ready_ns;
        }
        // Of a unit gathered twice the later version is the one; both take their place on the page.
        let units = std::mem::take(&mut self.gathering);
        let (die, collected) = self.ftl.write_page(&units);
        let count = units.len() as u64;
        let channel = die % self.spec.channels as usize;
        let collection_ns = collected.pages_read * self.times.read
            + collected.pages_programmed * self.times.program
            + collected.erased * self.times.erase;
        let transferred_ns = ready_ns.max(self.channel_free_ns[channel]) + count * self.times.channel_unit;
        self.channel_free_ns[channel] = transferred_ns;
        let done_ns = transferred_ns.max(self.die_free_ns[die] + collection_ns) + self.times.program;
        self.die_free_ns[die] = done_ns;
        self.last_program[die] = units.last().and_then(|&unit| self.ftl.page_of(unit)).map(|page| (page, done_ns));
        // The buffer is released in order, so that its room is known by looking at the front only.
        let done_in_order_ns = self.programming.back().map_or(done_ns, |&(last_ns, _)| last_ns.max(done_ns));
        self.programming.push_back((done_in_order_ns, count));
        self.gathering = units;
        self.gathering.clear();
        done_ns
    }

    fn flush(&mut self, start_ns: u64) -> u64 {
        let command_ns = start_ns + self.times.write_command;
        if self.spec.power_loss_protection {
            return command_ns;
        }
        self.program(command_ns);
        let done_ns = self.programming.back().map_or(command_ns, |&(done_ns, _)| command_ns.max(done_ns));
        self.release(done_ns);
        done_ns
    }

    fn trim(&mut self, start_ns: u64, request: &Request) -> u64 {
        let per_unit = self.sectors_per_unit();
        // Units covered in part keep their data.
        let (first, end) = (request.lbn.0.div_ceil(per_unit) as u32, (request.end().0 / per_unit) as u32);
        for unit in first..end.max(first) {
            self.ftl.trim(unit);
        }
        if !self.gathering.is_empty() {
            let before = self.gathering.len();
            self.gathering.retain(|unit| !(first..end).contains(unit));
            self.buffered_units -= (before - self.gathering.len()) as u64;
        }
        start_ns + self.times.write_command
    }

    /// When the drive begins a request that comes now: at once, or when one of a full queue completes.
    fn admitted_ns(&self, now_ns: u64) -> u64 {
        let waiting = self.outstanding.iter().filter(|Reverse((at_ns, ..))| *at_ns > now_ns).count();
        let Some(over) = (waiting + 1).checked_sub(self.spec.queue_depth as usize).filter(|&over| over > 0) else {
            return now_ns;
        };
        let mut ends: Vec<u64> = self.outstanding.iter().map(|Reverse((at_ns, ..))| *at_ns).collect();
        ends.retain(|&at_ns| at_ns > now_ns);
        ends.sort_unstable();
        ends.get(over - 1).copied().unwrap_or(now_ns)
    }

    fn durable(&self, request: &Request) -> bool {
        request.operation != Operation::Write || self.spec.power_loss_protection
    }
}

impl Device for Ssd {
    fn duplicate(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn sector_bytes(&self) -> u32 {
        self.spec.sector_bytes
    }

    fn capacity_sectors(&self) -> u64 {
        self.spec.capacity_sectors
    }

    fn max_transfer_sectors(&self) -> u32 {
        self.spec.max_transfer_sectors
    }

    fn supports_trim(&self) -> bool {
        true
    }

    fn flash_counts(&self) -> Option<FlashCounts> {
        Some(FlashCounts { host_bytes: self.host_bytes, ..self.ftl.counts() })
    }

    fn submit(&mut self, now_ns: u64, tag: u64, request: Request) -> Result<(), RequestError> {
        self.check(&request)?;
        let start_ns = self.admitted_ns(now_ns);
        let at_ns = self.run(start_ns, &request);
        self.outstanding.push(Reverse((at_ns, self.submitted, tag, self.durable(&request))));
        self.submitted += 1;
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.outstanding.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    fn poll(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        while let Some(&Reverse((at_ns, _, tag, durable))) = self.outstanding.peek() {
            if at_ns > now_ns {
                break;
            }
            self.outstanding.pop();
            completions.push(Completion { tag, at_ns, durable });
        }
    }

    fn serve(&mut self, now_ns: u64, request: Request) -> Result<Completion, RequestError> {
        self.check(&request)?;
        let at_ns = self.run(now_ns, &request);
        Ok(Completion { tag: 0, at_ns, durable: self.durable(&request) })
    }
}
