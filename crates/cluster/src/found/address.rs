//! The classes of IP addresses, and which of them a cluster that a Secret names must not have.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of an IP address, as far as it decides whether a cluster that a Secret names may have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressClass {
    /// An address of another machine, public or private.
    Ordinary,
    /// An address of this machine.
    Loopback,
    /// An address of the local link.
    LinkLocal,
    /// An address at which a cloud serves metadata and credentials of this machine.
    Metadata,
    /// The unspecified address (`0.0.0.0`, with its network `0.0.0.0/8`, or `::`), which many systems take for their
    /// own.
    Unspecified,
    /// A multicast address, which is that of a group of machines.
    Multicast,
    /// An address of `240.0.0.0/4`, which is reserved; it ends with the broadcast address.
    Reserved,
}

impl Display for AddressClass {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressClass::Ordinary => "an ordinary address",
            AddressClass::Loopback => "a loopback address",
            AddressClass::LinkLocal => "a link-local address",
            AddressClass::Metadata => "the address of a cloud's metadata service",
            AddressClass::Unspecified => "the unspecified address",
            AddressClass::Multicast => "a multicast address",
            AddressClass::Reserved => "a reserved address",
        })
    }
}

/// The error of dialling an address that a cluster which a Secret names must not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {class}")]
pub(crate) struct AddressRefused {
    pub(crate) address: IpAddr,
    pub(crate) class: AddressClass,
}

impl AddressClass {
    /// Returns the class of an address. An IPv6 address that contains an IPv4 address (mapped, translated, compatible,
    /// NAT64 or 6to4) has the class of that.
    pub fn of(address: IpAddr) -> AddressClass {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        // AWS, GCP, Azure and others; the credentials of ECS tasks and EKS Pods; Alibaba; Azure's host; Oracle.
        [169, 254, 169 | 170, _] | [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => {
            AddressClass::Metadata
        }
        [127, ..] => AddressClass::Loopback,
        [169, 254, ..] => AddressClass::LinkLocal,
        // The whole network means "this host".
        [0, ..] => AddressClass::Unspecified,
        [224..=239, ..] => AddressClass::Multicast,
        [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Ordinary,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    if address.is_loopback() {
        return AddressClass::Loopback;
    }
    if address.is_unspecified() {
        return AddressClass::Unspecified;
    }
    let segments = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // AWS, GCP, and OpenStack.
        [0xfd00, 0x0ec2, ..]
        | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254]
        | [0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe] => AddressClass::Metadata,
        // Compatible, mapped and translated.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => v4(high, low),
        // NAT64, by the well-known prefix and by the local one.
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] | [0x0064, 0xff9b, 1, _, _, _, high, low] => v4(high, low),
        // 6to4.
        [0x2002, high, low, ..] => v4(high, low),
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        _ => AddressClass::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_have_their_class() {
        use AddressClass::*;
        for (address, class) in [
            ("10.0.0.1", Ordinary),
            ("192.168.1.1", Ordinary),
            ("100.100.100.201", Ordinary),
            ("203.0.113.7", Ordinary),
            ("fd12::1", Ordinary),
            ("2001:db8::1", Ordinary),
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("::1", Loopback),
            ("169.254.0.1", LinkLocal),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("169.254.169.254", Metadata),
            ("169.254.170.2", Metadata),
            ("100.100.100.200", Metadata),
            ("168.63.129.16", Metadata),
            ("192.0.0.192", Metadata),
            ("fd00:ec2::254", Metadata),
            ("fd00:ec2:1::1", Metadata),
            ("fd20:ce::254", Metadata),
            ("fe80::a9fe:a9fe", Metadata),
            ("0.0.0.0", Unspecified),
            ("0.1.2.3", Unspecified),
            ("::", Unspecified),
            ("224.0.0.1", Multicast),
            ("ff02::1", Multicast),
            ("255.255.255.255", Reserved),
            ("240.0.0.1", Reserved),
            ("::ffff:127.0.0.1", Loopback),
            ("64:ff9b::a9fe:a9fe", Metadata),
            ("64:ff9b:1::7f00:1", Loopback),
            ("2002:7f00:1::", Loopback),
            ("2002:a9fe:a9fe::1", Metadata),
        ] {
            assert_eq!(AddressClass::of(address.parse().unwrap()), class, "{address}");
        }
    }

    proptest! {
        #[test]
        fn every_form_of_an_ipv4_address_has_the_class_of_the_address(bits: u32, rest: u64, local: u16) {
            let (high, low) = ((bits >> 16) as u16, bits as u16);
            let class = of_v4(Ipv4Addr::from(bits));
            let tail = [(rest >> 48) as u16, (rest >> 32) as u16, (rest >> 16) as u16, rest as u16];
            for form in [
                [0, 0, 0, 0, 0, 0xffff, high, low],
                [0, 0, 0, 0, 0xffff, 0, high, low],
                [0x64, 0xff9b, 0, 0, 0, 0, high, low],
                [0x64, 0xff9b, 1, local, tail[0], tail[1], high, low],
                [0x2002, high, low, local, tail[0], tail[1], tail[2], tail[3]],
            ] {
                let [a, b, c, d, e, f, g, h] = form;
                let address = Ipv6Addr::new(a, b, c, d, e, f, g, h);
                prop_assert_eq!(AddressClass::of(address.into()), class, "{}", address);
            }
        }

        #[test]
        fn what_the_standard_library_calls_special_is_never_ordinary(bits: u128) {
            for address in [IpAddr::V6(bits.into()), IpAddr::V4((bits as u32).into())] {
                let is_special = address.is_loopback() || address.is_unspecified() || address.is_multicast()
                    || match address {
                        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
                        IpAddr::V6(address) => address.is_unicast_link_local(),
                    };
                prop_assert!(!is_special || AddressClass::of(address) != AddressClass::Ordinary, "{}", address);
            }
        }

        #[test]
        fn whole_ranges_have_one_class(low: u128) {
            let network = |prefix: u128, bits: u32| Ipv6Addr::from(prefix << (128 - bits) | (low >> bits));
            prop_assert_eq!(AddressClass::of(network(0xfd00_0ec2, 32).into()), AddressClass::Metadata);
            prop_assert_eq!(AddressClass::of(network(0xff, 8).into()), AddressClass::Multicast);
            prop_assert_ne!(AddressClass::of(network(0xfe80 >> 6, 10).into()), AddressClass::Ordinary);
        }
    }
}
