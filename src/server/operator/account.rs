//! `outcry account …`: operator money, links and freezes.

use std::process::ExitCode;

use super::client::Client;
use super::made_up_reference;
use super::market::{segment, shown};
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
                    .post(&format!("/accounts/{}/link", segment(wallet)?), &body)?
                    .success()?,
            )
        }
        AccountCommand::Show(name) => {
            shown(&Client::of(&name.admin)?.get(&format!("/accounts/{}", segment(&name.wallet)?))?.success()?)
        }
        AccountCommand::Freeze { wallet, undo } => {
            let path = format!("/accounts/{}/freeze", segment(&wallet.wallet)?);
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
    let path = format!("/accounts/{}/{direction}", segment(&args.wallet.wallet)?);
    let kind = kind.map_or_else(String::new, |kind| format!(",\"kind\":{}", quoted(kind.text())));
    let body = format!("{{\"amount\":{},\"ref\":{}{kind}}}", quoted(&args.amount), quoted(&reference));
    shown(&Client::of(&args.wallet.admin)?.post(&path, &body)?.success()?)
}
