//! What clients' API keys were made with: the chain, and which master secret. With another one of either no client could
//! log in, and nothing else would say why.
//!
//! | `keys-made-with` in the data directory | |
//! |---|---|
//! | `chain N` | `chain_id` in force |
//! | `secret HEX` | the master secret's fingerprint, of which nobody can tell the secret |
//!
//! The first start writes it. Whoever wants another chain or secret in earnest removes it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::secret::{SECRET_BYTES, hex_digits};
use crate::auth::MasterSecret;
use crate::journal::Disk;

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("keys-made-with")
}

fn fingerprint(secret: &[u8; SECRET_BYTES]) -> String {
    hex_digits(&MasterSecret::new(secret).fingerprint())
}

/// Refuses a secret, or a chain if one is given, that is not what clients' keys were made with.
pub(super) fn refuse_others(
    data_dir: &Path,
    secret: &[u8; SECRET_BYTES],
    chain_id: Option<u64>,
) -> Result<(), String> {
    let path = path(data_dir);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(()),
        Err(fault) => return Err(format!("master secret: {}: {fault}", path.display())),
    };
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let made_for = line("chain").and_then(|chain| chain.parse::<u64>().ok());
    let at = path.display();
    let in_earnest = format!("or `rm {at}` if that is meant: then every client has to make its keys again");
    let (Some(made_for), Some(made_with)) = (made_for, line("secret")) else {
        return Err(format!(
            "master secret: {at} is not two lines `chain N` and `secret HEX`; restore it, {in_earnest}"
        ));
    };
    if let Some(got) = chain_id.filter(|got| *got != made_for) {
        return Err(format!(
            "chain_id: got {got}, and clients' API keys were made for {made_for}; set it to {made_for}, {in_earnest}"
        ));
    }
    if fingerprint(secret) != made_with {
        return Err(format!(
            "master secret: it is another than the one that clients' API keys were made with; restore that, \
             {in_earnest}"
        ));
    }
    Ok(())
}

/// Writes down what the keys of a new exchange are made with.
pub(super) fn keep(data_dir: &Path, secret: &[u8; SECRET_BYTES], chain_id: u64) -> Result<(), String> {
    let path = path(data_dir);
    if path.exists() {
        return Ok(());
    }
    let text = format!("chain {chain_id}\nsecret {}\n", fingerprint(secret));
    Disk::default().replace(&path, text.as_bytes()).map_err(|fault| format!("master secret: {fault}"))
}

/// Forgets it: another secret is being made on purpose.
pub(super) fn forget(data_dir: &Path) -> Result<(), String> {
    let path = path(data_dir);
    match fs::remove_file(&path) {
        Err(fault) if fault.kind() != ErrorKind::NotFound => {
            Err(format!("master secret: {}: {fault}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; SECRET_BYTES] = [7; SECRET_BYTES];
    const OTHER: [u8; SECRET_BYTES] = [8; SECRET_BYTES];

    #[test]
    fn another_secret_or_chain_is_refused_until_the_file_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path();
        assert_eq!(refuse_others(data, &SECRET, Some(137)), Ok(()), "nothing is kept yet");
        keep(data, &SECRET, 137).expect("kept");
        keep(data, &OTHER, 80_002).expect("the first counts");
        for (secret, chain_id, refused) in [
            (&SECRET, Some(137), None),
            (&SECRET, None, None),
            (
                &SECRET,
                Some(80_002),
                Some("chain_id: got 80002, and clients' API keys were made for 137; set it"),
            ),
            (
                &OTHER,
                Some(137),
                Some("master secret: it is another than the one that clients' API keys were"),
            ),
            (&OTHER, None, Some("master secret: it is another than the one that clients' API keys were")),
        ] {
            let fault = refuse_others(data, secret, chain_id).err();
            let is_as_said = match (&fault, refused) {
                (None, None) => true,
                (Some(fault), Some(refused)) => fault.starts_with(refused) && fault.contains("`rm "),
                _ => false,
            };
            assert!(is_as_said, "{chain_id:?} {fault:?}");
        }
        forget(data).expect("forgotten");
        forget(data).expect("nothing to forget");
        assert_eq!(refuse_others(data, &OTHER, Some(80_002)), Ok(()));
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        for damaged in ["", "chain x\nsecret 00\n", "chain 137\n", "secret 00\n"] {
            fs::write(path(folder.path()), damaged).expect("written");
            let fault = refuse_others(folder.path(), &SECRET, None).expect_err("refused");
            assert!(fault.contains("is not two lines `chain N` and `secret HEX`; restore it"), "{fault}");
        }
    }
}
