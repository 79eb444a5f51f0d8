//! Makes and removes files on two file systems of the laboratory:
//! `cargo run -p fsage-lab --example laboratory [TARGET…]`.
//!
//! Shows how a target becomes a file system in virtual time ([`Spec::open`]), how calls are made on it
//! ([`posix::FileSystem`]), and what they cost there: the clock and the counters do not depend on the machine that runs
//! this.

use lab::{Laboratory, Spec};
use posix::{Call, FileSystem, Mode, OpenFlags};
use std::error::Error;

/// Files that are made and removed.
pub const FILES: u32 = 200;

/// Makes `FILES` files of 1 KiB, removes them, and says how many nanoseconds of virtual time each half took. What a
/// file system has only in memory by then has cost nothing yet.
///
/// # Errors
/// A call fails.
pub fn make_and_remove(fs: &mut dyn Laboratory) -> Result<(u64, u64), Box<dyn Error>> {
    let flags = OpenFlags { create: true, ..OpenFlags::WRITE };
    let begun = fs.now_ns();
    for file in 0..FILES {
        let name = format!("f{file}");
        let fd = fs.call(&Call::Open { at: name.as_str().into(), flags, mode: Mode(0o644) }).fd()?;
        fs.call(&Call::Write { fd, offset: None, len_bytes: 1024, data: None }).count()?;
        fs.call(&Call::Close { fd }).result?;
    }
    let made = fs.now_ns();
    for file in 0..FILES {
        let name = format!("f{file}");
        fs.call(&Call::Unlink { at: name.as_str().into() }).result?;
    }
    Ok((made - begun, fs.now_ns() - made))
}

/// Prints rates, and how many requests reached the drive.
pub fn main() -> Result<(), Box<dyn Error>> {
    let mut targets: Vec<String> = std::env::args().skip(1).collect();
    if targets.is_empty() {
        targets = ["ffs:conventional,size=64M", "ffs:softdep,size=64M"].map(str::to_owned).to_vec();
    }
    for target in targets {
        let mut lab = Spec::parse(&target)?.open()?;
        let (made_ns, removed_ns) = make_and_remove(&mut *lab)?;
        let rate = |ns: u64| f64::from(FILES) * 1e9 / ns as f64;
        let device = lab.counters().device;
        println!("{target}: {:.1} files made a second, {:.1} removed", rate(made_ns), rate(removed_ns));
        println!("  {} requests to read, {} to write", device.reads, device.writes);
        lab.unmount(None)?; // writes the rest; `Some(path)` keeps the image
    }
    Ok(())
}
