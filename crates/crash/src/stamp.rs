//! Data that say whose they are: every 32 bytes name the file, the call that wrote them and their place in the file.

use crate::Identity;

/// Bytes of a stamp. Files are stamped from their beginning on.
pub(crate) const STAMP_BYTES: usize = 32;

const MAGIC: u32 = 0x5354_414D;

/// A piece of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Whose it is.
    pub(crate) file: Identity,
    /// The call that wrote it.
    pub(crate) call: u32,
    /// Where in the file it belongs.
    pub(crate) at_byte: u64,
}

impl Stamp {
    fn words(self, alike: bool) -> [u32; 8] {
        let number = (self.at_byte / STAMP_BYTES as u64) as u32;
        let mut sum = 0x811C_9DC5_u32;
        for word in [self.file.0, self.file.1, self.call, number] {
            sum = (sum ^ word).wrapping_mul(0x0100_0193).rotate_left(13);
        }
        // A log's checksums look at the first four bytes of a block: alike, they see nothing.
        [if alike { 0 } else { sum }, MAGIC, self.file.0, self.file.1, self.call, number, sum, !sum]
    }

    /// Fills in bytes of a file from byte `at` on. `alike`: the first four bytes of all stamps are the same.
    pub(crate) fn fill(file: Identity, call: u32, at: u64, alike: bool, out: &mut [u8]) {
        let size = STAMP_BYTES as u64;
        let mut done = 0;
        while done < out.len() {
            let here = at + done as u64;
            let (at_byte, within) = (here / size * size, (here % size) as usize);
            let words = Stamp { file, call, at_byte }.words(alike);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let n = (STAMP_BYTES - within).min(out.len() - done);
            if let (Some(place), Some(bytes)) = (out.get_mut(done..done + n), bytes.get(within..within + n)) {
                place.copy_from_slice(bytes);
            }
            done += n;
        }
    }

    /// The stamp that bytes are, if they are a whole one.
    pub(crate) fn read(bytes: &[u8]) -> Option<Stamp> {
        let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let [_, MAGIC, ino, generation, call, number, _, _] = *words.as_slice() else { return None };
        let stamp = Stamp { file: (ino, generation), call, at_byte: u64::from(number) * STAMP_BYTES as u64 };
        let expected = stamp.words(true);
        (words.get(6..) == expected.get(6..)).then_some(stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stamped_can_be_read_from_any_whole_piece() {
        let mut bytes = vec![0; 200];
        Stamp::fill((7, 9), 3, 1000, false, &mut bytes);
        // Byte 1024 is the next beginning of a stamp.
        let stamp = Stamp::read(&bytes[24..56]);
        assert_eq!(stamp, Some(Stamp { file: (7, 9), call: 3, at_byte: 1024 }));
        assert_eq!(Stamp::read(&bytes[25..57]), None);
        assert_eq!(Stamp::read(&[0; 32]), None);
    }
}
