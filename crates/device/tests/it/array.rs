//! Arrays: where sectors are, what a small write costs, and what is left when a member is lost.

use device::array::{Array, ArrayError, Layout, Level};
use device::disk::{Disk, QueuedDisk};
use device::{Completion, Device, Drive, Model, Operation, Request, RequestError};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

type Log = Arc<Mutex<Vec<(usize, u64, Request)>>>;

/// A member that takes 1 ms for everything, any number at a time, and writes down what it is asked.
#[derive(Clone)]
struct Recorder {
    number: usize,
    log: Log,
    outstanding: Vec<Completion>,
}

impl Device for Recorder {
    fn duplicate(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }
    fn sector_bytes(&self) -> u32 {
        512
    }
    fn capacity_sectors(&self) -> u64 {
        64
    }
    fn max_transfer_sectors(&self) -> u32 {
        64
    }
    fn supports_trim(&self) -> bool {
        true
    }
    fn submit(&mut self, now_ns: u64, tag: u64, request: Request) -> Result<(), RequestError> {
        self.check(&request)?;
        self.log.lock().unwrap().push((self.number, now_ns, request));
        self.outstanding.push(Completion { tag, at_ns: now_ns + 1_000_000, durable: true });
        Ok(())
    }
    fn next_event_ns(&self) -> Option<u64> {
        self.outstanding.iter().map(|completion| completion.at_ns).min()
    }
    fn poll(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        completions.extend(self.outstanding.extract_if(.., |completion| completion.at_ns <= now_ns));
    }
}

fn recorded(level: Level, members: usize) -> (Array<Recorder>, Log) {
    let log = Log::default();
    let member = |number| Recorder { number, log: log.clone(), outstanding: Vec::new() };
    (Array::new(level, (0..members).map(member).collect(), 4).unwrap(), log)
}

fn layout(level: Level, members: usize) -> Layout {
    recorded(level, members).0.layout()
}

#[test]
fn every_sector_has_a_place_of_its_own_and_parity_moves_over_all_members() {
    for (level, members) in [(Level::Raid0, 1), (Level::Raid0, 4), (Level::Raid5, 3), (Level::Raid5, 5)] {
        let layout = layout(level, members);
        let mut seen = std::collections::BTreeSet::new();
        for lbn in 0..layout.capacity_sectors() {
            let (member, member_lbn, stripe) = layout.place(lbn);
            assert!(seen.insert((member, member_lbn)), "{level:?}: sector {lbn} shares its place");
            assert_ne!(layout.parity_member(stripe), Some(member), "{level:?}: data on the stripe's parity");
            assert!(member_lbn < layout.member_sectors);
        }
        if level == Level::Raid5 {
            let parities: std::collections::BTreeSet<_> =
                (0..members as u64).map(|stripe| layout.parity_member(stripe)).collect();
            assert_eq!(parities.len(), members, "parity is on every member in turn");
        }
    }
}

proptest! {
    #[test]
    fn pieces_cover_a_request_once(lbn in 0u64..200, sectors in 1u64..60, members in 3usize..6) {
        for level in [Level::Raid0, Level::Raid1, Level::Raid5] {
            let layout = layout(level, members);
            let pieces = layout.pieces(lbn, sectors);
            let mut next = lbn;
            for piece in &pieces {
                prop_assert_eq!(piece.array_lbn, next);
                for within in 0..piece.sectors {
                    let (member, member_lbn, stripe) = layout.place(next + within);
                    prop_assert_eq!((member, member_lbn), (piece.member, piece.member_lbn + within));
                    if level == Level::Raid5 {
                        prop_assert_eq!(stripe, piece.stripe);
                    }
                }
                next += piece.sectors;
            }
            prop_assert_eq!(next, lbn + sectors);
        }
    }

    /// Whatever is written, the parity of every row written is written too, after every read; and with one member
    /// lost, what is read is enough to know the new parity.
    #[test]
    fn parity_follows_every_write(
        lbn in 0u64..120, sectors in 1u32..60, members in 3usize..6, lost in prop::option::of(0usize..6),
    ) {
        let (mut array, log) = recorded(Level::Raid5, members);
        prop_assume!(lbn + u64::from(sectors) <= array.capacity_sectors());
        let lost = lost.filter(|&lost| lost < members);
        if let Some(lost) = lost {
            array.fail(lost);
        }
        let done = array.serve(0, Request::write(lbn, sectors)).unwrap();
        let layout = array.layout();
        let log = log.lock().unwrap();
        prop_assert!(log.iter().all(|(member, ..)| Some(*member) != lost), "nothing is asked of a lost member");
        let touches = |operation, member, row: u64| log.iter().any(|(m, _, r)| {
            *m == member && r.operation == operation && (r.lbn.0..r.end().0).contains(&row)
        });
        let last_read = log.iter().filter(|(.., r)| r.operation == Operation::Read).map(|(_, at, _)| *at).max();
        for sector in lbn..lbn + u64::from(sectors) {
            let (member, row, stripe) = layout.place(sector);
            let parity = layout.parity_member(stripe).unwrap();
            prop_assert!(Some(member) == lost || touches(Operation::Write, member, row));
            prop_assert!(Some(parity) == lost || touches(Operation::Write, parity, row));
            if Some(parity) == lost {
                continue;
            }
            // Known after the reads: a member's new data if written, its old data if read.
            let written = |m: usize| (lbn..lbn + u64::from(sectors)).any(|s| {
                let (place, place_row, _) = layout.place(s);
                (place, place_row) == (m, row)
            });
            let others = (0..members).filter(|m| *m != parity);
            let rebuilt = others.clone().all(|m| written(m) || touches(Operation::Read, m, row));
            let modified = touches(Operation::Read, parity, row)
                && others.clone().all(|m| !written(m) || touches(Operation::Read, m, row));
            let recovered = (0..members).all(|m| Some(m) == lost || touches(Operation::Read, m, row));
            prop_assert!(rebuilt || modified || recovered, "row {} of stripe {}", row, stripe);
        }
        prop_assert_eq!(done.at_ns, if last_read.is_some() { 2_000_000 } else { 1_000_000 });
    }
}

#[test]
fn a_small_write_is_two_reads_and_two_writes() {
    let (mut array, log) = recorded(Level::Raid5, 5);
    let done = array.serve(0, Request::write(5, 2)).unwrap();
    assert_eq!(done.at_ns, 2_000_000, "the reads, then the writes");
    let kinds: Vec<(u64, Operation)> =
        log.lock().unwrap().iter().map(|(_, at, request)| (*at, request.operation)).collect();
    assert_eq!(
        kinds,
        [(0, Operation::Read), (0, Operation::Read), (1_000_000, Operation::Write), (1_000_000, Operation::Write)]
    );
    // A whole stripe needs no reads.
    log.lock().unwrap().clear();
    array.serve(10_000_000, Request::write(16, 16)).unwrap();
    assert!(log.lock().unwrap().iter().all(|(.., request)| request.operation == Operation::Write));
    assert_eq!(log.lock().unwrap().len(), 5);
}

#[test]
fn a_lost_member_is_read_from_all_others() {
    let (mut array, log) = recorded(Level::Raid5, 4);
    let member = array.layout().place(0).0;
    assert!(array.fail(member) && !array.fail(member));
    array.serve(0, Request::read(0, 2)).unwrap();
    let mut members: Vec<usize> = log.lock().unwrap().iter().map(|(member, ..)| *member).collect();
    members.sort_unstable();
    assert_eq!(members, (0..4).filter(|m| *m != member).collect::<Vec<_>>());
    array.fail((member + 1) % 4);
    assert_eq!(array.serve(1, Request::read(0, 2)), Err(RequestError::Failed));
}

#[test]
fn mirrors_write_everywhere_and_read_in_turn() {
    let (mut array, log) = recorded(Level::Raid1, 3);
    array.serve(0, Request::write(0, 8)).unwrap();
    assert_eq!(log.lock().unwrap().len(), 3);
    log.lock().unwrap().clear();
    for n in 1..=6 {
        array.serve(n * 10_000_000, Request::read(0, 8)).unwrap();
    }
    let members: Vec<usize> = log.lock().unwrap().iter().map(|(member, ..)| *member).collect();
    assert_eq!(members, [0, 1, 2, 0, 1, 2]);
    array.fail(1);
    log.lock().unwrap().clear();
    array.serve(100_000_000, Request::read(0, 8)).unwrap();
    array.serve(110_000_000, Request::read(0, 8)).unwrap();
    assert_eq!(log.lock().unwrap().iter().map(|(member, ..)| *member).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn arrays_that_cannot_be_are_refused() {
    let log = Log::default();
    let members = |count| (0..count).map(|number| Recorder { number, log: log.clone(), outstanding: Vec::new() });
    assert_eq!(
        Array::new(Level::Raid5, members(2).collect(), 4).err(),
        Some(ArrayError::TooFew { members: 2, least: 3 })
    );
    assert!(matches!(Array::new(Level::Raid0, members(2).collect(), 0).err(), Some(ArrayError::Unit { .. })));
    assert!(matches!(Array::new(Level::Raid0, members(2).collect(), 65).err(), Some(ArrayError::Unit { .. })));
}

#[test]
fn striping_over_disks_is_faster_and_small_parity_writes_are_slower() {
    let disk = || match Drive::find("st39102lw").unwrap().model {
        Model::Disk(spec) => QueuedDisk::new(Disk::new(*spec)),
        Model::Ssd(_) => panic!("a disk"),
    };
    let mut stripe = Array::new(Level::Raid0, vec![disk(), disk(), disk(), disk()], 128).unwrap();
    let one = disk().serve(0, Request::read(0, 4096)).unwrap().at_ns;
    let four = stripe.serve(0, Request::read(0, 4096)).unwrap().at_ns;
    assert!(four * 2 < one, "a long read: {four} ns on four disks, {one} ns on one");
    // Reading first is what the buffer cannot hide.
    let mut parity = Array::new(Level::Raid5, vec![disk(), disk(), disk()], 128).unwrap();
    let plain = disk().serve(0, Request::write(100_000, 8)).unwrap().at_ns;
    let small = parity.serve(0, Request::write(100_000, 8)).unwrap().at_ns;
    assert!(small > plain, "a small write: {small} ns with parity, {plain} ns without");
}
