//! What kind of network an address belongs to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns the IPv4 address that an IPv6 one only wraps (as IPv4-mapped and IPv4-compatible ones do, NAT64, SIIT and 6to4), and
/// else the address itself.
fn unwrapped(address: IpAddr) -> IpAddr {
    let address = address.to_canonical();
    let IpAddr::V6(v6) = address else {
        return address;
    };
    match v6.segments() {
        // Those of this machine, and no address at all.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => address,
        [0x64, 0xff9b, .., high, low]
        | [0x2002, high, low, ..]
        | [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)).into()
        }
        _ => address,
    }
}

/// Returns whether an address may be anybody's: neither this machine's or its link's, nor one of a private network (RFC 1918, a
/// provider's own of RFC 6598, IPv6's unique local ones), also where an IPv6 address only wraps such a one.
pub fn is_public(address: IpAddr) -> bool {
    match unwrapped(address) {
        IpAddr::V4(it) => {
            let [first, second, ..] = it.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            let is_here = it.is_loopback() || it.is_link_local() || it.is_unspecified();
            !it.is_private() && !is_shared && !is_here
        }
        IpAddr::V6(it) => {
            let is_here = it.is_loopback() || it.is_unicast_link_local() || it.is_unspecified();
            !it.is_unique_local() && !is_here
        }
    }
}

/// Where clouds hand out keys to whoever asks from the machine, besides the link-local 169.254.0.0/16.
const METADATA: [Ipv4Addr; 3] = [
    // Alibaba Cloud.
    Ipv4Addr::new(100, 100, 100, 200),
    // Azure.
    Ipv4Addr::new(168, 63, 129, 16),
    // Oracle Cloud.
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same over IPv6, by the first 32 bits: networks that the provider itself chose.
const METADATA_NETWORKS: [[u16; 2]; 4] = [
    // Amazon: fd00:ec2::254, and ::23 for pods.
    [0xfd00, 0xec2],
    // Google: fd20:ce::254.
    [0xfd20, 0xce],
    // Oracle Cloud: fd00:c1::a9fe:a9fe.
    [0xfd00, 0xc1],
    // Scaleway: fd00:42::42.
    [0xfd00, 0x42],
];

/// Returns whether an address hands out keys to whoever asks from the machine, as clouds have it: a link-local one, or one that a
/// provider is known to use; also where an IPv6 address only wraps it.
pub fn is_metadata(address: IpAddr) -> bool {
    match unwrapped(address) {
        IpAddr::V4(it) => it.is_link_local() || METADATA.contains(&it),
        IpAddr::V6(it) => {
            let [first, second, ..] = it.segments();
            it.is_unicast_link_local() || METADATA_NETWORKS.contains(&[first, second])
        }
    }
}

/// Returns whether an address may be another machine's, and not its provider's own, also where IPv6 only wraps it.
pub fn is_elsewhere(to: SocketAddr) -> bool {
    let ip = unwrapped(to.ip());
    let is_here = match ip {
        IpAddr::V4(it) => {
            // 0.0.0.0/8 is "this network".
            let is_this = it.octets()[0] == 0;
            it.is_loopback() || it.is_broadcast() || is_this
        }
        IpAddr::V6(it) => it.is_loopback() || it.is_unspecified(),
    };
    !is_here && !ip.is_multicast() && !is_metadata(ip) && !is_own(to)
}

/// Returns whether an address is anybody's but this machine's and its networks', and not its provider's own.
pub fn is_outside(address: IpAddr) -> bool {
    // The port makes no difference.
    is_public(address) && is_elsewhere(SocketAddr::new(address, 443))
}

/// Whether an address is one of this machine's: what is sent there would come from there. Nothing is sent.
fn is_own(to: SocketAddr) -> bool {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    match std::net::UdpSocket::bind(any) {
        // Without a route it leads nowhere.
        Ok(socket) => socket
            .connect(to)
            .and_then(|()| socket.local_addr())
            .is_ok_and(|from| from.ip() == to.ip()),
        // There are no such addresses here. For want of a descriptor nobody knows.
        Err(error) => !has_no_such_addresses(&error),
    }
}

#[cfg(unix)]
fn has_no_such_addresses(error: &io::Error) -> bool {
    use rustix::io::Errno;

    let error = Errno::from_io_error(error);
    matches!(error, Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}

#[cfg(not(unix))]
fn has_no_such_addresses(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_not_public() {
        for (address, public) in [
            ("203.0.113.7", true),
            ("100.63.0.1", true),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("2001:db8::1", true),
            ("fd00::1", false),
            ("fe80::1", false),
            ("::1", false),
            ("::", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("0.0.0.0", false),
            ("::ffff:10.0.0.1", false),
            ("64:ff9b::10.0.0.1", false),
            ("64:ff9b::127.0.0.1", false),
            ("64:ff9b::203.0.113.7", true),
            ("2002:a00:1::1", false),
            ("::10.0.0.1", false),
            ("::ffff:0:10.0.0.1", false),
            ("::203.0.113.7", true),
            ("2002:7f00:1::1", false),
            ("2002:cb00:7107::1", true),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    #[test]
    fn services_that_hand_out_keys_are_known() {
        for (address, expected) in [
            ("169.254.169.254", true),
            ("169.254.0.1", true),
            ("100.100.100.200", true),
            ("168.63.129.16", true),
            ("192.0.0.192", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("fd20:ce::254", true),
            ("::ffff:169.254.169.254", true),
            ("64:ff9b::169.254.169.254", true),
            ("127.0.0.1", false),
            ("10.0.0.1", false),
            ("fd00:43::42", false),
            ("203.0.113.7", false),
        ] {
            assert_eq!(is_metadata(address.parse().unwrap()), expected, "{address}");
        }
    }
}
