//! Giving a file system a log.

use super::format::{HeaderFields, Ring};
use super::replay::LogState;
use super::{LOG_NAME, OPERATION_BLOCKS};
use crate::format::{Dinode, FileType, FragAddr, LogPlace, NDADDR, ROOT_INO, Version};
use crate::policy::Options;
use crate::volume::inodes::{Body, Node, Own};
use crate::volume::pointers::{Indirects, Leaf, way};
use crate::{Ffs, FfsError, Image, Search};
use device::store::{Store, write};
use kernel::Ino;
use ufs::directory::Slot;
use ufs::live::{Backing as _, Files as _};

/// Of the file system, where nobody says how large the log is to be: one part in so many.
const SHARE: u64 = 64;
/// Flags of the log's inode (`SF_IMMUTABLE`, `SF_NOUNLINK`, `UF_NODUMP`): BSD lets nobody change or dump it.
const FLAGS: u32 = 0x0002_0000 | 0x0010_0000 | 1;

/// Gives the file system in a store a log, if it has none. `bytes` is how large it is to be; `None` for a share of the
/// whole.
///
/// # Errors
/// The file system is damaged, has no room for a log in one piece, or cannot be written to. Where that fails in the
/// midst, it is marked as not unmounted: a repair puts it right.
pub fn make<S: Store>(store: &mut S, bytes: Option<u64>) -> Result<(), FfsError> {
    make_in_any(store, bytes)
}

fn make_in_any(mut store: &mut dyn Store, bytes: Option<u64>) -> Result<(), FfsError> {
    let image = Image::open(&mut *store, Search::Standard)?;
    if image.superblock().log_place().is_some() {
        return Ok(());
    }
    let mut volume = Ffs::load(&image, Options::default())?;
    let mut unclean = image.superblock().clone();
    unclean.clean = 0;
    drop(image);
    volume.make_log(bytes)?;
    let Some(place) = volume.sb.log_place() else { return Ok(()) };
    let ring = Ring::new(place, &volume.g)?;
    // What is left half done is repaired by the full check, and mounted by nobody before.
    write(store, volume.sb_at, &unclean.encode())?;
    // The header is there before the superblock says so.
    if let Some(log) = &volume.log {
        write(store, ring.header_at, &header(log).encode(ring.endian))?;
    }
    volume.store(&mut store, None)
}

/// The header of an empty log.
fn header(log: &LogState) -> HeaderFields {
    HeaderFields { id: log.id, sectors: log.sectors, tail: log.at, seq: log.seq, ..HeaderFields::default() }
}

/// Blocks of the smallest log: one for the header, and room for two operations with all they may change.
fn fewest_blocks(groups: u32) -> u64 {
    4 + 2 * (OPERATION_BLOCKS + u64::from(groups))
}

impl Ffs {
    /// Gives a file system that is not mounted a log, in memory: see [`make`]. Nothing is done where there is one.
    ///
    /// # Errors
    /// There is no room for it in one piece.
    pub fn make_log(&mut self, bytes: Option<u64>) -> Result<(), FfsError> {
        if self.log.is_some() {
            return Ok(());
        }
        let g = self.g;
        let refused = |why: String| FfsError::Options(format!("a log: {why}"));
        if !self.sb.wide() {
            return Err(refused("the superblock of this old format has no place for where it lies".to_owned()));
        }
        let fewest = fewest_blocks(g.ncg);
        let there = u64::from(self.space.longest_run());
        let wanted = match bytes {
            Some(bytes) => bytes >> g.bshift,
            None => (g.size_frags / u64::from(g.frag) / SHARE).max(fewest).min(there.max(fewest)),
        };
        if wanted < fewest {
            let (least, asked) = (fewest << g.bshift, bytes.unwrap_or(0));
            return Err(refused(format!("{asked} bytes are too few; this file system needs at least {least}")));
        }
        let none = || {
            let (asked, most) = (wanted << g.bshift, there << g.bshift);
            refused(format!("{asked} bytes in one piece are not free; the longest piece has {most}"))
        };
        let (ino, first, blocks) = match self.log_left_half_made(fewest) {
            Some(left) => left,
            None => {
                let blocks = u32::try_from(wanted).map_err(|_| none())?;
                let first = self.space.take_run(blocks).ok_or_else(none)?;
                (self.log_file(first, blocks)?, first, blocks)
            }
        };
        let place = LogPlace { ino: ino.0, first, frags: blocks * g.frag };
        self.sb.set_log_place(place);
        let ring = Ring::new(place, &g)?;
        let id = u64::from(self.sb.id[0] as u32) << 32
            | u64::from(self.generation_of(ino)) ^ u64::from(self.sb.id[1] as u32);
        let header = HeaderFields { id, sectors: ring.sectors, seq: 1, ..HeaderFields::default() };
        self.log = Some(LogState::of(&ring, &header));
        Ok(())
    }

    /// The file of a log that was made before, to which the superblock does not lead: a crash came in between. Its
    /// inode, its first fragment, and its blocks.
    fn log_left_half_made(&self, fewest: u64) -> Option<(Ino, FragAddr, u32)> {
        let ino = self.directory(ROOT_INO).ok()?.find(LOG_NAME.as_bytes())?.ino;
        let node = self.inodes.get(ino)?;
        let blocks = u32::try_from(node.d.size >> self.g.bshift).ok()?;
        let first = node.piece(0, &self.sizes())?.addr;
        let follows = |lbn: u32| {
            let addr = first + i64::from(lbn) * i64::from(self.g.frag);
            node.piece(lbn.into(), &self.sizes()).is_some_and(|piece| piece.addr == addr && piece.bytes == self.g.bsize)
        };
        let ours = node.d.file_type() == Some(FileType::Regular)
            && node.d.flags == FLAGS
            && u64::from(blocks) >= fewest
            && node.d.size == u64::from(blocks) << self.g.bshift
            && (0..blocks).all(follows);
        ours.then_some((Ino(ino), FragAddr(first.unsigned_abs()), blocks))
    }

    fn generation_of(&self, ino: Ino) -> u32 {
        self.inodes.get(ino.0).map_or(0, |node| node.d.generation)
    }

    /// A file with these blocks, and a name in the root directory.
    fn log_file(&mut self, first: FragAddr, blocks: u32) -> Result<Ino, FfsError> {
        let g = self.g;
        let full = || FfsError::Options("a log: the file system has no room for its file".to_owned());
        let mut node = Node {
            d: Dinode {
                mode: FileType::Regular.mode_bits() | 0o400,
                nlink: 1,
                size: u64::from(blocks) << g.bshift,
                flags: FLAGS,
                ..Dinode::default()
            },
            indirects: None,
            body: Body::File,
            own: Own::default(),
        };
        let n = g.nindir();
        let mut held = u64::from(blocks);
        for lbn in 0..u64::from(blocks) {
            let addr = first.plus(lbn * u64::from(g.frag)).0 as i64;
            let Some(way) = way(lbn, n) else {
                if let Some(place) = node.d.db.get_mut(lbn as usize).filter(|_| lbn < NDADDR as u64) {
                    *place = addr;
                }
                continue;
            };
            let indirects = node.indirects.get_or_insert_with(|| Box::new(Indirects::default()));
            for (level, number) in way.numbers.iter().copied().enumerate().take(way.slot + 1) {
                if indirects.addr(number, n) != 0 {
                    continue;
                }
                let made = self.space.allocate(self.space.group_of(first), FragAddr(0), g.frag, &mut |_| {});
                let made = made.ok_or_else(full)?.0 as i64;
                held += 1;
                if level == way.slot {
                    indirects.leaves.insert(way.leaf, Leaf { addr: made, pointers: Vec::new() });
                } else {
                    indirects.upper.insert(number, made);
                }
                if let Some(place) = node.d.ib.get_mut(way.slot).filter(|_| level == 0) {
                    *place = made;
                }
            }
            if let Some(leaf) = indirects.leaves.get_mut(&way.leaf) {
                leaf.pointers.push(addr);
            }
        }
        node.d.blocks = held * u64::from(g.bsize / 512);
        let ino = self.space.allocate_inode(Ino(0), false, &mut |_| {}).ok_or_else(full)?;
        node.d.generation = self.new_generation();
        let root = self.inodes.get(ROOT_INO.0).map(|root| root.d.mtime).unwrap_or_default();
        (node.d.atime, node.d.mtime, node.d.ctime) = (root, root, root);
        if g.layout.version == Version::Ufs2 {
            node.d.birthtime = root;
        }
        self.inodes.insert(ino.0, node);
        let taken = || FfsError::Options(format!("a log: the name {LOG_NAME} is taken in the root directory"));
        let directory = self.directory_mut(ROOT_INO).map_err(|_| full())?;
        if directory.find(LOG_NAME.as_bytes()).is_some() {
            return Err(taken());
        }
        let slot = directory.slot(LOG_NAME.len());
        if slot == Slot::Append {
            return Err(FfsError::Options("a log: the root directory has no room for its name".to_owned()));
        }
        directory.enter(slot, LOG_NAME.as_bytes(), ino.0, FileType::Regular.entry_type());
        Ok(ino)
    }

    /// The log's own file: nobody may change it.
    pub(crate) fn is_log(&self, ino: Ino) -> bool {
        self.log.is_some() && self.sb.log_place().is_some_and(|place| place.ino == ino.0)
    }

    /// Inodes in use that have no name.
    pub(crate) fn without_a_name(&self) -> Vec<Ino> {
        self.inodes.iter().filter(|(_, node)| node.d.nlink <= 0).map(|(ino, _)| Ino(ino)).collect()
    }
}
