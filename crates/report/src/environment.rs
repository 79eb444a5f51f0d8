//! Where a result was measured, as a table.

use document::{Cell, Table};
use posix::Environment;
use units::show;

/// What is known of an environment, one fact a row.
pub fn environment(e: &Environment) -> Table {
    let mut table = Table::new("environment", "", &[("What", "what"), ("Value", "value")]);
    let mut add = |what: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![Cell::from(what), Cell::from(value)]);
        }
    };
    add("target", e.target.clone());
    add("file system", e.fs_type.clone());
    add("mount options", e.mount_options.clone());
    add("mkfs", e.mkfs.clone());
    add("device", e.device.clone());
    if e.total_bytes > 0 {
        add("size", format!("{}, {} in use", show::bytes(e.total_bytes as f64), show::share(e.used_share)));
    }
    add("kernel", e.kernel.clone());
    if e.cpus > 0 {
        add("processors", format!("{} x {}", e.cpus, e.cpu));
    }
    if e.memory_bytes > 0 {
        add("memory", show::bytes(e.memory_bytes as f64));
    }
    table
}
