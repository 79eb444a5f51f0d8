//! Crashes of a file system in the laboratory: made, recovered from, checked and counted.
//!
//! What lives here: operations and sequences of them ([`Op`], [`sequence`]), a laboratory that keeps a history of what
//! it is asked for, with everything that a crash may be measured by ([`Watched`], [`History`]), what is known of a file
//! system's recovery and promises ([`Subject`]), the verdict on a state ([`Verdict`]), the search through the states of
//! many sequences ([`search()`]), the shortest sequence that still fails ([`minimise()`]), and single crashes drawn
//! over one run ([`trials()`]). What may not: which states a drive allows, which is [`device::crash`]'s; recovery and
//! checks themselves, which are the file systems'.
//!
//! A history's base is an image; its log of writes is the laboratory's. docs/crash.md explains the model and the
//! verdicts.

mod campaign;
mod content;
mod error;
mod ffs_subject;
mod found;
mod history;
mod judge;
mod lfs_subject;
mod minimise;
mod names;
mod op;
pub mod present;
mod search;
pub mod sequence;
mod stamp;
mod start_state;
mod subject;
mod tally;
mod trials;
mod unrecoverable;
mod watched;

pub use campaign::{Campaign, Driver, Replayed, SmallestFailure, Work, campaign, replayed};
pub use content::Content;
pub use error::CrashError;
pub use ffs_subject::FfsSubject;
pub use found::{Found, Identity, Kind, Tree};
pub use history::History;
pub use judge::{Class, Verdict, judge};
pub use lfs_subject::{LfsSubject, MakeDevice};
pub use minimise::{Minimised, minimise};
pub use op::{Op, parse_ops, shown_ops};
pub use search::{Failure, OpenWrite, Ran, Search, Settings, image_of, one_state, run_ops, search, start};
pub use start_state::Start;
pub use subject::{Names, Recovered, Subject};
pub use tally::{Tally, Undone};
pub use trials::{Trial, Trials, When, trials};
pub use unrecoverable::Unrecoverable;
pub use watched::Watched;
