//! How many requests a second the device models serve, on one core.
//!
//! `device [--requests N] [--fill] [DRIVE…]`: seeded requests on every drive of the catalogue, or on those named:
//! random ones of 4 KB (one write in three) and sequential reads of 64 KB served directly, without a queue; then random
//! ones through a queue of 32. `--fill` also writes a flash drive full and once more at random, and prints memory and
//! write amplification. Prints requests per second of processor time and the peak resident set.

use anyhow::{Context, bail};
use device::disk::{Disk, QueuedDisk, Scheduler};
use device::ssd::Ssd;
use device::{Completion, Device, Drive, Model, Request, catalogue};
use fsage_benchmarks::{CommandLine, on_cpu_s, peak_resident_bytes};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

const SEED: u64 = 1;
const SECTORS: u32 = 8;

fn main() -> anyhow::Result<()> {
    let (mut requests, mut fill, mut drives) = (2_000_000u64, false, Vec::new());
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--requests" => requests = args.number()?,
            "--fill" => fill = true,
            flag if flag.starts_with('-') => bail!("usage: device [--requests N] [--fill] [DRIVE…]"),
            drive => drives.push(drive.to_owned()),
        }
    }
    if drives.is_empty() {
        drives = catalogue().iter().map(|(key, _)| (*key).to_owned()).collect();
    }
    for key in &drives {
        let drive = Drive::find(key)?;
        let random = rate(requests, || direct(drive.device().as_mut(), requests, random_request))?;
        let sequential = rate(requests, || direct(drive.device().as_mut(), requests, sequential_request))?;
        let queued = queued(&drive, requests / 20)?;
        println!(
            "{key}: without a queue {random:.2} M random requests/s, {sequential:.2} M sequential; queue of 32 \
             {queued:.3} M/s"
        );
        if let (true, Model::Ssd(spec)) = (fill, &drive.model) {
            fill_up(key, Ssd::new((**spec).clone()))?;
        }
    }
    println!("peak resident set {:.1} MB", peak_resident_bytes() as f64 / 1e6);
    Ok(())
}

/// Millions of requests a second of processor time.
fn rate(requests: u64, run: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let start_s = on_cpu_s();
    run()?;
    Ok(requests as f64 / 1e6 / (on_cpu_s() - start_s).max(1e-9))
}

fn random_request(n: u64, random: u64, capacity: u64) -> Request {
    let lbn = random % (capacity / u64::from(SECTORS)) * u64::from(SECTORS);
    if n.is_multiple_of(3) { Request::write(lbn, SECTORS) } else { Request::read(lbn, SECTORS) }
}

fn sequential_request(n: u64, _random: u64, capacity: u64) -> Request {
    Request::read(n * 128 % (capacity - 128), 128)
}

/// One after the other, each when the one before has completed.
fn direct(device: &mut dyn Device, requests: u64, request: impl Fn(u64, u64, u64) -> Request) -> anyhow::Result<()> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let capacity = device.capacity_sectors();
    let mut now_ns = 0;
    for n in 0..requests {
        now_ns = device.serve(now_ns, request(n, rng.next_u64(), capacity))?.at_ns;
    }
    Ok(())
}

/// Always 32 outstanding; disks choose by positioning time.
fn queued(drive: &Drive, requests: u64) -> anyhow::Result<f64> {
    let mut device: Box<dyn Device> = match &drive.model {
        Model::Disk(spec) => Box::new(QueuedDisk::with_scheduler(Disk::new((**spec).clone()), Scheduler::Sptf)),
        Model::Ssd(spec) => Box::new(Ssd::new((**spec).clone())),
    };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let capacity = device.capacity_sectors();
    let start_s = on_cpu_s();
    let mut done: Vec<Completion> = Vec::new();
    let (mut now_ns, mut submitted, mut completed) = (0, 0, 0);
    while completed < requests {
        while submitted < requests && submitted - completed < 32 {
            device.submit(now_ns, submitted, random_request(submitted, rng.next_u64(), capacity))?;
            submitted += 1;
        }
        now_ns = device.next_event_ns().context("requests are outstanding")?;
        device.poll(now_ns, &mut done);
        completed += done.len() as u64;
        done.clear();
    }
    Ok(requests as f64 / 1e6 / (on_cpu_s() - start_s).max(1e-9))
}

/// Writes every sector once, in order, then an eighth of the drive at random.
fn fill_up(key: &str, mut ssd: Ssd) -> anyhow::Result<()> {
    let capacity = ssd.capacity_sectors();
    let (mut now_ns, start_s) = (0, on_cpu_s());
    for n in 0..capacity / 256 {
        now_ns = ssd.serve(now_ns, Request::write(n * 256, 256))?.at_ns;
    }
    let filled_s = on_cpu_s() - start_s;
    let before = ssd.flash_counts().unwrap_or_default();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    for _ in 0..capacity / u64::from(SECTORS) / 8 {
        let lbn = rng.next_u64() % (capacity / u64::from(SECTORS)) * u64::from(SECTORS);
        now_ns = ssd.serve(now_ns, Request::write(lbn, SECTORS))?.at_ns;
    }
    let full = before.write_amplification();
    let random = (ssd.flash_counts().unwrap_or_default() - before).write_amplification();
    println!(
        "{key}: {:.0} GB written full in {filled_s:.1} s of processor time, write amplification {full:.3}; an eighth \
         of it overwritten at random {random:.2}; peak resident set {:.0} MB",
        capacity as f64 * f64::from(ssd.sector_bytes()) / 1e9,
        peak_resident_bytes() as f64 / 1e6
    );
    Ok(())
}
