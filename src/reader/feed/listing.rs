//! The market channel's messages about what the operator does to markets: modes, listings, payouts.

use super::super::Reader;
use super::super::markets::write_span;
use super::super::trades::base_fee;
use super::Feed;
use super::market::{Audience, OUTCOMES};
use super::write_stamp;
use crate::catalog::Fields;
use crate::domain::{MarketNo, Mode, Outcome, TimeMs, TokenId};
use crate::json::Writer;
use crate::ledger::MarketRow;

impl Feed {
    /// Announces the mode of a market, or of the whole exchange, from now on.
    pub(super) fn push_mode(&mut self, reader: &Reader, market: Option<MarketNo>, mode: Mode, now: TimeMs) {
        let mut payload = Vec::new();
        let json = &mut Writer::new(&mut payload);
        json.open_object().key("type").text("mode").key("mode").text(mode.text());
        if let Some(market) = market {
            json.key("market").condition(&reader.market(market).condition);
            json.key("sequence").number(reader.index.market(market).sequence);
            if mode == Mode::Resolved {
                let row = reader.market(market);
                json.key("assets_ids").open_array().token(&row.tokens[0]).token(&row.tokens[1]).close_array();
                write_payout(json, row, OUTCOMES);
            }
        }
        write_stamp(json, &self.ids.now, now);
        json.close_object();
        self.pend(market.map_or(Audience::Everybody, Audience::Followers), payload);
    }

    /// Announces a listed market to the clients that asked for such messages. One that was closed elsewhere before it
    /// came is not new.
    pub(super) fn push_new_market(&mut self, reader: &Reader, market: MarketNo, time: TimeMs, now: TimeMs) {
        if reader.index.facts(market).closed {
            return;
        }
        let row = reader.market(market);
        let mut payload = Vec::new();
        let json = &mut Writer::new(&mut payload);
        json.open_object().key("event_type").text("new_market");
        write_listing(json, reader, row);
        json.key("condition_id").condition(&row.condition);
        json.key("active").boolean(!reader.index.facts(market).inactive);
        json.key("clob_token_ids").open_array();
        for token in &row.tokens {
            json.token(token);
        }
        json.close_array();
        json.key("order_price_min_tick_size").ten_thousandths_text(row.tick.ten_thousandths());
        let said = Fields::parse(&row.text);
        for (key, name) in SAID_OF_A_GAME {
            json.key(key).text(&said.as_ref().and_then(|said| said.words(name)).unwrap_or_default());
        }
        json.key("fees_enabled").boolean(0 < row.fee.rate);
        json.key("taker_base_fee").number_text(base_fee(row.fee.rate));
        json.key("fee_schedule").open_object().key("exponent").number_text(row.fee.exponent.into());
        json.key("rate").millionths_text(row.fee.rate.into()).key("taker_only").boolean(row.fee.taker_only);
        json.key("rebate_rate").millionths_text(row.fee.rebate_rate.into()).close_object();
        json.key("timestamp").number_text(time.0);
        self.stamp(json, reader, market, now);
        json.close_object();
        self.pend(Audience::AllCurious, payload);
    }

    /// Announces a market's payout to the followers that asked for such messages.
    pub(super) fn push_resolved(&mut self, reader: &Reader, market: MarketNo, time: TimeMs, now: TimeMs) {
        self.push_mode(reader, Some(market), Mode::Resolved, now);
        let row = reader.market(market);
        // Clients read a token's number there in any case: 0 is no token's.
        let nobody = (TokenId::ZERO, "");
        let (token, label) = row
            .winner()
            .map_or(nobody, |winner| (row.tokens[winner.index()], row.labels[winner.index()].as_str()));
        let mut payload = Vec::new();
        let json = &mut Writer::new(&mut payload);
        json.open_object().key("event_type").text("market_resolved");
        write_listing(json, reader, row);
        json.key("winning_asset_id").token(&token).key("winning_outcome").text(label);
        write_payout(json, row, OUTCOMES);
        json.key("timestamp").number_text(time.0);
        self.stamp(json, reader, market, now);
        json.close_object();
        self.pend(Audience::Curious(market), payload);
    }
}

/// What a share of each of `outcomes` pays, once that is known: one number for each of the
/// `assets_ids`.
pub(super) fn write_payout(
    json: &mut Writer<'_>,
    row: &MarketRow,
    outcomes: impl IntoIterator<Item = Outcome>,
) {
    let Some(payout) = row.payout else {
        return;
    };
    json.key("payout").open_array();
    for outcome in outcomes {
        json.millionths_text(payout.per_share(outcome).into());
    }
    json.close_array();
}

/// What `new_market` repeats of the imported text, with the names used there.
const SAID_OF_A_GAME: [(&str, &str); 4] = [
    ("group_item_title", "groupItemTitle"),
    ("sports_market_type", "sportsMarketType"),
    ("line", "line"),
    ("game_start_time", "gameStartTime"),
];

/// The fields that `new_market` and `market_resolved` share.
fn write_listing(json: &mut Writer<'_>, reader: &Reader, row: &MarketRow) {
    let facts = reader.index.facts(row.market);
    json.key("id").number_text(row.market_id).key("question").text(&facts.question);
    json.key("market").condition(&row.condition).key("slug").text(&facts.slug).key("description");
    write_span(json, facts.description, &row.text);
    json.key("assets_ids").open_array();
    for token in &row.tokens {
        json.token(token);
    }
    json.close_array().key("outcomes").open_array();
    for label in &row.labels {
        json.text(label);
    }
    json.close_array().key("event_message").open_object();
    let event = reader.index.event(row);
    let said = |text: for<'e> fn(&'e crate::catalog::EventFacts) -> &'e str| event.map_or("", text);
    json.key("id").text(said(|event| &event.id)).key("ticker").text(said(|event| &event.ticker));
    json.key("slug").text(said(|event| &event.slug)).key("title").text(said(|event| &event.title));
    json.key("description");
    reader.write_event_description(json, row);
    json.close_object();
    json.key("tags");
    reader.write_tag_labels(json, row.market);
}
