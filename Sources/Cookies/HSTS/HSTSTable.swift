// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A host that is to be connected to over TLS only (RFC 6797).
public struct HSTSHost: Sendable, Hashable {
    /// The host's name, in the form in which hosts are compared: in ASCII by IDNA, in lower case, without a trailing dot.
    public let host: String
    /// Whether its subdomains are, too.
    public let includesSubdomains: Bool
    /// When the host is forgotten, unless it is heard from before.
    public let expirationDate: Date

    /// Creates an entry; an expiration date in the past has no effect.
    public init(host: String, includesSubdomains: Bool = false, expirationDate: Date) {
        self.host = host.comparableHost
        self.includesSubdomains = includesSubdomains
        self.expirationDate = expirationDate
    }
}

/// The known hosts, and the rules for them (RFC 6797, section 8). Pure: time and input are given.
package struct HSTSTable: Sendable {
    /// The most hosts, beyond which those that expire first are forgotten.
    static let limit = 10_000

    package private(set) var records: [String: HSTSHost] = [:]

    package init() {}

    /// Notes what a host has sent over TLS, or forgets it with a `max-age` of 0; does nothing for an address (section 8.1.1).
    package mutating func note(_ field: StrictTransportSecurity, from host: String, now: Date) {
        guard let host = Self.normalized(host) else { return }
        guard field.maximumAge > 0 else {
            records[host] = nil
            return
        }
        set(Self.entry(field, host, now: now), now: now)
    }

    /// Whether noting a field changes what matters: all but a small change of the expiration date.
    package func isChanged(by field: StrictTransportSecurity, from host: String, now: Date) -> Bool {
        guard let host = Self.normalized(host) else { return false }
        guard field.maximumAge > 0 else { return records[host] != nil }
        guard let old = records[host], old.includesSubdomains == field.includesSubdomains, old.expirationDate > now else { return true }
        let new = Self.entry(field, host, now: now)
        return abs(new.expirationDate.timeIntervalSince(old.expirationDate)) > min(3600, Double(field.maximumAge) / 10)
    }

    private static func entry(_ field: StrictTransportSecurity, _ host: String, now: Date) -> HSTSHost {
        // In whole seconds, as files have them.
        let expiry = (now.timeIntervalSince1970 + Double(field.maximumAge)).rounded(.up)
        return HSTSHost(host: host, includesSubdomains: field.includesSubdomains, expirationDate: Date(timeIntervalSince1970: expiry))
    }

    package mutating func set(_ entry: HSTSHost, now: Date) {
        guard entry.expirationDate > now else { return }
        records[entry.host] = entry
        guard records.count > Self.limit else { return }
        records = records.filter { $0.value.expirationDate > now }
        while records.count > Self.limit, let first = records.values.min(by: { $0.expirationDate < $1.expirationDate }) {
            records[first.host] = nil
        }
    }

    package mutating func remove(_ host: String) -> Bool {
        guard let host = Self.normalized(host) else { return false }
        return records.removeValue(forKey: host) != nil
    }

    /// Whether a host, or a domain above it with its subdomains, is known (section 8.2).
    package func isKnown(_ host: String, now: Date) -> Bool {
        guard !records.isEmpty, let host = Self.normalized(host) else { return false }
        if let entry = records[host], entry.expirationDate > now { return true }
        var rest = host[...]
        while let dot = rest.unicodeScalars.firstIndex(of: ".") {
            rest = rest.suffix(afterScalarAt: dot)
            if let entry = records[String(rest)], entry.includesSubdomains, entry.expirationDate > now { return true }
        }
        return false
    }

    /// The name in the form in which hosts are compared; `nil` for an address, which can't be known.
    static func normalized(_ host: String) -> String? {
        URLHost.comparable(ifValid: host).flatMap { CookieRules.isAddress($0) ? nil : $0 }
    }

    // MARK: URLs

    /// Returns the URL with which a request to a known host is made: `https` in place of `http`, `wss` in place of `ws`, and port 443 in place
    /// of an explicit 80 (section 8.3); `nil` for one that stays.
    package func upgraded(_ url: String, now: Date) -> String? {
        guard !records.isEmpty, let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let scheme = url[..<colon].lowercased()
        guard scheme == "http" || scheme == "ws", let origin = HTTPOrigin(url: url), isKnown(origin.host, now: now) else { return nil }
        return (scheme == "http" ? "https" : "wss") + Self.withoutPort80(url[colon...])
    }

    /// Replaces an explicit port 80 in what follows the scheme.
    private static func withoutPort80(_ rest: Substring) -> String {
        let start = rest.utf8.index(rest.startIndex, offsetBy: 3, limitedBy: rest.endIndex) ?? rest.endIndex
        let end = rest[start...].unicodeScalars.firstIndex { "/?#".unicodeScalars.contains($0) } ?? rest.endIndex
        let authority = rest[start..<end]
        guard let colon = authority.unicodeScalars.lastIndex(of: ":"), !authority[colon...].unicodeScalars.contains("]"),
            !authority[colon...].unicodeScalars.contains("@"),
            Int(authority.suffix(afterScalarAt: colon)) == 80
        else { return String(rest) }
        return rest[..<colon] + ":443" + rest[end...]
    }
}

extension HSTSTable: SharedTable {
    package mutating func replace(with records: [String: HSTSHost]) { self.records = records }

    package static func isSame(_ first: HSTSHost, _ second: HSTSHost) -> Bool { first == second }
}
