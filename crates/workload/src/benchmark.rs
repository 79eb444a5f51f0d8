//! The registry: what a benchmark is, and which there are.

use crate::driver::Driver;
use crate::{
    CacheNote, Count, Phase, Repeat, TargetResult, TimedBy, Unit, WorkloadError, andrew, hotcold, hotfiles, largefile,
    netnews, postmark, scan, sdet, seqfile, smallfile, ssh_build, tpcb,
};
use posix::FileSystem;
use serde::{Deserialize, Serialize};

/// A benchmark as it is asked for: what its options say. A new one is a file whose `Options` implement this, and a line
/// in the list of [`Parameters`] below.
pub trait Benchmark {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// How often and in which order it is run.
    fn repeat(&self) -> &Repeat;

    /// Space that it takes at most; 0 where it makes no files.
    fn need_bytes(&self) -> u64 {
        0
    }

    /// Files and directories of its own that are there at the same time, at most.
    fn need_inodes(&self) -> u64 {
        0
    }

    /// Whether the options make sense.
    ///
    /// # Errors
    /// What is wrong with them.
    fn check(&self) -> Result<(), WorkloadError>;

    /// Makes it ready for one target.
    ///
    /// # Errors
    /// As [`check`](Benchmark::check); and where the target is not what it needs.
    fn prepare(&self, fs: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError>;

    /// What is run, in a sentence.
    fn what(&self) -> String;

    /// How its results are shown.
    fn table_rows(&self) -> TableRows {
        TableRows::Phases
    }

    /// Options that make two results differ on their own, and their values; `None`: all but how often it is run.
    fn differs_by(&self) -> Option<Vec<(&'static str, String)>> {
        None
    }

    /// A result in the program's own layout, with its heading.
    fn own_report(&self, _target: &TargetResult) -> Option<(&'static str, String)> {
        None
    }
}

/// How results are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRows {
    /// The same phases at every point: a table of points for each.
    Points,
    /// Phases that differ in kind: a row for each, with its own unit.
    Phases,
}

macro_rules! benchmarks {
    ($($(#[doc = $doc:literal])* $variant:ident($module:ident),)*) => {
        /// Every benchmark with its options.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "benchmark", rename_all = "kebab-case")]
        pub enum Parameters { $($(#[doc = $doc])* $variant($module::Options)),* }

        impl Parameters {
            /// How many benchmarks there are.
            pub const COUNT: usize = [$(stringify!($variant)),*].len();

            /// Whichever it is.
            pub fn benchmark(&self) -> &dyn Benchmark {
                match self { $(Parameters::$variant(options) => options),* }
            }
        }

        $(impl From<&$module::Options> for Parameters {
            fn from(options: &$module::Options) -> Parameters {
                Parameters::$variant(options.clone())
            }
        })*
    };
}

benchmarks! {
    /// Sequential performance against file size.
    Seqfile(seqfile),
    /// The recently modified files of a tree.
    Hotfiles(hotfiles),
    /// A cold scan of a tree.
    Scan(scan),
    /// Many small files.
    Smallfile(smallfile),
    /// One large file.
    Largefile(largefile),
    /// Transaction processing.
    Tpcb(tpcb),
    /// Files written over at a given utilisation, uniformly or some more than others.
    Hotcold(hotcold),
    /// PostMark: a mail server's small files.
    Postmark(postmark),
    /// Software developers at work, several at a time.
    Sdet(sdet),
    /// A package unpacked, configured and built.
    SshBuild(ssh_build),
    /// A news server's articles come and go.
    Netnews(netnews),
    /// The Andrew benchmark.
    Andrew(andrew),
}

impl Parameters {
    /// The benchmark's name on the command line.
    pub fn name(&self) -> &'static str {
        self.benchmark().name()
    }

    /// How often and in which order it is run.
    pub fn repeat(&self) -> &Repeat {
        self.benchmark().repeat()
    }
}

/// A benchmark made ready for one target.
pub trait Prepared {
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
    /// All rounds of a stage are run before the next begins: for what changes what others measure. Stages of the same
    /// label are one point of the result.
    #[serde(skip)]
    pub stage: u32,
}

/// One phase, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
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
