//! A reader with one market, and one answer about it: what a read costs besides its socket.

use crate::auth::keccak;
use crate::domain::{
    ConditionId, FeeSchedule, MarketNo, Mode, Position, Shares, Tick, TimeMs, TokenId, Word,
};
use crate::http::respond::{ContentType, Extras, Response};
use crate::http::route::HostPrefixes;
use crate::http::{self, Query};
use crate::journal::FIRST_POSITION;
use crate::journal::layout::{MarketAdded, Record};
use crate::reader::{PriceSide, ReadRequest, Reader, Settings, WalletSettings};

/// When everything happens.
const NOW: TimeMs = TimeMs(1_750_000_000_000);

/// With a description of this many bytes the answer is as long as that of README's figure.
const DESCRIPTION_BYTES: usize = 800;

/// What asks for the market.
const REQUEST: &[u8] =
    b"GET /markets/1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: a client\r\nAccept: */*\r\n\
                         Connection: keep-alive\r\n\r\n";

/// A market that can be read.
pub(super) struct Market {
    reader: Reader,
    answer: Vec<u8>,
}

impl Market {
    pub(super) fn new() -> Self {
        let mut reader = Reader::new(Settings {
            keccak: |bytes| keccak(bytes).0,
            price_side: PriceSide::Taker,
            exchanges: Vec::new(),
            builder_share_bps: 0,
            wallet: WalletSettings::default(),
        });
        let end = Position(FIRST_POSITION.0 + 64);
        reader.apply(FIRST_POSITION, end, &added()).expect("the first record may add a market");
        Self { reader, answer: Vec::new() }
    }

    /// Parses the request, finds its route and writes the answer, as the reader's loop does once it has the bytes.
    pub(super) fn read(&mut self) -> &[u8] {
        self.answer.clear();
        let head = http::parse(REQUEST, &http::Limits::SERVED).expect("a request").expect("a whole one");
        let query = Query::new(head.query);
        let route =
            http::route(head.method, head.host, head.path, query, HostPrefixes::Off).expect("a route");
        let (endpoint, capture) = (route.endpoint, route.capture);
        let request = ReadRequest { endpoint, capture, query, body: &[], caller: None, now: NOW };
        let extras = Extras { seq: Some(self.reader.ledger().end().0), ..Extras::default() };
        let response = Response::begin(&mut self.answer, 200, ContentType::Json, &extras);
        let status = self.reader.answer(&request, &mut self.answer);
        assert_eq!(status, 200, "there is such a market");
        response.finish(&mut self.answer);
        &self.answer
    }
}

fn added() -> Record {
    let description = "x".repeat(DESCRIPTION_BYTES);
    let text = format!(
        r#"{{"question":"Will it be so?","slug":"will-it-be-so","endDate":"2027-01-01T00:00:00Z","description":"{description}"}}"#
    );
    MarketAdded {
        time: NOW,
        market: MarketNo(0),
        event: None,
        shard_key: 0,
        market_id: 1,
        condition: ConditionId([1; 32]),
        question: Word([2; 32]),
        tokens: [TokenId([3; 32]), TokenId([4; 32])],
        labels: vec!["Yes".to_owned(), "No".to_owned()],
        neg_risk: false,
        tick: Tick::new(100).expect("a hundredth"),
        min_size: Shares(5_000_000),
        fee: FeeSchedule::FREE,
        mode: Mode::Open,
        payout: None,
        text,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_market_that_is_read_is_whole_and_as_long_as_readme_s() {
        let mut market = Market::new();
        let first = market.read().to_vec();
        let (head, body) = std::str::from_utf8(&first).expect("text").split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("X-Outcry-Seq: "), "{head}");
        assert!((1_700..1_950).contains(&body.len()), "{} bytes: {body}", body.len());
        let start = r#"{"id":"1","conditionId":"0x0101"#;
        assert!(body.starts_with(start) && body.ends_with('}') && body.contains("will-it-be-so"), "{body}");
        assert_eq!(market.read(), first, "it answers alike");
    }
}
