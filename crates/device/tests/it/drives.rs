//! The drives' files: all that come with the program hold together, and what is wrong in one is said with file and key.

use device::{Drive, DriveError, Model, catalogue};

#[test]
fn every_drive_of_the_catalogue_is_whole() {
    for (key, _) in catalogue() {
        let drive = Drive::find(key).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(drive.key, *key);
        assert!(!drive.figures.is_empty(), "{key} has figures");
        let device = drive.device();
        assert!(device.capacity_sectors() > 1_000_000, "{key}: {} sectors", device.capacity_sectors());
    }
}

#[test]
fn capacities_are_those_of_the_data_sheets() {
    let expected = [
        ("hp-97560", 1962 * 19 * 72),
        ("hp-c2247a", 2_054_864),
        ("dec-rz26", 2_050_860),
        ("fujitsu-m2694", 2_117_187),
        ("st32430n", 4_197_405),
        ("st32171w", 4_110_000),
        ("st39102lw", 17_783_240),
    ];
    for (key, sectors) in expected {
        assert_eq!(Drive::find(key).unwrap().device().capacity_sectors(), sectors, "{key}");
    }
}

#[test]
fn mean_seeks_are_those_published() {
    for (key, mean_ms, tolerance_ms) in [
        ("hp-97560", 12.8, 0.1),
        ("hp-c2247a", 11.5, 0.1),
        ("dec-rz26", 10.5, 0.1),
        ("fujitsu-m2694", 10.0, 0.02),
        ("st32430n", 11.0, 0.02),
        ("st32171w", 9.33, 0.1),
        ("st39102lw", 5.47, 0.05),
        ("nearline-7200", 7.45, 0.05),
    ] {
        let Model::Disk(spec) = Drive::find(key).unwrap().model else { panic!("{key} is a disk") };
        let disk = device::disk::Disk::new(*spec);
        let mean = disk.seek().mean_ns() / 1e6;
        assert!((mean - mean_ms).abs() < tolerance_ms, "{key}: {mean} ms, published {mean_ms}");
    }
}

fn edited(key: &str, from: &str, to: &str) -> Result<Drive, DriveError> {
    let text = catalogue().iter().find(|(k, _)| *k == key).unwrap().1;
    assert!(text.contains(from), "{key} has {from:?}");
    Drive::parse(key, "my/drive.toml", &text.replacen(from, to, 1))
}

#[test]
fn errors_name_file_and_key() {
    let cases = [
        ("hp-97560", "rpm = 4002.0", "rpm = 4002.0\nspeed = 3", &["my/drive.toml", "speed", "line"][..]),
        ("hp-97560", "rpm = 4002.0", "", &["my/drive.toml", "rpm"]),
        ("hp-97560", "rpm = 4002.0", "rpm = \"fast\"", &["my/drive.toml", "rpm"]),
        ("hp-97560", "rpm = 4002.0", "rpm = 0.0", &["my/drive.toml", "disk.rpm"]),
        ("hp-97560", "rpm = 4002.0", "rpm = nan", &["my/drive.toml", "disk.rpm"]),
        ("hp-97560", "[0, 1961]", "[1961, 0]", &["my/drive.toml", "disk.zones[0].cylinders"]),
        ("hp-97560", "head_switch_ms = 1.6", "head_switch_ms = -1.6", &["my/drive.toml", "disk.seek.head_switch_ms"]),
        ("hp-97560", "\"disk\" =", "\"disk.seek\" =", &["my/drive.toml", "has no source"]),
        ("hp-97560", "[sources]", "[sources]\n\"disk.sek\" = \"x\"", &["my/drive.toml", "disk.sek"]),
        ("hp-c2247a", "spares = 325", "spares = 3", &["my/drive.toml", "disk.zones[0].slips"]),
        (
            "ssd-nvme",
            "over_provisioning = 0.07",
            "over_provisioning = 0.0",
            &["my/drive.toml", "ssd.over_provisioning"],
        ),
        ("ssd-nvme", "mapping_bytes = 4096", "mapping_bytes = 4095", &["my/drive.toml", "ssd.mapping_bytes"]),
        ("ssd-nvme", "[ssd]", "[sdd]", &["my/drive.toml", "sdd"]),
    ];
    for (key, from, to, words) in cases {
        let message =
            edited(key, from, to).err().unwrap_or_else(|| panic!("{key}: {from:?} → {to:?} is taken")).to_string();
        for word in words {
            assert!(message.contains(word), "{message:?} names {word}");
        }
    }
}

/// The words in back-quotes after "expected" in what TOML says about an unknown key or value.
fn expected(message: &str) -> Vec<String> {
    let words = message.split_once("expected").unwrap_or_else(|| panic!("{message}")).1;
    words.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_key_and_value_of_a_file_is_on_the_page() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/drives.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = |heading: &str| -> &str {
        let text = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{heading} is there")).1;
        text.split("\n#").next().unwrap()
    };
    // Where an unknown key goes, and the section that has those that are known.
    for (key, from, heading) in [
        ("hp-97560", "[disk]\n", "## `[disk]`"),
        ("hp-97560", "[[disk.zones]]\n", "## `[[disk.zones]]`"),
        ("hp-97560", "[disk.seek]\n", "## `[disk.seek]`"),
        ("hp-97560", "[disk.controller]\n", "## `[disk.controller]`"),
        ("hp-c2247a", "[disk.controller.extra_write_disconnect]\n", "### `[disk.controller.extra_write_disconnect]`"),
        ("hp-97560", "[disk.cache]\n", "## `[disk.cache]`"),
        ("hp-97560", "[disk.bus]\n", "## `[disk.bus]`"),
        ("ssd-sata", "[ssd]\n", "## `[ssd]`"),
        ("hp-97560", "name =", "## The top"),
    ] {
        let to =
            if from.starts_with('[') { format!("{from}no_such_key = 1\n") } else { format!("no_such_key = 1\n{from}") };
        let keys = expected(&edited(key, from, &to).unwrap_err().to_string());
        assert!(keys.len() > 3, "{from}: {keys:?}");
        let rows: Vec<&str> = section(heading)
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| line.split('|').nth(1).unwrap())
            .collect();
        for key in &keys {
            assert!(rows.iter().any(|row| row.contains(&format!("`{key}`"))), "{heading} has no row of {key}");
        }
        // The other way round: nothing is there that a file cannot have.
        for row in rows {
            for word in row.split('`').skip(1).step_by(2) {
                assert!(keys.iter().any(|key| key == word) || word == "base", "{heading}: {word} is no key");
            }
        }
    }
    for (from, to) in [
        ("[disk]\n", "[disk]\nsparing = 'x'\n"),
        ("[disk]\n", "[disk]\nhead_order = 'x'\n"),
        ("scheduler = \"fcfs\"", "scheduler = 'x'"),
        ("read_ahead = \"segment\"", "read_ahead = 'x'"),
        ("write_report = \"medium\"", "write_report = 'x'"),
    ] {
        let text = catalogue().iter().find(|(k, _)| *k == "hp-97560").unwrap().1;
        let (from, to) = if text.contains(from) {
            (from, to.to_owned())
        } else {
            let table = if from.starts_with("sch") { "[disk.controller]\n" } else { "[disk.cache]\n" };
            (table, format!("{table}{to}\n"))
        };
        for value in expected(&edited("hp-97560", from, &to).unwrap_err().to_string()) {
            assert!(page.contains(&format!("`{value}`")), "{to}: {value} is not on the page");
        }
    }
}

#[test]
fn traps_are_warned_of_and_no_drive_that_comes_along_has_one() {
    for (key, _) in catalogue() {
        assert_eq!(Drive::find(key).unwrap().warnings, [""; 0], "{key}");
    }
    for (key, from, to, words) in [
        (
            "hp-97560",
            "read_ahead_sectors = 128",
            "read_ahead_sectors = 257",
            &["disk.cache.read_ahead_sectors", "257", "drops"][..],
        ),
        ("dec-rz26", "read_ahead_sectors = 57", "read_ahead_sectors = 0", &["0 is no limit", "116", "57"]),
        ("hp-97560", "read_ahead = \"segment\"", "read_ahead = \"none\"", &["no effect"]),
        (
            "hp-97560",
            "[disk.controller]\n",
            "[disk.controller]\nscheduler = \"sptf\"\n",
            &["disk.controller.scheduler"],
        ),
        ("dec-rz26", "capacity_sectors = 2050860", "capacity_sectors = 3050860", &["disk.capacity_sectors", "3050860"]),
        (
            "hp-97560",
            "track_skew_sectors = 8",
            "track_skew_sectors = 7",
            &["disk.zones[0].track_skew_sectors", "revolution"],
        ),
        (
            "hp-97560",
            "cylinder_skew_sectors = 18",
            "cylinder_skew_sectors = 17",
            &["disk.zones[0].cylinder_skew_sectors"],
        ),
    ] {
        let warnings = edited(key, from, to).map(|drive| drive.warnings);
        let warnings = warnings.unwrap_or_else(|error| panic!("{from} → {to}: {error}"));
        assert_eq!(warnings.len(), 1, "{from} → {to}: {warnings:?}");
        for word in ["my/drive.toml"].iter().chain(words) {
            assert!(warnings[0].contains(word), "{:?} names {word}", warnings[0]);
        }
    }
}

#[test]
fn what_is_written_is_read_as_the_same() {
    for (key, _) in catalogue() {
        let drive = Drive::find(key).unwrap();
        let Model::Disk(spec) = &drive.model else { continue };
        let sources = [("disk".to_owned(), "a test".to_owned())].into();
        let text = device::written(&drive.name, "\"quoted\"\nand broken", &["a\nb".to_owned()], spec, &sources);
        let again = Drive::parse(key, "written.toml", &text).unwrap_or_else(|error| panic!("{key}: {error}\n{text}"));
        let Model::Disk(read) = &again.model else { panic!("{key} is a disk") };
        assert_eq!(spec, read, "{key}");
        assert_eq!(again.summary, "\"quoted\"\nand broken");
        assert!(text.lines().all(|line| line.len() < 140), "{key}: long lines");
    }
}

#[test]
fn a_file_may_give_only_what_differs_from_a_base() {
    let faster = "name = 'Mine'\nbase = 'hp-97560'\n[sources]\n'disk.rpm' = 'me'\n[disk]\nrpm = 7200.0\n";
    let drive = Drive::parse("mine", "mine.toml", faster).unwrap();
    let Model::Disk(spec) = &drive.model else { panic!("a disk") };
    assert_eq!((drive.name.as_str(), spec.rpm, spec.heads), ("Mine", 7200.0, 19));
    assert!(drive.figures.iter().any(|figure| figure.key == "disk.rpm" && figure.source == "me"));
    for (from, to, word) in [
        ("hp-97560", "hp-97561", "base"),
        ("hp-97560", "st39102lw-uw", "has a base itself"),
        ("'hp-97560'", "3", "base"),
        ("rpm = 7200.0", "rmp = 7200.0", "rmp"),
        ("rpm = 7200.0", "rpm = -1.0", "disk.rpm"),
    ] {
        let message = Drive::parse("m", "mine.toml", &faster.replace(from, to)).unwrap_err().to_string();
        assert!(message.contains("mine.toml") && message.contains(word), "{message}");
    }
}

#[test]
fn an_unknown_drive_is_told_from_a_missing_file() {
    let unknown = Drive::find("st99999x").unwrap_err();
    assert!(unknown.to_string().contains("st39102lw"), "{unknown}");
    let missing = Drive::find("./no-such-drive.toml").unwrap_err();
    assert!(matches!(missing, DriveError::Io { .. }), "{missing}");
}
