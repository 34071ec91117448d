//! What a market charges and allows: the small answers that clients need to build an order.

use super::Reader;
use super::ask::{Asked, Refused, no_market};
use super::trades::{base_fee, maker_base_fee};
use crate::catalog::Rewards;
use crate::domain::{FeeSchedule, Mode, TimeMs};
use crate::http::Endpoint;
use crate::json::Writer;
use crate::ledger::MarketRow;

impl Reader {
    /// GET /tick-size.
    pub(super) fn tick_size(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let row = self.market_of_token(asked)?;
        json.open_object().key("minimum_tick_size").ten_thousandths_number(row.tick.ten_thousandths());
        json.close_object();
        Ok(())
    }

    /// GET /neg-risk.
    pub(super) fn neg_risk(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let row = self.market_of_token(asked)?;
        json.open_object().key("neg_risk").boolean(row.neg_risk).close_object();
        Ok(())
    }

    /// GET /fee-rate, with the token in the query or in the path.
    pub(super) fn fee_rate(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let row = match asked.endpoint() {
            Endpoint::FeeRateOfToken => self.market(self.token_of_path(asked)?.market),
            _ => self.market_of_token(asked)?,
        };
        let fee = &row.fee;
        json.open_object().key("base_fee").number(base_fee(fee.rate)).key("fd");
        write_fee_descriptor(json, fee);
        json.key("fee_schedule").open_object();
        json.key("rate").millionths_number(fee.rate.into()).key("exponent").number(fee.exponent.into());
        json.key("takerOnly").boolean(fee.taker_only);
        json.key("rebateRate").millionths_number(fee.rebate_rate.into());
        json.key("category").text(&self.index.facts(row.market).category);
        json.key("version").number(fee.version.into()).key("source").text("local");
        json.close_object().close_object();
        Ok(())
    }

    /// GET /markets-by-token/{id}.
    pub(super) fn market_by_token(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let row = self.market(self.token_of_path(asked)?.market);
        json.open_object().key("condition_id").condition(&row.condition);
        json.key("primary_token_id").token(&row.tokens[0]);
        json.key("secondary_token_id").token(&row.tokens[1]).key("creator");
        self.write_creator(json, row);
        json.close_object();
        Ok(())
    }

    /// GET /clob-markets/{condition_id}: all of a market's terms under short names.
    pub(super) fn clob_market_info(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let market = self.market_of_path(asked)?;
        let row = self.market(market);
        let facts = self.index.facts(market);
        json.open_object().key("gst");
        write_instant(json, facts.game_start);
        json.key("r").open_object();
        write_rewards_in(json, &facts.rewards);
        // As the TypeScript SDK reads them.
        json.key("mi")
            .raw(facts.rewards.min_size.as_bytes())
            .key("ma")
            .raw(facts.rewards.max_spread.as_bytes());
        json.close_object();
        json.key("c").condition(&row.condition).key("creator");
        self.write_creator(json, row);
        json.key("nr").boolean(row.neg_risk).key("t").open_array();
        for (token, label) in row.tokens.iter().zip(&row.labels) {
            json.open_object().key("t").token(token).key("o").text(label).close_object();
        }
        json.close_array();
        json.key("mts").ten_thousandths_number(row.tick.ten_thousandths());
        json.key("mos").millionths_number(row.min_size.0).key("fd");
        write_fee_descriptor(json, &row.fee);
        json.key("mbf").number(maker_base_fee(&row.fee)).key("tbf").number(base_fee(row.fee.rate));
        for name in ["rfqe", "itode", "ibce"] {
            json.key(name).boolean(false);
        }
        json.key("oas").number(0).key("ao").boolean(self.accepts_orders(row));
        json.key("sd").number(facts.seconds_delay).key("cbos").boolean(false).key("aot");
        write_instant(json, facts.accepting_since);
        json.close_object();
        Ok(())
    }

    /// GET /fees/builder-fees/{code}: every builder has the same terms, under both venues' names.
    pub(super) fn builder_fees(&self, json: &mut Writer<'_>) {
        json.open_object().key("builder_maker_flat_fee_bps").number(0);
        json.key("builder_taker_fee_share_bps").number(self.settings.builder_share_bps.into());
        json.key("builder_maker_fee_rate_bps").number(0).key("builder_taker_fee_rate_bps").number(0);
        json.close_object();
    }

    /// True if an order for this market can rest or trade now.
    pub(super) fn accepts_orders(&self, row: &MarketRow) -> bool {
        let open = |mode| matches!(mode, Mode::Open | Mode::PostOnly);
        open(row.mode) && open(self.ledger.exchange_mode())
    }

    /// The site or wallet that a market is from; `null` if its text names none.
    pub(super) fn write_creator(&self, json: &mut Writer<'_>, row: &MarketRow) {
        json.text_or_null(self.index.facts(row.market).creator.as_deref());
    }

    fn market_of_token(&self, asked: &Asked<'_>) -> Result<&MarketRow, Refused> {
        Ok(self.market(self.token_of(asked, "token_id", no_market())?.market))
    }
}

/// `{"r":…,"e":…,"to":…}`.
fn write_fee_descriptor(json: &mut Writer<'_>, fee: &FeeSchedule) {
    json.open_object().key("r").millionths_number(fee.rate.into());
    json.key("e").number(fee.exponent.into()).key("to").boolean(fee.taker_only).close_object();
}

/// `{"rates":[…],"min_size":…,"max_spread":…}`.
pub(super) fn write_rewards(json: &mut Writer<'_>, rewards: &Rewards) {
    json.open_object();
    write_rewards_in(json, rewards);
    json.close_object();
}

/// The same without the braces.
fn write_rewards_in(json: &mut Writer<'_>, rewards: &Rewards) {
    json.key("rates").open_array();
    for (asset, rate) in &rewards.rates {
        json.open_object().key("asset_address").text(asset);
        json.key("rewards_daily_rate").raw(rate.as_bytes()).close_object();
    }
    json.close_array().key("min_size").raw(rewards.min_size.as_bytes());
    json.key("max_spread").raw(rewards.max_spread.as_bytes());
}

/// An instant as RFC 3339, or `null`: strict clients reject an empty date.
pub(super) fn write_instant(json: &mut Writer<'_>, time: Option<TimeMs>) {
    json.or_null(time, Writer::instant);
}
