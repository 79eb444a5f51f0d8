//! Machines: what a computer's processor spends, how much memory it gives to caches, how its kernel reads and writes.

use crate::{Costs, ReadAhead, Replacement, Transfers};
use fault::{Fault, Kind};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A figure and where it is from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The figure, in the unit that its name says.
    pub value: u64,
    /// Where it is from; `[estimate]` and how, where nobody has published it.
    pub source: String,
}

/// A computer and its kernel, as its file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What it is.
    pub description: String,
    /// Its processors.
    pub cpu: Cpu,
    /// Its memory and the caches in it.
    pub memory: Memory,
    /// How its kernel reads and writes.
    pub io: IoRules,
    /// How its kernel writes back.
    pub write_back: WriteBack,
    /// What its processor spends.
    pub costs: CostFigures,
}

/// Processors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Model, as it is shown beside results.
    pub model: String,
    /// How many that work independently.
    pub count: u32,
}

/// Memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// In all.
    pub bytes: Figure,
    /// Of the buffer cache.
    pub buffer_cache_bytes: Figure,
    /// Entries of the name cache.
    pub name_cache_entries: Figure,
    /// Inodes in memory.
    pub attribute_cache_inodes: Figure,
    /// Which block leaves first.
    pub replacement: Replacement,
}

/// How the kernel reads and writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoRules {
    /// The largest request made of neighbouring blocks.
    pub largest_transfer_bytes: Figure,
    /// How it reads ahead.
    pub read_ahead: ReadAhead,
    /// Whether it writes neighbours in one request.
    pub cluster_writes: bool,
}

/// How the kernel writes back what is dirty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBack {
    /// The daemon.
    pub syncer: Syncer,
    /// Dirty share of the buffer cache, in percent, from which on the daemon writes at once; 100: never.
    pub background_percent: Figure,
    /// Dirty share from which on whoever makes a block dirty writes and waits.
    pub limit_percent: Figure,
}

/// The daemon that writes back what has been dirty for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Syncer {
    /// None: only full memory and explicit requests write.
    None,
    /// Everything every 30 seconds (`update` of Unix).
    Update,
    /// Each file 30 seconds after it became dirty, directories 29 and metadata 28 (the syncer that came with Soft
    /// Updates; McKusick and Ganger, USENIX 1999).
    Wheel,
}

/// [`Costs`] with their sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct CostFigures {
    pub call_ns: Figure,
    pub component_ns: Figure,
    pub entry_ns: Figure,
    pub open_ns: Figure,
    pub attributes_ns: Figure,
    pub inode_ns: Figure,
    pub name_ns: Figure,
    pub block_ns: Figure,
    pub allocate_ns: Figure,
    pub request_ns: Figure,
    pub copy_ps_per_byte: Figure,
}

/// What is wrong with a machine's description.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// It cannot be read.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        #[allow(missing_docs)]
        source: std::io::Error,
    },
    /// It is not a description.
    #[error("{name}: line {line}, column {column}: {message}")]
    Syntax {
        /// The file or built-in name.
        name: String,
        /// Where.
        line: usize,
        #[allow(missing_docs)]
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A figure makes no sense.
    #[error("{name}: {figure}: {problem}")]
    Figure {
        /// The file or built-in name.
        name: String,
        /// Which figure.
        figure: &'static str,
        /// Why, and what would.
        problem: String,
    },
    /// There is no such machine.
    #[error("there is no machine '{name}'; there are {}, and any file that describes \
        one{}", .known.join(", "), units::similar::tip(name, known.iter().copied()))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
}

impl Fault for MachineError {
    fn kind(&self) -> Kind {
        match self {
            MachineError::Unknown { .. } => Kind::Usage,
            MachineError::Io { .. } | MachineError::Syntax { .. } | MachineError::Figure { .. } => Kind::BadInput,
        }
    }
}

const BUILT_IN: [(&str, &str); 5] = [
    ("workstation-1991", include_str!("../machines/workstation-1991.toml")),
    ("sparcstation-2", include_str!("../machines/sparcstation-2.toml")),
    ("pentium-120", include_str!("../machines/pentium-120.toml")),
    ("pentium3-500", include_str!("../machines/pentium3-500.toml")),
    ("today", include_str!("../machines/today.toml")),
];

/// No machine's file is longer.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Processors a machine may have: more than any computer on which a file system was ever measured.
const PROCESSORS_MAX: u32 = 4096;

impl Machine {
    /// The names of the machines that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// A machine by its name, or from a file (a name with a slash or ending in `.toml`).
    pub fn load(name: &str) -> Result<Machine, MachineError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Machine::parse(name, text);
        }
        if !name.contains('/') && !name.ends_with(".toml") {
            return Err(MachineError::Unknown { name: name.into(), known: Machine::names().collect() });
        }
        let path = Path::new(name);
        let text = posix::input::read_text(path, FILE_BYTES_MAX);
        let text = text.map_err(|source| MachineError::Io { path: path.to_path_buf(), source })?;
        Machine::parse(name, &text)
    }

    /// A machine from the text of its file; `name` is for messages.
    pub fn parse(name: &str, text: &str) -> Result<Machine, MachineError> {
        let machine: Machine = toml::from_str(text).map_err(|error: toml::de::Error| {
            let (line, column) = units::text::line_and_column(text, error.span().map_or(0, |span| span.start));
            MachineError::Syntax { name: name.into(), line, column, message: error.message().to_owned() }
        })?;
        machine.check(name)?;
        Ok(machine)
    }

    fn check(&self, name: &str) -> Result<(), MachineError> {
        let wrong =
            |figure, problem: &str| Err(MachineError::Figure { name: name.into(), figure, problem: problem.into() });
        if !(1..=PROCESSORS_MAX).contains(&self.cpu.count) {
            return wrong("cpu.count", "a machine has 1 to 4096 processors");
        }
        if self.memory.buffer_cache_bytes.value > self.memory.bytes.value {
            return wrong("memory.buffer_cache_bytes", "the cache is larger than the memory it is in");
        }
        if !(4096..=1 << 30).contains(&self.io.largest_transfer_bytes.value) {
            return wrong("io.largest_transfer_bytes", "a request has 4096 bytes to 1 GiB");
        }
        let limit = self.write_back.limit_percent.value;
        if !(1..=100).contains(&limit) || self.write_back.background_percent.value > 100 {
            return wrong("write_back", "shares are 1 to 100 percent");
        }
        let slowest_ns = 1_000_000_000;
        let costs = self.costs();
        let all = [
            costs.call_ns,
            costs.component_ns,
            costs.entry_ns,
            costs.open_ns,
            costs.attributes_ns,
            costs.inode_ns,
            costs.name_ns,
            costs.block_ns,
            costs.allocate_ns,
            costs.request_ns,
        ];
        if all.iter().any(|ns| *ns > slowest_ns) || costs.copy_ps_per_byte > 1_000_000_000 {
            return wrong("costs", "no operation takes a second, and no byte a millisecond");
        }
        Ok(())
    }

    /// What its processor spends.
    pub fn costs(&self) -> Costs {
        let figures = &self.costs;
        Costs {
            call_ns: figures.call_ns.value,
            component_ns: figures.component_ns.value,
            entry_ns: figures.entry_ns.value,
            open_ns: figures.open_ns.value,
            attributes_ns: figures.attributes_ns.value,
            inode_ns: figures.inode_ns.value,
            name_ns: figures.name_ns.value,
            block_ns: figures.block_ns.value,
            allocate_ns: figures.allocate_ns.value,
            request_ns: figures.request_ns.value,
            copy_ps_per_byte: figures.copy_ps_per_byte.value,
        }
    }

    /// How its kernel reads and writes.
    pub fn transfers(&self) -> Transfers {
        Transfers {
            largest_bytes: u32::try_from(self.io.largest_transfer_bytes.value).unwrap_or(u32::MAX),
            read_ahead: self.io.read_ahead,
            cluster_writes: self.io.cluster_writes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_is_described_with_sources() {
        let mut faster_ns = u64::MAX;
        for name in Machine::names() {
            let machine = Machine::load(name).unwrap_or_else(|e| panic!("{e}"));
            for figure in [&machine.memory.bytes, &machine.costs.call_ns, &machine.io.largest_transfer_bytes] {
                assert!(!figure.source.is_empty(), "{name}");
            }
            // They are listed from the slowest on.
            assert!(machine.costs().call_ns < faster_ns, "{name}");
            faster_ns = machine.costs().call_ns;
        }
    }

    #[test]
    fn messages_say_what_is_wrong_and_where() {
        let message = |result: Result<Machine, MachineError>| match result {
            Ok(_) => panic!("taken"),
            Err(error) => error.to_string(),
        };
        let good = BUILT_IN[0].1;
        assert!(message(Machine::load("vax")).contains("workstation-1991, sparcstation-2, pentium-120"));
        assert!(message(Machine::load("no/such.toml")).starts_with("no/such.toml: "));
        assert!(message(Machine::parse("x", "cpu = 1")).starts_with("x: "));
        let none = good.replace("count = 1", "count = 0");
        assert_eq!(message(Machine::parse("x", &none)), "x: cpu.count: a machine has 1 to 4096 processors");
        let many = good.replace("count = 1", "count = 2147483648");
        assert_eq!(message(Machine::parse("x", &many)), "x: cpu.count: a machine has 1 to 4096 processors");
        let odd = good.replace("call_ns = { value = 30000,", "call_ns = { value = 30000000000,");
        assert!(message(Machine::parse("x", &odd)).contains("no operation takes a second"));
        let more = good.replace("[cpu]", "[cpu]\nclock = 3");
        assert!(message(Machine::parse("x", &more)).contains("clock"));
    }

    #[test]
    fn copying_is_counted_in_picoseconds() {
        let costs = Costs { copy_ps_per_byte: 125, ..Costs::FREE };
        assert_eq!((costs.copy_ns(8), costs.copy_ns(4096), costs.copy_ns(u64::MAX)), (1, 512, u64::MAX / 8));
    }
}
