//! The replayer on scratch file systems: utilisation, full targets, and what fsck says of the aged image. Needs root.

mod common;

use aging::age::{AgeOptions, AgeResult, Begin, DataMode, OnFull, age, identity, room};
use aging::format::Reader;
use common::plans::{Shape, write};
use common::{Nobody, planned, walked};
use posix::{FileSystem as _, Target, Workspace, WorkspaceOptions};
use std::path::Path;

/// A scratch file system, or `None` with a message where it cannot be had.
fn scratch(text: &str) -> Option<Workspace> {
    let target = Target::parse(text).unwrap();
    match Workspace::open(&target, &WorkspaceOptions::default()) {
        Ok(workspace) => Some(workspace),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

fn capacity(workspace: &Workspace) -> u64 {
    workspace.fs().usage().unwrap().total_bytes
}

fn run(workspace: &Workspace, plan: &Path, options: &AgeOptions) -> AgeResult {
    let mut fs = workspace.fs();
    let reader = Reader::open(plan).unwrap();
    let (room, _) = room(reader.meta(), &fs.usage().unwrap(), "scratch", true, None).unwrap();
    let options = AgeOptions { room, ..options.clone() };
    let begin = Begin { plan: identity(plan).unwrap(), groups: layout::groups_of(workspace.path()), resume: None };
    age(&mut fs, &reader, &options, begin, &mut Nobody).unwrap()
}

#[test]
fn use_follows_the_plan_within_a_point() {
    for text in ["ext4:400M,backing=ram", "xfs:400M,backing=ram", "btrfs:400M,backing=ram"] {
        let Some(workspace) = scratch(text) else { continue };
        let dir = tempfile::tempdir().unwrap();
        let plan = dir.path().join("a.aging");
        let capacity_bytes = capacity(&workspace);
        write(&plan, Shape { capacity_bytes, share: 0.8, operations: 20_000, days: 60, ..Shape::default() });
        let result = run(&workspace, &plan, &AgeOptions::default());
        println!("{text}: {:?} {:?}", result.deviation, result.counters);
        assert!(result.deviation.over_max <= 0.01, "{text}: {:?}", result.deviation);
        assert!(result.deviation.under_max <= 0.01, "{text}: {:?}", result.deviation);
        assert!((0.78..0.82).contains(&result.deviation.used_max), "{text}: {:?}", result.deviation);
        assert_eq!(result.counters.full, 0, "{text}");
        let listing = walked(workspace.path());
        let expected = planned(&Reader::open(&plan).unwrap());
        // What control did not touch is there with the plan's length.
        let wrong = listing.iter().filter(|(path, found)| expected.get(*path).is_some_and(|e| e != *found));
        assert_eq!(wrong.count(), 0, "{text}");
    }
}
