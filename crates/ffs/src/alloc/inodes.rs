//! Inodes in a group (`ffs_nodealloccg`, `ffs_vfree`).

use super::{Space, hash};
use crate::format::{GroupNo, Ino};

impl Space {
    /// An inode: `preferred` if it is free; else the next one after the inode allocated last in its group; else one of
    /// another group. `None` if there is none.
    pub fn allocate_inode(&mut self, preferred: Ino, directory: bool, look: &mut dyn FnMut(GroupNo)) -> Option<Ino> {
        let (wanted, groups) = (preferred.0 / self.g.ipg, self.g.ncg);
        if let Some(ino) = self.inode_in(wanted, preferred.0 % self.g.ipg, directory, look) {
            return Some(ino);
        }
        if let Some(group) = hash::quadratic(wanted, groups).find(|group| self.with_inodes.contains(*group)) {
            return self.inode_in(group, 0, directory, look);
        }
        let group = self.with_inodes.next((wanted + 2) % groups)?;
        self.inode_in(group, 0, directory, look)
    }

    /// In one group; `wanted` counts from its first inode, 0 for any.
    fn inode_in(&mut self, group: u32, wanted: u32, directory: bool, look: &mut dyn FnMut(GroupNo)) -> Option<Ino> {
        if !self.with_inodes.contains(group) {
            return None;
        }
        look(GroupNo(group));
        let ipg = self.g.ipg;
        let cg = &mut self.groups.get_mut(group as usize)?.cg;
        let index = if wanted != 0 && !cg.used_inodes.get(wanted as usize) {
            wanted
        } else {
            // By whole bytes of the map, as skpc() finds it: that of the rotor first.
            let start = (cg.irotor.min(ipg - 1) / 8 * 8) as usize;
            let found = cg.used_inodes.next_clear(start, ipg as usize);
            let found = found.or_else(|| cg.used_inodes.next_clear(0, ipg as usize))? as u32;
            cg.irotor = found;
            found
        };
        cg.used_inodes.put(index as usize, true);
        // UFS2 writes inodes for the first time a block ahead of their use.
        let inopb = self.g.inopb();
        while cg.h.initediblk < cg.h.niblk && index + inopb > cg.h.initediblk {
            cg.h.initediblk = (cg.h.initediblk + inopb).min(cg.h.niblk);
        }
        self.count(group, |cs| {
            cs.nifree -= 1;
            cs.ndir += i32::from(directory);
        });
        Some(Ino(group * ipg + index))
    }

    /// Gives an inode back.
    pub fn free_inode(&mut self, ino: Ino, directory: bool) {
        let (group, index) = (ino.0 / self.g.ipg, ino.0 % self.g.ipg);
        let at = &mut self.groups[group as usize];
        assert!(at.cg.used_inodes.get(index as usize), "inode {ino} was free");
        at.cg.used_inodes.put(index as usize, false);
        at.cg.irotor = at.cg.irotor.min(index);
        self.count(group, |cs| {
            cs.nifree += 1;
            cs.ndir -= i32::from(directory);
        });
    }
}
