// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// A response that is not a stream of events, by its status or content type, with its body, such as an error in JSON.
public struct EventStreamRejection: Sendable {
    /// The maximum size of the body that is kept: 64 KiB.
    public static let maximumBodySize = FailedRequest.bodyLimit

    /// The status and header fields.
    public let response: ResponseHead
    /// The body's first ``maximumBodySize`` bytes, decoded; fewer if it took more than two seconds, or the connection was lost.
    public let body: Data
    /// Why the response was rejected.
    public let error: CurlewError
}

// MARK: - Descriptions

extension EventStreamRejection: CustomStringConvertible, RedactedReflectable {
    /// Why the response was rejected, and the size of the body, which is not shown because it may contain secrets.
    public var description: String { "\("\(error)".withFullStop) The body has \(body.count) bytes." }
}
