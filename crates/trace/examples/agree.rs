//! Whether two recordings of one run tell the same: `agree A.workload B.workload`. Prints what differs; ends with 1
//! where anything does.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [left, right] = &arguments[..] else {
        eprintln!("usage: agree A.workload B.workload");
        return ExitCode::from(2);
    };
    let agreement = match trace::agree::profiles(left, right) {
        Ok(agreement) => agreement,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(4);
        }
    };
    for ((aspect, op), count) in &agreement.counts {
        println!("{count:>10} {}: {}", op.name(), aspect.name());
    }
    for difference in &agreement.differences {
        println!("{difference}");
    }
    println!(
        "{} calls, {} files on both sides, {} on one only, {} calls cut off, {} descriptions received, {} differences",
        agreement.calls,
        agreement.files_compared,
        agreement.files_unknown,
        agreement.cut_off,
        agreement.received,
        agreement.total()
    );
    ExitCode::from(u8::from(agreement.total() > 0))
}
