//! Predicts a workload on several systems and ranks them:
//! `cargo run -p fsage-predict --example predict [W.workload S.system…]`.
//!
//! Shows [`pipeline::predict`] and [`rank`]. Without arguments it takes the recording that comes with
//! `fsage quickstart`, and the profiles that come with fsage.

use predict::pipeline::{self, PredictOptions, Prediction};
use predict::rank::rank;
use std::error::Error;
use std::path::{Path, PathBuf};
use system::SystemProfile;
use trace::profile::Reader;

/// Predicts the workload on each of the systems.
///
/// # Errors
/// A file cannot be read, or less of the workload is covered than the options ask for.
pub fn predicted(workload: &Path, systems: &[PathBuf], options: &PredictOptions) -> Result<Prediction, Box<dyn Error>> {
    let reader = Reader::open(workload)?;
    let systems = systems.iter().map(|path| SystemProfile::load(path)).collect::<Result<Vec<_>, _>>()?;
    Ok(pipeline::predict(&reader, &systems, options)?)
}

/// The workload and the systems that come with fsage.
pub fn bundled() -> (PathBuf, Vec<PathBuf>) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let system = |name: &str| top.join("profiles").join(name).with_extension("system");
    (top.join("crates/cli/src/quickstart/recorded"), ["ext4", "xfs", "btrfs"].map(system).to_vec())
}

/// Prints the ranking, and what each system takes longest for.
pub fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (workload, systems) = match arguments.next() {
        Some(workload) => (workload, arguments.collect()),
        None => bundled(),
    };
    let options = PredictOptions::default(); // cold caches, as fast as possible, seed 1
    let prediction = predicted(&workload, &systems, &options)?;
    for ranked in rank(&prediction.systems, options.seed).systems {
        let system = &prediction.systems[ranked.index];
        let (low, high) = (ranked.interval.low_ns / 1e6, ranked.interval.high_ns / 1e6);
        let total = ranked.total_ns / 1e6;
        println!("{} {}: {total:.1} ms ({low:.1} to {high:.1})", ranked.place, ranked.system);
        println!("  fastest with a probability of {:.1} %", 100.0 * ranked.p_fastest);
        if let Some(most) = system.by_entry.first() {
            println!("  the entry that costs most: {}", most.entry);
        }
    }
    Ok(())
}
