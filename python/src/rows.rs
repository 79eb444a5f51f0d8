//! Rows of JSON as columns of Arrow: how the parts of a result become tables.
//!
//! The fields of a result are described in docs/formats.md; a column has a field's name. An object inside a row is spread out
//! (`interval.low_ns` becomes `interval_low_ns`), a list of numbers stays a list, and what has no one type is JSON text.

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use serde_json::Value;
use std::sync::Arc;

/// The type of a column; the next holds all values of the ones before it, as far as they are numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Nothing,
    Bool,
    Unsigned,
    Signed,
    Float,
    Text,
    Floats,
    Json,
}

impl Kind {
    fn of(value: &Value) -> Kind {
        match value {
            Value::Null => Kind::Nothing,
            Value::Bool(_) => Kind::Bool,
            Value::Number(number) if number.is_u64() => Kind::Unsigned,
            Value::Number(number) if number.is_i64() => Kind::Signed,
            Value::Number(_) => Kind::Float,
            Value::String(_) => Kind::Text,
            Value::Array(values) if values.iter().all(Value::is_number) => Kind::Floats,
            Value::Array(_) | Value::Object(_) => Kind::Json,
        }
    }

    fn with(self, other: Kind) -> Kind {
        use Kind::{Float, Json, Nothing, Signed, Unsigned};
        match (self, other) {
            (Nothing, kind) | (kind, Nothing) => kind,
            (a, b) if a == b => a,
            // A count beyond what a signed number holds is no index: such a column has no negative numbers beside it.
            (Unsigned, Signed) | (Signed, Unsigned) => Signed,
            (Float, Unsigned | Signed) | (Unsigned | Signed, Float) => Float,
            _ => Json,
        }
    }
}

struct Column<'a> {
    name: String,
    kind: Kind,
    /// Of each row.
    values: Vec<&'a Value>,
}

/// The rows as one table; columns in the order in which they are met. What is no object is a row with the column `value`.
pub fn table(rows: &[Value]) -> (SchemaRef, Vec<RecordBatch>) {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for (row, value) in rows.iter().enumerate() {
        spread(String::new(), value, row, &mut columns);
    }
    for column in &mut columns {
        column.values.resize(rows.len(), &Value::Null);
    }
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
        .iter()
        .map(|column| {
            let array = array(column);
            (Field::new(&column.name, array.data_type().clone(), true), array)
        })
        .unzip();
    let schema = Arc::new(Schema::new(fields));
    match RecordBatch::try_new(schema.clone(), arrays) {
        Ok(batch) => (schema, vec![batch]),
        // No column: nothing to make a batch of.
        Err(_) => (schema, Vec::new()),
    }
}

fn spread<'a>(name: String, value: &'a Value, row: usize, columns: &mut Vec<Column<'a>>) {
    if let Value::Object(fields) = value
        && !fields.is_empty()
    {
        for (field, value) in fields {
            let name = if name.is_empty() { field.clone() } else { format!("{name}_{field}") };
            spread(name, value, row, columns);
        }
        return;
    }
    let name = if name.is_empty() { "value".to_owned() } else { name };
    let place = columns.iter().position(|column| column.name == name).unwrap_or_else(|| {
        columns.push(Column { name, kind: Kind::Nothing, values: Vec::new() });
        columns.len() - 1
    });
    // Where `a.b` and `a_b` are both in a row, the first one stands.
    if let Some(column) = columns.get_mut(place).filter(|column| column.values.len() <= row) {
        column.kind = column.kind.with(Kind::of(value));
        column.values.resize(row, &Value::Null);
        column.values.push(value);
    }
}

fn array(column: &Column<'_>) -> ArrayRef {
    let values = column.values.iter();
    match column.kind {
        Kind::Bool => {
            let mut builder = BooleanBuilder::new();
            values.for_each(|value| builder.append_option(value.as_bool()));
            Arc::new(builder.finish())
        }
        Kind::Unsigned => {
            let mut builder = UInt64Builder::new();
            values.for_each(|value| builder.append_option(value.as_u64()));
            Arc::new(builder.finish())
        }
        Kind::Signed => {
            let mut builder = Int64Builder::new();
            values.for_each(|value| builder.append_option(value.as_i64()));
            Arc::new(builder.finish())
        }
        Kind::Float => {
            let mut builder = Float64Builder::new();
            values.for_each(|value| builder.append_option(value.as_f64()));
            Arc::new(builder.finish())
        }
        Kind::Floats => {
            let mut builder = ListBuilder::new(Float64Builder::new());
            for value in values {
                match value.as_array() {
                    Some(numbers) => {
                        numbers.iter().for_each(|number| builder.values().append_option(number.as_f64()));
                        builder.append(true);
                    }
                    None => builder.append(false),
                }
            }
            Arc::new(builder.finish())
        }
        Kind::Text | Kind::Nothing => {
            let mut builder = StringBuilder::new();
            values.for_each(|value| builder.append_option(value.as_str()));
            Arc::new(builder.finish())
        }
        Kind::Json => {
            let mut builder = StringBuilder::new();
            values.for_each(|value| builder.append_option((!value.is_null()).then(|| value.to_string())));
            Arc::new(builder.finish())
        }
    }
}
