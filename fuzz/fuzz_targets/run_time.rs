//! Calls and turns of threads as a recording may tell of them: a run time on any number of processors, or that the
//! times contradict each other. Slower calls never end the world: whatever happens, it comes to an end.

#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use predict::runtime::{Latency, Processors, Span, Timeline, simulate};
use trace::schedule::{Happened, Turn};

/// Mostly of a small world, so that times meet; sometimes any.
fn time(u: &mut Unstructured<'_>) -> Result<u64> {
    if u.ratio(1, 32)? { u.arbitrary() } else { u.int_in_range(0..=300) }
}

fn turn(u: &mut Unstructured<'_>) -> Result<Turn> {
    let (tid, t_ns) = (u.int_in_range(1..=5)?, time(u)?);
    let what = match u.int_in_range(0..=4)? {
        0 => Happened::Began { parent: u.int_in_range(1..=6)? },
        1 => {
            let woken_ns = t_ns.saturating_add(time(u)?);
            let waker = if u.arbitrary()? { Some(u.int_in_range(1..=6)?) } else { None };
            Happened::Slept { woken_ns, until_ns: woken_ns.saturating_add(time(u)?), waker }
        }
        2 => Happened::Waited { until_ns: t_ns.saturating_add(time(u)?) },
        3 => Happened::Recorder { own_ns: time(u)? },
        _ => Happened::Ended,
    };
    Ok(Turn { tid, t_ns, what })
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut spans = Vec::new();
    for _ in 0..u.int_in_range(0..=20)? {
        let dur_ns = time(u)?;
        let running_ns = time(u)?.min(dur_ns);
        let blocked_ns = time(u)?.min(dur_ns - running_ns);
        spans.push(Span { tid: u.int_in_range(1..=5)?, t_ns: time(u)?, dur_ns, running_ns, blocked_ns });
    }
    let mut turns = Vec::new();
    while !u.is_empty() && turns.len() < 100 {
        let turn = turn(u)?;
        assert_eq!(turn.fault(), None, "made so that it is sound");
        turns.push(turn);
    }
    let timeline = Timeline::new(&spans, &turns);
    let recorded = |call: usize| {
        let span = spans.get(call).expect("a call that there is");
        Latency { running_ns: span.running_ns, blocked_ns: span.blocked_ns }
    };
    for processors in [Processors::AsRecorded, Processors::Shared(1), Processors::Shared(3)] {
        for factor in [0.0, 1.0, 7.5] {
            let _ = simulate(&timeline, processors, 1.0, &|call| recorded(call).scaled(factor));
        }
    }
    Ok(())
}

fuzz_target!(|input: &[u8]| {
    let _ = run(&mut Unstructured::new(input));
});
