//! Sockets and the epoll set of one loop, non-blocking throughout.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketAddrAny, SocketFlags};
use socket2::SockRef;

/// What came of one try on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// This many bytes went through.
    Bytes(usize),
    /// Not now.
    Later,
    /// The other end has sent all that it will send; it may still read.
    Ended,
    /// The connection is broken.
    Gone,
}

/// Receives into `room` once.
pub(crate) fn receive(socket: &OwnedFd, room: &mut [u8]) -> Moved {
    match rustix::net::recv(socket, room, RecvFlags::DONTWAIT) {
        Ok((_, 0)) => Moved::Ended,
        Ok((_, count)) => Moved::Bytes(count),
        Err(Errno::AGAIN | Errno::INTR) => Moved::Later,
        Err(_) => Moved::Gone,
    }
}

/// Sends the front of `bytes` once.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> Moved {
    match rustix::net::send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(count) => Moved::Bytes(count),
        Err(Errno::AGAIN | Errno::INTR) => Moved::Later,
        Err(_) => Moved::Gone,
    }
}

/// Ends the sending side: what was sent arrives, and the other end may still send.
pub(crate) fn say_all_was_said(socket: &OwnedFd) {
    // It fails only if the connection is broken, and then there is nobody to tell.
    let _ = rustix::net::shutdown(socket, Shutdown::Write);
}

/// Clients that may wait to be let in; one more is dropped, and tries again after a second.
pub(crate) const BACKLOG: u16 = 1_024;

/// Opens a listener that nobody else can share: a second server on the port is refused.
pub(crate) fn listen(name: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(address).map_err(|fault| match fault.kind() {
        io::ErrorKind::AddrInUse => {
            format!("{name}: {address} is taken by another process; stop it, or choose another port")
        }
        _ => format!("{name}: {address}: {fault}"),
    })?;
    listener.set_nonblocking(true).map_err(|fault| format!("{name}: {address}: {fault}"))?;
    bound_unread(&listener).map_err(|fault| format!("{name}: {address}: {fault}"))?;
    // It listens already, with the library's backlog of 128; asked once more, the kernel takes the
    // new one.
    rustix::net::listen(&listener, BACKLOG.into()).map_err(|fault| format!("{name}: {address}: {fault}"))?;
    Ok(listener)
}

/// What a client does not read is to wait here, where it is counted and has its time, instead of in the kernel: of
/// bytes that are not on their way yet, a socket takes so many. A client's window bounds what is on its way.
const UNSENT_BYTES: u32 = 64 << 10;

/// How long the kernel tries to deliver what a client does not take, also after its connection was closed. It ends a
/// stream whose network carries nothing any more, as each is sent a heartbeat every 5 s.
const UNTAKEN_TIME: Duration = Duration::from_secs(10);

/// Every socket that is accepted has these options of its listener (tcp(7)).
fn bound_unread(listener: &TcpListener) -> io::Result<()> {
    let listener = SockRef::from(listener);
    listener.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    listener.set_tcp_user_timeout(Some(UNTAKEN_TIME))
}

/// Accepts one client, ready to be watched; `None` if nobody waits. An error is of the system, which has no descriptor
/// or memory for another socket.
pub(crate) fn accept(listener: &TcpListener) -> io::Result<Option<(OwnedFd, IpAddr)>> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    match rustix::net::acceptfrom_with(listener, flags) {
        Ok((socket, address)) => {
            // What is wrong with a client's socket is found when it is read.
            let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
            Ok(Some((socket, address.and_then(ip).unwrap_or(IpAddr::from([0, 0, 0, 0])))))
        }
        Err(fault @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => Err(fault.into()),
        // Nobody waits, or whoever did is gone (accept(2), "Error handling").
        Err(_) => Ok(None),
    }
}

fn ip(address: SocketAddrAny) -> Option<IpAddr> {
    SocketAddr::try_from(address).ok().map(|address| address.ip())
}

/// Something that epoll watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// The public listener.
    PublicDoor,
    /// The operator's listener.
    AdminDoor,
    /// The loop's own bell.
    Bell,
    /// The connection in this slot.
    Slot(u32),
}

/// What is waited for of something that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    /// Bytes, or the end, to be received.
    pub(crate) readable: bool,
    /// Room to send.
    pub(crate) writable: bool,
    /// That the other end sends no more, though what it sent before was not received yet.
    pub(crate) hangup: bool,
}

impl Interest {
    /// Only its end.
    pub(crate) const NOTHING: Self = Self { readable: false, writable: false, hangup: false };
    /// What it sends.
    pub(crate) const READABLE: Self = Self { readable: true, ..Self::NOTHING };
}

/// What epoll reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// What it is about.
    pub(crate) watched: Watched,
    /// There are bytes, or the end, to be received.
    pub(crate) readable: bool,
    /// There is room to send.
    pub(crate) writable: bool,
    /// What is known of the other end.
    pub(crate) other_end: OtherEnd,
}

/// What epoll reports of the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherEnd {
    /// Nothing.
    There,
    /// It sends no more; told only if that is watched for.
    HungUp,
    /// Nothing can be sent to it any more.
    Gone,
}

impl OtherEnd {
    fn of(flags: EventFlags) -> Self {
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            Self::Gone
        } else if flags.contains(EventFlags::RDHUP) {
            Self::HungUp
        } else {
            Self::There
        }
    }
}

/// How much of what happened epoll reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reported {
    /// All of it.
    All,
    /// So many events; there may be more.
    Some(usize),
}

/// Events taken in one turn; the rest are there in the next one.
const EVENTS_PER_TURN: usize = 64;

/// What a loop may watch beside its connections: two doors and its bell.
pub(crate) const OTHERS_WATCHED: usize = 3;

const PUBLIC_DOOR: u64 = u64::MAX;
const ADMIN_DOOR: u64 = u64::MAX - 1;
const BELL: u64 = u64::MAX - 2;

/// One loop's epoll set, level-triggered.
#[derive(Debug)]
pub(crate) struct Watch {
    set: OwnedFd,
}

impl Watch {
    /// An empty set.
    pub(crate) fn new() -> io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { set })
    }

    /// Starts to watch.
    pub(crate) fn add(&self, what: impl AsFd, name: Watched, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.set, what, data(name), flags(interest))?)
    }

    /// Watches for something else.
    pub(crate) fn change(&self, what: impl AsFd, name: Watched, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.set, what, data(name), flags(interest))?)
    }

    /// Stops watching something that stays open. That fails only for what is not watched.
    pub(crate) fn remove(&self, what: impl AsFd) {
        let _ = epoll::delete(&self.set, what);
    }

    /// Waits up to `ms` milliseconds (0: not at all) and appends what happened to `out`.
    pub(crate) fn wait(&self, ms: u64, out: &mut Vec<Ready>) -> Reported {
        let timeout = Timespec {
            tv_sec: i64::try_from(ms / 1_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ms % 1_000 * 1_000_000).expect("below a second"),
        };
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_PER_TURN];
        // An interrupted wait is an empty one; the next turn asks again.
        let Ok((events, _)) = epoll::wait(&self.set, &mut room, Some(&timeout)) else {
            return Reported::Some(0);
        };
        let reported =
            if events.len() < EVENTS_PER_TURN { Reported::All } else { Reported::Some(events.len()) };
        for event in events {
            let flags = event.flags;
            let readable =
                flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP);
            out.push(Ready {
                watched: watched(event.data),
                readable,
                writable: flags.contains(EventFlags::OUT),
                other_end: OtherEnd::of(flags),
            });
        }
        reported
    }
}

fn data(name: Watched) -> EventData {
    EventData::new_u64(match name {
        Watched::PublicDoor => PUBLIC_DOOR,
        Watched::AdminDoor => ADMIN_DOOR,
        Watched::Bell => BELL,
        Watched::Slot(slot) => u64::from(slot),
    })
}

fn watched(data: EventData) -> Watched {
    match data.u64() {
        PUBLIC_DOOR => Watched::PublicDoor,
        ADMIN_DOOR => Watched::AdminDoor,
        BELL => Watched::Bell,
        slot => Watched::Slot(u32::try_from(slot).expect("we put a slot there")),
    }
}

fn flags(Interest { readable, writable, hangup }: Interest) -> EventFlags {
    let mut flags = EventFlags::empty();
    if readable {
        flags |= EventFlags::IN;
    }
    if writable {
        flags |= EventFlags::OUT;
    }
    if hangup {
        flags |= EventFlags::RDHUP;
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn a_client_that_is_let_in_may_leave_little_unread_in_the_kernel() {
        let listener = listen("listen.http", "127.0.0.1:0".parse().expect("an address")).expect("bound");
        let _client = TcpStream::connect(listener.local_addr().expect("has an address")).expect("listens");
        let (socket, _) = accept(&listener).expect("no fault").expect("a client waits");
        let options = SockRef::from(&socket);
        assert_eq!(options.tcp_notsent_lowat().expect("is told"), UNSENT_BYTES);
        assert_eq!(options.tcp_user_timeout().expect("is told"), Some(UNTAKEN_TIME));
    }

    #[test]
    fn a_second_server_on_the_port_is_refused_by_name() {
        let first = listen("listen.http", "127.0.0.1:0".parse().expect("an address")).expect("bound");
        let address = first.local_addr().expect("has an address");
        let fault = listen("listen.http", address).expect_err("taken");
        assert_eq!(
            fault,
            format!("listen.http: {address} is taken by another process; stop it, or choose another port")
        );
    }
}
