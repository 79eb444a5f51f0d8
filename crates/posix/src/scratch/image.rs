//! The image that a scratch file system lies in: a file, or memory.

use super::bases;
use crate::mounted::{meminfo_bytes, usage};
use crate::mounts::{MountEntry, mount_of};
use crate::output::Output;
use crate::{Backing, ScratchSpec, SetupError, interrupt};
use rustix::fs::{self, FallocateFlags, MemfdFlags, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// An open image and what is known about it.
#[derive(Debug)]
pub(super) struct Image {
    file: OwnedFd,
    path: Option<PathBuf>,
    /// That is to stay, and has not its name yet.
    unfinished: Option<Output>,
    described: String,
}

/// The directory to work in: the first candidate that has the space. With an image elsewhere only the mount point lies
/// there.
pub(super) fn base(spec: &ScratchSpec, at: Option<&crate::Image>) -> Result<PathBuf, SetupError> {
    if let Some(crate::Image::New(path)) = at {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        room(parent, spec.size_bytes.saturating_add(spec.size_bytes / 32))?;
    }
    let candidates = bases(&spec.backing);
    let need_bytes = match spec.backing {
        _ if at.is_some() => 0,
        Backing::Ram => 0,
        // A thirty-second for the metadata of the file system that holds the image.
        _ => spec.size_bytes.saturating_add(spec.size_bytes / 32),
    };
    let mut first_trouble = None;
    for candidate in candidates {
        match room(&candidate, need_bytes) {
            Ok(()) => return Ok(candidate),
            Err(trouble) => first_trouble = first_trouble.or(Some(trouble)),
        }
    }
    Err(first_trouble.unwrap_or_else(|| SetupError::Missing { path: PathBuf::from("/var/tmp") }))
}

fn room(directory: &Path, need_bytes: u64) -> Result<(), SetupError> {
    let opened = fs::open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, fs::Mode::empty());
    let opened = opened.map_err(|e| SetupError::from_io(directory, "open the directory for the image", e.into()))?;
    let free = usage(&opened).map_err(|e| SetupError::from_io(directory, "look at the free space", e))?;
    if free.available_bytes < need_bytes {
        let (path, free_bytes) = (directory.to_path_buf(), free.available_bytes);
        return Err(SetupError::NoSpace { path, need_bytes, free_bytes });
    }
    Ok(())
}

impl Image {
    /// Makes the image in the stage directory, or in memory, with its space reserved.
    pub(super) fn make(spec: &ScratchSpec, stage: &Path, at: Option<&crate::Image>) -> Result<Image, SetupError> {
        let size_bytes = spec.size_bytes - spec.size_bytes % 4096;
        let (path, is_kept) = match at {
            Some(crate::Image::Old(path)) => return Image::old(path),
            Some(crate::Image::New(path)) => (path.clone(), true),
            None if spec.backing == Backing::Ram => return Image::in_memory(size_bytes, stage),
            None => (stage.join("image"), false),
        };
        let trouble = |doing: &'static str| {
            let path = path.clone();
            move |e: rustix::io::Errno| SetupError::from_io(&path, doing, e.into())
        };
        let mode = fs::Mode::RUSR | fs::Mode::WUSR;
        let (file, unfinished): (OwnedFd, _) = if is_kept {
            let made = Output::create(&path, mode.as_raw_mode());
            let (output, file) = made.map_err(|e| SetupError::from_io(&path, "make the image", e))?;
            (file.into(), Some(output))
        } else {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            (fs::open(&path, flags, mode).map_err(trouble("make the image"))?, None)
        };
        let reserved = match fs::fallocate(&file, FallocateFlags::empty(), 0, size_bytes) {
            Ok(()) => "preallocated image",
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                fs::ftruncate(&file, size_bytes).map_err(trouble("give the image its size"))?;
                "sparse image (its file system cannot preallocate)"
            }
            Err(e) => return Err(trouble("reserve the image's space")(e)),
        };
        let below = mount_of(&file)
            .map_or_else(String::new, |m: MountEntry| format!(" on {} on {}", m.fs_type, m.source.display()));
        Ok(Image { file, path: Some(path), unfinished, described: format!("{reserved}{below}") })
    }

    /// An image that an earlier run has left.
    fn old(path: &Path) -> Result<Image, SetupError> {
        let opened = fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, fs::Mode::empty());
        let file = opened.map_err(|e| SetupError::from_io(path, "open the image", e.into()))?;
        let (path, described) = (Some(path.to_path_buf()), "image of an earlier run".to_string());
        Ok(Image { file, path, unfinished: None, described })
    }

    /// The open file, and what gives it its name if it is to stay.
    pub(super) fn into_parts(self) -> (OwnedFd, Option<Output>) {
        (self.file, self.unfinished)
    }

    fn in_memory(size_bytes: u64, stage: &Path) -> Result<Image, SetupError> {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let need_bytes = size_bytes.saturating_add(size_bytes / 8);
        if let Some(free_bytes) = meminfo_bytes(&text, "MemAvailable:").filter(|&free| free < need_bytes) {
            return Err(SetupError::NoMemory { need_bytes, free_bytes });
        }
        // A memfd is an unlinked file on a tmpfs that is mounted nowhere. Its name only serves to tell it apart.
        let name = stage.file_name().unwrap_or_default();
        let made = fs::memfd_create(name, MemfdFlags::CLOEXEC)
            .and_then(|file| fs::fallocate(&file, FallocateFlags::empty(), 0, size_bytes).map(|()| file));
        let file = made.map_err(|e| match e {
            rustix::io::Errno::NOSPC | rustix::io::Errno::NOMEM => {
                SetupError::NoMemory { need_bytes, free_bytes: meminfo_bytes(&text, "MemAvailable:").unwrap_or(0) }
            }
            e => SetupError::from_io(stage, "reserve memory for the image", e.into()),
        })?;
        let described = "preallocated image in memory (tmpfs)".to_string();
        Ok(Image { file, path: None, unfinished: None, described })
    }

    /// Writes zeros over the whole image, so that no block of it is written for the first time later: a file system
    /// below has more to do the first time, and a fresh file system would seem slower than one that has been used.
    pub(super) fn write_out(&mut self) -> io::Result<()> {
        const PIECE_BYTES: u64 = 4 << 20;
        let piece = vec![0; usize::try_from(PIECE_BYTES).unwrap_or(usize::MAX)];
        let len_bytes = u64::try_from(fs::fstat(&self.file)?.st_size).unwrap_or(0);
        for at in (0..len_bytes).step_by(piece.len()) {
            if interrupt::requested() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let rest = usize::try_from(len_bytes - at).unwrap_or(usize::MAX).min(piece.len());
            let mut done = 0;
            while done < rest {
                done += rustix::io::pwrite(&self.file, &piece[done..rest], at + done as u64)?;
            }
        }
        fs::fdatasync(&self.file)?;
        fs::fadvise(&self.file, 0, None, fs::Advice::DontNeed)?;
        self.described = self.described.replace("preallocated image", "image written out");
        Ok(())
    }

    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// What it is, for the record.
    pub(super) fn described(&self) -> &str {
        &self.described
    }

    /// Takes its name away; it lives on as long as it is attached.
    pub(super) fn unlink(&self) -> io::Result<()> {
        self.path.as_ref().map_or(Ok(()), std::fs::remove_file)
    }
}
