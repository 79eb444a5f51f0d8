//! What belongs to a tree that is walked, and what is only mounted in it: one answer for all walks that go through the
//! hinge.
//!
//! A device's number does not tell. A file mounted over another one of the same file system has the same number; on
//! overlayfs files have the numbers of their layers, and none has the tree's. What tells is the mount that a name leads
//! to (statx(2)).

use crate::mount_id::MountId;
use crate::{Fd, FileSystem, Stat};
use std::ffi::OsStr;

/// What a walk stays within.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    device: u64,
    /// `None`: not known, or nothing can be mounted there.
    mount: Option<MountId>,
    can_have_mounts: bool,
    /// Whether a file's device is another one than its directory's without being mounted there.
    is_layered: bool,
}

impl Bounds {
    /// Those of the tree below an open directory.
    pub fn of(fs: &mut dyn FileSystem, root: Fd, stat: &Stat) -> Bounds {
        Bounds {
            device: stat.dev,
            mount: fs.mount(root, None),
            can_have_mounts: fs.host_path().is_some(),
            is_layered: fs.environment().fs_type.is_layered(),
        }
    }

    /// Whether something is mounted at a name of an open directory; `None`: not known.
    pub fn mounted_at(&self, fs: &mut dyn FileSystem, dir: Fd, name: &OsStr) -> Option<bool> {
        self.elsewhere(fs, dir, Some(name))
    }

    fn elsewhere(&self, fs: &mut dyn FileSystem, fd: Fd, name: Option<&OsStr>) -> Option<bool> {
        let own = self.mount?;
        fs.mount(fd, name).map(|mount| mount != own)
    }

    /// Whether an open directory is the tree's. One with a device of its own is not, mounted or not: a subvolume of
    /// btrfs counts its inodes anew.
    pub fn holds_directory(&self, fs: &mut dyn FileSystem, fd: Fd, stat: &Stat) -> bool {
        self.is_own_device(stat) && self.elsewhere(fs, fd, None) != Some(true)
    }

    /// The same of a directory that cannot be opened.
    pub fn holds_closed_directory(&self, fs: &mut dyn FileSystem, dir: Fd, name: &OsStr, stat: &Stat) -> bool {
        self.is_own_device(stat) && self.mounted_at(fs, dir, name) != Some(true)
    }

    /// Whether what is no directory is the tree's, by its name in an open directory of the tree.
    pub fn holds_name(&self, fs: &mut dyn FileSystem, dir: Fd, name: &OsStr, stat: &Stat) -> bool {
        self.mounted_at(fs, dir, name).map_or_else(|| self.is_own_device(stat) || self.is_layered, |mounted| !mounted)
    }

    /// Whether an open file is the tree's.
    pub fn holds_file(&self, fs: &mut dyn FileSystem, fd: Fd, stat: &Stat) -> bool {
        self.elsewhere(fs, fd, None).map_or_else(|| self.is_own_device(stat) || self.is_layered, |mounted| !mounted)
    }

    /// Whether it has the tree's own device.
    pub fn is_own_device(&self, stat: &Stat) -> bool {
        stat.dev == self.device
    }

    /// The number that tells an inode from all others of the tree. On overlayfs each layer counts its own: there the
    /// layer's device goes into the upper bits, as the kernel's option `xino` does it.
    pub fn ino(&self, stat: &Stat) -> u64 {
        const LAYER_SHIFT: u32 = 44;
        if !self.is_layered || self.is_own_device(stat) {
            return stat.ino;
        }
        let (major, minor) = (rustix::fs::major(stat.dev), rustix::fs::minor(stat.dev));
        stat.ino ^ u64::from(minor ^ major.rotate_left(8)) << LAYER_SHIFT
    }

    /// What who asks for addresses has to know: those of different layers may be of different devices.
    pub fn note_on_addresses(&self) -> Option<&'static str> {
        self.is_layered.then_some(
            "an overlay's files lie where their layers are: addresses of different layers may be of different devices",
        )
    }

    /// What the reader has to know: that mounts are not told, and what follows from that.
    pub fn note(&self) -> Option<&'static str> {
        match (self.can_have_mounts && self.mount.is_none(), self.is_layered) {
            (false, _) => None,
            (true, false) => Some(
                "the kernel does not tell which mount a file is in (Linux 5.8 does): a file that is mounted in the \
                 tree from the same file system counts as the tree's own",
            ),
            (true, true) => Some(
                "the kernel does not tell which mount a file is in (Linux 5.8 does), and an overlay's files have \
                 devices of their own: a file that is mounted in the tree counts as the tree's own",
            ),
        }
    }
}
