//! Pieces that every target is made of: options between commas, quotes, sizes.

/// A comma-separated piece of a target, quotes still in it, and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// As written.
    pub text: &'a str,
    /// Its first character, counted from 1.
    pub position: usize,
}

/// Splits at a separator (a comma between options) that is not quoted; `start` is the position of the first character.
/// The error says where.
pub fn split(text: &str, start: usize, separator: char) -> Result<Vec<Piece<'_>>, (usize, &'static str)> {
    let mut pieces = Vec::new();
    let (mut from, mut from_position) = (0, start);
    let mut quote: Option<(char, usize)> = None;
    let mut chars = text.char_indices().enumerate();
    while let Some((n, (at, c))) = chars.next() {
        match (quote, c) {
            (Some((q, _)), c) if c == q => quote = None,
            (Some(('"', _)) | None, '\\') if chars.next().is_none() => {
                return Err((start + n, "nothing follows the backslash"));
            }
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some((c, start + n)),
            (None, c) if c == separator => {
                pieces.push(Piece { text: text.get(from..at).unwrap_or_default(), position: from_position });
                (from, from_position) = (at + c.len_utf8(), start + n + 1);
            }
            (None, _) => {}
        }
    }
    if let Some((_, position)) = quote {
        return Err((position, "the quote is not closed"));
    }
    pieces.push(Piece { text: text.get(from..).unwrap_or_default(), position: from_position });
    Ok(pieces)
}

/// Splits into words at spaces and takes the quotes off, as a shell does. The quotes are known to be closed.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"'), '\\') => {
                let escaped = chars.next_if(|c| matches!(c, '"' | '\\'));
                word.get_or_insert_default().push(escaped.unwrap_or('\\'));
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A size with its unit, as everywhere ([`units::size_bytes`]); the error says where in it.
pub fn parse_size(text: &str) -> Result<u64, (usize, &'static str)> {
    units::size_bytes(text).map_err(|wrong| (wrong.at, wrong.problem))
}
