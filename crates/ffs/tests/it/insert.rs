//! Copying into images: what comes out again is what went in, nothing that was there is lost, and every checker is
//! content.

use crate::bsd_fsck;
use crate::common::{Thing, foreign_images, sample_tree, tree};
use crate::lab;
use fault::{Fault as _, Kind};
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use ffs::{
    Edit, Endian, ExtractOptions, Ffs, FfsError, FileStore, Image, InsertOptions, Inserter, MemoryStore, Overlay,
    Search, Version, edit, extract, fsck, mkfs,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt};
use std::path::Path;

const DATE_NS: i64 = 1_000_000_000_000_000_000;

fn empty(version: Version, endian: Endian, size_bytes: u64) -> MemoryStore {
    let mut store = MemoryStore(vec![0; size_bytes as usize]);
    mkfs(&mut store, &MkfsOptions { endian, time_s: 86_400, ..MkfsOptions::new(version, size_bytes) }).unwrap();
    store
}

fn copied(store: MemoryStore, words: &str, from: &Path, to: &str, options: InsertOptions) -> MemoryStore {
    let mut policy = Options::default();
    assert!(words.split(',').all(|word| policy.set(word)));
    let mut inserter = Inserter::open(store, policy, DATE_NS).unwrap();
    inserter.insert(from, to.as_bytes(), options, &mut |_| true).unwrap();
    inserter.finish().unwrap().0
}

fn sound(name: &str, store: &MemoryStore) {
    let report = fsck(Overlay::new(&mut store.clone()), &mut |_| true).unwrap();
    assert!(report.is_clean() && report.marked_clean, "{name}: {:?}", report.problems);
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let big = image.geometry().endian() == Endian::Big;
    if image.superblock().old_cpg <= 1 {
        assert_eq!(bsd_fsck::complaints(&store.0, big, image.superblock_at() as usize), Vec::<String>::new(), "{name}");
    }
}

fn out(store: &MemoryStore, path: &str, to: &Path) -> BTreeMap<String, Thing> {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let options = ExtractOptions { special: true, ..ExtractOptions::default() };
    extract(&image, path.as_bytes(), to, options, &mut |_| true).unwrap();
    tree(to)
}

#[test]
fn what_goes_in_comes_out() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    sample_tree(&from, 4096);
    let sparse = File::create(from.join("sparse")).unwrap();
    sparse.set_len(40 << 20).unwrap();
    sparse.write_all_at(&[7; 9000], 20 << 20).unwrap();
    let expected = tree(&from);
    for (n, (version, endian, words)) in [
        (Version::Ufs1, Endian::Little, "original,switch,bestfit,spread"),
        (Version::Ufs1, Endian::Big, "realloc,noswitch,smartfrags,dirpref"),
        (Version::Ufs2, Endian::Little, "realloc,metaspace,bestfit,dirpref,root"),
        (Version::Ufs2, Endian::Big, "realloc,noswitch,bestfit,spread"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{version}, {endian:?}, {words}");
        let store = copied(empty(version, endian, 8 << 20), words, &from, "/there", InsertOptions::default());
        sound(&name, &store);
        let to = scratch.path().join(format!("to{n}"));
        assert_eq!(out(&store, "/there", &to), expected, "{name}");
        assert!(to.join("sparse").metadata().unwrap().blocks() < 100, "{name}: holes stay holes");
        let image = Image::open(store.clone(), Search::Standard).unwrap();
        let (_, inode) = image.resolve(b"/there/size2").unwrap();
        let meta = from.join("size2").metadata().unwrap();
        assert_eq!((inode.uid, inode.gid, inode.mtime.s), (meta.uid(), meta.gid(), meta.mtime()));
        assert_eq!(inode.ctime.s, DATE_NS / 1_000_000_000);
        // The same again is byte for byte the same.
        let again = copied(empty(version, endian, 8 << 20), words, &from, "/there", InsertOptions::default());
        let atimes_apart = again.0.iter().zip(&store.0).filter(|(a, b)| a != b).count();
        assert!(atimes_apart < 8 * expected.len(), "{name}: {atimes_apart} bytes differ");
    }
}

#[test]
fn same_files_same_bytes() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    sample_tree(&from, 4096);
    let options = InsertOptions { owner: Some((0, 5)), latest_s: Some(1_000_000), ..InsertOptions::default() };
    let one = copied(empty(Version::Ufs2, Endian::Little, 8 << 20), "dirpref", &from, "/", options);
    let again = scratch.path().join("again");
    std::fs::create_dir(&again).unwrap();
    std::fs::rename(&from, again.join("from")).unwrap();
    let _ = std::fs::read(again.join("from/one")).unwrap();
    // What was modified later, in whatever part of a second, is as old as the image.
    std::fs::write(again.join("from/empty"), b"").unwrap();
    let other = copied(empty(Version::Ufs2, Endian::Little, 8 << 20), "dirpref", &again.join("from"), "/", options);
    assert!(one == other);
    let (_, inode) = Image::open(one, Search::Standard).unwrap().resolve(b"from/one").unwrap();
    assert_eq!((inode.uid, inode.gid, inode.mtime.s, inode.atime.s), (0, 5, 1_000_000, 1_000_000));
}

/// Into images with files in them: of a laboratory, and of the kernels of Linux, NetBSD and FreeBSD.
#[test]
fn what_is_there_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let all = scratch.path().join("all");
    sample_tree(&all, 4096);
    // Some of the images have few inodes.
    let from = scratch.path().join("from");
    std::fs::rename(all.join("dir/below"), &from).unwrap();
    std::fs::rename(all.join("indirect"), from.join("indirect")).unwrap();
    let expected = tree(&from);
    let mut bases = Vec::new();
    let aged = lab::age(empty(Version::Ufs1, Endian::Big, 6 << 20), "realloc,dirpref,noorder", 300, false, 9);
    bases.push(("aged".to_owned(), aged.store));
    for (name, path, _) in foreign_images(scratch.path()) {
        bases.push((name, MemoryStore(std::fs::read(path).unwrap())));
    }
    for (name, base) in bases {
        let before = names(&base);
        let store = copied(base, "realloc,noswitch", &from, "/", InsertOptions::default());
        sound(&name, &store);
        let after = names(&store);
        let lost: Vec<&String> =
            before.iter().filter(|(path, line)| after.get(*path) != Some(line)).map(|p| p.0).collect();
        assert_eq!(lost, Vec::<&String>::new(), "{name}");
        let to = scratch.path().join(format!("to {name}"));
        assert_eq!(out(&store, "/from", &to), expected, "{name}");
    }
}

/// Every path but directories, with mode, size and a sum of its bytes.
fn names(store: &MemoryStore) -> BTreeMap<String, (u16, u64, u64)> {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let mut names = BTreeMap::new();
    image
        .walk(ffs::format::ROOT_INO, &mut |path, ino, inode| {
            let mut sum = 0_u64;
            image.data(ino, inode, &mut |at, bytes| {
                for (n, byte) in (at..).zip(bytes) {
                    sum = sum.wrapping_mul(31).wrapping_add(n ^ u64::from(*byte));
                }
                Ok(())
            })?;
            if !inode.is_dir() {
                names.insert(String::from_utf8_lossy(path).into_owned(), (inode.mode, inode.size, sum));
            }
            Ok(())
        })
        .unwrap();
    names
}

#[test]
fn names_that_are_there() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    std::fs::create_dir_all(from.join("dir")).unwrap();
    std::fs::write(from.join("dir/file"), b"new").unwrap();
    std::fs::write(from.join("other"), b"other").unwrap();
    std::fs::hard_link(from.join("other"), from.join("dir/other")).unwrap();
    let base =
        copied(empty(Version::Ufs1, Endian::Little, 4 << 20), "dirpref", &from.join("."), "/", Default::default());
    let mut inserter = Inserter::open(base.clone(), Options::default(), DATE_NS).unwrap();
    let mut tries = |from: &Path, to: &[u8], options| inserter.insert(from, to, options, &mut |_| true);
    let refused = |result: Result<(), FfsError>, part: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(part), "{error:?} should say {part:?}");
    };
    refused(tries(&from.join("dir/file"), b"/dir", InsertOptions::default()), "--overwrite");
    refused(tries(&from.join("dir"), b"/other", InsertOptions::default()), "a file of this name");
    refused(tries(&from.join("other"), b"/nothing/other", InsertOptions::default()), "no such directory");
    refused(tries(&from.join("other"), b"/other/x", InsertOptions::default()), "not a directory");
    refused(tries(&from.join("missing"), b"/", InsertOptions::default()), "missing");
    let overwrite = InsertOptions { overwrite: true, ..InsertOptions::default() };
    std::fs::write(from.join("dir/file"), vec![3; 100_000]).unwrap();
    tries(&from.join("."), b"/", overwrite).unwrap();
    let (store, done) = inserter.finish().unwrap();
    assert_eq!((done.replaced, done.hard_links), (3, 1));
    sound("overwritten", &store);
    assert_eq!(out(&store, "/", &scratch.path().join("to")), tree(&from));
    let report = fsck(&mut store.clone(), &mut |_| true).unwrap();
    assert_eq!(report.contents.files, 2, "what was replaced is free");
}

/// An image that must not be written to says why, and stays as it is.
#[test]
fn images_that_are_refused() {
    let base = empty(Version::Ufs2, Endian::Little, 4 << 20);
    let at = |offset: usize, value: u8| {
        let mut store = base.clone();
        store.0[65536 + offset] = value;
        store
    };
    let group = {
        let image = Image::open(base.clone(), Search::Standard).unwrap();
        let g = *image.geometry();
        let mut store = base.clone();
        store.0[g.byte_of(g.group_block(ffs::GroupNo(1))) as usize + 200] ^= 0x10;
        store
    };
    for (store, part) in [
        (at(209, 0), "not unmounted cleanly"),
        (at(1312, 4), "not unmounted cleanly"),
        (at(1120, 9), "snapshots"),
        (group, "damaged"),
    ] {
        let error = Inserter::open(store, Options::default(), DATE_NS).unwrap_err();
        assert!(error.to_string().contains(part) && error.kind() == Kind::BadInput, "{error}");
    }
}

/// Whatever goes wrong, an image file is as it was; in place, it is sound.
#[test]
fn failures_lose_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let (from, path) = (scratch.path().join("from"), scratch.path().join("disk.img"));
    sample_tree(&from, 4096);
    std::fs::write(from.join("zz large"), vec![5; 5 << 20]).unwrap();
    std::fs::write(&path, &empty(Version::Ufs1, Endian::Little, 4 << 20).0).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let copy = |how, files: u64| {
        edit(&path, how, |store| {
            let mut inserter = Inserter::open(store, Options::default(), DATE_NS)?;
            let copied = inserter.insert(&from, b"/", InsertOptions::default(), &mut |done| done.files < files);
            let finished = inserter.finish();
            copied.and(finished)
        })
    };
    let error = copy(Edit::Copy, u64::MAX).unwrap_err();
    assert!(matches!(error, FfsError::Full { .. }) && error.kind() == Kind::Environment, "{error}");
    assert!(matches!(copy(Edit::Copy, 10).unwrap_err(), FfsError::Interrupted(_)));
    assert!(std::fs::read(&path).unwrap() == before);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 2, "no copy is left behind");

    assert!(matches!(copy(Edit::InPlace, 10).unwrap_err(), FfsError::Interrupted(_)));
    sound("in place", &MemoryStore(std::fs::read(&path).unwrap()));
    std::fs::write(&path, &before).unwrap();
    std::fs::remove_file(from.join("zz large")).unwrap();
    copy(Edit::Copy, u64::MAX).unwrap();
    let store = MemoryStore(std::fs::read(&path).unwrap());
    sound("copied", &store);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(out(&store, "/from", &scratch.path().join("to")), tree(&from));

    // Two at a time would lose what one of them has done.
    edit(&path, Edit::Copy, |store| {
        let error = edit(&path, Edit::Copy, |store| Ok((store, ()))).unwrap_err();
        assert!(error.to_string().contains("something else is writing"), "{error}");
        Ok((store, ()))
    })
    .unwrap();
}

/// A process that another thread forked in the middle of an edit holds the image's open file until it executes its
/// program: the next edit found the image locked.
#[test]
fn a_lock_ends_with_its_edit() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("disk.img");
    std::fs::write(&path, &empty(Version::Ufs1, Endian::Little, 4 << 20).0).unwrap();
    let mut held = None;
    edit(&path, Edit::InPlace, |store| {
        let file = store.into_file();
        held = Some(file.try_clone().unwrap());
        Ok::<_, FfsError>((FileStore::new(file).unwrap(), ()))
    })
    .unwrap();
    assert!(held.is_some());
    edit(&path, Edit::InPlace, |store| Ok::<_, FfsError>((store, ()))).unwrap();
}

/// A process that is killed in the middle of writing in place leaves what fsck makes whole, with all that was there
/// before.
#[test]
fn an_interrupted_copy_in_place_is_repaired() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    sample_tree(&from, 4096);
    let base =
        copied(empty(Version::Ufs2, Endian::Big, 8 << 20), "dirpref", &from, "/before", InsertOptions::default());
    let before = names(&base);
    let path = scratch.path().join("disk.img");
    for stop in [1, 5, 30, 90] {
        std::fs::write(&path, &base.0).unwrap();
        let store = FileStore::new(File::options().read(true).write(true).open(&path).unwrap()).unwrap();
        let mut inserter = Inserter::open(store, Options::default(), DATE_NS).unwrap();
        let _ = inserter.insert(&from, b"/after", InsertOptions::default(), &mut |done| done.files < stop);
        drop(inserter);
        let mut store = MemoryStore(std::fs::read(&path).unwrap());
        assert!(
            Ffs::load(&Image::open(store.clone(), Search::Standard).unwrap(), Options::default()).is_err() || stop == 1
        );
        let report = fsck(&mut store, &mut |_| true).unwrap();
        assert!(!report.marked_clean && report.unrepaired == 0, "{stop}");
        sound(&format!("stopped after {stop}"), &store);
        let after = names(&store);
        assert!(before.iter().all(|(path, line)| after.get(path) == Some(line)), "{stop}: something is lost");
    }
}

/// Gives a file of a UFS2 image extended attributes, as FreeBSD's kernel would: a block and a piece of one, counted.
fn with_extended_attributes(store: &MemoryStore, path: &[u8]) -> MemoryStore {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let g = *image.geometry();
    let (ino, mut inode) = image.resolve(path).unwrap();
    let group = image.group(ffs::GroupNo(1)).unwrap();
    let mut free =
        (0..g.fpg / g.frag).filter(|b| group.free.bits((b * g.frag) as usize, g.frag as usize).count_ones() == g.frag);
    inode.extb = [(); 2].map(|()| (u64::from(free.next().unwrap() * g.frag) + g.group_base(ffs::GroupNo(1)).0) as i64);
    inode.extsize = g.bsize + g.fsize + 1;
    inode.blocks += u64::from((g.bsize + 2 * g.fsize) / 512);
    let mut store = store.clone();
    let at = g.inode_at(ino).unwrap() as usize;
    store.0[at..at + 256].copy_from_slice(&inode.encode(&g));
    for addr in inode.extb {
        let at = g.byte_of(ffs::FragAddr(addr as u64)) as usize;
        store.0[at..at + 100].fill(0x5A);
    }
    // The maps follow.
    fsck(&mut store, &mut |_| true).unwrap();
    assert_eq!(Image::open(store.clone(), Search::Standard).unwrap().inode(ino).unwrap(), inode);
    store
}

#[test]
fn extended_attributes_stay_with_their_file_and_go_with_it() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    sample_tree(&from, 4096);
    for endian in [Endian::Little, Endian::Big] {
        let base =
            copied(empty(Version::Ufs2, endian, 8 << 20), "dirpref", &from.join("."), "/", InsertOptions::default());
        let store = with_extended_attributes(&base, b"indirect");
        sound("before", &store);
        let image = Image::open(store.clone(), Search::Standard).unwrap();
        let (ino, inode) = image.resolve(b"indirect").unwrap();
        let dump = image.dump_inode(ino).unwrap();
        let g = *image.geometry();
        let shown: Vec<(u64, u64)> = dump.extended.iter().map(|run| (run.addr, run.bytes)).collect();
        let expected = [(inode.extb[0] as u64, g.bsize.into()), (inode.extb[1] as u64, u64::from(2 * g.fsize))];
        assert_eq!(shown, expected);

        // Other files come and go, and these blocks are nobody else's.
        let more = copied(store.clone(), "original", &from, "/more", InsertOptions::default());
        sound("copied into", &more);
        let image = Image::open(more.clone(), Search::Standard).unwrap();
        assert_eq!(image.inode(ino).unwrap(), inode);
        for addr in inode.extb {
            let at = g.byte_of(ffs::FragAddr(addr as u64)) as usize;
            assert!(more.0[at..at + 100].iter().all(|b| *b == 0x5A));
        }

        // Replaced, the file gives them back.
        let overwrite = InsertOptions { overwrite: true, ..InsertOptions::default() };
        let replaced = copied(store, "original", &from.join("indirect"), "/", overwrite);
        sound("replaced", &replaced);
        let total = |store: &MemoryStore| {
            let total = Image::open(store.clone(), Search::Standard).unwrap().superblock().cstotal();
            total.nbfree * i64::from(g.frag) + total.nffree
        };
        assert_eq!(total(&replaced), total(&base));
    }
}

/// Found by the fuzzer: what a superblock says about tuning is believed within reason.
#[test]
fn tuning_beyond_reason() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    sample_tree(&from, 4096);
    for (version, sb) in [(Version::Ufs1, 8192), (Version::Ufs2, 65536)] {
        let base = empty(version, Endian::Little, 8 << 20);
        // rotdelay, rps, maxcontig, maxbpg, nsect, dsize, avgfilesize, avgfpdir
        for fields in
            [&[64, 68, 168][..], &[88], &[92], &[1196, 1200], &[1092], &[64, 68, 88, 92, 168, 1092, 1196, 1200]]
        {
            for high in [0x7F, 0xFF] {
                let mut store = base.clone();
                for at in fields {
                    store.0[sb + at..sb + at + 4].copy_from_slice(&[0xFF, 0xFF, 0xFF, high]);
                }
                // The space held back may be all of it.
                let options = Options { reserve: ffs::policy::Reserve::Open, ..Options::default() };
                let mut inserter = Inserter::open(store, options, DATE_NS).unwrap();
                inserter.insert(&from, b"/", InsertOptions::default(), &mut |_| true).unwrap();
                inserter.finish().unwrap();
            }
        }
    }
}

/// As root, a program of nobody's that was setuid became setuid root; devices were made with the image's mode.
#[test]
fn programs_come_out_without_setuid_and_devices_not_at_all() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    std::fs::create_dir_all(from.join("shared")).unwrap();
    std::fs::write(from.join("program"), "#!").unwrap();
    std::fs::set_permissions(from.join("program"), PermissionsExt::from_mode(0o4755)).unwrap();
    std::fs::set_permissions(from.join("shared"), PermissionsExt::from_mode(0o2755)).unwrap();
    std::os::unix::fs::symlink("/etc", from.join("link")).unwrap();
    let (kind, mode) = (rustix::fs::FileType::CharacterDevice, rustix::fs::Mode::from_raw_mode(0o666));
    let null = rustix::fs::makedev(1, 3);
    let device = rustix::fs::mknodat(rustix::fs::CWD, from.join("null"), kind, mode, null).is_ok();
    let store = copied(
        empty(Version::Ufs2, Endian::Little, 8 << 20),
        "dirpref",
        &from,
        "/from",
        InsertOptions { owner: Some((65534, 65534)), ..InsertOptions::default() },
    );
    let image = Image::open(store, Search::Standard).unwrap();
    let to = scratch.path().join("to");
    let done = extract(&image, b"/from", &to, ExtractOptions::default(), &mut |_| true).unwrap();
    let mode = |name: &str| to.join(name).symlink_metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode("program"), mode("shared")), (0o755, 0o755));
    assert_eq!((done.set_ids_dropped, done.devices_left_out), (2, u64::from(device)));
    assert!(to.join("null").symlink_metadata().is_err());
    assert_eq!(std::fs::read_link(to.join("link")).unwrap(), Path::new("/etc"));
    if rustix::process::geteuid().is_root() {
        let to = scratch.path().join("all");
        let all = ExtractOptions { owners: true, special: true };
        let done = extract(&image, b"/from", &to, all, &mut |_| true).unwrap();
        let program = to.join("program").metadata().unwrap();
        assert_eq!((program.mode() & 0o7777, program.uid()), (0o4755, 65534));
        assert_eq!((done.set_ids_dropped, done.devices_left_out, done.specials), (0, 0, u64::from(device)));
    }
}

/// Setting it was a panic, and would have left the file to whoever copies it.
#[test]
fn an_owner_that_is_nobodys_number_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    std::fs::create_dir(&from).unwrap();
    std::fs::write(from.join("program"), "#!").unwrap();
    for owner in [(u32::MAX, 0), (0, u32::MAX)] {
        let options = InsertOptions { owner: Some(owner), ..InsertOptions::default() };
        let store = copied(empty(Version::Ufs2, Endian::Little, 8 << 20), "dirpref", &from, "/from", options);
        let image = Image::open(store, Search::Standard).unwrap();
        let owners = ExtractOptions { owners: true, special: false };
        let error = extract(&image, b"/from/program", &scratch.path().join("to"), owners, &mut |_| true).unwrap_err();
        assert!(error.to_string().contains("is nobody's number"), "{error}");
        assert!(!scratch.path().join("to").exists());
    }
}

/// A file of any length was copied to its end before a signal was looked for.
#[test]
fn copying_stops_within_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("large"), vec![1; 5 << 20]).unwrap();
    let store = empty(Version::Ufs2, Endian::Little, 8 << 20);
    let store = copied(store, "dirpref", &scratch.path().join("large"), "/large", InsertOptions::default());
    let image = Image::open(store, Search::Standard).unwrap();
    let mut asked = 0;
    let mut go_on = |_: &ffs::Extracted| {
        asked += 1;
        asked < 4
    };
    let to = scratch.path().join("to");
    let error = extract(&image, b"/large", &to, ExtractOptions::default(), &mut go_on).unwrap_err();
    assert!(error.to_string().contains("interrupted"), "{error}");
    assert!(!to.exists(), "half a file is worse than none");
}
