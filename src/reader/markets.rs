//! CLOB markets: one by its condition, and lists of them in pages.
//!
//! What trading or the operator can change (mode, tick, prices, winner) comes from the ledger; what
//! an import said (question, dates, pictures, rewards) comes from the text's facts.

use super::ask::{Asked, Refused};
use super::page::Looked;
use super::terms::{write_instant, write_rewards};
use super::trades::{base_fee, maker_base_fee};
use super::{Reader, Token, page};
use crate::catalog::{EventFacts, Moment, Source, Span, Texts};
use crate::domain::amount::ONE;
use crate::domain::{MarketNo, Mode, Outcome};
use crate::http::Endpoint;
use crate::json::Writer;
use crate::ledger::MarketRow;

/// How much of a market a list shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Full,
    Simplified,
}

impl Reader {
    /// GET /markets/{x} with a condition id.
    pub(super) fn clob_market(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let market = self.market_of_path(asked)?;
        self.write_market(json, self.market(market), Form::Full);
        Ok(())
    }

    /// GET /markets, /simplified-markets, /sampling-markets, /sampling-simplified-markets, in the
    /// order in which the markets came.
    pub(super) fn market_list(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let (form, sampling) = match asked.endpoint() {
            Endpoint::SimplifiedMarkets => (Form::Simplified, false),
            Endpoint::SamplingMarkets => (Form::Full, true),
            Endpoint::SamplingSimplifiedMarkets => (Form::Simplified, true),
            _ => (Form::Full, false),
        };
        let Some(start) = page::start(asked, page::BAD_CURSOR)? else {
            page::empty(json, page::ROWS_OF_MARKETS, page::END);
            return Ok(());
        };
        let all = self.ledger.markets();
        let first = start.after_key.map_or(0, |number| number.saturating_add(1));
        let first = usize::try_from(first).map_or(all.len(), |first| first.min(all.len()));
        let rows = all[first..].iter().map(|row| {
            let shown = !sampling || self.earns_rewards(row);
            let key = u64::from(row.market.0);
            Ok(Looked { key, work: page::WORK_OF_ROW, row: shown.then_some(row) })
        });
        page::write(json, (page::ROWS_OF_MARKETS, page::END), start, rows, |json, row| {
            self.write_market(json, row, form);
            Ok(0)
        })
    }

    /// True if a market is on the sampling lists, which are for makers that quote for rewards.
    fn earns_rewards(&self, row: &MarketRow) -> bool {
        !self.index.facts(row.market).rewards.rates.is_empty() && self.accepts_orders(row)
    }

    fn write_market(&self, json: &mut Writer<'_>, row: &MarketRow, form: Form) {
        let facts = self.index.facts(row.market);
        let is_closed = self.index.catalog().market(row.market.0).is_closed();
        json.open_object();
        if form == Form::Full {
            self.write_trading(json, row);
        }
        json.key("active").boolean(!facts.inactive).key("closed").boolean(is_closed);
        json.key("archived").boolean(facts.archived);
        json.key("accepting_orders").boolean(self.accepts_orders(row));
        json.key("condition_id").condition(&row.condition).key("creator");
        self.write_creator(json, row);
        json.key("status").text(status(row.mode)).key("neg_risk").boolean(row.neg_risk);
        json.key("market_id").number(row.market_id);
        json.key("question").text(&facts.question).key("slug").text(&facts.slug);
        if form == Form::Full {
            self.write_texts(json, row);
        }
        json.key("rewards");
        write_rewards(json, &facts.rewards);
        json.key("tokens").open_array();
        for outcome in [Outcome::Zero, Outcome::One] {
            self.write_token(json, row, outcome);
        }
        json.close_array().key("assets_ids").open_array();
        json.token(&row.tokens[0]).token(&row.tokens[1]).close_array();
        json.key("outcomes").open_array().text(&row.labels[0]).text(&row.labels[1]).close_array();
        json.close_object();
    }

    /// What the full form says about trading.
    fn write_trading(&self, json: &mut Writer<'_>, row: &MarketRow) {
        let facts = self.index.facts(row.market);
        let half = row.payout.is_some_and(|payout| u64::from(payout.per_share(Outcome::Zero)) * 2 == ONE);
        json.key("enable_order_book").boolean(!row.mode.is_closed());
        json.key("accepting_order_timestamp");
        write_instant(json, facts.accepting_since);
        json.key("minimum_order_size").millionths_number(row.min_size.0);
        json.key("minimum_tick_size").ten_thousandths_number(row.tick.ten_thousandths());
        json.key("seconds_delay").number(facts.seconds_delay);
        json.key("maker_base_fee").number(maker_base_fee(&row.fee));
        json.key("taker_base_fee").number(base_fee(row.fee.rate));
        json.key("notifications_enabled").boolean(false).key("is_50_50_outcome").boolean(half);
    }

    /// What the full form repeats of the imported text.
    fn write_texts(&self, json: &mut Writer<'_>, row: &MarketRow) {
        let facts = self.index.facts(row.market);
        json.key("question_id").hex(row.question.as_bytes());
        json.key("description");
        write_span(json, facts.description, &row.text);
        json.key("market_slug").text(&facts.slug);
        json.key("end_date_iso");
        let end = self.index.catalog().end_of_market(row.market.0);
        write_instant(json, end.map(Moment::in_ms));
        json.key("game_start_time");
        write_instant(json, facts.game_start);
        json.key("fpmm").text(&facts.market_maker);
        json.key("neg_risk_market_id").text(&facts.neg_risk_market);
        json.key("neg_risk_request_id").text(&facts.neg_risk_request);
        json.key("icon").text(&facts.icon).key("image");
        write_span(json, facts.image, &row.text);
        let event = self.index.event(row);
        json.key("tags");
        self.write_tag_labels(json, row.market);
        json.key("event").open_object();
        let of = |field: fn(&EventFacts) -> &String| event.map_or("", |event| field(event));
        json.key("id").text(of(|event| &event.id)).key("slug").text(of(|event| &event.slug));
        json.key("title").text(of(|event| &event.title)).key("ticker").text(of(|event| &event.ticker));
        json.key("description");
        self.write_event_description(json, row);
        json.close_object();
        json.key("raw_metadata").raw(if facts.readable { row.text.as_bytes() } else { b"{}" });
    }

    /// The description of a market's event; empty without one.
    pub(super) fn write_event_description(&self, json: &mut Writer<'_>, row: &MarketRow) {
        match row.event {
            Some(event) => {
                let facts = &self.index.catalog().event(event).facts;
                write_span(json, facts.description, self.ledger.text(Source::Event(event)));
            }
            None => {
                json.text("");
            }
        }
    }

    fn write_token(&self, json: &mut Writer<'_>, row: &MarketRow, outcome: Outcome) {
        json.open_object().key("token_id").token(&row.tokens[outcome.index()]);
        json.key("outcome").text(&row.labels[outcome.index()]);
        json.key("price").millionths_number(self.shown_price(row, outcome));
        json.key("winner").boolean(row.winner() == Some(outcome)).close_object();
    }

    /// What a token is worth, in millionths: its payout, else the middle of its book, else its last
    /// trade, else the price in the imported text, else one half.
    pub(super) fn shown_price(&self, row: &MarketRow, outcome: Outcome) -> u64 {
        const HALF: u64 = ONE / 2;
        let token = Token { market: row.market, outcome };
        let last = || self.last_trade(token).map(|(price, _)| price.millionths().into());
        let payout = row.payout.map(|payout| payout.per_share(outcome).into());
        let imported = || self.imported_price(row.market, outcome);
        payout.or_else(|| self.middle(token)).or_else(last).or_else(imported).unwrap_or(HALF)
    }

    fn imported_price(&self, market: MarketNo, outcome: Outcome) -> Option<u64> {
        self.index.facts(market).prices.map(|prices| prices[outcome.index()])
    }
}

/// A piece of the imported `text`, which is a JSON string; empty if there is none.
pub(super) fn write_span(json: &mut Writer<'_>, span: Span, text: &str) {
    if span.is_empty() {
        json.text("");
    } else {
        json.raw(span.of(text).as_bytes());
    }
}

const fn status(mode: Mode) -> &'static str {
    match mode {
        Mode::Open => "active",
        Mode::PostOnly => "post_only",
        Mode::CancelOnly => "paused",
        Mode::Closed => "closed",
        Mode::Resolved => "resolved",
    }
}
