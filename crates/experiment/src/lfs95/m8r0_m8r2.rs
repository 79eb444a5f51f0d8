//! FFS by file size, tuned for reading and for writing: no gap between clusters, or one of 4 ms.

use super::{DRIVE, MACHINE, file_system, laboratory};
use crate::testbed::{AtSize, Sequential, sequential};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use workload::Phase;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/m8r0-m8r2",
    title: "Sequential throughput by file size, FFS with and without a rotational gap between clusters",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 3",
    runs: "the sequential benchmark on an empty FFS with rotdelay 0 (m8r0) and one with rotdelay 4 ms (m8r2)",
    run,
};

const K: u64 = 1 << 10;
const MIB: f64 = (1 << 20) as f64;
const SIZE_BYTES: u64 = 512 << 20;
/// Of m8r2, milliseconds.
const ROTDELAY_MS: u32 = 4;
/// What large files are taken from.
const LARGE: u64 = 4096 * K;

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let sizes: &[u64] = bench.pick(&[K, 64 * K, 96 * K, 104 * K, LARGE], &workload::seqfile::SIZES_BYTES);
    let with = Sequential {
        data_bytes: bench.pick(4 << 20, 32 << 20),
        files_per_directory: 100,
        piece_bytes: 1 << 20,
        until: Phase::Delete,
    };
    let mut on = |name: &str, rotdelay_ms| {
        sequential(bench, name, &file_system(SIZE_BYTES, rotdelay_ms)?, laboratory, sizes, with)
    };
    let (m8r0, m8r2) = (on("m8r0", 0)?, on("m8r2", ROTDELAY_MS)?);
    let mut outcome = Outcome::new();
    let shape = format!("{} MiB, 8 KiB blocks, maxcontig 8, rotdelay 0 and {ROTDELAY_MS} ms", SIZE_BYTES >> 20);
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter("file systems", shape)
        .parameter("data", format!("{} MiB of each size, 100 files a directory", with.data_bytes >> 20));
    large_files(&mut outcome, &m8r0, &m8r2);
    first_indirect_block(&mut outcome, &m8r0, &m8r2);
    for (phase, unit, y) in [
        (Phase::Create, MIB, "MiB/s"),
        (Phase::Read, MIB, "MiB/s"),
        (Phase::Overwrite, MIB, "MiB/s"),
        (Phase::Delete, 1.0, "files/s"),
    ] {
        let curve =
            |found: &[AtSize]| found.iter().map(|at| (at.size_bytes as f64, at.rate(phase) / unit)).collect::<Vec<_>>();
        outcome.figure(Figure {
            name: phase.name().to_owned(),
            title: format!("{} by file size", phase.name()),
            x: Axis::Bytes("file size".to_owned()),
            y: Axis::Number(y.to_owned()),
            series: vec![Series::new("m8r0", curve(&m8r0)), Series::new("m8r2", curve(&m8r2))],
        });
    }
    Ok(outcome)
}

fn at(found: &[AtSize], size: u64, phase: Phase) -> f64 {
    found.iter().find(|at| at.size_bytes == size).map_or(0.0, |at| at.rate(phase))
}

fn large_files(outcome: &mut Outcome, m8r0: &[AtSize], m8r2: &[AtSize]) {
    for (name, phase, gains) in [("written", Phase::Create, true), ("read", Phase::Read, false)] {
        let (without, with) = (at(m8r0, LARGE, phase), at(m8r2, LARGE, phase));
        let what = format!("4 MB files {name}, m8r2 over m8r0");
        let ratio = with / without.max(f64::MIN_POSITIVE);
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, ratio, Explain::Agrees));
        let (what, holds) = match gains {
            true => ("large files: the gap makes writing faster", with > without),
            false => ("large files: the gap makes reading slower", with < without),
        };
        let seen = format!("{:.2} MiB/s with a gap, {:.2} without", with / MIB, without / MIB);
        outcome.claim(Claim::new(what, holds, seen, Explain::Agrees));
    }
}

fn first_indirect_block(outcome: &mut Outcome, m8r0: &[AtSize], m8r2: &[AtSize]) {
    let step = |found: &[AtSize], phase| at(found, 104 * K, phase) / at(found, 96 * K, phase).max(f64::MIN_POSITIVE);
    let (one, other) = (step(m8r0, Phase::Delete), step(m8r2, Phase::Delete));
    outcome.claim(Claim::new(
        "delete: a sudden drop when the first indirect block appears (above 96 KB)",
        one < 0.75 && other < 0.75,
        format!("files/s at 104 KB over 96 KB: {one:.2} and {other:.2}"),
        Explain::Agrees,
    ));
    let read = step(m8r0, Phase::Read);
    outcome.claim(Claim::new(
        "read: slower where the first indirect block takes the file to another cylinder group",
        read < 1.0,
        format!("at 104 KB {read:.2} of the throughput at 96 KB"),
        Explain::Agrees,
    ));
}
