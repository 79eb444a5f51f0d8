//! The thesis's validation (chapter 4) in virtual time: workloads traced on one system, predicted for several, and run
//! there.

mod recorded;

use crate::{
    Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit, parallel,
};
use fault::Kind;
use kernel::Machine;
use lab::{LabSite, SiteOptions, Spec};
use measure::MeasureOptions;
use posix::{SetupError, Site, Target};
use recorded::Recorded;
use std::path::{Path, PathBuf};
use system::SystemProfile;
use trace::profile::Reader;
use validate::{Cell, ValidateOptions, ValidateTarget, ValidateWorkload, Validation};
use workload::{Parameters, Repeat, postmark, sdet, ssh_build};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "hbench01/validation",
    title: "Workload-specific prediction against what is measured",
    source: "Smith, Workload-Specific File System Benchmarks, PhD thesis, Harvard, 2001, chapter 4",
    runs: "a build, SDET with 1, 2, 4 and 8 scripts, and PostMark, each traced once on the slow machine with \
           conventional updates; a slow and a fast machine, each with conventional updates, Soft Updates and No Order, \
           measured by micro-benchmarks; every workload predicted for every system and replayed there, in virtual \
           time, so that every error is the model's",
    run,
};

/// A machine with its drive, and how a table calls it.
const MACHINES: [(&str, &str, &str); 2] = [("slow", "pentium-120", "st32430n"), ("fast", "pentium3-500", "st39102lw")];
/// How metadata is written, and the word of a target.
const MODES: [(&str, &str); 3] = [("FFS", "conventional"), ("No Order", "noorder"), ("Soft Updates", "softdep")];
/// Scripts of SDET at the same time.
const SCRIPTS: [u32; 4] = [1, 2, 4, 8];

/// A system of the validation.
#[derive(Clone, Debug)]
struct System {
    name: String,
    machine: &'static str,
    target: String,
}

/// A workload and its benchmark.
struct Work {
    name: String,
    parameters: Parameters,
}

fn systems(bench: &Bench<'_>) -> Vec<System> {
    let (machines, modes) = bench.pick((&MACHINES[..1], &MODES[..2]), (&MACHINES[..], &MODES[..]));
    let each = machines.iter().flat_map(|machine| modes.iter().map(move |mode| (machine, mode)));
    each.map(|((speed, machine, drive), (name, words))| System {
        name: format!("{speed}, {name}"),
        machine,
        target: format!("ffs:realloc,{words},size=1G,machine={machine}@{drive}"),
    })
    .collect()
}

fn workloads(bench: &Bench<'_>) -> Vec<Work> {
    let repeat = Repeat { seed: bench.seed(), ..Repeat::once() };
    let script = |scripts: u32| Work {
        name: sdet_name(scripts),
        parameters: (&sdet::Options { scripts: vec![scripts], repeat, ..sdet::Options::default() }).into(),
    };
    let mail = |number, transactions| Work {
        name: "PostMark".to_owned(),
        parameters: (&postmark::Options { number, transactions, repeat, ..postmark::Options::default() }).into(),
    };
    let build = || Work {
        name: "build".to_owned(),
        parameters: (&ssh_build::Options { repeat, ..ssh_build::Options::default() }).into(),
    };
    let full = || std::iter::once(build()).chain(SCRIPTS.map(script)).chain([mail(5000, 10_000)]).collect();
    bench.pick_with(|| vec![mail(100, 100)], full)
}

fn sdet_name(scripts: u32) -> String {
    format!("SDET, {scripts}")
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let directory = posix::cleanup::Temporary::new()?;
    let (systems, workloads) = (systems(bench), workloads(bench));
    let profiles = traced(bench, &systems, &workloads, directory.path())?;
    let mut options = ValidateOptions::new(bench.seed());
    if let Some(budget_s) = bench.pick(Some(1200), None) {
        options.measure.budget = Some(std::time::Duration::from_secs(budget_s));
    }
    let found = parallel::each(bench, "measuring, predicting and replaying", &systems, |system| {
        let opened = profiles
            .iter()
            .map(|(name, path)| Ok(ValidateWorkload { name: name.clone(), reader: Reader::open(path)? }));
        let opened = opened.collect::<Result<Vec<_>, ExperimentError>>()?;
        let target = ValidateTarget { target: Target::Lab(system.target.clone()), profile: None };
        Ok(validate::validate(opened, vec![target], Box::new(open), &options, None, &mut |_| {})?)
    })?;
    let measured: Vec<(String, SystemProfile)> = found.iter().flat_map(|found| found.measured.clone()).collect();
    let mut cells: Vec<Cell> = Vec::new();
    for workload in &workloads {
        for (system, found) in systems.iter().zip(&found) {
            let of = found.cells.iter().filter(|cell| cell.workload == workload.name);
            cells.extend(of.cloned().map(|cell| Cell { target: system.name.clone(), ..cell }));
        }
    }
    let validation = validate::compare(cells, None, bench.seed());
    let mut outcome = Outcome::new();
    describe(&mut outcome, &systems, &options.measure);
    summary(&mut outcome, &validation);
    by_system_and_workload(&mut outcome, &validation, &systems, &workloads);
    claims(&mut outcome, &validation, &systems);
    concurrency(&mut outcome, &validation, &systems);
    overhead(&mut outcome, &systems, &measured);
    caches(&mut outcome, &systems, &measured)?;
    outcome.validation = Some(Box::new(validation));
    Ok(outcome)
}

/// Runs every benchmark once on the first system, and keeps what it asked: names and profiles.
fn traced(
    bench: &mut Bench<'_>,
    systems: &[System],
    workloads: &[Work],
    directory: &Path,
) -> Result<Vec<(String, PathBuf)>, ExperimentError> {
    let Some(first) = systems.first() else { unreachable!("there are systems at every scale") };
    let numbered: Vec<(usize, &Work)> = workloads.iter().enumerate().collect();
    parallel::each(bench, "tracing", &numbered, |(number, work)| {
        let site = open(&Target::Lab(first.target.clone()), 0, 0)?;
        let path = directory.join(format!("{number}.workload"));
        let mut recorded = Recorded::new(site.handle());
        workload::run_on(&mut recorded, work.parameters.clone(), &mut |_| {})?;
        recorded.finish(&path, &work.name)?;
        site.close()?;
        Ok((work.name.clone(), path))
    })
}

/// A new laboratory.
fn open(target: &Target, need_bytes: u64, need_inodes: u64) -> Result<Box<dyn Site>, SetupError> {
    let Target::Lab(text) = target else { unreachable!("{target} is no target of the laboratory") };
    let spec = Spec::parse(text).map_err(|error| SetupError::Other { source: Box::new(error), kind: Kind::Usage })?;
    let options = SiteOptions { need_bytes, need_inodes, ..SiteOptions::default() };
    Ok(Box::new(LabSite::open(&spec, &options)?))
}

fn describe(outcome: &mut Outcome, systems: &[System], measure: &MeasureOptions) {
    for System { name, target, .. } in systems {
        outcome.parameter(name, target.clone());
    }
    let budget = measure.budget.map_or(String::new(), |budget| format!(" --budget {}s", budget.as_secs()));
    outcome
        .parameter("traced on", systems.first().map_or("", |system| &system.name))
        .parameter("measured as by", format!("fsage measure TARGET --quick{budget} --seed {}", measure.seed))
        .parameter("caches at first", "cold")
        .parameter("pace", "as fast as possible")
        .note(
            "The thesis built a kernel; the build here is that of ssh-build (unpack, configure, compile), and SDET and \
             PostMark are fsage's own programs of that kind. Its figures are of other machines, so none of them is \
             beside ours.",
        );
}

/// The mean of the sizes of the errors, of those cells; `None` if there are none.
fn mean_error<'v>(cells: impl Iterator<Item = &'v Cell>) -> Option<f64> {
    let sizes: Vec<f64> = cells.map(|cell| cell.error.abs()).collect();
    stats::mean(&sizes)
}

fn ours(what: String, unit: Unit, ours: f64) -> Row {
    Row::new(what, unit, Published::NONE, ours, Explain::Agrees)
}

/// Of the prediction and of the simpler methods over all cells.
fn summary(outcome: &mut Outcome, validation: &Validation) {
    for found in &validation.methods {
        let mut row = |what: &str, unit, value: Option<f64>| {
            if let Some(value) = value {
                outcome.row(ours(format!("{}: {what}", found.method), unit, value));
            }
        };
        row("mean error", Unit::Share, found.mean_error);
        row("root mean square error", Unit::Share, found.rms_error);
        row("bias", Unit::Share, found.bias);
        row("correlation with the measured times", Unit::Number, found.correlation);
        row("pairs of systems ranked right", Unit::Share, found.ranking.share_right());
        row("Kendall's tau", Unit::Number, found.kendall_tau);
    }
}

/// The thesis's tables of errors, by system and by workload.
fn by_system_and_workload(outcome: &mut Outcome, validation: &Validation, systems: &[System], workloads: &[Work]) {
    let unlike: u64 = validation.cells.iter().map(|cell| cell.differences).sum();
    outcome.row(ours(
        "calls of the replays with another outcome than in the trace".to_owned(),
        Unit::Count,
        unlike as f64,
    ));
    for cell in &validation.cells {
        outcome.row(ours(format!("error, {} on {}", cell.workload, cell.target), Unit::Share, cell.error));
    }
    for System { name, .. } in systems {
        if let Some(error) = mean_error(validation.cells.iter().filter(|cell| cell.target == *name)) {
            outcome.row(ours(format!("mean error on {name}"), Unit::Share, error));
        }
    }
    for Work { name, .. } in workloads {
        if let Some(error) = mean_error(validation.cells.iter().filter(|cell| cell.workload == *name)) {
            outcome.row(ours(format!("mean error of {name}"), Unit::Share, error));
        }
    }
}

/// How many wrong rankings are "a few": an eighth.
const FEW: f64 = 0.125;

fn claims(outcome: &mut Outcome, validation: &Validation, systems: &[System]) {
    let Some(prediction) = validation.prediction() else { return };
    let ranking = prediction.ranking;
    let wrong: Vec<String> = validation
        .pairs
        .iter()
        .filter(|pair| pair.verdict == validate::PairVerdict::Wrong)
        .map(|pair| {
            format!(
                "{}, {} before {} (measured {:.2} times, predicted {:.2})",
                pair.workload, pair.faster, pair.slower, pair.measured_ratio, pair.predicted_ratio
            )
        })
        .collect();
    let seen = match wrong.as_slice() {
        [] => format!("{} of {}", ranking.right, ranking.decided),
        wrong => format!("{} of {}; wrong: {}", ranking.right, ranking.decided, wrong.join("; ")),
    };
    let calls = || Explain::because(format!("the call types that the errors are mostly of: {}", mostly(validation)));
    outcome.claim(Claim::new(
        "all but a few pairs of systems are ranked right",
        ranking.share_right().is_some_and(|share| share >= 1.0 - FEW),
        seen,
        calls(),
    ));
    let others = validation.methods.iter().skip(1);
    let best = others.filter_map(|m| Some((m.mean_error?, m.method.as_str()))).min_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some(ours), Some((error, method))) = (prediction.mean_error, best) {
        outcome.claim(Claim::new(
            "the prediction is nearer than any method without a simulation of the caches",
            ours < error,
            format!("mean error {:.1} %; {method}: {:.1} %", ours * 100.0, error * 100.0),
            calls(),
        ));
    }
    if systems.len() > 2 {
        let worst = validation.cells.iter().max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()));
        if let Some(worst) = worst {
            outcome.claim(Claim::new(
                "the largest error is PostMark's",
                worst.workload == "PostMark",
                format!("{} on {}: {:+.1} %", worst.workload, worst.target, worst.error * 100.0),
                calls(),
            ));
        }
    }
}

/// Of each system, the call type whose errors, without signs, are the greatest share of the measured time.
fn mostly(validation: &Validation) -> String {
    let mut said = Vec::new();
    for target in &validation.targets {
        let cells = || validation.cells.iter().filter(|cell| cell.target == target.target);
        let measured_ns: f64 = cells().map(|cell| cell.measured_ns).sum();
        let mut ops: Vec<(&str, f64)> = Vec::new();
        for op in cells().flat_map(|cell| &cell.per_op) {
            match ops.iter_mut().find(|(name, _)| *name == op.op) {
                Some((_, ns)) => *ns += op.error_ns,
                None => ops.push((&op.op, op.error_ns)),
            }
        }
        let most = ops.into_iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        if let Some((op, ns)) = most.filter(|_| measured_ns > 0.0 && !target.target.is_empty()) {
            said.push(format!("{}: {op}, {:+.1} % of the measured time", target.target, 100.0 * ns / measured_ns));
        }
    }
    said.join("; ")
}

/// SDET by the number of scripts, predicted and measured.
fn concurrency(outcome: &mut Outcome, validation: &Validation, systems: &[System]) {
    let mut series = Vec::new();
    for System { name, .. } in systems {
        let at = |of: fn(&Cell) -> f64| {
            SCRIPTS.iter().filter_map(move |scripts| {
                let workload = sdet_name(*scripts);
                let cell = validation.cells.iter().find(|cell| cell.target == *name && cell.workload == workload)?;
                Some((f64::from(*scripts), of(cell) / 1e9))
            })
        };
        series.push(Series::in_panel(name, "predicted", at(|cell| cell.predicted.prediction_ns)));
        series.push(Series::in_panel(name, "measured", at(|cell| cell.measured_ns)));
    }
    if series.iter().all(|series| series.points.is_empty()) {
        return;
    }
    outcome.figure(Figure {
        name: "sdet".to_owned(),
        title: "SDET: time in the file system by the number of scripts at the same time".to_owned(),
        x: Axis::Number("scripts".to_owned()),
        y: Axis::Number("seconds".to_owned()),
        series,
    });
}

/// The sizes of the caches as they were measured, over what the machine has: the measurement is not told of that.
fn caches(
    outcome: &mut Outcome,
    systems: &[System],
    measured: &[(String, SystemProfile)],
) -> Result<(), ExperimentError> {
    for System { name, machine, target } in systems {
        let Some((_, profile)) = measured.iter().find(|(measured, _)| measured == target) else { continue };
        let (memory, found) = (Machine::load(machine)?.memory, &profile.parameters);
        let mut row = |what: &str, measured: u64, there: u64| {
            // 0: so large that the measurement did not reach its end.
            if measured > 0 {
                let what = format!("{what}, measured over the machine's, {name}");
                outcome.row(ours(what, Unit::Ratio, measured as f64 / there.max(1) as f64));
            }
        };
        if !found.data_cache_is_lower_bound {
            row("data cache", found.data_cache_bytes, memory.buffer_cache_bytes.value);
        }
        row("name cache", found.name_cache_entries, memory.name_cache_entries.value);
        row("attribute cache", found.attribute_cache_files, memory.attribute_cache_inodes.value);
    }
    Ok(())
}

/// How much slower a fixed workload is while another process writes.
fn overhead(outcome: &mut Outcome, systems: &[System], measured: &[(String, SystemProfile)]) {
    let curve = |system: &System| {
        let profile = measured.iter().find(|(target, _)| *target == system.target).map(|(_, profile)| profile);
        let points = profile.iter().flat_map(|profile| &profile.write_load);
        Series::new(&system.name, points.map(|point| (point.load_bytes_per_s / 1e6, point.slowdown)))
    };
    outcome.figure(Figure {
        name: "overhead".to_owned(),
        title: "Asynchronous overhead: a fixed workload's time while another process writes, over its time alone"
            .to_owned(),
        x: Axis::Number("MB/s written by the other".to_owned()),
        y: Axis::Ratio("times as long".to_owned()),
        series: systems.iter().map(curve).collect(),
    });
}
