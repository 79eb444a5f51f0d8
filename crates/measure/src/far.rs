//! What cached things cost that are no longer in the processor's caches.
//!
//! Names are looked up, and data is read, in a cycle: between two visits of a thing lies all the rest of the cycle, and
//! its length is the distance. Each visit is made twice; the second finds the thing near, and the first takes longer by
//! what is measured. A cycle in shuffled order is an access to memory for each thing; one in the order in which they
//! were made is fetched ahead in part. Distances are counted as a prediction counts them: a kilobyte for a name with
//! its inode, and data by its bytes.

use super::bench::Bench;
use super::{Group, MeasureError};
use posix::{Call, Fd, OpenFlags};
use stats::random::index;
use system::vector::{Class, OBJECT_BYTES};

/// Names of a directory.
const ENTRIES: u64 = 64;
/// Visits of a cycle that are timed, in all.
const TIMED: u64 = 64;
/// Visits between looks at the clock.
const LOOK_EVERY: usize = 256;
/// Data is read in requests of one byte and of this many.
const REQUEST_BYTES: u64 = 16 << 10;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Far {
    names: u64,
    data_bytes: u64,
    warm_since: Option<u64>,
}

impl Group for Far {
    fn name(&self) -> &'static str {
        "far from the processor"
    }

    fn classes(&self) -> &'static [Class] {
        &[Class::LookupFar, Class::LookupFarInOrder, Class::ReadFarByte, Class::ReadFar]
    }

    fn prepare(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        b.make_dir("far")?;
        let fits_bytes = b.fs.memory().map_or(u64::MAX, |limits| limits.available_bytes / 4);
        let most_bytes =
            |class: Class| class.points().iter().copied().filter(|&at| at <= fits_bytes).max().unwrap_or(0);
        let wanted = most_bytes(Class::LookupFar) / OBJECT_BYTES;
        while self.names < wanted && b.go_on()? {
            let directory = format!("far/d{:04}", self.names / ENTRIES);
            let dir = b.new_dir(&directory)?;
            for number in 0..ENTRIES {
                b.make_file(dir.at(&format!("f{number:02}")), 0)?;
            }
            b.close(dir.fd)?;
            self.names += ENTRIES;
        }
        let room_bytes = b.large_file_bytes(most_bytes(Class::ReadFar))?;
        self.data_bytes = most_bytes(Class::ReadFar).min(room_bytes);
        b.make_file("far/data".into(), self.data_bytes)?;
        b.sync()
    }

    fn round(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let data = b.open("far/data".into(), OpenFlags::READ)?;
        if self.warm_since != Some(b.drops) {
            b.read_all(data, self.data_bytes)?;
            let all: Vec<u64> = (0..self.names).collect();
            if !go_round(b, &all, &mut visit_name)? {
                return b.close(data);
            }
            self.warm_since = Some(b.drops);
        }
        let mut cycles: Vec<(Class, u64)> = Vec::new();
        for &class in self.classes() {
            cycles.extend(class.points().iter().map(|&at| (class, at)));
        }
        b.shuffle(&mut cycles);
        for (class, at) in cycles {
            if !b.go_on()? {
                break;
            }
            match class {
                Class::LookupFar | Class::LookupFarInOrder if at <= self.names * OBJECT_BYTES => {
                    let (things, shuffled) = (at / OBJECT_BYTES, class == Class::LookupFar);
                    cycle(b, class, at, things, shuffled, &mut visit_name)?;
                }
                Class::ReadFar if at <= self.data_bytes => {
                    let mut visit = |b: &mut Bench<'_>, number| visit_data(b, data, number, REQUEST_BYTES);
                    cycle(b, class, at, at / REQUEST_BYTES, true, &mut visit)?;
                }
                Class::ReadFarByte if at <= self.data_bytes => {
                    // Bytes of pages that are read whole in between.
                    let mut visit = |b: &mut Bench<'_>, number| visit_data(b, data, number, 1);
                    let mut between = |b: &mut Bench<'_>, number| visit_data(b, data, number, REQUEST_BYTES);
                    bytes(b, at, &mut visit, &mut between)?;
                }
                _ => {}
            }
        }
        b.close(data)
    }
}

/// Makes a call on the thing of a number, and says how long it took, nanoseconds.
type Visit<'v> = dyn FnMut(&mut Bench<'_>, u64) -> Result<f64, MeasureError> + 'v;

fn visit_name(b: &mut Bench<'_>, number: u64) -> Result<f64, MeasureError> {
    let path = format!("far/d{:04}/f{:02}", number / ENTRIES, number % ENTRIES);
    let call = Call::Stat { at: path.as_str().into(), follow: true };
    let outcome = b.make(&call);
    outcome.result.map_err(|errno| MeasureError::call(&call, errno))?;
    Ok(outcome.dur_ns as f64)
}

fn visit_data(b: &mut Bench<'_>, fd: Fd, number: u64, len_bytes: u64) -> Result<f64, MeasureError> {
    let call = Call::Read { fd, offset: Some(number * REQUEST_BYTES), len_bytes };
    let outcome = b.make(&call);
    outcome.result.map_err(|errno| MeasureError::call(&call, errno))?;
    Ok(outcome.dur_ns as f64)
}

/// The order of a cycle, and every how-manyth of it is timed.
fn order_of(b: &mut Bench<'_>, things: u64, shuffled: bool) -> (Vec<u64>, usize, usize) {
    let mut order: Vec<u64> = (0..things).collect();
    if shuffled {
        b.shuffle(&mut order);
    }
    let every = usize::try_from((things / TIMED).max(1)).unwrap_or(1);
    (order, every, index(&mut b.rng, every))
}

/// Goes round once, unless the time is up before; the second time takes as long.
fn go_round(b: &mut Bench<'_>, order: &[u64], visit: &mut Visit<'_>) -> Result<bool, MeasureError> {
    for (place, &number) in order.iter().enumerate() {
        if place % LOOK_EVERY == 0 && !b.go_on()? {
            return Ok(false);
        }
        visit(b, number)?;
    }
    b.go_on()
}

/// Goes round once to put everything at its distance, and a second time, on which some visits are timed.
fn cycle(
    b: &mut Bench<'_>,
    class: Class,
    at: u64,
    things: u64,
    shuffled: bool,
    visit: &mut Visit<'_>,
) -> Result<(), MeasureError> {
    let (order, every, first) = order_of(b, things, shuffled);
    if !go_round(b, &order, visit)? {
        return Ok(());
    }
    for (place, &number) in order.iter().enumerate() {
        let far_ns = visit(b, number)?;
        if place % every == first {
            let near_ns = visit(b, number)?;
            b.sheet.record(class, at, far_ns - near_ns);
        }
    }
    Ok(())
}

/// The same for single bytes: the rest of the cycle is read whole.
fn bytes(b: &mut Bench<'_>, at: u64, visit: &mut Visit<'_>, between: &mut Visit<'_>) -> Result<(), MeasureError> {
    let (order, every, first) = order_of(b, at / REQUEST_BYTES, true);
    if !go_round(b, &order, between)? {
        return Ok(());
    }
    for (place, &number) in order.iter().enumerate() {
        if place % every == first {
            let far_ns = visit(b, number)?;
            let near_ns = visit(b, number)?;
            b.sheet.record(Class::ReadFarByte, at, far_ns - near_ns);
        } else {
            between(b, number)?;
        }
    }
    Ok(())
}
