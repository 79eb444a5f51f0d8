//! Two results held against each other, point by point: fresh and aged, before and after, one target and another.

use crate::WorkloadError;
use crate::parameters::Parameters;
use crate::phase::{Phase, Unit};
use crate::repeat::Repeat;
use crate::result::BenchResult;
use crate::target_result::TargetResult;
use serde::{Deserialize, Serialize, Serializer};
use stats::Estimate;
use std::fmt;
use units::show;

/// What differs besides the file system, or makes a figure unsure. Its text says what that means, or what to do, where
/// that is more.
#[derive(Clone, Debug, PartialEq)]
pub enum Caution {
    /// An option that makes results differ on its own.
    Option {
        /// Which, in words.
        what: String,
        #[allow(missing_docs)]
        a: String,
        #[allow(missing_docs)]
        b: String,
    },
    /// They are by different versions of this program.
    Version {
        #[allow(missing_docs)]
        a: String,
        #[allow(missing_docs)]
        b: String,
    },
    /// They ran on different machines.
    Machine {
        /// What of it differs.
        what: &'static str,
        /// Of A: its value, and for which target.
        a: (String, String),
        /// Of B, likewise.
        b: (String, String),
    },
    /// The caches were not in the same state.
    Caches {
        /// The target in A.
        a: String,
        /// The target in B.
        b: String,
    },
    /// Too few rounds for an interval that keeps its promise.
    FewRounds {
        /// How many there were.
        rounds: u32,
        /// The share of cases in which the interval holds the true median.
        coverage: f64,
    },
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caution::Option { what, a, b } => write!(f, "{what}: {a} in A, {b} in B"),
            Caution::Version { a, b } => write!(f, "A is by version {a}, B by version {b}"),
            Caution::Machine { what, a, b } => {
                write!(f, "{what}: {} for {} in A, {} for {} in B", a.0, a.1, b.0, b.1)
            }
            Caution::Caches { a, b } => write!(f, "the caches were not equally cold for {a} in A and {b} in B"),
            Caution::FewRounds { rounds, coverage } => write!(
                f,
                "with {} an interval holds the true median in at most {:.0} % of cases, not in 95 %; take 6 or more",
                show::counted((*rounds).into(), "round", "rounds"),
                coverage * 100.0
            ),
        }
    }
}

/// As its text.
impl Serialize for Caution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Two results, B over A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Which benchmark.
    pub benchmark: String,
    /// What A and B are called.
    pub a: String,
    #[allow(missing_docs)]
    pub b: String,
    /// Whether all of it is from the laboratory, where every round is like the first: ratios have no error.
    pub in_virtual_time: bool,
    /// What differs besides the file system, or makes a figure unsure.
    pub cautions: Vec<Caution>,
    /// Points and phases that both have.
    pub rows: Vec<Compared>,
}

impl Comparison {
    /// How its ratios are to be read, in a sentence; `b` is what B is called there.
    pub fn how_to_read(&self, b: &str) -> String {
        let same = SAME_SHARE * 100.0;
        let same = match self.in_virtual_time {
            true => format!("Times are virtual and have no error: less than {same:.0} % from 1, the two are the same."),
            false => format!("Where its interval holds 1, or it is less than {same:.0} % from 1, it is a tie."),
        };
        format!("A ratio below 1 says that {b} is slower. {same}")
    }
}

/// One phase at one point, in A and in B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The targets' names.
    pub target_a: String,
    #[allow(missing_docs)]
    pub target_b: String,
    /// The point's name, and its file size if it has one.
    pub label: String,
    #[allow(missing_docs)]
    pub size_bytes: Option<u64>,
    /// Which phase.
    pub phase: Phase,
    /// What the rates count.
    pub unit: Unit,
    /// The rates.
    pub a: Estimate,
    #[allow(missing_docs)]
    pub b: Estimate,
    /// B's rate over A's: below 1, B is slower. The interval is a bootstrap of both sides' rounds.
    pub ratio: Estimate,
    /// What may be said of it.
    pub verdict: Verdict,
}

/// What a ratio says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// B is faster: the interval lies above 1 (in virtual time: the ratio itself).
    Faster,
    /// B is slower: the interval lies below 1.
    Slower,
    /// The interval holds 1, or the ratio is within [`SAME_SHARE`] of it.
    Tie,
    /// In virtual time: the ratio is within [`SAME_SHARE`] of 1.
    Same,
    /// A side has a single round, and with it no interval.
    Unknown,
}

/// Rates closer than this share of each other are called neither faster nor slower: without noise, so little is a
/// matter of where a block happens to lie; with noise, nobody gains by it.
pub const SAME_SHARE: f64 = 0.01;

impl Verdict {
    /// Of a ratio, from so many rounds on the side that has fewer. One that is exact has no error: the laboratory's.
    fn of(ratio: &Estimate, rounds: usize, is_exact: bool) -> Verdict {
        match () {
            () if (ratio.median - 1.0).abs() < SAME_SHARE => {
                if is_exact {
                    Verdict::Same
                } else {
                    Verdict::Tie
                }
            }
            () if !is_exact && rounds < 2 => Verdict::Unknown,
            () if !is_exact && ratio.contains(1.0) => Verdict::Tie,
            () if ratio.median > 1.0 => Verdict::Faster,
            () => Verdict::Slower,
        }
    }

    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Tie => "tie",
            Verdict::Same => "the same",
            Verdict::Unknown => "one round: no verdict",
        }
    }
}

/// Holds B against A. Targets are paired by name; where no name is in both and each has one target, these two.
///
/// # Errors
/// They are of different benchmarks, or have no target or no point in common.
pub fn compare(a: &BenchResult, b: &BenchResult, names: (&str, &str)) -> Result<Comparison, WorkloadError> {
    let wrong = |what: String| Err(WorkloadError::Incomparable(what));
    let benchmark = a.parameters.name();
    if benchmark != b.parameters.name() {
        return wrong(format!("{} is of {benchmark} and {} of {}", names.0, names.1, b.parameters.name()));
    }
    let mut pairs: Vec<(&TargetResult, &TargetResult)> =
        b.targets.iter().filter_map(|tb| a.targets.iter().find(|ta| ta.name == tb.name).map(|ta| (ta, tb))).collect();
    if let ([ta], [tb], true) = (a.targets.as_slice(), b.targets.as_slice(), pairs.is_empty()) {
        pairs.push((ta, tb));
    }
    if pairs.is_empty() {
        return wrong(format!("{} and {} have no target's name in common", names.0, names.1));
    }
    let seed = a.parameters.repeat().seed;
    let rows: Vec<Compared> = pairs.iter().flat_map(|(ta, tb)| compare_pair(ta, tb, seed)).collect();
    if rows.is_empty() {
        return wrong(format!("{} and {} have no file size or phase in common", names.0, names.1));
    }
    let mut cautions = differences(&a.parameters, &b.parameters);
    if a.version != b.version {
        cautions.push(Caution::Version { a: a.version.clone(), b: b.version.clone() });
    }
    for (ta, tb) in &pairs {
        cautions.extend(pair_cautions(ta, tb));
    }
    let in_virtual_time = pairs.iter().all(|(ta, tb)| in_virtual_time(ta, tb));
    if !in_virtual_time {
        cautions.extend(few_rounds(a.parameters.repeat(), b.parameters.repeat()));
    }
    let (a, b) = (names.0.to_owned(), names.1.to_owned());
    Ok(Comparison { benchmark: benchmark.to_owned(), a, b, in_virtual_time, cautions, rows })
}

/// Holds every further target of one result against its first; `None` of a single target.
pub fn compare_targets(result: &BenchResult) -> Option<Comparison> {
    let (first, others) = result.targets.split_first()?;
    if others.is_empty() {
        return None;
    }
    let repeat = result.parameters.repeat();
    let in_virtual_time = others.iter().all(|other| in_virtual_time(first, other));
    let few = if in_virtual_time { None } else { few_rounds(repeat, repeat) };
    let cautions = others.iter().flat_map(|other| pair_cautions(first, other)).chain(few);
    Some(Comparison {
        benchmark: result.parameters.name().to_owned(),
        a: first.name.clone(),
        b: others.iter().map(|t| t.name.as_str()).collect::<Vec<_>>().join(", "),
        in_virtual_time,
        cautions: cautions.collect(),
        rows: others.iter().flat_map(|other| compare_pair(first, other, repeat.seed)).collect(),
    })
}

fn compare_pair(a: &TargetResult, b: &TargetResult, seed: u64) -> Vec<Compared> {
    let exact = in_virtual_time(a, b);
    let mut rows = Vec::new();
    for point in &a.points {
        for in_a in &point.phases {
            let Some(in_b) = b.phase(&point.point.label, in_a.phase) else { continue };
            let (rates_a, rates_b) = (in_a.rates(), in_b.rates());
            let Some(ratio) = Estimate::of_ratio(&rates_a, &rates_b, seed) else { continue };
            let verdict = Verdict::of(&ratio, rates_a.len().min(rates_b.len()), exact);
            rows.push(Compared {
                target_a: a.name.clone(),
                target_b: b.name.clone(),
                label: point.point.label.clone(),
                size_bytes: point.point.size_bytes,
                phase: in_a.phase,
                unit: in_a.unit,
                a: in_a.rate,
                b: in_b.rate,
                ratio,
                verdict,
            });
        }
    }
    rows
}

/// Options that make two results differ on their own.
fn differences(a: &Parameters, b: &Parameters) -> Vec<Caution> {
    let mut cautions = Vec::new();
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            cautions.push(Caution::Option { what: what.to_owned(), a, b });
        }
    };
    if let (Some(a), Some(b)) = (a.benchmark().differs_by(), b.benchmark().differs_by()) {
        for ((what, a), (_, b)) in a.into_iter().zip(b) {
            differ(what, a, b);
        }
    } else {
        for (name, a, b) in unequal_fields(a, b) {
            differ(&name.replace('_', " "), a, b);
        }
    }
    cautions
}

/// Options that are not the same, by their names in the result file; how often and in which order is another matter.
fn unequal_fields(a: &Parameters, b: &Parameters) -> Vec<(String, String, String)> {
    let fields = |parameters: &Parameters| match serde_json::to_value(parameters) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (a, b) = (fields(a), fields(b));
    let unequal = a.iter().filter(|(name, value)| name.as_str() != "repeat" && b.get(name.as_str()) != Some(value));
    unequal
        .map(|(name, value)| {
            (name.clone(), value.to_string(), b.get(name).map_or_else(String::new, ToString::to_string))
        })
        .collect()
}

fn pair_cautions(a: &TargetResult, b: &TargetResult) -> Vec<Caution> {
    let mut cautions = Vec::new();
    let (ea, eb) = (&a.environment, &b.environment);
    let kernels = (ea.kernel.to_string(), eb.kernel.to_string());
    for (what, va, vb) in [("kernel", &kernels.0, &kernels.1), ("processor", &ea.cpu, &eb.cpu)] {
        if va != vb {
            let of = |value: &str, target: &TargetResult| (value.to_owned(), target.name.clone());
            cautions.push(Caution::Machine { what, a: of(va, a), b: of(vb, b) });
        }
    }
    let caches = |t: &TargetResult| (t.caches.data, t.caches.names);
    if caches(a) != caches(b) {
        cautions.push(Caution::Caches { a: a.name.clone(), b: b.name.clone() });
    }
    cautions
}

/// Whether both are from the laboratory, where every round is like the first.
fn in_virtual_time(a: &TargetResult, b: &TargetResult) -> bool {
    a.environment.kernel.is_in_virtual_time() && b.environment.kernel.is_in_virtual_time()
}

/// Too few rounds for an interval that keeps its promise.
fn few_rounds(a: &Repeat, b: &Repeat) -> Option<Caution> {
    let rounds = a.rounds.min(b.rounds);
    let coverage = stats::coverage_of_rounds(rounds);
    (coverage < 0.95).then_some(Caution::FewRounds { rounds, coverage })
}
