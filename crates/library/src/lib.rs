//! A library: workloads that may be shown to others, the systems that were measured for them, and every prediction and
//! replay of the ones on the others.
//!
//! What lives here: the folder ([`Library`]), the matrix made of it ([`Matrix`]), and the page that shows the matrix
//! ([`page()`]). What may not: measuring and replaying, which need a target; whoever has one puts what it found into
//! the folder.

mod error;
mod folder;
mod matrix;
pub mod page;
pub mod present;

pub use error::LibraryError;
pub use folder::{Library, Replayed};
pub use matrix::{Cell, CellPrediction, Listed, Matrix, OpTime, matrix};
pub use page::page;

/// Schema of the matrix.
pub const SCHEMA: &str = "fsage.library/1";
