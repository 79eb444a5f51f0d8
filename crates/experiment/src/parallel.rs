//! Independent points of an experiment, on as many processors as there are; their results come in the order of the
//! points.

use crate::{Bench, ExperimentError};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Works out every point.
///
/// # Errors
/// That of the first point, in their order, which has one.
pub(crate) fn each<T: Sync, R: Send>(
    bench: &mut Bench<'_>,
    stage: &str,
    points: &[T],
    work: impl Fn(&T) -> Result<R, ExperimentError> + Sync,
) -> Result<Vec<R>, ExperimentError> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(points.len());
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let total = points.len() as u64;
    let mut done: Vec<(usize, Result<R, ExperimentError>)> = Vec::with_capacity(points.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, work) = (&next, &work);
            scope.spawn(move || {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(point) = points.get(at)
                {
                    // Who listens goes away only when all are done.
                    let _ = sender.send((at, work(point)));
                }
            });
        }
        drop(sender);
        bench.report(stage, 0, Some(total));
        for result in receiver {
            done.push(result);
            bench.report(stage, done.len() as u64, Some(total));
        }
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    #[test]
    fn results_come_in_the_order_of_the_points() {
        let mut told = 0;
        let mut report = |_: &str, done: u64, _: Option<u64>| told = done;
        let mut bench = Bench::new(Scale::Quick, 1, &mut report);
        let points: Vec<u64> = (0..100).collect();
        let squares = each(&mut bench, "squares", &points, |n| Ok(n * n)).unwrap_or_default();
        assert_eq!(squares, points.iter().map(|n| n * n).collect::<Vec<_>>());
        let unknown = |n: u64| ExperimentError::Unknown { asked: n.to_string(), there: String::new() };
        let failed = each(&mut bench, "odd", &points, |n| if n % 2 == 0 { Ok(()) } else { Err(unknown(*n)) });
        assert!(failed.is_err_and(|error| error.to_string().contains("'1'")));
        assert_eq!(told, 100);
    }
}
