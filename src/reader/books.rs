//! Books and prices of single tokens, and of lists of them.
//!
//! A book's `hash` is the SHA-1 of its own compact text with an empty `hash`, so the order of its keys is part
//! of the hash and must never change. Its `timestamp` is when an order last came, was filled or left, not when
//! the book was asked for, so two reads of an unchanged book are equal to the byte.
//!
//! In lists, tokens that have no book, no price or no trade are left out; a token that is named
//! twice is answered once, with all the sides that were asked for.

use super::ask::{Asked, Refused, no_book, too_long};
use super::bars::HalfSteps;
use super::levels::seen_from;
use super::{ANSWER_BYTES_MAX, PriceSide, Reader, Token};
use crate::domain::{MarketNo, Mode, Outcome, PRICE_ONE, Price, Side, TokenId};
use crate::json::Writer;
use sha1_smol::Sha1;
use std::collections::BTreeSet;

/// Characters of a book's hash: a SHA-1 in hex.
pub(super) const HASH_BYTES: usize = 40;

/// The best bid and the best ask; none where nobody is.
pub(super) type Bests = [Option<Price>; 2];

const SIDES: [Side; 2] = [Side::Buy, Side::Sell];

impl Reader {
    /// GET /book.
    pub(super) fn book(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let token = self.token_with_book(asked)?;
        self.write_book(json, token);
        Ok(())
    }

    /// POST /books.
    pub(super) fn books(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        json.open_array();
        for (_, token) in self.tokens_with_books(asked) {
            self.write_book(json, token);
            if json.bytes() > ANSWER_BYTES_MAX {
                return Err(too_long().about("body", "", "fewer tokens, or smaller books"));
            }
        }
        json.close_array();
        Ok(())
    }

    /// GET /price.
    pub(super) fn price(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let token = self.token_with_book(asked)?;
        let side = asked.side()?;
        let none = Refused::new(404, "no_price", "no orders on that side of the book");
        let price = self.price_for(token, side).ok_or(none)?;
        json.open_object().key("price").price_text(price).close_object();
        Ok(())
    }

    /// POST /prices.
    pub(super) fn prices(&self, asked: &Asked<'_>, json: &mut Writer<'_>) {
        json.open_object();
        for (id, token) in self.tokens_with_books(asked) {
            write_name(json, &id);
            json.open_object();
            for side in SIDES {
                let asks = |ask: &crate::json::read::TokenAsk| {
                    ask.token == id && ask.side.is_none_or(|asked| asked == side)
                };
                if asked.tokens().iter().any(asks)
                    && let Some(price) = self.price_for(token, side)
                {
                    json.key(side.text()).price_text(price);
                }
            }
            json.close_object();
        }
        json.close_object();
    }

    /// GET /midpoint.
    pub(super) fn midpoint(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let token = self.token_with_book(asked)?;
        let middle = self.middle(token).ok_or(one_sided())?;
        json.open_object().key("mid").millionths_text(middle).close_object();
        Ok(())
    }

    /// POST /midpoints.
    pub(super) fn midpoints(&self, asked: &Asked<'_>, json: &mut Writer<'_>) {
        json.open_object();
        for (id, token) in self.tokens_with_books(asked) {
            if let Some(middle) = self.middle(token) {
                write_name(json, &id);
                json.millionths_text(middle);
            }
        }
        json.close_object();
    }

    /// GET /spread.
    pub(super) fn spread(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let token = self.token_with_book(asked)?;
        let spread = self.gap(token).ok_or(one_sided())?;
        json.open_object().key("spread").ten_thousandths_text(spread).close_object();
        Ok(())
    }

    /// POST /spreads.
    pub(super) fn spreads(&self, asked: &Asked<'_>, json: &mut Writer<'_>) {
        json.open_object();
        for (id, token) in self.tokens_with_books(asked) {
            if let Some(spread) = self.gap(token) {
                write_name(json, &id);
                json.ten_thousandths_text(spread);
            }
        }
        json.close_object();
    }

    /// GET /last-trade-price.
    pub(super) fn last_trade_price(&self, asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
        let token = self.token_of(asked, "token_id", no_book())?;
        let none = Refused::new(404, "no_trade", "no trade of the requested token id");
        let (price, side) = self.last_trade(token).ok_or(none)?;
        json.open_object().key("price").price_text(price).key("side").text(side.text()).close_object();
        Ok(())
    }

    /// POST or GET /last-trades-prices.
    pub(super) fn last_trades_prices(&self, asked: &Asked<'_>, json: &mut Writer<'_>) {
        json.open_array();
        for id in once_each(asked) {
            let token = self.index.token(&id);
            if let Some((price, side)) = token.and_then(|token| self.last_trade(token)) {
                json.open_object().key("token_id").token(&id);
                json.key("price").price_text(price).key("side").text(side.text()).close_object();
            }
        }
        json.close_array();
    }

    /// Writes the book of one outcome of a market, whatever its mode; a resolved market's book has no levels.
    pub fn write_book_of(&self, json: &mut Writer<'_>, market: MarketNo, outcome: Outcome) {
        self.write_book(json, Token { market, outcome });
    }

    /// The market and outcome of a token whose market has a book, so is neither closed nor resolved.
    pub(super) fn book_of(&self, id: &TokenId) -> Option<Token> {
        let token = self.index.token(id)?;
        let closed = matches!(self.market(token.market).mode, Mode::Closed | Mode::Resolved);
        (!closed).then_some(token)
    }

    /// The middle between the best bid and the best ask, in millionths.
    pub(super) fn middle(&self, token: Token) -> Option<u64> {
        let middle = HalfSteps::middle(&self.index.market(token.market).levels)?;
        Some(middle.millionths(token.outcome))
    }

    /// The last trade's price and its taker's side, both as this token sees them.
    pub(super) fn last_trade(&self, token: Token) -> Option<(Price, Side)> {
        let last = self.index.market(token.market).last_trade?;
        Some((seen_from(token.outcome, last.price), last.side.seen_from(token.outcome)))
    }

    fn write_book(&self, json: &mut Writer<'_>, token: Token) {
        json.raw(&self.sealed_book(token).0);
    }

    /// The fields of a book into an open object.
    pub(super) fn write_book_fields(&self, json: &mut Writer<'_>, token: Token) {
        let (text, _) = self.sealed_book(token);
        json.raw(&text[1..text.len() - 1]);
    }

    /// The hash of a book.
    pub(super) fn book_hash(&self, token: Token) -> [u8; HASH_BYTES] {
        let (text, hash_at) = self.sealed_book(token);
        text[hash_at..hash_at + HASH_BYTES].try_into().expect("as long as a hash")
    }

    /// A book as an object with its hash, and the hash's position.
    fn sealed_book(&self, token: Token) -> (Vec<u8>, usize) {
        let row = self.market(token.market);
        let levels = &self.index.market(token.market).levels;
        let mut text = Vec::new();
        let mut book = Writer::new(&mut text);
        book.open_object().key("market").condition(&row.condition);
        book.key("asset_id").token(&row.tokens[token.outcome.index()]);
        book.key("timestamp").number_text(row.book_changed.0);
        book.key("hash").text("");
        let hash_at = book.bytes() - 1;
        for (name, side) in [("bids", Side::Buy), ("asks", Side::Sell)] {
            book.key(name).open_array();
            for level in levels.side(token.outcome, side) {
                book.open_object().key("price").price_text(level.price);
                book.key("size").millionths_text(level.shares.0).close_object();
            }
            book.close_array();
        }
        book.key("min_order_size").millionths_text(row.min_size.0);
        book.key("tick_size").ten_thousandths_text(row.tick.ten_thousandths());
        book.key("neg_risk").boolean(row.neg_risk).key("last_trade_price");
        match self.last_trade(token) {
            Some((price, _)) => book.price_text(price),
            None => book.text(""),
        };
        book.close_object();
        seal(&mut text, hash_at);
        (text, hash_at)
    }

    pub(super) fn best(&self, token: Token, side: Side) -> Option<Price> {
        self.index.market(token.market).levels.best(token.outcome, side)
    }

    /// The best bid and the best ask.
    pub(super) fn bests(&self, token: Token) -> Bests {
        SIDES.map(|side| self.best(token, side))
    }

    /// The price that a request for `side` gets.
    fn price_for(&self, token: Token, side: Side) -> Option<Price> {
        match self.settings.price_side {
            PriceSide::Taker => self.best(token, side.opposite()),
            PriceSide::Book => self.best(token, side),
        }
    }

    /// The best ask less the best bid, in ten-thousandths. Never negative: books are not crossed.
    pub(super) fn gap(&self, token: Token) -> Option<u16> {
        let [bid, ask] = self.bests(token);
        Some(ask?.ten_thousandths().saturating_sub(bid?.ten_thousandths()))
    }

    fn tokens_with_books<'a>(
        &'a self,
        asked: &Asked<'a>,
    ) -> impl Iterator<Item = (TokenId, Token)> + use<'a> {
        once_each(asked).into_iter().filter_map(|id| Some((id, self.book_of(&id)?)))
    }
}

/// Best prices in ten-thousandths; a side without orders is worth nothing or everything.
pub(super) fn shown_bests([bid, ask]: Bests) -> [u16; 2] {
    [bid.map_or(0, Price::ten_thousandths), ask.map_or(PRICE_ONE, Price::ten_thousandths)]
}

/// Puts the hash of a book's text into it, between the quotes that end at `hash_at`.
fn seal(text: &mut Vec<u8>, hash_at: usize) {
    let hash = Sha1::from(&text[..]).digest().to_string();
    text.splice(hash_at..hash_at, hash.into_bytes());
}

const fn one_sided() -> Refused {
    Refused::new(404, "no_midpoint", "no orders on one side of the book")
}

/// The tokens of the body, each once, in the order of first mention.
fn once_each(asked: &Asked<'_>) -> Vec<TokenId> {
    let mut seen = BTreeSet::new();
    asked.tokens().iter().map(|ask| ask.token).filter(|token| seen.insert(*token)).collect()
}

/// Writes a token's id as the name of the value that follows.
pub(super) fn write_name(json: &mut Writer<'_>, id: &TokenId) {
    json.token(id).names();
}

#[cfg(test)]
mod tests {
    use super::seal;

    /// Books that the clients' own code hashed, in the text that they hashed.
    #[test]
    fn a_book_is_hashed_like_the_clients_hash_it() {
        let market = "0xdd22472e552920b8438158ea7238bfadfa4f736aa4cee91a6b86c39ead110917";
        let token = "71321045679252212594626385532706912750332728571942532289631379312455583992563";
        for (text, hash) in [
            (
                format!(
                    "{{\"market\":\"{market}\",\"asset_id\":\"{token}\",\"timestamp\":\"1703875200000\",\
                     \"hash\":\"\",\"bids\":[{{\"price\":\"0.48\",\"size\":\"100\"}},{{\"price\":\"0.49\",\
                     \"size\":\"200\"}}],\"asks\":[{{\"price\":\"0.53\",\"size\":\"90\"}},{{\"price\":\"0.51\",\
                     \"size\":\"120\"}}],\"min_order_size\":\"5\",\"tick_size\":\"0.01\",\"neg_risk\":false,\
                     \"last_trade_price\":\"0.50\"}}"
                ),
                "966af007e82fd55d234a87c6ad42c2bbc6106e67",
            ),
            (
                format!(
                    "{{\"market\":\"{market}\",\"asset_id\":\"{token}\",\"timestamp\":\"1703875200001\",\
                     \"hash\":\"\",\"bids\":[],\"asks\":[],\"min_order_size\":\"1\",\"tick_size\":\"0.001\",\
                     \"neg_risk\":true,\"last_trade_price\":\"\"}}"
                ),
                "5df9a6b4f975f7332720d1a79fe526d41440c1a4",
            ),
            (
                "{\"market\":\"0xaabbcc\",\"asset_id\":\"100\",\"timestamp\":\"123456789\",\"hash\":\"\",\
                 \"bids\":[{\"price\":\"0.3\",\"size\":\"100\"},{\"price\":\"0.4\",\"size\":\"100\"}],\
                 \"asks\":[{\"price\":\"0.6\",\"size\":\"100\"},{\"price\":\"0.7\",\"size\":\"100\"}],\
                 \"min_order_size\":\"100\",\"tick_size\":\"0.01\",\"neg_risk\":false,\
                 \"last_trade_price\":\"0.5\"}"
                    .to_owned(),
                "0458ea5755c9f73d64a14636fa5c36ed460ec394",
            ),
        ] {
            let hash_at = text.find("\"hash\":\"").expect("a hash") + "\"hash\":\"".len();
            let mut sealed = text.clone().into_bytes();
            seal(&mut sealed, hash_at);
            assert_eq!(std::str::from_utf8(&sealed[hash_at..hash_at + 40]), Ok(hash));
            assert_eq!(sealed.len(), text.len() + 40);
        }
    }
}
