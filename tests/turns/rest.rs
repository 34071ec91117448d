//! When a loop rests, and how much it takes at once.

use super::{PATIENCE, ask, options, text_frame};
use crate::common::folder;
use crate::common::rig::{arrived, connect};
use crate::common::wire::upgrade;
use outcry::limits::Scope;
use outcry::server::plan::options::Options;
use outcry::server::rig::Rig;
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::Instant;

#[test]
fn a_loop_rests_while_a_held_client_has_sent_more_than_its_buffer_takes() {
    const TURNS: usize = 1_000;
    const MESSAGES: usize = 3;
    let data = folder();
    let mut options = Options { limits_mode: "enforce".into(), ..options(&data, 1, 0) };
    options.limits_scopes[Scope::StreamMessages as usize] = "1/60m".into();
    let mut rig = Rig::start_on_one_loop(&options).unwrap();
    let mut client = connect(rig.http().port());
    assert!(ask(&mut rig, &mut client, &upgrade("market")).starts_with("HTTP/1.1 101"));
    // One is free and one is paid for; the third is held for an hour, and whatever is behind it.
    let messages = text_frame("{\"type\":\"market\",\"assets_ids\":[]}").repeat(MESSAGES);
    client.write_all(&messages).unwrap();
    let piece = text_frame("{}").repeat(1 << 10);
    loop {
        for _ in 0..TURNS {
            rig.turn();
        }
        match client.write(&piece) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    let rests = |rig: &mut Rig| (0..TURNS).filter(|_| rig.turn() && rig.rests(0)).count();
    assert!(0 < rests(&mut rig), "it turns and turns");
    // It has not read what it was told, so this resets the connection.
    drop(client);
    rests(&mut rig);
    assert!(0 < rests(&mut rig), "it turns for one who is gone");
}

#[test]
fn a_reader_takes_no_more_from_its_own_loop_than_from_another() {
    const CLIENTS: usize = 60;
    /// Reads of one connection whose answers are known to be small.
    const OPEN: usize = 8;
    const TAKEN_MAX: usize = 256;
    let data = folder();
    let proxy = Options { trusted_proxies: vec!["127.0.0.1".into()], ..options(&data, 1, 0) };
    let mut rig = Rig::start_on_one_loop(&proxy).unwrap();
    // Of an address each: one may have a quarter.
    let read =
        |client: usize| format!("GET /time HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.{client}\r\n\r\n");
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(rig.http().port())).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        for _ in 0..OPEN {
            assert!(ask(&mut rig, client, read(number).as_bytes()).starts_with("HTTP/1.1 200"));
        }
    }
    for (number, client) in clients.iter_mut().enumerate() {
        client.write_all(read(number).repeat(OPEN).as_bytes()).unwrap();
    }
    let (mut taken, mut answered, deadline) = (0, 0, Instant::now() + PATIENCE);
    while answered < CLIENTS * OPEN {
        assert!(rig.turn() && Instant::now() < deadline, "{answered} were answered");
        taken = taken.max(rig.reads_of_its_own(0));
        answered += clients.iter_mut().map(|client| arrived(client).matches("200 OK").count()).sum::<usize>();
    }
    assert!((TAKEN_MAX / 2..=TAKEN_MAX).contains(&taken), "{taken} at once");
}
