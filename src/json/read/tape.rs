//! A body as values: a walk over the tape that `parse` makes.
//!
//! [`Value`] walks without recursion and tells whole numbers from all others: no float gets in.

use super::parse::{Kind, Node, NotJson, parse};
use crate::json::short::ShortText;

/// Nodes that the tape begins with: more than any order has.
const NODES_START: usize = 256;

/// A tape whose memory is reused.
pub(super) struct TapeReader {
    nodes: Vec<Node>,
}

impl TapeReader {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::with_capacity(NODES_START) }
    }

    /// Parses `body` in place and hands it to `judge`.
    pub(super) fn read<T>(
        &mut self,
        body: &mut [u8],
        judge: impl FnOnce(Value<'_, '_>) -> T,
    ) -> Result<T, NotJson> {
        let body = parse(body, &mut self.nodes)?;
        Ok(judge(Nodes { nodes: &self.nodes, body }.next().expect("JSON has a value")))
    }
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
    /// A whole number above `u64`.
    LargeInteger,
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

    /// True for what is absent and for `""`.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Absent | Self::Null | Self::Text(""))
    }

    /// What an answer quotes as sent.
    pub(super) fn short(&self) -> ShortText {
        match self {
            Self::Absent => ShortText::EMPTY,
            Self::Null => ShortText::new("null"),
            Self::Text(text) => ShortText::new(text),
            Self::Integer(number) => ShortText::integer(*number),
            Self::Boolean(true) => ShortText::new("true"),
            Self::Boolean(false) => ShortText::new("false"),
            Self::OtherNumber => ShortText::new("a number with a sign, a point or an exponent"),
            Self::LargeInteger => ShortText::new("a whole number not below 2^64"),
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
struct Nodes<'t, 'b> {
    nodes: &'t [Node],
    body: &'b str,
}

impl<'t, 'b> Nodes<'t, 'b> {
    /// Takes the nodes that belong to the container whose node was just taken.
    fn inside(&mut self, container: &Node) -> Self {
        let (inside, after) = self.nodes.split_at(index(container.value));
        self.nodes = after;
        Nodes { nodes: inside, body: self.body }
    }

    fn text(&self, node: &Node) -> &'b str {
        let start = index(node.value);
        &self.body[start..start + node.count as usize]
    }

    fn next(&mut self) -> Option<Value<'t, 'b>> {
        let (node, after) = self.nodes.split_first()?;
        self.nodes = after;
        Some(match node.kind {
            Kind::Null => Value::Null,
            Kind::False => Value::Boolean(false),
            Kind::True => Value::Boolean(true),
            Kind::Integer => Value::Integer(node.value),
            Kind::LargeInteger => Value::LargeInteger,
            Kind::OtherNumber => Value::OtherNumber,
            Kind::Text => Value::Text(self.text(node)),
            Kind::Object => Value::Object(Entries(self.inside(node))),
            Kind::Array => Value::Array(Items { nodes: self.inside(node), count: node.count as usize }),
        })
    }
}

fn index(value: u64) -> usize {
    usize::try_from(value).expect("a place in a body that is in memory")
}
