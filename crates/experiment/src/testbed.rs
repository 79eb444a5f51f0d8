//! Computers with disks, and the sequential benchmark on copies of one file system.

use crate::{Bench, ExperimentError, parallel};
use device::Drive;
use ffs::Ffs;
use kernel::{Lab, Machine, Setup};
use lab::Spec;
use lfs::Lfs;
use posix::{At, Call, FileSystem, Mode, OpenFlags, Reply};
use workload::{Phase, PhaseResult, Repeat, seqfile};

/// A laboratory of a machine and a drive that come with the program. `epoch_ns` is shown by time stamps only.
pub(crate) fn laboratory(volume: Ffs, machine: &str, drive: &str, epoch_ns: i64) -> Result<Lab<Ffs>, ExperimentError> {
    let setup = Setup {
        machine: Machine::load(machine)?,
        target: format!("ffs:{}@{drive}", volume.choices()),
        drive: drive.to_owned(),
        epoch_ns,
    };
    Ok(Lab::new(volume, Drive::find(drive)?.device(), setup)?)
}

/// A computer with a processor so many times as fast.
pub(crate) fn faster(machine: &str, times: f64) -> Result<Machine, ExperimentError> {
    let mut machine = Machine::load(machine)?;
    let costs = &mut machine.costs;
    let all = [
        &mut costs.call_ns,
        &mut costs.component_ns,
        &mut costs.entry_ns,
        &mut costs.open_ns,
        &mut costs.attributes_ns,
        &mut costs.inode_ns,
        &mut costs.name_ns,
        &mut costs.block_ns,
        &mut costs.allocate_ns,
        &mut costs.request_ns,
        &mut costs.copy_ps_per_byte,
    ];
    for cost in all {
        cost.value = (cost.value as f64 / times) as u64;
    }
    Ok(machine)
}

/// A log on a computer's disk as a target names it (`lfs:cleaner=off@dec-rz26`), with cold caches.
pub(crate) fn log(target: &str, machine: &str) -> Result<Lab<Lfs>, ExperimentError> {
    let spec = Spec { machine: machine.to_owned(), ..Spec::parse(target)? };
    Ok(spec.lfs()?)
}

/// What the sequential benchmark is run with (`lfs95`, section 3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequential {
    /// Data that each size's files hold together, at most.
    pub(crate) data_bytes: u64,
    /// Files in a directory.
    pub(crate) files_per_directory: u32,
    /// The largest single read or write.
    pub(crate) piece_bytes: u64,
    /// The last phase that anybody looks at.
    pub(crate) until: Phase,
}

/// What it found at one file size.
#[derive(Clone, Debug)]
pub(crate) struct AtSize {
    /// The size.
    pub(crate) size_bytes: u64,
    phases: Vec<PhaseResult>,
}

impl AtSize {
    fn phase(&self, phase: Phase) -> Option<&PhaseResult> {
        self.phases.iter().find(|found| found.phase == phase)
    }

    /// The phase's rate: bytes a second, of the last phase files a second; writing back is part of it.
    pub(crate) fn rate(&self, phase: Phase) -> f64 {
        self.phase(phase).map_or(0.0, |found| found.rate.median)
    }

    /// The same until the last call returned; what is delayed goes on after that.
    pub(crate) fn rate_without_sync(&self, phase: Phase) -> f64 {
        let found = self.phase(phase).and_then(|found| found.rate_without_sync);
        found.map_or(0.0, |rate| rate.median)
    }
}

/// Runs the sequential benchmark once for each size, each time on a copy of the same file system; `mount` puts it on a
/// computer's disk, with cold caches.
pub(crate) fn sequential(
    bench: &mut Bench<'_>,
    what: &str,
    volume: &Ffs,
    mount: impl Fn(Ffs) -> Result<Lab<Ffs>, ExperimentError> + Sync,
    sizes_bytes: &[u64],
    with: Sequential,
) -> Result<Vec<AtSize>, ExperimentError> {
    let seed = bench.seed();
    parallel::each(bench, what, sizes_bytes, |size_bytes| at_size(&mut mount(volume.clone())?, *size_bytes, with, seed))
}

/// The same for several experiments of a run: what one has found for a size, another need not look for. `name` says
/// everything that this depends on besides sizes, scale and seed.
pub(crate) fn sequential_shared(
    bench: &mut Bench<'_>,
    name: &str,
    volume: &Ffs,
    mount: impl Fn(Ffs) -> Result<Lab<Ffs>, ExperimentError> + Sync,
    sizes_bytes: &[u64],
    with: Sequential,
) -> Result<Vec<AtSize>, ExperimentError> {
    let (seed, made) = (bench.seed(), bench.made());
    parallel::each(bench, name, sizes_bytes, |size_bytes| {
        let found = made.get(&format!("{name}, {size_bytes} bytes, {with:?}"), || {
            at_size(&mut mount(volume.clone())?, *size_bytes, with, seed)
        })?;
        Ok(AtSize::clone(&found))
    })
}

/// Runs it for one size on a file system.
pub(crate) fn at_size(
    fs: &mut dyn FileSystem,
    size_bytes: u64,
    with: Sequential,
    seed: u64,
) -> Result<AtSize, ExperimentError> {
    let options = seqfile::Options {
        data_bytes: with.data_bytes.max(size_bytes),
        sizes_bytes: vec![size_bytes],
        files_per_directory: with.files_per_directory,
        piece_bytes: with.piece_bytes,
        until: with.until,
        // Virtual time has no noise.
        repeat: Repeat { rounds: 1, warm_up: false, seed },
    };
    let result = workload::run_on(fs, &options, &mut |_| {})?;
    let points = result.targets.into_iter().flat_map(|target| target.points);
    Ok(AtSize { size_bytes, phases: points.flat_map(|point| point.phases).collect() })
}

/// Makes a call that must succeed.
pub(crate) fn call(lab: &mut dyn FileSystem, doing: &str, call: &Call<'_>) -> Result<Reply, ExperimentError> {
    lab.call(call).result.map_err(|errno| ExperimentError::Call { doing: doing.to_owned(), errno })
}

/// Makes files of one size, so many in a directory; their paths.
pub(crate) fn make_files(
    lab: &mut dyn FileSystem,
    name: &str,
    count: u64,
    size_bytes: u64,
    files_per_directory: u64,
) -> Result<Vec<String>, ExperimentError> {
    let mut paths = Vec::new();
    for number in 0..count {
        let directory = format!("{name}{}", number / files_per_directory);
        if number.is_multiple_of(files_per_directory) {
            let make = Call::Mkdir { at: At::from(directory.as_str()), mode: Mode(0o755) };
            call(lab, "making a directory", &make)?;
        }
        let path = format!("{directory}/{number}");
        let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
        let fd =
            lab.call(&open).fd().map_err(|errno| ExperimentError::Call { doing: format!("making {path}"), errno })?;
        call(lab, "writing", &Call::Write { fd, offset: None, len_bytes: size_bytes, data: None })?;
        call(lab, "closing", &Call::Close { fd })?;
        paths.push(path);
    }
    Ok(paths)
}
