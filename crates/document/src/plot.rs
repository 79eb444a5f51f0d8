//! Plots as Vega-Lite specifications; `serde_json` escapes whatever names the data carries.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use units::show;

/// A plot with its title.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What it shows, in a sentence.
    pub title: String,
    /// A Vega-Lite 6 specification.
    pub spec: Value,
}

/// Colours that stay apart for colour-blind readers: those of Okabe and Ito (2008), the light ones darkened until each
/// has a contrast of 3 to 1 (WCAG 2.2, 1.4.11) with white as well as with a dark page; the last is a grey for the rest.
pub const PALETTE: [&str; 10] =
    ["#0072b2", "#c98500", "#009e73", "#cc79a7", "#3d9bd1", "#d55e00", "#9a9000", "#8a6d3b", "#7b68c8", "#888888"];

/// [`PALETTE`] as a specification has it.
pub fn palette() -> Value {
    json!(PALETTE)
}

/// The specification's language.
pub const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";

/// How wide a plot is where there is room, axes and all, pixels: a narrower page draws it as wide as it is itself
/// (draw.js).
pub const WIDTH: u32 = 860;

/// What the length of a bar counts. All of a plot's lengths, its axis and what is shown at a mark are in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted<'a> {
    /// Time, given in seconds; shown in the unit in which tables show the longest.
    Time(&'a str),
    /// Anything else, shown as it is given; the title has the unit.
    Other(&'a str),
}

impl Counted<'_> {
    /// What lengths are divided by, what the axis is called, and the unit to write behind a value.
    pub fn scaled(self, longest: f64) -> (f64, String, &'static str) {
        match self {
            Counted::Other(title) => (1.0, title.to_owned(), ""),
            Counted::Time(title) => {
                let steps = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
                // As tables do: what would be shown as 1000 is one of the next unit.
                let fits = |step: &(f64, &str)| longest >= step.0 * 0.9995;
                let (scale, unit) = steps.into_iter().find(fits).unwrap_or((1e-9, "ns"));
                (scale, format!("{title}, {unit}"), unit)
            }
        }
    }
}

/// A value behind a mark, as a table has it.
fn said(value: f64, unit: &str) -> String {
    let number = units::show::significant(value);
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// One bar of [`interval_bars`].
pub struct Bar<'a> {
    /// Its label.
    pub label: &'a str,
    /// Its length and interval, seconds.
    pub value_s: f64,
    #[allow(missing_docs)]
    pub low_s: f64,
    #[allow(missing_docs)]
    pub high_s: f64,
}

/// Horizontal bars with intervals, in the order given.
pub fn interval_bars(title: &str, counted: Counted<'_>, bars: &[Bar<'_>]) -> Plot {
    let (scale, axis, unit) = counted.scaled(bars.iter().map(|b| b.value_s).fold(0.0, f64::max));
    let values: Vec<Value> = bars
        .iter()
        .map(|b| {
            let [value, low, high] = [b.value_s, b.low_s, b.high_s].map(|s| s / scale);
            let [low_said, high_said] = [low, high].map(units::show::significant);
            let said = format!("{} ({low_said} to {high_said})", said(value, unit));
            json!({ "label": b.label, "value": value, "low": low, "high": high, "said": said })
        })
        .collect();
    let tooltip = json!([{ "field": "label", "title": "of" }, { "field": "said", "title": axis }]);
    let y = json!({ "field": "label", "type": "nominal", "sort": null, "title": null });
    let spec = json!({
        "$schema": SCHEMA,
        "width": WIDTH,
        "data": { "values": values },
        "encoding": { "y": y, "tooltip": tooltip },
        "layer": [
            { "mark": { "type": "bar", "color": PALETTE[0], "height": { "band": 0.6 } },
              "encoding": { "x": { "field": "value", "type": "quantitative", "title": axis } } },
            { "mark": { "type": "rule", "strokeWidth": 2, "color": PALETTE[1] },
              "encoding": { "x": { "field": "low", "type": "quantitative" }, "x2": { "field": "high" } } },
        ],
    });
    Plot { title: title.to_owned(), spec }
}

/// Stacked horizontal bars: `parts` are (bar, part, seconds); bars and parts appear in the order of `bars` and `order`.
pub fn stacked_bars(title: &str, counted: Counted<'_>, order: &[String], parts: &[(String, String, f64)]) -> Plot {
    let mut lengths: BTreeMap<&str, f64> = BTreeMap::new();
    for (bar, _, value) in parts {
        *lengths.entry(bar).or_default() += value;
    }
    let (scale, axis, unit) = counted.scaled(lengths.values().copied().fold(0.0, f64::max));
    let values: Vec<Value> = parts
        .iter()
        .map(|(bar, part, value)| {
            let rank = order.iter().position(|name| name == part);
            let value = value / scale;
            json!({ "bar": bar, "part": part, "value": value, "rank": rank, "said": said(value, unit) })
        })
        .collect();
    let tooltip = json!([{ "field": "bar", "title": "of" }, { "field": "part", "title": "in" },
        { "field": "said", "title": axis }]);
    let spec = json!({
        "$schema": SCHEMA,
        "width": WIDTH,
        "data": { "values": values },
        "mark": { "type": "bar", "height": { "band": 0.7 } },
        "encoding": {
            "tooltip": tooltip,
            "y": { "field": "bar", "type": "nominal", "sort": null, "title": null },
            "x": { "field": "value", "type": "quantitative", "title": axis },
            "color": { "field": "part", "type": "nominal", "title": null, "sort": order,
                       "scale": { "domain": order, "range": palette() } },
            "order": { "field": "rank", "type": "ordinal" },
        },
    });
    Plot { title: title.to_owned(), spec }
}

/// One point of [`agreement`].
pub struct Point<'a> {
    /// Which workload and target.
    pub workload: &'a str,
    #[allow(missing_docs)]
    pub target: &'a str,
    /// Measured value and interval, seconds.
    pub measured_s: f64,
    #[allow(missing_docs)]
    pub low_s: f64,
    #[allow(missing_docs)]
    pub high_s: f64,
    /// Predicted value, seconds.
    pub predicted_s: f64,
}

/// The side of a square plot, pixels, and the most workloads that shapes tell apart.
const SQUARE: u32 = 560;
const SHAPES_MAX: usize = 6;

/// Predicted against measured on logarithmic axes, with the line of agreement. Of more than a few workloads only the
/// tooltip says which a point is.
pub fn agreement(title: &str, points: &[Point<'_>]) -> Plot {
    let values: Vec<Value> = points
        .iter()
        .map(|p| {
            let said = |s: f64| show::duration_ns(s * 1e9);
            json!({ "workload": p.workload, "target": p.target, "measured": p.measured_s, "low": p.low_s,
                    "high": p.high_s, "predicted": p.predicted_s, "said_measured": said(p.measured_s),
                    "said_interval": format!("{} to {}", said(p.low_s), said(p.high_s)),
                    "said_predicted": said(p.predicted_s) })
        })
        .collect();
    let ends = points.iter().flat_map(|p| [p.measured_s, p.predicted_s]).filter(|v| *v > 0.0);
    let (low, high) = ends.fold((f64::MAX, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    let ends = if high > 0.0 { [low * 0.8, high * 1.25] } else { [0.1, 10.0] };
    let line = json!([{ "v": ends[0] }, { "v": ends[1] }]);
    let scale = json!({ "type": "log", "domain": ends, "nice": false });
    let axis = json!({ "tickCount": 5, "format": "~g" });
    let x = json!({ "field": "measured", "type": "quantitative", "title": "measured by replay, s",
        "scale": scale, "axis": axis });
    let y =
        json!({ "field": "predicted", "type": "quantitative", "title": "predicted, s", "scale": scale, "axis": axis });
    let mut workloads: Vec<&str> = points.iter().map(|p| p.workload).collect();
    workloads.sort_unstable();
    workloads.dedup();
    let words = [
        ("workload", "workload"),
        ("target", "target"),
        ("said_measured", "measured by replay"),
        ("said_interval", "its 95 % interval"),
        ("said_predicted", "predicted"),
    ];
    let tooltip = words.map(|(field, title)| json!({ "field": field, "type": "nominal", "title": title }));
    let mut encoding = json!({ "x": x, "y": y,
        "color": { "field": "target", "type": "nominal", "scale": { "range": palette() } },
                               "tooltip": tooltip });
    if (2..=SHAPES_MAX).contains(&workloads.len()) {
        encoding["shape"] = json!({ "field": "workload", "type": "nominal" });
    }
    let spec = json!({
        "$schema": SCHEMA,
        "width": SQUARE,
        "height": SQUARE,
        "layer": [
            { "data": { "values": line }, "mark": { "type": "line", "color": "#888", "strokeDash": [4, 4] },
              "encoding": { "x": { "field": "v", "type": "quantitative" },
                  "y": { "field": "v", "type": "quantitative" } } },
            { "data": { "values": values }, "mark": { "type": "rule", "color": "#888" },
              "encoding": { "x": { "field": "low", "type": "quantitative" }, "x2": { "field": "high" }, "y": y } },
            { "data": { "values": values }, "mark": { "type": "point", "filled": true, "size": 80, "opacity": 1 },
              "encoding": encoding },
        ],
    });
    Plot { title: title.to_owned(), spec }
}

/// One point of [`interval_lines`].
pub struct IntervalPoint<'a> {
    /// Which line it is on.
    pub series: &'a str,
    #[allow(missing_docs)]
    pub x: f64,
    /// The value and its interval.
    pub y: f64,
    #[allow(missing_docs)]
    pub low: f64,
    #[allow(missing_docs)]
    pub high: f64,
}

/// Lines over a logarithmic axis whose points carry intervals; the other axis begins at zero.
pub fn interval_lines(title: &str, x_title: &str, y_title: &str, points: &[IntervalPoint<'_>]) -> Plot {
    let values: Vec<Value> = points
        .iter()
        .filter(|p| p.x > 0.0)
        .map(|p| json!({ "series": p.series, "x": p.x, "y": p.y, "low": p.low, "high": p.high }))
        .collect();
    let x = json!({ "field": "x", "type": "quantitative", "title": x_title, "scale": { "type": "log", "base": 2 },
                    "axis": { "labelExpr": BYTES_LABEL } });
    let color =
        json!({ "field": "series", "type": "nominal", "title": null, "sort": null, "scale": { "range": palette() } });
    let spec = json!({
        "$schema": SCHEMA,
        "width": WIDTH,
        "height": 280,
        "data": { "values": values },
        "encoding": { "x": x, "color": color },
        "layer": [
            { "mark": { "type": "rule", "strokeWidth": 1.5, "opacity": 0.6 },
              "encoding": { "y": { "field": "low", "type": "quantitative", "title": y_title },
                  "y2": { "field": "high" } } },
            { "mark": { "type": "line", "point": true, "tooltip": true },
              "encoding": { "y": { "field": "y", "type": "quantitative", "title": y_title } } },
        ],
    });
    Plot { title: title.to_owned(), spec }
}

/// Sizes on an axis of powers of two.
pub const BYTES_LABEL: &str = "datum.value >= 1073741824 ? datum.value / 1073741824 + ' GiB' : datum.value >= 1048576 \
                           ? datum.value / 1048576 + ' MiB' : datum.value >= 1024 ? datum.value / 1024 + ' KiB' : \
                           datum.value + ' B'";

/// Lines over numeric axes, given as (title, whether logarithmic); `points` are (series, x, y).
pub fn lines(title: &str, x: (&str, bool), y: (&str, bool), points: &[(String, f64, f64)]) -> Plot {
    // A logarithmic axis has no zero.
    let drawable = |(log_x, log_y): (bool, bool), px: f64, py: f64| (!log_x || px > 0.0) && (!log_y || py > 0.0);
    let values: Vec<Value> = points
        .iter()
        .filter(|(_, px, py)| drawable((x.1, y.1), *px, *py))
        .map(|(s, x, y)| json!({ "series": s, "x": x, "y": y }))
        .collect();
    let axis = |name: &str, (title, log): (&str, bool)| {
        let scale = if log { json!({ "type": "log" }) } else { json!({ "type": "linear" }) };
        json!({ "field": name, "type": "quantitative", "title": title, "scale": scale })
    };
    let spec = json!({
        "$schema": SCHEMA,
        "width": WIDTH,
        "height": 280,
        "data": { "values": values },
        "mark": { "type": "line", "point": true, "tooltip": true },
        "encoding": {
            "x": axis("x", x),
            "y": axis("y", y),
            "color": { "field": "series", "type": "nominal", "title": null, "scale": { "range": palette() } },
        },
    });
    Plot { title: title.to_owned(), spec }
}

/// A point of [`multiples`].
pub struct Multiple<'a> {
    /// Which panel it is in; empty where there is one.
    pub panel: &'a str,
    /// Which line it is on; empty where there is one.
    pub series: &'a str,
    /// Where across, as text.
    pub x: &'a str,
    /// The same as a number, where the axis is one of numbers.
    pub x_number: Option<f64>,
    /// The value and its interval.
    pub y: f64,
    #[allow(missing_docs)]
    pub low: f64,
    #[allow(missing_docs)]
    pub high: f64,
}

/// Panels side by side on common axes, of lines (of dots, where the axis across is of names) with intervals. Panels,
/// lines and names appear in the order of their first point.
pub fn multiples(title: &str, x_title: &str, y_title: &str, points: &[Multiple<'_>]) -> Plot {
    let mut panels: Vec<&str> = Vec::new();
    for point in points {
        if !panels.contains(&point.panel) {
            panels.push(point.panel);
        }
    }
    let is_numeric = points.iter().all(|p| p.x_number.is_some());
    let value = |p: &Multiple<'_>| {
        let x = p.x_number.map_or_else(|| Value::from(p.x), Value::from);
        json!({ "panel": p.panel, "series": p.series, "x": x, "y": p.y, "low": p.low, "high": p.high })
    };
    let values: Vec<Value> = points.iter().map(value).collect();
    let kind = if is_numeric { "quantitative" } else { "nominal" };
    let mut x = json!({ "field": "x", "type": kind, "title": x_title });
    if is_numeric {
        x["scale"] = json!({ "zero": false });
    } else {
        x["sort"] = Value::Null;
    }
    let has_series = points.iter().any(|p| !p.series.is_empty());
    let mut encoding = json!({ "x": x });
    if has_series {
        encoding["color"] = json!({ "field": "series", "type": "nominal", "title": null, "sort": null,
            "scale": { "range": palette() } });
    }
    if !is_numeric && has_series {
        encoding["xOffset"] = json!({ "field": "series", "type": "nominal", "sort": null });
    }
    let y = |field: &str| json!({ "field": field, "type": "quantitative", "title": y_title });
    let mark = if is_numeric {
        json!({ "type": "line", "point": true, "tooltip": true })
    } else {
        json!({ "type": "point", "filled": true, "size": 60, "opacity": 1, "tooltip": true })
    };
    let layer = json!([
        { "mark": { "type": "rule", "strokeWidth": 1.5, "opacity": 0.6 },
          "encoding": { "y": y("low"), "y2": { "field": "high" } } },
        { "mark": mark, "encoding": { "y": y("y") } },
    ]);
    let spec = if panels.len() > 1 {
        let columns = panels.len().min(3);
        let width = (WIDTH - 80) / u32::try_from(columns).unwrap_or(1) - 30;
        json!({
            "$schema": SCHEMA,
            "data": { "values": values },
            "facet": { "field": "panel", "type": "nominal", "sort": panels, "title": null,
                "header": { "labelFontWeight": "bold" } },
            "columns": columns,
            "spec": { "width": width, "height": 180, "encoding": encoding, "layer": layer },
        })
    } else {
        json!({ "$schema": SCHEMA, "width": WIDTH, "height": 280, "data": { "values": values }, "encoding": encoding,
            "layer": layer })
    };
    Plot { title: title.to_owned(), spec }
}

/// A point of [`front`].
pub struct Weighed<'a> {
    /// What it is.
    pub name: &'a str,
    /// Its two figures.
    pub x: f64,
    #[allow(missing_docs)]
    pub y: f64,
    /// Whether nothing beats it.
    pub on_front: bool,
}

/// Two figures of many things, and which of them nothing beats in both, joined by a line.
pub fn front(title: &str, x_title: &str, y_title: &str, points: &[Weighed<'_>]) -> Plot {
    let value = |p: &Weighed<'_>| {
        json!({ "name": p.name, "x": p.x, "y": p.y,
            "on": if p.on_front { "on the front" } else { "beaten" } })
    };
    let values: Vec<Value> = points.iter().map(value).collect();
    let axis = |field: &str, title: &str| {
        json!({ "field": field, "type": "quantitative", "title": title,
            "scale": { "zero": false } })
    };
    let places = ["on the front", "beaten"];
    let spec = json!({
        "$schema": SCHEMA,
        "width": WIDTH,
        "height": 360,
        "data": { "values": values },
        "encoding": { "x": axis("x", x_title), "y": axis("y", y_title) },
        "layer": [
            { "transform": [{ "filter": "datum.on == 'on the front'" }],
              "mark": { "type": "line", "color": PALETTE[5], "strokeDash": [4, 3] },
              "encoding": { "order": { "field": "x", "type": "quantitative" } } },
            { "mark": { "type": "point", "filled": true, "size": 60, "opacity": 0.9, "tooltip": { "content": "data" } },
              "encoding": { "color": { "field": "on", "type": "nominal", "title": null,
                                       "scale": { "domain": places, "range": [PALETTE[5], PALETTE[9]] } } } },
        ],
    });
    Plot { title: title.to_owned(), spec }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The axis was in seconds, the table in milliseconds, and the tooltip had ten digits.
    #[test]
    fn axis_values_and_tooltips_have_one_unit() {
        let bar = |label, value_s| Bar { label, value_s, low_s: 0.5 * value_s, high_s: 2.0 * value_s };
        let plot = interval_bars("t", Counted::Time("time"), &[bar("a", 0.154), bar("b", 0.0004)]);
        assert_eq!(plot.spec["layer"][0]["encoding"]["x"]["title"], "time, ms");
        assert_eq!(plot.spec["data"]["values"][0]["value"], 154.0);
        assert_eq!(plot.spec["data"]["values"][0]["said"], "154 ms (77.0 to 308)");
        assert_eq!(plot.spec["data"]["values"][1]["said"], "0.40 ms (0.20 to 0.80)");
        let parts = [("a".to_owned(), "open".to_owned(), 0.9), ("a".to_owned(), "read".to_owned(), 0.2)];
        let plot = stacked_bars("t", Counted::Time("time"), &["open".to_owned(), "read".to_owned()], &parts);
        assert_eq!(plot.spec["encoding"]["x"]["title"], "time, s", "of the whole bar");
        assert_eq!(plot.spec["data"]["values"][1]["said"], "0.20 s");
        let plot = interval_bars("t", Counted::Other("MiB/s"), &[bar("a", 154.0)]);
        assert_eq!(plot.spec["layer"][0]["encoding"]["x"]["title"], "MiB/s");
    }

    /// Relative luminance of `#rrggbb` (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        let linear = |c: f64| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
        0.2126 * linear(part(1)) + 0.7152 * linear(part(3)) + 0.0722 * linear(part(5))
    }

    #[test]
    fn every_colour_stands_out_on_light_and_on_dark_ground() {
        for colour in PALETTE {
            // What Chromium and Firefox paint under `color-scheme: dark` is no lighter than #1c1b22.
            for ground in ["#ffffff", "#121212", "#1c1b22"] {
                let (a, b) = (luminance(colour), luminance(ground));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 3.0, "{colour} on {ground}: {contrast:.2}");
            }
        }
    }
}
