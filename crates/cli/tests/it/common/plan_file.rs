//! Aging workloads that no writer of ours would make: any rows, in a file that is sound.

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use std::fs;
use std::path::Path;

/// A row, as it stands in the file.
#[derive(Clone, Debug)]
pub struct Row {
    pub t_ns: i64,
    pub op: &'static str,
    pub file_id: i64,
    pub dir_id: i64,
    /// Clones share its bytes.
    pub name: Option<ByteArray>,
    pub offset_bytes: i64,
    pub size_bytes: i64,
}

impl Row {
    pub fn new(op: &'static str, name: Option<ByteArray>) -> Row {
        Row { t_ns: 0, op, file_id: 0, dir_id: 0, name, offset_bytes: 0, size_bytes: 0 }
    }
}

/// Writes one of these row groups, and a description of so many days that says how many rows there are.
pub fn write(path: &Path, groups: &[Vec<Row>], days: u32) {
    let schema = "message schema {
        required int64 t_ns (INTEGER(64,false));
        required binary op (UTF8);
        required int64 file_id (INTEGER(64,false));
        required int64 dir_id (INTEGER(64,false));
        optional binary name (UTF8);
        required int64 offset_bytes (INTEGER(64,false));
        required int64 size_bytes (INTEGER(64,false));
    }";
    let schema = parquet::schema::parser::parse_message_type(schema).expect("a schema").into();
    let settings = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let settings = settings.set_dictionary_page_size_limit(usize::MAX).build().into();
    let file = fs::File::create(path).expect("a new file");
    let mut writer = SerializedFileWriter::new(file, schema, settings).expect("a Parquet file");
    for rows in groups {
        let mut group = writer.next_row_group().expect("a row group");
        numbers(&mut group, rows, |row| row.t_ns);
        texts(&mut group, rows.iter().map(|row| ByteArray::from(row.op)).collect(), None);
        numbers(&mut group, rows, |row| row.file_id);
        numbers(&mut group, rows, |row| row.dir_id);
        let is_there: Vec<i16> = rows.iter().map(|row| row.name.is_some().into()).collect();
        texts(&mut group, rows.iter().filter_map(|row| row.name.clone()).collect(), Some(&is_there));
        numbers(&mut group, rows, |row| row.offset_bytes);
        numbers(&mut group, rows, |row| row.size_bytes);
        group.close().expect("written");
    }
    let rows: usize = groups.iter().map(Vec::len).sum();
    let counts = format!(
        r#"{{"operations":{rows},"by_kind":{{}},"written_bytes":0,
        "files_at_end":0,"bytes_at_end":0,"used_bytes_max":0}}"#
    );
    let source = r#"{"kind":"","name":"","description":"","inputs":[],"parameters":null}"#;
    let day = |day| format!(r#"{{"day":{day},"operations":0,"files":0,"used_bytes":0,"used_share":0.0}}"#);
    let utilisation = (1..=days).map(day).collect::<Vec<_>>().join(",");
    let meta = format!(
        r#"{{"version":1,"fsage":"","source":{source},"seed":0,"capacity_bytes":0,"block_bytes":0,"days":{days},
        "placement":"directories","counts":{counts},"utilisation":[{utilisation}],"fit":[]}}"#
    );
    writer.append_key_value_metadata(KeyValue::new("fsage.aging".to_owned(), meta));
    writer.close().expect("written");
}

fn numbers(group: &mut SerializedRowGroupWriter<'_, fs::File>, rows: &[Row], of: fn(&Row) -> i64) {
    let mut chunk = group.next_column().expect("a sound group").expect("a column");
    let values: Vec<i64> = rows.iter().map(of).collect();
    chunk.typed::<Int64Type>().write_batch(&values, None, None).expect("written");
    chunk.close().expect("written");
}

fn texts(group: &mut SerializedRowGroupWriter<'_, fs::File>, values: Vec<ByteArray>, is_there: Option<&[i16]>) {
    let mut chunk = group.next_column().expect("a sound group").expect("a column");
    chunk.typed::<ByteArrayType>().write_batch(&values, is_there, None).expect("written");
    chunk.close().expect("written");
}
