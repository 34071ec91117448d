//! What the operator puts into wallets and takes out.
//!
//! Every credit and debit has a reference of the operator's, which makes it idempotent: the same again
//! returns the first result, and anything else under that reference is refused.

use super::{Refusal, Registrar};
use crate::domain::{Address, Collateral, ShardNo, TimeMs, WalletKind, WalletNo};
use crate::journal::layout::acts::REFERENCE_BYTES_MAX;
use crate::journal::layout::{Money, MoneyDirection};

/// The most that credits may exceed debits by: 2^62 millionths. Every cell is part of it, so sums of
/// cells, fees and legs stay within 64 bits with room to spare.
pub const OUTSTANDING_MAX: u64 = 1 << 62;

/// What the operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoneyOrder<'a> {
    /// The wallet.
    pub wallet: Address,
    /// How much, but not nothing.
    pub amount: Collateral,
    /// The operator's reference, 1 to 64 bytes.
    pub reference: &'a str,
    /// The kind of a credit's wallet: an owner's own address or a deposit wallet. If it is given, a
    /// known wallet must be of it. An unknown wallet becomes one of it, or an owner's if none is given.
    pub kind: Option<WalletKind>,
}

/// What was done under a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) wallet: WalletNo,
    pub(super) direction: MoneyDirection,
    pub(super) amount: Collateral,
}

impl Registrar {
    /// Puts money into a wallet. True if that was done before under this reference: then nothing is done now.
    pub fn credit(&mut self, now: TimeMs, order: &MoneyOrder<'_>) -> Result<bool, Refusal> {
        if self.was_done(order, MoneyDirection::Credit)? {
            return Ok(true);
        }
        let fits = self.outstanding.checked_add(order.amount.0).filter(|sum| *sum <= OUTSTANDING_MAX);
        let outstanding = fits.ok_or(Refusal::AmountTooLarge)?;
        self.room_for_user()?;
        let wallet = self.wallet_to_credit(now, order)?;
        if self.registry().wallet(wallet).kind == WalletKind::Fee {
            return Err(Refusal::WalletIsForFees);
        }
        // From here on nothing fails. The frame comes first, so that whatever spends the money is later.
        self.record_money(now, wallet, order, MoneyDirection::Credit);
        self.outstanding = outstanding;
        self.cells.credit(wallet, order.amount);
        Ok(false)
    }

    /// The wallet of a credit. An unknown deposit wallet belongs to nobody until it is linked.
    fn wallet_to_credit(&mut self, now: TimeMs, order: &MoneyOrder<'_>) -> Result<WalletNo, Refusal> {
        if let Some(wallet) = self.registry().wallet_of(&order.wallet) {
            let other = order.kind.is_some_and(|kind| kind != self.registry().wallet(wallet).kind);
            return if other { Err(Refusal::WalletOfOtherKind) } else { Ok(wallet) };
        }
        if order.kind != Some(WalletKind::Deposit) {
            return self.owner(now, order.wallet);
        }
        if self.writer.wallets_free() == 0 {
            return Err(Refusal::WalletsFull);
        }
        Ok(self.add_wallet(now, order.wallet, WalletKind::Deposit, None))
    }

    /// Takes the amount out of a wallet, all or nothing. Open orders do not hold it back; their shards
    /// remove those that it leaves uncovered. A debit of the fee wallet takes fees that the shards have
    /// collected. True if it was done before, as for a credit.
    pub fn debit(&mut self, now: TimeMs, order: &MoneyOrder<'_>) -> Result<bool, Refusal> {
        if self.was_done(order, MoneyDirection::Debit)? {
            return Ok(true);
        }
        let wallet = self.registry().wallet_of(&order.wallet).ok_or(Refusal::WalletUnknown)?;
        self.room_for_operator()?;
        match self.registry().wallet(wallet).kind {
            WalletKind::Fee if self.cells.fee_debit(order.amount) => {}
            WalletKind::Fee => return Err(Refusal::NotEnough),
            _ => self.take(wallet, order.amount)?,
        }
        // From here on nothing fails. The money is gone before the frame says so.
        self.record_money(now, wallet, order, MoneyDirection::Debit);
        self.outstanding -= order.amount.0;
        self.cells.lowered(wallet);
        Ok(false)
    }

    /// What there is to debit of a wallet now: its balance, or the fees that the shards have collected.
    #[must_use]
    pub fn available(&self, wallet: &Address) -> Collateral {
        let Some(wallet) = self.registry().wallet_of(wallet) else {
            return Collateral::ZERO;
        };
        match self.registry().wallet(wallet).kind {
            WalletKind::Fee => Collateral((0..self.shards).map(|no| self.cells.fees(ShardNo(no)).0).sum()),
            _ => self.cells.balance(wallet),
        }
    }

    /// Takes the amount out of a cell. A shard may have debited it for an order that it gives up and be about to give
    /// that back, so a cell that is short for the moment is asked again.
    fn take(&self, wallet: WalletNo, amount: Collateral) -> Result<(), Refusal> {
        /// As often as a shard asks.
        const TRIES: u32 = 64;
        for _ in 0..TRIES {
            if self.cells.debit(wallet, amount) {
                return Ok(());
            }
            // This is the loop of shard 0, which is in the middle of nothing.
            if self.cells.settled(wallet, ShardNo(0)).is_some_and(|balance| balance < amount) {
                return Err(Refusal::NotEnough);
            }
            std::hint::spin_loop();
        }
        Err(Refusal::BalanceInUse)
    }

    /// Whether this was done before. Refuses what is not the same under a known reference.
    fn was_done(&self, order: &MoneyOrder<'_>, direction: MoneyDirection) -> Result<bool, Refusal> {
        let reference_bytes = 1..=REFERENCE_BYTES_MAX;
        assert!(reference_bytes.contains(&order.reference.len()), "the request's reader bounds references");
        assert!(!order.amount.is_zero(), "the request's reader takes no movement of nothing");
        let Some(first) = self.references.get(order.reference) else { return Ok(false) };
        let wallet = self.registry().wallet(first.wallet).address;
        let same = wallet == order.wallet && first.direction == direction && first.amount == order.amount;
        if same { Ok(true) } else { Err(Refusal::ReferenceTaken) }
    }

    fn record_money(
        &mut self,
        now: TimeMs,
        wallet: WalletNo,
        order: &MoneyOrder<'_>,
        direction: MoneyDirection,
    ) {
        let time = self.at(now);
        let amount = order.amount;
        let reference = order.reference.to_owned();
        let record = Money { time, wallet, direction, amount, reference: reference.clone() };
        self.append(&record.into());
        self.keep_money(reference, Moved { wallet, direction, amount });
    }

    /// Keeps what was done under a reference, now or before the start.
    pub(super) fn keep_money(&mut self, reference: String, moved: Moved) {
        if moved.direction == MoneyDirection::Credit {
            self.credited.insert(moved.wallet);
        }
        self.references.insert(reference, moved);
    }

    /// Whether the operator ever put money into a wallet of this principal.
    pub(super) fn was_credited(&self, principal: WalletNo) -> bool {
        let mut wallets = self.registry().wallets_of(principal);
        self.credited.contains(&principal) || wallets.any(|wallet| self.credited.contains(&wallet))
    }
}
