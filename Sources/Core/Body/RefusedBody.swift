// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The beginning of a streamed body that was refused at its head, such as an error's description.
struct RefusedBody: Sendable {
    /// How much of such bodies is received.
    struct Policy: Sendable {
        /// The largest number of bytes that are received.
        let limit: Int
        /// How long the body is received after the refusal, before the transfer is cancelled.
        let timeout: Duration

        static let none = Policy(limit: 0, timeout: .zero)
    }

    private(set) var bytes = Data()

    /// Appends a piece; returns `cancel` at the limit.
    mutating func append(_ piece: UnsafeRawBufferPointer, limit: Int) -> ReceiveAction {
        bytes.append(contentsOf: piece.prefix(limit - bytes.count))
        return bytes.count < limit ? .proceed : .cancel
    }
}
