//! What a validation measures, predicts and replays: the seam between the loop and the world.

use super::{ValidateError, ValidateOptions};
use crate::residuals::{ResidualWriter, Source, residuals_of};
use measure::MeasureOptions;
use posix::{SetupError, Site, Target};
use predict::pipeline::{SystemPrediction, predict};
use replay::{ObservationFile, ReplayError, ReplayResult, Requirements};
use std::path::Path;
use system::{Drift, SystemProfile};
use trace::profile::Reader;

/// Workloads and targets by number.
pub trait Bench {
    /// Names of the workloads.
    fn workloads(&self) -> Vec<String>;

    /// Names of the targets.
    fn targets(&self) -> Vec<String>;

    /// Whether every run on a target takes the same time.
    fn is_deterministic(&self, _target: usize) -> bool {
        false
    }

    /// Measures a target once more, unless its profile was given (or every measurement of it is the same): its profile
    /// is then of all of these measurements.
    ///
    /// # Errors
    /// The target cannot be made ready or measured.
    fn measure(&mut self, target: usize) -> Result<(), ValidateError>;

    /// A drift as it is from the profile of all measurements: while there were fewer, it was from theirs.
    fn since(&self, _target: usize, drift: Drift) -> Drift {
        drift
    }

    /// Predicts a workload on a target that has been measured, or as it is after a drift.
    ///
    /// # Errors
    /// The workload cannot be read or priced.
    fn predict(
        &mut self,
        workload: usize,
        target: usize,
        drift: Option<&Drift>,
    ) -> Result<SystemPrediction, ValidateError>;

    /// Replays a workload on a fresh copy of a target, and says how far that had moved from its profile just before, if
    /// that is known; where residuals are wanted, adds those of this replay, the so many-th of its cell.
    ///
    /// # Errors
    /// The target cannot be made ready, or the replay fails; the residuals cannot be written.
    fn replay(
        &mut self,
        workload: usize,
        target: usize,
        residuals: Option<(&mut ResidualWriter, u32)>,
    ) -> Result<(ReplayResult, Option<Drift>), ValidateError>;
}

/// A recorded workload.
pub struct ValidateWorkload {
    /// Its name in tables.
    pub name: String,
    /// Its profile.
    pub reader: Reader,
}

/// A target, with its system profile if it has been measured before.
pub struct ValidateTarget {
    /// Where.
    pub target: Target,
    /// What it costs; measured if `None`.
    pub profile: Option<SystemProfile>,
}

/// Makes a target ready, with room for so many bytes and inodes.
pub type OpenTarget = Box<dyn Fn(&Target, u64, u64) -> Result<Box<dyn Site>, SetupError>>;

/// Recorded workloads on targets.
pub struct RealBench {
    open: OpenTarget,
    workloads: Vec<ValidateWorkload>,
    needs: Vec<Option<Requirements>>,
    targets: Vec<ValidateTarget>,
    /// What was measured of each target, in the order of the measurements; nothing where the profile was given.
    measured: Vec<Vec<SystemProfile>>,
    options: ValidateOptions,
}

impl RealBench {
    /// A bench of these.
    pub fn new(
        workloads: Vec<ValidateWorkload>,
        targets: Vec<ValidateTarget>,
        open: OpenTarget,
        options: ValidateOptions,
    ) -> RealBench {
        let needs = workloads.iter().map(|_| None).collect();
        let measured = targets.iter().map(|_| Vec::new()).collect();
        RealBench { open, workloads, needs, targets, measured, options }
    }

    /// The profiles of the targets that were measured, with their targets.
    pub fn into_measured(self) -> Vec<(String, SystemProfile)> {
        let measured = self.targets.into_iter().zip(self.measured).filter(|(_, measured)| !measured.is_empty());
        measured.filter_map(|(t, _)| Some((t.target.to_string(), t.profile?))).collect()
    }

    /// A directory of one's own in a target; scratch targets and laboratories are made anew.
    fn open(&self, target: usize, need_bytes: u64, need_inodes: u64) -> Result<Box<dyn Site>, SetupError> {
        (self.open)(&self.targets[target].target, need_bytes, need_inodes)
    }

    fn close(&self, target: usize, site: Box<dyn Site>) -> Result<(), ValidateError> {
        let target = self.targets[target].target.to_string();
        site.close().map_err(|source| ValidateError::CleanUp { target, source })
    }

    /// A target's profile, carried over by a drift.
    fn profile(&self, target: usize, drift: Option<&Drift>) -> SystemProfile {
        let Some(profile) = &self.targets[target].profile else { unreachable!("a target is measured before") };
        drift.map_or_else(|| profile.clone(), |drift| profile.rescaled(drift))
    }

    /// How far a target has moved from its profile; `None` where the profile has no references.
    fn drift(&self, target: usize, site: &dyn Site) -> Result<Option<Drift>, ValidateError> {
        let Some(profile) = self.targets[target].profile.as_ref().filter(|p| !p.references.is_empty()) else {
            return Ok(None);
        };
        let name = self.targets[target].target.to_string();
        let now = measure::references(site, self.options.seed)
            .map_err(|source| ValidateError::Measure { target: name, source: Box::new(source) })?;
        Ok(Drift::between(profile, &now))
    }

    fn names(&self, workload: usize, target: usize) -> (String, String) {
        (self.workloads[workload].name.clone(), self.targets[target].target.to_string())
    }
}

impl Bench for RealBench {
    fn workloads(&self) -> Vec<String> {
        self.workloads.iter().map(|w| w.name.clone()).collect()
    }

    fn targets(&self) -> Vec<String> {
        self.targets.iter().map(|t| t.target.to_string()).collect()
    }

    fn is_deterministic(&self, target: usize) -> bool {
        matches!(self.targets[target].target, Target::Lab(_))
    }

    fn measure(&mut self, target: usize) -> Result<(), ValidateError> {
        let times = self.measured[target].len();
        if self.targets[target].profile.is_some() && (times == 0 || self.is_deterministic(target)) {
            return Ok(());
        }
        let seed = self.options.measure.seed.wrapping_add(times as u64);
        let options = &MeasureOptions { seed, ..self.options.measure.clone() };
        let site = self.open(target, options.need_bytes(), options.need_inodes())?;
        let measured = measure::measure(&*site, options, &mut |_| {});
        let name = self.targets[target].target.to_string();
        let profile = measured.map_err(|source| ValidateError::Measure { target: name, source: Box::new(source) })?;
        self.close(target, site)?;
        self.measured[target].push(profile);
        self.targets[target].profile = Some(SystemProfile::pooled(&self.measured[target]));
        Ok(())
    }

    fn since(&self, target: usize, drift: Drift) -> Drift {
        self.targets[target].profile.as_ref().map_or(drift.clone(), |profile| drift.since(profile))
    }

    fn predict(
        &mut self,
        workload: usize,
        target: usize,
        drift: Option<&Drift>,
    ) -> Result<SystemPrediction, ValidateError> {
        let profile = [self.profile(target, drift)];
        let (name, target) = self.names(workload, target);
        let failed = |source| ValidateError::Predict { workload: name, target, source: Box::new(source) };
        let predicted = predict(&self.workloads[workload].reader, &profile, &self.options.predict);
        predicted.map(|p| p.systems.into_iter().next().unwrap_or_default()).map_err(failed)
    }

    fn replay(
        &mut self,
        workload: usize,
        target: usize,
        residuals: Option<(&mut ResidualWriter, u32)>,
    ) -> Result<(ReplayResult, Option<Drift>), ValidateError> {
        let (name, target_name) = self.names(workload, target);
        let failed = |source| ValidateError::Replay {
            workload: name.clone(),
            target: target_name.clone(),
            source: Box::new(source),
        };
        let needs = match self.needs[workload] {
            Some(needs) => needs,
            None => {
                let needs = replay::requirements(&self.workloads[workload].reader).map_err(failed)?;
                *self.needs[workload].insert(needs)
            }
        };
        let references = self.targets[target].profile.as_ref().is_some_and(|p| !p.references.is_empty());
        let more_bytes = if references { measure::REFERENCES_BYTES } else { 0 };
        let site = self.open(target, needs.bytes.saturating_add(more_bytes), needs.inodes)?;
        let drift = self.drift(target, &*site)?;
        let with_core = |drift: Option<Drift>, result: &ReplayResult| {
            let profile = self.targets[target].profile.as_ref()?;
            drift.map(|drift| drift.with_core(profile, result.core_ns))
        };
        let reader = &self.workloads[workload].reader;
        let options = &self.options.replay;
        let Some((out, number)) = residuals else {
            let result = replay::replay(reader, &*site, options, &mut |_| {}).map_err(failed)?;
            self.close(target, site)?;
            let drift = with_core(drift, &result);
            return Ok((result, drift));
        };
        let beside = out.path().parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = ObservationFile::create_in(beside)
            .map_err(|source| failed(ReplayError::Io { doing: "making a file for what the replay sees", source }))?;
        let (result, seen) = replay::replay_observed(reader, &*site, options, file, &mut |_| {}).map_err(failed)?;
        self.close(target, site)?;
        let drift = with_core(drift, &result);
        let profile = self.profile(target, self.options.rescale.of(drift.clone()).as_ref());
        let source = Source { workload: &name, target: &target_name, replay: number };
        residuals_of(reader, &profile, &self.options.predict, &seen, source, out).map_err(|source| {
            let (workload, target) = (name.clone(), target_name.clone());
            ValidateError::Predict { workload, target, source: Box::new(source) }
        })?;
        Ok((result, drift))
    }
}
