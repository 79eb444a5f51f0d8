//! How fast the kernel itself is: calls a second of processor time, on a file system that does next to nothing.
//!
//!     cargo run --profile dist -p fsage-benchmarks --bin kernel
//!
//! Everything is in memory but for what a line says; the device is a model with constant times, so that what is
//! measured is path walk, descriptors, caches, programs and engine, and the test volume below them.

use device::fixed::FixedDevice;
use kernel::testing::{MemVolume, Metadata};
use kernel::{Lab, Machine, Setup};
use posix::{Call, Fd, FileSystem, Mode, OpenFlags, Outcome, Process, Step};
use rustix::time::{ClockId, clock_gettime};

const FILES: usize = 10_000;
const CALLS: usize = 2_000_000;

fn lab() -> anyhow::Result<Lab<MemVolume>> {
    let size_bytes = 4 << 30;
    let volume = MemVolume::new(size_bytes, 8192, 200_000, Metadata::Delayed);
    let mut machine = Machine::load("pentium3-500")?;
    machine.memory.buffer_cache_bytes.value = 256 << 20;
    let setup = Setup { machine, target: "memory".into(), drive: "fixed".into(), epoch_ns: 0 };
    Ok(Lab::new(volume, Box::new(FixedDevice::new(size_bytes, 5_000_000)), setup)?)
}

/// Processor time of this program: what else runs on the machine does not count.
struct Instant(f64);

impl Instant {
    fn now() -> Instant {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        Instant(now.tv_sec as f64 * 1e9 + now.tv_nsec as f64)
    }
}

fn report(what: &str, calls: usize, began: Instant) {
    let ns = Instant::now().0 - began.0;
    println!("{what:<44} {:>8.0} ns a call {:>12.0} calls/s", ns / calls as f64, calls as f64 * 1e9 / ns);
}

fn done(outcome: &Outcome) -> anyhow::Result<()> {
    outcome.result.map(|_| ()).map_err(|errno| anyhow::anyhow!("a call failed: {errno}"))
}

fn create(lab: &mut Lab<MemVolume>, path: &str) -> anyhow::Result<Fd> {
    let flags = OpenFlags { read: true, ..OpenFlags::CREATE_NEW };
    Ok(lab.call(&Call::Open { at: path.into(), flags, mode: Mode(0o644) }).fd()?)
}

/// Makes the same call many times.
fn repeat(lab: &mut Lab<MemVolume>, what: &str, call: &Call<'_>) -> anyhow::Result<()> {
    done(&lab.call(call))?;
    let began = Instant::now();
    for _ in 0..CALLS {
        done(&lab.call(call))?;
    }
    report(what, CALLS, began);
    Ok(())
}

struct Reader {
    fd: Fd,
    left: usize,
}

impl Process for Reader {
    fn next(&mut self, _last: Option<&Outcome>) -> Step<'_> {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        Step::Call(Call::Read { fd: self.fd, offset: Some(0), len_bytes: 4096 })
    }
}

fn main() -> anyhow::Result<()> {
    let mut lab = lab()?;
    let paths: Vec<String> = (0..FILES).map(|n| format!("d{}/file{n}", n % 100)).collect();
    for n in 0..100 {
        let path = format!("d{n}");
        done(&lab.call(&Call::Mkdir { at: path.as_str().into(), mode: Mode(0o755) }))?;
    }

    let began = Instant::now();
    for path in &paths {
        let fd = create(&mut lab, path)?;
        done(&lab.call(&Call::Write { fd, offset: None, len_bytes: 4096, data: None }))?;
        done(&lab.call(&Call::Close { fd }))?;
    }
    report("create, write 4 KB, close (each of three)", 3 * FILES, began);

    let fd = create(&mut lab, "f")?;
    done(&lab.call(&Call::Write { fd, offset: Some(0), len_bytes: 1 << 20, data: None }))?;
    repeat(&mut lab, "fstat", &Call::Fstat { fd })?;
    repeat(&mut lab, "stat of two components, one name", &Call::Stat { at: "d1/file1".into(), follow: true })?;
    let began = Instant::now();
    for n in 0..CALLS {
        let path = paths[n * 7919 % FILES].as_str();
        done(&lab.call(&Call::Stat { at: path.into(), follow: true }))?;
    }
    report("stat of two components, 10,000 names", CALLS, began);
    repeat(&mut lab, "pread 4 KB, cached", &Call::Read { fd, offset: Some(8192), len_bytes: 4096 })?;
    repeat(&mut lab, "pwrite 4 KB, cached", &Call::Write { fd, offset: Some(8192), len_bytes: 4096, data: None })?;

    let began = Instant::now();
    let rounds = CALLS / 128;
    for _ in 0..rounds {
        done(&lab.call(&Call::Read { fd, offset: Some(0), len_bytes: 1 << 20 }))?;
    }
    report("read 1 MB, cached: each 8 KB block", rounds * 128, began);

    let began = Instant::now();
    let readers = (0..4).map(|_| Box::new(Reader { fd, left: CALLS / 4 }) as Box<dyn Process>).collect();
    lab.run(readers)?;
    report("pread 4 KB, cached, four processes", CALLS, began);

    let began = Instant::now();
    let large = create(&mut lab, "large")?;
    for n in 0..2048 {
        done(&lab.call(&Call::Write { fd: large, offset: Some(n << 20), len_bytes: 1 << 20, data: None }))?;
    }
    report("write 2 GB through 256 MB: each 8 KB block", 2048 * 128, began);
    let began = Instant::now();
    for n in 0..2048 {
        done(&lab.call(&Call::Read { fd: large, offset: Some(n << 20), len_bytes: 1 << 20 }))?;
    }
    report("read 2 GB through 256 MB: each 8 KB block", 2048 * 128, began);

    let began = Instant::now();
    for path in &paths {
        done(&lab.call(&Call::Unlink { at: path.as_str().into() }))?;
    }
    report("unlink", FILES, began);
    println!("virtual time {:.1} s; {:?}", lab.now_ns() as f64 / 1e9, lab.counters());
    Ok(())
}
