//! A client of our own exchange: signs and posts orders through the front door, as anybody would. All traders share one
//! connection, so that `dev` leaves the others to whoever tries things.

use crate::auth::l2::{self, Request};
use crate::auth::{Chain, Domains, MacKey, Signer, Venue, sign_order, text};
use crate::catalog::Fields;
use crate::domain::{OrderFields, Price, Shares, Side, SignatureType, TokenId, Word};
use crate::json::Writer;
use crate::server::operator::act::hex;
use crate::server::operator::client::{Answer, Client};
use crate::server::process::clock::Clock;

/// An order that somebody wants to place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// The token.
    pub(super) token: TokenId,
    /// The market's domain.
    pub(super) neg_risk: bool,
    /// Buy or sell.
    pub(super) side: Side,
    /// The limit.
    pub(super) price: Price,
    /// How many, in hundredths of a share, so that the amounts come out even at every price.
    pub(super) hundredths: u64,
    /// `GTC` or `FAK`.
    pub(super) kind: &'static str,
    /// Makes the order's digest its own.
    pub(super) salt: u64,
    /// When the order says that it was made.
    pub(super) timestamp_ms: u64,
}

impl Wish {
    fn shares(&self) -> Shares {
        Shares(self.hundredths * 10_000)
    }
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Posted {
    /// It was taken; its id.
    Taken(String),
    /// It was refused, in the exchange's words; its code.
    Refused(String),
}

/// One test account with an API key.
#[derive(Debug)]
pub(super) struct Trader {
    clock: Clock,
    signer: Signer,
    domains: Domains,
    address: String,
    key: String,
    passphrase: String,
    secret: MacKey,
}

impl Trader {
    /// The trader with this private key; asks the exchange for its API key.
    pub(super) fn new(
        client: &mut Client,
        signer: Signer,
        chain: Chain,
        clock: &Clock,
    ) -> Result<Self, String> {
        let domains = Domains::new(chain);
        let address = String::from_utf8_lossy(&text::checksummed(signer.address())).into_owned();
        let timestamp = clock.now().seconds().to_string();
        let digest = domains.clob_auth_digest(signer.address(), timestamp.as_bytes(), &Word::ZERO);
        let signature = hex(&signer.sign(&digest));
        let headers = [
            ("POLY_ADDRESS", address.as_str()),
            ("POLY_SIGNATURE", &signature),
            ("POLY_TIMESTAMP", &timestamp),
            ("POLY_NONCE", "0"),
        ];
        let body = client.ask("POST", "/auth/api-key", &headers, Some("{}"))?.success()?;
        let fields = Fields::parse(&body).unwrap_or_default();
        let part =
            |name: &str| fields.text(name).ok_or_else(|| format!("POST /auth/api-key: no {name} in {body}"));
        let secret =
            text::base64_32(part("secret")?.as_bytes()).ok_or("POST /auth/api-key: a secret of 32 bytes")?;
        Ok(Self {
            key: part("apiKey")?,
            passphrase: part("passphrase")?,
            secret: MacKey::new(&secret),
            clock: clock.clone(),
            signer,
            domains,
            address,
        })
    }

    /// Posts an order; a fault means that its outcome is unknown.
    pub(super) fn post(&self, client: &mut Client, wish: &Wish) -> Result<Posted, String> {
        let body = self.order(wish);
        let answer = self.ask(client, "POST", "/order", &body)?;
        let fields = Fields::parse(&answer.body).unwrap_or_default();
        if answer.status == 200 {
            return Ok(Posted::Taken(fields.text("orderID").unwrap_or_default()));
        }
        Ok(Posted::Refused(fields.text("code").unwrap_or(answer.body.clone())))
    }

    /// Cancels an order; whether it was still there is no matter.
    pub(super) fn cancel(&self, client: &mut Client, id: &str) -> Result<(), String> {
        self.ask(client, "DELETE", "/order", &format!("{{\"orderID\":\"{id}\"}}")).map(|_| ())
    }

    fn order(&self, wish: &Wish) -> String {
        let fields = self.fields(wish);
        let (signature, length) =
            sign_order(&self.signer, &self.domains, Venue::Polymarket, wish.neg_risk, &fields);
        let mut out = Vec::new();
        let mut json = Writer::new(&mut out);
        json.open_object().key("order").open_object();
        json.key("salt").number(wish.salt).key("maker").text(&self.address).key("signer").text(&self.address);
        json.key("tokenId").token(&wish.token).key("makerAmount").number_text(fields.maker_amount);
        json.key("takerAmount").number_text(fields.taker_amount).key("side").text(wish.side.text());
        json.key("signatureType").number(0).key("timestamp").number_text(wish.timestamp_ms);
        json.key("metadata").hex(fields.metadata.as_bytes()).key("builder").hex(fields.builder.as_bytes());
        json.key("expiration")
            .text("0")
            .key("signature")
            .hex(&signature[..usize::from(length)])
            .close_object();
        json.key("owner").text(&self.key).key("orderType").text(wish.kind).close_object();
        String::from_utf8(out).expect("the writer writes text")
    }

    fn fields(&self, wish: &Wish) -> OrderFields {
        let shares = wish.shares();
        let collateral = wish.price.cost_floor(shares);
        let (maker_amount, taker_amount) = match wish.side {
            Side::Buy => (collateral.0, shares.0),
            Side::Sell => (shares.0, collateral.0),
        };
        let mut salt = Word::ZERO;
        salt.0[24..].copy_from_slice(&wish.salt.to_be_bytes());
        OrderFields {
            salt,
            maker: *self.signer.address(),
            signer: *self.signer.address(),
            token: wish.token,
            maker_amount,
            taker_amount,
            side: wish.side,
            signature_type: SignatureType::Eoa,
            timestamp_ms: wish.timestamp_ms,
            metadata: Word::ZERO,
            builder: Word::ZERO,
        }
    }

    fn ask(&self, client: &mut Client, method: &str, path: &str, body: &str) -> Result<Answer, String> {
        let timestamp = self.clock.now().seconds().to_string();
        let request = Request {
            timestamp: timestamp.as_bytes(),
            method: method.as_bytes(),
            path: path.as_bytes(),
            prefix: b"",
            body: body.as_bytes(),
        };
        let code = String::from_utf8_lossy(&l2::sign(&request, &self.secret)).into_owned();
        let headers = [
            ("POLY_ADDRESS", self.address.as_str()),
            ("POLY_SIGNATURE", &code),
            ("POLY_TIMESTAMP", &timestamp),
            ("POLY_API_KEY", &self.key),
            ("POLY_PASSPHRASE", &self.passphrase),
        ];
        client.ask(method, path, &headers, Some(body))
    }
}
