//! Inodes: those of UFS1, with their number in bytes 4 to 8.

use super::{DINODE_BYTES, ENDIAN, Ino, NDADDR, NIADDR, SYMLINK_AREA_BYTES};
use serde::Serialize;
use ufs::indirect::Pointer;
use ufs::{Disk, Field, Fields, FileType, ReadFields, Time, WriteFields, mode};

/// An inode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dinode {
    /// Type and permissions.
    pub mode: u16,
    /// Links.
    pub nlink: i16,
    /// Its own number; 0 in the unused places of an inode block.
    pub inumber: u32,
    /// Bytes of the file.
    pub size: u64,
    /// Last read; the inode map may know better.
    pub atime: Time,
    /// Last modified.
    pub mtime: Time,
    /// Last changed.
    pub ctime: Time,
    /// Direct blocks: fragments, 0 for a hole. A device has its number, a short symbolic link its target in this place
    /// and the next.
    pub db: [Pointer; NDADDR],
    /// Single, double and triple indirect block.
    pub ib: [Pointer; NIADDR],
    /// Flags (chflags).
    pub flags: u32,
    /// Fragments held, indirect blocks included. (FFS counts sectors.)
    pub blocks: u32,
    /// Generation: `version` of its entry in the inode map.
    pub generation: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Modification number.
    pub modrev: u64,
}

ufs::disk_inode!(Dinode);

impl Dinode {
    /// Reads one from its 128 bytes.
    pub fn decode(bytes: &[u8]) -> Dinode {
        let mut inode = Dinode::default();
        inode.visit(&mut ReadFields(ENDIAN, bytes));
        inode
    }

    /// Writes its 128 bytes.
    pub fn encode(&self, bytes: &mut [u8]) {
        self.clone().visit(&mut WriteFields(ENDIAN, bytes));
    }

    fn visit(&mut self, io: &mut impl Fields) {
        io.ufs1(self);
        io.field(4, &mut self.inumber);
        io.field(100, &mut self.flags);
        io.field(104, &mut self.blocks);
        io.field(112, &mut self.uid);
        io.field(116, &mut self.gid);
        io.field(120, &mut self.modrev);
    }

    /// Its number.
    pub fn ino(&self) -> Ino {
        Ino(self.inumber)
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

    /// Whether it holds the target of a symbolic link in place of pointers: if it is shorter than `maxsymlinklen`.
    pub fn is_short_symlink(&self, maxsymlinklen: u32) -> bool {
        self.file_type() == Some(FileType::Symlink)
            && self.size < u64::from(maxsymlinklen)
            && self.size <= SYMLINK_AREA_BYTES as u64
    }

    /// Whether its pointers point to blocks.
    pub fn has_blocks(&self, maxsymlinklen: u32) -> bool {
        self.file_type().is_some_and(|t| !t.is_special() && t != FileType::Whiteout)
            && !self.is_short_symlink(maxsymlinklen)
    }

    /// The bytes of the pointers: the target of a short symbolic link.
    pub fn pointer_area(&self) -> [u8; SYMLINK_AREA_BYTES] {
        let mut bytes = [0; SYMLINK_AREA_BYTES];
        for (i, pointer) in self.db.iter().chain(&self.ib).enumerate() {
            (*pointer as i32).put(ENDIAN, &mut bytes, i * 4);
        }
        bytes
    }

    /// Puts bytes in place of the pointers; those that do not fit are left out.
    pub fn set_pointer_area(&mut self, bytes: &[u8]) {
        let mut area = [0; SYMLINK_AREA_BYTES];
        for (place, byte) in area.iter_mut().zip(bytes) {
            *place = *byte;
        }
        for (i, pointer) in self.db.iter_mut().chain(&mut self.ib).enumerate() {
            *pointer = i32::get(ENDIAN, &area, i * 4).into();
        }
    }

    /// The device number of a device file: major and minor, in the encoding that small numbers have everywhere.
    pub fn device(&self) -> (u32, u32) {
        let raw = self.db.first().copied().unwrap_or(0) as u32;
        (raw >> 8 & 0xFF, raw & 0xFF)
    }

    /// Every field with its place and value.
    pub fn fields(&self) -> Vec<Field> {
        let time = |t: &Time| format!("{}.{:09}", t.s, t.ns);
        let field = |name, at, value| Field { name, at, value };
        vec![
            field("mode", 0, format!("0{:o}", self.mode)),
            field("nlink", 2, self.nlink.to_string()),
            field("inumber", 4, self.inumber.to_string()),
            field("size", 8, self.size.to_string()),
            field("atime", 16, time(&self.atime)),
            field("mtime", 24, time(&self.mtime)),
            field("ctime", 32, time(&self.ctime)),
            field("db", 40, format!("{:?}", self.db)),
            field("ib", 88, format!("{:?}", self.ib)),
            field("flags", 100, format!("{:#x}", self.flags)),
            field("blocks", 104, self.blocks.to_string()),
            field("generation", 108, self.generation.to_string()),
            field("uid", 112, self.uid.to_string()),
            field("gid", 116, self.gid.to_string()),
            field("modrev", 120, self.modrev.to_string()),
        ]
    }
}

/// The inodes of an inode block, in their order; places without an inode left out.
pub fn inodes_of_block(block: &[u8]) -> impl DoubleEndedIterator<Item = Dinode> + '_ {
    block.chunks_exact(DINODE_BYTES as usize).map(Dinode::decode).filter(|inode| inode.inumber != 0)
}

/// An inode in an inode block. Where it is there twice, the last one counts: NetBSD writes it again behind the first
/// when it has changed before the block is written.
pub fn find_inode(block: &[u8], ino: Ino) -> Option<Dinode> {
    inodes_of_block(block).rev().find(|inode| inode.ino() == ino)
}
