//! A JSON object as an ordered list of names and raw values: whatever is not understood survives.
//!
//! The one file of this room that knows the JSON library.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of one object, in their order; if a name comes twice, its last value counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'a> {
    fields: Vec<Part<'a>>,
}

/// The most fields of an object: ten times as many as a venue's market has. Names are compared with each other, so many
/// of them would hold up the exchange.
pub(super) const FIELDS_MAX: usize = 1_024;

impl<'a> Fields<'a> {
    /// The fields of `text`, if it is an object of at most [`FIELDS_MAX`].
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let parts = parts(text).filter(|parts| parts.len() <= FIELDS_MAX)?;
        let mut fields: Vec<Part<'a>> = Vec::with_capacity(parts.len());
        // Nearly all marks are new, and a name with a new mark need not be compared with the others.
        let mut seen = [0_u64; 16];
        for part in parts {
            let (word, bit) = mark_of(&part.name);
            let is_new = seen[word] & bit == 0;
            seen[word] |= bit;
            let same = if is_new { None } else { fields.iter_mut().find(|field| field.name == part.name) };
            match same {
                Some(field) => field.raw = part.raw,
                None => fields.push(part),
            }
        }
        Some(Self { fields })
    }

    /// A field that `text`, an object, says twice; the first one of these.
    pub(crate) fn said_twice(text: &str) -> Option<String> {
        let parts = parts(text)?;
        let again =
            (1..parts.len()).find(|index| parts[..*index].iter().any(|part| part.name == parts[*index].name));
        again.map(|index| parts[index].name.to_string())
    }

    /// The raw value of `name`; `null` counts as absent, as in Gamma.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        self.fields
            .iter()
            .find(|field| field.name == name)
            .map(|field| field.raw)
            .filter(|raw| *raw != "null")
    }

    /// The value of `name` if it is a string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        as_text(self.raw(name)?)
    }

    /// The value of `name`: the content of a string, anything else as raw JSON, such as a number's digits.
    pub(crate) fn words(&self, name: &str) -> Option<String> {
        let raw = self.raw(name)?;
        Some(as_text(raw).unwrap_or_else(|| raw.to_owned()))
    }

    /// The value of `name` if it is true or false.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.raw(name)? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The names of all fields, in their order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_ref())
    }

    /// The object with `raw` as the field `name`.
    pub(super) fn with(mut self, name: &'static str, raw: &'a str) -> Self {
        match self.fields.iter_mut().find(|field| field.name == name) {
            Some(field) => field.raw = raw,
            None => self.fields.push(Part { name: Cow::Borrowed(name), raw }),
        }
        self
    }

    /// The object without the blanks between its tokens.
    pub(super) fn compact(&self) -> String {
        render(self.fields.iter())
    }

    /// The object without the field `left_out`; nothing else changes but the blanks between tokens, which go.
    pub(super) fn without(&self, left_out: &str) -> String {
        render(self.fields.iter().filter(|field| field.name != left_out))
    }

    /// This object, followed by the fields that only `other` has; `None` if these are too many together.
    pub(super) fn with_rest_of(&self, other: &Self) -> Option<String> {
        let names: HashSet<&str> = self.fields.iter().map(|field| &*field.name).collect();
        let rest: Vec<_> = other.fields.iter().filter(|field| !names.contains(&*field.name)).collect();
        let fit = self.fields.len() + rest.len() <= FIELDS_MAX;
        fit.then(|| render(self.fields.iter().chain(rest)))
    }

    /// True if every field of `other` is here with the same value.
    pub(super) fn says_all_of(&self, other: &Self) -> bool {
        let here: HashMap<&str, &Part<'_>> = self.fields.iter().map(|field| (&*field.name, field)).collect();
        other.fields.iter().all(|field| here.get(&*field.name).is_some_and(|here| *here == field))
    }

    /// True if `name` is there, even as `null`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }
}

/// One of 1,024 marks, the same for the same name.
fn mark_of(name: &str) -> (usize, u64) {
    // Multiplying spreads each byte over all higher bits; those at the top depend on every byte.
    let spread = name.bytes().fold(0_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mark = spread >> 54;
    (usize::try_from(mark >> 6).expect("below 16"), 1 << (mark & 63))
}

fn render<'b, 'a: 'b>(fields: impl Iterator<Item = &'b Part<'a>>) -> String {
    let mut out = String::with_capacity(TEXT_OF_A_MARKET_BYTES);
    out.push('{');
    for Part { name, raw } in fields {
        if out.len() > 1 {
            out.push(',');
        }
        match name {
            // A borrowed name was between its quotes without an escape.
            Cow::Borrowed(name) => {
                out.push('"');
                out.push_str(name);
                out.push('"');
            }
            Cow::Owned(name) => out.push_str(&quoted(name)),
        }
        out.push(':');
        push_compact(&mut out, raw);
    }
    out.push('}');
    out.shrink_to_fit();
    out
}

/// Appends a value without the blanks between its tokens: some venues' files hold pretty-printed
/// objects within compact rows.
fn push_compact(out: &mut String, raw: &str) {
    if !raw.starts_with(['{', '[']) {
        return out.push_str(raw);
    }
    let mut rest = raw;
    while let Some(at) = rest.find(['"', ' ', '\t', '\n', '\r']) {
        let (plain, after) = rest.split_at(at);
        out.push_str(plain);
        if after.starts_with('"') {
            let (string, behind) = after.split_at(string_bytes(after));
            out.push_str(string);
            rest = behind;
        } else {
            rest = after.trim_ascii_start();
        }
    }
    out.push_str(rest);
}

/// The bytes of the string that `text` begins with, both quotes included.
fn string_bytes(text: &str) -> usize {
    let mut at = 1;
    while let Some(found) = text[at..].find(['"', '\\']) {
        at += found + 1;
        if text.as_bytes()[at - 1] == b'"' {
            return at;
        }
        // An escape is one byte, or begins with one that is neither quote nor backslash, so one is skipped.
        at += 1;
    }
    text.len()
}

/// The length of the text of a venue's market, about.
const TEXT_OF_A_MARKET_BYTES: usize = 4 << 10;

/// A field as written in its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// Its name, unescaped; borrowed where it has no escapes, as a text has some eighty of them.
    pub(super) name: Cow<'a, str>,
    /// Its value.
    pub(super) raw: &'a str,
}

/// The fields of `text` in their order, with repeats; `None` if it is not an object.
pub(super) fn parts(text: &str) -> Option<Vec<Part<'_>>> {
    struct Collect;
    impl<'de> Visitor<'de> for Collect {
        type Value = Vec<Part<'de>>;
        fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("an object")
        }
        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut parts = Vec::with_capacity(FIELDS_OF_A_MARKET);
            while let Some((Name(name), raw)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                parts.push(Part { name, raw: raw.get() });
            }
            Ok(parts)
        }
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let parts = json.deserialize_map(Collect).ok()?;
    json.end().ok().map(|()| parts)
}

/// How many fields a venue's market has, about.
const FIELDS_OF_A_MARKET: usize = 80;

/// The name of a [`Part`].
struct Name<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Name<'de>;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }
            fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Read)
    }
}

/// The raw items of an array, or `None` if `text` is something else.
pub(crate) fn items(text: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// The texts of an array of strings, written as an array or, as in Gamma, as a string that holds
/// one. A number in it counts as its digits.
pub(crate) fn texts(raw: &str) -> Option<Vec<String>> {
    let inner = as_text(raw);
    let array = inner.as_deref().unwrap_or(raw);
    items(array)?
        .into_iter()
        .map(|item| {
            as_text(item).or_else(|| item.starts_with(|c: char| c.is_ascii_digit()).then(|| item.to_owned()))
        })
        .collect()
}

/// Where and why `text` is not JSON.
pub(super) fn fault(text: &str) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).err().map(|fault| fault.to_string())
}

/// `text` with every escape of half a character, as programs write one that cut a text within an emoji, replaced by
/// one of U+FFFD, which is as long. JSON allows the half, but many readers refuse the whole document.
pub(super) fn with_whole_characters(text: &str) -> Cow<'_, str> {
    const HALF: std::ops::RangeInclusive<u16> = 0xd800..=0xdfff;
    const SECOND: std::ops::RangeInclusive<u16> = 0xdc00..=0xdfff;
    const ESCAPE_BYTES: usize = r"\ud800".len();
    let unit = |at: usize| {
        let digits = text.get(at..at + ESCAPE_BYTES)?.strip_prefix(r"\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut whole = Cow::Borrowed(text);
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        at += found;
        match unit(at).filter(|unit| HALF.contains(unit)) {
            // One byte follows, or a longer escape or character that has no backslash in it.
            None => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            Some(first)
                if !SECOND.contains(&first)
                    && unit(at + ESCAPE_BYTES).is_some_and(|unit| SECOND.contains(&unit)) =>
            {
                at += 2 * ESCAPE_BYTES;
            }
            Some(_) => {
                whole.to_mut().replace_range(at..at + ESCAPE_BYTES, r"\ufffd");
                at += ESCAPE_BYTES;
            }
        }
    }
    whole
}

/// How many brackets of `text` are open at once at most.
pub(super) fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut rest = text;
    while let Some(at) = rest.find(['"', '{', '[', '}', ']']) {
        let (_, after) = rest.split_at(at);
        let skipped = match after.as_bytes()[0] {
            b'"' => string_bytes(after),
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
                1
            }
            _ => {
                depth = depth.saturating_sub(1);
                1
            }
        };
        rest = &after[skipped..];
    }
    deepest
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text can be written")
}

/// The content of a JSON string.
pub(super) fn as_text(raw: &str) -> Option<String> {
    if raw.starts_with('"') { serde_json::from_str(raw).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_more_fields_than_anybody_needs_is_none() {
        let object = |fields: usize| {
            let fields: Vec<String> = (0..fields).map(|n| format!("\"{n}\":1")).collect();
            format!("{{{}}}", fields.join(","))
        };
        assert_eq!(Fields::parse(&object(FIELDS_MAX)).expect("an object").names().count(), FIELDS_MAX);
        assert!(Fields::parse(&object(FIELDS_MAX + 1)).is_none());
        let (full, other) = (object(FIELDS_MAX), r#"{"0":2,"more":1}"#);
        let [full, other] = [&full, other].map(|text| Fields::parse(text).expect("an object"));
        assert!(full.with_rest_of(&other).is_none() && other.with_rest_of(&full).is_none());
        assert!(full.with_rest_of(&full).is_some());
    }

    #[test]
    fn brackets_count_where_they_nest_and_not_in_strings() {
        for (text, depth_of_it) in
            [("7", 0), ("{}", 1), (r#"{"a":[1,{}],"b":[]}"#, 3), (r#"["[[\"[[",{"]":"{"}]"#, 2), ("]]", 0)]
        {
            assert_eq!(depth(text), depth_of_it, "{text}");
        }
    }

    #[test]
    fn half_a_character_is_replaced_and_nothing_else() {
        for (text, whole) in [
            (r#"{"a":"plain"}"#, r#"{"a":"plain"}"#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""cut \ud83d""#, r#""cut \ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\uDE00 \uD83D\n""#, r#""\ufffd \ufffd\n""#),
            (r#""\ud83dx\ude00""#, r#""\ufffdx\ufffd""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\u00e9\"é\ud83"#, r#""\u00e9\"é\ud83"#),
            (r#""\"#, r#""\"#),
        ] {
            assert_eq!(with_whole_characters(text), whole, "{text}");
        }
    }
}
