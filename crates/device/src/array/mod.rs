//! Arrays of devices: RAID 0, 1 and 5, whole or with members missing.
//!
//! A request becomes pieces on the members. A RAID 5 write that does not fill a stripe reads what it needs to know the
//! new parity (the old data and parity, or the stripe's other data if that is less) and writes data and parity when the
//! reads are over. A missing member's data are read from all others. The array is itself a [`Device`], so arrays nest.

mod layout;

pub use layout::{Layout, Level, Piece};

use crate::{Completion, Device, FlashCounts, Lbn, Operation, Request, RequestError};
use std::collections::{BTreeMap, VecDeque};

/// Why an array cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    /// Too few members.
    #[error("{members} members; this level needs at least {least}")]
    TooFew {
        /// Members given.
        members: usize,
        /// The fewest possible.
        least: usize,
    },
    /// Members with different sectors.
    #[error("members with sectors of different sizes")]
    Mixed,
    /// The stripe unit is nothing, or more than a member has or takes at a time.
    #[error("a stripe unit of {unit_sectors} sectors; 1 to {max_sectors}")]
    Unit {
        /// Sectors asked for.
        unit_sectors: u64,
        /// The most that every member has and takes.
        max_sectors: u64,
    },
}

/// What an operation on a member is part of.
#[derive(Clone, Debug)]
struct Parent {
    tag: u64,
    waiting: usize,
    durable: bool,
    /// Writes that begin when the stripe's reads are over, by the number of reads left.
    stripes: Vec<Stripe>,
    is_write: bool,
}

/// A request for a member; with the parent's stripe if it is one of the reads before the stripe's writes.
type Step = (usize, Request, Option<usize>);

/// A request for a member.
type Part = (usize, Request);

/// The second half of a read-modify-write.
#[derive(Clone, Debug)]
struct Stripe {
    reads_left: usize,
    writes: Vec<Part>,
}

/// An array of devices.
#[derive(Clone, Debug)]
pub struct Array<D> {
    layout: Layout,
    members: Vec<D>,
    failed: Vec<bool>,
    sector_bytes: u32,
    max_transfer_sectors: u32,
    parents: BTreeMap<u64, Parent>,
    /// Of each operation on a member: its parent, and the parent's stripe if it is one of the reads before a write.
    children: BTreeMap<u64, (u64, Option<usize>)>,
    next_parent: u64,
    next_child: u64,
    /// Completions that have not been polled, in order of time.
    done: VecDeque<Completion>,
    /// Where the next read of a mirror looks first.
    next_mirror: usize,
}

impl<D: Device> Array<D> {
    /// An array of devices that are new or idle; `unit_sectors` is a member's share of a stripe.
    pub fn new(level: Level, members: Vec<D>, unit_sectors: u64) -> Result<Array<D>, ArrayError> {
        let least = level.least_members();
        let Some(first) = members.first().filter(|_| members.len() >= least) else {
            return Err(ArrayError::TooFew { members: members.len(), least });
        };
        let sector_bytes = first.sector_bytes();
        if members.iter().any(|member| member.sector_bytes() != sector_bytes) {
            return Err(ArrayError::Mixed);
        }
        let smallest = members.iter().map(Device::capacity_sectors).min().unwrap_or(0);
        let max_transfer_sectors = members.iter().map(Device::max_transfer_sectors).min().unwrap_or(1);
        let max_sectors = smallest.min(u64::from(max_transfer_sectors));
        if unit_sectors == 0 || unit_sectors > max_sectors {
            return Err(ArrayError::Unit { unit_sectors, max_sectors });
        }
        let member_sectors = smallest / unit_sectors * unit_sectors;
        let layout = Layout { level, members: members.len(), unit_sectors, member_sectors };
        Ok(Array {
            layout,
            failed: vec![false; members.len()],
            members,
            sector_bytes,
            max_transfer_sectors,
            parents: BTreeMap::new(),
            children: BTreeMap::new(),
            next_parent: 0,
            next_child: 0,
            done: VecDeque::new(),
            next_mirror: 0,
        })
    }

    /// Where its sectors are.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Its members.
    pub fn members(&self) -> &[D] {
        &self.members
    }

    /// Takes a member out, with nothing outstanding. Whether it was there.
    pub fn fail(&mut self, member: usize) -> bool {
        self.failed.get_mut(member).is_some_and(|failed| !std::mem::replace(failed, true))
    }

    fn survives(&self) -> bool {
        let lost = self.failed.iter().filter(|failed| **failed).count();
        match self.layout.level {
            Level::Raid0 => lost == 0,
            Level::Raid1 => lost < self.members.len(),
            Level::Raid5 => lost <= 1,
        }
    }

    /// Operations that a request begins with, and the stripes whose writes follow their reads.
    fn plan(&mut self, request: &Request) -> (Vec<Step>, Vec<Stripe>) {
        match (request.operation, self.layout.level) {
            (Operation::Flush, _) => (self.on_all(*request), Vec::new()),
            (Operation::Read, _) => (self.plan_read(request), Vec::new()),
            (_, Level::Raid1) => (self.on_all(*request), Vec::new()),
            (_, Level::Raid0) => {
                let pieces = self.layout.pieces(request.lbn.0, u64::from(request.sectors));
                (pieces.iter().map(|piece| (piece.member, part(request.operation, piece), None)).collect(), Vec::new())
            }
            (_, Level::Raid5) => self.plan_parity(request),
        }
    }

    fn on_all(&self, request: Request) -> Vec<Step> {
        (0..self.members.len()).filter(|&member| !self.failed[member]).map(|member| (member, request, None)).collect()
    }

    fn plan_read(&mut self, request: &Request) -> Vec<Step> {
        if self.layout.level == Level::Raid1 {
            // Mirrors take turns.
            let count = self.members.len();
            let member = (0..count).map(|n| (self.next_mirror + n) % count).find(|&m| !self.failed[m]).unwrap_or(0);
            self.next_mirror = (member + 1) % count;
            return vec![(member, *request, None)];
        }
        let mut operations = Vec::new();
        for piece in self.layout.pieces(request.lbn.0, u64::from(request.sectors)) {
            let read = part(Operation::Read, &piece);
            if !self.failed[piece.member] {
                operations.push((piece.member, read, None));
                continue;
            }
            let others = (0..self.members.len()).filter(|&member| member != piece.member);
            operations.extend(others.map(|member| (member, read, None)));
        }
        operations
    }

    /// Each stripe: its reads now, its writes when they are over.
    fn plan_parity(&self, request: &Request) -> (Vec<Step>, Vec<Stripe>) {
        let pieces = self.layout.pieces(request.lbn.0, u64::from(request.sectors));
        let (mut now, mut stripes) = (Vec::new(), Vec::new());
        for of_stripe in pieces.chunk_by(|a, b| a.stripe == b.stripe) {
            let (reads, writes) = self.plan_stripe(of_stripe);
            if reads.is_empty() {
                now.extend(writes.into_iter().map(|(member, write)| (member, write, None)));
            } else {
                let stripe = stripes.len();
                stripes.push(Stripe { reads_left: reads.len(), writes });
                now.extend(reads.into_iter().map(|(member, read)| (member, read, Some(stripe))));
            }
        }
        (now, stripes)
    }

    fn plan_stripe(&self, pieces: &[Piece]) -> (Vec<Part>, Vec<Part>) {
        let Some(first) = pieces.first() else { return (Vec::new(), Vec::new()) };
        let Some(parity) = self.layout.parity_member(first.stripe) else { return (Vec::new(), Vec::new()) };
        let unit = self.layout.unit_sectors;
        let base = first.stripe * unit;
        // Parity is computed over the rows that any piece touches.
        let low = pieces.iter().map(|piece| piece.member_lbn).min().unwrap_or(base);
        let high = pieces.iter().map(|piece| piece.member_lbn + piece.sectors).max().unwrap_or(base);
        let rows = |operation, from: u64, to: u64| Request { operation, lbn: Lbn(from), sectors: (to - from) as u32 };
        let data: Vec<Part> = pieces.iter().map(|p| (p.member, part(Operation::Write, p))).collect();
        let mut writes: Vec<Part> = data.clone();
        writes.push((parity, rows(Operation::Write, low, high)));
        writes.retain(|(member, _)| !self.failed[*member]);
        if self.failed[parity] {
            return (Vec::new(), writes);
        }
        let covered = pieces.len() + 1 == self.members.len()
            && pieces.iter().all(|piece| (piece.member_lbn, piece.member_lbn + piece.sectors) == (low, high));
        if covered {
            return (Vec::new(), writes);
        }
        let touched = |member: usize| pieces.iter().find(|piece| piece.member == member);
        // Old data and old parity, or what the stripe holds besides.
        let mut modify: Vec<Part> = pieces.iter().map(|piece| (piece.member, part(Operation::Read, piece))).collect();
        modify.push((parity, rows(Operation::Read, low, high)));
        let mut rebuild = Vec::new();
        for member in (0..self.members.len()).filter(|&member| member != parity) {
            match touched(member) {
                None => rebuild.push((member, rows(Operation::Read, low, high))),
                Some(piece) => {
                    let (from, to) = (piece.member_lbn, piece.member_lbn + piece.sectors);
                    for (from, to) in [(low, from), (to, high)].into_iter().filter(|(from, to)| from < to) {
                        rebuild.push((member, rows(Operation::Read, from, to)));
                    }
                }
            }
        }
        let possible = |reads: &[Part]| reads.iter().all(|(member, _)| !self.failed[*member]);
        let reads = match (possible(&modify), possible(&rebuild)) {
            (true, true) => {
                if rebuild.len() < modify.len() {
                    rebuild
                } else {
                    modify
                }
            }
            (true, false) => modify,
            (false, true) => rebuild,
            // A lost member written in part: its old data come from the whole row of all others.
            (false, false) => {
                let others = (0..self.members.len()).filter(|&member| !self.failed[member]);
                others.map(|member| (member, rows(Operation::Read, low, high))).collect()
            }
        };
        (reads, writes)
    }

    fn begin(&mut self, now_ns: u64, parent: u64, operations: Vec<Step>) -> Result<(), RequestError> {
        for (member, request, stripe) in operations {
            let child = self.next_child;
            self.next_child += 1;
            self.members[member].submit(now_ns, child, request)?;
            self.children.insert(child, (parent, stripe));
        }
        Ok(())
    }

    /// A member has finished an operation.
    fn finished(&mut self, child: Completion) {
        let Some((number, stripe)) = self.children.remove(&child.tag) else { return };
        let Some(parent) = self.parents.get_mut(&number) else { return };
        parent.waiting -= 1;
        // Only writes say something about what is on the media.
        parent.durable &= child.durable || stripe.is_some() || !parent.is_write;
        let mut follow = Vec::new();
        if let Some(stripe) = stripe.and_then(|n| parent.stripes.get_mut(n)) {
            stripe.reads_left -= 1;
            if stripe.reads_left == 0 {
                follow = std::mem::take(&mut stripe.writes);
                parent.waiting += follow.len();
            }
        }
        if parent.waiting == 0 {
            let completion = Completion { tag: parent.tag, at_ns: child.at_ns, durable: parent.durable };
            self.parents.remove(&number);
            self.done.push_back(completion);
        } else if !follow.is_empty() {
            let follow = follow.into_iter().map(|(member, request)| (member, request, None)).collect();
            let begun = self.begin(child.at_ns, number, follow);
            debug_assert!(begun.is_ok(), "a piece of a request that was taken is taken: {begun:?}");
        }
    }
}

fn part(operation: Operation, piece: &Piece) -> Request {
    Request { operation, lbn: Lbn(piece.member_lbn), sectors: piece.sectors as u32 }
}

impl<D: Device + Clone + 'static> Device for Array<D> {
    fn duplicate(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn capacity_sectors(&self) -> u64 {
        self.layout.capacity_sectors()
    }

    fn max_transfer_sectors(&self) -> u32 {
        self.max_transfer_sectors
    }

    /// Mirrors and stripes pass it on. With parity it would leave the parity wrong.
    fn supports_trim(&self) -> bool {
        self.layout.level != Level::Raid5 && self.members.iter().all(Device::supports_trim)
    }

    fn flash_counts(&self) -> Option<FlashCounts> {
        self.members.iter().filter_map(Device::flash_counts).reduce(|all, more| all + more)
    }

    fn submit(&mut self, now_ns: u64, tag: u64, request: Request) -> Result<(), RequestError> {
        self.check(&request)?;
        if !self.survives() {
            return Err(RequestError::Failed);
        }
        let (operations, stripes) = self.plan(&request);
        let number = self.next_parent;
        self.next_parent += 1;
        let is_write = request.operation == Operation::Write;
        self.parents.insert(number, Parent { tag, waiting: operations.len(), durable: true, stripes, is_write });
        self.begin(now_ns, number, operations)
    }

    fn next_event_ns(&self) -> Option<u64> {
        let members = self.members.iter().filter_map(Device::next_event_ns).min();
        let done = self.done.front().map(|completion| completion.at_ns);
        members.into_iter().chain(done).min()
    }

    fn poll(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        let mut events = Vec::new();
        while let Some(event_ns) = self.members.iter().filter_map(Device::next_event_ns).min() {
            if event_ns > now_ns {
                break;
            }
            // One moment at a time over all members, so that what follows from it comes before anything later.
            for n in 0..self.members.len() {
                self.members[n].poll(event_ns, &mut events);
            }
            for event in events.drain(..) {
                self.finished(event);
            }
        }
        completions.extend(self.done.drain(..));
    }
}
