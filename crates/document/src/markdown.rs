//! GitHub-flavoured Markdown, for results kept in a repository.

use crate::{Block, Document, Table};

pub fn render(document: &Document) -> String {
    let mut out = String::new();
    if !document.title.is_empty() {
        out.push_str(&format!("# {}\n", escaped(&document.title)));
    }
    for block in document.shown(false) {
        if !out.is_empty() {
            out.push('\n');
        }
        match block {
            Block::Heading(text) => out.push_str(&format!("## {}\n", escaped(text))),
            Block::Paragraph(text) => out.push_str(&format!("{}\n", escaped(text))),
            Block::List(items) => {
                for item in items {
                    out.push_str(&format!("* {}\n", escaped(item)));
                }
            }
            Block::Code(text) | Block::TextOnly(text) => {
                for line in text.lines() {
                    out.push_str(&format!("    {}\n", units::text::printable(line)));
                }
            }
            Block::Table(table) => self::table(&mut out, table),
            Block::Plot(_) => {}
        }
    }
    if let Some(origin) = &document.origin {
        let facts = origin.facts().into_iter().map(|(what, value)| format!("{what}: {}", escaped(&value)));
        out.push_str(&format!("\n---\n\n{}\n", facts.collect::<Vec<_>>().join("; ")));
    }
    out
}

fn table(out: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        out.push_str(&format!("{}\n\n", escaped(&table.caption)));
    }
    let titles: Vec<String> = table.columns.iter().map(|c| escaped(&c.title)).collect();
    out.push_str(&format!("| {} |\n|", titles.join(" | ")));
    for i in 0..table.columns.len() {
        let numeric = table.rows.iter().all(|row| row.get(i).is_none_or(|cell| cell.is_number()));
        out.push_str(if numeric { "---:|" } else { "---|" });
    }
    out.push('\n');
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(&cell.shown())).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
}

/// Text that Markdown takes literally.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in units::text::printable(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '|' | '#') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Document, Table};

    #[test]
    fn a_path_cannot_break_a_table() {
        let mut table = Table::new("t", "", &[("Path", "path"), ("Calls", "calls")]);
        table.row(vec![Cell::from("a|b\nc"), Cell::Count(3)]);
        let mut document = Document::new("T");
        document.table(table);
        assert_eq!(document.to_markdown(), "# T\n\n| Path | Calls |\n|---|---:|\n| a\\|b\\\\nc | 3 |\n");
    }
}
