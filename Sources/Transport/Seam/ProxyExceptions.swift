// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Hosts that are reached without a proxy.
struct ProxyExceptions: Sendable {
    private enum Hosts {
        case all
        /// A name, and those below it.
        case domain(String)
        /// The names below one.
        case subdomains(String)
        case addresses(AddressRange)
    }

    private var entries: [(hosts: Hosts, port: Int?)] = []
    /// The entry, of those that match no host, that is named to the user; `nil` if there is none.
    private(set) var unusable: String?

    /// - Parameter texts: each one or several entries, separated by commas or white space.
    init(_ texts: [String]) {
        for text in texts {
            for entry in text.splitScalars(whereSeparator: { $0 == "," || $0.properties.isWhitespace }) {
                if let parsed = Self.parsed(entry) { entries.append(parsed) } else if unusable == nil { unusable = String(entry) }
            }
        }
    }

    private static func parsed(_ entry: Substring) -> (Hosts, Int?)? {
        if entry == "*" { return (.all, nil) }
        if let range = AddressRange(String(entry)) ?? shortRange(entry) { return (.addresses(range), nil) }
        guard let (name, port) = RouteTarget.split(String(entry)) else { return nil }
        let isBelow = name.hasBytePrefix("*.")
        let isSuffix = isBelow || name.hasBytePrefix(".")
        let rest = name.dropFirstScalars(isBelow ? 2 : isSuffix ? 1 : 0)
        guard let host = URLHost.comparable(ifValid: String(rest)), !host.utf8.contains(UInt8(ascii: "*")) else { return nil }
        guard NetworkAddress(host) != nil else { return (isBelow ? .subdomains(host) : .domain(host), port) }
        // `192.168.` is no prefix, though a number of addresses to some systems.
        let plain = rest.hasBytePrefix("[") ? rest.dropFirstScalars().dropLastScalars() : rest
        guard !isSuffix, NetworkAddress(String(plain)) != nil else { return nil }
        return AddressRange(host).map { (.addresses($0), port) }
    }

    /// A range of IPv4 addresses without its last numbers, such as `169.254/16`, which is in macOS's default list.
    private static func shortRange(_ entry: Substring) -> AddressRange? {
        let parts = entry.splitScalars(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let missing = 4 - parts[0].splitScalars(separator: ".", omittingEmptySubsequences: false).count
        return missing > 0 ? AddressRange(parts[0] + String(repeating: ".0", count: missing) + "/" + parts[1]) : nil
    }

    /// Whether the host and port of a URL are reached without the proxy.
    func contains(_ target: RouteTarget) -> Bool {
        guard !entries.isEmpty else { return false }
        let address = NetworkAddress(target.host)
        return entries.contains { hosts, port in
            guard port ?? target.port == target.port else { return false }
            return switch hosts {
            case .all: true
            case .domain(let name): target.host == name || address == nil && target.host.hasByteSuffix("." + name)
            case .subdomains(let name): address == nil && target.host.hasByteSuffix("." + name)
            case .addresses(let range): address.map { range.contains($0) } ?? false
            }
        }
    }
}
