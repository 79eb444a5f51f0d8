//! What stands around a replay: which plan it is, whether the target is the one it was made for, and the mark on an aged tree.

use super::error::AgeError;
use super::options::Room;
use super::result::{AgeResult, PlanIdentity};
use crate::format::PlanMeta;
use posix::FsUsage;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::path::Path;

/// What the file [`super::MARKER_NAME`] in the root of an aged tree says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marker {
    /// `fsage.aged/1`
    pub schema: String,
    /// Version of the program.
    pub fsage: String,
    /// Name of the plan.
    pub plan: String,
    /// CRC-32C of the plan.
    pub plan_crc32c: String,
    /// Seed of the plan.
    pub seed: u64,
    /// Simulated days gone through.
    pub days: u32,
    /// How contents came about.
    pub data: super::DataMode,
}

impl Marker {
    /// What to say of a result.
    pub fn of(result: &AgeResult) -> Marker {
        Marker {
            schema: "fsage.aged/1".to_owned(),
            fsage: env!("CARGO_PKG_VERSION").to_owned(),
            plan: result.plan.name.clone(),
            plan_crc32c: result.plan.crc32c.clone(),
            seed: result.meta.seed,
            days: result.days_done,
            data: result.data,
        }
    }

    /// Writes it into the root of the tree.
    ///
    /// # Errors
    /// [`AgeError::Io`].
    pub fn write(&self, root: &Path) -> Result<(), AgeError> {
        let path = root.join(super::MARKER_NAME);
        let io = |source| AgeError::Io { target: path.display().to_string(), doing: "write the mark", source };
        let text = serde_json::to_string_pretty(self).map_err(|e| io(e.into()))?;
        std::fs::write(&path, format!("{text}\n")).map_err(io)
    }
}

/// Reads a plan's file once, for its checksum.
///
/// # Errors
/// [`AgeError::Io`].
pub fn identity(path: &Path) -> Result<PlanIdentity, AgeError> {
    let io = |source| AgeError::Io { target: path.display().to_string(), doing: "read the plan", source };
    let mut file = std::fs::File::open(path).map_err(io)?;
    let (mut buffer, mut bytes, mut crc) = (vec![0u8; 1 << 20], 0u64, 0u32);
    loop {
        let n = file.read(&mut buffer).map_err(io)?;
        let Some(read) = buffer.get(..n).filter(|read| !read.is_empty()) else { break };
        crc = crc32c::crc32c_append(crc, read);
        bytes += n as u64;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(PlanIdentity { name, bytes, crc32c: format!("{crc:08x}") })
}

/// Decides what part of the target is the plan's whole, and says so where that needs saying.
///
/// A file system whose capacity is within [`Room::DIFFERENCE_MAX`] of the plan's is taken whole; on a directory's larger file
/// system the plan's capacity is a room of its own beside what others use.
///
/// # Errors
/// [`AgeError::Capacity`], with the command that makes a fitting plan.
pub fn room(
    meta: &PlanMeta,
    usage: &FsUsage,
    target: &str,
    scratch: bool,
    asked: Option<u64>,
) -> Result<(Room, Option<String>), AgeError> {
    let refuse = |difference: String, advice: String| {
        Err(AgeError::Capacity { target: target.to_owned(), difference, advice })
    };
    let gib = |bytes: u64| format!("{:.2} GiB", bytes as f64 / (1u64 << 30) as f64);
    let used = usage.total_bytes.saturating_sub(usage.free_bytes);
    let difference = Room::difference(meta.capacity_bytes, usage);
    let percent = format!("{:+.1} %", difference * 100.0);
    let fits = difference.abs() <= Room::DIFFERENCE_MAX;
    // More than that in use before we begin is somebody's files.
    let empty = used <= usage.total_bytes / 10;
    let plan_for = |bytes: u64| format!("plan for it: fsage plan ... --capacity {bytes}");
    if asked.is_none() && fits && (scratch || empty) {
        let note = (difference.abs() > 0.005).then(|| {
            format!(
                "the plan is for {} and the file system has {} ({percent}): its deletions are brought forward or held back to match",
                gib(meta.capacity_bytes),
                gib(usage.total_bytes)
            )
        });
        return Ok((Room::Whole, note));
    }
    if scratch && asked.is_none() {
        let what = format!(
            "the plan is for {} and the file system has {} ({percent}); up to {:.0} % is steered",
            gib(meta.capacity_bytes),
            gib(usage.total_bytes),
            Room::DIFFERENCE_MAX * 100.0
        );
        return refuse(what, plan_for(usage.total_bytes));
    }
    let bytes = asked.unwrap_or(meta.capacity_bytes);
    let planned_max = meta.utilisation.iter().fold(0.0f64, |most, day| most.max(day.used_share));
    let peak = if meta.capacity_bytes > 0 { meta.counts.used_bytes_max as f64 / meta.capacity_bytes as f64 } else { 0.0 };
    // A margin of a sixteenth for what the file system adds.
    let need = (bytes as f64 * planned_max.max(peak) * (1.0 + 1.0 / 16.0)) as u64;
    if need > usage.available_bytes {
        let what = format!("the plan needs {} and {} are free", gib(need), gib(usage.available_bytes));
        return refuse(what, format!("{}, or age a part of it: --room SIZE", plan_for(usage.available_bytes)));
    }
    let note = format!(
        "{} of the file system's {} are the plan's, beside the {} in use when it began; shares are of that room, and what \
         others write meanwhile shows in them",
        gib(bytes),
        gib(usage.total_bytes),
        gib(used)
    );
    Ok((Room::Beside { bytes }, Some(note)))
}
