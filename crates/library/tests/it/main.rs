//! A library as a user fills it.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod made;
