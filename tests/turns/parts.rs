//! What `Server-Timing` calls waiting while another loop, or another turn, is waited for.

use super::*;

/// The shard's loop, which is the registrar's as well, and a loop of clients alone.
const SHARD: usize = 0;
const INGRESS: usize = 1;

/// Turns that go by while what is waited for stands still.
const TURNS: usize = 100;

/// Orders of which a cancel leaves some for its second turn: in the first one, two pieces of 1,024 leave.
const MANY: usize = 2_055;

/// Turns a loop until it has nothing to do.
fn turn_until_it_rests(rig: &mut Rig, no: usize) {
    rig.turn_loop(no);
    while !rig.rests(no) {
        rig.turn_loop(no);
    }
}

/// Fails unless an answer counts `waited` among the time of `queue`, which is told in whole ten-thousandths.
#[track_caller]
fn is_in_queue(waited: Duration, answer: &str) {
    let (queue_ms, waited_ms) = (lasted(answer, "queue"), waited.as_secs_f64() * 1e3);
    assert!(waited_ms < queue_ms + 0.0001, "waited for {waited_ms} ms\n{answer}");
}

#[test]
fn waiting_for_another_loop_is_queue_whatever_is_asked_of_it() {
    let (mut rig, _data) = rig(1, 1);
    let mut trader = trader(&mut rig);
    let token = rig.market().unwrap().tokens[0];
    let mut client = connect(rig.http().port());
    // It is on the loop for clients from its first order on.
    let [resting, first, second, third] = [1_000; 4].map(|price| trader.sign(&bid(token, price)));
    let said = ask(&mut rig, &mut client, &trader.request("POST", "/order", &resting.body));
    assert!(said.contains("\"live\""), "{said}");
    let rows = [
        ("POST", "/order", first.body),
        ("POST", "/orders", format!("[{}]", second.body)),
        ("POST", "/replace", format!("{{\"cancel\":[\"{}\"],\"place\":[{}]}}", resting.id_text, third.body)),
        ("DELETE", "/order", cancel_body(&first.id_text)),
        ("DELETE", "/orders", format!("[\"{}\",\"{}\"]", first.id_text, second.id_text)),
        ("DELETE", "/cancel-market-orders", format!("{{\"asset_id\":\"{}\"}}", token_text(&token))),
        ("DELETE", "/cancel-all", String::new()),
        ("POST", "/heartbeats", "{\"heartbeat_id\":null}".to_owned()),
        ("DELETE", "/heartbeats", String::new()),
        ("POST", "/breaker", "{\"quantity\":\"200\",\"interval_ms\":10000}".to_owned()),
        ("GET", "/breaker", String::new()),
        ("DELETE", "/breaker", String::new()),
    ];
    for (method, path, body) in rows {
        client.write_all(&trader.request(method, path, &body)).unwrap();
        turn_until_it_rests(&mut rig, INGRESS);
        let since = Instant::now();
        for _ in 0..TURNS {
            rig.turn_loop(INGRESS);
        }
        let waited = since.elapsed();
        assert_eq!(arrived(&mut client), "", "{method} {path}: only the other loop can decide it");
        turn_until_it_rests(&mut rig, SHARD);
        let (_, answer) = turn_until(&mut rig, &mut client);
        assert!(answer.starts_with("HTTP/1.1 200"), "{method} {path}: {answer}");
        is_in_queue(waited, &answer);
    }
}

#[test]
fn what_is_between_the_pieces_of_a_long_cancel_is_queue() {
    let (mut rig, _data) = rig(1, 0);
    let mut trader = trader(&mut rig);
    let token = rig.market().unwrap().tokens[0];
    let mut client = connect(rig.http().port());
    for _ in 0..MANY / BATCH {
        let orders = [(); BATCH].map(|()| trader.sign(&Wish::buy(token, 100, 5_000_000)).body);
        let said = ask(
            &mut rig,
            &mut client,
            &trader.request("POST", "/orders", &format!("[{}]", orders.join(","))),
        );
        assert_eq!(said.matches("\"live\"").count(), BATCH, "{said}");
    }
    client.write_all(&trader.request("DELETE", "/cancel-all", "")).unwrap();
    rig.turn_loop(SHARD);
    // The loop stands still while somebody signs.
    let since = Instant::now();
    drop(trader.sign(&bid(token, 1_000)));
    let waited = since.elapsed();
    assert_eq!(arrived(&mut client), "", "it takes another turn");
    let (_, answer) = turn_until(&mut rig, &mut client);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    is_in_queue(waited, &answer);
}
