//! The registry: what a benchmark is, and which there are.

use crate::driver::Driver;
use crate::{
    CacheNote, Count, Phase, Repeat, TimedBy, Unit, WorkloadError, andrew, hotcold, hotfiles, largefile, netnews,
    postmark, scan, sdet, seqfile, smallfile, ssh_build, tpcb,
};
use posix::FileSystem;
use serde::{Deserialize, Serialize};

/// Every benchmark with its options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "benchmark", rename_all = "kebab-case")]
pub enum Parameters {
    /// Sequential performance against file size.
    Seqfile(seqfile::Options),
    /// The recently modified files of a tree.
    Hotfiles(hotfiles::Options),
    /// A cold scan of a tree.
    Scan(scan::Options),
    /// Many small files.
    Smallfile(smallfile::Options),
    /// One large file.
    Largefile(largefile::Options),
    /// Transaction processing.
    Tpcb(tpcb::Options),
    /// Files written over at a given utilisation, uniformly or some more than others.
    Hotcold(hotcold::Options),
    /// PostMark: a mail server's small files.
    Postmark(postmark::Options),
    /// Software developers at work, several at a time.
    Sdet(sdet::Options),
    /// A package unpacked, configured and built.
    SshBuild(ssh_build::Options),
    /// A news server's articles come and go.
    Netnews(netnews::Options),
    /// The Andrew benchmark.
    Andrew(andrew::Options),
}

impl Parameters {
    /// The benchmark's name on the command line.
    pub const fn name(&self) -> &'static str {
        match self {
            Parameters::Seqfile(_) => "seqfile",
            Parameters::Hotfiles(_) => "hotfiles",
            Parameters::Scan(_) => "scan",
            Parameters::Smallfile(_) => "smallfile",
            Parameters::Largefile(_) => "largefile",
            Parameters::Tpcb(_) => "tpcb",
            Parameters::Hotcold(_) => "hotcold",
            Parameters::Postmark(_) => "postmark",
            Parameters::Sdet(_) => "sdet",
            Parameters::SshBuild(_) => "ssh-build",
            Parameters::Netnews(_) => "netnews",
            Parameters::Andrew(_) => "andrew",
        }
    }

    /// How often and in which order it is run.
    pub const fn repeat(&self) -> &Repeat {
        match self {
            Parameters::Seqfile(o) => &o.repeat,
            Parameters::Hotfiles(o) => &o.repeat,
            Parameters::Scan(o) => &o.repeat,
            Parameters::Smallfile(o) => &o.repeat,
            Parameters::Largefile(o) => &o.repeat,
            Parameters::Tpcb(o) => &o.repeat,
            Parameters::Hotcold(o) => &o.repeat,
            Parameters::Postmark(o) => &o.repeat,
            Parameters::Sdet(o) => &o.repeat,
            Parameters::SshBuild(o) => &o.repeat,
            Parameters::Netnews(o) => &o.repeat,
            Parameters::Andrew(o) => &o.repeat,
        }
    }

    /// The benchmark made ready for one target.
    pub(crate) fn prepare(&self, fs: &mut dyn FileSystem) -> Result<Box<dyn Benchmark>, WorkloadError> {
        Ok(match self {
            Parameters::Seqfile(options) => Box::new(seqfile::Seqfile::new(options)?),
            Parameters::Hotfiles(options) => Box::new(hotfiles::Hotfiles::new(options, fs)?),
            Parameters::Scan(options) => Box::new(scan::Scan::new(options, fs)?),
            Parameters::Smallfile(options) => Box::new(smallfile::Smallfile::new(options)?),
            Parameters::Largefile(options) => Box::new(largefile::Largefile::new(options)?),
            Parameters::Tpcb(options) => Box::new(tpcb::Tpcb::new(options)?),
            Parameters::Hotcold(options) => Box::new(hotcold::Hotcold::new(options)?),
            Parameters::Postmark(options) => Box::new(postmark::Postmark::new(options)?),
            Parameters::Sdet(options) => Box::new(sdet::Sdet::new(options)?),
            Parameters::SshBuild(options) => Box::new(ssh_build::SshBuild::new(options)?),
            Parameters::Netnews(options) => Box::new(netnews::Netnews::new(options)?),
            Parameters::Andrew(options) => Box::new(andrew::Andrew::new(options)?),
        })
    }
}

/// A benchmark made ready for one target.
pub(crate) trait Benchmark {
    /// What it can be run at, in the order of tables.
    fn points(&self) -> Vec<Point>;

    /// Runs one point once, and leaves nothing of it behind. `tag` is different for every run on a target.
    ///
    /// # Errors
    /// A call failed, or a signal asked to stop.
    fn once(&mut self, driver: &mut Driver<'_>, point: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError>;

    /// What the reader of the result should know.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Something a benchmark is run at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Its name in tables (`64 KiB`, `hot files`).
    pub label: String,
    /// The file size, where that is what differs.
    pub size_bytes: Option<u64>,
    /// All rounds of a stage are run before the next begins: for what changes what others measure. Stages of the same label are
    /// one point of the result.
    #[serde(skip)]
    pub stage: u32,
}

/// One phase, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Which.
    pub(crate) phase: Phase,
    /// What its headline counts.
    pub(crate) unit: Unit,
    /// Time in the calls, nanoseconds.
    pub(crate) calls_ns: u64,
    /// Time by the clock, without the final `syncfs`, nanoseconds.
    pub(crate) elapsed_ns: u64,
    /// Which of the two counts.
    pub(crate) timed_by: TimedBy,
    /// Time in the final `syncfs`, nanoseconds, where the phase writes.
    pub(crate) sync_ns: Option<u64>,
    /// Calls made.
    pub(crate) calls: u64,
    /// Transactions or scripts completed.
    pub(crate) completed: u64,
    /// Bytes of file data.
    pub(crate) bytes: u64,
    /// Files.
    pub(crate) files: u64,
    /// How cold the caches were at the start.
    pub(crate) caches: CacheNote,
    /// What this benchmark counts beyond that.
    pub(crate) counts: Vec<Count>,
}

impl Sample {
    /// With another unit than the phase's own.
    pub(crate) fn per(self, unit: Unit) -> Sample {
        Sample { unit, ..self }
    }

    /// With the clock's time instead of the calls'.
    pub(crate) fn by_clock(self) -> Sample {
        Sample { timed_by: TimedBy::Clock, ..self }
    }

    /// With numbers of the benchmark's own.
    pub(crate) fn with_counts(self, counts: &[(&str, u64)]) -> Sample {
        let counts = counts.iter().map(|(name, value)| Count { name: (*name).to_owned(), value: *value });
        Sample { counts: counts.collect(), ..self }
    }
}
