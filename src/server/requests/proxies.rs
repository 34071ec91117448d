//! Which proxies are believed about addresses, and so where a request came from.
//!
//! Every proxy on the way appends its peer to `X-Forwarded-For`. Only what trusted proxies wrote is more than a claim:
//! from the right, the first address that is not one of theirs is the client. A request from any other peer came from
//! that peer, whatever it says. Several such headers are one list (RFC 9110, section 5.3), as some proxies add a word to
//! the last and some a line of their own; the last few count
//! ([`Head::forwarded_for`](crate::http::Head::forwarded_for)).

use std::net::{IpAddr, SocketAddr};

use crate::limits::{Party, RateLimits};

/// The proxies of `trusted_proxies`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies(Vec<Network>);

/// Bits in front of an IPv4 address that is written as an IPv6 one.
const MAPPED_BITS: u32 = 96;

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug)]
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Proxies {
    /// Reads addresses and networks such as `10.0.0.0/8`.
    pub(crate) fn parse(texts: &[String]) -> Result<Self, String> {
        let network = |text: &String| {
            Network::parse(text).ok_or_else(|| {
                format!("trusted_proxies: got {text:?}; allowed: addresses, or networks such as 10.0.0.0/8")
            })
        };
        texts.iter().map(network).collect::<Result<_, _>>().map(Self)
    }

    /// The client of a request that came from `peer` and carries the lines `forwarded`.
    pub(crate) fn client(&self, peer: IpAddr, forwarded: &[Option<&str>]) -> IpAddr {
        let mut client = peer.to_canonical();
        for text in forwarded.iter().rev().flatten().flat_map(|list| list.rsplit(',')) {
            if !self.trust(client) {
                break;
            }
            // A request whose forwarded address cannot be read counts as the proxy's own.
            let Some(address) = read_address(text.trim()) else {
                break;
            };
            client = address.to_canonical();
        }
        client
    }

    /// Whether what this peer says of others is believed.
    pub(crate) fn trust(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.has(address))
    }
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.filter(|&bits| bits <= bits_max).or(bits.is_none().then_some(bits_max))?;
        // Peers are compared in their IPv4 form where they have one.
        match (address.to_canonical(), bits.checked_sub(MAPPED_BITS)) {
            (mapped @ IpAddr::V4(_), Some(bits)) if address.is_ipv6() => Some(Self { address: mapped, bits }),
            _ => Some(Self { address, bits }),
        }
    }

    fn has(&self, other: IpAddr) -> bool {
        match (self.address, other.to_canonical()) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros() >= self.bits
            }
            _ => false,
        }
    }
}

/// Some proxies write the port too.
fn read_address(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse().ok().or_else(with_port)
}

/// Who may be behind an address, as far as it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Customer {
    /// An IPv4 address.
    V4(u32),
    /// The first 64 bits of an IPv6 address, which are what one customer has.
    V6(u64),
}

impl Customer {
    pub(crate) fn at(address: IpAddr) -> Self {
        const HOST_BITS: u32 = 64;
        match address {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => {
                Self::V6(u64::try_from(address.to_bits() >> HOST_BITS).expect("half of it"))
            }
        }
    }
}

/// The party that a client's address counts for.
pub(crate) fn party(limits: &RateLimits, client: IpAddr) -> Party {
    match Customer::at(client) {
        Customer::V4(address) => limits.ipv4(address),
        Customer::V6(network) => limits.ipv6(network),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Mode, Scope};

    #[track_caller]
    fn check(proxies: &str, table: &[(&str, &str, &str)]) {
        let texts: Vec<_> = proxies.split_whitespace().map(str::to_owned).collect();
        let proxies = Proxies::parse(&texts).expect("good");
        for (peer, forwarded, expected) in table {
            let forwarded: Vec<_> = forwarded.lines().map(Some).collect();
            let client = proxies.client(peer.parse().expect("an address"), &forwarded);
            assert_eq!(client.to_string(), *expected, "{peer} with {forwarded:?}");
        }
    }

    #[test]
    fn a_forwarded_address_counts_from_trusted_peers_only_and_from_the_right() {
        check("", &[("9.9.9.9", "1.1.1.1", "9.9.9.9"), ("::ffff:9.9.9.9", "", "9.9.9.9")]);
        check(
            "10.0.0.0/8 fd00::/16 127.0.0.1",
            &[
                ("9.9.9.9", "1.1.1.1", "9.9.9.9"),
                ("11.0.0.1", "1.1.1.1", "11.0.0.1"),
                ("10.1.2.3", "", "10.1.2.3"),
                ("10.1.2.3", "1.1.1.1", "1.1.1.1"),
                ("10.1.2.3", "1.1.1.1, 2.2.2.2", "2.2.2.2"),
                ("10.1.2.3", "1.1.1.1, 2.2.2.2,10.255.0.1 , fd00::7", "2.2.2.2"),
                ("10.1.2.3", "1.1.1.1\n2.2.2.2", "2.2.2.2"),
                ("10.1.2.3", "1.1.1.1, 2.2.2.2\n10.255.0.1\nfd00::7, 10.0.0.9", "2.2.2.2"),
                ("10.1.2.3", "1.1.1.1\nunknown\n10.0.0.9", "10.0.0.9"),
                ("10.1.2.3", "10.0.0.9", "10.0.0.9"),
                ("10.1.2.3", "1.1.1.1, unknown", "10.1.2.3"),
                ("10.1.2.3", "unknown, 10.0.0.9", "10.0.0.9"),
                ("127.0.0.1", "1.1.1.1:4711", "1.1.1.1"),
                ("127.0.0.2", "1.1.1.1", "127.0.0.2"),
                ("fd00::1", "[2001:db8::1]:80", "2001:db8::1"),
                ("::ffff:10.0.0.1", "::ffff:3.3.3.3", "3.3.3.3"),
                ("10.1.2.3", ",", "10.1.2.3"),
            ],
        );
        check(
            "::ffff:10.0.0.0/104",
            &[("10.1.2.3", "1.1.1.1", "1.1.1.1"), ("11.0.0.1", "1.1.1.1", "11.0.0.1")],
        );
        check("0.0.0.0/0", &[("9.9.9.9", "1.1.1.1", "1.1.1.1"), ("::1", "1.1.1.1", "::1")]);
    }

    #[test]
    fn a_proxy_is_trusted_however_the_kernel_writes_its_address() {
        let proxies = Proxies::parse(&["10.0.0.1".to_owned(), "::ffff:10.0.0.2".to_owned()]).expect("good");
        for (address, trusted) in [
            ("10.0.0.1", true),
            ("::ffff:10.0.0.1", true),
            ("10.0.0.2", true),
            ("::ffff:10.0.0.2", true),
            ("::ffff:10.0.0.3", false),
            ("::10.0.0.1", false),
        ] {
            assert_eq!(proxies.trust(address.parse().expect("an address")), trusted, "{address}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused_by_name() {
        for text in ["", "localhost", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.1/", "10.0.0.1/-1"] {
            let fault = Proxies::parse(&[text.to_owned()]).expect_err("refused");
            assert!(fault.starts_with(&format!("trusted_proxies: got {text:?}; allowed: ")), "{fault}");
        }
    }

    #[test]
    fn one_customer_of_ipv6_has_one_bucket_and_neighbours_have_others() {
        let limits = RateLimits::new(Mode::Enforce, Scope::ALL.map(|scope| Some(scope.rule())), [1, 2]);
        let party = |text: &str| party(&limits, text.parse().expect("an address"));
        assert_eq!(party("2001:db8:1:2::1"), party("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(party("2001:db8:1:2::1"), party("2001:db8:1:3::1"));
        assert_ne!(party("1.1.1.1"), party("1.1.1.2"));
        assert_ne!(party("0.0.0.1"), party("0:0:0:1::"));
    }
}
