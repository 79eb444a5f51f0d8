//! Scratch file systems: made for one run on a loop device, and gone with it.
//!
//! An image file is preallocated, attached with direct I/O where its own file system allows that, formatted and
//! mounted. The order in which things are then taken away again is chosen so that a run that is
//! killed leaves nothing:
//!
//! * the image is unlinked once it is attached: its space is freed when the loop device lets go of it;
//! * the loop device is attached with autoclear: it lets go when the file system is unmounted;
//! * the mount is detached from the directory tree as soon as its root is open: it is unmounted when the last
//!   descriptor below it is closed, which the kernel does for a process that dies, however it dies.
//!
//! So while a run is going on, its file system can be reached through this process only. `keep` does none of the three.
//!
//! Preallocation (`fallocate`) reserves the space, so that the run cannot fill the file system that holds the
//! image, and keeps block allocation there out of the timings; mkfs is told not to discard, which would
//! undo it. Blocks written for the first time still pay for marking them written there.

mod image;
mod loops;
mod mkfs;

use crate::cleanup::{self, Entry, Resource};
use crate::mounted::Origin;
use crate::mounts::{MountEntry, mount_of};
use crate::output::Output;
use crate::{Backing, ScratchSpec, SetupError, interrupt};
use image::Image;
use loops::LoopDevice;
use rustix::fs::{self, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A mounted scratch file system.
#[derive(Debug)]
pub(crate) struct Scratch {
    root: OwnedFd,
    image: OwnedFd,
    /// The image that is to stay, and has not its name yet.
    unfinished: Option<Output>,
    device: LoopDevice,
    mount: Option<MountEntry>,
    mkfs: String,
    described: String,
    /// Where it is mounted and what is to be left there, if it is kept.
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    point: PathBuf,
    /// Until it is settled that it is kept: its mount, and the directory of that.
    entries: Option<(Entry, Entry)>,
}

impl Scratch {
    /// Makes the image (written out, if asked), the file system and the mount; with an image of an earlier run, the
    /// mount only.
    pub(crate) fn make(
        spec: &ScratchSpec,
        keep: bool,
        at: Option<&crate::Image>,
        written: bool,
    ) -> Result<Scratch, SetupError> {
        if !rustix::process::geteuid().is_root() {
            return Err(SetupError::NeedsRoot { target: spec.text.clone() });
        }
        let tool = mkfs::Tool::find(spec)?;
        let base = image::base(spec, at)?;
        let staged = cleanup::private_directory(&base);
        let (stage, stage_entry) =
            staged.map_err(|e| SetupError::from_io(&base, "make a directory for the image", e))?;
        let mut image = Image::make(spec, &stage, at)?;
        if written && !matches!(at, Some(crate::Image::Old(_))) {
            image.write_out().map_err(|e| match e.kind() {
                io::ErrorKind::Interrupted => SetupError::Interrupted,
                _ => SetupError::from_io(&stage, "write the image out", e),
            })?;
        }
        let device = LoopDevice::attach(image.file())
            .map_err(|source| SetupError::Loop { target: spec.text.clone(), source })?;
        if !keep && at.is_none() {
            image.unlink().map_err(|e| SetupError::from_io(&stage, "unlink the image", e))?;
        }
        let mkfs = match at {
            Some(crate::Image::Old(_)) => String::new(),
            _ => tool.run(device.path())?,
        };
        if interrupt::requested() {
            return Err(SetupError::Interrupted);
        }
        let point = stage.join("mnt");
        std::fs::create_dir(&point).map_err(|e| SetupError::from_io(&point, "make the mount point", e))?;
        let making = cleanup::begin_making();
        let mount_entry = Entry::new(&making, Resource::Mount { point: point.clone() });
        let mounted = mount_on(spec, device.path(), &point);
        drop(making);
        mounted?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::open(&point, flags, fs::Mode::empty())
            .map_err(|e| SetupError::from_io(&point, "open the new file system", e.into()))?;
        let mount = mount_of(&root);
        let described = describe(&image, &device);
        let kept = if keep {
            Some(Kept { point, entries: Some((mount_entry, stage_entry)) })
        } else {
            let gone = unmount(&point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
            gone.map_err(|e| SetupError::from_io(&point, "detach the mount", e.into()))?;
            mount_entry.forget();
            stage_entry.remove().map_err(|e| SetupError::from_io(&stage, "remove the mount point", e))?;
            None
        };
        let (image, unfinished) = image.into_parts();
        Ok(Scratch { root, image, unfinished, device, mount, mkfs, described, kept })
    }

    /// Gives a new image that is to stay its name.
    pub(crate) fn take_its_name(&mut self) -> io::Result<()> {
        self.unfinished.take().map_or(Ok(()), Output::finish_new)
    }

    /// The root directory of the file system.
    pub(crate) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// The image, open once more.
    pub(crate) fn image(&self) -> io::Result<std::fs::File> {
        Ok(std::fs::File::from(self.image.try_clone()?))
    }

    /// Where it is mounted, if it is kept.
    pub(crate) fn mount_point(&self) -> Option<&Path> {
        self.kept.as_ref().map(|kept| kept.point.as_path())
    }

    /// What to record about it.
    pub(crate) fn origin(&self, target: String) -> Origin {
        Origin { target, mkfs: self.mkfs.clone(), device: self.described.clone(), mount: self.mount.clone() }
    }

    /// From now on it stays mounted, image and all, whatever becomes of this process. Unmounting it later detaches the
    /// loop device.
    pub(crate) fn stays(&mut self) {
        if let Some((mount, stage)) = self.kept.as_mut().and_then(|kept| kept.entries.take()) {
            // Killed in between, it is unmounted and whole.
            stage.forget();
            mount.forget();
        }
    }

    /// Lets the file system go and waits for the loop device to be free again.
    pub(crate) fn close(self) -> io::Result<()> {
        const PATIENCE: Duration = Duration::from_secs(10);
        drop(self.root);
        let removed = match self.kept.and_then(|kept| kept.entries) {
            Some((mount, stage)) => mount.remove().and(stage.remove()),
            None => Ok(()),
        };
        let device = self.device.release();
        let start = Instant::now();
        while device.is_attached() {
            if start.elapsed() > PATIENCE {
                let name = device.name();
                return Err(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    format!("{name} is still in use: the scratch file system goes with the last handle on it"),
                ));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        removed
    }
}

/// How the device is attached and what it lies on, for the record.
fn describe(image: &Image, device: &LoopDevice) -> String {
    let io = if device.direct_io() { "direct I/O" } else { "buffered I/O: direct I/O is not possible there" };
    format!("loop device, {io}, {}", image.described())
}

fn mount_on(spec: &ScratchSpec, device: &Path, point: &Path) -> Result<(), SetupError> {
    let (flags, data) = mount_flags(&spec.mount_options);
    let trouble = |source: io::Error| {
        let hint = match source.raw_os_error() {
            Some(libc::EINVAL) => "; see the end of dmesg for the option it does not know",
            Some(libc::ENODEV) => "; this kernel has no such file system",
            Some(libc::EPERM) => "; root of a container may lack the right to mount",
            _ => "",
        };
        let (target, options) = (spec.text.clone(), spec.mount_options.join(","));
        SetupError::Mount { target, fs_type: spec.kind.name(), options, hint, source }
    };
    let data = CString::new(data).map_err(|e| trouble(e.into()))?;
    mount(device, point, spec.kind.name(), flags, data.as_c_str()).map_err(|e| trouble(e.into()))
}

/// Splits mount options into the flags of `mount(2)` and the file system's own.
fn mount_flags(options: &[String]) -> (MountFlags, String) {
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mut own = Vec::new();
    for option in options {
        match option.as_str() {
            "defaults" | "rw" => {}
            "ro" => flags |= MountFlags::RDONLY,
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "strictatime" => flags |= MountFlags::STRICTATIME,
            "lazytime" => flags |= MountFlags::LAZYTIME,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "noexec" => flags |= MountFlags::NOEXEC,
            "nosuid" | "nodev" => {}
            other => own.push(other),
        }
    }
    (flags, own.join(","))
}

/// Directories that an image may lie in when none is named, the first with the space wins.
fn default_bases() -> Vec<PathBuf> {
    let from_environment = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|p| p.is_absolute());
    from_environment.into_iter().chain([PathBuf::from("/var/tmp"), PathBuf::from("/tmp")]).collect()
}

/// Where a backing asks the image to be: directories to try in order.
fn bases(backing: &Backing) -> Vec<PathBuf> {
    match backing {
        Backing::Directory(path) => vec![path.clone()],
        // Only the mount point lies there.
        Backing::Ram => vec![PathBuf::from("/run"), PathBuf::from("/tmp")],
        Backing::Default => default_bases(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_options_are_told_apart() {
        let options = ["noatime", "data=journal", "ro", "commit=30"].map(str::to_string);
        let (flags, own) = mount_flags(&options);
        assert!(flags.contains(MountFlags::NOATIME | MountFlags::RDONLY) && !flags.contains(MountFlags::SYNCHRONOUS));
        assert_eq!(own, "data=journal,commit=30");
    }
}
