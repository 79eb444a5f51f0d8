//! Statistical personalities: kinds of use (home directories, a mail spool, a build server, ...) as distributions.
//!
//! A personality is a TOML file ([`spec`]), those that come with fsage among them ([`builtin`]); each of its parameters
//! names its source. docs/planning.md explains them. [`plan`] turns one into an aging workload.

mod books;
pub mod builtin;
mod engine;
mod population;
mod prepared;
mod quality;
mod rate;
pub mod spec;
pub mod time;
mod tree;

use super::{PlanError, PlannedFor, Progress};
use crate::format::{DAYS_MAX, Input, PlanMeta, Source, Writer};
use engine::Engine;
use serde_json::json;
pub use spec::Personality;
use std::path::Path;
use time::Curve;

/// How busy the file system is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Churn {
    /// As the personality's lifetimes and the utilisation imply.
    Implied,
    /// So many bytes written a day, as a share of the capacity.
    BytesPerDay(f64),
    /// So many operations a day.
    OperationsPerDay(f64),
}

/// What to make of a personality.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The file system.
    pub planned_for: PlannedFor,
    /// Simulated days.
    pub days: u32,
    /// Utilisation as `[day, share]`, ascending; `None`: as the personality says.
    pub utilisation: Option<Vec<[f64; 2]>>,
    /// Utilisation at the end: the personality's curve is scaled to it.
    pub fill: Option<f64>,
    /// How busy.
    pub churn: Churn,
    /// Seed of all random choices.
    pub seed: u64,
    /// The file the personality was read from, if it is the user's own.
    pub input: Option<Input>,
}

/// No personality's file is longer.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Reads a personality of the user's own.
///
/// # Errors
/// [`PlanError::Io`]; [`PlanError::Input`] naming the place.
pub fn read(path: &Path) -> Result<(Personality, Input), PlanError> {
    let io = fault::refused(path, "read this personality");
    let bytes = posix::input::read(path, FILE_BYTES_MAX).map_err(io)?;
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let input = Input { name, bytes: bytes.len() as u64, crc32c: format!("{:08x}", crc32c::crc32c(&bytes)) };
    let text = String::from_utf8(bytes).map_err(|_| PlanError::input(path, "whole file", "is no text (UTF-8)"))?;
    Ok((Personality::parse(path, &text)?, input))
}

/// Plans.
///
/// # Errors
/// [`PlanError::Parameter`] for what cannot be; those of the writer.
pub fn plan(
    personality: &Personality,
    options: &Options,
    writer: &mut Writer,
    progress: Progress<'_>,
) -> Result<PlanMeta, PlanError> {
    if !(1..=DAYS_MAX).contains(&options.days) {
        return Err(PlanError::parameter("days", format!("{} is not in 1 to {DAYS_MAX}", options.days)));
    }
    let curve = curve(personality, options)?;
    let pace = rate::pace(personality, options, &curve)?;
    let mut engine =
        Engine::new(personality, options.planned_for, curve.clone(), options.days, pace, options.seed, writer);
    engine.run(personality, progress)?;
    let fit = quality::fit(&engine, personality, options.planned_for.capacity_bytes, options.days);
    let books = &engine.books;
    let mut description = personality.description.clone();
    if pace != 1.0 {
        description.push_str(&format!(
            " For the churn asked for, lasting files live {:.3} times as long as the personality says.",
            1.0 / pace
        ));
    }
    let early = books.died_early as f64 / books.died.max(1) as f64;
    if books.died_early > 0 {
        description.push_str(&format!(
            " {:.2} % of all deletions came before their time, to keep below the utilisation wanted.",
            early * 100.0
        ));
    }
    if books.no_room > 0 {
        description.push_str(&format!(" {} files found no room and were not made.", books.no_room));
    }
    let parameters = json!({
        "personality": personality,
        "utilisation_by_day": curve.points(),
        "pace": pace,
        "deleted": books.died,
        "deleted_early": books.died_early,
        "not_made_for_lack_of_room": books.no_room,
    });
    Ok(PlanMeta {
        source: Source {
            kind: "personality".into(),
            name: personality.name.clone(),
            description,
            inputs: options.input.iter().cloned().collect(),
            parameters,
        },
        seed: options.seed,
        days: options.days,
        fit,
        ..PlanMeta::default()
    })
}

fn curve(personality: &Personality, options: &Options) -> Result<Curve, PlanError> {
    let days = f64::from(options.days);
    let mut points = match &options.utilisation {
        Some(points) => points.clone(),
        None => personality.utilisation.iter().map(|[at, share]| [at * days, *share]).collect(),
    };
    if let Some(fill) = options.fill {
        let last = points.last().map_or(0.0, |p| p[1]);
        if !(fill > 0.0 && fill <= 0.99) || last <= 0.0 {
            return Err(PlanError::parameter("fill", format!("{fill} is not above 0 and at most 0.99")));
        }
        for point in &mut points {
            point[1] = (point[1] * fill / last).min(0.99);
        }
    }
    spec::check_curve(&points, f64::MAX).map_err(|message| PlanError::parameter("utilisation", message))?;
    Ok(Curve::new(points))
}
