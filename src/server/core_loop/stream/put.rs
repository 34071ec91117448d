//! What a stream is told goes into its connection's memory, or ends it.

use super::{BUSY, Close, QUEUED_BYTES_MAX};
use crate::server::connections::connection::Connection;
use crate::server::connections::held::{Held, SMALL_BYTES_MAX};
use crate::server::connections::socket::{self, Moved};

/// Appends a frame to what is unsent, or returns why the stream ends instead: frames are never left out. Behind more
/// than [`QUEUED_BYTES_MAX`] it does not wait for the stream's turn, unless the client does not read. When all clients
/// together leave too much unread, the socket gets at once what it takes, and a client that has read everything is not
/// ended for a long frame unless half as much again is unread. A connection that holds little is served in any case.
pub(super) fn put_frame(connection: &mut Connection, frame: &[u8], held: &Held) -> Result<(), Close> {
    if unread_bytes(connection) == 0 && QUEUED_BYTES_MAX < connection.line.unsent() {
        send_now(connection);
    }
    let is_full = !takes(connection, frame, held);
    if is_full {
        send_now(connection);
        connection.count_held(held);
        let share = held.of(connection.door, connection.peer);
        let has_read_all = connection.line.unsent() == 0 && share.takes_more_of_reader(frame.len());
        if !has_read_all && !takes(connection, frame, held) {
            return Err(BUSY);
        }
    }
    connection.line.output().extend_from_slice(frame);
    if is_full {
        send_now(connection);
    }
    connection.count_held(held);
    Ok(())
}

/// What a stream's client has left unread: all that is unsent, once its socket has not taken some of it.
pub(super) fn unread_bytes(connection: &Connection) -> usize {
    if connection.stream.as_ref().is_some_and(|stream| stream.is_behind) {
        connection.line.unsent()
    } else {
        0
    }
}

/// Whether a frame fits into what one stream may always hold, or into what all may.
fn takes(connection: &Connection, frame: &[u8], held: &Held) -> bool {
    let share = held.of(connection.door, connection.peer);
    connection.line.unsent() + frame.len() <= SMALL_BYTES_MAX || share.takes_more(frame.len())
}

/// Gives the socket what it takes. A client that is gone is found when its turn comes.
pub(super) fn send_now(connection: &mut Connection) {
    if let Some(client) = connection.socket.as_ref().filter(|_| 0 < connection.line.unsent())
        && let Moved::Bytes(count) = socket::send(client, connection.line.to_send())
    {
        connection.line.was_sent(count);
        // It reads, so its full time begins anew with the next send that the socket does not take.
        connection.send_by_ms = u64::MAX;
    }
    if let Some(stream) = &mut connection.stream {
        stream.is_behind = 0 < connection.line.unsent();
    }
}

#[cfg(test)]
mod tests {
    use super::super::begun;
    use super::*;
    use crate::limits::{Mode, RateLimits, Scope};
    use crate::reader::Channel;
    use crate::server::connections::connection::Door;
    use crate::server::connections::held::HELD_BYTES_MAX;
    use crate::server::requests::proxies::Proxies;
    use std::io::Read;
    use std::net::{IpAddr, Ipv4Addr};
    use std::os::unix::net::UnixStream;

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// A sum that others have filled, a connection, and its client's end.
    fn full_house() -> (Held, Connection, UnixStream) {
        let held = Held::new(Proxies::default());
        held.of(Door::Admin, PEER).count(0, HELD_BYTES_MAX);
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("a setting");
        let mut connection = Connection::empty();
        connection.occupy(ours.into(), PEER, Door::Public);
        (held, connection, theirs)
    }

    /// Reads exactly this many bytes.
    fn read(theirs: &mut UnixStream, bytes: usize) {
        theirs.read_exact(&mut vec![0; bytes]).expect("it was sent");
    }

    #[test]
    fn what_a_stream_holds_is_counted_among_all_and_given_back() {
        let (held, mut connection, _theirs) = full_house();
        let room = Held::new(Proxies::default());
        put_frame(&mut connection, &vec![1; SMALL_BYTES_MAX + 1], &room).expect("there is room");
        assert!(SMALL_BYTES_MAX < room.bytes(), "{}", room.bytes());
        drop(connection.vacate());
        connection.count_held(&room);
        assert_eq!((room.bytes(), held.bytes()), (0, HELD_BYTES_MAX));
    }

    #[test]
    fn what_waits_for_its_turn_leaves_before_it_is_large_unless_the_client_does_not_read() {
        let (_, mut connection, mut theirs) = full_house();
        let limits = RateLimits::new(Mode::Off, [None; Scope::ALL.len()], [1, 2]);
        connection.stream = Some(Box::new(begun(Channel::Market, limits.ipv4(0), 0)));
        let (held, frame) = (Held::new(Proxies::default()), [1; 1 << 10]);
        for _ in 0..4 * QUEUED_BYTES_MAX / frame.len() {
            put_frame(&mut connection, &frame, &held).expect("there is room");
            assert!(connection.line.unsent() <= QUEUED_BYTES_MAX + frame.len());
        }
        let mut put = 4 * QUEUED_BYTES_MAX;
        while unread_bytes(&connection) == 0 {
            put_frame(&mut connection, &frame, &held).expect("there is room");
            put += frame.len();
        }
        // Even if it reads again, that is found by epoll and not by trying with each frame.
        let unsent = connection.line.unsent();
        read(&mut theirs, put - unsent);
        put_frame(&mut connection, &frame, &held).expect("there is room");
        assert_eq!(connection.line.unsent(), unsent + frame.len());
    }

    #[test]
    fn who_reads_is_served_in_a_full_house_and_who_does_not_is_told_why_it_ends() {
        for frame in [SMALL_BYTES_MAX / 2, 2 * SMALL_BYTES_MAX].map(|bytes| vec![1; bytes]) {
            let (held, mut connection, mut theirs) = full_house();
            let mut put = 0;
            // Far more than may wait, by a client that keeps up.
            for _ in 0..64 {
                put_frame(&mut connection, &frame, &held).expect("it reads");
                put += frame.len();
                let unsent = connection.line.unsent();
                read(&mut theirs, put - unsent);
                put = unsent;
            }
            // A client that does not read: its socket fills first, then what every connection may hold.
            let end = (0..10_000).find_map(|_| put_frame(&mut connection, &frame, &held).err());
            assert_eq!(end.map(|end| end.code), Some(BUSY.code));
            let unsent = connection.line.unsent();
            assert!(unsent <= SMALL_BYTES_MAX.max(frame.len()), "{unsent}");
            assert_eq!(held.bytes() - HELD_BYTES_MAX, connection.line.counted_bytes());
        }
    }
}
