//! Reading images: the checkpoint, inodes, blocks of files, directories, paths.

use crate::blocks::{EachBlock, EachPiece, file_blocks, file_data};
use crate::format::{
    DIR_FORMAT, DIRBLKSIZ, Dinode, FragAddr, Geometry, IFILE_INO, Ino, LFS_MAGIC, ROOT_INO, SB_BYTES, SegNo,
    Superblock, entry_bytes, find_inode, parse_chunk,
};
use crate::planted::Planted;
use crate::{Ifile, LfsError, Store};
use device::store::read;
use std::collections::BTreeSet;

/// Which of the two checkpoints to begin with. Both superblocks must be whole for there to be a choice; where they have the
/// same serial number, the first counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpoint {
    /// The one with the higher serial number.
    #[default]
    Newer,
    /// The one with the lower serial number: what NetBSD mounts, rolling forward over the newer one.
    Older,
}

/// A superblock and where it was.
#[derive(Clone, Debug)]
pub struct Located {
    /// The superblock.
    pub sb: Superblock,
    /// What follows from it.
    pub geometry: Geometry,
    /// Its byte in the image.
    pub at_byte: u64,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its inode.
    pub ino: Ino,
    /// Its type as the directory has it.
    pub kind: u8,
    /// Its name.
    pub name: Vec<u8>,
}

/// What is done with each name of a tree: its path, its inode.
pub type EachName<'a> = &'a mut dyn FnMut(&[u8], Ino, &Dinode) -> Result<(), LfsError>;

/// A file system in an image, as of a checkpoint.
#[derive(Debug)]
pub struct Image<S> {
    pub(crate) store: S,
    pub(crate) sb: Superblock,
    pub(crate) geometry: Geometry,
    pub(crate) ifile: Ifile,
    sb_at: u64,
    /// The other checkpoint.
    other: Option<Located>,
    pub(crate) planted: Planted,
}

impl<S: Store> Image<S> {
    /// Finds the file system and reads its ifile. Where the checkpoint asked for is not complete, its ifile not being there, the
    /// other one will do. What was written after the checkpoint is not looked for: see [`Image::roll_forward`].
    pub fn open(store: S, checkpoint: Checkpoint) -> Result<Image<S>, LfsError> {
        let (located, other) = locate(&store, checkpoint)?;
        let read = |located: &Located| {
            let inode = inode_at(&store, &located.geometry, FragAddr(located.sb.idaddr), IFILE_INO)?;
            Ifile::read(&store, &located.geometry, inode)
        };
        let (Located { sb, geometry, at_byte }, ifile, other) = match (read(&located), other) {
            (Ok(ifile), other) => (located, ifile, other),
            (Err(LfsError::Io(error)), _) => return Err(error.into()),
            (Err(error), Some(other)) => {
                let ifile = read(&other).map_err(|_| error)?;
                (other, ifile, None)
            }
            (Err(error), None) => return Err(error),
        };
        Ok(Image { store, sb, geometry, ifile, sb_at: at_byte, other, planted: Planted::NONE })
    }

    /// Which segments are empty, clean or not, as both checkpoints know them: nothing that either leads to, with the log behind it, is in
    /// them. A checkpoint whose ifile cannot be read is none that anybody starts from.
    pub(crate) fn empty_segments(&self) -> Vec<bool> {
        let other = self.other.as_ref().and_then(|other| {
            let inode = inode_at(&self.store, &other.geometry, FragAddr(other.sb.idaddr), IFILE_INO).ok()?;
            Ifile::read(&self.store, &other.geometry, inode).ok()
        });
        let in_other = |segment: u32| {
            other.as_ref().and_then(|ifile| ifile.usage(SegNo(segment))).is_none_or(|usage| usage.nbytes == 0)
        };
        (0..).zip(&self.ifile.usage).map(|(segment, usage)| usage.nbytes == 0 && in_other(segment)).collect()
    }

    /// Breaks a rule of [roll-forward](Image::roll_forward), for tests that must find it.
    #[doc(hidden)]
    pub fn plant(&mut self, planted: Planted) {
        self.planted = planted;
    }

    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.sb
    }

    /// Its byte in the image.
    pub fn superblock_at(&self) -> u64 {
        self.sb_at
    }

    /// Sizes and places.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The ifile.
    pub fn ifile(&self) -> &Ifile {
        &self.ifile
    }

    /// The bytes below.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Gives everything back.
    pub fn into_parts(self) -> (S, Superblock, Ifile) {
        (self.store, self.sb, self.ifile)
    }

    /// Reads an inode that is in use.
    pub fn inode(&self, ino: Ino) -> Result<Dinode, LfsError> {
        if ino == IFILE_INO {
            return Ok(self.ifile.inode.clone());
        }
        match self.ifile.daddr(ino) {
            Some(addr) => inode_at(&self.store, &self.geometry, addr, ino),
            None => Err(LfsError::Inode { ino: ino.0, problem: "is not in use".to_owned() }),
        }
    }

    /// Every block that an inode points to, indirect ones before what they point to; holes are left out.
    pub fn blocks(&self, ino: Ino, inode: &Dinode, each: EachBlock<'_>) -> Result<(), LfsError> {
        file_blocks(&self.store, &self.geometry, ino, inode, each)
    }

    /// Hands over a file's data in order, as `(byte of the file, bytes)`, at most a megabyte at a time; holes are left out.
    pub fn data(&self, ino: Ino, inode: &Dinode, each: EachPiece<'_>) -> Result<(), LfsError> {
        file_data(&self.store, &self.geometry, ino, inode, 1 << 20, each)
    }

    /// The entries of a directory, `.` and `..` among them.
    pub fn directory(&self, ino: Ino, inode: &Dinode) -> Result<Vec<Entry>, LfsError> {
        let wrong = |problem: String| LfsError::Inode { ino: ino.0, problem };
        if !inode.is_dir() {
            return Err(wrong("is not a directory".to_owned()));
        }
        let mut entries = Vec::new();
        let mut expected = 0;
        file_data(&self.store, &self.geometry, ino, inode, self.geometry.bsize, &mut |at, bytes| {
            if at != expected {
                return Err(wrong(format!("directory with a hole at byte {expected}")));
            }
            expected += bytes.len() as u64;
            for (i, chunk) in bytes.chunks(DIRBLKSIZ).enumerate() {
                let parsed = parse_chunk(chunk, DIR_FORMAT, at + (i * DIRBLKSIZ) as u64)
                    .map_err(|error| wrong(format!("directory, in the file at {error}")))?;
                entries.extend(parsed.into_iter().map(|e| Entry { ino: e.ino, kind: e.kind, name: e.name }));
            }
            Ok(())
        })?;
        if expected < inode.size {
            return Err(wrong(format!("directory of {} bytes ends at byte {expected}", inode.size)));
        }
        Ok(entries)
    }

    /// The target of a symbolic link.
    pub fn symlink(&self, ino: Ino, inode: &Dinode) -> Result<Vec<u8>, LfsError> {
        if inode.is_short_symlink(self.geometry.maxsymlinklen) {
            let area = inode.pointer_area();
            return Ok(area.get(..inode.size as usize).unwrap_or(&area).to_vec());
        }
        if inode.size > u64::from(self.geometry.bsize) {
            return Err(LfsError::Inode { ino: ino.0, problem: format!("symbolic link of {} bytes", inode.size) });
        }
        let mut target = Vec::new();
        self.data(ino, inode, &mut |_, bytes| {
            target.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(target)
    }

    /// The inode that a path names, from the root on; symbolic links are not followed.
    pub fn resolve(&self, path: &[u8]) -> Result<(Ino, Dinode), LfsError> {
        let mut ino = ROOT_INO;
        let mut inode = self.inode(ino)?;
        for name in path.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
            let wrong = |problem: &str| LfsError::Path {
                path: String::from_utf8_lossy(path).into_owned(),
                problem: format!("{problem} ({})", String::from_utf8_lossy(name)),
            };
            if !inode.is_dir() {
                return Err(wrong("the name before this one is not a directory"));
            }
            let entries = self.directory(ino, &inode)?;
            let found = entries.iter().find(|e| e.name == name).ok_or_else(|| wrong("no such name in the image"))?;
            ino = found.ino;
            inode = self.inode(ino)?;
        }
        Ok((ino, inode))
    }

    /// Names that there is room for: a file system with more has directories that share their blocks.
    pub(crate) fn names_most(&self) -> u64 {
        self.geometry.byte_of(FragAddr(self.geometry.size_frags)) / entry_bytes(1) as u64
    }

    /// Every name below a directory, depth first, each directory's names in its order: `(path, inode number, inode)`. A
    /// directory that was seen already is an error, so that cycles end.
    pub fn walk(&self, from: Ino, each: EachName<'_>) -> Result<(), LfsError> {
        let inode = self.inode(from)?;
        each(b".", from, &inode)?;
        if !inode.is_dir() {
            return Ok(());
        }
        let mut seen = BTreeSet::from([from]);
        let mut names = self.names_most();
        let mut listing = |ino: Ino, inode: &Dinode| -> Result<std::vec::IntoIter<Entry>, LfsError> {
            let mut entries = self.directory(ino, inode)?;
            names = names.checked_sub(entries.len() as u64).ok_or_else(|| LfsError::Inode {
                ino: ino.0,
                problem: "with this directory there are more names than the file system has room for".to_owned(),
            })?;
            entries.retain(|e| e.name != b"." && e.name != b"..");
            Ok(entries.into_iter())
        };
        let mut stack = vec![(b".".to_vec(), listing(from, &inode)?)];
        while let Some((base, entries)) = stack.last_mut() {
            let Some(entry) = entries.next() else {
                stack.pop();
                continue;
            };
            let path = [base.as_slice(), b"/", &entry.name].concat();
            let inode = self.inode(entry.ino)?;
            each(&path, entry.ino, &inode)?;
            if inode.is_dir() {
                if !seen.insert(entry.ino) {
                    let problem = format!("directory with two names, one of them {}", String::from_utf8_lossy(&path));
                    return Err(LfsError::Inode { ino: entry.ino.0, problem });
                }
                let below = listing(entry.ino, &inode)?;
                stack.push((path, below));
            }
        }
        Ok(())
    }
}

/// Whether there is a superblock of this kind at the first one's place, sound or not; or where the one there says, if only it is torn.
pub fn is_lfs<S: Store + ?Sized>(store: &S) -> bool {
    read(store, Superblock::FIRST_AT, 4).is_ok_and(|bytes| bytes == LFS_MAGIC.to_le_bytes())
        || second_of_torn(store).is_some()
}

/// Reads an inode from the inode block at an address.
pub fn inode_at<S: Store + ?Sized>(store: &S, g: &Geometry, addr: FragAddr, ino: Ino) -> Result<Dinode, LfsError> {
    let wrong = |problem: String| LfsError::Inode { ino: ino.0, problem };
    if !g.within_segment(addr, g.ib_frags()) {
        return Err(wrong(format!("its inode block, at {addr}, does not lie within a segment")));
    }
    let block = read(store, g.byte_of(addr), g.ibsize as usize)?;
    find_inode(&block, ino).ok_or_else(|| wrong(format!("is not in its inode block, at {addr}")))
}

/// The superblock at a byte, with what follows from it.
pub fn superblock_at<S: Store + ?Sized>(store: &S, at_byte: u64) -> Result<Located, LfsError> {
    let sb = Superblock::decode(&read(store, at_byte, SB_BYTES)?, at_byte)?;
    let geometry = sb.geometry(at_byte)?;
    let needed = geometry.byte_of(FragAddr(geometry.size_frags));
    if needed > store.len_bytes() {
        let problem = format!("{needed} bytes of file system in an image of {}", store.len_bytes());
        return Err(ufs::FormatError::field("superblock", "size", at_byte + 8, problem).into());
    }
    Ok(Located { sb, geometry, at_byte })
}

/// Finds the superblocks that checkpoints go to: the one asked for, and the other. The first is at byte 8192, and says where the
/// second is.
pub fn locate<S: Store + ?Sized>(store: &S, checkpoint: Checkpoint) -> Result<(Located, Option<Located>), LfsError> {
    let first = match superblock_at(store, Superblock::FIRST_AT) {
        Ok(first) => first,
        // A first one that was being written when the power failed has its sizes and places still.
        Err(error) => return second_of_torn(store).map(|second| (second, None)).ok_or(error),
    };
    match second_of(store, &first) {
        Some(second) => {
            let second_wins = match checkpoint {
                Checkpoint::Newer => second.sb.serial > first.sb.serial,
                Checkpoint::Older => second.sb.serial < first.sb.serial,
            };
            Ok(if second_wins { (second, Some(first)) } else { (first, Some(second)) })
        }
        None => Ok((first, None)),
    }
}

/// The second superblock that the first one names, if it is whole and of the same file system.
fn second_of<S: Store + ?Sized>(store: &S, first: &Located) -> Option<Located> {
    let [_, addr, ..] = first.sb.sboffs;
    let second = superblock_at(store, first.geometry.byte_of(FragAddr(addr))).ok()?;
    (addr != 0 && second.geometry == first.geometry && second.sb.sboffs == first.sb.sboffs).then_some(second)
}

/// The second superblock where the first one is damaged but for its sizes and places.
fn second_of_torn<S: Store + ?Sized>(store: &S) -> Option<Located> {
    let bytes = read(store, Superblock::FIRST_AT, SB_BYTES).ok()?;
    let torn = crate::format::SuperblockFields::get(crate::format::ENDIAN, &bytes);
    let [_, addr, ..] = torn.sboffs;
    let at_byte = u64::from(addr).checked_mul(torn.fsize.into())?;
    let second = superblock_at(store, at_byte).ok()?;
    (second.sb.sboffs == torn.sboffs).then_some(second)
}
