//! Crashes: states by verdict, and failures made small.

use crate::{Campaign, Class, OpenWrite, Replayed, Undone};
use document::{Cell, Document, Table};
use units::show;

/// What a search through the states of crashes has found. `command` is the beginning of the command that makes a state
/// again.
pub fn crashes(found: &Campaign, command: &str) -> Document {
    let mut document = Document::new(format!("Crashes of {}", found.target));
    let tally = &found.tally;
    let mut table = Table::new("verdicts", "", &[("Verdict", "verdict"), ("States", "states"), ("Share", "share")]);
    let share = |n: u64| if tally.states > 0 { n as f64 / tally.states as f64 } else { 0.0 };
    for class in Class::ALL {
        let n = tally.of(class);
        table.row(vec![Cell::from(class.title()), Cell::Count(n), Cell::Share(share(n))]);
    }
    table.row(vec![Cell::from("distinct states"), Cell::Count(tally.states), Cell::Empty]);
    document.table(table);
    let mut about = Table::new("about", "", &[("Figure", "figure"), ("Value", "value")]);
    let mut add = |figure: &str, value: Cell| about.row(vec![Cell::from(figure), value]);
    add("sequences of operations", Cell::Count(tally.sequences));
    add("operations refused", Cell::Count(tally.refused));
    add("moments", Cell::Count(tally.moments));
    add("moments of which every state was looked at", Cell::Count(tally.moments_complete));
    add("states of a crash during recovery", Cell::Count(tally.in_recovery));
    add("states in which a file shows old bytes of the disk", Cell::Count(tally.exposed));
    add("the drive's write cache", Cell::from(found.write_cache));
    add("writes under way", Cell::from(found.under_way));
    add("seed", Cell::from(found.seed.to_string()));
    document.table(about);
    if !tally.events.is_empty() {
        document.heading("What recovery met");
        let mut events = Table::new("events", "", &[("Event", "event"), ("Times", "times")]);
        tally.events.iter().for_each(|(name, n)| events.row(vec![Cell::from(name.as_str()), Cell::Count(*n)]));
        document.table(events);
    }
    if found.moment_of > 1 {
        document.paragraph(format!("One of {} moments was looked at.", show::count(found.moment_of)));
    }
    if found.cut_short {
        document.paragraph("There was no memory for all of it: what came later is left out.");
    }
    if let Some(undone) = &found.undone {
        document.paragraph(match undone {
            Undone::States => "There were as many states as were asked for; there are more.",
            Undone::Stopped => "It was stopped before its end.",
        });
    }
    for failure in &found.failures {
        document.heading(failure.class.title());
        document.paragraph(failure.why.clone());
        document.paragraph(format!("After: {}", failure.operations));
        if failure.found_in_length > failure.length {
            document.paragraph(format!(
                "Found in a sequence of {}.",
                show::counted(failure.found_in_length as u64, "operation", "operations")
            ));
        }
        open_writes(&mut document, &failure.writes);
        // In one line, for a shell to take.
        document
            .paragraph("Again:")
            .code(format!("{command} --ops '{}' --state {}", failure.operations, failure.state));
    }
    document
}

/// One state made again.
pub fn state(replayed: &Replayed) -> Document {
    let mut document = Document::new(format!("State {} of {}", replayed.state, replayed.target));
    document.paragraph(format!("Verdict: {}", replayed.class.title()));
    if !replayed.why.is_empty() {
        document.paragraph(replayed.why.clone());
    }
    open_writes(&mut document, &replayed.writes);
    document
}

fn open_writes(document: &mut Document, writes: &[OpenWrite]) {
    if writes.is_empty() {
        document.paragraph("No write was open: what had been asked for was there.");
        return;
    }
    let columns = [("Write at byte", "at_byte"), ("Sectors that matter", "sectors"), ("There", "there")];
    let mut table = Table::new("writes", "", &columns);
    for write in writes {
        let (sectors, there) = (write.sectors as u64, write.there as u64);
        table.row(vec![Cell::from(write.at_byte.to_string()), Cell::Count(sectors), Cell::Count(there)]);
    }
    document.table(table);
}
