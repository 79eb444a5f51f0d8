//! Profiles of a machine that is not always the same: what `measure` keeps to be measured again, and what `predict` and
//! `validate` make of it.

use crate::common::{code, fails, names, run, small_system, small_workload, stderr, succeeds};
use serde_json::Value;

/// The cost of an entry, or of a reference, nanoseconds.
fn mean_ns(profile: &Value, part: &str, name: &str) -> f64 {
    profile[part][name]["mean_ns"].as_f64().unwrap_or_else(|| panic!("{part}.{name}: {}", profile[part]))
}

#[test]
fn a_profile_is_held_against_its_system_as_it_is_now() {
    let d = tempfile::tempdir().unwrap();
    let target = tempfile::tempdir().unwrap();
    let target = target.path().to_str().unwrap();
    let args = ["measure", target, "--budget", "10s", "--name", "here", "--json"];
    let profile: Value = serde_json::from_str(&succeeds(&run(d.path(), &args))).unwrap();
    for reference in ["processor", "memory", "stat", "read", "sync"] {
        assert!(mean_ns(&profile, "references", reference) > 0.0);
    }

    // What calls cost is taken from a profile that has every price: how many of them ten seconds are enough for depends
    // on what else the machine does. A thousand times cheaper when it was measured: more than other work on this
    // machine makes of it meanwhile. Everything has become dearer since, and is predicted so.
    let text = std::fs::read_to_string(d.path().join("here.system")).unwrap();
    let of_references = text.split("\n\n").filter(|part| part.trim_start().starts_with("[references."));
    let mut references = of_references.collect::<Vec<_>>().join("\n\n");
    let measured = references.clone();
    for reference in ["stat", "read", "sync"] {
        let was_ns = mean_ns(&profile, "references", reference);
        references =
            references.replace(&format!("mean_ns = {was_ns:?}\n"), &format!("mean_ns = {:?}\n", was_ns / 1000.0));
    }
    assert_ne!(references, measured);
    let prices = include_str!("../../../../profiles/ext4.system").replace("\"ext4 (bundled)\"", "\"old\"");
    std::fs::write(d.path().join("old.system"), format!("{prices}\n{references}\n")).unwrap();
    small_workload(d.path());
    let args = ["predict", "small.workload", "old.system", "--min-coverage", "0%", "--json"];
    let total = |more: &[&str]| {
        let output = run(d.path(), &[&args, more].concat());
        let said: Value = serde_json::from_str(&succeeds(&output)).unwrap();
        (said["prediction"]["systems"][0]["total_ns"].as_f64().unwrap(), stderr(&output))
    };
    let (then, _) = total(&[]);
    let (shown, told) = total(&["--here", target]);
    assert_eq!(shown, then, "it is told, and changes nothing");
    assert!(told.contains("times as long as when it was measured") && told.contains("stat "), "{told}");
    let (now, _) = total(&["--here", &format!("old={target}"), "--rescale"]);
    assert!(now > 2.0 * then, "{now} and {then}");
    assert!(names(std::path::Path::new(target)).is_empty(), "nothing is left in the target");
}

#[test]
fn a_system_is_measured_twice_and_the_two_are_compared() {
    let d = tempfile::tempdir().unwrap();
    let args = ["measure", "ffs:size=480M,cache=2M", "--budget", "20m", "--check", "--name", "hawk", "--json"];
    let output = run(d.path(), &args);
    let profile: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(names(d.path()), ["hawk-again.system", "hawk.system"]);
    let check = &profile["check"];
    let median = check["median"].as_f64().unwrap();
    assert_eq!(code(&output), i32::from(median > 0.1), "{median}");
    // The second profile is what it was compared with.
    let again = system::SystemProfile::load(&d.path().join("hawk-again.system")).unwrap();
    for entry in check["entries"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        assert_eq!(entry["first_ns"].as_f64().unwrap(), mean_ns(&profile, "entries", name), "{name}");
        assert_eq!(entry["second_ns"].as_f64().unwrap(), again.entries[name].mean_ns, "{name}");
    }
    assert!(profile["references"].is_null(), "virtual time does not drift");
}

#[test]
fn a_policy_is_named_wherever_it_is_asked_for() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "flat", 1e6);
    let args = ["predict", "small.workload", "flat.system", "--min-coverage", "0%"];
    for policy in predict::pipeline::CachePolicy::ALL.map(predict::pipeline::CachePolicy::name) {
        let asked = [&args[..], &["--cache", "64K", "--cache-policy", policy]].concat();
        let said: Value = serde_json::from_str(&succeeds(&run(d.path(), &[&asked[..], &["--json"]].concat()))).unwrap();
        assert_eq!(said["prediction"]["options"]["cache_policy"], policy);
        assert_eq!(said["prediction"]["systems"][0]["cache_policy"], policy);
        let told = succeeds(&run(d.path(), &asked));
        assert!(told.contains(&format!("evict by {policy} everywhere")), "{told}");
    }
    let unknown = run(d.path(), &[&args[..], &["--cache-policy", "random"]].concat());
    assert!(code(&unknown) == 2 && stderr(&unknown).contains("s3-fifo"), "{}", stderr(&unknown));
}

#[test]
fn what_cannot_be_measured_again_is_refused() {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "flat", 1e6);
    let predict = ["predict", "small.workload", "flat.system"];
    fails(&run(d.path(), &[&predict[..], &["--here", "."]].concat()), 2, &["flat", "references"]);
    let target = d.path().to_str().unwrap();
    let of_target = format!("{target}=flat.system");
    let validate = ["validate", "small.workload", "--on", target, "--system", &of_target, "--rescale=core"];
    fails(&run(d.path(), &validate), 2, &["--rescale=core", "reference core"]);
    let two = [&predict[..], &["flat.system", "--here", "."]].concat();
    fails(&run(d.path(), &two), 2, &["--here .", "NAME=TARGET"]);
    let output = run(d.path(), &[&predict[..], &["--rescale"]].concat());
    assert!(code(&output) == 2 && stderr(&output).contains("--here"), "{}", stderr(&output));
}
