// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The body of a request, read piece by piece while it is sent.
///
/// Used by one transfer at a time. ``read(into:)`` and ``rewind()`` are called on the transport's thread and must not block.
public protocol BodySource: AnyObject, Sendable {
    /// The number of bytes; `nil` when nobody knows before the end, which sends the body chunked (RFC 9112, section 7.1).
    var length: Int64? { get }

    /// Makes ready for a transfer, from the first byte on. A source that has to wait for bytes calls `onReadable` from any thread when some are there
    /// after it has answered ``BodyRead/later``, and when it has failed or ended since.
    func prepare(onReadable: @escaping @Sendable () -> Void)

    /// Fills the buffer from its start, as far as bytes are there.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead

    /// Goes back to the first byte; `false` when that can't be done.
    func rewind() -> Bool
}

/// What a body had to give.
public enum BodyRead: Sendable {
    /// That many bytes, at least one.
    case bytes(Int)
    /// None now; the source calls when there are.
    case later
    /// The body is over.
    case end
    /// The body can't be read to its end.
    case failed(any Error)
}

/// A body in memory.
public final class DataBody: BodySource {
    package let data: Data
    private let offset = Lock(0)

    /// Makes a body of bytes.
    public init(_ data: Data) {
        self.data = data
    }

    /// The number of bytes.
    public var length: Int64? { Int64(data.count) }

    /// Goes back to the first byte; the bytes are there.
    public func prepare(onReadable: @escaping @Sendable () -> Void) {
        offset.withLock { $0 = 0 }
    }

    /// Copies the next bytes.
    public func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        offset.withLock { offset in
            let count = min(buffer.count, data.count - offset)
            guard count > 0 else { return .end }
            let start = data.startIndex + offset
            data.copyBytes(to: buffer, from: start..<(start + count))
            offset += count
            return .bytes(count)
        }
    }

    /// Goes back to the first byte; always possible.
    public func rewind() -> Bool {
        offset.withLock { $0 = 0 }
        return true
    }
}
