//! What a client says on a stream: one JSON object, read name by name.
//!
//! Unknown names are ignored, because every client sends some of its own. A known name whose value is
//! malformed, or that is written in another way, is refused, and the message changes nothing.

use super::super::ask::{Refused, condition_id, refuse_misspelt, token_id};
use super::Channel;
use crate::domain::{ConditionId, TokenId};
use crate::json::decimal;
use serde_json::{Map, Value};

/// Names in one message, and subscriptions of one connection.
pub(super) const SUBSCRIPTIONS_MAX: usize = 500;

/// What to do with what is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Subscribe,
    Unsubscribe,
}

/// Where a client wants to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// After this number, of the one thing that is named.
    Number(u64),
    /// After these numbers, by market.
    Numbers(Vec<(ConditionId, u64)>),
}

/// The credentials of a first message.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    /// The key's id.
    pub api_key: &'a str,
    /// The secret in base64.
    pub secret: &'a str,
    /// The passphrase.
    pub passphrase: &'a str,
}

/// What `auth` is.
pub(super) const CREDENTIALS: &str = "an object of apiKey, secret and passphrase";

/// The names that a message may have. Others are passed over, as other venues have some, and so are those that only the
/// other channel has; but not these in another spelling, which would be a promise that nobody hears.
const fn names(channel: Channel) -> &'static [&'static str] {
    match channel {
        Channel::Market => &[
            "type",
            "operation",
            "assets_ids",
            "markets",
            "custom_feature_enabled",
            "cancel_on_disconnect",
            "initial_dump",
            "from",
            "stream_id",
        ],
        Channel::User => {
            &["type", "operation", "auth", "markets", "cancel_on_disconnect", "from", "stream_id"]
        }
    }
}

/// One message. Malformed ids are refused one by one, not with the message.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) operation: Operation,
    pub(super) tokens: Vec<(&'a str, Option<TokenId>)>,
    pub(super) markets: Vec<(&'a str, Option<ConditionId>)>,
    pub(super) custom: Option<bool>,
    pub(super) cancel_on_disconnect: Option<bool>,
    pub(super) dump: bool,
    pub(super) from: Option<Since>,
    pub(super) stream_id: Option<&'a str>,
    pub(super) credentials: Option<Credentials<'a>>,
}

/// The refusal of a name's value.
fn wrong(field: &'static str, got: &Value, allowed: &'static str) -> Refused {
    let text = got.as_str().map_or_else(|| got.to_string(), str::to_owned);
    Refused::new(400, "invalid_message", "").about(field, &text, allowed)
}

/// A message as an object.
pub(super) fn object(text: &str) -> Result<Value, Refused> {
    let refused = || Refused::new(400, "invalid_message", "").about("message", text, "a JSON object");
    let value: Value = serde_json::from_str(text).map_err(|_| refused())?;
    if value.is_object() { Ok(value) } else { Err(refused()) }
}

/// Reads a message of `channel`.
pub(super) fn read(message: &Value, channel: Channel) -> Result<Ask<'_>, Refused> {
    let message = message.as_object().expect("it was read as one");
    if let Some(said) = message.get("type")
        && !said.as_str().is_some_and(|said| said.eq_ignore_ascii_case(channel.word()))
    {
        return Err(wrong("type", said, channel.word()));
    }
    refuse_misspelt(message, names(channel), || Refused::new(400, "invalid_message", ""))?;
    let is_market = channel == Channel::Market;
    let tokens = if is_market { texts(message, "assets_ids")? } else { Vec::new() };
    let markets = texts(message, "markets")?;
    let named = tokens.len() + markets.len();
    if SUBSCRIPTIONS_MAX < named {
        return Err(too_many_names(&tokens, named));
    }
    Ok(Ask {
        operation: operation(message)?,
        tokens: tokens.into_iter().map(|text| (text, token_id(text.as_bytes()))).collect(),
        markets: markets.into_iter().map(|text| (text, condition_id(text.as_bytes()))).collect(),
        custom: if is_market { flag(message, "custom_feature_enabled")? } else { None },
        cancel_on_disconnect: promise(message, channel)?,
        dump: !is_market || flag(message, "initial_dump")?.unwrap_or(true),
        from: from(message, channel)?,
        stream_id: text(message, "stream_id")?,
        credentials: if is_market { None } else { credentials(message)? },
    })
}

/// Whether the orders of a key are to be cancelled when this stream ends: a promise that only one whose owner is known
/// can make.
fn promise(message: &Map<String, Value>, channel: Channel) -> Result<Option<bool>, Refused> {
    const NAME: &str = "cancel_on_disconnect";
    match (channel, message.get(NAME)) {
        (Channel::User, _) => flag(message, NAME),
        (Channel::Market, None | Some(Value::Null | Value::Bool(false))) => Ok(None),
        (Channel::Market, Some(said)) => Err(wrong(NAME, said, "on /ws/user only")),
    }
}

/// The refusal of a promise for a key whose connection answers for another one.
pub(super) fn answers_for_another() -> Refused {
    let refused = Refused::new(400, "invalid_message", "");
    refused.about("cancel_on_disconnect", "true", "false: this connection answers for another key")
}

/// The refusal of a message that names too much, whatever for.
fn too_many_names(tokens: &[&str], count: usize) -> Refused {
    let refused = Refused::new(400, "too_many_subscriptions", "too many names in one message");
    let field = if tokens.is_empty() { "markets" } else { "assets_ids" };
    refused.about(field, &count.to_string(), format!("at most {SUBSCRIPTIONS_MAX} names in one message"))
}

/// The refusal of more subscriptions than one connection may have, by a message that names these tokens and perhaps
/// markets.
pub(super) fn too_many<T>(channel: Channel, tokens: &[T], count: usize) -> Refused {
    const TOKENS: &str = "tokens on one connection; a market has two";
    let (field, counted) = match channel {
        Channel::Market if tokens.is_empty() => ("markets", TOKENS),
        Channel::Market => ("assets_ids", TOKENS),
        Channel::User => ("markets", "markets on one connection"),
    };
    let refused = Refused::new(400, "too_many_subscriptions", "too many subscriptions on one connection");
    refused.about(field, &count.to_string(), format!("at most {SUBSCRIPTIONS_MAX} {counted}"))
}

fn operation(message: &Map<String, Value>) -> Result<Operation, Refused> {
    match message.get("operation") {
        None | Some(Value::Null) => Ok(Operation::Subscribe),
        Some(Value::String(said)) if said == "subscribe" => Ok(Operation::Subscribe),
        Some(Value::String(said)) if said == "unsubscribe" => Ok(Operation::Unsubscribe),
        Some(said) => Err(wrong("operation", said, "subscribe or unsubscribe")),
    }
}

fn texts<'a>(message: &'a Map<String, Value>, field: &'static str) -> Result<Vec<&'a str>, Refused> {
    let Some(said) = message.get(field).filter(|said| !said.is_null()) else {
        return Ok(Vec::new());
    };
    let list = said.as_array().and_then(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    list.ok_or_else(|| wrong(field, said, "an array of strings"))
}

fn text<'a>(message: &'a Map<String, Value>, field: &'static str) -> Result<Option<&'a str>, Refused> {
    match message.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(said) => said.as_str().map(Some).ok_or_else(|| wrong(field, said, "a string")),
    }
}

fn flag(message: &Map<String, Value>, field: &'static str) -> Result<Option<bool>, Refused> {
    match message.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(said) => said.as_bool().map(Some).ok_or_else(|| wrong(field, said, "true or false")),
    }
}

fn from(message: &Map<String, Value>, channel: Channel) -> Result<Option<Since>, Refused> {
    let allowed = match channel {
        Channel::Market => "a sequence, or an object of sequences by condition id",
        Channel::User => "a sequence",
    };
    let Some(said) = message.get("from").filter(|said| !said.is_null()) else {
        return Ok(None);
    };
    let found = match (said, channel) {
        (Value::Object(by_market), Channel::Market) => {
            let pairs =
                by_market.iter().map(|(id, number)| Some((condition_id(id.as_bytes())?, sequence(number)?)));
            pairs.collect::<Option<Vec<_>>>().map(Since::Numbers)
        }
        (number, _) => sequence(number).map(Since::Number),
    };
    found.map(Some).ok_or_else(|| wrong("from", said, allowed))
}

/// A number, or its digits.
fn sequence(said: &Value) -> Option<u64> {
    said.as_u64().or_else(|| decimal::parse_integer(said.as_str()?.as_bytes()).ok())
}

/// The credentials: `apiKey` as the SDKs send it, or `apikey` as Kuest's site does.
fn credentials(message: &Map<String, Value>) -> Result<Option<Credentials<'_>>, Refused> {
    let Some(said) = message.get("auth").filter(|said| !said.is_null()) else {
        return Ok(None);
    };
    // Nothing of it is repeated: it may be a secret in the wrong place.
    let refused = |got: &str| Refused::new(400, "invalid_message", "").about("auth", got, CREDENTIALS);
    let auth = said.as_object().ok_or_else(|| refused("no object"))?;
    let part = |names: &[&str]| {
        let part = names.iter().find_map(|name| auth.get(*name));
        let part = part.ok_or_else(|| refused(&format!("no {}", names[0])))?;
        part.as_str().ok_or_else(|| refused(&format!("no text as {}", names[0])))
    };
    Ok(Some(Credentials {
        api_key: part(&["apiKey", "apikey"])?,
        secret: part(&["secret"])?,
        passphrase: part(&["passphrase"])?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn messages_of_real_clients_are_read() {
        let market = format!("0x{}", "ab".repeat(32));
        for (text, tokens, markets, operation, custom) in [
            (r#"{"type":"market","assets_ids":["12"]}"#.to_owned(), 1, 0, Operation::Subscribe, None),
            (
                r#"{"type":"market","operation":"subscribe","markets":[],"assets_ids":["1","x"],"initial_dump":true,
                    "custom_feature_enabled":true,"event_type":"unknown"}"#
                    .to_owned(),
                2,
                0,
                Operation::Subscribe,
                Some(true),
            ),
            (
                format!(r#"{{"markets":["{market}"],"operation":"unsubscribe"}}"#),
                0,
                1,
                Operation::Unsubscribe,
                None,
            ),
            ("{}".to_owned(), 0, 0, Operation::Subscribe, None),
        ] {
            let value = object(&text).expect("an object");
            let ask = read(&value, Channel::Market).expect("a message");
            assert_eq!(
                (ask.tokens.len(), ask.markets.len(), ask.operation, ask.custom),
                (tokens, markets, operation, custom),
                "{text}"
            );
        }
    }

    #[test]
    fn the_document_has_every_name_and_no_other() {
        let document: Value = serde_json::from_str(&crate::http::asyncapi::TEXT).expect("JSON");
        let names = |of: &str| {
            let schema = &document["components"]["schemas"][of]["properties"];
            schema.as_object().expect("it has names").keys().cloned().collect::<BTreeSet<_>>()
        };
        for (of, channel) in [("FollowMarkets", Channel::Market), ("FollowAccount", Channel::User)] {
            let read: BTreeSet<_> = super::names(channel).iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(names(of), read, "{of}");
        }
    }

    #[test]
    fn what_is_not_of_its_kind_is_refused_by_name() {
        let many = format!("[{}]", vec!["\"1\""; SUBSCRIPTIONS_MAX + 1].join(","));
        for (text, field) in [
            ("[]".to_owned(), "message"),
            ("INVALID".to_owned(), "message"),
            (r#"{"type":"user"}"#.to_owned(), "type"),
            (r#"{"assets_ids":"1"}"#.to_owned(), "assets_ids"),
            (r#"{"assets_ids":[1]}"#.to_owned(), "assets_ids"),
            (format!(r#"{{"assets_ids":{many}}}"#), "assets_ids"),
            (r#"{"markets":{}}"#.to_owned(), "markets"),
            (r#"{"operation":"drop"}"#.to_owned(), "operation"),
            (r#"{"initial_dump":1}"#.to_owned(), "initial_dump"),
            (r#"{"custom_feature_enabled":"yes"}"#.to_owned(), "custom_feature_enabled"),
            (r#"{"cancel_on_disconnect":true}"#.to_owned(), "cancel_on_disconnect"),
            (r#"{"cancel_on_disconnect":"true"}"#.to_owned(), "cancel_on_disconnect"),
            (r#"{"from":-1}"#.to_owned(), "from"),
            (r#"{"from":{"0x1":1}}"#.to_owned(), "from"),
        ] {
            assert_eq!(refused(&text, Channel::Market)["field"], field, "{text}");
        }
        for (text, field) in [
            (r#"{"type":"market"}"#, "type"),
            (r#"{"markets":{}}"#, "markets"),
            (r#"{"cancel_on_disconnect":"yes"}"#, "cancel_on_disconnect"),
            (r#"{"auth":{"apiKey":"1"}}"#, "auth"),
        ] {
            assert_eq!(refused(text, Channel::User)["field"], field, "{text}");
        }
    }

    #[test]
    fn what_only_the_other_channel_has_is_passed_over() {
        for (channel, text) in [
            (Channel::Market, r#"{"auth":5}"#),
            (Channel::Market, r#"{"auth":{"apiKey":"1"}}"#),
            (Channel::Market, r#"{"Auth":{}}"#),
            (Channel::Market, r#"{"cancel_on_disconnect":false}"#),
            (Channel::Market, r#"{"cancel_on_disconnect":null}"#),
            (Channel::User, r#"{"assets_ids":5}"#),
            (Channel::User, r#"{"assetsIds":["1"]}"#),
            (Channel::User, r#"{"custom_feature_enabled":5}"#),
            (Channel::User, r#"{"initial_dump":5}"#),
        ] {
            let value = object(text).expect("an object");
            let ask = read(&value, channel).expect(text);
            let said = (ask.tokens.len(), ask.custom, ask.cancel_on_disconnect, ask.dump);
            assert_eq!((said, ask.credentials.is_none()), ((0, None, None, true), true), "{text}");
        }
    }

    fn refused(text: &str, channel: Channel) -> Value {
        let refused = object(text).and_then(|value| read(&value, channel).map(drop));
        let mut out = Vec::new();
        refused.expect_err(text).write(&mut crate::json::Writer::new(&mut out));
        serde_json::from_slice(&out).expect("JSON")
    }

    #[test]
    fn a_refusal_says_what_was_named_and_what_its_channel_counts() {
        let names = "at most 500 names in one message";
        let auth = "an object of apiKey, secret and passphrase";
        let many = |count: usize| format!("[{}]", vec!["\"1\""; count].join(","));
        let sequences = r#"{"0x11":1}"#;
        for (channel, text, field, got, allowed) in [
            (Channel::Market, format!(r#"{{"assets_ids":{}}}"#, many(501)), "assets_ids", "501", names),
            (Channel::Market, format!(r#"{{"markets":{}}}"#, many(501)), "markets", "501", names),
            (
                Channel::Market,
                format!(r#"{{"markets":{},"assets_ids":["1"],"operation":"unsubscribe"}}"#, many(500)),
                "assets_ids",
                "501",
                names,
            ),
            (Channel::User, format!(r#"{{"markets":{}}}"#, many(501)), "markets", "501", names),
            (
                Channel::Market,
                r#"{"cancel_on_disconnect":true}"#.to_owned(),
                "cancel_on_disconnect",
                "true",
                "on /ws/user only",
            ),
            (Channel::User, r#"{"auth":"x"}"#.to_owned(), "auth", "no object", auth),
            (
                Channel::User,
                r#"{"auth":{"apikey":"x","passphrase":"x"}}"#.to_owned(),
                "auth",
                "no secret",
                auth,
            ),
            (
                Channel::User,
                r#"{"auth":{"apiKey":"x","secret":5,"passphrase":"x"}}"#.to_owned(),
                "auth",
                "no text as secret",
                auth,
            ),
            (Channel::User, format!(r#"{{"from":{sequences}}}"#), "from", sequences, "a sequence"),
            (Channel::User, r#"{"from":-1}"#.to_owned(), "from", "-1", "a sequence"),
        ] {
            let refused = refused(&text, channel);
            let about = ["field", "got", "allowed"].map(|name| refused[name].as_str().expect("a text"));
            assert_eq!(about, [field, got, allowed], "{text}");
        }
        // Tokens mean nothing to an account.
        let value = object(&format!(r#"{{"assets_ids":{}}}"#, many(501))).expect("an object");
        assert!(read(&value, Channel::User).is_ok());
    }
}
