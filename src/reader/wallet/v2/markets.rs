//! Who holds a market, what backs it, what was traded in it, and what its tokens are.

use super::super::super::ANSWER_BYTES_MAX;
use super::super::super::Reader;
use super::super::super::ask::{Asked, Refused, WORD_RULE, token_id, too_long};
use super::super::markets::interest;
use super::super::params::{Bounds, CONDITIONS_RULE, each_once, invalid, missing, twice_named};
use super::paging::{LIMIT, Start, conditions, events, few, params};
use super::{PLACES, unrealized, write_no_profile, write_sum};
use crate::domain::text::parse_hex;
use crate::domain::{ConditionId, MarketNo, Outcome, Shares, Word};
use crate::json::Writer;
use crate::ledger::MarketRow;
use crate::wallet::{Holding, rounded};
use std::collections::BTreeSet;

/// Rows of a page that says what holders gained.
const PNL_LIMIT: Bounds = Bounds { max: 100, ..LIMIT };

const TOKENS_MAX: usize = 50;
const TOKENS_RULE: &str = "token ids in decimal with commas between";
const CONDITIONS_OF_TOKENS_MAX: usize = 10;

const EITHER_RULE: &str = "token_id or condition, not both";
const ONE_RULE: &str = "one of question_id, condition and event_id";

struct Holder<'a> {
    holding: &'a Holding,
    amount: Shares,
}

impl Holder<'_> {
    /// Where it stands among the holders of its token: the largest come first.
    fn mark(&self) -> [i128; 2] {
        [-i128::from(self.amount.0), self.holding.wallet.0.into()]
    }
}

impl Reader {
    /// GET /v2/holders: the holders of each token, largest first. A page has so many rows of each; a token whose rows
    /// are used up is not in later ones.
    pub(super) fn holders_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["condition", "min_balance", "include_pnl", "limit", "cursor"])?;
        let ids = conditions(&params)?.ok_or(missing("condition", WORD_RULE))?;
        let with_pnl = params.flag("include_pnl")?.unwrap_or(false);
        if with_pnl && ids.len() > 1 {
            let got = format!("{} conditions", ids.len());
            return Err(invalid("condition", &got, "a single one beside include_pnl".into()));
        }
        let start = Start::of(&params, "holders", if with_pnl { PNL_LIMIT } else { LIMIT })?;
        let smallest = Shares(params.amount("min_balance")?.unwrap_or(0));
        // What is listed, then where the last holder of each token stood.
        let listed = listed(&ids, with_pnl);
        let after = match start.values(1 + 4 * ids.len())? {
            Some([pinned, _marks @ ..]) if *pinned != listed => return Err(start.invalid()),
            values => values.map(|values| values[1..].as_chunks::<2>().0),
        };
        self.few_holdings("condition", ids.iter().filter_map(|id| self.index.condition(id)))?;
        let (mut more, mut marks) = (false, Vec::with_capacity(4 * ids.len()));
        json.open_object().key("data").open_array();
        for (place, id) in ids.iter().enumerate() {
            let last = after.map(|marks| [marks[2 * place], marks[2 * place + 1]]);
            let Some(market) = self.index.condition(id) else {
                marks.extend(last.unwrap_or_default());
                continue;
            };
            for outcome in [Outcome::Zero, Outcome::One] {
                let last = last.map(|marks| marks[outcome.index()]);
                let behind = |holder: &Holder<'_>| last.is_none_or(|last| last < holder.mark());
                let holders = self.holders_of_token(market, outcome, with_pnl);
                let listed = holders.filter(|holder| smallest <= holder.amount && behind(holder));
                let by_mark = |one: &Holder<'_>, other: &Holder<'_>| one.mark().cmp(&other.mark());
                let (page, has_more) = start.cut(listed, by_mark);
                more |= has_more;
                marks.push(page.last().map(Holder::mark).or(last).unwrap_or_default());
                if !page.is_empty() || last.is_none() {
                    self.write_holders(json, (market, outcome), &page, with_pnl);
                }
            }
            if json.bytes() > ANSWER_BYTES_MAX {
                return Err(too_long().about("condition", "", "fewer conditions, or a lower limit"));
            }
        }
        json.close_array();
        start.write_end(json, start.limit, more.then(|| [&[listed], marks.as_flattened()].concat()));
        json.close_object();
        Ok(())
    }

    /// Who holds a token of a market: what a wallet has more of it than of the other, or all of it.
    fn holders_of_token(
        &self,
        market: MarketNo,
        outcome: Outcome,
        gross: bool,
    ) -> impl Iterator<Item = Holder<'_>> {
        let holders = self.model().holdings().of_market(market).map(move |holding| {
            let other = if gross { Shares::ZERO } else { holding.lot(outcome.other()).shares };
            Holder { holding, amount: holding.lot(outcome).shares.saturating_sub(other) }
        });
        holders.filter(|holder| !holder.amount.is_zero())
    }

    fn write_holders(
        &self,
        json: &mut Writer<'_>,
        (market, outcome): (MarketNo, Outcome),
        page: &[Holder<'_>],
        with_pnl: bool,
    ) {
        let row = self.market(market);
        json.open_object().key("token_id").token(&row.tokens[outcome.index()]).key("holders").open_array();
        for holder in page {
            self.write_holder_v2(json, row, outcome, holder, with_pnl);
        }
        json.close_array().close_object();
    }

    fn write_holder_v2(
        &self,
        json: &mut Writer<'_>,
        row: &MarketRow,
        outcome: Outcome,
        holder: &Holder<'_>,
        with_pnl: bool,
    ) {
        json.open_object().key("proxy_wallet").address(self.address_of(holder.holding.wallet));
        json.key("token_id").token(&row.tokens[outcome.index()]);
        json.key("amount").millionths_number(holder.amount.0);
        json.key("outcome_index").number(outcome.index() as u64);
        json.key("display_username_public").boolean(false).key("verified").boolean(false);
        write_no_profile(json);
        if with_pnl {
            let price = self.price_now(row, outcome);
            let lot = holder.holding.lot(outcome);
            let figures = lot.open_figures(price);
            let unrealized = unrealized(lot, &figures);
            let shown = |atto| rounded(atto, PLACES);
            json.key("avg_price").decimal(shown(figures.average), PLACES);
            json.key("entry_cost_usdc").decimal(shown(figures.initial), PLACES);
            json.key("current_price").millionths_number(price.into());
            json.key("current_value").decimal(shown(figures.current), PLACES);
            json.key("realized_pnl").decimal(shown(figures.realized), PLACES);
            json.key("unrealized_pnl").decimal(shown(unrealized), PLACES);
            json.key("total_pnl").decimal(shown(figures.realized + unrealized), PLACES);
        }
        json.close_object();
    }

    /// GET /v2/oi: the collateral that backs each market's shares; without a condition, of all markets together.
    pub(super) fn open_interest_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["condition"])?;
        json.open_object().key("data").open_array();
        if let Some(ids) = conditions(&params)? {
            for row in ids.iter().filter_map(|id| self.index.condition(id)).map(|market| self.market(market))
            {
                json.open_object().key("condition_id").condition(&row.condition);
                write_sum(json.key("value"), interest(row).0.into());
                json.close_object();
            }
        } else {
            let sum = self.ledger.markets().iter().map(|row| u128::from(interest(row).0)).sum();
            json.open_object().key("condition_id").text("GLOBAL");
            write_sum(json.key("value"), sum);
            json.close_object();
        }
        json.close_array().close_object();
        Ok(())
    }

    /// GET /v2/live-volume: the shares that takers traded in the markets of events, most first.
    pub(super) fn live_volume_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["event_id"])?;
        let ids = events(&params)?.ok_or(missing("event_id", "events' ids with commas between"))?;
        let markets: BTreeSet<MarketNo> = self.markets_of_events(&ids).collect();
        let volume = |market| self.model().standings().volume(market).shares;
        let mut markets: Vec<(u128, MarketNo)> =
            markets.into_iter().map(|market| (volume(market), market)).collect();
        markets.sort_by_key(|(shares, market)| (std::cmp::Reverse(*shares), *market));
        json.open_object().key("data").open_object();
        write_sum(json.key("taker_volume_total"), markets.iter().map(|(shares, _)| shares).sum());
        json.key("conditions").open_array();
        for (shares, market) in markets {
            json.open_object().key("condition_id").condition(&self.market(market).condition);
            write_sum(json.key("taker_volume"), shares);
            json.close_object();
            if ANSWER_BYTES_MAX < json.bytes() {
                return Err(too_long().about("event_id", "", "fewer events"));
            }
        }
        json.close_array().close_object().close_object();
        Ok(())
    }

    /// GET /v2/tokens: what tokens are, by their ids or by their conditions; unknown ones are passed over.
    pub(super) fn tokens_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["token_id", "condition"])?;
        let tokens = params.read(
            "token_id",
            || TOKENS_RULE.into(),
            |text| each_once(text.split(',').map(|id| token_id(id.trim().as_bytes()))),
        )?;
        few("token_id", tokens.as_ref().map_or(0, Vec::len), TOKENS_MAX)?;
        let conditions = params.read(
            "condition",
            || CONDITIONS_RULE.into(),
            |text| {
                let ids = text.split(',').map(str::trim).filter(|id| !is_combination(id));
                each_once(ids.map(|id| parse_hex(id.as_bytes()).map(ConditionId)))
            },
        )?;
        few("condition", conditions.as_ref().map_or(0, Vec::len), CONDITIONS_OF_TOKENS_MAX)?;
        let both = |market| [(market, Outcome::Zero), (market, Outcome::One)];
        let known: Vec<(MarketNo, Outcome)> = match (tokens, conditions) {
            (Some(ids), None) => {
                let tokens = ids.iter().filter_map(|id| self.index.token(id));
                tokens.map(|token| (token.market, token.outcome)).collect()
            }
            (None, Some(ids)) => {
                ids.iter().filter_map(|id| self.index.condition(id)).flat_map(both).collect()
            }
            (None, None) => return Err(missing("token_id", EITHER_RULE)),
            (Some(_), Some(_)) => return Err(twice_named(["token_id", "condition"])),
        };
        json.open_object().key("data").open_array();
        for (market, outcome) in known {
            self.write_token_v2(json, self.market(market), outcome);
        }
        json.close_array().close_object();
        Ok(())
    }

    fn write_token_v2(&self, json: &mut Writer<'_>, row: &MarketRow, outcome: Outcome) {
        let facts = self.index.facts(row.market);
        let event = self.index.event(row);
        json.open_object().key("token_id").token(&row.tokens[outcome.index()]);
        json.key("condition_id").condition(&row.condition).key("structural_condition_id").null();
        json.key("module").text(if row.neg_risk { "neg_risk" } else { "v1_ctf" });
        json.key("outcome_index").number(outcome.index() as u64);
        json.key("clob_index").number(outcome.index() as u64);
        json.key("outcome").text(&row.labels[outcome.index()]);
        json.key("opposite_token_id").token(&row.tokens[outcome.other().index()]);
        json.key("resolved").boolean(row.payout.is_some()).key("final_price");
        json.or_null(row.payout, |json, payout| json.millionths_number(payout.per_share(outcome).into()));
        json.key("title").text(&facts.question).key("market_slug").text(&facts.slug);
        json.key("closed").boolean(row.over.is_some()).key("neg_risk").boolean(row.neg_risk);
        let neg_risk_market = Some(&*facts.neg_risk_market).filter(|id| !id.is_empty());
        json.key("neg_risk_market_id").text_or_null(neg_risk_market).key("question_index").null();
        // A number here, and a text everywhere else.
        json.key("event_id").number_or_null(event.and_then(|event| event.id.parse().ok()));
        json.key("event_slug").text_or_null(event.map(|event| &*event.slug)).close_object();
    }

    /// GET /v2/resolutions: how markets stand, by their conditions, questions or events. Nobody proposes or disputes
    /// here: a market is open, and then it is resolved.
    pub(super) fn resolutions_v2(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let params = params(asked, &["question_id", "condition", "event_id"])?;
        let question =
            params.read("question_id", || WORD_RULE.into(), |text| parse_hex(text.as_bytes()).map(Word))?;
        let (named, markets): (_, Vec<MarketNo>) = match (question, conditions(&params)?, events(&params)?) {
            (Some(question), None, None) => ("question_id", self.index.question(&question).to_vec()),
            (None, Some(ids), None) => {
                ("condition", ids.iter().filter_map(|id| self.index.condition(id)).collect())
            }
            (None, None, Some(ids)) => ("event_id", self.markets_of_events(&ids).collect()),
            (None, None, None) => return Err(missing("condition", ONE_RULE)),
            _ => return Err(invalid("condition", "several of them", ONE_RULE.into())),
        };
        json.open_object().key("data").open_array();
        for row in markets.into_iter().map(|market| self.market(market)) {
            write_resolution(json, row);
            if ANSWER_BYTES_MAX < json.bytes() {
                return Err(too_long().about(named, "", "fewer markets in all"));
            }
        }
        json.close_array().close_object();
        Ok(())
    }
}

/// The condition of a combination of markets has a byte less; there are none here.
fn is_combination(condition: &str) -> bool {
    parse_hex::<31>(condition.as_bytes()).is_some()
}

/// A word for the conditions in their order, and for how their holders are counted.
fn listed(ids: &[ConditionId], gross: bool) -> i128 {
    let word = |id: &ConditionId| u64::from_le_bytes(*id.as_bytes().first_chunk().expect("32 bytes"));
    ids.iter().fold(u64::from(gross), |sum, id| sum.rotate_left(7) ^ word(id)).into()
}

fn write_resolution(json: &mut Writer<'_>, row: &MarketRow) {
    json.open_object().key("status").text(if row.payout.is_some() { "resolved" } else { "initialized" });
    for flag in ["extended_review", "was_disputed", "new_version_q"] {
        json.key(flag).boolean(false);
    }
    json.key("transaction_hash").text("").key("log_index").text("0");
    let updated = row.resolved.or(row.over).unwrap_or(row.added);
    json.key("last_update_timestamp").number_text(updated.seconds());
    json.key("condition_id").condition(&row.condition).key("question_id").hex(row.question.as_bytes());
    json.key("payouts");
    json.or_null(row.payout, |json, payout| {
        json.open_array();
        for outcome in [Outcome::Zero, Outcome::One] {
            json.number(payout.per_share(outcome).into());
        }
        json.close_array()
    });
    json.key("market_type").text("BINARY").close_object();
}
