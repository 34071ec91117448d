//! What a new `dev` exchange holds: markets, funded test accounts, a few resting quotes.

use std::net::SocketAddr;

use super::trader::{Posted, Trader, Wish};
use crate::auth::{Chain, Signer, text};
use crate::catalog::{self, Fields, Import, ImportedMarket, texts};
use crate::domain::text::parse_hex;
use crate::domain::{Price, Side, TokenId};
use crate::json::decimal;
use crate::server::operator::act::hex;
use crate::server::operator::client::Client;
use crate::server::operator::import;
use crate::server::plan::Plan;
use crate::server::process::clock::Clock;

/// The private keys of the ten accounts that Anvil and Hardhat make. Everybody knows them: they
/// are worth nothing anywhere, and `dev` listens on loopback only.
pub(super) const TEST_KEYS: [&str; 10] = [
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
    "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
    "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
    "0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
    "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
];

/// The deposit wallet of account 0, as the clients' golden vectors have it.
const DEPOSIT_WALLET: &str = "0x365f0CA36Ae1f641E02fE3B7743673da42A13A70";

/// What every account gets, in USDC.
const CREDIT: &str = "100000";

/// The two accounts that quote; the others are for whoever tries things, and for the flow.
pub(super) const QUOTING: [usize; 2] = [8, 9];

/// Levels of a market's first quotes on each side, their size in hundredths of a share, and when
/// they say that they were made: a fixed instant, so that a restart posts the very same orders.
const LEVELS: u16 = 3;
const QUOTE_HUNDREDTHS: u64 = 5_000;
const QUOTED_AT_MS: u64 = 1_750_000_000_000;

/// A market that somebody quotes.
#[derive(Clone, Debug)]
pub(super) struct Quoted {
    /// The question.
    pub(super) question: String,
    /// Its tokens.
    pub(super) tokens: [TokenId; 2],
    /// Its domain.
    pub(super) neg_risk: bool,
    /// What its first outcome is worth, on the grid.
    pub(super) middle: Price,
    /// Its price step, in ten-thousandths.
    pub(super) step: u16,
}

impl Quoted {
    /// The market of a catalog row, with the middle that its text names.
    fn of(market: &ImportedMarket) -> Option<Self> {
        let fields = Fields::parse(&market.text)?;
        let prices = texts(fields.raw("outcomePrices")?)?;
        Some(Self {
            question: fields.text("question").unwrap_or_default(),
            tokens: market.tokens?,
            neg_risk: market.neg_risk,
            middle: decimal::parse_price(prices.first()?.as_bytes()).ok()?,
            step: market.tick.ten_thousandths(),
        })
    }

    /// The price `steps` away from the middle, if there is one.
    pub(super) fn price(&self, steps: i32) -> Option<Price> {
        let price = i32::from(self.middle.ten_thousandths()) + steps * i32::from(self.step);
        let step = i32::from(self.step);
        if !(step..=10_000 - step).contains(&price) {
            return None;
        }
        Price::new(u16::try_from(price).ok()?)
    }

    /// A bid (or offer) for the first outcome without needing shares: an offer at p is a bid for
    /// the other outcome at 1 - p.
    pub(super) fn wish(&self, side: Side, price: Price) -> (TokenId, Price) {
        match side {
            Side::Buy => (self.tokens[0], price),
            Side::Sell => (self.tokens[1], price.complement()),
        }
    }
}

/// What the page and the flow need.
#[derive(Debug)]
pub(super) struct Seeded {
    /// The markets, in catalog order.
    pub(super) markets: Vec<Quoted>,
    /// The accounts' addresses.
    pub(super) addresses: Vec<String>,
    /// The quoting accounts, with their keys.
    pub(super) quoting: Vec<Trader>,
    /// What was refused, one line each.
    pub(super) refused: Vec<String>,
    /// How the flow gets more traders, and what all use.
    pub(super) door: Door,
}

/// How a test account becomes a trader, and the connection that all of them use.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) client: Client,
    pub(super) clock: Clock,
    chain: Chain,
}

impl Door {
    /// The trader of a test account.
    pub(super) fn trader(&mut self, account: usize) -> Result<Trader, String> {
        Trader::new(&mut self.client, signer(account), self.chain, &self.clock)
    }
}

/// Seeds an exchange that may have been seeded before.
pub(super) fn seed(
    http: SocketAddr,
    admin: SocketAddr,
    plan: &Plan,
    clock: &Clock,
) -> Result<Seeded, String> {
    let mut operator = Client::at(admin);
    let markets = import_catalog(&mut operator, plan)?;
    let addresses: Vec<String> = (0..TEST_KEYS.len())
        .map(|account| String::from_utf8_lossy(&text::checksummed(signer(account).address())).into_owned())
        .collect();
    fund(&mut operator, &addresses)?;
    let chain = Chain::new(plan.chain_id).ok_or("chain_id: no such chain")?;
    let mut door = Door { client: Client::at(http), clock: clock.clone(), chain };
    let quoting = QUOTING.into_iter().map(|account| door.trader(account)).collect::<Result<Vec<_>, _>>()?;
    let refused = quote(&mut door.client, &quoting, &markets)?;
    Ok(Seeded { markets, addresses, quoting, refused, door })
}

fn import_catalog(operator: &mut Client, plan: &Plan) -> Result<Vec<Quoted>, String> {
    let import = Import::read(catalog::DEV.as_bytes(), &plan.market_defaults);
    let import = import.map_err(|fault| format!("the catalog of dev: {fault}"))?;
    import::send(operator, &import, &[], |_, _| ())?;
    Ok(import.markets().iter().filter_map(Quoted::of).collect())
}

fn fund(operator: &mut Client, addresses: &[String]) -> Result<(), String> {
    let mut post = |path: &str, body: &str| operator.post(path, body)?.success();
    post(&format!("/accounts/{DEPOSIT_WALLET}/link"), &format!("{{\"owner\":\"{}\"}}", addresses[0]))?;
    for wallet in addresses.iter().map(String::as_str).chain([DEPOSIT_WALLET]) {
        let body = format!("{{\"amount\":\"{CREDIT}\",\"ref\":\"dev {wallet}\"}}");
        post(&format!("/accounts/{wallet}/credit"), &body)?;
    }
    Ok(())
}

/// Posts the first quotes of every market. The orders are the same at every start, so those that
/// the exchange has seen are answered as the first time and nothing rests twice.
fn quote(client: &mut Client, traders: &[Trader], markets: &[Quoted]) -> Result<Vec<String>, String> {
    let mut refused = Vec::new();
    for (salt_from, market) in (0_u64..).step_by(100).zip(markets) {
        for level in 1..=LEVELS {
            for (index, side) in [Side::Buy, Side::Sell].into_iter().enumerate() {
                let away = i32::from(level) * if side == Side::Buy { -1 } else { 1 };
                let Some(price) = market.price(away) else {
                    continue;
                };
                let (token, price) = market.wish(side, price);
                let wish = Wish {
                    token,
                    neg_risk: market.neg_risk,
                    side: Side::Buy,
                    price,
                    hundredths: QUOTE_HUNDREDTHS,
                    kind: "GTC",
                    salt: 1 + salt_from + u64::from(level) * 2 + u64::from(side == Side::Sell),
                    timestamp_ms: QUOTED_AT_MS,
                };
                let posted = traders[index].post(client, &wish)?;
                if let Posted::Refused(code) = posted {
                    refused.push(format!("quote on {}: {code}", market.question));
                }
            }
        }
    }
    Ok(refused)
}

fn signer(account: usize) -> Signer {
    let secret = parse_hex(TEST_KEYS[account].as_bytes()).expect("test keys are hex");
    Signer::new(secret).expect("test keys are keys")
}

/// The private key of account 0, for the page.
pub(super) fn first_key() -> String {
    let secret: [u8; 32] = parse_hex(TEST_KEYS[0].as_bytes()).expect("test keys are hex");
    hex(&secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_keys_are_the_known_accounts() {
        let address = |account: usize| {
            String::from_utf8_lossy(&text::checksummed(signer(account).address())).into_owned()
        };
        assert_eq!(address(0), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        assert_eq!(address(8), "0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f");
        assert_eq!(address(9), "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720");
    }

    #[test]
    fn every_market_of_dev_can_be_quoted_on_its_grid() {
        let defaults =
            crate::server::plan::terms::market_defaults(&crate::server::plan::options::Options::default())
                .expect("good");
        let import = Import::read(catalog::DEV.as_bytes(), &defaults).expect("a catalog");
        let quoted: Vec<Quoted> = import.markets().iter().filter_map(Quoted::of).collect();
        assert_eq!(quoted.len(), 20);
        for market in &quoted {
            assert!(market.middle.ten_thousandths().is_multiple_of(market.step), "{}", market.question);
            for steps in -3..=3 {
                assert!(market.price(steps).is_some(), "{} {steps}", market.question);
            }
            assert_eq!(market.price(-10_000), None);
        }
    }
}
