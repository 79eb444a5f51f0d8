//! Reads, writes, holes, truncation and removal.

use super::builder::{Trace, cold, primes};
use predict::pipeline::{PredictOptions, PricedCall, predict_calls};
use system::Entry;
use trace::{Op, flag};

const K: u64 = 1024;

#[test]
fn a_small_file_read_whole_then_again() {
    let mut t = Trace::new().has("/f", 16 * K);
    let f = t.open("/f", flag::READ);
    t.read(f, 0, 16 * K);
    t.read(f, 0, 16 * K);
    t.fd(Op::Read, f).ret = 0;
    assert_eq!(cold(&t)[1..], ["rdf_16384", "rdc_16384", "rdo"]);
}

#[test]
fn the_first_read_brings_a_window_and_what_follows_is_sequential() {
    let mut t = Trace::new().has("/f", 64 * K);
    let f = t.open("/f", flag::READ);
    for i in 0..6 {
        t.read(f, i * 4 * K, 4 * K);
    }
    t.read(f, 48 * K, 4 * K);
    let mut system = primes();
    // Next to nothing of it passes meanwhile.
    system.entries.insert("rd_4096".into(), Entry::exactly(1e15));
    let got = t.vectors(&system, &PredictOptions::default());
    // One page asked for: the kernel's first window is four.
    assert_eq!(got[1..], ["rdf_16384", "rdc_4096", "rdc_4096", "rdc_4096", "rd_4096", "rd_4096", "rrd_4096"]);
}

/// An archive that is read from end to end while it is unpacked, and merged runs of a sort, were predicted as if
/// nothing were read ahead meanwhile: 154 us for 64 KB that replays read in 12.
#[test]
fn what_is_read_ahead_meanwhile_is_not_waited_for() {
    let mut t = Trace::new().has("/f", 1024 * K);
    let f = t.open("/f", flag::READ);
    t.read(f, 0, 32 * K);
    for (number, stats) in [0, 0, 1, 0, 100].into_iter().enumerate() {
        for _ in 0..stats {
            t.on(Op::Stat, "/f");
        }
        t.read(f, (number as u64 + 1) * 32 * K, 32 * K);
    }
    for number in 6..12 {
        t.read(f, number * 32 * K, 32 * K);
    }
    let mut system = primes();
    for (name, ns) in [("stat", 3000.0), ("rd_16384", 10_000.0), ("rd_65536", 10_000.0)] {
        system.entries.insert(name.into(), Entry::exactly(ns));
    }
    for name in ["rdc_16384", "rdc_65536"] {
        system.entries.insert(name.into(), Entry::exactly(1000.0));
    }
    let mut reads = Vec::new();
    let mut each = |call: PricedCall<'_>| {
        if call.event.op() == Op::Read {
            reads.push(call.ns.round());
        }
    };
    predict_calls(&t.workload(t.calls()), &[system], &PredictOptions::default(), Some(&mut each)).expect("predicted");
    // The first window's rest passes, then a stat, then more than the 128 KB that are read ahead at a time.
    let expected = [&[1000.0, 9000.0, 7000.0, 10_000.0][..], &[1000.0; 4], &[10_000.0; 3]].concat();
    assert_eq!(reads[1..].len(), expected.len());
    assert!(reads[1..].iter().zip(&expected).all(|(read, expected)| (read - expected).abs() < 50.0), "{reads:?}");
}

#[test]
fn a_read_half_in_the_cache_pays_for_both_halves() {
    let mut t = Trace::new().has("/f", 1024 * K);
    let f = t.open("/f", flag::READ);
    t.read(f, 512 * K, 16 * K);
    t.read(f, 512 * K, 32 * K);
    let got = cold(&t);
    assert_eq!(got[1], "rrd_16384");
    assert_eq!(got[2], "rd_16384 rdc_16384 -1*rdo");
}

#[test]
fn direct_requests_bypass_the_cache() {
    let mut t = Trace::new().has("/f", 1024 * K);
    let f = t.open("/f", flag::READ | flag::WRITE | flag::DIRECT);
    t.read(f, 0, 64 * K);
    t.read(f, 0, 64 * K);
    t.write(f, 0, 4 * K);
    assert_eq!(cold(&t)[1..], ["rdd_65536", "rdd_65536", "wrd_4096"]);
}

#[test]
fn appended_extended_overwritten() {
    let mut t = Trace::new();
    let f = t.create("/f");
    t.write(f, 0, 512);
    t.write(f, 512, 512);
    t.write(f, 0, 512);
    t.write(f, 4 * K, 4 * K);
    // The second half of this one is new.
    t.write(f, 4 * K, 8 * K);
    assert_eq!(cold(&t)[1..], ["wra_512", "wrx_512", "wrc_512", "wra_4096", "wra_4096 wrc_4096 -1*wro"]);
}

#[test]
fn overwriting_what_is_not_cached() {
    let mut t = Trace::new().has("/f", 1024 * K);
    let f = t.open("/f", flag::WRITE);
    t.write(f, 64 * K, 16 * K);
    t.write(f, 256 * K + 100, 512);
    t.write(f, 256 * K, 4 * K);
    // Parts of the first and last block, four whole ones between.
    t.write(f, 512 * K + 2 * K, 20 * K);
    let got = cold(&t);
    assert_eq!(got[1..4], ["wru_16384", "wrp", "wrc_4096"]);
    assert_eq!(got[4], "-2*wro 2*wrp wru_16384");
}

#[test]
fn appending_to_a_cold_log_reads_its_last_block() {
    let mut t = Trace::new().has("/log", 5000);
    let f = t.open("/log", flag::WRITE | flag::APPEND);
    let event = t.fd(Op::Write, f);
    event.ret = 100;
    let event = t.fd(Op::Write, f);
    event.ret = 100;
    let got = cold(&t);
    assert_eq!(got[1], "-1*wro wrp 0.806262*wrx_old_1 0.193738*wrx_old_512");
    assert_eq!(got[2], "0.806262*wrx_old_1 0.193738*wrx_old_512");
}

#[test]
fn a_last_block_that_was_synced_is_on_the_device() {
    let mut t = Trace::new();
    let f = t.create("/f");
    t.write(f, 0, 512);
    t.write(f, 512, 512);
    t.fd(Op::Fsync, f);
    t.write(f, K, 512);
    t.write(f, K + 512, 512);
    // The next block is new, until it is synced as well.
    t.write(f, 2 * K, 2 * K);
    t.write(f, 4 * K, 512);
    t.write(f, 4 * K + 512, 512);
    t.fd(Op::Fsync, f);
    t.write(f, 5 * K, 512);
    // A file that is cut begins anew.
    t.fd(Op::Ftruncate, f).req_bytes = Some(0);
    t.write(f, 0, 512);
    t.write(f, 512, 512);
    let got = cold(&t);
    let writes: Vec<_> = got.iter().filter(|priced| priced.contains("wr")).map(String::as_str).collect();
    let expected = [
        "wra_512",
        "wrx_512",
        "wrx_old_512",
        "wrx_old_512",
        "wrx_old_2048",
        "wra_512",
        "wrx_512",
        "wrx_old_512",
        "wra_512",
        "wrx_512",
    ];
    assert_eq!(writes, expected);
}

#[test]
fn an_offset_shared_by_dup_goes_on() {
    let mut t = Trace::new().has("/f", 64 * K);
    let f = t.open("/f", flag::READ);
    // Without offsets in the trace the description's own is used, whichever descriptor is read.
    t.fd(Op::Read, f).ret = 4096;
    let dup = t.fd(Op::Dup, f);
    dup.ret = 4;
    t.fd(Op::Read, f).ret = 4096;
    let positional = t.fd(Op::Read, f);
    (positional.ret, positional.offset, positional.flags) = (4096, Some(60 * K), flag::POSITIONAL);
    t.fd(Op::Read, f).ret = 4096;
    let got = cold(&t);
    assert_eq!(got[1..], ["rdf_16384", "", "rdc_4096", "rrd_4096", "rdc_4096"]);
}

#[test]
fn sparse_writes_leave_a_hole_that_is_new_when_filled() {
    let mut t = Trace::new();
    let f = t.create("/f");
    t.write(f, 1024 * K, 4 * K);
    t.write(f, 512 * K, 4 * K);
    t.write(f, 512 * K, 4 * K);
    assert_eq!(cold(&t)[1..], ["wra_4096", "wra_4096", "wrc_4096"]);
}

#[test]
fn removal_by_size_and_state() {
    let mut t = Trace::new().has("/cold", 64 * K).has("/read", 64 * K);
    let f = t.create("/dirty");
    t.write(f, 0, 16 * K);
    t.close(f);
    let r = t.open("/read", flag::READ);
    t.read(r, 0, 64 * K);
    t.close(r);
    t.on(Op::Unlink, "/dirty");
    t.on(Op::Unlink, "/read");
    t.on(Op::Unlink, "/cold");
    let got = cold(&t);
    assert_eq!(got[2], "close_wr");
    assert_eq!(got[6..], ["rmd_16384", "rm_next_65536", "lus_nc rmu_next_65536"]);
}

#[test]
fn a_file_unlinked_while_open_is_freed_by_the_last_close() {
    let mut t = Trace::new();
    let f = t.create("/f");
    t.write(f, 0, 64 * K);
    t.on(Op::Unlink, "/f");
    t.read(f, 0, 64 * K);
    t.close(f);
    let again = t.create("/f");
    t.close(again);
    let got = cold(&t);
    // The name goes, the blocks stay.
    assert_eq!(got[2..5], ["rmd_0", "rdc_65536", "close_wr -1*rmd_0 rmd_65536"]);
    // No negative entry: the open file had the directory entry in use. But the directory is in memory.
    assert_eq!(got[5], "cr");
}

#[test]
fn a_temporary_file_without_a_name() {
    let mut t = Trace::new().has("/d/", 0);
    let f = t.open("/d", flag::READ | flag::WRITE | flag::TMPFILE);
    t.write(f, 0, 4 * K);
    t.close(f);
    assert_eq!(cold(&t), ["cr lur_nc", "wra_4096", "close_wr -1*rmd_0 rmd_4096"]);
}

#[test]
fn truncation() {
    let mut t = Trace::new().has("/a", 64 * K).has("/b", 64 * K);
    let a = t.open("/a", flag::READ | flag::WRITE);
    t.read(a, 0, 64 * K);
    t.fd(Op::Ftruncate, a).req_bytes = Some(0);
    t.on(Op::Truncate, "/b").req_bytes = Some(48 * K);
    let b = t.open("/b", flag::WRITE | flag::TRUNC);
    t.fd(Op::Ftruncate, b).req_bytes = Some(4096 * K);
    let got = cold(&t);
    assert_eq!(got[2], "trc_65536");
    assert_eq!(got[3], "lus_nc tr_16384");
    assert_eq!(got[4], "-1*access open 0.333333*tr_16384 0.666667*tr_65536");
    assert_eq!(got[5], "trc_0", "lengthening frees nothing");
}

#[test]
fn a_file_emptied_and_rewritten_is_written_back_by_its_close() {
    let mut t = Trace::new().has("/a", 64 * K);
    let a = t.open("/a", flag::WRITE | flag::TRUNC);
    t.write(a, 0, 4 * K);
    t.close(a);
    t.on(Op::Unlink, "/a");
    let b = t.create("/b");
    t.close(b);
    let b = t.open("/b", flag::WRITE | flag::TRUNC);
    t.write(b, 0, 64 * K);
    t.close(b);
    let b = t.open("/b", flag::WRITE);
    t.write(b, 0, 4 * K);
    t.close(b);
    let got = cold(&t);
    assert_eq!(got[2], "close_tr_4096");
    assert_eq!(got[3], "rm_4096", "written back, so no longer dirty");
    assert_eq!(got[6], "open", "nothing to cut off");
    assert_eq!(got[8], "close_tre_65536");
    assert_eq!(got[11], "close_wr", "only the first close after the truncation");
}

#[test]
fn copies_inside_and_out_of_the_file_system() {
    let mut t = Trace::new().has("/f", 64 * K);
    let f = t.open("/f", flag::READ);
    let g = t.create("/g");
    let copy = t.fd(Op::Copy, f);
    (copy.ofd2, copy.offset, copy.offset2, copy.ret) = (Some(g), Some(0), Some(0), (64 * K) as i64);
    // sendfile to a socket.
    let out = t.fd(Op::Copy, g);
    (out.offset, out.ret) = (Some(0), (64 * K) as i64);
    let got = cold(&t);
    // The source was cold: what the disk takes longer is on top.
    assert_eq!(got[2], "copy_65536 -1*rdc_65536 rdf_65536");
    assert_eq!(got[3], "rdc_65536");
}

#[test]
fn a_cache_of_four_pages_forgets() {
    let mut t = Trace::new().has("/f", 1024 * K);
    let f = t.open("/f", flag::READ);
    for i in [100, 200, 300, 100] {
        t.read(f, i * 4 * K, 8 * K);
    }
    let mut small = primes();
    (small.parameters.data_cache_bytes, small.parameters.data_cache_is_lower_bound) = (4 * 4 * K, false);
    let exact = PredictOptions { chunk_pages: 1, ..PredictOptions::default() };
    let got = t.vectors(&small, &exact);
    let random = "0.333333*rrd_16384 0.666667*rrd_4096";
    assert_eq!(got[1..], [random, random, random, random]);
    assert_eq!(cold(&t)[4], "0.333333*rdc_16384 0.666667*rdc_4096", "a large one does not");
}

#[test]
fn allocation_and_holes() {
    let mut t = Trace::new().has("/f", 64 * K);
    let f = t.open("/f", flag::WRITE);
    let reserve = t.fd(Op::Fallocate, f);
    (reserve.offset, reserve.req_bytes) = (Some(64 * K), Some(64 * K));
    t.write(f, 64 * K, 4 * K);
    let punch = t.fd(Op::Fallocate, f);
    (punch.offset, punch.req_bytes, punch.flags) = (Some(0), Some(64 * K), 3 << flag::SUB_SHIFT);
    t.write(f, 0, 4 * K);
    // What was reserved and what was punched held no data.
    assert_eq!(cold(&t)[1..], ["falloc_65536", "wra_4096", "trc_65536", "wra_4096"]);
}

/// A part of a reserved block was priced as if the block had to be read first, and giving reserved space back as if it
/// held data.
#[test]
fn reserved_space_holds_no_data() {
    let mut t = Trace::new();
    let f = t.create("/log");
    let reserve = t.fd(Op::Fallocate, f);
    (reserve.offset, reserve.req_bytes) = (Some(0), Some(1024 * K));
    t.write(f, 0, 4 * K + 512);
    t.write(f, 4 * K + 512, 512);
    t.fd(Op::Fdatasync, f);
    t.write(f, 8 * K, 4 * K);
    t.fd(Op::Fdatasync, f);
    t.write(f, 8 * K, 4 * K);
    t.fd(Op::Fdatasync, f);
    t.fd(Op::Ftruncate, f).req_bytes = Some(12 * K);
    let got = cold(&t);
    assert!(!got[2].contains("wrp"), "{}", got[2]);
    assert_eq!(got[3], "wrc_512");
    // What nobody wrote before has to be committed as having been written; written over, it has not.
    assert_eq!([&got[6], &got[8]], ["fds_app_4096", "fds_ovr_4096"]);
    assert_eq!(got[9], "trc_0", "a megabyte less 12 KB was given back, and no data in it");
}

/// A refused fallocate was priced as an append of as much.
#[test]
fn a_refused_fallocate_costs_a_call_that_fails() {
    let mut t = Trace::new();
    let f = t.create("/log");
    let reserve = t.fd(Op::Fallocate, f);
    (reserve.offset, reserve.req_bytes) = (Some(0), Some(1024 * K));
    let mut ffs = primes();
    assert_eq!(t.vectors(&ffs, &PredictOptions::default())[1], "falloc_1048576");
    ffs.behaviour.preallocates = Some(false);
    assert_eq!(t.vectors(&ffs, &PredictOptions::default())[1], "fstat");
}

/// XFS writes what makes a file longer before it logs the new length.
#[test]
fn cutting_a_file_that_is_dirty_may_write_it() {
    let mut t = Trace::new();
    let f = t.create("/log");
    let reserve = t.fd(Op::Fallocate, f);
    (reserve.offset, reserve.req_bytes, reserve.flags) = (Some(0), Some(1024 * K), 1 << flag::SUB_SHIFT);
    t.write(f, 0, 64 * K);
    t.fd(Op::Ftruncate, f).req_bytes = Some(64 * K);
    t.fd(Op::Ftruncate, f).req_bytes = Some(64 * K);
    t.fd(Op::Fdatasync, f);
    t.fd(Op::Ftruncate, f).req_bytes = Some(32 * K);
    assert_eq!(cold(&t)[3..], ["trd_65536", "trd_65536", "fds_cr_65536", "0.666667*trc_16384 0.333333*trc_65536"]);
    let mut xfs = primes();
    xfs.behaviour.truncate_writes = Some(true);
    let got = t.vectors(&xfs, &PredictOptions::default());
    assert_eq!(got[3..6], ["trd_65536", "trc_0", "fds_cr_4096"]);
}

#[test]
fn a_copy_that_shares_blocks_leaves_nothing_to_write() {
    let mut t = Trace::new().has("/from", 8192 * K);
    let from = t.open("/from", flag::READ);
    let to = t.create("/to");
    let copy = |t: &mut Trace, from, to, offset: u64, len: u64| {
        let event = t.fd(Op::Copy, from);
        (event.ofd2, event.offset, event.offset2) = (Some(to), Some(offset), Some(offset));
        (event.req_bytes, event.ret) = (Some(len), len as i64);
    };
    copy(&mut t, from, to, 0, 8192 * K);
    t.call(Op::SyncFs);
    let third = t.create("/third");
    t.write(from, 0, 64 * K);
    copy(&mut t, from, third, 0, 8192 * K);
    copy(&mut t, from, third, 512, 4 * K);
    t.read(to, 0, 4 * K);
    let mut sharing = primes();
    sharing.behaviour.copies_share = Some(true);
    let got = t.vectors(&sharing, &PredictOptions::default());
    // Sharing is by extents: beyond what was measured no bytes count, and none are read. Names are all there is to
    // write.
    assert_eq!(got[2..4], ["copy_1048576", "syncfs_65536"]);
    // Only what was written can be shared. Parts of blocks are copied.
    assert_eq!(got[6], "copy_1048576 -1*copy_65536 copy_new_65536");
    assert_eq!(got[7], "copy_4096 -2*wro 2*wrp");
    assert_eq!(got[8], "rdf_16384", "what was shared is in no page of the copy");
    // Where nothing is shared, all of it is read and written.
    let got = t.vectors(&primes(), &PredictOptions::default());
    assert!(got[2].contains("rdf_1048576"), "{}", got[2]);
    assert!(got[3].contains("syncfs_4194304"), "{}", got[3]);
    assert_eq!(got[8], "rdc_4096 0.25*rdc_far_16777216", "it is in memory, 16 MB and more from the processor");
}

/// Holes were priced as data from the disk. That no disk is asked for them: `a_hole_is_read_without_the_disk` of the
/// laboratory.
#[test]
fn a_hole_is_read_without_the_disk() {
    let mut t = Trace::new().has("/f", 64 * K);
    let f = t.open("/f", flag::READ | flag::WRITE);
    t.fd(Op::Ftruncate, f).req_bytes = Some(1024 * K);
    t.read(f, 512 * K, 64 * K);
    t.read(f, 0, 4 * K);
    // Half data, half hole.
    t.write(f, 256 * K, 64 * K);
    let punch = t.fd(Op::Fallocate, f);
    (punch.offset, punch.req_bytes, punch.flags) = (Some(32 * K), Some(16 * K), 3 << flag::SUB_SHIFT);
    t.read(f, 32 * K, 32 * K);
    let got = cold(&t);
    assert_eq!((got[2].as_str(), got[3].as_str()), ("rdc_65536", "rdf_16384"));
    assert!(got[6].contains("rrd_16384") && got[6].contains("rdc_16384"), "{}", got[6]);
}

#[test]
fn changes_in_one_directory_come_after_each_other() {
    let mut t = Trace::new().has("/d/", 0).has("/e/", 0);
    for path in ["/d/a", "/d/b", "/e/c", "/d/f"] {
        let f = t.create(path);
        t.close(f);
    }
    for path in ["/d/a", "/d/b", "/e/c", "/d/f"] {
        t.on(Op::Unlink, path);
    }
    let of = |calls: &[String], stem: &str| -> Vec<String> {
        let entries = calls.iter().flat_map(|call| call.split(' '));
        entries.filter(|entry| entry.starts_with(stem)).map(str::to_owned).collect()
    };
    let got = cold(&t);
    assert_eq!(of(&got, "cr"), ["cr", "cr_next", "cr", "cr"]);
    // The first removal is the first: what was made in the directory before it is no matter.
    assert_eq!(of(&got, "rm"), ["rmd_0", "rmd_next_0", "rmd_0", "rmd_0"]);
}

#[test]
fn a_large_file_costs_what_its_blocks_do_also_after_another() {
    let mut t = Trace::new().has("/d/a", 4 * K).has("/d/b", 1024 * K).has("/d/c", 4 * K);
    for path in ["/d/a", "/d/b", "/d/c"] {
        t.on(Op::Unlink, path);
    }
    let got = cold(&t);
    assert!(got[0].ends_with("rmu_4096") && got[1].ends_with("rmu_1048576"), "{got:?}");
    assert!(got[2].ends_with("rmu_next_4096"), "{got:?}");
}

#[test]
fn a_file_is_read_next_after_the_one_made_before_it() {
    let mut t = Trace::new();
    for name in ["/a", "/b", "/c", "/d", "/e", "/f"] {
        t = t.has(name, 16 * K);
    }
    let read = |t: &mut Trace, name: &str| {
        let f = t.open(name, flag::READ);
        t.read(f, 0, 16 * K);
        t.close(f);
    };
    // In order, backwards, far on, and after something was made.
    for name in ["/a", "/b", "/d", "/c", "/f"] {
        read(&mut t, name);
    }
    let made = t.create("/new");
    t.close(made);
    let mut got = cold(&t);
    got.retain(|call| call.contains("rdf"));
    assert_eq!(got, ["rdf_16384", "rdf_next_16384", "rdf_next_16384", "rdf_16384", "rdf_16384"]);
    let mut t = Trace::new().has("/a", 16 * K).has("/b", 16 * K);
    read(&mut t, "/a");
    let made = t.create("/new");
    t.close(made);
    read(&mut t, "/b");
    let mut got = cold(&t);
    got.retain(|call| call.contains("rdf"));
    assert_eq!(got, ["rdf_16384", "rdf_16384"]);
}

#[test]
fn a_name_missing_in_a_directory_of_many_is_searched_for() {
    let mut t = Trace::new();
    for number in 0..200 {
        t = t.has(&format!("/d/{number:03}"), 0);
    }
    t.fails(Op::Stat, "/d/none", posix::Errno::ENOENT);
    let f = t.create("/d/other");
    t.close(f);
    t.fails(Op::Stat, "/d/neither", posix::Errno::ENOENT);
    let got = cold(&t);
    assert_eq!(got[3], "lu_bc lun_ac 2.01*lun_each", "{got:?}");
}
