//! Four phases by file size: the log against the Fast File System, tuned for reading and for writing.

use super::{DRIVE, MACHINE, file_system};
use crate::alloc96::EPOCH_NS;
use crate::parallel::each;
use crate::testbed::{AtSize, Sequential, at_size, faster};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use device::Drive;
use kernel::{Lab, Machine, Setup};
use lab::Spec;
use workload::Phase;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/file-size",
    title: "Create, read, overwrite and delete by file size: LFS against FFS",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 3, figures 1 to 4",
    runs: "32 MB cut into files of each size, on a new file system for each: LFS without its cleaner, FFS with rotdelay 0 (m8r0) and \
           with rotdelay 4 ms (m8r2)",
    run,
};

const K: u64 = 1 << 10;
const MIB: f64 = (1 << 20) as f64;
const SIZE_BYTES: u64 = 512 << 20;
/// The log: blocks as those of FFS, segments as the publication has them, a cleaner that never runs.
const LFS: &str = "lfs:cleaner=off,bsize=8K,fsize=1K,segment=1M,idle=0,size=512M";

/// How much slower than the computer the publication's may have been. Estimate: a workstation of some 20 SPECint92 against 120.
const SLOWER: f64 = 6.0;

/// Powers of two, and around the cluster, the first indirect block, and the changes of cylinder group.
const SIZES_KB: [u64; 29] = [
    1, 2, 4, 8, 16, 32, 56, 64, 72, 88, 96, 104, 112, 128, 192, 248, 256, 264, 512, 960, 1024, 1088, 2048, 3072, 4096,
    5120, 8192, 16384, 32768,
];
/// Those of the quick scale.
const QUICK_KB: [u64; 8] = [1, 8, 64, 96, 104, 256, 1024, 4096];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    Lfs,
    M8r0,
    M8r2,
}

impl System {
    const ALL: [System; 3] = [System::Lfs, System::M8r0, System::M8r2];

    fn name(self) -> &'static str {
        match self {
            System::Lfs => "LFS",
            System::M8r0 => "FFS m8r0",
            System::M8r2 => "FFS m8r2",
        }
    }

    fn at(self, size_bytes: u64, machine: Machine, with: Sequential, seed: u64) -> Result<AtSize, ExperimentError> {
        let gap_ms = if self == System::M8r2 { 4 } else { 0 };
        match self {
            System::Lfs => {
                let mut lab = Spec::parse(&format!("{LFS}@{DRIVE}"))?.open_on(machine)?;
                at_size(&mut *lab, size_bytes, with, seed)
            }
            System::M8r0 | System::M8r2 => {
                let volume = file_system(SIZE_BYTES, gap_ms)?;
                let (target, drive) = (format!("ffs:{}@{DRIVE}", volume.choices()), DRIVE.to_owned());
                let setup = Setup { machine, target, drive, epoch_ns: EPOCH_NS };
                at_size(&mut Lab::new(volume, Drive::find(DRIVE)?.device(), setup)?, size_bytes, with, seed)
            }
        }
    }
}

/// All three by size.
struct Curves(Vec<(System, u64, AtSize)>);

impl Curves {
    fn rate(&self, system: System, kb: u64, phase: Phase) -> f64 {
        let found = self.0.iter().find(|(of, size, _)| (*of, *size) == (system, kb * K));
        found.map_or(f64::NAN, |(_, _, at)| at.rate(phase))
    }

    fn sizes_kb(&self, from_kb: u64, to_kb: u64) -> Vec<u64> {
        let sizes = self.0.iter().filter(|(system, ..)| *system == System::Lfs).map(|(_, size, _)| size / K);
        sizes.filter(|kb| (from_kb..=to_kb).contains(kb)).collect()
    }

    /// LFS over m8r0.
    fn lead(&self, phase: Phase, kb: u64) -> f64 {
        self.rate(System::Lfs, kb, phase) / self.rate(System::M8r0, kb, phase)
    }

    fn leads(&self, phase: Phase, from_kb: u64, to_kb: u64) -> Vec<f64> {
        self.sizes_kb(from_kb, to_kb).into_iter().map(|kb| self.lead(phase, kb)).collect()
    }

    fn points(&self, system: System, phase: Phase) -> Vec<(f64, f64)> {
        let unit = if phase == Phase::Delete { 1.0 } else { MIB };
        let own = self.0.iter().filter(|(of, ..)| *of == system);
        own.map(|(_, size, at)| (*size as f64, at.rate(phase) / unit)).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let sizes = bench.pick(QUICK_KB.as_slice(), SIZES_KB.as_slice());
    let with = Sequential { data_bytes: bench.pick(4 << 20, 32 << 20), files_per_directory: 100, piece_bytes: 1 << 20 };
    let seed = bench.seed();
    let points: Vec<(System, u64)> =
        System::ALL.iter().flat_map(|system| sizes.iter().map(|kb| (*system, kb * K))).collect();
    let found = each(bench, "by file size", &points, |(system, size)| {
        Ok((*system, *size, system.at(*size, Machine::load(MACHINE)?, with, seed)?))
    })?;
    let curves = Curves(found);
    let slow = each(bench, "with a slower processor", &[System::Lfs, System::M8r0], |system| {
        let found = system.at(K, faster(MACHINE, 1.0 / SLOWER)?, with, seed)?;
        Ok((*system, K, found))
    })?;
    let slow = Curves(slow);
    let mut outcome = Outcome::new();
    outcome
        .parameter("machine", MACHINE)
        .parameter("drive", DRIVE)
        .parameter(
            "FFS",
            "512 MiB, 8 KiB blocks, maxcontig 8, rotdelay 0 (m8r0) and 4 ms (m8r2), the original allocator",
        )
        .parameter("LFS", LFS)
        .parameter(
            "data",
            format!("{} MiB of each size, 100 files a directory, calls of 1 MiB", with.data_bytes >> 20),
        );
    create(&mut outcome, &curves, &slow);
    read(&mut outcome, &curves);
    overwrite(&mut outcome, &curves);
    delete(&mut outcome, &curves, &slow);
    large(&mut outcome, &curves);
    figures(&mut outcome, &curves);
    Ok(outcome)
}

/// Why LFS leads by more than was published where it waits for nothing but the processor.
const PROCESSOR: &str = "LFS makes and removes small files as fast as the processor goes, FFS as fast as its synchronous writes; the \
                         publication's computer was slower than this one, and a slower processor brings the ratio down";

fn ratio(what: &str, published: Option<Published>, ours: f64, explain: Explain) -> Row {
    Row::new(what, Unit::Ratio, published, ours, explain)
}

fn create(outcome: &mut Outcome, curves: &Curves, slow: &Curves) {
    let phase = Phase::Create;
    outcome.row(ratio(
        "create, 1 KB files: LFS over FFS",
        Published::about(10.0),
        curves.lead(phase, 1),
        Explain::because(PROCESSOR),
    ));
    outcome.row(ratio(
        &format!("the same with a processor {SLOWER} times as slow"),
        Published::NONE,
        slow.lead(phase, 1),
        Explain::Agrees,
    ));
    outcome.row(ratio(
        "create, 1 MB files: LFS over FFS",
        Published::about(1.0),
        curves.lead(phase, 1024),
        Explain::Agrees,
    ));
    let small = curves.leads(phase, 2, 64);
    outcome.claim(Claim::new(
        "create, 2 to 64 KB: LFS is 4 to 10 times as fast",
        least(&small) >= 4.0 && most(&small) <= 10.5,
        shown(curves, phase, &[2, 4, 8, 16, 32, 64]),
        Explain::because(
            "an FFS spends two synchronous writes, some 35 ms, on each file beside its data; LFS writes 64 KB in 40 ms, so that it cannot be \
             four times as fast there on this disk. Below 8 KB the processor decides, as for 1 KB",
        ),
    ));
    let sizes = [64, 104, 256, 1024];
    let steps: Vec<f64> = sizes.iter().map(|kb| curves.lead(phase, *kb)).collect();
    outcome.claim(Claim::new(
        "create: the lead declines from 64 KB to 1 MB",
        steps.is_sorted_by(|a, b| a > b),
        shown(curves, phase, &sizes),
        Explain::because(
            "it does up to 96 KB and from 104 KB on; in between FFS falls by a third, as the first indirect block takes the file to another \
             cylinder group, which LFS does not notice",
        ),
    ));
}

fn read(outcome: &mut Outcome, curves: &Curves) {
    let phase = Phase::Read;
    let of = |from, to| mean(&curves.leads(phase, from, to));
    outcome.row(ratio(
        "read, up to 64 KB: LFS over FFS",
        Published::about(1.0),
        of(1, 64),
        Explain::because(
            "it is 0.9 to 1.1 from 16 KB on; smaller files of a directory follow one another in the log, inodes among them, while FFS has its \
             inodes apart, and puts first blocks into the nearest rotational position instead of behind one another",
        ),
    ));
    outcome.row(ratio("read, 104 KB to 2 MB: LFS over FFS", Published::NONE, of(104, 2048), Explain::Agrees));
    outcome.row(ratio("read, from 4 MB: LFS over FFS", Published::about(1.0), of(4096, 1 << 20), Explain::Agrees));
    let middle = curves.leads(phase, 104, 2048);
    outcome.claim(Claim::new(
        "read, above 64 KB and to some 2 MB: LFS leads",
        least(&middle) > 1.0,
        format!("{:.2} to {:.2} times", least(&middle), most(&middle)),
        Explain::Agrees,
    ));
}

fn overwrite(outcome: &mut Outcome, curves: &Curves) {
    let (small, created) = (mean(&curves.leads(Phase::Overwrite, 1, 64)), mean(&curves.leads(Phase::Create, 1, 64)));
    outcome.row(ratio("overwrite, up to 64 KB: LFS over FFS", Published::NONE, small, Explain::Agrees));
    outcome.claim(Claim::new(
        "overwrite is closer than create",
        small < created,
        format!("up to 64 KB {small:.2} times, create {created:.2}"),
        Explain::Agrees,
    ));
    let sizes = curves.sizes_kb(1, 1 << 20);
    let ffs_from = sizes.into_iter().rev().take_while(|kb| curves.lead(Phase::Overwrite, *kb) < 1.0).last();
    outcome.row(Row::new(
        "overwrite: FFS leads from this size on",
        Unit::Bytes,
        Published::about((256 * K) as f64),
        ffs_from.map_or(0.0, |kb| (kb * K) as f64),
        Explain::because(
            "the two are within a tenth from 192 KB on, so that the crossing is easily moved; FFS loses more at the first indirect block than LFS, \
             and it takes until 512 KB to make up for that",
        ),
    ));
    let before = curves.leads(Phase::Overwrite, 1, 248);
    outcome.claim(Claim::new(
        "overwrite: LFS leads up to 256 KB",
        least(&before) >= 1.0,
        format!("{:.2} to {:.2} times below 256 KB", least(&before), most(&before)),
        Explain::because(
            "at 56 and 64 KB a file of FFS is one cluster, which one request writes; there it leads by 3 to 8 per cent",
        ),
    ));
}

fn shown(curves: &Curves, phase: Phase, sizes_kb: &[u64]) -> String {
    let one = |kb: &u64| format!("{kb} KB {:.2}", curves.lead(phase, *kb));
    sizes_kb.iter().filter(|kb| curves.lead(phase, **kb).is_finite()).map(one).collect::<Vec<_>>().join(", ")
}

fn delete(outcome: &mut Outcome, curves: &Curves, slow: &Curves) {
    let phase = Phase::Delete;
    let of = |from, to| mean(&curves.leads(phase, from, to));
    outcome.row(ratio(
        "delete, up to 64 KB: LFS over FFS",
        Published::about(10.0),
        of(1, 64),
        Explain::because(PROCESSOR),
    ));
    outcome.row(ratio(
        &format!("delete, 1 KB, a processor {SLOWER} times as slow: LFS over FFS"),
        Published::NONE,
        slow.lead(phase, 1),
        Explain::Agrees,
    ));
    outcome
        .row(ratio(
            "delete, 1 MB: LFS over FFS",
            Published::about(3.5),
            curves.lead(phase, 1024),
            Explain::because(
                "the quick run has four such files; writing back what they leave takes longer than removing them",
            ),
        ))
        .row(ratio(
            "delete, from 4 MB (8 files and fewer): LFS over FFS",
            Published::NONE,
            of(4096, 1 << 20),
            Explain::Agrees,
        ));
    let drop = |system| curves.rate(system, 104, phase) / curves.rate(system, 96, phase);
    let (lfs, ffs) = (drop(System::Lfs), drop(System::M8r0));
    outcome.claim(Claim::new(
        "delete: a sudden drop for both when the first indirect block appears (above 96 KB)",
        lfs < 0.75 && ffs < 0.75,
        format!("files a second at 104 KB over 96 KB: LFS {lfs:.2}, FFS {ffs:.2}"),
        Explain::Agrees,
    ));
}

fn large(outcome: &mut Outcome, curves: &Curves) {
    let sizes = curves.sizes_kb(4096, 1 << 20);
    let of = |phase| {
        let one = |kb: &u64| curves.rate(System::M8r2, *kb, phase) / curves.rate(System::Lfs, *kb, phase);
        mean(&sizes.iter().map(one).collect::<Vec<_>>())
    };
    let row = |what, published, phase| ratio(what, Published::about(published), of(phase), Explain::Agrees);
    outcome.row(row("large files written, FFS m8r2 over LFS", 1.15, Phase::Create)).row(row(
        "large files read, FFS m8r2 over LFS",
        0.75,
        Phase::Read,
    ));
}

fn figures(outcome: &mut Outcome, curves: &Curves) {
    for (phase, y) in
        [(Phase::Create, "MiB/s"), (Phase::Read, "MiB/s"), (Phase::Overwrite, "MiB/s"), (Phase::Delete, "files/s")]
    {
        let series = System::ALL.iter().map(|system| Series::new(system.name(), curves.points(*system, phase)));
        outcome.figure(Figure {
            name: phase.name().to_owned(),
            title: format!("{} by file size, {y}.", phase.name()),
            x: Axis::Bytes("file size".to_owned()),
            y: Axis::Number(y.to_owned()),
            series: series.collect(),
        });
    }
}
