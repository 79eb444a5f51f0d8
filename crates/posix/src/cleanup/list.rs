//! The list of what this process has made, in memory and in its journal.

use super::journal;
use super::kept;
use super::making::{self, Making, stand_aside};
use super::removal::Removal;
use super::resource::Resource;
use crate::mounts::MountEntry;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// One thing in the list.
struct Listed {
    id: u64,
    resource: Resource,
    /// The number of the [`Making`] that made or moved it last.
    making: u64,
    /// A thread is removing it.
    is_being_removed: bool,
    /// On a directory that is ours, while it is: a sweep that cannot see this process (in a container, say) sees the
    /// lock.
    _lock: Option<OwnedFd>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);
static LIST: Mutex<Vec<Listed>> = Mutex::new(Vec::new());
/// A thread has removed something, or has failed to.
static REMOVED: Condvar = Condvar::new();

fn list() -> std::sync::MutexGuard<'static, Vec<Listed>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An entry in the list; removes what it stands for when it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    id: u64,
}

impl Entry {
    /// Enters a thing that is about to be made. The forced clean-up waits until it is.
    pub(crate) fn new(making: &Making, resource: Resource) -> Entry {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut list = list();
        list.push(Listed { id, resource, making: making.number(), is_being_removed: false, _lock: None });
        journal::write(list.iter().map(|listed| &listed.resource));
        Entry { id }
    }

    /// Notes that it is about to move. The forced clean-up waits until it has.
    pub(crate) fn moves(&self, making: &Making) {
        if let Some(listed) = list().iter_mut().find(|listed| listed.id == self.id) {
            listed.making = making.number();
        }
    }

    /// Notes the inode number of what has just been made.
    pub(crate) fn made(&self, ino: u64) {
        self.identified(Some(ino), None);
    }

    /// Another of ours has the name now, or will have it.
    pub(super) fn was_replaced(&self) {
        self.identified(None, None);
    }

    /// Notes which one it is, and keeps a directory's lock as long as it is in the list.
    pub(super) fn identified(&self, ino: Option<u64>, lock: Option<OwnedFd>) {
        let mut list = list();
        if let Some(listed) = list.iter_mut().find(|listed| listed.id == self.id) {
            match &mut listed.resource {
                Resource::Directory { ino: known, .. } | Resource::File { ino: known, .. } => *known = ino,
                Resource::Aside { .. } | Resource::Mount { .. } | Resource::Served { .. } => {}
            }
            listed._lock = lock.or(listed._lock.take());
        }
        journal::write(list.iter().map(|listed| &listed.resource));
    }

    /// Notes what has just been mounted: from now on nothing else at that place is taken for it.
    pub(super) fn mounted(&self, mount: MountEntry) {
        let mut list = list();
        if let Some(listed) = list.iter_mut().find(|listed| listed.id == self.id)
            && let Resource::Served { device, .. } = &mut listed.resource
        {
            *device = Some(mount.device_number);
        }
        journal::write(list.iter().map(|listed| &listed.resource));
    }

    /// Removes the thing now, and says how that went.
    pub(crate) fn remove(self) -> io::Result<()> {
        self.remove_by(Resource::remove)
    }

    /// The same in another way than by what it is.
    pub(super) fn remove_by(self, how: impl FnOnce(&Resource) -> io::Result<Removal>) -> io::Result<()> {
        stand_aside();
        let result = remove_entry(self.id, how);
        std::mem::forget(self);
        result
    }

    /// Strikes the entry off without removing anything: the thing is gone already, or is to be kept.
    pub(crate) fn forget(self) {
        take(self.id);
        std::mem::forget(self);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        stand_aside();
        if let Err(error) = remove_entry(self.id, Resource::remove) {
            crate::notice::tell(&format!("cannot clean up: {error}"));
        }
    }
}

fn take(id: u64) {
    let mut list = list();
    list.retain(|listed| listed.id != id);
    journal::write(list.iter().map(|listed| &listed.resource));
}

/// While this lives, other threads leave the removal of a thing (its number) to this one.
struct Removing(u64);

impl Drop for Removing {
    fn drop(&mut self) {
        if let Some(listed) = list().iter_mut().find(|listed| listed.id == self.0) {
            listed.is_being_removed = false;
        }
        REMOVED.notify_all();
    }
}

/// Removes the thing first and strikes it off afterwards, so that a process killed in between leaves its entry. What
/// could not be removed stays in the list, and so in the journal: a later run finds it there. One thread at a time: a
/// second unmounting would be that of what others have mounted there.
fn remove_entry(id: u64, how: impl FnOnce(&Resource) -> io::Result<Removal>) -> io::Result<()> {
    let mut all = list();
    let (resource, _removing) = loop {
        match all.iter_mut().find(|listed| listed.id == id) {
            None => return Ok(()),
            Some(listed) if listed.is_being_removed => {
                all = REMOVED.wait(all).unwrap_or_else(PoisonError::into_inner);
            }
            Some(listed) => {
                listed.is_being_removed = true;
                break (listed.resource.clone(), Removing(id));
            }
        }
    };
    drop(all);
    let removal = how(&resource)?;
    take(id);
    match removal {
        Removal::Gone | Removal::Absent => Ok(()),
        Removal::NotOurs(why) => Err(io::Error::other(why)),
    }
}

/// Removes everything in the list, the youngest first, and says in words what could not be removed. For the end
/// of a process that cannot unwind: other threads of it make nothing more. What they are still making stays in the
/// journal.
pub(crate) fn release_all() -> Vec<String> {
    let unfinished = making::end();
    let is_unfinished = |listed: &Listed| unfinished.contains(&listed.making);
    let (mut troubles, mut tried) = (Vec::new(), Vec::new());
    loop {
        let is_next = |listed: &&Listed| !tried.contains(&listed.id) && !is_unfinished(listed);
        let next = list().iter().rev().find(is_next).map(|listed| listed.id);
        let Some(id) = next else { break };
        tried.push(id);
        if let Err(error) = remove_entry(id, Resource::remove) {
            troubles.push(format!("cannot clean up: {error}"));
        }
    }
    let seconds = making::PATIENCE.as_secs();
    let left = |listed: &Listed| {
        let path = listed.resource.path().display();
        format!("{path}: still being made or moved after {seconds} s; the next run of fsage removes what is left of it")
    };
    troubles.extend(list().iter().filter(|listed| is_unfinished(listed)).map(left));
    troubles.extend(kept::lines());
    troubles
}
