//! DiskSim's parameters as drives: its own files against its own traces, the grammar, and damaged files.

use crate::damaged::damage;
use device::import::{ImportError, Imported, import, import_with};
use device::validate::{read_trace, validate};
use device::{Drive, Model, Request};
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::path::Path;

fn fixture(name: &str) -> String {
    String::from_utf8(testkit::fixture::unpacked(&format!("drives/{name}"))).unwrap()
}

/// Imports a file of a directory that is in memory.
fn in_memory(files: &BTreeMap<String, String>, name: &str) -> Result<Imported, ImportError> {
    let read = |path: &Path| {
        let name = path.to_string_lossy();
        files.get(&*name).cloned().ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))
    };
    import_with(Path::new(name), None, None, &read)
}

/// A `.parv` around a `.diskspecs`, with what such a file has besides, and the bus of DiskSim's validation.
fn parv(diskspecs: &str, disk: &str, bus_ms: [f64; 2]) -> String {
    format!(
        "disksim_global Global {{ Init Seed = 42, Stat definition file = statdefs }}\n\
         disksim_bus BUS1 {{ type = 1, # one after the other\n  Arbitration type = 1, Arbitration time = 0.0,\n\
         Read block transfer time = {}, Write block transfer time = {}, Print stats = 1 }}\n\
         source {diskspecs}\n\
         instantiate [ statfoo ] as Stats\ninstantiate [ disk0 .. disk1 ] as {disk}\n\
         topology disksim_iodriver driver0 [ disksim_bus bus1 [ disksim_disk disk0 [] ] ]\n",
        bus_ms[0], bus_ms[1]
    )
}

/// The hand-written drive, its files, the name in them, the bus, the trace, and the demerit that DiskSim 4.0 has with
/// these parameters.
type Case = (&'static str, [&'static str; 3], &'static str, [f64; 2], &'static str, f64);

/// Its simulator is another, and what was extracted for the hand-written drives is not in the files: twice its demerit
/// is allowed.
const DRIVES: [Case; 4] = [
    (
        "hp-c2247a",
        ["hp_c2247a.diskspecs", "hp_c2247a_validate.model", ""],
        "HP_C2247A_validate",
        [0.1701, 0.18686],
        "hp_c2247a.trace",
        0.089,
    ),
    (
        "dec-rz26",
        ["dec_rz26.diskspecs", "dec_rz26_validate.model", "dec_rz26_validate.seek"],
        "DEC_RZ26_validate",
        [0.07069, 0.07069],
        "dec_rz26.trace",
        0.341,
    ),
    (
        "st39102lw",
        ["cheetah9LP.diskspecs", "cheetah9LP.model", "cheetah9LP.seek"],
        "SEAGATE_ST39102LW_validate",
        [0.0, 0.0],
        "cheetah9LP.trace",
        0.107,
    ),
    (
        "st32171w",
        ["barracuda.diskspecs", "barracuda.model", "barracuda.seek"],
        "SEAGATE_ST32171W",
        [0.0, 0.0],
        "barracuda.trace",
        0.348,
    ),
];

#[test]
fn disksim_s_own_drives_have_the_geometry_of_those_written_by_hand() {
    let d = tempfile::tempdir().unwrap();
    for (key, files, disk, bus_ms, trace, disksim_ms) in DRIVES {
        for file in files.iter().filter(|file| !file.is_empty()) {
            std::fs::write(d.path().join(file), fixture(file)).unwrap();
        }
        let path = d.path().join(format!("{key}.parv"));
        std::fs::write(&path, parv(files[0], disk, bus_ms)).unwrap();
        let imported = import(&path, None, None).unwrap();
        let (Model::Disk(ours), Model::Disk(theirs)) = (Drive::find(key).unwrap().model, &imported.drive.model) else {
            panic!("{key} is a disk")
        };
        assert_eq!((ours.heads, ours.rpm, ours.sparing), (theirs.heads, theirs.rpm, theirs.sparing), "{key}");
        assert_eq!(ours.capacity_sectors, theirs.capacity_sectors, "{key}");
        assert_eq!(ours.zones, theirs.zones, "{key}");
        assert_eq!((&ours.seek.table, ours.seek.short), (&theirs.seek.table, theirs.seek.short), "{key}");
        assert_eq!(ours.seek.knee_cylinders, theirs.seek.knee_cylinders, "{key}");
        assert_eq!(imported.drive.name, disk);
        assert!(imported.warnings.iter().any(|warning| warning.contains("disksim_global")), "{:?}", imported.warnings);

        let trace = read_trace(&testkit::fixture::unpack(&format!("drives/{trace}"), d.path())).unwrap();
        let ms = validate(key, disk, theirs, &trace).unwrap().compared.demerit_ns / 1e6;
        println!("{key}: imported {ms:.3} ms, DiskSim {disksim_ms} ms");
        assert!(ms <= 2.0 * disksim_ms, "{key}: demerit {ms} ms");
    }
}

/// A small disk in one file.
fn small() -> String {
    let mut text = fixture("hp_c2247a.diskspecs");
    let model = fixture("hp_c2247a_validate.model");
    text = text.replace(
        "source hp_c2247a_validate.model",
        model.trim().trim_end_matches("# end of HP_C2247A_validate_model spec"),
    );
    text
}

fn files(text: String) -> BTreeMap<String, String> {
    [("d/small.parv".to_owned(), text)].into()
}

/// Stands for the line of what was changed.
const HERE: &str = "line of the change";

#[test]
fn what_is_missing_or_wrong_is_named_with_file_and_line() {
    let whole = small();
    assert!(in_memory(&files(whole.clone()), "d/small.parv").is_ok());
    for (from, to, words) in [
        ("Never disconnect = 0,", "", &["line 1:", "disksim_disk HP_C2247A_validate", "\"Never disconnect\""][..]),
        ("Never disconnect = 0,", "Never disconnect = 2,", &[HERE, "Never disconnect = 2", "0 to 1"]),
        ("Never disconnect = 0,", "Never disconnect = 0", &[HERE, "missing"]),
        ("Never disconnect = 0,", "Never disconnect 0,", &[HERE, "'='"]),
        ("Never disconnect = 0,", "Never disconnect = source,", &[HERE, "source"]),
        ("Never disconnect = 0,", "Never disconnect = source no.file,", &["d/no.file", HERE]),
        ("Never disconnect = 0,", "Never disconnect = 0, Never disconnect = 1,", &[HERE, "second time"]),
        ("Model = dm_layout_g1 {", "Model = dm_layout_g2 {", &["dm_layout_g2", "not read"]),
        ("Seek type = hplplus10", "Seek type = extracted", &["dm_mech_g1 has no \"Full seek curve\""]),
        ("Seek type = hplplus10", "Seek type = best", &["Seek type = best"]),
        ("Blocks per track = 96,", "Blocks per track = -96,", &["Blocks per track = -96"]),
        ("Blocks per track = 96,", "", &["dm_layout_g1_zone has no \"Blocks per track\""]),
        ("Number of spares = 325,", "Number of spares = 3,", &["disk.zones[0].slips"]),
        ("disksim_disk HP", "disksim_disc HP", &["no disksim_disk"]),
        ("468,", "468.5,", &["whole numbers"]),
        ("468,", "many,", &["many", "a number"]),
    ] {
        assert!(whole.contains(from), "{from:?} is there");
        let line = whole[..whole.find(from).unwrap()].matches('\n').count() + 1;
        let here = format!("line {line}");
        let error = in_memory(&files(whole.replacen(from, to, 1)), "d/small.parv");
        let message = error.err().unwrap_or_else(|| panic!("{from:?} → {to:?} is taken")).to_string();
        for word in ["d/"].iter().chain(words).map(|word| if *word == HERE { &here } else { *word }) {
            assert!(message.contains(word), "{from:?} → {to:?}: {message:?} names {word}");
        }
    }
}

#[test]
fn what_the_model_lacks_is_said_and_what_it_has_is_not() {
    let taken = in_memory(&files(small()), "d/small.parv").unwrap();
    let about = |key: &str, warnings: &[String]| warnings.iter().filter(|warning| warning.contains(key)).count();
    assert_eq!(about("Low (write) water mark", &taken.warnings), 1, "{:?}", taken.warnings);
    assert_eq!(about("no disksim_bus", &taken.warnings), 1);
    for key in ["overhead", "over. after", "Segment size", "Print stats", "Scheduling policy", "Sparing", "slips"] {
        assert_eq!(about(key, &taken.warnings), 0, "{key} in {:?}", taken.warnings);
    }
    for (from, to, key) in [
        ("Print stats = 1", "Print stats = 1, Spin up by = hand", "Spin up by = hand"),
        ("Preseeking level = 0", "Preseeking level = 2", "Preseeking level = 2"),
        ("Fast write level = 0", "Fast write level = 1", "Fast write level = 1"),
        ("Scheduling policy = 1", "Scheduling policy = 14", "Scheduling policy = 14"),
        ("defects = []", "defects = [ 4, 5 ]", "defects = a list of 2"),
        ("Sparing scheme used = 1", "Sparing scheme used = 4", "Sparing scheme used = 4"),
        ("Skew for track switch = 14", "Skew for track switch = 14.25", "Skew for track switch = 14.25"),
        ("Percent error in rpms = 0.000000", "Percent error in rpms = 1", "Percent error in rpms = 1"),
    ] {
        let text = small();
        assert!(text.contains(from), "{from:?} is there");
        // Spare tracks are many; as sectors of a cylinder they must hold the slips.
        match in_memory(&files(text.replacen(from, to, 1)), "d/small.parv") {
            Ok(taken) => assert_eq!(about(key, &taken.warnings), 1, "{key} in {:?}", taken.warnings),
            Err(error) => assert!(error.to_string().contains("slips"), "{error}"),
        }
    }
}

#[test]
fn the_grammar_is_that_of_libparam() {
    // A block that inherits from one before it, a list of keys, skews in revolutions, and a serpentine order.
    let text = small().replace("disksim_disk HP_C2247A_validate {", "disksim_disk BASE {")
        + "\nBASE MINE { Read hit over. after read = 0.5, [ Print, Prints ] = 1 }\ninstantiate [ disk0 ] as MINE";
    let text = text
        .replace("LBN-to-PBN mapping scheme = 0", "LBN-to-PBN mapping scheme = 2")
        .replacen("Skew for track switch = 14", "Skew units = revolutions, Skew for track switch = 0.5", 1)
        .replacen("Skew for cylinder switch = 32", "Skew for cylinder switch = 0.25", 1);
    let taken = in_memory(&files(text.clone()), "d/small.parv").unwrap();
    let Model::Disk(spec) = &taken.drive.model else { panic!("a disk") };
    assert_eq!(spec.controller.read_hit_after_read_ms, 0.5);
    assert_eq!(spec.controller.read_hit_after_write_ms, 0.95343);
    assert_eq!((spec.zones[0].track_skew_sectors, spec.zones[0].cylinder_skew_sectors), (48, 24));
    assert_eq!(spec.head_order, device::disk::spec::HeadOrder::Serpentine);
    // Without the instance there are two.
    let two = text.replace("instantiate [ disk0 ] as MINE", "");
    let error = in_memory(&files(two.clone()), "d/small.parv").unwrap_err().to_string();
    assert!(error.contains("BASE, MINE") && error.contains("--disk"), "{error}");
    let all = files(two);
    let read = |path: &Path| Ok(all[&*path.to_string_lossy()].clone());
    assert!(import_with(Path::new("d/small.parv"), None, Some("BASE"), &read).is_ok());
    let error = import_with(Path::new("d/small.parv"), None, Some("OURS"), &read).unwrap_err().to_string();
    assert!(error.contains("OURS") && error.contains("MINE"), "{error}");
    // A file that includes itself, and blocks without end.
    let error = in_memory(&files("source small.parv".to_owned()), "d/small.parv").unwrap_err().to_string();
    assert!(error.contains("deep"), "{error}");
    let error = in_memory(&files("a b { c = ".to_owned() + &"d { e = ".repeat(1000)), "d/small.parv").unwrap_err();
    assert!(error.to_string().contains("nested"), "{error}");
}

#[test]
fn curves_of_every_kind_are_taken() {
    let seek_ms = |from: &str, to: &str| -> Vec<f64> {
        let text = small().replace(from, to).replace("Average seek time = 1.100000", "Average seek time = 8.0");
        let text = text
            .replace("Single cylinder seek time = 0.200000", "Single cylinder seek time = 2.0, Constant seek time = 7")
            .replace("Full strobe seek time = 2.300000", "Full strobe seek time = 16.0");
        let Model::Disk(spec) = in_memory(&files(text), "d/small.parv").unwrap().drive.model else { panic!("a disk") };
        let disk = device::disk::Disk::new(*spec);
        [1, 5, 299, 300, 683, 2050].map(|d| disk.seek().distance_ns(d) as f64 / 1e6).into()
    };
    let near = |found: Vec<f64>, expected: [f64; 6]| {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 0.02, "{found}, expected {expected}");
        }
    };
    let by_root = |d: f64| 3.81 + 0.33 * d.sqrt();
    let by_line = |d: f64| 7.75 + 0.0059 * d;
    let long = [by_root(299.0), by_line(300.0), by_line(683.0), by_line(2050.0)];
    near(seek_ms("hplplus10", "hplplus10"), [2.89, 4.27, long[0], long[1], long[2], long[3]]);
    near(seek_ms("hplplus10", "hpl"), [by_root(1.0), by_root(5.0), long[0], long[1], long[2], long[3]]);
    near(seek_ms("hplplus10", "constant"), [7.0; 6]);
    let line = |d: f64| 2.0 + 6.0 * (d - 1.0) / 682.0;
    near(seek_ms("hplplus10", "linear"), [2.0, line(5.0), line(299.0), line(300.0), 8.0, 16.0]);
    let curve = seek_ms("hplplus10", "curve");
    assert!((curve[0] - 2.0).abs() < 1e-6 && (curve[5] - 16.0).abs() < 0.05, "{curve:?}");
    assert!(curve.is_sorted(), "{curve:?}");
}

#[test]
fn damaged_parameters_are_refused_or_a_drive() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2001);
    let (specs, model, seek) = (fixture("barracuda.diskspecs"), fixture("barracuda.model"), fixture("barracuda.seek"));
    let mut taken = 0;
    for round in 0..300 {
        let mut texts =
            [parv("s.diskspecs", "SEAGATE_ST32171W", [0.1, 0.1]), specs.clone(), model.clone(), seek.clone()];
        let which = round % texts.len();
        texts[which] = damage(&texts[which], &mut rng);
        let names = ["a.parv", "s.diskspecs", "barracuda.model", "barracuda.seek"];
        let files = names.iter().map(|name| (*name).to_owned()).zip(texts).collect();
        let Ok(imported) = in_memory(&files, "a.parv") else { continue };
        taken += 1;
        let mut device = imported.drive.device();
        let done = device.serve(0, Request::read(device.capacity_sectors() - 1, 1)).unwrap();
        device.serve(done.at_ns, Request::write(0, 1)).unwrap();
    }
    assert!((20..290).contains(&taken), "{taken} damaged files were still drives");
}
