//! The states that a power failure may leave, against all that the model of a drive allows, worked out by hand or by
//! brute force.

use device::crash::{Crash, Event, Plan, Recording, UnderWay, Write, WriteCache};
use device::store::{MemoryStore, Store as _, read};
use std::collections::BTreeSet;

const SECTORS: usize = 8;

fn blank() -> MemoryStore {
    MemoryStore(vec![0; SECTORS * 512])
}

/// A write of whole sectors that all hold `mark`.
fn write(sector: u64, sectors: usize, mark: u8, submitted_after: u64, durable: bool) -> Event {
    Event::Write(Write { at_byte: sector * 512, bytes: vec![mark; sectors * 512].into(), submitted_after, durable })
}

/// At each moment, the states by the first byte of each sector.
fn states(log: &[Event], plan: Plan) -> Vec<BTreeSet<[u8; SECTORS]>> {
    let mut crash = Crash::new(blank(), log, plan);
    let mut moments = Vec::new();
    while let Some(point) = crash.next_point().unwrap() {
        let before = crash.disk().state();
        let mut states = BTreeSet::new();
        for choice in 0..point.choices {
            crash.lay(&point, choice).unwrap();
            let bytes = read(&crash.disk(), 0, SECTORS * 512).unwrap();
            assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])), "a torn sector");
            states.insert(std::array::from_fn(|n| bytes[n * 512]));
            crash.lift().unwrap();
        }
        assert_eq!(crash.disk().state(), before, "a state was left behind");
        moments.push(states);
    }
    moments
}

fn of(text: &[&str]) -> BTreeSet<[u8; SECTORS]> {
    let one = |text: &&str| std::array::from_fn(|n| text.as_bytes().get(n).map_or(0, |byte| byte.wrapping_sub(b'0')));
    text.iter().map(one).collect()
}

#[test]
fn without_a_cache_only_what_is_under_way_is_open() {
    // The second is handed over before the first is complete; the third after both.
    let log = [write(0, 2, 1, 0, true), write(2, 1, 2, 0, true), write(0, 1, 3, 2, true)];
    let found = states(&log, Plan::default());
    let first = of(&["000", "100", "010", "110", "002", "102", "012", "112"]);
    assert_eq!(found[0], first);
    assert_eq!(found[1], of(&["110", "112"]));
    assert_eq!(found[2], of(&["112", "312"]));
    assert_eq!(found[3], of(&["312"]));
    let whole = states(&log, Plan { under_way: UnderWay::Whole, ..Plan::default() });
    assert_eq!(whole[0], of(&["000", "110", "002", "112"]));
    let nothing = states(&log, Plan { under_way: UnderWay::Nothing, ..Plan::default() });
    assert_eq!(nothing, [of(&["000"]), of(&["110"]), of(&["112"]), of(&["312"])]);
}

#[test]
fn a_flush_settles_what_was_complete_when_the_drive_got_it() {
    let log = [
        write(0, 1, 1, 0, false),
        write(1, 1, 2, 1, false),
        // Handed over when only the first write was complete.
        Event::Flush { submitted_after: 1 },
        write(2, 1, 3, 3, false),
    ];
    let found = states(&log, Plan::default());
    assert_eq!(found[2], of(&["000", "100", "020", "120"]));
    assert_eq!(found[3], of(&["100", "120", "103", "123"]));
    assert_eq!(found[4], of(&["100", "120", "103", "123"]));
    let off = states(&log, Plan { cache: WriteCache::Off, ..Plan::default() });
    assert_eq!(off[4], of(&["123"]));
}

/// A write that is on the medium is never replaced by an older one that was in the cache.
#[test]
fn an_older_write_does_not_come_back() {
    let log = [write(0, 1, 1, 0, false), write(0, 1, 2, 1, true), Event::Flush { submitted_after: 2 }];
    let found = states(&log, Plan::default());
    assert_eq!(found[1], of(&["0", "1", "2"]));
    assert_eq!(found[2], of(&["2"]));
    assert_eq!(found[3], of(&["2"]));
}

#[test]
fn discarded_sectors_hold_junk_or_what_they_held() {
    let junk = 0xD1_u8;
    let log = [write(0, 1, 1, 0, true), Event::Discard { at_byte: 0, len_bytes: 512 }, write(3, 1, 4, 2, true)];
    let found = states(&log, Plan::default());
    assert!(found[2].iter().any(|state| state[0] == 1) && found[2].iter().any(|state| state[0] == junk));
    assert!(found[3].iter().all(|state| state[0] == junk && state[3] == 4));
}

/// Where there are too many states, all that are drawn are states, the regular ones are among them, and a seed draws
/// them again.
#[test]
fn many_states_are_sampled_by_seed() {
    let log = [write(0, 4, 1, 0, true), write(4, 4, 2, 0, true)];
    let plan = |seed| Plan { most_of_a_point: 64, seed, ..Plan::default() };
    let all = states(&log, Plan { most_of_a_point: 256, ..Plan::default() });
    assert_eq!(all[0].len(), 256);
    let some = states(&log, plan(1));
    assert!(some[0].is_subset(&all[0]) && some[0].len() > 30, "{}", some[0].len());
    for regular in of(&["00000000", "11112222", "11110000", "00002222", "10000000", "11002222", "11112000"]) {
        assert!(some[0].contains(&regular), "{regular:?}");
    }
    assert_eq!(some, states(&log, plan(1)));
    assert_ne!(some, states(&log, plan(2)));
}

#[test]
fn what_is_recorded_is_whole_sectors_in_order() {
    let mut recording = Recording::new(blank());
    recording.write_at(500, &[7; 20]).unwrap();
    recording.write_at(500, &[7; 20]).unwrap();
    let log = recording.into_log();
    assert_eq!(log.len(), 1, "the same bytes again are no write");
    let Event::Write(write) = &log[0] else { panic!("{log:?}") };
    assert_eq!((write.at_byte, write.bytes.len(), write.bytes[499], write.bytes[519]), (0, 1024, 0, 7));
}
