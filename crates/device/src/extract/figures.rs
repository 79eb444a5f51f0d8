//! The figures that are fitted.

use crate::disk::spec::{DiskSpec, ReadAhead, WriteReport};

/// Adds to a number of a specification; false if it is not there.
type Add = Box<dyn Fn(&mut DiskSpec, f64) -> bool>;

/// A number to be fitted.
pub(super) struct Number {
    /// Adds to it.
    pub add: Add,
    /// The first step, and the least one that is worth a try.
    pub step: f64,
    pub least_step: f64,
}

/// Where a number is in a specification, if it is there.
type At = Box<dyn Fn(&mut DiskSpec) -> Option<&mut f64>>;

/// A change of another kind: a switch, a count, a structure. Nothing if it does not apply.
pub(super) type Choice = Box<dyn Fn(&DiskSpec) -> Option<DiskSpec>>;

/// Numbers of a specification, as it is now: lists have as many as they have points.
pub(super) fn numbers(spec: &DiskSpec) -> Vec<Number> {
    const STEP_MS: f64 = 0.1;
    const LEAST_MS: f64 = 0.002;
    let mut numbers = Vec::new();
    // Lists as a whole besides their points: what is wrong with all of them is not put right one by one.
    let mut together = Vec::new();
    let mut number = |at: At, step: f64, least_step: f64| {
        let add = move |spec: &mut DiskSpec, more: f64| at(spec).map(|value| *value += more).is_some();
        numbers.push(Number { add: Box::new(add), step, least_step });
    };
    macro_rules! plain {
        ($($table:ident . $key:ident),* $(,)?) => {
            $(number(Box::new(|s| Some(&mut s.$table.$key)), STEP_MS, LEAST_MS);)*
        };
    }
    macro_rules! optional {
        ($($table:ident . $key:ident),* $(,)?) => {
            $(number(Box::new(|s| s.$table.$key.as_mut()), STEP_MS, LEAST_MS);)*
        };
    }
    macro_rules! points {
        ($($table:ident . $key:ident),* $(,)?) => {
            $(if spec.$table.$key.len() > 1 {
                let add = |s: &mut DiskSpec, ms: f64| {
                    s.$table.$key.iter_mut().for_each(|point| point.1 += ms);
                    !s.$table.$key.is_empty()
                };
                together.push(Number { add: Box::new(add), step: STEP_MS, least_step: LEAST_MS });
            }
            for n in 0..spec.$table.$key.len() {
                number(Box::new(move |s| s.$table.$key.get_mut(n).map(|point| &mut point.1)), STEP_MS, LEAST_MS);
            })*
        };
    }
    plain![
        controller.read_hit_after_read_ms,
        controller.read_hit_after_write_ms,
        controller.read_miss_after_read_ms,
        controller.read_miss_after_write_ms,
        controller.write_after_read_ms,
        controller.write_after_write_ms,
        controller.read_completion_ms,
        controller.write_completion_ms,
        cache.write_start_ms,
        seek.head_switch_ms,
        seek.write_settle_ms,
    ];
    optional![
        controller.read_hit_elsewhere_ms,
        controller.write_miss_after_read_ms,
        controller.write_miss_after_write_ms,
        controller.read_seek_ms,
        controller.write_seek_ms,
        controller.read_seek_after_write_ms,
        controller.write_seek_after_write_ms,
    ];
    points![
        controller.write_move_after_read,
        controller.write_move_after_write,
        seek.inward_by_distance,
        seek.write_settle_by_distance,
        seek.write_settle_spread_by_distance,
    ];
    // A tenth of the responses of a bus may be its sectors: the step is small.
    number(Box::new(|s| Some(&mut s.bus.read_sector_ms)), 0.01, 0.0002);
    number(Box::new(|s| Some(&mut s.bus.write_sector_ms)), 0.01, 0.0002);
    number(Box::new(|s| (s.retry_share > 0.0).then_some(&mut s.retry_share)), 5e-4, 1e-4);
    number(Box::new(|s| Some(&mut s.rpm)), spec.rpm * 2e-4, spec.rpm * 1e-6);
    macro_rules! extra {
        ($($key:ident),* $(,)?) => {
            $(number(
                Box::new(|s| s.controller.extra_write_disconnect.as_mut().map(|extra| &mut extra.$key)),
                STEP_MS,
                LEAST_MS,
            );)*
        };
    }
    extra![command_ms, gap_ms, second_disconnect_ms, seek_delay_ms];
    if spec.cache.read_watermark > 0.0 {
        number(Box::new(|s| Some(&mut s.cache.read_watermark)), 0.1, 0.01);
    }
    for n in 0..2 {
        if spec.seek.short.is_some() && spec.seek.long.is_some() {
            let scale = if n == 0 { 1.0 } else { 0.01 };
            number(Box::new(move |s| s.seek.short.as_mut().map(|curve| &mut curve[n])), 0.2 * scale, 0.01 * scale);
            let scale = if n == 0 { 1.0 } else { 0.001 };
            number(Box::new(move |s| s.seek.long.as_mut().map(|curve| &mut curve[n])), 0.2 * scale, 0.01 * scale);
        }
    }
    if !spec.seek.table.is_empty() {
        let add = |spec: &mut DiskSpec, ms: f64| {
            spec.seek.table.iter_mut().for_each(|point| point.1 += ms);
            !spec.seek.table.is_empty()
        };
        numbers.push(Number { add: Box::new(add), step: STEP_MS, least_step: LEAST_MS });
        for n in 0..BENDS.len() {
            let add = move |spec: &mut DiskSpec, ms: f64| bend(&mut spec.seek.table, n, ms);
            numbers.push(Number { add: Box::new(add), step: STEP_MS, least_step: LEAST_MS });
        }
    }
    together.extend(numbers);
    together
}

/// Distances at which a measured seek table is bent, each reaching as far as the next: cylinders.
const BENDS: [u32; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// Changes of other kinds that may be worth a try.
pub(super) fn choices() -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    let mut with = |change: Box<dyn Fn(&mut DiskSpec)>| {
        choices.push(Box::new(move |spec| {
            let mut other = spec.clone();
            change(&mut other);
            (other != *spec).then_some(other)
        }));
    };
    for read_ahead in [ReadAhead::None, ReadAhead::Track, ReadAhead::Cylinder, ReadAhead::Segment, ReadAhead::NextTrack]
    {
        with(Box::new(move |s| s.cache.read_ahead = read_ahead));
    }
    for report in [WriteReport::Medium, WriteReport::Buffer] {
        with(Box::new(move |s| s.cache.write_report = report));
    }
    macro_rules! switches {
        ($($key:ident),* $(,)?) => { $(with(Box::new(|s| s.cache.$key = !s.cache.$key));)* };
    }
    switches![join_read_ahead, read_ahead_on_hit, drop_when_read, immediate_read, immediate_write];
    for (up, down) in [(2, 1), (1, 2), (5, 4), (4, 5)] {
        let scaled = move |value: u32| (u64::from(value) * up / down).clamp(1, 1 << 20) as u32;
        with(Box::new(move |s| s.cache.read_ahead_sectors = scaled(s.cache.read_ahead_sectors.max(1))));
        with(Box::new(move |s| s.cache.segment_sectors = scaled(s.cache.segment_sectors.max(1))));
    }
    for more in [true, false] {
        let step = move |value: u32| if more { value.saturating_add(1) } else { value.saturating_sub(1) };
        with(Box::new(move |s| s.cache.segments = step(s.cache.segments)));
        with(Box::new(move |s| s.cache.write_segments = step(s.cache.write_segments)));
        with(Box::new(move |s| {
            s.seek.knee_cylinders = if more { s.seek.knee_cylinders * 9 / 8 } else { s.seek.knee_cylinders * 8 / 9 }
        }));
    }
    for sectors in [0, 1, 2, 4, 8, 16, 32] {
        with(Box::new(move |s| s.cache.write_start_sectors = sectors));
        with(Box::new(move |s| s.cache.read_chunk_sectors = sectors));
    }
    for revolutions in 1..=4 {
        with(Box::new(move |s| {
            s.retry_revolutions = revolutions;
            s.retry_share = if s.retry_share > 0.0 { s.retry_share } else { 0.002 };
        }));
    }
    with(Box::new(|s| s.controller.never_disconnect = !s.controller.never_disconnect));
    // Figures of their own for what had one together; they begin as what they were.
    with(Box::new(|s| split(&mut s.controller.read_hit_elsewhere_ms, s.controller.read_hit_after_read_ms)));
    with(Box::new(|s| split(&mut s.controller.read_seek_ms, s.controller.read_miss_after_read_ms)));
    with(Box::new(|s| split(&mut s.controller.write_seek_ms, s.controller.write_after_write_ms)));
    with(Box::new(|s| {
        split(
            &mut s.controller.read_seek_after_write_ms,
            s.controller.read_seek_ms.unwrap_or(s.controller.read_miss_after_write_ms),
        )
    }));
    with(Box::new(|s| {
        split(
            &mut s.controller.write_seek_after_write_ms,
            s.controller.write_seek_ms.unwrap_or(s.controller.write_after_write_ms),
        )
    }));
    with(Box::new(|s| {
        let settle_ms = s.seek.write_settle_ms;
        points(&mut s.seek.write_settle_by_distance, |_| settle_ms);
    }));
    with(Box::new(|s| points(&mut s.seek.inward_by_distance, |_| 0.0)));
    with(Box::new(|s| points(&mut s.seek.write_settle_spread_by_distance, |_| 0.0)));
    with(Box::new(|s| {
        let far = s.zones.last().map_or(1, |zone| zone.cylinders[1]);
        if let Some(table) = s.seek.sampled(far) {
            (s.seek.table, s.seek.short, s.seek.long, s.seek.knee_cylinders) = (table, None, None, 0);
        }
    }));
    for from in [16, 64, 256] {
        with(Box::new(move |s| {
            let (after_read, after_write) = (s.controller.write_after_read_ms, s.controller.write_after_write_ms);
            moves(&mut s.controller.write_move_after_read, from, after_read);
            moves(&mut s.controller.write_move_after_write, from, after_write);
        }));
    }
    for shift in [-1i32, 1] {
        with(Box::new(move |s| {
            for moves in [&mut s.controller.write_move_after_read, &mut s.controller.write_move_after_write] {
                if let Some((distance, _)) = moves.last_mut() {
                    *distance = if shift > 0 { *distance * 5 / 4 + 1 } else { (*distance * 4 / 5).max(2) };
                }
            }
        }));
    }
    choices
}

/// Adds a tent over the logarithm of the distance to a measured table: a whole `ms` at a bend, nothing at its
/// neighbours.
fn bend(table: &mut [(u32, f64)], n: usize, ms: f64) -> bool {
    let at = |n: usize| BENDS.get(n).map(|distance| f64::from(*distance).ln());
    let Some(middle) = at(n) else { return false };
    for (distance, time_ms) in table {
        let x = f64::from(*distance).ln();
        let share = if x <= middle {
            n.checked_sub(1).and_then(at).map_or(1.0, |before| (x - before) / (middle - before))
        } else {
            at(n + 1).map_or(1.0, |after| (after - x) / (after - middle))
        };
        *time_ms += ms * share.clamp(0.0, 1.0);
    }
    true
}

fn split(figure: &mut Option<f64>, from: f64) {
    figure.get_or_insert(from);
}

/// Points for what did not depend on the distance.
fn points(list: &mut Vec<(u32, f64)>, ms: impl Fn(u32) -> f64) {
    if list.is_empty() {
        *list = [1, 16, 64, 150, 300, 600, 1000, 2000].map(|distance| (distance, ms(distance))).into();
    }
}

fn moves(list: &mut Vec<(u32, f64)>, from: u32, overhead_ms: f64) {
    if list.is_empty() {
        *list = vec![(0, overhead_ms), (1, overhead_ms), (from, overhead_ms)];
    }
}
