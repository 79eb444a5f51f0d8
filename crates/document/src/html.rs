//! One self-contained HTML file: styles, scripts and data inside; its own policy forbids loading anything.

use crate::json::hidden_escaped;
use crate::{Block, Document, Table};

/// What every page begins with.
pub const HTML_BEGINS: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";

const VEGA: &str = include_str!("../vendor/vega.min.js");
const VEGA_LITE: &str = include_str!("../vendor/vega-lite.min.js");
const VEGA_EMBED: &str = include_str!("../vendor/vega-embed.min.js");
const STYLE: &str = include_str!("style.css");

/// Vega compiles its expressions with `Function`, hence 'unsafe-eval'; everything else stays shut.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:";

/// Draws every plot, as wide as its column and in the scheme the reader's system asks for, again when either changes.
const DRAW: &str = include_str!("draw.js");

/// A cell of more characters than this is not squeezed, one of no more than that is not broken.
const SENTENCE: usize = 40;
const SHORT: usize = 10;

pub fn render(document: &Document) -> String {
    let has_plots = document.blocks.iter().any(|block| matches!(block, Block::Plot(_)));
    let mut out = String::with_capacity(1 << 20);
    out.push_str(HTML_BEGINS);
    out.push_str(&format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n"));
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str(&format!("<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n", escaped(&document.title)));
    out.push_str(&format!("<h1>{}</h1>\n", escaped(&document.title)));
    for block in document.shown(true) {
        self::block(&mut out, block);
    }
    if has_plots {
        for script in [VEGA, VEGA_LITE, VEGA_EMBED] {
            out.push_str("<script>\n");
            out.push_str(script);
            out.push_str("\n</script>\n");
        }
        out.push_str(&format!("<script>\n{DRAW}</script>\n"));
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn block(out: &mut String, block: &Block) {
    match block {
        Block::Heading(text) => out.push_str(&format!("<h2>{}</h2>\n", escaped(text))),
        Block::Paragraph(text) => out.push_str(&format!("<p>{}</p>\n", escaped(text))),
        Block::List(items) => {
            out.push_str("<ul>\n");
            for item in items {
                out.push_str(&format!("<li>{}</li>\n", escaped(item)));
            }
            out.push_str("</ul>\n");
        }
        Block::Code(text) => {
            let lines: Vec<String> = text.lines().map(escaped).collect();
            out.push_str(&format!("<pre>{}</pre>\n", lines.join("\n")));
        }
        Block::Table(table) => self::table(out, table),
        Block::TextOnly(_) => {}
        Block::Plot(plot) => {
            // In JSON a `<` stands only inside strings, where its escape means the same.
            let spec = hidden_escaped(&plot.spec.to_string()).replace('<', "\\u003c");
            out.push_str(&format!(
                "<figure data-plot>\n<figcaption>{}</figcaption>\n<div class=\"controls\"></div>\n<div class=\"plot\"></div>\n<script type=\"application/json\">{spec}</script>\n</figure>\n",
                escaped(&plot.title)
            ));
        }
    }
}

fn table(out: &mut String, table: &Table) {
    // A caption of the table's own would be as narrow or as wide as the table.
    if table.folded {
        let caption = if table.caption.is_empty() { &table.name } else { &table.caption };
        let rows = table.rows.len();
        let rows = if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
        out.push_str(&format!("<details>\n<summary>{} ({rows})</summary>\n", escaped(caption)));
    } else if !table.caption.is_empty() {
        out.push_str(&format!("<p class=\"caption\">{}</p>\n", escaped(&table.caption)));
    }
    out.push_str("<div class=\"scroll\"><table>\n");
    let numeric: Vec<bool> = (0..table.columns.len())
        .map(|i| table.rows.iter().all(|row| row.get(i).is_none_or(|cell| cell.is_number())))
        .collect();
    let class = |i: usize| if numeric.get(i) == Some(&true) { " class=\"n\"" } else { "" };
    out.push_str("<thead><tr>");
    for (i, column) in table.columns.iter().enumerate() {
        out.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(i), escaped(&column.title)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            let title = if cell.is_number() { format!(" title=\"{}\"", escaped(&cell.raw())) } else { String::new() };
            let shown = cell.shown();
            // In a narrow window a sentence still needs room, and a number stays with its unit.
            let class = match shown.chars().count() {
                chars if chars > SENTENCE => " class=\"long\"",
                chars if chars <= SHORT && class(i).is_empty() => " class=\"short\"",
                _ => class(i),
            };
            out.push_str(&format!("<td{class}{title}>{}</td>", escaped(&shown)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    if table.folded {
        out.push_str("</details>\n");
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in units::text::printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Document, Plot, Table};
    use serde_json::json;

    #[test]
    fn hostile_names_stay_text() {
        let evil = "</script><script>alert(1)</script><!--";
        let mut table = Table::new("t", evil, &[("Path", "path")]);
        table.row(vec![Cell::from(evil)]);
        let mut document = Document::new(evil);
        document.paragraph(evil).table(table).plot(Plot { title: evil.to_owned(), spec: json!({ "name": evil }) });
        let html = document.to_html();
        assert!(!html.contains("<script>alert"), "markup from a name survived");
        // Exactly the elements we wrote ourselves: three libraries, one plot's data, one to draw.
        assert_eq!(html.matches("</script>").count(), 5);
    }

    #[test]
    fn no_library_spells_its_own_end() {
        assert!(
            [super::VEGA, super::VEGA_LITE, super::VEGA_EMBED, super::DRAW]
                .iter()
                .all(|script| !script.contains("</script"))
        );
    }

    #[test]
    fn a_folded_table_shows_its_caption_and_is_whole_elsewhere() {
        let mut table = Table::new("points", "Points <of> it.", &[("x", "x")]).folded();
        table.row(vec![Cell::from(7_u64)]);
        let mut document = Document::new("T");
        document.table(table);
        let html = document.to_html();
        assert!(html.contains("<details>\n<summary>Points &lt;of&gt; it. (1 row)</summary>"), "{html}");
        assert_eq!((html.matches("<details>").count(), html.matches("</details>").count()), (1, 1));
        assert!(!html.contains("<p class=\"caption\">"), "said once");
        assert!(document.to_text(None).contains('7') && document.to_markdown().contains('7'));
    }

    #[test]
    fn nothing_is_loaded_and_tables_alone_carry_no_scripts() {
        let mut document = Document::new("T");
        document.paragraph("x");
        let html = document.to_html();
        assert!(html.len() < 10_000 && !html.contains("<script"));
        assert!(html.contains("default-src 'none'"));
    }
}
