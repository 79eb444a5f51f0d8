//! The tasks of a sweep: which there are, by number.

use crate::SweepError;
use crate::spec::{AxisValue, Piece, Spec, TASK_SEED, pieces};

/// More tasks than a list of numbers holds in reasonable memory.
const COMBINATIONS_MAX: u64 = 1 << 28;

/// One task: a command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its number, from 1.
    pub number: u64,
    /// Its value on each axis, in the order of the axes.
    pub values: Vec<AxisValue>,
    /// What stands behind `fsage`.
    pub arguments: Vec<String>,
}

impl Task {
    /// As a person would type it.
    pub fn command(&self) -> String {
        let quoted = |arg: &String| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:=,@+%".contains(&b);
            if !arg.is_empty() && arg.bytes().all(plain) {
                arg.clone()
            } else {
                format!("'{}'", arg.replace('\'', "'\\''"))
            }
        };
        std::iter::once("fsage".to_owned()).chain(self.arguments.iter().map(quoted)).collect::<Vec<_>>().join(" ")
    }
}

/// All tasks of a sweep. Only numbers are kept: a task is made when it is asked for.
#[derive(Clone, Debug)]
pub struct Tasks {
    /// The axes that vary together, each group by the positions of its axes, in the order of the file.
    groups: Vec<Vec<usize>>,
    /// The combinations that are not left out, in order. Task N is the N-th of them.
    included: Vec<u32>,
}

impl Tasks {
    /// The tasks of a sweep.
    ///
    /// # Errors
    /// There are too many, or none is left.
    pub fn of(spec: &Spec) -> Result<Tasks, SweepError> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for axis in 0..spec.axes.len() {
            match spec.zips.iter().find(|zip| zip.contains(&axis)) {
                // Where its first axis stands in the file.
                Some(zip) if zip.iter().min() == Some(&axis) => groups.push(zip.clone()),
                Some(_) => {}
                None => groups.push(vec![axis]),
            }
        }
        let wrong = |message: String| SweepError::Spec { file: spec.file.clone(), line: None, message };
        let mut lengths = groups.iter().map(|group| spec.axes[group[0]].values.len() as u64);
        let all = lengths.try_fold(1u64, u64::checked_mul).filter(|all| *all <= COMBINATIONS_MAX);
        let all = all.ok_or_else(|| {
            wrong(format!("the axes have more than {COMBINATIONS_MAX} combinations; split it into several sweeps"))
        })?;
        let mut tasks = Tasks { groups, included: Vec::new() };
        // It fits: COMBINATIONS_MAX does.
        for combination in 0..u32::try_from(all).unwrap_or(u32::MAX) {
            let at = tasks.positions(spec, combination);
            let is_out = spec
                .excludes
                .iter()
                .any(|conditions| conditions.iter().all(|(axis, values)| values.contains(&at[*axis])));
            if !is_out {
                tasks.included.push(combination);
            }
        }
        if tasks.included.is_empty() {
            return Err(wrong("every combination is left out; there is nothing to do".to_owned()));
        }
        Ok(tasks)
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.included.len() as u64
    }

    /// Whether there is none; a sweep has one at least.
    pub fn is_empty(&self) -> bool {
        self.included.is_empty()
    }

    /// Which value each axis has in a combination. The last group varies fastest.
    fn positions(&self, spec: &Spec, combination: u32) -> Vec<usize> {
        let mut rest = combination as usize;
        let mut at = vec![0; spec.axes.len()];
        for group in self.groups.iter().rev() {
            let len = spec.axes[group[0]].values.len();
            for &axis in group {
                at[axis] = rest % len;
            }
            rest /= len;
        }
        at
    }

    /// A task's value on each axis, by position among the axis's values.
    pub fn places(&self, spec: &Spec, number: u64) -> Option<Vec<usize>> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        Some(self.positions(spec, *self.included.get(index)?))
    }

    /// A task by its number, from 1.
    pub fn get(&self, spec: &Spec, number: u64) -> Option<Task> {
        let places = self.places(spec, number)?;
        let values: Vec<AxisValue> = spec.axes.iter().zip(&places).map(|(axis, &at)| axis.values[at].clone()).collect();
        let mut arguments = Vec::with_capacity(spec.run.len());
        for word in &spec.run {
            substitute(spec, &values, word, &mut arguments);
        }
        Some(Task { number, values, arguments })
    }
}

fn substitute(spec: &Spec, values: &[AxisValue], word: &str, into: &mut Vec<String>) {
    let value_of =
        |name: &str| spec.axes.iter().zip(values).find(|(axis, _)| axis.name == name).map(|(_, value)| value);
    // Spec::parse has taken it apart before.
    let pieces = pieces(word).unwrap_or_default();
    if let [Piece::Name(name)] = pieces[..]
        && let Some(AxisValue::Words(words)) = value_of(name)
    {
        into.extend(words.iter().cloned());
        return;
    }
    let mut argument = String::with_capacity(word.len());
    for piece in pieces {
        match piece {
            Piece::Text(text) => argument.push_str(text),
            Piece::Name(TASK_SEED) => argument.push_str(&task_seed(spec, values).to_string()),
            Piece::Name(name) => argument.push_str(&value_of(name).map(AxisValue::text).unwrap_or_default()),
        }
    }
    into.push(argument);
}

/// A seed of the task's own: from the sweep's and the task's values, so that a further value on an axis changes no
/// other task's.
fn task_seed(spec: &Spec, values: &[AxisValue]) -> u64 {
    let mut hash = blake3::Hasher::new();
    hash.update(&spec.seed.to_le_bytes());
    let mut named: Vec<(&str, String)> =
        spec.axes.iter().zip(values).map(|(axis, value)| (axis.name.as_str(), value.text())).collect();
    named.sort();
    for (name, value) in named {
        for text in [name, value.as_str()] {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
    }
    let mut first = [0; 8];
    hash.finalize_xof().fill(&mut first);
    // Every language has whole numbers up to 2^63 - 1.
    u64::from_le_bytes(first) >> 1
}

/// Numbers of tasks: `17..25` (both included), `3`, and several of them, separated by commas. Sorted, each once.
///
/// # Errors
/// What is written is none of these, or there is no task of that number.
pub fn numbers(text: &str, tasks: u64) -> Result<Vec<u64>, String> {
    let mut found = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (from, to) = part.split_once("..").unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|n| (1..=tasks).contains(n));
        match (number(from), number(to)) {
            (Some(from), Some(to)) if from <= to => found.extend(from..=to),
            _ => return Err(format!("{part:?}: write numbers of tasks from 1 to {tasks}, as in 17..25 or 3,5,8")),
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn spec(body: &str) -> Spec {
        Spec::parse(&format!("format = \"fsage.sweep/1\"\n{body}"), Path::new("mine.toml")).unwrap()
    }

    fn commands(spec: &Spec) -> Vec<String> {
        let tasks = Tasks::of(spec).unwrap();
        (1..=tasks.len()).map(|n| tasks.get(spec, n).unwrap().arguments.join(" ")).collect()
    }

    #[test]
    fn the_last_axis_varies_fastest_and_lists_go_together() {
        let spec = spec(
            "run = [\"bench\", \"{a}{b}\", \"{options}\"]\nzip = [[\"a\", \"options\"]]\n\
             [axes]\na = [1, 2]\nb = [\"x\", \"y\"]\noptions = [[], [\"--p\", \"q r\"]]\n",
        );
        assert_eq!(commands(&spec), ["bench 1x", "bench 1y", "bench 2x --p q r", "bench 2y --p q r"]);
        assert_eq!(Tasks::of(&spec).unwrap().get(&spec, 3).unwrap().command(), "fsage bench 2x --p 'q r'");
    }

    #[test]
    fn a_combination_is_left_out_where_all_conditions_hold() {
        let spec = spec(
            "run = \"bench {a}{b}\"\n[axes]\na = [1, 2, 3]\nb = [4, 5]\n\
             [[exclude]]\na = [1, 2]\nb = 5\n[[exclude]]\na = 3\n",
        );
        assert_eq!(commands(&spec), ["bench 14", "bench 24"]);
    }

    #[test]
    fn a_tasks_seed_depends_on_its_values_alone() {
        let few = spec("run = \"bench {a} {task_seed}\"\n[axes]\na = [2, 3]\n");
        let more = spec("run = \"bench {a} {task_seed}\"\n[axes]\na = [1, 2, 3]\n");
        let other = spec("seed = 2\nrun = \"bench {a} {task_seed}\"\n[axes]\na = [2, 3]\n");
        let (few, more) = (commands(&few), commands(&more));
        assert_eq!(few[..], more[1..]);
        assert_ne!(few[0].split(' ').nth(2), few[1].split(' ').nth(2));
        assert_ne!(few, commands(&other));
    }

    #[test]
    fn numbers_are_ranges_and_lists() {
        assert_eq!(numbers("3..5,1,4", 9), Ok(vec![1, 3, 4, 5]));
        for bad in ["", "0", "5..3", "1..10", "x", "1-2"] {
            assert!(numbers(bad, 9).is_err(), "{bad}");
        }
    }
}
