//! A connection that answers for its key's orders, and what becomes of them when it is lost.

use super::{Site, all_with, ended};
use crate::common::stream::Stream;
use crate::common::trader::Trader;
use outcry::domain::Side;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Shutdown;
use tungstenite::Message;

/// A user stream that answers for its key's orders.
fn promised(site: &Site, key: &Trader) -> Stream {
    let mut stream = Stream::open(&site.exchange, "user");
    stream.say(&json!({ "type": "user", "auth": key.stream_auth(), "cancel_on_disconnect": true }));
    let said = stream.event();
    assert_eq!((&said["type"], &said["cancel_on_disconnect"]), (&"subscribed".into(), &true.into()));
    stream
}

#[test]
fn a_lost_connection_takes_its_keys_orders_with_it_if_it_promised_to() {
    for (shards, ingress) in [(1, 0), (2, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        let mut stream = site.listen();
        let kept = site.bid(true, 0, 12, 5);
        let mut orders = vec![site.bid(false, 0, 10, 5), site.bid(false, 1, 11, 5)];
        let promise = |value: &str| format!("X-Outcry-Cancel-On-Disconnect: {value}\r\n");
        // Nothing is promised, as by a read, or the promise is withdrawn: nothing happens.
        let cancels = |value| (value, "DELETE", "/orders", "[]");
        let read = ("true", "GET", "/breaker", "");
        for promises in [vec![], vec![read], vec![cancels("true"), cancels("false")]] {
            let mut connection = site.exchange.connect();
            for (value, method, path, body) in promises {
                let request = site.maker.request_with(&promise(value), method, path, body);
                connection.send(&request).unwrap();
                assert_eq!(connection.answer().unwrap().status, 200);
            }
            drop(connection);
        }
        // The order that carries the promise is itself cancelled with the connection, answered or not.
        let mut connection = site.exchange.connect();
        let order = site.maker.sign(&site.wish(1, Side::Buy, 13, 5));
        connection.send(&site.maker.request_with(&promise("true"), "POST", "/order", &order.body)).unwrap();
        assert_eq!(connection.answer().unwrap().status, 200);
        orders.push(order.id_text);
        assert_eq!(site.live().len(), 4);
        drop(connection);
        let ids: Vec<&String> = orders.iter().collect();
        assert_eq!(ended(&mut stream, 3), all_with(&ids, "disconnected"));
        assert_eq!(site.live(), [kept]);
        site.exchange.stop();
    }
}

/// A connection cannot answer for a second key, a proxy's for nobody, and none knows what `True` means.
#[test]
fn a_promise_that_cannot_be_kept_keeps_an_order_out_and_nothing_that_cancels_or_guards() {
    const BREAKER: &str = "{\"quantity\":\"1000\",\"interval_ms\":5000}";
    let mut site = Site::start(2, 1);
    let mut watching = site.listen();
    let kept = site.bid(false, 0, 10, 5);
    let [mut other_keys, mut proxys, mut own] = [(); 3].map(|()| site.exchange.connect());
    other_keys
        .send(&site.other_key.request_with(
            "X-Outcry-Cancel-On-Disconnect: true\r\n",
            "DELETE",
            "/orders",
            "[]",
        ))
        .unwrap();
    assert_eq!(other_keys.answer().unwrap().status, 200);
    for (connection, header, value, allowed) in [
        (&mut other_keys, "", "true", "false: this connection answers for another key"),
        (
            &mut proxys,
            "X-Forwarded-For: 10.0.0.1\r\n",
            "true",
            "false: the connection is a proxy's; promise it on /ws/user",
        ),
        (&mut own, "", "True", "true or false"),
    ] {
        let gone = site.bid(false, 1, 11, 5);
        let order = site.maker.sign(&site.wish(0, Side::Buy, 12, 5)).body;
        let cancel = format!("{{\"orderID\":\"{gone}\"}}");
        for (method, path, body, status) in [
            ("POST", "/order", order.as_str(), 400),
            ("DELETE", "/order", &cancel, 200),
            ("DELETE", "/orders", "[]", 200),
            ("POST", "/heartbeats", "", 200),
            ("DELETE", "/heartbeats", "", 200),
            ("POST", "/breaker", BREAKER, 200),
            ("POST", "/breaker/reset", "", 200),
            ("DELETE", "/breaker", "", 200),
        ] {
            let header = format!("{header}X-Outcry-Cancel-On-Disconnect: {value}\r\n");
            connection.send(&site.maker.request_with(&header, method, path, body)).unwrap();
            let answer = connection.answer().unwrap();
            assert_eq!(answer.status, status, "{method} {path} {value}: {}", answer.text());
            if status == 400 {
                let said = answer.json();
                let field = "X-Outcry-Cancel-On-Disconnect";
                assert_eq!(
                    (&said["field"], &said["got"], &said["allowed"]),
                    (&field.into(), &value.into(), &allowed.into())
                );
            }
        }
        assert_eq!(site.live(), std::slice::from_ref(&kept));
    }
    // One that ends with the answer would be lost at once.
    let order = site.maker.sign(&site.wish(0, Side::Buy, 12, 5)).body;
    for (path, body, method, status) in [("/order", &*order, "POST", 400), ("/orders", "[]", "DELETE", 200)] {
        let headers = "Connection: close\r\nX-Outcry-Cancel-On-Disconnect: true\r\n";
        let mut ending = site.exchange.connect();
        ending.send(&site.maker.request_with(headers, method, path, body)).unwrap();
        let answer = ending.answer().unwrap();
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        let is_told =
            answer.text().contains("false: this connection ends with the answer; keep it, or promise");
        assert_eq!(is_told, status == 400, "{path}: {}", answer.text());
    }
    assert_eq!(site.live(), std::slice::from_ref(&kept));
    // Nothing of it was promised, and the first promise holds.
    let of_other_key = site.bid(true, 0, 12, 5);
    drop((proxys, own, other_keys));
    assert!(ended(&mut watching, 4).contains(&(of_other_key, "disconnected".into())));
    assert_eq!(site.live(), [kept]);
    site.exchange.stop();
}

#[test]
fn many_connections_that_are_lost_at_once_take_all_orders_with_them() {
    for (shards, ingress) in [(1, 0), (2, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        let mut stream = site.listen();
        let kept = site.bid(true, 0, 12, 5);
        // It can be lost again.
        for count in [24, 1] {
            let (mut connections, mut orders) = (Vec::new(), Vec::new());
            for number in 0..count {
                let order = site.maker.sign(&site.wish(number % 2, Side::Buy, 10, 5));
                let promise = "X-Outcry-Cancel-On-Disconnect: true\r\n";
                let mut connection = site.exchange.connect();
                connection.send(&site.maker.request_with(promise, "POST", "/order", &order.body)).unwrap();
                assert_eq!(connection.answer().unwrap().status, 200);
                orders.push(order.id_text);
                connections.push(connection);
            }
            drop(connections);
            let ids: Vec<&String> = orders.iter().collect();
            assert_eq!(ended(&mut stream, ids.len()), all_with(&ids, "disconnected"));
            assert_eq!(site.live(), std::slice::from_ref(&kept));
        }
        site.exchange.stop();
    }
}

#[test]
fn a_connection_answers_for_one_key_and_no_other_key_changes_that() {
    for (shards, ingress) in [(1, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        let mut watching = site.listen();
        let orders = [site.bid(false, 0, 10, 5), site.bid(false, 1, 11, 5)];
        let kept = site.bid(true, 0, 12, 5);
        let mut connection = site.exchange.connect();
        for (other_key, value, status) in [(false, "true", 200), (true, "false", 200), (true, "true", 200)] {
            let key = if other_key { &site.other_key } else { &site.maker };
            let header = format!("X-Outcry-Cancel-On-Disconnect: {value}\r\n");
            connection.send(&key.request_with(&header, "DELETE", "/orders", "[]")).unwrap();
            assert_eq!(connection.answer().unwrap().status, status, "{other_key} {value}");
        }
        let mut stream = Stream::on(connection.socket(), "user");
        drop(connection);
        let auth = site.other_key.stream_auth();
        stream.say(&json!({ "type": "user", "auth": auth, "cancel_on_disconnect": true }));
        assert_eq!(stream.event()["field"], "cancel_on_disconnect");
        stream.say(&json!({ "type": "user", "auth": auth }));
        assert_eq!(stream.event()["cancel_on_disconnect"], false);
        drop(stream);
        assert_eq!(ended(&mut watching, 2), all_with(&orders.each_ref(), "disconnected"));
        let rows = site.other_key.pages(&mut site.connection, "/data/orders");
        assert!(rows.iter().any(|row| row["id"] == kept.as_str()), "{rows:?}");
        site.exchange.stop();
    }
}

#[test]
fn a_user_stream_can_answer_for_its_keys_orders() {
    let mut site = Site::start(2, 0);
    let mut watching = site.listen();
    let (first, second) = (site.bid(false, 0, 10, 5), site.bid(false, 1, 11, 5));
    drop(promised(&site, &site.maker));
    assert_eq!(ended(&mut watching, 2), all_with(&[&first, &second], "disconnected"));
    site.exchange.stop();
}

#[test]
fn a_promise_holds_on_a_connection_that_becomes_a_stream_until_the_stream_says_otherwise() {
    for (shards, ingress) in [(1, 0), (2, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        let mut watching = site.listen();
        let mut kept = Vec::new();
        for (channel, said, is_kept) in [
            ("user", json!({ "type": "user", "cancel_on_disconnect": false }), true),
            ("user", json!({ "type": "user" }), false),
            ("user", json!(null), false),
            ("market", json!(null), false),
        ] {
            let orders = [site.bid(is_kept, 0, 10, 5), site.bid(is_kept, 1, 11, 5)];
            let key = if is_kept { &site.other_key } else { &site.maker };
            let mut connection = site.exchange.connect();
            let header = "X-Outcry-Cancel-On-Disconnect: true\r\n";
            connection.send(&key.request_with(header, "DELETE", "/orders", "[]")).unwrap();
            assert_eq!(connection.answer().unwrap().status, 200);
            let mut stream = Stream::on(connection.socket(), channel);
            drop(connection);
            if let Value::Object(mut said) = said.clone() {
                said.insert("auth".into(), key.stream_auth());
                stream.say(&said.into());
                assert_eq!(stream.event()["cancel_on_disconnect"], !is_kept, "{channel}");
            }
            drop(stream);
            if is_kept {
                kept.extend(orders);
            } else {
                let gone = all_with(&orders.each_ref(), "disconnected");
                assert_eq!(ended(&mut watching, 2), gone, "{channel}, {said}");
            }
        }
        assert_eq!(BTreeSet::from_iter(site.live()), BTreeSet::from_iter(kept));
        site.exchange.stop();
    }
}

/// Whatever comes with the end of a connection was said before it.
#[test]
fn a_promise_that_is_taken_back_with_the_last_word_is_taken_back() {
    for (shards, ingress) in [(1, 0), (2, 1)] {
        let mut site = Site::start(shards, ingress);
        let mut watching = site.listen();
        let kept = [site.bid(false, 0, 10, 5), site.bid(false, 1, 11, 5)];
        // One turn takes fewer messages of a client than that.
        for (end, before) in [(Shutdown::Write, 0), (Shutdown::Write, 40), (Shutdown::Both, 0)].repeat(4) {
            let mut stream = promised(&site, &site.maker);
            (0..before).for_each(|_| stream.0.send(Message::text("PING")).unwrap());
            stream.say(&json!({ "type": "user", "cancel_on_disconnect": false }));
            stream.0.get_ref().shutdown(end).unwrap();
            while stream.0.read().is_ok() {}
        }
        let order = site.bid(true, 0, 12, 5);
        drop(promised(&site, &site.other_key));
        assert_eq!(ended(&mut watching, 1), all_with(&[&order], "disconnected"));
        assert_eq!(BTreeSet::from_iter(site.live()), BTreeSet::from_iter(kept));
        site.exchange.stop();
    }
}

#[test]
fn the_servers_own_end_is_no_lost_connection() {
    let mut site = Site::start(2, 0);
    let order = site.bid(false, 0, 10, 5);
    let header = "X-Outcry-Cancel-On-Disconnect: true\r\n";
    site.connection.send(&site.maker.request_with(header, "DELETE", "/orders", "[]")).unwrap();
    assert_eq!(site.connection.answer().unwrap().status, 200);
    let mut site = site.restart();
    assert_eq!(site.live(), [order]);
    site.exchange.stop();
}
