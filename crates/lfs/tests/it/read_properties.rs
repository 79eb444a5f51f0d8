//! Whatever fits is written and read back the same; whatever is read is written back the same.

use lfs::format::{
    Dinode, ENDIAN, Finfo, FragAddr, Geometry, Ino, Piece, SegNo, SegmentSummary, SegmentUsage, SummaryHeader,
    Superblock, find_inode,
};
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::{MemoryStore, recover};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

fn geometry(options: &MkfsOptions) -> (Superblock, Geometry) {
    let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
    mkfs(&mut store, options).unwrap();
    let sb = Superblock::decode(&store.0[8192..], 8192).unwrap();
    let g = sb.geometry(8192).unwrap();
    (sb, g)
}

fn geometries() -> Vec<Geometry> {
    [
        MkfsOptions::new(8 << 20),
        MkfsOptions { bsize: 4096, fsize: 512, ..MkfsOptions::new(4 << 20) },
        MkfsOptions { bsize: 16384, fsize: 2048, ibsize: Some(4096), ..MkfsOptions::new(64 << 20) },
        MkfsOptions { bsize: 8192, fsize: 8192, ssize: Some(200 << 10), ..MkfsOptions::new(32 << 20) },
    ]
    .iter()
    .map(|options| geometry(options).1)
    .collect()
}

#[test]
fn any_inode_encodes_to_the_bytes_it_was_read_from() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for _ in 0..2000 {
        let mut raw = [0; 128];
        random.fill_bytes(&mut raw);
        let inode = Dinode::decode(&raw);
        let mut again = [0; 128];
        inode.encode(&mut again);
        assert_eq!(raw, again);
        let area: Vec<u8> = inode.pointer_area().to_vec();
        let mut other = Dinode::default();
        other.set_pointer_area(&area);
        assert_eq!((other.db, other.ib), (inode.db, inode.ib));
        let mut block = [raw, [0; 128], raw].concat();
        block[256 + 2] ^= 1;
        assert_eq!(find_inode(&block, inode.ino()).unwrap().nlink, inode.nlink ^ 1, "the last one counts");
        let usage = SegmentUsage::get(ENDIAN, &raw);
        let mut again = raw;
        usage.put(ENDIAN, &mut again);
        assert_eq!(raw, again);
    }
}

#[test]
fn any_superblock_encodes_to_the_bytes_it_was_read_from() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let (sb, _) = geometry(&MkfsOptions::new(8 << 20));
    for _ in 0..500 {
        let mut raw = sb.encode();
        random.fill_bytes(&mut raw[8..508]);
        let sum = lfs::format::cksum(&raw[..508]);
        raw[508..].copy_from_slice(&sum.to_le_bytes());
        let read = Superblock::decode(&raw, 8192).unwrap();
        assert_eq!(read.encode(), raw);
        let _ = read.geometry(8192);
        raw[100] ^= 0x10;
        assert!(Superblock::decode(&raw, 8192).is_err());
    }
}

#[test]
fn a_summary_is_read_back_and_its_blocks_lie_one_behind_the_other() {
    for g in geometries() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        for case in 0..300 {
            let (summary, addr, end) = summary(&mut random, &g);
            let bytes = summary.encode(&g).unwrap();
            assert_eq!(bytes.len(), g.sumsize as usize);
            let read = SegmentSummary::decode(&bytes, &g, 0).unwrap();
            assert_eq!((&read.finfos, &read.inode_blocks), (&summary.finfos, &summary.inode_blocks), "case {case}");
            assert_eq!(read.encode(&g).unwrap(), bytes);
            let (pieces, read_end) = read.pieces(&g, addr).unwrap();
            assert_eq!(read_end, end);
            let mut next = addr.plus(g.sum_frags());
            for piece in &pieces {
                assert_eq!(piece.addr(), next);
                next = next.plus(match piece {
                    Piece::Inodes { .. } => g.ib_frags(),
                    Piece::Block { bytes, .. } => bytes >> g.fshift,
                });
            }
            assert_eq!(next, end);
            let blocks = summary.finfos.iter().map(|f| f.lbns.len()).sum::<usize>() + summary.inode_blocks.len();
            assert_eq!(pieces.len(), blocks);
            let mut damaged = bytes.clone();
            let at = 4 + random.next_u32() as usize % (bytes.len() - 4);
            damaged[at] ^= 1 << (random.next_u32() % 8);
            assert!(SegmentSummary::decode(&damaged, &g, 0).is_err(), "one changed bit at {at}");
        }
    }
}

/// A random summary of what fits a segment, with where it is and ends.
fn summary(random: &mut Xoshiro256PlusPlus, g: &Geometry) -> (SegmentSummary, FragAddr, FragAddr) {
    let addr = g.log_start(SegNo(3), false).plus(random.next_u32() % 8);
    let mut next = addr.plus(g.sum_frags());
    let serial = u64::from(random.next_u32());
    let mut summary = SegmentSummary::new(SummaryHeader { ident: g.ident, serial, ..SummaryHeader::default() });
    for _ in 0..random.next_u32() % 6 {
        if random.next_u32().is_multiple_of(3) && g.within_segment(addr, next.0 - addr.0 + g.ib_frags() + g.frag) {
            summary.inode_blocks.push(next);
            summary.header.ninos += g.inopb as u16;
            next = next.plus(g.ib_frags());
        }
        let last = 1 + random.next_u32() % g.frag;
        let mut finfo = Finfo {
            version: random.next_u32(),
            ino: Ino(random.next_u32()),
            lastlength: last * g.fsize,
            lbns: Vec::new(),
        };
        let wanted = 1 + random.next_u32() % 5;
        let room = (wanted - 1) * g.frag + last;
        if !g.within_segment(addr, next.0 - addr.0 + room)
            || summary.bytes() + 16 + 4 * wanted as usize > g.sumsize as usize
        {
            break;
        }
        finfo.lbns = (0..wanted).map(|_| random.next_u32() as i32).collect();
        next = next.plus(room);
        summary.finfos.push(finfo);
    }
    (summary, addr, next)
}

#[test]
fn every_fragment_is_in_one_segment() {
    for g in geometries() {
        for addr in (0..g.size_frags).step_by(7).map(FragAddr) {
            let Some(segment) = g.segment_of(addr) else {
                assert!(addr >= g.segment_end(SegNo(g.nseg - 1)));
                continue;
            };
            assert!(g.segment_base(segment) <= addr && addr < g.segment_end(segment));
            assert_eq!(g.within_segment(addr, g.fsbpseg), addr == g.segment_base(segment));
            if g.partial_fits(addr) {
                assert!(g.within_segment(addr, g.sum_frags() + g.frag));
            }
        }
        assert_eq!(g.segment_of(FragAddr(u32::MAX)), None);
        assert!(recover::partial_at(&MemoryStore(Vec::new()), &g, FragAddr(u32::MAX)).is_err());
    }
}

#[test]
fn blocks_have_the_bytes_their_file_needs() {
    for g in geometries() {
        let (bsize, fsize) = (u64::from(g.bsize), u64::from(g.fsize));
        for size in [0, 1, fsize, fsize + 1, bsize - 1, bsize, bsize + 1, 11 * bsize + 1, 12 * bsize, 12 * bsize + 1] {
            let on_disk: u64 = (0..size.div_ceil(bsize)).map(|lbn| u64::from(g.block_bytes(size, lbn))).sum();
            let whole = if size > 12 * bsize { bsize } else { fsize };
            assert_eq!(on_disk, size.next_multiple_of(whole), "{size}");
        }
    }
}
