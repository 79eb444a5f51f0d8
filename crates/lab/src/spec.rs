//! The grammar of laboratory targets, and what they open.

use crate::bytes::{self, Begun};
use crate::drive::{DEFAULT_DRIVE, DriveSpec};
use crate::{Data, FfsOptions, Laboratory, LfsOptions, OpenError};
use device::Device;
use device::beside::Beside;
use device::fixed::FixedDevice;
use device::store::{FileStore, MemoryStore, Store};
use ffs::Ffs;
use kernel::{Lab, LabError, Machine, Setup, Volume};
use lfs::Lfs;
use posix::TargetError;
use posix::grammar::{self, Piece};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The computer of a target that names none: that of Smith and Seltzer, USENIX 1996.
const DEFAULT_MACHINE: &str = "pentium-120";

/// The date at time 0 of a new file system: 1 January 1996, 0:00.
const EPOCH_S: i64 = 820_454_400;

/// A laboratory target as asked for. A program may change what it likes before opening it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The file system.
    pub system: System,
    /// Bytes of a new file system; `None` for the drive's capacity.
    pub size_bytes: Option<u64>,
    /// The drive.
    pub drive: DriveSpec,
    /// A drive that has nothing but the log of metadata; `None`: the log lies with everything else.
    pub log_drive: Option<DriveSpec>,
    /// The machine: a name, or the path of its file.
    pub machine: String,
    /// Bytes of the buffer cache; `None` for the machine's.
    pub cache_bytes: Option<u64>,
    /// Which bytes are kept.
    pub data: Data,
    /// An image to begin with instead of an empty file system; it is not changed, and every byte is kept, as if `data`
    /// were full.
    pub image: Option<PathBuf>,
    /// As the user wrote it, for the record.
    pub text: String,
}

/// Which file system, with its own options.
#[derive(Clone, Debug, PartialEq)]
pub enum System {
    /// The Berkeley Fast File System.
    Ffs(Box<FfsOptions>),
    /// The log-structured file system of 4.4BSD.
    Lfs(Box<LfsOptions>),
}

impl System {
    /// Sets what a word stands for; `false` if there is no such word.
    fn set_word(&mut self, word: &str) -> bool {
        match self {
            System::Ffs(own) => own.set_word(word),
            // All it has are keys.
            System::Lfs(_) => false,
        }
    }

    /// Sets a key; `None` if there is no such key, or else how far into the value something is wrong, and what.
    fn set_key(&mut self, key: &str, value: &str) -> Option<Result<(), (usize, String)>> {
        match self {
            System::Ffs(own) => own.set_key(key, value),
            System::Lfs(own) => own.set_key(key, value),
        }
    }

    /// The other key that was given and does not go with this one.
    fn excluded<'a>(&self, key: &str, given: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
        match self {
            System::Ffs(_) => FfsOptions::excluded(key, given),
            System::Lfs(_) => None,
        }
    }

    /// Whether a word or key says how a file system is made rather than how it works.
    fn is_of_making(&self, word: &str) -> bool {
        match self {
            System::Ffs(_) => FfsOptions::is_of_making(word),
            System::Lfs(_) => LfsOptions::is_of_making(word),
        }
    }

    fn set_seed(&mut self, seed: u64) {
        match self {
            System::Ffs(own) => own.policy.seed = seed,
            System::Lfs(own) => own.seed = seed,
        }
    }

    /// Everything accepted, for messages.
    fn accepted(&self) -> String {
        match self {
            System::Ffs(_) => FfsOptions::accepted(),
            System::Lfs(_) => LfsOptions::accepted(),
        }
    }
}

/// What is wrong at a place of the text.
struct Problem {
    position: usize,
    problem: String,
    accepted: String,
}

impl Spec {
    /// Reads a target: `ffs:realloc,size=502M@st32430n`.
    ///
    /// # Errors
    /// Something in it is not understood; the error says where, and what would be.
    pub fn parse(text: &str) -> Result<Spec, TargetError> {
        read(text).map_err(|Problem { position, problem, accepted }| TargetError {
            text: text.to_owned(),
            position,
            problem,
            accepted,
        })
    }

    /// The machine, with the cache asked for.
    ///
    /// # Errors
    /// There is no such machine, its file makes no sense, or the cache is larger than its memory.
    pub fn load_machine(&self) -> Result<Machine, OpenError> {
        let mut machine = Machine::load(&self.machine)?;
        if let Some(asked_bytes) = self.cache_bytes {
            let memory_bytes = machine.memory.bytes.value;
            if asked_bytes > memory_bytes {
                return Err(OpenError::Cache { asked_bytes, machine: self.machine.clone(), memory_bytes });
            }
            let source = "the target's cache=".to_owned();
            machine.memory.buffer_cache_bytes = kernel::Figure { value: asked_bytes, source };
        }
        Ok(machine)
    }

    /// The laboratory, mounted, whatever its file system.
    ///
    /// # Errors
    /// It cannot be set up as asked for.
    pub fn open(&self) -> Result<Box<dyn Laboratory>, OpenError> {
        self.open_on(self.load_machine()?)
    }

    /// The same on a machine that no name stands for.
    ///
    /// # Errors
    /// As [`Spec::open`].
    pub fn open_on(&self, machine: Machine) -> Result<Box<dyn Laboratory>, OpenError> {
        match &self.system {
            System::Ffs(own) => Ok(Box::new(self.ffs_on(own, machine)?)),
            System::Lfs(own) => Ok(Box::new(self.lfs_on(own, machine)?)),
        }
    }

    /// What is in an image, on a device that is as large and takes no time: to look at.
    pub(crate) fn look_at(image: &Path) -> Result<Box<dyn Laboratory>, OpenError> {
        let target = image.display().to_string();
        if bytes::is_lfs(image)? {
            let begun = bytes::of_lfs_image(image, lfs::Options::default(), &target)?;
            Ok(Box::new(on_a_device_without_time(begun, target)?))
        } else {
            let begun = bytes::of_image(image, ffs::policy::Options::default(), &target)?;
            Ok(Box::new(on_a_device_without_time(begun, target)?))
        }
    }

    /// The Fast File System with its types, mounted.
    ///
    /// # Errors
    /// It cannot be set up as asked for, or the target is of another file system.
    pub fn ffs(&self) -> Result<Lab<Ffs>, OpenError> {
        let System::Ffs(options) = &self.system else { return Err(self.not_a("Fast File System")) };
        self.ffs_on(options, self.load_machine()?)
    }

    fn ffs_on(&self, options: &FfsOptions, machine: Machine) -> Result<Lab<Ffs>, OpenError> {
        self.set_up(machine, Ffs::log_sectors, |size_bytes| match &self.image {
            Some(path) => bytes::of_image(path, options.policy, &self.text),
            None => {
                let begun = bytes::of_new(&options.mkfs(size_bytes, EPOCH_S), self.data, options.policy, options.log());
                begun.map_err(|source| OpenError::Ffs { target: self.text.clone(), source })
            }
        })
    }

    /// The log-structured file system with its types, mounted.
    ///
    /// # Errors
    /// It cannot be set up as asked for, or the target is of another file system.
    pub fn lfs(&self) -> Result<Lab<Lfs>, OpenError> {
        let System::Lfs(options) = &self.system else { return Err(self.not_a("log-structured file system")) };
        self.lfs_on(options, self.load_machine()?)
    }

    fn lfs_on(&self, options: &LfsOptions, machine: Machine) -> Result<Lab<Lfs>, OpenError> {
        self.set_up(
            machine,
            |_| None,
            |size_bytes| match &self.image {
                Some(path) => bytes::of_lfs_image(path, options.policy, &self.text),
                None => {
                    let begun = bytes::of_new_lfs(&options.mkfs(size_bytes, EPOCH_S), self.data, options.policy);
                    begun.map_err(|source| OpenError::Lfs { target: self.text.clone(), source })
                }
            },
        )
    }

    /// The image that a laboratory begins with, in memory and not mounted: a new file system of `size=`, or else of
    /// `default_bytes`, or what is in the image that the target names.
    ///
    /// # Errors
    /// It cannot be made or read, or has more than `most_bytes`.
    pub fn image_in_memory(&self, default_bytes: u64, most_bytes: u64) -> Result<MemoryStore, OpenError> {
        let too_large = |bytes: u64| OpenError::Memory { target: self.text.clone(), bytes, most_bytes };
        if let Some(path) = &self.image {
            let file = FileStore::open(path).map_err(|source| OpenError::io(path, "open the image", source))?;
            let bytes = file.len_bytes();
            let len = usize::try_from(bytes).ok().filter(|_| bytes <= most_bytes).ok_or_else(|| too_large(bytes))?;
            let mut image = vec![0; len];
            file.read_at(0, &mut image).map_err(|source| OpenError::io(path, "read the image", source))?;
            let mut store = MemoryStore(image);
            if let System::Ffs(own) = &self.system
                && own.policy.integrity.has_log()
            {
                ffs::log::make(&mut store, None)
                    .map_err(|source| OpenError::Ffs { target: self.text.clone(), source })?;
            }
            return Ok(store);
        }
        let bytes = self.size_bytes.unwrap_or(default_bytes);
        let len = usize::try_from(bytes).ok().filter(|_| bytes <= most_bytes).ok_or_else(|| too_large(bytes))?;
        let mut store = MemoryStore(vec![0; len]);
        self.make(&mut store)?;
        Ok(store)
    }

    /// Makes the target's file system on a store.
    pub(crate) fn make(&self, store: &mut impl Store) -> Result<(), OpenError> {
        let (bytes, target) = (store.len_bytes(), || self.text.clone());
        match &self.system {
            System::Ffs(own) => ffs::mkfs(store, &own.mkfs(bytes, EPOCH_S))
                .and_then(|_| own.log().map_or(Ok(()), |bytes| ffs::log::make(store, bytes)))
                .map_err(|source| OpenError::Ffs { target: target(), source }),
            System::Lfs(own) => lfs::mkfs(store, &own.mkfs(bytes, EPOCH_S))
                .map(drop)
                .map_err(|source| OpenError::Lfs { target: target(), source }),
        }
    }

    /// What is around a file system whose date is `time_s`, seconds since 1970.
    pub fn setup(&self, machine: Machine, time_s: i64) -> Setup {
        Setup {
            machine,
            target: self.text.clone(),
            drive: match &self.log_drive {
                Some(log) => format!("{} and {log} for the log", self.drive),
                None => self.drive.to_string(),
            },
            epoch_ns: time_s.max(EPOCH_S).saturating_mul(1_000_000_000),
        }
    }

    fn not_a(&self, system: &'static str) -> OpenError {
        OpenError::System { target: self.text.clone(), system }
    }

    /// The target's device, new and idle. Where a drive of its own was named for the log, what lies in `log` (sectors
    /// of 512 bytes) is on that.
    ///
    /// # Errors
    /// A drive makes no sense, or the log does not fit its own.
    pub fn device(&self, log: Option<Range<u64>>) -> Result<Box<dyn Device>, OpenError> {
        let main = self.drive.device()?;
        let Some((log_drive, log)) = self.log_drive.as_ref().zip(log) else { return Ok(main) };
        let refused = |why: String| OpenError::LogDrive { drive: log_drive.to_string(), why };
        let sectors = u64::from(main.sector_bytes()) / 512;
        if sectors == 0 || !log.start.is_multiple_of(sectors) || !log.end.is_multiple_of(sectors) {
            return Err(refused("the log begins or ends within a sector".to_owned()));
        }
        let range = log.start / sectors..log.end / sectors;
        let beside = Beside::new(main, log_drive.device()?, range);
        Ok(Box::new(beside.map_err(|why| refused(why.to_string()))?))
    }

    /// A file system on its machine and drive; `begin` is told how large a new one is to be, and `log` says where its
    /// log lies.
    fn set_up<V: Volume>(
        &self,
        machine: Machine,
        log: impl FnOnce(&V) -> Option<Range<u64>>,
        begin: impl FnOnce(u64) -> Result<Begun<V>, OpenError>,
    ) -> Result<Lab<V>, OpenError> {
        let device = self.drive.device()?;
        let capacity_bytes = device.capacity_sectors().saturating_mul(u64::from(device.sector_bytes()));
        let needed_bytes = self.size_bytes.unwrap_or(capacity_bytes);
        if self.image.is_none() && needed_bytes > capacity_bytes {
            let source = LabError::DeviceTooSmall { needed_bytes, there_bytes: capacity_bytes };
            return Err(OpenError::Lab { target: self.text.clone(), source });
        }
        let Begun { volume, bytes, time_s } = begin(needed_bytes)?;
        let device = self.device(log(&volume))?;
        let lab = Lab::with_image(volume, device, self.setup(machine, time_s), bytes);
        lab.map_err(|source| OpenError::Lab { target: self.text.clone(), source })
    }
}

fn on_a_device_without_time<V: Volume>(begun: Begun<V>, target: String) -> Result<Lab<V>, OpenError> {
    let Begun { volume, bytes, time_s } = begun;
    let device = Box::new(FixedDevice::new(bytes.store().len_bytes(), 0));
    let setup = Setup {
        machine: Machine::load(DEFAULT_MACHINE)?,
        target: target.clone(),
        drive: "none".to_owned(),
        epoch_ns: time_s.saturating_mul(1_000_000_000),
    };
    Lab::with_image(volume, device, setup, bytes).map_err(|source| OpenError::Lab { target, source })
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const SYSTEMS: &str = "the laboratory's file systems are ffs, as in ffs:realloc,size=502M@st32430n, and lfs, as in \
    lfs:cleaner=greedy,segment=512K@st32430n";
const QUOTES: &str = "quotes come in pairs, and a backslash quotes the next character";

fn read(text: &str) -> Result<Spec, Problem> {
    let wrong =
        |position, problem: String, accepted: &str| Problem { position, problem, accepted: accepted.to_owned() };
    let pieces = grammar::split(text, 1, '@').map_err(|(at, problem)| wrong(at, problem.to_owned(), QUOTES))?;
    let (before, drive) = match pieces.as_slice() {
        [.., last] if pieces.len() > 1 => {
            let before = text.get(..text.len() - last.text.len() - 1).unwrap_or_default();
            let drive = DriveSpec::parse(last.text, last.position);
            (before, drive.map_err(|(position, problem, accepted)| wrong(position, problem, accepted))?)
        }
        _ => (text, DriveSpec::One(DEFAULT_DRIVE.to_owned())),
    };
    let (name, options) = match before.split_once(':') {
        Some((name, options)) => (name, Some(options)),
        None => (before, None),
    };
    let system = match name {
        "ffs" => System::Ffs(Box::default()),
        "lfs" => System::Lfs(Box::default()),
        _ => return Err(wrong(1, format!("there is no file system '{name}' in the laboratory"), SYSTEMS)),
    };
    let spec = Spec {
        system,
        size_bytes: None,
        drive,
        log_drive: None,
        machine: DEFAULT_MACHINE.to_owned(),
        cache_bytes: None,
        data: Data::Given,
        image: None,
        text: text.to_owned(),
    };
    match options {
        Some(options) => {
            let start = name.chars().count() + 2;
            let pieces =
                grammar::split(options, start, ',').map_err(|(at, problem)| wrong(at, problem.to_owned(), QUOTES))?;
            with_options(spec, &pieces)
        }
        None => Ok(spec),
    }
}

/// Keys that every system has.
const KEYS: &str = "size=, machine=, cache=, seed=, data=given, data=full, image=, logdrive=";

fn with_options(mut spec: Spec, pieces: &[Piece<'_>]) -> Result<Spec, Problem> {
    let mut given: Vec<(String, usize)> = Vec::new();
    let accepted = spec.system.accepted();
    for piece in pieces {
        let wrong = |offset: usize, problem: String| Problem {
            position: piece.position + offset,
            problem,
            accepted: format!("accepted are {KEYS}; {accepted}"),
        };
        let word = grammar::words(piece.text).concat();
        let key = word.split_once('=').map_or(word.as_str(), |(key, _)| key);
        let Some((_, value)) = word.split_once('=') else {
            if !spec.system.set_word(&word) {
                let problem = match word.as_str() {
                    "" => "an option is empty".to_owned(),
                    _ => format!("'{word}' is no option{}", tip(&word, &accepted)),
                };
                return Err(wrong(0, problem));
            }
            given.push((word, piece.position));
            continue;
        };
        if given.iter().any(|(before, _)| before == key) {
            return Err(wrong(0, format!("{key}= is given twice")));
        }
        if let Some(other) = spec.system.excluded(key, given.iter().map(|(before, _)| before.as_str())) {
            return Err(wrong(0, format!("{key}= does not go with {other}=")));
        }
        let at_value = |(offset, problem): (usize, String)| wrong(key.len() + 1 + offset, problem);
        let common = common_key(&mut spec, key, value);
        match common.or_else(|| spec.system.set_key(key, value)) {
            Some(set) => set.map_err(at_value)?,
            None => return Err(wrong(0, format!("'{key}=' is no option{}", tip(&format!("{key}="), &accepted)))),
        }
        given.push((key.to_owned(), piece.position));
    }
    check_together(&spec, &given)?;
    Ok(spec)
}

/// The word or key that was probably meant, of those that are accepted.
fn tip(word: &str, accepted: &str) -> String {
    let known = KEYS.split(", ").chain(accepted.split([',', ';', ' ']).filter(|word| !word.is_empty()));
    units::similar::tip(word, known)
}

/// A key that every system has; `None` if it is none.
fn common_key(spec: &mut Spec, key: &str, value: &str) -> Option<Result<(), (usize, String)>> {
    let size = || grammar::parse_size(value).map_err(|(offset, problem)| (offset, problem.to_owned()));
    Some(match key {
        "size" => size().map(|n| spec.size_bytes = Some(n)),
        "cache" => size().map(|n| spec.cache_bytes = Some(n)),
        "machine" if value.contains('/') || value.ends_with(".toml") || Machine::names().any(|name| name == value) => {
            spec.machine = value.to_owned();
            Ok(())
        }
        "machine" => {
            let names: Vec<&str> = Machine::names().collect();
            let tip = units::similar::tip(value, names.iter().copied());
            let problem =
                format!("there is no machine '{value}'; there are {}, and any .toml file{tip}", names.join(", "));
            Err((0, problem))
        }
        "seed" => match value.parse() {
            Ok(seed) => {
                spec.system.set_seed(seed);
                Ok(())
            }
            Err(_) => Err((0, format!("'{value}' is no whole number"))),
        },
        "data" => match value {
            "given" | "full" => {
                spec.data = if value == "full" { Data::Full } else { Data::Given };
                Ok(())
            }
            _ => Err((0, format!("'{value}' is neither given nor full"))),
        },
        "logdrive" => match DriveSpec::parse(value, 0) {
            Ok(drive) => {
                spec.log_drive = Some(drive);
                Ok(())
            }
            Err((offset, problem, _)) => Err((offset, problem)),
        },
        "image" if value.is_empty() => Err((0, "the file is missing".to_owned())),
        "image" => {
            spec.image = Some(PathBuf::from(value));
            Ok(())
        }
        _ => return None,
    })
}

/// What makes no sense together.
fn check_together(spec: &Spec, given: &[(String, usize)]) -> Result<(), Problem> {
    let at = |key: &str| given.iter().find(|(known, _)| known == key).map(|(_, position)| *position);
    let wrong =
        |position, problem: String, accepted: &str| Err(Problem { position, problem, accepted: accepted.to_owned() });
    if spec.image.is_some() {
        if let (Data::Given, Some(position)) = (spec.data, at("data")) {
            let problem = "what begins with an image keeps every byte".to_owned();
            return wrong(position, problem, "leave data= out, or say data=full");
        }
        let of_making = given.iter().find(|(key, _)| key == "size" || spec.system.is_of_making(key));
        if let Some((key, position)) = of_making {
            let accepted = "an image is taken as it was made; leave this out, or leave image= out";
            return wrong(*position, format!("'{key}' says how a file system is made"), accepted);
        }
    }
    if let System::Lfs(own) = &spec.system {
        let keys: Vec<&str> = given.iter().map(|(key, _)| key.as_str()).collect();
        if let Some((key, why)) = own.policy.without_effect(&keys) {
            let position = at(key).unwrap_or(1);
            return wrong(position, format!("{key}= would do nothing"), why);
        }
    }
    let has_log = matches!(&spec.system, System::Ffs(own) if own.policy.integrity.has_log());
    if let Some(position) = at("logdrive").filter(|_| !has_log) {
        let problem = "no log is kept that could lie on a drive of its own".to_owned();
        return wrong(position, problem, "logdrive= goes with journal=async or journal=sync");
    }
    let geometry = "heads= and sectors= go together; cpg=, rpm= and positions= need both";
    match (at("heads"), at("sectors"), at("cpg").or(at("rpm")).or(at("positions"))) {
        (Some(position), None, _) => wrong(position, "sectors= is missing".to_owned(), geometry),
        (None, Some(position), _) => wrong(position, "heads= is missing".to_owned(), geometry),
        (None, None, Some(position)) => wrong(position, "heads= and sectors= are missing".to_owned(), geometry),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fault::{Fault as _, Kind};
    use ffs::policy::Clusters;
    use posix::{At, Call, FileSystem as _, Mode, OpenFlags, Reply};

    fn spec(text: &str) -> Spec {
        Spec::parse(text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn the_file_system_of_the_1996_paper() {
        let spec = spec("ffs:original,size=502M,groups=27,maxcontig=7,heads=22,sectors=118,cache=4M@st32430n");
        let System::Ffs(own) = &spec.system else { panic!("{spec:?}") };
        assert_eq!((own.policy.clusters, own.policy.seed), (Clusters::Original, 1));
        let lab = spec.ffs().unwrap_or_else(|e| panic!("{e}"));
        let g = lab.volume().geometry();
        assert_eq!((g.ncg, g.bsize, g.fsize), (27, 8192, 1024));
        assert_eq!((lab.volume().tuning().maxcontig, g.old_nrpos), (7, 8));
    }

    #[test]
    fn positions_of_a_disk_as_asked_for() {
        for positions in [1, 2, 4] {
            let lab = spec(&format!("ffs:size=64M,heads=22,sectors=118,positions={positions}@st32430n")).ffs();
            assert_eq!(lab.unwrap_or_else(|e| panic!("{e}")).volume().geometry().old_nrpos, positions);
        }
        let none = spec("ffs:size=64M,heads=22,sectors=118,positions=0@st32430n").ffs();
        assert!(none.is_err_and(|e| e.to_string().contains("positions")));
    }

    #[test]
    fn a_log_with_its_choices() {
        let target = "lfs:cleaner=greedy,segment=512K,bsize=4K,fsize=1K,minfree=5,size=64M,low=20,seed=9@dec-rz26";
        let lab = spec(target).lfs().unwrap_or_else(|e| panic!("{e}"));
        let (g, choices) = (lab.volume().geometry(), lab.volume().choices());
        assert_eq!((g.nseg, g.ssize, g.bsize, g.fsize), (128, 512 << 10, 4096, 1024));
        assert_eq!((choices.cleaner, choices.low_percent), (lfs::policy::CleanerPolicy::Greedy, 20));
        assert_eq!(lab.volume().superblock().f.minfree, 5);
        assert!(spec(target).ffs().is_err_and(|e| e.kind() == Kind::Usage) && spec("ffs").lfs().is_err());
    }

    #[test]
    fn nothing_given_is_everything_by_default() {
        let spec = spec("ffs");
        assert_eq!((spec.machine.as_str(), spec.drive.to_string().as_str()), ("pentium-120", "st32430n"));
        assert_eq!((spec.size_bytes, spec.cache_bytes, spec.data, &spec.image), (None, None, Data::Given, &None));
        assert_eq!(Spec { text: "ffs".to_owned(), ..self::spec("ffs@st32430n") }, spec);
        assert_eq!(self::spec("ffs:image='a,b@c.img'@ssd-sata").image, Some("a,b@c.img".into()));
    }

    #[test]
    fn errors_name_the_place_and_what_is_accepted() {
        for (text, position, says) in [
            ("lfs:realloc", 5, "'realloc' is no option; accepted are size=, machine="),
            ("lfs:cleaner=best", 13, "'best' is not one of cost-benefit|greedy|netbsd|off"),
            ("lfs:segment=3q", 13, "'3q' is not a size from 16 KiB to 1 GiB"),
            ("lfs:high=0", 10, "'0' is not a whole number from 1 to 95"),
            ("lfs:low=60,high=5", 12, "high= would do nothing; it is below low="),
            ("lfs:low=5,low=6", 11, "twice"),
            ("lfs:cleaning=some", 14, "'some' is not one of ahead|all"),
            ("lfs:cleaning=all,low=5", 18, "low= would do nothing; with cleaning=all"),
            ("lfs:high=5,cleaning=all", 5, "high= would do nothing"),
            ("lfs:cleaning=all,idle=5", 18, "idle= would do nothing"),
            ("lfs:cleaner=off,cleaning=all", 17, "without a cleaner"),
            ("lfs:image=x,segment=1M", 13, "how a file system is made"),
            ("lfs:minfree=x", 13, "no whole number"),
            ("zfs", 1, "no file system 'zfs'"),
            ("ffs,realloc", 1, "no file system 'ffs,realloc'"),
            ("ffs:", 5, "an option is empty"),
            ("ffs:softdeps", 5, "'softdeps' is no option; did you mean 'softdep'?; accepted are size=, machine="),
            ("ffs:realloc,bsize=8q", 20, "unit of size"),
            ("ffs:minfree=x", 13, "no whole number"),
            ("ffs:bsize=8T", 11, "too much"),
            ("ffs:size=1M,size=2M", 13, "twice"),
            ("ffs:cpg=3,groups=2", 11, "does not go with cpg="),
            ("ffs:cpg=3", 5, "heads= and sectors= are missing"),
            ("ffs:heads=3", 5, "sectors= is missing"),
            ("ffs:positions=4", 5, "heads= and sectors= are missing"),
            ("ffs:positions=4,image=x", 5, "how a file system is made"),
            ("ffs:machine=vax", 13, "workstation-1991"),
            ("ffs:data=some", 10, "neither given nor full"),
            ("ffs:image=x,size=5M", 13, "how a file system is made"),
            ("ffs:image=x,data=given", 13, "every byte"),
            ("ffs:journal=sync,logdrive=vax", 27, "no drive 'vax'"),
            ("ffs:softdep,logdrive=st32430n", 13, "goes with journal="),
            ("lfs:logdrive=st32430n", 5, "goes with journal="),
            ("ffs:label=x", 5, "'label=' is no option"),
            ("ffs:realloc@vax", 13, "no drive 'vax'"),
            ("ffs@", 5, "missing"),
            ("ffs:image='x", 11, "not closed"),
        ] {
            let error = Spec::parse(text).err().unwrap_or_else(|| panic!("{text} is taken"));
            assert!(error.position == position && error.to_string().contains(says), "{error}");
        }
    }

    /// The heads stay where they are: one with the log, one with the data.
    #[test]
    fn a_log_on_a_drive_of_its_own_saves_seeks() {
        let elapsed_ns = |text: &str| {
            let mut lab = spec(text).ffs().unwrap_or_else(|e| panic!("{e}"));
            let mut call = |call: &Call<'_>| lab.call(call).result.unwrap_or_else(|e| panic!("{text}: {e}"));
            for number in 0..20 {
                let path = format!("f{number}");
                let at = At::from(path.as_str());
                let Reply::Fd(fd) = call(&Call::Open { at, flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) }) else {
                    panic!("a descriptor")
                };
                call(&Call::Write { fd, offset: None, len_bytes: 8192, data: None });
                call(&Call::Fsync { fd });
                call(&Call::Close { fd });
            }
            lab.now_ns()
        };
        let one = elapsed_ns("ffs:journal=sync,size=256M@st39102lw-uw");
        let two = elapsed_ns("ffs:journal=sync,size=256M,logdrive=st39102lw-uw@st39102lw-uw");
        assert!(two < one, "{two} ns with two drives, {one} ns with one");
    }

    #[test]
    fn a_log_must_fit_its_drive() {
        let spec = spec("ffs:journal=sync,logdrive=dec-rz26@st39102lw-uw");
        let capacity = spec.drive.device().unwrap_or_else(|e| panic!("{e}")).capacity_sectors();
        let error = spec.device(Some(0..capacity)).err().unwrap_or_else(|| panic!("it fits"));
        assert!(error.to_string().starts_with("logdrive=dec-rz26:") && error.kind() == Kind::Usage, "{error}");
    }

    #[test]
    fn what_cannot_be_opened_says_what_to_do() {
        let error = |text: &str| spec(text).ffs().err().unwrap_or_else(|| panic!("{text} is opened"));
        assert!(error("ffs:size=100G@st32430n").to_string().contains("larger drive"));
        assert!(error("ffs:size=8M,cache=1T").to_string().contains("bytes of memory"));
        assert!(error("ffs:size=8M,bsize=5000").to_string().contains("power of two"));
        let error = error("ffs:image=/no/such.img");
        assert!(
            error.to_string().starts_with("/no/such.img: cannot open") && error.kind() == Kind::Environment,
            "{error}"
        );
    }
}
