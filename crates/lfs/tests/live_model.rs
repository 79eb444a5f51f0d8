//! Random operations on a live file system and on a reference of maps and vectors, on small disks that fill up, so that the
//! cleaner works all the time: several block, fragment and segment sizes, every policy. After each round everything is counted
//! anew; where bytes are kept, the disk as the operations have left it is checked by fsck, read back, compared, and mounted again.
//!
//! `FSAGE_LFS_MODEL_OPERATIONS=1000000 cargo test --release -p fsage-lfs --test live_model` runs more of them per case;
//! `FSAGE_LFS_CHECK_EACH=1` checks after each, to find the first that went wrong.

#![allow(clippy::unwrap_used)]

mod live;

use live::{Case, Run, cases};

fn operations(usual: u64) -> u64 {
    std::env::var("FSAGE_LFS_MODEL_OPERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Runs a case in at least `rounds` rounds, each of which ends with every check.
fn run(case: Case, operations: u64, rounds: u64) -> (u64, u64) {
    let rounds = rounds.max(operations / 50_000);
    let mut run = Run::new(case);
    for _ in 0..rounds {
        for _ in 0..operations / rounds {
            run.step();
            if std::env::var("FSAGE_LFS_CHECK_EACH").is_ok() {
                run.check();
            }
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
        let (steps, out_of_space) = run(case, operations(3_000), 3);
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
        let (steps, out_of_space) = run(case, operations(1_000), 3);
        done += steps;
        full += out_of_space;
    }
    println!("{done} operations, {full} of them out of space");
}
