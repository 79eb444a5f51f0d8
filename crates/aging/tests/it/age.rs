//! The replayer on an ordinary directory, without root.

use crate::common::plans::{Shape, write};
use crate::common::{planned, replay, same, walked};
use aging::age::{AgeOptions, Room};
use aging::format::Reader;

/// Control with a room that large never acts: the tree must be the plan's.
fn uncontrolled(writers: usize) -> AgeOptions {
    AgeOptions { writers, room: Room::Beside { bytes: 1 << 40 }, ..AgeOptions::default() }
}

#[test]
fn the_tree_is_the_plans_whatever_the_number_of_writers() {
    for named in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        let plan = scratch.path().join("a.aging");
        let capacity_bytes = 1 << 40;
        write(&plan, Shape { named, capacity_bytes, share: 2e-5, mean_bytes: 8192, ..Shape::default() });
        let expected = planned(&Reader::open(&plan).unwrap());
        assert!(expected.len() > 300, "{}", expected.len());
        for writers in [1, 2, 8] {
            let root = scratch.path().join(format!("tree-{named}-{writers}"));
            std::fs::create_dir(&root).unwrap();
            let result = replay(&root, &plan, &uncontrolled(writers)).unwrap();
            assert_eq!(result.counters.operations, 4000);
            same(&walked(&root), &expected, &format!("{writers} writers, named: {named}"));
        }
    }
}
