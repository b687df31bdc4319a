// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The body of a request, read in pieces while it is sent.
///
/// Used by one transfer at a time. ``read(into:)`` and ``rewind()`` are called on the transport's thread and must not block.
public protocol BodySource: AnyObject, Sendable {
    /// The number of bytes; `nil` if it is unknown before the end, in which case the body is sent chunked (RFC 9112, section 7.1).
    var length: Int64? { get }

    /// Prepares for a transfer from the first byte. A source that may have to wait for bytes calls `onReadable`, from any thread, when
    /// bytes are available after it has returned ``BodyRead/unavailable``, and when it has failed or ended since.
    func prepare(onReadable: @escaping @Sendable () -> Void)

    /// Fills the buffer from its start with the bytes that are available.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead

    /// Rewinds to the first byte; `false` if that is not possible.
    func rewind() -> Bool

    /// The transfer for which the body was prepared has completed: nothing is read until the next ``prepare(onReadable:)``, so that what
    /// produces the bytes can be stopped and files be closed. Called on the transport's thread; does nothing by default.
    func transferDidComplete()

    /// Whether fields follow the last byte (RFC 9110, section 6.5); `false` by default. Such a body is sent chunked and over HTTP/1.1 even
    /// if its length is known, as there is no place for trailers otherwise.
    var hasTrailers: Bool { get }

    /// The fields that follow the last byte, read once after ``BodyRead/end``, on the transport's thread; none by default.
    var trailers: HTTPHeaders { get }
}

extension BodySource {
    /// Does nothing.
    public func transferDidComplete() {}
    /// `false`: no fields follow the body.
    public var hasTrailers: Bool { false }
    /// No fields.
    public var trailers: HTTPHeaders { HTTPHeaders() }
}

/// The bytes of a body whose number is not the announced one, to be reported as ``TransferFailure/Kind/requestBody``.
package struct BodyLengthMismatch: Error {
    package enum Amount {
        case fewer
        case more
    }

    package let amount: Amount
    /// The file that has changed; `nil` for another body.
    let path: String?
    /// The number of bytes, as far as it is known.
    package let actual: Int64?
    /// The length that the file should have; `nil` for that of the body.
    let expected: Int64?

    package init(_ amount: Amount, path: String? = nil, actual: Int64? = nil, expected: Int64? = nil) {
        (self.amount, self.path, self.actual, self.expected) = (amount, path, actual, expected)
    }

    package func message(announced: Int64) -> String {
        guard let path else { return "The request's body has \(amount) than the \(announced) bytes announced" }
        return "The file \(path) has \(amount) bytes than the \(expected ?? announced) that it had when the request was made"
    }
}

/// The result of reading a body.
public enum BodyRead: Sendable {
    /// The number of bytes read, at least one.
    case bytes(Int)
    /// No bytes are available; the source calls back when there are.
    case unavailable
    /// The body has ended.
    case end
    /// The body can't be read to its end.
    case failed(any Error)
}

/// A body in memory.
public final class DataBody: BodySource {
    package let data: Data
    private let offset = Lock(0)

    /// Creates a body from bytes.
    public init(_ data: Data) {
        self.data = data
    }

    /// The number of bytes.
    public var length: Int64? { Int64(data.count) }

    /// Rewinds to the first byte; bytes are always available.
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

    /// Rewinds to the first byte; always possible.
    public func rewind() -> Bool {
        offset.withLock { $0 = 0 }
        return true
    }
}
