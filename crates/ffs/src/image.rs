//! Reading images: finding the superblock, groups, inodes, blocks of files, directories, paths.

use crate::format::{
    CylinderGroup, Dinode, DirFormat, Disk, FragAddr, Geometry, GroupNo, Ino, Lbn, NDADDR, SB_SIZE_MAX, SF_SNAPSHOT,
    Superblock, SuperblockFields as F, UFS1_MAGIC, UFS2_MAGIC, Version,
};
use crate::log::format::{Ring, SECTOR};
use crate::{FfsError, FormatError, Store};
use device::store::{read, write};
use ufs::image::{At, EachPlace, Entry, Readable};

/// Where superblocks are looked for, in this order (`SBLOCKSEARCH`).
pub(crate) const SUPERBLOCK_PLACES: [u64; 4] = [65536, 8192, 0, 262144];
/// Where group 0 keeps its copy, for the usual block sizes: behind the standard place, rounded up to a block.
const COPY_PLACES: [u64; 7] = [16384, 32768, 65536, 73728, 81920, 98304, 131072];
/// How far into an image copies are searched for.
const SCAN_BYTES: u64 = 4 << 30;
/// Bytes of the magic number's place.
const MAGIC_AT: usize = 1372;

/// Which superblocks to accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// The standard places only.
    #[default]
    Standard,
    /// A group's copy as well, where no standard place has a sound one.
    Copies,
    /// The one at this byte.
    At(u64),
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
    /// The byte where the standard one belongs: other than `at_byte` where a copy had to be used.
    pub home_byte: u64,
}

/// Adjacent blocks of a file that are adjacent in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First block of the file.
    pub lbn: Lbn,
    /// Where it is.
    pub addr: FragAddr,
    /// Bytes of all of them, the last fragment whole.
    pub bytes: u64,
}

/// What is done with each piece of a file: its byte in the file, its bytes.
pub type EachPiece<'a> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), FfsError>;

/// What is done with each name of a tree: its path, its inode.
pub type EachName<'a> = &'a mut dyn FnMut(&[u8], Ino, &Dinode) -> Result<(), FfsError>;

/// A file system in an image.
#[derive(Debug)]
pub struct Image<S> {
    store: S,
    sb: Superblock,
    geometry: Geometry,
    sb_at: u64,
}

impl<S: Store> Image<S> {
    /// Finds the file system.
    pub fn open(store: S, search: Search) -> Result<Image<S>, FfsError> {
        let located = locate(&store as &dyn Store, search)?;
        Ok(Image { store, sb: located.sb, geometry: located.geometry, sb_at: located.at_byte })
    }

    /// The sectors of 512 bytes that the log lies in, its header first; `None` without one, or where its place makes no
    /// sense.
    pub fn log_sectors(&self) -> Option<std::ops::Range<u64>> {
        let ring = Ring::new(self.sb.log_place()?, &self.geometry).ok()?;
        Some(ring.header_at / SECTOR..ring.at_byte / SECTOR + ring.sectors)
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

    /// The bytes below.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Gives the bytes back.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Reads a cylinder group.
    pub fn group(&self, group: GroupNo) -> Result<CylinderGroup, FfsError> {
        let at = self.geometry.byte_of(self.geometry.group_block(group));
        let bytes = read(&self.store, at, self.geometry.cgsize as usize)?;
        Ok(CylinderGroup::decode(&bytes, &self.geometry, at)?)
    }

    /// Reads an inode, in use or not.
    pub fn inode(&self, ino: Ino) -> Result<Dinode, FfsError> {
        read_inode(&self.store, &self.geometry, ino)
    }

    /// Every stretch of blocks that a file has, in its order; holes are left out. Stops at the file's size.
    pub fn runs(
        &self,
        ino: Ino,
        inode: &Dinode,
        each: &mut dyn FnMut(Run) -> Result<(), FfsError>,
    ) -> Result<(), FfsError> {
        file_runs(&self.store, &self.geometry, ino, inode, each)
    }

    /// Hands over a file's data in order, as `(byte of the file, bytes)`, at most a megabyte at a time; holes are left
    /// out.
    pub fn data(&self, ino: Ino, inode: &Dinode, each: EachPiece<'_>) -> Result<(), FfsError> {
        ufs::image::data(self, ino, inode, each)
    }

    /// The entries of a directory, `.` and `..` among them.
    pub fn directory(&self, ino: Ino, inode: &Dinode) -> Result<Vec<Entry>, FfsError> {
        ufs::image::entries(self, ino, inode)
    }

    /// The target of a symbolic link.
    pub fn symlink(&self, ino: Ino, inode: &Dinode) -> Result<Vec<u8>, FfsError> {
        ufs::image::target(self, ino, inode)
    }

    /// The inode that a path names: see [`ufs::image::resolve`].
    pub fn resolve(&self, path: &[u8]) -> Result<(Ino, Dinode), FfsError> {
        ufs::image::resolve(self, path)
    }

    /// Every name below a directory: see [`ufs::image::walk`].
    pub fn walk(&self, from: Ino, each: EachName<'_>) -> Result<(), FfsError> {
        ufs::image::walk(self, from, each)
    }
}

impl<S: Store> Readable for Image<S> {
    type Inode = Dinode;
    type Error = FfsError;

    fn inode(&self, ino: Ino) -> Result<Dinode, FfsError> {
        read_inode(&self.store, &self.geometry, ino)
    }

    fn pieces(&self, ino: Ino, inode: &Dinode, max_bytes: u32, each: EachPlace<'_, FfsError>) -> Result<(), FfsError> {
        self.runs(ino, inode, &mut |run| {
            let from = run.lbn.0 << self.geometry.bshift;
            let len = (from + run.bytes).min(inode.size).saturating_sub(from);
            for done in (0..len).step_by(max_bytes.max(1) as usize) {
                let at = At { in_file: from + done, reported_byte: self.geometry.byte_of(run.addr) + done };
                each(at, &read(&self.store, at.reported_byte, (len - done).min(max_bytes.into()) as usize)?)?;
            }
            Ok(())
        })
    }

    fn short_target(&self, inode: &Dinode) -> Option<Vec<u8>> {
        inode.is_short_symlink(&self.geometry).then(|| {
            let mut area = inode.pointer_area(&self.geometry);
            area.truncate(usize::try_from(inode.size).unwrap_or(usize::MAX));
            area
        })
    }

    fn block_bytes(&self) -> u32 {
        self.geometry.bsize
    }

    fn dir_format(&self) -> DirFormat {
        self.geometry.dir_format()
    }

    fn damaged_chunk(_: Ino, error: FormatError) -> FfsError {
        error.into()
    }
}

/// Reads an inode.
pub(crate) fn read_inode<S: Store + ?Sized>(store: &S, g: &Geometry, ino: Ino) -> Result<Dinode, FfsError> {
    let Some(at) = g.inode_at(ino) else {
        let problem = format!("there are inodes 0 to {} only", g.inodes() - 1);
        return Err(FfsError::Inode { ino: ino.0, problem });
    };
    Ok(Dinode::decode(&read(store, at, g.layout.version.inode_bytes() as usize)?, g))
}

/// Writes an inode.
pub(crate) fn write_inode<S: Store + ?Sized>(
    store: &mut S,
    g: &Geometry,
    ino: Ino,
    inode: &Dinode,
) -> Result<(), FfsError> {
    match g.inode_at(ino) {
        Some(at) => Ok(write(store, at, &inode.encode(g))?),
        None => Err(FfsError::Inode { ino: ino.0, problem: "there is no such inode".to_owned() }),
    }
}

/// The pointers of an indirect block.
pub(crate) fn decode_pointers(bytes: &[u8], g: &Geometry) -> Vec<i64> {
    let width = g.layout.version.pointer_bytes() as usize;
    (0..bytes.len() / width).map(|i| decode_pointer(bytes, i, g)).collect()
}

fn decode_pointer(bytes: &[u8], i: usize, g: &Geometry) -> i64 {
    match g.layout.version {
        Version::Ufs1 => i32::get(g.endian(), bytes, i * 4).into(),
        Version::Ufs2 => i64::get(g.endian(), bytes, i * 8),
    }
}

/// Every stretch of blocks of a file, as [`Image::runs`] has it.
pub(crate) fn file_runs<S: Store + ?Sized>(
    store: &S,
    g: &Geometry,
    ino: Ino,
    inode: &Dinode,
    each: &mut dyn FnMut(Run) -> Result<(), FfsError>,
) -> Result<(), FfsError> {
    Mapper::new(store, g, ino, inode).file(each)
}

/// Follows a file's pointers.
struct Mapper<'a, S: ?Sized> {
    store: &'a S,
    g: &'a Geometry,
    ino: Ino,
    inode: &'a Dinode,
    /// The stretch being gathered.
    run: Option<Run>,
    /// Blocks that may still be read or mapped: a sound file has no more than the file system.
    budget: u64,
    /// It is a snapshot: where it has no copy, the file system is as it was.
    snapshot: bool,
}

impl<'a, S: Store + ?Sized> Mapper<'a, S> {
    fn new(store: &'a S, g: &'a Geometry, ino: Ino, inode: &'a Dinode) -> Mapper<'a, S> {
        let snapshot = inode.flags & SF_SNAPSHOT != 0 && inode.size == g.size_frags << g.fshift;
        let blocks = g.size_frags / u64::from(g.frag) + NDADDR as u64 + 1;
        // A snapshot shows every block, and has indirect blocks besides.
        Mapper { store, g, ino, inode, run: None, budget: if snapshot { 2 * blocks } else { blocks }, snapshot }
    }

    fn file(&mut self, each: &mut dyn FnMut(Run) -> Result<(), FfsError>) -> Result<(), FfsError> {
        if !self.inode.has_blocks(self.g) {
            return Ok(());
        }
        if self.inode.size > self.g.max_file_bytes() {
            return self.damaged(format!("size {} is more than {}", self.inode.size, self.g.max_file_bytes()));
        }
        let blocks = self.inode.size.div_ceil(self.g.bsize.into());
        for (lbn, pointer) in self.inode.db.iter().enumerate().take(blocks.min(NDADDR as u64) as usize) {
            self.block(lbn as u64, *pointer, each)?;
        }
        let mut first = NDADDR as u64;
        let mut span = 1;
        for (level, pointer) in self.inode.ib.iter().enumerate() {
            if first >= blocks {
                break;
            }
            self.indirect(level, first, span, *pointer, blocks, each)?;
            span *= self.g.nindir();
            first += span;
        }
        self.flush(each)
    }

    /// An indirect block: its pointers reach `span` blocks each, the first at `first`.
    fn indirect(
        &mut self,
        level: usize,
        first: u64,
        span: u64,
        pointer: i64,
        blocks: u64,
        each: &mut dyn FnMut(Run) -> Result<(), FfsError>,
    ) -> Result<(), FfsError> {
        if pointer == 0 {
            return Ok(());
        }
        self.spend()?;
        let addr = self.checked(pointer, self.g.frag.into())?;
        let bytes = read(self.store, self.g.byte_of(addr), self.g.bsize as usize)?;
        for i in 0..self.g.nindir() {
            let at = first + i * span;
            if at >= blocks {
                break;
            }
            let pointer = decode_pointer(&bytes, i as usize, self.g);
            if level == 0 {
                self.block(at, pointer, each)?;
            } else {
                self.indirect(level - 1, at, span / self.g.nindir(), pointer, blocks, each)?;
            }
        }
        Ok(())
    }

    fn block(
        &mut self,
        lbn: u64,
        pointer: i64,
        each: &mut dyn FnMut(Run) -> Result<(), FfsError>,
    ) -> Result<(), FfsError> {
        let mut bytes = u64::from(self.g.block_bytes(self.inode.size, lbn));
        let mut place = None;
        if self.snapshot && (0..=2).contains(&pointer) {
            if pointer > 0 {
                return Ok(()); // It was free.
            }
            let addr = lbn * u64::from(self.g.frag);
            bytes = bytes.min((self.g.size_frags - addr) << self.g.fshift);
            place = Some(FragAddr(addr));
        } else if pointer == 0 {
            return Ok(());
        }
        self.spend()?;
        let addr = place.map_or_else(|| self.checked(pointer, bytes >> self.g.fshift), Ok)?;
        if let Some(run) = &mut self.run {
            let follows_in_file = lbn << self.g.bshift == (run.lbn.0 << self.g.bshift) + run.bytes;
            if follows_in_file && addr.0 == run.addr.0 + (run.bytes >> self.g.fshift) {
                run.bytes += bytes;
                return Ok(());
            }
        }
        self.flush(each)?;
        self.run = Some(Run { lbn: Lbn(lbn), addr, bytes });
        Ok(())
    }

    fn flush(&mut self, each: &mut dyn FnMut(Run) -> Result<(), FfsError>) -> Result<(), FfsError> {
        self.run.take().map_or(Ok(()), each)
    }

    fn checked(&self, pointer: i64, frags: u64) -> Result<FragAddr, FfsError> {
        if self.g.holds(pointer, frags) {
            Ok(FragAddr(pointer.unsigned_abs()))
        } else {
            self.damaged(format!("block pointer {pointer} is outside the file system"))
        }
    }

    fn spend(&mut self) -> Result<(), FfsError> {
        match self.budget.checked_sub(1) {
            Some(rest) => {
                self.budget = rest;
                Ok(())
            }
            None => self.damaged("has more blocks than the file system".to_owned()),
        }
    }

    fn damaged<T>(&self, problem: String) -> Result<T, FfsError> {
        Err(FfsError::Inode { ino: self.ino.0, problem })
    }
}

/// Finds the superblock.
pub(crate) fn locate<S: Store + ?Sized>(store: &S, search: Search) -> Result<Located, FfsError> {
    let mut first_problem = None;
    if let Search::At(at) = search {
        return candidate(store, at)
            .map_err(FfsError::from)?
            .ok_or_else(|| FfsError::NoFileSystem(format!(", and none at byte {at} either")));
    }
    for at in SUPERBLOCK_PLACES {
        match candidate(store, at) {
            Ok(Some(located)) if located.home_byte == at => return Ok(located),
            Ok(_) => {}
            Err(error) => first_problem = first_problem.or(Some(error)),
        }
    }
    if search == Search::Copies {
        for at in COPY_PLACES {
            if let Ok(Some(located)) = candidate(store, at) {
                return Ok(located);
            }
        }
        if let Some(located) = scan(store) {
            return Ok(located);
        }
    }
    Err(match first_problem {
        Some(problem) => problem.into(),
        None if search == Search::Copies => FfsError::NoFileSystem(", and no copy of one".to_owned()),
        None => FfsError::NoFileSystem(String::new()),
    })
}

/// A superblock at a byte: none, a sound one, or what is wrong with it.
fn candidate<S: Store + ?Sized>(store: &S, at: u64) -> Result<Option<Located>, FormatError> {
    let Some(len) = store.len_bytes().checked_sub(at).filter(|rest| *rest >= 1376) else { return Ok(None) };
    let Ok(bytes) = read(store, at, len.min(SB_SIZE_MAX as u64) as usize) else { return Ok(None) };
    let Ok(sb) = Superblock::decode(&bytes, at) else { return Ok(None) };
    let geometry = sb.geometry(at)?;
    let needed = geometry.size_frags << geometry.fshift;
    if needed > store.len_bytes() {
        let problem = format!("{needed} bytes of file system in an image of {}", store.len_bytes());
        return Err(FormatError::field(
            "superblock",
            "size",
            at + if sb.wide() { F::size.at } else { F::old_size.at },
            problem,
        ));
    }
    if sb.hash_is_right() == Some(false) {
        return Err(FormatError::field(
            "superblock",
            F::ckhash.name,
            at + F::ckhash.at,
            "the check hash does not match",
        ));
    }
    let home_byte = home(&sb, &geometry, at);
    Ok(Some(Located { sb, geometry, at_byte: at, home_byte }))
}

/// The byte where the standard superblock belongs, given one found at `at`.
pub(crate) fn home(sb: &Superblock, g: &Geometry, at: u64) -> u64 {
    let is_copy = (0..g.ncg).any(|c| sb.copy_at(g, GroupNo(c)) == at);
    match u64::try_from(sb.sblockloc) {
        Ok(place) if sb.wide() && SUPERBLOCK_PLACES.contains(&place) && place != 0 => place,
        // UFS1 before it had that field: at 8192, unless found at 0; one at 65536 is a copy of blocks of 65536 bytes.
        _ if at == 0 && !is_copy => 0,
        _ if at == 8192 || is_copy || sb.layout.version == Version::Ufs1 => 8192,
        _ => at,
    }
}

/// Looks for a group's copy of the superblock at every sector.
fn scan<S: Store + ?Sized>(store: &S) -> Option<Located> {
    const WINDOW: u64 = 1 << 20;
    let magics = [UFS1_MAGIC, UFS2_MAGIC].map(|m| [m.to_le_bytes(), m.to_be_bytes()]).concat();
    let end = store.len_bytes().min(SCAN_BYTES);
    let mut at = 0;
    while at + 1376 <= end {
        let len = (end - at).min(WINDOW + MAGIC_AT as u64 + 4);
        let bytes = read(store, at, len as usize).ok()?;
        for sector in (0..WINDOW.min(len) as usize).step_by(512) {
            let magic = bytes.get(sector + MAGIC_AT..sector + MAGIC_AT + 4);
            if magic.is_some_and(|m| magics.iter().any(|known| known == m)) {
                let here = at + sector as u64;
                if let Ok(Some(located)) = candidate(store, here) {
                    let g = located.geometry;
                    if (0..g.ncg).any(|c| located.sb.copy_at(&g, GroupNo(c)) == here) {
                        return Some(located);
                    }
                }
            }
        }
        at += WINDOW;
    }
    None
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Version::Ufs1 => "UFS1",
            Version::Ufs2 => "UFS2",
        })
    }
}
