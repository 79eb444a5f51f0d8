//! Measurements of models: the figures found beside those that were put in, and devices that are no disks.

use device::disk::spec::DiskSpec;
use device::disk::{Disk, QueuedDisk};
use device::fixed::FixedDevice;
use device::measure::{Measurement, Modelled, Probe, measure};
use device::{Drive, Model};

fn spec(key: &str) -> DiskSpec {
    let Model::Disk(spec) = Drive::find(key).unwrap().model else { panic!("{key} is a disk") };
    *spec
}

fn measured(spec: &DiskSpec) -> Measurement {
    measure("a model", &mut Modelled::new(QueuedDisk::new(Disk::new(spec.clone()))), 1).unwrap()
}

#[test]
fn a_model_s_figures_are_found_by_reading_it() {
    for key in ["hp-97560", "st32430n", "nearline-7200"] {
        let truth = spec(key);
        let disk = Disk::new(truth.clone());
        let found = measured(&truth);
        assert!(found.arm, "{key}: {found:?}");
        let rotation = found.rotation.unwrap();
        assert!((rotation.rpm() / truth.rpm - 1.0).abs() < 0.002, "{key}: {} of {} rpm", rotation.rpm(), truth.rpm);
        assert_eq!(found.heads, truth.heads, "{key}: surfaces");
        let capacity = disk.geometry().capacity_sectors();
        for tracks in &found.tracks {
            let lbn = (tracks.place * capacity as f64) as u64;
            let zone = disk.geometry().zones().iter().find(|z| lbn < z.first_lbn.0 + z.lbns).unwrap();
            // A place may be read back into the zone before it.
            let off = (f64::from(tracks.sectors) / f64::from(zone.sectors_per_track) - 1.0).abs();
            assert!(off < 0.02, "{key}: {tracks:?}, {} sectors", zone.sectors_per_track);
        }
        for seek in &found.seeks {
            let true_ns = disk.seek().distance_ns(seek.cylinders) as f64;
            // Eighty random moments of a revolution leave an eightieth, and now and then several.
            let off_ms = (seek.seek_ns - true_ns) / 1e6;
            assert!(off_ms.abs() < 0.08 * rotation.revolution_ns / 1e6, "{key}: {seek:?}, put in {true_ns} ns");
        }
        let mean_off: f64 = found
            .seeks
            .iter()
            .map(|seek| (seek.seek_ns - disk.seek().distance_ns(seek.cylinders) as f64) / 1e6)
            .sum::<f64>()
            / found.seeks.len() as f64;
        assert!(mean_off.abs() < 0.02 * rotation.revolution_ns / 1e6, "{key}: seeks are {mean_off} ms off on average");
        let head_ms = found.head_switch_ns.unwrap() / 1e6;
        assert!((head_ms - truth.seek.head_switch_ms).abs() < 0.6, "{key}: head switch {head_ms}");
        let buffer = found.buffer;
        assert!(buffer.keeps, "{key}: {buffer:?}");
        assert!((buffer.sector_ns.unwrap() / 1e6 - truth.bus.read_sector_ms).abs() < 1e-4, "{key}: {buffer:?}");
        let hit_ms = truth.controller.read_hit_after_read_ms + truth.controller.read_completion_ms;
        assert!((buffer.hit_ns.unwrap() / 1e6 - hit_ms).abs() < 0.01, "{key}: {buffer:?}, {hit_ms} ms");
        assert_eq!(buffer.segments, Some(truth.cache.segments), "{key}");
        assert_eq!(buffer.read_ahead_sectors, Some(truth.cache.read_ahead_sectors), "{key}");
        let segment = f64::from(buffer.segment_sectors.unwrap());
        assert!((segment / f64::from(truth.cache.segment_sectors) - 1.0).abs() < 0.15, "{key}: {buffer:?}");

        // The file made of it is a drive that reads as the true one does.
        let drive =
            Drive::parse("m", "m.toml", &found.file().unwrap()).unwrap_or_else(|error| panic!("{key}: {error}"));
        let mean_ms = |device: Box<dyn device::Device>| {
            let mut probe = Modelled::new(device);
            let capacity = probe.capacity_sectors();
            let times = (1..400u64).map(|n| probe.read(n * 7919 * 104_729 % (capacity - 8), 8).unwrap());
            times.sum::<u64>() as f64 / 399.0 / 1e6
        };
        let (ours, theirs) = (mean_ms(drive.device()), mean_ms(Drive::find(key).unwrap().device()));
        assert!((ours / theirs - 1.0).abs() < 0.04, "{key}: {ours} ms, the model it was taken from {theirs} ms");
    }
}

#[test]
fn what_has_no_arm_is_said_to_have_none() {
    let flash = Drive::find("ssd-sata").unwrap();
    let found = measure("flash", &mut Modelled::new(flash.device()), 1).unwrap();
    assert!(!found.arm && found.file().is_none(), "{found:?}");
    // Each read takes the same time, as long as a disk's; or a random one.
    let fixed = FixedDevice::new(8 << 30, 9_000_000);
    let found = measure("fixed", &mut Modelled::new(fixed), 1).unwrap();
    assert!(!found.arm && found.file().is_none(), "{found:?}");
    for seed in 0..20 {
        let found = measure("noise", &mut Noise(seed), seed).unwrap();
        assert!(!found.arm && found.file().is_none(), "seed {seed}: {found:?}");
    }
    let small = FixedDevice::new(51_200, 9_000_000);
    let error = measure("small", &mut Modelled::new(small), 1).unwrap_err().to_string();
    assert!(error.contains("100 sectors"), "{error}");
}

/// A file on a busy virtual machine: times of no order.
struct Noise(u64);

impl Probe for Noise {
    fn sector_bytes(&self) -> u32 {
        4096
    }

    fn capacity_sectors(&self) -> u64 {
        1 << 20
    }

    fn read(&mut self, _: u64, _: u32) -> std::io::Result<u64> {
        self.0 = stats::random::mix(self.0, 1);
        Ok(50_000 + self.0 % 400_000)
    }

    fn rest(&mut self, _: u64) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_drive_that_drops_what_it_sent_is_told_by_what_it_reads_ahead() {
    let truth = spec("st32171w");
    let found = measured(&truth);
    assert!(found.arm && !found.buffer.keeps, "{found:?}");
    assert!(found.buffer.read_ahead_sectors.unwrap() > 100, "{:?}", found.buffer);
    let Model::Disk(file) = Drive::parse("m", "m", &found.file().unwrap()).unwrap().model else { panic!("a disk") };
    assert!(file.cache.drop_when_read);
}
