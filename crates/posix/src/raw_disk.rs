//! A disk, a partition or an image, read as it is: opened for reading only, past the page cache, every read timed.

use crate::input::Refusal;
use crate::mounted::buffers::Pages;
use rustix::fs::{FileType, Mode, OFlags, SeekFrom};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

/// The most that is read at a time.
pub const READ_BYTES_MAX: usize = 1 << 20;

/// Of a file: file systems ask that direct reads begin at blocks of theirs, and none has larger ones on this machine's
/// pages.
const FILE_UNIT_BYTES: u32 = 4096;

/// Something with blocks, opened for reading only.
#[derive(Debug)]
pub struct RawDisk {
    file: File,
    buffer: Pages,
    sector_bytes: u32,
    size_bytes: u64,
}

impl RawDisk {
    /// Opens a block device or a regular file with `O_RDONLY | O_DIRECT`. It is never opened otherwise.
    ///
    /// # Errors
    /// Those of open(2): `EINVAL` where the file system has no direct reads; a [`Refusal`].
    pub fn open(path: &Path) -> io::Result<RawDisk> {
        // The kind first: what is no file is told apart before anything is asked of it.
        drop(crate::input::open_image(path)?);
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let sector_bytes = match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
            FileType::BlockDevice => rustix::fs::ioctl_blksszget(&fd)?,
            FileType::RegularFile => FILE_UNIT_BYTES,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, Refusal::Kind { found: "something else" })),
        };
        let size_bytes = rustix::fs::seek(&fd, SeekFrom::End(0))?;
        let buffer = Pages::new(READ_BYTES_MAX)?;
        Ok(RawDisk { file: File::from(fd), buffer, sector_bytes, size_bytes })
    }

    /// The unit in which it is read.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Its size.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Reads whole units and says how long that took, nanoseconds.
    ///
    /// # Errors
    /// Those of pread(2); a read that is longer than [`READ_BYTES_MAX`] or goes beyond the end.
    pub fn read(&mut self, offset_bytes: u64, bytes: usize) -> io::Result<u64> {
        let Some(into) = self.buffer.bytes_mut().get_mut(..bytes) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{bytes} bytes in one read")));
        };
        let began = Instant::now();
        self.file.read_exact_at(into, offset_bytes)?;
        Ok(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_stays_as_it_is() {
        let d = tempfile::tempdir().unwrap();
        let path = d.path().join("disk");
        let bytes: Vec<u8> = (0..64 * 1024u32).map(|n| (n % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        // Nobody may write it: what is opened for writing fails here, unless by root, who is told by the bytes.
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&path, permissions).unwrap();
        // Some file systems have no direct reads.
        let Some(mut disk) = testkit::have(RawDisk::open(&path)) else { return };
        assert_eq!(disk.size_bytes(), bytes.len() as u64);
        assert!(disk.read(8192, 8192).unwrap() > 0);
        assert_eq!(&disk.buffer.bytes()[..8192], &bytes[8192..16384]);
        assert!(disk.read(60 * 1024, 8192).is_err(), "beyond the end");
        assert!(disk.read(0, READ_BYTES_MAX + 4096).is_err());
        use rustix::fs::fcntl_getfl;
        let flags = fcntl_getfl(&disk.file).unwrap();
        assert!(flags.contains(OFlags::DIRECT) && (flags & OFlags::RWMODE) == OFlags::RDONLY, "{flags:?}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn what_is_no_disk_is_refused() {
        assert!(RawDisk::open(Path::new("/dev/null")).is_err());
        assert!(RawDisk::open(Path::new("/")).is_err());
    }
}
