//! What-ifs: a profile with some costs replaced.

use super::{Entry, SystemProfile};
use crate::vector::{Class, entry_name, parse_entry_name};

/// Why a cost could not be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// No such name.
    #[error("{name:?} is not an entry of the system vector{}", tip(suggestion))]
    Unknown {
        /// The name as given.
        name: String,
        /// The nearest name there is; empty where none is near.
        suggestion: String,
    },
    /// Not a cost.
    #[error("{name}: a cost must be a finite number of nanoseconds and not negative")]
    Value {
        /// The name as given.
        name: String,
    },
}

impl SystemProfile {
    /// The same system with one cost replaced.
    ///
    /// `name` is an entry (`rm_65536`, `open`), or the name of a curve (`rm`): then the first point is set and the
    /// others are moved by the same amount, never below zero, so that what depends on the size stays. An entry that is
    /// not there is added. A replaced cost has no spread; a moved one keeps its own.
    pub fn with_override(&self, name: &str, ns: f64) -> Result<SystemProfile, OverrideError> {
        if !(ns.is_finite() && ns >= 0.0) {
            return Err(OverrideError::Value { name: name.to_owned() });
        }
        let mut changed = self.clone();
        if parse_entry_name(name).is_some() {
            changed.entries.insert(name.to_owned(), Entry::exactly(ns));
        } else if let Some(class) = Class::from_name(name) {
            changed.move_curve(class, ns);
        } else {
            return Err(OverrideError::Unknown { name: name.to_owned(), suggestion: nearest_name(name) });
        }
        changed.missing.remove(name);
        Ok(changed)
    }

    fn move_curve(&mut self, class: Class, first_ns: f64) {
        let mut points: Vec<u64> =
            self.entries.keys().filter_map(|n| parse_entry_name(n)).filter(|p| p.0 == class).map(|p| p.1).collect();
        points.sort_unstable();
        let Some((&first, rest)) = points.split_first() else {
            let at = class.points().first().copied().unwrap_or(0);
            self.entries.insert(entry_name(class, at), Entry::exactly(first_ns));
            return;
        };
        let Some(old) = self.entries.insert(entry_name(class, first), Entry::exactly(first_ns)) else { return };
        for &at in rest {
            if let Some(entry) = self.entries.get_mut(&entry_name(class, at)) {
                entry.move_by(first_ns - old.mean_ns);
            }
        }
    }
}

impl Entry {
    fn move_by(&mut self, ns: f64) {
        self.scale(|value| (value + ns).max(0.0));
    }

    /// Changes every time of it, by a function that never falls.
    pub(super) fn scale(&mut self, changed: impl Fn(f64) -> f64) {
        for value in [&mut self.mean_ns, &mut self.low_ns, &mut self.high_ns]
            .into_iter()
            .chain(&mut self.quantiles_ns)
            .chain(&mut self.rounds_ns)
        {
            *value = changed(*value);
        }
    }
}

/// The name for `--set` that was probably meant: the cost of a call that is named by the call (`unlink` is `rm`), else
/// the class or entry that is nearest. Empty where none is near.
pub(super) fn nearest_name(name: &str) -> String {
    let of_call = |class: &&Class| !name.is_empty() && class.meaning().trim().split(' ').next() == Some(name);
    if let Some(class) = Class::ALL.iter().find(of_call) {
        return class.name().to_owned();
    }
    let classes = Class::ALL.iter().map(|class| class.name());
    let class = units::similar::nearest(name, classes);
    class.map_or_else(|| nearest_entry(name), str::to_owned)
}

/// The entry that is nearest to `name`, the first in the vector's order among equals. Empty where none is near.
pub(super) fn nearest_entry(name: &str) -> String {
    let entries = Class::ALL.iter().flat_map(|&class| {
        let points = if class.is_curve() { class.points() } else { &[0] };
        points.iter().map(move |&at| entry_name(class, at))
    });
    let entries: Vec<String> = entries.collect();
    units::similar::nearest(name, entries.iter().map(String::as_str)).unwrap_or_default().to_owned()
}

/// A suggestion as the end of a sentence.
pub(super) fn tip(suggestion: &str) -> String {
    if suggestion.is_empty() { String::new() } else { format!("; did you mean {suggestion:?}?") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest() {
        assert_eq!(nearest_name("opne"), "open");
        assert_eq!(nearest_entry("opne"), "open");
        assert_eq!(nearest_entry("rdc_4095"), "rdc_4096");
        assert_eq!(nearest_entry("fsync_app_4k"), "fsync_app_4096");
        assert_eq!(nearest_name("frobnicate"), "");
        assert_eq!(nearest_name("unlink"), "rm", "not \"link\", which is nearer in letters");
        assert_eq!(nearest_name("rmm"), "rm");
    }

    #[test]
    fn overrides() {
        let mut p = SystemProfile::default();
        for (name, ns) in [("rm_0", 10.0), ("rm_4096", 15.0), ("open", 3.0)] {
            p.entries.insert(name.to_owned(), Entry::exactly(ns));
        }
        let mean = |p: &SystemProfile, name: &str| p.entries.get(name).map(|e| e.mean_ns);
        let q = p.with_override("rm", 50.0).expect("a curve");
        assert_eq!((mean(&q, "rm_0"), mean(&q, "rm_4096"), mean(&q, "open")), (Some(50.0), Some(55.0), Some(3.0)));
        let q = p.with_override("rm_4096", 50.0).expect("an entry");
        assert_eq!((mean(&q, "rm_0"), mean(&q, "rm_4096")), (Some(10.0), Some(50.0)));
        let q = p.with_override("rdd", 9.0).expect("a curve that was not measured");
        assert_eq!(mean(&q, "rdd_4096"), Some(9.0));
        assert!(matches!(p.with_override("opne", 1.0),
                Err(OverrideError::Unknown { suggestion, .. }) if suggestion == "open"));
        assert!(matches!(p.with_override("open", f64::NAN), Err(OverrideError::Value { .. })));
        assert!(matches!(p.with_override("open", -1.0), Err(OverrideError::Value { .. })));
    }
}
