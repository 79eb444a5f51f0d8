//! The disk as a square: addresses along Hilbert's curve, so that what lies together on disk lies together here.

use crate::{Map, MapOrder};
use document::plot::Plot;
use document::{Cell, Document, Table};
use serde_json::{Value, json};
use std::fmt::Write as _;
use units::show;

/// Finer maps are drawn with so many cells in a row.
const SIDE_MAX: u32 = 256;
/// The width and height of one or two maps, pixels: a multiple of every side.
const PIXELS: u32 = 512;
/// More maps than two are drawn smaller, and in rows of three.
const MANY_SIDE_MAX: u32 = 64;
const MANY_PIXELS: u32 = 320;

/// One square.
pub struct Panel<'a> {
    /// What it is titled.
    pub title: String,
    /// What it shows.
    pub map: &'a Map,
    /// When bytes were written, as `Ages::title` says, from nanoseconds since the epoch.
    pub age: Box<dyn Fn(i64) -> f64 + 'a>,
}

/// Maps side by side, in one scale of ages titled `age_title`; the lightest colour is the newest where `new_is_high`,
/// else the oldest.
pub fn maps(document: &mut Document, panels: &[Panel<'_>], age_title: &str, new_is_high: bool) {
    if panels.is_empty() {
        return;
    }
    document.paragraph(described(panels));
    document.table(parts(panels));
    document.plot(plot(panels, age_title, new_is_high));
    document.text_only(text(panels));
    document.list(remarks(panels));
}

fn described(panels: &[Panel<'_>]) -> String {
    let sizes: Vec<String> =
        panels.iter().map(|p| show::bytes(p.map.span_bytes as f64 / p.map.order.cells() as f64)).collect();
    let size = match sizes.split_first() {
        Some((first, rest)) if rest.iter().all(|s| s == first) => first.clone(),
        _ => sizes.join(" and "),
    };
    format!(
        "Addresses run along Hilbert's curve from the top left corner to the top right: what lies together on disk \
         lies together here. A cell is {size}."
    )
}

/// What is on each map, in bytes.
fn parts(panels: &[Panel<'_>]) -> Table {
    let mut table = Table::new(
        "map",
        "",
        &[
            ("Map", "map"),
            ("Addresses", "span_bytes"),
            ("Files", "file_bytes"),
            ("Free", "free_bytes"),
            ("Metadata and all else", "other_bytes"),
            ("Cells without files", "free_cells"),
            ("Cells full of files", "full_cells"),
        ],
    );
    for panel in panels {
        let (map, totals) = (panel.map, panel.map.totals());
        let cells = 0..map.order.cells();
        let other: u64 = cells.clone().fold(0, |sum, cell| sum.saturating_add(map.other_in(cell)));
        let share_of_cells = |is: &dyn Fn(u64, u64) -> bool| {
            let count =
                cells.clone().filter(|c| is(map.file_bytes.get(*c).copied().unwrap_or(0), map.covered_bytes(*c)));
            Cell::Share(count.count() as f64 / map.order.cells() as f64)
        };
        table.row(vec![
            Cell::from(panel.title.clone()),
            Cell::Bytes(totals.span_bytes as f64),
            Cell::Bytes(totals.file_bytes as f64),
            totals.free_bytes.map_or(Cell::Empty, |bytes| Cell::Bytes(bytes as f64)),
            if totals.free_bytes.is_some() { Cell::Bytes(other as f64) } else { Cell::Empty },
            share_of_cells(&|files, _| files == 0),
            share_of_cells(&|files, covered| covered > 0 && files == covered),
        ]);
    }
    table
}

/// What the maps cannot show.
fn remarks(panels: &[Panel<'_>]) -> Vec<String> {
    let mut remarks = Vec::new();
    for panel in panels {
        let (title, map) = (&panel.title, panel.map);
        if let Some(why) = map.free_bytes.why() {
            remarks.push(format!("{title}: what is free is not known ({why}); what is not files may be free"));
        }
        let bytes = |n: u64| show::bytes(n as f64);
        if map.unallocated_bytes > 0 {
            remarks.push(format!("{title}: of what is free, {} are in no chunk yet", bytes(map.unallocated_bytes)));
        }
        if map.unplaced_bytes > 0 {
            let size = bytes(map.unplaced_bytes);
            remarks.push(format!("{title}: {size} of files have no known place (compressed or not written back)"));
        }
        if map.shared_again_bytes > 0 {
            remarks.push(format!("{title}: {} are shared again and shown once", bytes(map.shared_again_bytes)));
        }
        if map.excess_bytes > 0 {
            let size = bytes(map.excess_bytes);
            remarks
                .push(format!("{title}: {size} were left out, as their place held other bytes: it changed meanwhile"));
        }
    }
    remarks
}

fn plot(panels: &[Panel<'_>], age_title: &str, new_is_high: bool) -> Plot {
    let many = panels.len() > 2;
    let (side, pixels) = if many { (MANY_SIDE_MAX, MANY_PIXELS) } else { (SIDE_MAX, PIXELS) };
    let drawn = |order: MapOrder| MapOrder::of_side(side).map_or(order, |most| order.min(most));
    let maps: Vec<Map> = panels.iter().map(|p| p.map.coarser(drawn(p.map.order))).collect();
    let ages = |panel: &Panel<'_>, map: &Map| -> Vec<Option<f64>> {
        map.written_unix_ns.iter().map(|w| w.map(|ns| (panel.age)(ns))).collect()
    };
    let ages: Vec<Vec<Option<f64>>> = panels.iter().zip(&maps).map(|(p, m)| ages(p, m)).collect();
    let high = ages.iter().flatten().flatten().fold(0.0f64, |a, b| a.max(*b));
    let high = if high > 0.0 { high } else { 1.0 };
    let colour = json!({
        "field": "a", "type": "quantitative",
        "scale": { "scheme": "viridis", "domain": [0, high], "reverse": !new_is_high, "clamp": true },
        "legend": { "title": age_title, "orient": "bottom", "gradientLength": 300, "gradientThickness": 12,
            "titleLimit": 400,
                    "format": if high >= 10.0 { ",.0f" } else { ".2~f" } },
    });
    let squares: Vec<Value> = panels
        .iter()
        .zip(&maps)
        .zip(&ages)
        .map(|((panel, map), ages)| square(&panel.title, map, ages, &colour, pixels))
        .collect();
    let free_known = panels.iter().all(|p| p.map.free_bytes.known().is_some());
    let spec = json!({
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        // Tens of thousands of cells are too many elements for SVG.
        "usermeta": { "embedOptions": { "renderer": "canvas" } },
        "concat": squares,
        "columns": if many { 3 } else { 2 },
        "spacing": 24,
        "config": { "legend": { "layout": { "bottom": { "margin": 30 } } } },
        "resolve": { "scale": { "color": "shared", "fill": "shared" } },
    });
    let light = if free_known { "Light grey is free" } else { "Light grey is not files, and may be free" };
    let title = format!("{light}, dark grey metadata and all else; files are coloured by when they were last written.");
    Plot { title, spec }
}

/// Maps drawn over time at most, and cells in a row of each: a page of a few megabytes.
const FRAMES_MAX: usize = 24;
const FRAMES_SIDE_MAX: u32 = 64;

/// One map with a slider that goes from the first panel to the last; of many, evenly spaced ones. Nothing of fewer than
/// three, which stand beside each other.
pub fn over_time(document: &mut Document, panels: &[Panel<'_>], age_title: &str, new_is_high: bool) {
    if panels.len() > 2 {
        let frames = panels.len().min(FRAMES_MAX);
        let at = |frame: usize| panels.get(frame * (panels.len() - 1) / (frames - 1));
        document.plot(slider(&(0..frames).filter_map(at).collect::<Vec<_>>(), age_title, new_is_high));
    }
}

fn slider(panels: &[&Panel<'_>], age_title: &str, new_is_high: bool) -> Plot {
    let mut rows = String::from("t,x,y,i,f,o,a\n");
    let (mut side, mut high) = (1, 0.0f64);
    for (frame, panel) in panels.iter().enumerate() {
        let drawn = MapOrder::of_side(FRAMES_SIDE_MAX).map_or(panel.map.order, |most| panel.map.order.min(most));
        let map = panel.map.coarser(drawn);
        side = map.order.side().max(side);
        let ages: Vec<Option<f64>> = map.written_unix_ns.iter().map(|w| w.map(|ns| (panel.age)(ns))).collect();
        high = ages.iter().flatten().fold(high, |a, b| a.max(*b));
        cells(&map, &ages, |row| {
            // Writing to a string does not fail.
            let _ = writeln!(rows, "{frame},{row}");
        });
    }
    let labels: Vec<&str> = panels.iter().map(|panel| panel.title.as_str()).collect();
    let across = |field: &str| {
        json!({ "field": field, "type": "quantitative", "axis": null,
                "scale": { "domain": [0, side], "reverse": field == "y", "nice": false, "zero": false } })
    };
    let ends = json!({ "x": across("x"), "x2": { "field": "X" }, "y": across("y"), "y2": { "field": "Y" } });
    let with = |more: Value| {
        let mut encoding = ends.clone();
        if let (Some(encoding), Value::Object(more)) = (encoding.as_object_mut(), more) {
            encoding.extend(more);
        }
        encoding
    };
    let opacity = |field: &str| {
        json!({ "field": field, "type": "quantitative", "legend": null,
            "scale": { "domain": [0, 100], "range": [0.1, 1] } })
    };
    let colour = json!({
        "field": "a", "type": "quantitative",
        "scale": { "scheme": "viridis", "domain": [0, if high > 0.0 { high } else { 1.0 }], "reverse": !new_is_high,
            "clamp": true },
        "legend": { "title": age_title, "orient": "bottom", "gradientLength": 220, "gradientThickness": 12,
            "titleLimit": 300 },
    });
    let tooltip = json!([
        { "field": "f", "type": "quantitative", "title": "files, %" },
        { "field": "o", "type": "quantitative", "title": "metadata and all else, %" },
        { "field": "a", "type": "quantitative", "title": age_title, "format": ".1f" },
    ]);
    let shown = json!({ "filter": "datum.t === at" });
    let spec = json!({
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "usermeta": { "embedOptions": { "renderer": "canvas" } },
        "title": { "text": { "expr": "labels[at]" } },
        "params": [
            { "name": "at", "value": panels.len() - 1,
              "bind": { "input": "range", "min": 0, "max": panels.len() - 1, "step": 1, "name": "Day" } },
            { "name": "labels", "value": labels },
        ],
        "width": PIXELS, "height": PIXELS,
        "view": { "fill": "#d9d9d9" },
        "data": { "values": rows, "format": { "type": "csv", "parse":
            { "t": "number", "x": "number", "y": "number", "i": "number", "f": "number", "o": "number",
                "a": "number" } } },
        "transform": [shown, { "calculate": "datum.x + 1", "as": "X" }, { "calculate": "datum.y + 1", "as": "Y" }],
        "layer": [
            { "transform": [{ "filter": "datum.o > 0" }], "mark": { "type": "rect", "color": "#6b6b6b" },
              "encoding": with(json!({ "opacity": opacity("o"), "tooltip": tooltip })) },
            { "transform": [{ "filter": "datum.f > 0" }], "mark": "rect",
              "encoding": with(json!({ "color": colour, "opacity": opacity("f"), "tooltip": tooltip })) },
        ],
    });
    let title = "The disk over time: the slider goes from the first survey to the last. Light grey is free, dark grey \
        metadata and all else.";
    Plot { title: title.to_owned(), spec }
}

/// The cells that hold something, as `x,y,cell,files %,metadata and all else %,age`.
fn cells(map: &Map, ages: &[Option<f64>], mut row: impl FnMut(std::fmt::Arguments<'_>)) {
    for cell in 0..map.order.cells() {
        let (x, y) = map.position(cell);
        let covered = map.covered_bytes(cell).max(1) as f64;
        let percent = |bytes: u64| (100.0 * bytes as f64 / covered).round();
        let files = percent(map.file_bytes.get(cell).copied().unwrap_or(0));
        let other = if map.free_bytes.known().is_some() { percent(map.other_in(cell)) } else { 0.0 };
        if files == 0.0 && other == 0.0 {
            continue;
        }
        let age = ages.get(cell).copied().flatten().map(|age| format!("{age:.2}")).unwrap_or_default();
        row(format_args!("{x},{y},{cell},{files},{other},{age}"));
    }
}

/// One map: a ground that is free, over it what is neither free nor files, over it the files.
fn square(title: &str, map: &Map, ages: &[Option<f64>], colour: &Value, pixels: u32) -> Value {
    let side = map.order.side();
    // CSV holds sixteen thousand rows in a third of what JSON needs.
    let mut rows = String::from("x,y,i,f,o,a\n");
    cells(map, ages, |row| {
        // Writing to a string does not fail.
        let _ = writeln!(rows, "{row}");
    });
    let across = |field: &str| {
        json!({ "field": field, "type": "quantitative", "axis": null,
                "scale": { "domain": [0, side], "reverse": field == "Y", "nice": false, "zero": false } })
    };
    let (x, y) = (across("X"), across("Y"));
    let pixels = (pixels / side).max(1);
    let cell_mark = json!({ "type": "rect", "width": pixels, "height": pixels, "tooltip": true });
    let kinds = |which: &str| {
        json!({ "datum": which, "type": "nominal",
                "scale": { "domain": ["free", "metadata and all else"], "range": ["#d9d9d9", "#6b6b6b"] },
                "legend": { "title": null, "orient": "bottom", "symbolType": "square", "symbolOpacity": 1,
                    "labelLimit": 260 } })
    };
    let opacity = |field: &str, title: &str| {
        json!({ "field": field, "type": "quantitative", "title": title, "legend": null,
                "scale": { "domain": [0, 100], "range": [0.1, 1] } })
    };
    let gib = map.span_bytes as f64 / map.order.cells() as f64 / f64::from(1 << 30);
    let start = map.start_bytes as f64 / f64::from(1 << 30);
    let tooltip = json!([
        { "field": "at", "type": "quantitative", "title": "address, GiB", "format": ".3f" },
        { "field": "f", "type": "quantitative", "title": "files, %" },
        { "field": "o", "type": "quantitative", "title": "metadata and all else, %" },
        { "field": "a", "type": "quantitative", "title": colour["legend"]["title"], "format": ".1f" },
    ]);
    let whole = json!({ "x": { "datum": 0, "type": "quantitative", "axis": null, "scale": x["scale"] },
                        "x2": { "datum": side },
                        "y": { "datum": 0, "type": "quantitative", "axis": null, "scale": y["scale"] },
                        "y2": { "datum": side }, "fill": kinds("free") });
    json!({
        "title": { "text": title, "fontSize": 13 },
        "width": pixels * side, "height": pixels * side,
        "data": { "values": rows, "format": { "type": "csv", "parse":
            { "x": "number", "y": "number", "i": "number", "f": "number", "o": "number", "a": "number" } } },
        "transform": [
            { "calculate": "datum.x + 0.5", "as": "X" },
            { "calculate": "datum.y + 0.5", "as": "Y" },
            { "calculate": format!("{start} + datum.i * {gib}"), "as": "at" },
        ],
        "layer": [
            { "data": { "values": [{}] }, "mark": "rect", "encoding": whole },
            { "transform": [{ "filter": "datum.o > 0" }], "mark": cell_mark,
              "encoding": { "x": x, "y": y, "fill": kinds("metadata and all else"),
                            "opacity": opacity("o", "metadata and all else, %"), "tooltip": tooltip } },
            { "transform": [{ "filter": "datum.f > 0" }], "mark": cell_mark,
              "encoding": { "x": x, "y": y, "color": colour, "opacity": opacity("f", "files, %"),
                  "tooltip": tooltip } },
        ],
    })
}

/// The maps in characters: a character is two cells of a square, one above the other. 64 columns for one, 32 for each
/// of several, in pairs.
fn text(panels: &[Panel<'_>]) -> String {
    let side = if panels.len() > 1 { 32 } else { 64 };
    let mut lines = Vec::new();
    for pair in panels.chunks(2) {
        let drawn: Vec<Vec<String>> = pair
            .iter()
            .map(|panel| {
                let mut rows = text_map(panel.map, side);
                let width = rows.first().map_or(0, |row| row.chars().count());
                let title: String = panel.title.chars().take(width).collect();
                rows.insert(0, format!("{title:width$}"));
                rows
            })
            .collect();
        for row in 0..drawn.iter().map(Vec::len).max().unwrap_or(0) {
            let parts: Vec<&str> = drawn.iter().map(|rows| rows.get(row).map_or("", String::as_str)).collect();
            lines.push(parts.join("  ").trim_end().to_owned());
        }
    }
    lines.push("In use: blank to 5 %, ░ to 35 %, ▒ to 65 %, ▓ to 95 %, █ more.".to_owned());
    lines.join("\n")
}

fn text_map(map: &Map, side: u32) -> Vec<String> {
    let map = MapOrder::of_side(side).map_or_else(|| map.clone(), |order| map.coarser(order));
    let side = map.order.side();
    let columns = usize::try_from(side).unwrap_or(0);
    // Of each pair of rows: bytes in use and bytes covered.
    let mut grid = vec![vec![(0u64, 0u64); columns]; columns.div_ceil(2)];
    for cell in 0..map.order.cells() {
        let (x, y) = map.position(cell);
        let place = usize::try_from(y / 2).ok().zip(usize::try_from(x).ok());
        let covered = map.covered_bytes(cell);
        let used = match map.free_in(cell) {
            Some(free) => covered.saturating_sub(free),
            None => map.file_bytes.get(cell).copied().unwrap_or(0),
        };
        if let Some((u, c)) = place.and_then(|(row, column)| grid.get_mut(row)?.get_mut(column)) {
            (*u, *c) = (u.saturating_add(used), c.saturating_add(covered));
        }
    }
    let shade = |&(used, covered): &(u64, u64)| match 100.0 * used as f64 / covered.max(1) as f64 {
        p if p <= 5.0 => ' ',
        p if p <= 35.0 => '░',
        p if p <= 65.0 => '▒',
        p if p <= 95.0 => '▓',
        _ => '█',
    };
    let edge = |left: char, right: char| format!("{left}{}{right}", "─".repeat(columns));
    let rows = grid.iter().map(|row| format!("│{}│", row.iter().map(shade).collect::<String>()));
    std::iter::once(edge('┌', '┐')).chain(rows).chain(std::iter::once(edge('└', '┘'))).collect()
}
