//! The parameters of the interface's public endpoints: their kinds, defaults and bounds, and the
//! requests that try them. A bound is tried on both sides, a word parameter with each allowed word.

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// How many rows: a whole number; more than `max` is cut.
    Rows { min: u64, max: u64, default: u64 },
    /// A whole number.
    Whole { min: u64, max: Option<u64>, default: Option<u64> },
    /// An amount from 0.
    Amount { default: &'static str },
    /// `true` or `false`.
    Flag { default: Option<&'static str> },
    /// One of these words.
    Word { words: &'static [&'static str], default: &'static str },
    /// A text of at most this many characters.
    Text { chars_max: usize },
    /// Any text, known or not.
    AnyText,
    /// A parameter that must be there.
    Required,
    /// A wallet that must be there.
    Wallet,
    /// Condition ids with commas between them.
    Conditions,
}

/// A request line that succeeds, and the parameters that may be added to it.
pub(crate) type Endpoint = (&'static str, &'static [(&'static str, Rule)]);

const PAGE_OF_100: Rule = Rule::Rows { min: 1, max: 100, default: 20 };
const ANY_OFFSET: Rule = Rule::Whole { min: 0, max: None, default: Some(0) };
const FLAG: Rule = Rule::Flag { default: None };
const OFF: Rule = Rule::Flag { default: Some("false") };
const DIRECTION: Rule = Rule::Word { words: &["ASC", "DESC"], default: "DESC" };
const POSITIONS_BY: &[&str] =
    &["CURRENT", "INITIAL", "TOKENS", "CASHPNL", "PERCENTPNL", "TITLE", "RESOLVING", "PRICE", "AVGPRICE"];
const CLOSED_BY: &[&str] = &["REALIZEDPNL", "TITLE", "PRICE", "AVGPRICE", "TIMESTAMP"];

/// 4.2 to 4.4 and 8.
pub(crate) const ENDPOINTS: &[Endpoint] = &[
    ("GET /book", &[("token_id", Rule::Required)]),
    ("GET /series", &[("limit", PAGE_OF_100), ("offset", ANY_OFFSET), ("creator", Rule::AnyText)]),
    (
        "GET /events",
        &[
            ("limit", PAGE_OF_100),
            ("offset", ANY_OFFSET),
            ("active", FLAG),
            ("closed", FLAG),
            ("archived", FLAG),
            ("tag", Rule::AnyText),
            ("tag_id", Rule::Whole { min: 0, max: None, default: None }),
            ("tag_slug", Rule::AnyText),
            ("series_slug", Rule::AnyText),
            ("slug", Rule::AnyText),
            ("order", Rule::Word { words: &["id", "title", "startDate", "volume"], default: "id" }),
            ("ascending", OFF),
            ("creator", Rule::AnyText),
        ],
    ),
    ("GET /events/slug/event-0", &[("creator", Rule::Word { words: &["creator-0"], default: "creator-0" })]),
    (
        "GET /events/creators",
        &[
            ("limit", PAGE_OF_100),
            ("offset", ANY_OFFSET),
            ("order", Rule::Word { words: &["id", "creatorName", "createdAt"], default: "id" }),
            ("ascending", OFF),
            ("creator_name", Rule::AnyText),
            ("creator_handle", Rule::AnyText),
        ],
    ),
    ("GET /tags", &[("limit", PAGE_OF_100), ("offset", ANY_OFFSET)]),
    ("GET /public-search", &[("q", Rule::Required)]),
    (
        "GET /public-search?q=contract",
        &[
            ("limit_per_type", Rule::Rows { min: 1, max: 500, default: 25 }),
            ("page", Rule::Whole { min: 1, max: None, default: Some(1) }),
            ("search_tags", Rule::Flag { default: Some("true") }),
            ("search_profiles", OFF),
            ("creator", Rule::AnyText),
            ("events_status", Rule::Word { words: &["active", "resolved", "all"], default: "all" }),
            ("sort", Rule::Word { words: &["relevance", "volume", "end_date"], default: "relevance" }),
            ("ascending", OFF),
            ("events_tag", Rule::AnyText),
            ("recurrence", Rule::AnyText),
        ],
    ),
    ("GET /positions", &[("user", Rule::Wallet)]),
    (
        "GET /positions?user={first}",
        &[
            ("market", Rule::Conditions),
            ("sizeThreshold", Rule::Amount { default: "1" }),
            ("redeemable", OFF),
            ("mergeable", OFF),
            ("limit", Rule::Rows { min: 0, max: 500, default: 100 }),
            ("offset", Rule::Whole { min: 0, max: Some(10_000), default: Some(0) }),
            ("sortBy", Rule::Word { words: POSITIONS_BY, default: "TOKENS" }),
            ("sortDirection", DIRECTION),
            ("title", Rule::Text { chars_max: 100 }),
        ],
    ),
    ("GET /closed-positions", &[("user", Rule::Wallet)]),
    (
        "GET /closed-positions?user={first}",
        &[
            ("market", Rule::Conditions),
            ("title", Rule::Text { chars_max: 100 }),
            ("limit", Rule::Rows { min: 0, max: 50, default: 10 }),
            ("offset", Rule::Whole { min: 0, max: Some(100_000), default: Some(0) }),
            ("sortBy", Rule::Word { words: CLOSED_BY, default: "REALIZEDPNL" }),
            ("sortDirection", DIRECTION),
        ],
    ),
    ("GET /activity", &[("user", Rule::Wallet)]),
    (
        "GET /activity?user={first}",
        &[
            ("limit", Rule::Rows { min: 0, max: 500, default: 100 }),
            ("offset", Rule::Whole { min: 0, max: Some(10_000), default: Some(0) }),
        ],
    ),
    ("GET /holders", &[("market", Rule::Required)]),
    (
        "GET /holders?market={condition}",
        &[
            ("limit", Rule::Rows { min: 0, max: 500, default: 100 }),
            ("minBalance", Rule::Amount { default: "1" }),
        ],
    ),
];

/// One request, and the status that it must get.
pub(crate) struct Trial {
    pub(crate) line: String,
    pub(crate) status: u16,
}

/// The requests that try a parameter.
pub(crate) fn trials(line: &str, name: &str, rule: Rule) -> Vec<Trial> {
    let with = |value: &str, status| Trial { line: with(line, name, value), status };
    let bounds = |min: u64, max: Option<u64>, beyond: u16| {
        let mut trials = vec![with(&min.to_string(), 200)];
        if let Some(max) = max {
            trials.extend([with(&max.to_string(), 200), with(&(max + 1).to_string(), beyond)]);
        }
        if min > 0 {
            trials.push(with(&(min - 1).to_string(), 400));
        }
        trials.extend(["-1", "x", "1.5"].map(|value| with(value, 400)));
        trials
    };
    match rule {
        Rule::Rows { min, max, .. } => bounds(min, Some(max), 200),
        Rule::Whole { min, max, .. } => bounds(min, max, 400),
        Rule::Amount { .. } => {
            let good =
                ["0", "2.5", "0.0000001", "1e-05", "18446744073709.551615"].map(|value| with(value, 200));
            let bad = ["-1", "x", "NaN", "18446744073709.551616"].map(|value| with(value, 400));
            good.into_iter().chain(bad).collect()
        }
        Rule::Flag { .. } => vec![with("true", 200), with("false", 200), with("maybe", 400)],
        Rule::Word { words, .. } => {
            let known = words.iter().map(|word| with(word, 200));
            // A slug of another creator does not exist at all.
            let unknown = if line.contains("/slug/") { 404 } else { 400 };
            known.chain([with("sideways", unknown)]).collect()
        }
        Rule::Text { chars_max } => {
            vec![with(&"x".repeat(chars_max), 200), with(&"x".repeat(chars_max + 1), 400)]
        }
        Rule::AnyText => vec![with("nobody-has-this", 200)],
        Rule::Required => vec![Trial { line: line.to_owned(), status: 400 }],
        Rule::Wallet => {
            vec![Trial { line: line.to_owned(), status: 400 }, with("{nobody}", 200), with("0x12", 400)]
        }
        Rule::Conditions => {
            vec![with("{condition}", 200), with("{condition},{other condition}", 200), with("0x12", 400)]
        }
    }
}

/// The request without a parameter, and the request with that parameter's default written out.
pub(crate) fn with_default(line: &str, name: &str, rule: Rule) -> Option<(String, String)> {
    let default = match rule {
        Rule::Rows { default, .. } => default.to_string(),
        Rule::Whole { default, .. } => default?.to_string(),
        Rule::Amount { default } | Rule::Word { default, .. } => default.to_owned(),
        Rule::Flag { default } => default?.to_owned(),
        _ => return None,
    };
    Some((line.to_owned(), with(line, name, &default)))
}

fn with(line: &str, name: &str, value: &str) -> String {
    let mark = if line.contains('?') { '&' } else { '?' };
    format!("{line}{mark}{name}={value}")
}
