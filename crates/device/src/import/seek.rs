//! Measured seek curves of DiskSim: `Seek distances measured: N`, then N lines `CYLINDERS, MS`.

use super::ImportError;
use super::libparam::{Place, Read};
use std::path::Path;

/// No curve has more points.
const POINTS_MAX: usize = 100_000;

/// A curve from its file.
pub(super) fn read_curve(path: &Path, read: Read<'_>, from: Option<&Place>) -> Result<Vec<(u32, f64)>, ImportError> {
    let file = path.display().to_string();
    let text = read(path).map_err(|source| ImportError::Io {
        file: match from {
            Some(place) => format!("{file} (named in {place}; `--seek FILE` gives another)"),
            None => file.clone(),
        },
        source,
    })?;
    let error = |line: usize, why: String| ImportError::Line { file: file.clone(), line: line + 1, why };
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let header = lines.next().and_then(|(_, line)| line.trim().strip_prefix("Seek distances measured:"));
    let Some(count) = header.and_then(|count| count.trim().parse::<usize>().ok()) else {
        return Err(error(0, "a seek curve begins `Seek distances measured: N`".to_owned()));
    };
    let mut points: Vec<(u32, f64)> = Vec::new();
    for (n, line) in lines {
        let point = line.split_once(',').and_then(|(distance, ms)| {
            let ms = ms.trim().parse::<f64>().ok().filter(|ms| (0.0..=60_000.0).contains(ms))?;
            Some((distance.trim().parse::<u32>().ok()?, ms))
        });
        let Some(point) = point else {
            return Err(error(
                n,
                format!("{:?} is no point `CYLINDERS, MS`", line.chars().take(60).collect::<String>()),
            ));
        };
        if points.last().map_or(point.0 == 0, |last| point.0 <= last.0) {
            return Err(error(n, format!("distance {}: distances ascend from 1 cylinder", point.0)));
        }
        if points.len() == POINTS_MAX {
            return Err(error(n, format!("more than {POINTS_MAX} points")));
        }
        points.push(point);
    }
    if points.len() == count && count > 0 {
        Ok(points)
    } else {
        Err(error(0, format!("says that {count} distances were measured, and {} follow", points.len())))
    }
}
