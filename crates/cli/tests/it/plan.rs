//! `fsage plan` and `fsage inspect X.aging` as people and scripts call them: no root needed.

use crate::common::{code, fails, run, succeeds};
use serde_json::Value;

#[test]
fn a_personality_is_listed_shown_planned_and_inspected() {
    let dir = tempfile::tempdir().unwrap();
    let list = succeeds(&run(dir.path(), &["plan", "personality", "--list"]));
    for name in ["home", "mail", "news", "build", "containers", "database", "phone", "webcache"] {
        assert!(list.contains(name), "{list}");
    }
    let shown = succeeds(&run(dir.path(), &["plan", "personality", "--show", "home"]));
    std::fs::write(dir.path().join("mine.toml"), &shown).unwrap();
    let plan = |name: &str, file: &str| {
        let args = ["plan", "personality", name, "--capacity", "64M", "--days", "20", "-o", file, "--json"];
        serde_json::from_str::<Value>(&succeeds(&run(dir.path(), &args))).unwrap()
    };
    let planned = plan("home", "a.aging");
    assert_eq!(planned["schema"], "fsage.plan/1");
    assert_eq!(planned["utilisation"].as_array().unwrap().len(), 20);
    plan("mine.toml", "b.aging");
    let inspected = succeeds(&run(dir.path(), &["inspect", "a.aging", "b.aging", "--json"]));
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    let [a, b] = [0, 1].map(|i| &inspected["files"][i]["meta"]);
    assert_eq!(a["counts"], planned["counts"]);
    assert_eq!(a["counts"], b["counts"], "the same personality from a file plans otherwise");
    assert_eq!(b["source"]["inputs"][0]["name"], "mine.toml");
    let text = succeeds(&run(dir.path(), &["inspect", "a.aging"]));
    assert!(text.contains("size_by_bytes") && text.contains("Utilisation"), "{text}");
}

#[test]
fn a_geriatrix_profile_is_planned_and_a_malformed_one_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [("age", "2\n1 1\n10 9\n"), ("size", "2\n4096 1\n65536 1\n"), ("dir", "1\n1 1 5\n")] {
        std::fs::write(dir.path().join(format!("{name}_distribution.txt")), text).unwrap();
    }
    let args = ["plan", "geriatrix", ".", "--capacity", "16M", "--fill", "50%", "-o", "g.aging"];
    let text = succeeds(&run(dir.path(), &args));
    assert!(text.contains("age_distribution.txt"), "{text}");
    std::fs::write(dir.path().join("size_distribution.txt"), "2\n4096 1\nmany 1\n").unwrap();
    std::fs::remove_file(dir.path().join("g.aging")).unwrap();
    fails(&run(dir.path(), &args), 4, &["size_distribution.txt: line 3"]);
    assert!(!dir.path().join("g.aging").exists());
}

#[test]
fn what_cannot_be_planned_has_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let plan = |args: &[&str]| run(dir.path(), &[&["plan", "personality"], args].concat());
    fails(&plan(&["office", "--capacity", "1G", "-o", "x.aging"]), 2, &["office", "home, mail"]);
    fails(&plan(&["home", "-o", "x.aging"]), 2, &["--capacity"]);
    fails(&plan(&["home", "--capacity", "1G"]), 2, &["-o"]);
    fails(&plan(&["home", "--capacity", "100", "-o", "x.aging"]), 2, &["less than one block"]);
    fails(&plan(&["home", "--capacity", "1G", "--days", "0", "-o", "x.aging"]), 2, &["days"]);
    fails(&plan(&["home", "--capacity", "1G", "--churn", "1e9", "-o", "x.aging"]), 2, &["churn"]);
    fails(&plan(&["none.toml", "--capacity", "1G", "-o", "x.aging"]), 4, &["none.toml"]);
    std::fs::write(dir.path().join("bad.toml"), "format_version = 1\nname = \n").unwrap();
    fails(&plan(&["bad.toml", "--capacity", "1G", "-o", "x.aging"]), 4, &["bad.toml: line 2"]);
    assert_eq!(code(&plan(&["home", "--capacity", "1G", "--utilisation", "5", "-o", "x.aging"])), 2);
}
