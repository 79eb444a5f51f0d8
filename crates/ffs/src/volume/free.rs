//! Giving back the space of what a file has been cut by.

use super::Ffs;
use crate::format::FragAddr;
use crate::policy::Discard;
use kernel::{Cx, Ino};
use ufs::live::Freed;

impl Ffs {
    /// Gives back what a file has held. A group's block is touched once for each run of pieces in it.
    pub(crate) fn free_pieces(&mut self, cx: &mut Cx, ino: Ino, pieces: &[Freed]) {
        let mut at = None;
        let mut frags_of_all = 0;
        let mut rest = pieces;
        while let [piece, ..] = rest {
            let (addr, frags) = (FragAddr(piece.addr.unsigned_abs()), piece.bytes >> self.g.fshift);
            let group = self.space.group_of(addr);
            if at != Some(group) {
                cx.change(&Ffs::group_block(&self.g, group));
                self.modified = true;
                at = Some(group);
            }
            let run =
                if frags == self.g.frag { self.space.run_in_group(rest.iter().map(|piece| piece.addr)) } else { 1 };
            let (now, later) = rest.split_at(run.min(rest.len()));
            let mut kept = false;
            for piece in now {
                let addr = FragAddr(piece.addr.unsigned_abs());
                kept |= self.keep_until_committed(addr, piece.bytes >> self.g.fshift);
            }
            if kept {
                frags_of_all += now.iter().map(|piece| i64::from(piece.bytes >> self.g.fshift)).sum::<i64>();
                rest = later;
                continue;
            }
            // The last one of a run may be shorter.
            let whole = now.iter().take_while(|piece| piece.bytes == self.g.bsize).count();
            self.space.free_blocks(addr, whole as u32);
            for piece in now.iter().skip(whole) {
                self.space.free(FragAddr(piece.addr.unsigned_abs()), piece.bytes >> self.g.fshift);
            }
            if self.options.discard == Discard::Discard && self.snapshot_ino().is_none() {
                let bytes = now.iter().map(|piece| u64::from(piece.bytes)).sum();
                cx.discard(self.pbn(addr), bytes);
            }
            frags_of_all += now.iter().map(|piece| i64::from(piece.bytes >> self.g.fshift)).sum::<i64>();
            rest = later;
        }
        cx.cpu(cx.costs().allocate_ns * pieces.len() as u64);
        self.charge(ino, -frags_of_all);
    }
}
