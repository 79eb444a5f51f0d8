//! The benchmarks that make files of their own in a directory of their own: their arguments.

use super::targets::{RepeatArgs, in_virtual_time, on_targets};
use crate::output::ResultArgs;
use crate::{failure, target, values};
use posix::Target;
use workload::{
    BenchResult, Parameters, Repeat, andrew, hotcold, largefile, netnews, postmark, sdet, smallfile, ssh_build, tpcb,
};

macro_rules! workloads {
    ($($name:ident($args:ident),)*) => {
        /// Benchmarks of the literature.
        #[derive(clap::Subcommand, Debug)]
        pub enum Workload { $($name($args)),* }

        impl Workload {
            fn common(&self) -> &CommonArgs {
                match self { $(Workload::$name(args) => &args.common),* }
            }

            fn parameters(&self) -> failure::Result<Parameters> {
                let CommonArgs { quick, repeat, targets, .. } = self.common();
                let repeat = repeat.repeat(*quick || in_virtual_time(targets));
                Ok(match self { $(Workload::$name(args) => Parameters::$name(args.options(*quick, repeat)?)),* })
            }
        }
    };
}

// In the order of the help. A further one is a line here, its arguments and what options they come to.
workloads! {
    Smallfile(SmallfileArgs),
    Largefile(LargefileArgs),
    Tpcb(TpcbArgs),
    Hotcold(HotcoldArgs),
    Postmark(PostmarkArgs),
    Sdet(SdetArgs),
    SshBuild(SshBuildArgs),
    Netnews(NetnewsArgs),
    Andrew(AndrewArgs),
}

/// Where, how often, and where the result goes.
#[derive(clap::Args, Debug)]
pub struct CommonArgs {
    /// Directories, or scratch file systems (as root): ext4:8G, xfs:8G, btrfs:8G.
    #[arg(value_name = "TARGET", required = true, value_parser = target::parse)]
    targets: Vec<Target>,
    /// A smaller amount of everything, once: seconds rather than minutes.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    repeat: RepeatArgs,
    #[command(flatten)]
    result: ResultArgs,
}

/// Many small files: create, read, delete.
///
/// Rosenblum and Ousterhout, TOCS 1992: files a second for each phase; caches are dropped before the files are read.
#[derive(clap::Args, Debug)]
pub struct SmallfileArgs {
    /// How many files (default: 10,000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    files: Option<u32>,
    /// How large each is (default: 1K).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    size: Option<u64>,
    /// Files in a directory, at most (default: 100).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    per_directory: Option<u32>,
    #[command(flatten)]
    common: CommonArgs,
}

/// One large file: write, read, write at random, read at random, read again.
///
/// Rosenblum and Ousterhout, TOCS 1992: in units of 8 KiB; bytes a second for each phase, from cold caches.
#[derive(clap::Args, Debug)]
pub struct LargefileArgs {
    /// How large the file is (default: 100M).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    size: Option<u64>,
    /// The size of each read and write (default: 8K).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    unit: Option<u64>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Transaction processing: random updates of a bank's accounts.
///
/// Modified TPC-B of Seltzer et al., USENIX 1995: each transaction reads a page at random, and writes one that leaves
/// the database's own cache. Transactions a second in steady state. With --utilisation, one large file fills the file
/// system to that share; take a scratch file system then.
#[derive(clap::Args, Debug)]
pub struct TpcbArgs {
    /// Size of the account file (default: 237M, for 15 transactions a second).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    accounts: Option<u64>,
    /// Size of the database's own cache (default: 8M).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pool: Option<u64>,
    /// Time for which the database computes for each transaction, milliseconds (default: 0).
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(..=10_000))]
    compute: Option<u64>,
    /// Transactions to measure (default: 5,000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    transactions: Option<u64>,
    /// Shares of the file system to be in use, separated by commas: 50%,70%,90%.
    #[arg(long, value_name = "SHARES", value_delimiter = ',', value_parser = values::share)]
    utilisation: Vec<f64>,
    /// Share of the free space to write over before measuring; 1 and more makes a log-structured file system clean.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    turnover: f64,
    /// Second file systems for the database's log, one for each target; without it there is no log.
    #[arg(long, value_name = "TARGET", value_parser = target::parse)]
    log: Vec<Target>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Small files written over and over, uniformly or some more than others.
///
/// The cleaning workload of Rosenblum and Ousterhout, TOCS 1992: 4 KiB files are overwritten whole; uniform, and nine
/// tenths of the writes to a tenth of the files. With --utilisation, files are made until the file system is that full;
/// take a scratch file system then.
#[derive(clap::Args, Debug)]
pub struct HotcoldArgs {
    /// How many files, where no utilisation is given (default: 5,000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    files: Option<u64>,
    /// How large each is (default: 4K).
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    size: Option<u64>,
    /// Writes to measure (default: 20,000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    writes: Option<u64>,
    /// Shares of the file system to be in use, separated by commas: 50%,70%,90%.
    #[arg(long, value_name = "SHARES", value_delimiter = ',', value_parser = values::share)]
    utilisation: Vec<f64>,
    /// Share of the free space to write over before measuring; 1 and more makes a log-structured file system clean.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    turnover: f64,
    #[command(flatten)]
    common: CommonArgs,
}

/// PostMark: a mail server's small files, with the program's own parameters, files and report.
///
/// Katcher, 1997; the same settings make the same files and calls as Debian's postmark 1.53. The seed of the files is
/// --seed (default here: 42, as the program's).
#[derive(clap::Args, Debug)]
pub struct PostmarkArgs {
    /// Files in the pool (set number).
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
    /// Transactions (set transactions).
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    transactions: u32,
    /// Bounds of file sizes in bytes (set size).
    #[arg(long, num_args = 1..=2, value_names = ["LOW", "HIGH"], default_values_t = [500, 10_000])]
    size: Vec<u32>,
    /// Subdirectories over which the files are spread (set subdirectories).
    #[arg(long, value_name = "N", default_value_t = 0)]
    subdirectories: u32,
    /// Block size of reads in bytes (set read).
    #[arg(long, value_name = "BYTES", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    read: u32,
    /// Block size of writes in bytes (set write).
    #[arg(long, value_name = "BYTES", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    write: u32,
    /// Without the C library's buffer (set buffering false).
    #[arg(long)]
    unbuffered: bool,
    /// Reads among ten reads and appends; -1 for neither (set bias read).
    #[arg(long, value_name = "N", default_value_t = 5, allow_hyphen_values = true,
        value_parser = clap::value_parser!(i8).range(-1..=10))]
    bias_read: i8,
    /// Creations among ten creations and deletions; -1 for neither (set bias create).
    #[arg(long, value_name = "N", default_value_t = 5, allow_hyphen_values = true,
        value_parser = clap::value_parser!(i8).range(-1..=10))]
    bias_create: i8,
    #[command(flatten)]
    common: CommonArgs,
}

/// Software developers at work, several at the same time: scripts an hour.
///
/// In the manner of SPEC's SDET: scripts of commands that edit, compile, copy, list, format and search, in a directory
/// each. Commands and mixture are our own, so figures compare targets and are no SDET figures.
#[derive(clap::Args, Debug)]
pub struct SdetArgs {
    /// Numbers of scripts at the same time, separated by commas (default: 1,2,4,8,16).
    #[arg(long, value_name = "N", value_delimiter = ',')]
    scripts: Vec<u32>,
    /// Commands in a script (default: 100).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    commands: Option<u32>,
    /// Computing times, as a multiple of a workstation's of 1999 (default: 1; 0: none).
    #[arg(long, value_name = "FACTOR")]
    cpu: Option<f64>,
    #[command(flatten)]
    common: CommonArgs,
}

/// A package unpacked, configured and built.
///
/// In the manner of the study of 2000 (Seltzer et al., ssh 1.2.26): a tree of about 400 files of our own making; many
/// small programs in the second phase, and mostly computing in the third.
#[derive(clap::Args, Debug)]
pub struct SshBuildArgs {
    /// Packages, one after another (default: 1).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    packages: Option<u32>,
    /// Computing times, as a multiple of a workstation's of 1999 (default: 1; 0: none).
    #[arg(long, value_name = "FACTOR")]
    cpu: Option<f64>,
    #[command(flatten)]
    common: CommonArgs,
}

/// A news server: articles arrive, the oldest are removed.
///
/// In the manner of the study of 2000 (Seltzer et al.): unbatch and expire on a spool with a directory for each group.
/// The default is a twentieth of the study's spool.
#[derive(clap::Args, Debug)]
pub struct NetnewsArgs {
    /// The whole spool of the study: 2 GB, 333,000 articles.
    #[arg(long, conflicts_with = "quick")]
    whole: bool,
    /// Articles at the start (default: 16,650).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    articles: Option<u32>,
    /// Articles that arrive (default: 3,900).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    arrivals: Option<u32>,
    /// Articles that expire (default: 12,500).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    expired: Option<u32>,
    /// Groups (default: 100).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    groups: Option<u32>,
    #[command(flatten)]
    common: CommonArgs,
}

/// The Andrew benchmark: make directories, copy, stat, read, compile.
///
/// Howard et al., TOCS 1988, on a tree of 70 files that is built in. With --users several go through the five phases at
/// the same time, each at their own pace.
#[derive(clap::Args, Debug)]
pub struct AndrewArgs {
    /// Copies of the tree that each phase goes through (default: 10).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    copies: Option<u32>,
    /// Numbers of users at the same time, separated by commas, each with trees of their own: scripts an hour.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    users: Vec<u32>,
    /// Computing times, as a multiple of a workstation's of 1999 (default: 1; 0: none).
    #[arg(long, value_name = "FACTOR")]
    cpu: Option<f64>,
    #[command(flatten)]
    common: CommonArgs,
}

impl Workload {
    /// Where the result goes.
    pub fn result(&self) -> &ResultArgs {
        &self.common().result
    }

    fn logs(&self) -> &[Target] {
        if let Workload::Tpcb(args) = self { &args.log } else { &[] }
    }
}

/// Runs one.
pub fn run(workload: &Workload) -> failure::Result<BenchResult> {
    workload.result().check()?;
    on_targets(&workload.parameters()?, &workload.common().targets, workload.logs())
}

impl SmallfileArgs {
    fn options(&self, quick: bool, repeat: Repeat) -> failure::Result<smallfile::Options> {
        let base = if quick { smallfile::Options::quick() } else { smallfile::Options::default() };
        Ok(smallfile::Options {
            files: self.files.unwrap_or(base.files),
            size_bytes: self.size.unwrap_or(base.size_bytes),
            files_per_directory: self.per_directory.unwrap_or(base.files_per_directory),
            repeat,
        })
    }
}

impl LargefileArgs {
    fn options(&self, quick: bool, repeat: Repeat) -> failure::Result<largefile::Options> {
        let base = if quick { largefile::Options::quick() } else { largefile::Options::default() };
        let size_bytes = self.size.unwrap_or(base.size_bytes);
        Ok(largefile::Options { size_bytes, unit_bytes: self.unit.unwrap_or(base.unit_bytes), repeat })
    }
}

impl TpcbArgs {
    fn options(&self, quick: bool, repeat: Repeat) -> failure::Result<tpcb::Options> {
        let base = if quick { tpcb::Options::quick() } else { tpcb::Options::default() };
        Ok(tpcb::Options {
            account_bytes: self.accounts.unwrap_or(base.account_bytes),
            pool_bytes: self.pool.unwrap_or(base.pool_bytes),
            compute_ns: self.compute.map_or(base.compute_ns, |ms| ms * 1_000_000),
            transactions: self.transactions.unwrap_or(base.transactions),
            utilisations: self.utilisation.clone(),
            turnover: self.turnover,
            repeat,
            ..base
        })
    }
}

impl HotcoldArgs {
    fn options(&self, quick: bool, repeat: Repeat) -> failure::Result<hotcold::Options> {
        let base = if quick { hotcold::Options::quick() } else { hotcold::Options::default() };
        Ok(hotcold::Options {
            files: self.files.unwrap_or(base.files),
            file_bytes: self.size.unwrap_or(base.file_bytes),
            writes: self.writes.unwrap_or(base.writes),
            utilisations: self.utilisation.clone(),
            turnover: self.turnover,
            repeat,
            ..base
        })
    }
}

impl PostmarkArgs {
    fn options(&self, _quick: bool, repeat: Repeat) -> failure::Result<postmark::Options> {
        let seed = self.common.repeat.seed.unwrap_or(postmark::Options::default().seed.into());
        let (Some(&size_low), Some(&size_high)) = (self.size.first(), self.size.last()) else {
            return Err(failure::usage("--size: give a lower and an upper bound"));
        };
        Ok(postmark::Options {
            number: self.number,
            transactions: self.transactions,
            size_low,
            size_high,
            subdirectories: self.subdirectories,
            read_block: self.read,
            write_block: self.write,
            buffering: !self.unbuffered,
            // Below zero: neither of the two.
            bias_read: u8::try_from(self.bias_read).ok(),
            bias_create: u8::try_from(self.bias_create).ok(),
            seed: u32::try_from(seed).map_err(|_| failure::usage("--seed: PostMark's is at most 2147483647"))?,
            repeat,
        })
    }
}

impl SdetArgs {
    fn options(&self, quick: bool, repeat: Repeat) -> failure::Result<sdet::Options> {
        let base = if quick { sdet::Options::quick() } else { sdet::Options::default() };
        Ok(sdet::Options {
            scripts: if self.scripts.is_empty() { base.scripts } else { self.scripts.clone() },
            commands: self.commands.unwrap_or(base.commands),
            cpu: self.cpu.unwrap_or(base.cpu),
            repeat,
        })
    }
}

impl SshBuildArgs {
    fn options(&self, quick: bool, repeat: Repeat) -> failure::Result<ssh_build::Options> {
        let base = if quick { ssh_build::Options::quick() } else { ssh_build::Options::default() };
        Ok(ssh_build::Options {
            packages: self.packages.unwrap_or(base.packages),
            cpu: self.cpu.unwrap_or(base.cpu),
            repeat,
        })
    }
}

impl NetnewsArgs {
    fn options(&self, quick: bool, repeat: Repeat) -> failure::Result<netnews::Options> {
        let base = match (quick, self.whole) {
            (true, _) => netnews::Options::quick(),
            (_, true) => netnews::Options::paper(),
            _ => netnews::Options::default(),
        };
        Ok(netnews::Options {
            articles: self.articles.unwrap_or(base.articles),
            arrivals: self.arrivals.unwrap_or(base.arrivals),
            expired: self.expired.unwrap_or(base.expired),
            groups: self.groups.unwrap_or(base.groups),
            repeat,
            ..base
        })
    }
}

impl AndrewArgs {
    fn options(&self, quick: bool, repeat: Repeat) -> failure::Result<andrew::Options> {
        let base = if quick { andrew::Options::quick() } else { andrew::Options::default() };
        Ok(andrew::Options {
            copies: self.copies.unwrap_or(base.copies),
            users: self.users.clone(),
            cpu: self.cpu.unwrap_or(base.cpu),
            repeat,
        })
    }
}
