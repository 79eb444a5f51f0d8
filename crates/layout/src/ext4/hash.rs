//! The name hashes of ext4's directories (fs/ext4/hash.c): `readdir` gives names in their order.

/// Which hash a directory uses; the two signs exist because `char` once differed between machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameHash {
    kind: Kind,
    unsigned: bool,
    seed: [u32; 4],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Legacy,
    HalfMd4,
    Tea,
}

const MD4_START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
/// `EXT4_HTREE_EOF_32BIT`, reserved for the end of the directory.
const END: u32 = 0x7fff_ffff;

impl NameHash {
    /// By the number on disk (0 to 5) and the superblock's sign; `None` for SipHash and unknown ones.
    pub(super) fn new(version: u8, unsigned: bool, seed: [u32; 4]) -> Option<NameHash> {
        let kind = match version % 3 {
            _ if version > 5 => return None,
            0 => Kind::Legacy,
            1 => Kind::HalfMd4,
            _ => Kind::Tea,
        };
        let seed = if seed == [0; 4] { MD4_START } else { seed };
        Some(NameHash { kind, unsigned: unsigned || version >= 3, seed })
    }

    /// Major and minor hash of a name: the order of names.
    pub(super) fn of(self, name: &[u8]) -> (u32, u32) {
        let mut state = self.seed;
        let (major, minor) = match self.kind {
            Kind::Legacy => (self.legacy(name), 0),
            Kind::HalfMd4 => {
                for rest in pieces(name, 32) {
                    half_md4(&mut state, &self.words::<8>(rest));
                }
                (state[1], state[2])
            }
            Kind::Tea => {
                for rest in pieces(name, 16) {
                    tea(&mut state, &self.words::<4>(rest));
                }
                (state[0], state[1])
            }
        };
        let major = major & !1;
        (if major == END << 1 { (END - 1) << 1 } else { major }, minor)
    }

    fn byte(self, byte: u8) -> u32 {
        if self.unsigned { u32::from(byte) } else { i32::from(byte.cast_signed()).cast_unsigned() }
    }

    fn legacy(self, name: &[u8]) -> u32 {
        let (mut hash0, mut hash1) = (0x12a3_fe2du32, 0x37ab_e8f9u32);
        for byte in name {
            let mut hash = hash1.wrapping_add(hash0 ^ self.byte(*byte).wrapping_mul(7_152_373));
            if hash & 0x8000_0000 != 0 {
                hash = hash.wrapping_sub(0x7fff_ffff);
            }
            (hash1, hash0) = (hash0, hash);
        }
        hash0 << 1
    }

    /// `str2hashbuf`: what is left of the name as words, padded with its length.
    fn words<const N: usize>(self, rest: &[u8]) -> [u32; N] {
        // Names are at most 255 bytes long.
        let len = rest.len() as u32;
        let pad = len | len << 8;
        let pad = pad | pad << 16;
        let mut words = [pad; N];
        for (word, bytes) in words.iter_mut().zip(rest.chunks(4)) {
            *word = bytes.iter().fold(pad, |value, byte| self.byte(*byte).wrapping_add(value << 8));
        }
        words
    }
}

/// What is left of the name before each step of so many bytes.
fn pieces(name: &[u8], step: usize) -> impl Iterator<Item = &[u8]> {
    (0..name.len()).step_by(step).filter_map(move |at| name.get(at..))
}

fn tea(state: &mut [u32; 4], words: &[u32; 4]) {
    let [a, b, c, d] = *words;
    let (mut x, mut y, mut sum) = (state[0], state[1], 0u32);
    for _ in 0..16 {
        sum = sum.wrapping_add(0x9E37_79B9);
        x = x.wrapping_add((y << 4).wrapping_add(a) ^ y.wrapping_add(sum) ^ (y >> 5).wrapping_add(b));
        y = y.wrapping_add((x << 4).wrapping_add(c) ^ x.wrapping_add(sum) ^ (x >> 5).wrapping_add(d));
    }
    state[0] = state[0].wrapping_add(x);
    state[1] = state[1].wrapping_add(y);
}

/// One round of eight steps: the words' order, the rotations, and the constant.
type Round = ([usize; 8], [u32; 4], u32, fn(u32, u32, u32) -> u32);

const ROUNDS: [Round; 3] = [
    ([0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19], 0, |x, y, z| z ^ (x & (y ^ z))),
    ([1, 3, 5, 7, 0, 2, 4, 6], [3, 5, 9, 13], 0x5A82_7999, |x, y, z| (x & y).wrapping_add((x ^ y) & z)),
    ([3, 7, 2, 6, 1, 5, 0, 4], [3, 9, 11, 15], 0x6ED9_EBA1, |x, y, z| x ^ y ^ z),
];

fn half_md4(state: &mut [u32; 4], words: &[u32; 8]) {
    let [mut a, mut b, mut c, mut d] = *state;
    for (order, rotations, constant, mix) in &ROUNDS {
        for (step, word) in order.iter().enumerate() {
            let word = words.get(*word).copied().unwrap_or(0);
            let rotation = rotations.get(step % 4).copied().unwrap_or(0);
            let mixed = a.wrapping_add(mix(b, c, d)).wrapping_add(word).wrapping_add(*constant);
            // The roles of the four go round after every step.
            (a, b, c, d) = (d, mixed.rotate_left(rotation), b, c);
        }
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `debugfs -R "dx_hash -h VERSION NAME"` of e2fsprogs 1.47.0, without a seed.
    #[test]
    fn as_debugfs_has_it() {
        let long = "a_rather_long_name_that_spans_more_than_one_step_of_the_hash.txt";
        for (version, name, hash) in [
            (0, "hello_world", (0xf42d_112e, 0)),
            (0, long, (0x28fb_74ae, 0)),
            (1, "hello_world", (0x657d_fe96, 0x6403_76d8)),
            (1, long, (0xda4d_ede0, 0x8276_51f1)),
            (2, "hello_world", (0x6cf0_d90e, 0x5fc3_632a)),
            (2, long, (0xc203_88aa, 0x71d5_61d5)),
        ] {
            let hasher = NameHash::new(version, false, [0; 4]).unwrap();
            assert_eq!(hasher.of(name.as_bytes()), hash, "version {version} of {name}");
        }
    }

    #[test]
    fn the_sign_matters_for_bytes_above_127_only() {
        let hash = |unsigned, name: &[u8]| NameHash::new(1, unsigned, [1, 2, 3, 4]).unwrap().of(name);
        assert_eq!(hash(true, b"plain"), hash(false, b"plain"));
        assert_ne!(hash(true, b"\xc3\xa9"), hash(false, b"\xc3\xa9"));
        assert_eq!(NameHash::new(6, false, [0; 4]), None);
    }
}
