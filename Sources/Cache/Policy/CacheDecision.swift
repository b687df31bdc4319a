// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What is delivered of a stored response.
package enum CacheDelivery: Sendable, Hashable {
    /// The whole body.
    case whole
    /// A 304: the request has the representation already (RFC 9111, section 4.3.2).
    case notModified
    /// A 206 with this range of the representation. Of a part, the range is known to be stored; of a whole body, the caller resolves it, and
    /// forwards the request if that fails.
    case range(RequestedByteRange)
}

/// A range of bytes of a representation, which is not empty.
package struct ByteRange: Sendable, Hashable {
    /// The position of the first byte.
    package let first: Int64
    /// The position of the last byte.
    package let last: Int64

    /// Creates a range.
    package init(first: Int64, last: Int64) {
        self.first = first
        self.last = last
    }

    /// The number of bytes.
    package var count: Int64 { last - first + 1 }
}

/// How the cache answers a request.
package enum CacheDecision: Sendable, Hashable {
    /// With the stored response at an index, without the host.
    ///
    /// - Parameters:
    ///   - isStale: whether its freshness lifetime has passed.
    ///   - validates: whether it is validated in the background.
    case serve(Int, CacheDelivery, CacheReason, isStale: Bool, validates: Bool)
    /// With the stored response at an index, after asking the host with these conditions.
    case validate(Int, HTTPHeaders, CacheReason)
    /// With what the host sends for the rest of the stored part at an index; these fields ask for it.
    case complete(Int, HTTPHeaders)
    /// With the host's response. `isBypass`: what is stored was not asked for, or can't be used for requests of this kind.
    case forward(CacheReason, isBypass: Bool)
    /// With an error: the request forbids asking the host.
    case fail
}
