//! The document model: what a report says, before a medium is chosen.

use crate::Plot;
use serde_json::Value;
use units::show;

/// One value of a table. Numbers keep their value, so that CSV gets the number and people get three digits.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A duration in nanoseconds.
    Ns(f64),
    /// A duration with its 95 % interval, nanoseconds.
    NsInterval {
        /// The value.
        value: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// A size in bytes.
    Bytes(f64),
    /// A whole number.
    Count(u64),
    /// A share, 0 to 1.
    Share(f64),
    /// A signed relative difference, 0.1 for 10 % more.
    SignedShare(f64),
    /// A factor: `1.30x`.
    Ratio(f64),
    /// A number without unit.
    Number(f64),
    /// A score from 0 to 1, of which the fourth digit matters.
    Score(f64),
    /// A difference of scores.
    SignedScore(f64),
    /// A number without unit, with its 95 % interval.
    Interval {
        /// The value.
        value: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// Nothing is known.
    Empty,
}

impl Cell {
    /// For people.
    pub fn shown(&self) -> String {
        match self {
            Cell::Text(text) => units::text::printable(text),
            Cell::Ns(ns) => show::duration_ns(*ns),
            Cell::NsInterval { value, low, high } => show::duration_interval_ns(*value, *low, *high),
            Cell::Bytes(bytes) => show::bytes(*bytes),
            Cell::Count(n) => show::count(*n),
            Cell::Share(share) => show::share(*share),
            Cell::SignedShare(share) => show::signed_share(*share),
            Cell::Ratio(ratio) => format!("{}x", show::significant(*ratio)),
            // A count is whole, whatever it was computed with: `97`, not `97.0`.
            Cell::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                let sign = if *number < 0.0 { "-" } else { "" };
                format!("{sign}{}", show::count(number.abs() as u64))
            }
            Cell::Number(number) => show::significant(*number),
            Cell::Score(score) => format!("{score:.4}"),
            Cell::SignedScore(difference) => format!("{difference:+.4}"),
            Cell::Interval { value, low, high } => show::interval(*value, *low, *high),
            Cell::Empty => String::new(),
        }
    }

    /// For programs: the bare number in the unit of its kind (nanoseconds, bytes, shares), text as it is.
    pub fn raw(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(n) => n.to_string(),
            other => other.number().map(|x| x.to_string()).unwrap_or_default(),
        }
    }

    /// The same as a JSON value; nothing known is null.
    pub fn to_json(&self) -> Value {
        match self {
            Cell::Text(text) => Value::from(text.as_str()),
            Cell::Count(n) => Value::from(*n),
            other => other.number().map_or(Value::Null, Value::from),
        }
    }

    /// What is no whole number, in the unit of its kind.
    fn number(&self) -> Option<f64> {
        match self {
            Cell::Text(_) | Cell::Count(_) | Cell::Empty => None,
            Cell::Ns(x)
            | Cell::NsInterval { value: x, .. }
            | Cell::Bytes(x)
            | Cell::Share(x)
            | Cell::SignedShare(x)
            | Cell::Ratio(x)
            | Cell::Interval { value: x, .. }
            | Cell::Number(x)
            | Cell::Score(x)
            | Cell::SignedScore(x) => Some(*x),
        }
    }

    /// Whether it is right-aligned.
    pub fn is_number(&self) -> bool {
        !matches!(self, Cell::Text(_))
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(n: u64) -> Cell {
        Cell::Count(n)
    }
}

/// A column: its title, and the title's unit-bearing name for programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The heading people see.
    pub title: String,
    /// The heading in CSV, with the unit (`total_ns`).
    pub key: String,
    /// What a column of figures is about, where the table has one for each of several systems, and what it says of each
    /// (`total_ns`): the long table ([`crate::tidy`]) has a row for each of them.
    pub of: Option<(String, String)>,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it is called in file names (`ranking`).
    pub name: String,
    /// One sentence above it; empty for none.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// Whether a page shows its caption alone until the reader asks for the rest: figures behind a plot.
    pub folded: bool,
    /// The workload that all of it is of, where its rows name none; empty for none.
    pub workload: String,
}

impl Table {
    /// An empty table; columns as `(title, key)`.
    pub fn new(name: &str, caption: &str, columns: &[(&str, &str)]) -> Table {
        let columns = columns
            .iter()
            .map(|(title, key)| Column { title: (*title).to_owned(), key: (*key).to_owned(), of: None })
            .collect();
        Table {
            name: name.to_owned(),
            caption: caption.to_owned(),
            columns,
            rows: Vec::new(),
            folded: false,
            workload: String::new(),
        }
    }

    /// The same, folded where the medium can.
    #[must_use]
    pub fn folded(self) -> Table {
        Table { folded: true, ..self }
    }

    /// The same, where the column of this key is about one of several systems: which, and what it says of it, with its
    /// unit.
    #[must_use]
    pub fn about(mut self, key: &str, system: &str, metric: &str) -> Table {
        if let Some(column) = self.columns.iter_mut().find(|column| column.key == key) {
            column.of = Some((system.to_owned(), metric.to_owned()));
        }
        self
    }

    /// The same, where every column of figures is about one system.
    #[must_use]
    pub fn all_about(mut self, system: &str) -> Table {
        for column in &mut self.columns {
            column.of = Some((system.to_owned(), column.key.clone()));
        }
        self
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it is not as long as the columns: that is a mistake in the caller, not in its data.
    pub fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "a row of table {} has as many cells as columns", self.name);
        self.rows.push(cells);
    }

    /// Its rows as JSON objects by the columns' keys, numbers as numbers.
    pub fn to_json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let fields = self.columns.iter().zip(row).map(|(column, cell)| (column.key.clone(), cell.to_json()));
            Value::Object(fields.collect())
        };
        Value::Array(self.rows.iter().map(object).collect())
    }
}

/// A part of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A section's heading.
    Heading(String),
    /// Prose.
    Paragraph(String),
    /// A list of sentences.
    List(Vec<String>),
    /// Preformatted lines (a command).
    Code(String),
    /// A table.
    Table(Table),
    /// A plot; shown in HTML only, so whatever it shows must be in a table as well, or in text for where plots are not
    /// shown.
    Plot(Plot),
    /// Preformatted lines in place of a plot, shown where plots are not.
    TextOnly(String),
}

/// What a report comes from: it ends with that where it goes into a file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Origin {
    /// The command, as it was typed.
    pub command: String,
    /// The program and its version.
    pub version: String,
    /// When it was made, as people read it.
    pub time: String,
    /// The machine it was made on.
    pub machine: String,
    /// The seed of random choices, where there are any.
    pub seed: Option<u64>,
}

impl Origin {
    /// As facts, the command first.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let seed = self.seed.map(|seed| ("seed", seed.to_string()));
        let said = |(_, value): &(&str, String)| !value.is_empty();
        let facts = [
            ("command", self.command.clone()),
            ("version", self.version.clone()),
            ("made", self.time.clone()),
            ("machine", self.machine.clone()),
        ];
        facts.into_iter().filter(said).chain(seed).collect()
    }
}

/// A report.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Document {
    /// Its title; empty for none (a table alone on the terminal).
    pub title: String,
    /// Its parts, in order.
    pub blocks: Vec<Block>,
    /// What it comes from, where that is known. The terminal does not show it: who types a command knows it.
    pub origin: Option<Origin>,
}

impl Document {
    /// An empty document.
    pub fn new(title: impl Into<String>) -> Document {
        Document { title: title.into(), ..Document::default() }
    }

    /// The same, where all of it is of one workload.
    #[must_use]
    pub fn of_workload(mut self, name: &str) -> Document {
        for block in &mut self.blocks {
            if let Block::Table(table) = block {
                name.clone_into(&mut table.workload);
            }
        }
        self
    }

    /// Begins a section.
    pub fn heading(&mut self, text: impl Into<String>) -> &mut Document {
        self.blocks.push(Block::Heading(text.into()));
        self
    }

    /// Adds prose; nothing if empty.
    pub fn paragraph(&mut self, text: impl Into<String>) -> &mut Document {
        let text = text.into();
        if !text.is_empty() {
            self.blocks.push(Block::Paragraph(text));
        }
        self
    }

    /// Adds a list; nothing if empty.
    pub fn list(&mut self, items: Vec<String>) -> &mut Document {
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
        self
    }

    /// Adds preformatted text.
    pub fn code(&mut self, text: impl Into<String>) -> &mut Document {
        self.blocks.push(Block::Code(text.into()));
        self
    }

    /// Adds a table; nothing if it has no rows.
    pub fn table(&mut self, table: Table) -> &mut Document {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
        self
    }

    /// Adds a plot.
    pub fn plot(&mut self, plot: Plot) -> &mut Document {
        self.blocks.push(Block::Plot(plot));
        self
    }

    /// Adds preformatted lines for media that show no plots.
    pub fn text_only(&mut self, text: impl Into<String>) -> &mut Document {
        self.blocks.push(Block::TextOnly(text.into()));
        self
    }

    /// The parts between two headings in the order of a page: what is said first, then its plots, then its tables. A
    /// plot that stands before a table stays there.
    pub(crate) fn in_order_of_a_page<'b>(blocks: impl Iterator<Item = &'b Block>) -> Vec<&'b Block> {
        let mut ordered: Vec<&Block> = Vec::new();
        // Where a plot of this section goes: before its first table, or the caption that a paragraph is to it.
        let mut place = 0;
        for block in blocks {
            match block {
                Block::Heading(_) => {
                    ordered.push(block);
                    place = ordered.len();
                }
                Block::Plot(_) => {
                    ordered.insert(place, block);
                    place += 1;
                }
                Block::Table(_) | Block::Code(_) => ordered.push(block),
                Block::Paragraph(_) | Block::List(_) | Block::TextOnly(_) => {
                    let follows_text = place == ordered.len();
                    ordered.push(block);
                    if follows_text {
                        place = ordered.len();
                    }
                }
            }
        }
        ordered
    }

    /// Appends another document's parts under this one's title.
    pub fn append(&mut self, other: Document) -> &mut Document {
        if !other.title.is_empty() {
            self.blocks.push(Block::Heading(other.title));
        }
        self.blocks.extend(other.blocks);
        self
    }

    /// What there is to show in a medium that draws plots, or in one that does not: its parts without the headings of
    /// sections that are empty there.
    pub(crate) fn shown(&self, plots: bool) -> impl Iterator<Item = &Block> {
        let seen = move |block: &Block| match block {
            Block::Plot(_) => plots,
            Block::TextOnly(_) => !plots,
            _ => true,
        };
        let heads_nothing = move |i: usize| {
            let mut below = self.blocks.iter().skip(i + 1).filter(|block| seen(block));
            matches!(below.next(), None | Some(Block::Heading(_)))
        };
        self.blocks
            .iter()
            .enumerate()
            .filter(move |(i, block)| seen(block) && !(matches!(block, Block::Heading(_)) && heads_nothing(*i)))
            .map(|(_, block)| block)
    }

    /// Its plots, in order.
    pub fn plots(&self) -> impl Iterator<Item = &Plot> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Plot(plot) => Some(plot),
            _ => None,
        })
    }

    /// Its tables, in order.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        })
    }
}

/// What is known of one thing, a fact a row.
pub fn facts(name: &str, facts: &[(&'static str, String)]) -> Table {
    let mut table = Table::new(name, "", &[("What", "what"), ("Value", "value")]);
    for (what, value) in facts {
        table.row(vec![Cell::from(*what), Cell::from(value.clone())]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of blocks and of files were `97.0`.
    #[test]
    fn what_is_whole_is_shown_whole() {
        let shown = |x: f64| Cell::Number(x).shown();
        assert_eq!(
            [97.0, -1234.0, 0.0, 97.25, 1e16].map(shown),
            ["97", "-1,234", "0", "97.2", &show::significant(1e16)]
        );
    }

    /// The second environment of `fsage bench -o` took the place of the first.
    #[test]
    fn tables_of_one_name_are_files_of_their_own() {
        let mut document = Document::new("");
        for value in ["a", "b"] {
            let mut table = Table::new("environment", "", &[("V", "v")]);
            table.row(vec![Cell::from(value)]);
            document.table(table);
        }
        let files = document.to_csv();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, csv)| (name.as_str(), csv.as_str())).collect();
        assert_eq!(files, [("environment.csv", "v\na\n"), ("environment-2.csv", "v\nb\n")]);
    }
}
