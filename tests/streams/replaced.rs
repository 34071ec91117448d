//! What followers are told of a replace: all of it at once, as one change of the market.

use super::Site;
use super::mirror::Noted;
use crate::common::text;
use crate::common::trader::{Wish, token};
use outcry::domain::Side;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

impl Site {
    /// The first trader replaces orders by a bid for each outcome, of cents and shares; returns their ids.
    #[track_caller]
    fn replace(&mut self, leaving: &[String], quotes: [(u64, u64); 2]) -> Vec<String> {
        let wishes = [0, 1].map(|outcome| {
            let (cents, shares) = quotes[outcome];
            Wish::buy(token(&self.tokens[outcome]), cents * 100, shares * 1_000_000)
        });
        let place = wishes.map(|wish| self.traders[0].sign(&wish).body).join(",");
        let body = format!("{{\"cancel\":{},\"place\":[{place}]}}", json!(leaving));
        let said = self.traders[0].ask(&mut self.connection, "POST", "/replace", &body).unwrap().json();
        assert_eq!(said["canceled"], json!(leaving), "{said}");
        said["orders"].as_array().unwrap().iter().map(|order| text(&order["orderID"]).to_owned()).collect()
    }
}

/// The levels of both tokens that are to change when a bid for each outcome gives way to another: token, side, price,
/// size.
fn changed(tokens: &[String; 2], from: [(u64, u64); 2], to: [(u64, u64); 2]) -> BTreeSet<[String; 4]> {
    let mut changed = BTreeMap::new();
    for outcome in [0, 1] {
        for (cents, shares) in [(from[outcome].0, 0), to[outcome]] {
            // A bid for one outcome is an offer of the other.
            for (token, side, cents) in [(outcome, "BUY", cents), (1 - outcome, "SELL", 100 - cents)] {
                changed.insert((tokens[token].clone(), side, format!("0.{cents:02}")), shares.to_string());
            }
        }
    }
    let level = |((token, side, price), size): ((_, &str, String), _)| {
        [token, side.to_owned(), price.trim_end_matches('0').to_owned(), size]
    };
    changed.into_iter().map(level).collect()
}

/// The levels that a `price_change` names.
#[track_caller]
fn told(message: &Value) -> BTreeSet<[String; 4]> {
    assert_eq!(message["event_type"], "price_change", "{message}");
    let changes = message["price_changes"].as_array().unwrap().iter();
    let names = ["asset_id", "side", "price", "size"];
    changes.map(|change| names.map(|name| text(&change[name]).to_owned())).collect()
}

pub(super) fn a_replace_is_one_change_of_both_books_and_events_without_a_gap(feed: &str) {
    let mut site = Site::start(feed);
    let mut quotes = [(40, 10); 2];
    let mut leaving: Vec<String> =
        [0, 1].map(|outcome| site.order(0, outcome, Side::Buy, 40, 10, "GTC").0).into();
    let (mut stream, _, mut mirror) = site.market();
    let (mut user, said) = site.user(0, &json!({}));
    let mut event = said["sequence"].as_u64().unwrap();
    for (how, to) in [
        ("both move", [(41, 10), (42, 10)]),
        ("both shrink where they are", [(41, 7), (42, 5)]),
        ("one grows, one moves", [(41, 9), (30, 5)]),
        ("one crosses what leaves", [(75, 9), (20, 5)]),
    ] {
        let coming = site.replace(&leaving, to);
        let number = mirror.sequence + 1;
        let message = stream.event();
        assert_eq!(mirror.note(&message), Noted::Good, "{how}: {message}");
        assert_eq!(mirror.sequence, number, "{how}: {message}");
        assert_eq!(told(&message), changed(&site.tokens, quotes, to), "{how}");
        // The server's own books have this number: no other message is on its way.
        let probe = format!("/book?token_id={}", site.tokens[0]);
        let read = site.exchange.connect().request("GET", &probe, "", b"").unwrap();
        assert_eq!(read.header("X-Outcry-Book-Sequence"), Some(number.to_string().as_str()), "{how}");
        assert_eq!(mirror.books, site.books(), "{how}");
        let events = [(); 4].map(|()| user.event());
        let numbers = events.each_ref().map(|said| said["sequence"].as_u64().unwrap());
        assert_eq!(numbers, [1, 2, 3, 4].map(|more| event + more), "{how}: {events:?}");
        event += 4;
        let became = |kind: &str| -> Vec<String> {
            let of_kind = events.iter().filter(|said| said["type"] == kind);
            of_kind.map(|said| text(&said["id"]).to_owned()).collect()
        };
        assert_eq!((became("CANCELLATION"), became("PLACEMENT")), (leaving, coming.clone()), "{how}");
        (leaving, quotes) = (coming, to);
    }
}
