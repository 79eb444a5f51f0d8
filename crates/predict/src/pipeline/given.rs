//! Request vectors that come from a file: what a stage of somebody else's has made of those written by
//! [`super::write_annotated`].

use super::request::Request;
use columnar::FileError;
use system::vector::parse_entry_name;
use trace::Event;
use trace::profile::{FORMAT, Reader, Rows, Values};

/// The column with the request vectors, as [`super::write_annotated`] writes it.
pub(super) const COLUMN: &str = "request";
/// What stands between two requests of a vector.
pub(super) const AND: &str = " + ";

/// Rows read at a time.
const ROWS: usize = 1 << 16;

/// The request vectors of a trace, call by call.
pub(super) struct Given<'r> {
    reader: &'r Reader,
    rows: Rows,
    /// The row of `rows` that comes next.
    at: usize,
    requests: Vec<Request>,
    failed: Option<FileError>,
}

impl<'r> Given<'r> {
    pub(super) fn new(reader: &'r Reader) -> Result<Given<'r>, FileError> {
        let has = reader.meta().annotations.iter().any(|annotation| annotation.name == COLUMN);
        if !has {
            let message =
                format!("there is no column \"{COLUMN}\": `fsage predict --stages-out` writes it after stage 4-price");
            return Err(FileError::invalid(reader.directory(), message));
        }
        Ok(Given { reader, rows: Rows::default(), at: 0, requests: Vec::new(), failed: None })
    }

    /// Goes on to a call, which has to be that of the next row.
    pub(super) fn next(&mut self, event: &Event) {
        self.requests.clear();
        if self.failed.is_none() {
            self.failed = self.read(event).err();
        }
    }

    fn read(&mut self, event: &Event) -> Result<(), FileError> {
        if self.at >= self.rows.batch.events.len() {
            let next = self.rows.first_row + self.rows.batch.events.len() as u64;
            (self.rows, self.at) = (self.reader.rows(next, ROWS)?, 0);
        }
        let row = self.rows.first_row + self.at as u64;
        let path = self.reader.directory();
        let wrong = |message: String| FORMAT.corrupt(path, format!("row {row}"), message);
        let must = "a stage keeps every row of the trace in its place, and empties the request of a call that is to \
            cost nothing";
        let Some(found) = self.rows.batch.events.get(self.at) else {
            return Err(wrong(format!("the trace ends before call {}; {must}", event.head.seq)));
        };
        if found.head.seq != event.head.seq || found.op() != event.op() {
            let (seq, op) = (event.head.seq, event.op().name());
            let message = format!(
                "it is {} (call {}), and the workload has {op} (call {seq}) there; {must}",
                found.op().name(),
                found.head.seq
            );
            return Err(wrong(message));
        }
        let column = self.rows.annotations.iter().find(|(name, _)| name == COLUMN).map(|(_, values)| values);
        let Some(Values::Utf8(texts)) = column else {
            return Err(wrong(format!("the column \"{COLUMN}\" is no text")));
        };
        if let Some(text) = texts.get(self.at).and_then(Option::as_deref) {
            parse(text, &mut self.requests).map_err(|what| wrong(format!("request \"{text}\": {what}")))?;
        }
        self.at += 1;
        Ok(())
    }

    /// Of the call gone on to.
    pub(super) fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Whether something went wrong.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// What went wrong, once.
    pub(super) fn failed(&mut self) -> Option<FileError> {
        self.failed.take()
    }

    /// The workload has no more calls, and neither may the file.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        let next = self.rows.first_row + self.at as u64;
        if self.reader.rows(next, 1)?.batch.events.is_empty() {
            return Ok(());
        }
        Err(FORMAT.corrupt(
            self.reader.directory(),
            format!("row {next}"),
            "the workload has no such call: it ends before",
        ))
    }
}

/// Reads a vector: `0.5 rd_4096 + stat`; nothing is a vector of none.
fn parse(text: &str, out: &mut Vec<Request>) -> Result<(), String> {
    for part in text.split(AND).map(str::trim).filter(|part| !part.is_empty()) {
        let (weight, name) = match part.split_once(' ') {
            Some((weight, name)) => (weight.parse::<f64>().ok(), name.trim()),
            None => (Some(1.0), part),
        };
        let weight =
            weight.filter(|weight| weight.is_finite()).ok_or_else(|| format!("\"{part}\" begins with no number"))?;
        let (class, size) = parse_entry_name(name).ok_or_else(|| {
            format!(
                "\"{name}\" is no entry of the system vector; a number before it says how often, as in \"0.5 \
                rd_4096{AND}stat\""
            )
        })?;
        out.push(Request { class, size, weight });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use system::vector::Class;

    #[test]
    fn a_vector_is_read_as_it_is_written() {
        let mut found = Vec::new();
        parse("-0.125 rd_4096 + stat +  3 rdc_10", &mut found).unwrap();
        let request = |class, size, weight| Request { class, size, weight };
        assert_eq!(
            found,
            [request(Class::ReadSeq, 4096, -0.125), request(Class::Stat, 0, 1.0), request(Class::ReadCached, 10, 3.0)]
        );
        found.clear();
        parse("", &mut found).unwrap();
        assert!(found.is_empty());
        for (text, says) in
            [("x stat", "no number"), ("rd", "no entry"), ("2 nought_1", "no entry"), ("inf stat", "no number")]
        {
            let why = parse(text, &mut found).unwrap_err();
            assert!(why.contains(says), "{text}: {why}");
        }
    }
}
