//! A JSON writer that appends to the caller's buffer.
//!
//! It knows from the byte before whether a comma belongs here: there is none after `{`, `[`, `:` or
//! at the start, and one after anything else. Strings end in a quote and numbers in a digit, so
//! that byte is never mistaken. Numbers and names go through `decimal` and `name`; there is no way
//! to write a float.

use super::date;
use super::decimal;
use super::name;
use super::scan::{must_escape, plain_bytes};
use crate::domain::{Address, ApiKey, ConditionId, OrderId, Price, TimeMs, TokenId, Word};

/// Bytes of the longest name that is written.
const NAME_BYTES_MAX: usize = 45;

/// Appends one JSON value, of any depth, to a buffer that may already hold a head.
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    /// Begins a value at the end of `out`.
    #[must_use]
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start }
    }

    /// How many bytes the value has so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.out.len() - self.start
    }

    /// `{`
    #[inline]
    pub fn open_object(&mut self) -> &mut Self {
        self.value().push(b'{');
        self
    }

    /// `}`
    #[inline]
    pub fn close_object(&mut self) -> &mut Self {
        self.out.push(b'}');
        self
    }

    /// `[`
    #[inline]
    pub fn open_array(&mut self) -> &mut Self {
        self.value().push(b'[');
        self
    }

    /// `]`
    #[inline]
    pub fn close_array(&mut self) -> &mut Self {
        self.out.push(b']');
        self
    }

    /// A name in an object; its value follows. Names are our own: short, with nothing to escape.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "where the name is known, writing it is a few stores")]
    pub fn key(&mut self, name: &'static str) -> &mut Self {
        debug_assert!(!name.bytes().any(must_escape), "our names are plain");
        let name = name.as_bytes();
        let mut quoted = [b'"'; NAME_BYTES_MAX + 3];
        quoted[1..=name.len()].copy_from_slice(name);
        quoted[name.len() + 2] = b':';
        self.value().extend_from_slice(&quoted[..name.len() + 3]);
        self
    }

    /// Makes the string just written a name; its value follows.
    pub fn names(&mut self) -> &mut Self {
        self.out.push(b':');
        self
    }

    /// A string.
    #[inline]
    pub fn text(&mut self, text: &str) -> &mut Self {
        let out = self.value();
        out.push(b'"');
        push_escaped(out, text);
        out.push(b'"');
        self
    }

    /// `true` or `false`.
    #[inline]
    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.value().extend_from_slice(if value { b"true" } else { b"false" });
        self
    }

    /// `null`.
    #[inline]
    pub fn null(&mut self) -> &mut Self {
        self.value().extend_from_slice(b"null");
        self
    }

    /// What `write` writes of a value, or `null` if there is none.
    pub fn or_null<T>(
        &mut self,
        value: Option<T>,
        write: impl FnOnce(&mut Self, T) -> &mut Self,
    ) -> &mut Self {
        match value {
            Some(value) => write(self, value),
            None => self.null(),
        }
    }

    /// A string, or `null`.
    pub fn text_or_null(&mut self, text: Option<&str>) -> &mut Self {
        self.or_null(text, Self::text)
    }

    /// A whole number, or `null`.
    pub fn number_or_null(&mut self, value: Option<u64>) -> &mut Self {
        self.or_null(value, Self::number)
    }

    /// A whole number.
    #[inline]
    pub fn number(&mut self, value: u64) -> &mut Self {
        decimal::push_integer(self.value(), value);
        self
    }

    /// An amount as a number: `19.6078`.
    #[inline]
    pub fn millionths_number(&mut self, value: u64) -> &mut Self {
        decimal::push_millionths(self.value(), value);
        self
    }

    /// `value` / 10^`places` as a number, which may be below zero: `-0.6135`.
    #[inline]
    pub fn decimal(&mut self, value: i128, places: u32) -> &mut Self {
        decimal::push_signed(self.value(), value, places);
        self
    }

    /// A price or tick as a number: `0.01`.
    pub fn ten_thousandths_number(&mut self, value: u16) -> &mut Self {
        decimal::push_ten_thousandths(self.value(), value);
        self
    }

    /// A whole number as a string.
    pub fn number_text(&mut self, value: u64) -> &mut Self {
        self.quoted(|out| decimal::push_integer(out, value))
    }

    /// An amount as a string: `"19.6078"`.
    pub fn millionths_text(&mut self, value: u64) -> &mut Self {
        self.quoted(|out| decimal::push_millionths(out, value))
    }

    /// A price as a string: `"0.51"`.
    pub fn price_text(&mut self, price: Price) -> &mut Self {
        self.quoted(|out| decimal::push_price(out, price))
    }

    /// A price or tick as a string, including 0 and 1.
    pub fn ten_thousandths_text(&mut self, value: u16) -> &mut Self {
        self.quoted(|out| decimal::push_ten_thousandths(out, value))
    }

    /// When something happened here, as RFC 3339: `"2026-11-20T10:11:12.340Z"`.
    pub fn instant(&mut self, time: TimeMs) -> &mut Self {
        self.quoted(|out| date::push_instant(out, time))
    }

    /// A date as RFC 3339: `"2026-11-20T10:11:12.34Z"`.
    pub fn date_time(&mut self, time: TimeMs) -> &mut Self {
        self.quoted(|out| date::push_date_time(out, time))
    }

    /// Bytes in hex after `0x`, lower case.
    #[inline]
    pub fn hex(&mut self, bytes: &[u8]) -> &mut Self {
        self.quoted(|out| name::push_hex(out, bytes))
    }

    /// An address, lower case.
    pub fn address(&mut self, address: &Address) -> &mut Self {
        self.hex(address.as_bytes())
    }

    /// An order's id.
    pub fn order_id(&mut self, id: &OrderId) -> &mut Self {
        self.hex(id.as_bytes())
    }

    /// A market's condition id.
    pub fn condition(&mut self, id: &ConditionId) -> &mut Self {
        self.hex(id.as_bytes())
    }

    /// A token's id, in decimal.
    pub fn token(&mut self, id: &TokenId) -> &mut Self {
        self.quoted(|out| decimal::push_uint256(out, id.as_bytes()))
    }

    /// A uint256, in decimal.
    pub fn uint256(&mut self, word: &Word) -> &mut Self {
        self.quoted(|out| decimal::push_uint256(out, word.as_bytes()))
    }

    /// A key as a UUID.
    pub fn uuid(&mut self, key: ApiKey) -> &mut Self {
        self.quoted(|out| name::push_uuid(out, key))
    }

    /// A key as a ULID.
    pub fn ulid(&mut self, key: ApiKey) -> &mut Self {
        self.quoted(|out| name::push_ulid(out, key))
    }

    /// A string of what `push` appends, which must need no escapes.
    #[inline]
    pub fn quoted(&mut self, push: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        let out = self.value();
        out.push(b'"');
        let from = out.len();
        push(out);
        debug_assert!(!out[from..].iter().any(|&byte| must_escape(byte)), "needs no escapes");
        out.push(b'"');
        self
    }

    /// A string that `push` appends piece by piece, each escaped.
    pub(super) fn pieces(&mut self, push: impl FnOnce(&mut Pieces<'_>)) -> &mut Self {
        let out = self.value();
        out.push(b'"');
        push(&mut Pieces(out));
        out.push(b'"');
        self
    }

    /// A value that is JSON already.
    pub fn raw(&mut self, json: &[u8]) -> &mut Self {
        self.value().extend_from_slice(json);
        self
    }

    /// What was written after the first `bytes`, without the comma before it.
    #[must_use]
    pub fn written_after(&self, bytes: usize) -> &[u8] {
        let written = &self.out[self.start + bytes..];
        written.strip_prefix(b",").unwrap_or(written)
    }

    /// Removes what was written after the first `bytes`.
    pub fn cut(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes(), "only what was written is taken back");
        self.out.truncate(self.start + bytes);
    }

    /// Room for a value: a comma if one belongs here.
    #[inline]
    fn value(&mut self) -> &mut Vec<u8> {
        if !matches!(self.out[self.start..].last(), None | Some(b'{' | b'[' | b':')) {
            self.out.push(b',');
        }
        self.out
    }
}

/// A string that is assembled piece by piece.
pub(super) struct Pieces<'a>(&'a mut Vec<u8>);

impl Pieces<'_> {
    pub(super) fn text(&mut self, text: &str) {
        push_escaped(self.0, text);
    }

    pub(super) fn hex(&mut self, bytes: &[u8]) {
        name::push_hex(self.0, bytes);
    }
}

/// Appends `text` with quotes, backslashes and control characters escaped.
fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, marked) = rest.split_at(plain_bytes(rest));
        out.extend_from_slice(plain);
        let Some((mark, after)) = marked.split_first() else {
            return;
        };
        match mark {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                out.extend_from_slice(b"\\u00");
                name::push_hex_digits(out, &[*control]);
            }
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl for<'j, 'o> FnOnce(&'j mut Writer<'o>) -> &'j mut Writer<'o>) -> String {
        let mut out = b"head,".to_vec();
        write(&mut Writer::new(&mut out));
        String::from_utf8(out.split_off(5)).expect("UTF-8")
    }

    #[test]
    fn commas_stand_between_values_and_nowhere_else() {
        let text = written(|json| {
            json.open_object().key("a").open_array().close_array().key("b").open_array();
            json.number(1).text("").text("{").null().open_object().close_object().boolean(true).close_array();
            json.key("c").boolean(false).key("d").number_or_null(Some(5)).key("e").text_or_null(None);
            json.close_object()
        });
        assert_eq!(text, r#"{"a":[],"b":[1,"","{",null,{},true],"c":false,"d":5,"e":null}"#);
        assert_eq!(written(|json| json.number(7)), "7");
    }

    #[test]
    fn numbers_and_names_are_written_in_their_own_forms() {
        let text = written(|json| {
            json.open_array().millionths_number(19_607_800).millionths_text(500_000).number_text(3);
            json.ten_thousandths_number(100).ten_thousandths_text(10_000);
            json.price_text(Price::new(5_100).expect("in range"));
            json.token(&TokenId::ZERO).address(&Address([0xab; 20])).uuid(ApiKey([0x11; 16]));
            json.raw(br#"{"x":1}"#).close_array()
        });
        assert_eq!(
            text,
            "[19.6078,\"0.5\",\"3\",0.01,\"1\",\"0.51\",\"0\",\
             \"0xabababababababababababababababababababab\",\"11111111-1111-1111-1111-111111111111\",{\"x\":1}]"
        );
    }

    proptest! {
        #[test]
        fn any_text_reads_back(text in any::<String>(), key in any::<String>()) {
            let json = written(|json| json.open_object().text(&key).names().text(&text).close_object());
            let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            prop_assert_eq!(value[&key].as_str(), Some(text.as_str()));
        }

        #[test]
        fn control_characters_read_back(bytes in proptest::collection::vec(0_u8..0x80, 0..40)) {
            let text = String::from_utf8(bytes).expect("ASCII");
            let json = written(|json| json.text(&text));
            prop_assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), text);
        }
    }
}
