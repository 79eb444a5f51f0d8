//! The data cache against libcachesim's LRU: the same requests must miss as often, exactly.
//!
//! Needs a python3 with libcachesim (`pip install libcachesim`), named by FSAGE_PYTHON or found on the path; without it the
//! comparison is skipped with a message.

use predict::pipeline::annotated::NodeId;
use predict::pipeline::pages::{DataCache, PAGE_BYTES};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::io::Write;
use std::process::{Command, Stdio};

const ORACLE: &str = "
import sys
try:
    import libcachesim
except ImportError:
    sys.exit(77)
limits = [int(x) for x in sys.stdin.readline().split()]
ids = [int(x) for x in sys.stdin.readline().split()]
for limit in limits:
    cache, request, misses = libcachesim.LRU(limit), libcachesim.Request(), 0
    request.obj_size = 1
    for i in ids:
        request.obj_id = i
        misses += not cache.get(request)
    print(misses)
";

const FILES: u64 = 50;
const PAGES: u64 = 40;

/// Pages of files, the low ones more popular.
fn requests() -> Vec<(u32, u64)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut below = |n: u64| ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64;
    (0..50_000)
        .map(|_| {
            let (a, b) = (below(FILES), below(PAGES));
            ((a * below(FILES) / FILES) as u32, b * below(PAGES) / PAGES)
        })
        .collect()
}

#[test]
fn misses_are_those_of_libcachesim() {
    let limits = [1u64, 2, 7, 50, 300, 1000, 1999];
    let requests = requests();
    let text = |numbers: &mut dyn Iterator<Item = u64>| numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    let ids = text(&mut requests.iter().map(|&(file, page)| 1 + u64::from(file) * PAGES + page));
    let input = format!("{}\n{ids}\n", text(&mut limits.iter().copied()));
    let python = std::env::var("FSAGE_PYTHON").unwrap_or_else(|_| "python3".into());
    let spawned = Command::new(&python)
        .args(["-c", ORACLE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = spawned else {
        println!("skipped: no {python}");
        return;
    };
    // A python without the module ends before it reads; the broken pipe is then no news.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the child ends");
    if output.status.code() == Some(77) {
        println!("skipped: {python} has no libcachesim");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let theirs: Vec<u64> =
        String::from_utf8_lossy(&output.stdout).lines().map(|l| l.parse().expect("a count")).collect();
    let ours: Vec<u64> = limits
        .iter()
        .map(|limit| {
            let mut cache = DataCache::new(Some(limit * PAGE_BYTES), 1);
            requests.iter().map(|&(file, page)| cache.touch(NodeId(file), page, 1, false).misses).sum()
        })
        .collect();
    assert_eq!(ours, theirs);
}
