//! A plan from the history of a local git repository: a checkout that follows a branch, commit by commit.
//!
//! Each commit of the branch (first parents only, so that the states follow each other) is committed at its time: its
//! new objects are written loose, index, branch and log are brought up to date, and the files that it changes are
//! replaced as git checkout does it: unlinked and made anew; directories that lose their last file are removed. Loose
//! objects are packed when there are many. The program `git` reads the repository; nothing is modified.

mod history;
mod store;
mod worktree;

use super::{PlanError, Progress, go_on};
use crate::DAY_NS;
use crate::format::{Input, PlanMeta, Source, Writer};
use history::{Changed, Commit, Hash, Mode, Repository, Sizes};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use store::Store;
use worktree::Tree;

/// How to plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitOptions {
    /// The branch, tag or commit whose history it is.
    pub branch: String,
    /// The newest so many commits only; the tree before them is cloned first.
    pub max_commits: Option<u32>,
    /// Simulated days that the history takes; `None`: as long as it took.
    pub days: Option<u32>,
    /// Loose objects from which on they are packed (`gc.auto`); 0: never.
    pub gc_every: u64,
    /// Whether git's own files are planned as well.
    pub objects: bool,
}

impl Default for GitOptions {
    fn default() -> Self {
        GitOptions { branch: "HEAD".into(), max_commits: None, days: None, gc_every: 6700, objects: true }
    }
}

/// Plans from the repository in `path`.
///
/// # Errors
/// [`PlanError::Io`] without git, [`PlanError::Input`] for what is no repository, or has no such branch.
pub fn plan(
    path: &Path,
    options: &GitOptions,
    writer: &mut Writer,
    mut progress: Progress<'_>,
) -> Result<PlanMeta, PlanError> {
    if options.max_commits == Some(0) || options.days == Some(0) {
        return Err(PlanError::parameter("max-commits, days", "at least one"));
    }
    let repository = Repository::open(path)?;
    let total = repository.count(&options.branch, options.max_commits)?;
    let clock = Clock::new(&repository, options)?;
    let mut follower = Follower {
        repository: &repository,
        sizes: repository.sizes()?,
        tree: Tree::new(writer),
        store: options.objects.then(|| Store::new(options.gc_every)),
        crc: 0,
        bytes: 0,
    };
    let mut log = repository.log(&options.branch, options.max_commits)?;
    let mut commits = 0u64;
    while let Some(commit) = log.next()? {
        follower.tree.t_ns = follower.tree.t_ns.max(clock.plan_ns(commit.time_s));
        // What comes before the first is not part of the log where it is cut short.
        let cloned = commits == 0 && options.max_commits.is_some();
        if cloned {
            follower.clone_of(&commit)?
        } else {
            follower.commit(commit)?
        }
        commits += 1;
        if commits.is_multiple_of(64) {
            go_on(&mut progress, commits as f64 / total.max(1) as f64)?;
        }
    }
    if commits == 0 {
        return Err(PlanError::input(path, format!("branch {}", options.branch), "has no commits"));
    }
    let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let input = Input { name: name.clone(), bytes: follower.bytes, crc32c: format!("{:08x}", follower.crc) };
    let days = u32::try_from(follower.tree.t_ns / DAY_NS + 1).unwrap_or(u32::MAX).max(options.days.unwrap_or(1));
    let source = Source {
        kind: "git".into(),
        name,
        description: format!("A git checkout that follows {} through {commits} commits.", options.branch),
        inputs: vec![input],
        parameters: json!({
            "branch": options.branch,
            "commits": commits,
            "max_commits": options.max_commits,
            "gc_every": options.gc_every,
            "objects": options.objects,
            "packs_at_end": follower.store.as_ref().map(Store::packs),
            "input": "bytes: lengths of the blobs checked out; crc32c: over the commits' names",
        }),
    };
    Ok(PlanMeta { source, days, ..PlanMeta::default() })
}

/// From commit times to plan times.
struct Clock {
    first_s: i64,
    /// Plan nanoseconds for a second.
    scale: f64,
}

impl Clock {
    fn new(repository: &Repository, options: &GitOptions) -> Result<Clock, PlanError> {
        let mut log = repository.log(&options.branch, options.max_commits)?;
        let mut range: Option<(i64, i64)> = None;
        while let Some(commit) = log.next()? {
            let (first, last) = range.unwrap_or((commit.time_s, commit.time_s));
            range = Some((first, last.max(commit.time_s)));
        }
        let (first_s, last_s) = range.unwrap_or((0, 0));
        let seconds = last_s.saturating_sub(first_s).max(1) as f64;
        let scale = match options.days {
            // The last commit is still in the last day.
            Some(days) => (f64::from(days) * DAY_NS as f64 - 1e9).max(0.0) / seconds,
            None => 1e9,
        };
        Ok(Clock { first_s, scale })
    }

    fn plan_ns(&self, time_s: i64) -> u64 {
        // Clocks of committers differ; what is before the first commit is at it. The cast saturates.
        (time_s.saturating_sub(self.first_s).max(0) as f64 * self.scale) as u64
    }
}

struct Follower<'a, 'w> {
    repository: &'a Repository,
    sizes: Sizes<'a>,
    tree: Tree<'w>,
    store: Option<Store>,
    crc: u32,
    bytes: u64,
}

impl Follower<'_, '_> {
    fn note(&mut self, commit: &Hash) {
        self.crc = crc32c::crc32c_append(self.crc, commit.0.as_bytes());
    }

    /// The lengths of what a commit brings, by position; nothing is asked of submodules.
    fn blobs(&mut self, changed: &[Changed]) -> Result<Vec<Option<history::Object>>, PlanError> {
        let is_blob = |mode: Mode| mode != Mode::Submodule;
        let hashes: Vec<&Hash> = changed
            .iter()
            .filter_map(|c| c.now.as_ref().filter(|(mode, _)| is_blob(*mode)).map(|(_, hash)| hash))
            .collect();
        let mut objects = self.sizes.of(&hashes)?.into_iter();
        let blob =
            |c: &Changed| if c.now.as_ref().is_some_and(|(mode, _)| is_blob(*mode)) { objects.next() } else { None };
        Ok(changed.iter().map(blob).collect())
    }

    /// The first tree of a history that is cut short: a pack with all of it, and the checkout.
    fn clone_of(&mut self, commit: &Commit) -> Result<(), PlanError> {
        self.note(&commit.hash);
        let changed = self.repository.tree(&commit.hash)?;
        let objects = self.blobs(&changed)?;
        if let Some(store) = &mut self.store {
            let bytes = objects.iter().flatten().map(|object| store.compressed(*object)).sum();
            store.cloned(&mut self.tree, bytes, changed.len() as u64)?;
        }
        self.check_out(&changed, &objects)?;
        Ok(())
    }

    fn commit(&mut self, commit: Commit) -> Result<(), PlanError> {
        self.note(&commit.hash);
        let objects = self.blobs(&commit.changed)?;
        if let Some(store) = &mut self.store {
            for (changed, object) in commit.changed.iter().zip(&objects) {
                if let (Some((_, hash)), Some(object)) = (&changed.now, object) {
                    let bytes = store.compressed(*object);
                    store.loose(&mut self.tree, &hash.0, bytes)?;
                }
            }
        }
        self.check_out(&commit.changed, &objects)?;
        if let Some(store) = &mut self.store {
            let directories: Vec<Vec<u8>> = directories_of(&commit.changed).into_iter().collect();
            store.commit(&mut self.tree, &commit.hash.0, &directories)?;
            store.collect(&mut self.tree)?;
        }
        Ok(())
    }

    /// Removals first, then what is new or another, in the order of the paths.
    fn check_out(&mut self, changed: &[Changed], objects: &[Option<history::Object>]) -> Result<(), PlanError> {
        for gone in changed.iter().filter(|c| c.now.is_none()) {
            self.tree.remove(&gone.path)?;
        }
        for (there, object) in changed.iter().zip(objects) {
            let Some((mode, _)) = &there.now else { continue };
            let bytes = object.map_or(0, |o| o.bytes);
            self.bytes += bytes;
            // A file in the place of a submodule's directory.
            if *mode != Mode::Submodule {
                self.tree.remove_empty(&there.path)?;
            } else {
                self.tree.unlink(&there.path)?;
            }
            self.tree.put(&there.path, *mode, bytes)?;
        }
        Ok(())
    }
}

/// The directories in which something changed, with those above them; the root is the empty path.
fn directories_of(changed: &[Changed]) -> BTreeSet<Vec<u8>> {
    let mut directories = BTreeSet::new();
    for changed in changed {
        let mut rest = changed.path.as_slice();
        while let Some(slash) = memchr::memrchr(b'/', rest) {
            rest = &rest[..slash];
            if !directories.insert(rest.to_vec()) {
                break;
            }
        }
    }
    directories.insert(Vec::new());
    directories
}
