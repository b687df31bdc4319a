// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A cookie as it is stored (RFC 6265bis, section 5.7).
public struct Cookie: Sendable, Hashable {
    /// The value of the attribute `SameSite` (RFC 6265bis, section 5.6.7).
    public enum SameSite: String, Sendable, Hashable, CaseIterable {
        /// Not sent with requests that belong to a document of another site.
        case strict = "Strict"
        /// The same as ``strict``: what distinguishes them is a navigation, which a library does not make.
        case lax = "Lax"
        /// Sent with every request.
        case none = "None"
    }

    /// What distinguishes a cookie from others: one that is set replaces a stored one with the same.
    public struct ID: Sendable, Hashable {
        /// ``Cookie/name``.
        public let name: String
        /// ``Cookie/domain``.
        public let domain: String
        /// ``Cookie/isHostOnly``.
        public let isHostOnly: Bool
        /// ``Cookie/path``.
        public let path: String
    }

    /// The name, which is empty for a cookie without an equals sign.
    public var name: String
    /// The value, with its quotation marks if it has some.
    public var value: String
    /// The host, or the domain of the hosts, to which it is sent: in lower case, without a leading dot.
    public var domain: String
    /// Whether it is sent to the host ``domain`` only, and not to its subdomains.
    public var isHostOnly: Bool
    /// The path at and below which it is sent; begins with a slash.
    public var path: String
    /// Whether it is sent over TLS only.
    public var isSecure: Bool
    /// Whether it was set with `HttpOnly`, which hides it from scripts of browsers.
    public var isHTTPOnly: Bool
    /// The attribute `SameSite`; `nil` without one, which has a cookie sent with every request.
    public var sameSite: SameSite?
    /// When it expires; `nil` for one that lasts as long as the store's memory.
    public var expirationDate: Date?
    /// When it was first set.
    public var creationDate: Date
    /// When it was last set or sent.
    public var lastAccessDate: Date

    /// Creates a cookie. Nothing is validated before ``CookieStore/set(_:)``.
    ///
    /// - Parameters:
    ///   - domain: the host or domain, without a leading dot; stored in the form in which hosts are compared: in ASCII by IDNA, in lower
    ///     case, an IPv4 address as four decimal numbers.
    ///   - isHostOnly: `true` by default: the cookie is not sent to subdomains.
    ///   - path: `/` by default.
    ///   - expirationDate: `nil`, the default, for a cookie that is not kept in a file.
    public init(
        name: String, value: String, domain: String, isHostOnly: Bool = true, path: String = "/", isSecure: Bool = false,
        isHTTPOnly: Bool = false, sameSite: SameSite? = nil, expirationDate: Date? = nil
    ) {
        self.name = name
        self.value = value
        self.domain = domain.comparableHost
        self.isHostOnly = isHostOnly
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
        self.expirationDate = expirationDate
        creationDate = Date()
        lastAccessDate = creationDate
    }

    /// What distinguishes the cookie from others.
    public var id: ID { ID(name: name, domain: domain, isHostOnly: isHostOnly, path: path) }

    /// Whether it has an expiration date, and so outlives the program in a file.
    public var isPersistent: Bool { expirationDate != nil }

    /// Whether its time is over.
    package func isExpired(at now: Date) -> Bool { expirationDate.map { $0 <= now } ?? false }

    /// The cookie in a `Cookie` field (RFC 6265bis, section 5.8.3).
    package var pair: String { name.isEmpty ? value : "\(name)=\(value)" }

    /// Whether it is the same apart from when it was last used.
    func isSame(as other: Cookie) -> Bool {
        var copy = other
        copy.lastAccessDate = lastAccessDate
        return self == copy
    }

    /// Why it can't be stored; `nil` if it can.
    var defect: String? {
        if name.isEmpty && value.isEmpty { return "it has neither a name nor a value" }
        if name.utf8.count + value.utf8.count > SetCookie.largestPair { return "its name and value exceed \(SetCookie.largestPair) bytes" }
        if path.utf8.count > SetCookie.largestAttribute { return "its path exceeds \(SetCookie.largestAttribute) bytes" }
        if path.utf8.first != UInt8(ascii: "/") { return "its path does not begin with a slash" }
        if name.utf8.contains(where: { "=;".utf8.contains($0) }) { return "its name contains a separator" }
        if value.utf8.contains(UInt8(ascii: ";")) || path.utf8.contains(UInt8(ascii: ";")) { return "it contains a semicolon" }
        if [name, value, path].contains(where: { SetCookie.hasControls($0) }) { return "it contains a control character" }
        if [name, value].contains(where: { SetCookie.isPadded($0) }) { return "its name or value begins or ends with a blank" }
        if domain.isEmpty || domain.utf8.first == UInt8(ascii: ".")
            || domain.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F || "/;,".utf8.contains($0) })
        {
            return "its domain is no host name"
        }
        if !isHostOnly, CookieRules.isAddress(domain) || CookieRules.isPublicSuffix(domain) {
            return "its domain is an address or a public suffix"
        }
        return prefixDefect
    }

    private var prefixDefect: String? {
        let prefix = SetCookie.prefix(of: name, value)
        if name.isEmpty, prefix != .none { return "it has no name, and a value with the prefix of one" }
        if prefix != .none, !isSecure { return "its name's prefix is for secure cookies" }
        return prefix == .host && (!isHostOnly || path != "/") ? "its name's prefix is for cookies of one host with the path /" : nil
    }
}

extension Cookie: CustomStringConvertible, RedactedReflectable {
    /// Name and scope, without the value.
    public var description: String { "\(name) (\(isHostOnly ? "" : ".")\(domain)\(path))" }

    /// The properties without the value.
    package var shownParts: KeyValuePairs<String, Any> {
        [
            "name": name, "domain": domain, "isHostOnly": isHostOnly, "path": path, "isSecure": isSecure, "isHTTPOnly": isHTTPOnly,
            "sameSite": sameSite as Any, "expirationDate": expirationDate as Any,
        ]
    }
}

/// Why a store of cookies or of hosts with HSTS refuses something. Later versions may add cases, so a `switch` needs a `default`.
public enum CookieStoreError: Error, Sendable, Hashable {
    /// The cookie can't be stored.
    case invalidCookie(name: String, reason: String)
    /// The file is of another kind: it is neither read nor overwritten. `line` is the first one that is not understood, from 1.
    case unknownFormat(path: String, line: Int)
    /// Another process has locked the file for longer than five seconds.
    case locked(path: String)
}

extension CookieStoreError: LocalizedError, CustomStringConvertible {
    /// What is wrong, and where.
    public var description: String {
        switch self {
        case .invalidCookie(let name, let reason): "The cookie \(name) can't be stored: \(reason)"
        case .unknownFormat(let path, let line): "The file \(path) has another format: its line \(line) is not understood"
        case .locked(let path): "The file \(path) is locked by another process"
        }
    }

    /// The description.
    public var errorDescription: String? { description }
}
