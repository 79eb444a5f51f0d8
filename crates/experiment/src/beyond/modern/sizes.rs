//! Create, read, overwrite and delete by file size, on drives of today.

use super::updates::MACHINE;
use crate::testbed::{AtSize, Sequential, at_size};
use crate::{Axis, Claim, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use kernel::Machine;
use lab::Spec;
use workload::Phase;

const K: u64 = 1 << 10;
const DISK: &str = "nearline-7200";
const FLASH: &str = "ssd-nvme";
/// The drives.
pub(super) const DRIVES: [&str; 2] = [DISK, FLASH];
/// From this size on a file takes a segment or more.
const LARGE_KB: u64 = 1024;
/// By file size, in KB: powers of four and the ends of the range of the publication.
pub(super) const SIZES_KB: [u64; 9] = [1, 4, 16, 64, 104, 256, 1024, 4096, 32768];
/// Those of the quick scale.
pub(super) const QUICK_KB: [u64; 3] = [1, 64, 1024];

/// A file system of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Lfs,
    /// The log with segments of 8 MB; for large files on the disk only.
    LargeSegments,
    /// Metadata written in order and waited for.
    Ffs,
    /// All writes late: the upper bound of what Soft Updates reach.
    NoOrder,
}

impl System {
    pub(super) const ALL: [System; 4] = [System::Lfs, System::LargeSegments, System::Ffs, System::NoOrder];

    fn name(self) -> &'static str {
        match self {
            System::Lfs => "LFS",
            System::LargeSegments => "LFS, segments of 8 MB",
            System::Ffs => "FFS",
            System::NoOrder => "FFS without order",
        }
    }

    /// What it is made with. Fragments of 4 KB, the unit in which drives of today map.
    pub(super) fn target(self) -> &'static str {
        match self {
            System::Lfs => "lfs:cleaner=off,bsize=8K,fsize=4K,segment=1M,idle=0,size=512M",
            System::LargeSegments => "lfs:cleaner=off,bsize=8K,fsize=4K,segment=8M,idle=0,size=512M",
            System::Ffs => "ffs:bsize=8K,fsize=4K,density=8K,dirpref,size=512M",
            System::NoOrder => "ffs:bsize=8K,fsize=4K,density=8K,dirpref,noorder,size=512M",
        }
    }
}

/// A point: drive, system, file size.
pub(super) type Point = (&'static str, System, u64);

/// Runs one.
pub(super) fn measure(point: &Point, with: Sequential, seed: u64) -> Result<(Point, AtSize), ExperimentError> {
    let (drive, system, size_bytes) = *point;
    let mut lab = Spec::parse(&format!("{}@{drive}", system.target()))?.open_on(Machine::load(MACHINE)?)?;
    Ok((*point, at_size(&mut *lab, size_bytes, with, seed)?))
}

/// All points.
pub(super) fn points(sizes_kb: &[u64]) -> Vec<Point> {
    let mut points = Vec::new();
    for drive in DRIVES {
        for kb in sizes_kb {
            let systems = System::ALL.into_iter();
            let wanted = systems.filter(|s| *s != System::LargeSegments || drive == DISK && *kb >= LARGE_KB);
            points.extend(wanted.map(|system| (drive, system, kb * K)));
        }
    }
    points
}

const PHASES: [(Phase, &str); 4] =
    [(Phase::Create, "create"), (Phase::Read, "read"), (Phase::Overwrite, "overwrite"), (Phase::Delete, "delete")];

/// What was found.
pub(super) struct Curves(pub(super) Vec<(Point, AtSize)>);

impl Curves {
    fn rate(&self, drive: &str, system: System, kb: u64, phase: Phase) -> f64 {
        let found = self.0.iter().find(|((d, s, size), _)| *d == drive && *s == system && *size == kb * K);
        found.map_or(f64::NAN, |(_, at)| at.rate(phase))
    }

    fn sizes_kb(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.0.iter().map(|((_, _, size), _)| size / K).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// LFS over another.
    fn lead(&self, drive: &str, over: System, kb: u64, phase: Phase) -> f64 {
        self.rate(drive, System::Lfs, kb, phase) / self.rate(drive, over, kb, phase)
    }

    /// The same for all sizes of a range.
    fn leads(&self, drive: &str, over: System, phase: Phase, from_kb: u64, to_kb: u64) -> Vec<f64> {
        let sizes = self.sizes_kb().into_iter().filter(|kb| (from_kb..=to_kb).contains(kb));
        sizes.map(|kb| self.lead(drive, over, kb, phase)).collect()
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Ratios at some sizes, statements, curves.
pub(super) fn report(outcome: &mut Outcome, curves: &Curves) {
    for drive in DRIVES {
        for (phase, name) in PHASES {
            for over in [System::Ffs, System::NoOrder] {
                for kb in curves.sizes_kb().into_iter().filter(|kb| [1, 64, 1024, 32768].contains(kb)) {
                    let what = format!("{drive}, {name}, {kb} KB: LFS over {}", over.name());
                    let ours = curves.lead(drive, over, kb, phase);
                    outcome.row(Row::new(what, Unit::Ratio, Published::NONE, ours, Explain::Agrees));
                }
            }
        }
    }
    claims(outcome, curves);
    for over in [System::Ffs, System::NoOrder] {
        let mut series = Vec::new();
        for drive in DRIVES {
            for (phase, name) in PHASES {
                let points = curves.sizes_kb().into_iter().map(|kb| {
                    let bytes = (kb * K) as f64;
                    (bytes, curves.lead(drive, over, kb, phase))
                });
                series.push(Series::in_panel(drive, name, points));
            }
        }
        let short = if over == System::Ffs { "ffs" } else { "noorder" };
        outcome.figure(Figure {
            name: format!("over-{short}"),
            title: format!("LFS over {} by file size.", over.name()),
            x: Axis::Bytes("file size".to_owned()),
            y: Axis::Ratio("LFS over FFS".to_owned()),
            series,
        });
    }
}

fn range(values: &[f64]) -> String {
    format!("{:.2} to {:.2} times", least(values), greatest(values))
}

fn claims(outcome: &mut Outcome, curves: &Curves) {
    use System::{Ffs, NoOrder};
    let mut claim = |what: &str, holds: bool, seen: String| {
        outcome.claim(Claim::new(what, holds, seen, Explain::Agrees));
    };
    let all = |drive, over, phase| curves.leads(drive, over, phase, 1, u64::MAX);
    let (create, read, overwrite, delete) = (Phase::Create, Phase::Read, Phase::Overwrite, Phase::Delete);

    let (waits, delayed) = (all(DISK, Ffs, create), all(DISK, NoOrder, create));
    claim(
        "create, on the disk: LFS leads at every size, and over an FFS that waits for nothing as well",
        least(&waits) > 1.0 && least(&delayed) > 1.0,
        format!("over FFS {}, without order {}", range(&waits), range(&delayed)),
    );
    let (disk, flash) = (curves.lead(DISK, Ffs, 1, create), curves.lead(FLASH, Ffs, 1, create));
    claim(
        "create, 1 KB, on flash: the lead is less than a tenth of that on the disk, since a synchronous write takes \
         microseconds there",
        flash < disk / 10.0,
        format!("{flash:.1} times, on the disk {disk:.1}"),
    );
    let flash = all(FLASH, NoOrder, create);
    claim(
        "create, on flash: over an FFS that waits for nothing LFS leads by less than a third, and loses a third from 1 \
         MB on, as it begins to write only when all is written at the end, and FFS with the first full cluster",
        greatest(&flash) < 1.33 && greatest(&curves.leads(FLASH, NoOrder, create, LARGE_KB, u64::MAX)) < 0.75,
        range(&flash),
    );
    let flash = [all(FLASH, Ffs, read), all(FLASH, NoOrder, read)].concat();
    claim(
        "read, on flash: the two are within a tenth at every size: where a block lies does not matter",
        least(&flash) > 0.9 && greatest(&flash) < 1.1,
        range(&flash),
    );
    let disk = curves.leads(DISK, Ffs, read, LARGE_KB, u64::MAX);
    let largest = curves.sizes_kb().last().copied().unwrap_or(0);
    let segments = |system| curves.rate(DISK, system, largest, read) / curves.rate(DISK, Ffs, largest, read);
    let (small, large) = (segments(System::Lfs), segments(System::LargeSegments));
    claim(
        "read, on the disk: FFS leads from 1 MB on, as a log of segments of 1 MB breaks off once a megabyte; with \
         segments of 8 MB LFS reads the largest files a quarter faster at least",
        greatest(&disk) < 0.9 && large > 1.25 * small,
        format!("{}; {} MB: {small:.2}, segments of 8 MB {large:.2}", range(&disk), largest / K),
    );
    let (small, large) =
        (curves.leads(DISK, Ffs, overwrite, 1, 256), curves.leads(DISK, Ffs, overwrite, LARGE_KB, u64::MAX));
    claim(
        "overwrite, on the disk: as in 1995, LFS leads up to 256 KB, and FFS from 1 MB on",
        least(&small) > 1.0 && greatest(&large) < 1.0,
        format!("{}; {}", range(&small), range(&large)),
    );
    let (waits, delayed) = (curves.leads(DISK, Ffs, delete, 1, 64), curves.leads(DISK, NoOrder, delete, 1, 64));
    let flash = curves.leads(FLASH, NoOrder, delete, 1, 64);
    claim(
        "delete, up to 64 KB: LFS leads over an FFS that waits for its writes, and loses against one that does not, on \
         both drives",
        least(&waits) > 1.0 && greatest(&delayed) < 1.0 && greatest(&flash) < 1.0,
        format!("disk {}, without order {}; flash, without order {}", range(&waits), range(&delayed), range(&flash)),
    );
}
