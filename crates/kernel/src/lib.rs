//! A small kernel in virtual time.
//!
//! What lives here: the inode-level interface of a file system ([`Volume`]); the buffer cache and what an operation
//! says to it ([`Cx`]), clustering and read-ahead; the programs of steps that operations leave behind ([`program`]) and
//! the engine that executes them on a device; path walk, descriptors and daemons, which make of all that a
//! [`posix::FileSystem`] ([`Lab`]); what computers spend ([`Machine`]). What may not: on-disk formats, allocation
//! policies, device models.
//!
//! An operation runs at once, as plain code on the state in memory, and leaves a program: processor time, requests,
//! waits. The programs of all processes are executed afterwards on the device models. So an operation takes effect when
//! it is issued; only its completion is computed.

mod block;
mod cache;
pub mod cluster;
mod costs;
mod cx;
mod discard;
mod discards_under_way;
mod engine;
mod lab;
mod log;
mod machine;
mod names;
mod nodes;
pub mod payload;
mod payloads;
pub mod program;
mod raw;
mod readahead;
#[cfg(feature = "testing")]
pub mod testing;
mod untimed;
mod volume;

pub use block::{Block, BlockId, Contents, Ino, Lbn, Pbn};
pub use cache::{Cache, CacheCounters, Replacement};
pub use costs::Costs;
pub use cx::{Barriers, Cx, ReadAhead, Transfers};
pub use engine::{Busy, DeviceCounters, LogEntry, WriteRecord};
pub use lab::{Counters, Lab, LabError, Setup};
pub use log::{LogEncode, LogPiece, LogRequests, LogWrite};
pub use machine::{CostFigures, Cpu, Figure, IoRules, Machine, MachineError, Memory, Syncer, WriteBack};
pub use names::NameCounters;
pub use raw::{RawDisk, RawTimes};
pub use untimed::{Requests, Untimed};
pub use volume::{
    Attributes, CheckEnd, Correction, Durability, Encode, Entry, Mapped, NewNode, Rename, SetAttributes, Volume,
    WriteRange,
};
