//! The seam between recording and tracers: what a tracer must do to be recorded from.
//!
//! What lives here: [`Tracer`] (one that was found and may trace) and [`Tracing`] (one at work). What may not: any
//! particular tracer. strace is [`super::Strace`]; the recorder in the kernel is a crate of its own, which the binary
//! hands in.

use super::RecordError;
use crate::analysis::Decode;
use crate::profile;
use crate::spool::Notation;
use crate::strace::ImportOptions;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What a tracer is to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A command that waits before its first call ([`posix::held`]), and whatever it starts.
    Command(u32),
    /// Processes that run already, with their threads, and whatever they start.
    Processes(Vec<u32>),
    /// Every process in a control group, by its directory.
    Cgroup(PathBuf),
    /// Whoever touches the file system mounted there.
    Mount(PathBuf),
}

/// A tracer that was found and may trace.
pub trait Tracer {
    /// Whose records it emits.
    fn notation(&self) -> Notation;

    /// As it will stand in `meta.json`.
    fn describe(&self) -> profile::Tracer;

    /// The clock of its records, in words.
    fn clock(&self) -> String;

    /// What the user should know of it: features missing here.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it can look at this: `Err` says in words what it would take.
    ///
    /// # Errors
    /// [`RecordError::CannotTrace`].
    fn check(&self, target: &Target) -> Result<(), RecordError>;

    /// Does what takes its time and looks at nobody, so that little happens between the reading of the names and the
    /// [`start`](Self::start). `None`: for a command that is not there yet.
    ///
    /// # Errors
    /// As `start`.
    fn prepare(&mut self, _target: Option<&Target>) -> Result<(), RecordError> {
        Ok(())
    }

    /// Begins. When it returns, every call of the target from now on is traced.
    ///
    /// # Errors
    /// It may not, or the target is gone: nothing is attached then.
    fn start(&mut self, target: &Target) -> Result<Box<dyn Tracing>, RecordError>;

    /// How many records there are in some of its bytes.
    fn counter(&self) -> fn(&[u8]) -> u64;

    /// What understands its records.
    fn decoder(&self, options: ImportOptions) -> Box<dyn Decode>;
}

/// Whether more will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Perhaps.
    Open,
    /// No: everything traced has ended, or let go of, or the tracer is dead.
    Ended,
}

/// How a tracer ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// It ended unasked, before what it traced.
    pub lost: bool,
    /// What it said on the way, for the user; empty if nothing.
    pub said: String,
    /// What the user has to know of the recording.
    pub notes: Vec<String>,
}

/// A tracer at work. It is owned by the capturing thread. Dropped, it lets go of everything and leaves nothing behind.
pub trait Tracing: Send {
    /// Waits at most so long for records and hands out whole ones.
    ///
    /// # Errors
    /// The tracer cannot be heard any more.
    fn drain(&mut self, wait: Duration, take: &mut dyn FnMut(&[u8])) -> io::Result<Drained>;

    /// Asks it to let go of what it traces, which goes on. What it still has to say comes from
    /// [`drain`](Tracing::drain).
    fn stop(&mut self);

    /// How many records it lost since it was asked last.
    fn lost(&mut self) -> u64 {
        0
    }

    /// Waits for it, once it has ended or was asked to.
    fn end(self: Box<Self>) -> Ending;
}
