//! The bytes of a block, made on demand.

use super::{Ffs, pointers};
use crate::format::{Disk as _, FragAddr, GroupNo, Version, flags};
use crate::integrity::{Integrity, mode};
use crate::policy::LateWrites;
use kernel::program::IoId;
use kernel::{BlockId, Cx, Encode, Ino, Pbn};
use ufs::live::{Files as _, copy};

/// What a block outside all files is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Superblock,
    /// Bytes of the group summaries, from this one on.
    Summaries(usize),
    Group(GroupNo),
    /// Inodes, from this one on.
    Inodes(u32),
    Unknown,
}

impl Encode for Ffs {
    fn encode(&self, id: BlockId, pbn: Pbn, out: &mut [u8]) {
        if id.ino == Ino::DEVICE {
            self.encode_place(pbn, out);
        } else if id.lbn.0 < 0 {
            self.encode_indirect(id, out);
        } else {
            self.encode_content(id, out);
        }
        mode!(self.undo(id, pbn, out));
    }

    fn sets_out(&mut self, cx: &mut Cx, id: BlockId, io: IoId) {
        if self.snapshot_ino().is_some() {
            self.keep_old(cx, id);
        }
        mode!(self.sets_out(cx, id, io));
    }

    fn gathers_late(&self) -> bool {
        self.choices().late == LateWrites::Gathered
    }
}

impl Ffs {
    pub(crate) fn place(&self, pbn: Pbn) -> Place {
        if pbn.bytes() == self.sb_at {
            return Place::Superblock;
        }
        let g = &self.g;
        let frag = FragAddr(pbn.bytes() >> g.fshift);
        let summaries = g.csaddr.0..g.csaddr.0 + g.frags_of(g.cssize.into());
        if summaries.contains(&frag.0) {
            return Place::Summaries(((frag.0 - summaries.start) << g.fshift) as usize);
        }
        let group = g.group_of(frag);
        if frag == g.group_block(group) {
            return Place::Group(group);
        }
        let first = g.group_inodes(group);
        let within = frag.0.wrapping_sub(first.0) << g.fshift;
        let index = within / u64::from(g.layout.version.inode_bytes());
        if frag >= first && index < u64::from(g.ipg) {
            return Place::Inodes(group.0 * g.ipg + index as u32);
        }
        Place::Unknown
    }

    fn encode_place(&self, pbn: Pbn, out: &mut [u8]) {
        match self.place(pbn) {
            Place::Superblock => copy(&self.superblock_now(!self.mounted).encode(), out),
            Place::Summaries(from) => copy(self.summaries().get(from..).unwrap_or_default(), out),
            Place::Group(group) => {
                if let Some(cg) = self.group_now(group) {
                    copy(&cg.encode(&self.g), out);
                }
            }
            Place::Inodes(first) => self.encode_inodes(first, out),
            Place::Unknown => {}
        }
    }

    /// A group as the disk is to have it: what files have given up is free in it, even where nobody may have it yet.
    pub(super) fn group_now(&self, group: GroupNo) -> Option<crate::CylinderGroup> {
        let mut cg = self.space.group(group)?;
        let mut given_up = self.journal.iter().flat_map(|journal| journal.given_up()).peekable();
        if given_up.peek().is_some() {
            let base = self.g.group_base(group).0;
            for (addr, frags) in given_up.filter(|(addr, _)| self.space.group_of(*addr) == group) {
                cg.free.put_range((addr.0 - base) as usize, frags as usize, true);
            }
            cg.recount(&self.g);
        }
        Some(cg)
    }

    /// The superblock with the counts as they are.
    pub(crate) fn superblock_now(&self, clean: bool) -> crate::Superblock {
        let mut sb = self.sb.clone();
        sb.set_cstotal(&self.space.total);
        sb.optim = i32::from(self.optim == crate::policy::optim::Optimise::Space);
        sb.clean = i8::from(clean && self.crashed.is_none());
        if self.crashed.is_some() {
            sb.flags |= flags::UNCLEAN;
        }
        sb.fmod = 0;
        if self.log.is_some() {
            sb.set_log_in_use(!clean && self.options.integrity.has_log());
        }
        if matches!(self.options.integrity, Integrity::Softdep | Integrity::SoftdepJournal) && sb.wide() {
            // As tunefs sets it: whoever checks it knows what a crash can have left.
            sb.flags |= flags::DOSOFTDEP;
        } else if sb.wide() && !clean {
            // What a crash leaves of another mode is not what Soft Updates leave.
            sb.flags &= !flags::DOSOFTDEP;
        }
        if sb.wide() {
            // What a crash left to be freed has been, or is not known any more.
            (sb.pendingblocks, sb.pendinginodes) = (0, 0);
        }
        sb
    }

    /// The summaries of all groups.
    pub(super) fn summaries(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.g.cssize as usize];
        for (cs, place) in self.space.cs.iter().zip(bytes.chunks_mut(16)) {
            cs.encode(place, self.g.endian());
        }
        bytes
    }

    pub(super) fn encode_inodes(&self, first: u32, out: &mut [u8]) {
        let size = self.g.layout.version.inode_bytes() as usize;
        for (ino, place) in (first..).zip(out.chunks_mut(size)) {
            if let Some(node) = self.inodes.get(ino) {
                copy(&self.encode_inode(ino, &node.d), place);
            }
        }
    }

    pub(super) fn encode_indirect(&self, id: BlockId, out: &mut [u8]) {
        let Some(indirects) = self.inodes.get(id.ino.0).and_then(|node| node.indirects.as_ref()) else { return };
        let (endian, width) = (self.g.endian(), self.g.layout.version.pointer_bytes() as usize);
        let mut put = |at: usize, addr: pointers::Pointer| match self.g.layout.version {
            Version::Ufs1 => (addr as i32).put(endian, out, at * width),
            Version::Ufs2 => addr.put(endian, out, at * width),
        };
        indirects.content(id.lbn.0, self.g.nindir(), &mut put);
        self.not_copied(id).for_each(|(at, addr)| put(at, addr));
    }
}
