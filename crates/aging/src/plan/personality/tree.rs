//! The directories of a personality: a tree that grows with its files, or a layout made once.

use super::spec::Directories;
use crate::NodeId;
use crate::model::{Quota, Rng};
use rand_distr::{Distribution as _, Zipf};
use stats::random::{index, unit};

/// A directory, by its place in the tree's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dir(pub u32);

#[derive(Clone, Copy, Debug)]
struct Known {
    node: NodeId,
    parent: Dir,
    depth: u32,
}

/// Directories below this depth are not made: paths must fit.
const DEPTH_MAX: usize = 30;

/// Share of new files that go where the last one of their depth went.
const STAY: f64 = 0.5;

/// The directories.
pub struct Tree {
    dirs: Vec<Known>,
    /// Places in `dirs` of directories that are gone.
    free: Vec<Dir>,
    kind: Kind,
}

enum Kind {
    Growing {
        files_per_directory: f64,
        depths: Quota,
        /// Lasting directories by depth; the parent of each is in `dirs`.
        levels: Vec<Vec<Dir>>,
        /// Files alive in lasting directories, by depth.
        files: Vec<u64>,
        last: Vec<Dir>,
    },
    Fixed {
        leaves: Vec<Dir>,
        popularity: Option<Zipf<f64>>,
    },
}

impl Tree {
    /// The root alone.
    pub fn new(directories: &Directories, rng: &mut Rng) -> Tree {
        let root = Known { node: NodeId::ROOT, parent: Dir(0), depth: 0 };
        let kind = match directories {
            Directories::Tree { files_per_directory, depth_mean } => Kind::Growing {
                files_per_directory: *files_per_directory,
                depths: Quota::new(poisson(*depth_mean), unit(rng)),
                levels: vec![vec![Dir(0)]],
                files: vec![0; DEPTH_MAX + 1],
                last: vec![Dir(0); DEPTH_MAX + 1],
            },
            Directories::Fixed { fan_out, popularity } => {
                let leaves: f64 = fan_out.iter().map(|n| f64::from(*n)).product();
                let zipf = (*popularity > 0.0).then(|| Zipf::new(leaves, *popularity).ok()).flatten();
                Kind::Fixed { leaves: vec![Dir(0)], popularity: zipf }
            }
        };
        Tree { dirs: vec![root], free: Vec::new(), kind }
    }

    /// The node of a directory.
    pub fn node(&self, dir: Dir) -> NodeId {
        self.dirs.get(dir.0 as usize).map_or(NodeId::ROOT, |d| d.node)
    }

    /// Depth of a directory; the root has 0.
    pub fn depth(&self, dir: Dir) -> u32 {
        self.dirs.get(dir.0 as usize).map_or(0, |d| d.depth)
    }

    /// Enters a directory that was made.
    pub fn add(&mut self, node: NodeId, parent: Dir) -> Dir {
        let known = Known { node, parent, depth: self.depth(parent) + 1 };
        match self.free.pop() {
            Some(dir) => {
                if let Some(place) = self.dirs.get_mut(dir.0 as usize) {
                    *place = known;
                }
                dir
            }
            None => {
                let dir =
                    Dir(u32::try_from(self.dirs.len()).expect("a workload has fewer than 2^32 directories alive"));
                self.dirs.push(known);
                dir
            }
        }
    }

    /// Forgets a directory that was removed.
    pub fn remove(&mut self, dir: Dir) {
        self.free.push(dir);
    }

    /// Enters a directory as the last level of a fixed layout.
    pub fn set_leaves(&mut self, dirs: Vec<Dir>) {
        if let Kind::Fixed { leaves, .. } = &mut self.kind {
            *leaves = dirs;
        }
    }

    /// Chooses where a new file goes. `make` makes a directory in another and enters it.
    pub fn choose<E>(
        &mut self,
        rng: &mut Rng,
        mut make: impl FnMut(&mut Tree, Dir) -> Result<Dir, E>,
    ) -> Result<Dir, E> {
        let depth = match &mut self.kind {
            Kind::Fixed { leaves, popularity } => {
                let place = match popularity {
                    // Ranks are from 1.
                    Some(zipf) => (zipf.sample(rng) as usize).saturating_sub(1),
                    None => index(rng, leaves.len()),
                };
                return Ok(leaves.get(place.min(leaves.len() - 1)).copied().unwrap_or(Dir(0)));
            }
            Kind::Growing { depths, .. } => depths.draw(rng) + 1,
        };
        for level in 1..=depth {
            if self.wants_directory(level, depth) {
                let parent = self.parent_at(level, rng);
                let made = make(self, parent)?;
                self.enter(level, made);
            }
        }
        Ok(self.place_at(depth, rng))
    }

    /// Whether a directory must be made at `level` for a file at `depth`.
    fn wants_directory(&self, level: usize, depth: usize) -> bool {
        let Kind::Growing { levels, files, files_per_directory, .. } = &self.kind else { return false };
        let there = levels.get(level).map_or(0, Vec::len);
        let full = files.get(level).is_some_and(|n| *n as f64 >= files_per_directory * there as f64);
        there == 0 || (level == depth && full)
    }

    /// The parent of a new directory at a level: each of the level above with a probability proportional to its
    /// subdirectories plus two (the generative model of Agrawal et al., FAST 2007, section 4, here with the level
    /// given).
    fn parent_at(&self, level: usize, rng: &mut Rng) -> Dir {
        let Kind::Growing { levels, .. } = &self.kind else { return Dir(0) };
        let above = level.checked_sub(1).and_then(|l| levels.get(l)).map_or(&[][..], |l| l);
        let here = levels.get(level).map_or(&[][..], |l| l);
        // Twice each directory above, and once for each of its children.
        let place = index(rng, 2 * above.len() + here.len());
        if place < 2 * above.len() {
            return above.get(place / 2).copied().unwrap_or(Dir(0));
        }
        let child = here.get(place - 2 * above.len()).and_then(|dir| self.dirs.get(dir.0 as usize));
        child.map_or(Dir(0), |child| child.parent)
    }

    fn enter(&mut self, level: usize, dir: Dir) {
        if let Kind::Growing { levels, last, .. } = &mut self.kind {
            while levels.len() <= level {
                levels.push(Vec::new());
            }
            if let (Some(dirs), Some(last)) = (levels.get_mut(level), last.get_mut(level)) {
                dirs.push(dir);
                *last = dir;
            }
        }
    }

    fn place_at(&mut self, depth: usize, rng: &mut Rng) -> Dir {
        let Kind::Growing { levels, last, .. } = &mut self.kind else { return Dir(0) };
        let level = levels.get(depth).map_or(&[][..], |l| l);
        let Some(last) = last.get_mut(depth) else { return Dir(0) };
        if unit(rng) >= STAY {
            *last = level.get(index(rng, level.len())).copied().unwrap_or(*last);
        }
        *last
    }

    /// A file came to a directory. `own`: one of a tree made for it, whose depth is its own affair.
    pub fn file_added(&mut self, dir: Dir, own: bool) {
        self.count(dir, own, true);
    }

    /// A file left a directory.
    pub fn file_removed(&mut self, dir: Dir, own: bool) {
        self.count(dir, own, false);
    }

    fn count(&mut self, dir: Dir, own: bool, added: bool) {
        let depth = self.depth(dir) as usize;
        let Kind::Growing { depths, files, .. } = &mut self.kind else { return };
        if own {
            return;
        }
        let class = depth.saturating_sub(1).min(depths.ends().len() - 1);
        if added {
            depths.add(class)
        } else {
            depths.remove(class)
        }
        if let Some(files) = files.get_mut(depth) {
            *files = if added { *files + 1 } else { files.saturating_sub(1) };
        }
    }

    /// Files alive by depth (but for those in trees of their own), and the shares wanted: `None` where the layout is
    /// fixed.
    pub fn depths(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        let Kind::Growing { depths, .. } = &self.kind else { return None };
        let have = depths.have().iter().map(|n| f64::from(*n)).collect();
        let want = (0..depths.ends().len()).map(|i| depths.range(i).1 - depths.range(i).0).collect();
        Some((have, want))
    }
}

/// Cumulative Poisson probabilities of depths 1 to [`DEPTH_MAX`], given that it is one of them.
fn poisson(mean: f64) -> Vec<f64> {
    let mut p = (-mean).exp();
    let mut sum = 0.0;
    let mut ends: Vec<f64> = (1..=DEPTH_MAX)
        .map(|depth| {
            p *= mean / depth as f64;
            sum += p;
            sum
        })
        .collect();
    for end in &mut ends {
        *end /= sum;
    }
    if let Some(last) = ends.last_mut() {
        *last = 1.0;
    }
    ends
}
