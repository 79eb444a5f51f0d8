//! Sweeps: one command of fsage run for every combination of the values that a file lists.
//!
//! What lives here: the file ([`spec`]), the tasks that follow from it ([`tasks`]), what of a result is kept
//! ([`figure`]), the folder that a sweep grows in and its journal ([`folder`]), the processes that run tasks ([`run`]),
//! the data set that is made of the journal ([`data`]), and the report ([`report`]). What may not: anything that knows
//! how a command works. A task *is* a command line: it is run as a process of this program, and its `--json` is read.
//! So a task that crashes, or is killed for its memory, costs itself alone, and every option of every command can be
//! swept without a line here.
//!
//! **The same bytes.** Which task runs where, when, in which order and how often a run was killed decides nothing but
//! the order of the journal and the times in it. Everything else is written from the journal in the order of the tasks'
//! numbers; times are in a table of their own.

pub mod data;
mod error;
pub mod figure;
pub mod folder;
mod journal;
mod partition;
pub mod present;
pub mod report;
pub mod run;
pub mod spec;
pub mod tasks;

pub use error::SweepError;
pub use figure::Figure;
pub use folder::Folder;
pub use journal::{Entry, Outcome};
pub use spec::{AxisValue, Spec};
pub use tasks::{Task, Tasks};

/// Schema of the result that a run of a sweep prints.
pub const SCHEMA: &str = "fsage.sweep/1";
/// Schema of the list of tasks.
pub const TASKS_SCHEMA: &str = "fsage.sweep-tasks/1";
/// Schema of how far a sweep is.
pub const STATUS_SCHEMA: &str = "fsage.sweep-status/1";
