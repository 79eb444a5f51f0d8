//! Four phases by file size: the log against the Fast File System, tuned for reading and for writing.

use super::{DRIVE, MACHINE, NEWFS_POSITIONS, POSITIONS, WORDS, file_system_with};
use crate::alloc96::EPOCH_NS;
use crate::parallel::each;
use crate::testbed::{AtSize, Sequential, at_size, faster};
use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Scale, Series, Unit,
};
use device::Drive;
use kernel::{Lab, Setup};
use lab::Spec;
use workload::Phase;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs95/file-size",
    title: "Create, read, overwrite and delete by file size: LFS against FFS",
    source: "Seltzer et al., File System Logging Versus Clustering, USENIX 1995, section 3, figures 1 to 4",
    runs: "32 MB cut into files of each size, on a new file system for each: LFS without its cleaner, FFS with \
           rotdelay 0 (m8r0) and with rotdelay 4 ms (m8r2)",
    run,
};

const K: u64 = 1 << 10;
const MIB: f64 = (1 << 20) as f64;
const SIZE_BYTES: u64 = 512 << 20;
/// The log: blocks as those of FFS, segments as the publication has them, a cleaner that never runs.
const LFS: &str = "lfs:cleaner=off,bsize=8K,fsize=1K,segment=1M,idle=0,size=512M";

/// Powers of two, and around the cluster, the first indirect block, and the changes of cylinder group.
const SIZES_KB: [u64; 29] = [
    1, 2, 4, 8, 16, 32, 56, 64, 72, 88, 96, 104, 112, 128, 192, 248, 256, 264, 512, 960, 1024, 1088, 2048, 3072, 4096,
    5120, 8192, 16384, 32768,
];
/// Those of the quick scale.
const QUICK_KB: [u64; 8] = [1, 56, 64, 96, 104, 256, 1024, 4096];

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

    fn at(self, size_bytes: u64, change: Change, with: Sequential, seed: u64) -> Result<AtSize, ExperimentError> {
        let machine = faster(MACHINE, change.speed())?;
        let gap_ms = if self == System::M8r2 { 4 } else { 0 };
        match self {
            System::Lfs => {
                let mut lab = Spec::parse(&format!("{LFS}@{DRIVE}"))?.open_on(machine)?;
                at_size(&mut *lab, size_bytes, with, seed)
            }
            System::M8r0 | System::M8r2 => {
                let volume = file_system_with(SIZE_BYTES, gap_ms, change.positions(), change.words())?;
                let (target, drive) = (format!("ffs:{}@{DRIVE}", volume.choices()), DRIVE.to_owned());
                let setup = Setup { machine, target, drive, epoch_ns: EPOCH_NS };
                at_size(&mut Lab::new(volume, Drive::find(DRIVE)?.device(), setup)?, size_bytes, with, seed)
            }
        }
    }
}

/// What is otherwise than published, to see what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    /// A processor half as fast.
    Half,
    /// One that takes next to no time.
    Instant,
    /// FFS writes metadata late.
    NoOrder,
    /// FFS takes account of where blocks are under the head, as newfs sets it up.
    EightPositions,
    /// The kernel writes neighbours in one request even where they do not fill a cluster.
    Gathered,
    /// FFS stays in the cylinder group at the first indirect block.
    NoSwitch,
}

impl Change {
    fn speed(self) -> f64 {
        match self {
            Change::Half => 0.5,
            Change::Instant => 1000.0,
            _ => 1.0,
        }
    }

    fn positions(self) -> u32 {
        if self == Change::EightPositions { NEWFS_POSITIONS } else { POSITIONS }
    }

    fn words(self) -> &'static str {
        match self {
            Change::NoOrder => "original,blockwise,noorder",
            Change::NoSwitch => "original,blockwise,noswitch",
            Change::Gathered => "original,gathered",
            _ => WORDS,
        }
    }

    /// Sizes at which it is looked at.
    fn looks_at(self, kb: u64) -> bool {
        match self {
            Change::Nothing => true,
            Change::Half => kb == 1,
            Change::Instant => kb == 1 || kb >= 64,
            Change::NoOrder => (2..=64).contains(&kb),
            Change::EightPositions => kb <= 2048,
            Change::Gathered => kb <= 256,
            Change::NoSwitch => (104..=2048).contains(&kb),
        }
    }

    /// What is measured with it.
    fn systems(self) -> &'static [System] {
        match self {
            Change::Nothing => &System::ALL,
            Change::Half | Change::Instant => &[System::Lfs, System::M8r0],
            Change::NoOrder | Change::EightPositions | Change::Gathered | Change::NoSwitch => &[System::M8r0],
        }
    }

    const ALL: [Change; 7] = [
        Change::Nothing,
        Change::Half,
        Change::Instant,
        Change::NoOrder,
        Change::EightPositions,
        Change::Gathered,
        Change::NoSwitch,
    ];
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    change: Change,
    system: System,
    kb: u64,
}

/// All of it.
struct Curves(Vec<(Place, AtSize)>);

impl Curves {
    fn rate_with(&self, change: Change, system: System, kb: u64, phase: Phase) -> f64 {
        // The log is the same whatever FFS does.
        let change = if change.systems().contains(&system) { change } else { Change::Nothing };
        let found = self.0.iter().find(|(place, _)| *place == Place { change, system, kb });
        found.map_or(f64::NAN, |(_, at)| at.rate(phase))
    }

    fn rate(&self, system: System, kb: u64, phase: Phase) -> f64 {
        self.rate_with(Change::Nothing, system, kb, phase)
    }

    fn sizes_kb(&self, from_kb: u64, to_kb: u64) -> Vec<u64> {
        let of_log = |place: &Place| (place.change, place.system) == (Change::Nothing, System::Lfs);
        let sizes = self.0.iter().map(|(place, _)| place).filter(|place| of_log(place)).map(|place| place.kb);
        sizes.filter(|kb| (from_kb..=to_kb).contains(kb)).collect()
    }

    /// LFS over m8r0.
    fn lead_with(&self, change: Change, phase: Phase, kb: u64) -> f64 {
        self.rate_with(change, System::Lfs, kb, phase) / self.rate_with(change, System::M8r0, kb, phase)
    }

    fn lead(&self, phase: Phase, kb: u64) -> f64 {
        self.lead_with(Change::Nothing, phase, kb)
    }

    fn leads_with(&self, change: Change, phase: Phase, from_kb: u64, to_kb: u64) -> Vec<f64> {
        self.sizes_kb(from_kb, to_kb).into_iter().map(|kb| self.lead_with(change, phase, kb)).collect()
    }

    fn leads(&self, phase: Phase, from_kb: u64, to_kb: u64) -> Vec<f64> {
        self.leads_with(Change::Nothing, phase, from_kb, to_kb)
    }

    /// From where on m8r0 overwrites faster than LFS at every size up to 4 MB, of which there are eight files, in KB.
    fn overtaken_from_kb(&self) -> Option<u64> {
        let sizes = self.sizes_kb(1, 4096);
        sizes.into_iter().rev().take_while(|kb| self.lead(Phase::Overwrite, *kb) < 1.0).last()
    }

    fn points(&self, system: System, phase: Phase) -> Vec<(f64, f64)> {
        let unit = if phase == Phase::Delete { 1.0 } else { MIB };
        let own = self.0.iter().filter(|(place, _)| (place.change, place.system) == (Change::Nothing, system));
        own.map(|(place, at)| ((place.kb * K) as f64, at.rate(phase) / unit)).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// What the benchmark is run with.
pub(super) fn sequential(bench: &Bench<'_>) -> Sequential {
    Sequential {
        data_bytes: bench.pick(4 << 20, 32 << 20),
        files_per_directory: 100,
        piece_bytes: 1 << 20,
        until: Phase::Delete,
    }
}

/// Runs it everywhere; what another experiment of the run has found already is taken from there.
fn measure(bench: &mut Bench<'_>, places: &[Place]) -> Result<Vec<(Place, AtSize)>, ExperimentError> {
    let (with, seed, made) = (sequential(bench), bench.seed(), bench.made());
    each(bench, "by file size", places, |place| {
        let at = || place.system.at(place.kb * K, place.change, with, seed);
        Ok((*place, AtSize::clone(&*made.get(&format!("lfs95/file-size {place:?}"), at)?)))
    })
}

/// New file systems at some sizes of files: LFS, and FFS with rotdelay 0.
pub(super) fn new_ones(bench: &mut Bench<'_>, sizes_kb: &[u64]) -> Result<Vec<[AtSize; 2]>, ExperimentError> {
    let mut found = Vec::new();
    for system in [System::Lfs, System::M8r0] {
        let places: Vec<Place> = sizes_kb.iter().map(|kb| Place { change: Change::Nothing, system, kb: *kb }).collect();
        found.push(measure(bench, &places)?.into_iter().map(|(_, at)| at));
    }
    let (Some(ffs), Some(lfs)) = (found.pop(), found.pop()) else { return Ok(Vec::new()) };
    Ok(lfs.zip(ffs).map(|(lfs, ffs)| [lfs, ffs]).collect())
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let sizes = bench.pick(QUICK_KB.as_slice(), SIZES_KB.as_slice());
    let with = sequential(bench);
    let mut places = Vec::new();
    for change in Change::ALL {
        for system in change.systems() {
            let looked_at = sizes.iter().filter(|kb| change.looks_at(**kb));
            places.extend(looked_at.map(|kb| Place { change, system: *system, kb: *kb }));
        }
    }
    let curves = Curves(measure(bench, &places)?);
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
    create(&mut outcome, &curves);
    read(&mut outcome, &curves);
    overwrite(&mut outcome, &curves);
    delete(&mut outcome, &curves, bench.scale());
    large(&mut outcome, &curves);
    figures(&mut outcome, &curves);
    Ok(outcome)
}

fn ratio(what: &str, published: Option<Published>, ours: f64, explain: Explain) -> Row {
    Row::new(what, Unit::Ratio, published, ours, explain)
}

/// A row that shows what something does; nothing was published.
fn isolated(what: &str, ours: f64) -> Row {
    ratio(what, Published::NONE, ours, Explain::Agrees)
}

fn create(outcome: &mut Outcome, curves: &Curves) {
    let phase = Phase::Create;
    let one = |change| curves.lead_with(change, phase, 1);
    let lead = curves.lead(phase, 1);
    let processor = format!(
        "the processor decides: {:.1} with one half as fast, {:.0} with one that takes no time (both below); what this \
         computer spends on a file is an estimate",
        one(Change::Half),
        one(Change::Instant)
    );
    outcome
        .row(ratio("create, 1 KB files: LFS over FFS", Published::about(10.0), lead, Explain::because(processor)))
        .row(isolated("the same with a processor half as fast", one(Change::Half)))
        .row(isolated("the same with a processor that takes no time", one(Change::Instant)))
        .row(ratio(
            "create, 1 MB files: LFS over FFS",
            Published::about(1.0),
            curves.lead(phase, 1024),
            Explain::Agrees,
        ));
    let sizes = curves.sizes_kb(2, 64);
    for (change, how) in [
        (Change::Nothing, ""),
        (Change::Gathered, ", FFS writes neighbours in one request below a full cluster too"),
        (Change::NoOrder, ", FFS writes metadata late"),
    ] {
        for kb in &sizes {
            outcome.row(isolated(&format!("create, {kb} KB: LFS over FFS{how}"), curves.lead_with(change, phase, *kb)));
        }
    }
    let small = curves.leads(phase, 2, 64);
    let jump =
        |change| curves.rate_with(change, System::M8r0, 64, phase) / curves.rate_with(change, System::M8r0, 56, phase);
    let (alone, gathered) = (jump(Change::Nothing), jump(Change::Gathered));
    outcome
        .claim(Claim::new(
            "create, 2 to 64 KB: LFS is 4 to 10 times as fast",
            least(&small) >= 4.0 && greatest(&small) <= 10.5,
            shown(curves, phase, &[2, 4, 8, 16, 32, 56, 64]),
            Explain::because(format!(
                "at 2 KB the processor decides, as for 1 KB. At 64 KB a full cluster goes in one request, and \
                 synchronous metadata is all that LFS saves: over an FFS without it {:.2}",
                curves.lead_with(Change::NoOrder, phase, 64)
            )),
        ))
        .claim(Claim::new(
            "create: FFS gains much at 64 KB, where one cluster is full",
            alone > 1.25,
            format!(
                "64 KB over 56 KB {alone:.2} times; where the kernel gathers below a full cluster too \
                {gathered:.2}"
            ),
            Explain::because("not known"),
        ));
    let sizes = [64, 104, 256, 1024];
    let steps: Vec<f64> = sizes.iter().map(|kb| curves.lead(phase, *kb)).collect();
    let stays = |kb| curves.lead_with(Change::NoSwitch, phase, kb);
    outcome.row(isolated("create, 256 KB: LFS over an FFS that stays in its cylinder group", stays(256)));
    outcome.claim(Claim::new(
        "create: the lead declines from 64 KB to 1 MB",
        steps.is_sorted_by(|a, b| a > b),
        shown(curves, phase, &sizes),
        Explain::because(format!(
            "it does up to 96 KB and from 128 KB on; in between FFS falls, as the first indirect block is written \
             synchronously and takes the file to another cylinder group, which LFS does not notice; where it stays in \
             its group the lead is {:.2} at 256 KB",
            stays(256)
        )),
    ));
}

fn read(outcome: &mut Outcome, curves: &Curves) {
    let phase = Phase::Read;
    let of = |from, to| mean(&curves.leads(phase, from, to));
    let positions = mean(&curves.leads_with(Change::EightPositions, phase, 1, 64));
    outcome
        .row(ratio("read, up to 64 KB: LFS over FFS", Published::about(1.0), of(1, 64), Explain::Agrees))
        .row(isolated("the same, FFS with eight rotational positions", positions))
        .row(isolated("read, 104 KB to 2 MB: LFS over FFS", of(104, 2048)))
        .row(isolated(
            "the same, FFS stays in its cylinder group at the first indirect block",
            mean(&curves.leads_with(Change::NoSwitch, phase, 104, 2048)),
        ))
        .row(ratio("read, from 4 MB: LFS over FFS", Published::about(1.0), of(4096, 1 << 20), Explain::Agrees));
    let over_m8r2 = |kb: &u64| curves.rate(System::Lfs, *kb, phase) / curves.rate(System::M8r2, *kb, phase);
    let (middle, gap) =
        (curves.leads(phase, 104, 2048), curves.sizes_kb(104, 2048).iter().map(over_m8r2).collect::<Vec<_>>());
    let positions = mean(&curves.leads_with(Change::EightPositions, phase, 104, 2048));
    outcome
        .row(isolated("read, 104 KB to 2 MB: LFS over FFS with eight rotational positions", positions))
        .row(isolated(
            "read, 104 KB to 2 MB: LFS over FFS, a processor that takes no time",
            mean(&curves.leads_with(Change::Instant, phase, 104, 2048)),
        ))
        .row(isolated("read, 104 KB to 2 MB: LFS over FFS m8r2", mean(&gap)))
        .claim(Claim::new(
            "read, above 64 KB and to some 2 MB: LFS leads",
            least(&middle) > 0.995,
            format!(
                "{:.2} to {:.2} times FFS m8r0, {:.2} to {:.2} times m8r2",
                least(&middle),
                greatest(&middle),
                least(&gap),
                greatest(&gap)
            ),
            Explain::because(format!(
                "over m8r2 it does, and over m8r0 with eight rotational positions ({positions:.2} in the mean, above). \
                 Over m8r0 with one position, as the study has it, the two are level ({:.2}); why LFS leads there in \
                 the study is not known",
                mean(&middle)
            )),
        ));
    let step = |kb: u64| curves.rate(System::M8r0, kb, phase) / curves.rate(System::M8r0, kb / 2, phase);
    if curves.sizes_kb(8, 32).len() == 3 {
        outcome.claim(Claim::new(
            "read: files of 16 KB do not gain over 8 KB, as reading ahead does not work yet",
            step(16) < 1.05,
            format!("FFS: 16 KB over 8 KB {:.2} times, 32 KB over 16 KB {:.2} times", step(16), step(32)),
            Explain::because("not known"),
        ));
    }
}

fn overwrite(outcome: &mut Outcome, curves: &Curves) {
    let (small, created) = (mean(&curves.leads(Phase::Overwrite, 1, 64)), mean(&curves.leads(Phase::Create, 1, 64)));
    outcome.row(isolated("overwrite, up to 64 KB: LFS over FFS", small));
    outcome.claim(Claim::new(
        "overwrite is closer than create",
        small < created,
        format!("up to 64 KB {small:.2} times, create {created:.2}"),
        Explain::Agrees,
    ));
    let over = |change, from, to| mean(&curves.leads_with(change, Phase::Overwrite, from, to));
    let from = curves.overtaken_from_kb().map_or(0.0, |kb| (kb * K) as f64);
    outcome.row(Row::new(
        "overwrite: FFS leads from this size on, to 4 MB",
        Unit::Bytes,
        Published::about((256 * K) as f64),
        from,
        Explain::because(format!(
            "the processor decides, whose costs are estimates. From 64 to 96 KB, where a file is one or two requests \
             to FFS, LFS is at {:.2} of it, from 104 to 192 KB at {:.2}, from 256 KB to 1 MB at {:.2}; with a \
             processor that takes no time at {:.2}, {:.2} and {:.2} (below)",
            over(Change::Nothing, 64, 96),
            over(Change::Nothing, 104, 192),
            over(Change::Nothing, 256, 1024),
            over(Change::Instant, 64, 96),
            over(Change::Instant, 104, 192),
            over(Change::Instant, 256, 1024)
        )),
    ));
    for (what, change) in [
        ("", Change::Nothing),
        (", FFS with eight rotational positions", Change::EightPositions),
        (", a processor that takes no time", Change::Instant),
    ] {
        for (from, to) in [(64, 96), (104, 192), (256, 1024)] {
            outcome.row(isolated(&format!("overwrite, {from} to {to} KB: LFS over FFS{what}"), over(change, from, to)));
        }
    }
    let before = curves.leads(Phase::Overwrite, 1, 192);
    outcome.claim(Claim::new(
        "overwrite: LFS leads up to 256 KB",
        least(&before) >= 1.0,
        format!("{:.2} to {:.2} times up to 192 KB", least(&before), greatest(&before)),
        Explain::because("up to 32 KB; what the processor does to that is with the size from which FFS leads"),
    ));
}

fn shown(curves: &Curves, phase: Phase, sizes_kb: &[u64]) -> String {
    let one = |kb: &u64| format!("{kb} KB {:.2}", curves.lead(phase, *kb));
    sizes_kb.iter().filter(|kb| curves.lead(phase, **kb).is_finite()).map(one).collect::<Vec<_>>().join(", ")
}

fn delete(outcome: &mut Outcome, curves: &Curves, scale: Scale) {
    let phase = Phase::Delete;
    let of = |from, to| mean(&curves.leads(phase, from, to));
    let one = |change| curves.lead_with(change, phase, 1);
    let processor = format!(
        "LFS removes small files as fast as the processor goes: at 1 KB {:.1}, with one half as fast {:.1}",
        one(Change::Nothing),
        one(Change::Half)
    );
    // Of four files, writing back what they leave takes longer than removing them.
    let large = if scale == Scale::Full { Published::about(3.5) } else { Published::NONE };
    outcome
        .row(ratio("delete, up to 64 KB: LFS over FFS", Published::about(10.0), of(1, 64), Explain::because(processor)))
        .row(isolated("delete, 1 KB, a processor half as fast: LFS over FFS", one(Change::Half)))
        .row(ratio("delete, 1 MB: LFS over FFS", large, curves.lead(phase, 1024), Explain::Agrees))
        .row(isolated("delete, from 4 MB (8 files and fewer): LFS over FFS", of(4096, 1 << 20)));
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
