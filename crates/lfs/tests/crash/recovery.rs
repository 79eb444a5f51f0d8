//! Crashes while a crash is being recovered from, and mounting twice: whatever recovery was interrupted at, what is there
//! afterwards is what would have been there without.

use super::disk::{Disk, Frozen, Kind};
use super::verify::{Seen, seen, verify};
use super::workload::{Run, mount};
use super::{KINDS, Tally};
use kernel::LogEntry;
use rand_core::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

/// As often a recovery is interrupted before one is left to go to its end.
const INTERRUPTIONS: u64 = 3;

/// Mounts what a crash has left after `reached` entries of the log, and lets the power fail after each write that mounting makes,
/// some of them lost or torn too if `windows` says that the file system flushes; then again, from one of these states. Returns
/// what mounting to the end has left.
pub fn interrupted(
    run: &Run,
    bytes: &[u8],
    reached: usize,
    windows: bool,
    random: &mut Xoshiro256PlusPlus,
    tally: &mut Tally,
) -> Result<Vec<u8>, String> {
    let before = seen(bytes)?;
    let mut bytes = bytes.to_vec();
    for _ in 0..random.next_u64() % INTERRUPTIONS {
        bytes = one(run, &bytes, reached, windows, &before, random, tally)?;
    }
    let (lab, disk) = mount(&run.case, bytes)?;
    let mounted = disk.lock().map_err(|error| error.to_string())?.0.clone();
    drop(lab);
    // A second mount of what the first has left: its power failed before anything else happened.
    let (lab, disk) = mount(&run.case, mounted.clone())?;
    same(&before, &mounted, "mounted")?;
    same(&before, &disk.lock().map_err(|error| error.to_string())?.0, "mounted twice")?;
    tally.mounted_twice += 1;
    lab.unmount().map_err(|errno| format!("unmounting: {errno}"))?;
    let unmounted = disk.lock().map_err(|error| error.to_string())?.0.clone();
    let report = lfs::fsck(Frozen(&unmounted), &mut |_| true).map_err(|error| error.to_string())?;
    if !report.is_clean() || !report.marked_clean {
        return Err(format!("mounted twice and unmounted: {:#?}", report.problems));
    }
    same(&before, &unmounted, "mounted twice and unmounted")?;
    Ok(mounted)
}

fn same(before: &Seen, bytes: &[u8], when: &str) -> Result<(), String> {
    let after = seen(bytes).map_err(|error| format!("{when}: {error}"))?;
    if after == *before { Ok(()) } else { Err(format!("{when}, another tree is there than before")) }
}

/// Every crash of one mount; returns one of them.
fn one(
    run: &Run,
    bytes: &[u8],
    reached: usize,
    windows: bool,
    before: &Seen,
    random: &mut Xoshiro256PlusPlus,
    tally: &mut Tally,
) -> Result<Vec<u8>, String> {
    let (mut lab, _disk) = mount(&run.case, bytes.to_vec())?;
    let log = lab.take_log();
    let mut disk = Disk::new(bytes.to_vec());
    let mut flushed = 0;
    let chosen = random.next_u64() as usize % log.len().max(1);
    let mut left = bytes.to_vec();
    for (point, entry) in log.iter().enumerate() {
        if matches!(entry, LogEntry::Flush { .. }) {
            log[flushed..point].iter().for_each(|entry| disk.apply(entry));
            flushed = point + 1;
            continue;
        }
        let kinds = if windows { &KINDS[..] } else { &KINDS[..1] };
        for kind in kinds {
            disk.try_out();
            disk.apply_some(&log[flushed..=point], *kind, random);
            tally.recovery(disk.state());
            let checked = verify(run, &disk.bytes, reached).and_then(|_| same(before, &disk.bytes, "recovery again"));
            checked
                .map_err(|problem| format!("recovery interrupted at {point} of {}, {kind:?}: {problem}", log.len()))?;
            if point == chosen && (*kind == Kind::Prefix || random.next_u64().is_multiple_of(2)) {
                left.clone_from(&disk.bytes);
            }
            disk.back();
        }
    }
    Ok(left)
}
