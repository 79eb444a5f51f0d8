//! The example predicts what comes with fsage.

#[path = "../../examples/predict.rs"]
#[allow(dead_code)] // Its `main` reads the arguments of the process.
mod example;

use predict::pipeline::PredictOptions;

#[test]
fn the_bundled_workload_is_predicted_on_the_bundled_systems() {
    let (workload, systems) = example::bundled();
    let prediction = example::predicted(&workload, &systems, &PredictOptions::default()).unwrap();
    assert_eq!(prediction.systems.len(), 3);
    for system in &prediction.systems {
        let by_op: f64 = system.by_op.iter().map(|op| op.ns).sum();
        assert!(by_op > 0.0 && (by_op / system.total_ns - 1.0).abs() < 1e-9, "{}: {by_op}", system.system);
    }
    // A what-if: creating a file takes a second.
    let slow = PredictOptions { set_ns: vec![("cr".to_owned(), 1e9)], ..PredictOptions::default() };
    let slower = example::predicted(&workload, &systems, &slow).unwrap();
    assert!(slower.systems[0].total_ns > prediction.systems[0].total_ns + 1e9);
}
