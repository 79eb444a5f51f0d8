//! How a prediction depends on its caches: over the time of the trace, and on the size of the data cache.

use crate::cache_sizes::CacheSize;
use crate::pipeline::{CacheTimeline, Pace, SystemPrediction};
use document::plot::{BYTES_LABEL, Counted, PALETTE, SCHEMA, WIDTH, palette};
use document::{Cell, Plot, Table};
use serde_json::{Value, json};
use units::show;

const MIB: f64 = 1048576.0;

/// Page reads found in memory, dirty data and write-back over the time of the trace, of one system at a time, or of
/// several whose caches did the same. `None`: nothing was read or written.
pub(crate) fn over_time(systems: &[&SystemPrediction], pace: Pace) -> Option<Plot> {
    let mut rows = Vec::new();
    let mut end_s = 0.0f64;
    // Systems whose caches did the same are shown as one.
    let mut alike: Vec<(String, &CacheTimeline)> = Vec::new();
    for system in systems {
        match alike.iter_mut().find(|(_, timeline)| **timeline == system.cache_timeline) {
            Some((names, _)) => *names = format!("{names}, {}", system.system),
            None => alike.push((system.system.clone(), &system.cache_timeline)),
        }
    }
    for (names, t) in &alike {
        let stretches = t.page_hits.iter().zip(&t.page_misses).zip(t.dirty_bytes.iter().zip(&t.written_back_bytes));
        for (i, ((&hits, &misses), (&dirty, &written))) in stretches.enumerate() {
            let (from_s, to_s) = (i as f64 * t.stretch_ns as f64 / 1e9, (i + 1) as f64 * t.stretch_ns as f64 / 1e9);
            end_s = end_s.max(to_s);
            let share = (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64);
            rows.push(
                json!({ "system": names, "from": from_s, "to": to_s, "share": share, "hits": hits, "misses": misses,
                              "dirty": dirty as f64 / MIB, "written": written as f64 / MIB }),
            );
        }
    }
    let nothing =
        |row: &Value| ["hits", "misses", "dirty", "written"].iter().all(|field| row[*field].as_f64() == Some(0.0));
    if rows.iter().all(nothing) {
        return None;
    }
    let x = |title: Option<&str>| {
        json!({ "field": "from", "type": "quantitative", "title": title,
            "scale": { "domain": [0, end_s], "nice": false } })
    };
    let tooltip = json!([
        { "field": "from", "type": "quantitative", "title": "from, s", "format": ".4~g" },
        { "field": "to", "type": "quantitative", "title": "to, s", "format": ".4~g" },
        { "field": "share", "type": "quantitative", "title": "page reads in memory", "format": ".1%" },
        { "field": "hits", "type": "quantitative", "title": "pages in memory", "format": "," },
        { "field": "misses", "type": "quantitative", "title": "pages not in memory", "format": "," },
        { "field": "dirty", "type": "quantitative", "title": "dirty, MiB", "format": ".4~g" },
        { "field": "written", "type": "quantitative", "title": "written back, MiB", "format": ".4~g" },
    ]);
    let panel = |mark: Value, field: &str, title: &str, y: Value, x_title: Option<&str>| {
        let mut y = y;
        (y["field"], y["type"], y["title"]) = (json!(field), json!("quantitative"), json!(title));
        let mut encoding = json!({ "x": x(x_title), "x2": { "field": "to" }, "y": y, "tooltip": tooltip });
        if mark["type"] == "rect" {
            encoding["y2"] = json!({ "datum": 0 });
        }
        json!({ "width": WIDTH, "height": 110, "mark": mark, "encoding": encoding })
    };
    let bar = |colour: &str| json!({ "type": "rect", "color": colour });
    let share = json!({ "scale": { "domain": [0, 1] }, "axis": { "format": ".0%", "tickCount": 3 } });
    let amount = json!({ "scale": { "zero": true }, "axis": { "tickCount": 3 } });
    let mut spec = json!({
        "$schema": SCHEMA,
        "data": { "values": rows },
        "spacing": 14,
        "vconcat": [
            panel(json!({ "type": "rule", "strokeWidth": 3, "color": PALETTE[0] }), "share", "in memory", share, None),
            panel(bar(PALETTE[1]), "dirty", "dirty, MiB", amount.clone(), None),
            panel(bar(PALETTE[2]), "written", "written, MiB", amount, Some("time of the trace, s")),
        ],
    });
    if let [(first, _), _, ..] = alike.as_slice() {
        let names: Vec<&str> = alike.iter().map(|(names, _)| names.as_str()).collect();
        spec["params"] = json!([{ "name": "system", "value": first,
                                  "bind": { "input": "select", "options": names, "name": "System" } }]);
        spec["transform"] = json!([{ "filter": "datum.system === system" }]);
    }
    let mut title = "The caches over the time of the trace: share of page reads found in memory, most dirty data, and \
                     what background write-back took up."
        .to_owned();
    if pace == Pace::Asap {
        title.push_str(
            " Calls were predicted as fast as possible: less of the data is old enough to be written back \
            than at the recorded times.",
        );
    }
    Some(Plot { title, spec })
}

/// Totals and misses with each size of the data cache, as text and tables show them. `order`: systems as they are
/// ranked.
pub(crate) fn sizes_table(sizes: &[CacheSize], order: &[&str]) -> Table {
    let misses = |size: &CacheSize, system: &str| {
        size.systems.iter().find(|with| with.system == system).map(|with| with.page_misses)
    };
    let one = |size: &CacheSize| {
        order.iter().all(|system| misses(size, system) == order.first().and_then(|first| misses(size, first)))
    };
    let columns_of_misses = if sizes.iter().all(one) { order.get(..1).unwrap_or(order) } else { order };
    let mut columns = vec![("Data cache".to_owned(), "cache_bytes".to_owned())];
    columns.extend(order.iter().map(|system| ((*system).to_owned(), format!("{system}_ns"))));
    for system in columns_of_misses {
        let title =
            if columns_of_misses.len() == 1 { "Page misses".to_owned() } else { format!("Page misses, {system}") };
        columns.push((title, format!("{system}_page_misses")));
    }
    let borrowed: Vec<(&str, &str)> = columns.iter().map(|(title, key)| (title.as_str(), key.as_str())).collect();
    let caption = "What if every system's data cache had another size? Totals with their 95 % intervals, and page \
        reads that miss.";
    let mut table = Table::new("cache_sizes", caption, &borrowed);
    for system in order {
        table = table.about(&format!("{system}_ns"), system, "total_ns");
        if columns_of_misses.len() > 1 {
            table = table.about(&format!("{system}_page_misses"), system, "page_misses");
        }
    }
    for size in sizes {
        let mut row = vec![Cell::Bytes(size.cache_bytes as f64)];
        row.extend(order.iter().map(|system| {
            size.systems.iter().find(|with| with.system == *system).map_or(Cell::Empty, |with| Cell::NsInterval {
                value: with.total_ns,
                low: with.interval.low_ns,
                high: with.interval.high_ns,
            })
        }));
        row.extend(columns_of_misses.iter().map(|system| misses(size, system).map_or(Cell::Empty, Cell::Count)));
        table.row(row);
    }
    table
}

/// The same with a slider: totals at its size above, how totals and misses depend on the size below. `order`: systems
/// as they are ranked; `at_bytes`: where the slider begins.
pub(crate) fn sizes_plot(sizes: &[CacheSize], order: &[&str], at_bytes: u64) -> Plot {
    let mut rows = Vec::new();
    let highs = sizes.iter().flat_map(|size| &size.systems).map(|with| with.interval.high_ns / 1e9);
    let most_s = highs.fold(0.0f64, f64::max);
    // In one unit with the axes.
    let (scale, time, _) = Counted::Time("time in the file system").scaled(most_s);
    let most = most_s / scale;
    let scale_ns = scale * 1e9;
    for (i, size) in sizes.iter().enumerate() {
        for with in &size.systems {
            let (low, high) = (with.interval.low_ns, with.interval.high_ns);
            let total = show::duration_interval_ns(with.total_ns, low, high);
            let said = format!("{total}, {} page misses", show::count(with.page_misses));
            rows.push(json!({ "i": i, "bytes": size.cache_bytes, "system": with.system,
                "said": [units::text::printable(&with.system), said],
                              "total": with.total_ns / scale_ns, "low": low / scale_ns, "high": high / scale_ns,
                              "misses": with.page_misses }));
        }
    }
    let labels: Vec<String> = sizes.iter().map(|size| show::bytes(size.cache_bytes as f64)).collect();
    let bytes: Vec<u64> = sizes.iter().map(|size| size.cache_bytes).collect();
    let nearest = |size: &CacheSize| (size.cache_bytes.max(1) as f64 / at_bytes.max(1) as f64).ln().abs();
    let start = sizes.iter().enumerate().min_by(|a, b| nearest(a.1).total_cmp(&nearest(b.1))).map_or(0, |(i, _)| i);
    let color = json!({ "field": "system", "type": "nominal", "legend": null,
        "scale": { "domain": order, "range": palette() } });
    let chosen = json!([{ "filter": "datum.i === at" }]);
    let tooltip = json!({ "content": "data" });
    let curve = |field: &str, title: &str, height: u32, x_title: Option<&str>, band: bool| {
        let x = json!({ "field": "bytes", "type": "quantitative", "title": x_title,
                        "scale": { "type": "log", "base": 2, "nice": false },
                        "axis": { "labelExpr": BYTES_LABEL, "values": bytes, "labelOverlap": "greedy",
                            "labelSeparation": 8 } });
        let y = json!({ "field": field, "type": "quantitative", "title": title, "scale": { "zero": true },
                        "axis": { "tickCount": 4 } });
        let (low, high) = (json!({ "field": "low", "type": "quantitative" }), json!({ "field": "high" }));
        let mut layers = vec![
            json!({ "mark": { "type": "line", "tooltip": tooltip, "point": { "size": 16 } },
                "encoding": { "y": y, "color": color } }),
            json!({ "transform": chosen, "mark": { "type": "rule", "color": "#888888", "strokeDash": [4, 4] } }),
            json!({ "transform": chosen, "mark": { "type": "point", "filled": true, "size": 90, "opacity": 1,
                "tooltip": tooltip },
                    "encoding": { "y": y, "color": color } }),
        ];
        if band {
            let area = json!({ "type": "area", "opacity": 0.12 });
            layers.insert(0, json!({ "mark": area, "encoding": { "y": low, "y2": high, "color": color } }));
        }
        json!({ "width": WIDTH, "height": height, "encoding": { "x": x }, "layer": layers })
    };
    let x = |field: &str| {
        json!({ "field": field, "type": "quantitative", "title": time,
            "scale": { "domain": [0, most] } })
    };
    let readout = json!({
        "title": { "text": { "expr": "'With a data cache of ' + labels[at]" } },
        "width": WIDTH, "height": { "step": 58 },
        "transform": chosen,
        "encoding": { "y": { "field": "system", "type": "nominal", "sort": order, "axis": null } },
        "layer": [
            { "mark": { "type": "bar", "height": 14, "yOffset": 16 }, "encoding": { "x": x("total"), "color": color } },
            { "mark": { "type": "rule", "strokeWidth": 2, "yOffset": 16 },
              "encoding": { "x": x("low"), "x2": { "field": "high" } } },
            // In the colour of the page's text.
            { "mark": { "type": "text", "align": "left", "yOffset": -13, "lineHeight": 15 },
              "encoding": { "x": { "value": 0 }, "text": { "field": "said" } } },
        ],
    });
    let spec = json!({
        "$schema": SCHEMA,
        "params": [
            { "name": "at", "value": start,
              "bind": { "input": "range", "min": 0, "max": sizes.len().saturating_sub(1), "step": 1,
                  "name": "Data cache" } },
            { "name": "labels", "value": labels },
        ],
        "data": { "values": rows },
        "vconcat": [
            readout,
            curve("total", &time, 180, None, true),
            curve("misses", "page misses", 120, Some("data cache"), false),
        ],
    });
    let title = "What if every system's data cache had another size? Totals with their 95 % intervals, and page reads \
        that miss. The slider chooses a size.";
    Plot { title: title.to_owned(), spec }
}
