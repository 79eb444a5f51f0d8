//! Which requests reads and writes become: clustering, read-ahead, write-back, memory that is short.

use crate::common::{MB, blocks_asked, call, create, free_machine, noting_lab, open, read, volume, write};
use device::fixed::FixedDevice;
use kernel::testing::{MemVolume, Metadata};
use kernel::{ReadAhead, Syncer};
use posix::{CacheState, Call, FileSystem, OpenFlags};

const BLOCK: u64 = 8192;

fn fixed() -> FixedDevice {
    FixedDevice::new(64 * MB, 1_000_000)
}

/// Where a file's data starts on the disk.
fn start_of(fs: &mut impl FileSystem, fd: posix::Fd) -> u64 {
    let extents = fs.extents(fd).unwrap();
    assert_eq!(extents.len(), 1, "{extents:?}");
    extents[0].physical_bytes
}

#[test]
fn sequential_writes_go_in_clusters_of_the_largest_transfer() {
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), free_machine(8 * MB));
    let fd = create(&mut lab, "f");
    blocks_asked(&asked, 0, BLOCK);
    write(&mut lab, fd, 0, 12 * BLOCK);
    let from = start_of(&mut lab, fd);
    // 64 KB are eight blocks; the rest waits for more, or for the syncer.
    assert_eq!(blocks_asked(&asked, from, BLOCK), [('w', 0, 8)]);
    call(&mut lab, Call::Fsync { fd }).unwrap();
    assert_eq!(blocks_asked(&asked, from, BLOCK).first(), Some(&('w', 8, 4)));
}

#[test]
fn seven_blocks_left_dirty_are_one_request_or_seven() {
    // 64 KB are eight blocks: seven do not fill a cluster, and wait for fsync.
    let asked_for = |volume: MemVolume, blocks: u64| {
        let (mut lab, asked) = noting_lab(volume, fixed(), free_machine(8 * MB));
        let fd = create(&mut lab, "f");
        blocks_asked(&asked, 0, BLOCK);
        write(&mut lab, fd, 0, blocks * BLOCK);
        let from = start_of(&mut lab, fd);
        call(&mut lab, Call::Fsync { fd }).unwrap();
        let of_file = |(what, at, n): &(char, i64, u64)| (*at >= 0).then_some((*what, *at, *n));
        blocks_asked(&asked, from, BLOCK).iter().filter_map(of_file).collect::<Vec<_>>()
    };
    let (gathered, blockwise) =
        (|| volume(64 * MB, Metadata::Delayed), || volume(64 * MB, Metadata::Delayed).blockwise());
    assert_eq!(asked_for(gathered(), 7), [('w', 0, 7)]);
    assert_eq!(asked_for(blockwise(), 7), [0, 1, 2, 3, 4, 5, 6].map(|at| ('w', at, 1)));
    // The eighth fills the cluster: one request either way. What comes behind it is alone again.
    assert_eq!(asked_for(blockwise(), 8), [('w', 0, 8)]);
    assert_eq!(asked_for(gathered(), 10), [('w', 0, 8), ('w', 8, 2)]);
    assert_eq!(asked_for(blockwise(), 10), [('w', 0, 8), ('w', 8, 1), ('w', 9, 1)]);
}

#[test]
fn without_clustering_each_block_is_written_alone_and_at_once() {
    let mut machine = free_machine(8 * MB);
    machine.io.cluster_writes = false;
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), machine);
    let fd = create(&mut lab, "f");
    blocks_asked(&asked, 0, BLOCK);
    write(&mut lab, fd, 0, 3 * BLOCK);
    let from = start_of(&mut lab, fd);
    assert_eq!(blocks_asked(&asked, from, BLOCK), [('w', 0, 1), ('w', 1, 1), ('w', 2, 1)]);
}

/// A cold file of so many blocks, open for reading, and where it starts.
fn cold_file(lab: &mut kernel::Lab<MemVolume>, blocks: u64, block_bytes: u64) -> (posix::Fd, u64) {
    let fd = create(lab, "f");
    write(lab, fd, 0, blocks * block_bytes);
    let from = start_of(lab, fd);
    call(lab, Call::Close { fd }).unwrap();
    assert_eq!(lab.drop_caches().unwrap(), CacheState::Cold);
    (open(lab, "f", OpenFlags::READ).unwrap(), from)
}

#[test]
fn sequential_reads_double_the_window_as_4_4bsd_does() {
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), free_machine(8 * MB));
    // Twelve blocks have direct pointers; all others are found through an indirect block, so the request for that
    // shows.
    let (fd, from) = cold_file(&mut lab, 12, BLOCK);
    blocks_asked(&asked, 0, BLOCK);
    let mut each = Vec::new();
    for lbn in 0..12 {
        read(&mut lab, fd, lbn * BLOCK, BLOCK);
        each.push(blocks_asked(&asked, from, BLOCK));
    }
    let expected: [&[(char, i64, u64)]; 8] =
        [&[('r', 0, 1)], &[('r', 1, 2)], &[('r', 3, 3)], &[], &[('r', 6, 5)], &[], &[], &[('r', 11, 1)]];
    assert_eq!(each[..8], expected);
    assert!(each[8..].iter().all(Vec::is_empty), "{each:?}");
}

#[test]
fn one_block_of_read_ahead_after_two_in_sequence() {
    let mut machine = free_machine(8 * MB);
    machine.io.read_ahead = ReadAhead::Block;
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), machine);
    let (fd, from) = cold_file(&mut lab, 6, BLOCK);
    blocks_asked(&asked, 0, BLOCK);
    for lbn in 0..4 {
        read(&mut lab, fd, lbn * BLOCK, BLOCK);
    }
    assert_eq!(blocks_asked(&asked, from, BLOCK), [('r', 0, 1), ('r', 1, 1), ('r', 2, 1), ('r', 3, 1), ('r', 4, 1)]);
}

#[test]
fn random_reads_of_two_blocks_read_a_third_for_nothing() {
    // Seltzer et al., USENIX 1995: 8 KB at random places of a file with 4 KB blocks.
    let memory = MemVolume::new(64 * MB, 4096, 4096, Metadata::Delayed);
    let (mut lab, asked) = noting_lab(memory, fixed(), free_machine(8 * MB));
    let (fd, from) = cold_file(&mut lab, 12, 4096);
    blocks_asked(&asked, 0, 4096);
    read(&mut lab, fd, 4 * 4096, 8192);
    read(&mut lab, fd, 8 * 4096, 8192);
    read(&mut lab, fd, 4096, 8192);
    let expected = [('r', 4, 1), ('r', 5, 2), ('r', 8, 1), ('r', 9, 2), ('r', 1, 1), ('r', 2, 2)];
    assert_eq!(blocks_asked(&asked, from, 4096), expected);
    // Said to be random, they are read as asked for.
    lab.drop_caches().unwrap();
    let advice = posix::Advice::Random;
    call(&mut lab, Call::Advise { fd, offset: 0, len_bytes: 0, advice }).unwrap();
    blocks_asked(&asked, 0, 4096);
    read(&mut lab, fd, 4 * 4096, 8192);
    assert_eq!(blocks_asked(&asked, from, 4096), [('r', 4, 1), ('r', 5, 1)]);
}

#[test]
fn a_scan_larger_than_memory_stays_within_it() {
    let (mut lab, _) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), free_machine(MB));
    let fd = create(&mut lab, "f");
    for n in 0..16 {
        write(&mut lab, fd, n * MB, MB);
        assert!(lab.cx().cache().bytes() <= MB, "{}", lab.cx().cache().bytes());
    }
    for n in 0..16 {
        read(&mut lab, fd, n * MB, MB);
        assert!(lab.cx().cache().bytes() <= MB);
    }
    assert_eq!(lab.counters().device.write_bytes / MB, 16);
}

#[test]
fn update_writes_everything_on_the_half_minute() {
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), free_machine(8 * MB));
    lab.pause_ns(1_500_000_000);
    let fd = create(&mut lab, "f");
    write(&mut lab, fd, 0, 100);
    asked.lock().unwrap().clear();
    lab.pause_ns(60_000_000_000);
    let times: Vec<u64> = asked.lock().unwrap().iter().map(|(at_ns, _)| *at_ns).collect();
    assert!(!times.is_empty() && times.iter().all(|at| *at == 30_000_000_000), "{times:?}");
}

#[test]
fn the_wheel_writes_each_file_when_it_is_due() {
    let mut machine = free_machine(8 * MB);
    machine.write_back.syncer = Syncer::Wheel;
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), machine);
    lab.pause_ns(1_500_000_000);
    let fd = create(&mut lab, "f");
    write(&mut lab, fd, 0, 100);
    let data = start_of(&mut lab, fd) / 512;
    asked.lock().unwrap().clear();
    lab.pause_ns(60_000_000_000);
    let asked = asked.lock().unwrap().clone();
    // Time has passed since 1.5 s only where a block was read: the first tick from 28 s after for metadata.
    let second = |at_ns: u64| at_ns / 1_000_000_000;
    let when = |wanted: bool| -> Vec<u64> {
        asked.iter().filter(|(_, r)| (r.lbn.0 == data) == wanted).map(|(at, _)| second(*at)).collect()
    };
    assert_eq!(when(true), [32]);
    assert!(when(false).iter().all(|at| [30, 31].contains(at)), "{asked:?}");
    assert_eq!(lab.cx().cache().dirty_bytes(), 0);
}

#[test]
fn much_that_is_dirty_is_written_before_it_is_old() {
    let mut machine = free_machine(8 * MB);
    machine.write_back.background_percent.value = 25;
    machine.write_back.limit_percent.value = 50;
    machine.io.largest_transfer_bytes.value = 1 << 20;
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), machine);
    // Small files, so that no cluster ever fills.
    for n in 0..200 {
        let fd = create(&mut lab, &format!("f{n}"));
        write(&mut lab, fd, 0, 4 * BLOCK);
        call(&mut lab, Call::Close { fd }).unwrap();
        assert!(lab.cx().cache().dirty_bytes() <= 4 * MB, "file {n}");
    }
    assert!(lab.now_ns() < 30_000_000_000);
    lab.pause_ns(1_000_000_000);
    assert!(lab.cx().cache().dirty_bytes() <= 2 * MB, "{}", lab.cx().cache().dirty_bytes());
    assert!(asked.lock().unwrap().len() > 50);
}

#[test]
fn reading_what_is_wanted_and_giving_up_what_is_not() {
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), free_machine(8 * MB));
    let (fd, from) = cold_file(&mut lab, 12, BLOCK);
    blocks_asked(&asked, 0, BLOCK);
    let advice = posix::Advice::WillNeed;
    call(&mut lab, Call::Advise { fd, offset: 0, len_bytes: 0, advice }).unwrap();
    assert_eq!(blocks_asked(&asked, from, BLOCK), [('r', 0, 8), ('r', 8, 4)]);
    lab.pause_ns(1_000_000_000);
    assert_eq!(read(&mut lab, fd, 0, 12 * BLOCK), 0);
    assert_eq!(lab.evict(fd).unwrap(), CacheState::Cold);
    assert!(read(&mut lab, fd, 0, BLOCK) > 0);
}

#[test]
fn write_back_that_is_started_is_waited_for_by_who_asks() {
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), free_machine(8 * MB));
    let fd = create(&mut lab, "f");
    write(&mut lab, fd, 0, 4 * BLOCK);
    let from = start_of(&mut lab, fd);
    blocks_asked(&asked, 0, BLOCK);
    let mut sync = |bits| {
        let how = posix::SyncRange::from_bits(bits).unwrap();
        let outcome = lab.call(&Call::SyncRange { fd, offset: 0, len_bytes: 0, how });
        outcome.result.unwrap();
        outcome.dur_ns
    };
    assert_eq!(sync(0), 0, "nothing was asked for");
    assert_eq!(sync(2), 0, "started");
    // The disk takes a millisecond a request.
    assert_eq!(sync(1), 1_000_000, "waited for");
    assert_eq!(sync(7), 0, "all is written");
    assert_eq!(blocks_asked(&asked, from, BLOCK), [('w', 0, 4)], "once");
}

#[test]
fn a_hole_is_read_without_the_disk() {
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), free_machine(8 * MB));
    let fd = create(&mut lab, "f");
    write(&mut lab, fd, 0, BLOCK);
    // All within the direct pointers, so that no map has to be read either.
    call(&mut lab, Call::Ftruncate { fd, len_bytes: 12 * BLOCK }).unwrap();
    call(&mut lab, Call::Close { fd }).unwrap();
    assert_eq!(lab.drop_caches().unwrap(), CacheState::Cold);
    let fd = open(&mut lab, "f", OpenFlags::READ).unwrap();
    blocks_asked(&asked, 0, BLOCK);
    assert_eq!(read(&mut lab, fd, 4 * BLOCK, 4 * BLOCK), 0, "the disk takes a millisecond, the processor nothing");
    assert!(blocks_asked(&asked, 0, BLOCK).is_empty());
    assert!(read(&mut lab, fd, 0, BLOCK) > 0, "data is");
}

#[test]
fn looking_at_the_cache_is_not_using_it() {
    let (mut lab, asked) = noting_lab(volume(64 * MB, Metadata::Delayed), fixed(), free_machine(8 * MB));
    let (fd, from) = cold_file(&mut lab, 12, BLOCK);
    blocks_asked(&asked, 0, BLOCK);
    let before_ns = lab.now_ns();
    let look = |lab: &mut kernel::Lab<MemVolume>, offset, len_bytes| {
        let outcome = lab.call(&Call::Residency { fd, offset, len_bytes });
        assert_eq!(outcome.dur_ns, 0);
        let found = outcome.residency().unwrap();
        (found.cached_bytes, found.missing_bytes, found.dirty_bytes.unwrap())
    };
    assert_eq!(look(&mut lab, 0, 0), (0, 12 * BLOCK, 0));
    assert_eq!(lab.now_ns(), before_ns);
    assert!(blocks_asked(&asked, from, BLOCK).is_empty(), "nothing was read");
    // Of twelve blocks the one that was read is there; what was asked for ahead of it comes when the disk has read it.
    let reading = Call::Advise { fd, offset: 0, len_bytes: 0, advice: posix::Advice::Random };
    call(&mut lab, reading).unwrap();
    read(&mut lab, fd, 4 * BLOCK + 5, 10);
    assert_eq!(look(&mut lab, 0, 0), (BLOCK, 11 * BLOCK, 0));
    assert_eq!(look(&mut lab, 4 * BLOCK, BLOCK), (BLOCK, 0, 0));
    assert_eq!(look(&mut lab, 5 * BLOCK - 1, 2), (BLOCK, BLOCK, 0), "two bytes, of two blocks");
    assert_eq!(look(&mut lab, 12 * BLOCK, 0), (0, 0, 0), "behind the end nothing is missing");
    let fd = open(&mut lab, "f", OpenFlags::READ_WRITE).unwrap();
    write(&mut lab, fd, 0, 100);
    assert_eq!(look(&mut lab, 0, 0), (2 * BLOCK, 10 * BLOCK, BLOCK));
    let root = open(&mut lab, ".", OpenFlags::DIRECTORY).unwrap();
    assert_eq!(call(&mut lab, Call::Residency { fd: root, offset: 0, len_bytes: 0 }), Err(posix::Errno::EINVAL));
}
