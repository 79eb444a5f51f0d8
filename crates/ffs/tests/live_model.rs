//! Random operations on a live file system and on a reference of maps and vectors, on small disks that fill up: every block and
//! fragment size, both formats and byte orders, every policy. After each run everything is counted anew, the image is
//! written out, checked by fsck, read back by the reader, compared, and mounted again.
//!
//! `FSAGE_FFS_MODEL_OPERATIONS=1000000 cargo test --release -p fsage-ffs --test live_model` runs more of them per case.

#![allow(clippy::unwrap_used)]

mod live;

use live::{Case, Run, cases};

fn operations(usual: u64) -> u64 {
    std::env::var("FSAGE_FFS_MODEL_OPERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Runs a case in at least `rounds` rounds, each of which ends with every check.
fn run(case: Case, operations: u64, rounds: u64) -> (u64, u64) {
    let rounds = rounds.max(operations / 50_000);
    let mut run = Run::new(case);
    for _ in 0..rounds {
        for _ in 0..operations / rounds {
            run.step();
        }
        run.check();
        run.remount();
        run.check();
    }
    (run.done, run.out_of_space)
}

#[test]
fn structures_agree_with_a_reference() {
    let (mut done, mut full) = (0, 0);
    for case in cases(false) {
        let (steps, out_of_space) = run(case, operations(12_000), 3);
        done += steps;
        full += out_of_space;
    }
    println!("{done} operations, {full} of them out of space");
    assert!(full > 100, "disks must fill up for this to be a test");
}

#[test]
fn bytes_agree_with_a_reference() {
    let (mut done, mut full) = (0, 0);
    for case in cases(true) {
        let (steps, out_of_space) = run(case, operations(2_000), 4);
        done += steps;
        full += out_of_space;
    }
    println!("{done} operations, {full} of them out of space");
}
