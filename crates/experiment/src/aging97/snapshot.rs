//! A snapshot of a file system that is being replayed, as a nightly job on the server would have taken it.

use crate::ExperimentError;
use crate::alloc96::EPOCH_NS;
use crate::alloc96::replay::{Replay, failed};
use aging::snapshot::{Builder, Inode, InodeGroups, Snapshot, SnapshotMeta};
use aging::{AgingOp, DAY_NS, NodeId};
use kernel::{Ino, Volume as _};
use rustc_hash::FxHashMap;

/// Every name, at the end of a day (from 1), with simulated times.
pub(super) fn take(replay: &Replay, day: u32) -> Result<Snapshot, ExperimentError> {
    let volume = replay.volume();
    let mut directories: FxHashMap<Ino, Vec<u8>> = FxHashMap::default();
    directories.insert(volume.root(), Vec::new());
    let mut names: Vec<(Vec<u8>, Inode)> = vec![(b"/".to_vec(), inode(replay, volume.root())?)];
    let there: FxHashMap<Ino, (NodeId, Ino)> =
        replay.directories().map(|(node, ino, dir)| (ino, (node, dir))).collect();
    for (_, ino, _) in replay.directories() {
        let path = path_of(&there, ino);
        names.push((path.clone(), inode(replay, ino)?));
        directories.insert(ino, path);
    }
    for file in replay.files() {
        let mut path = directories.get(&file.dir).cloned().unwrap_or_default();
        path.push(b'/');
        path.extend_from_slice(AgingOp::derived_name(file.node, false).as_bytes());
        names.push((path, inode(replay, file.ino)?));
    }
    names.sort_by(|a, b| trace::snapshot::path_order(&a.0, &b.0));
    let wrong = |problem: String| ExperimentError::Inconsistent { after: format!("day {day}"), problem };
    let mut builder = Builder::default();
    for (path, inode) in &names {
        builder.push(path, *inode).map_err(|why| wrong(format!("{} {why}", String::from_utf8_lossy(path))))?;
    }
    builder.finish(meta(replay, day)).map_err(|(_, why)| wrong(why))
}

/// The way to a directory; nothing for the root.
fn path_of(there: &FxHashMap<Ino, (NodeId, Ino)>, ino: Ino) -> Vec<u8> {
    let Some((node, dir)) = there.get(&ino) else { return Vec::new() };
    let mut path = path_of(there, *dir);
    path.push(b'/');
    path.extend_from_slice(AgingOp::derived_name(*node, true).as_bytes());
    path
}

fn meta(replay: &Replay, day: u32) -> SnapshotMeta {
    let (g, usage) = (replay.volume().geometry(), replay.volume().usage());
    let taken_ns = i64::from(day) * DAY_NS as i64;
    SnapshotMeta {
        taken_ns,
        began_ns: taken_ns,
        simulated: true,
        host: "laboratory".into(),
        root: "/".into(),
        fs_type: "ffs".into(),
        total_bytes: usage.total_bytes,
        free_bytes: usage.free_bytes,
        block_bytes: g.fsize,
        inode_groups: Some(InodeGroups { first_ino: 0, inodes_per_group: g.ipg.into(), count: g.ncg.into() }),
        ..SnapshotMeta::default()
    }
}

fn inode(replay: &Replay, ino: Ino) -> Result<Inode, ExperimentError> {
    let a = replay.volume().attributes(ino).map_err(failed("taking a snapshot"))?;
    Ok(Inode {
        kind: a.kind,
        size_bytes: a.size_bytes,
        allocated_bytes: a.allocated_bytes,
        ino: ino.0.into(),
        generation: Some(a.generation),
        ctime_ns: a.ctime_ns - EPOCH_NS,
        mtime_ns: a.mtime_ns - EPOCH_NS,
        nlink: a.nlink,
    })
}
