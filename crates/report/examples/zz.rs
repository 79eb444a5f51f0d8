//! x
fn main() {
    let mut p = predict::SystemProfile { name: "ext4 <b>".into(), ..Default::default() };
    for c in predict::Class::ALL {
        let pts: Vec<u64> = if c.is_curve() { c.points().to_vec() } else { vec![0] };
        for at in pts {
            let m = 900.0 + at as f64 * 0.3;
            p.entries.insert(
                predict::vector::entry_name(*c, at),
                predict::Entry {
                    mean_ns: m,
                    low_ns: m * 0.9,
                    high_ns: m * 1.1,
                    samples: 100,
                    quantiles_ns: vec![m; 10],
                    ..Default::default()
                },
            );
        }
    }
    let d = report::system(&p);
    std::fs::write("/var/tmp/front/a.html", d.to_html()).unwrap();
    println!("{}", d.to_text(Some(100)));
}
