//! An aged image in a file that can be passed on: zstd over the whole image, of which only allocated ranges are read.

use super::error::AgeError;
use posix::output::Output;
use rustix::fs::SeekFrom;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compressed {
    /// Length of the image.
    pub image_bytes: u64,
    /// Of that in allocated ranges, which were read.
    pub data_bytes: u64,
    /// Length of the compressed file.
    pub compressed_bytes: u64,
}

const PIECE_BYTES: usize = 1 << 20;
/// zstd's own default.
const LEVEL: i32 = 3;

/// Compresses an image to a new file. Holes are written as zeros, which take no room; `zstd -d --sparse` makes them
/// holes again. `go_on` is told how many bytes are done, and stops the work by answering `false`.
///
/// # Errors
/// [`AgeError::Io`]; nothing is left under the name.
pub fn compress(image: &File, to: &Path, go_on: &mut dyn FnMut(u64) -> bool) -> Result<Compressed, AgeError> {
    Ok(write(image, to, go_on).map_err(fault::refused(to, "write the compressed image"))?)
}

fn write(image: &File, to: &Path, go_on: &mut dyn FnMut(u64) -> bool) -> io::Result<Compressed> {
    let image_bytes = image.metadata()?.len();
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let (whole, file) = Output::create(to, 0o666)?;
    let mut encoder = zstd::Encoder::new(file, LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(image_bytes))?;
    let (zeros, mut piece) = (vec![0u8; PIECE_BYTES], vec![0u8; PIECE_BYTES]);
    let (mut at, mut data_bytes) = (0, 0);
    while at < image_bytes {
        let start = next(image, SeekFrom::Data(at), image_bytes)?;
        while at < start {
            let len = piece_len(start - at);
            encoder.write_all(zeros.get(..len).unwrap_or_default())?;
            at += len as u64;
        }
        let end = if at < image_bytes { next(image, SeekFrom::Hole(at), image_bytes)? } else { at };
        while at < end {
            let buffer = piece.get_mut(..piece_len(end - at)).unwrap_or_default();
            image.read_exact_at(buffer, at)?;
            encoder.write_all(buffer)?;
            at += buffer.len() as u64;
            data_bytes += buffer.len() as u64;
            if !go_on(at) {
                return Err(io::Error::from(io::ErrorKind::Interrupted));
            }
        }
    }
    let file = encoder.finish()?;
    file.sync_all()?;
    let compressed_bytes = file.metadata()?.len();
    whole.finish()?;
    Ok(Compressed { image_bytes, data_bytes, compressed_bytes })
}

fn piece_len(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(PIECE_BYTES).min(PIECE_BYTES)
}

/// The next data or hole; the end where there is none. A file system that knows no holes has data everywhere.
fn next(image: &File, from: SeekFrom, end: u64) -> io::Result<u64> {
    match rustix::fs::seek(image, from) {
        Ok(at) => Ok(at.min(end)),
        Err(rustix::io::Errno::NXIO) => Ok(end),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_comes_back_and_holes_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let image = File::create_new(dir.path().join("image")).unwrap();
        image.set_len(64 << 20).unwrap();
        let file = File::options().read(true).write(true).open(dir.path().join("image")).unwrap();
        file.write_all_at(&[7; 5000], 10 << 20).unwrap();
        file.write_all_at(&[9; 100], (64 << 20) - 100).unwrap();
        let to = dir.path().join("image.zst");
        let done = compress(&file, &to, &mut |_| true).unwrap();
        assert_eq!(done.image_bytes, 64 << 20);
        assert!(done.data_bytes < 1 << 20, "{done:?}");
        let back = zstd::decode_all(File::open(&to).unwrap()).unwrap();
        assert!(back == std::fs::read(dir.path().join("image")).unwrap());
        assert!(compress(&file, &to, &mut |_| true).is_err(), "an existing file is not overwritten");
    }
}
