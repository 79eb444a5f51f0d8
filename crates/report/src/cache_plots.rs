//! How a prediction depends on its caches: over the time of the trace, and on the size of the data cache.

use crate::plot::{BYTES_LABEL, PALETTE, SCHEMA, WIDTH, palette};
use crate::{Cell, Plot, Table, units};
use predict::cache_sizes::CacheSize;
use predict::pipeline::SystemPrediction;
use serde_json::{Value, json};

const MIB: f64 = 1048576.0;

/// Page reads found in memory, dirty data and write-back over the time of the trace, of one system at a time. `None`: nothing was read or written.
pub(crate) fn over_time(systems: &[&SystemPrediction]) -> Option<Plot> {
    let mut rows = Vec::new();
    let mut end_s = 0.0f64;
    for system in systems {
        let t = &system.cache_timeline;
        let stretches = t.page_hits.iter().zip(&t.page_misses).zip(t.dirty_bytes.iter().zip(&t.written_back_bytes));
        for (i, ((&hits, &misses), (&dirty, &written))) in stretches.enumerate() {
            let (from_s, to_s) = (i as f64 * t.stretch_ns as f64 / 1e9, (i + 1) as f64 * t.stretch_ns as f64 / 1e9);
            end_s = end_s.max(to_s);
            let share = (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64);
            rows.push(json!({ "system": system.system, "from": from_s, "to": to_s, "share": share, "hits": hits, "misses": misses,
                              "dirty": dirty as f64 / MIB, "written": written as f64 / MIB }));
        }
    }
    let nothing =
        |row: &Value| ["hits", "misses", "dirty", "written"].iter().all(|field| row[*field].as_f64() == Some(0.0));
    if rows.iter().all(nothing) {
        return None;
    }
    let x = |title: Option<&str>| json!({ "field": "from", "type": "quantitative", "title": title, "scale": { "domain": [0, end_s], "nice": false } });
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
        json!({ "width": WIDTH, "height": 110, "mark": mark,
                "encoding": { "x": x(x_title), "x2": { "field": "to" }, "y": y, "tooltip": tooltip } })
    };
    let bar = |colour: &str| json!({ "type": "bar", "color": colour, "binSpacing": 0 });
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
    if let [first, _, ..] = systems {
        let names: Vec<&str> = systems.iter().map(|system| system.system.as_str()).collect();
        spec["params"] = json!([{ "name": "system", "value": first.system,
                                  "bind": { "input": "select", "options": names, "name": "System" } }]);
        spec["transform"] = json!([{ "filter": "datum.system === system" }]);
    }
    let title = "The caches over the time of the trace: share of page reads found in memory, most dirty data, and what background write-back took up.";
    Some(Plot { title: title.to_owned(), spec })
}

/// Totals and misses with each size of the data cache, as text and tables show them.
pub(crate) fn sizes_table(sizes: &[CacheSize]) -> Table {
    let mut table = Table::new(
        "cache_sizes",
        "What if every system's data cache had another size?",
        &[
            ("Data cache", "cache_bytes"),
            ("System", "system"),
            ("Total (95 % interval)", "total_ns"),
            ("Pages not in memory", "page_misses"),
            ("Page reads in memory", "share"),
        ],
    );
    for size in sizes {
        for with in &size.systems {
            let reads = with.page_hits + with.page_misses;
            table.row(vec![
                Cell::Bytes(size.cache_bytes as f64),
                Cell::from(with.system.as_str()),
                Cell::NsInterval { value: with.total_ns, low: with.interval.low_ns, high: with.interval.high_ns },
                Cell::Count(with.page_misses),
                if reads > 0 { Cell::Share(with.page_hits as f64 / reads as f64) } else { Cell::Empty },
            ]);
        }
    }
    table
}

/// The same with a slider: totals at its size above, how totals and misses depend on the size below. `order`: systems as they are ranked;
/// `at_bytes`: where the slider begins.
pub(crate) fn sizes_plot(sizes: &[CacheSize], order: &[&str], at_bytes: u64) -> Plot {
    let mut rows = Vec::new();
    let mut most_s = 0.0f64;
    for (i, size) in sizes.iter().enumerate() {
        for with in &size.systems {
            let (low, high) = (with.interval.low_ns, with.interval.high_ns);
            most_s = most_s.max(high / 1e9);
            let total = units::duration_interval_ns(with.total_ns, low, high);
            let said = format!("{}: {total}, {} page misses", with.system, units::count(with.page_misses));
            rows.push(json!({ "i": i, "bytes": size.cache_bytes, "system": with.system, "said": units::printable(&said),
                              "total": with.total_ns / 1e9, "low": low / 1e9, "high": high / 1e9, "misses": with.page_misses }));
        }
    }
    let labels: Vec<String> = sizes.iter().map(|size| units::bytes(size.cache_bytes as f64)).collect();
    let bytes: Vec<u64> = sizes.iter().map(|size| size.cache_bytes).collect();
    let nearest = |size: &CacheSize| (size.cache_bytes.max(1) as f64 / at_bytes.max(1) as f64).ln().abs();
    let start = sizes.iter().enumerate().min_by(|a, b| nearest(a.1).total_cmp(&nearest(b.1))).map_or(0, |(i, _)| i);
    let color = json!({ "field": "system", "type": "nominal", "legend": null, "scale": { "domain": order, "range": palette() } });
    let chosen = json!([{ "filter": "datum.i === at" }]);
    let tooltip = json!({ "content": "data" });
    let curve = |field: &str, title: &str, height: u32, x_title: Option<&str>, band: bool| {
        let x = json!({ "field": "bytes", "type": "quantitative", "title": x_title,
                        "scale": { "type": "log", "base": 2, "nice": false },
                        "axis": { "labelExpr": BYTES_LABEL, "values": bytes, "labelOverlap": "greedy", "labelSeparation": 8 } });
        let y = json!({ "field": field, "type": "quantitative", "title": title, "scale": { "zero": true },
                        "axis": { "tickCount": 4 } });
        let (low, high) = (json!({ "field": "low", "type": "quantitative" }), json!({ "field": "high" }));
        let mut layers = vec![
            json!({ "mark": { "type": "line", "tooltip": tooltip, "point": { "size": 16 } }, "encoding": { "y": y, "color": color } }),
            json!({ "transform": chosen, "mark": { "type": "rule", "color": "#888888", "strokeDash": [4, 4] } }),
            json!({ "transform": chosen, "mark": { "type": "point", "filled": true, "size": 90, "opacity": 1, "tooltip": tooltip },
                    "encoding": { "y": y, "color": color } }),
        ];
        if band {
            let area = json!({ "type": "area", "opacity": 0.12 });
            layers.insert(0, json!({ "mark": area, "encoding": { "y": low, "y2": high, "color": color } }));
        }
        json!({ "width": WIDTH, "height": height, "encoding": { "x": x }, "layer": layers })
    };
    let x = |field: &str| json!({ "field": field, "type": "quantitative", "title": "time in the file system, s", "scale": { "domain": [0, most_s] } });
    let readout = json!({
        "title": { "text": { "expr": "'With a data cache of ' + labels[at]" } },
        "width": WIDTH, "height": { "step": 46 },
        "transform": chosen,
        "encoding": { "y": { "field": "system", "type": "nominal", "sort": order, "axis": null } },
        "layer": [
            { "mark": { "type": "bar", "height": 14, "yOffset": 8 }, "encoding": { "x": x("total"), "color": color } },
            { "mark": { "type": "rule", "strokeWidth": 2, "yOffset": 8, "color": "#888888" },
              "encoding": { "x": x("low"), "x2": { "field": "high" } } },
            // In the colour of the page's text.
            { "mark": { "type": "text", "align": "left", "yOffset": -10 },
              "encoding": { "x": { "value": 0 }, "text": { "field": "said" } } },
        ],
    });
    let spec = json!({
        "$schema": SCHEMA,
        "params": [
            { "name": "at", "value": start,
              "bind": { "input": "range", "min": 0, "max": sizes.len().saturating_sub(1), "step": 1, "name": "Data cache" } },
            { "name": "labels", "value": labels },
        ],
        "data": { "values": rows },
        "vconcat": [
            readout,
            curve("total", "time in the file system, s", 180, None, true),
            curve("misses", "page misses", 120, Some("data cache"), false),
        ],
    });
    let title = "What if every system's data cache had another size? Totals with their 95 % intervals, and page reads that miss. The slider chooses a size.";
    Plot { title: title.to_owned(), spec }
}
