//! Walks and names.

use super::builder::{Trace, cold, primes};
use posix::Errno;
use predict::pipeline::{InitialCaches, PredictOptions};
use system::Entry;
use system::vector::Class;
use trace::{Op, flag};

#[test]
fn a_cold_path_of_three_components_then_warm() {
    let mut t = Trace::new().has("/a/", 0).has("/a/b/", 0).has("/a/b/f", 100).has("/a/b/g", 100);
    t.on(Op::Stat, "/a/b/f");
    t.on(Op::Stat, "/a/b/f");
    t.on(Op::Stat, "/a/b/g");
    assert_eq!(
        cold(&t),
        [
            // Each component is in another directory that was never read.
            "2*lu_bc 3*lur_nc stat",
            "2*lu_bc stat",
            // The directory's blocks are in memory now, the file's inode is not.
            "2*lu_bc lus_nc stat",
        ]
    );
}

#[test]
fn on_a_warm_system_nothing_misses() {
    let mut t = Trace::new().has("/a/", 0).has("/a/f", 8192);
    let f = t.open("/a/f", flag::READ);
    t.read(f, 0, 8192);
    let warm = PredictOptions { initial: InitialCaches::Warm, ..PredictOptions::default() };
    assert_eq!(t.vectors(&primes(), &warm), ["lu_bc open", "0.333333*rdc_16384 0.666667*rdc_4096"]);
}

#[test]
fn a_relative_walk_costs_only_the_components_walked() {
    let mut t = Trace::new().has("/a/", 0).has("/a/b/", 0).has("/a/b/f", 100);
    t.in_directory("/a/b");
    t.on(Op::Stat, "f");
    t.on(Op::Stat, "./f");
    t.on(Op::Stat, "../b/f");
    // The working directory itself is held by the process: its own name costs nothing, its blocks do.
    assert_eq!(cold(&t), ["lur_nc stat", "stat", "2*lu_bc stat"]);
}

#[test]
fn repeated_and_trailing_slashes_are_not_components() {
    let mut t = Trace::new().has("/a/", 0);
    t.on(Op::Stat, "//a///");
    t.on(Op::Stat, "/");
    assert_eq!(cold(&t), ["lur_nc stat", "stat"]);
}

#[test]
fn symbolic_links_are_walked() {
    let mut t = Trace::new().has("/a/", 0).has("/a/f", 9).has_link("/l", "/a").has_link("/r", "a/f");
    t.on(Op::Stat, "/a/f");
    t.on(Op::Stat, "/l/f");
    t.on(Op::Stat, "/r");
    t.on(Op::Stat, "/r").flags = flag::NOFOLLOW;
    t.on(Op::ReadLink, "/l");
    t.fails(Op::ReadLink, "/a/f", Errno::EINVAL);
    assert_eq!(
        cold(&t),
        [
            "lu_bc 2*lur_nc stat",
            // l (an inode to read), then a, then f.
            "2*lu_bc lus_nc stat",
            "2*lu_bc lus_nc stat",
            "stat",
            "readlink",
            "lu_bc readlink_none",
        ]
    );
}

#[test]
fn a_loop_of_links_fails_after_forty() {
    let mut t = Trace::new().has_link("/x", "y").has_link("/y", "x");
    t.fails(Op::Stat, "/x", Errno::ELOOP);
    // 41 lookups, two of them cold; the call itself fails after its walk.
    assert_eq!(cold(&t), ["access 40*lu_bc lur_nc lus_nc"]);
}

#[test]
fn negative_lookups_cold_then_cached() {
    let mut t = Trace::new().has("/d/", 0).has("/d/f", 1);
    t.fails(Op::Stat, "/d/missing", Errno::ENOENT);
    t.fails(Op::Open, "/d/missing", Errno::ENOENT);
    t.fails(Op::Access, "/d/other", Errno::ENOENT);
    t.fails(Op::Stat, "/d/missing/deeper", Errno::ENOENT);
    t.fails(Op::Stat, "/d/f/x", Errno::ENOTDIR);
    assert_eq!(
        cold(&t),
        [
            "lu_bc lun_nc lur_nc",
            "lu_bc open_none",
            "lu_bc lun_ac",
            "lu_bc lun_bc",
            // Fails at f, which is there and is no directory.
            "access lu_bc lus_nc",
        ]
    );
}

#[test]
fn what_a_dot_or_a_slash_follows_is_a_directory() {
    let mut t = Trace::new().has("/f", 1).has("/g", 1).has("/d/", 0);
    for path in ["/f/.", "/f/"] {
        t.on_two(Op::Link, path, "/d/new").errno = Errno::ENOTDIR.0;
    }
    t.on(Op::Stat, "/f/");
    t.on(Op::Stat, "/g/.");
    // Nothing told of it before: it is taken for the directory that it must be.
    t.on(Op::Stat, "/untold/");
    t.on(Op::Stat, "/untold/name");
    // The second path of a link is not walked if the first one fails.
    assert_eq!(cold(&t)[..2], ["access lur_nc", "access"]);
    let workload = t.workload(t.calls());
    let prediction =
        predict::pipeline::predict(&workload, &[primes()], &PredictOptions::default()).expect("a prediction");
    assert_eq!(prediction.coverage.surprises, 2, "calls that succeeded on files as if they were directories");
}

#[test]
fn an_open_of_a_missing_name_costs_its_lookup_in_place_of_a_stats() {
    let mut t = Trace::new().has("/d/", 0).has("/d/f", 1);
    t.fails(Op::Open, "/d/missing", Errno::ENOENT);
    t.fails(Op::Open, "/d/another", Errno::ENOENT);
    t.fails(Op::Open, "/d/another", Errno::ENOENT);
    assert_eq!(
        cold(&t),
        ["lu_bc -1*lun_bc lun_nc lur_nc open_none", "lu_bc lun_ac -1*lun_bc open_none", "lu_bc open_none",]
    );
}

#[test]
fn create_makes_its_name_known_and_unlink_leaves_a_negative_entry() {
    let mut t = Trace::new().has("/d/", 0);
    let f = t.create("/d/new");
    t.close(f);
    t.on(Op::Stat, "/d/new");
    t.on(Op::Unlink, "/d/new");
    t.fails(Op::Stat, "/d/new", Errno::ENOENT);
    assert_eq!(
        cold(&t),
        [
            // The directory has to be read before a name can be made in it.
            "cr lu_bc -1*lun_ac lun_nc lur_nc",
            "close",
            "lu_bc stat",
            // Never written, never on disk: still dirty.
            "lu_bc rmd_0",
            "lu_bc lun_bc",
        ]
    );
}

#[test]
fn open_of_an_existing_file_with_create_is_an_open() {
    let mut t = Trace::new().has("/f", 5);
    let f = t.create("/f");
    t.close(f);
    let d = t.open("/", flag::READ | flag::DIRECTORY);
    t.close(d);
    t.fails(Op::Open, "/f", Errno::EEXIST).flags = flag::CREATE | flag::EXCL;
    assert_eq!(cold(&t), ["lur_nc open", "close", "opendir", "close", "access"]);
}

#[test]
fn rename_moves_the_cached_name() {
    let mut t = Trace::new().has("/a/", 0).has("/a/f", 5).has("/b/", 0);
    t.on_two(Op::Rename, "/a/f", "/b/g");
    t.on(Op::Stat, "/b/g");
    t.fails(Op::Stat, "/a/f", Errno::ENOENT);
    assert_eq!(
        cold(&t),
        [
            // Walk of a (random: first in the root), f (random: first in a), b (the root's blocks are there), and the
            // absent g in b, which has to be read.
            "2*lu_bc -1*lun_ac lun_nc 2*lur_nc lus_nc rename",
            "lu_bc stat",
            // Nothing is cached about the old name; its directory is.
            "lu_bc lun_ac",
        ]
    );
}

#[test]
fn rename_over_a_file_frees_it() {
    let mut t = Trace::new().has("/old", 20480).has("/new", 5);
    t.on(Op::Stat, "/old");
    t.on(Op::Stat, "/new");
    let f = t.open("/old", flag::READ);
    t.read(f, 0, 20480);
    t.close(f);
    t.on_two(Op::Rename, "/new", "/old");
    t.on(Op::Stat, "/old");
    let got = cold(&t);
    // Beyond the 4 KB of the class, the removal of 20 KB less that of 4 KB: rm between 16 and 64 KB, 1/12 of the way.
    assert_eq!(got[5], "rename_over 0.916667*rm_16384 -1*rm_4096 0.083333*rm_65536");
    assert_eq!(got[6], "stat");
}

/// As dpkg replaces a file: the old one stays by a link until the new one has its name. On one ext4 a rename that frees
/// a file takes 179 us, and each of these was priced so; replayed it took 6 us.
#[test]
fn rename_over_one_of_two_names_frees_nothing() {
    let mut t = Trace::new().has("/new", 5).has("/old", 20480).has("/clean", 5);
    t.on_two(Op::Link, "/old", "/backup");
    t.on_two(Op::Rename, "/clean", "/old");
    t.on(Op::Unlink, "/backup");
    let dirty = t.create("/dirty");
    t.write(dirty, 0, 4096);
    t.close(dirty);
    t.on_two(Op::Link, "/old", "/backup");
    t.on_two(Op::Rename, "/dirty", "/old");
    let got = cold(&t);
    assert!(got[1].contains("rename") && !got[1].contains("rename_over") && !got[1].contains("rm"), "{got:?}");
    assert!(got[2].contains("rmu_16384") && got[2].contains("rmu_65536"), "the last name frees it: {got:?}");
    let last = got.last().unwrap();
    assert!(last.contains("rename_wr_4096") && !last.replace("rename_wr", "").contains("rename"), "{got:?}");
}

#[test]
fn exchange_swaps_files_and_keeps_both() {
    let mut t = Trace::new().has("/a", 4096).has("/b", 65536);
    t.on_two(Op::Rename, "/a", "/b").flags = flag::EXCHANGE;
    t.on(Op::Unlink, "/a");
    let got = cold(&t);
    assert_eq!(got[0], "lur_nc lus_nc rename");
    assert_eq!(got[1], "rmu_65536", "the large file has the name a now");
}

/// Issue 12: `renameat2(a, a, RENAME_EXCHANGE)`, which Linux answers with success, ended `predict` with a panic.
#[test]
fn a_name_exchanged_with_itself_stays_as_it_is() {
    let mut t = Trace::new().has("/a", 65536).has_hard_links(["/b", "/c"], 4096);
    t.on_two(Op::Rename, "/a", "/a").flags = flag::EXCHANGE;
    t.on_two(Op::Rename, "/b", "/c").flags = flag::EXCHANGE;
    t.on(Op::Unlink, "/a");
    let got = cold(&t);
    assert_eq!((got.len(), got[2].as_str()), (3, "rmu_65536"), "{got:?}");
}

#[test]
fn hard_links_are_one_file() {
    let mut t = Trace::new().has_hard_links(["/a", "/b"], 65536);
    t.on(Op::Stat, "/a");
    t.on(Op::Stat, "/b");
    t.on(Op::Unlink, "/a");
    t.on(Op::Unlink, "/b");
    t.on_two(Op::Link, "/c", "/d").size_before = Some(3);
    assert_eq!(
        cold(&t),
        [
            "lur_nc stat",
            // The inode is known by the other name.
            "lus_ac stat",
            // The first unlink only removes a name, the second the file, whose data was never read.
            "rm_0",
            "rmu_next_65536",
            // A file the snapshot does not know of: the trace is believed.
            "link lus_nc",
        ]
    );
}

#[test]
fn directories_are_made_listed_and_removed() {
    let mut t = Trace::new().has("/p/", 0);
    t.on(Op::Mkdir, "/p/d");
    t.fails(Op::Mkdir, "/p/d", Errno::EEXIST);
    let f = t.create("/p/d/x");
    t.close(f);
    let d = t.open("/p/d", flag::READ | flag::DIRECTORY);
    // One entry of 24 bytes, and . and .. of 24 bytes each.
    t.fd(Op::GetDents, d).ret = 72;
    t.fd(Op::GetDents, d).ret = 0;
    t.close(d);
    t.on(Op::Unlink, "/p/d/x");
    t.on(Op::Rmdir, "/p/d");
    let got = cold(&t);
    assert_eq!(got[0], "lu_bc -1*lun_ac lun_nc lur_nc mkdir");
    assert_eq!(got[1], "access lu_bc");
    assert_eq!(got[2], "cr 2*lu_bc", "a new directory is in memory");
    // Half of an empty listing, plus what one entry adds: 1/10 of the way from 0 to 10 entries.
    assert_eq!(got[5], "0.4*readdir_0 0.1*readdir_10");
    assert_eq!(got[6], "0.5*readdir_0");
    assert_eq!(got[9], "lu_bc rmdir");
}

#[test]
fn a_cold_directory_is_listed_cold_to_the_end() {
    let mut t = Trace::new().has("/d/", 0);
    for i in 0..10 {
        t = t.has(&format!("/d/f{i}"), 1);
    }
    let d = t.open("/d", flag::READ | flag::DIRECTORY);
    t.fd(Op::GetDents, d).ret = 48 + 5 * 24;
    t.fd(Op::GetDents, d).ret = 5 * 24;
    t.fd(Op::GetDents, d).ret = 0;
    t.on(Op::Stat, "/d/f3");
    let got = cold(&t);
    let share = 168.0 / 288.0;
    // The first call waits for the disk; the empty answer is at hand.
    assert_eq!(got[1], format!("{:.6}*readdiru_0 {:.6}*readdiru_10", 1.0 - share, share));
    assert_eq!(got[3], "");
    assert_eq!(got[4], "lu_bc lus_nc stat", "listing brought the blocks in, not the inodes");
}

#[test]
fn a_lookup_brings_in_one_page_of_a_large_directory() {
    let mut t = Trace::new().has("/d/", 0);
    for i in 0..1000 {
        t = t.has(&format!("/d/a-name-of-some-length-{i}"), 1);
    }
    t.on(Op::Stat, "/d/a-name-of-some-length-3");
    let d = t.open("/d", flag::READ | flag::DIRECTORY);
    t.fd(Op::GetDents, d).ret = 100 * 48;
    let got = cold(&t);
    assert!(got[0].contains("lur_nc"), "{}", got[0]);
    assert!(got[2].contains("readdiru_1000"), "the other pages are still on disk: {}", got[2]);
}

#[test]
fn a_file_that_replaces_another_is_written_back_then_if_it_is_dirty() {
    let mut t = Trace::new().has("/old", 100).has("/clean", 8192);
    let new = t.create("/new");
    t.write(new, 0, 8192);
    t.close(new);
    t.on_two(Op::Rename, "/new", "/old");
    t.on_two(Op::Rename, "/clean", "/old");
    let got = cold(&t);
    assert!(
        got[3].contains("0.933333*rename_wr_4096 0.066667*rename_wr_65536") && !got[3].contains("rename_over"),
        "{got:?}"
    );
    assert!(got[4].contains("rename_over") && !got[4].contains("rename_wr"), "{got:?}");
}

#[test]
fn a_name_cache_of_two_forgets_the_third() {
    let mut t = Trace::new().has("/a", 1).has("/b", 1).has("/c", 1);
    for name in ["/a", "/b", "/a", "/c", "/a", "/b"] {
        t.on(Op::Stat, name);
    }
    let mut small = primes();
    (small.parameters.name_cache_entries, small.parameters.attribute_cache_files) = (2, 0);
    let got = t.vectors(&small, &PredictOptions::default());
    // c pushes b out; the attributes of b are still there.
    assert_eq!(got, ["lur_nc stat", "lus_nc stat", "stat", "lus_nc stat", "stat", "lus_ac stat"]);
}

#[test]
fn attribute_calls_by_path_and_descriptor() {
    let mut t = Trace::new().has("/f", 5);
    t.on(Op::Chmod, "/f");
    let f = t.open("/f", flag::READ);
    for op in [Op::Fchmod, Op::Fstat, Op::Futimens, Op::Fcntl, Op::Mmap, Op::Seek] {
        t.fd(op, f);
    }
    let missing = t.fd(Op::GetXattr, f);
    (missing.errno, missing.ret) = (Errno::ENODATA.0, -1);
    t.on(Op::GetXattr, "/f").ret = 20;
    assert_eq!(
        cold(&t),
        ["chmod lur_nc", "open", "fchmod", "fstat", "futimens", "fcntl", "mmap", "lseek", "getxattr_none", "getxattr"]
    );
}

#[test]
fn the_trace_is_believed_and_surprises_are_counted() {
    let mut t = Trace::new().has("/d/", 0).has("/d/f", 5);
    t.fails(Op::Stat, "/d/f", Errno::ENOENT);
    t.fails(Op::Stat, "/d/g", Errno::ENOENT);
    t.on(Op::Stat, "/d/g");
    t.on(Op::Stat, "/e/unknown/file");
    let workload = t.workload(t.calls());
    let prediction =
        predict::pipeline::predict(&workload, &[primes()], &PredictOptions::default()).expect("a prediction");
    assert_eq!(prediction.coverage.surprises, 2);
    assert_eq!(prediction.coverage.discovered_names, 3);
    assert_eq!(cold(&t)[3], "2*lu_bc 2*lur_nc lus_nc stat");
}

#[test]
fn inodes_come_with_those_made_beside_them() {
    let mut t = Trace::new();
    for i in 0..1500 {
        t = t.has(&format!("/d/f{i:04}"), 1);
    }
    let mut system = primes();
    for &at in Class::LookupNearMiss.points() {
        system.entries.insert(system::vector::entry_name(Class::LookupNearMiss, at), Entry::exactly(at as f64));
    }
    for name in ["/d/f0000", "/d/f0001", "/d/f0009", "/d/f1490", "/d/f1490"] {
        t.on(Op::Stat, name);
    }
    let got = t.vectors(&system, &PredictOptions::default());
    assert_eq!(got[1], "lu_bc lus_nn_1 stat");
    assert_eq!(got[2], "lu_bc lus_nn_8 stat");
    assert_eq!(got[3], "lu_bc lus_nn_1024 stat", "farther than any system reads at once");
    assert_eq!(got[4], "lu_bc stat");
}

#[test]
fn a_directory_of_few_names_has_a_price_of_its_own() {
    let mut t = Trace::new().has("/few/f", 1);
    for i in 0..40 {
        t = t.has(&format!("/many/f{i:02}"), 1);
    }
    let mut system = primes();
    for (class, factor) in [(Class::LookupFewMiss, 1000.0), (Class::LookupNearMiss, 1.0)] {
        for &at in class.points() {
            system.entries.insert(system::vector::entry_name(class, at), Entry::exactly(factor * at as f64));
        }
    }
    t.on(Op::Stat, "/few/f");
    t.on(Op::Stat, "/many/f07");
    let got = t.vectors(&system, &PredictOptions::default());
    // Nothing is known of an inode at first; of the second directory's, the first two are near.
    assert!(got[0].contains("lur_few_8") && got[0].contains("lus_nn_1024") && !got[0].contains("lur_nc"), "{}", got[0]);
    assert!(got[1].contains("lur_nc") && !got[1].contains("lur_few"), "{}", got[1]);
}
