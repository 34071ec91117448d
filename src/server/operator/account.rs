//! `outcry account …`: operator money, links and freezes.

use std::process::ExitCode;

use super::client::Client;
use super::made_up_reference;
use super::market::shown;
use super::request;
use crate::catalog::quoted;
use crate::server::plan::command::{AccountCommand, CreditedKind, MoneyArgs};
use crate::server::process::run::complain;

/// Does one `account` command.
pub(crate) fn run(command: &AccountCommand) -> Result<ExitCode, String> {
    match command {
        AccountCommand::Credit { money: args, kind } => money(args, "credit", *kind),
        AccountCommand::Debit(args) => money(args, "debit", None),
        AccountCommand::Link { admin, wallet, owner } => {
            let body = format!("{{\"owner\":{}}}", quoted(owner));
            shown(
                &Client::of(admin)?
                    .post(&format!("/accounts/{}/link", checked(wallet)?), &body)?
                    .success()?,
            )
        }
        AccountCommand::Show(name) => {
            shown(&Client::of(&name.admin)?.get(&format!("/accounts/{}", checked(&name.wallet)?))?.success()?)
        }
        AccountCommand::Freeze { wallet, undo } => {
            let path = format!("/accounts/{}/freeze", checked(&wallet.wallet)?);
            shown(&Client::of(&wallet.admin)?.post(&path, &format!("{{\"frozen\":{}}}", !undo))?.success()?)
        }
    }
}

/// The reference is made up here, before anything is sent: if the answer is lost, the same
/// command with `--ref` finds out what became of it and moves nothing twice.
fn money(args: &MoneyArgs, direction: &str, kind: Option<CreditedKind>) -> Result<ExitCode, String> {
    let reference = if let Some(reference) = &args.reference {
        reference.clone()
    } else {
        let reference = made_up_reference(direction)?;
        complain(&format!("--ref {reference}"));
        reference
    };
    let path = format!("/accounts/{}/{direction}", checked(&args.wallet.wallet)?);
    let kind = kind.map_or_else(String::new, |kind| format!(",\"kind\":{}", quoted(kind.text())));
    let body = format!("{{\"amount\":{},\"ref\":{}{kind}}}", quoted(&args.amount), quoted(&reference));
    shown(&Client::of(&args.wallet.admin)?.post(&path, &body)?.success()?)
}

/// A wallet's name for a path, checked as the listener checks it: what could mean another path is refused here.
fn checked(wallet: &str) -> Result<&str, String> {
    if wallet != "fees" {
        request::address("wallet", wallet).map_err(|refusal| refusal.to_string())?;
    }
    Ok(wallet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_be_another_path_is_refused() {
        for name in ["fees", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"] {
            assert_eq!(checked(name), Ok(name));
        }
        for name in ["fees/debit", "../mode", "0x12?x"] {
            let said = format!("wallet: got {name}; allowed: 0x and 40 hex digits");
            assert_eq!(checked(name), Err(said));
        }
    }
}
