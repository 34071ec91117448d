//! Rebuilding the registry and the cells from what the log says.

use crate::domain::{ShardNo, WalletKind};
use crate::ledger::Ledger;
use crate::memory::cells::Cells;
use crate::registry::{Full, KeyState, MarketFacts, RegistryWriter};

/// Fills an empty registry and empty cells with the state after recovery. Refuses if they are too
/// small for it; then they must be dropped.
pub fn restore(ledger: &Ledger, writer: &mut RegistryWriter, cells: &Cells) -> Result<(), Full> {
    assert!(writer.registry().wallet_count() == 0, "a registry is restored once, before it serves");
    wallets(ledger, writer, cells)?;
    for (principal, nonce, row) in ledger.keys() {
        writer.set_key(principal, *nonce, KeyState { generation: row.generation, active: row.active })?;
    }
    for row in ledger.markets() {
        let added = writer.add_market(&MarketFacts {
            condition: row.condition,
            tokens: row.tokens,
            market_id: row.market_id,
            question_id: row.question,
            neg_risk: row.neg_risk,
            min_size: row.min_size,
            fee: row.fee,
            shard_key: row.shard_key,
            tick: row.tick,
            mode: row.mode,
            payout: row.payout,
        })?;
        assert!(added == row.market, "the ledger's numbers are dense");
    }
    for (principal, key, row) in ledger.breakers() {
        writer.set_breaker(principal, key, *row)?;
    }
    writer.set_exchange_mode(ledger.exchange_mode());
    // Which shard collected a fee is not in the log: shards are made at every start.
    cells.fee_credit(ShardNo(0), ledger.fees());
    Ok(())
}

fn wallets(ledger: &Ledger, writer: &mut RegistryWriter, cells: &Cells) -> Result<(), Full> {
    for row in ledger.wallets() {
        // An owner may have come after its deposit wallet: then the wallet is joined below.
        let principal = row.principal.filter(|principal| *principal < row.wallet);
        let added = writer.add_wallet(row.address, row.kind, principal)?;
        assert!(added == row.wallet, "the ledger's numbers are dense");
        cells.credit(row.wallet, row.cell);
    }
    for row in ledger.wallets() {
        match row.principal {
            Some(principal) if row.wallet < principal => writer.link(row.wallet, principal),
            _ => {}
        }
        if row.frozen {
            assert!(row.kind == WalletKind::Eoa, "principals are frozen, not wallets");
            writer.set_frozen(row.wallet, true);
        }
    }
    Ok(())
}
