//! A file system of Soft Updates that was not unmounted: used as it is, before anybody has checked it.
//!
//! A crash leaves blocks and inodes that are marked as used and that nothing has, links that are no names, and what
//! follows from these: that only wastes room, until a check of a snapshot has found it and the file system gives it
//! back ([`kernel::Volume::give_back`]; McKusick, "Running 'fsck' in the Background", BSDCon 2002). What somebody could
//! stumble over is put right while mounting: counts that follow from maps, blocks behind a file's end, a directory's
//! second name. What is more than Soft Updates leave is refused.
//!
//! A kernel would find the last two when it first uses such an inode. Here all inodes are in memory, and are found at
//! no cost; that they are put right takes its time.

use super::Ffs;
use super::inodes::{Body, Node};
use crate::format::{CylinderGroup, FragAddr, Geometry, GroupNo, NDADDR, ROOT_INO, Superblock, flags};
use crate::integrity::{Integrity, mode};
use crate::planted::Bug;
use crate::policy::Options;
use kernel::{CheckEnd, Correction, Cx, Durability, Ino};
use posix::Errno;
use std::collections::{BTreeMap, BTreeSet};
use ufs::directory::Directory;
use ufs::live::{Backing as _, Files as _, Freed, Piece, operations, truncate};

/// What is known of a crash that no check has gone over yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crashed {
    /// Groups whose counts do not follow from their maps on the disk.
    groups: Vec<GroupNo>,
    /// Inodes whose block count is wrong, or which have blocks behind their end.
    inodes: Vec<Ino>,
    /// Second names of directories: where, which, of what.
    names: Vec<(Ino, Vec<u8>, Ino)>,
    /// The snapshot of a check that did not end: it had lost its name already.
    snapshot: Option<(Ino, Vec<Entry>)>,
}

/// A directory and a name in it.
type Entry = (Ino, Vec<u8>);

impl Crashed {
    /// Of a file system that may be in use without a check.
    pub(super) fn of(sb: &Superblock, options: &Options) -> Option<Crashed> {
        (options.integrity == Integrity::Softdep && is_tolerable(sb)).then(Crashed::default)
    }

    /// A group has the counts that follow from its maps.
    pub(super) fn count(&mut self, number: GroupNo, group: &mut CylinderGroup, g: &Geometry) {
        let was = group.clone();
        group.recount(g);
        let same = (was.cs.nbfree, was.cs.nffree, was.cs.nifree) == (group.cs.nbfree, group.cs.nffree, group.cs.nifree)
            && was.frsum == group.frsum
            && (&was.clusters, &was.cluster_sum) == (&group.clusters, &group.cluster_sum);
        if !same {
            self.groups.push(number);
        }
    }
}

/// Whether a file system that was not unmounted may be used at once: it was under Soft Updates, and nobody asks for a
/// full check.
pub(crate) fn is_tolerable(sb: &Superblock) -> bool {
    sb.wide() && sb.clean & 1 == 0 && sb.flags & flags::DOSOFTDEP != 0 && sb.flags & flags::NEEDSFSCK == 0
}

impl Ffs {
    /// Whether a crash may have left something that nobody has looked for yet.
    pub fn is_unchecked(&self) -> bool {
        self.crashed.is_some()
    }

    /// All structures are in memory: counts what follows from them, and lists what mounting is to put right.
    pub(super) fn look_at_crash(&mut self) {
        let Some(mut crashed) = self.crashed.take() else { return };
        let sectors = u64::from(self.g.fsize / 512);
        let mut directories = vec![0; self.g.ncg as usize];
        let mut counts = Vec::new();
        for (ino, node) in self.inodes.iter() {
            if let (Body::Directory(_), Some(count)) = (&node.body, directories.get_mut((ino / self.g.ipg) as usize)) {
                *count += 1;
            }
            let mut frags = 0;
            self.each_piece(ino, node, &mut |piece| frags += u64::from(piece.bytes >> self.g.fshift));
            if frags * sectors != node.d.blocks || self.goes_beyond(node) {
                counts.push((ino, frags * sectors));
            }
        }
        for (ino, blocks) in counts {
            if let Some(node) = self.inodes.get_mut(ino) {
                node.d.blocks = blocks;
            }
            crashed.inodes.push(Ino(ino));
        }
        for (number, found) in (0..).zip(directories) {
            if self.space.summary(GroupNo(number)).ndir != found {
                self.space.set_directories(number, found);
                crashed.groups.push(GroupNo(number));
            }
        }
        crashed.names = self.second_names();
        crashed.snapshot = self.snapshot_left();
        self.crashed = Some(crashed);
    }

    /// Blocks behind a file's end, which are whole.
    pub(super) fn beyond(&self, node: &Node) -> Vec<Piece> {
        if !node.d.has_blocks(&self.g) {
            return Vec::new();
        }
        let (end, bytes) = (node.d.size.div_ceil(self.g.bsize.into()), self.g.bsize);
        let direct = node.d.db.iter().skip(end.min(NDADDR as u64) as usize);
        let leaves = node.indirects.iter().flat_map(|indirects| &indirects.leaves);
        let behind = leaves.flat_map(|(first, leaf)| (*first..).zip(&leaf.pointers));
        let indirect = behind.filter(|(lbn, _)| *lbn >= end).map(|(_, addr)| addr);
        direct.chain(indirect).filter(|addr| **addr != 0).map(|addr| Piece { addr: *addr, bytes }).collect()
    }

    /// Whether a file has blocks behind its end, or indirect blocks that reach only there.
    fn goes_beyond(&self, node: &Node) -> bool {
        let end = node.d.size.div_ceil(self.g.bsize.into());
        let indirects = node.indirects.as_deref().filter(|_| node.d.has_blocks(&self.g));
        let leaves = indirects.into_iter().flat_map(|indirects| indirects.leaves.keys().copied());
        let upper = indirects.into_iter().flat_map(|indirects| indirects.upper.keys());
        let upper = upper.filter_map(|number| super::pointers::of_number(*number, self.g.nindir())).map(|(at, _)| at);
        !self.beyond(node).is_empty() || leaves.chain(upper).any(|first| first >= end)
    }

    /// Names of directories that have another: one that was being moved. It keeps the one that its `..` leads to, of
    /// those that can be reached from the root.
    fn second_names(&self) -> Vec<(Ino, Vec<u8>, Ino)> {
        let names = self.names_of_directories();
        let mut second = Vec::new();
        for (child, of_child) in names.iter().filter(|(_, of_child)| of_child.len() > 1) {
            let reached = self.reached(*child, &names);
            let dotdot = self.directory(Ino(*child)).ok().and_then(Directory::parent);
            let place = |good: &dyn Fn(u32) -> bool| of_child.iter().position(|(dir, _)| good(*dir));
            let kept = place(&|dir| Some(dir) == dotdot && reached.contains(&dir))
                .or_else(|| place(&|dir| reached.contains(&dir)))
                .or_else(|| place(&|dir| Some(dir) == dotdot))
                .unwrap_or(0);
            let others = of_child.iter().enumerate().filter(|(at, _)| *at != kept);
            second.extend(others.map(|(_, (dir, name))| (Ino(*dir), name.clone(), Ino(*child))));
        }
        second
    }

    /// The snapshot of a check that did not end, which no name leads to, and names of it where nothing leads.
    fn snapshot_left(&self) -> Option<(Ino, Vec<Entry>)> {
        let ino = self.snapshot_ino()?;
        let reached = self.reached(u32::MAX, &self.names_of_directories());
        let mut names = Vec::new();
        for (dir, node) in self.inodes.iter() {
            let Body::Directory(directory) = &node.body else { continue };
            for (name, _) in entries(directory).filter(|(_, named)| *named == ino.0) {
                if reached.contains(&dir) {
                    return None;
                }
                names.push((Ino(dir), name.to_vec()));
            }
        }
        Some((ino, names))
    }

    /// By directory, where its names are.
    fn names_of_directories(&self) -> BTreeMap<u32, Vec<(u32, Vec<u8>)>> {
        let mut names: BTreeMap<u32, Vec<(u32, Vec<u8>)>> = BTreeMap::new();
        for (dir, node) in self.inodes.iter() {
            let Body::Directory(directory) = &node.body else { continue };
            for (name, child) in entries(directory).filter(|(_, child)| self.directory(Ino(*child)).is_ok()) {
                names.entry(child).or_default().push((dir, name.to_vec()));
            }
        }
        names
    }

    /// Directories that names lead to from the root, but not through one of them.
    fn reached(&self, without: u32, names: &BTreeMap<u32, Vec<(u32, Vec<u8>)>>) -> BTreeSet<u32> {
        let mut reached = BTreeSet::from([ROOT_INO.0]);
        loop {
            let before = reached.len();
            for (child, of_child) in names.iter().filter(|(child, _)| **child != without) {
                if of_child.iter().any(|(dir, _)| reached.contains(dir)) {
                    reached.insert(*child);
                }
            }
            if reached.len() == before {
                return reached;
            }
        }
    }

    /// It is mounted after a crash: puts right what somebody could stumble over.
    pub(super) fn settle_crash(&mut self, cx: &mut Cx) -> Result<(), Errno> {
        let Some(crashed) = &mut self.crashed else { return Ok(()) };
        let Crashed { groups, inodes, names, snapshot } = std::mem::take(crashed);
        // What is free is known from the maps alone.
        for number in 0..self.g.ncg {
            cx.read(&Ffs::group_block(&self.g, GroupNo(number)));
        }
        for number in groups {
            cx.change(&Ffs::group_block(&self.g, number));
        }
        self.modified = true;
        for ino in inodes {
            mode!(self.begins(cx));
            let node = self.node(ino)?;
            let size = node.d.size;
            if self.goes_beyond(node) {
                let frags = self.beyond(node).len() as i64 * i64::from(self.g.frag);
                self.charge(ino, frags);
                truncate::shorten(self, cx, ino, size)?;
            }
            self.update(cx, ino);
            mode!(self.ends(cx));
        }
        for (dir, name, ino) in names {
            operations::unlink(self, cx, dir, &name, ino)?;
        }
        if let Some((ino, names)) = snapshot {
            for (dir, name) in names {
                operations::unlink(self, cx, dir, &name, ino)?;
            }
            let links = u32::try_from(self.node(ino)?.d.nlink).unwrap_or(0);
            self.drop_excess(cx, ino, links)?;
            operations::release(self, cx, ino);
        }
        Ok(())
    }

    // ---- giving back

    /// [`kernel::Volume::give_back`]
    pub(super) fn take_back(&mut self, cx: &mut Cx, correction: &Correction) -> Result<Vec<Ino>, Errno> {
        if self.options.integrity != Integrity::Softdep {
            return Err(Errno::EOPNOTSUPP);
        }
        match *correction {
            Correction::Names { dir } => self.drop_names(cx, dir),
            Correction::Links { ino, links } => self.drop_excess(cx, ino, links),
            Correction::Number { ino } => self.drop_number(cx, ino),
            Correction::Space { at_byte, len_bytes } => self.drop_space(cx, at_byte, len_bytes),
        }
    }

    fn drop_names(&mut self, cx: &mut Cx, dir: Ino) -> Result<Vec<Ino>, Errno> {
        let names: Vec<(Vec<u8>, Ino)> =
            entries(self.directory(dir)?).map(|(name, ino)| (name.to_vec(), Ino(ino))).collect();
        let mut unlinked = Vec::new();
        for (name, ino) in names {
            match self.directory(ino) {
                Ok(_) => operations::rmdir(self, cx, dir, &name, ino)?,
                Err(_) => operations::unlink(self, cx, dir, &name, ino)?,
            }
            if self.node(ino)?.d.nlink <= 0 {
                unlinked.push(ino);
            }
        }
        Ok(unlinked)
    }

    /// A link that is no name has kept the inode: it is still the one that was checked. One without links may be gone.
    fn drop_excess(&mut self, cx: &mut Cx, ino: Ino, links: u32) -> Result<Vec<Ino>, Errno> {
        let there = match self.node(ino) {
            Ok(node) => node.d.nlink,
            Err(_) if links == 0 => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let links = i16::try_from(links).ok().filter(|links| *links <= there.max(0)).ok_or(Errno::EINVAL)?;
        if links > 0 {
            mode!(self.begins(cx));
            self.node_mut(ino)?.d.nlink = there - links;
            mode!(self.link_dropped(cx, ino, links));
            mode!(self.ends(cx));
        }
        Ok(if there - links <= 0 { vec![ino] } else { Vec::new() })
    }

    fn drop_number(&mut self, cx: &mut Cx, ino: Ino) -> Result<Vec<Ino>, Errno> {
        let group = self.inode_group(ino);
        let index = (ino.0 % self.g.ipg) as usize;
        let used = self.space.groups.get(group.0 as usize).is_some_and(|group| group.cg.used_inodes.get(index));
        let nobodys = self.inodes.get(ino.0).is_none() || self.planted == Some(Bug::BackgroundNumbersOfNow);
        if used && nobodys && ino >= ROOT_INO {
            cx.change(&Ffs::group_block(&self.g, group));
            self.space.free_inode(ino, false);
            self.group_changed(cx, group);
        }
        Ok(Vec::new())
    }

    fn drop_space(&mut self, cx: &mut Cx, at_byte: u64, len_bytes: u64) -> Result<Vec<Ino>, Errno> {
        let (first, frags) = (at_byte >> self.g.fshift, len_bytes >> self.g.fshift);
        let addr = i64::try_from(first).map_err(|_| Errno::EINVAL)?;
        if !self.g.holds(addr, frags) {
            return Err(Errno::EINVAL);
        }
        let mut freed: Vec<Freed> = Vec::new();
        let bytes = self.g.fsize;
        for frag in first..first + frags {
            if self.space.is_free(FragAddr(frag), 1) {
                continue;
            }
            let addr = frag as i64;
            match freed.last_mut() {
                // A piece is of one block.
                Some(last)
                    if !frag.is_multiple_of(self.g.frag.into())
                        && last.addr + i64::from(last.bytes >> self.g.fshift) == addr =>
                {
                    last.bytes += bytes;
                }
                _ => freed.push(Freed { lbn: 0, addr, bytes }),
            }
        }
        self.free_pieces(cx, Ino::DEVICE, &freed);
        Ok(Vec::new())
    }

    /// [`kernel::Volume::checked`]
    pub(super) fn end_of_check(&mut self, cx: &mut Cx, end: CheckEnd) -> Result<(), Errno> {
        kernel::Volume::sync(self, cx, Durability::All)?;
        match end {
            CheckEnd::AllGivenBack => {
                self.crashed = None;
                self.sb.flags &= !flags::UNCLEAN;
            }
            CheckEnd::FullCheckNeeded => {
                self.crashed.get_or_insert_default();
                self.sb.flags |= flags::NEEDSFSCK;
            }
        }
        self.write_superblock(cx, true);
        Ok(())
    }
}

/// Names in a directory, but for `.` and `..`, and their inodes.
fn entries(directory: &Directory) -> impl Iterator<Item = (&[u8], u32)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let (here, head, name) = directory.entry_from(at)?;
            at = Directory::behind(here, &head);
            if name != b"." && name != b".." {
                return Some((name, head.ino));
            }
        }
    })
}
