//! A JSON object as an ordered list of names and raw values: whatever is not understood survives.
//!
//! The one file of this room that knows the JSON library.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of one object, in their order; of a name that comes twice the last value counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'a> {
    fields: Vec<(String, &'a RawValue)>,
}

impl<'a> Fields<'a> {
    /// The fields of `text`, if it is an object.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The raw value of `name`; `null` counts as absent, as Gamma means it.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        self.fields
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, raw)| raw.get())
            .filter(|raw| *raw != "null")
    }

    /// The value of `name` if it is a string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        as_text(self.raw(name)?)
    }

    /// The value of `name` as it would be read aloud: a string's content, a number's digits.
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
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// The object without the fields in `left_out`, every other byte of its values unchanged.
    pub(super) fn without(&self, left_out: &str) -> String {
        render(self.fields.iter().filter(|(name, _)| name != left_out))
    }

    /// This object, followed by what only `other` mentions.
    pub(super) fn with_rest_of(&self, other: &Self) -> String {
        let rest = other.fields.iter().filter(|(name, _)| !self.has(name));
        render(self.fields.iter().chain(rest))
    }

    /// True if every field of `other` is here with the same value.
    pub(super) fn says_all_of(&self, other: &Self) -> bool {
        other.fields.iter().all(|(name, raw)| {
            self.fields.iter().any(|(field, here)| field == name && here.get() == raw.get())
        })
    }

    /// True if `name` is there, even as `null`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, _)| field == name)
    }
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Collect<'a> {
            type Value = Fields<'a>;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields<'a>, M::Error> {
                let mut fields: Vec<(String, &'a RawValue)> = Vec::new();
                while let Some((name, raw)) = map.next_entry::<String, &'a RawValue>()? {
                    match fields.iter_mut().find(|(field, _)| *field == name) {
                        Some(field) => field.1 = raw,
                        None => fields.push((name, raw)),
                    }
                }
                Ok(Fields { fields })
            }
        }
        deserializer.deserialize_map(Collect(std::marker::PhantomData))
    }
}

fn render<'b, 'a: 'b>(fields: impl Iterator<Item = &'b (String, &'a RawValue)>) -> String {
    let mut out = String::from("{");
    for (name, raw) in fields {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&quoted(name));
        out.push(':');
        out.push_str(raw.get());
    }
    out.push('}');
    out
}

/// The raw items of an array, or `None` if `text` is something else.
pub(crate) fn items(text: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// The texts of an array of strings, written as an array or, as Gamma does, as a string that
/// holds one. Numbers among them count as their digits.
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

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text can be written")
}

fn as_text(raw: &str) -> Option<String> {
    if raw.starts_with('"') { serde_json::from_str(raw).ok() } else { None }
}
