//! One file per command: its arguments, and `run`, which calls the libraries and shows the result.

pub mod age;
pub mod bench;
pub mod clean;
pub mod completions;
pub mod cp;
pub mod crash;
pub mod drive;
pub mod dump;
pub mod export;
pub mod fsck;
pub mod import;
pub mod inspect;
pub mod layout;
pub mod man;
pub mod measure;
pub mod mkfs;
pub mod mount;
pub mod plan;
pub mod predict;
pub mod quickstart;
pub mod record;
pub mod replay;
pub mod reproduce;
pub mod snapshot;
pub mod umount;
pub mod validate;
