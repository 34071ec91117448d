//! The JSON parser behind a border of our own: the only file that names it.
//!
//! The parser lays a document out as a flat tape. [`Value`] walks the tape without recursion,
//! so depth costs no stack, and tells whole numbers from all others: a float never gets in.

use simd_json::{Buffers, Node, StaticNode, Tape};

use crate::json::short::ShortText;

/// Bytes of body that the parser's buffers begin with.
const BODY_BYTES_START: usize = 4 * 1024;

/// The parser with its reused memory.
pub(super) struct TapeReader {
    buffers: Buffers,
    tape: Tape<'static>,
}

impl TapeReader {
    pub(super) fn new() -> Self {
        Self { buffers: Buffers::new(BODY_BYTES_START), tape: Tape(Vec::new()) }
    }

    /// Parses `body` in place and lets `judge` look at it; `None` if it is not JSON.
    pub(super) fn read<T>(&mut self, body: &mut [u8], judge: impl FnOnce(Value<'_, '_>) -> T) -> Option<T> {
        if has_control_bytes(body) {
            return None;
        }
        // Resetting a tape gives its memory the lifetime of another document; an empty vector
        // takes its place meanwhile and costs nothing.
        let mut tape = std::mem::replace(&mut self.tape, Tape(Vec::new())).reset();
        let parsed = simd_json::fill_tape(body, &mut self.buffers, &mut tape);
        let outcome = parsed.ok().map(|()| judge(Nodes(&tape.0).next().unwrap_or(Value::Null)));
        self.tape = tape.reset();
        outcome
    }
}

/// True if `body` holds a control byte that JSON has no place for, in strings or between tokens.
///
/// The parser takes NUL for white space, so that one number could read as two. Every byte is looked
/// at, without a branch, so that the loop is one of wide compares.
fn has_control_bytes(body: &[u8]) -> bool {
    let misplaced = |byte: u8| byte < b' ' && byte != b'\t' && byte != b'\n' && byte != b'\r';
    body.iter().fold(0, |found, &byte| found | u8::from(misplaced(byte))) != 0
}

/// A JSON value on the tape.
#[derive(Clone, Copy, Default)]
pub(super) enum Value<'t, 'b> {
    /// Not there.
    #[default]
    Absent,
    /// `null`.
    Null,
    /// A string, unescaped.
    Text(&'b str),
    /// A whole number that fits.
    Integer(u64),
    /// `true` or `false`.
    Boolean(bool),
    /// A number with a sign, a point or an exponent.
    OtherNumber,
    /// An object.
    Object(Entries<'t, 'b>),
    /// An array.
    Array(Items<'t, 'b>),
}

impl Value<'_, '_> {
    /// True for `null` and for what is not there.
    pub(super) const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent | Self::Null)
    }

    /// What an answer says was sent.
    pub(super) fn short(&self) -> ShortText {
        match self {
            Self::Absent => ShortText::EMPTY,
            Self::Null => ShortText::new("null"),
            Self::Text(text) => ShortText::new(text),
            Self::Integer(number) => ShortText::integer(*number),
            Self::Boolean(true) => ShortText::new("true"),
            Self::Boolean(false) => ShortText::new("false"),
            Self::OtherNumber => ShortText::new("a number that is not whole"),
            Self::Object(_) => ShortText::new("an object"),
            Self::Array(_) => ShortText::new("an array"),
        }
    }
}

/// The entries of an object, in order.
#[derive(Clone, Copy)]
pub(super) struct Entries<'t, 'b>(Nodes<'t, 'b>);

#[allow(clippy::copy_iterator, reason = "a value is a place on the tape; each copy walks from there")]
impl<'t, 'b> Iterator for Entries<'t, 'b> {
    type Item = (&'b str, Value<'t, 'b>);

    fn next(&mut self) -> Option<Self::Item> {
        let Value::Text(name) = self.0.next()? else {
            unreachable!("the parser puts a name before each value of an object");
        };
        Some((name, self.0.next()?))
    }
}

/// The items of an array, in order.
#[derive(Clone, Copy)]
pub(super) struct Items<'t, 'b> {
    nodes: Nodes<'t, 'b>,
    count: usize,
}

impl Items<'_, '_> {
    /// How many items are left.
    pub(super) const fn count_left(&self) -> usize {
        self.count
    }
}

#[allow(clippy::copy_iterator, reason = "a value is a place on the tape; each copy walks from there")]
impl<'t, 'b> Iterator for Items<'t, 'b> {
    type Item = Value<'t, 'b>;

    fn next(&mut self) -> Option<Self::Item> {
        let value = self.nodes.next()?;
        self.count -= 1;
        Some(value)
    }
}

/// Values that follow each other on the tape.
#[derive(Clone, Copy)]
struct Nodes<'t, 'b>(&'t [Node<'b>]);

impl<'t, 'b> Nodes<'t, 'b> {
    /// Takes the `count` nodes that belong to the container whose node was just taken.
    fn inside(&mut self, count: usize) -> Self {
        let (inside, after) = self.0.split_at(count);
        self.0 = after;
        Nodes(inside)
    }

    fn next(&mut self) -> Option<Value<'t, 'b>> {
        let (node, after) = self.0.split_first()?;
        self.0 = after;
        Some(match *node {
            Node::String(text) => Value::Text(text),
            Node::Object { count, .. } => Value::Object(Entries(self.inside(count))),
            Node::Array { len, count } => Value::Array(Items { nodes: self.inside(count), count: len }),
            Node::Static(StaticNode::Null) => Value::Null,
            Node::Static(StaticNode::Bool(value)) => Value::Boolean(value),
            Node::Static(StaticNode::U64(number)) => Value::Integer(number),
            Node::Static(StaticNode::I64(number)) => {
                u64::try_from(number).map_or(Value::OtherNumber, Value::Integer)
            }
            Node::Static(StaticNode::F64(_)) => Value::OtherNumber,
        })
    }
}
