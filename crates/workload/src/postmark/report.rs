//! The program's own report, in its layout (`set report verbose`).

use crate::phase::Phase;
use crate::target_result::{Round, TargetResult};

/// The report of the last round as the program would print it: times in whole seconds, at least one. `None` where a
/// phase is missing.
///
/// As in the program, the first line on deleted files gives the number of created ones, and what is read and written is
/// per second of the whole run.
pub fn text(target: &TargetResult) -> Option<String> {
    let last = |phase| target.phase("PostMark", phase)?.rounds.last();
    let (create, transactions, delete) = (last(Phase::Create)?, last(Phase::Transactions)?, last(Phase::Delete)?);
    let seconds = |rounds: &[&Round]| (rounds.iter().map(|r| r.time_ns(true)).sum::<u64>() / 1_000_000_000).max(1);
    let total_s = seconds(&[create, transactions, delete]);
    let (create_s, transactions_s, delete_s) = (seconds(&[create]), seconds(&[transactions]), seconds(&[delete]));
    let pool = create.count("created")?;
    let mixed = transactions.count("created")?;
    let (read, appended) = (transactions.count("read")?, transactions.count("appended")?);
    let (deleted, rest) = (transactions.count("deleted")?, delete.count("deleted")?);
    let bytes_read = transactions.count("bytes read")?;
    let bytes_written = create.count("bytes written")? + transactions.count("bytes written")?;
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    line("Time:".into());
    line(format!("\t{total_s} seconds total"));
    let done = transactions.completed;
    line(format!("\t{transactions_s} seconds of transactions ({} per second)", done / transactions_s));
    line("\nFiles:".into());
    line(format!("\t{} created ({} per second)", pool + mixed, (pool + mixed) / total_s));
    line(format!("\t\tCreation alone: {pool} files ({} per second)", pool / create_s));
    line(format!("\t\tMixed with transactions: {mixed} files ({} per second)", mixed / transactions_s));
    line(format!("\t{read} read ({} per second)", read / transactions_s));
    line(format!("\t{appended} appended ({} per second)", appended / transactions_s));
    line(format!("\t{} deleted ({} per second)", pool + mixed, (pool + mixed) / total_s));
    line(format!("\t\tDeletion alone: {rest} files ({} per second)", rest / delete_s));
    line(format!("\t\tMixed with transactions: {deleted} files ({} per second)", deleted / transactions_s));
    line("\nData:".into());
    for (bytes, what) in [(bytes_read, "read"), (bytes_written, "written")] {
        line(format!("\t{} {what} ({} per second)", scaled(bytes as f64), scaled(bytes as f64 / total_s as f64)));
    }
    Some(text)
}

/// A size in the program's words.
fn scaled(bytes: f64) -> String {
    const KILOBYTE: f64 = 1024.0;
    match bytes {
        _ if bytes / (KILOBYTE * KILOBYTE) > 1.0 => format!("{:.2} megabytes", bytes / (KILOBYTE * KILOBYTE)),
        _ if bytes > 0.0 => format!("{:.2} kilobytes", bytes / KILOBYTE),
        _ => format!("{bytes:.6} bytes"),
    }
}
