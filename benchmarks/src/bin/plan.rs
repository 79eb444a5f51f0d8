//! How many operations a second each planner plans and writes, on one core.
//!
//! `plan [--capacity-gib N] [--days N] [PERSONALITY]`: without a name all personalities. Prints operations per second
//! of processor time, the file's bytes per operation, and the peak resident set.

use aging::plan::personality::{self, Churn, Options, builtin};
use aging::plan::{self, PlannedFor};
use anyhow::bail;
use fsage_benchmarks::{CommandLine, on_cpu_s, peak_resident_bytes};

const SEED: u64 = 1;

fn main() -> anyhow::Result<()> {
    let (mut gib, mut days, mut only) = (4u64, 100u32, None);
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--capacity-gib" => gib = args.number()?,
            "--days" => days = args.number()?,
            flag if flag.starts_with('-') => bail!("usage: plan [--capacity-gib N] [--days N] [PERSONALITY]"),
            name => only = Some(name.to_owned()),
        }
    }
    let scratch = tempfile::tempdir()?;
    let path = scratch.path().join("bench.aging");
    let planned_for = PlannedFor { capacity_bytes: gib << 30, block_bytes: 4096 };
    for (name, _) in builtin::ALL.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)) {
        let personality = builtin::get(name)?;
        let options = Options {
            planned_for,
            days,
            utilisation: None,
            fill: None,
            churn: Churn::Implied,
            seed: SEED,
            input: None,
        };
        let start_s = on_cpu_s();
        let meta =
            plan::write(&path, planned_for, |writer| personality::plan(&personality, &options, writer, &mut |_| true))?;
        let cpu_s = on_cpu_s() - start_s;
        let bytes = std::fs::metadata(&path)?.len();
        let operations = meta.counts.operations as f64;
        println!(
            "{name:10} {:>10} operations: {:.2} M operations/s, {:.1} bytes each, {} files alive, peak resident set \
             {:.0} MB",
            meta.counts.operations,
            operations / 1e6 / cpu_s,
            bytes as f64 / operations,
            meta.counts.files_at_end,
            peak_resident_bytes() as f64 / 1e6,
        );
    }
    Ok(())
}
