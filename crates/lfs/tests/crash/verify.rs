//! What has to be on a disk after a crash.

use super::content::{Comparison, Content};
use super::disk::Frozen;
use super::workload::{File, Identity, Kind, Run, Tree, options};
use lfs::format::summary_flags;
use lfs::{Checkpoint, Image, Lfs};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What recovery had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Partial segments behind the checkpoint count.
    pub rolled_forward: bool,
    /// Some do not: directory operations without their end.
    pub dropped: bool,
    /// Some are the cleaner's.
    pub cleaned: bool,
}

/// Checks the disk that a crash has left after `reached` entries of the log.
pub fn verify(run: &Run, bytes: &[u8], reached: usize) -> Result<Recovered, String> {
    let recovered = check(run, bytes)?;
    let image = opened(bytes)?;
    // The power may have failed at any time until the next write was completed.
    let last = run.call_of.get(reached).copied().unwrap_or(run.case.calls).min(run.trees.len() as u32 - 1);
    let synced = run.synced.iter().filter(|(_, at)| *at <= reached).map(|(call, _)| *call).max().unwrap_or(0);
    let files = run.files.iter().map(|(id, file)| {
        let promised = file.promised.iter().filter(|(_, at)| *at <= reached).map(|(call, _)| *call).max();
        (*id, (file, promised.unwrap_or(0).max(synced), promised.is_some() || synced > 0))
    });
    let files: BTreeMap<Identity, (&File, u32, bool)> = files.collect();
    let named = files.values().filter_map(|(file, since, _)| file.named_by(*since)).max().unwrap_or(0);
    let mut found = BTreeSet::new();
    let tree = read_tree(&image, &mut |image, id, inode| {
        found.insert(id);
        let Some((file, since, _)) = files.get(&id) else { return Err(format!("{id:?} was never made")) };
        check_content(image, id, inode, file, *since, last)
    })?;
    // The tree is as it was after some call, none before what was promised.
    let candidates = synced.max(named)..=last;
    let is_one = candidates.clone().rev().any(|call| *run.trees[call as usize] == tree);
    if !is_one && !run.between.iter().any(|(call, between)| candidates.contains(call) && **between == tree) {
        return Err(explain(run, &tree, candidates));
    }
    for (id, (file, since, promised)) in &files {
        // Promised and not there: it has been removed since.
        if *promised && file.kind != Kind::Directory && !found.contains(id) {
            let gone = (*since..=last).any(|call| !run.trees[call as usize].values().any(|one| one == id));
            if !gone {
                return Err(format!("{id:?} was promised in call {since} and is not there"));
            }
        }
    }
    Ok(recovered)
}

/// Whether the file system is consistent.
fn check(run: &Run, bytes: &[u8]) -> Result<Recovered, String> {
    let volume = Lfs::load(Frozen(bytes), options(&run.case)).map_err(|error| format!("load: {error}"))?;
    if let Some(problem) = volume.check().first() {
        return Err(format!("live check: {problem}"));
    }
    let report = lfs::fsck(Frozen(bytes), &mut |_| true).map_err(|error| format!("fsck: {error}"))?;
    if !report.is_clean() {
        return Err(format!("fsck: {:#?}", report.problems));
    }
    let rolled = &report.rolled_forward;
    let mut cleaned = false;
    if report.after_checkpoint > 0 {
        let image = Image::open(Frozen(bytes), Checkpoint::Newer).map_err(|error| error.to_string())?;
        cleaned = image.log_tail().partials.iter().any(|partial| partial.summary.is(summary_flags::CLEAN));
    }
    Ok(Recovered { rolled_forward: rolled.partial_segments > 0, dropped: rolled.dropped > 0, cleaned })
}

fn opened(bytes: &[u8]) -> Result<Image<Frozen<'_>>, String> {
    let mut image = Image::open(Frozen(bytes), Checkpoint::Newer).map_err(|error| error.to_string())?;
    image.roll_forward().map_err(|error| error.to_string())?;
    Ok(image)
}

type EachFile<'a> = &'a mut dyn FnMut(&Image<Frozen<'_>>, Identity, &lfs::format::Dinode) -> Result<(), String>;

/// All names; each file and symbolic link is handed over once.
fn read_tree(image: &Image<Frozen<'_>>, each: EachFile<'_>) -> Result<Tree, String> {
    let mut tree = Tree::new();
    let mut seen = BTreeSet::new();
    let mut problem = None;
    image
        .walk(lfs::format::ROOT_INO, &mut |path, ino, inode| {
            if path == b"." {
                return Ok(());
            }
            let id = (ino.0, inode.generation);
            tree.insert(String::from_utf8_lossy(&path[2..]).into_owned(), id);
            if !inode.is_dir() && seen.insert(id) && problem.is_none() {
                problem = each(image, id, inode).err();
            }
            Ok(())
        })
        .map_err(|error| format!("reading the tree: {error}"))?;
    problem.map_or(Ok(tree), Err)
}

/// Bytes of a file or a link.
fn content_of(image: &Image<Frozen<'_>>, id: Identity, inode: &lfs::format::Dinode) -> Result<Content, String> {
    let ino = lfs::format::Ino(id.0);
    let mut content = Content::default();
    if inode.file_type() == Some(lfs::format::FileType::Symlink) {
        content.write(0, &image.symlink(ino, inode).map_err(|error| error.to_string())?);
    } else {
        let read = image.data(ino, inode, &mut |at, bytes| {
            content.write(at, bytes);
            Ok(())
        });
        read.map_err(|error| error.to_string())?;
    }
    content.set_len(inode.size);
    Ok(content)
}

/// Whether the bytes of a file are these.
fn is_version(
    image: &Image<Frozen<'_>>,
    id: Identity,
    inode: &lfs::format::Dinode,
    version: &Content,
) -> Result<bool, String> {
    let mut comparison = Comparison::with(version);
    let read = image.data(lfs::format::Ino(id.0), inode, &mut |at, bytes| {
        comparison.piece(at, bytes);
        Ok(())
    });
    read.map_err(|error| error.to_string())?;
    Ok(comparison.is_same(inode.size))
}

/// A file is as it was after some call that is not before what was promised, or in the middle of one.
fn check_content(
    image: &Image<Frozen<'_>>,
    id: Identity,
    inode: &lfs::format::Dinode,
    file: &File,
    since: u32,
    last: u32,
) -> Result<(), String> {
    let first = file.versions.partition_point(|(call, _)| *call <= since).saturating_sub(1);
    let behind = file.versions.partition_point(|(call, _)| *call <= last);
    let versions = &file.versions[first..behind.max(first + 1)];
    let is_link = inode.file_type() == Some(lfs::format::FileType::Symlink);
    if is_link != (file.kind == Kind::Symlink) {
        return Err(format!("{id:?} is of mode {:o}, was made as {:?}", inode.mode, file.kind));
    }
    // Most often it is the one that was there at the crash before this, or the newest: these are compared as they are read.
    let known = file.found.get().checked_sub(first).and_then(|at| versions.get(at));
    for (_, version) in known.into_iter().chain(versions.last()).filter(|_| !is_link) {
        if version.len() == inode.size && is_version(image, id, inode, version)? {
            return Ok(());
        }
    }
    let found = content_of(image, id, inode)?;
    if let Some(at) = versions.iter().position(|(_, version)| **version == found) {
        file.found.set(first + at);
        return Ok(());
    }
    if versions.windows(2).any(|pair| found.is_between(&pair[0].1, &pair[1].1)) {
        return Ok(());
    }
    let differs = |version: &Content| (version.len(), found.differs_at(version, 0));
    let versions: Vec<_> = versions.iter().map(|(call, version)| (*call, differs(version))).collect();
    let earlier = file.versions[..first].iter().rev().find(|(_, version)| **version == found).map(|(call, _)| call);
    Err(format!(
        "{id:?} of {} bytes is not as after any call from {since} to {last}: lengths and first differences {versions:?}; as after call {earlier:?}",
        found.len()
    ))
}

fn explain(run: &Run, tree: &Tree, candidates: std::ops::RangeInclusive<u32>) -> String {
    let at = *candidates.end() as usize;
    let (found, expected): (BTreeSet<_>, BTreeSet<_>) = (tree.iter().collect(), run.trees[at].iter().collect());
    let more: Vec<_> = found.difference(&expected).collect();
    let less: Vec<_> = expected.difference(&found).collect();
    let earlier = (0..*candidates.start()).rev().find(|call| *run.trees[*call as usize] == *tree);
    format!(
        "no tree of calls {candidates:?}; against the last, more {more:?}, less {less:?}; as after call {earlier:?}"
    )
}

/// Everything that can be seen in a file system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    pub tree: Tree,
    pub contents: BTreeMap<Identity, (Kind, Rc<Content>)>,
}

/// What a mount of a disk would show.
pub fn seen(bytes: &[u8]) -> Result<Seen, String> {
    let image = opened(bytes)?;
    let mut contents = BTreeMap::new();
    let tree = read_tree(&image, &mut |image, id, inode| {
        let is_link = inode.file_type() == Some(lfs::format::FileType::Symlink);
        let kind = if is_link { Kind::Symlink } else { Kind::File };
        contents.insert(id, (kind, Rc::new(content_of(image, id, inode)?)));
        Ok(())
    })?;
    Ok(Seen { tree, contents })
}
