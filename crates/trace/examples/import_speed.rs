//! How fast what a tracer wrote becomes events, and events a profile: `import_speed INPUT [ROUNDS]`.
//!
//! INPUT is strace's text, or the spool of a recording (of either tracer). All of it is in memory before anything is
//! timed. Each round counts the newlines in the same bytes (`memchr`), imports them and drops the events, and imports
//! them into a profile. Prints the fastest round of each in seconds of processor time, so that other work on the
//! machine counts little, and as a multiple of the plain count, so that the figure means something on another machine.

use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use trace::analysis::Decode;
use trace::profile::{Writer, WriterBeside, WriterOptions};
use trace::spool::{Frame, Notation, Reader};
use trace::strace::{ImportOptions, Imported, Sink};
use trace::{Snapshot, kernel, strace};

/// What a tracer wrote, in the stretches in which it is handed over.
struct Input {
    notation: Notation,
    stretches: Vec<Vec<u8>>,
}

/// Seconds of processor time: of this thread, and of the whole process.
#[derive(Clone, Copy)]
struct Spent {
    here_s: f64,
    process_s: f64,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(file) = args.next() else {
        eprintln!("usage: import_speed INPUT [ROUNDS]");
        std::process::exit(2);
    };
    let rounds: u32 = args.next().and_then(|n| n.parse().ok()).unwrap_or(5);
    let input = read(Path::new(&file));
    let scratch = tempfile::tempdir().expect("a directory for the profile");
    let bytes: usize = input.stretches.iter().map(Vec::len).sum();
    let (mut lines, mut events, mut trace_bytes) = (0, 0, 0);
    let (mut counts, mut imports, mut profiles) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds.max(1) {
        let count = || input.stretches.iter().map(|part| memchr::memchr_iter(b'\n', part).count()).sum::<usize>();
        counts.push(timed(|| std::hint::black_box(count())).1);

        let (imported, spent) = timed(|| import(&input, &mut |_| Ok(())));
        (lines, events) = (imported.summary.lines, imported.summary.events);
        imports.push(spent);

        let output = scratch.path().join(format!("round-{round}.workload"));
        profiles.push(timed(|| profile(&input, &output)).1);
        let trace = std::fs::metadata(output.join(trace::profile::TRACE_FILE)).expect("the profile's trace");
        trace_bytes = trace.len();
        std::fs::remove_dir_all(&output).expect("the profile can be removed");
    }
    let what = match input.notation {
        Notation::Strace => "lines",
        Notation::Kernel => "records",
    };
    println!("{lines} {what}, {bytes} bytes, {events} events; the fastest of {rounds} rounds, processor time");
    let count_s = fastest(&counts, |spent| spent.here_s);
    let print = |name: &str, s: f64| {
        println!("{name}: {:.2} million {what}/s; {:.0} times the plain count", lines as f64 / s / 1e6, s / count_s);
    };
    print("import alone", fastest(&imports, |spent| spent.here_s));
    print("import into a profile, the importing thread", fastest(&profiles, |spent| spent.here_s));
    print("import into a profile, all threads", fastest(&profiles, |spent| spent.process_s));
    println!("the profile's trace: {:.1} bytes an event", trace_bytes as f64 / events.max(1) as f64);
    println!("plain count: {:.0} MB/s", bytes as f64 / count_s / 1e6);
}

fn read(path: &Path) -> Input {
    if path.extension().is_none_or(|extension| extension != trace::spool::EXTENSION) {
        let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return Input { notation: Notation::Strace, stretches: vec![text] };
    }
    let mut reader = Reader::open(path).unwrap_or_else(|e| panic!("{e}"));
    let mut input = Input { notation: reader.header().notation, stretches: Vec::new() };
    while let Some(frame) = reader.next_frame().unwrap_or_else(|e| panic!("{e}")) {
        if let Frame::Records(records) = frame {
            input.stretches.push(records);
        }
    }
    input
}

fn import(input: &Input, sink: &mut Sink<'_>) -> Imported {
    let options = ImportOptions { keep_removed: true, ..ImportOptions::default() };
    let mut importer: Box<dyn Decode> = match input.notation {
        Notation::Strace => Box::new(strace::Importer::new(options)),
        Notation::Kernel => Box::new(kernel::Importer::new(options)),
    };
    for stretch in &input.stretches {
        importer.bytes(stretch, sink).unwrap_or_else(|e| panic!("{e}"));
    }
    importer.finish(sink).unwrap_or_else(|e| panic!("{e}"))
}

fn profile(input: &Input, output: &Path) {
    let writer = Writer::create(output, WriterOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut writer = WriterBeside::start(writer).unwrap_or_else(|e| panic!("{e}"));
    let mut imported = import(input, &mut |batch| writer.push(batch));
    let snapshot = Snapshot::from_entries(imported.implied_snapshot());
    let writer = writer.finish().unwrap_or_else(|e| panic!("{e}"));
    writer.finish(imported.meta(), &snapshot).unwrap_or_else(|e| panic!("{e}"));
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let now = |clock| {
        let at = clock_gettime(clock);
        at.tv_sec as f64 + at.tv_nsec as f64 / 1e9
    };
    let (thread, process) = (now(ClockId::ThreadCPUTime), now(ClockId::ProcessCPUTime));
    let result = work();
    let spent =
        Spent { here_s: now(ClockId::ThreadCPUTime) - thread, process_s: now(ClockId::ProcessCPUTime) - process };
    (result, spent)
}

fn fastest(rounds: &[Spent], of: fn(&Spent) -> f64) -> f64 {
    rounds.iter().map(of).fold(f64::INFINITY, f64::min)
}
