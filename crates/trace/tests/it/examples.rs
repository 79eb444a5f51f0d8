//! The example counts what comes with fsage.

#[path = "../../examples/read_workload.rs"]
#[allow(dead_code)] // Its `main` reads the arguments of the process.
mod example;

use trace::Op;
use trace::profile::Reader;

#[test]
fn the_bundled_workload_is_counted() {
    let reader = Reader::open(&example::bundled()).unwrap();
    let counts = example::count(&reader).unwrap();
    assert_eq!(counts.values().map(|count| count.calls).sum::<u64>(), reader.events());
    let (read, write) = (&counts[&Op::Read], &counts[&Op::Write]);
    assert!(read.bytes > 0 && write.bytes > 0, "{} read, {} written", read.bytes, write.bytes);
}
