//! Whether everything in memory agrees: what fsck asks of an image, asked of the live structures.

use super::Lfs;
use crate::format::FragAddr;
use crate::ifile_state::IFILE;
use crate::segment::{INODE_BYTES, SegmentState};
use rustc_hash::FxHashSet;
use ufs::live::check::{self, Disagreement, note};

impl Lfs {
    /// Counts everything anew and compares: pieces of files with the usage of segments, names with link counts, the
    /// list of free inodes with those in use. Takes time in proportion to the file system.
    pub fn check(&self) -> Vec<Disagreement> {
        let mut found = Vec::new();
        self.check_space(&mut found);
        self.check_segments(&mut found);
        check::links(self.inodes.iter(), Some(IFILE.0), check::Links::AreNames, &mut found);
        self.check_free_list(&mut found);
        found
    }

    /// Every piece of a file is used once and counted where it lies.
    fn check_space(&self, found: &mut Vec<Disagreement>) {
        let g = &self.g;
        let mut live = vec![0_u64; self.log.segments.len()];
        let mut used: FxHashSet<u32> = FxHashSet::default();
        let mut held = 0;
        for (ino, node) in self.inodes.iter() {
            let mut frags_of_file = 0;
            self.each_piece(ino, &mut |addr, bytes, on_disk| {
                frags_of_file += bytes >> g.fshift;
                let Ok(addr) = u32::try_from(addr) else {
                    return note(found, node.own.dirty || ino == IFILE.0, Some(ino), || {
                        "has blocks in memory only and is not dirty".to_owned()
                    });
                };
                let addr = FragAddr(addr);
                let Some(segment) = g.segment_of(addr) else {
                    return note(found, false, Some(ino), || format!("points to {addr}, outside"));
                };
                if let Some(live) = live.get_mut(segment.0 as usize) {
                    *live += u64::from(on_disk);
                }
                let once = (addr.0..addr.0 + (on_disk >> g.fshift)).all(|frag| used.insert(frag));
                note(found, once, Some(ino), || format!("a fragment at {addr} is used twice"));
            });
            note(found, frags_of_file == node.d.blocks, Some(ino), || {
                format!("holds {frags_of_file} fragments, its inode says {}", node.d.blocks)
            });
            held += u64::from(frags_of_file);
            let place = Some(node.own.daddr).filter(|addr| !addr.is_none()).and_then(|addr| g.segment_of(addr));
            if let Some(live) = place.and_then(|segment| live.get_mut(segment.0 as usize)) {
                *live += u64::from(INODE_BYTES);
            }
            note(found, node.own.dirty || ino == IFILE.0 || !node.own.daddr.is_none(), Some(ino), || {
                "is not on the disk and not dirty".to_owned()
            });
        }
        note(found, held == self.used_frags, None, || {
            format!("files hold {held} fragments, {} are counted", self.used_frags)
        });
        for ((number, live), segment) in (0..).zip(live).zip(&self.log.segments) {
            let same = live == u64::from(segment.live_bytes);
            note(found, same, None, || format!("segment {number}: {live} live bytes, {} counted", segment.live_bytes));
        }
    }

    /// Clean segments hold nothing; the log's end is in an active one.
    fn check_segments(&self, found: &mut Vec<Disagreement>) {
        let g = &self.g;
        let (mut clean, mut meta) = (0, 0);
        for (number, segment) in (0_u32..).zip(&self.log.segments) {
            let empty = segment.live_bytes == 0 && segment.nsums == 0;
            clean += u32::from(segment.state == SegmentState::Clean);
            meta += u64::from(segment.nsums) * u64::from(g.sum_frags())
                + u64::from(segment.ninos) * u64::from(g.ib_frags());
            note(found, segment.state != SegmentState::Clean || empty, None, || {
                format!("segment {number} is clean and has {} live bytes", segment.live_bytes)
            });
        }
        note(found, clean == self.log.clean, None, || format!("{clean} clean segments, {} counted", self.log.clean));
        note(found, meta == self.log.meta_frags, None, || {
            format!("{meta} fragments of summaries and inodes, {} counted", self.log.meta_frags)
        });
        for active in [self.log.current, self.log.next] {
            let state = self.log.segments.get(active.0 as usize).map(|segment| segment.state);
            note(found, state == Some(SegmentState::Active), None, || format!("segment {active} is not active"));
        }
        let (base, end) = (g.segment_base(self.log.current), g.segment_end(self.log.current));
        let inside = (base..=end).contains(&self.log.offset);
        note(found, inside, None, || format!("the log ends at {}, outside its segment", self.log.offset));
    }

    /// The list of free inodes has each that is not in use, once.
    fn check_free_list(&self, found: &mut Vec<Disagreement>) {
        let mut seen = FxHashSet::default();
        let mut at = self.map.head();
        while at != 0 && seen.insert(at) {
            note(found, self.inodes.get(at).is_none(), Some(at), || "is free and in use".to_owned());
            at = self.map.get(at).map_or(0, |entry| entry.next);
        }
        note(found, at == 0, None, || "the list of free inodes goes in a circle".to_owned());
        let free = seen.len() as u32;
        note(found, free == self.map.free_count(), None, || {
            format!("{free} free inodes, {} counted", self.map.free_count())
        });
        // Numbers 0 and those in use are not in it.
        let all = free + self.inodes.len() + 1;
        note(found, all == self.map.len(), None, || format!("{} inodes in the map, {all} found", self.map.len()));
    }
}
