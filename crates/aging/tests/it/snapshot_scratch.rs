//! Snapshots of a real ext4: generations tell a file from its successor under the same inode number, and inodes have
//! groups.

use crate::sources::replay::Replayed;
use aging::format::Reader;
use aging::plan::snapshots::{SnapshotsOptions, plan, planned_for};
use aging::snapshot::{Blocks, Snapshot, TakeOptions, take_handle};
use aging::{AgingOp, OpKind};
use layout::{AddressSpace, MapOrder, Survey, SurveyOptions};
use posix::{FileKind, Mounted, Target, Workspace, WorkspaceOptions};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testkit::Tool;

/// A scratch ext4; `None` where there can be none, for which the test is skipped.
fn scratch() -> Option<Workspace> {
    scratch_of("ext4:64M")
}

fn scratch_of(target: &str) -> Option<Workspace> {
    let target = Target::parse(target).expect("a target");
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

/// Files that grew in turns, with a hole, preallocation, a second name and nothing in them, in nested directories.
fn fragment(root: &Path) {
    let directories = ["", "d", "d/e", "f"];
    for directory in directories {
        fs::create_dir_all(root.join(directory)).expect("a directory");
    }
    let name = |i: usize| root.join(directories[i % 4]).join(format!("file-{i}"));
    let mut files: Vec<fs::File> = (0..24).map(|i| fs::File::create(name(i)).expect("a file")).collect();
    for round in 0..8 {
        for (i, file) in files.iter_mut().enumerate() {
            file.write_all(&vec![i as u8 + 1; 1000 * (i + 1) + round]).expect("space");
            // Writing back in turns is what interleaves their blocks.
            file.sync_data().expect("writing back");
        }
    }
    (0..24).step_by(5).for_each(|i| fs::remove_file(name(i)).expect("removing"));
    let sparse = fs::File::create(root.join("f/sparse")).expect("a file");
    [0, 1 << 20, 30 << 20].iter().for_each(|at| sparse.write_all_at(&[2; 5000], *at).expect("space"));
    let reserved = fs::File::create(root.join("reserved")).expect("a file");
    let whole = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&reserved, whole, 0, 300_000).expect("preallocating");
    reserved.write_all_at(&[1; 10_000], 100_000).expect("space");
    (sparse.sync_all().and_then(|()| reserved.sync_all())).expect("writing back");
    fs::write(root.join("tiny"), b"inline if anything is").expect("a file");
    fs::write(root.join("empty"), b"").expect("a file");
    fs::hard_link(name(3), root.join("a second name")).expect("a link");
    std::os::unix::fs::symlink("tiny", root.join("link")).expect("a link");
}

/// What `filefrag -v` lists: `   0:        0..       3:      34304..     34307:      4:             last,eof`.
fn filefrag(program: &Path, path: &Path) -> Vec<(u64, u64, u64, bool)> {
    let out = Command::new(program).args(["-v", "-b512"]).arg(path).env("LC_ALL", "C").output().expect("filefrag");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{}: {text}{}", path.display(), String::from_utf8_lossy(&out.stderr));
    let mut extents = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let Some(Ok(_)) = fields.first().map(|f| f.parse::<u64>()) else { continue };
        let from = |i: usize| fields[i].split("..").next().expect("a range").trim().parse::<u64>().expect("a number");
        let len: u64 = fields[3].parse().expect("a number");
        extents.push((from(1) * 512, from(2) * 512, len * 512, text_has(fields.last(), "unwritten")));
    }
    extents
}

fn text_has(field: Option<&&str>, flag: &str) -> bool {
    field.is_some_and(|flags| flags.split(',').any(|f| f == flag))
}

#[test]
fn block_lists_are_those_of_filefrag_and_their_layout_is_a_survey_s() {
    for target in ["ext4:64M", "xfs:300M", "btrfs:300M"] {
        let Some(workspace) = scratch_of(target) else { continue };
        let mut handle = workspace.fs();
        let root = handle.path().to_owned();
        fragment(&root);
        let options = SurveyOptions { map: MapOrder::of_side(16), ..SurveyOptions::default() };
        let survey = layout::survey_handle(&mut handle, &options, &mut |_| true).expect("a readable tree");
        let taken = take_handle(&mut handle, &TakeOptions { blocks: true, ..TakeOptions::default() });
        let work = tempfile::tempdir().expect("a directory");
        let file = work.path().join("a.snapshot");
        taken.expect("a readable tree").write(&file).expect("a new file");
        let snapshot = Snapshot::read_with_blocks(&file).expect("our own file");
        let moment = Some(survey.source.taken_unix_s);
        let ours = snapshot.survey("a", &SurveyOptions { taken_unix_s: moment, ..options }).expect("there are lists");
        assert_eq!(ours.files, survey.files, "{target}");
        assert_eq!(ours.walked, survey.walked, "{target}");
        let shape = |s: &Survey| (s.source.block_bytes, s.source.total_bytes, s.source.addresses, s.source.groups);
        assert_eq!(shape(&ours), shape(&survey), "{target}");
        let map = |s: &Survey| s.map.as_ref().and_then(|m| m.known().cloned()).expect("a map");
        let ((a, b), known) = ((map(&ours), map(&survey)), survey.files.known().expect("FIEMAP is there"));
        assert_eq!((a.span_bytes, a.file_bytes, a.written_unix_ns), (b.span_bytes, b.file_bytes, b.written_unix_ns));
        // What is compared is not nothing: pieces, a hole, preallocation, distances between files.
        assert!(known.score.breaks() > 10 && known.kinds.unwritten.files == 1, "{target}: {known:?}");
        assert!(known.locality.count > 10 && known.scan.seeks > 10, "{target}: {known:?}");
        // Which addresses they are is said once for all, and of each extent.
        let any_own = (0..snapshot.entries().len()).any(|index| match snapshot.blocks(index) {
            Some(Blocks::Known(mut extents)) => extents.any(|e| e.flags.logical_address),
            _ => false,
        });
        let all_own = ours.source.addresses == AddressSpace::BtrfsLogical;
        assert_eq!(any_own, all_own, "{target}: {:?}", ours.source.addresses);
        // btrfs's own addresses are not a device's.
        if !target.starts_with("btrfs") {
            against_filefrag(&root, &snapshot, target);
        }
        drop(handle);
        workspace.close().expect("cleaned up");
    }
}

/// Every list, extent by extent; and which directories have one.
fn against_filefrag(root: &Path, snapshot: &Snapshot, target: &str) {
    let Some(program) = testkit::tool(Tool::Filefrag) else { return };
    // The mount is in no directory, but among our descriptors.
    let root = root.to_str().expect("our own").replace("/proc/self/", &format!("/proc/{}/", std::process::id()));
    let root = Path::new(&root);
    let mut files = 0;
    for (index, entry) in snapshot.entries().iter().enumerate() {
        let is_file = entry.inode.kind == FileKind::File;
        let extents = match snapshot.blocks(index) {
            Some(Blocks::Known(extents)) => extents,
            Some(Blocks::NotKept | Blocks::Unknown(_)) if !is_file => continue,
            other => panic!("{target}: row {index} has {other:?}"),
        };
        let name = String::from_utf8(snapshot.path(index)).expect("our names");
        let list: Vec<_> =
            extents.map(|e| (e.logical_bytes, e.physical_bytes, e.len_bytes, e.flags.unwritten)).collect();
        assert_eq!(list, filefrag(&program, &root.join(name.trim_start_matches('/'))), "{target}: {name}");
        assert_eq!(entry.inode.size_bytes == 0 && is_file, list.is_empty(), "{target}: {name}");
        files += usize::from(list.len() > 1);
    }
    assert!(files > 10, "{target}: {files} files of several extents");
    // ext4 tells where its directories lie, XFS does not.
    let directories = snapshot.summary().blocks.expect("there are lists");
    let (known, without) = (directories.directories, directories.directories_without.values().sum::<u64>());
    assert_eq!((known, without), if target.starts_with("ext4") { (4, 0) } else { (0, 4) }, "{target}");
}

#[test]
fn where_nobody_tells_where_files_lie_the_snapshot_says_so() {
    // tmpfs answers no FIEMAP.
    let shm = Path::new("/dev/shm");
    let is_tmpfs = rustix::fs::statfs(shm).is_ok_and(|s| s.f_type == 0x0102_1994);
    if !is_tmpfs {
        testkit::skip("no tmpfs at /dev/shm");
        return;
    }
    let tree = tempfile::tempdir_in(shm).expect("a directory");
    fs::write(tree.path().join("a"), vec![1; 9000]).expect("a file");
    fs::write(tree.path().join("b"), vec![1; 9000]).expect("a file");
    let mut handle = Mounted::open(tree.path()).expect("a directory");
    let taken = take_handle(&mut handle, &TakeOptions { blocks: true, ..TakeOptions::default() });
    let work = tempfile::tempdir().expect("a directory");
    let file = work.path().join("a.snapshot");
    taken.expect("a readable tree").write(&file).expect("a new file");
    let snapshot = Snapshot::read_with_blocks(&file).expect("our own file");
    for index in 1..3 {
        assert!(matches!(snapshot.blocks(index), Some(Blocks::Unknown(why)) if why.contains("FIEMAP")), "{index}");
    }
    let survey = snapshot.survey("a", &SurveyOptions::default()).expect("it is version 2");
    assert!(survey.files.why().is_some_and(|why| why.contains("FIEMAP")), "{:?}", survey.files);
    assert_eq!(survey.walked.files, 2);
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
