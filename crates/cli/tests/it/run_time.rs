//! `fsage predict`: how long the program itself takes. What it must be is known from the program: its calls follow one
//! another.

use crate::common::{code, run, small_system, small_workload, succeeds};
use predict::runtime::{Latency, Processors, Timeline, simulate};
use serde_json::Value;
use std::path::Path;
use trace::profile::Reader;
use trace::schedule::{Happened, Turn};

fn may_record() -> bool {
    testkit::have(capture::permitted()).is_some()
}

/// Predicts `w.workload` on systems where every operation costs 1 ms and 3 ms.
fn predicted(at: &Path, more: &[&str]) -> Value {
    small_system(at, "one", 1e6);
    small_system(at, "three", 3e6);
    let args = ["predict", "w.workload", "one.system", "three.system", "--min-coverage", "0%", "--json"];
    serde_json::from_str(&succeeds(&run(at, &[&args[..], more].concat()))).unwrap()
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} of {value}"))
}

#[test]
fn the_calls_of_one_thread_are_in_its_run_time_one_for_one() {
    if !may_record() {
        return;
    }
    let d = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(d.path().join("from"), [7; 100_000]).unwrap();
    let command = ["dd", "if=from", "of=to", "bs=4096", "status=none"];
    let record = ["record", "-o", "w.workload", "--with", "ebpf", "--"];
    succeeds(&run(d.path(), &[&record[..], &command].concat()));
    let said = predicted(d.path(), &[]);
    let known = &said["run_time"]["known"];
    let (recorded, again) = (number(known, "/basis/recorded_ns"), number(known, "/basis/recorded_simulated_ns"));
    // Other programs may have had the processors meanwhile; without them it is what it was.
    assert!(again <= recorded && again > 0.0, "{known}");
    let inspected: Value =
        serde_json::from_str(&succeeds(&run(d.path(), &["inspect", "w.workload", "--json"]))).unwrap();
    let time = &inspected["files"][0]["inspection"]["thread_time"];
    let whole: f64 = ["in_calls_ns", "computing_ns", "waiting_ns", "queued_ns"]
        .iter()
        .map(|part| time[part].as_f64().unwrap())
        .sum();
    assert_eq!(whole, number(time, "/alive_ns"), "{time}");
    assert!((whole - recorded).abs() <= 0.02 * recorded, "{whole} and {recorded}");
    let (one, three) = (&known["systems"][0], &known["systems"][1]);
    let calls = number(three, "/calls_ns") - number(one, "/calls_ns");
    let run_time = number(three, "/ns") - number(one, "/ns");
    assert!(calls > 2.0 * 50.0 * 1e6, "25 blocks are read and written: {known}");
    assert_eq!(run_time, calls, "{known}");
    for system in [one, three] {
        let (low, ns, high) =
            (number(system, "/interval/low_ns"), number(system, "/ns"), number(system, "/interval/high_ns"));
        assert!(low < ns && ns < high, "{system}");
    }
    // A hidden profile takes as long.
    succeeds(&run(d.path(), &["export", "w.workload", "--anonymise", "-o", "hidden.workload"]));
    std::fs::rename(d.path().join("w.workload"), d.path().join("open.workload")).unwrap();
    std::fs::rename(d.path().join("hidden.workload"), d.path().join("w.workload")).unwrap();
    assert_eq!(but_for_names(&predicted(d.path(), &[])), but_for_names(&said));
    let shown = succeeds(&run(d.path(), &["predict", "w.workload", "one.system", "--min-coverage", "0%", "--details"]));
    assert!(shown.contains("Run time"), "{shown}");
}

/// The mount point is a name.
fn but_for_names(said: &Value) -> Value {
    let mut known = said["run_time"]["known"].clone();
    known["basis"].as_object_mut().unwrap().remove("moved");
    known
}

/// With all waits as recorded, who wakes whom must give back the recorded time of a real program, and not by leaving it
/// out.
#[test]
fn a_recording_gone_through_again_takes_as_long() {
    if !may_record() {
        return;
    }
    let d = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let script =
        "for i in 1 2 3 4 5; do seq 20000; done | sort -n | tee copy | tail -n 1; (sleep 0.05; echo x) | cat; wait";
    succeeds(&run(d.path(), &["record", "-o", "w.workload", "--with", "ebpf", "--", "sh", "-c", script]));
    let reader = Reader::open(&d.path().join("w.workload")).unwrap();
    let mut turns = reader.schedule().unwrap().unwrap();
    let waits = turns.iter().filter(|turn| matches!(turn.what, Happened::Slept { waker: Some(_), .. })).count();
    assert!(waits >= 5, "{waits} waits for each other in {turns:?}");
    // What the recorder took was part of the recorded time.
    turns.retain(|turn| !matches!(turn.what, Happened::Recorder { .. }));
    let timeline = Timeline::new(&[], &turns);
    let again = simulate(&timeline, Processors::AsRecorded, 1.0, &|_| Latency::default()).unwrap();
    assert_eq!(again, timeline.recorded_ns());
    let wall_ns = reader.meta().wall_ns.unwrap();
    assert!(again.abs_diff(wall_ns) <= wall_ns / 50 + 5_000_000, "{again} and {wall_ns}");
}

/// How long a thread had a processor, without what the recorder took of that.
fn on_a_processor_ns(turns: &[Turn], tid: u32) -> f64 {
    let of = turns.iter().filter(|turn| turn.tid == tid);
    let parts = of.map(|turn| match turn.what {
        Happened::Began { .. } => -(turn.t_ns as f64),
        Happened::Ended => turn.t_ns as f64,
        Happened::Slept { until_ns, .. } | Happened::Waited { until_ns } => -((until_ns - turn.t_ns) as f64),
        Happened::Recorder { own_ns } => -(own_ns as f64),
    });
    parts.sum()
}

#[test]
fn processes_that_compute_at_once_share_the_processors() {
    if !may_record() {
        return;
    }
    let d = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Each computes for as long as it takes to count, at the same time as the others.
    let script = "for i in 1 2 3; do (n=0; while [ $n -lt 60000 ]; do n=$((n + 1)); done) & done; wait";
    succeeds(&run(d.path(), &["record", "-o", "w.workload", "--with", "ebpf", "--", "sh", "-c", script]));
    let on = |processors: &str| {
        let said = predicted(d.path(), &["--processors", processors]);
        number(&said["run_time"]["known"], "/basis/recorded_simulated_ns")
    };
    let (one, two, four) = (on("1"), on("2"), on("4"));
    let reader = Reader::open(&d.path().join("w.workload")).unwrap();
    let turns = reader.schedule().unwrap().unwrap();
    // On a machine that others use, one of them may take several times as long as another.
    let computed: Vec<f64> = turns
        .iter()
        .filter(|turn| matches!(turn.what, Happened::Began { .. }))
        .map(|child| on_a_processor_ns(&turns, child.tid))
        .collect();
    let (sum, longest) = (computed.iter().sum::<f64>(), computed.iter().copied().fold(0.0, f64::max));
    let times = format!("{one} on one processor, {two} on two, {four} on four; of each {computed:?}");
    assert_eq!(computed.len(), 3, "{times}");
    assert!(one >= sum && two >= sum / 2.0 && four >= longest, "{times}");
    // The shell begins them, and what nobody of them ended is no matter of processors.
    let is_child = |tid| turns.iter().any(|turn| turn.tid == tid && matches!(turn.what, Happened::Began { .. }));
    let shell = turns.iter().find(|turn| turn.what == Happened::Ended && !is_child(turn.tid)).expect("it ended").tid;
    let shell = on_a_processor_ns(&turns, shell);
    let slept = |turn: &Turn| match turn.what {
        Happened::Slept { until_ns, waker: None, .. } => (until_ns - turn.t_ns) as f64,
        _ => 0.0,
    };
    let beside: f64 = shell + turns.iter().map(slept).sum::<f64>();
    // They begin one after another, and some moments are nobody's: up to 1.2 and 1.6 hundredths were seen. Who let them
    // follow one another on four processors would have three times the longest.
    let at_most = |together: f64| 1.25 * (together + beside);
    assert!(one <= at_most(sum) && four <= at_most(longest), "{beside} beside them: {times}");
    // Whatever else it takes, what two of three compute on one processor they compute beside the third on four.
    let saves = (sum - longest) / 2.0;
    assert!(four <= two && two < one && four + saves < one, "{times}");
    let none = run(d.path(), &["predict", "w.workload", "one.system", "--processors", "0"]);
    assert_eq!(code(&none), 2);
}

#[test]
fn a_tracer_that_stops_the_program_says_nothing_of_its_run_time() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "one", 1e6);
    let args = ["predict", "small.workload", "one.system", "--min-coverage", "0%"];
    let said: Value = serde_json::from_str(&succeeds(&run(d.path(), &[&args[..], &["--json"]].concat()))).unwrap();
    let why = said["run_time"]["unknown"].as_str().unwrap();
    assert!(why.contains("--with ebpf"), "{why}");
    assert!(succeeds(&run(d.path(), &[&args[..], &["--details"]].concat())).contains(why));
}
