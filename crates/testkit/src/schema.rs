//! JSON documents held against the schemas in docs/schemas.
//!
//! The judge is the module `jsonschema` of Python, which knows nothing of this program. Beyond what it finds, a field
//! that stands in a document and in no schema is a fault: who adds a field adds it there (docs/formats.md, "What is
//! promised").

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file of the schema `fsage.NAME/VERSION`.
pub fn file_of(name: &str) -> PathBuf {
    let (name, version) =
        name.strip_prefix("fsage.").and_then(|rest| rest.split_once('/')).expect("fsage.NAME/VERSION");
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    top.join("docs/schemas").join(format!("{name}-{version}.json"))
}

/// The schema `fsage.NAME/VERSION`, if there is one.
pub fn of(name: &str) -> Option<Value> {
    Some(serde_json::from_str(&std::fs::read_to_string(file_of(name)).ok()?).expect("a schema is JSON"))
}

/// Holds documents against their schemas; each names its own.
pub fn hold(documents: &[Value]) {
    let mut unknown = BTreeSet::new();
    for value in documents {
        let name = value["schema"].as_str().expect("a schema");
        let schema = of(name).unwrap_or_else(|| panic!("docs/schemas has none for {name}"));
        fields(value, &schema, &schema, name, &mut unknown);
    }
    assert!(unknown.is_empty(), "in a result, and in no schema (scripts/schemas drafts it): {unknown:#?}");
    judged(documents);
}

/// Fields of a document that its schema does not name.
fn fields(value: &Value, schema: &Value, root: &Value, at: &str, unknown: &mut BTreeSet<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = name.strip_prefix("#/$defs/").map(|name| &root["$defs"][name]);
        return fields(value, definition.expect("a reference within the file"), root, at, unknown);
    }
    // What depends on whose plan or recording it is, is left open.
    let is_open = schema.get("properties").is_none() && schema.get("additionalProperties").is_none();
    match value {
        Value::Object(object) if !is_open => {
            for (name, value) in object {
                let known = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
                match known {
                    Some(known) => fields(value, known, root, &format!("{at}.{name}"), unknown),
                    None => drop(unknown.insert(format!("{at}.{name}"))),
                }
            }
        }
        Value::Array(items) if !schema["items"].is_null() => {
            for item in items {
                fields(item, &schema["items"], root, &format!("{at}[]"), unknown);
            }
        }
        _ => {}
    }
}

const JUDGE: &str = r#"
import json, sys
from jsonschema.validators import validator_for
wrong = 0
for line in sys.stdin:
    path, document = json.loads(line)
    schema = json.load(open(path))
    judge = validator_for(schema)
    judge.check_schema(schema)
    for error in list(judge(schema).iter_errors(document))[:5]:
        wrong += 1
        print(path, error.json_path, error.message[:300])
sys.exit(wrong > 0)
"#;

/// What another program says of the documents and their schemas.
fn judged(documents: &[Value]) {
    let Some(python) = crate::python_with("jsonschema") else { return };
    let line = |value: &Value| format!("{}\n", serde_json::json!([file_of(value["schema"].as_str().unwrap()), value]));
    let input: String = documents.iter().map(line).collect();
    let mut judge = Command::new(python);
    judge.args(["-c", JUDGE]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut judge = judge.spawn().expect("python runs");
    // It says nothing before it has read a document, and little of each: no pipe is full while this one is.
    judge.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("python reads");
    let output = judge.wait_with_output().expect("python ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
