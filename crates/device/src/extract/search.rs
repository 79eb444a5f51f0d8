//! A search along one figure at a time, with steps that grow while they help and are halved when they do not (Hooke and
//! Jeeves, "Direct Search Solution of Numerical and Statistical Problems", JACM 8(2), 1961, without the pattern move).
//! The models here have steps and plateaus, on which methods with gradients or simplices of forty figures stand still.

use super::Effort;
use super::figures::{Number, choices, numbers};
use crate::disk::spec::DiskSpec;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use stats::random::shuffle;

/// A number must lower the cost by this share to be changed, and a change of another kind by more: a trace is a sample,
/// and what helps less is chance.
const NUMBER_GAIN: f64 = 2e-4;
const CHOICE_GAIN: f64 = 2e-3;

/// A structure that costs no more than this share gets a chance.
const CHANCE: f64 = 0.01;

struct Search<'a, F> {
    cost_of: F,
    progress: &'a mut dyn FnMut(u64),
    tried: u64,
    models: u64,
    best: DiskSpec,
    cost: f64,
}

/// The best specification found, and how many were tried.
pub(super) fn search(
    start: &DiskSpec,
    effort: Effort,
    cost_of: impl Fn(&DiskSpec) -> f64,
    progress: &mut dyn FnMut(u64),
) -> (DiskSpec, u64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(effort.seed);
    let cost = cost_of(start);
    let mut search = Search { cost_of, progress, tried: 1, models: effort.models, best: start.clone(), cost };
    // Numbers first: a choice that is made while overheads are wrong makes up for them.
    search.fit_numbers(&mut rng, 1.0);
    loop {
        let before = search.cost;
        search.make_choices(&mut rng);
        search.fit_numbers(&mut rng, 0.5);
        if search.is_over() || before - search.cost < CHOICE_GAIN * before {
            return (search.best, search.tried);
        }
    }
}

impl<F: Fn(&DiskSpec) -> f64> Search<'_, F> {
    fn is_over(&self) -> bool {
        self.tried >= self.models
    }

    /// What a specification costs; infinity if it cannot be.
    fn cost(&mut self, spec: &DiskSpec) -> f64 {
        if spec.check().is_err() {
            return f64::INFINITY;
        }
        self.tried += 1;
        (self.progress)(self.tried);
        (self.cost_of)(spec)
    }

    /// Takes a specification if it is better by a share.
    fn take(&mut self, spec: DiskSpec, gain: f64) -> bool {
        let cost = self.cost(&spec);
        let better = cost < self.cost * (1.0 - gain);
        if better {
            self.best = spec;
            self.cost = cost;
        }
        better
    }

    /// Moves a number by steps that double while they help.
    fn walk(&mut self, number: &Number, step: f64) -> bool {
        let mut moved = false;
        for direction in [step, -step] {
            let mut stride = direction;
            while !self.is_over() {
                let mut next = self.best.clone();
                if !(number.add)(&mut next, stride) {
                    return false;
                }
                if !self.take(next, NUMBER_GAIN) {
                    break;
                }
                moved = true;
                stride *= 2.0;
            }
            if moved {
                return true;
            }
        }
        false
    }

    /// Fits all numbers, beginning with a share of their first steps.
    fn fit_numbers(&mut self, rng: &mut Xoshiro256PlusPlus, share: f64) {
        let with_step = |number: Number| {
            let step = number.step * share;
            (number, step)
        };
        let mut steps: Vec<(Number, f64)> = numbers(&self.best).into_iter().map(with_step).collect();
        while !self.is_over() && !steps.is_empty() {
            shuffle(rng, &mut steps);
            for (number, step) in &mut steps {
                if !self.walk(number, *step) {
                    *step /= 2.0;
                }
            }
            steps.retain(|(number, step)| *step >= number.least_step);
        }
    }

    /// Tries every choice once. One that splits a figure off changes nothing until the new figure has moved, so its new
    /// figures get a chance.
    fn make_choices(&mut self, rng: &mut Xoshiro256PlusPlus) {
        let mut order = choices();
        shuffle(rng, &mut order);
        for choice in order {
            if self.is_over() {
                return;
            }
            let Some(next) = choice(&self.best) else { continue };
            let cost = self.cost(&next);
            if cost < self.cost * (1.0 - CHOICE_GAIN) {
                self.best = next;
                self.cost = cost;
            } else if cost < self.cost * (1.0 + CHANCE) {
                self.chance(next);
            }
        }
    }

    /// A structure that changes nothing by itself: taken if one of its new numbers helps.
    fn chance(&mut self, next: DiskSpec) {
        let there = |number: &Number, spec: &DiskSpec| (number.add)(&mut spec.clone(), 0.0);
        let is_new = |number: &Number| there(number, &next) && !there(number, &self.best);
        let fresh: Vec<Number> = numbers(&next).into_iter().filter(is_new).collect();
        if fresh.is_empty() {
            return;
        }
        let before = (self.best.clone(), self.cost);
        self.cost = self.cost(&next);
        self.best = next;
        for number in &fresh {
            for step in [number.step, number.step / 4.0] {
                self.walk(number, step);
            }
        }
        if self.cost > before.1 * (1.0 - CHOICE_GAIN) {
            (self.best, self.cost) = before;
        }
    }
}
