//! A software-development shop (SDET of SPEC's SDM suite; Gaede, *A Scaling Technique for Comparing Interactive System
//! Capacities*, 1982; used in the study of soft updates and journaling, USENIX 2000): so many users each run a
//! **script** of commands (edit, compile, copy, list, format, search) in a directory of their own, at the same time, on
//! programs and headers that they share. Scripts an hour.
//!
//! SDET itself is sold by SPEC and not reproduced: the commands here are of the kinds that its description names, with
//! mixture, sizes and computing times of our own (`Command::MIX`). So figures of this benchmark compare targets, and
//! are no SDET figures.
//!
//! Computing is waiting in slices of 10 ms on one of the target's processors: users compete for them as they do for the
//! disk, and no processor is really busy. `cpu` scales it; 1 is a workstation of 1999.

use crate::WorkloadError;
use crate::benchmark::{Benchmark, Prepared};
use crate::cleanup::{in_own_directory, top};
use crate::driver::Driver;
use crate::phase::Phase;
use crate::point::Point;
use crate::random::Random;
use crate::repeat::Repeat;
use crate::sample::Sample;
use crate::script::{Action, Script, compute, cpus, directory, play};
use posix::FileSystem;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use units::show;

/// Users that a run may be asked for: on a mounted system each is a thread.
const SCRIPTS_MAX: u32 = 1024;
/// Commands that users share, and their sizes in bytes.
const PROGRAMS: [(&str, u64); 12] = [
    ("cc", 90_000),
    ("cpp", 60_000),
    ("as", 150_000),
    ("ld", 120_000),
    ("ed", 45_000),
    ("nroff", 110_000),
    ("grep", 40_000),
    ("ls", 35_000),
    ("cp", 25_000),
    ("mv", 25_000),
    ("rm", 20_000),
    ("sh", 80_000),
];
const HEADERS: u64 = 40;
const HEADER_BYTES: u64 = 4000;
const DICTIONARY_BYTES: u64 = 200_000;

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Numbers of scripts at the same time, a point of the result each.
    pub scripts: Vec<u32>,
    /// Commands in a script.
    pub commands: u32,
    /// Computing times, as a multiple of those of a workstation of 1999; 0: none.
    pub cpu: f64,
    /// How often; its seed also makes the scripts.
    pub repeat: Repeat,
}

impl Default for Options {
    /// 1, 2, 4, 8 and 16 scripts of 100 commands.
    fn default() -> Options {
        Options { scripts: vec![1, 2, 4, 8, 16], commands: 100, cpu: 1.0, repeat: Repeat::default() }
    }
}

impl Options {
    /// One and four scripts of 25 commands with a tenth of the computing, once.
    pub fn quick() -> Options {
        Options { scripts: vec![1, 4], commands: 25, cpu: 0.1, repeat: Repeat::once() }
    }
}

impl Benchmark for Options {
    fn name(&self) -> &'static str {
        "sdet"
    }

    fn repeat(&self) -> &Repeat {
        &self.repeat
    }

    /// Space that it takes, by a generous estimate: 2 MiB shared, and for each user some documents, sources, objects
    /// and programs.
    fn need_bytes(&self) -> u64 {
        let most = u64::from(self.scripts.iter().copied().max().unwrap_or(0));
        (2 << 20) + most * ((1 << 20) + u64::from(self.commands) * 100_000)
    }

    /// Files and directories that are there at the same time, by a generous estimate.
    fn need_inodes(&self) -> u64 {
        let most = u64::from(self.scripts.iter().copied().max().unwrap_or(0));
        100 + most * (50 + 2 * u64::from(self.commands))
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what: String| Err(WorkloadError::Options(what));
        if self.scripts.is_empty() || self.scripts.iter().any(|n| *n == 0 || *n > SCRIPTS_MAX) || self.commands == 0 {
            return wrong(format!(
                "scripts (at most {SCRIPTS_MAX} at the same time) and their commands are at least 1"
            ));
        }
        for (at, scripts) in self.scripts.iter().enumerate() {
            if self.scripts.iter().take(at).any(|earlier| earlier == scripts) {
                return wrong(format!("{scripts} scripts are given twice"));
            }
        }
        if !(self.cpu >= 0.0 && self.cpu <= 1000.0) {
            return wrong("the factor of computing times lies between 0 and 1000".into());
        }
        Ok(())
    }

    fn prepare(&self, _: &mut dyn FileSystem) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Sdet::new(self)?))
    }

    fn what(&self) -> String {
        format!(
            "Users run scripts of {} commands each (edit, compile, copy, list, format, search) at the same time; \
             commands and mixture are fsage's own, so these are no SDET figures. Scripts an hour by the clock; \
             computing times are {} times those of a workstation of 1999.",
            show::count(self.commands.into()),
            self.cpu
        )
    }
}

/// The kinds of commands, with their shares in percent and the time they compute in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Edit,
    Compile,
    Link,
    Format,
    Spell,
    Copy,
    Move,
    Remove,
    List,
    Find,
    Search,
    Compare,
    Archive,
    Nothing,
}

impl Command {
    const MIX: [(Command, u64); 14] = [
        (Command::Edit, 16),
        (Command::Compile, 15),
        (Command::Link, 4),
        (Command::Format, 5),
        (Command::Spell, 3),
        (Command::Copy, 8),
        (Command::Move, 4),
        (Command::Remove, 8),
        (Command::List, 12),
        (Command::Find, 3),
        (Command::Search, 8),
        (Command::Compare, 4),
        (Command::Archive, 2),
        (Command::Nothing, 8),
    ];

    fn pick(random: &mut Random) -> Command {
        let all: u64 = Command::MIX.iter().map(|(_, share)| share).sum();
        let mut at = random.below(all);
        for (command, share) in Command::MIX {
            if at < share {
                return command;
            }
            at -= share;
        }
        Command::Nothing
    }

    fn program(self) -> &'static str {
        match self {
            Command::Edit => "ed",
            Command::Compile => "cc",
            Command::Link => "ld",
            Command::Format | Command::Spell => "nroff",
            Command::Copy | Command::Archive => "cp",
            Command::Move => "mv",
            Command::Remove => "rm",
            Command::List | Command::Find => "ls",
            Command::Search | Command::Compare => "grep",
            Command::Nothing => "sh",
        }
    }

    fn computes_ms(self) -> f64 {
        match self {
            Command::Compile => 250.0,
            Command::Link => 100.0,
            Command::Format => 200.0,
            Command::Spell => 80.0,
            Command::Edit | Command::Archive => 30.0,
            Command::Find | Command::Search | Command::Compare => 15.0,
            Command::Copy | Command::Move | Command::Remove | Command::List | Command::Nothing => 5.0,
        }
    }
}

/// A user: a directory, what is in it, and the commands to come.
struct User {
    home: PathBuf,
    shared: PathBuf,
    random: Random,
    cpu: f64,
    commands_left: u32,
    /// Files by kind; each with a number of its own.
    sources: Vec<PathBuf>,
    documents: Vec<PathBuf>,
    objects: Vec<PathBuf>,
    others: Vec<PathBuf>,
    next_name: u64,
    actions: VecDeque<Action>,
}

impl User {
    fn new(options: &Options, top: &Path, number: u32) -> User {
        let mut user = User {
            home: top.join(format!("u{number:04}")),
            shared: top.join("shared"),
            random: Random::new(options.repeat.seed.wrapping_add(u64::from(number) << 32), "sdet"),
            cpu: options.cpu,
            commands_left: options.commands,
            sources: Vec::new(),
            documents: Vec::new(),
            objects: Vec::new(),
            others: Vec::new(),
            next_name: 0,
            actions: VecDeque::new(),
        };
        user.log_in();
        user
    }

    /// The first thing in a script: directories, and copies of some sources and documents.
    fn log_in(&mut self) {
        for path in ["", "src", "doc", "tmp"] {
            self.actions.push_back(Action::Mkdir(directory(&self.home, path)));
        }
        for _ in 0..8 {
            self.new_source();
        }
        for _ in 0..3 {
            self.new_document();
        }
    }

    fn name(&mut self, directory: &str, suffix: &str) -> PathBuf {
        self.next_name += 1;
        self.home.join(directory).join(format!("{:04}{suffix}", self.next_name))
    }

    fn write(&mut self, path: &Path, mean_bytes: f64) {
        let size = self.random.log_normal(mean_bytes, 0.8);
        self.actions.push_back(Action::Write(path.to_path_buf(), size));
    }

    fn new_source(&mut self) {
        let path = self.name("src", ".c");
        self.write(&path, 6000.0);
        self.sources.push(path);
    }

    fn new_document(&mut self) {
        let path = self.name("doc", ".ms");
        self.write(&path, 15_000.0);
        self.documents.push(path);
    }

    fn any(&mut self, kind: fn(&User) -> &Vec<PathBuf>) -> Option<PathBuf> {
        let count = kind(self).len() as u64;
        let at = usize::try_from(self.random.below(count)).unwrap_or(0);
        kind(self).get(at).cloned()
    }

    fn read(&mut self, path: PathBuf) {
        self.actions.push_back(Action::Read(path));
    }

    fn command(&mut self) {
        let command = Command::pick(&mut self.random);
        // The shell looks for the program, and the kernel loads it.
        let program = self.shared.join("bin").join(command.program());
        self.actions.push_back(Action::Stat(program.clone()));
        self.read(program);
        self.actions.push_back(compute(command.computes_ms(), self.cpu));
        self.files_of(command);
        if command == Command::Compile {
            self.actions.push_back(compute(command.computes_ms() / 2.0, self.cpu));
        }
    }

    fn files_of(&mut self, command: Command) {
        match command {
            Command::Edit => self.edit(),
            Command::Compile => self.compile(),
            Command::Link => self.link(),
            Command::Format => {
                if let Some(document) = self.any(|user| &user.documents) {
                    self.read(document);
                    let output = self.name("doc", ".out");
                    self.write(&output, 20_000.0);
                    self.others.push(output);
                }
            }
            Command::Spell => {
                self.read(self.shared.join("dictionary"));
                if let Some(document) = self.any(|user| &user.documents) {
                    self.read(document);
                }
            }
            Command::Copy => {
                if let Some(source) = self.any(|user| &user.sources) {
                    self.read(source);
                    self.new_source();
                }
            }
            Command::Move => self.rename(),
            Command::Remove => self.remove(),
            Command::List => self.list("src"),
            Command::Find => ["src", "doc", "tmp"].into_iter().for_each(|directory| self.list(directory)),
            Command::Search => self.sources.clone().into_iter().for_each(|source| self.read(source)),
            Command::Compare => {
                for _ in 0..2 {
                    if let Some(source) = self.any(|user| &user.sources) {
                        self.read(source);
                    }
                }
            }
            Command::Archive => {
                self.sources.clone().into_iter().for_each(|source| self.read(source));
                let archive = self.name("tmp", ".cpio");
                self.write(&archive, 50_000.0);
                self.others.push(archive);
            }
            Command::Nothing => {}
        }
    }

    /// An editor reads a file, works on a copy, and writes the file anew.
    fn edit(&mut self) {
        let edited = if self.random.below(4) == 0 { None } else { self.any(|user| &user.sources) };
        let Some(source) = edited else { return self.new_source() };
        self.read(source.clone());
        let copy = self.name("tmp", ".ed");
        self.write(&copy, 6000.0);
        self.write(&source, 6000.0);
        self.actions.push_back(Action::Unlink(copy));
    }

    /// A compiler reads a source and headers, passes assembly through a temporary file, and writes an object.
    fn compile(&mut self) {
        let Some(source) = self.any(|user| &user.sources) else { return self.new_source() };
        self.read(source.clone());
        for _ in 0..8 {
            let header = self.random.below(HEADERS);
            self.read(self.shared.join("include").join(format!("h{header:02}.h")));
        }
        let assembly = self.name("tmp", ".s");
        self.write(&assembly, 20_000.0);
        self.read(assembly.clone());
        let object = source.with_extension("o");
        self.write(&object, 8000.0);
        self.actions.push_back(Action::Unlink(assembly));
        if !self.objects.contains(&object) {
            self.objects.push(object);
        }
    }

    fn link(&mut self) {
        if self.objects.is_empty() {
            return self.compile();
        }
        self.objects.clone().into_iter().for_each(|object| self.read(object));
        let program = self.home.join("src").join("a.out");
        self.write(&program, 60_000.0);
        if !self.others.contains(&program) {
            self.others.push(program);
        }
    }

    fn rename(&mut self) {
        let Some(from) = self.any(|user| &user.documents) else { return self.new_document() };
        let to = self.name("doc", ".ms");
        self.documents.retain(|path| *path != from);
        self.documents.push(to.clone());
        self.actions.push_back(Action::Rename(from, to));
    }

    /// Outputs go first, then objects; a source only while there are several.
    fn remove(&mut self) {
        let gone = match () {
            () if !self.others.is_empty() => self.any(|user| &user.others),
            () if !self.objects.is_empty() => self.any(|user| &user.objects),
            () if self.sources.len() > 4 => self.any(|user| &user.sources),
            () => None,
        };
        if let Some(path) = gone {
            for kind in [&mut self.others, &mut self.objects, &mut self.sources] {
                kind.retain(|other| *other != path);
            }
            self.actions.push_back(Action::Unlink(path));
        }
    }

    /// `ls -l`: names, and the attributes of each.
    fn list(&mut self, directory: &str) {
        let directory = self.home.join(directory);
        self.actions.push_back(Action::List(directory.clone()));
        let kinds = [&self.sources, &self.documents, &self.objects, &self.others];
        let names = kinds.into_iter().flatten().filter(|path| path.parent() == Some(&directory));
        self.actions.extend(names.cloned().map(Action::Stat));
    }
}

impl Iterator for User {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        while self.actions.is_empty() {
            self.commands_left = self.commands_left.checked_sub(1)?;
            self.command();
            if self.commands_left == 0 {
                self.actions.push_back(Action::Completed);
            }
        }
        self.actions.pop_front()
    }
}

/// The benchmark on one target.
pub(crate) struct Sdet {
    options: Options,
}

impl Sdet {
    pub(crate) fn new(options: &Options) -> Result<Sdet, WorkloadError> {
        options.check()?;
        Ok(Sdet { options: options.clone() })
    }

    fn phase(&self, driver: &mut Driver<'_>, top: &Path, scripts: u32) -> Result<Sample, WorkloadError> {
        let shared = top.join("shared");
        for directory in [shared.clone(), shared.join("bin"), shared.join("include")] {
            driver.mkdir(&directory)?;
        }
        for (name, size) in PROGRAMS {
            driver.create(&shared.join("bin").join(name), size, 64 << 10)?;
        }
        for header in 0..HEADERS {
            driver.create(&shared.join("include").join(format!("h{header:02}.h")), HEADER_BYTES, 64 << 10)?;
        }
        driver.create(&shared.join("dictionary"), DICTIONARY_BYTES, 64 << 10)?;
        driver.begin_cold()?;
        let users = (0..scripts).map(|number| Box::new(User::new(&self.options, top, number)) as Script);
        play(driver, users.collect(), cpus(driver))?;
        let commands = u64::from(self.options.commands) * u64::from(scripts);
        Ok(driver.end(Phase::Scripts).by_clock().with_counts(&[("commands", commands)]))
    }
}

fn label(scripts: u32) -> String {
    format!("{scripts} script{}", if scripts == 1 { "" } else { "s" })
}

impl Prepared for Sdet {
    fn points(&self) -> Vec<Point> {
        let point = |scripts: &u32| Point { label: label(*scripts), size_bytes: None, stage: 0 };
        self.options.scripts.iter().map(point).collect()
    }

    fn once(&mut self, driver: &mut Driver<'_>, point: &Point, tag: &str) -> Result<Vec<Sample>, WorkloadError> {
        let scripts = self.options.scripts.iter().copied().find(|n| label(*n) == point.label).unwrap_or(1);
        let top = top("sdet", tag);
        in_own_directory(driver, &top, |driver| Ok(vec![self.phase(driver, &top, scripts)?]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn script(seed: u64, number: u32) -> Vec<Action> {
        let repeat = Repeat { seed, ..Repeat::once() };
        User::new(&Options { commands: 2000, repeat, ..Options::default() }, Path::new("t"), number).collect()
    }

    #[test]
    fn a_script_is_made_by_its_seed_and_number() {
        assert_eq!(script(1, 0), script(1, 0));
        assert_ne!(script(1, 0).len(), script(2, 0).len());
        assert_ne!(script(1, 0).len(), script(1, 1).len());
        assert_eq!(script(1, 0).iter().filter(|action| **action == Action::Completed).count(), 1);
    }

    #[test]
    fn only_what_is_there_is_read_listed_renamed_and_removed() {
        let mut there: BTreeSet<PathBuf> = BTreeSet::new();
        for action in script(3, 5) {
            let ours = |path: &PathBuf| path.starts_with("t/u0005");
            match action {
                Action::Mkdir(path) => assert!(there.insert(path)),
                Action::Write(path, size) => {
                    assert!(size > 0 && ours(&path));
                    there.insert(path);
                }
                Action::Unlink(path) => assert!(there.remove(&path), "{path:?}"),
                Action::Rename(from, to) => assert!(there.remove(&from) && there.insert(to)),
                Action::Read(path) | Action::Stat(path) | Action::List(path) => {
                    assert!(!ours(&path) || there.contains(&path), "{path:?}");
                }
                Action::Append(..) | Action::Compute(_) | Action::Completed => {}
            }
        }
        assert!(there.len() < 1000, "a home that keeps growing: {}", there.len());
    }

    #[test]
    fn the_mix_is_a_hundred_per_cent() {
        assert_eq!(Command::MIX.iter().map(|(_, share)| share).sum::<u64>(), 100);
    }
}
