use super::*;
use crate::auth::l2;
use crate::domain::Reject;

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

    fn ask(&self, entrance: &mut Entrance, registry: &Registry, now: TimeMs) -> Result<Caller, Reject> {
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
                assert_eq!(client.ask(&mut entrance, rig.registry(), NOW), Ok(caller));
            }
        }
        let restarted = rig.restarted();
        assert_eq!(client.ask(&mut entrance(), restarted.registry(), NOW), Ok(caller));
    }
}

#[test]
fn whatever_does_not_fit_is_refused_with_one_text() {
    let mut rig = Rig::new();
    let made = rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
    let other = rig.registrar.create_key(NOW, address(2), Word::ZERO).expect("room");
    let mut entrance = entrance();
    let good = || Client::new(address(1), &made);
    assert!(good().ask(&mut entrance, rig.registry(), NOW).is_ok());
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
        assert_eq!(client.ask(&mut entrance, rig.registry(), NOW), Err(Reject::Unauthorized));
    }
    let late = TimeMs(NOW.0 + 60_001);
    assert_eq!(good().ask(&mut entrance, rig.registry(), late), Err(Reject::Unauthorized));
    assert!(good().ask(&mut entrance, rig.registry(), TimeMs(NOW.0 + 60_000)).is_ok());
}

#[test]
fn a_revoked_key_is_refused_at_once_also_where_it_is_at_hand() {
    let mut rig = Rig::new();
    let made = rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
    let client = Client::new(address(1), &made);
    let mut entrance = entrance();
    let principal = client.ask(&mut entrance, rig.registry(), NOW).expect("admitted").principal;
    rig.registrar.revoke_key(NOW, principal, &made.api_key).expect("it lives");
    assert_eq!(client.ask(&mut entrance, rig.registry(), NOW), Err(Reject::Unauthorized));
    rig.registrar.create_key(NOW, address(1), Word::ZERO).expect("room");
    assert_eq!(client.ask(&mut entrance, rig.registry(), NOW), Err(Reject::Unauthorized));
}
