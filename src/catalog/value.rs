//! What rows are ordered by: numbers and texts.
//!
//! Ids compare as numbers where they are numbers, and those come before all others.

use super::order::Direction;

/// A [`Value`] that is kept: an id as lists are ordered by it, or what a mark says of its row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum KeptValue {
    /// A number.
    Number(u64),
    /// Any other.
    Text(String),
}

impl KeptValue {
    /// The key of an id.
    pub(super) fn of(id: &str) -> Self {
        Self::from(id_value(id))
    }

    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Number(number) => Value::Number(*number),
            Self::Text(text) => Value::Text(text),
        }
    }
}

impl From<Value<'_>> for KeptValue {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Number(number) => Self::Number(number),
            Value::Text(text) => Self::Text(text.to_owned()),
        }
    }
}

/// An id as a value to compare: in the order of [`KeptValue`].
pub(super) fn id_value(id: &str) -> Value<'_> {
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    match id.parse::<u64>() {
        Ok(number) if is_number => Value::Number(number),
        _ => Value::Text(id),
    }
}

/// One row's value in one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value<'a> {
    /// A number, an amount or an instant.
    Number(u64),
    /// A text, compared by its bytes.
    Text(&'a str),
}

impl<'a> Value<'a> {
    /// A column's text; none if it is empty. Only its beginning counts: a mark has it, in hexadecimal, and stands in a
    /// request's line.
    pub(super) fn of_text(text: &'a str) -> Option<Self> {
        const COMPARED_BYTES: usize = 512;
        (!text.is_empty()).then(|| Self::Text(&text[..text.floor_char_boundary(COMPARED_BYTES)]))
    }

    /// It, if it is a number.
    pub(super) const fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Text(_) => None,
        }
    }
}

/// How a value begins, in the order of values: who of two has the less is not behind the other. Equal ones may be of
/// different texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lead(u128);

impl Lead {
    /// Of a row that lacks the value, which comes last.
    const NOTHING: Self = Self(u128::MAX);

    pub(super) fn of(value: Option<Value<'_>>) -> Self {
        match value {
            None => Self::NOTHING,
            Some(Value::Number(number)) => Self(number.into()),
            Some(Value::Text(text)) => {
                let mut bytes = [0; 16];
                bytes.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
                // UTF-8 has no byte 0xff, so this is below that of nothing.
                Self(1 << 127 | u128::from_be_bytes(bytes) >> 1)
            }
        }
    }

    /// It in the order of lists that go this way.
    pub(super) const fn turned(self, direction: Direction) -> Self {
        match direction {
            Direction::Descending if self.0 != Self::NOTHING.0 => Self(Self::NOTHING.0 - 1 - self.0),
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    #[test]
    fn ids_compare_as_numbers_where_they_are() {
        let mut ids = ["b", "10", "9", "a", "", "+1", "99999999999999999999"].map(KeptValue::of);
        ids.sort();
        assert_eq!(ids, ["9", "10", "", "+1", "99999999999999999999", "a", "b"].map(KeptValue::of));
    }

    #[test]
    fn leads_are_in_the_order_of_values_and_nothing_is_last_both_ways() {
        let texts =
            ["", "a", "a\0", "ab", "b", "é", "\u{10ffff}", "the same sixteen bytes", "the same sixteen b"];
        let numbers = [0, 1, u64::MAX].map(Value::Number);
        let mut values: Vec<Value<'_>> = numbers.into_iter().chain(texts.map(Value::Text)).collect();
        values.sort();
        for (at, one) in values.iter().enumerate() {
            for direction in [Direction::Ascending, Direction::Descending] {
                assert!(Lead::of(Some(*one)).turned(direction) < Lead::of(None).turned(direction), "{one:?}");
            }
            for other in &values[at..] {
                let [one, other] = [one, other].map(|value| Lead::of(Some(*value)));
                assert!(one <= other, "{one:?} {other:?}");
                assert!(other.turned(Direction::Descending) <= one.turned(Direction::Descending));
            }
        }
    }

    proptest! {
        #[test]
        fn leads_of_texts_tell_what_the_texts_tell(one in ".{0,24}", other in ".{0,24}") {
            let [lead, other_lead] = [&one, &other].map(|text| Lead::of(Some(Value::Text(text))));
            if lead.cmp(&other_lead) != Ordering::Equal {
                prop_assert_eq!(lead.cmp(&other_lead), one.cmp(&other));
            }
        }
    }
}
