//! A document in every medium.

use document::{Cell, Document, Table};

fn sample() -> Document {
    let mut table = Table::new(
        "ranking",
        "Predicted time in the file system.",
        &[("System", "system"), ("Total", "total_ns"), ("Fastest", "p_fastest")],
    );
    table.row(vec![Cell::from("xfs"), Cell::NsInterval { value: 1.25e9, low: 1.2e9, high: 1.3e9 }, Cell::Share(0.91)]);
    table.row(vec![Cell::from("ext4\u{1b}[2J"), Cell::Ns(1.5e9), Cell::Share(0.09)]);
    let mut document = Document::new("Report");
    document.heading("Ranking").paragraph("One two three four five six seven eight nine ten.").table(table);
    document
}

#[test]
fn terminal_text_is_aligned_and_harmless() {
    let text = sample().to_text(None);
    assert!(text.starts_with("Report\n\nRanking\n-------\n\nOne two"), "{text}");
    assert!(text.contains("1.25 s (1.20 to 1.30)"), "{text}");
    assert!(!text.contains('\u{1b}'), "an escape sequence reached the terminal: {text:?}");
    let ends: Vec<usize> =
        text.lines().filter(|l| l.contains('%')).filter_map(|l| l.find('%').map(|i| l[..i].chars().count())).collect();
    assert_eq!(ends.len(), 2);
    assert_eq!(ends[0], ends[1], "numbers are right-aligned: {text}");
}

#[test]
fn prose_is_wrapped_to_the_terminal() {
    let text = sample().to_text(Some(40));
    assert!(text.lines().take(6).all(|line| line.chars().count() <= 40), "{text}");
}

#[test]
fn csv_files_carry_the_numbers() {
    let files: Vec<(String, String)> = sample().to_csv();
    let [(name, csv)] = &files[..] else { panic!("{files:?}") };
    assert_eq!(name, "ranking.csv");
    assert!(csv.starts_with("system,total_ns,p_fastest\nxfs,1250000000,0.91\n"), "{csv}");
}

#[test]
fn json_has_its_schema_first() {
    let value = document::envelope("fsage.test/1", &serde_json::json!({ "a": 1 })).unwrap();
    assert_eq!(value.to_string(), r#"{"schema":"fsage.test/1","a":1}"#);
    let list = document::envelope("fsage.test/1", &[1, 2]).unwrap();
    assert_eq!(list.to_string(), r#"{"schema":"fsage.test/1","result":[1,2]}"#);
}
