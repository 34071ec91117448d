//! A server in the test's own process, whose loops the test turns, and what its clients do meanwhile.

use outcry::server::plan::options::Options;
use outcry::server::rig::Rig;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::path::Path;

/// `outcry dev` with its data below `folder`.
pub fn options(folder: &Path, shards: u64) -> Options {
    Options {
        listen_http: "127.0.0.1:0".into(),
        listen_admin: "127.0.0.1:0".into(),
        data_dir: folder.join("data").display().to_string(),
        journal_log_path: folder.join("log").display().to_string(),
        journal_segment_bytes: 4 << 20,
        journal_durability: "committed".into(),
        cpu_policy: "unpinned".into(),
        cpu_shards: shards,
        ..Options::of_dev()
    }
}

/// Does `work` on another thread and meanwhile turns the loops.
pub fn while_turning<T: Send>(rig: &mut Rig, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let working = scope.spawn(work);
        while !working.is_finished() {
            rig.turn();
        }
        working.join().unwrap()
    })
}

/// A connection that nobody waits for.
pub fn connect(port: u16) -> TcpStream {
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_nodelay(true).unwrap();
    client.set_nonblocking(true).unwrap();
    client
}

/// What has arrived, without waiting.
pub fn arrived(client: &mut TcpStream) -> String {
    let mut bytes = [0; 16 << 10];
    match client.read(&mut bytes) {
        Ok(0) => panic!("the server closed a connection"),
        Ok(count) => String::from_utf8_lossy(&bytes[..count]).into_owned(),
        Err(error) if error.kind() == ErrorKind::WouldBlock => String::new(),
        Err(error) => panic!("{error}"),
    }
}
