//! Reading images: the checkpoint, inodes, blocks of files, directories, paths.

use crate::blocks::{EachBlock, EachPiece, file_blocks, file_data};
use crate::format::{
    DIR_FORMAT, Dinode, DirFormat, FragAddr, Geometry, IFILE_INO, Ino, LFS_MAGIC, SB_BYTES, SegNo, Superblock,
    SuperblockFields, entry_bytes, find_inode,
};
use crate::planted::{Bug, Planted};
use crate::{Ifile, LfsError, Store};
use device::store::read;
use ufs::FormatError;
use ufs::image::{At, EachPlace, Entry, Readable};

/// Which of the two checkpoints to begin with. Both superblocks must be whole for there to be a choice; where they have
/// the same serial number, the first counts.
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
    /// Finds the file system and reads its ifile. Where the checkpoint asked for is not complete, its ifile not being
    /// there, the other one will do. What was written after the checkpoint is not looked for: see
    /// [`Image::roll_forward`].
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

    /// Which segments are empty, clean or not, as both checkpoints know them: nothing that either leads to, with the
    /// log behind it, is in them. A checkpoint whose ifile cannot be read is none that anybody starts from.
    pub(crate) fn empty_segments(&self) -> Vec<bool> {
        let other = self.other.as_ref().and_then(|other| {
            let inode = inode_at(&self.store, &other.geometry, FragAddr(other.sb.idaddr), IFILE_INO).ok()?;
            Ifile::read(&self.store, &other.geometry, inode).ok()
        });
        let in_other = |segment: u32| {
            self.planted.has(Bug::EmptyByOne)
                || other.as_ref().and_then(|ifile| ifile.usage(SegNo(segment))).is_none_or(|usage| usage.nbytes == 0)
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

    /// Hands over a file's data in order, as `(byte of the file, bytes)`, at most a megabyte at a time; holes are left
    /// out.
    pub fn data(&self, ino: Ino, inode: &Dinode, each: EachPiece<'_>) -> Result<(), LfsError> {
        ufs::image::data(self, ino, inode, each)
    }

    /// The entries of a directory, `.` and `..` among them.
    pub fn directory(&self, ino: Ino, inode: &Dinode) -> Result<Vec<Entry>, LfsError> {
        ufs::image::entries(self, ino, inode)
    }

    /// The target of a symbolic link.
    pub fn symlink(&self, ino: Ino, inode: &Dinode) -> Result<Vec<u8>, LfsError> {
        ufs::image::target(self, ino, inode)
    }

    /// The inode that a path names: see [`ufs::image::resolve`].
    pub fn resolve(&self, path: &[u8]) -> Result<(Ino, Dinode), LfsError> {
        ufs::image::resolve(self, path)
    }

    /// Every name below a directory: see [`ufs::image::walk`].
    pub fn walk(&self, from: Ino, each: EachName<'_>) -> Result<(), LfsError> {
        ufs::image::walk(self, from, each)
    }
}

impl<S: Store> Readable for Image<S> {
    type Inode = Dinode;
    type Error = LfsError;

    fn inode(&self, ino: Ino) -> Result<Dinode, LfsError> {
        Image::inode(self, ino)
    }

    fn pieces(&self, ino: Ino, inode: &Dinode, max_bytes: u32, each: EachPlace<'_, LfsError>) -> Result<(), LfsError> {
        file_data(&self.store, &self.geometry, ino, inode, max_bytes, &mut |at, bytes| {
            each(At { in_file: at, reported_byte: at }, bytes)
        })
    }

    fn short_target(&self, inode: &Dinode) -> Option<Vec<u8>> {
        inode.is_short_symlink(self.geometry.maxsymlinklen).then(|| {
            let area = inode.pointer_area();
            area.get(..inode.size as usize).unwrap_or(&area).to_vec()
        })
    }

    fn block_bytes(&self) -> u32 {
        self.geometry.bsize
    }

    fn dir_format(&self) -> DirFormat {
        DIR_FORMAT
    }

    fn damaged_chunk(ino: Ino, error: FormatError) -> LfsError {
        LfsError::Inode { ino: ino.0, problem: format!("directory, in the file at {error}") }
    }

    fn names_most(&self) -> u64 {
        self.geometry.byte_of(FragAddr(self.geometry.size_frags)) / entry_bytes(1) as u64
    }
}

/// Whether there is a superblock of this kind at the first one's place, sound or not; or where the one there says, if
/// only it is torn.
pub fn is_lfs<S: Store + ?Sized>(store: &S) -> bool {
    read(store, Superblock::FIRST_AT, 4).is_ok_and(|bytes| bytes == LFS_MAGIC.to_le_bytes())
        || second_of_torn(store).is_some()
}

/// Reads an inode from the inode block at an address.
pub fn inode_at<S: Store + ?Sized>(store: &S, g: &Geometry, addr: FragAddr, ino: Ino) -> Result<Dinode, LfsError> {
    let damaged = |problem: String| LfsError::Inode { ino: ino.0, problem };
    if !g.within_segment(addr, g.ib_frags()) {
        return Err(damaged(format!("its inode block, at {addr}, does not lie within a segment")));
    }
    let block = read(store, g.byte_of(addr), g.ibsize as usize)?;
    find_inode(&block, ino).ok_or_else(|| damaged(format!("is not in its inode block, at {addr}")))
}

/// The superblock at a byte, with what follows from it.
pub fn superblock_at<S: Store + ?Sized>(store: &S, at_byte: u64) -> Result<Located, LfsError> {
    let sb = Superblock::decode(&read(store, at_byte, SB_BYTES)?, at_byte)?;
    let geometry = sb.geometry(at_byte)?;
    let needed = geometry.byte_of(FragAddr(geometry.size_frags));
    if needed > store.len_bytes() {
        let problem = format!("{needed} bytes of file system in an image of {}", store.len_bytes());
        return Err(FormatError::field("superblock", "size", at_byte + SuperblockFields::size.at, problem).into());
    }
    Ok(Located { sb, geometry, at_byte })
}

/// Finds the superblocks that checkpoints go to: the one asked for, and the other. The first is at byte 8192, and says
/// where the second is.
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
