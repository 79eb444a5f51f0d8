//! Hard disks: places and blocks, skews, schedulers, flushes, determinism.

use device::disk::spec::{DiskSpec, HeadOrder};
use device::disk::{Disk, Pbn, QueuedDisk, Refinement, Scheduler};
use device::{Completion, Device, Drive, Lbn, Model, Request, RequestError, catalogue};
use proptest::prelude::*;
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

fn spec(key: &str) -> DiskSpec {
    match Drive::find(key).unwrap().model {
        Model::Disk(spec) => *spec,
        Model::Ssd(_) => panic!("{key} is a disk"),
    }
}

fn disks() -> Vec<(&'static str, DiskSpec)> {
    let disk = |key: &'static str| match Drive::find(key).unwrap().model {
        Model::Disk(spec) => Some((key, *spec)),
        Model::Ssd(_) => None,
    };
    catalogue().iter().filter_map(|(key, _)| disk(key)).collect()
}

fn below(rng: &mut Xoshiro256PlusPlus, limit: u64) -> u64 {
    rng.next_u64() % limit
}

#[test]
fn blocks_and_places_are_one_to_one_on_every_drive() {
    for (key, spec) in disks() {
        let disk = Disk::new(spec);
        let geometry = disk.geometry();
        let capacity = geometry.capacity_sectors();
        let step = (capacity / 40_000).max(1);
        let mut before: Option<Pbn> = None;
        for lbn in (0..capacity).step_by(step as usize) {
            let place = geometry.place(Lbn(lbn)).unwrap();
            assert_eq!(geometry.block(place), Some(Lbn(lbn)), "{key}: block {lbn} at {place:?}");
            assert!(before.is_none_or(|before| before < place), "{key}: blocks ascend from the outer edge");
            before = Some(place);
        }
        assert_eq!(geometry.place(Lbn(capacity)), None);
    }
}

/// A small disk with every kind of sparing, slips in any place that its spares allow.
fn small_disk() -> impl Strategy<Value = DiskSpec> {
    let sparings =
        ["none", "track", "sectors-per-track", "sectors-per-cylinder", "sectors-per-range", "sectors-per-zone"];
    let zones = proptest::collection::vec((1u32..6, 3u32..9, 0u64..4, 1u32..3, any::<u64>()), 1..4);
    (prop::sample::select(sparings.to_vec()), 1u32..4, zones).prop_map(|(sparing, heads, zones)| {
        let mut text = format!(
            "name = 'x'\nsummary = 'x'\n[sources]\n'disk' = 'x'\n[disk]\nsector_bytes = 512\nheads = {heads}\nrpm = \
             6000.0\n\
             sparing = '{sparing}'\nrange_cylinders = 2\nseek = \
             {{ table = [[1, 1.0], [9, 3.0]], head_switch_ms = 0.5 }}\n"
        );
        text += "controller = \
                 { read_hit_after_read_ms = 0.1, read_hit_after_write_ms = 0.1, read_miss_after_read_ms = 0.2, \
                 read_miss_after_write_ms = 0.2, write_after_read_ms = 0.3, write_after_write_ms = 0.3 }\n\
                 cache = { segments = 0, segment_sectors = 0, write_segments = 0 }\n\
                 bus = { read_sector_ms = 0.01, write_sector_ms = 0.01, max_transfer_sectors = 64, queue_depth = 1 }\n";
        let mut cylinder = 0;
        for (cylinders, spt, lead, spares, slips) in zones {
            let tracks = cylinders * heads;
            let spares = if sparing == "track" { spares.min(tracks - 1) } else { spares };
            let units = u64::from(if sparing == "track" { tracks } else { tracks * spt });
            let slip = if sparing == "none" || spares == 0 { String::new() } else { format!("{}", slips % units) };
            text += &format!(
                "[[disk.zones]]\ncylinders = [{cylinder}, {}]\nsectors_per_track = {spt}\ntrack_skew_sectors = 1\n\
                 cylinder_skew_sectors = 2\nlead_sectors = {lead}\nspares = {spares}\nslips = [{slip}]\n",
                cylinder + cylinders - 1
            );
            cylinder += cylinders;
        }
        match Drive::parse("x", "x", &text) {
            Ok(Drive { model: Model::Disk(spec), .. }) => Some(*spec),
            _ => None,
        }
    })
    .prop_filter_map("more space before the first block than the zone has", |spec| spec)
}

proptest! {
    #[test]
    fn blocks_and_places_are_one_to_one_whatever_the_sparing(spec in small_disk()) {
        let heads = spec.heads;
        let disk = Disk::new(spec);
        let geometry = disk.geometry();
        let mut held = 0;
        for zone in geometry.zones() {
            for cylinder in zone.first_cylinder..=zone.last_cylinder {
                for (head, sector) in (0..heads).flat_map(|h| (0..zone.sectors_per_track).map(move |s| (h, s))) {
                    let place = Pbn { cylinder, head, sector };
                    if let Some(lbn) = geometry.block(place) {
                        held += 1;
                        prop_assert_eq!(geometry.place(lbn), Some(place));
                    }
                }
            }
        }
        prop_assert_eq!(held, geometry.capacity_sectors());
    }
}

#[test]
fn skews_save_the_revolution_between_tracks() {
    for (key, mut spec) in disks() {
        spec.bus.read_sector_ms = 0.0;
        spec.cache.segments = 0;
        spec.cache.write_segments = 0;
        spec.cache.dedicated_write_segment = false;
        spec.cache.write_report = device::disk::spec::WriteReport::Medium;
        let mut disk = Disk::new(spec);
        for zone in disk.geometry().zones().to_vec() {
            let revolution_ns = disk.geometry().revolution_ns() as f64;
            let first = zone.first_lbn.0;
            let tracks = 10.min(zone.lbns / u64::from(zone.sectors_per_track) - 1);
            let mut time = |sectors: u64| {
                let start = 1_000_000_000_000;
                let at = disk.serve_one(start, &Request::read(first, sectors as u32)).at_ns;
                (at - start) as f64
            };
            let (one, many) = (time(1), time(tracks * u64::from(zone.sectors_per_track)));
            // Each track takes its revolution and the skew, and never another revolution.
            let each = (many - one) / tracks as f64 / revolution_ns;
            assert!(each < 1.75, "{key}: {each} revolutions a track");
        }
    }
}

/// Runs a batch that is submitted at once; the time of the last completion.
fn batch(scheduler: Scheduler, requests: &[Request]) -> u64 {
    let mut device = QueuedDisk::with_scheduler(Disk::new(spec("st39102lw")), scheduler);
    for (tag, request) in requests.iter().enumerate() {
        device.submit(0, tag as u64, *request).unwrap();
    }
    let mut done: Vec<Completion> = Vec::new();
    while let Some(event_ns) = device.next_event_ns() {
        device.poll(event_ns, &mut done);
    }
    let mut tags: Vec<u64> = done.iter().map(|completion| completion.tag).collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..requests.len() as u64).collect::<Vec<_>>(), "each request completes once");
    assert!(done.is_sorted_by_key(|completion| completion.at_ns));
    done.last().unwrap().at_ns
}

#[test]
fn schedulers_beat_first_come_first_served() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut totals = [0u64; 4];
    for _ in 0..40 {
        let requests: Vec<Request> = (0..32).map(|_| Request::read(below(&mut rng, 17_000_000), 8)).collect();
        let schedulers = [Scheduler::Fcfs, Scheduler::CLook, Scheduler::Sstf, Scheduler::Sptf];
        for (total, scheduler) in totals.iter_mut().zip(schedulers) {
            *total += batch(scheduler, &requests);
        }
    }
    let [fcfs, clook, sstf, sptf] = totals;
    assert!(clook < fcfs && sstf < fcfs, "{totals:?}");
    assert!(sptf < sstf && sptf < clook, "{totals:?}");
}

#[test]
fn a_read_ahead_block_is_a_hit_and_a_written_one_is_not_ahead() {
    let mut disk = Disk::new(spec("hp-c2247a"));
    let miss = disk.serve_one(0, &Request::read(1000, 8));
    assert_eq!(miss.action, device::disk::Action::ReadMiss);
    let now = miss.at_ns + 20_000_000;
    let hit = disk.serve_one(now, &Request::read(1008, 8));
    assert_eq!(hit.action, device::disk::Action::ReadHit);
    assert!(hit.at_ns - now < 4_000_000, "{} ns", hit.at_ns - now);
    let write = disk.serve_one(hit.at_ns, &Request::write(1016, 8));
    let again = disk.serve_one(write.at_ns + 1_000_000, &Request::read(1016, 8));
    assert_eq!(again.action, device::disk::Action::ReadMiss, "the write has made the segment stale");
}

#[test]
fn a_buffered_write_is_durable_after_a_flush_only() {
    let mut disk = QueuedDisk::new(Disk::new(spec("nearline-7200")));
    let write = disk.serve(0, Request::write(4_000_000, 256)).unwrap();
    assert!(!write.durable);
    assert!(write.at_ns < 2_000_000, "reported from the buffer after {} ns", write.at_ns);
    let flush = disk.serve(write.at_ns, Request::flush()).unwrap();
    assert!(flush.durable && flush.at_ns > write.at_ns + 1_000_000, "the medium takes its time");
    let idle = disk.serve(flush.at_ns + 1_000_000_000, Request::flush()).unwrap();
    assert!(idle.at_ns < flush.at_ns + 1_002_000_000, "nothing is left to write");
}

#[test]
fn sequential_buffered_writes_run_at_the_speed_of_the_medium() {
    let mut disk = QueuedDisk::new(Disk::new(spec("nearline-7200")));
    let mut now = 0;
    for n in 0..5_000u64 {
        now = disk.serve(now, Request::write(n * 256, 256)).unwrap().at_ns;
    }
    let end = disk.serve(now, Request::flush()).unwrap().at_ns;
    let rate = 5_000.0 * 256.0 * 512.0 / (end as f64 / 1e9);
    // The outermost zone passes 189 MB/s under the head; skews take their share.
    assert!((100e6..189e6).contains(&rate), "{rate} bytes/s");
}

/// Writes here and there are reported from the buffer, but no more of them than it has segments: the rest waits for the
/// medium.
#[test]
fn scattered_buffered_writes_run_at_the_speed_of_the_medium() {
    for (key, segments) in [("st39102lw-uw", 3.0), ("nearline-7200", 11.0)] {
        let mut disk = QueuedDisk::new(Disk::new(spec(key)));
        let (sectors, writes) = (disk.capacity_sectors(), 200_u64);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut now = 0;
        for _ in 0..writes {
            now = disk.serve(now, Request::write(below(&mut rng, sectors - 16), 16)).unwrap().at_ns;
        }
        let mean_ms = now as f64 / 1e6 / writes as f64;
        assert!((3.0..20.0).contains(&mean_ms), "{key}: {mean_ms} ms each");
        let flushed_ms = (disk.serve(now, Request::flush()).unwrap().at_ns - now) as f64 / 1e6;
        assert!(flushed_ms < (segments + 1.0) * 30.0, "{key}: {flushed_ms} ms are left to write");
    }
}

#[test]
fn sequential_reads_run_at_the_speed_of_the_medium_or_the_bus() {
    for (key, spec) in disks() {
        let mut disk = QueuedDisk::new(Disk::new(spec.clone()));
        let zone = disk.disk().geometry().zones()[0].clone();
        let medium = f64::from(zone.sectors_per_track) * 512.0 / (spec.revolution_ns() as f64 / 1e9);
        let bus = 512.0 / (spec.bus.read_sector_ms / 1e3);
        let mut now = 0;
        let requests = 400;
        for n in 0..requests {
            now = disk.serve(now, Request::read(n * 128, 128)).unwrap().at_ns;
        }
        let rate = requests as f64 * 128.0 * 512.0 / (now as f64 / 1e9);
        let share = rate / medium.min(bus);
        println!("{key}: {:.2} MB/s, {share:.2} of the slower of medium and bus", rate / 1e6);
        assert!((0.45..=1.0).contains(&share), "{key}: {share} of the slower of medium and bus");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let mut disk = QueuedDisk::new(Disk::new(spec("hp-97560")));
    let capacity = disk.capacity_sectors();
    assert!(matches!(disk.serve(0, Request::read(capacity, 1)), Err(RequestError::OutOfRange { .. })));
    assert!(matches!(disk.serve(0, Request::read(u64::MAX, 2)), Err(RequestError::OutOfRange { .. })));
    assert!(matches!(disk.submit(0, 0, Request::write(capacity - 1, 2)), Err(RequestError::OutOfRange { .. })));
    assert!(matches!(disk.serve(0, Request::read(0, 0)), Err(RequestError::Empty)));
    assert!(matches!(disk.serve(0, Request::read(0, 70_000)), Err(RequestError::TooLong { .. })));
    assert!(matches!(disk.serve(0, Request::trim(0, 8)), Err(RequestError::NoTrim)));
    assert!(disk.serve(0, Request::read(capacity - 1, 1)).is_ok());
}

#[test]
fn the_same_requests_take_the_same_time() {
    let run = |refinement| {
        let mut disk = Disk::with_refinement(spec("st32171w"), refinement);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut now = 0;
        let mut times = Vec::new();
        for _ in 0..2000 {
            let lbn = below(&mut rng, 4_000_000);
            let sectors = 1 + below(&mut rng, 64) as u32;
            let request =
                if below(&mut rng, 3) == 0 { Request::write(lbn, sectors) } else { Request::read(lbn, sectors) };
            let at = disk.serve_one(now, &request).at_ns;
            assert!(at > now, "every request takes time");
            times.push(at);
            now = at + below(&mut rng, 30_000_000);
        }
        times
    };
    for refinement in [Refinement::Seek, Refinement::Rotation, Refinement::Cache, Refinement::Full] {
        assert_eq!(run(refinement), run(refinement));
    }
    assert_ne!(run(Refinement::Rotation), run(Refinement::Full));
}

#[test]
fn the_queue_and_the_direct_path_agree() {
    let mut direct = QueuedDisk::new(Disk::new(spec("dec-rz26")));
    let mut queued = direct.clone();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut now = 0;
    for tag in 0..500 {
        let request = Request::read(below(&mut rng, 2_000_000), 16);
        let served = direct.serve(now, request).unwrap().at_ns;
        queued.submit(now, tag, request).unwrap();
        let event = queued.next_event_ns().unwrap();
        let mut done = Vec::new();
        queued.poll(event, &mut done);
        assert_eq!(done, [Completion { tag, at_ns: served, durable: true }]);
        now = served + below(&mut rng, 20_000_000);
    }
}

#[test]
fn a_serpentine_disk_goes_on_on_the_same_surface() {
    let mut serpentine = spec("hp-97560");
    serpentine.head_order = HeadOrder::SerpentineInZone;
    let disk = Disk::new(serpentine);
    let cylinder = 19 * 72;
    for (lbn, cylinder, head) in
        [(0, 0, 0), (cylinder - 1, 0, 18), (cylinder, 1, 18), (2 * cylinder - 1, 1, 0), (2 * cylinder, 2, 0)]
    {
        let place = disk.geometry().place(Lbn(lbn)).unwrap();
        assert_eq!((place.cylinder, place.head), (cylinder as u32, head), "block {lbn}");
        assert_eq!(disk.geometry().block(place), Some(Lbn(lbn)));
    }
    // Zones of odd length: by the disk's cylinders a zone may begin backwards.
    let mut zoned = spec("st32430n");
    zoned.head_order = HeadOrder::Serpentine;
    let disk = Disk::new(zoned);
    for zone in disk.geometry().zones() {
        let place = disk.geometry().place(zone.first_lbn).unwrap();
        assert_eq!(place.head, if zone.first_cylinder % 2 == 0 { 0 } else { 8 });
        assert_eq!(disk.geometry().block(place), Some(zone.first_lbn));
    }
}

/// The responses of writes, each after a pause, on a drive that reports them from its buffer.
fn written_ms(change: impl Fn(&mut DiskSpec), lbns: &[u64]) -> Vec<f64> {
    let mut buffered = spec("st32171w");
    change(&mut buffered);
    let (mut disk, mut now) = (Disk::new(buffered), 0);
    let serve = |lbn: &u64| {
        let at_ns = disk.serve_one(now, &Request::write(*lbn, 8)).at_ns;
        let ms = (at_ns - now) as f64 / 1e6;
        now = at_ns + 100_000_000;
        (ms * 1e4).round() / 1e4
    };
    lbns.iter().map(serve).collect()
}

#[test]
fn overheads_of_writes_may_depend_on_the_buffer_and_on_the_arm() {
    let data = 8.0 * 0.1027;
    let usual = 0.9141 + data;
    // A track has 186 sectors, a cylinder 5 tracks: goes on, same track, another track, next cylinder, far away, and
    // again there.
    let lbns = [0, 8, 40, 300, 1100, 2_000_000, 2_000_008];
    let same = written_ms(|_| {}, &lbns);
    assert!(same[1..].iter().all(|ms| (ms - usual).abs() < 1e-3), "{same:?}");
    let misses = written_ms(|s| s.controller.write_miss_after_write_ms = Some(2.0), &lbns);
    let miss = 2.0 + data;
    for (n, expected) in [(1, usual), (2, miss), (3, miss), (4, miss), (5, miss), (6, usual)] {
        assert!((misses[n] - expected).abs() < 1e-3, "write {n}: {misses:?}");
    }
    let moves = written_ms(|s| s.controller.write_move_after_write = vec![(0, 3.0), (1, 4.0), (50, 5.0)], &lbns);
    for (n, expected) in [(1, usual), (2, usual), (3, 3.0 + data), (4, 4.0 + data), (5, 5.0 + data), (6, usual)] {
        assert!((moves[n] - expected).abs() < 1e-3, "write {n}: {moves:?}");
    }
}

#[test]
fn a_hit_elsewhere_may_cost_more_than_one_that_goes_on() {
    let mut drive = spec("hp-97560");
    drive.controller.read_hit_elsewhere_ms = Some(5.0);
    let (mut disk, mut now) = (Disk::new(drive), 0);
    let mut read_ms = |lbn| {
        let at_ns = disk.serve_one(now, &Request::read(lbn, 8)).at_ns;
        let ms = (at_ns - now) as f64 / 1e6;
        now = at_ns + 100_000_000;
        ms
    };
    read_ms(0);
    let (on, over, again) = (read_ms(8), read_ms(32), read_ms(40));
    assert!((over - on - 2.8).abs() < 1e-6 && on == again, "{on} {over} {again}");
}

#[test]
fn what_is_out_of_order_in_moves_is_refused() {
    let text = device::catalogue().iter().find(|(key, _)| *key == "hp-97560").unwrap().1;
    for (moves, taken) in
        [("[[0, 1.0], [4, 2.0]]", true), ("[[1, 1.0]]", false), ("[[0, 1.0], [0, 2.0]]", false), ("[[0, -1.0]]", false)]
    {
        let text =
            text.replace("[disk.controller]\n", &format!("[disk.controller]\nwrite_move_after_read = {moves}\n"));
        let drive = Drive::parse("d", "d.toml", &text);
        assert_eq!(drive.is_ok(), taken, "{moves}");
        assert!(taken || drive.unwrap_err().to_string().contains("disk.controller.write_move_after_read"));
    }
}

#[test]
fn some_blocks_lose_revolutions_and_always_the_same() {
    let mut weak = spec("hp-97560");
    weak.retry_share = 0.05;
    weak.retry_revolutions = 2;
    let lbns: Vec<u64> = (0..600).map(|n| n * 4001).collect();
    let times = |spec: &DiskSpec| -> Vec<u64> {
        let (mut disk, mut now) = (Disk::new(spec.clone()), 0);
        let mut read = |lbn: &u64| {
            let at_ns = disk.serve_one(now, &Request::read(*lbn, 1)).at_ns;
            let ns = at_ns - now;
            now = at_ns;
            ns
        };
        lbns.iter().map(&mut read).collect()
    };
    let (sound, found) = (times(&spec("hp-97560")), times(&weak));
    assert_eq!(found, times(&weak));
    let lost_ns = 2 * weak.revolution_ns();
    let lost = sound.iter().zip(&found).filter(|(sound, found)| **found == **sound + lost_ns).count();
    let same = sound.iter().zip(&found).filter(|(sound, found)| sound == found).count();
    assert!((10..60).contains(&lost) && lost + same == 600, "{lost} lost, {same} as before");
}

#[test]
fn seeks_inward_may_take_longer_and_settling_may_vary() {
    let mut drive = spec("hp-97560");
    let plain = Disk::new(drive.clone());
    drive.seek.inward_by_distance = vec![(1, 1.0), (100, 3.0)];
    drive.seek.write_settle_spread_by_distance = vec![(1, 2.0)];
    let disk = Disk::new(drive);
    let more_ms = |from: u32, to: u32, write: bool| {
        let ns = |disk: &Disk| disk.seek().move_ns((from, 0), (to, 0), write) as f64;
        (ns(&disk) - ns(&plain)) / 1e6
    };
    assert!((more_ms(500, 600, false) - 3.0).abs() < 1e-6 && more_ms(600, 500, false) == 0.0);
    assert!((more_ms(500, 501, false) - 1.0).abs() < 1e-6);
    let settled: Vec<f64> = (0..200).map(|n| more_ms(600 + n, 500, true)).collect();
    let mean = settled.iter().sum::<f64>() / 200.0;
    assert!(settled.iter().all(|ms| (0.0..2.0).contains(ms)) && (mean - 1.0).abs() < 0.15, "{mean}");
    assert_eq!(more_ms(700, 500, true), more_ms(700, 500, true));
}
