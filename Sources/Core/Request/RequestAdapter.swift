// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Changes requests before they are sent: adds a token, signs them, refuses them.
@preconcurrency public protocol RequestAdapter: Sendable {
    /// The request to send instead of `urlRequest`.
    ///
    /// Called on the thread that makes the request, and on the session's queue for each retry. What it throws ends the request with that
    /// error, after the retrier was asked.
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest

    /// The same adapter as one that changes header fields only and needs no `URLRequest`; `nil`, the default, for all others.
    ///
    /// It is asked in place of ``adapt(_:)`` wherever that spares a `URLRequest`.
    var headerAdapter: (any HeaderAdapter)? { get }
}
