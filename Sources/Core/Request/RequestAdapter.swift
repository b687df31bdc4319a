// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Changes requests before they are sent: adds a token, signs them, refuses them.
@preconcurrency public protocol RequestAdapter: Sendable {
    /// The request to send instead of `urlRequest`.
    ///
    /// Called on the thread that makes the request, and on the session's queue for each retry, with the original each time. What it throws
    /// ends the request with that error, after the retrier was asked.
    ///
    /// The body of the returned request is the one that is sent: its `httpBody`, its `httpBodyStream`, or none. An upload of bytes shows
    /// them as `httpBody`. An upload of a file or a stream shows no body and sends its own, unless the returned request has one, which is
    /// sent in its place. A redirect that repeats the body repeats the returned one; a stream that was set here can't be sent twice, and
    /// such a redirect fails with ``CurlewError/RedirectFailureReason/bodyNotRepeatable``. Fields that describe the body, as
    /// `Content-Length` and `Content-Encoding`, are the adapter's to change along with it.
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest

    /// The same adapter as one that changes header fields only and needs no `URLRequest`; `nil`, the default, for all others.
    ///
    /// It is asked in place of ``adapt(_:)`` wherever that spares a `URLRequest`.
    var headerAdapter: (any HeaderAdapter)? { get }
}
