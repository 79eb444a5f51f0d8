//! The flash translation layer: which unit of flash holds a logical unit, and which block is collected next.
//!
//! Page-mapped. Host writes go round the dies; each die has one block open for the host and one for its collector. When
//! a die's free blocks run low, the block with the fewest valid units is emptied and erased (greedy). After Agrawal et
//! al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008, section 3.

use crate::FlashCounts;
use crate::ssd::spec::SsdSpec;

const NONE: u32 = u32::MAX;

/// Units of one lazily allocated piece of the map.
const CHUNK: usize = 1 << 16;

/// The map from logical to physical units; pieces that were never written take no memory.
#[derive(Clone, Debug)]
struct Map {
    chunks: Vec<Option<Box<[u32]>>>,
}

impl Map {
    fn new(units: u64) -> Map {
        Map { chunks: vec![None; (units as usize).div_ceil(CHUNK)] }
    }

    fn get(&self, logical: u32) -> u32 {
        let chunk = self.chunks[logical as usize / CHUNK].as_ref();
        chunk.map_or(NONE, |chunk| chunk[logical as usize % CHUNK])
    }

    fn set(&mut self, logical: u32, physical: u32) {
        let chunk = &mut self.chunks[logical as usize / CHUNK];
        if chunk.is_none() && physical == NONE {
            return;
        }
        chunk.get_or_insert_with(|| vec![NONE; CHUNK].into_boxed_slice())[logical as usize % CHUNK] = physical;
    }
}

/// A block of all planes of a die. Its units are freed with it.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Logical unit of each unit written so far; `NONE` for padding.
    owners: Vec<u32>,
    valid: u32,
}

#[derive(Clone, Debug)]
struct Die {
    /// First of the die's blocks, and how many it has.
    first_block: u32,
    blocks: u32,
    free: Vec<u32>,
    host: Option<u32>,
    collector: Option<u32>,
}

/// What a die had to do to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Collected {
    pub pages_read: u64,
    pub pages_programmed: u64,
    pub erased: u64,
}

/// The translation layer.
#[derive(Clone, Debug)]
pub struct Ftl {
    map: Map,
    blocks: Vec<Block>,
    dies: Vec<Die>,
    unit_bytes: u64,
    units_per_page: u32,
    units_per_block: u32,
    gc_free_blocks: u32,
    next_die: usize,
    counts: FlashCounts,
}

/// A page's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Page {
    pub die: u32,
    pub page: u32,
}

impl Ftl {
    /// An empty drive of a checked specification.
    pub fn new(spec: &SsdSpec) -> Ftl {
        let per_die = spec.blocks_per_die();
        let dies = (0..spec.dies()).map(|die| {
            let first_block = die * per_die;
            // Blocks are taken from the end: the lowest first.
            let free = (first_block..first_block + per_die).rev().collect();
            Die { first_block, blocks: per_die, free, host: None, collector: None }
        });
        Ftl {
            map: Map::new(spec.host_units()),
            blocks: vec![Block::default(); (spec.dies() * per_die) as usize],
            dies: dies.collect(),
            unit_bytes: spec.mapping_bytes.into(),
            units_per_page: spec.units_per_page(),
            units_per_block: spec.units_per_block(),
            gc_free_blocks: spec.gc_free_blocks(),
            next_die: 0,
            counts: FlashCounts::default(),
        }
    }

    /// What has been written since the drive was new, but for the host's own bytes, of which it sees whole units only.
    pub(crate) fn counts(&self) -> FlashCounts {
        self.counts
    }

    /// Page that holds a logical unit.
    pub(crate) fn page_of(&self, logical: u32) -> Option<Page> {
        let physical = self.map.get(logical);
        (physical != NONE).then(|| {
            let block = physical / self.units_per_block;
            let die = block / self.dies[0].blocks;
            Page { die, page: physical / self.units_per_page }
        })
    }

    /// Whether a logical unit is on flash.
    pub fn holds(&self, logical: u32) -> bool {
        self.map.get(logical) != NONE
    }

    /// A logical unit holds nothing any more.
    pub(crate) fn trim(&mut self, logical: u32) {
        if self.holds(logical) {
            self.counts.trimmed_bytes += self.unit_bytes;
        }
        self.invalidate(logical);
        self.map.set(logical, NONE);
    }

    fn invalidate(&mut self, logical: u32) {
        let physical = self.map.get(logical);
        if physical != NONE {
            self.blocks[(physical / self.units_per_block) as usize].valid -= 1;
        }
    }

    /// Writes up to a page of units on the next die with room; the die, and what it had to do first.
    pub(crate) fn write_page(&mut self, logical: &[u32]) -> (usize, Collected) {
        debug_assert!(!logical.is_empty() && logical.len() <= self.units_per_page as usize);
        let (die, collected) = self.make_room();
        let block = self.open_host_block(die);
        self.counts.host_programmed_bytes += logical.len() as u64 * self.unit_bytes;
        self.counts.host_pages += 1;
        for &unit in logical {
            self.append(block, unit);
        }
        let padding = self.units_per_page - logical.len() as u32;
        for _ in 0..padding {
            self.blocks[block as usize].owners.push(NONE);
        }
        self.counts.padding_bytes += u64::from(padding) * self.unit_bytes;
        (die, collected)
    }

    fn append(&mut self, block: u32, logical: u32) {
        self.invalidate(logical);
        let filled = &mut self.blocks[block as usize];
        let physical = block * self.units_per_block + filled.owners.len() as u32;
        filled.owners.push(logical);
        filled.valid += 1;
        self.map.set(logical, physical);
    }

    /// The next die, in turn, that has room for a page or can make it.
    fn make_room(&mut self) -> (usize, Collected) {
        let mut all = Collected::default();
        for _ in 0..self.dies.len() {
            let die = self.next_die;
            self.next_die = (die + 1) % self.dies.len();
            if self.host_has_page(die) {
                return (die, all);
            }
            // A new block is needed.
            let collected = self.collect(die);
            all.pages_read += collected.pages_read;
            all.pages_programmed += collected.pages_programmed;
            all.erased += collected.erased;
            if self.dies[die].free.len() > 1 {
                return (die, all);
            }
        }
        unreachable!("more flash than logical units, and every die full of valid ones");
    }

    fn host_has_page(&self, die: usize) -> bool {
        self.dies[die].host.is_some_and(|block| {
            self.blocks[block as usize].owners.len() as u32 + self.units_per_page <= self.units_per_block
        })
    }

    fn open_host_block(&mut self, die: usize) -> u32 {
        if !self.host_has_page(die) {
            self.dies[die].host = self.dies[die].free.pop();
        }
        match self.dies[die].host {
            Some(block) => block,
            None => unreachable!("room was made for a block"),
        }
    }

    /// Empties and erases blocks until enough are free, or nothing is to be gained.
    fn collect(&mut self, die: usize) -> Collected {
        let mut collected = Collected::default();
        while (self.dies[die].free.len() as u32) <= self.gc_free_blocks {
            let Some(victim) = self.victim(die) else { break };
            if self.blocks[victim as usize].valid >= self.units_per_block {
                break;
            }
            self.empty(die, victim, &mut collected);
        }
        self.counts.collections += u64::from(collected.erased > 0);
        collected
    }

    /// The full block with the fewest valid units.
    fn victim(&self, die: usize) -> Option<u32> {
        let d = &self.dies[die];
        let full = |block: &u32| {
            Some(*block) != d.host && Some(*block) != d.collector && !self.blocks[*block as usize].owners.is_empty()
        };
        (d.first_block..d.first_block + d.blocks).filter(full).min_by_key(|&block| self.blocks[block as usize].valid)
    }

    fn empty(&mut self, die: usize, victim: u32, collected: &mut Collected) {
        let owners = std::mem::take(&mut self.blocks[victim as usize].owners);
        let mut page_read = NONE;
        for (n, &logical) in owners.iter().enumerate() {
            let physical = victim * self.units_per_block + n as u32;
            if logical == NONE || self.map.get(logical) != physical {
                continue;
            }
            if page_read != physical / self.units_per_page {
                page_read = physical / self.units_per_page;
                collected.pages_read += 1;
            }
            let block = self.open_collector_block(die);
            self.append(block, logical);
            self.counts.moved_bytes += self.unit_bytes;
            // The collector programs a page when it is full.
            if (self.blocks[block as usize].owners.len() as u32).is_multiple_of(self.units_per_page) {
                collected.pages_programmed += 1;
                self.counts.collector_pages += 1;
            }
        }
        debug_assert_eq!(self.blocks[victim as usize].valid, 0);
        self.counts.erased_blocks += 1;
        collected.erased += 1;
        self.dies[die].free.push(victim);
    }

    fn open_collector_block(&mut self, die: usize) -> u32 {
        let has_unit = |block: u32| (self.blocks[block as usize].owners.len() as u32) < self.units_per_block;
        if !self.dies[die].collector.is_some_and(has_unit) {
            self.dies[die].collector = self.dies[die].free.pop();
        }
        match self.dies[die].collector {
            Some(block) => block,
            None => unreachable!("a die keeps a free block for its collector"),
        }
    }

    /// Every claim the structure makes about itself, checked in full; for tests.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn assert_consistent(&self) {
        let mut owned = vec![0u32; self.blocks.len()];
        let mut live = 0u64;
        for (n, chunk) in self.map.chunks.iter().enumerate() {
            for (m, &physical) in chunk.iter().flat_map(|chunk| chunk.iter().enumerate()) {
                if physical == NONE {
                    continue;
                }
                let logical = (n * CHUNK + m) as u32;
                let (block, unit) = (physical / self.units_per_block, physical % self.units_per_block);
                assert_eq!(
                    self.blocks[block as usize].owners.get(unit as usize),
                    Some(&logical),
                    "unit {logical} is where the map says"
                );
                owned[block as usize] += 1;
                live += 1;
            }
        }
        for (n, block) in self.blocks.iter().enumerate() {
            assert_eq!(block.valid, owned[n], "block {n} counts its valid units");
            assert!(block.owners.len() <= self.units_per_block as usize, "block {n} is not overfull");
        }
        for (n, die) in self.dies.iter().enumerate() {
            for &block in &die.free {
                assert!(self.blocks[block as usize].owners.is_empty(), "free block {block} is empty");
                assert!(
                    (die.first_block..die.first_block + die.blocks).contains(&block),
                    "free block {block} is die {n}'s"
                );
            }
        }
        assert!(live * self.unit_bytes <= self.counts.host_programmed_bytes, "nothing lives that was not written");
    }
}
