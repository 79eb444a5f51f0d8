//! A document in each medium.

use crate::model::Document;
use crate::{csv, html, markdown, terminal, tidy};

impl Document {
    /// For a terminal (or a pipe). `width`: columns of the terminal, `None` to leave long lines alone.
    pub fn to_text(&self, width: Option<u16>) -> String {
        terminal::render(self, width)
    }

    /// One HTML file that needs nothing else: scripts and data inside, nothing loaded.
    pub fn to_html(&self) -> String {
        html::render(self)
    }

    /// For a repository's docs folder.
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }

    /// Each table as CSV, by the name of its file. Tables of one name are told apart by a number.
    pub fn to_csv(&self) -> Vec<(String, String)> {
        let mut seen: Vec<&str> = Vec::new();
        let mut files = Vec::new();
        for table in self.tables() {
            seen.push(&table.name);
            let name = match seen.iter().filter(|name| **name == table.name).count() {
                1 => format!("{}.csv", table.name),
                n => format!("{}-{n}.csv", table.name),
            };
            files.push((name, csv::render(table)));
        }
        files
    }

    /// Every figure of every table, a row for each.
    pub fn to_tidy(&self) -> Vec<tidy::Figure> {
        self.tables().flat_map(tidy::figures).collect()
    }
}
