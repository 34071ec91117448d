use super::*;
use crate::auth::l2;
use crate::registry::KeyState;

/// What a client has and sends.
struct Client {
    address: String,
    api_key: String,
    passphrase: Vec<u8>,
    mac: MacKey,
}

impl Client {
    fn new(owner: Address, made: &Credentials) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("ASCII");
        Self {
            address: text(&text::checksummed(&owner)),
            api_key: text(&text::uuid_text(&made.api_key)),
            passphrase: made.passphrase.to_vec(),
            mac: MacKey::new(&made.secret),
        }
    }

    fn ask(&self, entrance: &mut Entrance, registry: &Registry, now: TimeMs) -> Option<Caller> {
        let request = request();
        let signature = l2::sign(&request, &self.mac);
        let presented = Presented {
            address: self.address.as_bytes(),
            api_key: self.api_key.as_bytes(),
            passphrase: &self.passphrase,
            signature: &signature,
        };
        entrance.admit(registry, &presented, &request, now, 60)
    }
}

fn request() -> Request<'static> {
    Request { timestamp: b"1700000000", method: b"GET", path: b"/data/orders", prefix: b"", body: b"" }
}

fn entrance() -> Entrance {
    Entrance::new(identity().master, Chain::Amoy, 16)
}

#[test]
fn whoever_holds_the_credentials_is_admitted_on_every_loop() {
    let mut rig = Rig::new();
    for nonce in [Word::ZERO, nonce(3)] {
        let made = rig.registrar.create_key(NOW, address(1), nonce).expect("room");
        let client = Client::new(address(1), &made);
        let principal = rig.registry().wallet_of(&address(1)).expect("an owner");
        let caller = Caller { principal, address: address(1), api_key: made.api_key };
        for _ in 0..2 {
            let mut entrance = entrance();
            for _ in 0..2 {
                assert_eq!(client.ask(&mut entrance, rig.registry(), NOW), Some(caller));
            }
        }
        let restarted = rig.restarted();
        assert_eq!(client.ask(&mut entrance(), restarted.registry(), NOW), Some(caller));
    }
}

#[test]
fn whatever_does_not_fit_is_refused_with_one_text() {
    let mut rig = Rig::new();
    let made = rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
    let other = rig.registrar.create_key(NOW, address(2), Word::ZERO).expect("room");
    let mut entrance = entrance();
    let good = || Client::new(address(1), &made);
    assert!(good().ask(&mut entrance, rig.registry(), NOW).is_some());
    let bad = [
        Client { address: Client::new(address(2), &made).address, ..good() },
        Client { address: "somebody".into(), ..good() },
        Client { api_key: Client::new(address(2), &other).api_key, ..good() },
        Client { api_key: "key".into(), ..good() },
        Client { passphrase: made.passphrase[1..].to_vec(), ..good() },
        Client { passphrase: other.passphrase.to_vec(), ..good() },
        Client { mac: MacKey::new(&other.secret), ..good() },
        Client::new(derive::proxy(&address(1)), &made),
        Client::new(address(3), &made),
    ];
    for client in bad {
        assert_eq!(client.ask(&mut entrance, rig.registry(), NOW), None);
    }
    let late = TimeMs(NOW.0 + 60_001);
    assert_eq!(good().ask(&mut entrance, rig.registry(), late), None);
    assert!(good().ask(&mut entrance, rig.registry(), TimeMs(NOW.0 + 60_000)).is_some());
}

#[test]
fn a_revoked_key_is_refused_at_once_also_where_it_is_at_hand() {
    let mut rig = Rig::new();
    let made = rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
    let client = Client::new(address(1), &made);
    let mut entrance = entrance();
    let principal = client.ask(&mut entrance, rig.registry(), NOW).expect("admitted").principal;
    rig.registrar.revoke_key(NOW, principal, &made.api_key).expect("it lives");
    assert_eq!(client.ask(&mut entrance, rig.registry(), NOW), None);
    rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
    assert_eq!(client.ask(&mut entrance, rig.registry(), NOW), None);
}

#[test]
fn a_key_that_comes_and_goes_leaves_nothing_behind() {
    let mut rig = Rig::new();
    let mut entrance = entrance();
    for generation in 0..5 {
        let made = rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
        let owner = rig.registry().wallet_of(&address(1)).expect("an owner");
        entrance.note_key(rig.registry(), owner, Word::ZERO, KeyState { generation, active: true });
        let secret = text::base64_text(&made.secret);
        let mut open = || {
            let key = text::uuid_text(&made.api_key);
            entrance.admit_plain(rig.registry(), &key, &secret, &made.passphrase).is_some()
        };
        assert!(open(), "{generation}");
        rig.registrar.revoke_key(NOW, owner, &made.api_key).expect("it lives");
        let revoked = KeyState { generation: generation + 1, active: false };
        entrance.note_key(rig.registry(), owner, Word::ZERO, revoked);
        assert_eq!(entrance.owners(), 0, "{generation}");
    }
}

#[test]
fn plain_credentials_are_shown_whole_or_open_nothing() {
    let mut rig = Rig::new();
    let made = rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
    let other = rig.registrar.create_key(NOW, address(2), Word::ZERO).expect("room");
    let mut entrance = entrance();
    let mut opens = |key: &Credentials, secret: &Credentials, passphrase: &Credentials| {
        let key = text::uuid_text(&key.api_key);
        entrance.admit_plain(rig.registry(), &key, &secret.secret_text(), &passphrase.passphrase).is_some()
    };
    assert!(opens(&made, &made, &made));
    assert!(!opens(&other, &made, &made), "another's key");
    assert!(!opens(&made, &other, &made), "another's secret");
    assert!(!opens(&made, &made, &other), "another's passphrase");
}

#[test]
fn a_read_only_key_is_no_key_to_trade_with_and_the_other_way_round() {
    let mut rig = Rig::new();
    let made = rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
    let owner = rig.registry().wallet_of(&address(1)).expect("an owner");
    let keys = [(); 2].map(|()| rig.registrar.create_readonly_key(NOW, owner).expect("room"));
    assert_ne!(keys[0], keys[1]);
    assert_eq!(rig.registrar.keys(owner, usize::MAX).len(), 1, "they are in no list of other keys");
    assert_eq!(rig.registrar.readonly_keys(owner), [keys[1], keys[0]]);
    let entrance = entrance();
    let caller = |api_key| Caller { principal: owner, address: address(1), api_key };
    let restarted = rig.restarted();
    for registry in [rig.registry(), restarted.registry()] {
        for key in keys {
            assert_eq!(entrance.reader_for(registry, &address(1), &key), Some(caller(key)));
            assert_eq!(entrance.reader_for(registry, &address(2), &key), None, "another's");
        }
        assert_eq!(entrance.reader_for(registry, &address(1), &made.api_key), None, "a public name");
    }
    let kept = crate::domain::nonce::of_readonly_key(0);
    assert_eq!(rig.registrar.derive_key(address(1), kept).err(), Some(Refusal::KeyUnknown), "nor derived");
    // Credentials of the same name can be computed with the master secret; they sign nothing.
    let kept = rig.registrar.key_name(address(1), kept, 0);
    let client = Client::new(address(1), &identity().master.credentials(&kept));
    assert_eq!(client.api_key.as_bytes(), text::uuid_text(&keys[0]));
    assert_eq!(client.ask(&mut self::entrance(), rig.registry(), NOW), None);
}

#[test]
fn a_revoked_read_only_key_is_refused_and_its_row_makes_another() {
    let mut rig = Rig::new();
    let owner = rig.registrar.owner(NOW, address(1)).expect("room");
    let other = rig.registrar.owner(NOW, address(2)).expect("room");
    let first = rig.registrar.create_readonly_key(NOW, owner).expect("room");
    let rows = rig.registry().key_count();
    assert_eq!(rig.registrar.revoke_readonly_key(NOW, other, &first), Ok(false), "another's");
    assert_eq!(rig.registrar.revoke_readonly_key(NOW, owner, &first), Ok(true));
    assert_eq!(rig.registrar.revoke_readonly_key(NOW, owner, &first), Ok(false), "revoked already");
    assert_eq!(entrance().reader_for(rig.registry(), &address(1), &first), None);
    assert!(rig.registrar.readonly_keys(owner).is_empty(), "only living ones are listed");
    let second = rig.registrar.create_readonly_key(NOW, owner).expect("room");
    assert_ne!(second, first);
    assert_eq!(rig.registry().key_count(), rows, "rows are used again");
    assert_eq!(entrance().reader_for(rig.registry(), &address(1), &first), None);
    assert!(entrance().reader_for(rig.registry(), &address(1), &second).is_some());
    rig.check_restart();
}
