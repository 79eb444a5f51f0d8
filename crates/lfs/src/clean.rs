//! The cleaner on an image that nobody has mounted: what lfs_cleanerd does for a mounted one.

use crate::policy::Options;
use crate::{Lfs, LfsError, Store};
use kernel::payload::Image as Payload;
use kernel::{ReadAhead, Transfers, Untimed, Volume as _};
use posix::Errno;
use serde::Serialize;
use std::sync::{Arc, Mutex};
use ufs::ImageError as _;
use ufs::insert::Insertable;

/// Memory for blocks on their way, besides the segments that are cleaned together.
const CACHE_BYTES: u64 = 16 << 20;
/// Inodes kept at hand.
const INODES: usize = 4096;

/// What cleaning has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cleaned {
    /// Segments of the file system.
    pub segments: u32,
    /// Those that nothing was in before.
    pub clean_before: u32,
    /// And after.
    pub clean_after: u32,
    /// Segments that something was moved out of.
    pub cleaned: u64,
    /// How full those were on average, a share of 1.
    pub mean_utilisation: f64,
    /// Bytes read for it.
    pub read_bytes: u64,
    /// Bytes written for it, with everything that goes with what was moved.
    pub written_bytes: u64,
}

/// Cleans segments until `max_segments` more are clean, or moving what is live gains no more; asks `go_on` before each
/// few. `date_ns` (nanoseconds since 1970) is when that happens. A file system that was not unmounted is rolled forward
/// first; one that is damaged is refused. It is left as an unmount would, also if it is stopped in between.
pub fn clean<S: Store + Send + 'static>(
    store: S,
    options: Options,
    date_ns: i64,
    max_segments: u32,
    go_on: &mut dyn FnMut(&Cleaned) -> bool,
) -> Result<(S, Cleaned), LfsError> {
    let (volume, store) = Lfs::open(store, options)?;
    let store = Arc::new(Mutex::new(store));
    let transfers = Transfers { largest_bytes: 1 << 20, read_ahead: ReadAhead::None, cluster_writes: true };
    let payload = Payload::full(store.clone());
    let mut live = Untimed::with_image(volume, CACHE_BYTES, INODES, transfers, date_ns, payload);
    let before = live.volume().clean_segments().0;
    run(&mut live, "mount it", |volume, cx| volume.mount(cx))?;
    let mut stopped = false;
    loop {
        let clean = live.volume().clean_segments().0;
        if clean.saturating_sub(before) >= max_segments {
            break;
        }
        stopped = !go_on(&done(live.volume(), before));
        if stopped || !run(&mut live, "clean it", |volume, cx| volume.clean_some(cx))? {
            break;
        }
    }
    run(&mut live, "unmount it", |volume, cx| volume.unmount(cx))?;
    let done = done(live.volume(), before);
    let problem = live.volume().disagreement();
    drop(live);
    match (problem, Arc::into_inner(store).map(Mutex::into_inner)) {
        _ if stopped => Err(LfsError::interrupted()),
        (None, Some(Ok(store))) => Ok((store, done)),
        (problem, _) => {
            let problem = problem.unwrap_or_else(|| "it is still in use".to_owned());
            Err(LfsError::NotWritable(format!("after cleaning, it does not agree with itself: {problem}")))
        }
    }
}

fn done(volume: &Lfs, clean_before: u32) -> Cleaned {
    let counters = &volume.counters().cleaner;
    let (clean_after, segments) = volume.clean_segments();
    Cleaned {
        segments,
        clean_before,
        clean_after,
        cleaned: counters.segments,
        mean_utilisation: counters.mean_utilisation(),
        read_bytes: counters.read_bytes,
        written_bytes: counters.written_bytes + counters.plugged_bytes,
    }
}

fn run<R>(
    live: &mut Untimed<Lfs>,
    doing: &'static str,
    operation: impl FnOnce(&mut Lfs, &mut kernel::Cx) -> Result<R, Errno>,
) -> Result<R, LfsError> {
    let result = live.run(operation);
    match live.take_image_error() {
        Some(source) => Err(LfsError::in_image("read or write it", source)),
        None => result.map_err(|errno| LfsError::in_image(doing, errno.into())),
    }
}
