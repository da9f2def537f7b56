//! What kind of network an address belongs to.

use std::net::{IpAddr, Ipv4Addr};

/// Returns whether an address belongs to no private network: neither RFC 1918's nor a provider's own (RFC 6598), nor IPv6's unique
/// local ones, also where an IPv6 address only wraps such a one (NAT64, 6to4).
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => {
            let [first, second, ..] = it.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            !it.is_private() && !is_shared
        }
        IpAddr::V6(it) => {
            let wrapped = match it.segments() {
                [0x64, 0xff9b, .., high, low] => Some((high, low)),
                [0x2002, high, low, ..] => Some((high, low)),
                _ => None,
            };
            let wrapped =
                wrapped.map(|(high, low)| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
            let is_wrapped_safe = wrapped.is_none_or(|it| {
                is_public(it.into())
                    && !it.is_loopback()
                    && !it.is_link_local()
                    && !it.is_unspecified()
            });
            !it.is_unique_local() && is_wrapped_safe
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
            ("::ffff:10.0.0.1", false),
            ("64:ff9b::10.0.0.1", false),
            ("64:ff9b::127.0.0.1", false),
            ("64:ff9b::203.0.113.7", true),
            ("2002:a00:1::1", false),
            ("2002:7f00:1::1", false),
            ("2002:cb00:7107::1", true),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }
}
