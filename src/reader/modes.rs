//! Which requests are taken: the mode of the exchange, and of the markets that the operator restricts.
//!
//! | mode | orders | post-only orders | splits | cancels, merges, redeems |
//! |---|---|---|---|---|
//! | `open` | yes | yes | yes | yes |
//! | `post-only` | no | yes | yes | yes |
//! | `cancel-only` | no | no | no | yes |
//! | `closed` | no | no | no | yes |
//!
//! The stricter of the exchange's mode and the market's counts. Nobody has to keep an order against
//! their will, so cancels are taken in every mode.

use super::Reader;
use crate::json::Writer;

/// Markets that one answer names: an operator restricts a few, or all of them by the exchange's mode.
const MARKETS_NAMED_MAX: usize = 500;

impl Reader {
    /// GET /ready: any answer says that the exchange is there.
    pub(super) fn ready(&self, json: &mut Writer<'_>) {
        json.open_object().key("ready").boolean(true);
        self.write_modes(json);
        json.close_object();
    }

    /// Writes the exchange's mode, and the modes of markets that are post-only or cancel-only: the first
    /// 500 of them, and how many there are.
    pub fn write_modes(&self, json: &mut Writer<'_>) {
        let restricted = self.index.restricted();
        json.key("mode").text(self.ledger.exchange_mode().text()).key("markets").open_array();
        for market in restricted.iter().take(MARKETS_NAMED_MAX) {
            let row = self.market(*market);
            json.open_object().key("condition_id").condition(&row.condition);
            json.key("mode").text(row.mode.text()).close_object();
        }
        json.close_array().key("markets_count").number(restricted.len() as u64);
    }
}
