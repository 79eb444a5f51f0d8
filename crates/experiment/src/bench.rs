//! What an experiment is run with: its scale, its seed, and what earlier experiments of the same run have made already.

use crate::ExperimentError;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::any::{Any, type_name};
use std::rc::Rc;

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

/// Told what goes on: a stage, steps done, and of how many.
pub type Report<'a> = &'a mut dyn FnMut(&str, u64, Option<u64>);

/// What experiments are run with. One for a whole run: what several of them need is made once.
pub struct Bench<'a> {
    scale: Scale,
    seed: u64,
    report: Report<'a>,
    made: FxHashMap<String, Rc<dyn Any>>,
}

impl<'a> Bench<'a> {
    /// A bench on which nothing has been made yet.
    pub fn new(scale: Scale, seed: u64, report: Report<'a>) -> Bench<'a> {
        Bench { scale, seed, report, made: FxHashMap::default() }
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

    /// The seed of everything random.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Says what goes on.
    pub fn report(&mut self, stage: &str, done: u64, total: Option<u64>) {
        (self.report)(stage, done, total);
    }

    /// What has been made under this name, or is made now: an aged file system, a plan. The name says everything that it
    /// depends on apart from scale and seed.
    ///
    /// # Errors
    /// As `make`, or two things of different type have the same name.
    pub fn shared<T: 'static>(
        &mut self,
        name: &str,
        make: impl FnOnce(&mut Bench<'a>) -> Result<T, ExperimentError>,
    ) -> Result<Rc<T>, ExperimentError> {
        if let Some(found) = self.made.get(name) {
            let wrong = || ExperimentError::Shared { name: name.to_owned(), type_name: type_name::<T>() };
            return Rc::clone(found).downcast::<T>().map_err(|_| wrong());
        }
        let made = Rc::new(make(self)?);
        self.made.insert(name.to_owned(), Rc::clone(&made) as Rc<dyn Any>);
        Ok(made)
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
}
