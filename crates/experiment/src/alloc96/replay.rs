//! Replaying an aging workload on a live file system without a clock: what it does to the layout does not depend on
//! one.
//!
//! The operations are those that `fsage age` makes through the laboratory; cache, clustering and delayed writes are the
//! kernel's. Only the device is missing, and path names are walked once. Each operation is followed by what a kernel
//! does between operations: caches are kept to their size, and everything is written back once a day.

use crate::ExperimentError;
use aging::{AgingOp, NodeId, OpKind};
use ffs::Ffs;
use kernel::{Durability, Ino, Machine, NewNode, Rename, Untimed, Volume as _, WriteRange};
use layout::scores::file::FileLayout;
use layout::scores::score::LayoutScore;
use posix::{Errno, FileKind};

/// A file or directory of the workload.
#[derive(Clone, Copy, Debug)]
struct Known {
    ino: Ino,
    dir: Ino,
    size_bytes: u64,
    modified_day: u32,
    directory: bool,
    /// As counted in the aggregate; of what was written since, nothing is.
    score: LayoutScore,
    /// Whether it was written since the aggregate was asked for.
    changed: bool,
}

impl Known {
    fn new(ino: Ino, dir: Ino, modified_day: u32, directory: bool) -> Known {
        let score = LayoutScore::default();
        Known { ino, dir, size_bytes: 0, modified_day, directory, score, changed: false }
    }
}

/// A file of an aged file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgedFile {
    /// Its inode.
    pub ino: Ino,
    /// Its length.
    pub size_bytes: u64,
    /// The day (from 0) on which it was written last.
    pub modified_day: u32,
    /// The workload's number, from which its name comes.
    pub node: NodeId,
    /// Its directory.
    pub dir: Ino,
}

/// A file system that is being aged.
pub struct Replay {
    live: Untimed<Ffs>,
    /// By the workload's numbers, which are dense.
    nodes: Vec<Option<Known>>,
    name: Vec<u8>,
    file_operations: u64,
    /// The aggregate layout score, without what has changed since it was asked for.
    score: LayoutScore,
    changed: Vec<NodeId>,
}

impl Replay {
    /// A mounted file system, under the caches of a machine.
    ///
    /// # Errors
    /// The file system cannot be mounted.
    pub fn new(volume: Ffs, machine: &Machine, epoch_ns: i64) -> Result<Replay, ExperimentError> {
        let cache_bytes = machine.memory.buffer_cache_bytes.value;
        let inodes = usize::try_from(machine.memory.attribute_cache_inodes.value).unwrap_or(usize::MAX);
        let mut live = Untimed::new(volume, cache_bytes, inodes, machine.transfers(), epoch_ns);
        live.run(|volume, cx| volume.mount(cx)).map_err(failed("mounting"))?;
        let root = live.volume().root();
        let mut replay = Replay {
            live,
            nodes: Vec::new(),
            name: Vec::new(),
            file_operations: 0,
            score: LayoutScore::default(),
            changed: Vec::new(),
        };
        replay.set_known(NodeId::ROOT, Some(Known::new(root, root, 0, true)));
        Ok(replay)
    }

    /// The file system as it is now.
    pub fn volume(&self) -> &Ffs {
        self.live.volume()
    }

    /// Creations, writes, truncations and removals so far.
    pub fn file_operations(&self) -> u64 {
        self.file_operations
    }

    /// Performs an operation at its time.
    ///
    /// # Errors
    /// The file system is full, or the workload is not what it should be.
    pub fn apply(&mut self, op: &AgingOp) -> Result<(), ExperimentError> {
        let past_ns = self.live.cx().now_ns();
        self.live.pause_ns(op.t_ns.saturating_sub(past_ns));
        self.file_operations += 1;
        let day = (op.t_ns / aging::DAY_NS) as u32;
        match op.kind {
            OpKind::Mkdir => self.make(op, FileKind::Directory, day).map(drop),
            OpKind::Create => {
                self.make(op, FileKind::File, day)?;
                if op.size_bytes > 0 { self.write(op, 0, day) } else { Ok(()) }
            }
            OpKind::Append => {
                let end = self.known(op.node)?.size_bytes;
                self.write(op, end, day)
            }
            OpKind::Overwrite => self.write(op, op.offset_bytes, day),
            OpKind::Truncate => self.truncate(op, day),
            OpKind::Delete => self.delete(op),
            OpKind::Fsync | OpKind::Read => Ok(()),
            OpKind::Rmdir => self.rmdir(op),
            OpKind::Rename => self.rename(op),
            OpKind::Symlink | OpKind::PunchHole => {
                Err(failed(&format!("{} is not part of this workload", op.kind.name()))(Errno::EOPNOTSUPP))
            }
        }
    }

    /// Writes back everything.
    ///
    /// # Errors
    /// The file system's.
    pub fn sync(&mut self) -> Result<(), ExperimentError> {
        self.live.run(|volume, cx| volume.sync(cx, Durability::Started)).map_err(failed("writing back"))
    }

    /// The files, by the workload's numbers.
    pub fn files(&self) -> impl Iterator<Item = AgedFile> {
        self.nodes.iter().enumerate().filter_map(|(node, known)| {
            let k = known.as_ref().filter(|k| !k.directory)?;
            let node = NodeId(node as u64);
            Some(AgedFile { ino: k.ino, size_bytes: k.size_bytes, modified_day: k.modified_day, node, dir: k.dir })
        })
    }

    /// The directories but for the root, by the workload's numbers: each with its inode and that of the directory it is
    /// in.
    pub fn directories(&self) -> impl Iterator<Item = (NodeId, Ino, Ino)> {
        let nodes = self.nodes.iter().enumerate().skip(1);
        nodes.filter_map(|(node, known)| {
            let k = known.as_ref().filter(|k| k.directory)?;
            Some((NodeId(node as u64), k.ino, k.dir))
        })
    }

    /// The aggregate layout score. Only files written since the last time are looked at: nothing else moves a block.
    ///
    /// # Errors
    /// A file's inode is gone: a fault of the file system.
    pub fn score(&mut self) -> Result<LayoutScore, ExperimentError> {
        for node in std::mem::take(&mut self.changed) {
            let Ok(known) = self.known(node) else { continue };
            let score = layout_of(self.volume(), known.ino)?.score;
            self.score.add(score);
            self.set_known(node, Some(Known { score, changed: false, ..known }));
        }
        Ok(self.score)
    }

    /// A file's blocks are not what they were: it is out of the aggregate until that is asked for.
    fn changes(&mut self, node: NodeId, known: &mut Known) {
        self.score.following -= known.score.following;
        self.score.pairs -= known.score.pairs;
        known.score = LayoutScore::default();
        if !known.changed {
            known.changed = true;
            self.changed.push(node);
        }
    }

    fn known(&self, node: NodeId) -> Result<Known, ExperimentError> {
        let at = usize::try_from(node.0).unwrap_or(usize::MAX);
        self.nodes.get(at).copied().flatten().ok_or_else(|| failed("looking for a file")(Errno::ENOENT))
    }

    fn set_known(&mut self, node: NodeId, known: Option<Known>) {
        let at = usize::try_from(node.0).unwrap_or(usize::MAX);
        if at >= self.nodes.len() && at < usize::MAX {
            self.nodes.resize(at + 1, None);
        }
        if let Some(place) = self.nodes.get_mut(at) {
            *place = known;
        }
    }

    fn derive_name(&mut self, node: NodeId, directory: bool) {
        use std::io::Write as _;
        self.name.clear();
        // Writing into memory does not fail.
        let _ = write!(self.name, "{}{:x}", if directory { 'd' } else { 'f' }, node.0);
    }

    fn make(&mut self, op: &AgingOp, kind: FileKind, day: u32) -> Result<(), ExperimentError> {
        let dir = self.known(op.dir)?.ino;
        let directory = kind == FileKind::Directory;
        self.derive_name(op.node, directory);
        let new = NewNode { kind, mode: if directory { 0o755 } else { 0o644 }, target: b"" };
        let name = &self.name;
        self.live.touch(dir);
        let made = self.live.run(|volume, cx| {
            volume.lookup(cx, dir, name)?;
            volume.create(cx, dir, name, &new)
        });
        let ino = made.map_err(failed("creating"))?;
        self.live.touch(ino);
        self.set_known(op.node, Some(Known::new(ino, dir, day, directory)));
        Ok(())
    }

    fn write(&mut self, op: &AgingOp, offset: u64, day: u32) -> Result<(), ExperimentError> {
        let mut known = self.known(op.node)?;
        let (ino, len_bytes) = (known.ino, op.size_bytes);
        self.live.touch(ino);
        let range = WriteRange { ino, offset, len_bytes, data: None, sync: None };
        match self.live.run(|volume, cx| volume.write(cx, &range)) {
            Ok(written) if written == len_bytes => {}
            Ok(_) => return Err(failed("writing")(Errno::ENOSPC)),
            Err(errno) => return Err(failed("writing")(errno)),
        }
        known.size_bytes = known.size_bytes.max(offset + len_bytes);
        known.modified_day = day;
        self.changes(op.node, &mut known);
        self.set_known(op.node, Some(known));
        Ok(())
    }

    fn truncate(&mut self, op: &AgingOp, day: u32) -> Result<(), ExperimentError> {
        let mut known = self.known(op.node)?;
        self.live.touch(known.ino);
        let cut = self.live.run(|volume, cx| volume.truncate(cx, known.ino, op.size_bytes));
        cut.map_err(failed("truncating"))?;
        (known.size_bytes, known.modified_day) = (op.size_bytes, day);
        self.changes(op.node, &mut known);
        self.set_known(op.node, Some(known));
        Ok(())
    }

    fn delete(&mut self, op: &AgingOp) -> Result<(), ExperimentError> {
        let mut known = self.known(op.node)?;
        self.derive_name(op.node, known.directory);
        self.changes(op.node, &mut known);
        let (name, Known { ino, dir, .. }) = (&self.name, known);
        self.live.touch(dir);
        self.live.touch(ino);
        let removed = self.live.run(|volume, cx| {
            volume.lookup(cx, dir, name)?;
            volume.unlink(cx, dir, name, ino)?;
            volume.release(cx, ino);
            Ok(())
        });
        removed.map_err(failed("removing"))?;
        self.live.forget(ino);
        self.set_known(op.node, None);
        Ok(())
    }

    fn rmdir(&mut self, op: &AgingOp) -> Result<(), ExperimentError> {
        let Known { ino, dir, .. } = self.known(op.node)?;
        self.derive_name(op.node, true);
        let name = &self.name;
        self.live.touch(dir);
        self.live.touch(ino);
        let removed = self.live.run(|volume, cx| {
            volume.lookup(cx, dir, name)?;
            volume.rmdir(cx, dir, name, ino)?;
            volume.release(cx, ino);
            Ok(())
        });
        removed.map_err(failed("removing a directory"))?;
        self.live.forget(ino);
        self.set_known(op.node, None);
        Ok(())
    }

    /// Moves a file or directory; its name, which is made from its number, stays.
    fn rename(&mut self, op: &AgingOp) -> Result<(), ExperimentError> {
        let known = self.known(op.node)?;
        let to_dir = self.known(op.dir)?.ino;
        self.derive_name(op.node, known.directory);
        let (name, Known { ino, dir, .. }) = (&self.name, known);
        [dir, to_dir, ino].into_iter().for_each(|ino| self.live.touch(ino));
        let moved = self.live.run(|volume, cx| {
            volume.lookup(cx, dir, name)?;
            volume.lookup(cx, to_dir, name)?;
            let rename = Rename { from_dir: dir, from_name: name, ino, to_dir, to_name: name, replaced: None };
            if dir == to_dir { Ok(()) } else { volume.rename(cx, &rename) }
        });
        moved.map_err(failed("moving"))?;
        self.set_known(op.node, Some(Known { dir: to_dir, ..known }));
        Ok(())
    }

    /// Ends the run: unmounts, checks every structure against every other, and gives the file system.
    ///
    /// # Errors
    /// A structure disagrees with another.
    pub fn finish(mut self, after: &str) -> Result<Ffs, ExperimentError> {
        self.live.run(|volume, cx| volume.unmount(cx)).map_err(failed("unmounting"))?;
        let volume = self.live.into_volume();
        match volume.check().into_iter().next() {
            None => Ok(volume),
            Some(problem) => {
                Err(ExperimentError::Inconsistent { after: after.to_owned(), problem: problem.to_string() })
            }
        }
    }
}

/// Layout of a file of a volume.
pub(crate) fn layout_of(volume: &Ffs, ino: Ino) -> Result<FileLayout, ExperimentError> {
    let extents = volume.extents(ino).map_err(failed("looking at a file's blocks"))?;
    Ok(FileLayout::of(&extents, u64::from(volume.geometry().bsize)))
}

/// Layout of the blocks that a file has been given whole: without the fragments at its end.
pub(crate) fn whole_blocks_of(volume: &Ffs, ino: Ino, size_bytes: u64) -> Result<FileLayout, ExperimentError> {
    let extents = volume.extents(ino).map_err(failed("looking at a file's blocks"))?;
    let g = volume.geometry();
    // Behind the direct blocks a file has no fragments.
    let whole_only = size_bytes > u64::from(g.bsize) * ffs::format::NDADDR as u64;
    let fragment_bytes = if whole_only { g.bsize } else { g.fsize };
    Ok(FileLayout::of_whole_blocks(&extents, size_bytes, g.bsize.into(), fragment_bytes.into()))
}

/// An error of the file system with what was being done.
pub(crate) fn failed(doing: &str) -> impl Fn(Errno) -> ExperimentError + use<> {
    let doing = doing.to_owned();
    move |errno| ExperimentError::Call { doing: doing.clone(), errno }
}
