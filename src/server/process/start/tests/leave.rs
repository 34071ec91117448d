//! What a stop tells of requests that it does not take.

use super::*;
use std::sync::atomic::Ordering;

#[test]
fn a_page_may_read_that_its_request_was_not_taken() {
    let data = tempfile::tempdir().expect("a directory");
    let options = Options { allowed_origins: vec!["https://app.example".into()], ..options(&data) };
    let dev = Start { dev: true, ..Start::default() };
    let mut plan = plan_on(&options, dev, &[0]).expect("a plan");
    // A turn with nothing to do must come back.
    plan.topology.loops[0].wait = Wait::Spin;
    let (running, mut cores) = start_but(1, plan, Clock::real()).expect("starts");
    let mut client = TcpStream::connect(running.http()).expect("connects");
    client.set_nonblocking(true).expect("a setting");
    let deadline = Instant::now() + Duration::from_mins(2);
    while running.shared.house.inside() == 0 {
        assert!(cores[0].turn() && Instant::now() < deadline, "it is not let in");
    }
    running.shared.enter(Phase::Draining);
    let asks =
        b"POST /midpoints HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\nContent-Length: 2\r\n\r\n[]";
    client.write_all(asks).expect("writes");
    let (mut told, mut piece) = (String::new(), [0; 1 << 10]);
    while !told.contains("\r\n\r\n") {
        assert!(cores[0].turn() && Instant::now() < deadline, "it is told nothing");
        let count = client.read(&mut piece).unwrap_or(0);
        told += &String::from_utf8_lossy(&piece[..count]);
    }
    assert!(told.starts_with("HTTP/1.1 503"), "{told}");
    assert!(told.contains("\r\nAccess-Control-Allow-Origin: https://app.example\r\n"), "{told}");
}

#[test]
fn a_client_on_its_way_to_another_loop_when_a_server_stops_is_waited_for_and_told() {
    const READER: usize = 1;
    const LOOPS: u32 = 2;
    let data = tempfile::tempdir().expect("a directory");
    let dev = Start { dev: true, ..Start::default() };
    let mut plan = plan_on(&options(&data), dev, &[0, 1]).expect("a plan");
    // A turn with nothing to do must come back.
    plan.topology.loops.iter_mut().for_each(|core| core.wait = Wait::Spin);
    let (running, mut cores) = start_but(2, plan, Clock::real()).expect("starts");
    assert!(cores.iter_mut().all(|core| core.turn()), "they take their roles");
    let mut client = TcpStream::connect(running.http()).expect("connects");
    client.write_all(b"POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}").expect("writes");
    client.set_nonblocking(true).expect("a setting");
    let deadline = Instant::now() + Duration::from_mins(2);
    while running.shared.house.inside() == 0 || !cores[READER].rests() {
        assert!(cores[READER].turn() && Instant::now() < deadline, "it is not sent on");
    }
    running.shared.enter(Phase::Draining);
    assert!(cores[READER].turn());
    // The other loop was in a turn when the reader's sent the client: it had nothing open.
    running.shared.drained.fetch_add(1, Ordering::AcqRel);
    assert_eq!(running.shared.drained.load(Ordering::Acquire), LOOPS);
    let (mut told, mut piece) = (String::new(), [0; 1 << 10]);
    while !told.contains("\r\n\r\n") {
        assert!(!running.shared.is_drained(LOOPS), "it would be left without an answer");
        assert!(cores[0].turn() && Instant::now() < deadline, "it is told nothing");
        let count = client.read(&mut piece).unwrap_or(0);
        told += &String::from_utf8_lossy(&piece[..count]);
    }
    assert!(told.starts_with("HTTP/1.1 503"), "{told}");
    drop(client);
    while !running.shared.is_drained(LOOPS) {
        assert!(cores[0].turn() && Instant::now() < deadline, "it has left");
    }
}
