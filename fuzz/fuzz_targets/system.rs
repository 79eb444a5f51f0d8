//! System profiles: a measured one with a few of its values changed is refused, or read, written, and read as the same.

#![no_main]

#[path = "common/documents.rs"]
mod documents;

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use system::SystemProfile;
use predict::pipeline::{InMemory, PredictOptions, predict};
use std::path::Path;
use trace::profile::Row;
use trace::{Batch, OfdId, Op, flag};

const SYSTEMS: [&str; 2] = [include_str!("../../profiles/ext4.system"), include_str!("../../profiles/btrfs.system")];

/// A small workload that asks for most entries.
fn workload() -> InMemory {
    let mut batch = Batch::default();
    for (n, op) in (0..).zip(Op::ALL.iter().cycle().take(4 * Op::ALL.len())) {
        let path = Some(batch.paths.intern(format!("/d{}/f{}", n % 3, n % 7).as_bytes()));
        let ofd = Some(OfdId(n % 5));
        let flags = if n % 2 == 0 { flag::WRITE | flag::CREATE } else { flag::READ };
        let (offset, req_bytes) = (Some(n * 4096), Some(4096));
        let row = Row {
            path,
            path2: path,
            ofd,
            flags,
            offset,
            req_bytes,
            ret: 4096,
            ..Row::new(n, n, *op)
        };
        batch.events.push(row.into());
    }
    InMemory { batches: vec![batch], ..InMemory::default() }
}

fuzz_target!(|input: &[u8]| {
    let Some(text) = documents::changed_toml(&SYSTEMS, &mut Unstructured::new(input)) else { return };
    let Ok(system) = SystemProfile::parse(&text, Path::new("x.system")) else { return };
    let options = PredictOptions { min_coverage: 0.0, ..PredictOptions::default() };
    let _ = predict(&workload(), &[system], &options);
});
