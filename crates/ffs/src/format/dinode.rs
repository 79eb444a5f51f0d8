//! Inodes (`struct ufs1_dinode`, `struct ufs2_dinode`).

use super::{Disk, Endian, Field, Geometry, NDADDR, NIADDR, Version, check_hash};
use serde::Serialize;
use ufs::{Fields, FileType, ReadFields, Time, WriteFields, mode};

/// An inode of either format. Fields that a format lacks are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dinode {
    /// Type and permissions.
    pub mode: u16,
    /// Links.
    pub nlink: i16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// UFS2: not used by any system known to us.
    pub blksize: u32,
    /// Bytes of the file.
    pub size: u64,
    /// Space held, in units of 512 bytes.
    pub blocks: u64,
    /// Last read.
    pub atime: Time,
    /// Last modified.
    pub mtime: Time,
    /// Last changed.
    pub ctime: Time,
    /// UFS2: created.
    pub birthtime: Time,
    /// Generation.
    pub generation: u32,
    /// UFS2: kernel flags.
    pub kernflags: u32,
    /// Flags (chflags).
    pub flags: u32,
    /// UFS2: bytes of extended attributes.
    pub extsize: u32,
    /// UFS2: blocks of extended attributes.
    pub extb: [i64; 2],
    /// Direct blocks. A device has its number, a short symbolic link its target in this place and the next.
    pub db: [i64; NDADDR],
    /// Single, double and triple indirect block.
    pub ib: [i64; NIADDR],
    /// Modification number.
    pub modrev: u64,
    /// UFS2: list of freed inodes; also depth of a directory.
    pub freelink: u32,
    /// UFS2: check hash.
    pub ckhash: u32,
    /// Bytes 4 to 8 of UFS1 (16-bit owner and group of 4.2BSD), or the last 8 of UFS2.
    pub spare: [u32; 2],
}

ufs::disk_inode!(Dinode);

/// A flag of an inode: it is a snapshot of the file system, whose pointers 1 and 2 stand for blocks not copied.
pub const SF_SNAPSHOT: u32 = 0x0020_0000;

/// Bytes of the pointer area, where short symbolic links are kept.
pub fn symlink_area_bytes(version: Version) -> usize {
    (NDADDR + NIADDR) * version.pointer_bytes() as usize
}

const HASH_AT: usize = 244;

impl Dinode {
    /// Reads one from its 128 or 256 bytes.
    pub fn decode(bytes: &[u8], g: &Geometry) -> Dinode {
        let mut inode = Dinode::default();
        inode.visit(&mut ReadFields(g.endian(), bytes), g);
        inode
    }

    /// Its bytes; the check hash is worked out anew where one is kept.
    pub fn encode(&self, g: &Geometry) -> Vec<u8> {
        let mut bytes = vec![0; g.layout.version.inode_bytes() as usize];
        self.clone().visit(&mut WriteFields(g.endian(), &mut bytes), g);
        if g.inode_hash && self.mode != 0 {
            hash_of(&bytes).put(g.endian(), &mut bytes, HASH_AT);
        }
        bytes
    }

    fn visit(&mut self, io: &mut impl Fields, g: &Geometry) {
        match g.layout.version {
            Version::Ufs1 => self.ufs1(io, g.old_inodes),
            Version::Ufs2 => self.ufs2(io),
        }
    }

    fn ufs1(&mut self, io: &mut impl Fields, old: bool) {
        io.ufs1(self);
        io.field(4, &mut self.spare[0]);
        io.field(100, &mut self.flags);
        let mut blocks = self.blocks as i64;
        io.narrow(104, &mut blocks);
        self.blocks = blocks as u64;
        if old {
            // 4.2BSD keeps 16-bit owners in the first spare bytes; those of 4.4BSD mean nothing.
            let (mut uid, mut gid) = (self.uid as u16, self.gid as u16);
            io.field(4, &mut uid);
            io.field(6, &mut gid);
            (self.uid, self.gid) = (uid.into(), gid.into());
        } else {
            io.field(112, &mut self.uid);
            io.field(116, &mut self.gid);
        }
        io.field(120, &mut self.modrev);
    }

    fn ufs2(&mut self, io: &mut impl Fields) {
        io.field(0, &mut self.mode);
        io.field(2, &mut self.nlink);
        io.field(4, &mut self.uid);
        io.field(8, &mut self.gid);
        io.field(12, &mut self.blksize);
        io.field(16, &mut self.size);
        io.field(24, &mut self.blocks);
        let (a, m, c, b) = (&mut self.atime, &mut self.mtime, &mut self.ctime, &mut self.birthtime);
        for (s_at, ns_at, time) in [(32, 68, a), (40, 64, m), (48, 72, c), (56, 76, b)] {
            io.field(s_at, &mut time.s);
            io.field(ns_at, &mut time.ns);
        }
        io.field(80, &mut self.generation);
        io.field(84, &mut self.kernflags);
        io.field(88, &mut self.flags);
        io.field(92, &mut self.extsize);
        io.field(96, &mut self.extb);
        io.field(112, &mut self.db);
        io.field(208, &mut self.ib);
        io.field(232, &mut self.modrev);
        io.field(240, &mut self.freelink);
        io.field(HASH_AT, &mut self.ckhash);
        io.field(248, &mut self.spare);
    }

    /// What it is; `None` where its mode says nothing known.
    pub fn file_type(&self) -> Option<FileType> {
        FileType::of(self.mode)
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.file_type() == Some(FileType::Directory)
    }

    /// Permissions with set-id and sticky bits.
    pub fn permissions(&self) -> u16 {
        self.mode & mode::PERMISSIONS
    }

    /// Whether it holds the target of a symbolic link in place of pointers.
    pub fn is_short_symlink(&self, g: &Geometry) -> bool {
        self.file_type() == Some(FileType::Symlink)
            && (self.size < u64::from(g.maxsymlinklen) || g.maxsymlinklen > 0 && self.size > 0 && self.blocks == 0)
            && self.size <= symlink_area_bytes(g.layout.version) as u64
    }

    /// Whether its pointers point to blocks.
    pub fn has_blocks(&self, g: &Geometry) -> bool {
        self.file_type().is_some_and(|t| !t.is_special() && t != FileType::Whiteout) && !self.is_short_symlink(g)
    }

    /// The bytes of the pointer area: the target of a short symbolic link.
    pub fn pointer_area(&self, g: &Geometry) -> Vec<u8> {
        let width = g.layout.version.pointer_bytes() as usize;
        let mut bytes = vec![0; symlink_area_bytes(g.layout.version)];
        for (i, pointer) in self.db.iter().chain(&self.ib).enumerate() {
            match g.layout.version {
                Version::Ufs1 => (*pointer as i32).put(g.endian(), &mut bytes, i * width),
                Version::Ufs2 => pointer.put(g.endian(), &mut bytes, i * width),
            }
        }
        bytes
    }

    /// Puts bytes into the pointer area.
    pub fn set_pointer_area(&mut self, bytes: &[u8], g: &Geometry) {
        let width = g.layout.version.pointer_bytes() as usize;
        for (i, pointer) in self.db.iter_mut().chain(&mut self.ib).enumerate() {
            let mut raw = vec![0; width];
            for (place, byte) in raw.iter_mut().zip(bytes.iter().skip(i * width)) {
                *place = *byte;
            }
            *pointer = match g.layout.version {
                Version::Ufs1 => i32::get(g.endian(), &raw, 0).into(),
                Version::Ufs2 => i64::get(g.endian(), &raw, 0),
            };
        }
    }

    /// The device number of a device file: major and minor, in the encoding that small numbers have everywhere.
    pub fn device(&self) -> (u32, u32) {
        let raw = self.db.first().copied().unwrap_or(0) as u32;
        (raw >> 8 & 0xFF, raw & 0xFF)
    }

    /// Whether the check hash is as it should be; `None` where none is kept.
    pub fn hash_is_right(&self, g: &Geometry) -> Option<bool> {
        if !g.inode_hash || self.mode == 0 {
            return None; // Unused inodes have none.
        }
        let mut bytes = vec![0; g.layout.version.inode_bytes() as usize];
        self.clone().visit(&mut WriteFields(g.endian(), &mut bytes), g);
        Some(hash_of(&bytes) == self.ckhash)
    }

    /// Every field with its place and value.
    pub fn fields(&self, g: &Geometry) -> Vec<Field> {
        let time = |t: &Time| format!("{}.{:09}", t.s, t.ns);
        let ufs1 = g.layout.version == Version::Ufs1;
        let field = |name, at1: usize, at2: usize, value: String| {
            let at = if ufs1 { at1 } else { at2 };
            (at != usize::MAX).then_some(Field { name, at, value })
        };
        const NONE: usize = usize::MAX;
        let (uid_at, gid_at) = if g.old_inodes { (4, 6) } else { (112, 116) };
        let mut fields: Vec<Field> = [
            field("mode", 0, 0, format!("0{:o}", self.mode)),
            field("nlink", 2, 2, self.nlink.to_string()),
            field("uid", uid_at, 4, self.uid.to_string()),
            field("gid", gid_at, 8, self.gid.to_string()),
            field("blksize", NONE, 12, self.blksize.to_string()),
            field("size", 8, 16, self.size.to_string()),
            field("blocks", 104, 24, self.blocks.to_string()),
            field("atime", 16, 32, time(&self.atime)),
            field("mtime", 24, 40, time(&self.mtime)),
            field("ctime", 32, 48, time(&self.ctime)),
            field("birthtime", NONE, 56, time(&self.birthtime)),
            field("generation", 108, 80, self.generation.to_string()),
            field("kernflags", NONE, 84, format!("{:#x}", self.kernflags)),
            field("flags", 100, 88, format!("{:#x}", self.flags)),
            field("extsize", NONE, 92, self.extsize.to_string()),
            field("extb", NONE, 96, format!("{:?}", self.extb)),
            field("db", 40, 112, format!("{:?}", self.db)),
            field("ib", 88, 208, format!("{:?}", self.ib)),
            field("modrev", 120, 232, self.modrev.to_string()),
            field("freelink", NONE, 240, self.freelink.to_string()),
            field("ckhash", NONE, HASH_AT, format!("{:#x}", self.ckhash)),
        ]
        .into_iter()
        .flatten()
        .collect();
        fields.sort_by_key(|f| f.at);
        fields
    }
}

fn hash_of(bytes: &[u8]) -> u32 {
    let mut bytes = bytes.to_vec();
    0_u32.put(Endian::Little, &mut bytes, HASH_AT);
    check_hash(&bytes)
}
