//! The buffer cache: which blocks are in memory, since when they are dirty, and whether they are on their way.
//!
//! It knows of a block that it is there, not what is in it: the file system has its structures in a form of its own,
//! and what processes wrote is kept beside ([`crate::payload`]) only where somebody will ask for it. Memory is counted
//! in bytes, so a fragment costs what it is.

mod index;
mod list;
mod policy;

pub(crate) use index::{Index, hash};
pub(crate) use list::{Links, List, NONE};
pub(crate) use policy::Policy;
pub use policy::Replacement;

use crate::program::IoId;
use crate::{BlockId, Contents, Ino, Pbn};

/// A block in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) id: BlockId,
    pub(crate) pbn: Pbn,
    pub(crate) bytes: u32,
    pub(crate) contents: Contents,
    /// Whether it differs from the disk, counting what is on its way there as arrived.
    pub(crate) dirty: bool,
    /// Whether its bytes are in the payload table.
    pub(crate) payload: bool,
    /// Whether nothing was ever put into it: it reads as zeros.
    pub(crate) blank: bool,
    /// The request that reads or writes it now.
    pub(crate) io: Option<IoId>,
    /// Its file's place in the table of files.
    file: u32,
}

/// What the cache knows of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct File {
    pub(crate) ino: Ino,
    clean: List,
    dirty: List,
    /// Blocks of it being read or written.
    pub(crate) under_way: u32,
    /// When its first dirty block became so; meaningful if it has one.
    pub(crate) dirty_since_ns: u64,
    class: Class,
}

/// What kind of file, for the syncer's delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    #[default]
    File,
    Directory,
    Device,
}

pub(crate) const CLASSES: [Class; 3] = [Class::File, Class::Directory, Class::Device];

/// How the cache is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Blocks asked for that were there.
    pub hits: u64,
    /// Blocks asked for that had to be read.
    pub misses: u64,
    /// Blocks read before they were asked for.
    pub prefetched: u64,
    /// Blocks given up to make room.
    pub evicted: u64,
}

#[inline]
fn hash_of(id: BlockId) -> u32 {
    // Blocks of a file and of its neighbours differ in the lowest bits of both.
    hash((id.lbn.0 as u64) ^ u64::from(id.ino.0).rotate_right(24))
}

/// The buffer cache.
#[derive(Clone, Debug)]
pub struct Cache {
    capacity_bytes: u64,
    bytes: u64,
    dirty_bytes: u64,
    buffers: Vec<Buffer>,
    free: Vec<u32>,
    index: Index,
    policy: Policy,
    /// Clean and dirty lists of each file run through these.
    of_file: Links,
    files: Vec<File>,
    free_files: Vec<u32>,
    file_index: Index,
    /// Files with dirty blocks, by class, in the order they became dirty.
    dirty_order: Links,
    dirty_files: [List; 3],
    pub(crate) counters: CacheCounters,
}

impl Cache {
    /// An empty cache.
    pub fn new(capacity_bytes: u64, replacement: Replacement) -> Cache {
        Cache {
            capacity_bytes,
            bytes: 0,
            dirty_bytes: 0,
            buffers: Vec::new(),
            free: Vec::new(),
            index: Index::default(),
            policy: Policy::new(replacement),
            of_file: Links::default(),
            files: Vec::new(),
            free_files: Vec::new(),
            file_index: Index::default(),
            dirty_order: Links::default(),
            dirty_files: [List::default(); 3],
            counters: CacheCounters::default(),
        }
    }

    /// Memory it may use.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Memory it uses.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Of that, dirty.
    pub fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes
    }

    /// Hits and misses.
    pub fn counters(&self) -> CacheCounters {
        self.counters
    }

    /// Whether a block is in memory, or being read.
    pub fn contains(&self, id: BlockId) -> bool {
        self.find(id).is_some()
    }

    /// Whether a block is in memory and dirty.
    pub fn is_dirty(&self, id: BlockId) -> bool {
        self.find(id).is_some_and(|slot| self.get(slot).dirty)
    }

    /// A block in memory: where it lies, and how long it is.
    pub fn block(&self, id: BlockId) -> Option<crate::Block> {
        let Buffer { id, pbn, bytes, contents, .. } = *self.get(self.find(id)?);
        Some(crate::Block { id, pbn, bytes, contents })
    }

    #[inline]
    pub(crate) fn find(&self, id: BlockId) -> Option<u32> {
        self.index.find(hash_of(id), |slot| self.buffers[slot as usize].id == id)
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Buffer {
        &self.buffers[slot as usize]
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Buffer {
        &mut self.buffers[slot as usize]
    }

    /// A block was used.
    #[inline]
    pub(crate) fn touch(&mut self, slot: u32) {
        self.policy.touch(slot);
    }

    /// Puts in a block that is not there, clean.
    pub(crate) fn insert(&mut self, block: &crate::Block) -> u32 {
        let file = self.file_of(block.id.ino);
        let buffer = Buffer {
            id: block.id,
            pbn: block.pbn,
            bytes: block.bytes,
            contents: block.contents,
            dirty: false,
            payload: false,
            blank: false,
            io: None,
            file,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.buffers[slot as usize] = buffer;
                slot
            }
            None => {
                self.buffers.push(buffer);
                (self.buffers.len() - 1) as u32
            }
        };
        self.index.insert(hash_of(block.id), slot);
        self.of_file.push(&mut self.files[file as usize].clean, slot);
        self.policy.insert(slot, block.bytes);
        self.bytes += u64::from(block.bytes);
        slot
    }

    #[inline]
    fn find_file(&self, ino: Ino) -> Option<u32> {
        self.file_index.find(hash(ino.0.into()), |file| self.files[file as usize].ino == ino)
    }

    fn file_of(&mut self, ino: Ino) -> u32 {
        if let Some(file) = self.find_file(ino) {
            return file;
        }
        let class = if ino == Ino::DEVICE { Class::Device } else { Class::File };
        let new = File { ino, class, ..File::default() };
        let file = match self.free_files.pop() {
            Some(file) => {
                self.files[file as usize] = new;
                file
            }
            None => {
                self.files.push(new);
                (self.files.len() - 1) as u32
            }
        };
        self.file_index.insert(hash(ino.0.into()), file);
        file
    }

    /// Takes out a block, whatever its state. A request that moves it goes on without it.
    pub(crate) fn remove(&mut self, slot: u32) {
        self.set_clean(slot);
        self.set_io(slot, None);
        let Buffer { id, bytes, file, .. } = self.buffers[slot as usize];
        let of = &mut self.files[file as usize];
        self.of_file.remove(&mut of.clean, slot);
        if of.clean.is_empty() && of.dirty.is_empty() {
            self.file_index.remove(hash(id.ino.0.into()), file);
            self.free_files.push(file);
        }
        self.index.remove(hash_of(id), slot);
        self.policy.remove(slot);
        self.bytes -= u64::from(bytes);
        self.free.push(slot);
    }

    /// Marks a block as different from the disk; says whether it was not.
    #[inline]
    pub(crate) fn set_dirty(&mut self, slot: u32, now_ns: u64) -> bool {
        let was_clean = !self.buffers[slot as usize].dirty;
        if was_clean {
            self.become_dirty(slot, now_ns);
        }
        was_clean
    }

    fn become_dirty(&mut self, slot: u32, now_ns: u64) {
        let buffer = &mut self.buffers[slot as usize];
        buffer.dirty = true;
        let Buffer { bytes, file, contents, id, .. } = *buffer;
        self.dirty_bytes += u64::from(bytes);
        let of = &mut self.files[file as usize];
        self.of_file.remove(&mut of.clean, slot);
        if of.dirty.is_empty() {
            of.dirty_since_ns = now_ns;
            if of.class != Class::Device {
                let directory = contents == Contents::Metadata && id.lbn.0 >= 0;
                of.class = if directory { Class::Directory } else { Class::File };
            }
            self.dirty_order.push(&mut self.dirty_files[of.class as usize], file);
        }
        self.of_file.push(&mut of.dirty, slot);
    }

    /// Marks a block as equal to the disk.
    pub(crate) fn set_clean(&mut self, slot: u32) {
        let buffer = &mut self.buffers[slot as usize];
        if !buffer.dirty {
            return;
        }
        buffer.dirty = false;
        let Buffer { bytes, file, .. } = *buffer;
        self.dirty_bytes -= u64::from(bytes);
        let of = &mut self.files[file as usize];
        self.of_file.remove(&mut of.dirty, slot);
        self.of_file.push(&mut of.clean, slot);
        if of.dirty.is_empty() {
            self.dirty_order.remove(&mut self.dirty_files[of.class as usize], file);
        }
    }

    /// Notes the request that moves a block, or that none does.
    pub(crate) fn set_io(&mut self, slot: u32, io: Option<IoId>) {
        let buffer = &mut self.buffers[slot as usize];
        let of = &mut self.files[buffer.file as usize];
        of.under_way = of.under_way + u32::from(io.is_some()) - u32::from(buffer.io.is_some());
        buffer.io = io;
    }

    /// Gives a block another length.
    pub(crate) fn resize(&mut self, slot: u32, bytes: u32) {
        let buffer = &mut self.buffers[slot as usize];
        let (old, new) = (u64::from(buffer.bytes), u64::from(bytes));
        buffer.bytes = bytes;
        self.bytes = self.bytes - old + new;
        if buffer.dirty {
            self.dirty_bytes = self.dirty_bytes - old + new;
        }
        self.policy.resize(slot, bytes);
    }

    /// What is known of a file that has blocks in memory.
    pub(crate) fn file(&self, ino: Ino) -> Option<&File> {
        self.find_file(ino).map(|file| &self.files[file as usize])
    }

    /// A file's dirty blocks, in the order they became so.
    pub(crate) fn dirty_of(&self, ino: Ino) -> impl Iterator<Item = u32> + '_ {
        let list = self.file(ino).map_or_else(List::default, |file| file.dirty);
        self.of_file.iter(list)
    }

    /// The names of a file's dirty blocks, in the order they became so.
    pub fn dirty_blocks(&self, ino: Ino) -> impl Iterator<Item = BlockId> + '_ {
        self.dirty_of(ino).map(|slot| self.get(slot).id)
    }

    /// All of a file's blocks.
    pub(crate) fn blocks_of(&self, ino: Ino) -> impl Iterator<Item = u32> + '_ {
        let (clean, dirty) = self.file(ino).map_or_else(Default::default, |file| (file.clean, file.dirty));
        self.of_file.iter(clean).chain(self.of_file.iter(dirty))
    }

    /// The file of a class that has been dirty for longest.
    pub(crate) fn longest_dirty(&self, class: Class) -> Option<&File> {
        let List { first, .. } = self.dirty_files[class as usize];
        (first != NONE).then(|| &self.files[first as usize])
    }

    /// Files of a class that have dirty blocks, in the order they became dirty.
    pub(crate) fn dirty_files_of(&self, class: Class) -> impl Iterator<Item = &File> + '_ {
        self.dirty_order.iter(self.dirty_files[class as usize]).map(|file| &self.files[file as usize])
    }

    /// All files with dirty blocks.
    pub(crate) fn dirty_files(&self) -> impl Iterator<Item = &File> + '_ {
        CLASSES.into_iter().flat_map(|class| self.dirty_files_of(class))
    }

    /// All dirty blocks.
    pub fn all_dirty_blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.dirty_files().flat_map(|file| self.dirty_blocks(file.ino))
    }

    /// Blocks in the order they would leave memory.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.policy.first(), |&slot| self.policy.after(slot))
    }

    /// The first block to leave memory.
    pub(crate) fn first_to_leave(&self) -> Option<u32> {
        self.policy.first()
    }

    /// The first block to leave becomes the last of its kind, without having been used.
    pub(crate) fn renew(&mut self, slot: u32) {
        self.policy.renew(slot);
    }

    /// How many blocks are in memory.
    pub fn blocks(&self) -> usize {
        self.index.len()
    }
}
