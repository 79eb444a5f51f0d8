//! Snapshots of real trees: what is taken is what is there, it is read back as written, and damage is found and named.

use aging::snapshot::{Builder, Inode, Snapshot, SnapshotMeta, TakeOptions, take_handle};
use fault::{Fault as _, Kind};
use posix::{Call, FileKind, FileSystem, Mounted, Outcome, Reply};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

fn take(directory: &Path, options: &TakeOptions<'_>) -> Snapshot {
    let mut fs = Mounted::open(directory).expect("a directory");
    take_handle(&mut fs, options).expect("a readable tree")
}

fn paths(snapshot: &Snapshot) -> Vec<String> {
    (0..snapshot.entries().len()).map(|i| String::from_utf8_lossy(&snapshot.path(i)).into_owned()).collect()
}

#[test]
fn a_tree_is_taken_as_it_is_and_read_back_as_written() {
    let work = tempfile::tempdir().expect("a directory");
    let root = work.path().join("tree");
    fs::create_dir_all(root.join("a/b/c")).expect("directories");
    fs::create_dir(root.join("a-b")).expect("a directory");
    fs::write(root.join("a/b/c/file"), vec![1; 5000]).expect("a file");
    fs::write(root.join("empty"), b"").expect("a file");
    fs::hard_link(root.join("a/b/c/file"), root.join("a-b/second name\n")).expect("a link");
    std::os::unix::fs::symlink("nowhere/at all", root.join("link")).expect("a symbolic link");
    let snapshot = take(&root, &TakeOptions::default());
    assert_eq!(
        paths(&snapshot),
        ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/file", "/a-b", "/a-b/second name\n", "/empty", "/link"]
    );
    for (i, entry) in snapshot.entries().iter().enumerate() {
        let path = root.join(String::from_utf8(snapshot.path(i)).expect("our names").trim_start_matches('/'));
        let stat = fs::symlink_metadata(&path).expect("the same tree");
        let inode = entry.inode;
        assert_eq!((inode.ino, inode.size_bytes), (stat.ino(), stat.size()), "{}", path.display());
        assert_eq!(inode.allocated_bytes, stat.blocks() * 512);
        assert_eq!(inode.ctime_ns, stat.ctime() * 1_000_000_000 + stat.ctime_nsec());
        assert_eq!(inode.mtime_ns, stat.mtime() * 1_000_000_000 + stat.mtime_nsec());
        assert_eq!(u64::from(inode.nlink), stat.nlink());
    }
    let file = work.path().join("one.snapshot");
    snapshot.write(&file).expect("a new file");
    assert_eq!(Snapshot::read(&file).expect("our own file"), snapshot);
    assert_eq!(fs::read_dir(work.path()).expect("the directory").count(), 2, "temporary files are left");
    let meta = &snapshot.meta;
    assert!(meta.total_bytes > 0 && meta.entries == 9 && meta.began_ns <= meta.taken_ns && !meta.simulated, "{meta:?}");
}

#[test]
fn times_go_through_the_clock_and_deep_trees_are_read() {
    let work = tempfile::tempdir().expect("a directory");
    let mut deep = work.path().to_owned();
    // As deep as one call can name.
    for i in 0..300 {
        deep.push(format!("a directory of a deep tree {i}"));
        if fs::create_dir(&deep).is_err() {
            break;
        }
    }
    let before = std::time::SystemTime::now();
    let clock = |wall: i64| wall / 1000;
    let snapshot = take(work.path(), &TakeOptions { clock: Some(&clock), taken_ns: Some(7), ..TakeOptions::default() });
    assert!(snapshot.entries().len() > 100);
    let now = before.duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos() as i64;
    assert!(snapshot.entries().iter().all(|e| e.inode.ctime_ns <= now / 1000 && e.inode.ctime_ns > now / 2000));
    assert!(snapshot.meta.simulated && snapshot.meta.taken_ns == 7);
}

/// A snapshot from nothing but names, sizes and inode numbers.
fn made(rows: &[(&str, FileKind, u64, u64, u32)]) -> Result<Snapshot, String> {
    let mut builder = Builder::default();
    for (path, kind, size_bytes, ino, nlink) in rows.iter().copied() {
        let inode = Inode {
            kind,
            size_bytes,
            allocated_bytes: size_bytes,
            ino,
            generation: Some(1),
            ctime_ns: 5,
            mtime_ns: 5,
            nlink,
        };
        builder.push(path.as_bytes(), inode)?;
    }
    let meta = SnapshotMeta { block_bytes: 4096, ..SnapshotMeta::default() };
    builder.finish(meta).map_err(|(row, why)| format!("row {row}: {why}"))
}

#[test]
fn contradictions_are_named() {
    use FileKind::{Directory, File};
    let root = ("/", Directory, 0, 2, 2);
    for (rows, part) in [
        (vec![], "there is no root"),
        (vec![("/a", File, 0, 3, 1)], "not the root"),
        (vec![root, ("/b/c", File, 0, 3, 1)], "directory that is not there"),
        (vec![root, ("/b", File, 0, 3, 1), ("/b/c", File, 0, 4, 1)], "directory that is not there"),
        (vec![root, ("/b", File, 0, 3, 1), ("/a", File, 0, 4, 1)], "out of order"),
        (vec![root, ("/b", File, 0, 3, 1), ("/b", File, 0, 4, 1)], "there twice"),
        (vec![root, ("/..", File, 0, 3, 1)], "does not end in a name"),
        (vec![root, ("/a", File, 1, 3, 2), ("/b", File, 2, 3, 2)], "row 2: inode 3 has other attributes"),
        (vec![root, ("/a", File, 1, 3, 1), ("/b", File, 1, 3, 1)], "link count of 1"),
        (vec![root, ("/a", Directory, 1, 3, 2), ("/b", Directory, 1, 3, 2)], "another name"),
    ] {
        let error = made(&rows).expect_err(part);
        assert!(error.contains(part), "{rows:?}: {error}");
    }
    assert!(made(&[root, ("/a", File, 1, 3, 2), ("/b", File, 1, 3, 2)]).is_ok());
}

#[test]
fn every_damaged_byte_of_the_rows_is_found_and_no_damage_panics() {
    let work = tempfile::tempdir().expect("a directory");
    let rows: Vec<(String, u64)> = (0..200).map(|i| (format!("/file {i:03}"), i)).collect();
    let mut all = vec![("/", FileKind::Directory, 0, 2, 2)];
    all.extend(rows.iter().map(|(name, i)| (name.as_str(), FileKind::File, i * 100, i + 10, 1)));
    let path = work.path().join("a.snapshot");
    made(&all).expect("a sound snapshot").write(&path).expect("a new file");
    damaged(&path);
    fs::remove_file(&path).expect("ours");
    crate::snapshot_blocks::sound().write(&path).expect("a new file");
    damaged(&path);
}

/// Damages a file at every third byte, and cuts it.
fn damaged(path: &Path) {
    let sound = fs::read(path).expect("the file");
    let footer = u32::from_le_bytes(sound[sound.len() - 8..sound.len() - 4].try_into().expect("4 bytes"));
    let rows_end = sound.len() - 8 - footer as usize;
    for at in (0..sound.len()).step_by(3) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        fs::write(path, &bytes).expect("writing");
        match Snapshot::read_whole(path) {
            Ok(_) => assert!(at >= rows_end, "damage at byte {at} went unnoticed"),
            Err(error) => {
                assert!(error.to_string().contains("a.snapshot") && error.kind() == Kind::BadInput, "{error}")
            }
        }
    }
    for keep in (0..sound.len()).step_by(97) {
        fs::write(path, &sound[..keep]).expect("writing");
        let error = Snapshot::read_whole(path).expect_err("a truncated file");
        assert!(error.to_string().contains("a.snapshot"), "{error}");
    }
}

#[test]
fn a_walk_that_is_stopped_is_an_interruption() {
    let work = tempfile::tempdir().expect("a directory");
    // It is asked now and then.
    (0..300).for_each(|i| fs::write(work.path().join(i.to_string()), b"").expect("a file"));
    let mut handle = Mounted::open(work.path()).expect("a directory");
    let stop = |_| false;
    let error = take_handle(&mut handle, &TakeOptions { progress: Some(&stop), ..TakeOptions::default() });
    assert_eq!(error.expect_err("stopped").kind(), Kind::Interrupted);
}

/// Such a tree was refused: a name "has other attributes under another name".
#[test]
fn a_file_that_is_linked_under_the_walk_has_all_names_that_were_met() {
    for blocks in [false, true] {
        let work = tempfile::tempdir().expect("a directory");
        let name = |directory: &str, i: u32| work.path().join(directory).join(i.to_string());
        for directory in ["a", "b"] {
            fs::create_dir(work.path().join(directory)).expect("a directory");
            (0..300).for_each(|i| fs::write(name(directory, i), vec![1; 5000]).expect("a file"));
        }
        // It is asked amid the first of the two, whose files get names in the other.
        let linked = std::cell::Cell::new(false);
        let link = |_| {
            if !linked.replace(true) {
                for (from, to) in [("a", "b"), ("b", "a")] {
                    (0..300).for_each(|i| fs::hard_link(name(from, i), name(to, 1000 + i)).expect("a link"));
                }
            }
            true
        };
        let options = TakeOptions { progress: Some(&link), blocks, ..TakeOptions::default() };
        let snapshot = take(work.path(), &options);
        assert!(linked.get());
        // 600 first names, and the others of the directory that was read after they were made.
        assert_eq!((snapshot.entries().len(), snapshot.meta.unreadable), (903, 0));
        let of_two = snapshot.entries().iter().filter(|e| e.inode.kind == FileKind::File && e.inode.nlink == 2).count();
        assert_eq!(of_two, 900, "what was seen with one name is told of as it was later");
        let file = work.path().join("it.snapshot");
        snapshot.write(&file).expect("a new file");
        assert_eq!(Snapshot::read_whole(&file).expect("our own file").entries(), snapshot.entries());
    }
}

/// A file system that shows some files under the inode numbers of others, as if a number had been used again under the
/// walk.
struct UsedAgain {
    fs: Mounted,
    /// Numbers, and what is shown for them.
    shown: Vec<(u64, u64)>,
}

impl FileSystem for UsedAgain {
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        let mut outcome = self.fs.call(call);
        if let Ok(Reply::Stat(stat)) = &mut outcome.result {
            stat.ino = self.shown.iter().find(|(ino, _)| *ino == stat.ino).map_or(stat.ino, |(_, shown)| *shown);
        }
        outcome
    }

    posix::delegate! { |me| me.fs =>
        now_ns, date_ns, pause_ns, run, contained, read_into, entries, drop_caches, generation, usage, extents,
        free_extents, environment, host_path, mount
    }
}

/// Such a tree was refused, too: a directory "has another name, but a link count of 1", or what was below it "is in a
/// directory that is not there".
#[test]
fn where_an_inode_number_is_used_again_under_the_walk_a_name_is_left_out_and_counted() {
    let work = tempfile::tempdir().expect("a directory");
    let root = work.path();
    for directory in ["a", "b", "c"] {
        fs::create_dir(root.join(directory)).expect("a directory");
        fs::write(root.join(directory).join("below"), b"some").expect("a file");
    }
    ["a file", "z file"].iter().for_each(|name| fs::write(root.join(name), b"more").expect("a file"));
    std::os::unix::fs::symlink("a file", root.join("link")).expect("a symbolic link");
    let ino = |name: &str| fs::symlink_metadata(root.join(name)).expect("there").ino();
    for (again, of, left_out) in [
        ("a file", "b", "/a file"),
        ("z file", "b", "/z file"),
        ("link", "a file", "/link"),
        ("c/below", "a", "/c/below"),
    ] {
        for blocks in [false, true] {
            let shown = vec![(ino(again), ino(of))];
            let mut fs = UsedAgain { fs: Mounted::open(root).expect("a directory"), shown };
            let options = TakeOptions { blocks, ..TakeOptions::default() };
            let snapshot = take_handle(&mut fs, &options).expect("a readable tree");
            assert_eq!((snapshot.entries().len(), snapshot.meta.unreadable), (9, 1), "{:?}", paths(&snapshot));
            assert!(!paths(&snapshot).contains(&left_out.to_owned()), "{left_out}: {:?}", paths(&snapshot));
            let told = snapshot.meta.first_unreadable.first().expect("one is told");
            assert!(told.starts_with(left_out) && told.contains("inode number is another file's"), "{told}");
        }
    }
}
