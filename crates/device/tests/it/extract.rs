//! Fits: what was put into a model is found again from its own responses, and the second half of a trace plays no part.

use device::disk::spec::DiskSpec;
use device::disk::{Disk, Refinement};
use device::extract::{Effort, Extraction, Start, extract, file, guess};
use device::validate::{Traced, parse_trace, replay};
use device::{Drive, Model, Request};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

fn spec(key: &str) -> DiskSpec {
    let Model::Disk(spec) = Drive::find(key).unwrap().model else { panic!("{key} is a disk") };
    *spec
}

/// Requests with the responses of a model: half of them go on where the one before ended.
fn traced(spec: &DiskSpec, requests: usize, seed: u64) -> Vec<Traced> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |n: u64| rng.next_u64() % n;
    let capacity = Disk::new(spec.clone()).geometry().capacity_sectors();
    let mut end = 0;
    let mut trace: Vec<Traced> = (0..requests)
        .map(|_| {
            let sectors = 2 + 2 * below(8);
            let lbn = if below(2) == 0 && end + 64 < capacity { end } else { below(capacity - 64) };
            end = lbn + sectors;
            let sectors = sectors as u32;
            let request = if below(3) == 0 { Request::write(lbn, sectors) } else { Request::read(lbn, sectors) };
            Traced { request, response_ns: 0, think_ns: below(30_000_000) }
        })
        .collect();
    let modelled = replay(spec, Refinement::Full, &trace).unwrap();
    for (traced, response_ns) in trace.iter_mut().zip(modelled.response_ns) {
        traced.response_ns = response_ns;
    }
    trace
}

fn run(start: &DiskSpec, trace: &[Traced], models: u64) -> (DiskSpec, Extraction) {
    extract("start", start, trace, Effort { seed: 1, models, starts: 1 }, &mut |_| {}).unwrap()
}

#[test]
fn figures_that_were_changed_are_found_again() {
    let truth = spec("hp-97560");
    let trace = traced(&truth, 800, 7);
    let mut start = truth.clone();
    start.controller.read_miss_after_read_ms += 0.6;
    start.controller.read_hit_after_read_ms -= 0.5;
    start.controller.write_after_write_ms += 0.8;
    start.bus.read_sector_ms *= 1.3;
    let (found, extraction) = run(&start, &trace, 1000);
    let [first, second] = extraction.after.half_demerit_ns;
    // The second half was not seen, and judges.
    let before = extraction.before.half_demerit_ns;
    assert!(first < before[0] / 3.0 && second < before[1] / 2.0, "{extraction:?}");
    // What stands before the data and what stands behind them cannot be told apart.
    let hit_ms = found.controller.read_hit_after_read_ms + found.controller.read_completion_ms;
    assert!((hit_ms - 2.2).abs() < 0.15, "{:?}", found.controller);
    assert!((found.bus.read_sector_ms - 0.0512).abs() < 0.01, "{:?}", found.bus);
    assert!(extraction.changes.iter().any(|change| change.key == "disk.bus.read_sector_ms"));

    // Its file is the same disk, and says which figures were fitted.
    let drive = Drive::find("hp-97560").unwrap();
    let text = file("fitted", &Start::from(&drive), &found, &extraction, "a.trace");
    let again = Drive::parse("fitted", "fitted.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let Model::Disk(read) = &again.model else { panic!("a disk") };
    assert_eq!(**read, found);
    let figure = |key: &str| again.figures.iter().find(|figure| figure.key == key).unwrap();
    assert!(figure("disk.bus.read_sector_ms").estimate && figure("disk.bus.read_sector_ms").source.contains("a.trace"));
    assert!(!figure("disk.heads").source.contains("a.trace"));
}

#[test]
fn the_second_half_plays_no_part_in_the_fit() {
    let truth = spec("hp-97560");
    let mut trace = traced(&truth, 400, 3);
    let mut start = truth.clone();
    start.controller.read_miss_after_read_ms += 0.6;
    let (found, before) = run(&start, &trace, 300);
    for traced in &mut trace[200..] {
        traced.response_ns += 5_000_000;
    }
    let (again, after) = run(&start, &trace, 300);
    assert_eq!(found, again);
    assert_eq!(before.after.half_demerit_ns[0], after.after.half_demerit_ns[0]);
    assert!(after.after.half_demerit_ns[1] > before.after.half_demerit_ns[1] + 3e6);
}

#[test]
fn a_guess_takes_every_trace() {
    for text in [
        "R Hit 0 1 1 1\nW Hit 5 1 1 1\n",
        "R Hit 9000000000 4000 1 1\nR Hit 7 4 1 1\n",
        "W Hit 1 1 1 1\nW Hit 1 1 1 1\nR Hit 1000000 8 15000 1\n",
    ] {
        let trace = parse_trace("t", text).unwrap();
        let start = guess(&trace);
        let (found, extraction) = run(&start, &trace, 30);
        let text = file("guessed", &Start::guessed(), &found, &extraction, "t");
        Drive::parse("d", "d", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
