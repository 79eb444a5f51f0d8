//! The names a workload found.

use crate::Snapshot;
use document::{Cell, Document, Table};
use posix::FileKind;

/// Every name, one a line.
pub fn snapshot(title: &str, snapshot: &Snapshot) -> Document {
    let mut table = Table::new(
        "snapshot",
        "",
        &[
            ("Kind", "kind"),
            ("Mode", "mode"),
            ("Links", "nlink"),
            ("Size", "size_bytes"),
            ("Inode", "ino"),
            ("Known", "provenance"),
            ("Path", "path"),
            ("Target", "target"),
        ],
    );
    for entry in &snapshot.entries {
        let kind = match entry.kind {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Symlink => "symlink",
            FileKind::Special => "special",
        };
        table.row(vec![
            Cell::from(kind),
            Cell::from(format!("{:04o}", entry.mode)),
            Cell::Count(entry.nlink.into()),
            Cell::Bytes(entry.size_bytes as f64),
            Cell::Count(entry.ino),
            Cell::from(entry.provenance.name()),
            Cell::from(units::text::path(&entry.path)),
            Cell::from(entry.target.as_deref().map(units::text::path).unwrap_or_default()),
        ]);
    }
    let mut document = Document::new(title);
    document.table(table);
    document
}
