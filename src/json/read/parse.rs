//! JSON onto a flat tape: one walk over the bytes, strict to the letter of RFC 8259.
//!
//! A body that two parsers could read differently is refused, so what general parsers let pass is
//! an error here: control bytes, half a surrogate pair, anything after a number. Every byte of a
//! body is judged, even in fields that nobody reads.
//!
//! A node is a scalar, or a container whose nodes follow it; an object's nodes are names and values
//! in turn. Texts stay in the body: they are unescaped in place, which never makes them longer.

use crate::json::scan::plain_bytes;

/// How deep containers may nest. What clients send nests three deep.
pub(super) const DEPTH_MAX: usize = 64;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    False,
    True,
    /// A whole number without a sign that fits `u64`.
    Integer,
    /// A whole number without a sign that does not.
    LargeInteger,
    /// A number with a sign, a point or an exponent.
    OtherNumber,
    Text,
    Object,
    Array,
}

/// One value, or the name of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The bytes of a text; the items of an array; the names of an object.
    pub(super) count: u32,
    /// An integer's value; where a text begins in the body; how many nodes are in a container.
    pub(super) value: u64,
}

/// The byte from which on a body is not JSON, is nested too deep or is not UTF-8; behind its last one, it is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotJson(pub(super) usize);

/// Parses `body` onto `nodes` and returns it as text.
pub(super) fn parse<'b>(body: &'b mut [u8], nodes: &mut Vec<Node>) -> Result<&'b str, NotJson> {
    nodes.clear();
    if u32::try_from(body.len()).is_err() {
        return Err(NotJson(0));
    }
    let mut parser = Parser { body, at: 0, nodes, open: [0; DEPTH_MAX], depth: 0 };
    if parser.document().is_none() {
        return Err(NotJson(parser.at));
    }
    // One check of the whole body is several times as fast as one for each text.
    std::str::from_utf8(body).map_err(|fault| NotJson(fault.valid_up_to()))
}

struct Parser<'a> {
    body: &'a mut [u8],
    at: usize,
    nodes: &'a mut Vec<Node>,
    /// The nodes of the containers that are open, outermost first.
    open: [usize; DEPTH_MAX],
    depth: usize,
}

impl Parser<'_> {
    fn document(&mut self) -> Option<()> {
        loop {
            self.skip_blanks();
            if !self.value()? {
                continue;
            }
            if self.ends()? {
                return Some(());
            }
        }
    }

    /// Takes a scalar or an empty container, or opens one that is not empty; true if a value ended.
    fn value(&mut self) -> Option<bool> {
        match self.peek()? {
            b'"' => self.text()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b'{' => {
                self.open(Kind::Object)?;
                if self.peek()? != b'}' {
                    self.name()?;
                    return Some(false);
                }
                self.close();
            }
            b'[' => {
                self.open(Kind::Array)?;
                if self.peek()? != b']' {
                    return Some(false);
                }
                self.close();
            }
            b'n' => self.word(b"null", Kind::Null)?,
            b'f' => self.word(b"false", Kind::False)?,
            b't' => self.word(b"true", Kind::True)?,
            _ => return None,
        }
        Some(true)
    }

    /// Takes what follows a value, up to where the next one begins; true at the end of the body.
    fn ends(&mut self) -> Option<bool> {
        loop {
            self.skip_blanks();
            let Some(innermost) = self.depth.checked_sub(1) else {
                return (self.at == self.body.len()).then_some(true);
            };
            let container = &mut self.nodes[self.open[innermost]];
            container.count += 1;
            match (self.body.get(self.at)?, container.kind) {
                (b',', Kind::Object) => {
                    self.at += 1;
                    self.skip_blanks();
                    self.name()?;
                    return Some(false);
                }
                (b',', _) => {
                    self.at += 1;
                    return Some(false);
                }
                (b'}', Kind::Object) | (b']', Kind::Array) => self.close(),
                _ => return None,
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.body.get(self.at) {
            self.at += 1;
        }
    }

    fn push(&mut self, kind: Kind, count: usize, value: usize) {
        let count = u32::try_from(count).expect("the body is shorter than 4 GiB");
        self.nodes.push(Node { kind, count, value: value as u64 });
    }

    fn open(&mut self, kind: Kind) -> Option<()> {
        *self.open.get_mut(self.depth)? = self.nodes.len();
        self.depth += 1;
        self.push(kind, 0, 0);
        self.at += 1;
        self.skip_blanks();
        Some(())
    }

    fn close(&mut self) {
        self.depth -= 1;
        let container = self.open[self.depth];
        self.nodes[container].value = (self.nodes.len() - container - 1) as u64;
        self.at += 1;
    }

    /// Takes the name of an object's entry and the colon after it.
    fn name(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.text()?;
        self.skip_blanks();
        self.byte(b':')
    }

    fn byte(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Option<()> {
        if !self.body[self.at..].starts_with(word) {
            return None;
        }
        self.at += word.len();
        self.push(kind, 0, 0);
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let mut whole = self.byte(b'-').is_none();
        let digits = self.digits()?;
        if digits.len() > 1 && self.body[digits.start] == b'0' {
            return None;
        }
        if self.byte(b'.').is_some() {
            whole = false;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let value = self.body[digits]
            .iter()
            .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
        let (kind, value) = match value {
            _ if !whole => (Kind::OtherNumber, 0),
            Some(value) => (Kind::Integer, value),
            None => (Kind::LargeInteger, 0),
        };
        self.nodes.push(Node { kind, count: 0, value });
        Some(())
    }

    /// Takes one digit or more.
    fn digits(&mut self) -> Option<std::ops::Range<usize>> {
        let start = self.at;
        while self.body.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        (start < self.at).then_some(start..self.at)
    }

    fn text(&mut self) -> Option<()> {
        let start = self.at + 1;
        let (mut read, mut end) = (start, start);
        loop {
            let plain = plain_bytes(&self.body[read..]);
            if end < read {
                self.body.copy_within(read..read + plain, end);
            }
            read += plain;
            end += plain;
            self.at = read;
            match self.body.get(read)? {
                b'"' => break,
                b'\\' => {
                    let (character, escape_bytes) = unescape(&self.body[read..])?;
                    end += character.encode_utf8(&mut self.body[end..read + escape_bytes]).len();
                    read += escape_bytes;
                }
                _ => return None,
            }
        }
        if end < read {
            // The bytes that escapes freed must not look like half a character.
            self.body[end..read].fill(b' ');
        }
        self.at = read + 1;
        self.push(Kind::Text, end - start, start);
        Some(())
    }
}

/// The character of the escape that `text` begins with, and the length of the escape in bytes.
fn unescape(text: &[u8]) -> Option<(char, usize)> {
    let plain = match text.get(1)? {
        b'u' => return unescape_units(text),
        same @ (b'"' | b'\\' | b'/') => char::from(*same),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    };
    Some((plain, 2))
}

/// As [`unescape`], for an escape of one UTF-16 unit or of two that are a surrogate pair.
fn unescape_units(text: &[u8]) -> Option<(char, usize)> {
    /// Bytes of `\uHHHH`.
    const UNIT_BYTES: usize = 6;
    let unit = |text: &[u8]| {
        let digits = text.get(..UNIT_BYTES)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
    };
    let first = unit(text)?;
    if !(0xd800..=0xdbff).contains(&first) {
        return Some((char::from_u32(first)?, UNIT_BYTES));
    }
    let second = unit(&text[UNIT_BYTES..]).filter(|second| (0xdc00..=0xdfff).contains(second))?;
    let code = 0x1_0000 + ((first - 0xd800) << 10 | (second - 0xdc00));
    Some((char::from_u32(code)?, 2 * UNIT_BYTES))
}

#[cfg(test)]
mod tests;
