//! One frame as bytes: a head with checksums, and a payload packed by zstd.

use super::FRAME_BYTES_MAX;
use std::io::{self, Read};

/// What a spool begins with.
pub(super) const MAGIC: &[u8] = b"fsage.spool/1\n";
/// What spools of every version begin with.
pub(super) const FAMILY: &[u8; 12] = b"fsage.spool/";
/// Kind, length unpacked, length packed, checksum of the payload, checksum of these four.
pub(super) const HEAD_BYTES: usize = 20;
/// Capture must keep up with the tracer on a busy machine: level 1 is the fastest that packs well.
const LEVEL: i32 = 1;
/// What zstd may make of bytes that do not shrink (`ZSTD_COMPRESSBOUND`), generously.
const PACKED_BYTES_MAX: usize = FRAME_BYTES_MAX + FRAME_BYTES_MAX / 128 + 1024;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Header = 1,
    Names = 2,
    NamesEnd = 3,
    Records = 4,
    Lost = 5,
    End = 6,
}

impl Kind {
    fn from_number(number: u32) -> Option<Kind> {
        let all = [Kind::Header, Kind::Names, Kind::NamesEnd, Kind::Records, Kind::Lost, Kind::End];
        all.into_iter().find(|&kind| kind as u32 == number)
    }
}

/// Makes frames; keeps what zstd needs from one to the next.
pub(super) struct Packer {
    compressor: zstd::bulk::Compressor<'static>,
}

impl Packer {
    pub fn new() -> io::Result<Packer> {
        Ok(Packer { compressor: zstd::bulk::Compressor::new(LEVEL)? })
    }

    /// The bytes of a frame.
    pub fn pack(&mut self, kind: Kind, raw: &[u8]) -> io::Result<Vec<u8>> {
        assert!(raw.len() <= FRAME_BYTES_MAX, "a frame of {} bytes is longer than frames are", raw.len());
        let payload = self.compressor.compress(raw)?;
        let length = |bytes: usize| u32::try_from(bytes).map_err(|_| io::Error::other("a frame longer than 4 GiB"));
        let mut out = Vec::with_capacity(HEAD_BYTES + payload.len());
        out.extend_from_slice(&(kind as u32).to_le_bytes());
        out.extend_from_slice(&length(raw.len())?.to_le_bytes());
        out.extend_from_slice(&length(payload.len())?.to_le_bytes());
        out.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        out.extend_from_slice(&payload);
        Ok(out)
    }
}

/// What was found where a frame should be.
#[derive(Debug)]
pub(super) enum Found {
    Frame(Kind, Vec<u8>),
    /// The input ends here.
    Nothing,
    /// The input ends within a frame, or goes on in zeros: so many bytes.
    Torn(u64),
    Damaged(&'static str),
}

/// Reads one frame; says how many bytes it took.
pub(super) fn read(input: &mut impl Read) -> io::Result<(Found, u64)> {
    let head = take(input, HEAD_BYTES)?;
    let mut used = head.len() as u64;
    if head.is_empty() {
        return Ok((Found::Nothing, 0));
    }
    let word = |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let (Some(kind), Some(raw_len), Some(len), Some(of_payload), Some(of_head)) =
        (word(0), word(4), word(8), word(12), word(16))
    else {
        return Ok((Found::Torn(used), used));
    };
    if head.get(..HEAD_BYTES - 4).map(crc32c::crc32c) != Some(of_head) {
        // A machine that went down may leave zeros where data was to go.
        if head.iter().all(|&b| b == 0)
            && let Some(more) = zeros_to_the_end(input)?
        {
            used += more;
            return Ok((Found::Torn(used), used));
        }
        return Ok((Found::Damaged("the checksum of a frame's head does not match"), used));
    }
    let fits = |len: u32, max: usize| usize::try_from(len).ok().filter(|&len| len <= max);
    let (Some(raw_len), Some(len)) = (fits(raw_len, FRAME_BYTES_MAX), fits(len, PACKED_BYTES_MAX)) else {
        return Ok((Found::Damaged("a frame is longer than frames are"), used));
    };
    let payload = take(input, len)?;
    used += payload.len() as u64;
    if payload.len() < len {
        return Ok((Found::Torn(used), used));
    }
    if crc32c::crc32c(&payload) != of_payload {
        return Ok((Found::Damaged("the checksum of a frame does not match"), used));
    }
    let Some(kind) = Kind::from_number(kind) else {
        return Ok((Found::Damaged("a frame of a kind that this version does not have"), used));
    };
    // The output buffer is as long as the head says, and zstd refuses to write beyond it.
    match zstd::bulk::decompress(&payload, raw_len) {
        Ok(raw) if raw.len() == raw_len => Ok((Found::Frame(kind, raw), used)),
        Ok(_) => Ok((Found::Damaged("a frame unpacks to fewer bytes than it says"), used)),
        Err(_) => Ok((Found::Damaged("a frame does not unpack"), used)),
    }
}

/// Up to so many bytes; fewer only where the input ends. Memory follows what is there, not what was promised.
fn take(input: &mut impl Read, bytes: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.min(1 << 16));
    input.take(bytes as u64).read_to_end(&mut out)?;
    Ok(out)
}

/// How many zeros the rest is, if it is nothing else.
fn zeros_to_the_end(input: &mut impl Read) -> io::Result<Option<u64>> {
    let mut buffer = [0; 8192];
    let mut count = 0;
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(Some(count)),
            Ok(n) if buffer.iter().take(n).any(|&b| b != 0) => return Ok(None),
            Ok(n) => count += n as u64,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
