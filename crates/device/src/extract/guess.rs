//! A disk to begin with where nobody knows better.

use crate::Operation;
use crate::disk::Scheduler;
use crate::disk::spec::{
    BusSpec, CacheSpec, ControllerSpec, DiskSpec, HeadOrder, ReadAhead, SeekSpec, Sparing, WriteReport, ZoneSpec,
};
use crate::validate::Traced;

/// A disk as large as a trace needs, with figures of a drive of the middle of the nineties: one zone, eight surfaces.
/// Only its speed of rotation and when it reports writes are read off the trace.
pub fn guess(trace: &[Traced]) -> DiskSpec {
    const HEADS: u32 = 8;
    const SECTORS: u32 = 128;
    // Rather longer tracks than more cylinders.
    const CYLINDERS: u64 = 50_000;
    let last = trace.iter().map(|traced| traced.request.end().0).max().unwrap_or(1);
    let largest = trace.iter().map(|traced| traced.request.sectors).max().unwrap_or(1).max(128);
    let tracks = last.div_ceil(u64::from(HEADS) * CYLINDERS);
    let sectors = u32::try_from(tracks).unwrap_or(u32::MAX).clamp(SECTORS, 1_000_000);
    let most = u64::from(crate::disk::spec::MAX_CYLINDERS);
    let cylinders = last.div_ceil(u64::from(HEADS) * u64::from(sectors)).clamp(2, most) as u32;
    let median_ms = |operation: Operation| -> Option<f64> {
        let of = trace.iter().filter(|traced| traced.request.operation == operation);
        let responses: Vec<f64> = of.map(|traced| traced.response_ns as f64 / 1e6).collect();
        stats::median(&responses)
    };
    // A write that waits for the medium takes about as long as a read.
    let buffered = match (median_ms(Operation::Read), median_ms(Operation::Write)) {
        (Some(read_ms), Some(write_ms)) => write_ms < read_ms / 2.0,
        _ => false,
    };
    // A read without a seek takes half a revolution more than its overhead, one with a seek that and a seek of about as
    // long.
    let rpm = median_ms(Operation::Read).map_or(5400.0, |ms| {
        if ms < 9.0 {
            10_000.0
        } else if ms < 13.0 {
            7200.0
        } else {
            5400.0
        }
    });
    let far = f64::from(cylinders - 1);
    DiskSpec {
        sector_bytes: 512,
        capacity_sectors: None,
        heads: HEADS,
        rpm,
        retry_share: 0.0,
        retry_revolutions: 0,
        sparing: Sparing::None,
        range_cylinders: 0,
        head_order: HeadOrder::Ascending,
        zones: vec![ZoneSpec {
            cylinders: [0, cylinders - 1],
            sectors_per_track: sectors,
            track_skew_sectors: sectors / 8,
            cylinder_skew_sectors: sectors / 4,
            first_angle_sectors: 0,
            lead_sectors: 0,
            spares: 0,
            slips: Vec::new(),
        }],
        seek: SeekSpec {
            table: Vec::new(),
            short: Some([2.0, 6.0 / far.sqrt()]),
            long: Some([5.0, 12.0 / far]),
            knee_cylinders: (cylinders / 4).max(1),
            inward_by_distance: Vec::new(),
            head_switch_ms: 1.0,
            write_settle_ms: 0.5,
            write_settle_by_distance: Vec::new(),
            write_settle_spread_by_distance: Vec::new(),
        },
        controller: ControllerSpec {
            read_hit_after_read_ms: 0.5,
            read_hit_after_write_ms: 0.5,
            read_miss_after_read_ms: 0.5,
            read_miss_after_write_ms: 0.5,
            write_after_read_ms: 0.5,
            write_after_write_ms: 0.5,
            write_miss_after_read_ms: None,
            write_miss_after_write_ms: None,
            write_move_after_read: Vec::new(),
            write_move_after_write: Vec::new(),
            read_hit_elsewhere_ms: None,
            read_completion_ms: 0.0,
            write_completion_ms: 0.0,
            data_preparation_ms: 0.0,
            reselect_ms: 0.0,
            read_disconnect_after_read_ms: 0.0,
            read_disconnect_after_write_ms: 0.0,
            write_disconnect_ms: 0.0,
            write_seek_ms: None,
            write_seek_after_write_ms: None,
            read_seek_ms: None,
            read_seek_after_write_ms: None,
            never_disconnect: false,
            minimum_write_seek_ms: 0.0,
            extra_write_disconnect: None,
            scheduler: Scheduler::Fcfs,
        },
        cache: CacheSpec {
            segments: 2,
            segment_sectors: 2 * SECTORS,
            write_segments: 1,
            dedicated_write_segment: false,
            read_ahead: ReadAhead::Segment,
            join_read_ahead: false,
            read_ahead_sectors: SECTORS,
            read_ahead_on_hit: false,
            read_watermark: 0.0,
            drop_when_read: false,
            read_chunk_sectors: 0,
            write_start_sectors: 0,
            write_start_ms: 0.0,
            immediate_read: false,
            immediate_write: false,
            write_report: if buffered { WriteReport::Buffer } else { WriteReport::Medium },
        },
        bus: BusSpec {
            read_sector_ms: 0.1,
            write_sector_ms: 0.1,
            max_transfer_sectors: largest.min(1_048_576),
            queue_depth: 1,
        },
    }
}
