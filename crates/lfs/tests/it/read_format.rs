//! Every structure of the images that NetBSD wrote is read, and what is read encodes to the same bytes.

use crate::common;
use lfs::format::{
    CleanerInfo, DataSum, Dinode, ENDIAN, FragAddr, Geometry, InodeMapEntry, Piece, SegNo, SegmentSummary,
    SegmentUsage, Superblock, segment_flags,
};

fn at(image: &[u8], byte: u64, len: usize) -> &[u8] {
    &image[byte as usize..byte as usize + len]
}

fn superblocks(image: &[u8]) -> Vec<Superblock> {
    let first = Superblock::decode(at(image, 8192, 512), 8192).unwrap();
    let places = first.sboffs.into_iter().filter(|addr| *addr != 0);
    places
        .map(|addr| Superblock::decode(at(image, u64::from(addr) << 10, 512), u64::from(addr) << 10).unwrap())
        .collect()
}

/// Summaries of a segment from its beginning, with their addresses.
fn summaries(image: &[u8], g: &Geometry, segment: SegNo, has_superblock: bool) -> Vec<(FragAddr, SegmentSummary)> {
    let mut found = Vec::new();
    let mut addr = g.log_start(segment, has_superblock);
    while g.within_segment(addr, 1) {
        let bytes = at(image, g.byte_of(addr), g.sumsize as usize);
        let Ok(summary) = SegmentSummary::decode(bytes, g, g.byte_of(addr)) else { break };
        assert_eq!(summary.encode(g).unwrap(), bytes);
        let (_, end) = summary.pieces(g, addr).unwrap();
        found.push((addr, summary));
        addr = end;
    }
    found
}

#[test]
fn what_is_decoded_encodes_to_the_same_bytes() {
    for name in ["clean", "crashed"] {
        let image = common::netbsd(name);
        let sbs = superblocks(&image);
        assert_eq!(sbs.len(), 10);
        for sb in &sbs {
            let addr =
                sb.sboffs.iter().map(|addr| u64::from(*addr) << 10).find(|byte| at(&image, *byte, 512) == sb.encode());
            assert!(addr.is_some(), "a superblock that encodes to what is nowhere");
        }
        let g = sbs[0].geometry(8192).unwrap();
        let mut seen = (0, 0, 0);
        for segment in (0..g.nseg).map(SegNo) {
            for (addr, summary) in summaries(&image, &g, segment, segment.0 % 6 == 0 && segment.0 < 60) {
                let mut datasum = DataSum::default();
                let (pieces, _) = summary.pieces(&g, addr).unwrap();
                for piece in pieces {
                    let bytes = match piece {
                        Piece::Inodes { addr } => {
                            let block = at(&image, g.byte_of(addr), g.ibsize as usize);
                            for raw in block.chunks_exact(128) {
                                let mut again = [0xEE; 128];
                                Dinode::decode(raw).encode(&mut again);
                                assert_eq!(raw, again);
                                seen.1 += usize::from(Dinode::decode(raw).inumber != 0);
                            }
                            block
                        }
                        Piece::Block { addr, ino, lbn, bytes, .. } => {
                            let block = at(&image, g.byte_of(addr), bytes as usize);
                            if ino.0 == 1 {
                                ifile_block(&g, lbn, block);
                                seen.2 += 1;
                            }
                            block
                        }
                    };
                    datasum.add(bytes);
                }
                assert_eq!(datasum.get(), summary.header.datasum, "the partial segment at {addr}");
                seen.0 += 1;
            }
        }
        let expected = if name == "clean" { (7, 15, 9) } else { (8, 21, 6) };
        assert_eq!(seen, expected, "partial segments, inodes, blocks of the ifile of {name}");
    }
}

fn ifile_block(g: &Geometry, lbn: i32, block: &[u8]) {
    let mut again = vec![0; block.len()];
    if lbn == 0 {
        CleanerInfo::get(ENDIAN, block).put(ENDIAN, &mut again);
    } else if lbn == 1 {
        for at in (0..g.sepb as usize).map(|i| i * SegmentUsage::BYTES) {
            SegmentUsage::get(ENDIAN, &block[at..]).put(ENDIAN, &mut again[at..]);
        }
    } else {
        for at in (0..g.ifpb as usize).map(|i| i * InodeMapEntry::BYTES) {
            InodeMapEntry::get(ENDIAN, &block[at..]).put(ENDIAN, &mut again[at..]);
        }
    }
    assert_eq!(again, block);
}

#[test]
fn the_usage_table_and_map_say_what_was_written() {
    let image = common::netbsd("clean");
    let sb = superblocks(&image).remove(0);
    let g = sb.geometry(8192).unwrap();
    let inode_block = at(&image, g.byte_of(FragAddr(sb.idaddr)), g.ibsize as usize);
    let ifile = lfs::format::find_inode(inode_block, lfs::format::IFILE_INO).unwrap();
    let block = |lbn: u64| at(&image, g.byte_of(FragAddr(ifile.db[lbn as usize] as u32)), g.bsize as usize);
    let info = CleanerInfo::get(ENDIAN, block(0));
    assert_eq!((info.clean, info.dirty, info.free_head, info.free_tail), (sb.nclean, 2, sb.freehd, 408));
    let usage = |n| {
        let (lbn, at) = g.usage_place(SegNo(n));
        SegmentUsage::get(ENDIAN, &block(lbn)[at..])
    };
    // Root directory, a file of 69 fragments, a directory; then the ifile and four inodes.
    assert_eq!((usage(0).nbytes, usage(0).nsums, usage(0).flags), ((1 + 69 + 1) << 10, 4, 6));
    assert_eq!((usage(1).nbytes, usage(1).nsums, usage(1).flags), ((24 << 10) + 4 * 128, 3, 3));
    assert_eq!(usage(63).flags, segment_flags::EMPTY);
    assert_eq!(usage(54).flags, segment_flags::EMPTY | segment_flags::SUPERBLOCK);
    let (lbn, at) = g.map_place(lfs::format::Ino(3));
    assert_eq!(InodeMapEntry::get(ENDIAN, &block(lbn)[at..]).daddr, 129);
    let frags: u32 = (0..64).map(|n| u32::from(usage(n).nsums) + u32::from(usage(n).ninos)).sum();
    assert_eq!(frags, sb.dmeta as u32, "dmeta is summaries and inode blocks");
}
