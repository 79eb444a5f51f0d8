//! Plain text for a terminal or a pipe.

use crate::{Block, Document, Table};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Nothing but a thin line under the header.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The most that is shown of one text, in letters: a file of somebody else's may have megabytes in a field. JSON and
/// HTML have it whole.
const TEXT: usize = 10_000;

fn printable(text: &str) -> String {
    shortened(units::text::printable(text))
}

fn shortened(text: String) -> String {
    match units::text::shortened(&text, TEXT) {
        Cow::Owned(short) => short,
        Cow::Borrowed(_) => text,
    }
}

pub fn render(document: &Document, width: Option<u16>) -> String {
    let mut out = String::new();
    if !document.title.is_empty() {
        out.push_str(&printable(&document.title));
        out.push('\n');
    }
    for block in document.shown(false) {
        if !out.is_empty() {
            out.push('\n');
        }
        match block {
            Block::Heading(text) => {
                let text = printable(text);
                out.push_str(&text);
                out.push('\n');
                out.push_str(&"-".repeat(text.chars().count()));
                out.push('\n');
            }
            Block::Paragraph(text) => wrapped(&mut out, "", &printable(text), width),
            Block::List(items) => {
                for item in items {
                    wrapped(&mut out, "  * ", &printable(item), width);
                }
            }
            Block::Code(text) | Block::TextOnly(text) => {
                for line in text.lines() {
                    out.push_str("    ");
                    out.push_str(&printable(line));
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
/// A name is not broken where that can be helped: it tells what the row is about.
const NAME: usize = 28;
/// A cell of more letters is a sentence: it needs so many columns, or it stands below the table.
const SENTENCE: usize = 40;
const SENTENCE_LEAST: usize = 28;
/// Columns before the first column of a table, and between two: where there is room, and where there is little.
const INDENT: usize = 2;
const GAP: usize = 3;
const GAP_LEAST: usize = 2;

/// The room of a table.
#[derive(Clone, Copy)]
struct Room {
    limit: usize,
    gap: usize,
}

/// What is known of a column's width, in letters.
struct Wide {
    is_number: bool,
    /// Of its longest cell or its title.
    natural: usize,
    /// Below this, numbers and words would be broken.
    least: usize,
}

/// A table, as wide as it may be. What has no room is moved and never left out: sentences are listed below the table,
/// by the names of their rows, and columns that do not fit go on below under the same names.
fn table(out: &mut String, table: &Table, width: Option<u16>) {
    if !table.caption.is_empty() {
        wrapped(out, "", &printable(&table.caption), width);
    }
    let titles: Vec<String> = table.columns.iter().map(|c| printable(&c.title)).collect();
    let cells: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(|cell| shortened(cell.shown())).collect()).collect();
    let wide: Vec<Wide> = (0..titles.len()).map(|i| wide(table, &titles, &cells, i)).collect();
    let mut room = Room { limit: width.map_or(usize::MAX, |width| usize::from(width).max(INDENT + WORD)), gap: GAP };
    let mut columns: Vec<usize> = (0..titles.len()).collect();
    if needed(&wide, &columns, true, room.gap) > room.limit {
        room.gap = GAP_LEAST;
    }
    let mut notes = Vec::new();
    while needed(&wide, &columns, true, room.gap) > room.limit {
        // The last of the sentences gives way first.
        let is_sentence = |i: &usize| !wide[*i].is_number && wide[*i].natural > SENTENCE;
        let name_of = |i: usize| columns.iter().copied().rfind(|&other| other < i && !wide[other].is_number);
        let Some((sentence, name)) =
            columns.iter().rev().filter(|i| is_sentence(i)).find_map(|&i| Some((i, name_of(i)?)))
        else {
            break;
        };
        columns.retain(|&i| i != sentence);
        notes.insert(0, (sentence, name));
    }
    for part in parts(&wide, &columns, room) {
        if part.1 {
            out.push('\n');
        }
        let widths = widths(&wide, &part.0, room);
        drawn(out, &titles, &cells, &wide, &part.0, &widths, room.gap);
    }
    for (sentence, name) in notes {
        let (mut said, mut seen): (Vec<(&str, &str)>, _) = (Vec::new(), BTreeSet::new());
        for row in &cells {
            let note = (row[name].as_str(), row[sentence].as_str());
            if !note.1.is_empty() && seen.insert(note) {
                said.push(note);
            }
        }
        let title = &titles[sentence];
        out.push_str(&format!("  {}:\n", if title.is_empty() { "Notes" } else { title }));
        for (name, note) in said {
            wrapped(out, "    * ", &format!("{name}: {note}"), width);
        }
    }
}

fn wide(table: &Table, titles: &[String], cells: &[Vec<String>], column: usize) -> Wide {
    let is_number = table.rows.iter().all(|row| row.get(column).is_none_or(|cell| cell.is_number()));
    let letters = |text: &str| text.chars().count();
    let word = |text: &str| text.split(' ').map(letters).max().unwrap_or(0);
    let shown = || cells.iter().filter_map(|row| row.get(column));
    let title = titles.get(column).map_or("", String::as_str);
    let longest = shown().map(|cell| letters(cell)).max().unwrap_or(0);
    let natural = longest.max(letters(title));
    let least = match (is_number, column) {
        // A number broken over lines is unreadable; its title may be broken.
        (true, _) => longest.max(word(title)),
        (false, _) => {
            let most = if longest > SENTENCE { WORD } else { NAME };
            shown().map(|cell| word(cell)).max().unwrap_or(0).max(word(title)).min(most)
        }
    };
    Wide { is_number, natural, least }
}

/// The letters that columns need: `readable`, or at the very least.
fn needed(wide: &[Wide], columns: &[usize], readable: bool, gap: usize) -> usize {
    let each = columns.iter().map(|&i| match &wide[i] {
        w if readable && !w.is_number && w.natural > SENTENCE => w.natural.min(SENTENCE_LEAST.max(w.least)),
        w => w.least,
    });
    INDENT + each.sum::<usize>() + gap * columns.len().saturating_sub(1)
}

/// Columns cut into parts that fit, each with the names of the rows; whether it goes on from another one.
fn parts(wide: &[Wide], columns: &[usize], room: Room) -> Vec<(Vec<usize>, bool)> {
    let names = columns.iter().position(|&i| !wide[i].is_number).map_or(0, |at| at + 1);
    let (names, others) = columns.split_at(names.min(columns.len()));
    let mut parts = vec![(names.to_vec(), false)];
    for &column in others {
        let (part, _) = parts.last().expect("it begins with one");
        let with: Vec<usize> = part.iter().copied().chain([column]).collect();
        let is_alone = part.len() == names.len();
        match needed(wide, &with, false, room.gap) <= room.limit || is_alone {
            true => parts.last_mut().expect("it begins with one").0 = with,
            false => parts.push((names.iter().copied().chain([column]).collect(), true)),
        }
    }
    parts
}

/// How wide each column is: at least what it needs, and what is left goes to words first, evenly, then to titles of
/// numbers.
fn widths(wide: &[Wide], columns: &[usize], room: Room) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|&i| wide[i].least).collect();
    let mut left = room.limit.saturating_sub(needed(wide, columns, false, room.gap));
    for numbers in [false, true] {
        let of_kind = || columns.iter().enumerate().filter(|(_, i)| wide[**i].is_number == numbers);
        loop {
            let hungry: Vec<usize> =
                of_kind().filter(|(at, i)| widths[*at] < wide[**i].natural).map(|(at, _)| at).collect();
            if hungry.is_empty() || left < hungry.len() {
                break;
            }
            let share = left / hungry.len();
            for at in hungry {
                let more = share.min(wide[columns[at]].natural - widths[at]);
                widths[at] += more;
                left -= more;
            }
        }
    }
    // Names alone may be wider than the terminal: they are broken.
    let too_many =
        (INDENT + widths.iter().sum::<usize>() + room.gap * columns.len().saturating_sub(1)).saturating_sub(room.limit);
    if let Some(widest) = widths.iter_mut().zip(columns).filter(|(_, i)| !wide[**i].is_number).map(|(w, _)| w).max() {
        *widest = widest.saturating_sub(too_many).max(WORD.min(*widest));
    }
    widths
}

fn drawn(
    out: &mut String,
    titles: &[String],
    cells: &[Vec<String>],
    wide: &[Wide],
    columns: &[usize],
    widths: &[usize],
    gap: usize,
) {
    let mut shown = comfy_table::Table::new();
    shown.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::MAX);
    shown.set_header(columns.iter().map(|&i| titles[i].as_str()));
    for row in cells {
        shown.add_row(columns.iter().map(|&i| row[i].as_str()));
    }
    for (at, column) in shown.column_iter_mut().enumerate() {
        let alignment = if wide[columns[at]].is_number { CellAlignment::Right } else { CellAlignment::Left };
        column.set_cell_alignment(alignment);
        // One more is between columns anyhow.
        let between = gap.saturating_sub(1) as u16;
        let padding = (if at == 0 { INDENT as u16 } else { 0 }, if at + 1 == columns.len() { 0 } else { between });
        column.set_padding(padding);
        let content = u16::try_from(widths[at]).unwrap_or(u16::MAX / 2).max(1);
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(content.saturating_add(padding.0 + padding.1))));
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
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    }

    fn costs() -> Document {
        let columns =
            ["Cost", "Times", "Each, ext4 (bundled)", "Each, xfs (bundled)", "Meaning"].map(|title| (title, title));
        let mut table = Table::new("t", "", &columns);
        for (cost, meaning) in [
            ("fds_cr", "fdatasync of a new file, per dirty bytes."),
            ("mmap", "mmap and munmap of a file's first 64 KB."),
        ] {
            table.row(vec![cost.into(), Cell::Count(1_981), Cell::Ns(659e3), Cell::Ns(481e3), meaning.into()]);
        }
        let mut document = Document::new("");
        document.table(table);
        document
    }

    /// `fsage predict --explain` wrote meanings one word to a line beside a table of 140 columns.
    #[test]
    fn what_a_cost_means_stands_below_a_table_that_has_no_room_for_it() {
        let wide = costs().to_text(Some(110));
        assert!(wide.contains("481 µs   fdatasync of a new file"), "{wide}");
        let narrow = costs().to_text(Some(60));
        assert!(narrow.contains("  Meaning:\n    * fds_cr: fdatasync of a new file, per dirty bytes.\n"), "{narrow}");
        for (text, most) in [(&wide, 110), (&narrow, 60)] {
            assert!(text.lines().all(|line| line.chars().count() <= most), "{text}");
        }
    }

    /// One field of five megabytes was wrapped in a time that grew with its square: minutes, and then hours.
    #[test]
    fn a_text_of_megabytes_is_shortened_and_says_so() {
        for long in ["x".repeat(5 << 20), "word ".repeat(1 << 20)] {
            let mut table = Table::new("t", &long, &[("Figure", "figure"), ("Value", "value")]);
            table.row(vec!["host".into(), Cell::from(long.as_str())]);
            let mut document = Document::new(long.clone());
            document.heading(long.as_str()).paragraph(long.as_str()).list(vec![long.clone()]).text_only(long.as_str());
            document.table(table);
            for width in [None, Some(80)] {
                let text = document.to_text(width);
                assert!(text.len() < 200_000, "{}", text.len());
                let said = text.split_whitespace().collect::<Vec<_>>().join(" ").matches("characters left out").count();
                assert!(said >= 7, "{said} of 7");
            }
            assert!(document.to_html().contains(&long));
        }
    }

    /// Nothing is left out: what has no room goes on below, beside the names again.
    #[test]
    fn columns_that_do_not_fit_go_on_below() {
        let text = costs().to_text(Some(30));
        assert_eq!(
            (text.matches("481 µs").count(), text.matches("659 µs").count(), text.matches("1,981").count()),
            (2, 2, 2),
            "{text}"
        );
        assert!(text.lines().filter(|line| line.starts_with("  fds_cr")).count() > 1, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
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
