//! Programmes that other venues run and this exchange does not: rewards for resting orders, rebates
//! for makers, keys and trades of builders, quotes on request.
//!
//! A list of what nobody earned is empty, in the shape that the venues' clients want. A request
//! that should create something is refused with a code of its own: a key or a quote that nobody
//! honours would be a lie.

use super::ask::{Asked, Refused, no_route};
use super::page;
use crate::http::Endpoint;
use crate::json::Writer;

const NO_QUOTES: Refused = Refused::new(
    501,
    "rfq_not_supported",
    "requests for quotes are not supported here: place an order in the book",
);

const NO_BUILDER_KEYS: Refused = Refused::new(
    501,
    "builder_keys_not_supported",
    "builder keys are not supported here: orders carry their builder's code without one",
);

const NO_BUILDER_KEY: Refused =
    Refused::new(404, "builder_key_unknown", "there is no builder key to be revoked");

/// Answers a route of a programme.
pub(super) fn write(asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
    use Endpoint as E;
    match asked.endpoint() {
        E::RewardsOfMarket => {
            asked.captured_condition()?;
            return no_rows(asked, json);
        }
        E::RewardMarkets | E::RewardsOfUser | E::BuilderTrades => return no_rows(asked, json),
        E::RewardsTotal | E::Rebates | E::BuilderKeys => drop(json.open_array().close_array()),
        E::RewardPercentages => drop(json.open_object().close_object()),
        E::BuilderKeyCreate => return Err(NO_BUILDER_KEYS),
        E::BuilderKeyRevoke => return Err(NO_BUILDER_KEY),
        E::Rfq => return Err(NO_QUOTES),
        _ => return Err(no_route()),
    }
    Ok(())
}

/// A page without rows; the cursor has to be valid all the same.
fn no_rows(asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
    page::start(asked, page::BAD_CURSOR)?;
    page::empty(json, page::ROWS_OF_ACCOUNT, page::END);
    Ok(())
}
