//! Lines out of stretches of text that are cut anywhere.

/// A line longer than this is no trace's; of it only so much is kept.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The beginning of a line whose end has not come yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    carry: Vec<u8>,
}

impl Lines {
    /// Hands over each line that ends in `chunk`, without its newline, and keeps what is behind the last.
    pub fn split<E>(&mut self, chunk: &[u8], mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(end);
            if self.carry.is_empty() {
                each(line)?;
            } else {
                self.keep(line);
                let done = each(&self.carry);
                self.carry.clear();
                done?;
            }
            rest = behind.get(1..).unwrap_or_default();
        }
        self.keep(rest);
        Ok(())
    }

    /// The last line, if it has no newline.
    pub fn take_rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.carry);
        (!rest.is_empty()).then_some(rest)
    }

    fn keep(&mut self, part: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.carry.len());
        self.carry.extend(part.iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn any_split_gives_the_same_lines() {
        let text = b"one\n\ntwo three\nlast";
        for cut in 0..=text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for chunk in [&text[..cut], &text[cut..]] {
                let done: Result<(), Infallible> = lines.split(chunk, |line| {
                    found.push(line.to_vec());
                    Ok(())
                });
                done.unwrap();
            }
            assert_eq!(found, [&b"one"[..], b"", b"two three"]);
            assert_eq!(lines.take_rest().as_deref(), Some(&b"last"[..]));
        }
    }
}
