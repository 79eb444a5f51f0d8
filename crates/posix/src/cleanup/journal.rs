//! The journal file of a process: what it has made, so that a later run can sweep up after a kill.
//!
//! Whether that process lives cannot be told by its number: it may be in a process number namespace (a container) or on
//! a machine of its own and share the directory. So it holds a lock (flock(2)) on a file beside its journal for as long
//! as that is there. Only where a file system has no locks, the number is asked.

use super::lock::{Locking, lock_directory};
use super::names::unguessable;
use super::removal::Removal;
use super::resource::Resource;
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The file's contents.
#[derive(Serialize, Deserialize)]
struct Journal {
    version: u32,
    pid: u32,
    /// Start time of the process in clock ticks since boot, and the boot: a process number alone is used again.
    start_ticks: u64,
    boot: String,
    /// The machine's name. Of another boot, where there is no lock, only a process of this machine is known to be gone.
    #[serde(default)]
    host: Option<String>,
    #[serde(default)]
    namespaces: Option<Namespaces>,
    resources: Vec<Resource>,
}

/// Where a process sees its mounts, and its fellows (namespaces(7)), as the kernel calls them.
#[derive(Serialize, Deserialize)]
struct Namespaces {
    mounts: String,
    processes: String,
}

impl Namespaces {
    fn own() -> Option<Namespaces> {
        let of =
            |kind: &str| Some(std::fs::read_link(Path::new("/proc/self/ns").join(kind)).ok()?.to_str()?.to_owned());
        Some(Namespaces { mounts: of("mnt")?, processes: of("pid")? })
    }

    /// Whether somebody else may see the mounts of this one, and we do not: what we find missing may be there. A
    /// namespace in which no process is left has no mounts any more.
    fn is_anothers(&self) -> bool {
        let Some(own) = Namespaces::own() else { return false };
        if own.mounts == self.mounts {
            return false;
        }
        let is_there = |process: std::fs::DirEntry| {
            std::fs::read_link(process.path().join("ns/mnt")).is_ok_and(|name| name.as_os_str() == self.mounts.as_str())
        };
        own.processes != self.processes || std::fs::read_dir("/proc").into_iter().flatten().flatten().any(is_there)
    }
}

/// 1 knew no files, 2 no locks, 3 nothing served, 4 nothing that is replaced.
const VERSION: u32 = 5;

/// How long another sweep is waited for: that of a run which was stopped, say, has no end.
const SWEEPS_WITHIN: Duration = Duration::from_secs(10);

/// What a [`sweep`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// What was removed, one sentence each.
    pub removed: Vec<String>,
    /// What could not be removed, and why.
    pub troubles: Vec<String>,
}

/// Removes what runs of fsage that were killed have left behind. Cheap when there is nothing: one
/// directory is read. Call it once at the start of a command that uses targets, and show what it says.
pub fn sweep() -> SweepReport {
    let mut report = SweepReport::default();
    let Some(directory) = state_directory() else { return report };
    // One sweep at a time: two would trip over each other and take that for trouble. Released with the descriptor.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(lock) = rustix::fs::open(&directory, flags, rustix::fs::Mode::empty()) else { return report };
    let begun = Instant::now();
    while rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK) {
        if begun.elapsed() > SWEEPS_WITHIN {
            let (directory, seconds) = (directory.display(), SWEEPS_WITHIN.as_secs());
            report.troubles.push(format!(
                "{directory}: other runs have been sweeping there for {seconds} s; what killed runs have left stays \
                 until a later run"
            ));
            return report;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let Ok(entries) = std::fs::read_dir(&directory) else { return report };
    for entry in entries.flatten() {
        let path = entry.path();
        match path.extension().and_then(|e| e.to_str()) {
            Some("json") => sweep_one(&path, &mut report),
            // Killed while it was writing: the journal before it is still there and is swept above.
            Some("new") if !is_of_the_living(&path) => drop(std::fs::remove_file(&path)),
            // Killed before it wrote one.
            Some("lock") => {
                if let Some(Ok(_held)) = try_lock(&path)
                    && !path.with_extension("json").exists()
                {
                    let _ = std::fs::remove_file(&path);
                }
            }
            _ => {}
        }
    }
    report
}

fn sweep_one(path: &Path, report: &mut SweepReport) {
    // Only files of our own are believed.
    if !path.symlink_metadata().is_ok_and(|m| m.is_file() && m.uid() == rustix::process::geteuid().as_raw()) {
        return;
    }
    let journal = match std::fs::read(path).map(|bytes| serde_json::from_slice::<Journal>(&bytes)) {
        Ok(Ok(journal)) if (1..=VERSION).contains(&journal.version) => journal,
        Ok(Ok(journal)) => {
            let version = journal.version;
            report.troubles.push(format!("{}: journal version {version} is not known here", path.display()));
            return;
        }
        Ok(Err(error)) => {
            report.troubles.push(format!("{}: not a journal of fsage ({error}); remove it by hand", path.display()));
            return;
        }
        Err(_) => return,
    };
    if is_locked(path).unwrap_or_else(|| is_alive(&journal)) {
        return;
    }
    if let Some(error) = journal.resources.iter().find_map(|resource| resource.answers().err()) {
        report.troubles.push(error.to_string());
        return;
    }
    // Told by one who does not see what is mounted, it would be forgotten, and the mount would stay.
    let is_mount = |resource: &Resource| matches!(resource, Resource::Mount { .. } | Resource::Served { .. });
    if journal.resources.iter().any(is_mount)
        && journal.boot == boot_id()
        && journal.namespaces.as_ref().is_some_and(Namespaces::is_anothers)
    {
        return;
    }
    // In an overlay of the directory with the journal, its lock is another; those of the directories themselves are
    // not.
    let is_held = |resource: &Resource| match resource {
        Resource::Directory { path, .. } => matches!(lock_directory(path), Locking::Theirs),
        Resource::File { .. } | Resource::Aside { .. } | Resource::Mount { .. } | Resource::Served { .. } => false,
    };
    if journal.resources.iter().any(is_held) {
        return;
    }
    let before = report.troubles.len();
    let mut left_alone = Vec::new();
    for resource in journal.resources.iter().rev() {
        match (resource.remove_dead(), resource) {
            (Ok(Removal::Absent), _) => {}
            (Ok(Removal::NotOurs(why)), _) => left_alone.push(why),
            (Ok(Removal::Gone), Resource::Directory { .. } | Resource::File { .. } | Resource::Aside { .. }) => {
                report.removed.push(format!("{}: removed, left by a run that was killed", resource.path().display()));
            }
            (Ok(Removal::Gone), Resource::Mount { .. } | Resource::Served { .. }) => {
                report.removed.push(format!("{}: unmounted, left by a run that was killed", resource.path().display()));
            }
            (Err(error), _) => report.troubles.push(error.to_string()),
        }
    }
    if report.troubles.len() == before {
        let _ = std::fs::remove_file(path);
        let _ = std::fs::remove_file(path.with_extension("lock"));
    }
    report.troubles.append(&mut left_alone);
}

/// Takes a lock for as long as what comes back is there; an error if it is held, `None` if there is none or nobody can
/// tell.
fn try_lock(lock: &Path) -> Option<Result<OwnedFd, ()>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let lock = rustix::fs::open(lock, flags, rustix::fs::Mode::empty()).ok()?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Some(Ok(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Some(Err(())),
        Err(_) => None,
    }
}

/// Whether somebody holds the lock beside a journal; `None`: there is none, or nobody can tell.
fn is_locked(journal: &Path) -> Option<bool> {
    try_lock(&journal.with_extension("lock")).map(|taken| taken.is_err())
}

/// Whether a journal on its way, `PID-TICKS-….new`, is that of a running process.
fn is_of_the_living(path: &Path) -> bool {
    is_locked(path).unwrap_or_else(|| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let mut numbers = stem.split('-');
        let (pid, ticks) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        pid.parse().ok().and_then(start_ticks).is_some_and(|now| ticks.parse() == Ok(now))
    })
}

fn is_alive(journal: &Journal) -> bool {
    if boot_id() == journal.boot {
        return start_ticks(journal.pid) == Some(journal.start_ticks);
    }
    journal.host.as_ref().is_some_and(|host| *host != host_name())
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Field 22 of `/proc/PID/stat`; the name in field 2 may hold anything, so fields are counted from its end.
fn start_ticks(pid: u32) -> Option<u64> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

fn state_directory() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/run/fsage"));
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state"))).map(|base| base.join("fsage"))
}

/// This process's journal.
struct Own {
    path: PathBuf,
    /// Locked. `None` where the file system has no locks.
    _lock: Option<OwnedFd>,
}

impl Own {
    fn begin(directory: &Path, pid: u32, start_ticks: u64) -> io::Result<Own> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        loop {
            let path = directory.join(format!("{pid}-{start_ticks}-{:016x}.json", unguessable()?));
            let name = path.with_extension("lock");
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let lock = rustix::fs::open(&name, flags, rustix::fs::Mode::from_raw_mode(0o600))?;
            if rustix::fs::flock(&lock, FlockOperation::LockExclusive).is_err() {
                std::fs::remove_file(&name)?;
                return Ok(Own { path, _lock: None });
            }
            // A sweep that came before the lock has removed it: another will do.
            if name.exists() {
                return Ok(Own { path, _lock: Some(lock) });
            }
        }
    }
}

static OWN: Mutex<Option<Own>> = Mutex::new(None);

/// Writes this process's list, or removes the file when the list is empty. A journal that cannot be written is
/// no reason to fail: it matters only if we are killed.
pub(super) fn write<'a>(resources: impl Iterator<Item = &'a Resource>) {
    let resources: Vec<Resource> = resources.cloned().collect();
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if resources.is_empty() {
        if let Some(own) = own.take() {
            // The lock is let go last.
            let _ = std::fs::remove_file(&own.path);
            let _ = std::fs::remove_file(own.path.with_extension("lock"));
        }
        return;
    }
    let pid = std::process::id();
    let (Some(directory), Some(start_ticks)) = (state_directory(), start_ticks(pid)) else { return };
    if own.is_none() {
        *own = Own::begin(&directory, pid, start_ticks).ok();
    }
    let Some(own) = own.as_ref() else { return };
    let (host, namespaces) = (Some(host_name()), Namespaces::own());
    let journal = Journal { version: VERSION, pid, start_ticks, boot: boot_id(), host, namespaces, resources };
    let _ = replace(&own.path, &journal);
}

fn replace(path: &Path, journal: &Journal) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = std::fs::File::create(&fresh)?;
    file.write_all(&serde_json::to_vec(journal)?)?;
    drop(file);
    std::fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn any_path_survives_the_journal() {
        let path = PathBuf::from(std::ffi::OsString::from_vec((1..=255).collect()));
        let resource = Resource::Directory { path, ino: Some(7) };
        let text = serde_json::to_string(&resource).unwrap();
        assert_eq!(serde_json::from_str::<Resource>(&text).unwrap(), resource);
    }

    #[test]
    fn this_process_is_alive_and_another_boot_is_not() {
        let pid = std::process::id();
        let start_ticks = start_ticks(pid).unwrap();
        let host = Some(host_name());
        let namespaces = Namespaces::own();
        let mut journal =
            Journal { version: VERSION, pid, start_ticks, boot: boot_id(), host, namespaces, resources: Vec::new() };
        assert!(is_alive(&journal));
        assert!(is_of_the_living(Path::new(&format!("/x/{pid}-{start_ticks}.new"))));
        assert!(!is_of_the_living(Path::new(&format!("/x/{pid}-1.new"))));
        journal.start_ticks += 1;
        assert!(!is_alive(&journal));
        journal.start_ticks -= 1;
        journal.boot.push('x');
        assert!(!is_alive(&journal));
        journal.host = Some("another".into());
        assert!(is_alive(&journal), "nobody here can tell");
    }
}
