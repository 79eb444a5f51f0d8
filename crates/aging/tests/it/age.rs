//! The replayer on an ordinary directory, without root.

use crate::common::lagging::Lagging;
use crate::common::plans::{Shape, write};
use crate::common::{Nobody, planned, replay, same, walked};
use aging::age::{AgeOptions, Begin, Room, age, identity};
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

/// On a busy machine XFS has nothing of removed files freed for a long time: `df` stands still at too much, the use was
/// put down to metadata, and files of the plan were deleted to make up for it.
#[test]
fn space_that_removed_files_still_have_is_waited_for() {
    let scratch = tempfile::tempdir().unwrap();
    let (plan, root) = (scratch.path().join("a.aging"), scratch.path().join("tree"));
    std::fs::create_dir(&root).unwrap();
    let capacity_bytes = 32 << 20;
    write(&plan, Shape { capacity_bytes, share: 0.8, mean_bytes: 16 << 10, ..Shape::default() });
    let mut fs = Lagging::new(&root, capacity_bytes);
    let reader = Reader::open(&plan).unwrap();
    let begin = Begin { plan: identity(&plan).unwrap(), groups: Err("none".into()), resume: None };
    let result = age(&mut fs, &reader, &AgeOptions::default(), begin, &mut Nobody).unwrap();
    let deviation = &result.deviation;
    assert!(deviation.readings > 10 && deviation.over_max <= 0.01 && deviation.under_max <= 0.01, "{deviation:?}");
    assert_eq!((result.counters.brought_forward, result.counters.out_of_plan), (0, 0), "{:?}", result.counters);
    same(&walked(&root), &planned(&reader), "aged");
}
