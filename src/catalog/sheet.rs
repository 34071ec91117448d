//! An object's text taken apart once, so that showing it is copying.
//!
//! The catalog shows what was imported, byte for byte, except for fields that the exchange itself
//! knows better. A [`Form`] names those of one kind of object; a [`Sheet`] holds, for one text, the
//! runs of fields that are shown unchanged, and which fields of the contract the text lacks. The
//! text itself stays in the ledger: all places are [`Span`]s of it.
//!
//! | field is | its name is in | shown as |
//! |---|---|---|
//! | the exchange's | `Form::ours` | the exchange's own value |
//! | the contract's | `Form::always` | unchanged if it is of its [`Kind`], else it is `missing` |
//! | anybody else's | neither | unchanged |

use super::Moment;
use super::fields::Part;

/// A half-open range of bytes of a text; the default is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The place of `part`, a slice of `text`, in it.
    pub(super) fn within(text: &str, part: &str) -> Self {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        debug_assert!(start + part.len() <= text.len(), "a part of this text");
        let narrow = |at: usize| u32::try_from(at).expect("texts are far below 4 GiB");
        Self { start: narrow(start), end: narrow(start + part.len()) }
    }

    /// The part of `text` at this place.
    #[must_use]
    pub fn of<'a>(&self, text: &'a str) -> &'a str {
        &text[self.start as usize..self.end as usize]
    }

    /// Where it begins, in bytes.
    #[must_use]
    pub const fn start(&self) -> usize {
        self.start as usize
    }

    /// True if it holds no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.end - self.start
    }
}

/// What a field of the contract has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// A string that is an RFC 3339 instant in UTC.
    Date,
    /// `true` or `false`; this one if the text lacks it.
    Flag(bool),
}

impl Kind {
    fn fits(self, raw: &str) -> bool {
        match self {
            Self::Text => raw.starts_with('"'),
            Self::Date => is_utc(raw.trim_matches('"')),
            Self::Flag(_) => matches!(raw, "true" | "false"),
        }
    }
}

fn is_utc(text: &str) -> bool {
    text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T') && Moment::parse(text).is_some()
}

/// The fields of one kind of object that the contract or the exchange knows.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// What the contract wants in every such object; at most 31.
    pub always: &'static [(&'static str, Kind)],
    /// What is never taken from the text, because the exchange writes it.
    pub ours: &'static [&'static str],
}

const CREATED: (&str, Kind) = ("createdAt", Kind::Date);
const UPDATED: (&str, Kind) = ("updatedAt", Kind::Date);

/// A market.
pub const MARKET: Form = Form {
    always: &[
        ("question", Kind::Text),
        ("slug", Kind::Text),
        ("resolutionSource", Kind::Text),
        ("image", Kind::Text),
        ("icon", Kind::Text),
        ("description", Kind::Text),
        ("questionID", Kind::Text),
        ("marketMakerAddress", Kind::Text),
        ("startDate", Kind::Date),
        ("endDate", Kind::Date),
        CREATED,
        UPDATED,
    ],
    ours: &[
        "id",
        "conditionId",
        "outcomes",
        "clobTokenIds",
        "outcomePrices",
        "bestBid",
        "bestAsk",
        "spread",
        "lastTradePrice",
        "volume",
        "volumeNum",
        "volume24hr",
        "liquidity",
        "liquidityNum",
        "active",
        "closed",
        "closedTime",
        "archived",
        "acceptingOrders",
        "enableOrderBook",
        "orderPriceMinTickSize",
        "orderMinSize",
        "negRisk",
        "feeSchedule",
        "feesEnabled",
        "makerBaseFee",
        "takerBaseFee",
        "tags",
        "events",
    ],
};

/// An event.
pub const EVENT: Form = Form {
    always: &[
        ("ticker", Kind::Text),
        ("slug", Kind::Text),
        ("title", Kind::Text),
        ("description", Kind::Text),
        ("resolutionSource", Kind::Text),
        ("image", Kind::Text),
        ("icon", Kind::Text),
        ("startDate", Kind::Date),
        ("endDate", Kind::Date),
        CREATED,
        UPDATED,
    ],
    ours: &[
        "id",
        "creationDate",
        "active",
        "closed",
        "closedTime",
        "archived",
        "volume",
        "volume24hr",
        "liquidity",
        "tags",
        "markets",
        "series",
        "eventCreators",
        "eventMetadata",
    ],
};

/// A tag.
pub(super) const TAG: Form = Form {
    always: &[
        ("label", Kind::Text),
        ("slug", Kind::Text),
        CREATED,
        UPDATED,
        ("requiresTranslation", Kind::Flag(false)),
    ],
    ours: &["id"],
};

/// A series.
pub(super) const SERIES: Form = Form {
    always: &[
        ("ticker", Kind::Text),
        ("slug", Kind::Text),
        ("title", Kind::Text),
        ("seriesType", Kind::Text),
        ("recurrence", Kind::Text),
        ("image", Kind::Text),
        ("icon", Kind::Text),
        ("active", Kind::Flag(true)),
        ("closed", Kind::Flag(false)),
        ("archived", Kind::Flag(false)),
        CREATED,
        UPDATED,
    ],
    ours: &["id", "events"],
};

/// A creator of events.
pub(super) const CREATOR: Form = Form {
    always: &[
        ("creatorName", Kind::Text),
        ("creatorHandle", Kind::Text),
        ("creatorUrl", Kind::Text),
        ("creatorImage", Kind::Text),
        CREATED,
        UPDATED,
    ],
    ours: &["id"],
};

/// One text, taken apart by a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    kept: Box<[Span]>,
    missing: u32,
}

impl Sheet {
    /// Takes apart `object`, a slice of `text` whose fields are `parts`.
    pub(super) fn of(form: &Form, text: &str, object: &str, parts: &[Part<'_>]) -> Self {
        let mut missing = Self::missing_all(form).missing;
        let mut kept: Vec<Span> = Vec::new();
        let mut joins = false;
        // After the brace, then after the last value: between there and the next name's quote are
        // only blanks and a comma.
        let mut at = Span::within(text, object).start as usize + 1;
        for part in parts {
            let value = Span::within(text, part.raw);
            let quote = text[at..].find('"').map_or(at, |blanks| at + blanks);
            let keeps = if let Some(place) = form.always.iter().position(|(name, _)| *name == part.name) {
                let fits = form.always[place].1.fits(part.raw);
                if fits {
                    missing &= !(1 << place);
                }
                fits
            } else {
                !form.ours.contains(&part.name.as_ref())
            };
            if keeps {
                let start = u32::try_from(quote).expect("texts are far below 4 GiB");
                match kept.last_mut().filter(|_| joins) {
                    Some(run) => run.end = value.end,
                    None => kept.push(Span { start, end: value.end }),
                }
            }
            joins = keeps;
            at = value.end as usize;
        }
        Self { kept: kept.into(), missing }
    }

    /// The sheet of a text that says nothing.
    pub(super) fn missing_all(form: &Form) -> Self {
        assert!(form.always.len() < 32, "one bit a field");
        Self { kept: Box::default(), missing: (1 << form.always.len()) - 1 }
    }

    /// The runs of fields that are shown unchanged, in their order.
    #[must_use]
    pub fn kept(&self) -> &[Span] {
        &self.kept
    }

    /// The fields of the contract that the text lacks.
    pub fn missing(&self, form: &'static Form) -> impl Iterator<Item = (&'static str, Kind)> {
        let bits = self.missing;
        form.always.iter().enumerate().filter(move |(place, _)| bits & (1 << place) != 0).map(|(_, f)| *f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::parts;
    use super::*;

    fn runs(form: &'static Form, text: &str) -> (Vec<String>, Vec<&'static str>) {
        let sheet = Sheet::of(form, text, text, &parts(text).expect("an object"));
        let kept = sheet.kept().iter().map(|span| span.of(text).to_owned()).collect();
        (kept, sheet.missing(form).map(|(name, _)| name).collect())
    }

    #[test]
    fn what_nobody_knows_stays_as_it_stands() {
        let text = r#"{ "a" : 1 , "b\n":[ 2 ], "id":"7", "c":{"id":3}}"#;
        let (kept, missing) = runs(&TAG, text);
        assert_eq!(kept, [r#""a" : 1 , "b\n":[ 2 ]"#, r#""c":{"id":3}"#]);
        assert_eq!(missing, ["label", "slug", "createdAt", "updatedAt", "requiresTranslation"]);
    }

    #[test]
    fn a_field_of_the_contract_stays_if_it_is_of_its_kind() {
        let text = r#"{"label":"A","slug":null,"createdAt":"2026-02-07","updatedAt":"2026-02-07T20:57:04.9Z",
            "requiresTranslation":true}"#;
        let (kept, missing) = runs(&TAG, text);
        assert_eq!(missing, ["slug", "createdAt"]);
        assert_eq!(kept.len(), 2);
        assert!(kept[1].ends_with("true"));
    }

    #[test]
    fn an_object_within_a_text_has_its_places_in_the_text() {
        let text = r#"{"tags":[{"id":"1","label":"A"}]}"#;
        let object = r#"{"id":"1","label":"A"}"#;
        let object = &text[text.find(object).expect("inside")..][..object.len()];
        let sheet = Sheet::of(&TAG, text, object, &parts(object).expect("an object"));
        assert_eq!(sheet.kept()[0].of(text), r#""label":"A""#);
    }

    #[test]
    fn an_empty_object_misses_everything() {
        assert_eq!(runs(&SERIES, "{}").1.len(), SERIES.always.len());
    }
}
