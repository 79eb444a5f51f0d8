//! What of a result goes into the data set: figures, each with what it is of and its unit.
//!
//! A table below says for each kind of result where its figures are. Whatever depends on the machine that ran a task in
//! virtual time, or on the day, is in none: the data set is the same wherever it is made.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A figure of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The system or target that it is of; of `reproduce`, the experiment.
    pub subject: String,
    /// The part of the workload that it is of: a phase, a call, a size; empty for the whole.
    pub part: String,
    /// What it is: `total_ns`.
    pub metric: String,
    /// How much.
    pub value: f64,
    /// The ends of its 95 % interval, where the result has one.
    pub interval: Option<(f64, f64)>,
    /// What it counts: `ns`, `bytes`, `bytes_per_second`, `share`, `ratio`, `count`, `score`.
    pub unit: String,
}

/// As the journal keeps it: a list is a third as long as an object.
type Kept = (String, String, String, f64, Option<(f64, f64)>, String);

impl Serialize for Figure {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.subject, &self.part, &self.metric, self.value, self.interval, &self.unit).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Figure, D::Error> {
        let (subject, part, metric, value, interval, unit) = Kept::deserialize(deserializer)?;
        Ok(Figure { subject, part, metric, value, interval, unit })
    }
}

/// Figures of a result, as they are found.
struct Found {
    figures: Vec<Figure>,
    subject: String,
}

impl Found {
    fn of(&mut self, subject: &Value) {
        self.subject = text(subject);
    }

    /// A number; what is null or no number is left out.
    fn add(&mut self, part: &str, metric: &str, unit: &str, value: &Value) {
        if let Some(value) = value.as_f64().filter(|value| value.is_finite()) {
            self.push(part, metric, unit, value, None);
        }
    }

    /// A number with its interval.
    fn within(&mut self, part: &str, metric: &str, unit: &str, value: &Value, low: &Value, high: &Value) {
        if let Some(value) = value.as_f64().filter(|value| value.is_finite()) {
            self.push(part, metric, unit, value, low.as_f64().zip(high.as_f64()));
        }
    }

    fn push(&mut self, part: &str, metric: &str, unit: &str, value: f64, interval: Option<(f64, f64)>) {
        self.figures.push(Figure {
            subject: self.subject.clone(),
            part: part.to_owned(),
            metric: metric.to_owned(),
            value,
            interval,
            unit: unit.to_owned(),
        });
    }
}

/// The elements of a list; none of what is no list.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The unit that a name ends with.
fn unit_of(name: &str) -> &'static str {
    match name {
        _ if name.ends_with("_bytes_per_s") => "bytes_per_second",
        _ if name.ends_with("_files_per_s") => "files_per_second",
        _ if name.ends_with("_ns") => "ns",
        _ if name.ends_with("_bytes") => "bytes",
        _ if name.ends_with("_share") => "share",
        _ if name.ends_with("_score") => "score",
        _ => "count",
    }
}

/// The figures of what a command printed with `--json`.
///
/// # Errors
/// It is no result, or one of a schema that is not known here.
pub fn of_result(json: &[u8]) -> Result<Vec<Figure>, String> {
    let value: Value = serde_json::from_slice(json).map_err(|error| format!("its result is no JSON: {error}"))?;
    let mut found = Found { figures: Vec::new(), subject: String::new() };
    match value["schema"].as_str() {
        Some("fsage.bench/1") => bench(&value, &mut found),
        Some("fsage.predict/1") => predict(&value, "", &mut found),
        Some("fsage.predictions/1") => {
            for one in list(&value["workloads"]) {
                predict(one, &text(&one["workload"]), &mut found);
            }
        }
        Some("fsage.replay/1") => replay(&value, &mut found),
        Some("fsage.measure/1") => measure(&value, &mut found),
        Some("fsage.age/1") => age(&value, &mut found),
        Some("fsage.layout/1") => layout(&value, &mut found),
        Some("fsage.reproduction/2") => reproduction(&value, &mut found),
        Some("fsage.crash/1") => crash(&value, &mut found),
        Some("fsage.validate/1") => validate(&value, &mut found),
        other => return Err(format!("its result is of schema {other:?}, whose figures are not known")),
    }
    match found.figures.is_empty() {
        true => Err("its result holds no figure".to_owned()),
        false => Ok(found.figures),
    }
}

fn bench(result: &Value, found: &mut Found) {
    for target in list(&result["targets"]) {
        found.of(&target["name"]);
        let points: Vec<&Value> = list(&target["points"]).collect();
        for point in &points {
            for phase in list(&point["phases"]) {
                // Of one point alone, the phase says all.
                let part = match points.len() {
                    1 => text(&phase["phase"]),
                    _ => format!("{} {}", text(&point["point"]["label"]), text(&phase["phase"])),
                };
                let unit = text(&phase["unit"]);
                for (metric, unit) in
                    [("rate", unit.as_str()), ("rate_without_sync", &unit), ("files_per_s", "files_per_second")]
                {
                    let estimate = &phase[metric];
                    found.within(&part, metric, unit, &estimate["median"], &estimate["low"], &estimate["high"]);
                }
                let times: Vec<f64> = list(&phase["rounds"]).filter_map(round_ns).collect();
                if let Some(time) = stats::median(&times) {
                    found.push(&part, "time_ns", "ns", time, None);
                }
                let mut counts: Vec<(String, Vec<f64>)> = Vec::new();
                for count in list(&phase["rounds"]).flat_map(|round| list(&round["counts"])) {
                    let (name, Some(value)) = (text(&count["name"]), count["value"].as_f64()) else { continue };
                    match counts.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, values)) => values.push(value),
                        None => counts.push((name, vec![value])),
                    }
                }
                for (name, values) in counts {
                    found.push(&part, &name, "count", stats::median(&values).unwrap_or_default(), None);
                }
            }
        }
    }
}

/// The time that a round's rate is of.
fn round_ns(round: &Value) -> Option<f64> {
    let work = if round["timed_by"] == "clock" { &round["elapsed_ns"] } else { &round["calls_ns"] };
    Some(work.as_f64()? + round["sync_ns"].as_f64().unwrap_or(0.0))
}

/// Of one workload; of several, each is a part.
fn predict(result: &Value, whole: &str, found: &mut Found) {
    let within = |name: &str| if whole.is_empty() { name.to_owned() } else { format!("{whole} {name}") };
    let mut run_times = list(&result["run_time"]["known"]["systems"]);
    for system in list(&result["prediction"]["systems"]) {
        found.of(&system["system"]);
        let interval = &system["interval"];
        found.within(whole, "total_ns", "ns", &system["total_ns"], &interval["low_ns"], &interval["high_ns"]);
        if let Some(run) = run_times.next() {
            found.within(
                whole,
                "run_time_ns",
                "ns",
                &run["ns"],
                &run["interval"]["low_ns"],
                &run["interval"]["high_ns"],
            );
        }
        let mut places = list(&result["ranking"]["systems"]);
        if let Some(place) = places.find(|place| place["system"] == system["system"]) {
            found.within(whole, "over_fastest", "ratio", &place["ratio"], &place["ratio_low"], &place["ratio_high"]);
            found.add(whole, "place", "count", &place["place"]);
            found.add(whole, "probability_fastest", "share", &place["p_fastest"]);
        }
        found.add(whole, "calls", "count", &system["calls"]);
        for name in ["page_hits", "page_misses", "name_hits", "name_misses", "pages_written_back"] {
            found.add(whole, name, "count", &system["cache"][name]);
        }
        found.add(whole, "writeback_stall_ns", "ns", &system["writeback"]["stall_ns"]);
        for op in list(&system["by_op"]) {
            let part = within(&text(&op["op"]));
            found.add(&part, "time_ns", "ns", &op["ns"]);
            found.add(&part, "calls", "count", &op["calls"]);
        }
    }
}

fn replay(result: &Value, found: &mut Found) {
    found.of(&result["environment"]["target"]);
    for name in ["total_ns", "wall_ns", "final_sync_ns", "calls"] {
        found.add("", name, unit_of(name), &result[name]);
    }
    found.add("", "differences", "count", &result["differences"]["total"]);
    for op in list(&result["per_op"]) {
        let part = text(&op["op"]);
        found.add(&part, "time_ns", "ns", &op["total_ns"]);
        found.add(&part, "calls", "count", &op["count"]);
        found.add(&part, "failed", "count", &op["failed"]);
    }
}

fn measure(result: &Value, found: &mut Found) {
    found.of(&result["name"]);
    for (name, entry) in result["entries"].as_object().into_iter().flatten() {
        found.within(name, "cost_ns", "ns", &entry["mean_ns"], &entry["low_ns"], &entry["high_ns"]);
    }
    for (name, value) in result["parameters"].as_object().into_iter().flatten() {
        found.add("", name, unit_of(name), value);
    }
}

fn age(result: &Value, found: &mut Found) {
    found.of(&result["environment"]["target"]);
    for name in ["files", "file_bytes", "wall_ns", "days_done"] {
        found.add("", name, unit_of(name), &result[name]);
    }
    let counters = &result["counters"];
    for name in ["operations", "calls", "written_bytes", "held_back", "dropped", "out_of_plan", "full"] {
        found.add("", name, unit_of(name), &counters[name]);
    }
    found.add("", "off_plan_mean_share", "share", &result["deviation"]["mean"]);
    for day in list(&result["days"]) {
        let part = format!("day {}", day["day"]);
        found.add(&part, "used_share", "share", &day["used_share"]);
        found.add(&part, "files", "count", &day["files"]);
        found.add(&part, "wall_ns", "ns", &day["wall_ns"]);
    }
    for benchmark in list(&result["benchmarks"]) {
        bench(&benchmark["result"], found);
    }
}

fn layout(result: &Value, found: &mut Found) {
    found.of(&result["source"]["target"]);
    found.add("", "total_bytes", "bytes", &result["source"]["total_bytes"]);
    found.add("", "free_bytes", "bytes", &result["source"]["free_bytes"]);
    let files = &result["files"]["known"];
    found.add("", "layout_score", "score", &files["layout_score"]);
    found.add("", "extents_per_mib", "ratio", &files["extents_per_mib"]);
    for name in ["files", "bytes", "extents", "broken_files"] {
        found.add("", name, if name == "bytes" { "bytes" } else { "count" }, &files["all"][name]);
    }
    found.add("", "extents_per_file", "ratio", &files["all"]["extents_per_file"]);
    for size in list(&files["by_size"]) {
        let part = format!("files from {} to {} bytes", size["low"], size["high"]);
        found.add(&part, "files", "count", &size["files"]);
        found.add(&part, "layout_score", "score", &size["layout_score"]);
    }
    found.add("recently modified", "layout_score", "score", &files["hot"]["row"]["layout_score"]);
    let free = &result["free"]["known"];
    for (name, metric) in
        [("extents", "free_extents"), ("largest_bytes", "largest_free_bytes"), ("mean_bytes", "mean_free_bytes")]
    {
        found.add("", metric, unit_of(metric), &free[name]);
    }
    for chunk in list(&free["chunks"]) {
        found.add(&format!("pieces of {} bytes", chunk["chunk_bytes"]), "free_share", "share", &chunk["share"]);
    }
}

fn reproduction(result: &Value, found: &mut Found) {
    for outcome in list(&result["outcomes"]) {
        found.of(&outcome["key"]);
        for row in list(&outcome["rows"]) {
            let (part, unit) = (text(&row["what"]), text(&row["unit"]));
            found.within(&part, "ours", &unit, &row["ours"], &row["spread"]["low"], &row["spread"]["high"]);
            found.add(&part, "published", &unit, &row["published"]["value"]);
        }
        for claim in list(&outcome["claims"]) {
            let holds = claim["holds"].as_bool().map(f64::from);
            if let Some(holds) = holds {
                found.push(&text(&claim["what"]), "holds", "share", holds, None);
            }
        }
    }
}

fn crash(result: &Value, found: &mut Found) {
    found.of(&result["target"]);
    let tally = &result["tally"];
    for name in ["states", "exposed", "in_recovery", "moments", "sequences"] {
        found.add("", name, "count", &tally[name]);
    }
    found.push("", "failures", "count", list(&result["failures"]).count() as f64, None);
    for (class, states) in tally["by_class"].as_object().into_iter().flatten() {
        found.add(class, "states", "count", states);
    }
}

fn validate(result: &Value, found: &mut Found) {
    let several = list(&result["cells"]).map(|cell| &cell["workload"]).collect::<Vec<_>>();
    let several = several.windows(2).any(|pair| pair[0] != pair[1]);
    for cell in list(&result["cells"]) {
        found.of(&cell["target"]);
        let whole = if several { text(&cell["workload"]) } else { String::new() };
        let within = |name: &str| if whole.is_empty() { name.to_owned() } else { format!("{whole} {name}") };
        let predicted = &cell["predicted"]["prediction_ns"];
        found.within(&whole, "predicted_ns", "ns", predicted, &cell["predicted_low_ns"], &cell["predicted_high_ns"]);
        let (low, high) = (&cell["measured_low_ns"], &cell["measured_high_ns"]);
        found.within(&whole, "measured_ns", "ns", &cell["measured_ns"], low, high);
        found.add(&whole, "error", "share", &cell["error"]);
        for op in list(&cell["per_op"]) {
            let part = within(&text(&op["op"]));
            found.add(&part, "predicted_ns", "ns", &op["predicted_ns"]);
            found.add(&part, "measured_ns", "ns", &op["measured_ns"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_without_figures_is_an_error_and_so_is_an_unknown_one() {
        assert!(of_result(b"{").unwrap_err().contains("no JSON"));
        assert!(of_result(br#"{"schema": "fsage.other"}"#).unwrap_err().contains("fsage.other"));
        assert!(of_result(br#"{"schema": "fsage.bench/1", "targets": []}"#).unwrap_err().contains("no figure"));
    }

    #[test]
    fn a_figure_survives_the_journal_bit_for_bit() {
        let figure = Figure {
            subject: "ffs".to_owned(),
            part: "create".to_owned(),
            metric: "rate".to_owned(),
            value: 0.1 + 0.2,
            interval: Some((1.0 / 3.0, 5e-324)),
            unit: "ns".to_owned(),
        };
        let text = serde_json::to_string(&figure).unwrap();
        assert_eq!(serde_json::from_str::<Figure>(&text).unwrap(), figure);
    }

    #[test]
    fn the_parts_of_a_benchmark_are_its_phases() {
        let json = br#"{"schema": "fsage.bench/1", "targets": [{"name": "t", "points": [{"point": {"label": "small"},
            "phases": [
            {"phase": "create", "unit": "files_per_second", "rate": {"median": 4.0, "low": 3.0, "high": 5.0},
             "rate_without_sync": null, "files_per_s": {"median": 4.0, "low": 3.0, "high": 5.0},
             "rounds": [{"timed_by": "calls", "calls_ns": 7, "elapsed_ns": 9, "sync_ns": 2}]}]}]}]}"#;
        let figures = of_result(json).unwrap();
        let shown: Vec<String> =
            figures.iter().map(|f| format!("{} {} {} {} {}", f.subject, f.part, f.metric, f.value, f.unit)).collect();
        assert_eq!(
            shown,
            ["t create rate 4 files_per_second", "t create files_per_s 4 files_per_second", "t create time_ns 9 ns"]
        );
        assert_eq!(figures[0].interval, Some((3.0, 5.0)));
    }
}
