//! What kind of network an address belongs to.

use std::net::{IpAddr, Ipv4Addr};

/// Returns the IPv4 address that an IPv6 one only wraps (as IPv4-mapped and IPv4-compatible ones do, NAT64, SIIT and 6to4), and
/// else the address itself.
pub(crate) fn unwrapped(address: IpAddr) -> IpAddr {
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
}
