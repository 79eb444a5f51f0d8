//! Every benchmark with its options: the list of those that there are.

use crate::benchmark::Benchmark;
use crate::repeat::Repeat;
use crate::{andrew, hotcold, hotfiles, largefile, netnews, postmark, scan, sdet, seqfile, smallfile, ssh_build, tpcb};
use serde::{Deserialize, Serialize};

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
