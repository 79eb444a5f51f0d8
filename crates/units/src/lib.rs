//! Sizes, times, shares and counts, and text from outside, as people write and read them.
//!
//! What lives here: the one grammar in which every option, target and file writes them ([`size_bytes`],
//! [`duration_ns`], [`share`]), and their counterpart for people to read ([`show`], [`text`]), and what a person may
//! have meant ([`similar`]). What may not: limits that only one option has.

mod grammar;
pub mod show;
pub mod similar;
pub mod text;

pub use grammar::{GrammarError, duration_ns, share, size_bytes};
