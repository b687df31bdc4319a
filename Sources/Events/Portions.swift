// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Reads a sequence of pieces in portions, between which other tasks get a turn, and a cancellation its effect: a piece may have a million
/// lines.
struct Portions: Sendable {
    private static let size = 64 << 10

    /// The part of the last piece that has not been read.
    private var rest = Data()

    /// The next portion; `nil` at the end.
    ///
    /// - Throws: the sequence's errors, `CancellationError`.
    mutating func next<Bytes: AsyncIteratorProtocol>(of bytes: inout Bytes) async throws -> Data? where Bytes.Element == Data {
        if rest.isEmpty {
            guard let piece = try await bytes.next() else { return nil }
            rest = piece
        } else {
            await Task.yield()
            try Task.checkCancellation()
        }
        defer { rest = rest.dropFirst(Self.size) }
        return rest.prefix(Self.size)
    }
}
