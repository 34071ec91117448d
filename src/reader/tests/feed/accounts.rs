//! Who may follow an account, and how many may.

use super::*;

/// The most streams of one account.
const STREAMS: u32 = 32;

const AUTH: &str = r#"{"type":"user","auth":{"apiKey":"a","secret":"b","passphrase":"c"}}"#;

/// Clients often put the secret where the id belongs, and an answer may be in somebody's log.
#[test]
fn what_stands_in_place_of_a_key_s_id_is_told_back_only_if_it_may_be_one() {
    const ID: &str = "00000000-0000-0000-0000-000000000001";
    const SECRET: &str = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U=";
    for (id, got) in [(ID, ID), (SECRET, "no id of a key"), (&SECRET[..35], "no id of a key")] {
        let mut followed = Followed::opened();
        followed.comes(FIRST, Channel::User);
        let says = json!({ "type": "user", "auth": { "apiKey": id, "secret": SECRET, "passphrase": "c" } });
        let now = followed.exchange.time();
        for (feed, reader) in followed.feeds() {
            let heard = feed.hear(FIRST, &says.to_string(), reader, (now, None), |_| None);
            assert_eq!(heard, Heard::Unauthorized);
        }
        let told = followed.told(FIRST);
        let refused = object(&told[0]);
        assert_eq!((&refused["field"], &refused["got"]), (&json!("auth"), &json!(got)), "{refused}");
        assert!(!told[0].contains(SECRET), "{}", told[0]);
    }
}

#[test]
fn an_account_has_so_many_streams_and_each_that_goes_makes_room() {
    let mut followed = Followed::opened();
    let is_taken = |followed: &mut Followed, who: WalletNo, client: u32| {
        followed.adds(who, client, AUTH);
        let told = object(&followed.told(client)[0]);
        assert!(told["type"] == "subscribed" || told["code"] == "too_many_streams", "{told}");
        told["type"] == "subscribed"
    };
    for client in 0..STREAMS + 2 {
        followed.comes(client, Channel::User);
    }
    for client in 0..STREAMS {
        assert!(is_taken(&mut followed, ALICE, client), "{client}");
    }
    let [one, other] = [STREAMS, STREAMS + 1];
    assert!(!is_taken(&mut followed, ALICE, one));
    assert!(is_taken(&mut followed, ALICE, FIRST), "it is one of them, and may say so again");
    assert!(is_taken(&mut followed, BOB, other), "others have streams of their own");
    // One leaves, then one becomes another account's.
    followed.leaves(FIRST);
    assert!(is_taken(&mut followed, ALICE, one) && !is_taken(&mut followed, ALICE, other));
    assert!(is_taken(&mut followed, BOB, SECOND) && is_taken(&mut followed, ALICE, other));
    assert!(!is_taken(&mut followed, ALICE, SECOND));
}

#[test]
fn a_stream_that_has_become_another_account_s_is_told_nothing_of_the_one_before() {
    let mut followed = Followed::opened();
    for client in [FIRST, SECOND] {
        followed.says(client, Channel::User, AUTH);
    }
    followed.adds(BOB, SECOND, AUTH);
    followed.sent();
    followed.bids(40);
    let told: Vec<u32> = followed.tells().into_iter().map(|(client, _)| client).collect();
    assert_eq!(told, [FIRST]);
}

/// A client narrows its stream to what it names; what it shows as its key is Alice's, but the last row's is another of
/// hers.
#[test]
fn a_stream_is_narrowed_by_what_one_key_has_named() {
    const NOWHERE: &str = "0x0000000000000000000000000000000000000000000000000000000000000001";
    let (rain, snow) = (condition_text(RAIN), condition_text(SNOW));
    let key = |byte| Caller { key: ApiKey([byte; 16]), ..caller(ALICE, Dialect::Poly) };
    let mut followed = Followed::opened();
    followed.comes(FIRST, Channel::User);
    for (shown, operation, named, is_all, markets) in [
        (Some(0), "subscribe", NOWHERE, false, vec![]),
        (None, "unsubscribe", NOWHERE, false, vec![]),
        (None, "subscribe", &rain, false, vec![&rain]),
        (Some(0), "subscribe", &snow, false, vec![&rain, &snow]),
        (None, "unsubscribe", &rain, false, vec![&snow]),
        (None, "unsubscribe", &snow, true, vec![]),
        (None, "subscribe", &rain, false, vec![&rain]),
        (Some(9), "subscribe", &snow, false, vec![&snow]),
    ] {
        let auth = shown.map(|_| json!({ "apiKey": "a", "secret": "b", "passphrase": "c" }));
        let says = json!({ "type": "user", "operation": operation, "markets": [named], "auth": auth });
        let now = followed.exchange.time();
        for (feed, reader) in followed.feeds() {
            feed.hear(FIRST, &says.to_string(), reader, (now, None), |_| shown.map(key));
        }
        let told = object(&followed.told(FIRST)[0]);
        assert_eq!((&told["all_markets"], &told["markets"]), (&json!(is_all), &json!(markets)), "{says}");
    }
}
