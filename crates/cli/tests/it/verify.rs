//! `fsage inspect PROFILE --against DIR`, through the binary.

use crate::common::{code, fails, run, succeeds};
use std::fs;

#[test]
fn a_profile_is_held_against_a_tree() {
    let d = tempfile::tempdir().unwrap();
    let tree = d.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let call =
        |call: &str| format!("7 1700000000.000001 {} <0.000001>\n", call.replace("TREE", tree.to_str().unwrap()));
    let trace = [
        r#"newfstatat(AT_FDCWD</>, "TREE/old", {st_mode=S_IFREG|0644, st_size=3, ...}, 0) = 0"#,
        r#"unlink("TREE/old") = 0"#,
        r#"mkdir("TREE/d", 0755) = 0"#,
        r#"openat(AT_FDCWD</>, "TREE/d/f", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3<TREE/d/f>"#,
        r#"write(3<TREE/d/f>, ""..., 5) = 5"#,
    ];
    fs::write(d.path().join("t.strace"), trace.map(call).concat()).unwrap();
    succeeds(&run(d.path(), &["import", "t.strace"]));
    // A name that the trace removed was there before.
    let names = succeeds(&run(d.path(), &["inspect", "t.workload", "--snapshot"]));
    assert!(names.contains("/tree/old"), "{names}");

    fs::create_dir(tree.join("d")).unwrap();
    fs::write(tree.join("d/f"), b"12345").unwrap();
    let text = succeeds(&run(d.path(), &["inspect", "t.workload", "--against", "tree"]));
    assert!(text.contains("lead to the tree on disk"), "{text}");

    fs::write(tree.join("d/f"), b"1234").unwrap();
    let output = run(d.path(), &["inspect", "t.workload", "--against", "tree", "--json"]);
    assert_eq!(code(&output), 1);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["schema"], "fsage.verification/1");
    assert_eq!((&value["differences"], &value["listed"][0]["differs"]), (&1.into(), &"size".into()));
    assert_eq!((&value["listed"][0]["expected"], &value["listed"][0]["found"]), (&"5".into(), &"4".into()));

    fails(&run(d.path(), &["inspect", "t.workload", "--against", "absent"]), 4, &["absent", "cannot be read"]);
    fails(&run(d.path(), &["inspect", "t.workload", "t.workload", "--against", "tree"]), 2, &["one workload profile"]);
}
