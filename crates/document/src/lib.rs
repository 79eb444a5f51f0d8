//! Documents: headings, paragraphs, tables and plots, and what makes terminal text, CSV, JSON, Markdown and
//! self-contained HTML of them.
//!
//! What lives here: the model ([`Document`], [`Table`], [`Plot`]), its renderers, and plots of no particular result
//! ([`plot`], [`chart`]), the long table of all figures ([`tidy`]). What may not: anything that knows a result. A room
//! that has results says in its module `present` which tables and plots show them.
//!
//! Text that comes from a workload (paths, command lines) is untrusted: renderers escape it for their medium, and
//! control characters never reach a terminal.

pub mod chart;
mod csv;
mod html;
mod json;
mod markdown;
mod model;
pub mod plot;
mod render;
mod terminal;
pub mod tidy;

pub use html::HTML_BEGINS;
pub use json::{envelope, text as json_text};
pub use model::{Block, Cell, Column, Document, Origin, Table, facts};
pub use plot::Plot;
