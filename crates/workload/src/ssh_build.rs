//! Unpacking, configuring and building a package (*Journaling Versus Soft Updates*, Seltzer et al., USENIX 2000,
//! section 5.2: ssh 1.2.26).
//!
//! **Unpack** reads an archive of about 1 MB and makes the source tree. **Configure** finds out what the system can do:
//! it writes, compiles, runs and removes many small programs, and then makes headers and makefiles from templates.
//! **Build** compiles every source with the headers it includes, through a temporary file, and links libraries and
//! programs; it mostly computes. Seconds for each phase, by the clock; nothing is synced or dropped between them.
//!
//! The package here is like the original's in kind and size (about 400 files and 3 MB in 8 directories), not a copy of
//! it: numbers and mean sizes of files are in `PACKAGE`, sizes scatter by seed. Compiler, system headers and the shell
//! lie elsewhere and are not read. Computing is waiting on a processor; `cpu` scales it, 1 is a workstation of 1999.

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared};
use crate::cleanup::{in_own_directory, top};
use crate::driver::Driver;
use crate::phase::Phase;
use crate::point::Point;
use crate::random::Random;
use crate::repeat::Repeat;
use crate::sample::Sample;
use crate::script::{Action, compute, cpus, directory, play};
use posix::FileSystem;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use units::show;

/// Directories, parents first.
const DIRECTORIES: [&str; 8] = ["", "gmp", "gmp/mpn", "gmp/mpn/generic", "gmp/mpn/asm", "gmp/mpz", "zlib", "doc"];
/// The package: directory, suffix, files, mean bytes.
const PACKAGE: [(&str, &str, u64, f64); 11] = [
    ("", "c", 75, 14_000.0),
    ("", "h", 65, 4_000.0),
    ("", "in", 12, 10_000.0),
    ("doc", "txt", 20, 20_000.0),
    ("gmp", "c", 15, 5_000.0),
    ("gmp", "h", 8, 20_000.0),
    ("gmp/mpz", "c", 90, 3_000.0),
    ("gmp/mpn/generic", "c", 45, 5_000.0),
    ("gmp/mpn/asm", "s", 60, 4_000.0),
    ("zlib", "c", 15, 12_000.0),
    ("zlib", "h", 8, 10_000.0),
];
/// Spread of sizes: standard deviation of their natural logarithm.
const SPREAD: f64 = 0.9;
const ARCHIVE_BYTES: u64 = 1 << 20;
/// What `configure` tries out, and what each trial computes, milliseconds.
const TRIALS: u64 = 110;
const TRIAL_MS: f64 = 80.0;
/// Headers of the package that a source includes.
const INCLUDES: u64 = 15;
/// What compiling a source computes for every kilobyte of it, and at least, milliseconds.
const COMPILE_MS_PER_KB: f64 = 25.0;
const COMPILE_MS: f64 = 100.0;
const LINK_MS: f64 = 400.0;
const PROGRAMS: u64 = 7;

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// How many packages are built, one after another.
    pub packages: u32,
    /// Computing times, as a multiple of those of a workstation of 1999; 0: none.
    pub cpu: f64,
    /// How often; its seed also makes the sizes.
    pub repeat: Repeat,
}

impl Default for Options {
    /// One package.
    fn default() -> Options {
        Options { packages: 1, cpu: 1.0, repeat: Repeat::default() }
    }
}

impl Options {
    /// One package with a fiftieth of the computing, once.
    pub fn quick() -> Options {
        Options { cpu: 0.02, repeat: Repeat::once(), ..Options::default() }
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "ssh-build"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Space that it takes at most, by a generous estimate: 16 MiB a package.
    fn need_bytes(&self) -> u64 {
        u64::from(self.packages) << 24
    }

    fn need_inodes(&self) -> u64 {
        1 + u64::from(self.packages) * 800
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if self.packages == 0 || self.packages > 10_000 || !(self.cpu >= 0.0 && self.cpu <= 1000.0) {
            let what = "packages are 1 to 10,000, and the factor of computing times lies between 0 and 1000";
            return Err(WorkloadError::Options(what.into()));
        }
        Ok(())
    }

    fn prepare(&self, _: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(SshBuild::new(self)?))
    }

    fn what(&self) -> String {
        format!(
            "A package of 413 files is unpacked, configured and built, {} in all; times are the clock's, and computing \
             times {} times those of a workstation of 1999. Nothing is synced.",
            show::count(self.packages.into()),
            self.cpu
        )
    }
}

/// A file of the package.
struct Source {
    path: PathBuf,
    size: u64,
    suffix: &'static str,
}

/// One package, at a place of its own.
struct Package {
    root: PathBuf,
    files: Vec<Source>,
    random: Random,
    cpu: f64,
}

impl Package {
    fn new(options: &Options, top: &Path, number: u32) -> Package {
        let mut random = Random::new(options.repeat.seed.wrapping_add(u64::from(number) << 32), "ssh-build");
        let root = top.join(format!("package{number}"));
        let mut files = Vec::new();
        for (within, suffix, count, mean_bytes) in PACKAGE {
            for n in 0..count {
                let path = directory(&root, within).join(format!("{suffix}{n:03}.{suffix}"));
                files.push(Source { path, size: random.log_normal(mean_bytes, SPREAD), suffix });
            }
        }
        Package { root, files, random, cpu: options.cpu }
    }

    fn of_kind(&self, suffix: &str) -> Vec<&Source> {
        self.files.iter().filter(|file| file.suffix == suffix).collect()
    }

    fn unpack(&self, archive: &Path) -> Vec<Action> {
        let mut actions = vec![Action::Read(archive.to_path_buf())];
        actions.extend(DIRECTORIES.iter().map(|path| Action::Mkdir(directory(&self.root, path))));
        for file in &self.files {
            // Decompressing goes along with writing.
            actions.push(compute(file.size as f64 / 4e3, self.cpu));
            actions.push(Action::Write(file.path.clone(), file.size));
        }
        actions
    }

    fn configure(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        let (source, object, program) =
            (self.root.join("conftest.c"), self.root.join("conftest.o"), self.root.join("conftest"));
        let log = self.root.join("config.log");
        for trial in 0..TRIALS {
            actions.push(Action::Write(source.clone(), self.random.between(150, 600)));
            actions.push(Action::Read(source.clone()));
            actions.push(compute(TRIAL_MS, self.cpu));
            actions.push(Action::Write(object.clone(), self.random.between(700, 1500)));
            // Two in three are linked, and some of these run.
            if trial % 3 > 0 {
                actions.push(Action::Read(object.clone()));
                actions.push(Action::Write(program.clone(), self.random.between(6000, 12_000)));
                actions.push(Action::Read(program.clone()));
                actions.push(Action::Unlink(program.clone()));
            }
            actions.push(Action::Unlink(object.clone()));
            actions.push(Action::Unlink(source.clone()));
            actions.push(Action::Append(log.clone(), self.random.between(100, 400)));
        }
        actions.push(Action::Write(self.root.join("config.status"), 25_000));
        for template in self.of_kind("in") {
            actions.push(Action::Read(template.path.clone()));
            actions.push(compute(TRIAL_MS / 2.0, self.cpu));
            actions.push(Action::Write(template.path.with_extension("out"), template.size));
        }
        actions
    }

    fn build(&mut self) -> Vec<Action> {
        let headers: Vec<PathBuf> = self.of_kind("h").iter().map(|file| file.path.clone()).collect();
        let sources: Vec<(PathBuf, u64)> =
            self.files.iter().filter(|f| matches!(f.suffix, "c" | "s")).map(|f| (f.path.clone(), f.size)).collect();
        let mut actions = Vec::new();
        let mut objects = Vec::new();
        for (source, size) in &sources {
            // Make looks whether source and object are there, and how old.
            actions.push(Action::Stat(source.clone()));
            actions.push(Action::Read(source.clone()));
            for _ in 0..INCLUDES {
                let at = usize::try_from(self.random.below(headers.len() as u64)).unwrap_or(0);
                actions.extend(headers.get(at).cloned().map(Action::Read));
            }
            actions.push(compute(COMPILE_MS + COMPILE_MS_PER_KB * *size as f64 / 1024.0, self.cpu));
            let (temporary, object) = (self.root.join("cc.tmp"), source.with_extension("o"));
            actions.push(Action::Write(temporary.clone(), size * 2));
            actions.push(Action::Read(temporary.clone()));
            actions.push(Action::Write(object.clone(), size / 2 + 1000));
            actions.push(Action::Unlink(temporary));
            objects.push((object, size / 2 + 1000));
        }
        let mut library = Vec::new();
        for part in ["gmp", "zlib"] {
            let members: Vec<&(PathBuf, u64)> =
                objects.iter().filter(|(path, _)| path.starts_with(self.root.join(part))).collect();
            actions.extend(members.iter().map(|(path, _)| Action::Read(path.clone())));
            let archive = self.root.join(part).join("lib.a");
            actions.push(Action::Write(archive.clone(), members.iter().map(|(_, size)| size).sum::<u64>().max(1)));
            library.push(archive);
        }
        let own: Vec<PathBuf> =
            objects.iter().map(|(path, _)| path.clone()).filter(|p| p.parent() == Some(&self.root)).collect();
        for program in 0..PROGRAMS {
            actions.extend(own.iter().chain(&library).cloned().map(Action::Read));
            actions.push(compute(LINK_MS, self.cpu));
            actions.push(Action::Write(
                self.root.join(format!("program{program}")),
                self.random.between(200_000, 600_000),
            ));
        }
        actions
    }
}

/// The benchmark on one target.
pub(crate) struct SshBuild {
    options: Options,
}

impl SshBuild {
    pub(crate) fn new(options: &Options) -> Result<SshBuild, WorkloadError> {
        options.check()?;
        Ok(SshBuild { options: options.clone() })
    }

    fn phases(&self, driver: &mut Driver<'_>, top: &Path) -> Result<Vec<Sample>, WorkloadError> {
        let archive = top.join("package.tar.gz");
        driver.create(&archive, ARCHIVE_BYTES, 64 << 10)?;
        let mut packages: Vec<Package> =
            (0..self.options.packages).map(|number| Package::new(&self.options, top, number)).collect();
        driver.begin_cold()?;
        let mut samples = Vec::new();
        for phase in [Phase::Unpack, Phase::Configure, Phase::Build] {
            if phase != Phase::Unpack {
                driver.begin_warm()?;
            }
            for package in &mut packages {
                let actions = match phase {
                    Phase::Unpack => package.unpack(&archive),
                    Phase::Configure => package.configure(),
                    _ => package.build(),
                };
                let cpus = cpus(driver);
                play(driver, vec![Box::new(actions.into_iter())], cpus)?;
            }
            samples.push(driver.end(phase).by_clock());
        }
        Ok(samples)
    }
}

impl Prepared for SshBuild {
    fn points(&self) -> Vec<Point> {
        vec![Point { label: "package".into(), size_bytes: None, stage: 0 }]
    }

    fn once(&mut self, driver: &mut Driver<'_>, _: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        let top = top("ssh-build", tag);
        in_own_directory(driver, &top, |driver| self.phases(driver, &top))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_has_about_400_files_and_3_megabytes() {
        let package = Package::new(&Options::default(), Path::new("t"), 0);
        let bytes: u64 = package.files.iter().map(|file| file.size).sum();
        assert_eq!(package.files.len(), 413);
        assert!((2_400_000..3_800_000).contains(&bytes), "{bytes}");
    }
}
