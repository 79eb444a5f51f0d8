//! The walker on real directories.

use posix::FileKind;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use trace::snapshot::{WalkLimits, parent_of, path_order};
use trace::{Provenance, Snapshot};

fn assert_well_formed(snapshot: &Snapshot) {
    let entries = &snapshot.entries;
    assert!(entries.windows(2).all(|w| path_order(&w[0].path, &w[1].path).is_lt()), "sorted, each once");
    for entry in entries {
        if let Some(parent) = parent_of(&entry.path) {
            let parent = snapshot.get(parent).expect("the parent of an entry is an entry");
            assert_eq!(parent.kind, FileKind::Directory);
        }
    }
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[test]
fn a_small_tree_with_everything_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::create_dir(root.join("a-b")).unwrap();
    fs::write(root.join("a/b/file"), vec![0; 5000]).unwrap();
    fs::hard_link(root.join("a/b/file"), root.join("a/link")).unwrap();
    symlink("../a-b/../a", root.join("a/sym")).unwrap();
    let odd = OsStr::from_bytes(b"odd\n \\~\xff");
    fs::write(root.join("a").join(odd), b"x").unwrap();
    fs::set_permissions(root.join("a/b/file"), fs::Permissions::from_mode(0o640)).unwrap();

    let walked = Snapshot::of_tree(&[&root], &WalkLimits::default()).unwrap();
    assert_well_formed(&walked.snapshot);
    assert!(walked.unreadable.is_empty() && !walked.truncated);
    let names: Vec<_> = walked.snapshot.below(bytes(&root)).iter().map(|e| e.name().to_vec()).collect();
    assert_eq!(names, [&b"a"[..], b"b", b"file", b"link", odd.as_bytes(), b"sym", b"a-b"]);

    let file = walked.snapshot.get(bytes(&root.join("a/b/file"))).unwrap();
    let stat = fs::metadata(root.join("a/b/file")).unwrap();
    assert_eq!((file.size_bytes, file.mode, file.nlink, file.kind), (5000, 0o640, 2, FileKind::File));
    assert_eq!((file.ino, file.dev, file.uid, file.gid), (stat.ino(), stat.dev(), stat.uid(), stat.gid()));
    assert_eq!(file.mtime_ns, stat.mtime() * 1_000_000_000 + stat.mtime_nsec());
    assert_eq!(file.provenance, Provenance::Before);
    let link = walked.snapshot.get(bytes(&root.join("a/link"))).unwrap();
    assert_eq!((link.ino, link.dev), (file.ino, file.dev), "hard links share their inode");
    let sym = walked.snapshot.get(bytes(&root.join("a/sym"))).unwrap();
    assert_eq!((sym.kind, sym.target.as_deref()), (FileKind::Symlink, Some(&b"../a-b/../a"[..])));
    assert_eq!(walked.snapshot.children(bytes(&root)).count(), 2);
    assert_eq!(walked.snapshot.children(b"/").count(), 1, "only the way to the root");

    // Through a symbolic link: the link and what it leads to.
    let through = Snapshot::of_directories(&[root.join("a/sym/b")], &WalkLimits::default()).unwrap();
    assert_well_formed(&through.snapshot);
    assert!(through.snapshot.get(bytes(&root.join("a/sym"))).is_some());
    assert!(through.snapshot.get(bytes(&root.join("a/b/file"))).is_some());
    assert!(through.snapshot.get(bytes(&root.join("a/link"))).is_none(), "one level only");
    let absent = Snapshot::of_directories(&[root.join("a/none/b")], &WalkLimits::default()).unwrap();
    assert!(absent.unreadable.is_empty());
    let absent = Snapshot::of_tree(&[root.join("a/none")], &WalkLimits::default()).unwrap();
    assert_eq!(absent.unreadable.len(), 1);

    let few = Snapshot::of_tree(&[&root], &WalkLimits { entries_max: 4, ..WalkLimits::default() }).unwrap();
    assert!(few.truncated);
    let shallow = Snapshot::of_tree(&[&root], &WalkLimits { depth_max: 1, ..WalkLimits::default() }).unwrap();
    assert!(shallow.truncated && shallow.snapshot.get(bytes(&root.join("a/b"))).is_none());
}

#[test]
fn loops_of_links_end() {
    let dir = tempfile::tempdir().unwrap();
    symlink("b", dir.path().join("a")).unwrap();
    symlink("a", dir.path().join("b")).unwrap();
    let walked = Snapshot::of_tree(&[dir.path().join("a")], &WalkLimits::default()).unwrap();
    assert_eq!(walked.unreadable.len(), 1);
}

#[test]
fn overlapping_roots_are_one_tree() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    fs::write(root.join("a/b/c/f"), b"").unwrap();
    let roots = [root.join("a/b"), root.clone(), root.join("a/b/c"), root.join("a/b/c/f")];
    let walked = Snapshot::of_tree(&roots, &WalkLimits::default()).unwrap();
    assert_well_formed(&walked.snapshot);
    assert_eq!(walked.snapshot.below(bytes(&root)).len(), 4);
}

/// Deeper than `PATH_MAX` and deeper than the usual limit on open descriptors.
#[test]
fn a_tree_deeper_than_any_path() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let name = "a-rather-long-directory-name";
    let mut fd = rustix::fs::open(&root, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..1500 {
        rustix::fs::mkdirat(&fd, name, rustix::fs::Mode::RWXU).unwrap();
        fd = rustix::fs::openat(&fd, name, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    }
    let walked = Snapshot::of_tree(&[&root], &WalkLimits::default()).unwrap();
    assert_well_formed(&walked.snapshot);
    assert!(walked.unreadable.is_empty());
    assert_eq!(walked.snapshot.below(bytes(&root)).len(), 1500);
}

#[test]
fn other_file_systems_are_left_alone() {
    // /proc is a file system of its own wherever these tests can run.
    let limits = WalkLimits { depth_max: 2, ..WalkLimits::default() };
    let walked = Snapshot::of_tree(&["/"], &limits).unwrap();
    assert_well_formed(&walked.snapshot);
    assert!(walked.snapshot.get(b"/proc").is_some());
    assert_eq!(walked.snapshot.children(b"/proc").count(), 0);
    assert!(walked.snapshot.children(b"/usr").count() > 0);
}

#[test]
fn unreadable_directories_are_noted() {
    if !testkit::as_ordinary_user("snapshot_walk::unreadable_directories_are_noted") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("closed/inner")).unwrap();
    fs::write(root.join("open"), b"").unwrap();
    fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let walked = Snapshot::of_tree(&[&root], &WalkLimits::default()).unwrap();
    fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    let of_ours: Vec<_> = walked.unreadable.iter().filter(|it| it.path.contains("closed")).collect();
    assert_eq!(of_ours.len(), 1, "{:?}", walked.unreadable);
    assert!(walked.snapshot.get(bytes(&root.join("open"))).is_some());
}

/// Who judges directories by when they were read (systemd-tmpfiles) does not take us for their user.
#[test]
fn reading_names_leaves_the_times_of_reading() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("one/two"));
    fs::create_dir_all(&two).unwrap();
    fs::write(two.join("f"), "").unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 86_400);
    let read = |path: &std::path::Path| fs::metadata(path).unwrap().accessed().unwrap();
    for path in [&one, &two] {
        fs::File::open(path).unwrap().set_times(fs::FileTimes::new().set_accessed(long_ago)).unwrap();
    }
    let before = [read(&one), read(&two)];
    let walked = Snapshot::of_tree(&[dir.path()], &WalkLimits::default()).unwrap();
    assert!(walked.snapshot.entries.iter().any(|entry| entry.path.ends_with(b"/one/two/f")));
    assert_eq!([read(&one), read(&two)], before);
}
