//! A workload profile held against the tree on disk: [`crate::verify`].

use crate::verify::{Differs, Verification};
use document::{Cell, Document, Table};

/// What was compared, what could not be, and what differs.
pub fn verification(profile: &str, result: &Verification) -> Document {
    let mut document = Document::new(format!("{profile} against {}", result.tree));
    let verdict = match (result.differences, result.calls_without_path) {
        (0, 0) => "Snapshot and trace lead to the tree on disk.".to_owned(),
        (0, _) => "No difference, but the trace does not tell the paths of all calls.".to_owned(),
        (1, _) => "One difference.".to_owned(),
        (n, _) => format!("{n} differences."),
    };
    document.paragraph(verdict);
    let mut counts = Table::new("verification", "", &[("Count", "count"), ("What", "what")]);
    for (count, what) in [
        (result.names, "names compared"),
        (result.sizes, "lengths compared (targets of symbolic links too)"),
        (result.links, "link counts compared"),
        (result.sizes_unknown, "lengths unknown"),
        (result.links_unknown, "link counts unknown"),
        (result.types_unknown, "types unknown"),
        (result.not_compared, "names on disk not compared: their directories are not known whole"),
        (result.unfinished_calls, "calls that did not return in the trace"),
        (result.calls_without_path, "calls whose path the trace does not tell"),
    ] {
        counts.row(vec![Cell::Count(count), Cell::from(what)]);
    }
    document.table(counts);
    if !result.unreadable.is_empty() {
        document.paragraph("Not readable on disk:").list(result.unreadable.clone());
    }
    if result.differences > 0 {
        let columns = [("Differs", "differs"), ("Expected", "expected"), ("On disk", "found"), ("Path", "path")];
        let mut table = Table::new("differences", "", &columns);
        for difference in &result.listed {
            table.row(vec![
                Cell::from(differs(difference.differs)),
                Cell::from(difference.expected.clone()),
                Cell::from(difference.found.clone()),
                Cell::from(difference.path.clone()),
            ]);
        }
        document.table(table);
        let listed = result.listed.len() as u64;
        if listed < result.differences {
            document.paragraph(format!("{} more are not listed.", result.differences - listed));
        }
    }
    document
}

fn differs(differs: Differs) -> &'static str {
    match differs {
        Differs::Missing => "missing",
        Differs::Unexpected => "unexpected",
        Differs::Type => "type",
        Differs::Size => "size",
        Differs::Links => "links",
        Differs::Target => "target",
        Differs::Identity => "identity",
    }
}
