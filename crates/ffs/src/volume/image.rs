//! A live file system from an image, and back into one.

use super::Ffs;
use super::crashed::Crashed;
use super::inodes::{Body, Inodes, Node, Own};
use super::pointers::{self, Indirects, Leaf};
use super::snapshot::Snapshot;
use crate::format::{Dinode, FileType, FragAddr, Geometry, GroupNo, NDADDR, SF_SNAPSHOT, Version};
use crate::image::{EachPiece, decode_pointers};
use crate::log::LogState;
use crate::mkfs::{MkfsOptions, New, NewDirectory, compose};
use crate::policy::Options;
use crate::{FfsError, Image, Store};
use device::store::{StoreError, read, write};
use kernel::{BlockId, Ino, Lbn};
use std::io;
use ufs::directory::Directory;
use ufs::live::{Files as _, Freed, Piece};

/// Fills in bytes of a file's data: inode, byte of the file, place for the bytes.
pub type DataSource<'a> = dyn FnMut(Ino, u64, &mut [u8]) -> io::Result<()> + 'a;

impl Ffs {
    /// A new, empty file system: what [`mkfs`](crate::mkfs()) makes, without an image.
    pub fn format(mkfs_options: &MkfsOptions, options: Options) -> Result<Ffs, FfsError> {
        let New { sb, home, g, groups, directories, .. } = compose(mkfs_options, &mut || Ok(()))?;
        let mut inodes = Inodes::default();
        for NewDirectory { ino, inode: d, bytes, .. } in directories {
            let directory = Directory::load(g.dir_format(), &bytes).map_err(FfsError::from)?;
            let body = Body::Directory(Box::new(directory));
            inodes.insert(ino.0, Node { d, indirects: None, body, own: Own::default() });
        }
        Ffs::assemble(sb, home, groups, inodes, options)
    }

    /// The file system in an image, all of its structures. One that is damaged, or whose counts are wrong, is refused:
    /// `fsck` repairs it. One of Soft Updates that was not unmounted is used as it is, within what that mode leaves
    /// (`crashed`).
    pub fn load<S: Store>(image: &Image<S>, options: Options) -> Result<Ffs, FfsError> {
        let g = *image.geometry();
        if g.old_groups {
            let why = "cylinder groups of 4.2BSD can be read and checked, not written; copy its files into a new one";
            return Err(FfsError::NotWritable(why.to_owned()));
        }
        let mut crashed = Crashed::of(image.superblock(), &options);
        let mut groups = Vec::new();
        for number in (0..g.ncg).map(GroupNo) {
            let mut group = image.group(number)?;
            if !group.is_of(&g, number) {
                let why = format!("the header of cylinder group {number} is damaged; repair it with `fsage fsck`");
                return Err(FfsError::NotWritable(why));
            }
            if let Some(crashed) = &mut crashed {
                crashed.count(number, &mut group, &g);
            } else if image.superblock().wide() {
                // Systems that keep the wide fields let these tables go stale, and nobody minds. Allocation by position
                // does.
                let mut counted = group.clone();
                counted.recount(&g);
                (group.block_totals, group.block_positions) = (counted.block_totals, counted.block_positions);
            }
            groups.push(group);
        }
        let mut inodes = Inodes::default();
        let [listed, others @ ..] = image.superblock().snapinum;
        if image.superblock().wide() && others.iter().any(|ino| *ino != 0) {
            let why =
                "it has several snapshots; one can be kept here, so remove the others with the system that took them";
            return Err(FfsError::NotWritable(why.to_owned()));
        }
        let mut snapshot = None;
        for (number, group) in (0..).zip(&groups) {
            let size = g.layout.version.inode_bytes() as usize;
            let at = g.byte_of(g.group_inodes(GroupNo(number)));
            let mut next = 0;
            while let Some(index) = group.used_inodes.next_set(next, g.ipg as usize) {
                next = index + 1;
                let ino = number * g.ipg + index as u32;
                if ino < crate::format::ROOT_INO.0 {
                    continue;
                }
                let d = Dinode::decode(&read(image.store(), at + (index * size) as u64, size)?, &g);
                if crashed.is_some() && d.mode == 0 {
                    continue; // It was about to be made, or has been freed.
                }
                let mut node = load_node(image, &g, ino, d, crashed.is_some())?;
                if image.superblock().wide() && ino == listed && node.d.flags & SF_SNAPSHOT != 0 {
                    snapshot = Some(Snapshot::load(ino, &mut node, &g)?);
                }
                inodes.insert(ino, node);
            }
        }
        let mut ffs = Ffs::assemble(image.superblock().clone(), image.superblock_at(), groups, inodes, options)?;
        ffs.log = LogState::load(image)?;
        if snapshot.is_none() {
            ffs.sb.snapinum.fill(0);
        }
        ffs.snapshot = snapshot;
        ffs.crashed = crashed;
        ffs.look_at_crash();
        match ffs.check().into_iter().next() {
            None => Ok(ffs),
            Some(problem) if ffs.crashed.is_some() => Err(FfsError::NeedsFullCheck(problem.to_string())),
            Some(problem) => Err(FfsError::Inode {
                ino: problem.ino.unwrap_or(crate::format::ROOT_INO.0),
                problem: format!("this file system is damaged: {problem}"),
            }),
        }
    }

    /// Writes all structures into an image that is as long as the file system, and, if there is a source, the data of
    /// files. Blocks without content are left as they are.
    pub fn store(
        &self,
        store: &mut (impl Store + ?Sized),
        mut data: Option<&mut DataSource<'_>>,
    ) -> Result<(), FfsError> {
        if self.snapshot.is_some() {
            let why = "an image with a snapshot has every byte in it: open it with data=full";
            return Err(FfsError::NotWritable(why.to_owned()));
        }
        let g = &self.g;
        for (ino, node) in self.inodes.iter() {
            self.store_file(store, Ino(ino), node, data.as_deref_mut())?;
        }
        let mut block = vec![0; g.bsize as usize];
        for number in 0..g.ncg {
            let Some(cg) = self.group_now(GroupNo(number)) else { continue };
            let written = if g.layout.version == Version::Ufs2 { cg.initediblk.min(g.ipg) } else { g.ipg };
            let first = g.byte_of(g.group_inodes(GroupNo(number)));
            for (n, index) in (0_u64..).zip((0..written).step_by(g.inopb() as usize)) {
                block.fill(0);
                self.encode_inodes(number * g.ipg + index, &mut block);
                write(store, first + (n << g.bshift), &block)?;
            }
            write(store, g.byte_of(g.group_block(GroupNo(number))), &cg.encode(g))?;
        }
        write(store, g.byte_of(g.csaddr), &self.summaries())?;
        let orphans = self.inodes.iter().any(|(_, node)| node.d.nlink <= 0);
        let superblock = self.superblock_now(!orphans).encode();
        for number in 0..g.ncg {
            write(store, self.sb.copy_at(g, GroupNo(number)), &superblock)?;
        }
        Ok(write(store, self.sb_at, &superblock)?)
    }

    fn store_file(
        &self,
        store: &mut (impl Store + ?Sized),
        ino: Ino,
        node: &Node,
        data: Option<&mut DataSource<'_>>,
    ) -> Result<(), FfsError> {
        let g = &self.g;
        let mut block = vec![0; g.bsize as usize];
        if let Some(indirects) = &node.indirects {
            let leaves = indirects.leaves.iter().map(|(first, leaf)| (-(*first as i64), leaf.addr));
            for (number, addr) in leaves.chain(indirects.upper.iter().map(|(number, addr)| (*number, *addr))) {
                block.fill(0);
                self.encode_indirect(BlockId { ino, lbn: Lbn(number) }, &mut block);
                write(store, g.byte_of(FragAddr(addr.unsigned_abs())), &block)?;
            }
        }
        let own = !matches!(node.body, Body::File);
        let mut result = Ok(());
        let mut data = data;
        let visit = self.each_block(ino, &mut |lbn, piece| {
            if result.is_err() {
                return;
            }
            let Some(bytes) = block.get_mut(..piece.bytes as usize) else { return };
            bytes.fill(0);
            if own {
                self.encode_content(BlockId { ino, lbn: Lbn(lbn as i64) }, bytes);
            } else if let Some(data) = data.as_deref_mut() {
                // What is behind the end of the file is zeros, whatever its blocks hold.
                let at = lbn << g.bshift;
                let len = node.d.size.saturating_sub(at).min(bytes.len() as u64) as usize;
                let source = bytes.get_mut(..len).map_or(Ok(()), |place| data(ino, at, place));
                if let Err(source) = source {
                    let at_byte = g.byte_of(FragAddr(piece.addr.unsigned_abs()));
                    result = Err(StoreError { doing: "write", at_byte, len, source });
                    return;
                }
            } else {
                return;
            }
            result = write(store, g.byte_of(FragAddr(piece.addr.unsigned_abs())), bytes);
        });
        visit.map_err(|_| FfsError::Inode { ino: ino.0, problem: "is not in memory".to_owned() })?;
        Ok(result?)
    }
}

/// An inode with its indirect blocks and what is the file system's own of its contents.
fn load_node<S: Store>(image: &Image<S>, g: &Geometry, ino: u32, d: Dinode, crashed: bool) -> Result<Node, FfsError> {
    let wrong = |problem: String| FfsError::Inode { ino, problem };
    let file_type = d.file_type().ok_or_else(|| wrong(format!("mode {:o} is no file's", d.mode)))?;
    let indirects = if d.has_blocks(g) { load_indirects(image, g, ino, &d)? } else { None };
    let body = match file_type {
        // It was about to be made, and has no name.
        FileType::Directory if crashed && d.size == 0 => {
            Body::Directory(Box::new(Directory::load(g.dir_format(), &[]).map_err(FfsError::from)?))
        }
        FileType::Directory => {
            let pieces = |each: EachPiece<'_>| image.data(Ino(ino), &d, each);
            let directory = ufs::image::directory(Ino(ino), d.size, g.dir_format(), pieces)?;
            Body::Directory(Box::new(directory))
        }
        FileType::Symlink => Body::Symlink(image.symlink(Ino(ino), &d)?.into()),
        _ => Body::File,
    };
    Ok(Node { d, indirects, body, own: Own::default() })
}

fn load_indirects<S: Store>(
    image: &Image<S>,
    g: &Geometry,
    ino: u32,
    d: &Dinode,
) -> Result<Option<Box<Indirects>>, FfsError> {
    let n = g.nindir();
    let mut indirects = Indirects::default();
    let mut first = NDADDR as u64;
    let mut budget = g.size_frags / u64::from(g.frag);
    for (level, addr) in (0_u32..).zip(d.ib) {
        let mut todo = vec![(-(first as i64) - i64::from(level), addr)];
        while let Some((number, addr)) = todo.pop() {
            if addr == 0 {
                continue;
            }
            let outside = !g.holds(addr, g.frag.into()) || budget == 0;
            if outside {
                return Err(FfsError::Inode {
                    ino,
                    problem: format!("indirect block {addr} is outside the file system"),
                });
            }
            budget -= 1;
            let bytes = read(image.store(), g.byte_of(FragAddr(addr.unsigned_abs())), g.bsize as usize)?;
            let mut pointers = decode_pointers(&bytes, g);
            let Some((reached, level)) = pointers::of_number(number, n) else { continue };
            if level == 0 {
                let len = pointers.iter().rposition(|addr| *addr != 0).map_or(0, |last| last + 1);
                pointers.truncate(len);
                pointers.shrink_to_fit();
                indirects.leaves.insert(reached, Leaf { addr, pointers });
                continue;
            }
            indirects.upper.insert(number, addr);
            let span = n.pow(level);
            let children = (0_u64..).zip(pointers).filter(|(_, addr)| *addr != 0);
            todo.extend(children.map(|(at, addr)| (-((reached + at * span) as i64) - i64::from(level - 1), addr)));
        }
        first = first.saturating_add(n.saturating_pow(level + 1));
    }
    let none = indirects.leaves.is_empty() && indirects.upper.is_empty();
    Ok((!none).then(|| Box::new(indirects)))
}

impl Ffs {
    /// Every place that a file holds: data, then indirect blocks, then extended attributes.
    pub(super) fn each_piece(&self, ino: u32, node: &Node, each: &mut dyn FnMut(Piece)) {
        // An inode that is being walked is there.
        let _ = self.each_block(Ino(ino), &mut |_, piece| each(piece));
        let bytes = self.g.bsize;
        for indirects in node.indirects.iter().filter(|_| node.d.has_blocks(&self.g)) {
            indirects.leaves.values().for_each(|leaf| each(Piece { addr: leaf.addr, bytes }));
            indirects.upper.values().for_each(|addr| each(Piece { addr: *addr, bytes }));
        }
        self.extended_pieces(node).for_each(|Freed { addr, bytes, .. }| each(Piece { addr, bytes }));
    }

    /// The blocks of a UFS2 inode's extended attributes. They are kept with the file, and given back with it; nothing
    /// here looks into them.
    pub(super) fn extended_pieces(&self, node: &Node) -> impl Iterator<Item = Freed> + use<> {
        let size = u64::from(node.d.extsize);
        let g = self.g;
        let held = (0..).zip(node.d.extb).filter(|(_, addr)| *addr != 0);
        held.map(move |(lbn, addr)| match g.block_bytes(size, lbn) {
            0 => Freed { lbn: lbn as i64, addr, bytes: g.bsize },
            bytes => Freed { lbn: lbn as i64, addr, bytes },
        })
    }
}
