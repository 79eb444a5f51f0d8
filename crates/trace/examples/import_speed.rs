//! How fast strace's text becomes events: `cargo run --release -p fsage-trace --example import_speed -- TRACE [ROUNDS]`.
//!
//! Each round imports the whole text from memory and drops the events, so that only the import is timed; beside it stands the
//! time that finding the same lines takes (`memchr`). Prints the fastest round of each.

use std::time::{Duration, Instant};
use trace::strace::{ImportOptions, Importer};

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(file) = args.next() else {
        eprintln!("usage: import_speed TRACE [ROUNDS]");
        std::process::exit(2);
    };
    let rounds: u32 = args.next().and_then(|n| n.parse().ok()).unwrap_or(5);
    let text = std::fs::read(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let (mut lines, mut events) = (0, 0);
    let (mut import, mut search) = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        let begin = Instant::now();
        lines = memchr::memchr_iter(b'\n', &text).count() as u64;
        search = search.min(begin.elapsed());

        let begin = Instant::now();
        let mut count = 0;
        let mut sink = |batch: &trace::Batch| {
            count += batch.events.len() as u64;
            Ok(())
        };
        let mut importer = Importer::new(ImportOptions { keep_removed: true, ..ImportOptions::default() });
        importer.read(&text[..], &mut sink).unwrap_or_else(|e| panic!("{file}: {e}"));
        importer.finish(&mut sink).unwrap_or_else(|e| panic!("{file}: {e}"));
        import = import.min(begin.elapsed());
        events = count;
    }
    let per_second = |time: Duration| lines as f64 / time.as_secs_f64() / 1e6;
    println!("{lines} lines, {} bytes, {events} events", text.len());
    println!("import: {:.2} million lines/s", per_second(import));
    println!(
        "finding the lines: {:.2} million lines/s; the import takes {:.0} times as long",
        per_second(search),
        import.as_secs_f64() / search.as_secs_f64()
    );
}
