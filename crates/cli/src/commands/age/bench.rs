//! `--bench`: benchmarks on the aged file system and on a fresh one made like it, their rounds interleaved.

use crate::{failure, output, progress, target};
use posix::{Call, FileSystem, Site, Target, WorkspaceOptions};
use serde::Serialize;
use std::path::{Path, PathBuf};
use workload::{BenchResult, Benchmark as _, Comparison, Parameters, Place, Repeat, hotfiles, scan, seqfile};

/// The arguments.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct BenchArgs {
    /// Run benchmarks when a scratch target or one of the laboratory is aged, on it and on a fresh one like it:
    /// seqfile, and hotfiles and scan on the aged tree and on a copy of it written in one go. For a directory: fsage
    /// bench before and after, and fsage bench --compare.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["keep", "image", "resume"])]
    bench: Vec<Benchmark>,
    /// Rounds of each benchmark; fewer than six make intervals that promise too much (default: 6; 1 in the laboratory).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "bench")]
    bench_rounds: Option<u32>,
    /// File sizes of seqfile, separated by commas.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = crate::values::size, requires = "bench",
        default_value = "4K,16K,64K,256K,1M,4M")]
    bench_sizes: Vec<u64>,
}

/// A benchmark of `fsage bench`.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Benchmark {
    Seqfile,
    Hotfiles,
    Scan,
}

/// The most recently modified share of the files is hot: an aged tree's times are those of the run, whose order is that
/// of simulated time. 10.6 % of the files were in the study of 1996 (929 of 8,774).
const HOT_SHARE: f64 = 0.1;

/// One benchmark, fresh and aged.
#[derive(Debug, Serialize)]
pub(super) struct FreshAndAged {
    /// What the fresh side is.
    fresh_is: &'static str,
    pub(super) result: BenchResult,
    #[serde(skip)]
    pub(super) comparison: Option<Comparison>,
}

impl BenchArgs {
    /// Refuses what cannot be done before anything is made.
    pub(super) fn check(&self, target: &Target) -> failure::Result<()> {
        if !self.bench.is_empty() && matches!(target, Target::Directory(_)) {
            return Err(failure::usage(
                "--bench: only a scratch target or one of the laboratory can be made a second time, fresh; for a \
                 directory run fsage bench before and after aging, and fsage bench --compare",
            ));
        }
        if let Some(parameters) = self.seqfile(target) {
            parameters.check()?;
        }
        Ok(())
    }

    /// In virtual time every run is like the first.
    fn repeat(&self, target: &Target) -> Repeat {
        let usual = match target {
            Target::Lab(_) => Repeat { rounds: 1, warm_up: false, ..Repeat::default() },
            Target::Directory(_) | Target::Scratch(_) => Repeat::default(),
        };
        Repeat { rounds: self.bench_rounds.unwrap_or(usual.rounds), ..usual }
    }

    fn seqfile(&self, target: &Target) -> Option<seqfile::Options> {
        self.bench.contains(&Benchmark::Seqfile).then(|| seqfile::Options {
            sizes_bytes: self.bench_sizes.clone(),
            repeat: self.repeat(target),
            ..seqfile::Options::default()
        })
    }

    /// Whether there is anything to run.
    pub(super) fn is_empty(&self) -> bool {
        self.bench.is_empty()
    }

    /// Runs them. `aged` is the workspace that holds the aged tree.
    pub(super) fn run(&self, target: &Target, aged: &dyn Site) -> failure::Result<Vec<FreshAndAged>> {
        let mut results = Vec::new();
        if let Some(options) = self.seqfile(target) {
            let fresh = target::open(target, &fresh_options())?;
            let own = Path::new(SEQFILE_DIR);
            let mut places = [fresh.handle_below(own)?, aged.handle_below(own)?];
            let result = side_by_side(&Parameters::Seqfile(options), &mut places);
            drop(places);
            // In the aged tree nothing may be left of it.
            let mut root = aged.handle();
            root.call(&Call::Rmdir { at: SEQFILE_DIR.into() }).result.map_err(std::io::Error::from)?;
            fresh.close()?;
            results.push(FreshAndAged::new("a fresh file system", result?));
        }
        let on_trees: Vec<Parameters> = self.bench.iter().filter_map(|b| self.on_tree(*b, target)).collect();
        if !on_trees.is_empty() {
            let fresh = target::open(target, &fresh_options())?;
            let mut places = [fresh.handle(), aged.handle()];
            let [copy, tree] = &mut places;
            let copied = workload::copy_tree(tree, copy)?;
            if let Some(left_out) = copied.left_out {
                progress::note(&format!("the copy: {left_out}"));
            }
            for parameters in on_trees {
                let result = side_by_side(&parameters, &mut places)?;
                results.push(FreshAndAged::new("a copy of the tree, written in one go on a fresh file system", result));
            }
            drop(places);
            fresh.close()?;
        }
        Ok(results)
    }

    fn on_tree(&self, benchmark: Benchmark, target: &Target) -> Option<Parameters> {
        let repeat = self.repeat(target);
        match benchmark {
            Benchmark::Seqfile => None,
            Benchmark::Hotfiles => Some(Parameters::Hotfiles(hotfiles::Options {
                select: hotfiles::Select::Share(HOT_SHARE),
                overwrite: false,
                piece_bytes: 4 << 20,
                repeat,
            })),
            Benchmark::Scan => Some(Parameters::Scan(scan::Options { repeat, ..scan::Options::default() })),
        }
    }
}

/// Both file systems lie in images of which every block has been written before: the first write of a block costs more
/// below.
fn fresh_options() -> WorkspaceOptions {
    WorkspaceOptions { written: true, ..WorkspaceOptions::default() }
}

/// The directory of seqfile's own, in the fresh file system and in the aged tree.
const SEQFILE_DIR: &str = ".fsage-seqfile";

fn side_by_side(parameters: &Parameters, handles: &mut [Box<dyn FileSystem>; 2]) -> failure::Result<BenchResult> {
    let [fresh, aged] = handles;
    let mut places = [Place { name: "fresh".to_owned(), fs: fresh }, Place { name: "aged".to_owned(), fs: aged }];
    let bar = progress::bar(1, parameters.name());
    let result = workload::run(parameters, &mut places, &mut |p| {
        progress::update(&bar, &format!("{} of {}, {}", parameters.name(), p.point, p.target), p.done, Some(p.total));
    });
    bar.finish_and_clear();
    Ok(result?)
}

impl FreshAndAged {
    fn new(fresh_is: &'static str, result: BenchResult) -> FreshAndAged {
        let comparison = workload::compare_targets(&result);
        FreshAndAged { fresh_is, result, comparison }
    }

    /// Writes the two sides as results of `fsage bench`, `NAME-fresh.json` and `NAME-aged.json`: what
    /// `fsage bench --compare` and `fsage layout --series` take.
    pub(super) fn write(&self, directory: &Path) -> failure::Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        for target in &self.result.targets {
            let side = BenchResult { targets: vec![target.clone()], ..self.result.clone() };
            let path = directory.join(format!("{}-{}.json", self.result.parameters.name(), target.name));
            let value = output::envelope(workload::SCHEMA, &side)?;
            output::write_file(&path, document::json_text(&value).as_bytes())?;
            written.push(path);
        }
        Ok(written)
    }

    /// Whether it is the one by file size, which the aging report draws.
    pub(super) fn is_by_size(&self) -> bool {
        matches!(self.result.parameters, Parameters::Seqfile(_))
    }

    /// What is said above the comparison.
    pub(super) fn describe(&self) -> String {
        format!("{}: fresh is {}; rounds are interleaved.", self.result.parameters.name(), self.fresh_is)
    }
}
