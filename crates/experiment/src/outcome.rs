//! What an experiment has to show: published and ours side by side.

use serde::Serialize;

/// How far ours may be from the published figure, relatively, before a sentence has to say why.
pub const TOLERANCE: f64 = 0.25;

/// What is printed where that sentence is missing; a test refuses it.
pub const NOT_EXPLAINED: &str = "not explained";

/// What is printed where no experiment has found the reason of a difference.
pub const NOT_KNOWN: &str = "the reason is not known";

/// The result of one experiment. It holds nothing that differs from run to run: no machine time, no date.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The experiment's key (`alloc96/aggregate`).
    pub key: String,
    /// Its title.
    pub title: String,
    /// Where the published figures are from.
    pub source: String,
    /// What was run, and with what: everything needed to run it again.
    pub parameters: Vec<Parameter>,
    /// Figures, published and ours.
    pub rows: Vec<Row>,
    /// What the publication says in words, and whether it is so here.
    pub claims: Vec<Claim>,
    /// Curves.
    pub figures: Vec<Figure>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Predictions held against replays, where that is what was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Box<validate::Validation>>,
}

impl Outcome {
    /// An outcome without anything in it; [`run`](crate::run) fills in key, title and source.
    pub fn new() -> Outcome {
        Outcome {
            key: String::new(),
            title: String::new(),
            source: String::new(),
            parameters: Vec::new(),
            rows: Vec::new(),
            claims: Vec::new(),
            figures: Vec::new(),
            notes: Vec::new(),
            validation: None,
        }
    }

    /// Adds a parameter.
    pub fn parameter(&mut self, name: &str, value: impl Into<String>) -> &mut Outcome {
        self.parameters.push(Parameter { name: name.to_owned(), value: value.into() });
        self
    }

    /// Adds a figure.
    pub fn row(&mut self, row: Row) -> &mut Outcome {
        self.rows.push(row);
        self
    }

    /// Adds a statement.
    pub fn claim(&mut self, claim: Claim) -> &mut Outcome {
        self.claims.push(claim);
        self
    }

    /// Adds curves.
    pub fn figure(&mut self, figure: Figure) -> &mut Outcome {
        self.figures.push(figure);
        self
    }

    /// Adds a remark.
    pub fn note(&mut self, note: impl Into<String>) -> &mut Outcome {
        self.notes.push(note.into());
        self
    }

    /// What differs without a sentence that says why.
    pub fn unexplained(&self) -> impl Iterator<Item = &str> {
        let rows = self.rows.iter().filter(|row| row.difference() == Difference::NotExplained).map(|row| &row.what);
        let claims = self.claims.iter().filter(|claim| claim.why() == Some(NOT_EXPLAINED)).map(|claim| &claim.what);
        rows.chain(claims).map(String::as_str)
    }
}

impl Default for Outcome {
    fn default() -> Outcome {
        Outcome::new()
    }
}

/// One thing that was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Parameter {
    pub name: String,
    pub value: String,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A layout score, 0 to 1.
    Score,
    /// A share, 0 to 1.
    Share,
    /// One thing over another.
    Ratio,
    /// Megabytes (2^20) a second.
    MibPerS,
    /// Files a second.
    FilesPerS,
    /// Transactions a second.
    TransactionsPerS,
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Ns,
    /// A plain number.
    Number,
}

/// A figure of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// The figure.
    pub value: f64,
    /// Whether it is from memory, or read off a drawing: `approx.` is shown with it.
    pub approximate: bool,
}

impl Published {
    /// As printed in the publication.
    pub const fn exact(value: f64) -> Option<Published> {
        Some(Published { value, approximate: false })
    }

    /// About.
    pub const fn about(value: f64) -> Option<Published> {
        Some(Published { value, approximate: true })
    }

    /// Nothing was published: ours stands alone.
    pub const NONE: Option<Published> = None;
}

/// The author of an experiment says what he expects of a comparison, so that no difference goes by in silence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Explain {
    /// There is nothing to say: it agrees. Where it does not, "not explained" is printed and a test fails.
    Agrees,
    /// The sentence that is shown where ours differs.
    Because(String),
}

impl Explain {
    /// A sentence.
    pub fn because(sentence: impl Into<String>) -> Explain {
        Explain::Because(sentence.into())
    }

    /// No experiment has found the reason, and the sentence says so.
    pub fn unknown() -> Explain {
        Explain::because(NOT_KNOWN)
    }

    fn sentence(&self) -> &str {
        match self {
            Explain::Agrees => NOT_EXPLAINED,
            Explain::Because(sentence) => sentence,
        }
    }
}

/// How ours stands to the published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// There is nothing to compare with.
    NothingPublished,
    /// Within a quarter.
    Within,
    /// Beyond, and it is said why.
    Explained,
    /// Beyond, and nobody has said why.
    NotExplained,
}

/// How far the figures of several seeds lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Seeds that have the figure.
    pub seeds: u32,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Spread {
    /// Of these.
    pub(crate) fn of(found: &[f64]) -> Spread {
        let least = |best: f64, here: &f64| best.min(*here);
        let greatest = |best: f64, here: &f64| best.max(*here);
        Spread {
            seeds: found.len() as u32,
            low: found.iter().fold(f64::INFINITY, least),
            high: found.iter().fold(f64::NEG_INFINITY, greatest),
        }
    }
}

/// A figure, published and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What it is, with its condition: `aggregate layout score, day 300, realloc`.
    pub what: String,
    /// What it counts.
    pub unit: Unit,
    /// The published figure, if there is one.
    pub published: Option<Published>,
    /// Ours; of several seeds, their mean.
    pub ours: f64,
    /// How far the seeds lie apart; `None` of one seed.
    pub spread: Option<Spread>,
    /// What is said where they differ by more than [`TOLERANCE`].
    pub explain: Explain,
}

impl Row {
    /// A figure. `explain` cannot be left out: it is printed if the two differ by more than a quarter.
    pub fn new(what: impl Into<String>, unit: Unit, published: Option<Published>, ours: f64, explain: Explain) -> Row {
        Row { what: what.into(), unit, published, ours, spread: None, explain }
    }

    /// Ours over the published figure.
    pub fn ratio(&self) -> Option<f64> {
        let published = self.published?.value;
        (published != 0.0).then(|| self.ours / published)
    }

    /// How the two stand to each other. The published figure is the whole of which a quarter is meant.
    pub fn difference(&self) -> Difference {
        let Some(published) = self.published else { return Difference::NothingPublished };
        // A quarter that is one but for rounding is a quarter.
        let within = (self.ours - published.value).abs() <= (TOLERANCE + 1e-9) * published.value.abs();
        match (within, &self.explain) {
            (true, _) => Difference::Within,
            (false, Explain::Because(_)) => Difference::Explained,
            (false, Explain::Agrees) => Difference::NotExplained,
        }
    }

    /// The sentence where they differ.
    pub fn why(&self) -> Option<&str> {
        match self.difference() {
            Difference::NothingPublished | Difference::Within => None,
            Difference::Explained | Difference::NotExplained => Some(self.explain.sentence()),
        }
    }
}

/// What the publication says in words about the shape of a curve, and what is seen here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The statement: `realloc scores at least as well as the original at every size`.
    pub what: String,
    /// Whether it is so here; of several seeds, under most.
    pub holds: bool,
    /// Under how many seeds it is so, and how many there are; `None` of one seed.
    pub held: Option<(u32, u32)>,
    /// The numbers it was decided by.
    pub seen: String,
    /// What is said where it does not hold.
    pub explain: Explain,
}

impl Claim {
    /// A statement. `explain` cannot be left out: it is printed if the statement does not hold.
    pub fn new(what: impl Into<String>, holds: bool, seen: impl Into<String>, explain: Explain) -> Claim {
        Claim { what: what.into(), holds, held: None, seen: seen.into(), explain }
    }

    /// The sentence where it does not hold.
    pub fn why(&self) -> Option<&str> {
        (!self.holds).then(|| self.explain.sentence())
    }
}

/// What an axis of a figure counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "title")]
pub enum Axis {
    /// Bytes, logarithmic.
    Bytes(String),
    /// A share, 0 to 1.
    Share(String),
    /// A layout score, near 1.
    Score(String),
    /// Simulated days.
    Days(String),
    /// One thing over another.
    Ratio(String),
    /// A number from zero.
    Number(String),
}

impl Axis {
    /// Its title.
    pub fn title(&self) -> &str {
        match self {
            Axis::Bytes(title)
            | Axis::Share(title)
            | Axis::Score(title)
            | Axis::Days(title)
            | Axis::Ratio(title)
            | Axis::Number(title) => title,
        }
    }
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Which panel of the figure it is in; empty where there is one.
    pub panel: String,
    /// Its name in the legend.
    pub name: String,
    /// Whether its points are the publication's, which are marks and no line: the curve between them is not known.
    pub published: bool,
    /// Its points, by x.
    pub points: Vec<Point>,
}

impl Series {
    /// A curve of the only panel.
    pub fn new(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series::in_panel("", name, points)
    }

    /// A curve of one of several panels.
    pub fn in_panel(panel: &str, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        let points = points.into_iter().map(|(x, y)| Point { x, y }).collect();
        Series { panel: panel.to_owned(), name: name.to_owned(), published: false, points }
    }

    /// Points that were published.
    pub fn published(panel: &str, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series { published: true, ..Series::in_panel(panel, name, points) }
    }
}

/// Curves over one axis. A report draws them, and shows their points in a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is called in file names (`layout-by-day`).
    pub name: String,
    /// One sentence above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Its curves.
    pub series: Vec<Series>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(published: Option<Published>, ours: f64, explain: Explain) -> Row {
        Row::new("score", Unit::Score, published, ours, explain)
    }

    #[test]
    fn a_difference_beyond_a_quarter_needs_a_sentence() {
        assert_eq!(row(Published::exact(0.8), 1.0, Explain::Agrees).difference(), Difference::Within);
        assert_eq!(row(Published::exact(0.8), 0.6, Explain::because("x")).why(), None);
        assert_eq!(row(Published::about(0.8), 0.59, Explain::Agrees).why(), Some(NOT_EXPLAINED));
        assert_eq!(row(Published::about(0.8), 1.01, Explain::because("warm")).why(), Some("warm"));
        assert_eq!(row(Published::NONE, 7.0, Explain::Agrees).why(), None);
        assert_eq!(row(Published::exact(0.0), 0.1, Explain::Agrees).why(), Some(NOT_EXPLAINED));
        assert_eq!(row(Published::exact(0.5), 0.25, Explain::Agrees).ratio(), Some(0.5));
    }

    #[test]
    fn what_is_not_explained_is_found() {
        let mut outcome = Outcome::new();
        outcome.row(row(Published::exact(1.0), 2.0, Explain::because("why")));
        outcome.claim(Claim::new("a dip", false, "none", Explain::because("why")));
        outcome.claim(Claim::new("no dip", true, "none", Explain::Agrees));
        assert_eq!(outcome.unexplained().count(), 0);
        outcome.row(Row::new("b", Unit::Count, Published::exact(1.0), 2.0, Explain::Agrees));
        outcome.claim(Claim::new("c", false, "none", Explain::Agrees));
        assert_eq!(outcome.unexplained().collect::<Vec<_>>(), ["b", "c"]);
    }
}
