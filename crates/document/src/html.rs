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
    let blocks = Document::in_order_of_a_page(document.shown(true));
    contents(&mut out, &blocks);
    let mut section = 0;
    for block in blocks {
        if let Block::Heading(text) = block {
            section += 1;
            out.push_str(&format!("<h2 id=\"section-{section}\">{}</h2>\n", escaped(text)));
        } else {
            self::block(&mut out, block);
        }
    }
    if let Some(origin) = &document.origin {
        out.push_str("<footer>\n<dl>\n");
        for (what, value) in origin.facts() {
            out.push_str(&format!("<dt>{what}</dt><dd>{}</dd>\n", escaped(&value)));
        }
        out.push_str("</dl>\n</footer>\n");
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

/// Pages of so many sections begin with a list of them.
const SECTIONS: usize = 4;
/// A longer list is folded, so that what the page says is in the first screen.
const SECTIONS_SHOWN: usize = 12;

fn contents(out: &mut String, blocks: &[&Block]) {
    let headings = || {
        blocks.iter().filter_map(|block| match block {
            Block::Heading(text) => Some(text),
            _ => None,
        })
    };
    let sections = headings().count();
    if sections < SECTIONS {
        return;
    }
    out.push_str("<nav aria-label=\"Contents\">\n");
    let folded = sections > SECTIONS_SHOWN;
    if folded {
        out.push_str(&format!("<details>\n<summary>Contents: {sections} sections</summary>\n"));
    }
    out.push_str("<ul>\n");
    for (i, text) in headings().enumerate() {
        out.push_str(&format!("<li><a href=\"#section-{}\">{}</a></li>\n", i + 1, escaped(text)));
    }
    out.push_str(if folded { "</ul>\n</details>\n</nav>\n" } else { "</ul>\n</nav>\n" });
}

fn block(out: &mut String, block: &Block) {
    match block {
        // Its number is the page's matter.
        Block::Heading(_) => {}
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
                "<figure data-plot>\n<figcaption>{}</figcaption>\n<div class=\"controls\"></div>\n<div \
                 class=\"plot\"></div>\n<p class=\"save\"></p>\n<script \
                 type=\"application/json\">{spec}</script>\n</figure>\n",
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
    use crate::{Cell, Document, Origin, Plot, Table};
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
    fn a_page_begins_with_its_sections_and_ends_with_where_it_comes_from() {
        let mut document = Document::new("T");
        for section in ["A<", "B", "C", "D"] {
            document.heading(section).paragraph("x");
        }
        let none = document.to_html();
        assert!(!none.contains("<footer>"), "nothing is known of it");
        document.origin = Some(Origin {
            command: "fsage predict 'a<b'".to_owned(),
            version: "fsage 1".to_owned(),
            seed: Some(7),
            ..Origin::default()
        });
        let html = document.to_html();
        assert!(
            html.contains("<li><a href=\"#section-1\">A&lt;</a></li>") && html.contains("<h2 id=\"section-4\">D</h2>"),
            "{html}"
        );
        for part in
            ["<dd>fsage predict &#39;a&lt;b&#39;</dd>", "<dt>version</dt><dd>fsage 1</dd>", "<dt>seed</dt><dd>7</dd>"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<dt>machine</dt>"), "what is not known is not said");
        assert!(document.to_markdown().ends_with("version: fsage 1; seed: 7\n"), "{}", document.to_markdown());
        let mut short = Document::new("T");
        short.heading("A").paragraph("x");
        assert!(!short.to_html().contains("<nav"), "a list of one section says nothing");
        let mut long = Document::new("a page");
        for _ in 0..=super::SECTIONS_SHOWN {
            long.heading("one").paragraph("x");
        }
        assert!(
            long.to_html()
                .contains("<nav aria-label=\"Contents\">\n<details>\n<summary>Contents: 13 sections</summary>")
        );
    }

    /// The map of `fsage age` stood below 10,000 pixels of tables.
    #[test]
    fn figures_stand_before_the_tables_of_their_section() {
        let mut table = Table::new("t", "", &[("A", "a")]);
        table.row(vec![Cell::from("cell")]);
        let plot = |title: &str| Plot { title: title.to_owned(), spec: json!({}) };
        let mut document = Document::new("T");
        document
            .heading("One")
            .paragraph("said")
            .table(table.clone())
            .paragraph("after")
            .plot(plot("first"))
            .plot(plot("second"));
        document.heading("Two").table(table).plot(plot("third"));
        let html = document.to_html();
        let at = |text: &str| html.find(&format!(">{text}<")).unwrap_or_else(|| panic!("{text} is not there"));
        let order = ["One", "said", "first", "second", "after", "Two", "third"].map(at);
        assert!(order.is_sorted(), "{order:?}");
        assert!(at("second") < at("cell") && html.rfind(">cell<") > Some(at("third")));
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
