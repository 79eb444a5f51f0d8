//! Snapshots of a real ext4: generations tell a file from its successor under the same inode number, and inodes have groups.

use crate::sources::replay::Replayed;
use aging::format::Reader;
use aging::plan::snapshots::{SnapshotsOptions, plan, planned_for};
use aging::snapshot::{Snapshot, TakeOptions, take_handle};
use aging::{AgingOp, OpKind};
use posix::{Mounted, Target, Workspace, WorkspaceOptions};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A scratch ext4; `None` where there can be none, for which the test is skipped.
fn scratch() -> Option<Workspace> {
    let target = Target::parse("ext4:64M").expect("a target");
    testkit::have(Workspace::open(&target, &WorkspaceOptions::default()))
}

fn snapshot(fs: &mut Mounted, to: &Path) -> Snapshot {
    // Times of inodes are those of the last timer tick: a pause keeps them apart from the snapshot's.
    std::thread::sleep(Duration::from_millis(30));
    let snapshot = take_handle(fs, &TakeOptions::default()).expect("a readable tree");
    snapshot.write(to).expect("a new file");
    std::thread::sleep(Duration::from_millis(30));
    snapshot
}

fn ino(snapshot: &Snapshot, path: &str) -> (u64, Option<u32>) {
    let at = (0..snapshot.entries().len()).find(|i| snapshot.path(*i) == path.as_bytes());
    let inode = snapshot.entries()[at.unwrap_or_else(|| panic!("{path} is there"))].inode;
    (inode.ino, inode.generation)
}

#[test]
fn a_number_used_again_is_another_file() {
    let Some(workspace) = scratch() else { return };
    let mut fs = workspace.fs();
    let root = fs.path().to_owned();
    let work = tempfile::tempdir().expect("a directory");
    let paths: Vec<PathBuf> = (0..3).map(|day| work.path().join(format!("{day}.snapshot"))).collect();
    fs::create_dir(root.join("d")).expect("a directory");
    fs::write(root.join("d/kept"), vec![1; 9000]).expect("a file");
    fs::write(root.join("old"), vec![1; 10_000]).expect("a file");
    fs::write(root.join("grows"), vec![1; 100]).expect("a file");
    let first = snapshot(&mut fs, &paths[0]);
    fs::remove_file(root.join("old")).expect("removing");
    fs::write(root.join("young"), vec![2; 20_000]).expect("a file");
    fs::rename(root.join("d/kept"), root.join("kept elsewhere")).expect("renaming");
    fs::write(root.join("grows"), vec![1; 300]).expect("a file");
    let second = snapshot(&mut fs, &paths[1]);
    let ((old, before), (young, after)) = (ino(&first, "/old"), ino(&second, "/young"));
    assert_eq!(old, young, "ext4 gives the lowest free inode of the group");
    assert!(before.is_some() && after.is_some() && before != after, "{before:?} {after:?}");
    assert!(first.meta.no_generations.is_none() && first.meta.fs_type.name() == "ext4");
    fs::remove_dir(root.join("d")).expect("removing");
    snapshot(&mut fs, &paths[2]);
    assert!(first.meta.inode_groups.is_some_and(|g| g.inodes_per_group > 0 && g.first_ino == 1), "{:?}", first.meta);

    let out = work.path().join("plan.aging");
    let options = SnapshotsOptions::default();
    let meta = aging::plan::write(&out, planned_for(&paths).expect("readable"), |writer| {
        plan(&paths, &options, writer, &mut |_| true)
    });
    assert_eq!(meta.expect("a plan").days, 2);
    let reader = Reader::open(&out).expect("our own file");
    let ops: Vec<AgingOp> = reader.batches(0).flat_map(|b| b.expect("our own file")).collect();
    let mut tree = Replayed::default();
    ops.iter().for_each(|op| tree.apply(op));
    tree.compare(&Snapshot::read(&paths[2]).expect("our own file"), 3);
    // The old file goes just before the young one comes, not at a time drawn.
    let at = |kind: OpKind, size: u64| ops.iter().position(|op| op.kind == kind && op.size_bytes == size);
    let born = at(OpKind::Create, 20_000).expect("the young file is made");
    let delete = ops.iter().find(|op| op.kind == OpKind::Delete).expect("the old file is removed");
    assert!(delete.t_ns <= ops[born].t_ns && ops[..born].contains(delete));
    assert_eq!(ops.iter().filter(|op| op.kind == OpKind::Rename).count(), 1);
    assert_eq!(ops.iter().filter(|op| op.kind == OpKind::Rmdir).count(), 1);
    drop(fs);
    workspace.close().expect("cleaned up");
}

#[test]
fn taking_a_snapshot_changes_no_access_time() {
    let Some(workspace) = scratch() else { return };
    let mut fs = workspace.fs();
    let root = fs.path().to_owned();
    fs::create_dir(root.join("d")).expect("a directory");
    fs::write(root.join("d/file"), b"contents").expect("a file");
    // Access times older than a day are brought up to date by a look, under `relatime`.
    let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for name in ["d", "d/file"] {
        let file = fs::File::open(root.join(name)).expect("ours");
        file.set_times(fs::FileTimes::new().set_accessed(old)).expect("our own");
    }
    take_handle(&mut fs, &TakeOptions::default()).expect("a readable tree");
    for name in ["d", "d/file"] {
        let accessed = fs::metadata(root.join(name)).and_then(|m| m.accessed()).expect("there");
        assert_eq!(accessed, old, "{name}");
    }
    drop(fs);
    workspace.close().expect("cleaned up");
}
