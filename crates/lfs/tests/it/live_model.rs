//! Random operations on a live file system and on a reference of maps and vectors, on small disks that fill up, so that the
//! cleaner works all the time: several block, fragment and segment sizes, every policy. After each round everything is counted
//! anew; where bytes are kept, the disk as the operations have left it is checked by fsck, read back, compared, and mounted again.
//!
//! `FSAGE_LFS_MODEL_OPERATIONS=210000 cargo test --release -p fsage-lfs --test it -- --nocapture live_model::` runs more of them per
//! case. A failure prints its case: `FSAGE_LFS_MODEL_SEED` runs the one of that seed alone, and `FSAGE_LFS_CHECK_EACH=1`
//! checks after each operation, to find the first that went wrong.

use crate::live::{Case, Run, cases};
use std::sync::Mutex;

fn setting(name: &str) -> Option<u64> {
    testkit::parameter(name)
}

fn operations(usual: u64) -> u64 {
    setting("FSAGE_LFS_MODEL_OPERATIONS").unwrap_or(usual)
}

/// Runs a case in at least `rounds` rounds, each of which ends with every check.
fn run(case: Case, operations: u64, rounds: u64) -> (u64, u64) {
    let rounds = rounds.max(operations / 10_000);
    let each = std::env::var("FSAGE_LFS_CHECK_EACH").is_ok();
    let mut run = Run::new(case);
    for _ in 0..rounds {
        for _ in 0..operations / rounds {
            run.step();
            if each {
                run.check();
            }
        }
        run.check();
        if !run.remount() {
            run = run.begin_again();
        }
        run.check();
    }
    (run.done, run.out_of_space)
}

/// Runs every case, as many at a time as there are processors; each is on its own and has its own seed.
fn run_all(mut cases: Vec<Case>, operations: u64, rounds: u64) -> (u64, u64) {
    let only = setting("FSAGE_LFS_MODEL_SEED");
    cases.retain(|case| only.is_none_or(|seed| case.seed == seed));
    let waiting = Mutex::new(cases.into_iter());
    let next = || waiting.lock().unwrap().next();
    let work = || {
        let (mut done, mut full) = (0, 0);
        while let Some(case) = next() {
            let (steps, out_of_space) = run(case, operations, rounds);
            done += steps;
            full += out_of_space;
        }
        (done, full)
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    })
}

#[test]
fn structures_agree_with_a_reference() {
    let (done, full) = run_all(cases(false), operations(1_000), 2);
    println!("{done} operations, {full} of them out of space");
    assert!(full > 100, "disks must fill up for this to be a test");
}

#[test]
fn bytes_agree_with_a_reference() {
    let (done, full) = run_all(cases(true), operations(300), 2);
    println!("{done} operations, {full} of them out of space");
}
