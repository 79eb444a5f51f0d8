//! Plans from snapshots: replayed in memory, they make the very trees that the snapshots show, every day of them.

use crate::snapshot_blocks::{blocks_meta, extent};
use crate::sources::model::Model;
use crate::sources::replay::Replayed;
use aging::DAY_NS;
use aging::format::{Placement, PlanMeta, Reader};
use aging::plan::short_lived::{Number, ShortLived};
use aging::plan::snapshots::{Changes, Deletions, Place, SnapshotsOptions, plan, planned_for};
use aging::plan::{PlanError, write};
use aging::snapshot::{Builder, InodeGroups, Snapshot, SnapshotMeta};
use aging::{AgingOp, OpKind};
use fault::{Fault as _, Kind};
use posix::FileKind;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// Writes a snapshot a day of a model that lives on.
fn series(directory: &Path, seed: u64, days: usize, steps: usize, generations: bool) -> Vec<PathBuf> {
    let mut model = Model::new(seed, generations);
    (0..days)
        .map(|day| {
            model.live(steps, i64::try_from((day as u64 + 1) * DAY_NS).expect("few days"));
            let path = directory.join(format!("{day:03}.snapshot"));
            model.snapshot().write(&path).expect("a new file");
            path
        })
        .collect()
}

fn planned(paths: &[PathBuf], options: &SnapshotsOptions<'_>) -> Result<(PlanMeta, Vec<AgingOp>), PlanError> {
    let out = paths[0].with_file_name("plan.aging");
    let meta = write(&out, planned_for(paths)?, |writer| plan(paths, options, writer, &mut |_| true))?;
    let reader = Reader::open(&out)?;
    let ops = reader.batches(0).flat_map(|b| b.expect("our own file")).collect();
    Ok((meta, ops))
}

/// Replays a plan day by day and compares each day's tree with its snapshot.
fn check_days(paths: &[PathBuf], ops: &[AgingOp]) {
    let mut tree = Replayed::default();
    let mut rest = ops;
    for (day, path) in (1u64..).zip(paths) {
        let n = rest.partition_point(|op| op.t_ns < day * DAY_NS);
        rest[..n].iter().for_each(|op| tree.apply(op));
        rest = &rest[n..];
        tree.compare(&Snapshot::read(path).expect("our own file"), day);
    }
    assert!(rest.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_day_s_tree_is_that_of_its_snapshot(
        seed: u64, generations: bool, uniform: bool, rewrite: bool, steps in 1..400usize, days in 1..6usize,
    ) {
        let work = tempfile::tempdir().expect("a directory");
        let paths = series(work.path(), seed, days, steps, generations);
        let options = SnapshotsOptions {
            seed,
            deletions: if uniform { Deletions::Uniform } else { Deletions::Lifetimes },
            changes: if rewrite { Changes::Rewrite } else { Changes::Inferred },
            ..SnapshotsOptions::default()
        };
        let (meta, ops) = planned(&paths, &options).expect("a plan");
        prop_assert_eq!(meta.days as usize, days);
        check_days(&paths, &ops);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let work = tempfile::tempdir().expect("a directory");
    let paths = series(work.path(), 5, 6, 300, true);
    let bytes = |seed| {
        planned(&paths, &SnapshotsOptions { seed, ..SnapshotsOptions::default() }).expect("a plan");
        std::fs::read(work.path().join("plan.aging")).expect("the plan")
    };
    let first = bytes(1);
    assert!(bytes(1) == first);
    assert!(bytes(2) != first);
}

#[test]
fn short_lived_files_come_and_go_within_their_day() {
    let work = tempfile::tempdir().expect("a directory");
    let paths = series(work.path(), 9, 8, 300, true);
    // A source of short-lived files: three lasting files a day, and nine that live for a minute.
    let source = work.path().join("source.aging");
    let mut writer = aging::format::Writer::create(&source, 1 << 30, 4096).expect("a new file");
    let mut node = 0;
    for t_ns in (DAY_NS..4 * DAY_NS).step_by((DAY_NS / 3) as usize) {
        for i in 0..4 {
            node += 1;
            let at = |t_ns, kind| AgingOp { size_bytes: 100, ..AgingOp::new(t_ns, kind, aging::NodeId(node)) };
            writer.push(at(t_ns + i * 120_000_000_000, OpKind::Create)).expect("possible");
            if i > 0 {
                let gone =
                    AgingOp::new(t_ns + i * 120_000_000_000 + 60_000_000_000, OpKind::Delete, aging::NodeId(node));
                writer.push(gone).expect("possible");
            }
        }
    }
    writer.finish(PlanMeta { days: 5, ..PlanMeta::default() }).expect("a whole file");
    let short_lived = ShortLived::read(&source).expect("our own file");
    assert!((short_lived.per_lasting_file() - 3.0).abs() < 1e-12);
    let without = planned(&paths, &SnapshotsOptions::default()).expect("a plan").0;
    let options = SnapshotsOptions { short_lived: Some(&short_lived), ..SnapshotsOptions::default() };
    let (with, ops) = planned(&paths, &options).expect("a plan");
    check_days(&paths, &ops);
    let added = with.counts.of(OpKind::Create) - without.counts.of(OpKind::Create);
    let lasting = without.counts.of(OpKind::Create) as f64;
    assert_eq!(added, with.counts.of(OpKind::Delete) - without.counts.of(OpKind::Delete));
    assert!(added as f64 > lasting && (added as f64) < 3.2 * lasting, "{added} for {lasting}");
    assert_eq!(with.source.inputs.len(), 9);
}

/// So many a day in proportion to size, as published in 1997: the number had to be scaled by hand.
#[test]
fn a_larger_file_system_gets_more_short_lived_files_a_day() {
    let work = tempfile::tempdir().expect("a directory");
    let paths = series(work.path(), 9, 8, 300, true);
    let here = planned_for(&paths).expect("our own files").capacity_bytes;
    // Three hundred a day, for three days.
    let source = work.path().join("source.aging");
    let mut writer = aging::format::Writer::create(&source, here / 2, 4096).expect("a new file");
    let directories = 30;
    for node in 1..=directories {
        writer.push(AgingOp::new(node, OpKind::Mkdir, aging::NodeId(node))).expect("possible");
    }
    for file in 0..900 {
        let (t_ns, node) = (DAY_NS + file * (DAY_NS / 300), aging::NodeId(directories + 1 + file));
        let dir = aging::NodeId(1 + file % directories);
        let made = AgingOp { size_bytes: 100, dir, ..AgingOp::new(t_ns, OpKind::Create, node) };
        writer.push(made).expect("possible");
        writer.push(AgingOp::new(t_ns + 1000, OpKind::Delete, node)).expect("possible");
    }
    writer.finish(PlanMeta { days: 4, ..PlanMeta::default() }).expect("a whole file");
    let half = ShortLived::read(&source).expect("our own file");
    assert_eq!((half.times_as_large(here), half.times_as_large(0)), (Some(2.0), None));
    let short = |source: &ShortLived, number, scale| {
        let options = SnapshotsOptions {
            short_lived: Some(source),
            short_lived_number: number,
            short_lived_scale: scale,
            ..SnapshotsOptions::default()
        };
        let parameters = planned(&paths, &options).expect("a plan").0.source.parameters;
        (parameters["short_lived_files"].as_f64().expect("a count"), parameters["short_lived_for_size"].clone())
    };
    let same = half.clone().of_size(here);
    let (twice, times) = short(&half, Number::EachDay, 1.0);
    let (once, one) = short(&same, Number::EachDay, 1.0);
    assert_eq!((times.as_f64(), one.as_f64()), (Some(2.0), Some(1.0)));
    assert!((1.8..2.2).contains(&(twice / once)) && once > 1000.0, "{twice} for {once}");
    let by_hand = short(&half, Number::EachDay, 0.5).0;
    assert!((0.9..1.1).contains(&(by_hand / once)), "the factor still counts: {by_hand} for {once}");
    // Lasting files are as many as the file system is large.
    assert_eq!(short(&half, Number::ForEachLasting, 1.0), short(&same, Number::ForEachLasting, 1.0));
}

#[test]
fn changes_are_made_in_the_steps_of_another_workload() {
    let work = tempfile::tempdir().expect("a directory");
    let mut model = Model::new(13, true);
    model.live(300, DAY_NS as i64);
    let paths: Vec<PathBuf> = (1..=7)
        .map(|day: i64| {
            if day > 1 {
                model.live(20, day * DAY_NS as i64 - DAY_NS as i64 / 2);
                model.write_all(day * DAY_NS as i64);
            }
            let path = work.path().join(format!("{day:03}.snapshot"));
            model.snapshot().write(&path).expect("a new file");
            path
        })
        .collect();
    // Files of every length; each day one third is written over forty times, one third appended to in five pieces.
    let source = work.path().join("source.aging");
    let mut writer = aging::format::Writer::create(&source, 1 << 30, 4096).expect("a new file");
    let op = |t_ns, kind, node, offset_bytes, size_bytes| AgingOp {
        offset_bytes,
        size_bytes,
        ..AgingOp::new(t_ns, kind, aging::NodeId(node))
    };
    let length = |node: u64| 100u64 << (node % 12);
    for node in 1..=36 {
        writer.push(op(node, OpKind::Create, node, 0, length(node))).expect("possible");
    }
    for day in 1..4 {
        for step in 0..40u64 {
            for node in 1..=36u64 {
                let t_ns = day * DAY_NS + step * DAY_NS / 60;
                match node / 12 % 3 {
                    0 => writer.push(op(t_ns, OpKind::Overwrite, node, step * length(node) / 41, 2)),
                    1 if step % 8 == 0 => writer.push(op(t_ns, OpKind::Append, node, 0, 9)),
                    1 if step % 8 == 1 => writer.push(op(t_ns, OpKind::Fsync, node, 0, 0)),
                    _ => Ok(()),
                }
                .expect("possible");
            }
        }
    }
    writer.finish(PlanMeta { days: 5, ..PlanMeta::default() }).expect("a whole file");
    let habits = ShortLived::read(&source).expect("our own file");
    assert!(habits.changed_file_days() > 36 && habits.per_lasting_file() == 0.0);
    let without = planned(&paths, &SnapshotsOptions::default()).expect("a plan").0;
    let options = SnapshotsOptions { short_lived: Some(&habits), ..SnapshotsOptions::default() };
    let (with, ops) = planned(&paths, &options).expect("a plan");
    let bytes = || std::fs::read(work.path().join("plan.aging")).expect("the plan");
    let first = bytes();
    check_days(&paths, &ops);
    let times = |kind| with.counts.of(kind) as f64 / without.counts.of(kind) as f64;
    assert!(times(OpKind::Overwrite) > 20.0, "{}", times(OpKind::Overwrite));
    assert!(times(OpKind::Append) > 1.2, "{}", times(OpKind::Append));
    assert!(with.counts.of(OpKind::Fsync) > 0 && without.counts.of(OpKind::Fsync) == 0);
    assert_eq!(with.counts.of(OpKind::Create), without.counts.of(OpKind::Create));
    let found = |meta: &PlanMeta, name: &str| meta.source.parameters["found"][name].as_u64().expect("a count");
    let (given, changed) = (found(&with, "with_habits"), found(&with, "appended") + found(&with, "overwritten"));
    assert!(given > changed / 2 && given <= changed, "{given} of {changed}");
    assert_eq!(found(&without, "with_habits"), 0);
    planned(&paths, &options).expect("a plan");
    assert!(bytes() == first);
    // Two days at a time.
    let second: Vec<PathBuf> = paths.iter().step_by(2).cloned().collect();
    let (_, ops) = planned(&second, &options).expect("a plan");
    let mut tree = Replayed::default();
    let mut rest = ops.as_slice();
    for (day, path) in (1u64..).step_by(2).zip(&second) {
        let n = rest.partition_point(|op| op.t_ns < day * DAY_NS);
        rest[..n].iter().for_each(|op| tree.apply(op));
        rest = &rest[n..];
        tree.compare(&Snapshot::read(path).expect("our own file"), day);
    }
}

#[test]
fn placement_by_groups_puts_every_file_in_its_inode_s_group() {
    let work = tempfile::tempdir().expect("a directory");
    let paths = series(work.path(), 11, 4, 300, true);
    let options = SnapshotsOptions { place: Place::Groups { count: Some(7) }, ..SnapshotsOptions::default() };
    let (meta, ops) = planned(&paths, &options).expect("a plan");
    assert_eq!(meta.placement, Placement::Groups { count: 7 });
    assert_eq!(meta.counts.of(OpKind::Mkdir), 7);
    assert_eq!(meta.counts.of(OpKind::Rename) + meta.counts.of(OpKind::Rmdir), 0);
    let mut tree = Replayed::default();
    ops.iter().for_each(|op| tree.apply(op));
    let last = Snapshot::read(paths.last().expect("one")).expect("our own file");
    let mut expected: Vec<(u64, u64)> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let per_group = (Snapshot::read(&paths[0]).expect("ours").meta.total_inodes + 1).div_ceil(7);
    for entry in last.entries() {
        let is_planned = matches!(entry.inode.kind, posix::FileKind::File | posix::FileKind::Symlink);
        if is_planned && seen.insert(entry.inode.ino) {
            let size = if entry.inode.kind == posix::FileKind::File { entry.inode.size_bytes } else { 0 };
            expected.push((1 + entry.inode.ino / per_group, size));
        }
    }
    expected.sort_unstable();
    assert_eq!(tree.files_by_directory(), expected);
    // And nobody can say which groups there are where the snapshots do not tell.
    let options = SnapshotsOptions { place: Place::Groups { count: None }, ..SnapshotsOptions::default() };
    let error = planned(&paths, &options).expect_err("no groups are known");
    assert!(error.to_string().contains("say how many groups"), "{error}");
}

#[test]
fn block_lists_change_nothing_in_a_plan() {
    let work = tempfile::tempdir().expect("a directory");
    let paths = series(work.path(), 21, 3, 200, true);
    let with_lists: Vec<PathBuf> = paths.iter().map(|path| listed(path)).collect();
    assert!(with_lists.iter().all(|path| Snapshot::read_with_blocks(path).is_ok()));
    let (_, without) = planned(&paths, &SnapshotsOptions::default()).expect("a plan");
    let (_, with) = planned(&with_lists, &SnapshotsOptions::default()).expect("a plan");
    assert!(without.len() > 50, "{}", without.len());
    assert_eq!(with, without);
}

/// The same snapshot with block lists, in a file beside it.
fn listed(path: &Path) -> PathBuf {
    let plain = Snapshot::read(path).expect("our own file");
    let mut builder = Builder::with_blocks();
    for (i, entry) in plain.entries().iter().enumerate() {
        let ino = entry.inode.ino;
        let list = [extent(0, ino << 20, 4096), extent(4096, ino << 30, 8192)];
        let kept = matches!(entry.inode.kind, FileKind::File | FileKind::Directory);
        builder.push_with(&plain.path(i), entry.inode, 7, kept.then_some(Ok(&list))).expect("a sound name");
    }
    let meta = SnapshotMeta { blocks: Some(blocks_meta()), ..plain.meta };
    let to = path.with_extension("listed.snapshot");
    builder.finish(meta).expect("a sound tree").write(&to).expect("a new file");
    to
}

#[test]
fn inconsistent_series_are_refused_by_name() {
    let work = tempfile::tempdir().expect("a directory");
    let paths = series(work.path(), 3, 3, 50, true);
    let refused = |paths: &[PathBuf], part: &str, file: &str| {
        let error = planned(paths, &SnapshotsOptions::default()).expect_err(part);
        let text = error.to_string();
        assert!(text.contains(part) && text.contains(file) && error.kind() == Kind::BadInput, "{text}");
    };
    refused(&[paths[1].clone(), paths[0].clone()], "time goes backwards", "000.snapshot");
    refused(&[paths[0].clone(), paths[0].clone()], "time goes backwards", "000.snapshot");
    let changed = |name: &str, change: &dyn Fn(&mut Snapshot)| {
        let mut snapshot = Snapshot::read(&paths[1]).expect("our own file");
        change(&mut snapshot);
        let path = work.path().join(name);
        snapshot.write(&path).expect("a new file");
        vec![paths[0].clone(), path]
    };
    refused(&changed("type.snapshot", &|s| s.meta.fs_type = "xfs".into()), "not the same file system", "type.snapshot");
    refused(&changed("id.snapshot", &|s| s.meta.fs_id = Some("7".into())), "not the same file system", "id.snapshot");
    // The plan was blamed, by its own name, for a day that it cannot have.
    for (at, taken_ns) in [("early", -1), ("earliest", i64::MIN)] {
        let name = format!("{at}.snapshot");
        refused(&changed(&name, &|s| s.meta.taken_ns = taken_ns), "before all time", &name);
        refused(&changed(&name, &|s| s.meta.taken_ns = taken_ns)[1..], "description, taken_ns", &name);
    }
    refused(&changed("clock.snapshot", &|s| s.meta.simulated = false), "do not mix", "clock.snapshot");
    // So many directories were made of them, until no memory was left.
    let of_groups = |name: &str, count, inodes_per_group| {
        changed(name, &|s| s.meta.inode_groups = Some(InodeGroups { first_ino: 1, inodes_per_group, count }))
    };
    refused(&of_groups("few.snapshot", 0, 8), "footer, inode_groups: 0 groups of 8 inodes", "few.snapshot");
    refused(&of_groups("empty.snapshot", 8, 0), "footer, inode_groups: 8 groups of 0 inodes", "empty.snapshot");
    let by_groups = |count| SnapshotsOptions { place: Place::Groups { count }, ..SnapshotsOptions::default() };
    let error = planned(&of_groups("most.snapshot", u64::MAX, u64::MAX)[1..], &by_groups(None)).expect_err("too many");
    let text = error.to_string();
    assert!(text.contains("most.snapshot") && text.contains("18446744073709551615 groups, where a plan has"), "{text}");
    for count in [0, u32::MAX] {
        let error = planned(&paths, &by_groups(Some(count))).expect_err("too many, or none");
        assert!(error.to_string().contains("groups: from 1 to 1048576"), "{error}");
    }
    std::fs::write(work.path().join("text.snapshot"), "/home\n1 f 2 a\n~\n").expect("writing");
    refused(&[paths[0].clone(), work.path().join("text.snapshot")], "as text", "text.snapshot");
    refused(&[work.path().join("none.snapshot")], "not found", "none.snapshot");
    let whole = std::fs::read(&paths[2]).expect("the file");
    std::fs::write(&paths[2], &whole[..whole.len() / 2]).expect("writing");
    refused(&paths, "footer", "002.snapshot");
    let two_roots = [paths[0].clone(), {
        let path = work.path().join("root.snapshot");
        Model::new(4, true).rooted(77, DAY_NS as i64 * 9).snapshot().write(&path).expect("a new file");
        path
    }];
    refused(&two_roots, "not the same directory", "root.snapshot");
}

#[test]
fn mutated_snapshots_never_panic() {
    let work = tempfile::tempdir().expect("a directory");
    let paths = series(work.path(), 21, 2, 120, true);
    let sound = std::fs::read(&paths[1]).expect("the file");
    let mut model = Model::new(99, true);
    let mut refused = 0;
    for _ in 0..300 {
        let mut bytes = sound.clone();
        for _ in 0..=model.below(3) {
            let at = model.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << model.below(8);
        }
        std::fs::write(&paths[1], &bytes).expect("writing");
        match planned(&paths, &SnapshotsOptions::default()) {
            Ok((_, ops)) => assert!(!ops.is_empty()),
            Err(error) => {
                refused += 1;
                assert!(matches!(error.kind(), Kind::Environment | Kind::BadInput), "{error}");
            }
        }
    }
    assert!(refused > 200, "{refused}");
}
