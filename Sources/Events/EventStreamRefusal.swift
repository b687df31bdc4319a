// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A response that is no stream of events, by its status or its content type, with what the server says in it: an error in JSON, perhaps.
public struct EventStreamRefusal: Sendable {
    /// The most that is kept of the body: 64 KiB.
    public static let maximumBodySize = 64 << 10
    /// How long the body is waited for: a response of the wrong type may never end.
    static let patience = DispatchTimeInterval.seconds(2)

    /// Status and header fields.
    public let response: ResponseHead
    /// The body's first ``maximumBodySize`` bytes, decoded; less where it took the server longer than two seconds, or the connection was
    /// lost.
    public let body: Data
    /// What is wrong with the response.
    public let error: CurlewError
}

// MARK: - Descriptions

extension EventStreamRefusal: CustomStringConvertible, CustomReflectable {
    /// What is wrong with the response, and the size of the body, which is not shown as it may hold secrets.
    public var description: String { "\(error) The body has \(body.count) bytes." }

    /// Nothing beyond the description.
    public var customMirror: Mirror { .redacted(self) }
}
