use super::*;

const FIRST: u32 = 0;
const SECOND: u32 = 1;

/// An exchange, and what follows it.
struct Followed {
    exchange: Exchange,
    feed: Feed,
}

impl Followed {
    fn opened() -> Self {
        let exchange = Exchange::opened();
        let feed = Feed::new("stream", &exchange.reader);
        Self { exchange, feed }
    }

    /// A client follows rain's yes, with all that it may be told.
    fn follow(&mut self, client: u32) {
        let now = self.exchange.time();
        self.feed.join(client, Channel::Market);
        let text =
            format!(r#"{{"type":"market","assets_ids":["{RAIN_YES}"],"custom_feature_enabled":true}}"#);
        let heard = self.feed.hear(client, &text, &self.exchange.reader, (now, None), |_| None);
        assert_eq!(heard, Heard::Stays);
        self.feed.sent();
    }

    fn notes(&mut self, record: impl Into<Record>) -> Position {
        let record = record.into();
        let position = self.exchange.says(record.clone());
        self.feed.note(&self.exchange.reader, &record, self.exchange.time());
        position
    }

    /// A bid for rain's yes rests.
    fn bids(&mut self, cents: u16) -> Position {
        let order = self.exchange.order(ALICE, Side::Buy, Outcome::Zero, cents, 10);
        self.notes(order)
    }

    /// What a client is told at the end of a turn.
    fn told(&mut self, client: u32) -> Vec<String> {
        self.feed.flush(&self.exchange.reader, self.exchange.time());
        let sends = self.feed.sends().filter(|(to, _)| *to == client);
        let told = sends.map(|(_, frame)| String::from_utf8_lossy(frame).into_owned()).collect();
        self.feed.sent();
        told
    }
}

#[test]
fn who_follows_is_not_told_of_what_was_followed_before() {
    let mut followed = Followed::opened();
    followed.follow(FIRST);
    followed.bids(40);
    assert_eq!(followed.told(FIRST).len(), 2, "the change, and the best price");
    followed.follow(SECOND);
    assert_eq!(followed.told(SECOND), [""; 0]);
}

#[test]
fn who_follows_after_everybody_has_left_in_the_middle_of_a_turn_is_told_of_the_next_best_price() {
    let mut followed = Followed::opened();
    followed.bids(40);
    followed.follow(FIRST);
    followed.bids(45);
    followed.feed.leave(FIRST);
    assert_eq!(followed.told(FIRST), [""; 0]);
    let best = followed.bids(50);
    followed.follow(SECOND);
    let time = followed.exchange.time();
    followed.notes(OrdersRemoved { time, reason: RemovalReason::Cancelled, orders: vec![best] });
    let told = followed.told(SECOND);
    let bests: Vec<_> = told.iter().filter(|text| text.contains(r#""event_type":"best_bid_ask""#)).collect();
    assert!(bests.len() == 1 && bests[0].contains(r#""best_bid":"0.45""#), "{told:?}");
}
