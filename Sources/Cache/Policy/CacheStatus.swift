// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How a cache has handled a request, as the field `Cache-Status` tells it (RFC 9211, section 2).
package struct CacheStatus: Sendable, Hashable {
    /// Why a request was forwarded to the host (section 2.2).
    package enum Forward: String, Sendable, Hashable {
        case bypass
        case method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case request
        case stale
        case partial
    }

    /// The name of this cache, the member's value.
    package static let cacheName = "Curlew"

    /// Why the request was forwarded; `nil` for a hit.
    package var forward: Forward?
    /// The status of the host's response, if it differs from the delivered one's.
    package var forwardStatus: Int?
    /// The remaining freshness lifetime in seconds; negative for a stale response.
    package var timeToLive: Int?
    /// Whether the host's response was stored.
    package var isStored = false
    /// Whether the request was served by another one's response.
    package var isCollapsed = false
    /// The name of the reason.
    package var detail: String?

    /// Creates the status of a hit.
    package init() {}

    /// Why a request that was forwarded for a reason was, in the terms of the field.
    package static func forward(for reason: CacheReason) -> Forward {
        switch reason {
        case .notStored: .uriMiss
        case .otherVariant: .varyMiss
        case .stale, .requiredByResponse, .staleIfError: .stale
        case .requestedByRequest: .request
        case .otherRange: .partial
        case .method: .method
        default: .bypass
        }
    }

    /// The member of the list.
    package var member: String {
        var text = Self.cacheName
        if let forward { text += "; fwd=\(forward.rawValue)" } else { text += "; hit" }
        if let forwardStatus { text += "; fwd-status=\(forwardStatus)" }
        if let timeToLive { text += "; ttl=\(timeToLive)" }
        if forward != nil, isStored { text += "; stored" }
        if isCollapsed { text += "; collapsed" }
        if let detail { text += "; detail=\(detail)" }
        return text
    }
}
