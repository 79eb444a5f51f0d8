//! System profiles as files: what is written is read back, what is wrong is refused with its place.

use fault::{Fault as _, Kind};
use posix::{CacheState, Environment};
use proptest::prelude::*;
use std::path::Path;
use system::{
    CachePolicy, Entry, FORMAT_VERSION, Parameters, PriceTable, Reuse, SyncBeside, SystemProfile, SystemProfileError,
    WriteLoad,
};

fn sample() -> SystemProfile {
    let entry = |mean: f64| Entry {
        mean_ns: mean,
        low_ns: mean * 0.9,
        high_ns: mean * 1.1,
        samples: 1000,
        quantiles_ns: (1..=10).map(|i| mean * f64::from(i) / 5.0).collect(),
        rounds_ns: vec![mean * 0.95, mean * 1.05],
        reuse: Some(Reuse { distance: 12.5, power: 0.125 }),
        cache: Some(CacheState::Cold),
    };
    let mut profile = SystemProfile {
        format_version: FORMAT_VERSION,
        name: "ext4 \"quoted\"\nname".to_owned(),
        provenance: "fsage 0.1.0, seed 7".to_owned(),
        measured_unix_s: 1_800_000_000,
        environment: Environment { target: "ext4:4G".to_owned(), used_share: 0.25, cpus: 2, ..Environment::default() },
        parameters: Parameters { data_cache_bytes: 1 << 34, writeback_bytes_per_s: 1.5e9, ..Parameters::default() },
        write_load: vec![
            WriteLoad { load_bytes_per_s: 0.0, time_s: 1.0, slowdown: 1.0 },
            WriteLoad { load_bytes_per_s: 1e6, time_s: 1.25, slowdown: 1.25 },
        ],
        sync_beside: vec![SyncBeside { others: 1, slowdown: 1.5 }, SyncBeside { others: 7, slowdown: 4.5 }],
        ..SystemProfile::default()
    };
    for (name, mean) in [("open", 1523.2), ("rdc_4096", 800.1), ("rdc_65536", 9000.0), ("rdc_1", 250.0)] {
        profile.entries.insert(name.to_owned(), entry(mean));
    }
    profile.missing.insert("rdd".to_owned(), "O_DIRECT is refused (EINVAL)".to_owned());
    profile
}

fn parse(text: &str) -> Result<SystemProfile, SystemProfileError> {
    SystemProfile::parse(text, Path::new("x.system"))
}

fn refusal(text: &str) -> String {
    parse(text).expect_err("must be refused").to_string()
}

#[test]
fn round_trip_through_a_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("a.system");
    let profile = sample();
    profile.save(&path).expect("saved");
    let first = std::fs::read(&path).expect("read");
    let loaded = SystemProfile::load(&path).expect("loaded");
    assert_eq!(loaded, profile);
    loaded.save(&path).expect("saved again");
    assert_eq!(std::fs::read(&path).expect("read"), first, "same profile, same bytes");
    assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 1, "nothing is left beside it");
    let text = String::from_utf8(first).expect("text");
    let at = |needle: &str| text.find(needle).unwrap_or_else(|| panic!("{needle} in {text}"));
    assert!(at("[entries.rdc_1]") < at("[entries.rdc_4096]") && at("[entries.rdc_4096]") < at("[entries.rdc_65536]"));
}

#[test]
fn written_by_hand() {
    let profile = parse(
        "format_version = 1\nname = \"a dream\"\n[parameters]\ndata_cache_bytes = 16_000_000_000\n\
         [entries]\nopen = \"1.5us\"\nrm_0 = { mean_ns = 1500 }\n",
    )
    .expect("a short profile");
    assert_eq!(profile.entries["open"], Entry::exactly(1500.0));
    assert_eq!(profile.entries["rm_0"].high_ns, 1500.0);
    assert_eq!(profile.parameters.block_bytes, 4096);
}

#[test]
fn refusals_name_the_place() {
    assert_eq!(
        refusal("format_version = 1\nname = \"x\"\n[entries]\n  opne = \"1us\"\n"),
        "x.system:4:3: \"opne\" is not an entry of the system vector; did you mean \"open\"?"
    );
    assert!(
        refusal("format_version = 2\nshape = \"new\"\n")
            .contains("version 2; this fsage reads version 1 (use the fsage")
    );
    assert!(refusal("format_version = 0\n").contains("measure again"));
    assert!(refusal("name = \"x\"\n").contains("missing field `format_version`"));
    let unit = refusal("format_version = 1\nname = \"x\"\n[entries]\nopen = \"15\"\n");
    assert!(unit.starts_with("x.system:4:") && unit.contains("unit"), "{unit}");
    let kind = refusal("format_version = 1\nname = \"x\"\n[entries]\nopen = 15\n");
    assert!(kind.starts_with("x.system:4:") && kind.contains("a duration"), "{kind}");
    let field = refusal("format_version = 1\nname = \"x\"\n[entries]\nopen = { mean = 1 }\n");
    assert!(field.starts_with("x.system:4:") && field.contains("mean_ns"), "{field}");
    let half = refusal("format_version = 1\nname = \"x\"\n[entries]\nopen = { mean_ns = 1.0, reuse_power = 0.1 }\n");
    assert!(half.starts_with("x.system:4:") && half.contains("go together"), "{half}");
    let near = "format_version = 1\nname = \"x\"\n[entries]\n\
                open = { mean_ns = 1.0, reuse_distance = 0.5, reuse_power = 0.1 }\n";
    assert!(refusal(near).contains("reuse_distance must be at least 1"), "{}", refusal(near));
    let parameter = refusal("format_version = 1\nname = \"x\"\n\n[parameters]\nbc = 4\n");
    assert!(parameter.starts_with("x.system:5:") && parameter.contains("unknown field `bc`"), "{parameter}");
    assert!(
        refusal("format_version = 1\nname = \"x\"\n[entries]\nopen = { mean_ns = nan }\n").contains("entries.open")
    );
    assert!(
        refusal("format_version = 1\nname = \"x\"\n[entries]\nopen = \"1us\"\nopen = \"2us\"\n")
            .starts_with("x.system:5:")
    );
    // The same point written twice in different ways.
    assert!(refusal("format_version = 1\nname = \"x\"\n[entries]\nrdc_04096 = \"1us\"\n").contains("rdc_4096"));
    assert!(refusal("format_version = 1\nname = \"x\"\n[entries]\nopen_4096 = \"1us\"\n").contains("did you mean"));
    let load = "format_version = 1\nname = \"x\"\nwrite_load = [{ load_bytes_per_s = 1, time_s = 1, slowdown = 1 }, \
                { load_bytes_per_s = 1, time_s = 1, slowdown = 1 }]\n";
    assert!(refusal(load).contains("loads must rise"));
    let beside = "format_version = 1\nname = \"x\"\nsync_beside = [{ others = 0, slowdown = 1 }]\n";
    assert!(refusal(beside).contains("numbers of others must rise, from 1 on"));
}

#[test]
fn syncs_beside_others_are_between_the_points_that_were_measured() {
    let profile = sample();
    let slowdowns = [0, 1, 4, 7, 100].map(|others| profile.sync_slowdown(others));
    assert_eq!(slowdowns, [1.0, 1.5, 3.0, 4.5, 4.5]);
    assert_eq!(SystemProfile::default().sync_slowdown(5), 1.0, "nothing was measured");
}

/// A policy is a word of the profile's; without one it is least recently used, and none is written.
#[test]
fn a_profile_names_what_its_cache_evicts() {
    let text = |policy: &str| format!("format_version = 1\nname = \"x\"\n[parameters]\n{policy}\n[entries]\n");
    let parse = |policy: &str| SystemProfile::parse(&text(policy), Path::new("x.system"));
    for policy in CachePolicy::ALL {
        let profile = parse(&format!("cache_policy = \"{}\"", policy.name())).expect("a profile");
        assert_eq!(profile.parameters.cache_policy, policy);
        let written = profile.to_text().expect("valid");
        assert_eq!(written.contains("cache_policy"), policy != CachePolicy::Lru, "{written}");
        assert_eq!(SystemProfile::parse(&written, Path::new("x.system")).expect("read back"), profile);
    }
    assert_eq!(parse("").expect("a profile").parameters.cache_policy, CachePolicy::Lru);
    let error = parse("cache_policy = \"random\"").expect_err("no policy").to_string();
    assert!(error.contains("x.system") && error.contains("random") && error.contains("s3-fifo"), "{error}");
}

#[test]
fn files_that_are_no_text_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("a.system");
    std::fs::write(&path, b"format_version = 1\n\xff\xfe").expect("written");
    let error = SystemProfile::load(&path).expect_err("refused").to_string();
    assert!(error.contains("a.system:2:1: not UTF-8"), "{error}");
    let missing = SystemProfile::load(&dir.path().join("none.system")).expect_err("refused");
    assert_eq!(missing.kind(), Kind::BadInput);
}

proptest! {
    /// A damaged profile is read or refused, and never anything worse.
    #[test]
    fn damage_never_panics(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>()) {
        let mut bytes = sample().to_text().expect("valid").into_bytes();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(profile) = parse(&String::from_utf8_lossy(&bytes)) {
            profile.to_text().expect("what is accepted can be written");
        }
    }

    /// Prices are sums of entries: doubling every entry doubles every price; and weights of a point add to one inside
    /// the measured range.
    #[test]
    fn prices_are_linear(costs in prop::collection::vec(0.0f64..1e6, 5), size in 0u64..10_000_000) {
        let sizes = [4096u64, 16384, 65536, 262144, 1048576];
        let profile = |factor: f64| {
            let mut p = SystemProfile { format_version: FORMAT_VERSION, ..SystemProfile::default() };
            for (size, cost) in sizes.iter().zip(&costs) {
                p.entries.insert(format!("rd_{size}"), Entry::exactly(cost * factor));
            }
            PriceTable::new(&p)
        };
        let (one, two) = (profile(1.0), profile(2.0));
        let price = one.price_ns(system::vector::Class::ReadSeq, size).expect("a price");
        prop_assert!(price >= 0.0);
        prop_assert!((two.price_ns(system::vector::Class::ReadSeq,
            size).expect("a price") - 2.0 * price).abs() <= 1e-9 * price.abs());
        let point = one.point(system::vector::Class::ReadSeq, size).expect("a point");
        if size <= sizes[4] {
            prop_assert!((point.terms().map(|t| t.weight).sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(point.terms().all(|t| t.weight >= 0.0));
        }
        if let Some(at) = sizes.iter().position(|&s| s == size) {
            prop_assert_eq!(price, costs[at]);
        }
    }
}

/// docs/formats.md describes every class of the vector, in its order and in its words.
#[test]
fn the_vector_is_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let docs = std::fs::read_to_string(docs).expect("docs/formats.md");
    let rows: String = system::vector::Class::ALL
        .iter()
        .map(|class| {
            let sizes: Vec<String> = class.points().iter().map(u64::to_string).collect();
            format!("| `{}` | {} | {} |\n", class.name(), class.meaning().trim(), sizes.join(" "))
        })
        .collect();
    assert!(docs.contains(&rows), "the table of classes in docs/formats.md should be:\n{rows}");
}
