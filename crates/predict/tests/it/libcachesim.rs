//! The data cache against libCacheSim: under each policy that both have, the same requests must miss as often, exactly.
//!
//! Needs a python3 with libcachesim (`pip install libcachesim`), named by FSAGE_PYTHON or found on the path; without it
//! the comparison is skipped.

use crate::random::Random;
use predict::pipeline::CachePolicy;
use predict::pipeline::annotated::NodeId;
use predict::pipeline::pages::{DataCache, PAGE_BYTES};
use std::io::Write;
use std::process::{Command, Stdio};
use trace::profile::Reader;
use trace::{Batch, Op};

/// Objects of size 1, nothing refused, every parameter the module's own. Reads policies and the least limit of each,
/// the limits, the ids; writes a line for each policy and limit.
const ORACLE: &str = "
import sys
import libcachesim
policies = sys.stdin.readline().split()
leasts = [int(x) for x in sys.stdin.readline().split()]
limits = [int(x) for x in sys.stdin.readline().split()]
ids = [int(x) for x in sys.stdin.readline().split()]
for policy, least in zip(policies, leasts):
    for limit in [x for x in limits if x >= least]:
        cache, request, misses = getattr(libcachesim, policy)(limit, hashpower=16), libcachesim.Request(), 0
        request.obj_size = 1
        for i in ids:
            request.obj_id = i
            misses += not cache.get(request)
        print(misses)
";

const PAGES: u64 = 40;

/// Ours, the class of libcachesim, and the least number of objects that it takes: with fewer than 20, S3-FIFO's small
/// queue would hold one, and it refuses, or lets nothing in.
const POLICIES: [(CachePolicy, &str, u64); 5] = [
    (CachePolicy::Lru, "LRU", 1),
    (CachePolicy::Clock, "Clock", 1),
    (CachePolicy::Sieve, "Sieve", 1),
    (CachePolicy::S3Fifo, "S3FIFO", 20),
    (CachePolicy::Arc, "ARC", 1),
];

fn page(id: u64) -> (u32, u64) {
    ((id / PAGES) as u32, id % PAGES)
}

/// Pages of files, the low ones more popular.
fn products() -> Vec<(u32, u64)> {
    let mut random = Random::new(11);
    let files = 50;
    let one = |_| {
        let (a, b) = (random.below(files), random.below(PAGES));
        ((a * random.below(files) / files) as u32, b * random.below(PAGES) / PAGES)
    };
    (0..50_000).map(one).collect()
}

/// Zipf's law over 4000 pages; every so often the ranks are dealt anew.
fn zipf() -> Vec<(u32, u64)> {
    let mut random = Random::new(12);
    let shifts = [0, 0, 997, 997, 2500];
    (0..50_000usize).map(|i| page((random.zipf(4000) * 7919 + shifts[i / 10_000]) % 4000)).collect()
}

/// A set in use, and scans through it.
fn scans() -> Vec<(u32, u64)> {
    let mut random = Random::new(13);
    let mut requests = Vec::new();
    let mut next = 10_000;
    while requests.len() < 40_000 {
        requests.extend((0..1500).map(|_| page(random.zipf(600))));
        let length = random.below(2000);
        requests.extend((next..next + length).map(page));
        next = if random.below(3) == 0 { next + length } else { next };
    }
    requests
}

/// Loops, some of which just do not fit, one inside the other.
fn loops() -> Vec<(u32, u64)> {
    let mut requests = Vec::new();
    for (pages, times) in [(280, 12), (320, 12), (40, 60), (1100, 8), (60, 40), (1990, 6)] {
        requests.extend((0..times).flat_map(|_| (0..pages).map(page)));
    }
    requests
}

/// What the recording in the tree reads and writes, page by page.
fn recorded() -> Vec<(u32, u64)> {
    let reader = Reader::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/src/quickstart/recorded").as_ref());
    let reader = reader.expect("the recording in the tree");
    let (mut batches, mut batch) = (reader.batches().expect("its trace"), Batch::default());
    let mut requests = Vec::new();
    while batches.next_into(&mut batch).expect("its trace") {
        for event in
            batch.events.iter().filter(|event| matches!(event.op(), Op::Read | Op::Write) && event.head.ret > 0)
        {
            let (Some(file), Some(offset)) = (event.file(), event.offset()) else { continue };
            let (first, end) = (offset / PAGE_BYTES, (offset + event.head.ret as u64).div_ceil(PAGE_BYTES));
            requests.extend((first..end).map(|page| (file.0 as u32, page)));
        }
    }
    assert!(requests.len() > 10_000, "{} pages", requests.len());
    requests
}

fn ours(policy: CachePolicy, limit: u64, requests: &[(u32, u64)]) -> u64 {
    let mut cache = DataCache::with_policy(Some(limit * PAGE_BYTES), 1, policy);
    requests.iter().map(|&(file, page)| cache.touch(NodeId(file), page, 1, false).misses).sum()
}

/// Misses by policy and limit; `None` where there is no oracle, for which the test is skipped.
fn theirs(limits: &[u64], requests: &[(u32, u64)]) -> Option<Vec<u64>> {
    let text = |numbers: &mut dyn Iterator<Item = u64>| numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    let ids = text(&mut requests.iter().map(|&(file, page)| 1 + (u64::from(file) << 32) + page));
    let (names, leasts) = (POLICIES.map(|p| p.1).join(" "), text(&mut POLICIES.iter().map(|p| p.2)));
    let input = format!("{names}\n{leasts}\n{}\n{ids}\n", text(&mut limits.iter().copied()));
    let python = testkit::python_with("libcachesim")?;
    let mut child = Command::new(&python)
        .args(["-c", ORACLE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads all");
    let output = child.wait_with_output().expect("the child ends");
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).lines().map(|l| l.parse().expect("a count")).collect())
}

fn compare(limits: &[u64], requests: &[(u32, u64)]) {
    let Some(theirs) = theirs(limits, requests) else { return };
    let cases = POLICIES.iter().flat_map(|&(policy, name, least)| {
        limits.iter().filter(move |&&limit| limit >= least).map(move |&limit| (policy, name, limit))
    });
    let cases: Vec<_> = cases.collect();
    assert_eq!(theirs.len(), cases.len());
    for ((policy, name, limit), theirs) in cases.into_iter().zip(theirs) {
        assert_eq!(ours(policy, limit, requests), theirs, "{name} of {limit} pages");
    }
}

#[test]
fn popular_pages_of_popular_files() {
    compare(&[1, 2, 7, 50, 300, 1000, 1999], &products());
}

#[test]
fn zipf_that_drifts() {
    compare(&[20, 40, 399, 1000, 3000], &zipf());
}

#[test]
fn scans_through_a_working_set() {
    compare(&[21, 64, 300, 700, 1500], &scans());
}

#[test]
fn loops_that_do_not_fit() {
    compare(&[33, 64, 300, 1024, 2000], &loops());
}

#[test]
fn a_recorded_trace() {
    compare(&[25, 100, 512, 2048], &recorded());
}

/// What is compared above differs between the policies, so none can stand in for another.
#[test]
fn policies_differ() {
    let requests = scans();
    let misses: std::collections::BTreeSet<u64> =
        CachePolicy::ALL.iter().map(|&policy| ours(policy, 700, &requests)).collect();
    assert_eq!(misses.len(), CachePolicy::ALL.len(), "{misses:?}");
}
