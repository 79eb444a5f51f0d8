//! File systems from before 4.4BSD: narrow fields, 16-bit owners, directories without types, groups with fixed tables.
//! No system here makes one, so one made by mkfs is put into the old form by the definition of the old structures.

use fault::{Fault as _, Kind};
use ffs::format::{DirFormat, ROOT_INO, RawEntry, fresh_chunk, insert};
use ffs::fsck::Problem;
use ffs::mkfs::{GroupSize, MkfsOptions};
use ffs::policy::Options;
use ffs::{Endian, FragAddr, GroupNo, Image, Inserter, MemoryStore, Search, Version, fsck, mkfs};

const BYTES: usize = 4 << 20;

fn number(endian: Endian, value: i32) -> [u8; 4] {
    match endian {
        Endian::Little => value.to_le_bytes(),
        Endian::Big => value.to_be_bytes(),
    }
}

/// A file system of 4.2BSD with a root and lost+found.
fn old(endian: Endian) -> MemoryStore {
    let mut store = MemoryStore(vec![0; BYTES]);
    let options = MkfsOptions {
        endian,
        group: Some(GroupSize::Fragments(2048)),
        ipg: Some(512),
        maxcontig: Some(1),
        lost_found: true,
        ..MkfsOptions::new(Version::Ufs1, BYTES as u64)
    };
    mkfs(&mut store, &options).unwrap();
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let g = *image.geometry();
    let cgsize = (984 + g.fpg.div_ceil(8)).next_multiple_of(g.fsize);

    // struct ocg: the header up to frsum as it is now, then block totals, positions, inode map, magic, free map.
    for c in (0..g.ncg).map(GroupNo) {
        let group = image.group(c).unwrap();
        let new = group.encode(&g);
        let at = g.byte_of(g.group_block(c)) as usize;
        let mut bytes = vec![0; g.bsize as usize];
        bytes[..84].copy_from_slice(&new[..84]);
        bytes[4..8].fill(0);
        let map = |at: u32, n: u32| new[at as usize..(at + n.div_ceil(8)) as usize].to_vec();
        bytes[724..724 + g.ipg.div_ceil(8) as usize].copy_from_slice(&map(group.iusedoff, g.ipg));
        bytes[980..984].copy_from_slice(&number(endian, 0x0009_0255));
        bytes[984..984 + g.fpg.div_ceil(8) as usize].copy_from_slice(&map(group.freeoff, g.fpg));
        store.0[at..at + bytes.len()].copy_from_slice(&bytes);
    }

    // The superblock, at home and in each group: no wide fields, the static table (here empty) in their place.
    let mut places = vec![8192];
    places.extend((0..g.ncg).map(|c| image.superblock().copy_at(&g, GroupNo(c)) as usize));
    for at in places {
        let sb = &mut store.0[at..at + 1376];
        sb[856..1328].fill(0);
        sb[211] = 0;
        sb[160..164].copy_from_slice(&number(endian, cgsize as i32));
        sb[1324..1328].copy_from_slice(&number(endian, -1));
        sb[1356..1360].copy_from_slice(&number(endian, -1));
    }

    // Directories: the length of a name is 16 bits wide. Inodes: owners are 16 bits wide, at another place.
    let format = DirFormat { endian, old: true };
    for (ino, parent, name) in [(2, 2, Some("lost+found")), (3, 2, None)] {
        let inode = image.inode(ffs::Ino(ino)).unwrap();
        let block = g.byte_of(FragAddr(inode.db[0] as u64)) as usize;
        let mut chunk = fresh_chunk(format);
        insert(&mut chunk, format, ffs::Ino(ino), 0, b".");
        insert(&mut chunk, format, ffs::Ino(parent), 0, b"..");
        if let Some(name) = name {
            insert(&mut chunk, format, ffs::Ino(3), 0, name.as_bytes());
        }
        assert_eq!(RawEntry::get(&chunk, 0, format).namlen, 1);
        store.0[block..block + 512].copy_from_slice(&chunk);
        for at in (block + 512..block + inode.size as usize).step_by(512) {
            store.0[at..at + 512].copy_from_slice(&fresh_chunk(format));
        }
        let at = g.inode_at(ffs::Ino(ino)).unwrap() as usize;
        let owner: [u8; 2] = match endian {
            Endian::Little => 77_u16.to_le_bytes(),
            Endian::Big => 77_u16.to_be_bytes(),
        };
        store.0[at + 4..at + 6].copy_from_slice(&owner);
    }
    store
}

#[test]
fn a_file_system_of_4_2bsd() {
    for endian in [Endian::Little, Endian::Big] {
        let mut store = old(endian);
        let image = Image::open(store.clone(), Search::Standard).unwrap();
        let g = *image.geometry();
        assert!(!image.superblock().wide() && g.old_inodes && g.old_groups);
        assert_eq!(image.superblock().encode()[..], store.0[8192..8192 + image.superblock().sb_bytes()]);
        for c in (0..g.ncg).map(GroupNo) {
            let at = g.byte_of(g.group_block(c)) as usize;
            assert_eq!(image.group(c).unwrap().encode(&g), store.0[at..at + g.cgsize as usize]);
        }
        let mut names = Vec::new();
        image
            .walk(ROOT_INO, &mut |path, _, inode| {
                assert_eq!((inode.uid, inode.gid), (77, 0));
                names.push(String::from_utf8(path.to_vec()).unwrap());
                Ok(())
            })
            .unwrap();
        assert_eq!(names, [".", "./lost+found"]);
        assert_eq!(fsck(&mut store, &mut |_| true).unwrap().problems, Vec::<Problem>::new());

        // All maps, all totals, a link count.
        let sound = store.clone();
        for c in (0..g.ncg).map(GroupNo) {
            let at = g.byte_of(g.group_block(c)) as usize;
            store.0[at + 24..at + 40].fill(1);
            store.0[at + 984..at + 1000].fill(0x5A);
        }
        store.0[8192 + 192..8192 + 208].fill(3);
        store.0[g.inode_at(ROOT_INO).unwrap() as usize + 2] ^= 9;
        store.0[g.inode_at(ROOT_INO).unwrap() as usize + 3] ^= 9;
        assert!(!fsck(&mut store, &mut |_| true).unwrap().is_clean());
        assert!(store == sound, "repaired to the very bytes");

        let refused = Inserter::open(store, Options::default(), 0).unwrap_err();
        assert!(refused.to_string().contains("4.2BSD can be read") && refused.kind() == Kind::BadInput, "{refused}");
    }
}
