//! Lines over one axis, as most figures of a report are: axes that know their unit, colours in an order that means
//! something, panels side by side.

use crate::Plot;
use crate::plot::{BYTES_LABEL, SCHEMA, WIDTH, palette};
use serde_json::{Map, Value, json};

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Axis<'a> {
    /// Bytes, by powers of two on a logarithmic scale.
    Bytes(&'a str),
    /// A share from 0 to 1, in per cent.
    Share(&'a str),
    /// A score that ends at 1 and is near it: the scale begins where the values do.
    Score(&'a str),
    /// Simulated days.
    Days(&'a str),
    /// A number from zero.
    Number(&'a str),
    /// One thing over another: from zero to one at least.
    Ratio(&'a str),
}

/// How series are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Things of different kind: colours as far apart as can be.
    Apart,
    /// Stages of one thing: from the first to the last, dark to light.
    InOrder,
}

/// A point of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Dot {
    /// Which panel it is in; empty where there is one.
    pub panel: String,
    /// Which line it is on, by colour.
    pub series: String,
    /// Which line it is on, by dashes; empty where that says nothing.
    pub kind: String,
    /// Whether it is a mark of its own, which no line goes through: of a curve little more is known.
    pub alone: bool,
    /// Where, across.
    pub x: f64,
    /// Where, upwards.
    pub y: f64,
}

impl Dot {
    /// On a line of the only panel.
    pub fn new(series: impl Into<String>, x: f64, y: f64) -> Dot {
        Dot { panel: String::new(), series: series.into(), kind: String::new(), alone: false, x, y }
    }
}

/// More points than this on a line are a line without dots.
const DOTS_MAX: usize = 60;
/// The width of one of several panels, pixels.
const PANEL_WIDTH: u32 = 190;

/// Draws lines through points, in the order given. Panels, series and kinds appear in the order of their first point.
pub fn chart(title: &str, x: Axis<'_>, y: Axis<'_>, colours: Colours, dots: &[Dot]) -> Plot {
    drawn(title, x, y, colours, dots, false)
}

/// The same in steps, as a cumulative distribution goes.
pub fn steps(title: &str, x: Axis<'_>, y: Axis<'_>, colours: Colours, dots: &[Dot]) -> Plot {
    drawn(title, x, y, colours, dots, true)
}

fn drawn(title: &str, x: Axis<'_>, y: Axis<'_>, colours: Colours, dots: &[Dot], steps: bool) -> Plot {
    // A logarithmic axis has no zero.
    let drawable = |axis: Axis<'_>, value: f64| value.is_finite() && (!matches!(axis, Axis::Bytes(_)) || value > 0.0);
    let dots: Vec<&Dot> = dots.iter().filter(|d| drawable(x, d.x) && drawable(y, d.y)).collect();
    let panels = in_order(dots.iter().map(|d| d.panel.as_str()));
    let (series, kinds) =
        (in_order(dots.iter().map(|d| d.series.as_str())), in_order(dots.iter().map(|d| d.kind.as_str())));
    let values: Vec<Value> = dots
        .iter()
        .enumerate()
        .map(|(i, d)| {
            let mut value = json!({ "series": d.series, "x": d.x, "y": d.y, "i": i });
            if let Some(fields) = value.as_object_mut() {
                if panels.len() > 1 {
                    fields.insert("panel".to_owned(), Value::from(d.panel.as_str()));
                }
                if kinds.len() > 1 {
                    fields.insert("kind".to_owned(), Value::from(d.kind.as_str()));
                }
                if d.alone {
                    fields.insert("alone".to_owned(), Value::from(true));
                }
            }
            value
        })
        .collect();
    let longest = series
        .iter()
        .flat_map(|name| panels.iter().map(move |panel| (name, panel)))
        .map(|(name, panel)| {
            let on_it = |d: &&&Dot| !d.alone && d.series == *name && d.panel == *panel;
            dots.iter().filter(on_it).count() / kinds.len().max(1)
        })
        .max()
        .unwrap_or(0);
    let y_values = || dots.iter().map(|d| d.y);
    let mut encoding = json!({
        "x": axis("x", x, dots.iter().map(|d| d.x)),
        "y": axis("y", y, y_values()),
        "order": { "field": "i", "type": "quantitative" },
        "color": colour(&series, colours),
    });
    let interpolate = if steps { "step-after" } else { "linear" };
    let mark =
        json!({ "type": "line", "point": longest <= DOTS_MAX && !steps, "tooltip": true, "interpolate": interpolate });
    let mut spec = Map::new();
    spec.insert("$schema".to_owned(), json!(SCHEMA));
    spec.insert("data".to_owned(), json!({ "values": values }));
    if let (true, Some(encoding)) = (kinds.len() > 1, encoding.as_object_mut()) {
        let dash = json!({ "field": "kind", "type": "nominal", "title": null, "sort": kinds,
                           "scale": { "domain": kinds, "range": [[1, 0], [5, 4], [2, 2]] },
                           "legend": { "symbolType": "stroke", "symbolStrokeWidth": 2 } });
        encoding.insert("strokeDash".to_owned(), dash);
    }
    let mut marks = Map::new();
    if dots.iter().any(|d| d.alone) {
        let single = json!({ "type": "point", "shape": "diamond", "size": 110, "strokeWidth": 2, "tooltip": true });
        let layer = json!([{ "transform": [{ "filter": "!datum.alone" }], "mark": mark },
                           { "transform": [{ "filter": "datum.alone" }], "mark": single }]);
        marks.insert("layer".to_owned(), layer);
    } else {
        marks.insert("mark".to_owned(), mark);
    }
    if panels.len() > 1 {
        let panel_width = if panels.len() == 2 { 2 * PANEL_WIDTH } else { PANEL_WIDTH * 3 / 2 };
        let header = json!({ "labelFontWeight": "bold" });
        let facet = json!({ "field": "panel", "type": "nominal", "sort": panels, "title": null, "header": header });
        spec.insert("facet".to_owned(), facet);
        spec.insert("columns".to_owned(), json!(3));
        let mut inner = json!({ "width": panel_width, "height": 200, "encoding": encoding });
        if let Some(inner) = inner.as_object_mut() {
            inner.extend(marks);
        }
        spec.insert("spec".to_owned(), inner);
    } else {
        spec.insert("width".to_owned(), json!(WIDTH));
        spec.insert("height".to_owned(), json!(280));
        spec.insert("encoding".to_owned(), encoding);
        spec.extend(marks);
    }
    Plot { title: title.to_owned(), spec: Value::Object(spec) }
}

fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn colour(series: &[&str], colours: Colours) -> Value {
    let legend = match series {
        [_] | [] => Value::Null,
        _ => json!({}),
    };
    let scale = match colours {
        Colours::Apart => json!({ "domain": series, "range": palette() }),
        // Both ends of the scheme are left out: they vanish on dark and on light ground.
        Colours::InOrder => json!({ "domain": series, "scheme": { "name": "viridis", "extent": [0.1, 0.9] } }),
    };
    let kind = if colours == Colours::Apart { "nominal" } else { "ordinal" };
    json!({ "field": "series", "type": kind, "title": null, "sort": series, "scale": scale, "legend": legend })
}

fn axis(field: &str, axis: Axis<'_>, values: impl Iterator<Item = f64>) -> Value {
    let quantitative = |title: &str, scale: Value, axis: Value| {
        json!({ "field": field, "type": "quantitative",
            "title": title, "scale": scale, "axis": axis })
    };
    match axis {
        Axis::Bytes(title) => {
            let (low, high) = values.fold((f64::MAX, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
            let scale = json!({ "type": "log", "base": 2, "nice": false });
            quantitative(
                title,
                scale,
                json!({ "labelExpr": BYTES_LABEL, "values": powers(low, high), "labelOverlap": "greedy",
                    "labelSeparation": 8 }),
            )
        }
        Axis::Share(title) => {
            quantitative(title, json!({ "domain": [0, 1] }), json!({ "format": ".0%", "tickCount": 5 }))
        }
        Axis::Score(title) => {
            let least = values.fold(1.0f64, f64::min);
            // At least a twentieth is shown, so that noise does not fill the plot.
            let from = (((least.min(0.95) - 0.005) * 20.0).floor() / 20.0).max(0.0);
            quantitative(title, json!({ "domain": [from, 1], "zero": false }), json!({ "tickCount": 6 }))
        }
        Axis::Days(title) => {
            quantitative(title, json!({ "zero": true, "nice": false }), json!({ "tickMinStep": 1, "tickCount": 10 }))
        }
        Axis::Ratio(title) => {
            let most = values.fold(1.0f64, f64::max);
            quantitative(title, json!({ "domain": [0, most], "nice": true }), json!({ "tickCount": 6 }))
        }
        Axis::Number(title) => quantitative(title, json!({ "zero": true }), json!({ "tickCount": 6 })),
    }
}

/// Powers of two from one value to another, a dozen at most.
fn powers(low: f64, high: f64) -> Vec<f64> {
    if !(low > 0.0 && high >= low && high.is_finite()) {
        return Vec::new();
    }
    let (first, last) = (low.log2().floor() as i32, high.log2().ceil() as i32);
    let step = usize::try_from((last - first) / 12 + 1).unwrap_or(1);
    (first..=last).step_by(step).map(|exponent| 2f64.powi(exponent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_what_cannot_be_drawn_left_out() {
        let dots =
            [Dot::new("z", 4.0, 0.5), Dot::new("a", 0.0, 0.5), Dot::new("a", 8.0, f64::NAN), Dot::new("a", 8.0, 0.1)];
        let plot = chart("t", Axis::Bytes("b"), Axis::Share("s"), Colours::Apart, &dots);
        assert_eq!(plot.spec["data"]["values"].as_array().map(Vec::len), Some(2));
        assert_eq!(plot.spec["encoding"]["color"]["scale"]["domain"], json!(["z", "a"]));
        assert_eq!(plot.spec["encoding"]["x"]["axis"]["values"], json!([4.0, 8.0]));
        assert!(plot.spec.get("facet").is_none());
    }

    #[test]
    fn what_is_alone_is_on_no_line() {
        let alone = Dot { alone: true, ..Dot::new("published", 2.0, 0.5) };
        let dots = [Dot::new("ours", 1.0, 0.4), Dot::new("ours", 2.0, 0.6), alone];
        let plot = chart("t", Axis::Days("d"), Axis::Ratio("r"), Colours::Apart, &dots);
        assert_eq!(plot.spec["layer"].as_array().map(Vec::len), Some(2));
        assert_eq!(plot.spec["layer"][1]["transform"][0]["filter"], json!("datum.alone"));
        let marked =
            plot.spec["data"]["values"].as_array().map(|all| all.iter().filter(|v| v["alone"] == json!(true)).count());
        assert_eq!((marked, plot.spec.get("mark")), (Some(1), None));
        let panels = dots.map(|dot| Dot { panel: format!("{}", dot.x), ..dot });
        let plot = chart("t", Axis::Days("d"), Axis::Ratio("r"), Colours::Apart, &panels);
        assert_eq!(plot.spec["spec"]["layer"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn scores_show_a_twentieth_at_least() {
        let from = |least: f64| {
            let plot = chart("t", Axis::Days("d"), Axis::Score("s"), Colours::Apart, &[Dot::new("a", 1.0, least)]);
            plot.spec["encoding"]["y"]["scale"]["domain"][0].as_f64()
        };
        assert_eq!((from(1.0), from(0.93), from(0.0)), (Some(0.9), Some(0.9), Some(0.0)));
    }
}
