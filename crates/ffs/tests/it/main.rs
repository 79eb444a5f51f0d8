//! The tests of this crate's behaviour, in one program: a module for each subject.

#![allow(clippy::unwrap_used)] // In helpers too a test may fail by panicking.

mod background;
mod bsd;
mod bsd_fsck;
mod common;
mod damage;
mod discard;
mod free_maps;
mod fsck_clean;
mod fsck_limits;
mod fsck_repair;
mod insert;
mod invariants;
mod journal;
mod lab;
mod live;
mod live_golden;
mod live_image;
mod live_lab;
mod live_model;
mod live_policies;
mod mutate;
mod mutations;
mod old_format;
mod read;
mod sleuthkit;
mod snapshot;
mod uml;
