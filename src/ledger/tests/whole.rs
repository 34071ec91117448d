//! What no log can have led to, in a state that was kept.

use super::*;

/// What is changed in a whole state, and which field is named for it.
type Change = (&'static str, fn(&mut Ledger));

const NOBODY: WalletNo = WalletNo(9);
const NOWHERE: MarketNo = MarketNo(9);
const KEY: ApiKey = ApiKey([7; 16]);

/// The one order, which rests.
fn bid(ledger: &mut Ledger) -> &mut OrderRow {
    ledger.orders.values_mut().next().expect("it rests")
}

/// Another market, that differs from the first one in as many of its names.
fn twin(ledger: &mut Ledger, names: usize) {
    let mut row = MarketRow { market: MarketNo(1), live: BTreeSet::new(), ..ledger.markets[0].clone() };
    if 0 < names {
        row.condition.0[0] ^= 1;
    }
    if 1 < names {
        row.tokens = [TokenId([5; 32]), TokenId([6; 32])];
    }
    ledger.markets.push(row);
}

fn act(ledger: &mut Ledger, position: Position, wallet: WalletNo, market: MarketNo) {
    let (id, collateral) = (OrderId([9; 32]), Collateral(1));
    let row = ActRow { position, id, wallet, market, shares: [Shares(1); 2], collateral, timestamp_ms: 1 };
    ledger.by_id.insert(id, position);
    ledger.acts.insert(position, row);
}

const fn breaker(quantity: u64, interval_ms: u64) -> BreakerState {
    BreakerState { quantity: Shares(quantity), interval_ms, tripped: false }
}

const CHANGES: &[Change] = &[
    ("number of a wallet", |ledger| ledger.wallets[1].wallet = ALICE),
    ("principal of a wallet", |ledger| ledger.wallets[2].principal = Some(NOBODY)),
    ("principal of a wallet", |ledger| ledger.wallets[1].principal = Some(ALICE)),
    ("freeze of a wallet", |ledger| ledger.wallets[2].frozen = true),
    ("address of a wallet", |ledger| ledger.wallets[1].address = ledger.wallets[0].address),
    ("kind of a wallet", |ledger| {
        for (number, byte) in [(2, 3), (3, 4)] {
            let row = WalletRow {
                wallet: WalletNo(number),
                address: Address([byte; 20]),
                kind: WalletKind::Fee,
                principal: None,
                ..ledger.wallets[2].clone()
            };
            ledger.wallets.truncate(WalletNo(number).index());
            ledger.wallets.push(row);
        }
    }),
    ("principal of a key", |ledger| {
        let row = KeyRow { generation: 0, active: true, changed: TimeMs(1) };
        ledger.keys.insert((NOBODY, Word::ZERO), row);
    }),
    ("principal of a key", |ledger| {
        ledger.switches.insert((NOBODY, KEY));
    }),
    ("principal of a key", |ledger| {
        ledger.breakers.insert((NOBODY, KEY), breaker(1, 1));
    }),
    ("breaker of a key", |ledger| {
        ledger.breakers.insert((ALICE, KEY), breaker(0, 1));
    }),
    ("breaker of a key", |ledger| {
        ledger.breakers.insert((ALICE, KEY), breaker(1, 0));
    }),
    ("number of an event", |ledger| {
        ledger.events.push(EventRow { event: 1, added: TimeMs(1), text: "{}".into() });
    }),
    ("number of an item", |ledger| {
        ledger.items.push(ItemRow { item: 1, kind: ItemKind::Tag, added: TimeMs(1), text: "{}".into() });
    }),
    ("number of a market", |ledger| ledger.markets[0].market = NOWHERE),
    ("event of a market", |ledger| ledger.markets[0].event = Some(0)),
    ("payout of a market", |ledger| ledger.markets[0].payout = Payout::new(0)),
    ("payout of a market", |ledger| ledger.markets[0].mode = Mode::Resolved),
    ("condition of a market", |ledger| twin(ledger, 0)),
    ("token of a market", |ledger| twin(ledger, 1)),
    ("id of a market", |ledger| twin(ledger, 2)),
    ("id of an order", |ledger| ledger.by_id.clear()),
    ("number of orders", |ledger| ledger.orders_ever = 0),
    ("market of an order", |ledger| bid(ledger).market = NOWHERE),
    ("wallet of an order", |ledger| bid(ledger).wallet = NOBODY),
    ("wallet of an order", |ledger| bid(ledger).principal = NOBODY),
    ("position of an order", |ledger| ledger.end = bid(ledger).position),
    ("open shares of an order", |ledger| bid(ledger).open = Shares::ZERO),
    ("open shares of an order", |ledger| bid(ledger).state = OrderState::Filled),
    ("live orders of a market", |ledger| ledger.markets[0].live.clear()),
    ("live orders of a market", |ledger| {
        ledger.markets[0].live.insert(Position(1));
    }),
    ("price of an order", |ledger| bid(ledger).price = Price::new(4_050).expect("in range")),
    ("place of an order", |ledger| {
        ledger.places.insert(Position(1), Position(2));
    }),
    ("holding", |ledger| {
        ledger.holdings.insert((NOBODY, MARKET), [Shares(1); 2]);
    }),
    ("holding", |ledger| {
        ledger.holdings.insert((ALICE, NOWHERE), [Shares(1); 2]);
    }),
    ("act", |ledger| act(ledger, ledger.end, ALICE, MARKET)),
    ("act", |ledger| act(ledger, Position(1), NOBODY, MARKET)),
    ("act", |ledger| act(ledger, Position(1), ALICE, NOWHERE)),
    ("wallet of a reference", |ledger| {
        ledger.money.get_mut("opening 1").expect("it was credited").wallet = NOBODY;
    }),
    ("principal of a tombstone", |ledger| {
        let (id, time, until) = (OrderId([9; 32]), TimeMs(1), TimeMs(2));
        ledger.tombstones.put(Tombstone { time, id, principal: NOBODY, until });
    }),
    ("remembered hashes", |ledger| ledger.checkpoints = [(Position(2), 0), (Position(1), 0)].into()),
    ("remembered hashes", |ledger| ledger.checkpoints = [(Position(u64::MAX), 0)].into()),
    ("remembered hashes", |ledger| {
        let ends = 1..=CHECKPOINTS_MAX as u64 + 1;
        ledger.end = Position(*ends.end());
        ledger.checkpoints = ends.map(|end| (Position(end), 0)).collect();
    }),
];

#[test]
fn whatever_a_kept_state_says_against_itself_is_named() {
    let mut log = Log::opened();
    log.says(third(WalletKind::Safe, Some(ALICE)));
    log.says(order(ALICE, Side::Buy, Outcome::Zero, 40, 1));
    assert_eq!(log.ledger.check_whole(), Ok(()));
    for (field, change) in CHANGES {
        let mut ledger = log.ledger.clone();
        change(&mut ledger);
        assert_eq!(ledger.check_whole(), Err(*field));
    }
}
