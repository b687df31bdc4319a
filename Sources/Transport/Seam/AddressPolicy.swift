// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The addresses that transfers may connect to.
///
/// For servers that fetch URLs supplied by users: without a limit such URLs reach the server's own network (server-side request forgery).
/// The policy applies to the address and the port of each connection, after the host's name was resolved, so that neither redirects nor
/// names that later resolve to another address (DNS rebinding) bypass it. It applies to what ``TransferOptions/resolve``,
/// ``TransferOptions/connectTo``, a resolver or an alternative service lead to as well, and to pooled connections.
///
/// ```swift
/// configuration.addresses = .publicOnly
/// configuration.addresses.ports = [80, 443]
/// ```
///
/// A proxy resolves names and connects by itself, so that the policy can't be enforced: see ``allowsProxies``. The policy does not apply to
/// what the program names rather than a URL: a Unix domain socket, a proxy that is allowed, the server of ``TransferOptions/dohURL``.
public struct AddressPolicy: Sendable, Hashable {
    /// All addresses; the default.
    public static let any = AddressPolicy(limitsAddresses: false, exceptions: [])

    /// Globally reachable addresses only.
    ///
    /// Refuses addresses that the special-purpose registries (RFC 6890, section 2.2) don't list as globally reachable: private, loopback,
    /// link-local, shared, documentation, multicast and reserved addresses, also within IPv6 addresses that embed an IPv4 address (RFC
    /// 4291, section 2.5.5; RFC 6052; RFC 3056), and the addresses of cloud metadata services.
    public static let publicOnly = publicOnly(except: [])

    /// Globally reachable addresses and the given exceptions; see ``publicOnly``.
    public static func publicOnly(except allowed: [AddressRange]) -> AddressPolicy {
        AddressPolicy(limitsAddresses: true, exceptions: allowed)
    }

    /// The ports that may be connected to; `nil`, the default, for all.
    ///
    /// Without it a URL such as `http://mail.example.org:25/` connects to any service of an allowed address. Through a proxy the URL's port
    /// counts.
    public var ports: Set<Int>?

    /// Whether transfers may go through a proxy although addresses are limited; `false` by default.
    ///
    /// `false` fails a transfer for which ``TransferOptions/proxy`` has a proxy, of the environment or of the program, with
    /// ``TransferFailure/Kind/configuration``, unless its host is one of the proxy's exceptions: those are connected to directly, under the
    /// policy. Set it to `true` if the proxy itself limits where it connects to, or ``TransferOptions/proxy`` to ``ProxyPolicy/none``. The
    /// proxy's own address and port are not limited.
    public var allowsProxies = false

    let limitsAddresses: Bool
    let exceptions: [AddressRange]

    private init(limitsAddresses: Bool, exceptions: [AddressRange]) {
        self.limitsAddresses = limitsAddresses
        self.exceptions = exceptions
    }

    /// Whether not every address and port is allowed.
    var isLimited: Bool { limitsAddresses || ports != nil }

    func allows(_ address: NetworkAddress) -> Bool {
        !limitsAddresses || exceptions.contains { $0.contains(address) } || address.isGloballyReachable
    }

    /// Why connecting to an address and a port is not allowed; `nil` if it is.
    func refusal(of address: NetworkAddress, port: Int) -> String? {
        guard allows(address) else { return "Connecting to the host's address \(address) is not allowed" }
        return refusal(ofPort: port)
    }

    private func refusal(ofPort port: Int) -> String? {
        guard let ports, !ports.contains(port) else { return nil }
        return "Connecting to the host's port \(port) is not allowed"
    }

    /// Why a transfer to a URL must not go through a proxy; `nil` if it may.
    func refusal(of proxy: Proxy, for url: String, policy: ProxyPolicy) -> (kind: TransferFailure.Kind, message: String)? {
        guard allowsProxies || !limitsAddresses else {
            let origin = policy == .environment ? " of the environment" : ""
            let message =
                "The addresses are limited, but the proxy \(ProxyPolicy.shown(proxy.url))\(origin) resolves and connects by itself: set "
                + "`proxy` to `.none`, or `addresses.allowsProxies` if the proxy limits addresses"
            return (.configuration, message)
        }
        return RouteTarget(url: url).flatMap { refusal(ofPort: $0.port) }.map { (.addressNotAllowed, $0) }
    }
}

/// A range of addresses, such as `10.1.0.0/16` or `fd12::/16`.
public struct AddressRange: Sendable, Hashable {
    private let first: NetworkAddress
    /// The prefix length in bits, of 128.
    private let prefixLength: Int
    /// The range as a text that no other one has.
    var partitionText: String { "\(first)/\(prefixLength)" }

    /// Parses an IPv4 or IPv6 address, or a range in CIDR notation (RFC 4632, section 3.1; RFC 4291, section 2.3).
    ///
    /// `nil` for any other text. Bits after the prefix are ignored.
    public init?(_ text: String) {
        let parts = text.splitScalars(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = NetworkAddress(String(parts[0])) else { return nil }
        var length = address.isIPv4 ? 32 : 128
        if parts.count == 2 {
            guard let given = Int(parts[1]), (0...length).contains(given), parts[1].utf8.allSatisfy({ $0 != UInt8(ascii: "+") }) else {
                return nil
            }
            length = given
        }
        first = address
        prefixLength = address.isIPv4 ? 96 + length : length
    }

    func contains(_ address: NetworkAddress) -> Bool {
        let highMask = prefixLength >= 64 ? .max : ~(UInt64.max >> UInt64(prefixLength))
        let lowMask = prefixLength >= 128 ? .max : prefixLength <= 64 ? 0 : ~(UInt64.max >> UInt64(prefixLength - 64))
        return (address.high ^ first.high) & highMask == 0 && (address.low ^ first.low) & lowMask == 0
    }
}

/// An IPv6 address, or an IPv4 address mapped into one (RFC 4291, section 2.5.5.2).
struct NetworkAddress: Hashable, Sendable {
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    private init(ipv4: UInt32) {
        self.init(high: 0, low: 0xFFFF << 32 | UInt64(ipv4))
    }

    /// Parses the textual form of either; an IPv6 address may have a zone (`%eth0`).
    init?(_ text: String) {
        var v4 = in_addr()
        var v6 = in6_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            self.init(ipv4: UInt32(bigEndian: v4.s_addr))
        } else if inet_pton(AF_INET6, String(text.prefixScalars { $0 != "%" }), &v6) == 1 {
            self.init(v6)
        } else {
            return nil
        }
    }

    /// Converts a socket address; `nil` if its family is not IP.
    init?(_ address: UnsafePointer<sockaddr>) {
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            let bits = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr
            self.init(ipv4: UInt32(bigEndian: bits))
        case AF_INET6: self.init(UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in6.self).sin6_addr)
        default: return nil
        }
    }

    /// The port of a socket address of either family.
    static func port(of address: UnsafePointer<sockaddr>) -> Int {
        // At the same place in both.
        Int(UInt16(bigEndian: UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self).sin_port))
    }

    private init(_ address: in6_addr) {
        let (high, low) = withUnsafeBytes(of: address) {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        self.init(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
    }

    var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// Whether the address is routed on the Internet.
    var isGloballyReachable: Bool {
        if let inner = embeddedIPv4 { return inner.isGloballyReachable }
        if isIPv4 { return !Self.specialIPv4.contains { $0.contains(self) } }
        return high >> 61 == 1 && !Self.specialIPv6.contains { $0.contains(self) }
    }

    /// The IPv4 address that an IPv6 address reaches through a translator or a tunnel.
    private var embeddedIPv4: NetworkAddress? {
        // NAT64 (RFC 6052, section 2.1) and 6to4 (RFC 3056, section 2).
        if high == 0x0064_FF9B_0000_0000, low >> 32 == 0 { return NetworkAddress(ipv4: UInt32(low)) }
        if high >> 48 == 0x2002 { return NetworkAddress(ipv4: UInt32(truncatingIfNeeded: high >> 16)) }
        return nil
    }

    /// https://www.iana.org/assignments/iana-ipv4-special-registry, multicast, and Azure's host address.
    private static let specialIPv4 = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
    ].compactMap(AddressRange.init)

    /// https://www.iana.org/assignments/iana-ipv6-special-registry, restricted to the global addresses 2000::/3.
    private static let specialIPv6 = ["2001::/23", "2001:db8::/32", "3fff::/20"].compactMap(AddressRange.init)
}

// MARK: - CustomStringConvertible

extension NetworkAddress: CustomStringConvertible {
    var description: String {
        if isIPv4 { return [24, 16, 8, 0].map { String(UInt8(truncatingIfNeeded: low >> UInt64($0))) }.joined(separator: ".") }
        let groups = [high, low].flatMap { half in [48, 32, 16, 0].map { UInt16(truncatingIfNeeded: half >> UInt64($0)) } }
        return groups.map { String($0, radix: 16) }.joined(separator: ":")
    }
}
