//! The tests of this crate's behaviour, in one program: a module for each subject.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod comparing;
mod fake;
mod hotcold;
mod lab;
#[path = "../../../measure/tests/it/fake/mod.rs"]
mod memory;
mod micro;
mod postmark;
mod seqfile;
mod tpcb;
mod trees;
mod users;
