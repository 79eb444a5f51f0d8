//! Two devices behind one address: what lies in one range of sectors is the second's, all else the first's. Each has
//! its own queue.
//!
//! So a log has a drive of its own, while the image stays one.

use crate::{Completion, Device, FlashCounts, Lbn, Operation, Request, RequestError};
use std::collections::BTreeMap;
use std::ops::Range;

/// Why two devices cannot stand behind one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BesideError {
    /// Sectors of different sizes.
    #[error("its sectors have another size than those of the drive it stands beside")]
    Mixed,
    /// The range is longer than the second device.
    #[error("{needed_sectors} sectors are to lie on it, and it has {there_sectors}")]
    TooSmall {
        /// Sectors of the range.
        needed_sectors: u64,
        /// Sectors of the second device.
        there_sectors: u64,
    },
}

/// A request of which some part is under way.
#[derive(Clone, Copy, Debug)]
struct Parent {
    tag: u64,
    waiting: u32,
    durable: bool,
}

/// A device, and another that has a range of its sectors.
#[derive(Clone)]
pub struct Beside {
    /// The first has everything outside the range, the second the range, from its first sector on.
    both: [Box<dyn Device>; 2],
    range: Range<u64>,
    /// By the number that the devices know them by.
    parents: BTreeMap<u64, Parent>,
    next: u64,
}

impl Beside {
    /// Two devices that are new or idle. A flush goes to both.
    ///
    /// # Errors
    /// They do not go together, or the second is too small.
    pub fn new(first: Box<dyn Device>, second: Box<dyn Device>, range: Range<u64>) -> Result<Beside, BesideError> {
        if first.sector_bytes() != second.sector_bytes() {
            return Err(BesideError::Mixed);
        }
        let (needed_sectors, there_sectors) = (range.end.saturating_sub(range.start), second.capacity_sectors());
        if needed_sectors > there_sectors {
            return Err(BesideError::TooSmall { needed_sectors, there_sectors });
        }
        Ok(Beside { both: [first, second], range, parents: BTreeMap::new(), next: 0 })
    }

    /// The parts of a request: which device, and what it is asked for.
    fn parts(&self, request: Request) -> Vec<(usize, Request)> {
        if request.operation == Operation::Flush {
            return vec![(0, request), (1, request)];
        }
        let (begin, end) = (request.lbn.0, request.end().0);
        let (from, to) = (self.range.start.clamp(begin, end), self.range.end.clamp(begin, end));
        let cuts = [(0, begin, from), (1, from, to), (0, to, end)];
        let there = cuts.into_iter().filter(|(_, first, last)| first < last);
        there
            .map(|(device, first, last)| {
                let lbn = if device == 1 { first - self.range.start } else { first };
                (device, Request { lbn: Lbn(lbn), sectors: (last - first) as u32, ..request })
            })
            .collect()
    }
}

impl Device for Beside {
    fn duplicate(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn sector_bytes(&self) -> u32 {
        self.both[0].sector_bytes()
    }

    fn capacity_sectors(&self) -> u64 {
        self.both[0].capacity_sectors()
    }

    fn max_transfer_sectors(&self) -> u32 {
        self.both[0].max_transfer_sectors().min(self.both[1].max_transfer_sectors())
    }

    fn supports_trim(&self) -> bool {
        self.both.iter().all(|device| device.supports_trim())
    }

    fn flash_counts(&self) -> Option<FlashCounts> {
        self.both.iter().filter_map(|device| device.flash_counts()).reduce(|all, more| all + more)
    }

    fn submit(&mut self, now_ns: u64, tag: u64, request: Request) -> Result<(), RequestError> {
        self.check(&request)?;
        let parts = self.parts(request);
        let number = self.next;
        self.next += 1;
        self.parents.insert(number, Parent { tag, waiting: parts.len() as u32, durable: true });
        for (device, part) in parts {
            self.both[device].submit(now_ns, number, part)?;
        }
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.both.iter().filter_map(|device| device.next_event_ns()).min()
    }

    fn poll(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        let mut done = Vec::new();
        self.both.iter_mut().for_each(|device| device.poll(now_ns, &mut done));
        done.sort_by_key(|completion| completion.at_ns);
        for completion in done {
            let parent = self.parents.get_mut(&completion.tag).expect("a device completes only what it was given");
            parent.waiting -= 1;
            parent.durable &= completion.durable;
            if parent.waiting == 0 {
                let (tag, durable) = (parent.tag, parent.durable);
                self.parents.remove(&completion.tag);
                completions.push(Completion { tag, durable, ..completion });
            }
        }
    }
}
