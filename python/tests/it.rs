//! The Python package as Python sees it: its own tests, its types and its notebooks, run by an interpreter where there
//! is one.
//!
//! The extension module is what cargo has built beside this program, and the command is `fsage` of the same build. The
//! package is laid out
//! in a directory as a wheel would lay it out; nothing is installed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A directory to import `fsage` from, and the command; or what is missing.
fn package() -> &'static Result<(PathBuf, PathBuf), String> {
    static PACKAGE: OnceLock<Result<(PathBuf, PathBuf), String>> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let deps = program.parent().ok_or("no directory")?;
        let profile = deps.parent().ok_or("no directory")?;
        let (module, command) = (deps.join("lib_fsage.so"), profile.join("fsage"));
        for file in [&module, &command] {
            if !file.exists() {
                return Err(format!("{} is not built (cargo build -p fsage -p fsage-python)", file.display()));
            }
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fsage");
        let directory = profile.join("python-package");
        let into = directory.join("fsage");
        let laid_out = || -> std::io::Result<()> {
            std::fs::create_dir_all(&into)?;
            for old in std::fs::read_dir(&into)?.flatten().filter(|entry| entry.path().is_file()) {
                std::fs::remove_file(old.path())?;
            }
            for file in std::fs::read_dir(&source)?.flatten().filter(|entry| entry.path().is_file()) {
                std::fs::copy(file.path(), into.join(file.file_name()))?;
            }
            std::fs::copy(&module, into.join("_fsage.abi3.so")).map(drop)
        };
        laid_out().map_err(|e| format!("{}: {e}", into.display()))?;
        Ok((directory, command))
    })
}

/// Runs Python, and fails with what it said where it fails.
fn python(python: &str, arguments: &[&str]) {
    let Some((directory, command)) = testkit::have(package().as_ref()) else { return };
    // Tests of Ctrl-C: what runs in the background of a shell inherits that it is ignored.
    let output = testkit::process::with_default_signals(python)
        .args(arguments)
        // Not beside `fsage/`, which has no extension module in it and would be imported first.
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"))
        .env("PYTHONPATH", directory)
        .env("MYPYPATH", directory)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("FSAGE", command)
        .output()
        .expect("Python runs: it just has");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{arguments:?}\n{}\n{}", said(&output.stdout), said(&output.stderr));
    print!("{}", said(&output.stdout));
}

/// Under CI no test of pytest's is skipped either.
#[test]
fn the_package_passes_its_own_tests() {
    let Some(interpreter) = testkit::python_with("pytest") else { return };
    for module in ["pyarrow", "polars", "pandas", "duckdb", "zopfli"] {
        // pytest skips what needs it: said here, so that it is counted.
        let _ = testkit::python_with(module);
    }
    python(&interpreter, &["-m", "pytest", "-q", "-p", "no:cacheprovider", "."]);
}

/// What the stubs promise is what the module has, and the package keeps to its types.
#[test]
fn types_are_right() {
    let Some(interpreter) = testkit::python_with("mypy") else { return };
    python(&interpreter, &["-m", "mypy", "--strict", "--cache-dir", "/dev/null", "-p", "fsage"]);
    python(&interpreter, &["-m", "mypy.stubtest", "--concise", "--ignore-disjoint-bases", "fsage._fsage"]);
}

/// Each notebook from its first cell to its last. What they came to stays in the build directory: the documentation's
/// site shows it (`scripts/site`).
#[test]
fn notebooks_run() {
    // One of them records.
    let Some(_strace) = testkit::tool(testkit::Tool::Strace) else { return };
    let Some(interpreter) = testkit::python_with("nbclient, ipykernel, altair, polars") else { return };
    let Some((package, _)) = testkit::have(package().as_ref()) else { return };
    let executed = package.with_file_name("notebooks");
    python(&interpreter, &["../notebooks/execute.py", "-o", executed.to_str().expect("a name in UTF-8")]);
}
