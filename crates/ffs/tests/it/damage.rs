//! Ways to damage an image: one for every class of field.

#![allow(clippy::unwrap_used)]

use ffs::format::{CylinderGroup, Dinode};
use ffs::{FragAddr, Geometry, GroupNo, Image, Ino, MemoryStore, Search};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// An image to damage, and where its parts are.
pub struct Patient {
    pub store: MemoryStore,
    pub g: Geometry,
    pub sb_at: usize,
}

impl Patient {
    pub fn new(store: &MemoryStore) -> Patient {
        let image = Image::open(store.clone(), Search::Standard).unwrap();
        Patient { store: store.clone(), g: *image.geometry(), sb_at: image.superblock_at() as usize }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.store.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn number(&mut self, at: usize, value: u32) {
        let bytes = match self.g.endian() {
            ffs::Endian::Little => value.to_le_bytes(),
            ffs::Endian::Big => value.to_be_bytes(),
        };
        self.put(at, &bytes);
    }

    fn short(&mut self, at: usize, value: u16) {
        let bytes = match self.g.endian() {
            ffs::Endian::Little => value.to_le_bytes(),
            ffs::Endian::Big => value.to_be_bytes(),
        };
        self.put(at, &bytes);
    }

    fn ino(&self, path: &str) -> Ino {
        Image::open(self.store.clone(), Search::Standard).unwrap().resolve(path.as_bytes()).unwrap().0
    }

    fn inode(&self, path: &str) -> (Ino, Dinode) {
        let image = Image::open(self.store.clone(), Search::Standard).unwrap();
        image.resolve(path.as_bytes()).unwrap()
    }

    fn change(&mut self, path: &str, f: impl FnOnce(&mut Dinode)) {
        let (ino, mut inode) = self.inode(path);
        f(&mut inode);
        let at = self.g.inode_at(ino).unwrap() as usize;
        let bytes = inode.encode(&self.g);
        self.put(at, &bytes);
    }

    fn group_at(&self, c: u32) -> usize {
        self.g.byte_of(self.g.group_block(GroupNo(c))) as usize
    }

    fn group(&self, c: u32) -> CylinderGroup {
        let at = self.group_at(c);
        CylinderGroup::decode(&self.store.0[at..at + self.g.cgsize as usize], &self.g, 0).unwrap()
    }

    /// Byte of the entry with a name in the first block of a directory.
    fn entry_at(&self, dir: &str, name: &str) -> usize {
        let (_, inode) = self.inode(dir);
        let mut block = self.g.byte_of(FragAddr(inode.db[0] as u64)) as usize;
        let end = block + inode.size.min(self.g.bsize.into()) as usize;
        while block < end {
            let chunk = &self.store.0[block..block + 512];
            let format = self.g.dir_format();
            let entries = ffs::format::parse_chunk(chunk, format, 0).unwrap();
            if let Some(entry) = entries.iter().find(|e| e.name == name.as_bytes()) {
                return block + entry.at;
            }
            block += 512;
        }
        panic!("no {name} in the first block of {dir}");
    }
}

/// What a repair keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keeps {
    /// Every name with everything in it.
    Everything,
    /// Everything that files hold, under whatever name.
    Contents,
    /// All but what was in the damaged place: this many files or directories change.
    AllBut(usize),
}

/// A named way to damage an image, the kind of problem it must be found as, and what its repair keeps.
pub type Damage = (&'static str, fn(&mut Patient), &'static str, Keeps);

pub fn damages() -> Vec<Damage> {
    use Keeps::{AllBut, Contents, Everything};
    vec![
        ("superblock zeroed", |p| p.store.0[p.sb_at..p.sb_at + 1376].fill(0), "superblock-damaged", Everything),
        ("superblock: ncg", |p| p.number(p.sb_at + 44, 7), "superblock-damaged", Everything),
        ("superblock: fpg", |p| p.number(p.sb_at + 188, p.g.fpg - 8), "superblock-damaged", Everything),
        ("superblock: ipg", |p| p.number(p.sb_at + 184, p.g.ipg - p.g.inopb()), "superblock-damaged", Everything),
        ("superblock: iblkno", |p| p.number(p.sb_at + 16, p.g.cblkno), "superblock-damaged", Everything),
        ("superblock: bsize", |p| p.number(p.sb_at + 48, 3), "superblock-damaged", Everything),
        ("superblock: cgsize", |p| p.number(p.sb_at + 160, 1 << 20), "superblock-damaged", Everything),
        ("superblock: cssize", |p| p.number(p.sb_at + 156, 0), "superblock-damaged", Everything),
        ("superblock: bmask", |p| p.number(p.sb_at + 72, 0), "superblock-field", Everything),
        ("superblock: nindir", |p| p.number(p.sb_at + 116, 12), "superblock-damaged", Everything),
        ("superblock: minfree", |p| p.number(p.sb_at + 60, 1000), "superblock-field", Everything),
        ("superblock: cstotal", |p| p.number(p.sb_at + 1008 + 8, 9), "totals", Everything),
        (
            "superblock copy zeroed",
            |p| {
                let at = (p.g.sblkno << p.g.fshift) as usize;
                p.store.0[at..at + 1376].fill(0);
            },
            "superblock-copy",
            Everything,
        ),
        ("group: magic", |p| p.number(p.group_at(0) + 4, 0), "group-damaged", Everything),
        ("group: iusedoff", |p| p.number(p.group_at(0) + 92, p.group(0).iusedoff - 1), "group-damaged", Everything),
        ("group: freeoff", |p| p.number(p.group_at(1) + 96, 1 << 30), "group-damaged", Everything),
        (
            "group: everything",
            |p| {
                let at = p.group_at(0);
                p.store.0[at..at + p.g.cgsize as usize].fill(0xFF)
            },
            "group-damaged",
            Everything,
        ),
        ("group: cgx", |p| p.number(p.group_at(1) + 12, 9), "group-field", Everything),
        ("group: rotor", |p| p.number(p.group_at(0) + 40, 1 << 30), "group-field", Everything),
        ("group: counts", |p| p.number(p.group_at(0) + 28, 3), "counts", Everything),
        ("group: frsum", |p| p.number(p.group_at(0) + 56, 77), "counts", Everything),
        (
            "group: free map, all free",
            |p| {
                let at = p.group_at(0) + p.group(0).freeoff as usize;
                p.store.0[at..at + 100].fill(0xFF)
            },
            "block-map",
            Everything,
        ),
        (
            "group: free map, nothing free",
            |p| {
                let at = p.group_at(1) + p.group(1).freeoff as usize;
                p.store.0[at..at + 100].fill(0)
            },
            "block-map",
            Everything,
        ),
        (
            "group: inode map",
            |p| {
                let at = p.group_at(0) + p.group(0).iusedoff as usize;
                p.store.0[at..at + 2].fill(0)
            },
            "inode-map",
            Everything,
        ),
        (
            "group: clusters",
            |p| {
                let at = p.group_at(0) + p.group(0).clusteroff as usize;
                p.store.0[at] ^= 0x55
            },
            "clusters",
            Everything,
        ),
        (
            "group: cluster summary",
            |p| {
                let at = p.group_at(0) + p.group(0).clustersumoff as usize;
                p.number(at + 8, 99)
            },
            "clusters",
            Everything,
        ),
        (
            "group summary",
            |p| {
                let at = p.g.byte_of(p.g.csaddr) as usize;
                p.number(at + 4, 1)
            },
            "summary",
            Everything,
        ),
        ("inode: link count up", |p| p.change("size1", |i| i.nlink = 9), "link-count", Everything),
        ("inode: link count 0", |p| p.change("size1", |i| i.nlink = 0), "link-count", Everything),
        ("inode: link count of a directory", |p| p.change("dir", |i| i.nlink = 2), "link-count", Everything),
        ("inode: block count", |p| p.change("size5", |i| i.blocks += 2), "block-count", Everything),
        ("inode: size far up", |p| p.change("size1", |i| i.size = 1 << 40), "size", AllBut(1)),
        ("inode: size impossible", |p| p.change("indirect", |i| i.size = u64::MAX - 5), "size", AllBut(1)),
        ("inode: size down", |p| p.change("indirect", |i| i.size = 5), "size", AllBut(1)),
        ("inode: size up in its block", |p| p.change("size0", |i| i.size += 900), "size", AllBut(1)),
        ("inode: size of a directory", |p| p.change("dir", |i| i.size = 600), "size", Everything),
        ("inode: size of a directory, huge", |p| p.change("dir", |i| i.size = 1 << 50), "size", Everything),
        ("inode: size of a symbolic link", |p| p.change("dir/short", |i| i.size = 1 << 33), "size", Everything),
        ("inode: pointer out of range", |p| p.change("size5", |i| i.db[1] = 0x7FFF_FFF0), "pointer", AllBut(1)),
        ("inode: negative pointer", |p| p.change("size5", |i| i.db[1] = -8), "pointer", AllBut(1)),
        ("inode: pointer to metadata", |p| p.change("size5", |i| i.db[2] = 8), "pointer", AllBut(1)),
        (
            "inode: indirect pointer out of range",
            |p| p.change("indirect", |i| i.ib[0] = 0x7FFF_FFF0),
            "pointer",
            AllBut(1),
        ),
        ("inode: last pointer out of range", |p| p.change("size5", |i| i.db[5] = 0x7FFF_FFF0), "pointer", AllBut(1)),
        (
            "inode: shared block",
            |p| {
                let (_, other) = p.inode("indirect");
                p.change("size5", |i| i.db[1] = other.db[3]);
            },
            "duplicate",
            AllBut(1),
        ),
        (
            "inode: shared fragment",
            |p| {
                let (_, other) = p.inode("size0");
                p.change("one", |i| i.db[0] = other.db[0]);
            },
            "duplicate",
            AllBut(1),
        ),
        (
            "inode: stray pointer behind the end",
            |p| {
                let (_, other) = p.inode("indirect");
                p.change("size5", |i| i.db[9] = other.db[3]);
            },
            "pointer",
            Everything,
        ),
        (
            "inode: stray indirect pointer to another's data",
            |p| {
                let (_, other) = p.inode("indirect");
                p.change("size5", |i| i.ib[1] = other.db[3]);
            },
            "pointer",
            Everything,
        ),
        (
            "inode: another's indirect block as data",
            |p| {
                let (_, other) = p.inode("indirect");
                p.change("size5", |i| i.db[1] = other.ib[0]);
            },
            "duplicate",
            AllBut(1),
        ),
        (
            "inode: shared indirect block",
            |p| {
                let (_, other) = p.inode("indirect");
                p.change("first-indirect", |i| {
                    i.ib[0] = other.ib[0];
                    i.size = other.size;
                });
            },
            "duplicate",
            AllBut(1),
        ),
        // Size and block count agree without it.
        ("inode: stray indirect block", |p| p.change("indirect", |i| i.ib[2] = i.ib[0]), "pointer", Everything),
        (
            "inode: indirect block in a circle",
            |p| {
                p.change("indirect", |i| {
                    i.ib[2] = i.ib[0];
                    i.blocks += 1;
                });
            },
            "duplicate",
            AllBut(1),
        ),
        ("inode: no type", |p| p.change("indirect", |i| i.mode &= 0o7777), "type", Everything),
        ("inode: directory without type", |p| p.change("dir/below", |i| i.mode = 0o070_755), "type", Everything),
        ("inode: root without type", |p| p.change("", |i| i.mode = 0o755), "root-type", Everything),
        ("inode: cleared", |p| p.change("size6", |i| *i = Dinode::default()), "entry", AllBut(1)),
        ("inode: half cleared", |p| p.change("size6", |i| i.mode = 0), "partly-allocated", AllBut(1)),
        ("inode: root cleared", |p| p.change("", |i| *i = Dinode::default()), "root", Contents),
        (
            "inode: root a file",
            |p| {
                p.change("", |i| {
                    i.mode = 0o100_644;
                    i.db[0] = 0;
                });
            },
            "root",
            Contents,
        ),
        ("inode: directory cleared", |p| p.change("dir/below", |i| *i = Dinode::default()), "no-name", Contents),
        (
            "inode: directory's block out of range",
            |p| p.change("dir/below", |i| i.db[0] = 0x7FFF_FFF0),
            "pointer",
            Contents,
        ),
        (
            "entry: inode out of range",
            |p| {
                let at = p.entry_at("dir", "short");
                p.number(at, 0x00FF_FFFF)
            },
            "no-name",
            Contents,
        ),
        (
            "entry: inode not in use",
            |p| {
                let at = p.entry_at("dir", "short");
                p.number(at, p.g.inodes() - 1)
            },
            "entry",
            Contents,
        ),
        (
            "entry: removed",
            |p| {
                let at = p.entry_at("", "indirect");
                p.number(at, 0)
            },
            "no-name",
            Contents,
        ),
        (
            "entry: of a directory removed",
            |p| {
                let at = p.entry_at("", "dir");
                p.number(at, 0)
            },
            "no-name",
            Contents,
        ),
        (
            "entry: reclen 0",
            |p| {
                let at = p.entry_at("", "indirect");
                p.short(at + 4, 0)
            },
            "directory-chunk",
            Everything,
        ),
        (
            "entry: reclen odd",
            |p| {
                let at = p.entry_at("", "indirect");
                p.short(at + 4, 13)
            },
            "directory-chunk",
            Everything,
        ),
        (
            "entry: reclen far",
            |p| {
                let at = p.entry_at("", "indirect");
                p.short(at + 4, 4096)
            },
            "directory-chunk",
            Everything,
        ),
        (
            "entry: namlen",
            |p| {
                let at = p.entry_at("", "indirect");
                p.put(at + 7, &[200])
            },
            "directory-chunk",
            Everything,
        ),
        (
            "entry: type",
            |p| {
                let at = p.entry_at("", "indirect");
                p.put(at + 6, &[4])
            },
            "entry-type",
            Everything,
        ),
        (
            "entry: slash in the name",
            |p| {
                let at = p.entry_at("", "indirect");
                p.put(at + 10, b"/")
            },
            "directory-chunk",
            Contents,
        ),
        (
            "entry: the name of another",
            |p| {
                let (at, other) = (p.entry_at("", "size1"), p.entry_at("", "size2"));
                let name = p.store.0[other + 7..other + 14].to_vec();
                p.put(at + 7, &name);
            },
            "entry",
            Contents,
        ),
        (
            "device without a number",
            |p| {
                p.change("one", |i| {
                    i.mode = 0o020_644;
                    (i.size, i.blocks) = (0, 0);
                    i.db[0] = -1;
                });
            },
            "device",
            AllBut(1),
        ),
        (
            "inode: the type of a whiteout",
            |p| p.change("indirect", |i| i.mode = i.mode & 0o7777 | 0o160_000),
            "type",
            Everything,
        ),
        (
            "entry: `.` astray",
            |p| {
                let at = p.entry_at("dir/below", ".");
                p.number(at, 4)
            },
            "dots",
            Everything,
        ),
        (
            "entry: `..` astray",
            |p| {
                let at = p.entry_at("dir/below", "..");
                p.number(at, 4)
            },
            "dots",
            Everything,
        ),
        (
            "entry: `..` renamed",
            |p| {
                let at = p.entry_at("dir/below", "..");
                p.put(at + 8, b"xy")
            },
            "dots",
            Everything,
        ),
        (
            "entry: second name of a directory",
            |p| {
                let at = p.entry_at("", "one");
                let below = p.ino("dir/below");
                p.number(at, below.0);
            },
            "directory-link",
            Contents,
        ),
        (
            "entry: directories in a circle",
            |p| {
                // `deep` names `below` instead of its file, and nobody else does.
                let (at, from) = (p.entry_at("dir/below/deep", "file"), p.entry_at("dir", "below"));
                let below = p.ino("dir/below");
                p.number(at, below.0);
                p.number(from, 0);
            },
            "no-name",
            Contents,
        ),
        (
            "directory: first chunk zeroed",
            |p| {
                let (_, inode) = p.inode("dir/below/deep");
                let at = p.g.byte_of(FragAddr(inode.db[0] as u64)) as usize;
                p.store.0[at..at + 512].fill(0);
            },
            "dots",
            Contents,
        ),
        (
            "directory: first block noise",
            |p| {
                let (_, inode) = p.inode("dir");
                let at = p.g.byte_of(FragAddr(inode.db[0] as u64)) as usize;
                let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
                p.store.0[at..at + 512].fill_with(|| random.next_u32() as u8);
            },
            "directory-chunk",
            Contents,
        ),
    ]
}
