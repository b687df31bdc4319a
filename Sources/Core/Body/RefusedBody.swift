// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The beginning of a streamed body that was refused at its head, such as an error's description.
struct RefusedBody: Sendable {
    /// The largest number of bytes that are kept, unless they are to be decoded.
    static let limit = FailedRequest.bodyLimit
    /// How long the body is received after the refusal, before the transfer is cancelled, as it may never end.
    static let timeout = Duration.seconds(2)
    /// How long a body is received that is to be decoded.
    static let decodingTimeout = Duration.seconds(10)

    let limit: Int
    private(set) var bytes = Data()
    /// Whether the body is longer, or was not received to its end.
    private(set) var isCut = true

    init(upTo limit: Int) { self.limit = limit }

    /// Appends a piece; returns `cancel` if there is more than the limit.
    mutating func append(_ piece: UnsafeRawBufferPointer) -> ReceiveAction {
        let rest = limit - bytes.count
        bytes.append(contentsOf: piece.prefix(rest))
        return piece.count <= rest ? .proceed : .cancel
    }

    /// The transfer has completed.
    mutating func complete(_ outcome: TransferCompletion) { isCut = outcome.error != nil }
}
