//! What has to be on a disk after a crash.

use super::workload::{File, Identity, Run, Tree, machine, options, setup};
use kernel::testing::FixedDevice;
use kernel::{Lab, payload};
use lfs::{Checkpoint, Image, Lfs, MemoryStore};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Checks the disk that a crash has left: `safe` entries of the log were on it for certain, `reached` could have been.
pub fn verify(run: &Run, disk: &MemoryStore, safe: usize, reached: usize) -> Result<(), String> {
    let mut store = MemoryStore(disk.0.clone());
    let volume = Lfs::load(&mut store, options(run.case.words)).map_err(|error| format!("load: {error}"))?;
    if let Some(problem) = volume.check().first() {
        return Err(format!("live check: {problem}"));
    }
    let report = lfs::fsck(&mut store, &mut |_| true).map_err(|error| format!("fsck: {error}"))?;
    if !report.is_clean() {
        return Err(format!("fsck: {:#?}", report.problems));
    }
    let mut image = Image::open(&mut store, Checkpoint::Newer).map_err(|error| error.to_string())?;
    image.roll_forward().map_err(|error| error.to_string())?;
    let (tree, contents) = read_tree(&image)?;
    // The power may have failed at any time until the next write was completed.
    let last = run.call_of.get(reached).copied().unwrap_or(run.case.calls);
    let synced = run.synced.iter().filter(|(_, at)| *at <= safe).map(|(call, _)| *call).max().unwrap_or(0);
    // The tree is as it was after some call, none before what was promised.
    let candidates = synced as usize..=(last as usize).min(run.trees.len() - 1);
    let tree_call = candidates.clone().rev().find(|call| *run.trees[*call] == tree);
    let in_step =
        |(call, between): &&(u32, std::rc::Rc<Tree>)| candidates.contains(&(*call as usize)) && **between == tree;
    if tree_call.is_none() && !run.between.iter().any(|one| in_step(&one)) {
        return Err(explain(run, &tree, candidates));
    }
    for (id, file) in &run.files {
        let promised = file.promised.iter().filter(|(_, at)| *at <= safe).map(|(call, _)| *call);
        let since = promised.chain((synced > 0).then_some(synced)).max();
        match (contents.get(id), since) {
            (Some(content), since) => check_content(*id, file, content, since.unwrap_or(0), last)?,
            // Promised and not there: it has been removed since.
            (None, Some(since)) if !file.directory => {
                let gone = (since as usize..=last as usize).any(|call| !run.trees[call].values().any(|one| one == id));
                if !gone {
                    return Err(format!("{id:?} was promised in call {since} and is not there"));
                }
            }
            (None, _) => {}
        }
    }
    Ok(())
}

type Contents = BTreeMap<Identity, Vec<u8>>;

fn read_tree(image: &Image<&mut MemoryStore>) -> Result<(Tree, Contents), String> {
    let (mut tree, mut contents) = (Tree::new(), Contents::new());
    image
        .walk(lfs::format::ROOT_INO, &mut |path, ino, inode| {
            if path == b"." {
                return Ok(());
            }
            let id = (ino.0, inode.generation);
            tree.insert(String::from_utf8_lossy(&path[2..]).into_owned(), id);
            if !inode.is_dir() && !contents.contains_key(&id) {
                let mut content = vec![0; inode.size as usize];
                image.data(ino, inode, &mut |at, bytes| {
                    content[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
                    Ok(())
                })?;
                contents.insert(id, content);
            }
            Ok(())
        })
        .map_err(|error| format!("reading the tree: {error}"))?;
    Ok((tree, contents))
}

/// Each piece of a file is as it was after some call that is not before what was promised, the length too.
fn check_content(id: Identity, file: &File, content: &[u8], since: u32, last: u32) -> Result<(), String> {
    let first = file.versions.iter().rposition(|(call, _)| *call <= since).unwrap_or(0);
    let versions: Vec<&[u8]> = file.versions[first..]
        .iter()
        .filter(|(call, _)| *call <= last)
        .map(|(_, content)| content.as_slice())
        .collect();
    if versions.contains(&content) {
        return Ok(());
    }
    // A call that was under way may have come some way: whole blocks of it.
    let longest = versions.iter().map(|version| version.len()).max().unwrap_or(0);
    if content.len() > longest {
        return Err(format!("{id:?} has {} bytes, never had more than {longest}", content.len()));
    }
    for (number, piece) in content.chunks(512).enumerate() {
        let at = number * 512;
        let zeros = piece.iter().all(|byte| *byte == 0);
        let known = versions.iter().any(|version| {
            let there = version.get(at..(at + piece.len()).min(version.len())).unwrap_or_default();
            piece.starts_with(there) && piece[there.len()..].iter().all(|byte| *byte == 0)
        });
        if !known && !zeros {
            return Err(format!("{id:?}, byte {at}: not what it held after any call from {since} to {last}"));
        }
    }
    Ok(())
}

fn explain(run: &Run, tree: &Tree, candidates: std::ops::RangeInclusive<usize>) -> String {
    let at = *candidates.end();
    let (found, expected): (BTreeSet<_>, BTreeSet<_>) = (tree.iter().collect(), run.trees[at].iter().collect());
    let more: Vec<_> = found.difference(&expected).collect();
    let less: Vec<_> = expected.difference(&found).collect();
    let earlier = (0..*candidates.start()).rev().find(|call| *run.trees[*call] == *tree);
    format!(
        "no tree of calls {candidates:?}; against the last, more {more:?}, less {less:?}; as after call {earlier:?}"
    )
}

/// Mounts what a crash has left, and unmounts it again: clean, and with the same tree.
pub fn mount_again(run: &Run, disk: &MemoryStore) -> Result<(), String> {
    let mut store = MemoryStore(disk.0.clone());
    let volume = Lfs::load(&mut store, options(run.case.words)).map_err(|error| error.to_string())?;
    let before = {
        let mut image = Image::open(&mut store, Checkpoint::Newer).map_err(|error| error.to_string())?;
        image.roll_forward().map_err(|error| error.to_string())?;
        read_tree(&image)?
    };
    let store = Arc::new(Mutex::new(store));
    let device = Box::new(FixedDevice::new(run.case.mkfs.size_bytes, 1_000_000));
    let image = payload::Image::full(store.clone());
    let lab = Lab::with_image(volume, device, setup(machine(512 << 10)), image).map_err(|error| error.to_string())?;
    lab.unmount().map_err(|errno| format!("unmount: {errno}"))?;
    let mut store = MemoryStore(store.lock().map_err(|error| error.to_string())?.0.clone());
    let report = lfs::fsck(&mut store, &mut |_| true).map_err(|error| error.to_string())?;
    if !report.is_clean() || !report.marked_clean {
        return Err(format!("after mounting and unmounting: {:#?}", report.problems));
    }
    let image = Image::open(&mut store, Checkpoint::Newer).map_err(|error| error.to_string())?;
    if read_tree(&image)? != before {
        return Err("after mounting and unmounting the tree is another".to_owned());
    }
    Ok(())
}
