//! The bytes of an image file or block device, and little-endian fields in them.

use super::error::{Ext4Error, damaged};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// An image opened for reading only, or bytes in memory.
#[derive(Debug)]
pub struct Image {
    bytes: Bytes,
    len: u64,
}

#[derive(Debug)]
enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

impl Image {
    /// Opens an image file or a block device, read-only.
    pub fn open(path: &Path) -> Result<Image, Ext4Error> {
        let mut file = posix::input::open_image(path).map_err(Ext4Error::Open)?;
        // The length of a block device is where its end is; its metadata says 0.
        let len = file.seek(SeekFrom::End(0)).map_err(Ext4Error::Open)?;
        Ok(Image { bytes: Bytes::File(file), len })
    }

    /// An image held in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Image {
        let len = bytes.len() as u64;
        Image { bytes: Bytes::Memory(bytes), len }
    }

    /// Its length in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.len
    }

    /// Fills a buffer from the image.
    pub(super) fn read(&self, at_byte: u64, buffer: &mut [u8]) -> Result<(), Ext4Error> {
        let len = buffer.len();
        let end = at_byte.checked_add(len as u64).filter(|end| *end <= self.len);
        if end.is_none() {
            return Err(damaged(
                at_byte,
                format!("{len} bytes are wanted here, but the image ends at byte {}", self.len),
            ));
        }
        let read = match &self.bytes {
            Bytes::File(file) => file.read_exact_at(buffer, at_byte),
            Bytes::Memory(bytes) => usize::try_from(at_byte)
                .ok()
                .and_then(|start| bytes.get(start..)?.get(..len))
                .map(|found| buffer.copy_from_slice(found))
                .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof)),
        };
        read.map_err(|source| Ext4Error::Io { at_byte, len, source })
    }

    /// Reads so many bytes.
    pub(super) fn bytes(&self, at_byte: u64, len: usize) -> Result<Vec<u8>, Ext4Error> {
        let mut buffer = vec![0; len];
        self.read(at_byte, &mut buffer)?;
        Ok(buffer)
    }
}

/// A byte of a structure; 0 beyond its end, so that a short structure reads as one with the field unset.
pub(super) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// A little-endian 16-bit field; 0 beyond the end.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([u8_at(bytes, at), u8_at(bytes, at.saturating_add(1))])
}

/// A little-endian 32-bit field; 0 beyond the end.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at.saturating_add(2))) << 16
}

/// A 64-bit number kept in two 32-bit fields.
pub(super) fn u64_of(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
