//! Following an inode's pointers: whether they agree with its size and block count, and whose the blocks are that they
//! lead to.

use super::{Check, Finding, Phase, Place};
use crate::format::{Dinode, Disk as _, FragAddr, Geometry, Ino, NDADDR, Version};
use crate::image::decode_pointers;
use crate::{FfsError, Store};
use device::store::{read, write};
use std::collections::BTreeSet;

/// What an inode's pointers amount to before anything is done about them. The count stops where it is more than the
/// inode says.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Fragments that the inode says it holds; `u64::MAX` where that is no number of fragments.
    pub(super) counted: u64,
    /// Fragments of its blocks up to its size, indirect ones and extended attributes among them.
    pub(super) within: u64,
    /// Size, block count and pointers say the same, and no pointer leads to where no file's block can be.
    pub(super) agrees: bool,
    /// Another inode has one of the blocks.
    pub(super) taken: bool,
    /// There are pointers beyond the size, or to where no file's block can be.
    bad: bool,
    last: Option<u64>,
    next: u64,
    hole: bool,
}

/// What an inode has after it was settled.
#[derive(Default)]
pub(super) struct Held {
    pub(super) frags: u64,
    /// The last block that there is.
    pub(super) last: Option<u64>,
    /// Its fragments.
    pub(super) last_frags: u32,
    /// A block before it is missing.
    pub(super) hole: bool,
    /// The block after the last seen, to notice holes.
    next: u64,
    /// Blocks it has had already.
    own: BTreeSet<u64>,
    /// Blocks of which another file has the end: which of the file, and fragments that are its own. Only the last one
    /// may be so.
    short: Vec<(u64, u32)>,
}

impl Held {
    fn saw(&mut self, lbn: u64) {
        self.hole |= lbn > self.next;
        self.next = lbn + 1;
        self.last = Some(lbn);
    }
}

/// How an inode's pointers are settled.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// Pointers from this block of the file on are stray.
    pub(super) end_lbn: u64,
    /// It agrees with itself: what another one has is copied for it, indirect blocks as well.
    pub(super) second: bool,
    /// In a snapshot, 1 and 2 stand for blocks not copied.
    pub(super) snapshot: bool,
}

/// An indirect block's reach: its pointers go to blocks of a file (level 0) or to indirect blocks of the level below,
/// `span` blocks of the file each, the first at `first`.
#[derive(Clone, Copy, Debug)]
struct Below {
    level: usize,
    first: u64,
    span: u64,
}

impl Below {
    /// The reach of an inode's indirect pointer.
    fn of_inode(level: usize, g: &Geometry) -> Below {
        let n = g.nindir();
        let first = NDADDR as u64 + (1..=level as u32).map(|l| n.pow(l)).sum::<u64>();
        Below { level, first, span: n.pow(level as u32) }
    }

    /// The first block that pointer `i` reaches, and for an indirect block what that reaches.
    fn child(&self, i: usize, g: &Geometry) -> (u64, Option<Below>) {
        let first = self.first + i as u64 * self.span;
        let below = self.level.checked_sub(1).map(|level| Below { level, first, span: self.span / g.nindir() });
        (first, below)
    }
}

/// A pointer: where it is, and what it should point to.
#[derive(Clone, Copy)]
struct Slot {
    ino: Ino,
    /// Its byte in the image.
    at_byte: u64,
    /// First block of the file that it leads to.
    lbn: u64,
    /// Fragments of what it points to.
    frags: u32,
    /// For one to an indirect block: what that reaches.
    below: Option<Below>,
    /// It is where it should be: not in an indirect block that has pointers to where no block can be.
    trusted: bool,
}

/// A pointer that a walk has come to.
struct Met {
    pointer: i64,
    lbn: u64,
    below: Option<Below>,
}

/// What a walk is to do.
enum Next {
    /// Go on, and look into an indirect block.
    Into,
    Past,
    Stop,
}

/// Goes over an inode's pointers that are not 0 in the order of the file; whether it came to the end.
fn walk<S: Store>(
    store: &S,
    g: &Geometry,
    inode: &Dinode,
    each: &mut dyn FnMut(&Met) -> Result<Next, FfsError>,
) -> Result<bool, FfsError> {
    for (lbn, pointer) in (0..).zip(&inode.db).filter(|(_, pointer)| **pointer != 0) {
        if let Next::Stop = each(&Met { pointer: *pointer, lbn, below: None })? {
            return Ok(false);
        }
    }
    for (level, pointer) in inode.ib.iter().enumerate().filter(|(_, pointer)| **pointer != 0) {
        let below = Below::of_inode(level, g);
        if !walk_one(store, g, &Met { pointer: *pointer, lbn: below.first, below: Some(below) }, each)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn walk_one<S: Store>(
    store: &S,
    g: &Geometry,
    met: &Met,
    each: &mut dyn FnMut(&Met) -> Result<Next, FfsError>,
) -> Result<bool, FfsError> {
    match each(met)? {
        Next::Stop => return Ok(false),
        Next::Past => return Ok(true),
        Next::Into => {}
    }
    let Some(below) = met.below else { return Ok(true) };
    let bytes = read(store, g.byte_of(FragAddr(met.pointer.unsigned_abs())), g.bsize as usize)?;
    for (i, pointer) in decode_pointers(&bytes, g).into_iter().enumerate().filter(|(_, pointer)| *pointer != 0) {
        let (lbn, below) = below.child(i, g);
        if !walk_one(store, g, &Met { pointer, lbn, below }, each)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl<S: Store> Check<'_, S> {
    /// Whether a file's block can be there.
    fn can_be(&self, pointer: i64, frags: u64) -> bool {
        let (addr, frag) = (pointer.unsigned_abs(), u64::from(self.g.frag));
        self.g.holds(pointer, frags) && addr % frag + frags <= frag && !self.is_metadata(addr, frags)
    }

    /// Fragments of a block of a file by its size; of one beyond the size, all.
    fn frags_by_size(&self, size: u64, lbn: u64) -> u64 {
        match self.g.frags_of(self.g.block_bytes(size, lbn).into()) {
            0 => self.g.frag.into(),
            frags => frags,
        }
    }

    /// Extended attributes: the blocks and their fragments.
    fn extended(&self, inode: &Dinode) -> [(i64, u64); 2] {
        [0, 1].map(|i| {
            let pointer = inode.extb.get(i).copied().unwrap_or(0);
            (pointer, self.frags_by_size(inode.extsize.into(), i as u64))
        })
    }

    /// Looks at an inode without changing anything.
    pub(super) fn survey(&self, ino: Ino, inode: &Dinode) -> Result<Survey, FfsError> {
        let g = &self.g;
        let sectors = u64::from(g.fsize / 512);
        let counted = if inode.blocks.is_multiple_of(sectors) { inode.blocks / sectors } else { u64::MAX };
        let mut s = Survey { counted, ..Survey::default() };
        for (pointer, frags) in self.extended(inode).into_iter().filter(|(pointer, _)| *pointer != 0) {
            if inode.extsize == 0 {
                // It goes, and so is in no count.
                s.bad = true;
                continue;
            }
            s.bad |= !self.can_be(pointer, frags);
            s.taken |= self.is_taken(pointer, frags);
            s.within += frags;
        }
        let snapshot = self.is_snapshot(ino, inode);
        let end_lbn = if snapshot { u64::MAX } else { inode.size.div_ceil(g.bsize.into()) };
        if inode.has_blocks(g) {
            walk(&self.store, g, inode, &mut |met| {
                if snapshot && (1..=2).contains(&met.pointer) {
                    return Ok(Next::Past);
                }
                if met.lbn >= end_lbn {
                    s.bad = true;
                    return Ok(Next::Stop); // In the order of the file: all within the size has been seen.
                }
                let frags = if met.below.is_some() { g.frag.into() } else { self.frags_by_size(inode.size, met.lbn) };
                if !self.can_be(met.pointer, frags) {
                    s.bad = true;
                    return Ok(Next::Past);
                }
                s.taken |= self.is_taken(met.pointer, frags);
                s.within += frags;
                if met.below.is_none() {
                    s.hole |= met.lbn > s.next;
                    (s.next, s.last) = (met.lbn + 1, Some(met.lbn));
                }
                // More than it says, or than there is: it does not agree, however much more there is. A circle ends
                // here.
                Ok(if s.within > counted.min(g.size_frags) { Next::Stop } else { Next::Into })
            })?;
        }
        let sound_size = match inode.file_type() {
            _ if snapshot => true,
            _ if !inode.has_blocks(g) => true,
            _ if inode.size > g.max_file_bytes() => false,
            _ if inode.is_dir() => inode.size > 0 && inode.size.is_multiple_of(512) && !s.hole,
            _ => true,
        };
        // A file does not end in a hole.
        let ends = snapshot || !inode.has_blocks(g) || s.last.map_or(0, |last| last + 1) == end_lbn;
        s.agrees = !s.bad && sound_size && ends && s.within == counted;
        Ok(s)
    }

    fn is_taken(&self, pointer: i64, frags: u64) -> bool {
        self.is_claimed(FragAddr(pointer.unsigned_abs()), frags as u32)
    }

    /// Takes all blocks of an inode that agrees with itself and of which none is taken; whether it has one twice. Then
    /// it has none.
    pub(super) fn claim_all(&mut self, ino: Ino, inode: &Dinode) -> Result<bool, FfsError> {
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        let mut twice = false;
        let snapshot = self.is_snapshot(ino, inode);
        let g = self.g;
        let extended = self.extended(inode);
        let claimed = &mut self.claimed;
        let mut take = |pointer: i64, frags: u64| {
            let addr = pointer.unsigned_abs();
            if (addr..addr + frags).any(|frag| claimed.get(frag as usize)) {
                twice = true;
                return false;
            }
            claimed.put_range(addr as usize, frags as usize, true);
            match pieces.last_mut() {
                Some((from, n)) if *from + *n == addr => *n += frags,
                _ => pieces.push((addr, frags)),
            }
            true
        };
        let has_blocks = inode.has_blocks(&g);
        let all = extended.iter().filter(|(pointer, _)| *pointer != 0).all(|(pointer, frags)| take(*pointer, *frags));
        if all && has_blocks {
            walk(&self.store, &g, inode, &mut |met| {
                if snapshot && (1..=2).contains(&met.pointer) {
                    return Ok(Next::Past);
                }
                let frags = match met.below {
                    Some(_) => g.frag.into(),
                    None => g.frags_of(g.block_bytes(inode.size, met.lbn).into()),
                };
                Ok(if take(met.pointer, frags) { Next::Into } else { Next::Stop })
            })?;
        }
        if twice {
            for (from, n) in pieces {
                self.claimed.put_range(from as usize, n as usize, false);
            }
        }
        Ok(twice)
    }

    /// Sets aside everything that an inode leads to, whatever its size.
    pub(super) fn set_aside(&mut self, ino: Ino) -> Result<(), FfsError> {
        let inode = self.inode(ino)?;
        let g = self.g;
        let (pending, looked_into) = (&mut self.pending, &mut self.looked_into);
        let mut aside = |pointer: i64| {
            // Whole blocks: how many fragments there are is not settled.
            let block = pointer.unsigned_abs() / u64::from(g.frag) * u64::from(g.frag);
            let frags = u64::from(g.frag).min(g.size_frags - block);
            pending.put_range(block as usize, frags as usize, true);
        };
        inode.extb.iter().filter(|pointer| g.holds(**pointer, 1)).for_each(|pointer| aside(*pointer));
        if inode.file_type().is_some_and(|t| t.is_special()) || inode.is_short_symlink(&g) {
            return Ok(());
        }
        walk(&self.store, &g, &inode, &mut |met| {
            if !g.holds(met.pointer, 1) {
                return Ok(Next::Past);
            }
            aside(met.pointer);
            let Some(below) = met.below else { return Ok(Next::Into) };
            // Each is looked into once, so that circles end.
            let new =
                g.holds(met.pointer, g.frag.into()) && looked_into.insert((met.pointer.unsigned_abs(), below.level));
            Ok(if new { Next::Into } else { Next::Past })
        })?;
        Ok(())
    }

    /// Goes over all pointers of an inode: clears those that cannot be or are stray, takes what is nobody's, copies
    /// what is another's.
    pub(super) fn settle_inode(
        &mut self,
        ino: Ino,
        inode: &mut Dinode,
        held: &mut Held,
        terms: Terms,
    ) -> Result<(), FfsError> {
        let tail = match terms.end_lbn {
            u64::MAX => self.tail(inode),
            // The size is right.
            end => end.checked_sub(1).map(|last| (last as usize, self.frags_by_size(inode.size, last) as u32)),
        };
        let Some(inode_at) = self.g.inode_at(ino) else { return Ok(()) };
        let (db_at, ib_at, width) = match self.g.layout.version {
            Version::Ufs1 => (40, 88, 4),
            Version::Ufs2 => (112, 208, 8),
        };
        for (lbn, pointer) in (0_u64..).zip(&mut inode.db) {
            let frags = tail.filter(|(at, _)| *at as u64 == lbn).map_or(self.g.frag, |(_, frags)| frags);
            let at_byte = inode_at + db_at + lbn * width;
            self.settle_slot(Slot { ino, at_byte, lbn, frags, below: None, trusted: true }, pointer, held, terms)?;
        }
        for (level, pointer) in inode.ib.iter_mut().enumerate() {
            let below = Below::of_inode(level, &self.g);
            let at_byte = inode_at + ib_at + level as u64 * width;
            let slot = Slot { ino, at_byte, lbn: below.first, frags: self.g.frag, below: Some(below), trusted: true };
            self.settle_slot(slot, pointer, held, terms)?;
        }
        for (lbn, frags) in std::mem::take(&mut held.short) {
            if held.last > Some(lbn) {
                self.lengthen(ino, inode, held, (lbn, frags))?;
            }
        }
        Ok(())
    }

    /// Gives a direct block that has only its first fragments all of them, as it is not the file's last: elsewhere.
    fn lengthen(
        &mut self,
        ino: Ino,
        inode: &mut Dinode,
        held: &mut Held,
        (lbn, frags): (u64, u32),
    ) -> Result<(), FfsError> {
        let Some(pointer) = inode.db.get_mut(lbn as usize) else { return Ok(()) };
        let addr = FragAddr(pointer.unsigned_abs());
        let bytes = read(&self.store, self.g.byte_of(addr), (frags << self.g.fshift) as usize)?;
        let to = self.take_block();
        let message =
            format!("block at fragment {addr} is not the last, and another file has its fragments from {frags} on");
        let repair = if to.is_some() { "copied" } else { "cleared: a hole" };
        self.problem(Phase::Duplicates, Finding::Duplicate, Place::Inode(ino), message, repair);
        self.claimed.put_range(addr.0 as usize, frags as usize, false);
        *pointer = to.map_or(0, |to| to.0 as i64);
        match to {
            Some(to) => {
                let mut block = vec![0; self.g.bsize as usize];
                if let Some(begin) = block.get_mut(..bytes.len()) {
                    begin.copy_from_slice(&bytes);
                }
                write(&mut self.store, self.g.byte_of(to), &block)?;
                held.frags += u64::from(self.g.frag - frags);
            }
            None => {
                held.frags -= u64::from(frags);
                held.hole = true;
            }
        }
        Ok(())
    }

    /// Blocks of extended attributes.
    pub(super) fn settle_extended(
        &mut self,
        ino: Ino,
        inode: &mut Dinode,
        held: &mut Held,
        second: bool,
    ) -> Result<(), FfsError> {
        let Some(inode_at) = self.g.inode_at(ino) else { return Ok(()) };
        if inode.extsize == 0 && inode.extb != [0; 2] {
            // Nothing leads to blocks of no bytes.
            let message = "blocks of extended attributes without a size";
            self.stray_pointer(ino, message);
            inode.extb = [0; 2];
        }
        let terms = Terms { end_lbn: u64::MAX, second, snapshot: false };
        let all = self.extended(inode);
        let (last, last_frags) = (held.last, held.last_frags);
        for (i, (pointer, (_, frags))) in inode.extb.iter_mut().zip(all).enumerate() {
            let at_byte = inode_at + 96 + 8 * i as u64;
            let slot = Slot { ino, at_byte, lbn: 0, frags: frags as u32, below: None, trusted: true };
            self.settle_slot(slot, pointer, held, terms)?;
        }
        (held.last, held.last_frags) = (last, last_frags);
        Ok(())
    }

    fn settle_slot(&mut self, slot: Slot, pointer: &mut i64, held: &mut Held, terms: Terms) -> Result<(), FfsError> {
        if *pointer == 0 || terms.snapshot && (1..=2).contains(pointer) {
            return Ok(());
        }
        let what = if slot.below.is_some() { "indirect block" } else { "block" };
        let place = Place::InodeByte(slot.ino, slot.at_byte);
        let (mut frags, old) = (slot.frags, *pointer);
        // Until it is known to stay.
        *pointer = 0;
        let clear = |check: &mut Self, phase, kind, message: String| {
            check.problem(phase, kind, place, message, "cleared: a hole");
            Ok(())
        };
        if slot.lbn >= terms.end_lbn {
            let message =
                format!("{what} pointer {old} is beyond the end of the file, which its block count agrees with");
            return clear(self, Phase::BlocksAndSizes, Finding::Pointer { beyond_end: true }, message);
        }
        if !self.can_be(old, frags.into()) {
            let message = format!("{what} pointer {old} is where no file's block can be");
            return clear(self, Phase::BlocksAndSizes, Finding::Pointer { beyond_end: false }, message);
        }
        let addr = FragAddr(old.unsigned_abs());
        if !held.own.insert(addr.0) {
            let message = format!("{what} at fragment {addr} is in this file already");
            return clear(self, Phase::Duplicates, Finding::Duplicate, message);
        }
        let free = (0..u64::from(frags)).take_while(|i| !self.claimed.get((addr.0 + i) as usize)).count() as u32;
        let copy = if free == frags {
            false
        } else if free > 0 && slot.below.is_none() && slot.lbn < NDADDR as u64 && !terms.second {
            // How many fragments the last block has was a guess.
            frags = free;
            held.short.push((slot.lbn, frags));
            false
        } else if !terms.second && (slot.below.is_some() || !slot.trusted) {
            let message = format!("{what} at fragment {addr} belongs to another file, and this one contradicts itself");
            return clear(self, Phase::Duplicates, Finding::Duplicate, message);
        } else {
            true
        };
        let mut to = addr;
        if copy {
            let message = format!("{what} at fragment {addr} belongs to another file too");
            // Fragments need no more than their own length; the rest of the block is given back.
            let block = self.take_block().map(|block| (block, self.g.frag));
            let Some((place_for_copy, taken)) = block.or_else(|| Some((self.take_fragments(frags)?, frags))) else {
                return clear(self, Phase::Duplicates, Finding::Duplicate, format!("{message}, and no block is free"));
            };
            to = place_for_copy;
            self.problem(Phase::Duplicates, Finding::Duplicate, place, message, "copied");
            self.claimed.put_range((to.0 + u64::from(frags)) as usize, (taken - frags) as usize, false);
            if slot.below.is_none() {
                let bytes = read(&self.store, self.g.byte_of(addr), (frags << self.g.fshift) as usize)?;
                write(&mut self.store, self.g.byte_of(to), &bytes)?;
            }
        } else {
            self.claimed.put_range(addr.0 as usize, frags as usize, true);
        }
        *pointer = to.0 as i64;
        held.frags += u64::from(frags);
        let Some(below) = slot.below else {
            held.saw(slot.lbn);
            held.last_frags = frags;
            return Ok(());
        };
        self.settle_below(slot, below, addr, to, held, terms)
    }

    /// What the pointers of an indirect block point to. It was at `from`, and is to be at `to`.
    fn settle_below(
        &mut self,
        slot: Slot,
        below: Below,
        from: FragAddr,
        to: FragAddr,
        held: &mut Held,
        terms: Terms,
    ) -> Result<(), FfsError> {
        let mut bytes = read(&self.store, self.g.byte_of(from), self.g.bsize as usize)?;
        let at = self.g.byte_of(to);
        let pointers = decode_pointers(&bytes, &self.g);
        let frag = u64::from(self.g.frag);
        let sound =
            |pointer: &i64| *pointer == 0 || terms.snapshot && (1..=2).contains(pointer) || self.can_be(*pointer, frag);
        let trusted = slot.trusted && pointers.iter().all(sound);
        let mut changed = from != to;
        for (i, old) in pointers.into_iter().enumerate() {
            let mut pointer = old;
            let (lbn, deeper) = below.child(i, &self.g);
            let at_byte = at + i as u64 * u64::from(self.g.layout.version.pointer_bytes());
            let slot = Slot { ino: slot.ino, at_byte, lbn, frags: self.g.frag, below: deeper, trusted };
            self.settle_slot(slot, &mut pointer, held, terms)?;
            if pointer != old {
                self.set_pointer(&mut bytes, i, pointer);
                changed = true;
            }
        }
        if changed {
            write(&mut self.store, at, &bytes)?;
        }
        Ok(())
    }

    pub(super) fn set_pointer(&self, block: &mut [u8], i: usize, pointer: i64) {
        match self.g.layout.version {
            Version::Ufs1 => (pointer as i32).put(self.g.endian(), block, i * 4),
            Version::Ufs2 => pointer.put(self.g.endian(), block, i * 8),
        }
    }

    /// Takes away the indirect blocks of a settled inode that reach nothing before its end. There is nothing in them.
    pub(super) fn prune(&mut self, ino: Ino, inode: &mut Dinode, held: &mut Held) -> Result<(), FfsError> {
        let end_lbn = inode.size.div_ceil(self.g.bsize.into());
        let Some(inode_at) = self.g.inode_at(ino) else { return Ok(()) };
        for (level, pointer) in inode.ib.iter_mut().enumerate().filter(|(_, pointer)| **pointer != 0) {
            let below = Below::of_inode(level, &self.g);
            self.prune_one((ino, inode_at), pointer, below, end_lbn, held)?;
        }
        Ok(())
    }

    fn prune_one(
        &mut self,
        (ino, at_byte): (Ino, u64),
        pointer: &mut i64,
        below: Below,
        end_lbn: u64,
        held: &mut Held,
    ) -> Result<(), FfsError> {
        let at = self.g.byte_of(FragAddr(pointer.unsigned_abs()));
        let reaches = below.span.saturating_mul(self.g.nindir());
        if below.level > 0 && below.first.saturating_add(reaches) > end_lbn {
            let mut bytes = read(&self.store, at, self.g.bsize as usize)?;
            let mut changed = false;
            for (i, old) in decode_pointers(&bytes, &self.g).into_iter().enumerate().filter(|(_, old)| *old != 0) {
                let (_, Some(deeper)) = below.child(i, &self.g) else { break };
                let mut pointer = old;
                self.prune_one((ino, at + i as u64), &mut pointer, deeper, end_lbn, held)?;
                if pointer != old {
                    self.set_pointer(&mut bytes, i, pointer);
                    changed = true;
                }
            }
            if changed {
                write(&mut self.store, at, &bytes)?;
            }
        }
        if below.first >= end_lbn {
            let message = format!("indirect block {pointer} is beyond the end of the file");
            self.problem(
                Phase::BlocksAndSizes,
                Finding::Pointer { beyond_end: true },
                Place::InodeByte(ino, at_byte),
                message,
                "freed",
            );
            self.claimed.put_range(pointer.unsigned_abs() as usize, self.g.frag as usize, false);
            held.frags -= u64::from(self.g.frag);
            *pointer = 0;
        }
        Ok(())
    }
}
