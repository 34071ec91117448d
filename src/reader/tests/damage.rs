//! A snapshot whose checksums are right and whose content cannot be: it is refused, and nothing panics.

use super::*;
use crate::domain::ItemKind;
use crate::journal::layout::{
    BreakerSet, ItemText, KeyChanged, OrdersReplaced, Quote, SwitchArmed, Tombstone,
};
use crate::memory::sections::Name;
use crate::memory::wire::Damage;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Sections = Vec<(Name, Vec<u8>)>;

/// The number of no wallet, market, trade, event or item.
const NONE: &[u8] = &[99, 0, 0, 0];
/// A position, a time or an amount that is far ahead.
const FAR: &[u8] = &[0xff; 7];

/// Each is wrong alone: a section, where in its first bytes (or last, if negative), what is written over it, and
/// what is refused.
const WRONG: &[(&Name, isize, &[u8], &str)] = &[
    (b"wallets ", 0, NONE, "number of a wallet"),
    (b"wallets ", 24, &[1], "principal of a wallet"),
    (b"wallets ", 26, NONE, "principal of a wallet"),
    (b"wallets ", 30, &[1], "conservation"),
    // The last byte of Bob's address makes it Alice's; the third wallet is a safe.
    (b"wallets ", 39 + 23, &[0], "address of a wallet"),
    (b"wallets ", 2 * 39 + 38, &[1], "freeze of a wallet"),
    (b"keys    ", 0, NONE, "principal of a key"),
    (b"switches", 0, NONE, "principal of a key"),
    (b"breakers", 0, NONE, "principal of a key"),
    (b"breakers", 20, &[0; 8], "breaker of a key"),
    (b"events  ", 0, NONE, "number of an event"),
    (b"items   ", 0, NONE, "number of an item"),
    (b"markets ", 0, NONE, "number of a market"),
    (b"markets ", 5, NONE, "event of a market"),
    (b"markets ", 13, &1_001_u16.to_le_bytes(), "id of a market"),
    (b"markets ", 21, &[0, 0, 0, 1], "condition of a market"),
    (b"markets ", 113, &310_u32.to_be_bytes(), "token of a market"),
    (b"holdings", 0, NONE, "holding"),
    (b"holdings", 4, NONE, "holding"),
    (b"holdings", 8, &[1], "conservation"),
    (b"orders  ", 0, FAR, "position of an order"),
    (b"orders  ", 56, NONE, "market of an order"),
    (b"orders  ", 61, NONE, "wallet of an order"),
    (b"orders  ", 65, NONE, "wallet of an order"),
    (b"acts    ", 40, NONE, "act"),
    (b"acts    ", 44, NONE, "act"),
    (b"money   ", 13, NONE, "wallet of a reference"),
    (b"tombs   ", 76, NONE, "principal of a tombstone"),
    (b"places  ", 0, FAR, "place of an order"),
    (b"hashes  ", 0, FAR, "remembered hashes"),
    (b"sums    ", 9, &[1], "conservation"),
    (b"sums    ", -8, &[9], "rows"),
    (b"trades2 ", 0, FAR, "position of a trade"),
    (b"trades2 ", 24, FAR, "price of a trade"),
    (b"trades2 ", 36, FAR, "position of a trade"),
    (b"walleti2", 4, NONE, "wallets of a principal"),
    // Bob's.
    (b"walleti2", 4, &[1], "wallets of a principal"),
    // Alice's list names her own wallet twice, and her safe not at all.
    (b"walleti2", 8, &[0], "wallets of a principal"),
    (b"walleti2", 16, &[1], "trades of a principal"),
    (b"walleti2", 20, NONE, "trades of a principal"),
    (b"marketi3", 16, FAR, "tape of a market"),
    (b"prices  ", -7, &[9], "minutes"),
    (b"w.held  ", 0, NONE, "place of a holding"),
    (b"w.held  ", 4, NONE, "place of a holding"),
    (b"w.held  ", 8, &[0], "markets of a wallet"),
    (b"w.held  ", 9, &[1], "shares of a holding"),
    (b"w.acts  ", 0, FAR, "row of activity"),
    (b"w.acts  ", 8, FAR, "row of activity"),
    (b"w.acts  ", 32, NONE, "place of activity"),
    (b"w.acts  ", 36, &[0; 4], "row of activity"),
    (b"w.acts  ", 44, &[0], "row of activity"),
    (b"w.acts  ", -48, FAR, "row of activity"),
    (b"w.stand ", 0, &[0; 16], "hours of a wallet"),
    (b"w.stand ", 16, &[0; 16], "hours of a wallet"),
    (b"w.stand ", 32, &[0; 8], "hours of a wallet"),
    (b"w.stand ", 56, NONE, "markets of a wallet"),
    (b"w.stand ", 64, &[0xff; 8], "hours of a wallet"),
];

/// A state in which no part is empty.
fn kept() -> Sections {
    let mut exchange = Exchange::opened();
    exchange.splits(ALICE, 100);
    let ask = exchange.rests(ALICE, Side::Sell, Outcome::Zero, 60, 20);
    for shares in [5, 3] {
        let taker = exchange.order(BOB, Side::Buy, Outcome::Zero, 60, shares);
        exchange.fills(taker, &[(ask, shares)]);
    }
    let bid = exchange.rests(CAROL, Side::Buy, Outcome::Zero, 30, 10);
    let order = exchange.order(CAROL, Side::Buy, Outcome::Zero, 30, 10);
    let (time, key) = (exchange.time(), key(ALICE));
    let placed = vec![Quote { order, takes_place_of: Some(bid) }];
    exchange.says(OrdersReplaced { time, market: RAIN, removed: vec![bid], placed });
    exchange.says(KeyChanged { time, principal: ALICE, nonce: Word::ZERO, generation: 0, active: true });
    exchange.says(SwitchArmed { time, principal: ALICE, key, armed: true });
    let (quantity, interval_ms) = (Shares(SHARE), 1_000);
    exchange.says(BreakerSet { time, principal: ALICE, key, quantity, interval_ms, tripped: false });
    let until = TimeMs(time.0 + Tombstone::LIFE_MS);
    exchange.says(Tombstone { time, id: OrderId([9; 32]), principal: ALICE, until });
    let text = r#"{"id":"5","label":"Sky","slug":"sky"}"#.into();
    exchange.says(ItemText { time, kind: ItemKind::Tag, item: 0, text });
    // A hash is remembered after 64 frames.
    for number in 0..50 {
        let (direction, amount) = (MoneyDirection::Credit, Collateral(SHARE));
        exchange.says(Money { time, wallet: BOB, direction, amount, reference: format!("z{number}") });
    }
    let mut sections = Sections::new();
    exchange.reader.keep(&mut sections);
    sections
}

fn load(sections: &Sections) -> Result<Reader, Damage> {
    let mut reader = Reader::new(Exchange::opened_settings());
    for (name, bytes) in sections {
        reader.take_section(*name, bytes)?;
    }
    reader.complete()?;
    Ok(reader)
}

#[test]
fn content_that_cannot_be_is_refused_by_name() {
    let kept = kept();
    assert!(load(&kept).is_ok());
    for &(name, place, bytes, field) in WRONG {
        let shown = format!("{} {place}", String::from_utf8_lossy(name));
        let mut wrong = kept.clone();
        let section = wrong.iter_mut().find(|section| section.0 == *name);
        let section = &mut section.unwrap_or_else(|| panic!("no section {shown}")).1;
        let start = usize::try_from(place).unwrap_or_else(|_| section.len() - place.unsigned_abs());
        let old = &mut section[start..start + bytes.len()];
        assert_ne!(old, bytes, "{shown}");
        old.copy_from_slice(bytes);
        let damage = load(&wrong).err().map(|damage| damage.field);
        assert_eq!(damage, Some(field), "{shown}");
    }
}

#[test]
fn a_wallet_that_its_owner_s_list_leaves_out_is_noticed() {
    let mut kept = kept();
    let section = kept.iter_mut().find(|section| section.0 == *b"walleti2").expect("wallets");
    // Alice's list is the first: its length, her own wallet, her safe.
    assert_eq!(section.1[..4], 2_u32.to_le_bytes());
    section.1[..4].copy_from_slice(&1_u32.to_le_bytes());
    section.1.drain(8..12);
    assert_eq!(load(&kept).err().map(|damage| damage.field), Some("owner of a wallet"));
}

#[test]
fn sections_in_another_order_are_refused() {
    let kept = kept();
    let (first, last) = (kept.first().expect("a section"), kept.last().expect("a section"));
    let sums = kept.iter().find(|section| section.0 == *b"sums    ").expect("sums");
    for wrong in [[sums, first], [last, sums]] {
        let damage = load(&wrong.map(Clone::clone).to_vec()).err().map(|damage| damage.field);
        assert!(matches!(damage, Some("order of the sections" | "rows")), "{damage:?}");
    }
    let mut twice = kept.clone();
    twice.push(first.clone());
    assert_eq!(load(&twice).err().map(|damage| damage.field), Some("order of the sections"));
}

#[test]
fn any_damaged_section_loads_or_is_refused() {
    const SEED: u64 = 0x00c0_ffee;
    const ROUNDS: usize = 150;
    let kept = kept();
    let mut state = SEED;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    for index in 0..kept.len() {
        for round in 0..ROUNDS {
            let mut wrong = kept.clone();
            let (name, section) = &mut wrong[index];
            let place = random(section.len());
            let was = section[place];
            match random(8) {
                0 => section.truncate(place),
                1 => section[place] = 0xff,
                2 => section[place] = 0,
                3 => section[place..].fill(0xff),
                _ => section[place] ^= 1 << random(8),
            }
            let shown =
                format!("seed {SEED}: {} round {round}, place {place}, {was}", String::from_utf8_lossy(name));
            let loaded = catch_unwind(AssertUnwindSafe(|| {
                if let Ok(reader) = load(&wrong) {
                    reader.keep(&mut Sections::new());
                }
            }));
            assert!(loaded.is_ok(), "{shown}");
        }
    }
}
