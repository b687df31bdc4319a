// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How a cache has handled a request: a member of the field `Cache-Status` (RFC 9211, section 2).
///
/// ``list(in:)`` reads what the caches on the way tell, `TransferMetrics.cacheStatus` tells the same of the session's own cache.
public struct CacheStatus: Sendable, Hashable {
    /// Why a request was forwarded towards the host (RFC 9211, section 2.2). An open set.
    public struct Forward: RawRepresentable, Sendable, Hashable {
        /// The reason, as the field has it.
        public let rawValue: String

        /// Creates a reason from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The cache was configured not to handle the request.
        public static let bypass = Forward(rawValue: "bypass")
        /// The semantics of the method demand it.
        public static let method = Forward(rawValue: "method")
        /// Nothing was stored for the URL.
        public static let uriMiss = Forward(rawValue: "uri-miss")
        /// What was stored for the URL was selected by other header fields.
        public static let varyMiss = Forward(rawValue: "vary-miss")
        /// There was no response for one of the two reasons before.
        public static let miss = Forward(rawValue: "miss")
        /// A fresh response was stored, but the request's directives did not allow its use.
        public static let request = Forward(rawValue: "request")
        /// The stored response was stale.
        public static let stale = Forward(rawValue: "stale")
        /// Not all of the wanted range was stored.
        public static let partial = Forward(rawValue: "partial")
    }

    /// The name of the session's own cache.
    public static let ownName = "Curlew"

    /// The name that the cache gives itself.
    public var cache: String
    /// Whether a stored response was used without forwarding the request.
    public var isHit = false
    /// Why the request was forwarded; `nil` if it was not, or the cache does not say so.
    public var forward: Forward?
    /// The status of the response to the forwarded request, if it is told.
    public var forwardStatus: Int?
    /// The remaining freshness lifetime in seconds, if it is told; negative for a stale response.
    public var timeToLive: Int?
    /// Whether the response to the forwarded request was stored.
    public var isStored = false
    /// Whether the forwarded request was collapsed with others.
    public var isCollapsed = false
    /// A representation of the cache's key, if it is told.
    public var key: String?
    /// More, in a form of the cache's own.
    public var detail: String?

    /// Creates the status of a cache that tells nothing but its name.
    public init(cache: String) { self.cache = cache }

    /// The members of all lines of `Cache-Status`: the cache that is closest to the host first. Empty without a field, or if one does not
    /// parse, as a structured field that is invalid is ignored (RFC 9651, section 4.2).
    public static func list(in headers: HTTPHeaders) -> [CacheStatus] {
        var list: [CacheStatus] = []
        for member in headers.members(of: "Cache-Status") {
            guard let status = CacheStatus(member: member) else { return [] }
            list.append(status)
        }
        return list
    }

    private init?(member: Substring) {
        let parts = FieldParser.members(of: member, separator: ";")
        guard let first = parts.first, let name = Self.item(first) else { return nil }
        self.init(cache: name)
        for part in parts.dropFirst() {
            let equals = part.utf8.firstIndex(of: UInt8(ascii: "="))
            let parameter = String(part[..<(equals ?? part.endIndex)])
            guard Self.isKey(parameter) else { return nil }
            let text = equals.map { part[part.utf8.index(after: $0)...] } ?? "?1"
            guard set(parameter, text) else { return nil }
        }
    }

    /// Parameters that are unknown, or have another type than they should, are ignored; `false` for a value that is no item.
    private mutating func set(_ parameter: String, _ text: Substring) -> Bool {
        guard let value = Self.item(text) else { return false }
        let isQuoted = text.utf8.first == UInt8(ascii: "\"")
        switch parameter {
        case "hit": isHit = text == "?1"
        case "stored": isStored = text == "?1"
        case "collapsed": isCollapsed = text == "?1"
        case "fwd": if !isQuoted { forward = Forward(rawValue: value) }
        case "fwd-status": if !isQuoted, let status = Int(value), (100...999).contains(status) { forwardStatus = status }
        case "ttl": if !isQuoted { timeToLive = Int(value) }
        case "key": if isQuoted { key = value }
        case "detail": detail = value
        default: break
        }
        return true
    }

    private static func isKey(_ text: String) -> Bool {
        guard let first = text.utf8.first, (0x61...0x7A).contains(first) || first == UInt8(ascii: "*") else { return false }
        return text.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0.isASCIIDigit || "_-.*".utf8.contains($0) }
    }

    /// The content of a string, or the text of a token, number or boolean; `nil` for anything else.
    private static func item(_ text: Substring) -> String? {
        let bytes = text.utf8
        guard let first = bytes.first else { return nil }
        guard first == UInt8(ascii: "\"") else {
            return bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") } ? String(text) : nil
        }
        var content: [UInt8] = []
        var isEscaped = false
        var isClosed = false
        for byte in bytes.dropFirst() {
            guard !isClosed, (0x20..<0x7F).contains(byte) else { return nil }
            if isEscaped {
                guard byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { return nil }
                content.append(byte)
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isClosed = true
            } else {
                content.append(byte)
            }
        }
        return isClosed ? String(decoding: content, as: UTF8.self) : nil
    }

    /// Why a request that was forwarded for a reason was, in the terms of the field.
    package static func forward(for reason: CacheReason) -> Forward {
        switch reason {
        case .notStored: .uriMiss
        case .otherVariant: .varyMiss
        case .stale, .requiredByResponse, .staleIfError: .stale
        case .requestedByRequest: .request
        case .otherRange: .partial
        // Nothing tells what would have been found.
        case .storeFailed, .collapsed: .miss
        case .method: .method
        default: .bypass
        }
    }
}

extension CacheStatus: CustomStringConvertible {
    /// The member as the field has it.
    public var description: String {
        let isToken = cache.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"(),/:;<=>?@[\\]{}".utf8.contains($0) }
        let startsWithLetter = cache.utf8.first.map { (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0) } ?? false
        var text = isToken && startsWithLetter ? cache : cache.quotedString
        if isHit { text += "; hit" }
        if let forward { text += "; fwd=\(forward.rawValue)" }
        if let forwardStatus { text += "; fwd-status=\(forwardStatus)" }
        if let timeToLive { text += "; ttl=\(timeToLive)" }
        if isStored { text += "; stored" }
        if isCollapsed { text += "; collapsed" }
        if let key { text += "; key=\(key.quotedString)" }
        if let detail { text += "; detail=\(detail.quotedString)" }
        return text
    }
}
