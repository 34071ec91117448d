//! One market of a file: its text, and what the exchange needs to trade it.

use std::fmt::Write as _;

use super::event::{may_be_text, updated};
use super::fields::{Fields, texts};
use super::number::{condition, scaled, token, word};
use super::{LABEL_BYTES_MAX, Moment, Refused, cut};
use crate::domain::amount::ORDER_AMOUNT_MAX;
use crate::domain::fee::RATE_ONE;
use crate::domain::{ConditionId, FeeSchedule, Mode, Payout, Shares, Tick, TokenId, Word};

/// Ids from here on are not taken. The exchange's own ids go up from the highest, and beyond 2^53 JSON readers in
/// JavaScript take two for one: as many as are below this are left for them.
const ID_MAX: u64 = 1 << 52;

/// The terms of a market where its row names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketDefaults {
    /// The price step.
    pub tick: Tick,
    /// The smallest order that may rest.
    pub min_size: Shares,
    /// What it charges; the builder share holds even if a row brings its own schedule.
    pub fee: FeeSchedule,
}

/// A market, ready to become a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedMarket {
    /// Its condition: its name in all files.
    pub condition: ConditionId,
    /// Its id in the file if that is a number below 2^52; else the exchange gives it one.
    pub market_id: Option<u64>,
    /// Its question; zero where the row has none.
    pub question: Word,
    /// Its tokens; none for a market that is only in the catalog and does not trade.
    pub tokens: Option<[TokenId; 2]>,
    /// The labels of its outcomes.
    pub labels: [String; 2],
    /// True if its orders are signed in the neg-risk domain.
    pub neg_risk: bool,
    /// The price step.
    pub tick: Tick,
    /// The smallest order that may rest.
    pub min_size: Shares,
    /// What it charges.
    pub fee: FeeSchedule,
    /// The mode that its flags ask for.
    pub mode: Mode,
    /// Its payout, if the row says that it is resolved.
    pub payout: Option<Payout>,
    /// The id of the event that holds it.
    pub event: Option<String>,
    /// Its `updatedAt`; the default if it has none.
    pub updated: Moment,
    /// Its JSON without `events`.
    pub text: String,
}

impl ImportedMarket {
    /// The mode of the market if it is new: closed without tokens, even if its flags say that it is not over.
    #[must_use]
    pub fn first_mode(&self) -> Mode {
        if self.tokens.is_none() && !self.mode.is_closed() { Mode::Closed } else { self.mode }
    }

    /// True if it takes orders once it is new here.
    #[must_use]
    pub fn trades(&self) -> bool {
        self.first_mode() == Mode::Open
    }

    /// How people find the market in the file.
    #[must_use]
    pub fn row(&self) -> String {
        if let Some(id) = self.market_id {
            return format!("market {id}");
        }
        let mut row = "market 0x".to_owned();
        for byte in self.condition.0 {
            let _ = write!(row, "{byte:02x}");
        }
        row
    }

    /// Reads one market object; `row` names it until its id is known.
    pub(super) fn read(
        fields: &Fields<'_>,
        row: &str,
        event: Option<String>,
        defaults: &MarketDefaults,
    ) -> Result<Self, Refused> {
        let id = fields.words("id");
        let named = id.as_ref().map(|id| format!("market {}", cut(id)));
        let reader = Reader { fields, row: named.as_deref().unwrap_or(row) };
        let text = fields.without("events");
        may_be_text(reader.row, &text)?;
        reader.flags()?;
        let condition = reader.condition()?;
        let question = reader.question()?;
        let tokens = reader.tokens()?;
        let labels = reader.labels()?;
        let tick = reader.tick(defaults)?;
        let min_size = reader.min_size(defaults)?;
        let fee = reader.fee(defaults)?;
        let payout = reader.payout();
        Ok(Self {
            condition,
            market_id: id.and_then(|id| id.parse().ok()).filter(|id| *id < ID_MAX),
            question,
            tokens,
            labels,
            neg_risk: fields.flag("negRisk").unwrap_or(false),
            tick,
            min_size,
            fee,
            mode: reader.mode(payout.is_some()),
            payout,
            event,
            updated: updated(fields),
            text,
        })
    }
}

/// The largest minimum size of orders, which is the largest order: with a larger one a market would take none at all.
const MIN_SIZE_MAX: u64 = ORDER_AMOUNT_MAX;

/// True if a row's `clobTokenIds` name any tokens.
pub(super) fn names_tokens(raw: &str) -> bool {
    !matches!(raw, "null" | "\"\"" | "[]" | "\"[]\"")
}

/// The flag by which a row says that its market takes no orders.
pub(super) fn takes_no_orders(fields: &Fields<'_>) -> Option<&'static str> {
    ["acceptingOrders", "enableOrderBook"].into_iter().find(|name| fields.flag(name) == Some(false))
}

/// One row while it is read; each part that is refused is named.
struct Reader<'a> {
    fields: &'a Fields<'a>,
    row: &'a str,
}

impl Reader<'_> {
    fn wrong(&self, field: &'static str, allowed: &'static str) -> Refused {
        Refused::new(self.row, field, self.fields.raw(field).unwrap_or("nothing"), allowed)
    }

    /// What decides whether and how a market trades says true or false, or nothing: a `"true"` would count as neither.
    fn flags(&self) -> Result<(), Refused> {
        let is_wrong = |name: &&str| !matches!(self.fields.raw(name), None | Some("true" | "false"));
        let names = ["closed", "archived", "acceptingOrders", "enableOrderBook", "negRisk", "feesEnabled"];
        let wrong = names.into_iter().find(is_wrong);
        wrong.map_or(Ok(()), |name| Err(self.wrong(name, "true or false")))
    }

    fn condition(&self) -> Result<ConditionId, Refused> {
        let found = self.fields.text("conditionId").and_then(|text| condition(&text));
        found.ok_or_else(|| self.wrong("conditionId", "0x and 64 hex digits"))
    }

    fn question(&self) -> Result<Word, Refused> {
        match self.fields.text("questionID").as_deref() {
            None | Some("") => Ok(Word::ZERO),
            Some(text) => {
                word(text).ok_or_else(|| self.wrong("questionID", "0x and 64 hex digits, or nothing"))
            }
        }
    }

    fn tokens(&self) -> Result<Option<[TokenId; 2]>, Refused> {
        let Some(raw) = self.fields.raw("clobTokenIds").filter(|raw| names_tokens(raw)) else {
            return Ok(None);
        };
        let pair = texts(raw).and_then(|texts| match texts.as_slice() {
            [zero, one] => Some([token(zero)?, token(one)?]),
            _ => None,
        });
        match pair {
            Some(pair) if pair[0] != pair[1] => Ok(Some(pair)),
            _ => Err(self.wrong("clobTokenIds", "two different uint256 in decimal digits")),
        }
    }

    fn labels(&self) -> Result<[String; 2], Refused> {
        let Some(raw) = self.fields.raw("outcomes") else {
            return Ok(["Yes".to_owned(), "No".to_owned()]);
        };
        let good = |label: &String| (1..=LABEL_BYTES_MAX).contains(&label.len());
        texts(raw)
            .filter(|labels| labels.iter().all(good))
            .and_then(|labels| <[String; 2]>::try_from(labels).ok())
            .filter(|[zero, one]| zero != one)
            .ok_or_else(|| self.wrong("outcomes", "two labels that differ, of 1 to 128 bytes"))
    }

    fn tick(&self, defaults: &MarketDefaults) -> Result<Tick, Refused> {
        let Some(text) = self.fields.words("orderPriceMinTickSize") else {
            return Ok(defaults.tick);
        };
        let tick = scaled(&text, 4).and_then(|steps| Tick::new(u16::try_from(steps).ok()?));
        tick.ok_or_else(|| self.wrong("orderPriceMinTickSize", "0.1, 0.01, 0.005, 0.0025, 0.001 or 0.0001"))
    }

    fn min_size(&self, defaults: &MarketDefaults) -> Result<Shares, Refused> {
        let Some(text) = self.fields.words("orderMinSize") else {
            return Ok(defaults.min_size);
        };
        let size = scaled(&text, 6).filter(|size| *size <= MIN_SIZE_MAX);
        size.map(Shares)
            .ok_or_else(|| self.wrong("orderMinSize", "0 to 1000000000 shares, at most six decimals"))
    }

    /// A row that says that no fee is taken there has no schedule, whatever stands beside that.
    fn fee(&self, defaults: &MarketDefaults) -> Result<FeeSchedule, Refused> {
        let has_schedule = self.fields.flag("feesEnabled") != Some(false);
        let Some(raw) = self.fields.raw("feeSchedule").filter(|_| has_schedule) else {
            return Ok(defaults.fee);
        };
        let allowed = "rate 0 to 1, exponent 1 or 2, takerOnly true or false, rebateRate 0 to 1";
        let schedule = Fields::parse(raw).and_then(|fields| {
            let part = |name: &str| fields.words(name).map_or(Some(0), |text| scaled(&text, 6));
            let rate = u32::try_from(part("rate")?).ok()?;
            let rebate_rate = u32::try_from(part("rebateRate")?).ok()?;
            let exponent = fields.words("exponent").map_or(Some(1), |text| scaled(&text, 0))?;
            let exponent = u8::try_from(exponent).ok().filter(|exponent| (1..=2).contains(exponent))?;
            let taker_only = fields.raw("takerOnly").map_or(Some(true), |_| fields.flag("takerOnly"))?;
            (rate <= RATE_ONE && rebate_rate <= RATE_ONE).then_some(FeeSchedule {
                rate,
                exponent,
                taker_only,
                rebate_rate,
                ..defaults.fee
            })
        });
        schedule.ok_or_else(|| self.wrong("feeSchedule", allowed))
    }

    /// The payout of a closed market whose prices are exactly 1 and 0.
    fn payout(&self) -> Option<Payout> {
        if self.fields.flag("closed") != Some(true) {
            return None;
        }
        let prices = texts(self.fields.raw("outcomePrices")?)?;
        let [zero, one] = prices.as_slice() else {
            return None;
        };
        match (scaled(zero, 6)?, scaled(one, 6)?) {
            (1_000_000, 0) => Payout::new(1_000_000),
            (0, 1_000_000) => Payout::new(0),
            _ => None,
        }
    }

    /// One that is neither closed nor archived and says that it takes no orders can still be traded later.
    fn mode(&self, resolved: bool) -> Mode {
        let says = |name| self.fields.flag(name) == Some(true);
        if resolved {
            Mode::Resolved
        } else if says("closed") || (says("archived") && !says("acceptingOrders")) {
            Mode::Closed
        } else if takes_no_orders(self.fields).is_some() {
            Mode::CancelOnly
        } else {
            Mode::Open
        }
    }
}
