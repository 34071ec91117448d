//! The shared structures under loom: every interleaving, and every value that the memory model
//! lets a load return, up to a bounded number of preemptions.
//!
//! The sources are those of the crate, included by path; `memory/sync.rs` gives them loom's
//! atomics. Each model states one fact that the structures' invariants promise.
#![cfg(loom)]
#![allow(dead_code, unused_imports, reason = "the included files hold more than the models use")]

#[path = "."]
pub mod domain {
    #[path = "../../src/domain/amount.rs"]
    pub mod amount;
    #[path = "../../src/domain/ids.rs"]
    pub mod ids;
    pub use amount::Collateral;
    pub use ids::{Position, ShardNo, WalletNo};
}

#[path = "."]
pub mod memory {
    #[path = "../../src/memory/ahead.rs"]
    pub mod ahead;
    #[path = "../../src/memory/cells.rs"]
    pub mod cells;
    #[path = "../../src/memory/padded.rs"]
    pub mod padded;
    /// A model is small, so its memory is not touched in advance.
    pub mod pages {
        pub fn filled_with<T>(count: usize, value: impl FnMut() -> T) -> Vec<T> {
            std::iter::repeat_with(value).take(count).collect()
        }
    }
    #[path = "../../src/memory/ring.rs"]
    pub mod ring;
    #[path = "../../src/memory/sync.rs"]
    pub mod sync;
}

#[path = "."]
pub mod journal {
    #[path = "../../src/journal/checksum.rs"]
    mod checksum;
    #[path = "../../src/journal/frame.rs"]
    pub mod frame;
    #[path = "../../src/journal/log.rs"]
    pub mod log;
    #[path = "../../src/journal/mark.rs"]
    pub mod mark;
}

#[path = "."]
pub mod limits {
    #[path = "../../src/limits/buckets.rs"]
    mod buckets;
    #[cfg(test)]
    #[path = "limits.rs"]
    mod models;
    #[path = "../../src/limits/moment.rs"]
    mod moment;
    #[path = "../../src/limits/rate.rs"]
    mod rate;
    #[path = "../../src/limits/scope.rs"]
    mod scope;
}

#[cfg(test)]
mod laps;

#[cfg(test)]
mod models {
    use crate::domain::{Collateral, Position, ShardNo, WalletNo};
    use crate::journal::frame::FRAME_HEADER_BYTES;
    use crate::journal::log::{Log, Look};
    use crate::journal::mark::CommittedMark;
    use crate::memory::cells::Cells;
    use crate::memory::ring::ring;
    use loom::sync::Arc;
    use loom::thread;

    /// Frames of one line: a header, this many bytes of payload, zeros.
    const PAYLOAD: usize = 16;
    const FRAME: u64 = 64;
    const RING_BYTES: u64 = 512;

    const WALLET: WalletNo = WalletNo(0);
    const HOME: ShardNo = ShardNo(0);
    const AWAY: ShardNo = ShardNo(1);

    fn payload(mark: u8) -> [u8; PAYLOAD] {
        [mark; PAYLOAD]
    }

    /// The payload of the frame at `at`, which must be whole.
    fn read(log: &Log, at: Position) -> Result<[u8; PAYLOAD], Look> {
        let mut frame = [0; FRAME as usize];
        match log.copy(at, &mut frame) {
            Look::Bytes(bytes) => {
                assert!(bytes as u64 == FRAME);
                Ok(frame[FRAME_HEADER_BYTES..][..PAYLOAD].try_into().unwrap())
            }
            other => Err(other),
        }
    }

    #[test]
    fn what_goes_into_a_ring_comes_out_whole_and_in_order() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring::<[u64; 2]>(2);
            let filling = thread::spawn(move || {
                for value in 1..=3_u64 {
                    while producer.push(&[value, value]).is_err() {
                        thread::yield_now();
                    }
                }
            });
            for value in 1..=3_u64 {
                loop {
                    let seen = consumer.peek(0, |value| *value);
                    if let Some(behind) = consumer.peek(1, |value| *value) {
                        assert!(behind == [value + 1, value + 1]);
                    }
                    if let Some(popped) = consumer.pop() {
                        assert!(popped == [value, value]);
                        assert!(seen.is_none_or(|seen| seen == popped));
                        break;
                    }
                    assert!(seen.is_none());
                    thread::yield_now();
                }
            }
            assert!(consumer.pop().is_none());
            filling.join().unwrap();
        });
    }

    #[test]
    fn below_a_mark_every_frame_is_committed_and_whole() {
        loom::model(|| {
            let log = Arc::new(Log::anonymous(RING_BYTES));
            let first = log.claimed();
            let claimers: Vec<_> = [1, 2]
                .into_iter()
                .map(|mark| {
                    let log = Arc::clone(&log);
                    thread::spawn(move || {
                        let claim = log.claim(PAYLOAD);
                        log.commit(claim, 16, &payload(mark))
                    })
                })
                .collect();
            let mut walker = CommittedMark::new(&log);
            let end = walker.advance(&log);
            let mut at = first;
            while at < end {
                let found = read(&log, at).expect("a mark was past it");
                assert!(found == payload(1) || found == payload(2));
                at = Position(at.0 + FRAME);
            }
            let spans: Vec<_> = claimers.into_iter().map(|claimer| claimer.join().unwrap()).collect();
            assert!(spans[0].start != spans[1].start);
            assert!(walker.advance(&log) == Position(first.0 + 2 * FRAME));
        });
    }

    #[test]
    fn a_hole_holds_back_every_mark() {
        loom::model(|| {
            let log = Arc::new(Log::anonymous(RING_BYTES));
            let hole = log.claim(PAYLOAD);
            let behind = {
                let log = Arc::clone(&log);
                thread::spawn(move || log.append(16, &payload(2)))
            };
            let mut walker = CommittedMark::new(&log);
            let start = walker.position();
            assert!(walker.advance(&log) == start);
            let span = behind.join().unwrap();
            assert!(walker.advance(&log) == start);
            log.commit(hole, 16, &payload(1));
            assert!(walker.advance(&log) == span.end);
        });
    }

    #[test]
    fn a_reader_that_was_overtaken_says_so_and_never_returns_torn_bytes() {
        loom::model(|| {
            let log = Arc::new(Log::anonymous(RING_BYTES));
            let span = log.append(16, &payload(1));
            let freeing = {
                let log = Arc::clone(&log);
                thread::spawn(move || log.free(span.end))
            };
            match read(&log, span.start) {
                Ok(found) => assert!(found == payload(1)),
                Err(look) => assert!(look == Look::Lapped),
            }
            freeing.join().unwrap();
            assert!(read(&log, span.start) == Err(Look::Lapped));
        });
    }

    #[test]
    fn who_relies_on_money_that_falls_is_told() {
        loom::model(|| {
            let cells = Arc::new(Cells::new(1, 2));
            cells.credit(WALLET, Collateral(10));
            let lowering = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || {
                    assert!(cells.debit(WALLET, Collateral(6)));
                    cells.lowered(WALLET);
                })
            };
            cells.watch(WALLET, HOME);
            let rests = Collateral(10) <= cells.balance(WALLET);
            lowering.join().unwrap();
            assert!(!rests || cells.next_dirty(HOME) == Some(WALLET));
        });
    }

    #[test]
    fn money_that_was_only_lent_for_a_moment_removes_nobody() {
        loom::model(|| {
            let cells = Arc::new(Cells::new(1, 2));
            cells.credit(WALLET, Collateral(10));
            let taking = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || {
                    cells.begin_take(AWAY);
                    assert!(cells.debit(WALLET, Collateral(6)));
                    cells.credit(WALLET, Collateral(6));
                    cells.end_take(AWAY);
                })
            };
            let seen = cells.settled(WALLET, HOME);
            assert!(seen.is_none_or(|balance| balance == Collateral(10)));
            taking.join().unwrap();
            assert!(cells.settled(WALLET, HOME) == Some(Collateral(10)));
        });
    }

    /// A maker rests on one shard while a taker on another spends the wallet's money. In the end
    /// the remover must know that the order is not covered.
    #[test]
    fn maker_taker_and_remover_agree_in_the_end() {
        loom::model(|| {
            let cells = Arc::new(Cells::new(1, 2));
            cells.credit(WALLET, Collateral(10));
            let taking = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || {
                    cells.begin_take(AWAY);
                    let paid = cells.debit(WALLET, Collateral(6));
                    cells.end_take(AWAY);
                    cells.lowered(WALLET);
                    paid
                })
            };
            cells.watch(WALLET, HOME);
            let mut rests = Collateral(10) <= cells.balance(WALLET);
            let mut look = |cells: &Cells| {
                while let Some(wallet) = cells.next_dirty(HOME) {
                    match cells.settled(wallet, HOME) {
                        Some(balance) => rests &= Collateral(10) <= balance,
                        None => {
                            cells.raise(HOME, wallet);
                            break;
                        }
                    }
                }
                rests
            };
            look(&cells);
            assert!(taking.join().unwrap());
            assert!(!look(&cells), "an order rests on money that is gone");
        });
    }

    #[test]
    fn no_raised_flag_is_ever_lost() {
        loom::model(|| {
            let cells = Arc::new(Cells::new(128, 1));
            let raisers: Vec<_> = [WalletNo(1), WalletNo(70)]
                .into_iter()
                .map(|wallet| {
                    let cells = Arc::clone(&cells);
                    thread::spawn(move || cells.raise(HOME, wallet))
                })
                .collect();
            let mut taken = Vec::new();
            taken.extend(cells.next_dirty(HOME));
            for raiser in raisers {
                raiser.join().unwrap();
            }
            while let Some(wallet) = cells.next_dirty(HOME) {
                taken.push(wallet);
            }
            taken.sort();
            assert!(taken == [WalletNo(1), WalletNo(70)]);
            assert!(!cells.any_dirty(HOME));
        });
    }
}
