//! The tests of this crate's behaviour, in one program: a module for each subject.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod array;
mod beside;
mod crash;
mod damaged;
mod disk;
mod drives;
mod extract;
mod import;
mod measure;
mod partition;
mod ssd;
mod validation;
