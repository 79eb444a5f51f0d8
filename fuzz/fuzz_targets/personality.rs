//! Personalities: one that comes with the program with a few of its values changed is refused, or planned from for a
//! day. A plan that is made is sound.

#![no_main]

#[path = "common/documents.rs"]
mod documents;

use aging::format::{Reader, Writer};
use aging::plan::PlannedFor;
use aging::plan::personality::{Churn, Options, Personality, plan};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

const PERSONALITIES: [&str; 4] = [
    include_str!("../../crates/aging/personalities/home.toml"),
    include_str!("../../crates/aging/personalities/mail.toml"),
    include_str!("../../crates/aging/personalities/database.toml"),
    include_str!("../../crates/aging/personalities/news.toml"),
];

fuzz_target!(|input: &[u8]| {
    let mut u = Unstructured::new(input);
    let Some(text) = documents::changed_toml(&PERSONALITIES, &mut u) else { return };
    let Ok(personality) = Personality::parse(Path::new("p.toml"), &text) else { return };
    let planned_for = PlannedFor { capacity_bytes: 16 << 20, block_bytes: 4096 };
    let options = Options {
        planned_for,
        days: 1,
        utilisation: None,
        fill: None,
        churn: Churn::OperationsPerDay(500.0),
        seed: u64::from(u.arbitrary::<u8>().unwrap_or(0)),
        input: None,
    };
    let path = std::env::temp_dir().join(format!("fsage-fuzz-{}.aging", std::process::id()));
    let mut writer = Writer::create(&path, planned_for.capacity_bytes, planned_for.block_bytes).expect("space");
    if let Ok(meta) = plan(&personality, &options, &mut writer, &mut |_| true)
        && writer.finish(meta).is_ok()
    {
        Reader::open(&path).and_then(|reader| reader.verify()).expect("our own plan is sound");
    }
});
