//! The matrix for a terminal: a row for each workload, a column for each system.

use crate::Matrix;
use document::{Cell, Document, Table};

/// What is shown of a reason, characters: a profile may lack a hundred entries.
const REASON_MAX: usize = 240;

/// As a document.
pub fn matrix(matrix: &Matrix) -> Document {
    let mut document = Document::new("Library");
    document.paragraph(format!(
        "{} and {}. Times are predicted time in the file system; = marks what cannot be told from the \
         fastest of its row.",
        units::show::counted(matrix.workloads.len() as u64, "workload", "workloads"),
        units::show::counted(matrix.systems.len() as u64, "system", "systems"),
    ));
    let mut columns = vec![("Workload", "workload")];
    columns.extend(matrix.systems.iter().map(|system| (system.name.as_str(), system.name.as_str())));
    let mut predicted = Table::new("predicted", "Predicted.", &columns);
    let mut replayed = Table::new("replayed", "Replayed, and by how much the prediction is off.", &columns);
    for (w, workload) in matrix.workloads.iter().enumerate() {
        let cells = || matrix.cells.iter().filter(|cell| cell.workload == w);
        let mut row = vec![Cell::from(workload.name.as_str())];
        row.extend(cells().map(|cell| match &cell.predicted {
            Some(p) => {
                let mark = if p.ties_with_fastest { " =" } else { "" };
                Cell::from(format!("{}{mark}", units::show::duration_ns(p.total_ns)))
            }
            None => Cell::Empty,
        }));
        predicted.row(row);
        if cells().any(|cell| cell.replayed.is_some()) {
            let mut row = vec![Cell::from(workload.name.as_str())];
            row.extend(cells().map(|cell| match (&cell.replayed, &cell.predicted) {
                (Some(replayed), Some(predicted)) if replayed.total_ns > 0.0 => Cell::from(format!(
                    "{} ({})",
                    units::show::duration_ns(replayed.total_ns),
                    units::show::signed_share(predicted.total_ns / replayed.total_ns - 1.0)
                )),
                (Some(replayed), _) => Cell::Ns(replayed.total_ns),
                (None, _) => Cell::Empty,
            }));
            replayed.row(row);
        }
    }
    document.table(predicted).table(replayed);
    let refused = matrix.cells.iter().filter_map(|cell| {
        let (workload, system) = (matrix.workloads.get(cell.workload)?, matrix.systems.get(cell.system)?);
        let why: String = cell.refused.as_ref()?.chars().take(REASON_MAX).collect();
        let more = if cell.refused.as_ref()?.chars().count() > REASON_MAX { "… (matrix.json has all)" } else { "" };
        Some(format!("{} on {}: not predicted: {why}{more}", workload.name, system.name))
    });
    document.list(refused.collect());
    document
}
