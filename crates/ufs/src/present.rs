//! What was copied out of an image, and into one, and what the check of a disk of the laboratory took.

use crate::extract::Extracted;
use crate::insert::Inserted;
use document::{Cell, Document, Table};
use kernel::RawTimes;

fn add(table: &mut Table, figure: &str, value: Cell) {
    table.row(vec![Cell::from(figure), value]);
}

/// What both directions have: so many files, directories, symbolic links, further names and special files.
fn copied(counts: [u64; 5]) -> Table {
    let figures = ["files", "directories", "symbolic links", "further names of the same files", "special files"];
    let mut table = Table::new("copied", "", &[("Figure", "figure"), ("Value", "value")]);
    for (figure, count) in figures.into_iter().zip(counts) {
        add(&mut table, figure, Cell::Count(count));
    }
    table
}

/// Files copied out of an image.
pub fn extracted(done: &Extracted) -> Document {
    let mut table = copied([done.files, done.directories, done.symlinks, done.hard_links, done.specials]);
    // Said where there is something to say: most images have none.
    for (figure, count) in [
        ("setuid and setgid left out (--owners --special)", done.set_ids_dropped),
        ("devices left out (--owners --special)", done.devices_left_out),
    ] {
        if count > 0 {
            add(&mut table, figure, Cell::Count(count));
        }
    }
    add(&mut table, "data", Cell::Bytes(done.data_bytes as f64));
    let mut document = Document::new("");
    document.table(table);
    left_out(&mut document, &[done.left_out.as_slice(), &done.bad_links].concat());
    document
}

/// What was copied into an image.
pub fn inserted(image: &str, done: &Inserted) -> Document {
    let mut document = Document::new(format!("Copied into {image}"));
    into(&mut document, done);
    document
}

/// The same as part of another document.
pub fn into(document: &mut Document, done: &Inserted) {
    let mut table = copied([done.files, done.directories, done.symlinks, done.hard_links, done.specials]);
    add(&mut table, "files replaced", Cell::Count(done.replaced));
    add(&mut table, "data", Cell::Bytes(done.data_bytes as f64));
    document.table(table);
    left_out(document, &done.left_out);
}

/// What a check of a laboratory's disk cost.
pub fn checked_in_virtual_time(document: &mut Document, machine: &str, drive: &str, times: &RawTimes) {
    let mut table = Table::new("virtual_time", "", &[("Figure", "figure"), ("Value", "value")]);
    add(&mut table, "machine", Cell::from(machine));
    add(&mut table, "drive", Cell::from(drive));
    add(&mut table, "time", Cell::Ns(times.elapsed_ns as f64));
    add(&mut table, "of that the processor's", Cell::Ns(times.processor_ns as f64));
    add(&mut table, "requests to read", Cell::Count(times.device.reads));
    add(&mut table, "read", Cell::Bytes(times.device.read_bytes as f64));
    add(&mut table, "requests to write", Cell::Count(times.device.writes));
    add(&mut table, "written", Cell::Bytes(times.device.write_bytes as f64));
    document.heading("In virtual time").table(table);
}

fn left_out(document: &mut Document, reasons: &[String]) {
    if !reasons.is_empty() {
        document.heading("Left out").list(reasons.to_vec());
    }
}
