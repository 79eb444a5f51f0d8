//! What the tests of all crates share. Nothing but tests may use it.
//!
//! * [`need`] and its kin: what a test needs of the machine. A test that lacks something says so here, and nowhere
//!   else: it fails where `CI` is `true`; elsewhere it ends early, and `run-tests` counts and lists it as skipped.
//! * [`fixture`]: images, traces and profiles that others made.
//! * [`process`]: processes that tests start, signal and wait for.
//! * [`schema`]: JSON documents, held against docs/schemas.
//!
//! It depends on no other crate of the workspace, so that the unit tests of each can use it.

#![allow(clippy::unwrap_used)] // What fails here fails a test.

pub mod fixture;
mod needs;
pub mod process;
pub mod schema;

pub use needs::{
    Need, SKIPPED_FILE, Tool, as_ordinary_user, find, have, mount, need, needs, parameter, python_with, skip, tool,
    unmount, with_own_mounts,
};
