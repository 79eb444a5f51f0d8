//! Random operations on a live file system and on a reference of maps and vectors, on small disks that fill up, so that
//! the cleaner works all the time: several block, fragment and segment sizes, every policy. After each round everything
//! is counted anew; where bytes are kept, the disk as the operations have left it is checked by fsck, read back,
//! compared, and mounted again.
//!
//! `FSAGE_LFS_MODEL_OPERATIONS=210000 cargo test --release -p fsage-lfs --test it -- --nocapture live_model::` runs
//! more of them per case. A failure prints its case: `FSAGE_LFS_MODEL_SEED` runs the one of that seed alone, and
//! `FSAGE_LFS_CHECK_EACH=1` checks after each operation, to find the first that went wrong.

use crate::live::{Case, cases, run_all};

fn setting(name: &str) -> Option<u64> {
    testkit::parameter(name)
}

fn operations(usual: u64) -> u64 {
    setting("FSAGE_LFS_MODEL_OPERATIONS").unwrap_or(usual)
}

/// Every case, or the one that is asked for, and whether to check after each operation.
fn run(mut cases: Vec<Case>, operations: u64) -> (u64, u64) {
    let only = setting("FSAGE_LFS_MODEL_SEED");
    cases.retain(|case| only.is_none_or(|seed| case.seed == seed));
    let each = std::env::var("FSAGE_LFS_CHECK_EACH").is_ok();
    run_all(cases, operations, (2, 10_000), each)
}

#[test]
fn structures_agree_with_a_reference() {
    let (done, full) = run(cases(false), operations(1_000));
    println!("{done} operations, {full} of them out of space");
    assert!(full > 100, "disks must fill up for this to be a test");
}

#[test]
fn bytes_agree_with_a_reference() {
    let (done, full) = run(cases(true), operations(300));
    println!("{done} operations, {full} of them out of space");
}
