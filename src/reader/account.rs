//! What an account may spend and do.

mod whole;

#[cfg(test)]
pub(super) use whole::ROWS_MAX;

use super::ask::{Asked, Refused, WORD_RULE, bad_parameter, no_market};
use super::{Caller, Reader};
use crate::auth::derive;
use crate::domain::{Address, Collateral, SignatureType, WalletKind, WalletNo, Word};
use crate::json::Writer;

/// What an exchange contract may move of a wallet's funds: everything, because without a chain
/// there is nothing to approve.
const ALLOWANCE: Word = Word([0xff; 32]);

impl Reader {
    /// GET /balance-allowance: the wallet of the signature type, its collateral or one token.
    pub(super) fn balance(
        &self,
        caller: Caller,
        asked: &Asked<'_>,
        json: &mut Writer<'_>,
    ) -> Result<(), Refused> {
        const TYPES: &str = "COLLATERAL or CONDITIONAL";
        let invalid_type = Refused::new(400, "invalid_asset_type", "Invalid asset type");
        let wallet = self.wallet_of(caller.principal, signature_type(asked)?);
        let asset = asked.text("asset_type")?.unwrap_or_default();
        let balance = match asset.to_ascii_uppercase().as_str() {
            "COLLATERAL" => {
                // The token is not needed here, but a malformed one is a mistake all the same.
                let invalid_token = Refused::new(400, "invalid_token_id", "Invalid token id");
                asked.token_filter("token_id", invalid_token)?;
                let row = wallet.and_then(|wallet| self.ledger.wallet(wallet));
                row.map_or(Collateral::ZERO, |row| row.cell).0
            }
            "CONDITIONAL" => {
                let token = self.token_of(asked, "token_id", no_market())?;
                let held = wallet.map(|wallet| self.ledger.holding(wallet, token.market));
                held.map_or(0, |held| held[token.outcome.index()].0)
            }
            _ => return Err(invalid_type.about("asset_type", &asset, TYPES)),
        };
        json.open_object().key("balance").number_text(balance);
        json.key("allowance").uint256(&ALLOWANCE).key("allowances").open_object();
        for exchange in &self.settings.exchanges {
            json.address(exchange).names().uint256(&ALLOWANCE);
        }
        json.close_object().close_object();
        Ok(())
    }

    /// The wallet of `principal` that orders of this signature type trade with.
    fn wallet_of(&self, principal: WalletNo, signature_type: SignatureType) -> Option<WalletNo> {
        let wallets = &self.index.principal(principal)?.wallets;
        let of_kind = |kind: WalletKind| {
            let is_kind = |wallet: &WalletNo| self.ledger.wallet(*wallet).is_some_and(|row| row.kind == kind);
            wallets.iter().copied().find(is_kind)
        };
        // What was credited as a deposit wallet before its owner was known stays one, also at a derived address.
        let at_derived = |derived: fn(&Address) -> Address| {
            let address = derived(&self.ledger.wallet(principal)?.address);
            let is_there =
                |wallet: &WalletNo| self.ledger.wallet(*wallet).is_some_and(|row| row.address == address);
            wallets.iter().copied().find(is_there)
        };
        match signature_type {
            SignatureType::Eoa => of_kind(WalletKind::Eoa),
            SignatureType::Proxy => of_kind(WalletKind::Proxy).or_else(|| at_derived(derive::proxy)),
            SignatureType::Safe => of_kind(WalletKind::Safe).or_else(|| at_derived(derive::safe)),
            // A deposit wallet may have the very address of its owner's proxy wallet; then it is
            // recorded as the proxy.
            SignatureType::Deposit => of_kind(WalletKind::Deposit).or_else(|| of_kind(WalletKind::Proxy)),
        }
    }

    /// GET /auth/ban-status/closed-only: a frozen principal places nothing new.
    pub(super) fn closed_only(&self, caller: Caller, json: &mut Writer<'_>) {
        let frozen = self.ledger.wallet(caller.principal).is_some_and(|row| row.frozen);
        json.open_object().key("closed_only").boolean(frozen).key("closedOnly").boolean(frozen);
        json.close_object();
    }
}

fn signature_type(asked: &Asked<'_>) -> Result<SignatureType, Refused> {
    const RULE: &str = "0 (EOA), 1 (proxy), 2 (safe) or 3 (deposit wallet)";
    let Some(number) = asked.integer("signature_type", bad_parameter())? else {
        return Ok(SignatureType::Eoa);
    };
    let known = u8::try_from(number).ok().and_then(SignatureType::from_byte);
    let text = asked.text("signature_type")?.unwrap_or_default();
    known.ok_or(bad_parameter().about("signature_type", &text, RULE))
}

/// GET /order-scoring: no order earns rewards here.
pub(super) fn order_scoring(asked: &Asked<'_>, json: &mut Writer<'_>) -> Result<(), Refused> {
    let refused = Refused::new(400, "invalid_order_id", "Invalid orderID");
    if asked.order_filter("order_id", refused.clone())?.is_none() {
        return Err(refused.about("order_id", "", WORD_RULE));
    }
    json.open_object().key("scoring").boolean(false).close_object();
    Ok(())
}

/// POST /orders-scoring: no order earns rewards here, for each of several.
pub(super) fn orders_scoring(asked: &Asked<'_>, json: &mut Writer<'_>) {
    json.open_object();
    for id in asked.order_ids() {
        json.order_id(id).names().boolean(false);
    }
    json.close_object();
}

/// DELETE /notifications: there never are any.
pub(super) fn no_notifications_dropped(json: &mut Writer<'_>) {
    json.open_object().key("deleted").open_array().close_array().close_object();
}
