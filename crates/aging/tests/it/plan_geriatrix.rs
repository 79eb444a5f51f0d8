//! Geriatrix profiles: the published eight where they are at hand, and made-up ones everywhere.

use aging::format::PlanMeta;
use aging::plan::geriatrix::{self, Churn, Options, profile::Profile};
use aging::plan::{self, PlanError, PlannedFor};
use fault::{Fault as _, Kind};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn options(capacity_bytes: u64, fill: f64, churn: Churn) -> Options {
    let planned_for = PlannedFor { capacity_bytes, block_bytes: 4096 };
    Options { planned_for, fill, churn, days: 100, seed: 1 }
}

fn write(path: &Path, profile: &Profile, options: &Options) -> Result<PlanMeta, PlanError> {
    plan::write(path, options.planned_for, |writer| geriatrix::plan(profile, options, writer, &mut |_| true))
}

fn profile(dir: &Path, ages: &str, sizes: &str, dirs: &str) -> Result<Profile, PlanError> {
    for (name, text) in geriatrix::profile::FILES.iter().zip([ages, sizes, dirs]) {
        std::fs::write(dir.join(name), text).expect("writing");
    }
    Profile::read(dir)
}

const AGES: &str = "3\n1 1\n10 4\n100 5\n\nFormat:\n<age> <weight>";
const SIZES: &str = "4\n0 1\n1000 5\n20000 3\n500000 1\n";
const DIRS: &str = "3\n0 1 1\n1 3 5\n3 6 20\n";

#[test]
fn churn_ends_at_the_distributions_of_the_profile() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = profile(dir.path(), AGES, SIZES, DIRS).expect("a good profile");
    let path = dir.path().join("a.aging");
    let meta = write(&path, &profile, &options(1 << 29, 0.8, Churn::Converge { ks: 0.01, turnovers_max: 100.0 }));
    let meta = meta.expect("a plan");
    for fit in &meta.fit {
        let limit = if fit.what == "age" { 0.015 } else { 0.01 };
        assert!(fit.ks <= limit && fit.observations > 1000, "{fit:?}");
    }
    let last = meta.utilisation.last().expect("a day").used_share;
    assert!((last - 0.8).abs() < 0.005, "{last}");
    assert!(meta.counts.used_bytes_max as f64 <= 0.805 * f64::from(1 << 29));
    let again = dir.path().join("b.aging");
    write(&again, &profile, &options(1 << 29, 0.8, Churn::Converge { ks: 0.01, turnovers_max: 100.0 }))
        .expect("a plan");
    assert!(std::fs::read(&path).expect("a") == std::fs::read(&again).expect("b"), "two runs differ");
    // Far too little churn is said to be.
    let short = write(&path, &profile, &options(1 << 29, 0.8, Churn::Bytes(1 << 20))).expect("a plan");
    assert!(short.fit.iter().any(|f| f.what == "age" && f.ks > 0.2), "{:?}", short.fit);
}

#[test]
fn sizes_that_do_not_fit_are_left_out_and_said_to_be() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = profile(dir.path(), AGES, "2\n1000 5\n99000000000 1\n", DIRS).expect("a good profile");
    let path = dir.path().join("a.aging");
    let meta = write(&path, &profile, &options(1 << 26, 0.8, Churn::Turnovers(1.0))).expect("a plan");
    assert!(meta.source.description.contains("left out"), "{}", meta.source.description);
    let error = write(&path, &profile, &options(8192, 0.4, Churn::Turnovers(1.0))).expect_err("too small");
    assert_eq!(error.kind(), Kind::Usage, "{error}");
}

#[test]
fn the_published_profiles() {
    let profiles = testkit::fixture::path("geriatrix");
    let dir = tempfile::tempdir().expect("a directory");
    let mut names: Vec<PathBuf> = std::fs::read_dir(profiles)
        .expect("the directory is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    names.sort();
    assert_eq!(names.len(), 8);
    for name in names {
        let profile = Profile::read(&name).expect("a published profile");
        let options = options(1 << 30, 0.8, Churn::Converge { ks: 0.02, turnovers_max: 40.0 });
        let meta = write(&dir.path().join("a.aging"), &profile, &options).expect("a plan");
        for fit in meta.fit.iter().filter(|f| f.what != "age") {
            // One file of the largest size is up to a tenth of the bytes, and there is a whole number of them.
            let limit = if fit.what == "size_by_bytes" { 0.1 } else { 0.02 };
            assert!(fit.ks < limit, "{}: {fit:?}", name.display());
        }
        assert!(meta.counts.used_bytes_max as f64 <= 0.805 * f64::from(1 << 30), "{}", name.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn damaged_profiles_are_refused_or_planned(
        which in 0usize..3, at in any::<prop::sample::Index>(), with in "[0-9. \\na-]{0,4}", cut in 0usize..6,
        shift in 14u32..26, fill in 0.05f64..0.99,
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut texts = [AGES, SIZES, DIRS].map(str::to_owned);
        let at = at.index(texts[which].len());
        let end = (at + cut).min(texts[which].len());
        texts[which].replace_range(at..end, &with);
        let options = options(1 << shift, fill, Churn::Converge { ks: 0.05, turnovers_max: 3.0 });
        if let Ok(profile) = profile(dir.path(), &texts[0], &texts[1], &texts[2])
            && profile.dirs.iter().all(|row| row.directories < 1000)
        {
            let planned = write(&dir.path().join("a.aging"), &profile, &options);
            prop_assert!(planned.is_ok() || planned.is_err_and(|e| e.kind() == Kind::Usage));
        }
    }
}
