//! The fit of a personality: what was made against its own distributions and a published one.

use super::books::{CLASSES, class_end};
use super::engine::Engine;
use super::spec::Personality;
use crate::fit::{self, Cdf};
use crate::format::FitResult;
use crate::model::SizeModel;

/// A weighted mixture of size models, by files or by bytes.
struct Sizes<'a> {
    parts: Vec<(f64, &'a SizeModel)>,
    by_bytes: bool,
}

impl<'a> Sizes<'a> {
    fn new(parts: Vec<(f64, &'a SizeModel)>, by_bytes: bool) -> Sizes<'a> {
        let weight = |(w, model): (f64, &'a SizeModel)| (if by_bytes { w * model.mean_bytes() } else { w }, model);
        let mut parts: Vec<_> = parts.into_iter().map(weight).collect();
        let all: f64 = parts.iter().map(|p| p.0).sum();
        for part in &mut parts {
            part.0 /= all.max(1e-300);
        }
        Sizes { parts, by_bytes }
    }
}

impl Cdf for Sizes<'_> {
    fn at(&self, x: f64) -> f64 {
        let one = |m: &SizeModel| if self.by_bytes { m.share_of_bytes(x) } else { m.share_of_files(x) };
        self.parts.iter().map(|(w, model)| w * one(model)).sum()
    }

    /// Sizes are whole numbers of bytes, rounded up.
    fn below(&self, x: f64) -> f64 {
        self.at(x.ceil() - 1.0)
    }
}

pub(super) fn fit(engine: &Engine<'_>, personality: &Personality, capacity_bytes: u64, days: u32) -> Vec<FitResult> {
    let mut results = Vec::new();
    let mut add = |what: &str, ks: f64, observations: u64, against: &str| {
        if observations > 0 {
            results.push(FitResult { what: what.into(), ks, observations, against: against.into() });
        }
    };
    let sizes: Vec<f64> = engine.files.files().map(|f| f.full as f64).collect();
    let alive = sizes.len() as u64;
    let counts = || sizes.iter().map(|s| (*s, 1.0)).collect::<Vec<_>>();
    let bytes = || sizes.iter().map(|s| (*s, *s)).collect::<Vec<_>>();
    let live: Vec<f64> = (0..engine.streams.len()).map(|s| engine.files.of_stream(s).len() as f64).collect();
    let own = || live.iter().zip(&engine.streams).map(|(n, s)| (*n, &s.size)).collect::<Vec<_>>();
    let against = "the personality's sizes, each stream by its live files; files alive at the end";
    add("size_by_count", fit::ks(&mut counts(), &Sizes::new(own(), false)), alive, against);
    add("size_by_bytes", fit::ks(&mut bytes(), &Sizes::new(own(), true)), alive, against);
    if let Some(reference) = &personality.reference {
        let model = SizeModel::new(reference.size, reference.size.max_share * capacity_bytes as f64);
        let against = format!("{}, cut off at {:.0} bytes; files alive at the end", reference.name, model.max_bytes());
        let one = vec![(1.0, &model)];
        add("size_by_count", fit::ks(&mut counts(), &Sizes::new(one.clone(), false)), alive, &against);
        add("size_by_bytes", fit::ks(&mut bytes(), &Sizes::new(one, true)), alive, &against);
    }
    created(engine, &mut add);
    lifetimes(engine, days, &mut add);
    add(
        "streams",
        fit::ks_of_classes(&live, &engine.books.expected_alive()),
        alive,
        "shares of the streams among live files in equilibrium; files alive at the end",
    );
    if let Some((have, want)) = engine.tree.depths() {
        let against =
            "a Poisson distribution of depths, as the personality says; files alive outside trees of their own";
        let outside = have.iter().sum::<f64>() as u64;
        add("depth", fit::ks_of_classes(&have, &want), outside, against);
    }
    results
}

/// Everything created after the beginning, class by class.
fn created(engine: &Engine<'_>, add: &mut impl FnMut(&str, f64, u64, &str)) {
    let books = &engine.books.streams;
    let made: Vec<u64> = books.iter().map(|s| s.sizes.iter().sum()).collect();
    let all: u64 = made.iter().sum();
    for by_bytes in [false, true] {
        let parts = made.iter().zip(&engine.streams).map(|(n, s)| (*n as f64, &s.size)).collect();
        let model = Sizes::new(parts, by_bytes);
        let sum = |class: usize| -> u64 {
            let of = |s: &super::books::StreamBooks| if by_bytes { &s.bytes } else { &s.sizes }.get(class).copied();
            books.iter().filter_map(of).sum()
        };
        let have: Vec<f64> = (0..CLASSES).map(|c| sum(c) as f64).collect();
        let ends: Vec<f64> = (0..CLASSES).map(|c| model.below(class_end(c))).collect();
        let want: Vec<f64> = (0..CLASSES).map(|c| ends[c] - if c == 0 { 0.0 } else { ends[c - 1] }).collect();
        let what = if by_bytes { "created_size_by_bytes" } else { "created_size_by_count" };
        add(
            what,
            fit::ks_of_classes(&have, &want),
            all,
            "the personality's sizes; all files created after the beginning",
        );
    }
}

/// Files created in the first half of the time, which have at least the other half to die in: lifetimes up to that
/// long.
fn lifetimes(engine: &Engine<'_>, days: u32, add: &mut impl FnMut(&str, f64, u64, &str)) {
    let books = &engine.books.streams;
    let cohort: u64 = books.iter().map(|s| s.cohort).sum();
    let limit_s = f64::from(days) * 43_200.0;
    let (mut died, mut worst) = (0.0, 0.0f64);
    for class in 0..CLASSES {
        let end = class_end(class);
        if end > limit_s {
            break;
        }
        died += books.iter().filter_map(|s| s.lifetimes.get(class)).sum::<u64>() as f64;
        let expected: f64 =
            books.iter().zip(&engine.streams).map(|(b, s)| b.cohort as f64 * s.life.share_below(end)).sum();
        worst = worst.max((died - expected).abs() / cohort.max(1) as f64);
    }
    let against = "the personality's lifetimes; files created in the first half, lifetimes up to half of the time";
    add("lifetime", worst, cohort, against);
}
