// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The beginning of a streamed body that was refused at its head: what the server has to say to that.
struct RefusedBody: Sendable {
    /// How much is kept of such bodies.
    struct Policy: Sendable {
        /// In bytes; nothing is received beyond that.
        let limit: Int
        /// How long the rest of the body is awaited.
        let timeout: Duration

        static let none = Policy(limit: 0, timeout: .zero)
    }

    private(set) var bytes = Data()

    /// Takes a piece; `cancel` when there is enough.
    mutating func append(_ piece: UnsafeRawBufferPointer, limit: Int) -> ReceiveAction {
        bytes.append(contentsOf: piece.prefix(limit - bytes.count))
        return bytes.count < limit ? .proceed : .cancel
    }
}
