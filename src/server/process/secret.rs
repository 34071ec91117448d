//! The master secret that all API credentials are recomputed from: 32 bytes in the data
//! directory, readable by nobody else, never in the log of frames and never printed.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::made_with;
use crate::journal;
use crate::json::name;
use crate::server::operator::admin;

/// Bytes of the secret.
pub(crate) const SECRET_BYTES: usize = 32;

/// The shortest token that an operator may choose: shorter than ours, but not to be guessed.
pub(crate) const TOKEN_CHARACTERS_MIN: usize = 16;

/// Only the owner may read or write.
const MODE_FILE: u32 = 0o600;
const MODE_DIRECTORY: u32 = 0o700;

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("master-secret")
}

/// Where the operator's token is.
pub(crate) fn admin_token_path(data_dir: &Path) -> PathBuf {
    data_dir.join("admin-token")
}

/// The operator's token, made if there is none: 64 hex digits.
pub(crate) fn admin_token(data_dir: &Path) -> Result<String, String> {
    let path = make(data_dir, &admin_token_path(data_dir), |secret| hex_digits(secret).into_bytes())?;
    token_in(&path)
}

fn token_in(path: &Path) -> Result<String, String> {
    let said = |fault| format!("operator's token: {fault}");
    let about = fs::metadata(path).map_err(|fault| said(format!("{}: {fault}", path.display())))?;
    check_private(path, &about).map_err(said)?;
    let token = held(path, TOKEN_CHARACTERS_MIN).map_err(said)?;
    admin::check_token(&token).map_err(|fault| said(format!("{}: {fault}", path.display())))?;
    Ok(token)
}

/// 16 hex digits that nobody has had before.
pub(crate) fn random_hex() -> Result<String, String> {
    random::<8>().map(|bytes| hex_digits(&bytes))
}

/// Bytes that nobody has had before.
pub(super) fn random<const BYTES: usize>() -> Result<[u8; BYTES], String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|fault| format!("no randomness: {fault}"))?;
    Ok(bytes)
}

pub(super) fn hex_digits(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    name::push_hex_digits(&mut text, bytes);
    String::from_utf8(text).expect("hex is text")
}

/// Refuses a directory whose journal outlived its secret: another one would make strangers of all clients.
fn refuse_lost(data_dir: &Path) -> Result<(), String> {
    let path = path(data_dir);
    // A path that may not be read is no proof of a loss, and cannot be written to either.
    if !journal::was_begun(data_dir) || path.try_exists().unwrap_or(true) {
        return Ok(());
    }
    let (path, data_dir) = (path.display(), data_dir.display());
    Err(format!(
        "master secret: {path} is not there, but a journal is; restore it from the backup, for no client's key is \
         good without it; if it is lost for ever, `outcry init --config FILE --data-dir {data_dir}` with a new FILE \
         makes another, and every client has to make its keys again"
    ))
}

/// Whether an exchange was begun in this directory: its master secret or its journal is there, or may not be looked at.
pub(crate) fn was_begun(data_dir: &Path) -> bool {
    journal::was_begun(data_dir) || path(data_dir).try_exists().unwrap_or(true)
}

/// Refuses a directory without an exchange that a configuration names: `init` has made that one's secret, so it is the
/// wrong directory, or its disk is not mounted, and an empty exchange would take the place of the one that is meant.
pub(crate) fn refuse_none(data_dir: &Path, config: &Path) -> Result<(), String> {
    if was_begun(data_dir) {
        return Ok(());
    }
    let (data_dir, config) = (data_dir.display(), config.display());
    Err(format!(
        "data_dir: {data_dir}, which goes with {config}, has no exchange, neither a master secret nor a journal; mount \
         its disk or restore it, or begin a new one there by `outcry init --config FILE --data-dir {data_dir}` with a \
         new FILE"
    ))
}

/// What [`make_master`] made or found.
pub(crate) struct Made {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it was there before.
    pub was_there: bool,
    /// Whether a journal was there before it: then every key that a client has is void.
    pub replaces: bool,
}

/// Makes the secret if there is none, even beside a journal: only for a command that asks for it, or after
/// [`refuse_lost`].
pub(crate) fn make_master(data_dir: &Path) -> Result<Made, String> {
    let was_there = path(data_dir).exists();
    let replaces = journal::was_begun(data_dir) && !was_there;
    if replaces {
        made_with::forget(data_dir)?;
    }
    let path = make(data_dir, &path(data_dir), |secret| secret.to_vec())?;
    Ok(Made { path, was_there, replaces })
}

/// Why a start would refuse the secrets of this directory, if so; makes none. The operator's token is checked if it is
/// the one that counts, and the chain if it is known.
pub(crate) fn fault(data_dir: &Path, chain_id: Option<u64>, token_counts: bool) -> Option<String> {
    fault_of_master(data_dir, chain_id).or_else(|| fault_of_token(data_dir).filter(|_| token_counts))
}

/// Why a start would refuse the master secret of this directory, if so.
pub(crate) fn fault_of_master(data_dir: &Path, chain_id: Option<u64>) -> Option<String> {
    if !path(data_dir).exists() {
        return refuse_lost(data_dir).err();
    }
    let read = read_master(data_dir);
    read.and_then(|master| made_with::refuse_others(data_dir, &master, chain_id)).err()
}

/// Why a start would refuse the operator's token in this directory, if so.
pub(crate) fn fault_of_token(data_dir: &Path) -> Option<String> {
    let path = admin_token_path(data_dir);
    if path.exists() { token_in(&path).err() } else { None }
}

/// Makes a file with a new secret in some form, if it is not there, and returns where it is.
fn make(
    data_dir: &Path,
    path: &Path,
    form: impl FnOnce(&[u8; SECRET_BYTES]) -> Vec<u8>,
) -> Result<PathBuf, String> {
    make_directory(data_dir)?;
    let say = |fault: std::io::Error| format!("secret: {}: {fault}", path.display());
    if path.exists() {
        return Ok(path.to_path_buf());
    }
    let mut secret = [0_u8; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(|fault| format!("secret: no randomness: {fault}"))?;
    // Written under another name and linked into place whole: a full disk leaves no secret instead of half of one, and
    // of two processes that make it, the second finds the first one's.
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let written = write_new(&beside, &form(&secret)).and_then(|()| fs::hard_link(&beside, path));
    let _ = fs::remove_file(&beside);
    match written {
        Err(fault) if fault.kind() != ErrorKind::AlreadyExists => Err(say(fault)),
        _ => Ok(path.to_path_buf()),
    }
}

/// Makes the data directory if it is not there; only its owner may look into it.
pub(crate) fn make_directory(data_dir: &Path) -> Result<(), String> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(MODE_DIRECTORY);
    builder.create(data_dir).map_err(|fault| match fault.kind() {
        ErrorKind::AlreadyExists => format!("data_dir: {} is a file; allowed: a folder", data_dir.display()),
        _ => format!("data_dir: {}: {fault}", data_dir.display()),
    })
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(MODE_FILE).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Refuses a file that others may read or write.
fn check_private(path: &Path, about: &fs::Metadata) -> Result<(), String> {
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("{} is readable by others (mode {mode:o}); chmod 600 it", path.display()));
    }
    Ok(())
}

/// What a file holds, if it is not cut short.
fn held(path: &Path, characters_min: usize) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|fault| format!("{}: {fault}", path.display()))?;
    let text = text.trim();
    if characters_min <= text.len() {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{}: got {} characters; needed: at least {characters_min}; restore it, or remove it and another is made",
        path.display(),
        text.len()
    ))
}

/// Reads the secret, making it first in a directory that is new. Refuses what clients' keys were not made with.
pub(crate) fn load(data_dir: &Path, chain_id: u64) -> Result<[u8; SECRET_BYTES], String> {
    refuse_lost(data_dir)?;
    make_master(data_dir)?;
    let secret = read_master(data_dir)?;
    made_with::refuse_others(data_dir, &secret, Some(chain_id))?;
    Ok(secret)
}

fn read_master(data_dir: &Path) -> Result<[u8; SECRET_BYTES], String> {
    let path = path(data_dir);
    let say = |fault: std::io::Error| format!("master secret: {}: {fault}", path.display());
    let mut file = fs::File::open(&path).map_err(say)?;
    let about = file.metadata().map_err(say)?;
    check_private(&path, &about).map_err(|fault| format!("master secret: {fault}"))?;
    let mut secret = [0_u8; SECRET_BYTES];
    file.read_exact(&mut secret).map_err(|fault| match fault.kind() {
        ErrorKind::UnexpectedEof => {
            format!("master secret: {} is shorter than {SECRET_BYTES} bytes; restore it", path.display())
        }
        _ => say(fault),
    })?;
    let mut behind = [0_u8];
    if file.read(&mut behind).map_err(say)? != 0 {
        return Err(format!(
            "master secret: {} is longer than {SECRET_BYTES} bytes; restore it",
            path.display()
        ));
    }
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: u64 = 80_002;

    #[test]
    fn a_secret_is_made_once_and_only_the_owner_may_read_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        std::fs::write(&data, "").expect("a file");
        assert_eq!(
            load(&data, CHAIN),
            Err(format!("data_dir: {} is a file; allowed: a folder", data.display()))
        );
        std::fs::remove_file(&data).expect("gone");
        let first = load(&data, CHAIN).expect("made");
        assert_ne!(first, [0; SECRET_BYTES]);
        assert_eq!(load(&data, CHAIN).expect("read"), first);
        for (file, short) in
            [(path(&data), "shorter than 32 bytes"), (admin_token_path(&data), "needed: at least 16")]
        {
            admin_token(&data).expect("made");
            let whole = fs::read(&file).expect("there");
            fs::write(&file, &whole[..15]).expect("cut");
            let fault = load(&data, CHAIN)
                .map(drop)
                .and_then(|()| admin_token(&data).map(drop))
                .expect_err("refused");
            assert!(fault.contains(short), "{fault}");
            fs::write(&file, whole).expect("restored");
        }
        for file in [admin_token_path(&data), path(&data)] {
            assert_eq!(load(&data, CHAIN).map(drop).and_then(|()| admin_token(&data).map(drop)), Ok(()));
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("changed");
            let fault = load(&data, CHAIN)
                .map(drop)
                .and_then(|()| admin_token(&data).map(drop))
                .expect_err("refused");
            let said = format!("{} is readable by others (mode 644); chmod 600 it", file.display());
            assert!(fault.ends_with(&said), "{fault}");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("changed back");
        }
    }

    #[test]
    fn a_journal_without_its_secret_is_refused_until_somebody_asks_for_another() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        assert_eq!(fault(&data, None, true), None, "nothing is there yet");
        let first = load(&data, CHAIN).expect("made");
        fs::create_dir(data.join("journal")).expect("made");
        for begun in ["identity", "journal/00000007.segment"] {
            fs::write(data.join(begun), "").expect("begun");
            assert_eq!(load(&data, CHAIN), Ok(first), "a start that died behind {begun} goes on");
            fs::remove_file(path(&data)).expect("lost");
            let refused = load(&data, CHAIN).expect_err("refused");
            assert!(refused.contains("is not there, but a journal is; restore it"), "{refused}");
            assert_eq!(fault(&data, None, true), Some(refused));
            assert!(!path(&data).exists(), "none is made without a word");
            made_with::keep(&data, &first, CHAIN).expect("kept");
            assert!(make_master(&data).expect("made").replaces);
            assert!(!make_master(&data).expect("there").replaces);
            let another = load(&data, CHAIN).expect("another");
            assert_ne!(another, first);
            made_with::keep(&data, &another, CHAIN).expect("kept");
            fs::write(path(&data), first).expect("restored");
            let refused = load(&data, CHAIN).expect_err("refused");
            assert!(
                refused.contains("another than the one that clients' API keys were made with"),
                "{refused}"
            );
            assert_eq!(fault(&data, None, true), Some(refused));
            made_with::forget(&data).expect("forgotten");
            fs::remove_file(data.join(begun)).expect("gone");
        }
    }

    #[test]
    fn what_a_start_would_refuse_is_told_without_a_start() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path();
        load(data, CHAIN).expect("made");
        admin_token(data).expect("made");
        assert_eq!(fault(data, None, true), None);
        fs::write(admin_token_path(data), "short").expect("written");
        assert!(fault(data, None, true).is_some_and(|fault| fault.starts_with("operator's token: ")));
        assert_eq!(fault(data, None, false), None, "the environment has another");
        fs::write(admin_token_path(data), "0123456789abcdef\n0123456789abcdef\n").expect("written");
        assert!(
            fault(data, None, true)
                .is_some_and(|fault| fault.ends_with("admin-token: got 2 lines; allowed: one"))
        );
        fs::write(path(data), "short").expect("written");
        assert_eq!(fault(data, None, false), load(data, CHAIN).err());
        assert!(fault(data, None, false).is_some_and(|fault| fault.contains("shorter than 32 bytes")));
    }
}
