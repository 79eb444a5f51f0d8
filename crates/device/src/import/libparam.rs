//! The grammar of DiskSim 4.0's parameter files (libparam): what is in the blocks, not what it means.
//!
//! ```text
//! file     = { block | "topology" word word list | "instantiate" list "as" word }
//! block    = type name "{" [ setting { "," setting } ] "}"
//! setting  = ( word { word } | list ) "=" value
//! value    = word | list | type "{" settings "}" | block | word word list
//! list     = "[" [ item { "," item } ] "]"      item = value | word ".." word
//! ```
//!
//! `#` begins a comment, and `source FILE` stands for that file's text, wherever it stands. A block whose type is an
//! earlier block's name has that one's settings, but for those of its own. After the manual of DiskSim 4.0 (Bucy,
//! Schindler, Schlosser and Ganger, CMU-PDL-08-101) and the files that come with it.

use super::ImportError;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Reads a file by its path: the file system, or what a test has instead.
pub type Read<'a> = &'a dyn Fn(&Path) -> std::io::Result<String>;

/// A place in a file.
#[derive(Clone, Debug)]
pub struct Place {
    /// Path.
    pub file: Rc<str>,
    /// From 1.
    pub line: usize,
}

impl Place {
    /// An error there.
    pub fn error(&self, why: impl Into<String>) -> ImportError {
        ImportError::Line { file: self.file.to_string(), line: self.line, why: why.into() }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: line {}", self.file, self.line)
    }
}

/// What a setting is set to.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number, a name, a file.
    Word(String),
    /// A list.
    List(Rc<Vec<(Value, Place)>>),
    /// A block, with or without a name of its own.
    Block(Rc<Block>),
    /// What is connected to what.
    Topology,
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Word(word) => f.write_str(word),
            Value::List(list) => write!(f, "a list of {}", list.len()),
            Value::Block(block) => write!(f, "a {}", block.kind),
            Value::Topology => f.write_str("a topology"),
        }
    }
}

/// A setting.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its key: words with single blanks between them.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Where it stands.
    pub place: Place,
    /// Whether somebody has asked for it.
    pub used: Cell<bool>,
}

/// A block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its type; that of the block it inherits from, if it does.
    pub kind: String,
    /// Its name.
    pub name: Option<String>,
    /// What it sets itself, in its order.
    pub settings: Vec<Setting>,
    /// The block it inherits from.
    pub parent: Option<Rc<Block>>,
    /// Where it begins.
    pub place: Place,
}

impl Block {
    /// A setting by its key: its own, or else the inherited one.
    pub fn setting(&self, key: &str) -> Option<&Setting> {
        let own = self.settings.iter().find(|setting| setting.key == key);
        own.or_else(|| self.parent.as_ref()?.setting(key))
    }

    /// The settings that hold for it: its own, and the inherited ones that it does not set.
    pub fn effective(&self) -> Vec<&Setting> {
        let mut settings: Vec<&Setting> = self.settings.iter().collect();
        let inherited = self.parent.as_ref().map_or_else(Vec::new, |parent| parent.effective());
        settings.extend(inherited.into_iter().filter(|old| self.settings.iter().all(|own| own.key != old.key)));
        settings
    }
}

/// A file with all that it includes.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Blocks at the top and named blocks inside others, in their order.
    pub blocks: Vec<Rc<Block>>,
    /// What is made from which block: names of things, name of the block.
    pub instances: Vec<(Vec<String>, String)>,
    /// Whether there is a topology.
    pub topology: Option<Place>,
}

impl File {
    /// The block of a name.
    pub fn named(&self, name: &str) -> Option<&Rc<Block>> {
        self.blocks.iter().find(|block| block.name.as_deref() == Some(name))
    }
}

/// No file includes another to a greater depth, and no blocks or lists are nested to one.
const DEPTH_MAX: usize = 24;

/// All files together are no longer.
const BYTES_MAX: usize = 16 << 20;

/// No range of names is longer, and no list.
const RANGE_MAX: u64 = 4096;
const LIST_MAX: usize = 1 << 20;

/// No block sets more, and no file names more blocks; those of DiskSim have less than a hundred of both.
const SETTINGS_MAX: usize = 1024;
const BLOCKS_MAX: usize = 1024;

/// Reads a file and what it includes.
pub fn parse(path: &Path, read: Read<'_>) -> Result<File, ImportError> {
    let mut lexer = Lexer { read, tokens: Vec::new(), bytes: 0 };
    lexer.file(path, 0, None)?;
    let end = match lexer.tokens.last() {
        Some(token) => token.place.clone(),
        None => Place { file: path.display().to_string().into(), line: 1 },
    };
    let mut parser = Parser { tokens: lexer.tokens, at: 0, end, file: File::default(), depth: 0 };
    parser.whole()?;
    Ok(parser.file)
}

#[derive(Clone, Debug, PartialEq)]
enum Symbol {
    Word(String),
    Mark(char),
    Range,
}

impl std::fmt::Display for Symbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Symbol::Word(word) => write!(f, "{word:?}"),
            Symbol::Mark(mark) => write!(f, "{mark:?}"),
            Symbol::Range => f.write_str("\"..\""),
        }
    }
}

#[derive(Clone, Debug)]
struct Token {
    symbol: Symbol,
    place: Place,
}

struct Lexer<'a> {
    read: Read<'a>,
    tokens: Vec<Token>,
    bytes: usize,
}

impl Lexer<'_> {
    /// A file's tokens, with those of what it includes in their places.
    fn file(&mut self, path: &Path, depth: usize, from: Option<&Place>) -> Result<(), ImportError> {
        let shown = path.display().to_string();
        let text = (self.read)(path).map_err(|source| ImportError::Io {
            file: match from {
                Some(place) => format!("{shown} (named in {place})"),
                None => shown.clone(),
            },
            source,
        })?;
        let file: Rc<str> = shown.into();
        self.bytes += text.len();
        let whole = Place { file: Rc::clone(&file), line: 1 };
        if self.bytes > BYTES_MAX {
            return Err(whole.error(format!("with what is included longer than {BYTES_MAX} bytes")));
        }
        let mut source = None;
        for (n, line) in text.lines().enumerate() {
            let place = Place { file: Rc::clone(&file), line: n + 1 };
            for word in words(line) {
                let symbol = match word {
                    ".." => Symbol::Range,
                    "source" if source.is_none() => {
                        source = Some(place.clone());
                        continue;
                    }
                    _ => match word.chars().next() {
                        Some(mark) if MARKS.contains(mark) => Symbol::Mark(mark),
                        _ => Symbol::Word(word.to_owned()),
                    },
                };
                let Some(source) = source.take() else {
                    self.tokens.push(Token { symbol, place: place.clone() });
                    continue;
                };
                let Symbol::Word(name) = symbol else {
                    return Err(source.error(format!("`source` wants a file's name, and {symbol} follows")));
                };
                if depth == DEPTH_MAX {
                    return Err(source.error(format!("files that include files, {DEPTH_MAX} deep")));
                }
                let inner = path.parent().map_or_else(|| PathBuf::from(&name), |directory| directory.join(&name));
                self.file(&inner, depth + 1, Some(&source))?;
            }
        }
        match source {
            Some(place) => Err(place.error("`source` wants a file's name, and the file ends")),
            None => Ok(()),
        }
    }
}

const MARKS: &str = "{}[],=;?:";

/// A line's words and marks, without its comment.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c.is_control());
        let first = rest.chars().next().filter(|first| *first != '#')?;
        let len = if MARKS.contains(first) {
            first.len_utf8()
        } else {
            rest.find(|c: char| c.is_whitespace() || c.is_control() || MARKS.contains(c)).unwrap_or(rest.len())
        };
        let (word, behind) = rest.split_at(len);
        rest = behind;
        Some(word)
    })
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    end: Place,
    file: File,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Symbol> {
        self.tokens.get(self.at).map(|token| &token.symbol)
    }

    fn is(&self, mark: char) -> bool {
        self.peek() == Some(&Symbol::Mark(mark))
    }

    fn take(&mut self, mark: char) -> bool {
        let there = self.is(mark);
        self.at += usize::from(there);
        there
    }

    fn place(&self) -> Place {
        self.tokens.get(self.at).map_or_else(|| self.end.clone(), |token| token.place.clone())
    }

    fn wants(&self, what: &str) -> ImportError {
        let found = self.peek().map_or_else(|| "the end".to_owned(), Symbol::to_string);
        self.place().error(format!("{what} is expected, and {found} is there"))
    }

    fn expect(&mut self, mark: char) -> Result<(), ImportError> {
        if self.take(mark) { Ok(()) } else { Err(self.wants(&format!("{mark:?}"))) }
    }

    fn word(&mut self, what: &str) -> Result<String, ImportError> {
        match self.peek() {
            Some(Symbol::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.wants(what)),
        }
    }

    /// Goes a level down, and says so where that is too deep.
    fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, ImportError>) -> Result<T, ImportError> {
        if self.depth == DEPTH_MAX {
            return Err(self.place().error(format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    fn whole(&mut self) -> Result<(), ImportError> {
        while self.peek().is_some() {
            let place = self.place();
            let kind = self.word("a block's type, `instantiate` or `topology`")?;
            match kind.as_str() {
                "topology" => {
                    self.word("a type")?;
                    self.word("a name")?;
                    self.deeper(Self::list)?;
                    self.file.topology = Some(place);
                }
                "instantiate" => {
                    let list = self.deeper(Self::list)?;
                    let names = list.into_iter().map(|(value, place)| match value {
                        Value::Word(name) => Ok(name),
                        other => Err(place.error(format!("{other} where a name is expected"))),
                    });
                    let names = names.collect::<Result<_, _>>()?;
                    if self.word("`as`")? != "as" {
                        self.at -= 1;
                        return Err(self.wants("`as`"));
                    }
                    let block = self.word("a block's name")?;
                    self.file.instances.push((names, block));
                }
                _ => {
                    let name = self.word("a block's name")?;
                    self.block(kind, Some(name), place)?;
                }
            }
        }
        Ok(())
    }

    /// A block from its brace on.
    fn block(&mut self, kind: String, name: Option<String>, place: Place) -> Result<Rc<Block>, ImportError> {
        self.expect('{')?;
        let settings = self.deeper(Self::settings)?;
        self.expect('}')?;
        let parent = self.file.named(&kind).cloned();
        let kind = parent.as_ref().map_or(kind, |parent| parent.kind.clone());
        let block = Rc::new(Block { kind, name, settings, parent, place });
        if let Some(name) = &block.name {
            if let Some(first) = self.file.named(name) {
                return Err(block.place.error(format!("a second block named {name}; the first is at {}", first.place)));
            }
            if self.file.blocks.len() == BLOCKS_MAX {
                return Err(block.place.error(format!("more than {BLOCKS_MAX} blocks")));
            }
            self.file.blocks.push(Rc::clone(&block));
        }
        Ok(block)
    }

    fn settings(&mut self) -> Result<Vec<Setting>, ImportError> {
        let mut settings: Vec<Setting> = Vec::new();
        while !self.is('}') {
            let place = self.place();
            let keys: Vec<String> = if self.is('[') {
                let list = self.list()?;
                list.iter().map(|(key, _)| key.to_string()).collect()
            } else {
                let mut words = vec![self.word("a setting's name")?];
                while let Some(Symbol::Word(word)) = self.peek() {
                    words.push(word.clone());
                    self.at += 1;
                }
                vec![words.join(" ")]
            };
            self.expect('=')?;
            let value = self.value()?;
            for key in keys {
                if let Some(first) = settings.iter().find(|setting| setting.key == key) {
                    return Err(place.error(format!("{key:?} is set a second time; the first is at {}", first.place)));
                }
                if settings.len() == SETTINGS_MAX {
                    return Err(place.error(format!("more than {SETTINGS_MAX} settings in a block")));
                }
                settings.push(Setting { key, value: value.clone(), place: place.clone(), used: Cell::new(false) });
            }
            if !self.take(',') && !self.is('}') {
                return Err(self.wants("',' or '}'"));
            }
        }
        Ok(settings)
    }

    fn value(&mut self) -> Result<Value, ImportError> {
        if self.is('[') {
            return Ok(Value::List(Rc::new(self.deeper(Self::list)?)));
        }
        let place = self.place();
        let first = self.word("a value")?;
        if self.is('{') {
            return Ok(Value::Block(self.block(first, None, place)?));
        }
        let Some(Symbol::Word(second)) = self.peek().cloned() else { return Ok(Value::Word(first)) };
        self.at += 1;
        if self.is('{') {
            return Ok(Value::Block(self.block(first, Some(second), place)?));
        }
        if self.is('[') {
            self.deeper(Self::list)?;
            return Ok(Value::Topology);
        }
        Err(place.error(format!("{first:?} and {second:?}: a value is one word; is a comma missing?")))
    }

    fn list(&mut self) -> Result<Vec<(Value, Place)>, ImportError> {
        self.expect('[')?;
        let mut items = Vec::new();
        while !self.is(']') {
            let place = self.place();
            let value = self.value()?;
            if self.peek() == Some(&Symbol::Range) {
                self.at += 1;
                let to = self.word("the last name of a range")?;
                let names = range(&value.to_string(), &to).map_err(|why| place.error(why))?;
                items.extend(names.into_iter().map(|name| (Value::Word(name), place.clone())));
            } else {
                items.push((value, place.clone()));
            }
            if items.len() > LIST_MAX {
                return Err(place.error(format!("a list of more than {LIST_MAX}")));
            }
            if !self.take(',') && !self.is(']') {
                return Err(self.wants("',' or ']'"));
            }
        }
        self.expect(']')?;
        Ok(items)
    }
}

/// `disk0 .. disk3`: names that differ in the number at their end.
fn range(from: &str, to: &str) -> Result<Vec<String>, String> {
    let split = |name: &str| -> Option<(String, u64)> {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        Some((stem.to_owned(), name[stem.len()..].parse().ok()?))
    };
    match (split(from), split(to)) {
        (Some((stem, first)), Some((other, last))) if stem == other && first <= last => {
            if last - first >= RANGE_MAX {
                return Err(format!("{from} .. {to}: more than {RANGE_MAX} names"));
            }
            Ok((first..=last).map(|n| format!("{stem}{n}")).collect())
        }
        _ => Err(format!("{from} .. {to} is no range of names")),
    }
}
