//! The parameters of wallet routes: names, bounds, defaults, and what is wrong with a value.
//!
//! Absent and empty are the same. Every refusal is a 400 that names the field, the value that was
//! sent, and the rule: `{"error":"invalid_field: offset: -1 is not a whole number from 0 to 10000",
//! "code":"invalid_field","field":"offset","got":"-1","allowed":"a whole number from 0 to 10000"}`.

use super::super::ask::{ADDRESS_RULE, Asked, Refused};
use crate::domain::text::parse_hex;
use crate::domain::time::MILLISECONDS_FROM;
use crate::domain::{Address, ConditionId};
use crate::http::query::BadEscape;
use crate::json::decimal;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The longest text that titles are searched for, in characters.
const TITLE_CHARS_MAX: usize = 100;

pub(super) const CONDITIONS_RULE: &str = "condition ids (0x and 64 hex digits) with commas between";
const EVENTS_RULE: &str = "events' ids with commas between";
const AMOUNT_RULE: &str = "a number from 0 to 18446744073709.551615";
const SECOND_RULE: &str = "a whole number of seconds since 1970";
const FLAG_RULE: &str = "true or false";

/// A whole number's bounds, and its default.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) min: usize,
    pub(super) default: usize,
    pub(super) max: usize,
}

/// Whether a number beyond its bound is cut or refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    Refused,
    Cut,
}

/// The query of a wallet route, whose names are all known.
pub(super) struct Params<'a> {
    asked: &'a Asked<'a>,
    spelled: Spelled,
}

/// Reads a name of the query as the route's own name for it.
type Spelled = for<'n> fn(&'n str) -> Cow<'n, str>;

impl<'a> Params<'a> {
    /// The request's parameters, which may only have these `names`, each once.
    pub(super) fn new(asked: &'a Asked<'a>, names: &[&str]) -> Result<Self, Refused> {
        Self::spelled(asked, names, |name| Cow::Borrowed(name))
    }

    /// The request's parameters, which may only have these `names`, each once, as `spelled` reads them.
    pub(super) fn spelled(asked: &'a Asked<'a>, names: &[&str], spelled: Spelled) -> Result<Self, Refused> {
        let mut found: Vec<String> = Vec::new();
        for (name, value) in asked.request.query.pairs() {
            let known = spelled(&name).into_owned();
            if !names.contains(&&*known) {
                let refused = Refused::wallet("unknown_field", &name);
                return Err(refused.about(name.into_owned(), value.raw(), names.join(", ")));
            }
            if found.contains(&known) {
                let refused = Refused::wallet("invalid_field", &format!("{name}: it stands twice"));
                return Err(refused.about(name.into_owned(), value.raw(), "once; lists have commas"));
            }
            found.push(known);
        }
        Ok(Self { asked, spelled })
    }

    /// A wallet that must be named.
    pub(super) fn user(&self) -> Result<Address, Refused> {
        self.user_filter()?.ok_or(missing("user", ADDRESS_RULE))
    }

    /// A wallet, if one is named.
    pub(super) fn user_filter(&self) -> Result<Option<Address>, Refused> {
        self.read("user", || ADDRESS_RULE.into(), |text| parse_hex(text.as_bytes()).map(Address))
    }

    /// Conditions of which at least one must be named.
    pub(super) fn markets(&self) -> Result<Vec<ConditionId>, Refused> {
        self.conditions_filter("market")?.ok_or(missing("market", CONDITIONS_RULE))
    }

    /// Conditions, if any are named; each once, in the order of first mention.
    pub(super) fn conditions_filter(&self, field: &'static str) -> Result<Option<Vec<ConditionId>>, Refused> {
        self.read(
            field,
            || CONDITIONS_RULE.into(),
            |text| each_once(text.split(',').map(|id| parse_hex(id.trim().as_bytes()).map(ConditionId))),
        )
    }

    /// Events' ids, if any are named; each once.
    pub(super) fn events_filter(&self, field: &'static str) -> Result<Option<BTreeSet<String>>, Refused> {
        let id = |text: &str| Some(text.trim().to_owned()).filter(|id| !id.is_empty());
        self.read(field, || EVENTS_RULE.into(), |text| text.split(',').map(id).collect())
    }

    /// How many rows; more than there may be are cut, as clients ask for all they can get.
    pub(super) fn limit(&self, bounds: Bounds) -> Result<usize, Refused> {
        self.whole("limit", bounds, Beyond::Cut)
    }

    /// How many rows to pass over.
    pub(super) fn offset(&self, bounds: Bounds) -> Result<usize, Refused> {
        self.whole("offset", bounds, Beyond::Refused)
    }

    fn whole(&self, field: &'static str, bounds: Bounds, beyond: Beyond) -> Result<usize, Refused> {
        let Bounds { min, default, max } = bounds;
        let rule = || match beyond {
            Beyond::Cut => format!("{min} or more; beyond {max} it is {max}").into(),
            Beyond::Refused => format!("a whole number from {min} to {max}").into(),
        };
        let read = |text: &str| {
            let number = match decimal::parse_integer(text.as_bytes()) {
                Ok(number) => usize::try_from(number).unwrap_or(usize::MAX),
                Err(decimal::NotDecimal::TooLarge) => usize::MAX,
                Err(decimal::NotDecimal::Malformed) => return None,
            };
            let number = if beyond == Beyond::Cut { number.min(max) } else { number };
            (min..=max).contains(&number).then_some(number)
        };
        Ok(self.read(field, rule, read)?.unwrap_or(default))
    }

    /// The smallest amount that passes, in millionths. A float as clients write it is read too; what is between two
    /// millionths becomes the upper one, which lets the same amounts pass.
    pub(super) fn amount(&self, field: &'static str) -> Result<Option<u64>, Refused> {
        self.read(field, || AMOUNT_RULE.into(), |text| decimal::parse_millionths_up(text.as_bytes()).ok())
    }

    /// Yes or no, in any case.
    pub(super) fn flag(&self, field: &'static str) -> Result<Option<bool>, Refused> {
        self.read(field, || FLAG_RULE.into(), |text| word(&[("true", true), ("false", false)], text))
    }

    /// One of some words, in any case.
    pub(super) fn word<T: Copy>(
        &self,
        field: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, Refused> {
        self.read(field, || one_of(words).into(), |text| word(words, text))
    }

    /// Several of some words with commas between, in any case; each once.
    pub(super) fn words<T: Copy + PartialEq>(
        &self,
        field: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<Vec<T>>, Refused> {
        let all = |text: &str| each_once(text.split(',').map(|part| word(words, part.trim())));
        self.read(field, || one_of(words).into(), all)
    }

    /// A second since 1970; a time in milliseconds is accepted too.
    pub(super) fn second(&self, field: &'static str) -> Result<Option<u64>, Refused> {
        self.read(
            field,
            || SECOND_RULE.into(),
            |text| {
                let number = decimal::parse_integer(text.as_bytes()).ok()?;
                Some(if number < MILLISECONDS_FROM { number } else { number / 1_000 })
            },
        )
    }

    /// Any text.
    pub(super) fn text(&self, field: &'static str) -> Result<Option<String>, Refused> {
        self.read(field, || "a text".into(), |text| Some(text.to_owned()))
    }

    /// What titles must contain, in lower case.
    pub(super) fn title(&self) -> Result<Option<String>, Refused> {
        let rule = || format!("at most {TITLE_CHARS_MAX} characters").into();
        self.read("title", rule, |text| {
            (text.chars().count() <= TITLE_CHARS_MAX).then(|| text.to_lowercase())
        })
    }

    /// A parameter, if present; its rule is put into words only for a refusal.
    pub(super) fn read<T>(
        &self,
        field: &'static str,
        rule: impl FnOnce() -> Cow<'static, str>,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Refused> {
        const ENCODING_RULE: &str = "percent-encoded UTF-8";
        let mut pairs = self.asked.request.query.pairs();
        let Some((_, value)) = pairs.find(|(name, _)| (self.spelled)(name) == field) else {
            return Ok(None);
        };
        let mut scratch = Vec::new();
        match value.text(&mut scratch) {
            Err(BadEscape) => Err(invalid(field, value.raw(), ENCODING_RULE.into())),
            Ok("") => Ok(None),
            Ok(text) => read(text).map(Some).ok_or_else(|| invalid(field, text, rule())),
        }
    }
}

/// The refusal of a request that lacks a required parameter.
pub(super) fn missing(field: &'static str, rule: &'static str) -> Refused {
    Refused::wallet("missing_field", field).about(field, "", rule)
}

/// The refusal of a request that names markets and events: other venues do not say which of them it means either.
pub(super) fn twice_named([markets, events]: [&'static str; 2]) -> Refused {
    let refused = Refused::wallet("invalid_field", &format!("{events}: it stands beside {markets}"));
    refused.about(events, markets, format!("{markets} or {events}, not both"))
}

/// The values in the order of first mention, each once unless there are more than any list may have; none if one of
/// them is none.
pub(super) fn each_once<T: PartialEq>(values: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    const COMPARED_MAX: usize = 256;
    let mut found = Vec::new();
    for value in values {
        let value = value?;
        if COMPARED_MAX < found.len() || !found.contains(&value) {
            found.push(value);
        }
    }
    Some(found)
}

/// The words of a table with commas between.
fn one_of<T>(words: &[(&str, T)]) -> String {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    words.join(", ")
}

fn word<T: Copy>(words: &[(&str, T)], text: &str) -> Option<T> {
    words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
}

/// The refusal of a parameter's value.
pub(super) fn invalid(field: &'static str, got: &str, rule: Cow<'static, str>) -> Refused {
    let shown = crate::json::ShortText::new(got);
    let detail = format!("{field}: {} is not {rule}", shown.as_str());
    Refused::wallet("invalid_field", &detail).about(field, got, rule)
}
