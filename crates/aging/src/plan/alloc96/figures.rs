//! The published figures of the workload, and how a plan meets them.
//!
//! These are all that the model is calibrated on. No layout score is among them.

use super::parameters::{CAPACITY_BYTES, DAYS};
use super::{Parameters, PlannedFor};
use crate::{AgingOp, DAY_NS, NodeId, OpKind};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// The last month, in days.
const MONTH_DAYS: u32 = 30;

/// A figure, published and planned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub what: &'static str,
    /// What it counts.
    pub unit: FigureUnit,
    /// As published, in proportion to the capacity; `None` where no number was given.
    pub published: Option<f64>,
    /// As planned.
    pub planned: f64,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum FigureUnit {
    Count,
    Bytes,
    Share,
}

#[derive(Clone, Copy, Debug)]
struct File {
    size_bytes: u64,
    modified_day: u32,
}

/// Counts what the published figures count, operation by operation.
#[derive(Clone, Debug)]
pub struct Count {
    planned_for: PlannedFor,
    usable_bytes: f64,
    files: FxHashMap<NodeId, File>,
    used_bytes: u64,
    operations: u64,
    written_bytes: u64,
    /// Use at the beginning and at the end of each day, share of what users may use.
    shares: Vec<f64>,
}

impl Count {
    /// Nothing counted yet.
    pub fn new(planned_for: PlannedFor, parameters: &Parameters) -> Count {
        Count {
            planned_for,
            usable_bytes: planned_for.capacity_bytes as f64 * parameters.usable_share,
            files: FxHashMap::default(),
            used_bytes: 0,
            operations: 0,
            written_bytes: 0,
            shares: Vec::new(),
        }
    }

    fn rounded(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.planned_for.block_bytes.max(1))
    }

    /// Counts an operation. A file that is written anew (truncated and written) is one; directories are none.
    pub fn add(&mut self, op: &AgingOp) {
        let day = (op.t_ns / DAY_NS) as u32;
        // What is there at the beginning is made at time 0.
        if op.t_ns > 0 {
            self.end_days(day);
        }
        let before = self.files.get(&op.node).map_or(0, |file| file.size_bytes);
        let after = match op.kind {
            OpKind::Create => op.size_bytes,
            OpKind::Append => before + op.size_bytes,
            OpKind::Truncate => op.size_bytes,
            OpKind::Delete => 0,
            _ => return,
        };
        self.operations += u64::from(op.kind != OpKind::Truncate);
        self.written_bytes += op.written_bytes();
        self.used_bytes = self.used_bytes - self.rounded(before) + self.rounded(after);
        if op.kind == OpKind::Delete {
            self.files.remove(&op.node);
        } else {
            self.files.insert(op.node, File { size_bytes: after, modified_day: day });
        }
    }

    /// Ends the days before `day` (from 0).
    pub fn end_days(&mut self, day: u32) {
        while self.shares.len() < day as usize + 1 {
            self.shares.push(self.used_bytes as f64 / self.usable_bytes);
        }
    }

    /// Use at the beginning of the first day and at the end of each, share of what users may use.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Published and planned, after the last day. Published sums are for the published capacity: scaled to another one.
    pub fn figures(&self) -> Vec<Figure> {
        let scale = self.planned_for.capacity_bytes as f64 / CAPACITY_BYTES as f64;
        let hot = || self.files.values().filter(|file| file.modified_day >= DAYS - MONTH_DAYS);
        let hot_bytes: u64 = hot().map(|file| file.size_bytes).sum();
        let hot_allocated: u64 = hot().map(|file| self.rounded(file.size_bytes)).sum();
        let above = self.shares.iter().filter(|share| **share > 0.7).count() as f64 / self.shares.len().max(1) as f64;
        let figure = |what, unit, published, planned| Figure { what, unit, published: Some(published), planned };
        use FigureUnit::{Bytes, Count, Share};
        vec![
            figure("days", Count, f64::from(DAYS), self.shares.len().saturating_sub(1) as f64),
            figure("in use at the beginning", Share, 0.09, self.shares.first().copied().unwrap_or(0.0)),
            figure("in use, highest", Share, 0.90, self.shares.iter().copied().fold(0.0, f64::max)),
            Figure { what: "days above 70 % (published: most)", unit: Share, published: None, planned: above },
            figure("operations", Count, 800_000.0 * scale, self.operations as f64),
            figure("written", Bytes, 48.6 * GIB * scale, self.written_bytes as f64),
            figure("files at the end", Count, 8_774.0 * scale, self.files.len() as f64),
            figure("files modified in the last month", Count, 929.0 * scale, hot().count() as f64),
            figure("their bytes", Bytes, 59.5 * MIB * scale, hot_bytes as f64),
            figure(
                "their share of what is allocated",
                Share,
                0.19,
                hot_allocated as f64 / self.used_bytes.max(1) as f64,
            ),
        ]
    }
}

const MIB: f64 = 1048576.0;
const GIB: f64 = 1024.0 * MIB;
