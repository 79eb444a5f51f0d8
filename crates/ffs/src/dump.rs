//! What is in an image, structure by structure, for people and programs to look at.

use crate::format::{CylinderGroup, Endian, Field, FileType, FragAddr, GroupNo, Ino, Version};
use crate::{FfsError, Image, Store};
use serde::Serialize;
pub use ufs::image::{DirectoryDump, EntryRow};

/// A superblock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuperblockDump {
    /// Its byte in the image.
    pub at_byte: u64,
    /// Format.
    pub version: Version,
    /// Byte order.
    pub endian: Endian,
    /// Whether the wide fields of UFS1 are in use; always in UFS2.
    pub wide_fields: bool,
    /// Bytes of the copies in the groups.
    pub copies_at: Vec<u64>,
    /// Every field with its byte in the superblock.
    pub fields: Vec<Field>,
}

/// One line of a list of groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupRow {
    /// Which.
    pub group: u32,
    /// Its byte in the image.
    pub at_byte: u64,
    /// First fragment.
    pub base: u64,
    /// Fragments.
    pub frags: u32,
    /// Directories.
    pub ndir: i32,
    /// Free whole blocks.
    pub nbfree: i32,
    /// Free inodes.
    pub nifree: i32,
    /// Free fragments outside whole free blocks.
    pub nffree: i32,
}

/// A cylinder group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupDump {
    /// Which.
    pub group: u32,
    /// Its byte in the image.
    pub at_byte: u64,
    /// First fragment.
    pub base: u64,
    /// Its header.
    pub fields: Vec<Field>,
    /// Runs of free blocks by length, from 1; the last counts that length and more.
    pub cluster_sum: Vec<u32>,
    /// Inodes in use, as first and last of each run.
    pub used_inodes: Vec<(u32, u32)>,
    /// Free fragments.
    pub free: Vec<FreeRun>,
}

/// Free fragments that are adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FreeRun {
    /// Their group.
    pub group: u32,
    /// The first.
    pub addr: u64,
    /// How many.
    pub frags: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A stretch of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunRow {
    /// First block of the file.
    pub lbn: u64,
    /// First fragment.
    pub addr: u64,
    /// Its group.
    pub group: u32,
    /// Bytes, the last fragment whole.
    pub bytes: u64,
}

/// An inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InodeDump {
    /// Which.
    pub ino: u32,
    /// Its byte in the image.
    pub at_byte: u64,
    /// Its group.
    pub group: u32,
    /// What it is; none where its mode says nothing known, or it is not in use.
    pub file_type: Option<FileType>,
    /// Its fields.
    pub fields: Vec<Field>,
    /// Where its data is.
    pub runs: Vec<RunRow>,
    /// Where the extended attributes of a UFS2 inode are; `lbn` counts their blocks.
    pub extended: Vec<RunRow>,
    /// The target of a symbolic link, escaped.
    pub target: Option<String>,
}

impl<S: Store> Image<S> {
    /// The superblock.
    pub fn dump_superblock(&self) -> SuperblockDump {
        let (sb, g) = (self.superblock(), self.geometry());
        SuperblockDump {
            at_byte: self.superblock_at(),
            version: g.layout.version,
            endian: g.endian(),
            wide_fields: sb.wide(),
            copies_at: (0..g.ncg).map(|c| sb.copy_at(g, GroupNo(c))).collect(),
            fields: sb.fields(),
        }
    }

    /// A line for each group.
    pub fn dump_groups(&self) -> Result<Vec<GroupRow>, FfsError> {
        let g = self.geometry();
        let row = |c: u32| {
            let group = self.group(GroupNo(c))?;
            let crate::format::Csum { ndir, nbfree, nifree, nffree } = group.cs;
            let (at_byte, base) = (g.byte_of(g.group_block(GroupNo(c))), g.group_base(GroupNo(c)).0);
            Ok(GroupRow { group: c, at_byte, base, frags: group.ndblk, ndir, nbfree, nifree, nffree })
        };
        (0..g.ncg).map(row).collect()
    }

    /// One group.
    pub fn dump_group(&self, number: GroupNo) -> Result<GroupDump, FfsError> {
        let g = self.geometry();
        if number.0 >= g.ncg {
            let problem = format!("there are cylinder groups 0 to {} only", g.ncg - 1);
            return Err(FfsError::Path { path: format!("group {number}"), problem });
        }
        let group = self.group(number)?;
        let first = number.0 * g.ipg;
        let used = stretches(g.ipg, |i| group.used_inodes.get(i as usize));
        Ok(GroupDump {
            group: number.0,
            at_byte: g.byte_of(g.group_block(number)),
            base: g.group_base(number).0,
            fields: group.fields(),
            cluster_sum: group.cluster_sum.iter().skip(1).copied().collect(),
            used_inodes: used.into_iter().map(|(from, n)| (first + from, first + from + n - 1)).collect(),
            free: self.free_runs(number, &group),
        })
    }

    /// Free fragments of the whole file system, those that touch across groups not joined.
    pub fn dump_free(&self) -> Result<Vec<FreeRun>, FfsError> {
        let mut free = Vec::new();
        for c in (0..self.geometry().ncg).map(GroupNo) {
            free.extend(self.free_runs(c, &self.group(c)?));
        }
        Ok(free)
    }

    fn free_runs(&self, number: GroupNo, group: &CylinderGroup) -> Vec<FreeRun> {
        let g = self.geometry();
        let base = g.group_base(number).0;
        stretches(g.group_frags(number), |i| group.free.get(i as usize))
            .into_iter()
            .map(|(from, n)| FreeRun {
                group: number.0,
                addr: base + u64::from(from),
                frags: n.into(),
                bytes: u64::from(n) << g.fshift,
            })
            .collect()
    }

    /// An inode, in use or not.
    pub fn dump_inode(&self, ino: Ino) -> Result<InodeDump, FfsError> {
        let g = self.geometry();
        let inode = self.inode(ino)?;
        let mut runs = Vec::new();
        self.runs(ino, &inode, &mut |run| {
            let group = g.group_of(FragAddr(run.addr.0)).0;
            runs.push(RunRow { lbn: run.lbn.0, addr: run.addr.0, group, bytes: run.bytes });
            Ok(())
        })?;
        let row = |(lbn, addr): (u64, i64)| {
            let bytes = u64::from(g.block_bytes(inode.extsize.into(), lbn));
            g.holds(addr, bytes >> g.fshift).then(|| {
                let addr = addr.unsigned_abs();
                RunRow { lbn, addr, group: g.group_of(FragAddr(addr)).0, bytes }
            })
        };
        let extended = (0..).zip(inode.extb).filter(|(_, addr)| *addr != 0).filter_map(row).collect();
        let file_type = inode.file_type();
        let target = match file_type {
            Some(FileType::Symlink) => Some(crate::text::escaped(&self.symlink(ino, &inode)?)),
            _ => None,
        };
        let (at_byte, group) = (g.inode_at(ino).unwrap_or_default(), g.group_of_ino(ino).0);
        Ok(InodeDump { ino: ino.0, at_byte, group, file_type, fields: inode.fields(g), runs, extended, target })
    }

    /// A directory.
    pub fn dump_directory(&self, ino: Ino) -> Result<DirectoryDump, FfsError> {
        ufs::image::dump_directory(self, ino)
    }
}

/// Runs of numbers below `end` for which `is` holds: first and length.
fn stretches(end: u32, is: impl Fn(u32) -> bool) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for i in (0..end).filter(|i| is(*i)) {
        match found.last_mut() {
            Some((from, n)) if *from + *n == i => *n += 1,
            _ => found.push((i, 1)),
        }
    }
    found
}
