//! Plain text for a terminal or a pipe.

use crate::{Block, Document, Table};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width};

/// Nothing but a thin line under the header.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

pub fn render(document: &Document, width: Option<u16>) -> String {
    let mut out = String::new();
    if !document.title.is_empty() {
        out.push_str(&units::text::printable(&document.title));
        out.push('\n');
    }
    for block in document.shown(false) {
        if !out.is_empty() {
            out.push('\n');
        }
        match block {
            Block::Heading(text) => {
                let text = units::text::printable(text);
                out.push_str(&text);
                out.push('\n');
                out.push_str(&"-".repeat(text.chars().count()));
                out.push('\n');
            }
            Block::Paragraph(text) => wrapped(&mut out, "", &units::text::printable(text), width),
            Block::List(items) => {
                for item in items {
                    wrapped(&mut out, "  * ", &units::text::printable(item), width);
                }
            }
            Block::Code(text) | Block::TextOnly(text) => {
                for line in text.lines() {
                    out.push_str("    ");
                    out.push_str(&units::text::printable(line));
                    out.push('\n');
                }
            }
            Block::Table(table) => self::table(&mut out, table, width),
            Block::Plot(_) => {}
        }
    }
    out
}

/// Words of a table are broken only behind so many letters.
const WORD: usize = 12;

fn table(out: &mut String, table: &Table, width: Option<u16>) {
    if !table.caption.is_empty() {
        wrapped(out, "", &units::text::printable(&table.caption), width);
    }
    let mut shown = comfy_table::Table::new();
    shown.load_style(STYLE);
    match width {
        Some(width) => shown.set_width(width).set_content_arrangement(ContentArrangement::Dynamic),
        None => shown.set_content_arrangement(ContentArrangement::Disabled),
    };
    shown.set_header(table.columns.iter().map(|c| units::text::printable(&c.title)));
    for row in &table.rows {
        shown.add_row(row.iter().map(|cell| cell.shown()));
    }
    for (i, column) in shown.column_iter_mut().enumerate() {
        let numeric = table.rows.iter().all(|row| row.get(i).is_none_or(|cell| cell.is_number()));
        column.set_cell_alignment(if numeric { CellAlignment::Right } else { CellAlignment::Left });
        let padding = (if i == 0 { 2 } else { 0 }, 2);
        column.set_padding(padding);
        if numeric {
            // A number broken over lines is unreadable: prose columns give way first.
            column.set_constraint(ColumnConstraint::ContentWidth);
        } else {
            // So are words of one letter to a line, where numbers take all the width.
            let title = table.columns.get(i).map(|column| units::text::printable(&column.title));
            let cells = table.rows.iter().filter_map(|row| row.get(i)).map(crate::Cell::shown);
            let longest_word = |text: String| text.split(' ').map(|word| word.chars().count()).max();
            let word = title.into_iter().chain(cells).filter_map(longest_word).max().unwrap_or(0).min(WORD) as u16;
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(word + padding.0 + padding.1)));
        }
    }
    for line in shown.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// Breaks prose at spaces; words longer than the line stay whole.
fn wrapped(out: &mut String, bullet: &str, text: &str, width: Option<u16>) {
    let limit = width.map_or(usize::MAX, |w| usize::from(w).max(20));
    let indent = " ".repeat(bullet.len());
    let mut line = bullet.to_owned();
    let mut used = bullet.len();
    let mut empty = true;
    for word in text.split(' ') {
        let len = word.chars().count();
        if !empty && used + 1 + len > limit {
            out.push_str(line.trim_end());
            out.push('\n');
            line = indent.clone();
            used = indent.len();
            empty = true;
        }
        if !empty {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += len;
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Document, Table};

    /// `fsage validate` wrote names of workloads one letter to a line.
    #[test]
    fn numbers_leave_words_their_width() {
        let numbers = ["Predicted", "Measured (least to most)", "Error"].map(|title| (title, title));
        let columns: Vec<_> = [("Workload", "Workload")].into_iter().chain(numbers).collect();
        let mut table = Table::new("t", "", &columns);
        table.row(vec!["mail delivery".into(), Cell::Count(1), Cell::Count(2), Cell::Count(3)]);
        let mut document = Document::new("");
        document.table(table);
        let text = document.to_text(Some(40));
        assert!(text.contains("  Workload ") && text.contains("  delivery\n"), "{text}");
    }

    /// The columns' heads are names of systems, in `predict` and its `--explain`.
    #[test]
    fn no_part_of_a_document_drives_a_terminal() {
        let evil = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}";
        let mut table = Table::new("t", evil, &[(evil, evil)]);
        table.row(vec![Cell::from(evil)]);
        let mut document = Document::new(evil);
        document.heading(evil).paragraph(evil).list(vec![evil.to_owned()]).code(evil).text_only(evil).table(table);
        for text in [document.to_text(None), document.to_text(Some(40)), document.to_markdown(), document.to_html()] {
            let shown = |c: char| c == '\n' || !units::text::is_hidden(c);
            assert!(text.chars().all(shown), "{}", text.escape_debug());
        }
    }
}
