//! Percent-encoding, and the pairs of a query.
//!
//! Pairs are split before anything is decoded, at `&` and then at the first `=`, so that a bare `=`
//! may stand in a value (`next_cursor=MA==`) as well as `%3D`. Names are decoded before they are
//! compared. `+` is a blank in names and values, as in forms; in a path it is a plus.

use crate::domain::text::hex_digit;
use std::borrow::Cow;

/// The text is not percent-encoded UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadEscape;

/// A query as sent, without its `?`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Query<'a>(&'a str);

/// A value as sent, to be decoded by whoever needs its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded<'a>(&'a str);

impl<'a> Query<'a> {
    /// The query of a request; `None` is an empty one.
    #[must_use]
    pub const fn new(query: Option<&'a str>) -> Self {
        match query {
            Some(text) => Self(text),
            None => Self(""),
        }
    }

    /// Every pair in order, except empty ones: the name's text and the value. A name without `=` has an
    /// empty value; a name that is not percent-encoded UTF-8 is its own text.
    pub fn pairs(self) -> impl Iterator<Item = (Cow<'a, str>, Encoded<'a>)> {
        self.0.split('&').filter(|pair| !pair.is_empty()).map(|pair| match pair.split_once('=') {
            Some((name, value)) => (name_text(name), Encoded(value)),
            None => (name_text(pair), Encoded("")),
        })
    }

    /// The first value of `name`.
    #[must_use]
    pub fn first(self, name: &str) -> Option<Encoded<'a>> {
        self.pairs().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Every value of `name`, in order.
    pub fn all(self, name: &str) -> impl Iterator<Item = Encoded<'a>> {
        self.pairs().filter(move |(found, _)| *found == name).map(|(_, value)| value)
    }
}

impl<'a> Encoded<'a> {
    /// The value as sent.
    #[must_use]
    pub const fn raw(self) -> &'a str {
        self.0
    }

    /// The value's text. `scratch` is only used if something is encoded.
    pub fn text<'s>(self, scratch: &'s mut Vec<u8>) -> Result<&'s str, BadEscape>
    where
        'a: 's,
    {
        decode(self.0, Plus::IsBlank, scratch)
    }
}

/// The text of one path segment. `scratch` is only used if something is encoded.
pub fn segment_text<'s>(segment: &'s str, scratch: &'s mut Vec<u8>) -> Result<&'s str, BadEscape> {
    decode(segment, Plus::IsPlus, scratch)
}

/// The text of a name; nearly always it is the name as sent.
fn name_text(name: &str) -> Cow<'_, str> {
    let mut decoded = Vec::new();
    match decode(name, Plus::IsBlank, &mut decoded) {
        Ok(text) if text != name => Cow::Owned(text.to_owned()),
        _ => Cow::Borrowed(name),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Plus {
    IsBlank,
    IsPlus,
}

fn decode<'s>(encoded: &'s str, plus: Plus, scratch: &'s mut Vec<u8>) -> Result<&'s str, BadEscape> {
    let stands_for_another = |byte: &u8| *byte == b'%' || (*byte == b'+' && plus == Plus::IsBlank);
    if !encoded.as_bytes().iter().any(stands_for_another) {
        return Ok(encoded);
    }
    scratch.clear();
    let mut rest = encoded.as_bytes();
    loop {
        match rest {
            [] => break,
            [b'%', high, low, after @ ..] => {
                let digit = |byte: u8| hex_digit(byte).ok_or(BadEscape);
                scratch.push(digit(*high)? << 4 | digit(*low)?);
                rest = after;
            }
            [b'%', ..] => return Err(BadEscape),
            [b'+', after @ ..] if plus == Plus::IsBlank => {
                scratch.push(b' ');
                rest = after;
            }
            [byte, after @ ..] => {
                scratch.push(*byte);
                rest = after;
            }
        }
    }
    std::str::from_utf8(scratch).map_err(|_| BadEscape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Result<String, BadEscape> {
        Encoded(value).text(&mut Vec::new()).map(str::to_owned)
    }

    #[test]
    fn an_equals_sign_may_come_bare_or_encoded() {
        let read = |query| Query::new(Some(query)).first("next_cursor").map(|value| text(value.raw()));
        assert_eq!(read("next_cursor=MA=="), Some(Ok("MA==".to_owned())));
        assert_eq!(read("a=1&next_cursor=MA%3D%3d&b"), Some(Ok("MA==".to_owned())));
        assert_eq!(read("next_cursor"), Some(Ok(String::new())));
        assert_eq!(read("next_cursor="), Some(Ok(String::new())));
        assert_eq!(read("Next_cursor=x"), None);
        assert_eq!(read("next%5Fcursor=x"), Some(Ok("x".to_owned())));
        assert_eq!(read("%6Eext_cursor=x&next_cursor=y"), Some(Ok("x".to_owned())), "the first counts");
        assert_eq!(read("next%5fcurso%=x"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn pairs_keep_their_order_and_repeats() {
        let query = Query::new(Some("id=1&&slug=a&id=2&="));
        let pairs: Vec<_> = query.pairs().map(|(name, value)| format!("{name}={}", value.raw())).collect();
        assert_eq!(pairs, ["id=1", "slug=a", "id=2", "="]);
        assert_eq!(query.all("id").map(Encoded::raw).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(Query::new(None).pairs().count(), 0);
    }

    #[test]
    fn values_and_segments_decode_apart_from_the_plus() {
        for (encoded, value, segment) in [
            ("a+b", "a b", "a+b"),
            ("a%20b", "a b", "a b"),
            ("a%2Bb", "a+b", "a+b"),
            ("%C3%A9t%c3%a9", "été", "été"),
            ("%00", "\0", "\0"),
            ("plain", "plain", "plain"),
        ] {
            assert_eq!(text(encoded).as_deref(), Ok(value));
            assert_eq!(segment_text(encoded, &mut Vec::new()), Ok(segment));
        }
        for bad in ["%", "%a", "%g0", "%0g", "%%20", "%ff", "%c3%28", "x%C3"] {
            assert_eq!(text(bad), Err(BadEscape), "{bad}");
        }
    }
}
