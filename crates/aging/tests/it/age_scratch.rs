//! The replayer on scratch file systems: utilisation, full targets, and what fsck says of the aged image. Needs root.

use crate::common;
use crate::common::plans::{Shape, write};
use crate::common::{Nobody, planned, walked};
use aging::age::{AgeOptions, AgeResult, Begin, DataMode, OnFull, age, identity, room};
use aging::format::Reader;
use fault::{Fault as _, Kind};
use posix::{FileSystem as _, Target, Workspace, WorkspaceOptions};
use std::path::Path;

/// A scratch file system, or `None` where it cannot be had, for which the test is skipped.
fn scratch(text: &str) -> Option<Workspace> {
    let target = Target::parse(text).unwrap();
    testkit::have(Workspace::open(&target, &WorkspaceOptions::default()))
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

/// Near the top every policy must get through, keep its books right, and leave a tree that is the plan's where it is
/// there at all.
#[test]
fn a_full_target_is_survived() {
    for text in ["ext4:300M,-m 0,backing=ram", "xfs:300M,backing=ram", "btrfs:300M,backing=ram"] {
        for (policy, share, data) in
            [(OnFull::Skip, 0.95, DataMode::Write), (OnFull::DeleteOldest, 0.99, DataMode::Fallocate)]
        {
            let Some(workspace) = scratch(text) else { continue };
            let dir = tempfile::tempdir().unwrap();
            let plan = dir.path().join("a.aging");
            // Planned for more than there is, within what is steered: ENOSPC comes before control can tell.
            let capacity_bytes = capacity(&workspace) / 100 * 108;
            let shape =
                Shape { capacity_bytes, share, operations: 9000, days: 20, mean_bytes: 128 << 10, ..Shape::default() };
            write(&plan, shape);
            let writers = if policy == OnFull::Skip { 1 } else { 3 };
            let result =
                run(&workspace, &plan, &AgeOptions { on_full: policy, data, writers, ..AgeOptions::default() });
            let (counters, used) = (&result.counters, result.deviation.used_max);
            println!(
                "{text} {policy:?}: {:?} full {} left out {}",
                result.deviation, counters.full, counters.full_left_out
            );
            // A small btrfs is full of metadata well before df says so.
            assert!(used > if text.starts_with("btrfs") { 0.6 } else { 0.9 }, "{text}: {used}");
            let listing = walked(workspace.path());
            let files = listing.values().filter(|(kind, _)| *kind != posix::FileKind::Directory).count() as u64;
            assert_eq!(files, result.files, "{text} {policy:?}");
            let blocks: u64 = listing
                .values()
                .filter(|(k, _)| *k == posix::FileKind::File)
                .map(|(_, n)| n.next_multiple_of(4096))
                .sum();
            assert_eq!(blocks, result.file_bytes, "{text} {policy:?}");
        }
    }
}

/// What the kernel answers on a target that has turned read-only, or is gone, is told with what to do.
#[test]
fn a_target_that_fails_in_the_middle_ends_the_run_with_advice() {
    for (errno, says) in
        [(posix::Errno::EROFS, "read-only"), (posix::Errno::EIO, "dmesg"), (posix::Errno::ESTALE, "unmounted")]
    {
        let dir = tempfile::tempdir().unwrap();
        let (plan, root) = (dir.path().join("a.aging"), dir.path().join("tree"));
        std::fs::create_dir(&root).unwrap();
        write(&plan, Shape { capacity_bytes: 1 << 40, share: 1e-5, operations: 2000, ..Shape::default() });
        let mut fs = common::faulty::Faulty::new(posix::Mounted::open(&root).unwrap(), errno, 2500);
        let reader = Reader::open(&plan).unwrap();
        let options = AgeOptions { room: aging::age::Room::Beside { bytes: 1 << 40 }, ..AgeOptions::default() };
        let begin = Begin { plan: identity(&plan).unwrap(), groups: Err("none".into()), resume: None };
        let error = age(&mut fs, &reader, &options, begin, &mut Nobody).unwrap_err();
        assert_eq!(error.kind(), Kind::Environment);
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// Other programs find nothing wrong with an aged image.
#[test]
fn fsck_finds_the_aged_image_clean() {
    let checks: [(&str, &str, &[&str]); 3] = [
        ("ext4:300M", "e2fsck", &["-f", "-n"]),
        ("xfs:300M", "xfs_repair", &["-n", "-f"]),
        ("btrfs:300M", "btrfs", &["check", "--readonly"]),
    ];
    for (text, program, args) in checks {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        let options = WorkspaceOptions { image: Some(posix::Image::New(image.clone())), ..WorkspaceOptions::default() };
        let opened = Workspace::open(&Target::parse(text).unwrap(), &options);
        let Some(workspace) = testkit::have(opened) else { continue };
        let plan = dir.path().join("a.aging");
        let capacity_bytes = capacity(&workspace);
        write(&plan, Shape { capacity_bytes, share: 0.7, operations: 4000, ..Shape::default() });
        run(&workspace, &plan, &AgeOptions { writers: 2, ..AgeOptions::default() });
        workspace.close().unwrap();
        let judged = std::process::Command::new(program).args(args).arg(&image).output();
        if let Some(out) = testkit::have(judged.map_err(|e| format!("{program}: {e}"))) {
            let said = [&out.stdout, &out.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
            assert!(out.status.success(), "{program}: {}", said.concat());
        }
    }
}
