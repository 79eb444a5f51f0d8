//! Laboratory targets: a file system, a machine and a drive, named in one line.
//!
//! What lives here: the grammar of `ffs:realloc,size=502M@st32430n` ([`Spec`]), and what opens it: a typed laboratory
//! for experiments ([`Spec::ffs`], [`Spec::lfs`]) and one behind traits for commands ([`Laboratory`], [`LabSite`]).
//! What may not: file systems, devices and caches themselves.
//!
//! ```text
//! SYSTEM[:OPTION,OPTION…][@DRIVE]
//! ```
//!
//! docs/targets.md has every option with its default.
//!
//! `examples/laboratory.rs` makes calls on two laboratories: `cargo run -p fsage-lab --example laboratory`.

mod background;
mod bytes;
mod check;
mod data;
mod drive;
mod error;
mod ffs_options;
mod laboratory;
mod lfs_options;
mod site;
mod spec;

pub use background::{BackgroundCheck, CheckedInBackground, GIVEN_BACK_AT_ONCE, Reader};
pub use check::Checked;
pub use data::Data;
pub use drive::DriveSpec;
pub use error::OpenError;
pub use ffs_options::{FfsOptions, Groups};
pub use laboratory::Laboratory;
pub use lfs_options::LfsOptions;
pub use site::{LabSite, SiteOptions};
pub use spec::{Spec, System};
