// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What the rules need of a request; its fields are read in one pass.
package struct CacheRequest: Sendable {
    /// How the request wants to use the cache.
    package enum Mode: Sendable, Hashable {
        /// By HTTP's rules.
        case protocolRules
        /// Nothing stored is used; the response may be stored.
        case ignoresStored
        /// A stored response is used after its validation only.
        case revalidates
        /// A stored response of any age, else the host.
        case storedOrHost
        /// A stored response of any age, else none.
        case storedOnly

        /// The mode of a cache policy.
        package init(_ policy: CachePolicy) {
            self =
                switch policy {
                case .useProtocolCachePolicy: .protocolRules
                case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: .ignoresStored
                case .returnCacheDataElseLoad: .storedOrHost
                case .returnCacheDataDontLoad: .storedOnly
                case .reloadRevalidatingCacheData: .revalidates
                }
        }
    }

    /// The method.
    package let method: HTTPMethod
    /// The header fields.
    package let headers: HTTPHeaders
    /// How the request wants to use the cache.
    package let mode: Mode
    /// What separates the responses that requests may share, beside their fields; empty for plain requests.
    package let partition: String
    /// The directives of the request.
    package let directives: CacheDirectives
    /// `If-None-Match`, all lines as one list.
    package private(set) var ifNoneMatch: String?
    /// `If-Modified-Since`.
    package private(set) var ifModifiedSince: String?
    /// `If-Range`.
    package private(set) var ifRange: String?
    /// `Range`.
    package private(set) var range: String?
    /// Whether there is an `If-Match` or `If-Unmodified-Since`, which only the host can evaluate.
    package private(set) var hasPreconditions = false

    /// Creates a description of a request.
    package init(method: HTTPMethod, headers: HTTPHeaders, mode: Mode, partition: String = "") {
        self.method = method
        self.headers = headers
        self.mode = mode
        self.partition = partition
        directives = CacheDirectives(headers)
        for field in headers {
            switch field.name.utf8.count {
            case 5 where field.isNamed("Range"): range = range ?? field.value
            case 8 where field.isNamed("If-Range"): ifRange = field.value
            case 8 where field.isNamed("If-Match"): hasPreconditions = true
            case 13 where field.isNamed("If-None-Match"): ifNoneMatch = ifNoneMatch.map { "\($0), \(field.value)" } ?? field.value
            case 17 where field.isNamed("If-Modified-Since"): ifModifiedSince = field.value
            case 19 where field.isNamed("If-Unmodified-Since"): hasPreconditions = true
            default: break
            }
        }
    }

    /// Whether the request asks for a 304 in place of a representation that it has.
    package var isConditional: Bool { ifNoneMatch != nil || ifModifiedSince != nil }

    /// Whether a stored response may answer the method.
    package var isCacheable: Bool { method == .get || method == .head }
}

extension HTTPMethod {
    /// Whether the method is safe (RFC 9110, section 9.2.1): others, and unknown ones, invalidate what is stored.
    package var isSafe: Bool { [.get, .head, .options, .trace].contains(self) }
}
