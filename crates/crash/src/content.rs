//! What a file holds, so that one version takes no more memory than it differs from the one before.

use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE: usize = 4096;

/// A page that is not there.
static ZEROS: [u8; PAGE] = [0; PAGE];

/// The bytes of a file. Pages that are not there are zeros.
#[derive(Clone, Debug, Default)]
pub struct Content {
    len: u64,
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
}

impl Content {
    /// A file with these bytes.
    pub fn of(bytes: &[u8]) -> Content {
        let mut content = Content::default();
        content.write(0, bytes);
        content
    }

    /// Its length, bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts bytes at a place; the file grows if it has to.
    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        for (here, piece) in pages(at, bytes) {
            let page = Arc::make_mut(self.pages.entry(here / PAGE as u64).or_insert_with(|| Arc::new([0; PAGE])));
            let within = (here % PAGE as u64) as usize;
            page[within..within + piece.len()].copy_from_slice(piece);
        }
        self.len = self.len.max(at + bytes.len() as u64);
    }

    /// Cuts it, or makes it longer by zeros.
    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.pages.split_off(&len.div_ceil(PAGE as u64));
            let within = (len % PAGE as u64) as usize;
            if within > 0
                && let Some(page) = self.pages.get_mut(&(len / PAGE as u64))
            {
                Arc::make_mut(page)[within..].fill(0);
            }
        }
        self.len = len;
    }

    fn page(&self, number: u64) -> &[u8; PAGE] {
        self.pages.get(&number).map_or(&ZEROS, |page| page)
    }

    /// Fills `out` with what is at `at`, zeros beyond the end.
    pub fn read(&self, at: u64, out: &mut [u8]) {
        let mut done = 0;
        while done < out.len() {
            let here = at + done as u64;
            let within = (here % PAGE as u64) as usize;
            let n = (PAGE - within).min(out.len() - done);
            let page = self.page(here / PAGE as u64);
            if let (Some(place), Some(bytes)) = (out.get_mut(done..done + n), page.get(within..within + n)) {
                place.copy_from_slice(bytes);
            }
            done += n;
        }
    }

    /// The first byte that is another than in `other`, both going on in zeros.
    pub fn differs_at(&self, other: &Content, from: u64) -> Option<u64> {
        let first = from / PAGE as u64;
        let mut mine = self.pages.range(first..).peekable();
        let mut theirs = other.pages.range(first..).peekable();
        loop {
            let number = match (mine.peek(), theirs.peek()) {
                (None, None) => return None,
                (Some((number, _)), None) | (None, Some((number, _))) => **number,
                (Some((one, _)), Some((two, _))) => **one.min(two),
            };
            let one = mine.next_if(|(at, _)| **at == number).map(|(_, page)| page);
            let two = theirs.next_if(|(at, _)| **at == number).map(|(_, page)| page);
            if let (Some(one), Some(two)) = (one, two)
                && Arc::ptr_eq(one, two)
            {
                continue;
            }
            let (one, two) = (one.map_or(&ZEROS, |page| page), two.map_or(&ZEROS, |page| page));
            let skip = from.saturating_sub(number * PAGE as u64) as usize;
            if one != two
                && let Some(at) = one.iter().zip(two).skip(skip).position(|(a, b)| a != b)
            {
                return Some(number * PAGE as u64 + (at + skip) as u64);
            }
        }
    }

    /// Whether a call that makes `new` of `old`, from the beginning of what it changes on, has this in between.
    pub fn is_between(&self, old: &Content, new: &Content) -> bool {
        let (shorter, longer) = (old.len.min(new.len), old.len.max(new.len));
        (shorter..=longer).contains(&self.len)
            && self.differs_at(new, 0).is_none_or(|at| self.differs_at(old, at).is_none())
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Content) -> bool {
        self.len == other.len && self.differs_at(other, 0).is_none()
    }
}

/// A range by pages.
fn pages(at: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let here = at + done as u64;
        let n = (PAGE - (here % PAGE as u64) as usize).min(bytes.len() - done);
        let piece = bytes.get(done..done + n)?;
        done += n;
        (n > 0).then_some((here, piece))
    })
}
