//! Run times against what can be computed by hand, and against the order of causes.

use predict::runtime::{Latency, Processors, Span, Timeline, simulate};
use proptest::prelude::*;
use trace::schedule::{Happened, Turn};

const MS: u64 = 1_000_000;

fn turn(tid: u32, t_ns: u64, what: Happened) -> Turn {
    Turn { tid, t_ns, what }
}

fn slept(tid: u32, t_ns: u64, woken_ns: u64, until_ns: u64, waker: Option<u32>) -> Turn {
    turn(tid, t_ns, Happened::Slept { woken_ns, until_ns, waker })
}

fn recorded(spans: &[Span]) -> impl Fn(usize) -> Latency {
    |call| Latency { running_ns: spans[call].running_ns, blocked_ns: spans[call].blocked_ns }
}

fn call(tid: u32, t_ns: u64, running_ns: u64, blocked_ns: u64) -> Span {
    Span { tid, t_ns, dur_ns: running_ns + blocked_ns, running_ns, blocked_ns }
}

/// A parent computes 10 ms, starts a child, and waits for it. The child computes 5 ms, syncs for 20 ms (1 of them
/// running), computes 5 ms and ends; the parent computes 3 ms.
fn parent_and_child() -> (Vec<Span>, Vec<Turn>) {
    let spans = vec![call(1, 0, 2 * MS, 0), call(2, 15 * MS, MS, 19 * MS)];
    let turns = vec![
        turn(2, 10 * MS, Happened::Began { parent: 1 }),
        slept(1, 10 * MS, 40 * MS, 40 * MS, Some(2)),
        slept(2, 16 * MS, 35 * MS, 35 * MS, None),
        turn(2, 40 * MS, Happened::Ended),
        turn(1, 43 * MS, Happened::Ended),
    ];
    (spans, turns)
}

#[test]
fn a_sync_of_twice_the_time_delays_who_waits_for_it() {
    let (spans, turns) = parent_and_child();
    let timeline = Timeline::new(&spans, &turns);
    assert_eq!((timeline.recorded_ns(), timeline.threads()), (43 * MS, 2));
    assert_eq!(timeline.computing_ns(), (8 + 5 + 5 + 3) * MS);
    let recorded = recorded(&spans);
    assert_eq!(simulate(&timeline, Processors::AsRecorded, 1.0, &recorded), Ok(43 * MS));
    let on = |processors, latency: &dyn Fn(usize) -> Latency| {
        simulate(&timeline, Processors::Shared(processors), 1.0, latency)
    };
    assert_eq!(on(2, &recorded), Ok(43 * MS));
    assert_eq!(on(1, &recorded), Ok(43 * MS), "the two never compute at the same time");
    assert_eq!(on(2, &|call| recorded(call).scaled(2.0)), Ok((43 + 2 + 20) * MS));
    assert_eq!(on(2, &|_| Latency::default()), Ok((43 - 2 - 20) * MS));
    let slower = simulate(&timeline, Processors::Shared(2), 2.0, &recorded);
    assert_eq!(slower, Ok((43 + 8 + 5 + 5 + 3) * MS));
}

#[test]
fn threads_share_processors() {
    // Three threads of 9 ms each, and one that only starts them.
    let mut turns = Vec::new();
    for tid in 2..=4 {
        turns.push(turn(tid, 0, Happened::Began { parent: 1 }));
        turns.push(turn(tid, 9 * MS, Happened::Ended));
    }
    turns.push(turn(1, 0, Happened::Ended));
    let timeline = Timeline::new(&[], &turns);
    let on = |processors| simulate(&timeline, Processors::Shared(processors), 1.0, &|_| Latency::default()).unwrap();
    assert_eq!((on(3), on(4), on(1)), (9 * MS, 9 * MS, 27 * MS));
    // In turns of 3 ms on two: 2 and 3, 4 and 2, 3 and 4, 2 and 3, 4.
    assert_eq!(on(2), 15 * MS);
}

#[test]
fn a_latency_on_the_processor_holds_up_others_and_one_asleep_does_not() {
    let spans = vec![call(1, 0, 10 * MS, 0), call(2, 0, 10 * MS, 0)];
    let turns = vec![
        turn(2, 0, Happened::Began { parent: 9 }),
        turn(1, 10 * MS, Happened::Ended),
        turn(2, 10 * MS, Happened::Ended),
    ];
    let timeline = Timeline::new(&spans, &turns);
    let on_one = |latency| simulate(&timeline, Processors::Shared(1), 1.0, &|_| latency).unwrap();
    assert_eq!(on_one(Latency { running_ns: 10 * MS, blocked_ns: 0 }), 20 * MS);
    assert_eq!(on_one(Latency { running_ns: 0, blocked_ns: 10 * MS }), 10 * MS);
}

#[test]
fn who_comes_late_finds_what_he_would_have_waited_for() {
    // Thread 2 waits 10 ms for thread 1, after a call of 1 ms. Where the call takes 100 ms, it need not wait.
    let spans = vec![call(2, 0, MS, 0)];
    let turns = vec![
        turn(2, 0, Happened::Began { parent: 1 }),
        slept(2, MS, 11 * MS, 11 * MS, Some(1)),
        turn(1, 12 * MS, Happened::Ended),
        turn(2, 13 * MS, Happened::Ended),
    ];
    let timeline = Timeline::new(&spans, &turns);
    let with = |ms: u64| {
        let latency = Latency { running_ns: ms * MS, blocked_ns: 0 };
        simulate(&timeline, Processors::Shared(2), 1.0, &|_| latency).unwrap()
    };
    assert_eq!((with(1), with(5), with(100)), (13 * MS, 13 * MS, 102 * MS));
}

#[test]
fn what_happens_in_a_call_is_the_calls() {
    // A sleep in a call is in its latency; a fault in a call is in its time; a number is another thread's after its
    // end.
    let spans = vec![call(1, 0, 5 * MS, 5 * MS), call(1, 2 * MS, MS, 0), call(2, 20 * MS, MS, 0)];
    let turns = vec![
        slept(1, 3 * MS, 8 * MS, 8 * MS, Some(2)),
        turn(2, 11 * MS, Happened::Ended),
        turn(2, 12 * MS, Happened::Began { parent: 1 }),
        turn(1, 12 * MS, Happened::Ended),
        turn(2, 22 * MS, Happened::Ended),
    ];
    let timeline = Timeline::new(&spans, &turns);
    assert_eq!((timeline.recorded_ns(), timeline.threads()), (22 * MS, 3));
    let asked = std::cell::RefCell::new(Vec::new());
    let latency = |call: usize| {
        asked.borrow_mut().push(call);
        Latency::default()
    };
    let ns = simulate(&timeline, Processors::Shared(2), 1.0, &latency).unwrap();
    assert_eq!(*asked.borrow(), [0, 2], "the call within another is not made again");
    assert_eq!(ns, 22 * MS - 10 * MS - MS);
}

#[test]
fn waking_takes_time_for_whoever_sleeps() {
    // Thread 2 is woken three times, and has a processor 1, 2 and 9 ms later: at most the median is what waking takes.
    let spans = vec![call(2, 30 * MS, MS, 0)];
    let turns = vec![
        turn(2, 0, Happened::Began { parent: 1 }),
        slept(2, 0, 10 * MS, 11 * MS, Some(1)),
        slept(2, 12 * MS, 18 * MS, 20 * MS, None),
        slept(2, 31 * MS, 40 * MS, 49 * MS, Some(1)),
        turn(1, 40 * MS, Happened::Ended),
        turn(2, 50 * MS, Happened::Ended),
    ];
    let timeline = Timeline::new(&spans, &turns);
    let on = |timeline: &Timeline, ms: u64| {
        let latency = Latency { running_ns: ms * MS, blocked_ns: 0 };
        simulate(timeline, Processors::Shared(2), 1.0, &|_| latency).unwrap()
    };
    assert_eq!(on(&timeline, 1), 41 * MS);
    let timeline = timeline.with_wakes();
    assert_eq!((timeline.wake_ns(), on(&timeline, 1)), (2 * MS, 43 * MS));
    // Who comes after what he would have waited for is not woken: 30 + 20 ms, and what follows.
    assert_eq!(on(&timeline, 20), (11 + 1 + 6 + 2 + 10 + 20 + 1) * MS);
}

#[test]
fn what_the_recorder_took_is_left_out() {
    let spans = vec![call(1, 2 * MS, MS, 0)];
    let told = |t_ns, own_ns| turn(1, t_ns, Happened::Recorder { own_ns });
    // 2 ms and 4 ms of computing around a call: the last 3 of 6, and more than there is.
    let turns = [
        told(7 * MS, 3 * MS),
        turn(1, 7 * MS, Happened::Ended),
        turn(2, 0, Happened::Began { parent: 1 }),
        turn(1, 0, Happened::Waited { until_ns: 0 }),
    ];
    let timeline = Timeline::new(&spans, &turns);
    assert_eq!((timeline.computing_ns(), timeline.recorder_ns()), (3 * MS, 3 * MS));
    let on = |timeline: &Timeline| simulate(timeline, Processors::Shared(1), 1.0, &recorded(&spans));
    assert_eq!((on(&timeline), timeline.recorded_ns()), (Ok(4 * MS), 7 * MS));
    let timeline = Timeline::new(&spans, &[told(7 * MS, 9 * MS), turns[1], turns[3]]);
    assert_eq!((on(&timeline), timeline.recorder_ns()), (Ok(MS), 6 * MS));
}

#[test]
fn contradicting_times_are_an_error() {
    // Each is woken by the other at a moment at which both had just been woken.
    let turns = [slept(1, 5, 10, 10, Some(2)), slept(2, 5, 10, 10, Some(1))];
    let result = simulate(&Timeline::new(&[], &turns), Processors::Shared(1), 1.0, &|_| Latency::default());
    let stuck = result.unwrap_err();
    assert_eq!(stuck.threads, 2, "{stuck}");
}

#[test]
fn absurd_times_end() {
    let spans = vec![
        call(1, u64::MAX / 2, 1, 0),
        Span { tid: 2, t_ns: u64::MAX - 5, dur_ns: u64::MAX, running_ns: u64::MAX, blocked_ns: 7 },
    ];
    let turns = [
        turn(3, 0, Happened::Began { parent: 1 }),
        turn(3, u64::MAX, Happened::Ended),
        turn(1, u64::MAX, Happened::Ended),
    ];
    let timeline = Timeline::new(&spans, &turns);
    assert_eq!(simulate(&timeline, Processors::Shared(1), 1.0, &recorded(&spans)), Ok(u64::MAX));
}

/// A recording of threads that compute, call, sleep and wait for each other; what must hold of it is known from how it
/// was made.
#[derive(Clone, Debug, Default)]
struct Made {
    spans: Vec<Span>,
    turns: Vec<Turn>,
    recorded_ns: u64,
    /// The end of the last thread if nobody waits for a processor, with calls as long as recorded and twice as long.
    ideal_ns: [u64; 2],
    /// On processors, all threads together, with calls as long as recorded.
    work_ns: u64,
    /// Of everything, one behind the other.
    sum_ns: u64,
}

/// A thread's clocks: recorded, and ideal with calls once and twice as long.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    recorded: u64,
    ideal: [u64; 2],
    has_ended: bool,
}

/// What a random number makes of the thread whose turn it is.
fn made(actions: &[(u8, u8, u16, u8)]) -> Made {
    let mut made = Made::default();
    let mut threads = vec![Clocks { recorded: 0, ideal: [0; 2], has_ended: false }];
    made.spans.push(Span { tid: 100, ..Span::default() });
    for &(who, what, ns, other) in actions {
        let at = usize::from(who) % threads.len();
        let (tid, ns) = (100 + at as u32, u64::from(ns) + 1);
        let mut clocks = threads[at];
        if clocks.has_ended {
            continue;
        }
        // A thread that gives or takes at the moment at which it did so before would leave the order open.
        clocks.recorded += 1;
        clocks.ideal.iter_mut().for_each(|clock| *clock += 1);
        made.work_ns += 1;
        made.sum_ns += 1;
        let now = clocks.recorded;
        match what % 8 {
            0 if threads.len() < 8 => {
                made.turns.push(turn(100 + threads.len() as u32, now, Happened::Began { parent: tid }));
                threads.push(clocks);
            }
            1 | 2 => {
                let (running_ns, blocked_ns) = (ns, u64::from(other));
                made.spans.push(call(tid, now, running_ns, blocked_ns));
                clocks.recorded += running_ns + blocked_ns;
                clocks.ideal[0] += running_ns + blocked_ns;
                clocks.ideal[1] += 2 * (running_ns + blocked_ns);
                made.work_ns += running_ns;
                made.sum_ns += running_ns + blocked_ns;
            }
            3 => {
                made.turns.push(slept(tid, now, now + ns, now + ns + u64::from(other), None));
                clocks.recorded += ns + u64::from(other);
                clocks.ideal.iter_mut().for_each(|clock| *clock += ns);
                made.sum_ns += ns;
            }
            4 => {
                made.turns.push(turn(tid, now, Happened::Waited { until_ns: now + ns }));
                clocks.recorded += ns;
            }
            5 | 6 => {
                // Woken by another who is further on, and still there.
                let waker = usize::from(other) % threads.len();
                let by = threads[waker];
                if waker != at && !by.has_ended && by.recorded > now {
                    made.turns.push(slept(tid, now, by.recorded, by.recorded + ns, Some(100 + waker as u32)));
                    clocks.recorded = by.recorded + ns;
                    for (clock, by) in clocks.ideal.iter_mut().zip(by.ideal) {
                        *clock = by.max(*clock);
                    }
                    // Whoever gave goes on.
                    threads[waker].recorded += 1;
                    threads[waker].ideal.iter_mut().for_each(|clock| *clock += 1);
                    made.work_ns += 1;
                    made.sum_ns += 1;
                }
            }
            7 if other == 0 && at > 0 => {
                made.turns.push(turn(tid, now, Happened::Ended));
                clocks.has_ended = true;
            }
            _ => {
                clocks.recorded += ns;
                clocks.ideal.iter_mut().for_each(|clock| *clock += ns);
                made.work_ns += ns;
                made.sum_ns += ns;
            }
        }
        threads[at] = clocks;
    }
    for (at, clocks) in threads.iter().enumerate() {
        if !clocks.has_ended {
            made.turns.push(turn(100 + at as u32, clocks.recorded, Happened::Ended));
        }
        made.recorded_ns = made.recorded_ns.max(clocks.recorded);
        for (last, ideal) in made.ideal_ns.iter_mut().zip(clocks.ideal) {
            *last = ideal.max(*last);
        }
    }
    made
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_run_is_shorter_than_its_longest_chain_or_its_work_nor_longer_than_all_in_turn(
        actions in prop::collection::vec(any::<(u8, u8, u16, u8)>(), 1..200),
        processors in 1u32..5,
    ) {
        let made = made(&actions);
        let timeline = Timeline::new(&made.spans, &made.turns);
        let recorded = recorded(&made.spans);
        prop_assert_eq!(timeline.recorded_ns(), made.recorded_ns);
        prop_assert_eq!(simulate(&timeline, Processors::AsRecorded, 1.0, &recorded), Ok(made.recorded_ns));
        // With a processor for each, a run is its longest chain, which was reckoned while the recording was made up.
        prop_assert_eq!(simulate(&timeline, Processors::Shared(64), 1.0, &recorded), Ok(made.ideal_ns[0]));
        let twice = |call: usize| recorded(call).scaled(2.0);
        prop_assert_eq!(simulate(&timeline, Processors::Shared(64), 1.0, &twice), Ok(made.ideal_ns[1]));
        let shared = simulate(&timeline, Processors::Shared(processors), 1.0, &recorded).unwrap();
        prop_assert!(shared >= made.ideal_ns[0]);
        prop_assert!(shared >= made.work_ns / u64::from(processors));
        prop_assert!(shared <= made.sum_ns);
        prop_assert_eq!(simulate(&timeline, Processors::Shared(processors), 1.0, &recorded), Ok(shared));
    }
}
