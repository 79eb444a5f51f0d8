//! The loop and its statistics on fakes.

use super::*;
use predict::baseline::Baselines;
use predict::pipeline::{OpTotal, SystemPrediction};
use replay::{Concurrency, Differences, OpResult, Rebuilt, ReplayOptions, ReplayResult, Sample};
use stats::QUANTILES;
use system::{Moved, Reference};

/// A replay that made so many calls of each operation in so much time.
fn result(ops: &[(&str, u64, u64)]) -> ReplayResult {
    let per_op = ops.iter().map(|&(op, count, total_ns)| OpResult {
        op: op.to_owned(),
        count,
        failed: 0,
        total_ns,
        mean_ns: total_ns as f64 / count as f64,
        quantiles_ns: vec![total_ns / count; QUANTILES.len()],
    });
    ReplayResult {
        environment: posix::Environment::default(),
        options: ReplayOptions::default(),
        traced_calls: 0,
        calls: ops.iter().map(|o| o.1).sum(),
        skipped: std::collections::BTreeMap::new(),
        total_ns: ops.iter().map(|o| o.2).sum(),
        wall_ns: 0,
        final_sync_ns: 0,
        rebuild_ns: 0,
        rebuilt: Rebuilt::default(),
        cache_state: posix::CacheState::Cold,
        concurrency: Concurrency {
            traced_threads: 1,
            traced_alive_max: 1,
            in_flight_max: 1,
            overlapped_calls: 0,
            replay_threads: 1,
        },
        sample: Sample::default(),
        core_ns: None,
        per_op: per_op.collect(),
        per_subtree: Vec::new(),
        differences: Differences::default(),
    }
}

/// Predicts and replays what it is told to; writes down the order.
struct Fake {
    workloads: usize,
    targets: usize,
    predicted_ns: Vec<f64>,
    /// Per cell, the totals of successive replays.
    measured_ns: Vec<Vec<u64>>,
    log: Vec<(char, usize, usize)>,
    /// Of successive replays, while there are some.
    drifts: Vec<Drift>,
}

impl Fake {
    fn cell(&self, w: usize, t: usize) -> usize {
        w * self.targets + t
    }
}

impl Bench for Fake {
    fn workloads(&self) -> Vec<String> {
        (0..self.workloads).map(|w| format!("w{w}")).collect()
    }

    fn targets(&self) -> Vec<String> {
        (0..self.targets).map(|t| format!("t{t}")).collect()
    }

    fn measure(&mut self, target: usize) -> Result<(), ValidateError> {
        self.log.push(('m', 0, target));
        Ok(())
    }

    fn predict(&mut self, w: usize, t: usize, drift: Option<&Drift>) -> Result<SystemPrediction, ValidateError> {
        let factor = drift.map_or(1.0, |drift| drift.factor(Reference::Read));
        let total_ns = self.predicted_ns[self.cell(w, t)] * factor;
        let read = OpTotal { op: "read".into(), calls: 2, ns: total_ns, ..OpTotal::default() };
        let baselines = Baselines { same_as_traced_ns: Some(0.0), ..Baselines::default() };
        Ok(SystemPrediction { total_ns, by_op: vec![read], calls: 2, baselines, ..SystemPrediction::default() })
    }

    fn replay(
        &mut self,
        w: usize,
        t: usize,
        residuals: Option<(&mut ResidualWriter, u32)>,
    ) -> Result<(ReplayResult, Option<Drift>), ValidateError> {
        if residuals.is_some() {
            self.log.push(('i', w, t));
            return Ok((result(&[("read", 2, 1_000)]), None));
        }
        self.log.push(('r', w, t));
        let i = self.cell(w, t);
        let drift = (!self.drifts.is_empty()).then(|| self.drifts.remove(0));
        Ok((result(&[("read", 2, self.measured_ns[i].remove(0))]), drift))
    }
}

/// The first twentieth of a hundred calls took longer than the others; it says a tenth too much.
#[test]
fn a_replay_of_the_first_calls_is_a_method_of_its_own() {
    let replayed = ReplayResult { sample: Sample { calls: 5, total_ns: 55 }, ..result(&[("read", 100, 1000)]) };
    let predicted = SystemPrediction { total_ns: 900.0, calls: 100, ..SystemPrediction::default() };
    let cell = Cell::new("w", "t", &predicted, None, std::slice::from_ref(&replayed), None);
    assert_eq!((cell.measured_ns, cell.predicted.replay_of_the_first_ns), (1000.0, Some(1100.0)));
    let none = ReplayResult { sample: Sample::default(), ..replayed };
    assert_eq!(Cell::new("w", "t", &predicted, None, &[none], None).predicted.replay_of_the_first_ns, None);
}

fn fake(predicted_ns: &[f64], measured_ns: &[[u64; 3]], targets: usize) -> Fake {
    Fake {
        workloads: predicted_ns.len() / targets,
        targets,
        predicted_ns: predicted_ns.to_vec(),
        measured_ns: measured_ns.iter().map(|m| m.to_vec()).collect(),
        log: Vec::new(),
        drifts: Vec::new(),
    }
}

fn run(fake: &mut Fake) -> Validation {
    validate_on(fake, &ValidateOptions::new(7), None, &mut |_| {}).unwrap()
}

#[test]
fn measuring_and_replaying_alternate() {
    let mut fake = fake(&[150.0, 80.0], &[[100, 90, 130], [100, 100, 100]], 2);
    let mut options = ValidateOptions { repeats: 3, rounds: 2, ..ValidateOptions::new(7) };
    let mut told = Vec::new();
    validate_on(&mut fake, &options, None, &mut |p| told.push((p.done, p.total))).unwrap();
    let order: String = fake.log.iter().map(|entry| entry.0).collect();
    assert_eq!(order, "mmrrmmrrrr", "three replays of each of two cells, dealt out among two rounds");
    assert_eq!(told.last(), Some(&(11, 12)), "the bar ends where it was said to");
    for rounds in [0, 4] {
        options.rounds = rounds;
        let refused = validate_on(&mut fake, &options, None, &mut |_| {});
        assert!(matches!(refused, Err(ValidateError::Rounds { repeats: 3, .. })), "{rounds} rounds");
    }
}

#[test]
fn a_cell_that_misses_says_which_calls() {
    let v = run(&mut fake(&[150.0, 95.0], &[[100, 90, 130], [100, 100, 100]], 2));
    let document = crate::present::validation("title", "command", &v);
    let (_, totals) = document.to_csv().into_iter().find(|(name, _)| name.starts_with("totals")).unwrap();
    let lines: Vec<&str> = totals.lines().collect();
    assert!(lines[0].ends_with(",cache_state,mostly"), "{totals}");
    assert!(lines[1].ends_with(",cold,read +50.0 %"), "{totals}");
    assert!(lines[2].ends_with(",cold,"), "a twentieth is little: {totals}");
}

#[test]
fn errors_are_against_the_median() {
    let v = run(&mut fake(&[150.0, 80.0], &[[100, 90, 130], [100, 100, 100]], 2));
    let c = &v.cells[0];
    assert_eq!((c.measured_ns, c.measured_min_ns, c.measured_max_ns), (100.0, 90.0, 130.0));
    assert_eq!((c.error, c.spread), (0.5, 0.4));
    let p = v.prediction().unwrap();
    assert!((p.mean_error.unwrap() - 0.35).abs() < 1e-12);
    assert!((p.bias.unwrap() - 0.15).abs() < 1e-12);
    assert!((p.rms_error.unwrap() - (0.29f64 / 2.0).sqrt()).abs() < 1e-12);
    assert_eq!(c.per_op[0].error_ns, 50.0);
    assert_eq!(c.per_op[0].error_of_total, 0.5);
}

#[test]
fn targets_are_summed_up_and_what_following_a_method_costs() {
    // w0: the fastest is chosen; w1: the slower one, twice as slow. No interval holds anything.
    let predicted = [90.0, 300.0, 60.0, 50.0];
    let v = run(&mut fake(&predicted, &[[100; 3], [200; 3], [40; 3], [80; 3]], 2));
    let of = |target: &str| v.targets.iter().find(|t| t.target == target).unwrap();
    assert_eq!((of("t0").cells, of("t0").worst_error, of("").cells), (2, 0.5, 4));
    assert!((of("t0").median_error - 0.3).abs() < 1e-12 && (of("t0").bias - 0.2).abs() < 1e-12);
    assert_eq!((of("").inside_interval, of("").spread), (0.0, 0.0));
    assert_eq!(v.prediction().unwrap().mean_regret, Some(0.5));
    assert_eq!(v.methods.last().unwrap().mean_regret, None, "who says the same of all recommends none");
}

#[test]
fn the_models_error_and_how_often_intervals_hold() {
    // Errors of e, e, 1/e and 1/e: all of the error is common to a workload's targets.
    let e = std::f64::consts::E;
    let v = run(&mut fake(&[100.0 * e, 200.0 * e, 100.0 / e, 200.0 / e], &[[100; 3], [200; 3], [100; 3], [200; 3]], 2));
    let found = v.model_error.unwrap();
    assert!((found.sd - 1.0).abs() < 1e-9 && (found.common_share.unwrap() - 1.0).abs() < 1e-9, "{found:?}");
    assert_eq!(v.calibration, [], "the fake predicts no intervals");
    assert_eq!(v.prediction().unwrap().kendall_tau, Some(1.0));
    // Opposite errors of one workload: nothing is common.
    let v = run(&mut fake(&[100.0 * e, 100.0 / e], &[[100; 3], [101; 3]], 2));
    assert_eq!(v.model_error.unwrap().common_share, Some(0.0));
    assert_eq!(v.prediction().unwrap().kendall_tau, Some(-1.0));

    let mut cells = v.cells;
    for (cell, (low, high)) in cells.iter_mut().zip([(50.0, 200.0), (10.0, 90.0)]) {
        (cell.predicted_low_ns, cell.predicted_high_ns) = (low, high);
    }
    // The first measures in the middle of its interval, the second just above its own.
    let inside: Vec<(f64, f64)> =
        super::compare::compare(cells, None, 7).calibration.iter().map(|c| (c.level, c.inside)).collect();
    assert_eq!(inside, [(0.25, 0.5), (0.5, 0.5), (0.75, 0.5), (0.9, 0.5), (0.95, 0.5), (0.99, 1.0)]);
}

#[test]
fn ties_by_noise_are_set_apart() {
    // t0 and t1 overlap; t2 is slower than both, and predicted between them.
    let v = run(&mut fake(&[100.0, 300.0, 200.0], &[[100, 110, 120], [115, 125, 130], [500, 510, 520]], 3));
    let r = v.ranking_of("w0");
    assert_eq!((r.ties, r.decided, r.right), (1, 2, 1));
    assert_eq!(r.share_right(), Some(0.5));
    let wrong = v.pairs.iter().find(|p| p.verdict == PairVerdict::Wrong).unwrap();
    assert_eq!((wrong.faster.as_str(), wrong.slower.as_str()), ("t1", "t2"));
    // Who says the same of all systems ranks none right.
    assert_eq!(v.methods.last().unwrap().ranking, RankingSummary { decided: 2, right: 0, ties: 1 });
}

#[test]
fn a_target_that_moved_is_predicted_as_it_was_when_replayed() {
    let moved = |now_ns| Drift { references: vec![Moved { reference: Reference::Read, then_ns: 100.0, now_ns }] };
    let drifts = vec![moved(180.0), moved(120.0), moved(150.0)];
    let mut as_measured = fake(&[100.0], &[[150; 3]], 1);
    as_measured.drifts = drifts.clone();
    let v = run(&mut as_measured);
    assert_eq!((v.cells[0].predicted.prediction_ns, v.methods.len()), (100.0, 5), "not unless it was asked for");
    assert_eq!(v.targets[0].drift[0].median, 1.5, "but it is told");

    let mut carried_over = fake(&[100.0], &[[150; 3]], 1);
    carried_over.drifts = drifts;
    let options = ValidateOptions { rescale: Rescale::All, ..ValidateOptions::new(7) };
    let v = validate_on(&mut carried_over, &options, None, &mut |_| {}).unwrap();
    assert_eq!((v.cells[0].predicted.prediction_ns, v.cells[0].error), (150.0, 0.0));
    assert_eq!(v.methods[1].method, "not rescaled");
    assert_eq!(v.methods[1].median_error.map(|e| (e * 3.0).round()), Some(1.0));
}

#[test]
fn replays_are_interleaved_and_repeatable() {
    let (predicted, measured) = ([1.0; 6], [[1, 2, 3]; 6]);
    let mut first = fake(&predicted, &measured, 3);
    let mut second = fake(&predicted, &measured, 3);
    assert_eq!(run(&mut first), run(&mut second));
    assert_eq!(first.log, second.log);
    let replays: Vec<_> = first.log.iter().filter(|l| l.0 == 'r').collect();
    // Each round holds every cell once, and rounds differ.
    let mut rounds: Vec<Vec<_>> = replays.chunks(6).map(<[_]>::to_vec).collect();
    assert!(rounds[0] != rounds[1] || rounds[1] != rounds[2]);
    rounds.iter_mut().for_each(|r| r.sort());
    assert!(rounds.iter().all(|r| *r == rounds[0]) && rounds.len() == 3);
}

/// Looking into a replay made small writes half as slow again (RocksDB's log on ext4): tables of a run with residuals
/// said -36 % where the run without them said +14 %.
#[test]
fn replays_that_are_looked_into_are_in_no_figure() {
    let d = tempfile::tempdir().unwrap();
    let mut writer = ResidualWriter::create(&d.path().join("r.parquet")).unwrap();
    let mut fake = fake(&[100.0, 100.0], &[[90, 100, 110]; 2], 2);
    let v = validate_on(&mut fake, &ValidateOptions::new(7), Some(&mut writer), &mut |_| {}).unwrap();
    assert!(v.cells.iter().all(|c| c.measured_ns == 100.0 && c.measured_all_ns.len() == 3));
    let count = |kind| fake.log.iter().filter(|l| l.0 == kind).count();
    assert_eq!((count('r'), count('i')), (6, 6));
    assert_eq!(v.looking_costs, Some(9.0));
}

#[test]
fn replays_go_on_until_the_median_is_known() {
    let (steady, noisy) = ([100; 9], [100, 90, 110, 80, 120, 70, 130, 60, 140]);
    let mut fake = fake(&[100.0, 100.0], &[[0; 3]; 2], 2);
    fake.measured_ns = vec![steady.to_vec(), noisy.to_vec()];
    let options = ValidateOptions { precision: Some(0.03), ..ValidateOptions::new(7) };
    let mut last = None;
    let v = validate_on(&mut fake, &options, None, &mut |p| last = Some((p.done, p.total))).unwrap();
    let replays = |t: usize| v.cells[t].measured_all_ns.len();
    assert_eq!(
        (replays(0), replays(1), v.repeats, v.repeats_most),
        (6, 9, 6, 9),
        "six are the fewest that say something"
    );
    assert_eq!(v.precision.map(|p| (p.reached, p.worst)), Some((1, 0.3)));
    assert_eq!((v.cells[1].measured_low_ns, v.cells[1].measured_high_ns), (70.0, 130.0));
    assert_eq!(last, Some((2 + 2 + 15 - 1, 2 + 2 + 15)));
    // The intervals of the medians tell two apart whose ranges overlap.
    let mut fake = self::fake(&[1.0, 2.0], &[[0; 3]; 2], 2);
    fake.measured_ns =
        vec![vec![100, 101, 102, 103, 104, 105, 106, 107, 300], vec![190, 200, 201, 202, 203, 204, 205, 206, 207]];
    let v = validate_on(&mut fake, &ValidateOptions { repeats: 9, ..options }, None, &mut |_| {}).unwrap();
    assert_eq!(v.pairs[0].verdict, PairVerdict::Right);
}

#[test]
fn bad_requests_are_refused() {
    let mut options = ValidateOptions::new(1);
    assert!(matches!(validate_on(&mut fake(&[], &[], 1), &options, None, &mut |_| {}), Err(ValidateError::Nothing)));
    options.repeats = 2;
    let refused = validate_on(&mut fake(&[1.0], &[[1, 1, 1]], 1), &options, None, &mut |_| {});
    assert_eq!(refused.unwrap_err().kind(), Kind::Usage);
}
