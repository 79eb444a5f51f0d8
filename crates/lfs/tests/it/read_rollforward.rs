//! Logs written by hand behind a checkpoint: files made, grown, removed, over several segments, with numbers that the
//! inode map has no entry for yet. After roll-forward every count is what a full scan finds.

use lfs::format::{
    DIR_FORMAT, DIRBLKSIZ, DataSum, Dinode, Disk as _, ENDIAN, Finfo, FragAddr, Geometry, Ino, PF_CLEAN, ROOT_INO,
    SegNo, SegmentSummary, SummaryHeader, Superblock, fresh_chunk, insert, summary_flags,
};
use lfs::fsck::fsck;
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::{Checkpoint, Image, MemoryStore};

/// A log that is appended to as a segment writer does it.
struct Log {
    store: MemoryStore,
    sb: Superblock,
    g: Geometry,
    segment: SegNo,
    offset: FragAddr,
    serial: u64,
}

/// A block of a file: whose, its number, its bytes.
type Block<'a> = (Ino, i32, &'a [u8]);

impl Log {
    fn new() -> Log {
        let mut store = MemoryStore(vec![0; 4 << 20]);
        let options = MkfsOptions { bsize: 4096, fsize: 1024, ssize: Some(64 << 10), ..MkfsOptions::new(4 << 20) };
        mkfs(&mut store, &options).unwrap();
        let mut sb = Superblock::decode(&store.0[8192..], 8192).unwrap();
        let g = sb.geometry(8192).unwrap();
        sb.pflags &= !PF_CLEAN;
        for addr in sb.sboffs.into_iter().take(2) {
            let at = g.byte_of(FragAddr(addr)) as usize;
            store.0[at..at + 512].copy_from_slice(&sb.encode());
        }
        let segment = g.segment_of(FragAddr(sb.curseg)).unwrap();
        let (offset, serial) = (FragAddr(sb.offset), sb.serial);
        Log { store, sb, g, segment, offset, serial }
    }

    fn put(&mut self, addr: FragAddr, bytes: &[u8]) {
        let at = self.g.byte_of(addr) as usize;
        self.store.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Appends a partial segment with these blocks, each whole fragments, and then these inodes, which `place` gives
    /// the addresses of the blocks to.
    fn append(
        &mut self,
        flags: u16,
        blocks: &[Block<'_>],
        inodes: &mut [Dinode],
        place: &mut dyn FnMut(&mut [Dinode], usize, FragAddr),
    ) {
        let g = self.g;
        let frags: u32 = blocks.iter().map(|(_, _, bytes)| g.frags_of(bytes.len() as u64)).sum();
        let needed = g.sum_frags() + frags + if inodes.is_empty() { 0 } else { g.ib_frags() };
        if !g.partial_fits(self.offset) {
            self.segment = SegNo(self.segment.0 + 1);
            let superblock = self.sb.sboffs.iter().any(|addr| g.segment_of(FragAddr(*addr)) == Some(self.segment));
            self.offset = g.log_start(self.segment, superblock);
        }
        assert!(self.offset.0 + needed < g.segment_end(self.segment).0, "more than fits wherever there is room");
        self.serial += 1;
        let next = g.segment_base(SegNo(self.segment.0 + 1)).0;
        let header = SummaryHeader {
            next,
            ident: g.ident,
            serial: self.serial,
            flags,
            ninos: inodes.len() as u16,
            ..SummaryHeader::default()
        };
        let mut summary = SegmentSummary::new(header);
        let mut sum = DataSum::default();
        let mut at = self.offset.plus(g.sum_frags());
        for (i, (ino, lbn, bytes)) in blocks.iter().enumerate() {
            place(inodes, i, at);
            sum.add(bytes);
            self.put(at, bytes);
            at = at.plus(g.frags_of(bytes.len() as u64));
            let lastlength = bytes.len() as u32;
            match summary.finfos.last_mut() {
                Some(finfo) if finfo.ino == *ino => {
                    finfo.lbns.push(*lbn);
                    finfo.lastlength = lastlength;
                }
                _ => summary.finfos.push(Finfo { version: 1, ino: *ino, lastlength, lbns: vec![*lbn] }),
            }
        }
        if !inodes.is_empty() {
            let mut block = vec![0; g.ibsize as usize];
            for (place, inode) in block.chunks_exact_mut(128).zip(inodes.iter()) {
                inode.encode(place);
            }
            sum.add(&block);
            self.put(at, &block);
            summary.inode_blocks.push(at);
            at = at.plus(g.ib_frags());
        }
        summary.header.datasum = sum.get();
        let bytes = summary.encode(&g).unwrap();
        self.put(self.offset, &bytes);
        self.offset = at;
    }

    /// The image, rolled forward; what a check of it says must be clean.
    fn rolled(&mut self) -> (Image<&mut MemoryStore>, lfs::RolledForward) {
        let report = fsck(&mut self.store, &mut |_| true).unwrap();
        assert!(report.is_clean(), "{:#?}", report.problems);
        let contents = report.contents;
        let mut image = Image::open(&mut self.store, Checkpoint::Newer).unwrap();
        let done = image.roll_forward().unwrap();
        let sb = image.superblock();
        assert_eq!((contents.free_frags, contents.available_frags), (sb.bfree.into(), sb.avail.into()));
        (image, done)
    }
}

fn root(names: &[(Ino, &[u8])]) -> Vec<u8> {
    let mut chunk = fresh_chunk(DIR_FORMAT);
    insert(&mut chunk, DIR_FORMAT, ROOT_INO, 4, b".");
    insert(&mut chunk, DIR_FORMAT, ROOT_INO, 4, b"..");
    for (ino, name) in names {
        assert!(insert(&mut chunk, DIR_FORMAT, *ino, 8, name));
    }
    chunk.resize(1024, 0);
    chunk
}

fn root_inode() -> Dinode {
    Dinode {
        mode: 0o040_755,
        nlink: 2,
        inumber: 2,
        size: DIRBLKSIZ as u64,
        blocks: 1,
        generation: 1,
        ..Dinode::default()
    }
}

fn file_inode(ino: Ino, size: u64, blocks: u32) -> Dinode {
    Dinode { mode: 0o100_644, nlink: 1, inumber: ino.0, size, blocks, generation: 1, ..Dinode::default() }
}

/// Gives the root's only block to the first inode, and the others in order to the second.
fn root_then_file(inodes: &mut [Dinode], i: usize, addr: FragAddr) {
    match i.checked_sub(1) {
        None => inodes[0].db[0] = addr.0.into(),
        Some(lbn) => inodes[1].db[lbn] = addr.0.into(),
    }
}

#[test]
fn a_file_is_made_and_removed() {
    let mut log = Log::new();
    let ino = Ino(3);
    let data = [vec![b'a'; 4096], vec![b'b'; 2048]];
    let mut inodes = [root_inode(), file_inode(ino, 4096 + 1500, 6)];
    let named = root(&[(ino, b"file")]);
    let blocks = [(ROOT_INO, 0, named.as_slice()), (ino, 0, &data[0]), (ino, 1, &data[1])];
    log.append(summary_flags::DIROP, &blocks, &mut inodes, &mut root_then_file);
    let (image, done) = log.rolled();
    assert_eq!((done.inodes, done.freed.len()), (vec![ROOT_INO, ino], 0));
    assert_eq!(image.resolve(b"/file").unwrap().1.size, 5596);
    assert_eq!((image.ifile().info.free_head, image.superblock().nfiles), (4, 3));

    // Its last name goes: the log has the inode without links.
    let mut gone = [root_inode(), Dinode { nlink: 0, ..file_inode(ino, 0, 0) }];
    log.append(summary_flags::DIROP, &[(ROOT_INO, 0, &root(&[]))], &mut gone, &mut root_then_file);
    let (image, done) = log.rolled();
    assert_eq!((done.inodes, done.freed), (vec![ROOT_INO], vec![ino]));
    assert!(image.resolve(b"/file").is_err());
    assert_eq!(image.ifile().entry(ino).unwrap().version, 2);
    assert!(image.ifile().free_list().any(|free| free == ino));
    // A block of its first life comes too late.
    log.append(0, &[(ino, 0, &data[0])], &mut [file_inode(ino, 4096, 4)], &mut |inodes, _, addr| {
        inodes[0].db[0] = addr.0.into();
        inodes[0].generation = 0;
    });
    let (image, done) = log.rolled();
    assert_eq!((done.freed, image.ifile().daddr(ino)), (vec![ino], None));
}

#[test]
fn a_log_over_several_segments_with_indirect_blocks() {
    let mut log = Log::new();
    let ino = Ino(3);
    let mut inodes = [root_inode(), file_inode(ino, 0, 0)];
    log.append(summary_flags::DIROP, &[(ROOT_INO, 0, &root(&[(ino, b"file")]))], &mut inodes, &mut root_then_file);
    let mut inode = inodes[1].clone();
    let mut pointers = vec![0; 4096];
    for lbn in 0..40_i32 {
        let data = vec![lbn as u8; 4096];
        inode.size = (lbn as u64 + 1) * 4096;
        inode.blocks += 4 * if lbn == 12 { 2 } else { 1 };
        // A block at a time: that much fits wherever a partial segment may begin.
        let mut at = FragAddr(0);
        log.append(0, &[(ino, lbn, &data)], &mut [], &mut |_, _, addr| at = addr);
        if let Ok(i) = usize::try_from(lbn - 12) {
            at.0.put(ENDIAN, &mut pointers, 4 * i);
            log.append(0, &[(ino, -12, &pointers)], &mut [], &mut |_, _, addr| inode.ib[0] = addr.0.into());
        } else {
            inode.db[lbn as usize] = at.0.into();
        }
        log.append(0, &[], std::slice::from_mut(&mut inode), &mut |_, _, _| ());
    }
    // Data without an inode behind it was not completed.
    log.append(0, &[(ino, 0, &[b'x'; 4096])], &mut [], &mut |_, _, _| ());
    let segment = log.segment;
    let (image, done) = log.rolled();
    assert!(segment.0 > 4 && done.segments.len() as u32 > 4, "{:?}", done.segments);
    assert_eq!(done.partial_segments, 1 + 12 * 2 + 28 * 3 + 1);
    let mut next = 0;
    image
        .data(ino, &image.inode(ino).unwrap(), &mut |at, bytes| {
            assert_eq!(at, next);
            next += bytes.len() as u64;
            assert!(bytes.chunks(4096).zip(at / 4096..).all(|(block, lbn)| block.iter().all(|b| u64::from(*b) == lbn)));
            Ok(())
        })
        .unwrap();
    assert_eq!(next, 40 * 4096);
}

#[test]
fn an_inode_that_the_map_has_no_entry_for() {
    let mut log = Log::new();
    let ino = Ino(500);
    let mut inodes = [root_inode(), file_inode(ino, 0, 0)];
    log.append(summary_flags::DIROP, &[(ROOT_INO, 0, &root(&[(ino, b"late")]))], &mut inodes, &mut root_then_file);
    let ifpb = log.g.ifpb as usize;
    let (image, _) = log.rolled();
    assert_eq!(image.resolve(b"/late").unwrap().0, ino);
    assert_eq!((image.ifile().map.len(), image.ifile().free_list().count()), (3 * ifpb, 3 * ifpb - 4));
}

#[test]
fn a_partial_segment_that_was_written_in_part_ends_the_log() {
    let ino = Ino(3);
    let file = |log: &mut Log, inode: Dinode| {
        let mut inodes = [root_inode(), inode];
        let named = root(&[(ino, b"file")]);
        log.append(summary_flags::DIROP, &[(ROOT_INO, 0, &named)], &mut inodes, &mut root_then_file);
    };
    let sound = || file_inode(ino, 0, 0);
    let out = 1 << 30;
    let mut pointing_out = Dinode { size: 9000, ..sound() };
    pointing_out.db[1] = out;
    let mut indirect_out = Dinode { size: 1 << 20, ..sound() };
    indirect_out.ib[0] = out;
    // No map on this disk has this number; no mode is 0170644.
    let damaged = [file_inode(Ino(u32::MAX), 0, 0), Dinode { mode: 0o170_644, ..sound() }, pointing_out, indirect_out];
    for inode in damaged {
        let mut log = Log::new();
        file(&mut log, inode);
        let mut image = Image::open(&mut log.store, Checkpoint::Newer).unwrap();
        let before = image.ifile().clone();
        let done = image.roll_forward().unwrap();
        assert!(done.ended_by.contains("is damaged"), "{}", done.ended_by);
        assert!(*image.ifile() == before);
        assert!(fsck(&mut log.store, &mut |_| true).unwrap().is_clean());
    }
    for (what, lost) in [("the inodes' second sector", 512..1024), ("a directory's rest", 20..512)] {
        let mut log = Log::new();
        let mut five = [root_inode(), sound(), sound(), sound(), sound()];
        let named = root(&[(ino, b"file")]);
        let mut block = FragAddr(0);
        log.append(0, &[(ROOT_INO, 0, &named)], &mut five, &mut |inodes, _, addr| {
            inodes[0].db[0] = addr.0.into();
            block = addr;
        });
        let start = log.g.byte_of(if lost.start == 512 { block.plus(1) } else { block }) as usize;
        log.store.0[start + lost.start..start + lost.end].fill(0);
        let mut image = Image::open(&mut log.store, Checkpoint::Newer).unwrap();
        let done = image.roll_forward().unwrap();
        assert!(done.partial_segments == 0 && done.ended_by.contains("is damaged"), "{what}: {}", done.ended_by);
    }
}

#[test]
fn directory_operations_count_together_or_not_at_all() {
    let mut log = Log::new();
    let ino = Ino(3);
    let more = summary_flags::DIROP | summary_flags::CONT;
    log.append(more, &[], &mut [file_inode(ino, 0, 0)], &mut |_, _, _| ());
    let (image, done) = log.rolled();
    assert_eq!((done.partial_segments, done.dropped, image.ifile().daddr(ino)), (0, 1, None));
    let mut inodes = [root_inode()];
    log.append(summary_flags::DIROP, &[(ROOT_INO, 0, &root(&[(ino, b"file")]))], &mut inodes, &mut root_then_file);
    let (image, done) = log.rolled();
    assert_eq!((done.partial_segments, done.dropped), (2, 0));
    assert_eq!(image.resolve(b"/file").unwrap().0, ino);
}
