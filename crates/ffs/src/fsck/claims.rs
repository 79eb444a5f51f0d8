//! Phase 1: which blocks each inode claims, and whether its size and counts agree with them. Phase 1b: inodes that do
//! not agree, or whose blocks are another's.
//!
//! Nothing is written into a block before it is settled whose it is. First every inode that agrees with itself (size,
//! block count and pointers say the same) takes its blocks, unless one is taken already. Then everything that the
//! others lead to is set aside, so that no copy is written there. Then they are settled one after the other, those that
//! agree first.

use super::names::lenient;
use super::pointers::{Held, Terms};
use super::{Check, Finding, Kind, Phase, Place};
use crate::format::{
    CylinderGroup, DIRBLKSIZ, Dinode, FileType, FragAddr, GroupNo, Ino, NDADDR, ROOT_INO, RawEntry, SF_SNAPSHOT,
    Version, fresh_chunk, symlink_area_bytes,
};
use crate::image::{decode_pointers, file_runs};
use crate::mkfs::metadata;
use crate::{FfsError, Store};
use device::store::{read, write};
use std::collections::BTreeMap;

/// Bytes of the longest target of a link with its zero byte (`MAXPATHLEN`).
const PATH_MAX: u64 = 1024;

/// Whether an inode can be of the type that a mode has. Whiteouts are entries of directories only.
fn is_of_inode(mode: u16) -> bool {
    FileType::of(mode).is_some_and(|file_type| file_type != FileType::Whiteout)
}

impl<S: Store> Check<'_, S> {
    pub(super) fn blocks_and_sizes(&mut self) -> Result<(), FfsError> {
        self.claim_metadata();
        self.read_groups()?;
        for c in 0..self.g.ncg {
            self.asked(Phase::BlocksAndSizes)?;
            let count = self.inited.get(c as usize).copied().unwrap_or(0);
            let width = self.g.layout.version.inode_bytes() as usize;
            let first = c * self.g.ipg;
            let table = self.g.byte_of(self.g.group_inodes(GroupNo(c)));
            for from in (0..count).step_by(self.g.inopb() as usize) {
                let n = self.g.inopb().min(count - from);
                let bytes = read(&self.store, table + u64::from(from) * width as u64, n as usize * width)?;
                for (i, raw) in bytes.chunks(width).enumerate() {
                    let ino = Ino(first + from + i as u32);
                    let inode = Dinode::decode(raw, &self.g);
                    if self.inode_or_untyped(ino, inode)? {
                        self.untyped.push(ino);
                    }
                }
            }
        }
        Ok(())
    }

    /// Superblocks, groups, inodes and group summaries belong to nobody else.
    fn claim_metadata(&mut self) {
        for c in 0..self.g.ncg {
            let group = GroupNo(c);
            let base = self.g.group_base(group).0 as usize;
            let (low, high) = metadata(&self.g, group);
            self.claimed.put_range(base + low as usize, (high - low) as usize, true);
        }
        let summaries = self.g.frags_of(self.g.cssize.into()) as usize;
        self.claimed.put_range(self.g.csaddr.0 as usize, summaries, true);
    }

    pub(super) fn is_metadata(&self, addr: u64, frags: u64) -> bool {
        let group = self.g.group_of(FragAddr(addr));
        let (low, high) = metadata(&self.g, group);
        let base = self.g.group_base(group).0;
        let over = |from: u64, to: u64| addr < to && addr + frags > from;
        over(base + u64::from(low), base + u64::from(high))
            || over(self.g.csaddr.0, self.g.csaddr.0 + self.g.frags_of(self.g.cssize.into()))
    }

    fn group_problem(&mut self, kind: Finding, at_byte: u64, message: String, repair: &'static str) {
        self.problem(Phase::BlocksAndSizes, kind, Place::Byte(at_byte), message, repair);
    }

    fn read_groups(&mut self) -> Result<(), FfsError> {
        for c in 0..self.g.ncg {
            let at = self.g.byte_of(self.g.group_block(GroupNo(c)));
            let bytes = read(&self.store, at, self.g.cgsize as usize)?;
            let group = match CylinderGroup::decode(&bytes, &self.g, at) {
                Ok(group) if !group.has_usual_offsets(&self.g) => {
                    let message = format!("cylinder group {c}: its maps are not where they belong");
                    self.group_problem(Finding::GroupDamaged, at + 84, message, "built anew");
                    None
                }
                Ok(group) if group.hash_is_right(&self.g) == Some(false) => {
                    let message = format!("the check hash of cylinder group {c} does not match");
                    self.group_problem(Finding::GroupHash, at + 132, message, "worked out anew");
                    Some(group)
                }
                Ok(group) => Some(group),
                Err(error) => {
                    self.group_problem(Finding::GroupDamaged, at, error.to_string(), "built anew");
                    None
                }
            };
            let inited = self.inited_inodes(group.as_ref());
            self.inited.push(inited);
            self.on_disk.push(group);
        }
        Ok(())
    }

    /// Inodes of a group to look at. UFS2 leaves those that never were in use unwritten; a group that contradicts
    /// itself about them is not believed.
    fn inited_inodes(&self, group: Option<&CylinderGroup>) -> u32 {
        let Some(group) = group.filter(|_| self.g.layout.version == Version::Ufs2) else { return self.g.ipg };
        if group.initediblk > self.g.ipg || group.initediblk == 0 {
            return self.g.ipg;
        }
        let used = group.used_inodes.last_set(self.g.ipg as usize).map_or(0, |last| last as u32 + 1);
        group.initediblk.max(used).next_multiple_of(self.g.inopb()).min(self.g.ipg)
    }

    /// Takes up an inode; whether it is in use without a type.
    fn inode_or_untyped(&mut self, ino: Ino, mut inode: Dinode) -> Result<bool, FfsError> {
        let phase = Phase::BlocksAndSizes;
        if ino.0 < ROOT_INO.0 {
            return Ok(false); // Reserved; whatever they hold, they are counted as in use.
        }
        if inode.hash_is_right(&self.g) == Some(false) {
            self.problem(
                phase,
                Finding::InodeHash,
                Place::Inode(ino),
                "the check hash does not match",
                "worked out anew",
            );
            self.put_inode(ino, &inode)?;
        }
        if inode.mode == 0 {
            let held = inode.db.iter().chain(&inode.ib).chain(&inode.extb).any(|p| *p != 0);
            if held || inode.size != 0 {
                let message = "not in use, but with a size or blocks";
                self.problem(phase, Finding::PartlyAllocated, Place::Inode(ino), message, "cleared");
                self.put_inode(ino, &Dinode { generation: inode.generation, ..Dinode::default() })?;
            }
            return Ok(false);
        }
        if ino == ROOT_INO && !inode.is_dir() && self.looks_like_directory(ino, &inode) {
            let message = format!("mode 0{:o}: the root is not a directory, but its first block is one", inode.mode);
            self.problem(phase, Finding::RootType, Place::Inode(ino), message, "made a directory");
            inode.mode = inode.permissions() | FileType::Directory.mode_bits();
            self.put_inode(ino, &inode)?;
        }
        if !is_of_inode(inode.mode) {
            return Ok(true);
        }
        self.take_up(ino, inode)?;
        Ok(false)
    }

    fn looks_like_directory(&self, ino: Ino, inode: &Dinode) -> bool {
        let Some(first) = inode.db.first().filter(|p| self.g.holds(**p, 1)) else { return false };
        let at = self.g.byte_of(FragAddr(first.unsigned_abs()));
        read(&self.store, at, DIRBLKSIZ).is_ok_and(|chunk| {
            let head = RawEntry::get(&chunk, 0, self.g.dir_format());
            head.ino == ino.0 && head.namlen == 1 && chunk.get(8) == Some(&b'.')
        })
    }

    /// Inodes in use whose mode has no type get the type that a directory entry gives them; those that none names, or
    /// that only entries without a type name, are cleared.
    fn give_types(&mut self, mut untyped: Vec<Ino>) -> Result<(), FfsError> {
        loop {
            let mut wanted: BTreeMap<Ino, u8> = untyped.iter().map(|ino| (*ino, 0)).collect();
            if wanted.is_empty() {
                return Ok(());
            }
            self.entry_types(&mut wanted)?;
            let before = untyped.len();
            untyped.clear();
            for (ino, entry_type) in wanted {
                let mut inode = self.inode(ino)?;
                let mode = inode.permissions() | u16::from(entry_type) << 12;
                if entry_type == 0 || !is_of_inode(mode) {
                    untyped.push(ino);
                    continue;
                }
                let message = format!("mode 0{:o} has no known type", inode.mode);
                self.problem(
                    Phase::BlocksAndSizes,
                    Finding::Type,
                    Place::Inode(ino),
                    message,
                    "set from its directory entry",
                );
                inode.mode = mode;
                self.put_inode(ino, &inode)?;
                self.take_up(ino, inode)?;
                self.settle_all()?;
            }
            // A directory that has its type back may name further ones.
            if untyped.len() == before {
                break;
            }
        }
        for ino in untyped {
            let mode = self.inode(ino)?.mode;
            let message = format!("mode 0{mode:o} has no known type, and no directory entry gives it one");
            self.problem(Phase::BlocksAndSizes, Finding::Type, Place::Inode(ino), message, "cleared");
            self.put_inode(ino, &Dinode::default())?;
        }
        Ok(())
    }

    fn entry_types(&mut self, wanted: &mut BTreeMap<Ino, u8>) -> Result<(), FfsError> {
        let dirs: Vec<Ino> = self.dirs.keys().copied().collect();
        let format = self.g.dir_format();
        for dir in dirs {
            for (at_byte, len) in self.dir_blocks(dir)? {
                for chunk in read(&self.store, at_byte, len)?.chunks(DIRBLKSIZ) {
                    for entry in lenient(chunk, format, self.g.inodes()).entries {
                        if let Some(kind) = wanted.get_mut(&entry.ino) {
                            *kind = entry.kind;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes up an inode of known type: one that agrees with itself has its blocks now, any other is settled later.
    fn take_up(&mut self, ino: Ino, mut inode: Dinode) -> Result<(), FfsError> {
        let Some(file_type) = inode.file_type() else { return Ok(()) };
        let kind = if file_type == FileType::Directory { Kind::Dir } else { Kind::File };
        if let Some(known) = self.known_mut(ino) {
            (known.kind, known.entry_type, known.nlink) = (kind, file_type.entry_type(), inode.nlink);
        }
        if kind == Kind::Dir {
            self.dirs.insert(ino, super::DirInfo::default());
        }
        let before = inode.clone();
        if file_type == FileType::Symlink {
            self.symlinks.push(ino);
            self.symlink_size(ino, &mut inode)?;
        } else if file_type.is_special() {
            self.no_pointers(ino, &mut inode, file_type);
        }
        if inode != before {
            self.put_inode(ino, &inode)?;
        }
        let survey = self.survey(ino, &inode)?;
        if !survey.agrees {
            self.unsettled.push(ino);
        } else if survey.taken || self.claim_all(ino, &inode)? {
            self.second.push(ino);
        }
        Ok(())
    }

    /// Settles whose the blocks of an inode are, and sets its size and block count by them.
    fn settle(&mut self, ino: Ino, second: bool) -> Result<(), FfsError> {
        let mut inode = self.inode(ino)?;
        let before = inode.clone();
        let kind = if inode.is_dir() { Kind::Dir } else { Kind::File };
        let mut held = Held::default();
        let snapshot = self.is_snapshot(ino, &inode);
        if inode.has_blocks(&self.g) {
            let survey = self.survey(ino, &inode)?;
            // Size and block count agree: what lies beyond the size is stray. Where only one of them is right, the
            // pointers tell.
            let stray = survey.within == survey.counted && inode.size <= self.g.max_file_bytes() && !snapshot;
            let end_lbn = if stray { inode.size.div_ceil(self.g.bsize.into()) } else { u64::MAX };
            self.settle_inode(ino, &mut inode, &mut held, Terms { end_lbn, second, snapshot })?;
            if !snapshot {
                self.size_by_blocks(ino, &mut inode, &held, kind);
                self.prune(ino, &mut inode, &mut held)?;
            }
        }
        self.settle_extended(ino, &mut inode, &mut held, second)?;
        self.block_count(ino, &mut inode, &held);
        if kind == Kind::Dir && (held.hole || held.last.is_none()) {
            self.holes.push(ino);
        }
        if inode != before {
            self.put_inode(ino, &inode)?;
        }
        Ok(())
    }

    /// Whether it is one of the snapshots that the superblock lists.
    pub(super) fn is_snapshot(&self, ino: Ino, inode: &Dinode) -> bool {
        let listed = self.sb.wide() && self.sb.snapinum.contains(&ino.0);
        listed && inode.flags & SF_SNAPSHOT != 0 && inode.size <= self.g.max_file_bytes()
    }

    fn block_count(&mut self, ino: Ino, inode: &mut Dinode, held: &Held) {
        let blocks = held.frags * u64::from(self.g.fsize / 512);
        if inode.blocks != blocks {
            let message = format!("block count {} is wrong: it holds {blocks} units of 512 bytes", inode.blocks);
            self.problem(Phase::BlocksAndSizes, Finding::BlockCount, Place::Inode(ino), message, "set");
            inode.blocks = blocks;
        }
    }

    /// A short symbolic link's size must be that of its target, and nothing is behind it in the place of the pointers.
    fn symlink_size(&mut self, ino: Ino, inode: &mut Dinode) -> Result<(), FfsError> {
        if let Some(length) = self.length_of_long_link(inode)? {
            let message = format!("symbolic link of {length} bytes with size {}", inode.size);
            self.problem(Phase::BlocksAndSizes, Finding::Size { too_long: false }, Place::Inode(ino), message, "set");
            inode.size = length;
            return Ok(());
        }
        let mut area = inode.pointer_area(&self.g);
        let length = area.iter().position(|b| *b == 0).unwrap_or(area.len());
        let inline = inode.is_short_symlink(&self.g) || inode.blocks == 0 && self.g.maxsymlinklen > 0;
        // One that is about as long as the area may have been kept in a block all the same.
        if inline && inode.size != length as u64 && length > 0 && length < area.len() {
            let message = format!("symbolic link of {length} bytes with size {}", inode.size);
            self.problem(Phase::BlocksAndSizes, Finding::Size { too_long: false }, Place::Inode(ino), message, "set");
            inode.size = length as u64;
        }
        if inode.is_short_symlink(&self.g) {
            let width = self.g.layout.version.pointer_bytes() as usize;
            let behind = (inode.size as usize).next_multiple_of(width).min(area.len());
            let rest = area.get_mut(behind..).unwrap_or_default();
            if rest.iter().any(|byte| *byte != 0) {
                let message = "something behind the target of a symbolic link";
                self.stray_pointer(ino, message);
                rest.fill(0);
                inode.set_pointer_area(&area, &self.g);
            }
        }
        Ok(())
    }

    /// The length of a link's target in a block, where the size says that there is none and all else that there is one.
    fn length_of_long_link(&self, inode: &Dinode) -> Result<Option<u64>, FfsError> {
        let [first, rest @ ..] = &inode.db;
        let one_block = rest.iter().chain(&inode.ib).all(|pointer| *pointer == 0) && self.g.holds(*first, 1);
        let frags = inode.blocks / u64::from(self.g.fsize / 512);
        let fits = (1..=u64::from(self.g.frag)).contains(&frags) && self.g.holds(*first, frags);
        let short = inode.size < u64::from(self.g.maxsymlinklen) && inode.blocks > 0 && inode.extsize == 0;
        if !(short && one_block && fits) || self.is_metadata(first.unsigned_abs(), frags) {
            return Ok(None);
        }
        let at = self.g.byte_of(FragAddr(first.unsigned_abs()));
        let bytes = read(&self.store, at, (frags << self.g.fshift) as usize)?;
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()) as u64;
        Ok(Some(length).filter(|length| *length >= u64::from(self.g.maxsymlinklen)))
    }

    /// What no system would take for a link's target is kept as a regular file.
    fn links(&mut self) -> Result<(), FfsError> {
        for ino in std::mem::take(&mut self.symlinks) {
            let mut inode = self.inode(ino)?;
            let mut target = Vec::new();
            if inode.is_short_symlink(&self.g) {
                target = inode.pointer_area(&self.g);
                target.truncate(inode.size as usize);
            } else if inode.size < PATH_MAX {
                target.resize(inode.size as usize, 0);
                let (store, g) = (&self.store, &self.g);
                file_runs(store, g, ino, &inode, &mut |run| {
                    let at = (run.lbn.0 << g.bshift) as usize;
                    let bytes = read(store, g.byte_of(run.addr), run.bytes as usize)?;
                    target.iter_mut().skip(at).zip(bytes).for_each(|(place, byte)| *place = byte);
                    Ok(())
                })?;
            }
            let why = match target.as_slice() {
                [] if inode.size > 0 => format!("{} bytes", inode.size),
                [] => "no target".to_owned(),
                target if target.contains(&0) => "zero bytes in its target".to_owned(),
                _ => continue,
            };
            let message = format!("symbolic link with {why}");
            self.problem(Phase::BlocksAndSizes, Finding::Link, Place::Inode(ino), message, "made a regular file");
            if inode.is_short_symlink(&self.g) {
                // What is in the place of the pointers are none.
                let empty = vec![0; symlink_area_bytes(self.g.layout.version)];
                inode.set_pointer_area(&empty, &self.g);
                inode.size = 0;
            }
            inode.mode = inode.permissions() | FileType::Regular.mode_bits();
            self.put_inode(ino, &inode)?;
            if let Some(known) = self.known_mut(ino) {
                known.entry_type = FileType::Regular.entry_type();
            }
        }
        Ok(())
    }

    /// Pipes, sockets and devices have neither blocks nor a size; a device's number is in the place of the first block.
    fn no_pointers(&mut self, ino: Ino, inode: &mut Dinode, file_type: FileType) {
        let keep = usize::from(matches!(file_type, FileType::CharDevice | FileType::BlockDevice));
        let mut any = false;
        for pointer in inode.db.iter_mut().skip(keep).chain(&mut inode.ib) {
            any |= *pointer != 0;
            *pointer = 0;
        }
        if any {
            let message = format!("a {file_type} with block pointers");
            self.stray_pointer(ino, message);
        }
        if keep == 1 && inode.db[0] == -1 {
            let message = format!("a {file_type} with no device's number");
            self.problem(Phase::BlocksAndSizes, Finding::Device, Place::Inode(ino), message, "set to 0");
            inode.db[0] = 0;
        }
        if inode.size != 0 {
            let message = format!("a {file_type} with size {}", inode.size);
            self.problem(
                Phase::BlocksAndSizes,
                Finding::Size { too_long: false },
                Place::Inode(ino),
                message,
                "set to 0",
            );
            inode.size = 0;
        }
    }

    /// The last block of a file without indirect blocks, and how many fragments it has. The size says so; where it
    /// contradicts the pointers, the block count, or the map of free fragments, the block count does.
    pub(super) fn tail(&self, inode: &Dinode) -> Option<(usize, u32)> {
        if inode.ib.iter().any(|p| *p != 0) {
            return None;
        }
        let last = inode.db.iter().rposition(|p| *p != 0)?;
        let pointer = inode.db.get(last).copied().unwrap_or(0);
        let frag = u64::from(self.g.frag);
        let others = inode.db.iter().filter(|p| **p != 0).count() as u64 - 1;
        let extended = self.g.frags_of(inode.extsize.into());
        let counted = inode.blocks / u64::from(self.g.fsize / 512);
        let in_block = frag - pointer.unsigned_abs() % frag;
        let by_count = counted.checked_sub(others * frag + extended).filter(|n| (1..=in_block).contains(n));
        let size_lbn = inode.size.checked_sub(1).map(|end| end >> self.g.bshift);
        let frags = if size_lbn == Some(last as u64) {
            let by_size = self.g.frags_of(self.g.block_bytes(inode.size, last as u64).into());
            match by_count {
                Some(count) if by_size > in_block => count,
                Some(count) if count < by_size && self.any_free(pointer, count, by_size) => count,
                _ => by_size.min(in_block),
            }
        } else {
            by_count.unwrap_or(in_block)
        };
        Some((last, frags as u32))
    }

    /// Whether the map has any of the fragments `from..to` of a block as free.
    fn any_free(&self, pointer: i64, from: u64, to: u64) -> bool {
        if !self.g.holds(pointer, to) {
            return false;
        }
        (from..to).any(|i| {
            let at = FragAddr(pointer.unsigned_abs() + i);
            let group = self.g.group_of(at);
            let in_group = (at.0 - self.g.group_base(group).0) as usize;
            self.on_disk.get(group.0 as usize).and_then(Option::as_ref).is_some_and(|cg| cg.free.get(in_group))
        })
    }

    /// A file ends in its last block: neither in a hole nor before blocks that it has.
    fn size_by_blocks(&mut self, ino: Ino, inode: &mut Dinode, held: &Held, kind: Kind) {
        let (low, high) = match held.last {
            None => (0, 0),
            Some(last) => {
                let begin = last << self.g.bshift;
                if last < NDADDR as u64 {
                    let end = begin + (u64::from(held.last_frags) << self.g.fshift);
                    (end - u64::from(self.g.fsize) + 1, end)
                } else {
                    (begin + 1, begin + u64::from(self.g.bsize))
                }
            }
        };
        let mut size = if (low..=high).contains(&inode.size) { inode.size } else { high };
        if kind == Kind::Dir {
            size = size.next_multiple_of(DIRBLKSIZ as u64);
        }
        if size != inode.size {
            let (message, too_long) = match held.last {
                Some(last) => {
                    let message = format!("size {} does not agree with its last block, {last}", inode.size);
                    (message, inode.size > last.saturating_mul(self.g.bsize.into()))
                }
                None => (format!("size {} without any block", inode.size), false),
            };
            let finding = Finding::Size { too_long };
            self.problem(Phase::BlocksAndSizes, finding, Place::Inode(ino), message, "set by its blocks");
            inode.size = size;
        }
    }

    pub(super) fn duplicates(&mut self) -> Result<(), FfsError> {
        self.asked(Phase::Duplicates)?;
        let untyped = std::mem::take(&mut self.untyped);
        let later: Vec<Ino> = [&self.second, &self.unsettled, &untyped].into_iter().flatten().copied().collect();
        for ino in later {
            self.set_aside(ino)?;
        }
        self.settle_all()?;
        self.give_types(untyped)?;
        self.pending = crate::format::Bitmap::new(self.pending.capacity());
        self.looked_into.clear();
        self.links()?;
        for ino in std::mem::take(&mut self.holes) {
            self.fill_holes(ino)?;
        }
        Ok(())
    }

    fn settle_all(&mut self) -> Result<(), FfsError> {
        for ino in std::mem::take(&mut self.second) {
            self.settle(ino, true)?;
        }
        for ino in std::mem::take(&mut self.unsettled) {
            self.settle(ino, false)?;
        }
        Ok(())
    }

    /// Gives a directory that has nothing an empty block, or fragments. Where there is no room for that either it is
    /// cleared.
    fn fill_empty(&mut self, ino: Ino, mut inode: Dinode) -> Result<(), FfsError> {
        let block = self.empty_directory_block(1)?;
        let repair = if block.is_some() { "filled with empty blocks" } else { "cleared: there is no room" };
        let message = "directory with blocks missing";
        self.problem(Phase::BlocksAndSizes, Finding::DirectoryHole, Place::Inode(ino), message, repair);
        let Some((addr, frags)) = block else {
            self.dirs.remove(&ino);
            return self.clear(ino);
        };
        inode.size = u64::from(frags << self.g.fshift);
        inode.blocks += inode.size / 512;
        if let Some(slot) = inode.db.first_mut() {
            *slot = addr.0 as i64;
        }
        self.put_inode(ino, &inode)
    }

    /// Puts empty blocks where a directory has none: a directory has no holes.
    fn fill_holes(&mut self, ino: Ino) -> Result<(), FfsError> {
        let mut inode = self.inode(ino)?;
        if inode.size == 0 {
            return self.fill_empty(ino, inode);
        }
        let message = "directory with blocks missing";
        self.problem(
            Phase::BlocksAndSizes,
            Finding::DirectoryHole,
            Place::Inode(ino),
            message,
            "filled with empty blocks",
        );
        let blocks = inode.size.div_ceil(self.g.bsize.into());
        let sectors = u64::from(self.g.bsize / 512);
        let mut whole = true;
        for lbn in 0..NDADDR.min(blocks as usize) {
            if inode.db.get(lbn) == Some(&0) && whole {
                whole = self.empty_block(true)?.is_some_and(|addr| {
                    inode.blocks += sectors;
                    inode.db.get_mut(lbn).is_some_and(|slot| {
                        *slot = addr.0 as i64;
                        true
                    })
                });
            }
        }
        if whole && blocks > NDADDR as u64 {
            if inode.ib[0] == 0 {
                inode.ib[0] = self.empty_block(false)?.map_or(0, |addr| addr.0 as i64);
                inode.blocks += if inode.ib[0] == 0 { 0 } else { sectors };
            }
            whole = inode.ib[0] != 0;
            if whole {
                let at = self.g.byte_of(FragAddr(inode.ib[0].unsigned_abs()));
                let mut bytes = read(&self.store, at, self.g.bsize as usize)?;
                let reach = (blocks - NDADDR as u64).min(self.g.nindir()) as usize;
                for (i, pointer) in decode_pointers(&bytes, &self.g).into_iter().enumerate().take(reach) {
                    if pointer == 0 && whole {
                        let block = self.empty_block(true)?;
                        whole = block.is_some();
                        inode.blocks += if whole { sectors } else { 0 };
                        self.set_pointer(&mut bytes, i, block.map_or(0, |addr| addr.0 as i64));
                    }
                }
                write(&mut self.store, at, &bytes)?;
            }
        }
        self.put_inode(ino, &inode)?;
        let end = self.end_without_hole(ino, &inode)?;
        if end < inode.size {
            // No block is free, or the hole is beyond the first indirect block: the directory ends there, and what it
            // had names for goes to lost+found.
            let kept = end.div_ceil(self.g.bsize.into());
            inode.size = end;
            for (lbn, slot) in inode.db.iter_mut().enumerate() {
                *slot = if (lbn as u64) < kept { *slot } else { 0 };
            }
            if kept <= NDADDR as u64 {
                inode.ib[0] = 0;
            }
            (inode.ib[1], inode.ib[2]) = (0, 0);
            self.put_inode(ino, &inode)?;
        }
        Ok(())
    }

    /// A block of empty directory chunks, or of zeros for an indirect block.
    pub(super) fn empty_block(&mut self, directory: bool) -> Result<Option<FragAddr>, FfsError> {
        let Some(addr) = self.take_block() else { return Ok(None) };
        let bytes = if directory {
            fresh_chunk(self.g.dir_format()).repeat(self.g.bsize as usize / DIRBLKSIZ)
        } else {
            vec![0; self.g.bsize as usize]
        };
        write(&mut self.store, self.g.byte_of(addr), &bytes)?;
        Ok(Some(addr))
    }

    /// Empty directory chunks in a whole block or, where none is free, in at least so many fragments; how many there
    /// are.
    pub(super) fn empty_directory_block(&mut self, least: u32) -> Result<Option<(FragAddr, u32)>, FfsError> {
        if let Some(addr) = self.empty_block(true)? {
            return Ok(Some((addr, self.g.frag)));
        }
        let Some(addr) = self.take_fragments(least) else { return Ok(None) };
        let bytes = fresh_chunk(self.g.dir_format()).repeat((least << self.g.fshift) as usize / DIRBLKSIZ);
        write(&mut self.store, self.g.byte_of(addr), &bytes)?;
        Ok(Some((addr, least)))
    }

    /// The byte of a file where its first hole is, or its size.
    fn end_without_hole(&self, ino: Ino, inode: &Dinode) -> Result<u64, FfsError> {
        let (mut end, mut hole) = (0, false);
        file_runs(&self.store, &self.g, ino, inode, &mut |run| {
            let from = run.lbn.0 << self.g.bshift;
            hole |= from != end;
            end = if hole { end } else { from + run.bytes };
            Ok(())
        })?;
        Ok(end.min(inode.size))
    }
}
