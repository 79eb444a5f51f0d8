//! How fast mounted file systems are beside one another: small files made, large files written and read.
//!
//! `mount [--files N] [--file-kb N] [--large-mb N] [--rounds N] NAME=DIR NAME=DIR…`: in each round each directory gets
//! its turn, the order by turns; prints the median of each, and each one's speed as a share of the first one's. Large
//! files are read with the kernel's pages of them dropped (`POSIX_FADV_DONTNEED`), so that every byte comes from
//! whoever serves the mount; what lies below that (an image, files) stays cached.

use anyhow::{Context as _, bail, ensure};
use fsage_benchmarks::CommandLine;
use stats::median;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

struct Arguments {
    files: usize,
    file_bytes: usize,
    large_bytes: usize,
    rounds: usize,
    places: Vec<(String, PathBuf)>,
}

fn arguments() -> anyhow::Result<Arguments> {
    let mut found =
        Arguments { files: 2000, file_bytes: 4 << 10, large_bytes: 128 << 20, rounds: 5, places: Vec::new() };
    let mut args = CommandLine::of_program();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--files" => found.files = args.number()?,
            "--file-kb" => found.file_bytes = args.number::<usize>()? << 10,
            "--large-mb" => found.large_bytes = args.number::<usize>()? << 20,
            "--rounds" => found.rounds = args.number()?,
            _ => match arg.split_once('=') {
                Some((name, dir)) => found.places.push((name.to_owned(), PathBuf::from(dir))),
                None => bail!("{arg}: mount [--files N] [--file-kb N] [--large-mb N] [--rounds N] NAME=DIR NAME=DIR…"),
            },
        }
    }
    ensure!(!found.places.is_empty(), "no directory is given");
    Ok(found)
}

/// What is measured, in the order of the table.
const MEASURES: [(&str, &str); 4] = [("create", "files/s"), ("remove", "files/s"), ("write", "MB/s"), ("read", "MB/s")];

fn small_files(at: &Path, arguments: &Arguments) -> anyhow::Result<[f64; 2]> {
    let data = vec![7; arguments.file_bytes];
    let dir = at.join("small");
    fs::create_dir(&dir)?;
    let begun = Instant::now();
    for n in 0..arguments.files {
        File::create_new(dir.join(format!("file-{n}")))?.write_all(&data)?;
    }
    let made_s = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for n in 0..arguments.files {
        fs::remove_file(dir.join(format!("file-{n}")))?;
    }
    let removed_s = begun.elapsed().as_secs_f64();
    fs::remove_dir(&dir)?;
    Ok([made_s, removed_s].map(|s| arguments.files as f64 / s))
}

fn large_file(at: &Path, arguments: &Arguments) -> anyhow::Result<[f64; 2]> {
    let mut buffer: Vec<u8> = (0..1_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let path = at.join("large");
    let mut file = File::create_new(&path)?;
    let begun = Instant::now();
    for _ in 0..arguments.large_bytes / buffer.len() {
        file.write_all(&buffer)?;
    }
    let written_s = begun.elapsed().as_secs_f64();
    file.sync_all()?;
    drop(file);
    let mut file = File::open(&path)?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    let begun = Instant::now();
    let mut read = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => read += n,
        }
    }
    let read_s = begun.elapsed().as_secs_f64();
    ensure!(read == arguments.large_bytes, "{}: {read} bytes read", path.display());
    fs::remove_file(&path)?;
    Ok([written_s, read_s].map(|s| arguments.large_bytes as f64 / 1e6 / s))
}

fn main() -> anyhow::Result<()> {
    let arguments = arguments()?;
    let count = arguments.places.len();
    let mut speeds = vec![[const { Vec::new() }; MEASURES.len()]; count];
    for round in 0..arguments.rounds {
        for turn in 0..count {
            let n = (round + turn) % count;
            let (name, at) = &arguments.places[n];
            let [create, remove] = small_files(at, &arguments).with_context(|| name.clone())?;
            let [write, read] = large_file(at, &arguments).with_context(|| name.clone())?;
            for (all, one) in speeds[n].iter_mut().zip([create, remove, write, read]) {
                all.push(one);
            }
        }
    }
    let middle: Vec<[f64; MEASURES.len()]> =
        speeds.into_iter().map(|all| all.map(|of_one| median(&of_one).unwrap_or(0.0))).collect();
    for (n, (name, _)) in arguments.places.iter().enumerate() {
        for (m, (measure, unit)) in MEASURES.iter().enumerate() {
            let (here, first) = (middle[n][m], middle[0][m]);
            println!(
                "{name:<16} {measure:<8} {here:>10.0} {unit:<8} {:>5.2} of {}",
                here / first,
                arguments.places[0].0
            );
        }
    }
    Ok(())
}
