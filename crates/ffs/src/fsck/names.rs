//! Phase 2: what directories say. Phase 3: whether every directory hangs from the root. Phase 4: link counts.

use super::{Check, DirInfo, Finding, Kind, Known, Phase, Place};
use crate::format::{
    DIRBLKSIZ, Dinode, DirEntry, DirFormat, FileType, FragAddr, Ino, NDADDR, ROOT_INO, RawEntry, Time, Version,
    entry_bytes, fresh_chunk, insert, parse_chunk, remove,
};
use crate::image::{decode_pointers, file_runs};
use crate::{FfsError, Store};
use device::store::{read, write};
use std::collections::{BTreeMap, BTreeSet};

/// The type that marks a hidden name, and the inode number it has.
const WHITEOUT: (u8, u32) = (0o16, 1);
/// Bytes of an entry's head.
const HEAD: usize = 8;

/// What can be read of a chunk.
pub(super) struct Lenient {
    pub(super) entries: Vec<DirEntry>,
    /// Something was not as it should be.
    pub(super) damaged: bool,
}

/// Reads a chunk as far as it can be read: where an entry does not lead on to the next, reading goes on at the next
/// place from which entries lead exactly to the end.
pub(super) fn lenient(chunk: &[u8], format: DirFormat, inodes: u32) -> Lenient {
    let mut found = Lenient { entries: Vec::new(), damaged: false };
    let mut at = 0;
    while at < chunk.len() {
        let head = RawEntry::get(chunk, at, format);
        if head.leads_on(at, chunk.len()) && (head.ino == 0 || sound_name(chunk, at, &head)) {
            if head.ino != 0 {
                let name = name_at(chunk, at, head.namlen.into()).to_vec();
                found.entries.push(DirEntry { at, ino: Ino(head.ino), kind: head.kind, name });
            }
            at += usize::from(head.reclen);
            continue;
        }
        found.damaged = true;
        let next = (at + HEAD + 4..chunk.len())
            .step_by(4)
            .find(|next| leads_to_end(chunk, *next, format, inodes))
            .unwrap_or(chunk.len());
        if let Some(name) = salvaged_name(chunk, at, &head, next).filter(|_| head.ino != 0 && head.ino < inodes) {
            found.entries.push(DirEntry { at, ino: Ino(head.ino), kind: head.kind, name });
        }
        at = next;
    }
    found
}

fn name_at(chunk: &[u8], at: usize, len: usize) -> &[u8] {
    chunk.get(at + HEAD..at + HEAD + len).unwrap_or_default()
}

/// Whether an entry's name fits it, can be a name, and ends in a zero byte.
fn sound_name(chunk: &[u8], at: usize, head: &RawEntry) -> bool {
    let len = usize::from(head.namlen);
    entry_bytes(len) <= usize::from(head.reclen)
        && name_at(chunk, at, len).len() == len
        && crate::format::name_problem(name_at(chunk, at, len)).is_none()
        && chunk.get(at + HEAD + len) == Some(&0)
}

/// The name of an entry that is damaged, by its length or else up to its zero byte; it must end before `next`.
fn salvaged_name(chunk: &[u8], at: usize, head: &RawEntry, next: usize) -> Option<Vec<u8>> {
    let room = chunk.get(at + HEAD..next)?;
    let by_length = usize::from(head.namlen);
    let by_zero = room.iter().position(|b| *b == 0)?;
    let len = if room.get(by_length) == Some(&0) { by_length.min(by_zero) } else { by_zero };
    let name = room.get(..len)?;
    crate::format::name_problem(name).is_none().then(|| name.to_vec())
}

fn leads_to_end(chunk: &[u8], mut at: usize, format: DirFormat, inodes: u32) -> bool {
    while at < chunk.len() {
        let head = RawEntry::get(chunk, at, format);
        let sound = head.ino == 0 || head.ino < inodes && sound_name(chunk, at, &head);
        if !head.leads_on(at, chunk.len()) || !sound {
            return false;
        }
        at += usize::from(head.reclen);
    }
    true
}

/// A chunk with these entries; those that find no room in it.
fn packed(entries: &[DirEntry], format: DirFormat) -> (Vec<u8>, Vec<DirEntry>) {
    let mut chunk = fresh_chunk(format);
    let over = entries.iter().filter(|e| !insert(&mut chunk, format, e.ino, e.kind, &e.name)).cloned().collect();
    (chunk, over)
}

/// A chunk of a directory.
struct ChunkPlace {
    dir: Ino,
    /// It is the first one, with `.` and `..`.
    first: bool,
    at_byte: u64,
}

impl<S: Store> Check<'_, S> {
    /// The blocks of a directory: `(byte in the image, bytes)`, whole chunks.
    pub(super) fn dir_blocks(&self, dir: Ino) -> Result<Vec<(u64, usize)>, FfsError> {
        let inode = self.inode(dir)?;
        let mut blocks = Vec::new();
        file_runs(&self.store, &self.g, dir, &inode, &mut |run| {
            let from = run.lbn.0 << self.g.bshift;
            let len = run.bytes.min(inode.size.saturating_sub(from)) / DIRBLKSIZ as u64 * DIRBLKSIZ as u64;
            let at = self.g.byte_of(run.addr);
            blocks.extend(
                (0..len).step_by(self.g.bsize as usize).map(|i| (at + i, (len - i).min(self.g.bsize.into()) as usize)),
            );
            Ok(())
        })?;
        Ok(blocks)
    }

    pub(super) fn path_names(&mut self) -> Result<(), FfsError> {
        self.asked(Phase::PathNames)?;
        if self.known(ROOT_INO).is_none_or(|known| known.kind != Kind::Dir) {
            self.new_root()?;
        }
        let mut links: BTreeMap<Ino, Vec<Ino>> = BTreeMap::new();
        let mut over = Vec::new();
        for dir in self.dirs.keys().copied().collect::<Vec<Ino>>() {
            self.directory(dir, &mut links, &mut over)?;
        }
        self.choose_parents(&links)?;
        for (dir, entry) in over {
            if !self.add_entry(dir, entry.ino, entry.kind, &entry.name)? {
                // Its file has lost this name, and goes to lost+found unless it has another.
                if let Some(known) = self.known_mut(entry.ino) {
                    known.found -= i32::from(known.kind == Kind::File);
                }
            }
        }
        Ok(())
    }

    /// Makes a root where inode 2 is none. A file of that number moves to another, and from there to lost+found.
    fn new_root(&mut self) -> Result<(), FfsError> {
        let phase = Phase::PathNames;
        let mut moved = None;
        if self.known(ROOT_INO).is_some_and(|known| known.kind == Kind::File) {
            let inode = self.inode(ROOT_INO)?;
            let Some(elsewhere) = self.take_inode()? else {
                self.problem(
                    phase,
                    Finding::Root,
                    Place::Inode(ROOT_INO),
                    "the root is a file, and no inode is free for it",
                    None,
                );
                return Ok(());
            };
            self.put_inode(elsewhere, &inode)?;
            let known = self.known(ROOT_INO);
            if let (Some(place), Some(known)) = (self.known_mut(elsewhere), known) {
                *place = known;
            }
            moved = Some(elsewhere);
        }
        let made = self.new_directory(ROOT_INO, ROOT_INO)?;
        if let Some(elsewhere) = moved.filter(|_| !made) {
            self.clear(elsewhere)?; // The file stays where it is.
        }
        let repair = made.then_some("a new one made");
        self.problem(phase, Finding::Root, Place::Inode(ROOT_INO), "there is no root directory", repair);
        Ok(())
    }

    /// Makes an empty directory in an inode; whether there was room.
    fn new_directory(&mut self, ino: Ino, parent: Ino) -> Result<bool, FfsError> {
        let format = self.g.dir_format();
        let Some((block, frags)) = self.empty_directory_block(1)? else { return Ok(false) };
        let bytes = u64::from(frags << self.g.fshift);
        let kind = FileType::Directory.entry_type();
        let mut chunk = fresh_chunk(format);
        insert(&mut chunk, format, ino, kind, b".");
        insert(&mut chunk, format, parent, kind, b"..");
        write(&mut self.store, self.g.byte_of(block), &chunk)?;
        let now = Time { s: self.sb.time(), ns: 0 };
        let mut inode = Dinode {
            mode: FileType::Directory.mode_bits() | 0o755,
            nlink: 2,
            size: bytes,
            blocks: bytes / 512,
            atime: now,
            mtime: now,
            ctime: now,
            ..Dinode::default()
        };
        inode.db[0] = block.0 as i64;
        self.put_inode(ino, &inode)?;
        if let Some(known) = self.known_mut(ino) {
            *known = Known { kind: Kind::Dir, entry_type: kind, nlink: 2, found: 0 };
        }
        let info = DirInfo { parent: (ino != ROOT_INO).then_some(parent), dotdot: Some(parent) };
        self.dirs.insert(ino, info);
        Ok(true)
    }

    /// A free inode, of those that have been written if there is one.
    fn take_inode(&mut self) -> Result<Option<Ino>, FfsError> {
        let is_free = |ino: &u32| self.known.get(*ino as usize).is_some_and(|k| k.kind == Kind::Free);
        let written = |ino: &u32| self.inited.get((ino / self.g.ipg) as usize).is_some_and(|n| ino % self.g.ipg < *n);
        let all = ROOT_INO.0 + 1..self.g.inodes();
        let Some(ino) = all.clone().find(|i| is_free(i) && written(i)).or_else(|| all.clone().find(is_free)) else {
            return Ok(None);
        };
        let group = (ino / self.g.ipg) as usize;
        if let Some(limit) = self.inited.get_mut(group).filter(|limit| ino % self.g.ipg >= **limit) {
            let from = *limit;
            *limit = (ino % self.g.ipg + 1).next_multiple_of(self.g.inopb()).min(self.g.ipg);
            for fresh in from..*limit {
                let fresh = Ino(group as u32 * self.g.ipg + fresh);
                crate::image::write_inode(&mut self.store, &self.g, fresh, &Dinode::default())?;
            }
        }
        if let Some(known) = self.known.get_mut(ino as usize) {
            known.kind = Kind::File;
        }
        Ok(Some(Ino(ino)))
    }

    /// Takes back an inode that was taken, and the block of the directory that was made in it: there was no room for
    /// the rest.
    fn give_back(&mut self, ino: Ino, made: bool) -> Result<(), FfsError> {
        if made {
            let inode = self.inode(ino)?;
            let at = inode.db[0].unsigned_abs() as usize;
            self.claimed.put_range(at, self.g.frags_of(inode.size) as usize, false);
            self.dirs.remove(&ino);
            return self.clear(ino);
        }
        if let Some(known) = self.known_mut(ino) {
            known.kind = Kind::Free;
        }
        Ok(())
    }

    /// Goes over a directory: mends its chunks, takes out entries that lead nowhere, counts links.
    fn directory(
        &mut self,
        dir: Ino,
        links: &mut BTreeMap<Ino, Vec<Ino>>,
        over: &mut Vec<(Ino, DirEntry)>,
    ) -> Result<(), FfsError> {
        let mut names = BTreeSet::new();
        for (i, (at_byte, len)) in self.dir_blocks(dir)?.into_iter().enumerate() {
            let mut block = read(&self.store, at_byte, len)?;
            let mut changed = false;
            for (j, chunk) in block.chunks_mut(DIRBLKSIZ).enumerate() {
                let chunk_at = at_byte + (j * DIRBLKSIZ) as u64;
                let place = ChunkPlace { dir, first: (i, j) == (0, 0), at_byte: chunk_at };
                changed |= self.chunk(place, chunk, &mut names, links, over);
            }
            if changed {
                write(&mut self.store, at_byte, &block)?;
            }
        }
        Ok(())
    }

    /// One chunk; whether it was changed. `names` are those of the directory before it.
    fn chunk(
        &mut self,
        ChunkPlace { dir, first, at_byte: chunk_at }: ChunkPlace,
        chunk: &mut [u8],
        names: &mut BTreeSet<Vec<u8>>,
        links: &mut BTreeMap<Ino, Vec<Ino>>,
        over: &mut Vec<(Ino, DirEntry)>,
    ) -> bool {
        let format = self.g.dir_format();
        let Lenient { mut entries, damaged } = lenient(chunk, format, self.g.inodes());
        let mut rebuild = damaged;
        if damaged {
            let why = parse_chunk(chunk, format, chunk_at).err();
            let message = why.map_or_else(|| "a name does not end in a zero byte".to_owned(), |e| e.to_string());
            let place = Place::InodeByte(dir, chunk_at);
            self.problem(Phase::PathNames, Finding::DirectoryChunk, place, message, "mended, keeping what can be read");
        }
        if first {
            rebuild |= self.dots(dir, &mut entries, chunk_at);
        }
        let mut kept = Vec::new();
        for (n, entry) in entries.into_iter().enumerate() {
            let dot = first && n < 2;
            let twice = |entry: &DirEntry| {
                let name = String::from_utf8_lossy(&entry.name);
                format!("{name} in directory {dir} is there twice, the second time for inode {}", entry.ino)
            };
            let problem = if dot { None } else { self.entry_problem(dir, &entry) };
            // Of two names that are the same only one can be reached.
            match problem.or_else(|| (!names.insert(entry.name.clone())).then(|| twice(&entry))) {
                Some(message) => {
                    let place = Place::InodeByte(dir, chunk_at + entry.at as u64);
                    self.problem(Phase::PathNames, Finding::Entry, place, message, "removed");
                    rebuild = true;
                }
                None => {
                    let entry = self.typed(dir, entry, chunk_at, &mut rebuild);
                    if !dot {
                        self.count_link(dir, &entry, links);
                    }
                    kept.push(entry);
                }
            }
        }
        if rebuild {
            let (packed, without_room) = packed(&kept, format);
            over.extend(without_room.into_iter().map(|entry| (dir, entry)));
            chunk.copy_from_slice(packed.get(..chunk.len()).unwrap_or(&packed));
        }
        rebuild
    }

    /// Puts `.` and `..` first, where they are not; whether they were not. Where `..` leads is settled in phase 3.
    fn dots(&mut self, dir: Ino, entries: &mut Vec<DirEntry>, chunk_at: u64) -> bool {
        let kind = FileType::Directory.entry_type();
        let is = |entry: Option<&DirEntry>, name: &[u8]| entry.is_some_and(|e| e.name == name);
        let dotdot = entries.iter().find(|e| e.name == b"..").map(|e| e.ino);
        let info = self.dirs.entry(dir).or_default();
        info.dotdot = dotdot;
        let sound = is(entries.first(), b".") && is(entries.get(1), b"..");
        if sound && entries.first().is_some_and(|e| e.ino == dir) {
            return false;
        }
        let message = if sound {
            format!("`.` leads to inode {}", entries.first().map_or(0, |e| e.ino.0))
        } else {
            "does not begin with `.` and `..`".to_owned()
        };
        self.problem(Phase::PathNames, Finding::Dots, Place::InodeByte(dir, chunk_at), message, "set");
        entries.retain(|e| e.name != b"." && e.name != b"..");
        let dot = |name: &[u8], ino| DirEntry { at: 0, ino, kind, name: name.to_vec() };
        entries.insert(0, dot(b"..", dotdot.unwrap_or(dir)));
        entries.insert(0, dot(b".", dir));
        true
    }

    /// Why an entry cannot stay.
    fn entry_problem(&self, dir: Ino, entry: &DirEntry) -> Option<String> {
        let name = String::from_utf8_lossy(&entry.name);
        if (entry.kind, entry.ino.0) == WHITEOUT {
            return None;
        }
        if entry.name == b"." || entry.name == b".." {
            return Some(format!("a second `{name}` in directory {dir}"));
        }
        match self.known(entry.ino) {
            None => Some(format!("{name} in directory {dir} leads to inode {}, which does not exist", entry.ino)),
            Some(known) if known.kind == Kind::File && known.found >= i16::MAX.into() => {
                Some(format!("{name} in directory {dir} is one name of inode {} more than can be counted", entry.ino))
            }
            Some(_) if entry.ino.0 < ROOT_INO.0 => {
                Some(format!("{name} in directory {dir} leads to inode {}", entry.ino))
            }
            Some(_) if entry.ino == ROOT_INO => Some(format!("{name} in directory {dir} is a second name of the root")),
            Some(known) if known.kind == Kind::Free => {
                Some(format!("{name} in directory {dir} leads to inode {}, which is not in use", entry.ino))
            }
            Some(_) => None,
        }
    }

    /// The entry with the type that its inode has.
    fn typed(&mut self, dir: Ino, entry: DirEntry, chunk_at: u64, changed: &mut bool) -> DirEntry {
        let expected = match self.known(entry.ino) {
            Some(known) if !self.g.old_inodes && known.kind != Kind::Free => known.entry_type,
            _ => return entry,
        };
        if entry.kind == expected {
            return entry;
        }
        let name = String::from_utf8_lossy(&entry.name);
        let message = format!("{name} in directory {dir} has type {}, its inode {expected}", entry.kind);
        let place = Place::InodeByte(dir, chunk_at + entry.at as u64 + 6);
        let kind = Finding::EntryType { parent: entry.name == b".." };
        self.problem(Phase::PathNames, kind, place, message, "set");
        *changed = true;
        DirEntry { kind: expected, ..entry }
    }

    fn count_link(&mut self, dir: Ino, entry: &DirEntry, links: &mut BTreeMap<Ino, Vec<Ino>>) {
        if (entry.kind, entry.ino.0) == WHITEOUT {
            return;
        }
        match self.known_mut(entry.ino) {
            Some(known) if known.kind == Kind::File => known.found += 1,
            Some(known) if known.kind == Kind::Dir => links.entry(entry.ino).or_default().push(dir),
            _ => {}
        }
    }

    /// Of the directories that have a name of a directory: the one that its `..` leads to, else the first.
    fn first_choice(&self, child: Ino, parents: impl Iterator<Item = Ino> + Clone) -> Option<Ino> {
        let dotdot = self.dirs.get(&child).and_then(|info| info.dotdot);
        parents.clone().find(|parent| Some(*parent) == dotdot).or_else(|| parents.clone().next())
    }

    /// Whether names lead from the root to a directory, and not through another one.
    fn is_reached(&self, dir: Ino, without: Ino, links: &BTreeMap<Ino, Vec<Ino>>) -> bool {
        let mut at = dir;
        for _ in 0..=links.len() {
            if at == ROOT_INO || at == without {
                return at == ROOT_INO;
            }
            let parents = links.get(&at).map(Vec::as_slice).unwrap_or_default();
            let Some(parent) = self.first_choice(at, parents.iter().copied()) else { return false };
            at = parent;
        }
        false
    }

    /// A directory has one name: in a directory that can be reached itself, in the one that its `..` leads to, else the
    /// first.
    fn choose_parents(&mut self, links: &BTreeMap<Ino, Vec<Ino>>) -> Result<(), FfsError> {
        for (child, parents) in links {
            let reached = |parent: &Ino| parents.len() < 2 || self.is_reached(*parent, *child, links);
            let chosen = self.first_choice(*child, parents.iter().copied().filter(reached));
            let Some(chosen) = chosen.or_else(|| self.first_choice(*child, parents.iter().copied())) else {
                continue;
            };
            if let Some(info) = self.dirs.get_mut(child) {
                info.parent = Some(chosen);
            }
            let mut rest = parents.clone();
            rest.dedup();
            if parents.len() > 1 {
                for parent in rest {
                    self.remove_links(parent, *child, parent == chosen)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the names of a directory out of another one, but for the first if it is to stay.
    fn remove_links(&mut self, parent: Ino, child: Ino, mut keep_first: bool) -> Result<(), FfsError> {
        let format = self.g.dir_format();
        for (at_byte, len) in self.dir_blocks(parent)? {
            let mut block = read(&self.store, at_byte, len)?;
            let mut changed = false;
            for (j, chunk) in block.chunks_mut(DIRBLKSIZ).enumerate() {
                for entry in lenient(chunk, format, self.g.inodes()).entries {
                    let dot = entry.name == b"." || entry.name == b"..";
                    if entry.ino != child || dot || std::mem::take(&mut keep_first) {
                        continue;
                    }
                    let name = String::from_utf8_lossy(&entry.name);
                    let message = format!("{name} in directory {parent} is a second name of directory {child}");
                    let place = Place::InodeByte(parent, at_byte + (j * DIRBLKSIZ + entry.at) as u64);
                    self.problem(Phase::PathNames, Finding::DirectoryLink { child }, place, message, "removed");
                    remove(chunk, format, entry.at);
                    changed = true;
                }
            }
            if changed {
                write(&mut self.store, at_byte, &block)?;
            }
        }
        Ok(())
    }

    pub(super) fn connectivity(&mut self) -> Result<(), FfsError> {
        self.asked(Phase::Connectivity)?;
        for dir in self.unconnected() {
            if let Some(parent) = self.dirs.get(&dir).and_then(|info| info.parent) {
                // Part of a circle: it is cut here.
                self.remove_links(parent, dir, false)?;
            }
            self.save(dir, FileType::Directory.entry_type(), Phase::Connectivity)?;
        }
        for (dir, info) in self.dirs.clone() {
            let parent = if dir == ROOT_INO { ROOT_INO } else { info.parent.unwrap_or(dir) };
            if info.dotdot != Some(parent) {
                let message = format!("`..` does not lead to its parent, directory {parent}");
                self.problem(Phase::Connectivity, Finding::Dots, Place::Inode(dir), message, "set");
                self.set_dotdot(dir, parent)?;
            }
        }
        Ok(())
    }

    /// Directories that do not hang from the root: those without a parent, and of each circle one.
    fn unconnected(&self) -> Vec<Ino> {
        // Which walk reached a directory; walk 0 is that from the root.
        let mut reached: BTreeMap<Ino, usize> = BTreeMap::from([(ROOT_INO, 0)]);
        let mut heads = Vec::new();
        for (walk, start) in self.dirs.keys().enumerate() {
            let mut dir = *start;
            loop {
                match reached.get(&dir) {
                    Some(earlier) => {
                        if *earlier == walk + 1 {
                            heads.push(dir); // Came back to where this walk has been.
                        }
                        break;
                    }
                    None => reached.insert(dir, walk + 1),
                };
                match self.dirs.get(&dir).and_then(|info| info.parent) {
                    Some(parent) => dir = parent,
                    None => {
                        heads.push(dir);
                        break;
                    }
                }
            }
        }
        heads
    }

    fn set_dotdot(&mut self, dir: Ino, parent: Ino) -> Result<(), FfsError> {
        let format = self.g.dir_format();
        let Some((at_byte, _)) = self.dir_blocks(dir)?.first().copied() else { return Ok(()) };
        let mut chunk = read(&self.store, at_byte, DIRBLKSIZ)?;
        let dotdot = lenient(&chunk, format, self.g.inodes()).entries.into_iter().find(|e| e.name == b"..");
        if let Some(entry) = dotdot {
            let head = RawEntry { ino: parent.0, ..RawEntry::get(&chunk, entry.at, format) };
            let kind = if format.old { 0 } else { FileType::Directory.entry_type() };
            RawEntry { kind, ..head }.put(&mut chunk, entry.at, format);
            write(&mut self.store, at_byte, &chunk)?;
        }
        if let Some(info) = self.dirs.get_mut(&dir) {
            info.dotdot = Some(parent);
        }
        Ok(())
    }

    /// Gives an inode without a name one in lost+found.
    fn save(&mut self, ino: Ino, kind: u8, phase: Phase) -> Result<(), FfsError> {
        let directory = kind == FileType::Directory.entry_type();
        let what = if directory { "directory" } else { "file" };
        let place = self.lost_found()?;
        let saved = match place {
            Some(dir) => {
                // Somebody may have a file of that name there.
                let mut name = format!("#{:05}", ino.0);
                while self.look_up(dir, name.as_bytes())?.is_some() {
                    name.push('#');
                }
                self.add_entry(dir, ino, kind, name.as_bytes())?
            }
            None => false,
        };
        if !saved && !self.dirs.contains_key(&ino) {
            let inode = self.inode(ino)?;
            if inode.size == 0 && inode.blocks == 0 {
                // A full disk has no room for lost+found. BSD's fsck clears such a file in any case: nothing is in it.
                let message = "empty file without a name, and no room for one";
                self.problem(phase, Finding::NoName { directory: false }, Place::Inode(ino), message, "cleared");
                return self.clear(ino);
            }
        }
        let repair = saved.then_some("put into lost+found");
        let message = format!("{what} without a name");
        self.problem(phase, Finding::NoName { directory }, Place::Inode(ino), message, repair);
        if let (true, Some(dir)) = (saved, place) {
            if let Some(info) = self.dirs.get_mut(&ino) {
                info.parent = Some(dir);
            } else if let Some(known) = self.known_mut(ino) {
                known.found += 1;
            }
        }
        Ok(())
    }

    /// The directory for what has no name; made if it is not there.
    fn lost_found(&mut self) -> Result<Option<Ino>, FfsError> {
        if self.lost_found.is_some() {
            return Ok(self.lost_found);
        }
        let mut taken = false;
        for name in [b"lost+found".as_slice(), b"#lost+found"] {
            match self.look_up(ROOT_INO, name)? {
                Some(ino) if self.known(ino).is_some_and(|k| k.kind == Kind::Dir) => {
                    self.lost_found = Some(ino);
                    return Ok(self.lost_found);
                }
                Some(_) => taken = true,
                None => {
                    let Some(ino) = self.take_inode()? else { return Ok(None) };
                    let kind = FileType::Directory.entry_type();
                    let made = self.new_directory(ino, ROOT_INO)?;
                    if !made || !self.add_entry(ROOT_INO, ino, kind, name)? {
                        self.give_back(ino, made)?;
                        return Ok(None);
                    }
                    let message = if taken { "lost+found is not a directory" } else { "there is no lost+found" };
                    self.problem(Phase::Connectivity, Finding::LostFound, Place::Inode(ino), message, "made");
                    self.lost_found = Some(ino);
                    return Ok(self.lost_found);
                }
            }
        }
        Ok(None)
    }

    fn look_up(&self, dir: Ino, name: &[u8]) -> Result<Option<Ino>, FfsError> {
        let format = self.g.dir_format();
        for (at_byte, len) in self.dir_blocks(dir)? {
            for chunk in read(&self.store, at_byte, len)?.chunks(DIRBLKSIZ) {
                let found = lenient(chunk, format, self.g.inodes()).entries.into_iter().find(|e| e.name == name);
                if let Some(entry) = found {
                    return Ok(Some(entry.ino));
                }
            }
        }
        Ok(None)
    }

    /// Adds an entry to a directory, which grows by a block where it has no room; whether that was possible.
    fn add_entry(&mut self, dir: Ino, ino: Ino, kind: u8, name: &[u8]) -> Result<bool, FfsError> {
        let format = self.g.dir_format();
        // The last blocks first: lost+found is filled from its beginning.
        for (at_byte, len) in self.dir_blocks(dir)?.into_iter().rev() {
            let mut block = read(&self.store, at_byte, len)?;
            if block.chunks_mut(DIRBLKSIZ).any(|chunk| insert(chunk, format, ino, kind, name)) {
                write(&mut self.store, at_byte, &block)?;
                return Ok(true);
            }
        }
        let Some(at_byte) = self.grow(dir)? else { return Ok(false) };
        let mut chunk = read(&self.store, at_byte, DIRBLKSIZ)?;
        let done = insert(&mut chunk, format, ino, kind, name);
        write(&mut self.store, at_byte, &chunk)?;
        Ok(done)
    }

    /// Makes a directory longer: to the end of its last block, by way of a new whole one where that is a fragment, or
    /// by a block; by fragments where no block is free. The byte in the image of the first new chunk.
    fn grow(&mut self, dir: Ino) -> Result<Option<u64>, FfsError> {
        let mut inode = self.inode(dir)?;
        let bsize = u64::from(self.g.bsize);
        let lbn = inode.size >> self.g.bshift;
        let within = inode.size & (bsize - 1);
        let sectors = bsize / 512;
        if within != 0 && lbn < NDADDR as u64 {
            // Its last block has room, or is a fragment and moves to a whole block.
            let least = self.g.frags_of(within + DIRBLKSIZ as u64) as u32;
            let Some((addr, now)) = self.empty_directory_block(least)? else { return Ok(None) };
            let old = inode.db.get(lbn as usize).copied().unwrap_or(0);
            let frags = self.g.frags_of(within);
            let bytes = read(&self.store, self.g.byte_of(FragAddr(old.unsigned_abs())), within as usize)?;
            write(&mut self.store, self.g.byte_of(addr), &bytes)?;
            self.claimed.put_range(old.unsigned_abs() as usize, frags as usize, false);
            if let Some(slot) = inode.db.get_mut(lbn as usize) {
                *slot = addr.0 as i64;
            }
            inode.blocks += (u64::from(now) - frags) * u64::from(self.g.fsize / 512);
            inode.size = lbn * bsize + u64::from(now << self.g.fshift);
            self.put_inode(dir, &inode)?;
            return Ok(Some(self.g.byte_of(addr) + within));
        }
        if within != 0 || lbn >= NDADDR as u64 + self.g.nindir() {
            return Ok(None); // Beyond the first indirect block a directory of this repair does not grow.
        }
        if let Some(slot) = inode.db.get_mut(lbn as usize) {
            let Some((addr, frags)) = self.empty_directory_block(1)? else { return Ok(None) };
            let bytes = u64::from(frags << self.g.fshift);
            *slot = addr.0 as i64;
            inode.blocks += bytes / 512;
            inode.size += bytes;
            self.put_inode(dir, &inode)?;
            return Ok(Some(self.g.byte_of(addr)));
        }
        let Some(addr) = self.empty_block(true)? else { return Ok(None) };
        if inode.ib[0] == 0 {
            let Some(indirect) = self.empty_block(false)? else { return Ok(None) };
            inode.ib[0] = indirect.0 as i64;
            inode.blocks += sectors;
        }
        let at = self.g.byte_of(FragAddr(inode.ib[0].unsigned_abs()));
        let mut bytes = read(&self.store, at, self.g.bsize as usize)?;
        debug_assert_eq!(decode_pointers(&bytes, &self.g).get(lbn as usize - NDADDR), Some(&0));
        self.set_pointer(&mut bytes, lbn as usize - NDADDR, addr.0 as i64);
        write(&mut self.store, at, &bytes)?;
        inode.blocks += sectors;
        inode.size = (lbn + 1) * bsize;
        self.put_inode(dir, &inode)?;
        Ok(Some(self.g.byte_of(addr)))
    }

    pub(super) fn link_counts(&mut self) -> Result<(), FfsError> {
        self.asked(Phase::LinkCounts)?;
        // Inodes without a name first: lost+found may have to be made, and then counts as well.
        for ino in (ROOT_INO.0..self.g.inodes()).map(Ino) {
            let Some(known) = self.known(ino).filter(|k| k.kind == Kind::File && k.found <= 0) else { continue };
            if known.nlink <= 0 {
                let message = "file that was removed while it was open";
                self.problem(Phase::LinkCounts, Finding::Unlinked, Place::Inode(ino), message, "cleared");
                self.clear(ino)?;
            } else {
                self.save(ino, known.entry_type, Phase::LinkCounts)?;
            }
        }
        let mut children: BTreeMap<Ino, i32> = BTreeMap::new();
        for info in self.dirs.values() {
            if let Some(parent) = info.parent {
                *children.entry(parent).or_default() += 1;
            }
        }
        for ino in (ROOT_INO.0..self.g.inodes()).map(Ino) {
            let Some(known) = self.known(ino) else { continue };
            let found = match known.kind {
                Kind::Free => continue,
                Kind::File => known.found,
                Kind::Dir => 2 + children.get(&ino).copied().unwrap_or(0),
            };
            if found > 0 && i32::from(known.nlink) != found {
                let message = format!("link count {} is wrong: it has {found} links", known.nlink);
                // A directory can have more in it than can be counted when much has lost its name.
                let nlink = i16::try_from(found).unwrap_or(i16::MAX);
                let repair = (nlink != known.nlink).then_some("set");
                let finding = Finding::LinkCount { counted: known.nlink, links: found };
                self.problem(Phase::LinkCounts, finding, Place::Inode(ino), message, repair);
                let mut inode = self.inode(ino)?;
                inode.nlink = nlink;
                self.put_inode(ino, &inode)?;
            }
        }
        Ok(())
    }

    /// Clears an inode. What it held is found to be free by the next pass.
    pub(super) fn clear(&mut self, ino: Ino) -> Result<(), FfsError> {
        let inode = self.inode(ino)?;
        let generation = if self.g.layout.version == Version::Ufs2 { inode.generation } else { 0 };
        self.put_inode(ino, &Dinode { generation, ..Dinode::default() })?;
        if let Some(known) = self.known_mut(ino) {
            known.kind = Kind::Free;
        }
        Ok(())
    }
}
