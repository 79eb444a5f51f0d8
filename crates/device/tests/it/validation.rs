//! Disk models against the measurements of DiskSim 4.0, and the readers against damaged input.

use crate::damaged::damage;
use device::validate::{Quantiles, Traced, demerit_ns, demerit_up_to_ns, parse_trace, read_trace, validate};
use device::{Device as _, Drive, Model, Request, catalogue};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Drive, trace, and the demerit figure of DiskSim 4.0 on it, in ms.
const BARS: [(&str, &str, f64); 4] = [
    ("hp-c2247a", "hp_c2247a.trace", 0.089),
    ("dec-rz26", "dec_rz26.trace", 0.341),
    ("st39102lw", "cheetah9LP.trace", 0.107),
    ("st32171w", "barracuda.trace", 0.348),
];

#[test]
fn demerits_are_at_or_below_those_of_disksim() {
    let d = tempfile::tempdir().unwrap();
    for (key, trace, bar_ms) in BARS {
        let drive = Drive::find(key).unwrap();
        let Model::Disk(spec) = &drive.model else { panic!("{key} is a disk") };
        let trace = read_trace(&testkit::fixture::unpack(&format!("drives/{trace}"), d.path())).unwrap();
        let validation = validate(key, &drive.name, spec, &trace).unwrap();
        let ms = validation.compared.demerit_ns / 1e6;
        assert!(ms <= bar_ms, "{key}: demerit {ms} ms, DiskSim 4.0 has {bar_ms}");
        assert!((0.0..=1.0).contains(&validation.close_share));
        let first = validation.ladder.first().unwrap().demerit_ns;
        assert!(
            validation.ladder.iter().all(|rung| rung.demerit_ns <= first),
            "{key}: no step is worse than a constant"
        );
        assert_eq!(validation.ladder.last().unwrap().demerit_ns, validation.compared.demerit_ns);
        assert_eq!(validation.classes.iter().map(|class| class.compared.requests).sum::<u64>(), trace.len() as u64);
    }
}

#[test]
fn the_demerit_of_a_constant_is_the_standard_deviation_and_of_a_shift_the_shift() {
    let values: Vec<u64> = (0..10_000).map(|n| 1_000 + n).collect();
    let mean = vec![1_000 + 4_999; 1];
    let deviation = demerit_ns(&Quantiles::new(&values), &Quantiles::new(&mean));
    assert!((deviation - 10_000.0 / 12f64.sqrt()).abs() < 2.0, "{deviation}");
    let shifted: Vec<u64> = values.iter().map(|value| value + 300).collect();
    assert_eq!(demerit_ns(&Quantiles::new(&values), &Quantiles::new(&shifted)), 300.0);
    assert_eq!(demerit_ns(&Quantiles::new(&values), &Quantiles::new(&values)), 0.0);
}

#[test]
fn a_demerit_without_the_slowest_hundredth_has_nothing_of_it() {
    let values: Vec<u64> = (0..10_000).collect();
    let slower: Vec<u64> = values.iter().map(|value| if *value < 9_900 { value + 5 } else { value + 1_000 }).collect();
    let (a, b) = (Quantiles::new(&values), Quantiles::new(&slower));
    assert_eq!(demerit_up_to_ns(&a, &b, 0.99), 5.0);
    assert_eq!(demerit_ns(&a, &b), (0.99 * 25.0 + 0.01 * 1e6_f64).sqrt());
}

#[test]
fn a_trace_is_read_line_by_line() {
    let text = "R Hit    2992396   4  13670.00000  35942.00000\n\nW Trip 1205090 13 10133.390 19712.710\n";
    let read = Traced { request: Request::read(2_992_396, 4), response_ns: 13_670_000, think_ns: 35_942_000 };
    let write = Traced { request: Request::write(1_205_090, 13), response_ns: 10_133_390, think_ns: 19_712_710 };
    assert_eq!(parse_trace("t", text).unwrap(), [read, write]);
    for (text, word) in [
        ("", "no request"),
        ("R Hit 1 4 13\n", "line 1"),
        ("R Hit 1 4 1 1\nX Hit 1 4 1 1\n", "line 2"),
        ("R Hit -1 4 1 1\n", "LBN"),
        ("R Hit 1 4 nan 1\n", "RESPONSE"),
        ("R Hit 1 4 1 1e99\n", "THINK"),
    ] {
        let message = parse_trace("my.trace", text).unwrap_err().to_string();
        assert!(message.contains("my.trace") && message.contains(word), "{message}");
    }
}

#[test]
fn a_request_behind_the_drive_s_end_is_named() {
    let Model::Disk(spec) = Drive::find("hp-97560").unwrap().model else { panic!("a disk") };
    let trace = parse_trace("t", "R Hit 0 4 1 1\nR Hit 99999999 4 1 1\n").unwrap();
    assert_eq!(validate("k", "n", &spec, &trace).unwrap_err().0, 2);
}

#[test]
fn damaged_drives_are_refused_or_work() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2026);
    let mut taken = 0;
    // The nearline disk's seek table is long, and nothing in it differs in kind.
    let texts: Vec<&str> =
        catalogue().iter().filter(|(key, _)| !key.starts_with("nearline")).map(|(_, text)| *text).collect();
    for round in 0..400 {
        let text = damage(texts[round % texts.len()], &mut rng);
        let Ok(drive) = Drive::parse("d", "d", &text) else { continue };
        taken += 1;
        drive.describe();
        let mut device = drive.device();
        let (capacity, most) = (device.capacity_sectors(), device.max_transfer_sectors());
        let mut now = 0;
        for n in 0..20 {
            let lbn = rng.next_u64() % capacity;
            let sectors = (rng.next_u64() % 64 + 1).min(capacity - lbn).min(u64::from(most)) as u32;
            let request = if n % 2 == 0 { Request::write(lbn, sectors) } else { Request::read(lbn, sectors) };
            let done = device.serve(now, request).unwrap();
            assert!(done.at_ns >= now, "round {round}");
            now = done.at_ns;
        }
        device.serve(now, Request::flush()).unwrap();
    }
    assert!(taken > 20, "{taken} damaged drives were still drives");
}

#[test]
fn damaged_traces_are_refused_or_read() {
    let text: String = (0..50).map(|n| format!("R Hit {} 4 {}.5 {}\n", n * 8, n, n * 100)).collect();
    let Model::Disk(spec) = Drive::find("hp-97560").unwrap().model else { panic!("a disk") };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(77);
    let mut read = 0;
    for _ in 0..400 {
        if let Ok(trace) = parse_trace("t", &damage(&text, &mut rng)) {
            read += 1;
            let _ = validate("k", "n", &spec, &trace);
        }
    }
    assert!(read > 20, "{read} damaged traces were still traces");
}
