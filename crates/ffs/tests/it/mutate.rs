//! Seeded damage anywhere in the metadata of an image.

use ffs::{FragAddr, GroupNo, Image, Ino, MemoryStore, Search};
use rand_core::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;

/// Where an image's metadata is.
pub fn metadata(store: &MemoryStore) -> Vec<Range<usize>> {
    let image = Image::open(store.clone(), Search::Standard).unwrap();
    let g = *image.geometry();
    let at = |addr: FragAddr| g.byte_of(addr) as usize;
    let sb = image.superblock_at() as usize;
    let mut places = vec![sb..sb + 1376, sb + 1000..sb + 1376];
    for c in (0..g.ncg).map(GroupNo) {
        let group = at(g.group_block(c));
        places.push(group..group + 168);
        places.push(group..group + g.cgsize as usize);
        let inodes = at(g.group_inodes(c));
        let table = g.ipg as usize * g.layout.version.inode_bytes() as usize;
        places.push(inodes..inodes + table.min(40 * 256));
        places.push(inodes..inodes + table);
    }
    for ino in (2..g.inodes()).map(Ino) {
        let inode = image.inode(ino).unwrap();
        if !inode.has_blocks(&g) {
            continue;
        }
        for pointer in inode.ib.iter().chain(inode.db.iter().filter(|_| inode.is_dir())).filter(|p| **p > 0) {
            let block = at(FragAddr(*pointer as u64));
            places.push(block..block + 512.min(g.bsize as usize));
        }
    }
    places
}

/// A few changes of any kind, anywhere in those places.
pub fn damage(bytes: &mut [u8], places: &[Range<usize>], random: &mut Xoshiro256PlusPlus) {
    let below = |n: usize, random: &mut Xoshiro256PlusPlus| (random.next_u64() % n.max(1) as u64) as usize;
    for _ in 0..1 + below(6, random) {
        let place = &places[below(places.len(), random)];
        let at = place.start + below(place.len(), random);
        let end = bytes.len();
        match below(6, random) {
            0 => bytes[at] ^= 1 << below(8, random),
            1 => bytes[at] = random.next_u32() as u8,
            2 => {
                let at = at / 4 * 4;
                let values = [0, 1, 2, 0x7FFF_FFFF, u32::MAX, random.next_u32() % 4096, random.next_u32()];
                bytes[at..at + 4].copy_from_slice(&values[below(values.len(), random)].to_le_bytes());
            }
            3 => {
                let n = below(200, random).min(end - at);
                bytes[at..at + n].fill([0, 0xFF][below(2, random)]);
            }
            4 => {
                // Metadata of one place in another.
                let from = places[below(places.len(), random)].start;
                let n = 256.min(end - at.max(from));
                bytes.copy_within(from..from + n, at);
            }
            _ => {
                // A pointer, a size or a number of one structure in another.
                let from = places[below(places.len(), random)].clone();
                let from = (from.start + below(from.len(), random)) / 4 * 4;
                let n = 8.min(end - at.max(from));
                bytes.copy_within(from..from + n, at / 4 * 4);
            }
        }
    }
}

/// Seeds `0..usual`, or those of `FSAGE_FFS_SEEDS=FROM..TO`.
pub fn seeds(usual: u64) -> Range<u64> {
    let Ok(text) = std::env::var("FSAGE_FFS_SEEDS") else { return 0..usual };
    let (from, to) = text.split_once("..").unwrap();
    from.parse().unwrap()..to.parse().unwrap()
}
