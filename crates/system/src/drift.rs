//! Whether a machine is still as it was measured.
//!
//! A profile keeps a few references: costs measured in a small way that is always the same, so that they can be
//! measured again in a second. A [`Drift`] sets the two beside each other; [`SystemProfile::rescaled`] carries it over
//! to the vector: what waits for the device moves with its reads or its syncs, the rest with the processor.

use super::{Entry, SystemProfile};
use crate::vector::{Part, entry_name, parse_entry_name};
use serde::{Deserialize, Serialize};
use stats::quantile;
use std::collections::BTreeMap;

/// What is measured to be measured again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reference {
    /// A loop of 10,000 dependent multiplications.
    Processor,
    /// A walk through 16 MB of memory in random order, 1,000 steps.
    Memory,
    /// A loop of operations that do not wait for each other, all the time between the calls: it takes longer while
    /// another thread has the same core ([`posix::core_probe`]).
    Core,
    /// stat of one cached name.
    Stat,
    /// Uncached read of 4 KB at a random place of a file of 32 MB.
    Read,
    /// fdatasync after a block of that file was overwritten.
    Sync,
}

impl Reference {
    /// All of them.
    pub const ALL: [Reference; 6] =
        [Reference::Processor, Reference::Memory, Reference::Core, Reference::Stat, Reference::Read, Reference::Sync];

    /// Its name in profiles.
    pub const fn name(self) -> &'static str {
        match self {
            Reference::Processor => "processor",
            Reference::Memory => "memory",
            Reference::Core => "core",
            Reference::Stat => "stat",
            Reference::Read => "read",
            Reference::Sync => "sync",
        }
    }
}

/// What was measured of each reference.
pub type References = BTreeMap<Reference, Entry>;

/// One reference, when the profile was measured and now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Which.
    pub reference: Reference,
    /// Nanoseconds in the profile.
    pub then_ns: f64,
    /// Nanoseconds now.
    pub now_ns: f64,
}

impl Moved {
    /// How many times as long it takes now.
    pub fn factor(&self) -> f64 {
        if self.then_ns > 0.0 && self.now_ns > 0.0 { self.now_ns / self.then_ns } else { 1.0 }
    }
}

/// How far a machine has moved since its profile was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Drift {
    /// The references that both have.
    pub references: Vec<Moved>,
}

/// A sync that takes less than this share of the reference did not wait for the device.
const WAITED_SHARE: f64 = 0.1;

impl Drift {
    /// From a profile to what was measured now; `None` where the profile has no references.
    pub fn between(profile: &SystemProfile, now: &References) -> Option<Drift> {
        let both = |(&reference, then): (&Reference, &Entry)| {
            now.get(&reference).map(|now| Moved { reference, then_ns: then.mean_ns, now_ns: now.mean_ns })
        };
        let references: Vec<Moved> = profile.references.iter().filter_map(both).collect();
        (!references.is_empty()).then_some(Drift { references })
    }

    /// The middle of several drifts of one profile, reference by reference; `None` of none.
    pub fn middle(drifts: &[Drift]) -> Option<Drift> {
        let first = drifts.first()?;
        let middle = |moved: &Moved| {
            let all = drifts.iter().flat_map(|drift| &drift.references).filter(|m| m.reference == moved.reference);
            let mut now: Vec<f64> = all.map(|m| m.now_ns).collect();
            now.sort_by(f64::total_cmp);
            Moved { now_ns: quantile(&now, 0.5), ..*moved }
        };
        Some(Drift { references: first.references.iter().map(middle).collect() })
    }

    /// The same state of the machine, as it is from another profile.
    #[must_use]
    pub fn since(mut self, profile: &SystemProfile) -> Drift {
        for moved in &mut self.references {
            moved.then_ns = profile.references.get(&moved.reference).map_or(moved.then_ns, |then| then.mean_ns);
        }
        self
    }

    /// How many times as long a reference takes as when the profile was measured; 1 where it is not known.
    pub fn factor(&self, reference: Reference) -> f64 {
        self.references.iter().find(|moved| moved.reference == reference).map_or(1.0, Moved::factor)
    }

    /// The factors, as text: `stat 1.02, read 0.98, sync 1.30`.
    pub fn told(&self) -> String {
        let moved = self.references.iter().map(|moved| format!("{} {:.2}", moved.reference.name(), moved.factor()));
        moved.collect::<Vec<String>>().join(", ")
    }

    /// With one more reference, or another value of it.
    #[must_use]
    pub fn with(mut self, moved: Moved) -> Drift {
        self.references.retain(|m| m.reference != moved.reference);
        self.references.push(moved);
        self.references.sort_by_key(|m| m.reference);
        self
    }

    /// With how much of its core the processor had meanwhile: what the profile's reference took now, where both are
    /// known.
    #[must_use]
    pub fn with_core(self, profile: &SystemProfile, now_ns: Option<f64>) -> Drift {
        match (profile.references.get(&Reference::Core), now_ns) {
            (Some(then), Some(now_ns)) => {
                self.with(Moved { reference: Reference::Core, then_ns: then.mean_ns, now_ns })
            }
            _ => self,
        }
    }

    /// What of it is the processor's: how much of its core it has. What waits for the device stays as it was measured.
    #[must_use]
    pub fn of_the_core(mut self) -> Drift {
        self.references.retain(|m| m.reference == Reference::Core);
        self
    }

    /// How many times as long what waits for no device takes, in a system whose costs grow with this power of the
    /// core's reference.
    fn processor(&self, core_power: f64) -> f64 {
        if core_power > 0.0 && self.references.iter().any(|m| m.reference == Reference::Core) {
            self.factor(Reference::Core).powf(core_power)
        } else {
            self.factor(Reference::Stat)
        }
    }
}

impl SystemProfile {
    /// The same system as it is after a drift. Of a cost that waits for reads, what the same costs when cached moves
    /// with the processor. Sizes of caches, write-back and the effect of a load stay.
    pub fn rescaled(&self, drift: &Drift) -> SystemProfile {
        let mut moved = self.clone();
        let (processor, waited_ns) = (drift.processor(self.parameters.core_power), self.waited_ns());
        for (name, entry) in &mut moved.entries {
            let Some((class, at)) = parse_entry_name(name) else { continue };
            let cached = class.cached().and_then(|cached| self.entries.get(&entry_name(cached, at)));
            let (base_ns, factor) = match class.part() {
                Part::Processor => (0.0, processor),
                Part::Read => (cached.map_or(0.0, |cached| cached.mean_ns), drift.factor(Reference::Read)),
                Part::Sync if entry.mean_ns < waited_ns => (0.0, processor),
                Part::Sync => (0.0, drift.factor(Reference::Sync)),
            };
            entry.scale(|ns| ns.min(base_ns) * processor + (ns - base_ns).max(0.0) * factor);
        }
        for (reference, entry) in &mut moved.references {
            let factor = drift.factor(*reference);
            entry.scale(|ns| ns * factor);
        }
        moved
    }

    /// From where on a sync waited for the device.
    fn waited_ns(&self) -> f64 {
        self.references.get(&Reference::Sync).map_or(0.0, |sync| sync.mean_ns * WAITED_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(entries: &[(&str, f64)], references: &[(Reference, f64)]) -> SystemProfile {
        SystemProfile {
            entries: entries.iter().map(|&(name, ns)| (name.to_owned(), Entry::exactly(ns))).collect(),
            references: of(references),
            ..SystemProfile::default()
        }
    }

    fn of(references: &[(Reference, f64)]) -> References {
        references.iter().map(|&(reference, ns)| (reference, Entry::exactly(ns))).collect()
    }

    #[test]
    fn a_drift_is_told_with_the_core_where_both_know_it() {
        let then = profile(&[], &[(Reference::Stat, 400.0), (Reference::Core, 1_000.0)]);
        let now = Drift::between(&then, &of(&[(Reference::Stat, 500.0)])).unwrap();
        assert_eq!(now.clone().with_core(&then, None).told(), "stat 1.25");
        assert_eq!(now.clone().with_core(&then, Some(1_500.0)).told(), "core 1.50, stat 1.25");
        let older = profile(&[], &[(Reference::Stat, 400.0)]);
        assert_eq!(now.with_core(&older, Some(1_500.0)).told(), "stat 1.25", "an older profile has no such reference");
    }

    #[test]
    fn each_cost_moves_with_what_it_waits_for() {
        let then = [(Reference::Stat, 400.0), (Reference::Read, 80_000.0), (Reference::Sync, 500_000.0)];
        let costs = [
            ("stat", 500.0),
            ("rdc_4096", 1_000.0),
            ("rdf_4096", 81_000.0),
            ("lur_nc", 90_000.0),
            ("fsync_cr_4096", 800_000.0),
            ("fsync_dir_clean", 300.0),
        ];
        let p = profile(&costs, &then);
        let now = of(&[(Reference::Stat, 440.0), (Reference::Read, 120_000.0), (Reference::Sync, 250_000.0)]);
        let drift = Drift::between(&p, &now).expect("it has references");
        let q = p.rescaled(&drift);
        let ns = |name: &str| q.entries[name].mean_ns.round();
        assert_eq!((ns("stat"), ns("rdc_4096"), ns("fsync_dir_clean")), (550.0, 1_100.0, 330.0));
        // The copying out of the cache moves with the processor, the reading with the device.
        assert_eq!((ns("rdf_4096"), ns("lur_nc")), (1_100.0 + 120_000.0, 135_000.0));
        assert_eq!(ns("fsync_cr_4096"), 400_000.0);
        // What has moved has not moved once more.
        let again = Drift::between(&q, &now).expect("it has references");
        assert!(again.references.iter().all(|moved| (moved.factor() - 1.0).abs() < 1e-9));
    }

    #[test]
    fn the_middle_of_drifts_is_by_reference() {
        let p = profile(&[], &[(Reference::Read, 100.0), (Reference::Sync, 100.0)]);
        let drift = |read, sync| {
            Drift::between(&p, &of(&[(Reference::Read, read), (Reference::Sync, sync)])).expect("it has references")
        };
        let middle = Drift::middle(&[drift(100.0, 300.0), drift(500.0, 120.0), drift(130.0, 90.0)]).expect("some");
        assert_eq!((middle.factor(Reference::Read), middle.factor(Reference::Sync)), (1.3, 1.2));
        assert_eq!(middle.factor(Reference::Stat), 1.0);
        assert_eq!(Drift::middle(&[]), None);
        assert_eq!(Drift::between(&SystemProfile::default(), &of(&[(Reference::Read, 1.0)])), None);
    }
}
