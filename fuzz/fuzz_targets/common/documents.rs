//! What the targets of documents share: a sound one with a few of its values changed, so that it is refused or read for
//! what it says, and not for its punctuation.

#![allow(dead_code)] // Each target uses its part.

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use serde_json::{Value, json};

/// A number of the kind that code forgets.
pub fn number(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match u.int_in_range(0..=7)? {
        0 => 0,
        1 => u64::from(u.arbitrary::<u8>()?),
        2 => u.arbitrary::<u16>()?.into(),
        3 => 1 << u.int_in_range(0..=63)?,
        4 => (1 << u.int_in_range(0..=63)?) - 1,
        5 => u64::MAX - u64::from(u.arbitrary::<u8>()?),
        6 => i64::MAX as u64,
        _ => u.arbitrary()?,
    })
}

fn leaf(u: &mut Unstructured<'_>, old: &Value) -> Result<Value> {
    Ok(match u.int_in_range(0..=8)? {
        0 => json!(number(u)?),
        1 => json!(u.arbitrary::<i64>()?),
        2 => json!(f64::from_bits(u.arbitrary()?)),
        3 => json!(u.arbitrary::<u32>()? as f64 / 1000.0),
        4 => json!([0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, 0.5, 1e9][u.int_in_range(0..=7)?]),
        5 => json!(u.arbitrary::<bool>()?),
        6 => json!(u.arbitrary::<&str>()?),
        // A little beside what was there.
        _ => match (old.as_u64(), old.as_f64(), old.as_str()) {
            (Some(n), _, _) => json!(n.wrapping_add_signed(u.int_in_range(-2..=2)?)),
            (_, Some(x), _) => json!(x * f64::from(u.arbitrary::<i8>()?)),
            (_, _, Some(text)) => json!(text.chars().rev().collect::<String>()),
            _ => json!([old]),
        },
    })
}

/// Changes one value, somewhere.
fn change(value: &mut Value, u: &mut Unstructured<'_>) -> Result<()> {
    let goes_down = u.ratio(9, 10)?;
    match value {
        Value::Object(map) if goes_down && !map.is_empty() => {
            let at = u.int_in_range(0..=map.len() - 1)?;
            let key = map.keys().nth(at).expect("in range").clone();
            if u.ratio(1, 20)? {
                map.remove(&key);
                return Ok(());
            }
            change(map.get_mut(&key).expect("a key of its own"), u)
        }
        Value::Array(list) if goes_down && !list.is_empty() => {
            let at = u.int_in_range(0..=list.len() - 1)?;
            match u.int_in_range(0..=9)? {
                0 => drop(list.remove(at)),
                1 => list.insert(at, list[at].clone()),
                2 => list.swap(0, at),
                _ => return change(&mut list[at], u),
            }
            Ok(())
        }
        old => {
            *old = leaf(u, old)?;
            Ok(())
        }
    }
}

/// Changes up to eight values. Input that ends early changes fewer.
pub fn changed(mut value: Value, u: &mut Unstructured<'_>) -> Value {
    for _ in 0..u.int_in_range(0..=8).unwrap_or(0) {
        if change(&mut value, u).is_err() {
            break;
        }
    }
    value
}

/// One of these texts of TOML, changed. `None`: what came of it cannot be written as TOML.
pub fn changed_toml(texts: &[&str], u: &mut Unstructured<'_>) -> Option<String> {
    let text = texts[u.int_in_range(0..=texts.len() - 1).ok()?];
    let value: toml::Table = toml::from_str(text).expect("a sound document");
    let value = changed(serde_json::to_value(value).expect("TOML fits into JSON"), u);
    toml::to_string(&value).ok()
}
