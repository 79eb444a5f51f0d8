//! Recovery of journaled Soft Updates: what the records in the log name is looked at, and nothing else.
//!
//! Soft Updates leave blocks and inodes marked as used that nothing has, links counted too high, a directory with two
//! names while it is being moved, and pointers beyond a file's end. Every change since the log's tail has a record, so
//! that all of these are named by one.
//!
//! 1. **Names.** Of each name in a record the disk says whether it is there. What an inode has besides is known from
//!    its last record: the links that it had in memory, less those names that memory had too. An inode without a name
//!    is freed; a directory that is freed takes its names with it.
//! 2. **Space.** Files that are freed, and files of which a record names fragments, are walked: fragments in records
//!    are used if one of them leads there, and free if not. What is beyond a file's end is cut.
//! 3. **Maps.** Bits of what was named are set, and the counts of these groups made anew; then summaries and totals.
//!
//! Groups are written first, then inodes and directories, then the header of the log: recovery that is crashed itself
//! finds what it needs, and does the same again.

use super::format::{HeaderFields, Ring};
use super::notes::{Note, Reference, Window};
use super::replayed::{Noted, Replayed};
use crate::format::{
    Csum, CsumTotal, DIRBLKSIZ, Dinode, DirEntry, Disk as _, FragAddr, Geometry, GroupNo, NDADDR, ROOT_INO, Version,
    flags, fresh_chunk, insert, parse_chunk,
};
use crate::image::{Located, decode_pointers, read_inode, write_inode};
use crate::planted::{Bug, Planted};
use crate::{CylinderGroup, FfsError};
use device::store::{read, write};
use kernel::Ino;
use std::collections::{BTreeMap, BTreeSet};
use ufs::indirect::way;

/// A name by place: the directory, its chunk, and the name.
type Place = (u32, u64, Box<[u8]>);

/// What the records say of a name.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// Whether memory had it at the end.
    added: bool,
    /// When it was last said.
    order: usize,
    /// Whether the disk has it.
    there: bool,
}

/// What the records say of an inode.
#[derive(Clone, Debug, Default)]
struct Known {
    is_dir: bool,
    /// Whether its map had it as used at the end.
    used: bool,
    links: i64,
    names: i64,
    places: BTreeMap<Place, Said>,
}

impl Known {
    /// `..` is a link to a directory, and no name of it.
    fn places(&self, parents: bool) -> impl Iterator<Item = (&Place, &Said)> {
        self.places.iter().filter(move |((.., name), _)| (**name == *b"..") == parents)
    }

    fn added(&self, parents: bool) -> i64 {
        self.places(parents).filter(|(_, said)| said.added).count() as i64
    }

    /// Names that no record is about, all of which are on the disk.
    fn other_names(&self) -> i64 {
        let names = if self.is_dir { self.names } else { self.links };
        names - self.added(false)
    }
}

struct Recovery<'a, 'b> {
    store: &'a mut Noted<'b>,
    g: Geometry,
    inodes: BTreeMap<u32, Dinode>,
    changed: BTreeSet<u32>,
    /// Chunks of directories by byte.
    chunks: BTreeMap<u64, Vec<u8>>,
    changed_chunks: BTreeSet<u64>,
    /// Indirect blocks by address.
    indirects: BTreeMap<u64, Vec<i64>>,
    changed_indirects: BTreeSet<u64>,
    known: BTreeMap<u32, Known>,
    /// Directories of groups in memory at the end.
    ndir: BTreeMap<u32, i64>,
    dead: BTreeSet<u32>,
    /// Fragments in records, and whether a file has them.
    named: BTreeMap<u64, bool>,
    /// Fragments of files that are freed.
    freed: Vec<(u64, u32)>,
    /// Blocks that may still be walked: sound files have no more than the file system.
    budget: u64,
}

/// Recovers by a window of records, and empties the log.
pub(super) fn recover(
    store: &mut Noted<'_>,
    located: &Located,
    ring: &Ring,
    header: &HeaderFields,
    window: &Window,
    planted: Planted,
) -> Result<Replayed, FfsError> {
    let g = located.geometry;
    let mut recovery = Recovery {
        store,
        g,
        inodes: BTreeMap::new(),
        changed: BTreeSet::new(),
        chunks: BTreeMap::new(),
        changed_chunks: BTreeSet::new(),
        indirects: BTreeMap::new(),
        changed_indirects: BTreeSet::new(),
        known: BTreeMap::new(),
        ndir: BTreeMap::new(),
        dead: BTreeSet::new(),
        named: BTreeMap::new(),
        freed: Vec::new(),
        budget: g.size_frags.saturating_mul(2),
    };
    let mut files = BTreeSet::new();
    for (order, note) in window.notes.iter().enumerate() {
        recovery.take(order, note, &mut files)?;
    }
    recovery.look()?;
    recovery.bury();
    recovery.one_name_each()?;
    recovery.count_links()?;
    recovery.walk_files(&files)?;
    if planted == Some(Bug::SujMapsLast) {
        recovery.write_files()?;
        recovery.store.flush();
    }
    let groups = recovery.groups()?;
    let freed = recovery.dead.len() as u64;
    let (mut sb, summaries) = recovery.totals(located, &groups)?;
    for (number, group) in &groups {
        let at = g.byte_of(g.group_block(GroupNo(*number)));
        write(recovery.store, at, &group.encode(&g))?;
    }
    write(recovery.store, g.byte_of(g.csaddr), &summaries)?;
    write(recovery.store, located.at_byte, &sb.encode())?;
    recovery.store.flush();
    recovery.write_files()?;
    recovery.store.flush();
    // The totals before the mark: a superblock is more than a sector.
    (sb.clean, sb.fmod) = (1, 0);
    sb.set_log_in_use(false);
    if sb.wide() {
        (sb.pendingblocks, sb.pendinginodes) = (0, 0);
        sb.flags &= !(flags::UNCLEAN | flags::NEEDSFSCK);
    }
    write(store, located.at_byte, &sb.encode())?;
    store.flush();
    let emptied = HeaderFields { tail: window.at % ring.sectors, seq: window.seq, orphans: 0, ..header.clone() };
    write(store, ring.header_at, &emptied.encode(ring.endian))?;
    store.flush();
    Ok(Replayed {
        transactions: window.batches,
        log_sectors: window.at - header.tail + 1,
        records: window.notes.len() as u64,
        orphans: freed,
        ..Replayed::default()
    })
}

impl Recovery<'_, '_> {
    // ---- what the records say

    fn take(&mut self, order: usize, note: &Note, files: &mut BTreeSet<u32>) -> Result<(), FfsError> {
        match note {
            Note::AddRef(of) => self.take_reference(order, of, true),
            Note::RemRef(of) => self.take_reference(order, of, false),
            Note::Number { ino, is_dir, used, ndir } => {
                self.group_has(*ino, *ndir);
                let known = self.known.entry(*ino).or_default();
                (known.is_dir, known.used, known.links, known.names) = (*is_dir, *used, 0, 0);
            }
            Note::NewBlock(space) | Note::FreeBlock(space) | Note::FreeFrag(space) => {
                if space.ino != 0 {
                    files.insert(space.ino);
                }
                let frags = u64::from(space.frags);
                if !i64::try_from(space.addr.0).is_ok_and(|addr| self.g.holds(addr, frags)) {
                    let problem = format!("a record of the log names {frags} fragments at {}", space.addr.0);
                    return Err(FfsError::Inode { ino: space.ino, problem });
                }
                self.named.extend((space.addr.0..space.addr.0 + frags).map(|frag| (frag, false)));
            }
        }
        Ok(())
    }

    fn group_has(&mut self, ino: u32, ndir: u32) {
        self.ndir.insert(self.g.group_of_ino(Ino(ino)).0, ndir.into());
    }

    fn take_reference(&mut self, order: usize, of: &Reference, added: bool) {
        self.group_has(of.ino, of.ndir);
        let known = self.known.entry(of.ino).or_default();
        (known.is_dir, known.used) = (of.is_dir, true);
        (known.links, known.names) = (of.links.into(), of.names.into());
        let place = (of.dir, of.chunk, of.name.clone());
        known.places.insert(place, Said { added, order, there: false });
    }

    // ---- the disk

    fn inode(&mut self, ino: u32) -> Result<Dinode, FfsError> {
        if let Some(inode) = self.inodes.get(&ino) {
            return Ok(inode.clone());
        }
        let inode = read_inode(&*self.store, &self.g, Ino(ino))?;
        self.inodes.insert(ino, inode.clone());
        Ok(inode)
    }

    fn put_inode(&mut self, ino: u32, inode: Dinode) {
        if self.inodes.get(&ino) != Some(&inode) {
            self.inodes.insert(ino, inode);
            self.changed.insert(ino);
        }
    }

    fn indirect(&mut self, ino: u32, pointer: i64) -> Result<Vec<i64>, FfsError> {
        let addr = self.checked(ino, pointer, self.g.frag)?;
        if let Some(pointers) = self.indirects.get(&addr) {
            return Ok(pointers.clone());
        }
        let bytes = read(&*self.store, self.g.byte_of(FragAddr(addr)), self.g.bsize as usize)?;
        let pointers = decode_pointers(&bytes, &self.g);
        self.indirects.insert(addr, pointers.clone());
        Ok(pointers)
    }

    fn checked(&self, ino: u32, pointer: i64, frags: u32) -> Result<u64, FfsError> {
        if self.g.holds(pointer, frags.into()) {
            return Ok(pointer.unsigned_abs());
        }
        Err(FfsError::Inode { ino, problem: format!("block pointer {pointer} is outside the file system") })
    }

    /// Where a block of a file is; 0 for a hole.
    fn pointer(&mut self, ino: u32, inode: &Dinode, lbn: u64) -> Result<i64, FfsError> {
        let n = self.g.nindir();
        let Some(way) = way(lbn, n) else { return Ok(inode.db.get(lbn as usize).copied().unwrap_or(0)) };
        let mut pointer = inode.ib.get(way.slot).copied().unwrap_or(0);
        let mut rest = lbn - NDADDR as u64;
        let mut span = n;
        for _ in 0..way.slot {
            rest -= span;
            span = span.saturating_mul(n);
        }
        for _ in 0..=way.slot {
            if pointer == 0 {
                return Ok(0);
            }
            span /= n;
            let pointers = self.indirect(ino, pointer)?;
            pointer = pointers.get((rest / span.max(1)) as usize).copied().unwrap_or(0);
            rest %= span.max(1);
        }
        Ok(pointer)
    }

    /// The byte of a chunk of a directory; `None` if the directory does not reach so far.
    fn chunk_at(&mut self, dir: u32, chunk: u64) -> Result<Option<u64>, FfsError> {
        let inode = self.inode(dir)?;
        if !inode.is_dir() || chunk >= inode.size || !chunk.is_multiple_of(DIRBLKSIZ as u64) {
            return Ok(None);
        }
        let pointer = self.pointer(dir, &inode, chunk >> self.g.bshift)?;
        if pointer == 0 {
            return Ok(None);
        }
        let addr = self.checked(dir, pointer, 1)?;
        let at = self.g.byte_of(FragAddr(addr)) + (chunk & u64::from(self.g.bsize - 1));
        if let std::collections::btree_map::Entry::Vacant(place) = self.chunks.entry(at) {
            place.insert(read(&*self.store, at, DIRBLKSIZ)?);
        }
        Ok(Some(at))
    }

    /// The entries of a chunk. One that is damaged is the full check's.
    fn entries(&mut self, dir: u32, chunk: u64) -> Result<Option<(u64, Vec<DirEntry>)>, FfsError> {
        let Some(at) = self.chunk_at(dir, chunk)? else { return Ok(None) };
        let bytes = self.chunks.get(&at).map(Vec::as_slice).unwrap_or_default();
        Ok(parse_chunk(bytes, self.g.dir_format(), at).ok().map(|entries| (at, entries)))
    }

    fn put_entries(&mut self, at: u64, entries: &[DirEntry]) {
        let format = self.g.dir_format();
        let mut chunk = fresh_chunk(format);
        for entry in entries {
            insert(&mut chunk, format, entry.ino, entry.kind, &entry.name);
        }
        self.chunks.insert(at, chunk);
        self.changed_chunks.insert(at);
    }

    fn leads_to(&mut self, (dir, chunk, name): &Place) -> Result<Option<u32>, FfsError> {
        let found = self.entries(*dir, *chunk)?;
        let entry = found.and_then(|(_, entries)| entries.into_iter().find(|entry| entry.name == **name));
        Ok(entry.map(|entry| entry.ino.0))
    }

    // ---- names

    /// Which of the names in the records the disk has.
    fn look(&mut self) -> Result<(), FfsError> {
        let inodes: Vec<u32> = self.known.keys().copied().collect();
        for ino in inodes {
            let places: Vec<Place> =
                self.known.get(&ino).map(|known| known.places.keys().cloned().collect()).unwrap_or_default();
            for place in places {
                let there = self.leads_to(&place)? == Some(ino);
                if let Some(said) = self.known.get_mut(&ino).and_then(|known| known.places.get_mut(&place)) {
                    said.there = there;
                }
            }
        }
        Ok(())
    }

    fn counts(&self, place: &Place, said: &Said) -> bool {
        said.there && !self.dead.contains(&place.0)
    }

    fn names_there(&self, known: &Known) -> i64 {
        known.places(false).filter(|(place, said)| self.counts(place, said)).count() as i64
    }

    /// Finds what has no name left. A directory takes those in it with it.
    fn bury(&mut self) {
        loop {
            let nameless = |(ino, known): (&u32, &Known)| {
                let gone = known.other_names() + self.names_there(known) <= 0 && *ino != ROOT_INO.0;
                (gone && !self.dead.contains(ino)).then_some(*ino)
            };
            let more: Vec<u32> = self.known.iter().filter_map(nameless).collect();
            if more.is_empty() {
                return;
            }
            self.dead.extend(more);
        }
    }

    /// A directory that was being moved keeps one name, and its `..` leads to where that is. Of a file's name that was
    /// being removed from one chunk and made in another, one is kept.
    fn one_name_each(&mut self) -> Result<(), FfsError> {
        let alive: Vec<u32> = self.known.keys().copied().filter(|ino| !self.dead.contains(ino)).collect();
        for ino in alive {
            let Some(known) = self.known.get(&ino) else { continue };
            let (is_dir, others) = (known.is_dir, known.other_names());
            let mut there: Vec<(Place, Said)> = known
                .places(false)
                .filter(|(place, said)| self.counts(place, said))
                .map(|(place, said)| (place.clone(), *said))
                .collect();
            // The one that was made last.
            there.sort_by_key(|(_, said)| std::cmp::Reverse((said.added, said.order)));
            let mut kept: Vec<Place> = Vec::new();
            for (place, _) in there {
                let second = match is_dir {
                    true => others > 0 || !kept.is_empty(),
                    false => kept.iter().any(|other| (other.0, &other.2) == (place.0, &place.2)),
                };
                if second {
                    self.take_out(ino, &place)?;
                } else {
                    kept.push(place);
                }
            }
            if let Some((parent, ..)) = kept.first().filter(|_| is_dir) {
                self.set_parent(ino, *parent)?;
            }
        }
        Ok(())
    }

    fn take_out(&mut self, ino: u32, place: &Place) -> Result<(), FfsError> {
        if let Some((at, mut entries)) = self.entries(place.0, place.1)? {
            entries.retain(|entry| entry.name != *place.2);
            self.put_entries(at, &entries);
        }
        if let Some(said) = self.known.get_mut(&ino).and_then(|known| known.places.get_mut(place)) {
            said.there = false;
        }
        Ok(())
    }

    fn set_parent(&mut self, dir: u32, parent: u32) -> Result<(), FfsError> {
        let Some((at, mut entries)) = self.entries(dir, 0)? else { return Ok(()) };
        let Some(entry) = entries.iter_mut().find(|entry| entry.name == b"..") else { return Ok(()) };
        if entry.ino.0 != parent {
            entry.ino = Ino(parent);
            self.put_entries(at, &entries);
            let place: Place = (dir, 0, b".."[..].into());
            for (ino, known) in &mut self.known {
                if let Some(said) = known.places.get_mut(&place) {
                    said.there = *ino == parent;
                }
            }
        }
        Ok(())
    }

    /// Link counts become what was found.
    fn count_links(&mut self) -> Result<(), FfsError> {
        let inodes: Vec<u32> = self.known.keys().copied().collect();
        for ino in inodes {
            let mut inode = self.inode(ino)?;
            if inode.file_type().is_none() || self.dead.contains(&ino) {
                continue;
            }
            let Some(known) = self.known.get(&ino) else { continue };
            let mut links = known.other_names() + self.names_there(known);
            if known.is_dir {
                // Its own `.`, and `..` of those in it.
                let others = known.links - known.names - known.added(true);
                let parents = known.places(true).filter(|(place, said)| self.counts(place, said)).count() as i64;
                links += 1 + others + parents;
            }
            inode.nlink = i16::try_from(links).unwrap_or(i16::MAX);
            self.put_inode(ino, inode);
        }
        Ok(())
    }

    // ---- space

    fn walk_files(&mut self, files: &BTreeSet<u32>) -> Result<(), FfsError> {
        let dead: Vec<u32> = self.dead.iter().copied().collect();
        for ino in dead {
            let inode = self.inode(ino)?;
            if inode.file_type().is_some() {
                self.walk(ino, inode, false)?;
                self.inodes.insert(ino, Dinode::default());
                self.changed.insert(ino);
            }
        }
        for ino in files.iter().filter(|ino| !self.dead.contains(ino)).copied().collect::<Vec<_>>() {
            let inode = self.inode(ino)?;
            if inode.file_type().is_some() {
                let inode = self.walk(ino, inode, true)?;
                self.put_inode(ino, inode);
            }
        }
        Ok(())
    }

    /// Goes over what a file has. What is beyond its end is cut.
    fn walk(&mut self, ino: u32, mut inode: Dinode, alive: bool) -> Result<Dinode, FfsError> {
        let g = self.g;
        if !inode.has_blocks(&g) {
            return Ok(inode);
        }
        let mut held = 0;
        for (lbn, pointer) in (0..).zip(&mut inode.db) {
            match g.block_bytes(inode.size, lbn) >> g.fshift {
                0 => *pointer = 0,
                frags => held += self.piece(ino, *pointer, frags, alive)?,
            }
        }
        let blocks = inode.size.div_ceil(g.bsize.into());
        let (mut first, mut span) = (NDADDR as u64, 1);
        for pointer in &mut inode.ib {
            held += self.tree(ino, pointer, (first, span), blocks, alive)?;
            span *= g.nindir();
            first += span;
        }
        for (lbn, pointer) in (0..).zip(inode.extb) {
            let frags = g.block_bytes(inode.extsize.into(), lbn) >> g.fshift;
            held += self.piece(ino, pointer, if frags == 0 { g.frag } else { frags }, alive)?;
        }
        inode.blocks = held * u64::from(g.fsize / 512);
        Ok(inode)
    }

    fn piece(&mut self, ino: u32, pointer: i64, frags: u32, alive: bool) -> Result<u64, FfsError> {
        if pointer == 0 {
            return Ok(0);
        }
        let addr = self.checked(ino, pointer, frags)?;
        let Some(budget) = self.budget.checked_sub(1) else {
            return Err(FfsError::Inode { ino, problem: "has more blocks than the file system".to_owned() });
        };
        self.budget = budget;
        let end = addr + u64::from(frags);
        if alive {
            self.named.range_mut(addr..end).for_each(|(_, used)| *used = true);
        } else {
            self.freed.push((addr, frags));
        }
        Ok(frags.into())
    }

    /// An indirect block whose pointers reach `span` blocks each, the first at `first`.
    fn tree(
        &mut self,
        ino: u32,
        pointer: &mut i64,
        (first, span): (u64, u64),
        blocks: u64,
        alive: bool,
    ) -> Result<u64, FfsError> {
        if *pointer == 0 {
            return Ok(0);
        }
        if first >= blocks {
            *pointer = 0;
            return Ok(0);
        }
        let mut held = self.piece(ino, *pointer, self.g.frag, alive)?;
        let was = self.indirect(ino, *pointer)?;
        let mut pointers = was.clone();
        for (n, place) in (0..).zip(&mut pointers).filter(|(_, place)| **place != 0) {
            let at = first + n * span;
            if at >= blocks {
                *place = 0;
            } else if span == 1 {
                held += self.piece(ino, *place, self.g.frag, alive)?;
            } else {
                held += self.tree(ino, place, (at, span / self.g.nindir()), blocks, alive)?;
            }
        }
        if pointers != was && alive {
            let addr = pointer.unsigned_abs();
            self.indirects.insert(addr, pointers);
            self.changed_indirects.insert(addr);
        }
        Ok(held)
    }

    // ---- maps

    /// The groups of what was named, as they are to be.
    fn groups(&mut self) -> Result<BTreeMap<u32, CylinderGroup>, FfsError> {
        let g = self.g;
        let mut groups = BTreeMap::new();
        for (addr, frags) in std::mem::take(&mut self.freed) {
            let Some(group) = self.group(&mut groups, g.group_of(FragAddr(addr)))? else { continue };
            let base = g.group_base(g.group_of(FragAddr(addr))).0;
            group.free.put_range((addr - base) as usize, frags as usize, true);
        }
        for (frag, used) in std::mem::take(&mut self.named) {
            let number = g.group_of(FragAddr(frag));
            let Some(group) = self.group(&mut groups, number)? else { continue };
            group.free.put((frag - g.group_base(number).0) as usize, !used);
        }
        for (ino, known) in std::mem::take(&mut self.known) {
            let number = g.group_of_ino(Ino(ino));
            let inode = self.inode(ino)?;
            let Some(group) = self.group(&mut groups, number)? else { continue };
            let used = inode.file_type().is_some();
            group.used_inodes.put((ino % g.ipg) as usize, used);
            let was = i64::from(known.used && known.is_dir);
            let ndir = self.ndir.entry(number.0).or_insert_with(|| group.cs.ndir.into());
            *ndir += i64::from(used && inode.is_dir()) - was;
        }
        for (number, group) in &mut groups {
            if let Some(ndir) = self.ndir.get(number) {
                group.h.cs.ndir = i32::try_from(*ndir).unwrap_or(0);
            }
            group.recount(&g);
        }
        Ok(groups)
    }

    fn group<'g>(
        &self,
        groups: &'g mut BTreeMap<u32, CylinderGroup>,
        number: GroupNo,
    ) -> Result<Option<&'g mut CylinderGroup>, FfsError> {
        if let std::collections::btree_map::Entry::Vacant(place) = groups.entry(number.0) {
            let at = self.g.byte_of(self.g.group_block(number));
            let bytes = read(&*self.store, at, self.g.cgsize as usize)?;
            place.insert(CylinderGroup::decode(&bytes, &self.g, at)?);
        }
        Ok(groups.get_mut(&number.0))
    }

    /// The superblock and the summaries, with these groups.
    fn totals(
        &self,
        located: &Located,
        groups: &BTreeMap<u32, CylinderGroup>,
    ) -> Result<(crate::Superblock, Vec<u8>), FfsError> {
        let g = &self.g;
        let mut summaries = read(&*self.store, g.byte_of(g.csaddr), g.cssize as usize)?;
        for (number, group) in groups {
            if let Some(place) = summaries.get_mut(*number as usize * Csum::BYTES..) {
                group.cs.encode(place, g.endian());
            }
        }
        let mut total = CsumTotal::default();
        for of_group in summaries.chunks_exact(Csum::BYTES).take(g.ncg as usize) {
            total.add(&Csum::decode(of_group, g.endian()));
        }
        let mut sb = located.sb.clone();
        sb.set_cstotal(&total);
        Ok((sb, summaries))
    }

    /// Inodes, directories and indirect blocks.
    fn write_files(&mut self) -> Result<(), FfsError> {
        for at in std::mem::take(&mut self.changed_chunks) {
            let bytes = self.chunks.get(&at).cloned().unwrap_or_default();
            write(self.store, at, &bytes)?;
        }
        let (endian, width) = (self.g.endian(), self.g.layout.version.pointer_bytes() as usize);
        for addr in std::mem::take(&mut self.changed_indirects) {
            let mut bytes = vec![0; self.g.bsize as usize];
            let pointers = self.indirects.get(&addr).map(Vec::as_slice).unwrap_or_default();
            for (n, pointer) in pointers.iter().enumerate() {
                match self.g.layout.version {
                    Version::Ufs1 => (*pointer as i32).put(endian, &mut bytes, n * width),
                    Version::Ufs2 => pointer.put(endian, &mut bytes, n * width),
                }
            }
            write(self.store, self.g.byte_of(FragAddr(addr)), &bytes)?;
        }
        for ino in std::mem::take(&mut self.changed) {
            if let Some(inode) = self.inodes.get(&ino) {
                write_inode(self.store, &self.g, Ino(ino), inode)?;
            }
        }
        Ok(())
    }
}
