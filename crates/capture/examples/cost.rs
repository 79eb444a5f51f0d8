//! What the programs in the kernel cost: a command's wall-clock time as it is and recorded, in turns, with the records
//! thrown away. `cost ROUNDS COMMAND...`. What storing and understanding the records costs is not in it
//! (validation/overhead.sh).

use capture::{Options, Recorder};
use posix::held::Held;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trace::record::Target;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let rounds: usize = arguments.next().and_then(|n| n.to_str()?.parse().ok()).expect("cost ROUNDS COMMAND...");
    let command: Vec<_> = arguments.collect();
    let (program, rest) = command.split_first().expect("cost ROUNDS COMMAND...");
    let held = || {
        let mut command = Command::new(program);
        command.args(rest).stdin(Stdio::null()).stdout(Stdio::null());
        Held::spawn(command).expect("a process")
    };
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let waiting = held();
        let begun = Instant::now();
        waiting.release().and_then(|mut child| child.wait()).expect("the command");
        let plain = begun.elapsed();

        let waiting = held();
        let target = Target::Command(waiting.pid());
        let mut recorder = Recorder::start(&target, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let begun = Instant::now();
        let mut child = waiting.release().expect("the command");
        let waiter = std::thread::spawn(move || {
            child.wait().expect("the command");
            Instant::now()
        });
        let mut bytes = 0;
        while !waiter.is_finished() {
            bytes += recorder.drain(&mut |_| {});
            std::thread::sleep(Duration::from_millis(5));
        }
        let recorded = waiter.join().expect("a time") - begun;
        let totals = recorder.finish(&mut |chunk| bytes += chunk.len());
        let ratio = recorded.as_secs_f64() / plain.as_secs_f64();
        println!(
            "plain {:.3} s, recorded {:.3} s, ratio {ratio:.3}; {} records of {} bytes, {} lost",
            plain.as_secs_f64(),
            recorded.as_secs_f64(),
            totals.records,
            bytes,
            totals.lost
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let (first, last) = (ratios.first().copied().unwrap_or(0.0), ratios.last().copied().unwrap_or(0.0));
    println!("ratio: median {:.3}, from {first:.3} to {last:.3}", ratios.get(ratios.len() / 2).copied().unwrap_or(0.0));
}
