//! What is mounted in a tree is not the tree's, and nothing that is the tree's is taken for mounted. A survey of the
//! layout and a snapshot walk alike.

use aging::snapshot::{Snapshot, TakeOptions, take_handle};
use layout::{Survey, SurveyOptions, survey_handle};
use posix::{Call, FileSystem, Mounted, Outcome};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use testkit::{Need, Tool, mount};

fn taken(fs: &mut dyn FileSystem, blocks: bool) -> Snapshot {
    take_handle(fs, &TakeOptions { blocks, ..TakeOptions::default() }).expect("a readable tree")
}

fn surveyed(fs: &mut dyn FileSystem) -> Survey {
    survey_handle(fs, &SurveyOptions::default(), &mut |_| true).expect("a readable tree")
}

fn paths(snapshot: &Snapshot) -> Vec<String> {
    (0..snapshot.entries().len()).map(|i| String::from_utf8_lossy(&snapshot.path(i)).into_owned()).collect()
}

fn opened(root: &Path) -> Mounted {
    Mounted::open(root).expect("a directory")
}

/// A directory of a new file system.
fn file_system(kind: &str, below: &Path, name: &str) -> std::path::PathBuf {
    let (point, image) = (below.join(name), below.join(format!("{name}.img")));
    fs::create_dir(&point).expect("a directory");
    if kind == "tmpfs" {
        mount(&["-t", "tmpfs", "none"], &point);
        return point;
    }
    fs::File::create(&image).and_then(|file| file.set_len(16 << 20)).expect("an image");
    let made = Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image).status().expect("mkfs");
    assert!(made.success(), "mkfs.{kind}");
    mount(&["-o", "loop", image.to_str().expect("our own")], &point);
    point
}

fn bind(what: &Path, at: &Path) {
    mount(&["--bind", what.to_str().expect("our own")], at);
}

/// As containers have `/etc/resolv.conf`: it hid the file that had its inode number, or counted as a hard link of it.
#[test]
fn a_mounted_file_stands_in_for_no_file_of_its_inode_number() {
    let name = "snapshot_mounts::a_mounted_file_stands_in_for_no_file_of_its_inode_number";
    let Some(work) = testkit::with_own_mounts(name) else { return };
    for kind in ["tmpfs", "ext4"] {
        if kind == "ext4" && !testkit::needs(&[Need::LoopDevices, Need::Tool(Tool::MkfsExt4)]) {
            continue;
        }
        let (tree, other) =
            (file_system(kind, &work, &format!("{kind}-tree")), file_system(kind, &work, &format!("{kind}-other")));
        fs::write(tree.join("real"), vec![1; 5000]).expect("a file");
        fs::write(other.join("guest"), vec![2; 7]).expect("a file");
        // Of several names, so that all of them were taken for the first one's.
        fs::hard_link(other.join("guest"), other.join("guest's second name")).expect("a link");
        let ino = |path: &Path| fs::metadata(path).expect("a file").ino();
        assert_eq!(ino(&tree.join("real")), ino(&other.join("guest")), "{kind}: two file systems that count alike");
        for point in ["a point", "a point of the same file system"] {
            fs::write(tree.join(point), b"").expect("a file");
        }
        for directory in ["d", "d/below", "e"] {
            fs::create_dir(tree.join(directory)).expect("a directory");
        }
        fs::write(tree.join("d/below/file"), vec![3; 100]).expect("a file");
        bind(&other.join("guest"), &tree.join("a point"));
        bind(&tree.join("real"), &tree.join("a point of the same file system"));
        bind(&tree.join("d"), &tree.join("e"));
        for blocks in [false, true] {
            let snapshot = taken(&mut opened(&tree), blocks);
            let own: Vec<String> = paths(&snapshot).into_iter().filter(|path| path != "/lost+found").collect();
            assert_eq!(own, ["/", "/d", "/d/below", "/d/below/file", "/real"], "{kind}");
            let real = snapshot.entries()[snapshot.entries().len() - 1].inode;
            assert_eq!((real.size_bytes, real.nlink), (5000, 1), "{kind}");
            assert_eq!((snapshot.meta.other_file_systems, snapshot.meta.unreadable), (3, 0), "{kind}");
            assert!(snapshot.meta.remarks.is_empty(), "{:?}", snapshot.meta.remarks);
            if let Some(layout) = snapshot.survey("it", &SurveyOptions::default()) {
                assert_eq!(layout.walked, surveyed(&mut opened(&tree)).walked, "{kind}");
            }
        }
        let notes = surveyed(&mut opened(&tree)).source.notes;
        assert!(notes.iter().any(|note| note.starts_with("3 names lead to other file systems or mounts")), "{notes:?}");
    }
}

/// There files have the devices and the numbers of their layers. A survey found no file at all.
#[test]
fn nothing_of_an_overlay_is_left_out() {
    let Some(work) = testkit::with_own_mounts("snapshot_mounts::nothing_of_an_overlay_is_left_out") else { return };
    let (low, up) = (file_system("tmpfs", &work, "low"), file_system("tmpfs", &work, "up"));
    let tree = work.join("tree");
    for directory in [low.join("d"), up.join("upper"), up.join("work"), tree.clone()] {
        fs::create_dir(directory).expect("a directory");
    }
    (0..8).for_each(|i| fs::write(low.join(format!("low-{i}")), vec![1; 10 + i]).expect("a file"));
    fs::hard_link(low.join("low-3"), low.join("d/another name")).expect("a link");
    fs::write(low.join("d/below"), b"x").expect("a file");
    let options = format!(
        "xino=off,lowerdir={},upperdir={},workdir={}",
        low.display(),
        up.join("upper").display(),
        up.join("work").display()
    );
    mount(&["-t", "overlay", "overlay", "-o", &options], &tree);
    (0..8).for_each(|i| fs::write(tree.join(format!("up-{i}")), vec![1; 100 + i]).expect("a file"));
    let stat = |path: &str| fs::metadata(tree.join(path)).expect("a file");
    assert!(stat("up-0").dev() != stat("low-0").dev() && stat("low-0").dev() != stat("d").dev(), "layers have devices");
    let inos = |of: &str| (0..8).map(|i| stat(&format!("{of}-{i}")).ino()).collect::<BTreeSet<_>>();
    assert!(!inos("up").is_disjoint(&inos("low")), "layers count alike: {:?} {:?}", inos("up"), inos("low"));
    fs::write(low.join("d/guest"), b"").expect("a file");
    let check = |fs: &mut dyn FileSystem, guests: u64| {
        let snapshot = taken(fs, false);
        let summary = snapshot.summary();
        assert_eq!(
            (summary.files, summary.further_names, summary.directories),
            (18 - guests, 1, 2),
            "{:?}",
            paths(&snapshot)
        );
        assert_eq!(summary.meta.other_file_systems, guests);
        let walked = surveyed(fs).walked;
        // Where nobody tells where files lie, links are not told from files.
        let names = walked.files + walked.further_links;
        assert_eq!((names, walked.directories, walked.others), (19 - guests, 2, 0), "{walked:?}");
        assert_eq!((walked.other_file_systems, walked.unreadable.len()), (guests, 0), "{walked:?}");
        snapshot
    };
    let first = check(&mut opened(&tree), 0);
    // The numbers are the same the next time.
    let inodes = |snapshot: &Snapshot| snapshot.entries().iter().map(|e| e.inode.ino).collect::<Vec<_>>();
    assert_eq!(inodes(&first), inodes(&check(&mut opened(&tree), 0)));
    bind(&low.join("low-0"), &tree.join("d/guest"));
    check(&mut opened(&tree), 1);
    // A kernel that tells no mounts: nothing can be told from the tree's own, and that is said.
    let mut old = Old(opened(&tree));
    assert_eq!(taken(&mut old, false).summary().files, 18);
    assert!(taken(&mut old, false).meta.remarks.iter().any(|remark| remark.contains("does not tell which mount")));
    let walked = surveyed(&mut old).walked;
    assert_eq!((walked.files + walked.further_links, walked.other_file_systems), (19, 0), "{walked:?}");
}

/// A file system on a kernel that does not tell mounts.
struct Old(Mounted);

impl FileSystem for Old {
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        self.0.call(call)
    }

    posix::delegate! { |me| me.0 =>
        now_ns, date_ns, pause_ns, run, contained, read_into, entries, drop_caches, generation, usage, extents,
        free_extents, environment, host_path
    }
}

#[test]
fn where_mounts_are_not_told_devices_are_asked_and_the_reader_told() {
    let name = "snapshot_mounts::where_mounts_are_not_told_devices_are_asked_and_the_reader_told";
    let Some(work) = testkit::with_own_mounts(name) else { return };
    let (tree, other) = (file_system("tmpfs", &work, "tree"), file_system("tmpfs", &work, "other"));
    ["real", "a point"].iter().for_each(|name| fs::write(tree.join(name), vec![1; 5000]).expect("a file"));
    fs::write(other.join("guest"), vec![2; 7]).expect("a file");
    fs::create_dir(tree.join("d")).expect("a directory");
    bind(&other.join("guest"), &tree.join("a point"));
    bind(&other, &tree.join("d"));
    let mut old = Old(opened(&tree));
    let snapshot = taken(&mut old, false);
    assert_eq!((paths(&snapshot), snapshot.meta.other_file_systems), (vec!["/".to_owned(), "/real".to_owned()], 2));
    let told = |notes: &[String]| notes.iter().any(|note| note.contains("does not tell which mount a file is in"));
    assert!(told(&snapshot.meta.remarks), "{:?}", snapshot.meta.remarks);
    let survey = surveyed(&mut old);
    assert!((survey.walked.files, survey.walked.other_file_systems) == (1, 2), "{:?}", survey.walked);
    assert!(told(&survey.source.notes), "{:?}", survey.source.notes);
    // With block lists the file itself says so.
    let listed = taken(&mut old, true).meta;
    assert!(told(&listed.blocks.expect("block lists").notes) && listed.remarks.is_empty());
}

/// A survey left such a directory out of its count, and a snapshot's had one reason for all.
#[test]
fn what_cannot_be_read_is_counted_alike_by_survey_and_snapshot() {
    if !testkit::as_ordinary_user("snapshot_mounts::what_cannot_be_read_is_counted_alike_by_survey_and_snapshot") {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    let root = work.path();
    fs::create_dir_all(root.join("d/locked: and closed")).expect("a directory");
    for file in ["a", "d/b", "d/locked file"] {
        fs::write(root.join(file), vec![1; 9000]).expect("a file");
    }
    let lock = |mode: u32| {
        for name in ["d/locked: and closed", "d/locked file"] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).expect("our own");
        }
    };
    lock(0o000);
    let survey = surveyed(&mut opened(root));
    let snapshot = taken(&mut opened(root), true);
    lock(0o755);
    let sorted = |mut survey: Survey| {
        survey.walked.unreadable_examples.sort();
        survey.walked
    };
    let known = survey.files.known().is_some();
    let (ours, theirs) = (sorted(snapshot.survey("it", &SurveyOptions::default()).expect("lists")), sorted(survey));
    assert_eq!((ours.directories, theirs.directories), (3, 3));
    // Where nobody tells where files lie, a survey opens none after the first.
    if known {
        assert_eq!(ours, theirs);
        assert_eq!(ours.unreadable.get("EACCES"), Some(&2), "{ours:?}");
        assert_eq!(ours.unreadable_examples, ["d/locked file: EACCES", "d/locked: and closed: EACCES"]);
    }
}
