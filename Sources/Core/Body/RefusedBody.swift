// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The beginning of a streamed body that was refused at its head, such as an error's description.
struct RefusedBody: Sendable {
    /// The largest number of bytes that are kept.
    static let limit = FailedRequest.bodyLimit
    /// How long the body is received after the refusal, before the transfer is cancelled, as it may never end.
    static let timeout = Duration.seconds(2)

    private(set) var bytes = Data()
    /// Whether the body is longer, or was not received to its end.
    private(set) var isCut = true

    /// Appends a piece; returns `cancel` if there is more than the limit.
    mutating func append(_ piece: UnsafeRawBufferPointer) -> ReceiveAction {
        let rest = Self.limit - bytes.count
        bytes.append(contentsOf: piece.prefix(rest))
        return piece.count <= rest ? .proceed : .cancel
    }

    /// The transfer has completed.
    mutating func complete(_ outcome: TransferCompletion) { isCut = outcome.error != nil }
}
