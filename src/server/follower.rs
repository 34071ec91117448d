//! What the reading role needs of the read core until that room stands: a ledger that follows the
//! log, and the sign of life.

use crate::domain::{ApiKey, Dialect, OrderId, Position, TimeMs, WalletNo, Word};
use crate::http::{Endpoint, Query};
use crate::journal::layout::Record;
use crate::ledger::{Contradiction, Ledger};

/// What `GET /price?side=BUY` means.
pub(crate) enum PriceSide {
    /// The price at which one can buy.
    Taker,
    /// The best price among the buyers.
    Book,
}

/// What the operator decides about answers.
#[allow(dead_code, reason = "read when the read core stands")]
pub(crate) struct Settings {
    pub(crate) keccak: fn(&[u8]) -> [u8; 32],
    pub(crate) price_side: PriceSide,
    pub(crate) exchanges: Vec<crate::domain::Address>,
    pub(crate) builder_share_bps: u16,
}

/// Who asks.
#[allow(dead_code, reason = "read when the read core stands")]
pub(crate) struct Caller {
    pub(crate) principal: WalletNo,
    pub(crate) key: ApiKey,
    pub(crate) dialect: Dialect,
}

/// One request, taken apart.
#[allow(dead_code, reason = "read when the read core stands")]
pub(crate) struct ReadRequest<'a> {
    pub(crate) endpoint: Endpoint,
    pub(crate) capture: &'a str,
    pub(crate) query: Query<'a>,
    pub(crate) body: &'a [u8],
    pub(crate) caller: Option<Caller>,
    pub(crate) now: TimeMs,
}

/// A ledger that follows the log.
pub(crate) struct Reader(Ledger);

impl Reader {
    pub(crate) fn new(_settings: Settings) -> Self {
        Self(Ledger::new())
    }

    pub(crate) fn apply(
        &mut self,
        start: Position,
        end: Position,
        record: &Record,
    ) -> Result<(), Contradiction> {
        self.0.apply(start, end, record)
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.0
    }

    #[allow(clippy::unused_self, reason = "the read core's form")]
    pub(crate) fn answer(&mut self, request: &ReadRequest<'_>, out: &mut Vec<u8>) -> u16 {
        if request.endpoint == Endpoint::Time {
            out.extend_from_slice(request.now.seconds().to_string().as_bytes());
            return 200;
        }
        out.extend_from_slice(b"{\"error\":\"not found\",\"code\":\"not_found\"}");
        404
    }
}

/// The id of the trade that the frame at `position` made: a UUID of version 8.
pub(crate) fn trade_id(position: Position) -> ApiKey {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(b"outcry");
    bytes[6] = 0x80;
    bytes[8..].copy_from_slice(&(0b10 << 62 | position.0 / 64).to_be_bytes());
    ApiKey(bytes)
}

/// The settlement hash of the trade that `taker` made at `position`.
pub(crate) fn settlement_hash(position: Position, taker: &OrderId, keccak: fn(&[u8]) -> [u8; 32]) -> Word {
    let mut bytes = [0; 40];
    bytes[..8].copy_from_slice(&position.0.to_be_bytes());
    bytes[8..].copy_from_slice(taker.as_bytes());
    Word(keccak(&bytes))
}
