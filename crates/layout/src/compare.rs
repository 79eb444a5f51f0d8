//! Two surveys side by side: the same file system fresh and aged, or two file systems after the same work.

use crate::scores::free::FreeSpace;
use crate::survey::{AddressSpace, FilesLayout};
use crate::{Available, Survey};
use posix::FsType;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// One figure of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// What it is.
    pub figure: String,
    /// Its unit: `score`, `bytes`, `count`, `share`, `percent`.
    pub unit: String,
    /// In the first survey; `None` where it is not available.
    pub a: Option<f64>,
    /// In the second.
    pub b: Option<f64>,
    /// b - a, where both are there.
    pub difference: Option<f64>,
}

/// The layout score of one size class in both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeDifference {
    /// The class: bytes.
    pub low_bytes: u64,
    #[allow(missing_docs)]
    pub high_bytes: u64,
    /// Files in the first and in the second.
    pub files_a: u64,
    #[allow(missing_docs)]
    pub files_b: u64,
    /// Aggregate scores.
    pub score_a: Option<f64>,
    #[allow(missing_docs)]
    pub score_b: Option<f64>,
    /// b - a.
    pub difference: Option<f64>,
}

/// What makes two surveys less than comparable. Its text says what that means, or what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caution {
    /// Places are counted on different devices.
    Addresses {
        #[allow(missing_docs)]
        a: AddressSpace,
        #[allow(missing_docs)]
        b: AddressSpace,
    },
    /// Blocks have different sizes.
    Blocks {
        #[allow(missing_docs)]
        a_bytes: u64,
        #[allow(missing_docs)]
        b_bytes: u64,
    },
    /// They are of different file systems.
    FileSystems {
        #[allow(missing_docs)]
        a: FsType,
        #[allow(missing_docs)]
        b: FsType,
    },
    /// Hot files were counted over different times.
    HotDays,
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caution::Addresses { a, b } => write!(
                f,
                "addresses differ in kind: A has {}, B has {}; distances cannot be compared",
                a.describe(),
                b.describe()
            ),
            Caution::Blocks { a_bytes, b_bytes } => {
                write!(f, "blocks are of {a_bytes} bytes in A and {b_bytes} in B; layout scores count blocks")
            }
            Caution::FileSystems { a, b } => write!(f, "file systems differ: {a} and {b}"),
            Caution::HotDays => f.write_str(
                "hot files were counted over different numbers of days; survey both with the same --hot-days",
            ),
        }
    }
}

/// As its text.
impl Serialize for Caution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Both surveys' figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What A and B are.
    pub a: String,
    #[allow(missing_docs)]
    pub b: String,
    /// Every figure.
    pub figures: Vec<Difference>,
    /// Layout score by size.
    pub by_size: Vec<SizeDifference>,
    /// What makes the two less than comparable.
    pub cautions: Vec<Caution>,
}

type FileFigure = (&'static str, &'static str, fn(&FilesLayout) -> Option<f64>);
type FreeFigure = (&'static str, &'static str, fn(&FreeSpace) -> Option<f64>);

const FILE_FIGURES: &[FileFigure] = &[
    ("aggregate layout score", "score", |f| f.layout_score),
    ("layout score of hot files", "score", |f| f.hot_apart()?.row.layout_score),
    ("files", "count", |f| Some(f.all.files as f64)),
    ("bytes in files", "bytes", |f| Some(f.all.bytes as f64)),
    ("blocks not after their predecessor", "count", |f| Some(f.score.breaks() as f64)),
    ("files in more than one piece", "count", |f| Some(f.all.broken_files as f64)),
    ("extents", "count", |f| Some(f.all.extents as f64)),
    ("extents per file", "number", |f| f.all.extents_per_file),
    ("extents per MiB", "number", |f| f.extents_per_mib),
    ("split files", "share", |f| f.split.known()?.share()),
    ("next file starts where the last ended", "share", |f| f.locality.adjacent_share()),
    ("mean distance to the next file", "bytes", |f| f.locality.mean_bytes()),
    ("seeks of a tree scan", "count", |f| Some(f.scan.seeks as f64)),
    ("distance of a tree scan", "bytes", |f| Some(f.scan.distance_bytes as f64)),
    ("XFS fragmentation factor", "share", |f| Some(f.xfs_fragmentation)),
];

const FREE_FIGURES: &[FreeFigure] = &[
    ("free space", "bytes", |f| Some(f.free_bytes as f64)),
    ("free extents", "count", |f| Some(f.extents as f64)),
    ("mean free extent", "bytes", |f| f.mean_bytes),
    ("largest free extent", "bytes", |f| Some(f.largest_bytes as f64)),
    ("free space in extents of 64 KiB or more", "share", |f| f.chunks.first().map(|c| c.share)),
    ("free space in extents of 1 MiB or more", "share", |f| f.chunks.get(1).map(|c| c.share)),
    ("free space in extents of 2 MiB or more", "share", |f| f.chunks.get(2).map(|c| c.share)),
    ("ZFS fragmentation of free space", "percent", |f| f.zfs_percent.map(|p| p as f64)),
    ("fsperf fragmentation, mean of groups", "percent", |f| Some(f.fsperf.mean_percent)),
];

fn difference(figure: &str, unit: &str, a: Option<f64>, b: Option<f64>) -> Difference {
    let difference = a.zip(b).map(|(a, b)| b - a);
    Difference { figure: figure.to_owned(), unit: unit.to_owned(), a, b, difference }
}

/// Compares two surveys. Figures that neither has are left out.
pub fn compare(a: &Survey, b: &Survey) -> Comparison {
    let of = |f: fn(&FilesLayout) -> Option<f64>, s: &Survey| s.files.known().and_then(f);
    let of_free = |f: fn(&FreeSpace) -> Option<f64>, s: &Survey| s.free.known().and_then(f);
    let files = FILE_FIGURES.iter().map(|(name, unit, f)| difference(name, unit, of(*f, a), of(*f, b)));
    let free = FREE_FIGURES.iter().map(|(name, unit, f)| difference(name, unit, of_free(*f, a), of_free(*f, b)));
    Comparison {
        a: a.source.target.clone(),
        b: b.source.target.clone(),
        figures: files.chain(free).filter(|d| d.a.is_some() || d.b.is_some()).collect(),
        by_size: by_size(&a.files, &b.files),
        cautions: cautions(a, b),
    }
}

fn by_size(a: &Available<FilesLayout>, b: &Available<FilesLayout>) -> Vec<SizeDifference> {
    let rows = |s: &Available<FilesLayout>| s.known().map(|f| f.by_size.clone()).unwrap_or_default();
    let (a, b) = (rows(a), rows(b));
    let mut bounds: Vec<(u64, u64)> = a.iter().chain(&b).map(|r| (r.low, r.high)).collect();
    bounds.sort_unstable();
    bounds.dedup();
    bounds
        .into_iter()
        .map(|(low_bytes, high_bytes)| {
            let in_a = a.iter().find(|r| r.low == low_bytes);
            let in_b = b.iter().find(|r| r.low == low_bytes);
            let (score_a, score_b) = (in_a.and_then(|r| r.layout_score), in_b.and_then(|r| r.layout_score));
            SizeDifference {
                low_bytes,
                high_bytes,
                files_a: in_a.map_or(0, |r| r.files),
                files_b: in_b.map_or(0, |r| r.files),
                score_a,
                score_b,
                difference: score_a.zip(score_b).map(|(a, b)| b - a),
            }
        })
        .collect()
}

fn cautions(a: &Survey, b: &Survey) -> Vec<Caution> {
    let mut cautions = Vec::new();
    let (of_a, of_b) = (&a.source, &b.source);
    if of_a.addresses != of_b.addresses {
        cautions.push(Caution::Addresses { a: of_a.addresses, b: of_b.addresses });
    }
    if of_a.block_bytes != of_b.block_bytes {
        cautions.push(Caution::Blocks { a_bytes: of_a.block_bytes, b_bytes: of_b.block_bytes });
    }
    if of_a.fs_type != of_b.fs_type {
        cautions.push(Caution::FileSystems { a: of_a.fs_type.clone(), b: of_b.fs_type.clone() });
    }
    let days = |s: &Survey| s.files.known().and_then(|f| f.hot.as_ref()).map(|h| h.days);
    if days(a) != days(b) {
        cautions.push(Caution::HotDays);
    }
    cautions
}
