//! The Andrew benchmark (Howard et al., *Scale and Performance in a Distributed File System*, TOCS 6(1), 1988, section
//! 4.1): five phases on a tree of source files. **Mkdir** makes the directories of a copy, **copy** copies every file,
//! **stat** asks for the attributes of every file, **read** reads every byte of every file, **compile** compiles and
//! links.
//!
//! Seconds for each phase, by the clock; nothing is synced, and caches are dropped before the first only. The tree is
//! built in: 70 files with 200 KB, as in the paper, in 5 directories; what is in it, and how long it takes to compile,
//! is ours. A workstation of today is through with one copy before the clock has moved, so that several can be asked
//! for. Computing is waiting on a processor; `cpu` scales it, 1 is a workstation of 1999.
//!
//! **Several users** (`users`) at the same time have an original and copies each, and go through the five phases at
//! their own pace: how many users' work is done in an hour, by the clock. The disk is shared, and so are the
//! processors.

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared};
use crate::cleanup::{in_own_directory, top};
use crate::driver::Driver;
use crate::phase::{Phase, Unit};
use crate::point::Point;
use crate::random::Random;
use crate::repeat::Repeat;
use crate::sample::Sample;
use crate::script::{Action, Script, compute, cpus, directory, play};
use posix::FileSystem;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use units::show;

const DIRECTORIES: [&str; 5] = ["", "include", "lib", "src", "doc"];
/// Directory, suffix, files, mean bytes: 70 files with 200 KB.
const TREE: [(&str, &str, u64, f64); 4] =
    [("include", "h", 25, 1500.0), ("lib", "c", 15, 3500.0), ("src", "c", 20, 4200.0), ("doc", "t", 10, 2600.0)];
const SPREAD: f64 = 0.6;
/// Headers that a source includes, and what compiling it computes, milliseconds.
const INCLUDES: u64 = 8;
const COMPILE_MS: f64 = 200.0;
const LINK_MS: f64 = 300.0;
/// In this order.
const PHASES: [Phase; 5] = [Phase::Mkdir, Phase::Copy, Phase::Stat, Phase::Read, Phase::Compile];
/// Users at the same time, at most.
const USERS_MAX: u32 = 1000;

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// How many copies of the tree each phase goes through, of each user.
    pub copies: u32,
    /// Numbers of users at the same time, a point of the result each; none: one user, with the time of each phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<u32>,
    /// Computing times, as a multiple of those of a workstation of 1999; 0: none.
    pub cpu: f64,
    /// How often; its seed also makes the sizes.
    pub repeat: Repeat,
}

impl Default for Options {
    /// Ten copies.
    fn default() -> Options {
        Options { copies: 10, users: Vec::new(), cpu: 1.0, repeat: Repeat::default() }
    }
}

impl Options {
    /// Two copies with a tenth of the computing, once.
    pub fn quick() -> Options {
        Options { copies: 2, users: Vec::new(), cpu: 0.1, repeat: Repeat::once() }
    }

    /// Trees that there are at the same time, at most.
    fn trees(&self) -> u64 {
        let users = self.users.iter().copied().max().unwrap_or(1);
        u64::from(users) * (u64::from(self.copies) + 1)
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "andrew"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Space that it takes at most, in whole blocks of 4 KiB: 1 MiB a copy, and the original.
    fn need_bytes(&self) -> u64 {
        self.trees() << 20
    }

    fn need_inodes(&self) -> u64 {
        1 + self.trees() * 130
    }

    fn check(&self) -> Result<(), WorkloadError> {
        if self.copies == 0 || self.copies > 100_000 || !(self.cpu >= 0.0 && self.cpu <= 1000.0) {
            let what = "copies are 1 to 100,000, and the factor of computing times lies between 0 and 1000";
            return Err(WorkloadError::Options(what.into()));
        }
        if self.users.iter().any(|n| *n == 0 || *n > USERS_MAX) {
            let what = format!("users at the same time are at least 1 and at most {USERS_MAX}");
            return Err(WorkloadError::Options(what));
        }
        let twice = self.users.iter().enumerate().find(|(at, n)| self.users.iter().take(*at).any(|other| other == *n));
        if let Some((_, users)) = twice {
            return Err(WorkloadError::Options(format!("{users} users are given twice")));
        }
        Ok(())
    }

    fn prepare(&self, _: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Andrew::new(self)?))
    }

    fn what(&self) -> String {
        let (copies, cpu) = (show::count(self.copies.into()), self.cpu);
        let computing = format!("computing times are {cpu} times those of a workstation of 1999. Nothing is synced.");
        if self.users.is_empty() {
            return format!(
                "The Andrew benchmark's five phases, each on {copies} copies of a tree of 70 files with about 200 KB; \
                 times are the clock's, and {computing}"
            );
        }
        format!(
            "Users go through the Andrew benchmark's five phases at the same time, each on {copies} copies of an own \
             tree of 70 files with about 200 KB. A script is what one user does; scripts an hour by the clock, and \
             {computing}"
        )
    }
}

/// The tree, by paths from its root.
struct Tree {
    files: Vec<(PathBuf, u64)>,
    random: Random,
    cpu: f64,
}

impl Tree {
    fn new(options: &Options) -> Tree {
        let mut random = Random::new(options.repeat.seed, "andrew");
        let mut files = Vec::new();
        for (directory, suffix, count, mean_bytes) in TREE {
            for n in 0..count {
                let path = Path::new(directory).join(format!("{suffix}{n:02}.{suffix}"));
                files.push((path, random.log_normal(mean_bytes, SPREAD)));
            }
        }
        Tree { files, random, cpu: options.cpu }
    }

    /// The same tree for one of several users, who includes other headers than the others do.
    fn of_user(options: &Options, number: u32) -> Tree {
        let own = Random::new(options.repeat.seed.wrapping_add(u64::from(number) << 32), "andrew users");
        Tree { random: own, ..Tree::new(options) }
    }

    /// What one of several users does.
    fn script(mut self, home: PathBuf, copies: u32) -> Script {
        let steps = PHASES.into_iter().flat_map(move |phase| (0..copies).map(move |number| (phase, number)));
        let original = home.join("original");
        let actions =
            steps.flat_map(move |(phase, number)| self.actions(phase, &original, &home.join(format!("copy{number}"))));
        Box::new(actions.chain([Action::Completed]))
    }

    /// Makes the original.
    fn make(&self, driver: &mut Driver<'_>, original: &Path) -> Result<(), WorkloadError> {
        for path in DIRECTORIES {
            driver.mkdir(&directory(original, path))?;
        }
        for (path, size) in &self.files {
            driver.create(&original.join(path), *size, 64 << 10)?;
        }
        Ok(())
    }

    /// What a phase does to one copy.
    fn actions(&mut self, phase: Phase, original: &Path, copy: &Path) -> Vec<Action> {
        let of_all =
            |action: &dyn Fn(PathBuf) -> Action| self.files.iter().map(|(p, _)| action(copy.join(p))).collect();
        match phase {
            Phase::Mkdir => DIRECTORIES.iter().map(|path| Action::Mkdir(directory(copy, path))).collect(),
            Phase::Copy => self
                .files
                .iter()
                .flat_map(|(path, size)| [Action::Read(original.join(path)), Action::Write(copy.join(path), *size)])
                .collect(),
            // `ls -lR` and `du`: directories are read for their names first.
            Phase::Stat => {
                let lists = DIRECTORIES.iter().map(|path| Action::List(directory(copy, path)));
                lists.chain::<Vec<Action>>(of_all(&Action::Stat)).collect()
            }
            Phase::Read => of_all(&Action::Read),
            _ => self.compile(copy),
        }
    }

    fn compile(&mut self, copy: &Path) -> Vec<Action> {
        let of_kind = |suffix: &str| -> Vec<(PathBuf, u64)> {
            let kind = self.files.iter().filter(|(path, _)| path.extension().is_some_and(|found| found == suffix));
            kind.map(|(path, size)| (copy.join(path), *size)).collect()
        };
        let (headers, sources) = (of_kind("h"), of_kind("c"));
        let mut actions = Vec::new();
        let mut objects = Vec::new();
        for (source, size) in sources {
            actions.push(Action::Stat(source.clone()));
            actions.push(Action::Read(source.clone()));
            for _ in 0..INCLUDES {
                let at = usize::try_from(self.random.below(headers.len() as u64)).unwrap_or(0);
                actions.extend(headers.get(at).map(|(header, _)| Action::Read(header.clone())));
            }
            actions.push(compute(COMPILE_MS, self.cpu));
            let object = source.with_extension("o");
            actions.push(Action::Write(object.clone(), size / 2 + 500));
            objects.push((object, size / 2 + 500));
        }
        actions.extend(objects.iter().map(|(object, _)| Action::Read(object.clone())));
        actions.push(compute(LINK_MS, self.cpu));
        let program_bytes = objects.iter().map(|(_, size)| size).sum::<u64>().max(1);
        actions.push(Action::Write(copy.join("src").join("program"), program_bytes));
        actions
    }
}

/// The benchmark on one target.
pub(crate) struct Andrew {
    options: Options,
}

impl Andrew {
    pub(crate) fn new(options: &Options) -> Result<Andrew, WorkloadError> {
        options.check()?;
        Ok(Andrew { options: options.clone() })
    }

    fn phases(&self, driver: &mut Driver<'_>, top: &Path) -> Result<Vec<Sample>, WorkloadError> {
        let mut tree = Tree::new(&self.options);
        let original = top.join("original");
        tree.make(driver, &original)?;
        driver.begin_cold()?;
        let mut samples = Vec::new();
        for phase in PHASES {
            if phase != Phase::Mkdir {
                driver.begin_warm()?;
            }
            for number in 0..self.options.copies {
                let actions = tree.actions(phase, &original, &top.join(format!("copy{number}")));
                let cpus = cpus(driver);
                play(driver, vec![Box::new(actions.into_iter())], cpus)?;
            }
            samples.push(driver.end(phase).per(Unit::CallsPerSecond).by_clock());
        }
        Ok(samples)
    }

    /// Several users at the same time.
    fn together(&self, driver: &mut Driver<'_>, top: &Path, users: u32) -> Result<Sample, WorkloadError> {
        let mut scripts: Vec<Script> = Vec::new();
        for number in 0..users {
            let (tree, home) = (Tree::of_user(&self.options, number), top.join(format!("u{number:04}")));
            driver.mkdir(&home)?;
            tree.make(driver, &home.join("original"))?;
            scripts.push(tree.script(home, self.options.copies));
        }
        driver.begin_cold()?;
        play(driver, scripts, cpus(driver))?;
        Ok(driver.end(Phase::Scripts).by_clock())
    }
}

fn label(users: u32) -> String {
    format!("{users} user{}", if users == 1 { "" } else { "s" })
}

impl Prepared for Andrew {
    fn points(&self) -> Vec<Point> {
        if self.options.users.is_empty() {
            return vec![Point { label: "Andrew".into(), size_bytes: None, stage: 0 }];
        }
        let point = |users: &u32| Point { label: label(*users), size_bytes: None, stage: 0 };
        self.options.users.iter().map(point).collect()
    }

    fn once(&mut self, driver: &mut Driver<'_>, point: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        let top = top("andrew", tag);
        let users = self.options.users.iter().copied().find(|n| label(*n) == point.label);
        in_own_directory(driver, &top, |driver| match users {
            Some(users) => Ok(vec![self.together(driver, &top, users)?]),
            None => self.phases(driver, &top),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_70_files_and_about_200_kilobytes() {
        let tree = Tree::new(&Options::default());
        let bytes: u64 = tree.files.iter().map(|(_, size)| size).sum();
        assert_eq!(tree.files.len(), 70);
        assert!((170_000..240_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn users_have_the_same_tree_and_include_other_headers() {
        let options = Options { copies: 2, ..Options::quick() };
        let script = |number| -> Vec<Action> {
            let tree = Tree::of_user(&options, number);
            assert_eq!(tree.files, Tree::new(&options).files);
            tree.script(PathBuf::from("u"), options.copies).collect()
        };
        let (one, other) = (script(0), script(1));
        assert_eq!((one.len(), one == script(0), one == other), (other.len(), true, false));
        let done = one.iter().filter(|action| **action == Action::Completed).count();
        let made = one.iter().filter(|action| matches!(action, Action::Mkdir(_))).count();
        assert_eq!((done, made), (1, 2 * DIRECTORIES.len()));
    }
}
