//! The long table of a result: every figure that its tables show, a row for each, in one shape for all commands.
//!
//! A table for people has a column for each system and a row for each call; programs want it the other way round (H.
//! Wickham, *Tidy Data*, 2014). The columns are those of [`COLUMNS`], whatever the command.

use crate::{Cell, Table};

/// The columns, in order.
pub const COLUMNS: [&str; 10] =
    ["table", "workload", "system", "call", "item", "metric", "value", "low", "high", "unit"];

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The table it is in, as its CSV file is called.
    pub table: String,
    /// The workload it is about; empty where the table says none.
    pub workload: String,
    /// The system or target it is about; empty where the table says none.
    pub system: String,
    /// The call, phase or cost; empty where the table says none.
    pub call: String,
    /// What else the row says in words, in the order of its columns.
    pub item: String,
    /// What it says (`total`); the key of its column without the unit.
    pub metric: String,
    /// The value, in its unit.
    pub value: f64,
    /// Lower end of its 95 % interval, where it has one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// `ns`, `bytes`, `count`, `share`, `ratio`, what the column's key ends with (`mib_per_s`), or empty: a bare
    /// number.
    pub unit: String,
}

/// The column of words that names a workload.
const WORKLOAD: &str = "workload";
/// Columns of words that name a system.
const SYSTEMS: [&str; 4] = ["system", "target", "profile", "drive"];
/// Columns of words that name what is done.
const CALLS: [&str; 7] = ["call", "entry", "class", "part", "phase", "operation", "cost"];
/// What the key of a column of bare numbers may end with.
const UNITS: [&str; 12] = [
    "mib_per_s",
    "files_per_s",
    "calls_per_s",
    "transactions_per_s",
    "scripts_per_hour",
    "per_s",
    "blocks",
    "days",
    "ns",
    "us",
    "ms",
    "s",
];

/// The figures of a table.
pub fn figures(table: &Table) -> Vec<Figure> {
    let mut figures = Vec::new();
    for row in &table.rows {
        let mut workload = table.workload.as_str();
        let (mut system, mut call, mut items) = (String::new(), String::new(), Vec::new());
        for (column, cell) in table.columns.iter().zip(row) {
            if let Cell::Text(text) = cell {
                match column.key.as_str() {
                    WORKLOAD => workload = text,
                    key if SYSTEMS.contains(&key) => system.clone_from(text),
                    key if CALLS.contains(&key) && call.is_empty() => call.clone_from(text),
                    // What a cost means is the same in every row of it, and a place is a matter of the order.
                    "meaning" | "unit" | "place" => {}
                    _ if text.is_empty() => {}
                    _ => items.push(text.as_str()),
                }
            }
        }
        let item = items.join("; ");
        let unit_of_row = table.columns.iter().zip(row).find_map(|(column, cell)| match cell {
            Cell::Text(text) if column.key == "unit" => Some(text.as_str()),
            _ => None,
        });
        for (column, cell) in table.columns.iter().zip(row) {
            let Some((value, low, high)) = numbers(cell) else { continue };
            let (of, key) =
                column.of.as_ref().map_or((system.as_str(), column.key.as_str()), |(of, metric)| (of, metric));
            let (metric, unit) = metric_and_unit(key, cell, unit_of_row);
            figures.push(Figure {
                table: table.name.clone(),
                workload: workload.to_owned(),
                system: of.to_owned(),
                call: call.clone(),
                item: item.clone(),
                metric,
                value,
                low,
                high,
                unit,
            });
        }
    }
    figures
}

fn numbers(cell: &Cell) -> Option<(f64, Option<f64>, Option<f64>)> {
    match cell {
        Cell::NsInterval { value, low, high } | Cell::Interval { value, low, high } => {
            Some((*value, Some(*low), Some(*high)))
        }
        // Counts stay far below 2^53.
        Cell::Count(n) => Some((*n as f64, None, None)),
        Cell::Ns(x)
        | Cell::Bytes(x)
        | Cell::Share(x)
        | Cell::SignedShare(x)
        | Cell::Ratio(x)
        | Cell::Number(x)
        | Cell::Score(x)
        | Cell::SignedScore(x) => Some((*x, None, None)),
        Cell::Text(_) | Cell::Empty => None,
    }
}

/// A key cut into what it says and its unit.
fn metric_and_unit(key: &str, cell: &Cell, unit_of_row: Option<&str>) -> (String, String) {
    let unit = match cell {
        Cell::Ns(_) | Cell::NsInterval { .. } => "ns",
        Cell::Bytes(_) => "bytes",
        Cell::Share(_) | Cell::SignedShare(_) => "share",
        Cell::Ratio(_) => "ratio",
        Cell::Score(_) | Cell::SignedScore(_) => "score",
        Cell::Count(_) => "count",
        Cell::Number(_) | Cell::Interval { .. } | Cell::Text(_) | Cell::Empty => {
            let of_key =
                UNITS.iter().find(|unit| key.strip_suffix(**unit).is_some_and(|rest| rest.ends_with(['_', ' '])));
            // A ratio of two rates has no unit, in whatever unit they are.
            of_key.copied().or(unit_of_row.filter(|_| !key.ends_with("ratio"))).unwrap_or_default()
        }
    };
    let metric = key.strip_suffix(unit).map(|rest| rest.trim_end_matches(['_', ' '])).filter(|rest| !rest.is_empty());
    (metric.unwrap_or(key).to_owned(), unit.to_owned())
}

/// The figures as CSV, with the header [`COLUMNS`].
pub fn csv(figures: &[Figure]) -> String {
    let columns = COLUMNS.map(|name| (name, name));
    let mut table = Table::new("long", "", &columns);
    for figure in figures {
        let end = |end: Option<f64>| end.map_or(Cell::Empty, Cell::Number);
        table.row(vec![
            Cell::from(figure.table.as_str()),
            Cell::from(figure.workload.as_str()),
            Cell::from(figure.system.as_str()),
            Cell::from(figure.call.as_str()),
            Cell::from(figure.item.as_str()),
            Cell::from(figure.metric.as_str()),
            Cell::Number(figure.value),
            end(figure.low),
            end(figure.high),
            Cell::from(figure.unit.as_str()),
        ]);
    }
    crate::csv::render(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_system_and_call() {
        let columns =
            [("Call", "call"), ("Calls", "calls"), ("xfs", "xfs_ns"), ("ext4", "ext4_ns"), ("Meaning", "meaning")];
        let mut table =
            Table::new("by_op", "", &columns).about("xfs_ns", "xfs", "total_ns").about("ext4_ns", "ext4", "total_ns");
        table.row(vec![
            "open".into(),
            Cell::Count(2),
            Cell::Ns(5.5),
            Cell::NsInterval { value: 6.0, low: 5.0, high: 7.0 },
            "it opens".into(),
        ]);
        assert_eq!(
            csv(&figures(&table)),
            "table,workload,system,call,item,metric,value,low,high,unit\n\
             by_op,,,open,,calls,2,,,count\n\
             by_op,,xfs,open,,total,5.5,,,ns\n\
             by_op,,ext4,open,,total,6,5,7,ns\n"
        );
    }

    #[test]
    fn units_are_those_of_the_cell_or_of_the_key() {
        let unit = |key: &str, cell: Cell| metric_and_unit(key, &cell, None);
        let owned = |metric: &str, unit: &str| (metric.to_owned(), unit.to_owned());
        assert_eq!(unit("read_mib_per_s", Cell::Number(1.0)), owned("read", "mib_per_s"));
        assert_eq!(unit("xfs:8G mib_per_s", Cell::Number(1.0)), owned("xfs:8G", "mib_per_s"));
        assert_eq!(unit("days", Cell::Number(1.0)), owned("days", ""));
        assert_eq!(unit("ns", Cell::Ns(1.0)), owned("ns", "ns"));
        assert_eq!(unit("p_fastest", Cell::Share(0.5)), owned("p_fastest", "share"));
        assert_eq!(metric_and_unit("rate", &Cell::Number(1.0), Some("MiB/s")), owned("rate", "MiB/s"));
        assert_eq!(metric_and_unit("ratio", &Cell::Number(1.0), Some("MiB/s")), owned("ratio", ""));
    }

    /// It stood among what else the row says.
    #[test]
    fn a_workload_has_a_column_of_its_own() {
        let mut table = Table::new("matrix", "", &[("Workload", "workload"), ("xfs", "xfs_ns")]);
        table.row(vec!["web".into(), Cell::Ns(7.0)]);
        let mut document = crate::Document::new("");
        document.table(table).table({
            let mut table = Table::new("ranking", "", &[("System", "system"), ("Total", "total_ns")]);
            table.row(vec!["xfs".into(), Cell::Ns(7.0)]);
            table
        });
        let found = document.of_workload("mail").to_tidy();
        let said: Vec<(&str, &str)> = found.iter().map(|f| (f.workload.as_str(), f.item.as_str())).collect();
        assert_eq!(said, [("web", ""), ("mail", "")]);
    }

    #[test]
    fn words_beside_a_figure_say_which_it_is() {
        let columns = [("Target", "target"), ("Files", "file_size"), ("Phase", "phase"), ("Time", "time_ns")];
        let mut table = Table::new("t", "", &columns);
        table.row(vec!["ext4:8G".into(), "64 KiB".into(), "read".into(), Cell::Ns(7.0)]);
        table.row(vec!["ext4:8G".into(), "all".into(), "read".into(), Cell::Empty]);
        let found = figures(&table);
        let [figure] = found.as_slice() else { panic!("{found:?}") };
        let said = (figure.system.as_str(), figure.call.as_str(), figure.item.as_str(), figure.metric.as_str());
        assert_eq!(said, ("ext4:8G", "read", "64 KiB", "time"));
    }
}
