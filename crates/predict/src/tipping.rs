//! What would change a ranking: how far one cost would have to move for two systems to be equally fast.
//!
//! A prediction is linear in the costs of the vector, so that the answer is exact as long as the change leaves the
//! caches' contents alone. What may not live here: the prediction itself.

use crate::explain::explain;
use crate::pipeline::SystemPrediction;
use serde::Serialize;

/// One cost whose change alone would make two systems equally fast.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tipping {
    /// The system whose cost would change.
    pub system: String,
    /// The class of the vector; its sizes change together.
    pub class: String,
    /// What it means.
    pub meaning: String,
    /// Its time in that system's prediction, nanoseconds.
    pub ns: f64,
    /// By what factor it would have to change: below 1 for the slower system, above 1 for the faster.
    pub factor: f64,
}

/// The changes that would suffice, the smallest (as a factor) first.
pub fn tipping(faster: &SystemPrediction, slower: &SystemPrediction) -> Vec<Tipping> {
    let explanation = explain(faster, slower);
    let gap_ns = explanation.difference_ns;
    if gap_ns <= 0.0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for part in &explanation.by_class {
        let mut add = |system: &str, ns: f64, factor: f64| {
            found.push(Tipping {
                system: system.to_owned(),
                class: part.name.clone(),
                meaning: part.meaning.clone(),
                ns,
                factor,
            });
        };
        if part.b_ns > gap_ns {
            add(&explanation.b, part.b_ns, 1.0 - gap_ns / part.b_ns);
        }
        if part.a_ns > 0.0 {
            add(&explanation.a, part.a_ns, 1.0 + gap_ns / part.a_ns);
        }
    }
    found.sort_by(|x, y| x.factor.ln().abs().total_cmp(&y.factor.ln().abs()).then_with(|| x.class.cmp(&y.class)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::EntryShare;

    fn system(name: &str, costs: &[(&str, f64)]) -> SystemPrediction {
        let share = |&(entry, ns): &(&str, f64)| EntryShare {
            entry: entry.to_owned(),
            weight: 1.0,
            ns,
            ..EntryShare::default()
        };
        SystemPrediction {
            system: name.to_owned(),
            total_ns: costs.iter().map(|c| c.1).sum(),
            by_entry: costs.iter().map(share).collect(),
            ..SystemPrediction::default()
        }
    }

    #[test]
    fn the_change_makes_the_totals_equal() {
        let fast = system("a", &[("open", 100.0), ("fsync_clean", 300.0)]);
        let slow = system("b", &[("open", 50.0), ("fsync_clean", 600.0)]);
        let found = tipping(&fast, &slow);
        for t in &found {
            let moved = |s: &SystemPrediction| {
                let by = if s.system == t.system { (t.factor - 1.0) * t.ns } else { 0.0 };
                s.total_ns + by
            };
            assert!((moved(&fast) - moved(&slow)).abs() < 1e-9, "{t:?}");
        }
        // 250 less of 600 is a smaller change than 250 more on 300; open on b cannot fall by 250.
        assert_eq!((found[0].system.as_str(), found[0].class.as_str()), ("b", "fsync_clean"));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn equal_systems_have_nothing_to_tip() {
        let a = system("a", &[("open", 100.0)]);
        assert!(tipping(&a, &a).is_empty());
    }
}
