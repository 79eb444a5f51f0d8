//! What an experiment is run with: its scale, its seed, and what earlier experiments of the same run have made already.

use crate::ExperimentError;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::any::{Any, type_name};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Less of it, to see that it runs and what it shows: seconds.
    Quick,
    /// As published.
    #[default]
    Full,
}

/// How finely is varied what was not published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sweeps {
    /// Over the values that the sentences need.
    #[default]
    Short,
    /// Over every value that there is.
    Whole,
}

/// Told what goes on: a stage, steps done, and of how many.
pub type Report<'a> = &'a mut dyn FnMut(&str, u64, Option<u64>);

/// A thing that is made once; locked while it is being made, so that who needs it too waits for it.
type Slot = Arc<Mutex<Option<Arc<dyn Any + Send + Sync>>>>;

/// What the experiments of a run have made for one another at one scale and seed, by name. Its copies are one, for any
/// thread.
#[derive(Clone, Default)]
pub(crate) struct Made(Arc<Mutex<FxHashMap<String, Slot>>>);

/// What a thread that panicked has left is whole: a slot is filled last.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Made {
    /// What has been made under this name, or is made now. The name says everything that it depends on apart from scale
    /// and seed.
    ///
    /// # Errors
    /// As `make`, or two things of different type have the same name.
    pub(crate) fn get<T: Send + Sync + 'static>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, ExperimentError>,
    ) -> Result<Arc<T>, ExperimentError> {
        let slot = Arc::clone(lock(&self.0).entry(name.to_owned()).or_default());
        let mut slot = lock(&slot);
        if let Some(found) = &*slot {
            let wrong = |_| ExperimentError::Shared { name: name.to_owned(), type_name: type_name::<T>() };
            return Arc::clone(found).downcast::<T>().map_err(wrong);
        }
        let made = Arc::new(make()?);
        *slot = Some(Arc::clone(&made) as Arc<dyn Any + Send + Sync>);
        Ok(made)
    }

    /// Nobody needs any of it any more.
    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}

/// What an experiment is run with. What several experiments of a run need is made once.
pub struct Bench<'a> {
    scale: Scale,
    sweeps: Sweeps,
    seed: u64,
    report: Report<'a>,
    made: Made,
}

impl<'a> Bench<'a> {
    /// A bench on which nothing has been made yet.
    pub fn new(scale: Scale, seed: u64, report: Report<'a>) -> Bench<'a> {
        Bench::with(Made::default(), scale, seed, report)
    }

    /// A bench with what others of the same scale and seed have made.
    pub(crate) fn with(made: Made, scale: Scale, seed: u64, report: Report<'a>) -> Bench<'a> {
        Bench { scale, sweeps: Sweeps::Short, seed, report, made }
    }

    /// The same with sweeps as wanted.
    #[must_use]
    pub fn sweeping(self, sweeps: Sweeps) -> Bench<'a> {
        Bench { sweeps, ..self }
    }

    /// What has been made, to hand to other threads.
    pub(crate) fn made(&self) -> Made {
        self.made.clone()
    }

    /// How much is run.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// One value for each scale.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        match self.scale {
            Scale::Quick => quick,
            Scale::Full => full,
        }
    }

    /// The same of values that are only made for their scale.
    pub fn pick_with<T>(&self, quick: impl FnOnce() -> T, full: impl FnOnce() -> T) -> T {
        match self.scale {
            Scale::Quick => quick(),
            Scale::Full => full(),
        }
    }

    /// One of three: for the quick scale, for what the sentences need, for everything. Of values that something
    /// unpublished is given, or of how often something random is done.
    pub fn sweep<T>(&self, quick: T, short: T, whole: T) -> T {
        match (self.scale, self.sweeps) {
            (Scale::Quick, _) => quick,
            (Scale::Full, Sweeps::Short) => short,
            (Scale::Full, Sweeps::Whole) => whole,
        }
    }

    /// What an experiment that sweeps says of it.
    pub fn sweeps(&self) -> &'static str {
        match (self.scale, self.sweeps) {
            (Scale::Quick, _) => "a value or two",
            (Scale::Full, Sweeps::Short) => "what the sentences need; all of it with --full",
            (Scale::Full, Sweeps::Whole) => "all of it",
        }
    }

    /// The seed of everything random.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Says what goes on.
    pub fn report(&mut self, stage: &str, done: u64, total: Option<u64>) {
        (self.report)(stage, done, total);
    }

    /// What has been made under this name, or is made now: an aged file system, a plan. The name says everything that
    /// it depends on apart from scale and seed.
    ///
    /// # Errors
    /// As `make`, or two things of different type have the same name.
    pub fn shared<T: Send + Sync + 'static>(
        &mut self,
        name: &str,
        make: impl FnOnce(&mut Bench<'a>) -> Result<T, ExperimentError>,
    ) -> Result<Arc<T>, ExperimentError> {
        self.made().get(name, || make(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_made_once() {
        let mut report = |_: &str, _: u64, _: Option<u64>| {};
        let mut bench = Bench::new(Scale::Quick, 1, &mut report);
        let mut made = 0;
        for _ in 0..2 {
            let found = bench.shared("n", |_| {
                made += 1;
                Ok(7_u32)
            });
            assert_eq!(found.ok().as_deref(), Some(&7));
        }
        assert_eq!(made, 1);
        assert!(matches!(bench.shared("n", |_| Ok("text")), Err(ExperimentError::Shared { .. })));
        assert_eq!(bench.pick(1, 2), 1);
    }

    #[test]
    fn a_sweep_is_as_long_as_is_asked_for() {
        let all = [1, 2, 3, 4];
        let of = |scale, sweeps| {
            let mut report = |_: &str, _: u64, _: Option<u64>| {};
            Bench::new(scale, 1, &mut report).sweeping(sweeps).sweep(&all[..1], &all[..2], &all[..]).len()
        };
        assert_eq!((of(Scale::Quick, Sweeps::Whole), of(Scale::Full, Sweeps::Short)), (1, 2));
        assert_eq!(of(Scale::Full, Sweeps::Whole), 4);
    }

    #[test]
    fn threads_that_need_the_same_make_it_once() {
        let (made, times) = (Made::default(), Mutex::new(0));
        let (begun, may_go_on) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                made.get("n", || {
                    let _ = begun.send(());
                    *lock(&times) += 1;
                    Ok(7_u32)
                })
            });
            may_go_on.recv().expect("the first one makes it");
            let second = made.get("n", || {
                *lock(&times) += 1;
                Ok(8_u32)
            });
            let first = first.join().expect("it does not panic");
            assert_eq!((first.ok().as_deref(), second.ok().as_deref()), (Some(&7), Some(&7)));
        });
        assert_eq!(*lock(&times), 1);
        made.clear();
        assert_eq!(made.get("n", || Ok(9_u32)).ok().as_deref(), Some(&9));
    }

    #[test]
    fn what_could_not_be_made_is_tried_again() {
        let made = Made::default();
        let failed = made.get::<u32>("n", || Err(ExperimentError::Shared { name: "n".into(), type_name: "u32" }));
        assert!(failed.is_err());
        assert_eq!(made.get("n", || Ok(1_u32)).ok().as_deref(), Some(&1));
    }
}
