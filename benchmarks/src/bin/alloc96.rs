//! How long the 300 days of the allocation study take (Smith and Seltzer, USENIX 1996), and in how much memory.
//!
//! `alloc96 [--days N] [--seed N] [POLICY...]`: ages the published file system of 502 MB under each policy (default:
//! original and realloc) on one core, with the layout score at the end of every day, and prints file operations and
//! blocks per second of processor time and the peak resident set. `fsage reproduce 'alloc96/*'` runs the same code.

use anyhow::bail;
use experiment::alloc96::aged;
use fsage_benchmarks::{CommandLine, on_cpu_s, peak_resident_bytes};

fn main() -> anyhow::Result<()> {
    let (mut days, mut seed, mut policies) = (300, 1, Vec::new());
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--days" => days = args.number()?,
            "--seed" => seed = args.number()?,
            _ if arg.starts_with('-') => bail!("usage: alloc96 [--days N] [--seed N] [POLICY...]"),
            _ => policies.push(arg),
        }
    }
    if policies.is_empty() {
        policies = vec!["original,noorder".to_owned(), "realloc,noorder".to_owned()];
    }
    println!("{days} days, seed {seed}");
    for policy in &policies {
        let start_s = on_cpu_s();
        let aged = aged::run(policy, days, seed, &mut |_, _| Ok(()))?;
        let s = on_cpu_s() - start_s;
        let written = aged.figures.iter().find(|figure| figure.what == "written").map_or(0.0, |figure| figure.planned);
        let score = |day: usize| aged.by_day.get(day).and_then(|score| score.value()).unwrap_or(f64::NAN);
        println!(
            "{policy}: {s:.2} s, {} file operations, {:.0}/s, {:.0} MB written, {:.2} million blocks/s, layout score \
             {:.3} on the first day and {:.3} on the last, peak {:.0} MB",
            aged.file_operations,
            aged.file_operations as f64 / s,
            written / 1048576.0,
            written / 8192.0 / s / 1e6,
            score(0),
            score(aged.by_day.len() - 1),
            peak_resident_bytes() as f64 / 1e6,
        );
    }
    Ok(())
}
