//! Drive models: the list, one drive's data sheet with the source of every figure, a model against measurements, and
//! changes taken back.

use crate::extract::Extraction;
use crate::measure::Measurement;
use crate::validate::{self, Validation};
use crate::{Description, Quantity};
use document::plot::lines;
use document::{Cell, Document, Plot, Table};
use units::show;

/// The drives there are, one a row.
pub fn drives(descriptions: &[Description]) -> Document {
    let mut document = Document::new("");
    let columns = [
        ("Drive", "drive"),
        ("Kind", "kind"),
        ("Capacity", "capacity_bytes"),
        ("Figures", "figures"),
        ("Estimates", "estimates"),
        ("What it is", "summary"),
    ];
    let mut table = Table::new("drives", "", &columns);
    for drive in descriptions {
        table.row(vec![
            Cell::from(drive.key.as_str()),
            Cell::from(drive.kind),
            Cell::Bytes(drive.capacity_bytes as f64),
            Cell::Count(drive.figures.len() as u64),
            Cell::Count(drive.estimates as u64),
            Cell::from(drive.summary.as_str()),
        ]);
    }
    document.table(table);
    document
}

/// One drive: what its figures add up to, its zones, and where each figure is from.
pub fn drive(description: &Description) -> Document {
    let mut document = Document::new(format!("{} ({})", description.name, description.key));
    document.paragraph(description.summary.clone());
    for warning in &description.warnings {
        document.paragraph(format!("Warning: {warning}."));
    }
    let mut facts = Table::new("facts", "", &[("Quantity", "quantity"), ("Value", "value")]);
    facts.row(vec![Cell::from("Capacity"), Cell::Bytes(description.capacity_bytes as f64)]);
    for fact in &description.facts {
        facts.row(vec![Cell::from(fact.name), quantity(fact.value)]);
    }
    document.table(facts);
    document.heading("Zones").table(zones(description));
    document.heading("Figures and their sources").table(figures(description));
    document
}

fn quantity(quantity: Quantity) -> Cell {
    match quantity {
        Quantity::Ns(ns) => Cell::Ns(ns),
        Quantity::Bytes(bytes) => Cell::Bytes(bytes),
        Quantity::BytesPerSecond(rate) => Cell::Text(format!("{}/s", show::bytes(rate))),
        Quantity::Count(count) => Cell::Count(count),
        Quantity::Rpm(rpm) => Cell::Text(format!("{rpm} a minute")),
    }
}

fn zones(description: &Description) -> Table {
    let columns = [
        ("Cylinders", "first_cylinder"),
        ("to", "last_cylinder"),
        ("Sectors a track", "sectors_per_track"),
        ("First block", "first_lbn"),
        ("Blocks", "lbns"),
        ("Medium, bytes/s", "medium_bytes_per_s"),
    ];
    let mut table = Table::new("zones", "", &columns);
    for zone in &description.zones {
        table.row(vec![
            Cell::Count(u64::from(zone.first_cylinder)),
            Cell::Count(u64::from(zone.last_cylinder)),
            Cell::Count(u64::from(zone.sectors_per_track)),
            Cell::Count(zone.first_lbn),
            Cell::Count(zone.lbns),
            Cell::Bytes(zone.medium_bytes_per_s),
        ]);
    }
    table
}

fn figures(description: &Description) -> Table {
    let caption = format!("{} of {} figures are estimates.", description.estimates, description.figures.len());
    let columns = [("Figure", "figure"), ("Value", "value"), ("Estimate", "estimate"), ("Source", "source")];
    let mut table = Table::new("figures", &caption, &columns);
    for figure in &description.figures {
        table.row(vec![
            Cell::from(figure.key.as_str()),
            Cell::from(figure.value.as_str()),
            Cell::from(if figure.estimate { "estimate" } else { "" }),
            Cell::from(figure.source.as_str()),
        ]);
    }
    table
}

/// A disk model against a measured trace: the ladder of refinements, the classes of requests, and both distributions.
pub fn drive_validation(validation: &Validation) -> Document {
    let mut document = Document::new(format!("{} against its trace", validation.name));
    document.paragraph(format!(
        "{} requests, replayed closed loop. Mean response measured {}, modelled {}. Demerit {}, {} of the mean: the \
         root mean square of the horizontal distance between the two distributions. Over the first half of the trace \
         alone {}, over the second {}. Of the requests {} have a modelled response within {} of their own measured \
         one.",
        show::count(validation.compared.requests),
        show::duration_ns(validation.compared.measured_mean_ns),
        show::duration_ns(validation.compared.modelled_mean_ns),
        show::duration_ns(validation.compared.demerit_ns),
        show::share(validation.demerit_share),
        show::duration_ns(validation.half_demerit_ns[0]),
        show::duration_ns(validation.half_demerit_ns[1]),
        show::share(validation.close_share),
        show::duration_ns(validate::CLOSE_NS as f64),
    ));
    document.heading("Ladder of refinements").table(ladder(validation));
    document.heading("Where the difference is").table(classes(validation));
    document.heading("Distributions").plot(distributions(validation)).table(quantiles(validation));
    document
}

fn ladder(validation: &Validation) -> Table {
    let columns = [
        ("Model", "model"),
        ("Adds", "adds"),
        ("Mean", "mean_ns"),
        ("Demerit", "demerit_ns"),
        ("Of the mean", "demerit_share"),
    ];
    let mut table = Table::new("ladder", "Each step has all before it.", &columns);
    for rung in &validation.ladder {
        table.row(vec![
            Cell::from(rung.name),
            Cell::from(rung.adds),
            Cell::Ns(rung.mean_ns),
            Cell::Ns(rung.demerit_ns),
            Cell::Share(rung.demerit_share),
        ]);
    }
    table
}

fn classes(validation: &Validation) -> Table {
    let columns = [
        ("Requests", "class"),
        ("Number", "requests"),
        ("Measured mean", "measured_mean_ns"),
        ("Modelled mean", "modelled_mean_ns"),
        ("Demerit", "demerit_ns"),
    ];
    let mut table = Table::new("classes", "Hits and misses are the model's.", &columns);
    for class in &validation.classes {
        table.row(vec![
            Cell::from(class.name.as_str()),
            Cell::Count(class.compared.requests),
            Cell::Ns(class.compared.measured_mean_ns),
            Cell::Ns(class.compared.modelled_mean_ns),
            Cell::Ns(class.compared.demerit_ns),
        ]);
    }
    table
}

/// Of the distributions' points the tenths, and the ends of the tails.
const SHOWN: [f64; 13] = [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];

fn quantiles(validation: &Validation) -> Table {
    let columns = [("Share of requests", "share"), ("Measured", "measured_ns"), ("Modelled", "modelled_ns")];
    let mut table = Table::new("distribution", "Responses that so many requests do not exceed.", &columns);
    for shown in SHOWN {
        let nearest = |a: &&(f64, u64, u64), b: &&(f64, u64, u64)| (a.0 - shown).abs().total_cmp(&(b.0 - shown).abs());
        if let Some((share, measured, modelled)) = validation.distribution.iter().min_by(nearest) {
            table.row(vec![Cell::Share(*share), Cell::Ns(*measured as f64), Cell::Ns(*modelled as f64)]);
        }
    }
    table
}

fn distributions(validation: &Validation) -> Plot {
    let mut points = Vec::with_capacity(2 * validation.distribution.len());
    for (share, measured, modelled) in &validation.distribution {
        points.push(("measured".to_owned(), *measured as f64 / 1e6, *share));
        points.push(("modelled".to_owned(), *modelled as f64 / 1e6, *share));
    }
    let title = format!("Response times of {}: share of requests at most so long.", validation.name);
    lines(&title, ("response, ms", false), ("share of requests", false), &points)
}

/// A model that was fitted to a trace.
pub fn extraction(extraction: &Extraction) -> Document {
    let mut document = Document::new(format!("{} fitted to a trace", extraction.from));
    document.paragraph(format!(
        "{} requests: the first half fits, the second judges. {} models were tried, in the order of seed {}. The fit \
         knows nothing of the second half.",
        show::count(extraction.requests),
        show::count(extraction.tried),
        extraction.seed,
    ));
    let columns = [
        ("Half", "half"),
        ("Measured mean", "measured_mean_ns"),
        ("Mean before", "mean_before_ns"),
        ("Mean after", "mean_after_ns"),
        ("Demerit before", "demerit_before_ns"),
        ("Demerit after", "demerit_after_ns"),
        ("Without the slowest hundredth", "demerit_after_without_slowest_ns"),
    ];
    let mut table = Table::new("fit", "", &columns);
    let (before, after) = (&extraction.before, &extraction.after);
    for (n, half) in ["first, fits", "second, judges"].into_iter().enumerate() {
        table.row(vec![
            Cell::from(half),
            Cell::Ns(extraction.half_measured_ns[n]),
            Cell::Ns(before.half_mean_ns[n]),
            Cell::Ns(after.half_mean_ns[n]),
            Cell::Ns(before.half_demerit_ns[n]),
            Cell::Ns(after.half_demerit_ns[n]),
            Cell::Ns(after.half_demerit_without_slowest_ns[n]),
        ]);
    }
    document.table(table);
    document.paragraph(format!(
        "One half of the measurement against the other has a demerit of {}: with other requests of the same kind the \
         drive itself is as far off.",
        show::duration_ns(extraction.halves_demerit_ns),
    ));
    let mut changes = Table::new("changes", "", &[("Figure", "figure"), ("Before", "before"), ("After", "after")]);
    for change in &extraction.changes {
        changes.row(vec![
            Cell::from(change.key.as_str()),
            Cell::from(shortened(&change.before)),
            Cell::from(shortened(&change.after)),
        ]);
    }
    document.heading("What was changed").table(changes);
    document
}

/// A long list as its beginning.
fn shortened(value: &str) -> String {
    const MOST: usize = 60;
    if value.chars().count() <= MOST {
        return value.to_owned();
    }
    format!("{}…", value.chars().take(MOST).collect::<String>())
}

/// What timed reads of a drive came to.
pub fn measurement(found: &Measurement) -> Document {
    let mut document = Document::new(format!("{}, measured by reading it", found.device));
    document.paragraph(match (&found.rotation, found.arm) {
        (Some(rotation), true) => format!(
            "A disk with an arm: {:.0} revolutions a minute. {} reads were made.",
            rotation.rpm(),
            show::count(found.reads)
        ),
        _ => format!(
            "No disk with an arm: what was read shows no rotation that reads wait for, or nothing that moves. {} reads \
             were made. A file on a virtual machine, a loop device and a flash drive are such; no drive's file is made \
             of it.",
            show::count(found.reads)
        ),
    });
    for remark in &found.remarks {
        document.paragraph(remark.clone());
    }
    document.table(measured_facts(found));
    let mut rates = Table::new("rates", "Consecutive reads.", &[("Place", "place"), ("Rate", "bytes_per_s")]);
    for rate in &found.rates {
        rates.row(vec![Cell::Share(rate.place), Cell::Text(format!("{}/s", show::bytes(rate.bytes_per_s)))]);
    }
    document.heading("By place").table(rates);
    if found.arm {
        let columns = [
            ("Place", "place"),
            ("Sectors a track", "sectors"),
            ("Track skew", "track_skew_ns"),
            ("Cylinder skew", "cylinder_skew_ns"),
        ];
        let mut tracks = Table::new("tracks", "", &columns);
        let ns = |ns: Option<f64>| ns.map_or(Cell::from(""), Cell::Ns);
        for at in &found.tracks {
            let cells = [
                Cell::Share(at.place),
                Cell::Count(u64::from(at.sectors)),
                ns(at.track_skew_ns),
                ns(at.cylinder_skew_ns),
            ];
            tracks.row(cells.into());
        }
        let mut seeks = Table::new("seeks", "", &[("Cylinders", "cylinders"), ("Seek", "seek_ns")]);
        let mut points = Vec::new();
        for seek in &found.seeks {
            seeks.row(vec![Cell::Count(u64::from(seek.cylinders)), Cell::Ns(seek.seek_ns)]);
            points.push(("seek".to_owned(), f64::from(seek.cylinders), seek.seek_ns / 1e6));
        }
        let plot = lines("Seek by distance.", ("cylinders", false), ("seek, ms", false), &points);
        document.table(tracks).heading("Seeks").plot(plot).table(seeks);
    }
    document.heading("What reads cannot tell").paragraph(
        "Anything about writes, and whether the drive reports them early; spares, slipped and remapped defects; where \
         zones begin, and the angles between them; what the drive does with several commands at once.",
    );
    document
}

fn measured_facts(found: &Measurement) -> Table {
    let mut facts = Table::new("facts", "", &[("Quantity", "quantity"), ("Value", "value")]);
    let mut fact = |name: &str, value: Option<Cell>| {
        facts.row(vec![Cell::from(name), value.unwrap_or_else(|| Cell::from("not known"))]);
    };
    let count = |count: Option<u32>| count.map(|count| Cell::Count(u64::from(count)));
    fact("Capacity", Some(Cell::Bytes(found.capacity_bytes as f64)));
    fact("Unit of addresses", Some(Cell::Bytes(f64::from(found.sector_bytes))));
    fact("Random reads, median", Some(Cell::Ns(found.random_ns)));
    fact("Reads backwards by a few sectors, median", Some(Cell::Ns(found.near_ns)));
    fact("Revolution", found.rotation.map(|rotation| Cell::Ns(rotation.revolution_ns)));
    fact("Surfaces", found.head_switch_ns.map(|_| Cell::Count(u64::from(found.heads))));
    fact("Head switch", found.head_switch_ns.map(Cell::Ns));
    fact("A read on the same track, least", found.arm.then_some(Cell::Ns(found.miss_ns)));
    fact("What was read is there again", Some(Cell::from(if found.buffer.keeps { "yes" } else { "no" })));
    fact("A hit, without its data", found.buffer.hit_ns.map(Cell::Ns));
    fact("A sector of a hit", found.buffer.sector_ns.map(Cell::Ns));
    fact("Segments of the buffer", count(found.buffer.segments));
    fact("Sectors of a segment", count(found.buffer.segment_sectors));
    fact("Sectors read ahead", count(found.buffer.read_ahead_sectors));
    facts
}

/// A repair that was taken back.
pub fn reverted(image: &str, changed_bytes: u64) -> Document {
    let mut table = Table::new("reverted", "", &[("Figure", "figure"), ("Value", "value")]);
    table.row(vec![Cell::from("bytes that are as before the repair again"), Cell::Count(changed_bytes)]);
    let mut document = Document::new(format!("Repair of {image} taken back"));
    document.table(table);
    document
}
