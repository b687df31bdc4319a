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

extension DataRequest {
    /// Has the beginning of the body received where the response is refused at its head, for ``refusedBody``; without it the transfer ends
    /// there. For requests whose body is streamed; before the body is asked for.
    ///
    /// - Parameters:
    ///   - limit: how many bytes at the most.
    ///   - timeout: how long the request waits for them before it fails.
    package func keepRefusedBody(upTo limit: Int, for timeout: Duration) {
        receiver.keepRefusedBodies(RefusedBody.Policy(limit: limit, timeout: timeout))
    }

    /// What came of the body that was refused; `nil` for none.
    package var refusedBody: Data? { receiver.refusedBody }
}
