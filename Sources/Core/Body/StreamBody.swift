// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A request body out of an `InputStream`, read piece by piece on a queue of its own: a stream may block, and the transport must not.
///
/// It can be sent once. The stream is opened when the transfer begins and closed at its end.
public final class StreamBody: BodySource {
    private struct State {
        var stream: StreamBox
        var bytes = Data()
        var isStarted = false
        var isReading = false
        var isAtEnd = false
        var failure: (any Error)?
        var onReadable: (@Sendable () -> Void)?
    }

    /// Only touched on the queue.
    private struct StreamBox: @unchecked Sendable {
        let value: InputStream
    }

    /// How many bytes are read ahead.
    private static let capacity = 256 * 1024

    private let queue = DispatchQueue(label: "curlew.body", target: .global(qos: .utility))
    private let state: Lock<State>

    /// Makes a body of a stream, which belongs to the body from now on.
    public init(_ stream: InputStream) {
        state = Lock(State(stream: StreamBox(value: stream)))
    }

    /// Unknown: the body is sent chunked, unless the request has a `Content-Length`.
    public var length: Int64? { nil }

    /// Opens the stream and begins to read it.
    public func prepare(onReadable: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.onReadable = onReadable
            if state.isStarted { state.failure = CurlewError.redirectFailed(reason: .bodyNotRepeatable) }
            defer { state.isStarted = true }
            // Inside the lock: nobody may have the stream read before it is open.
            if !state.isStarted { queue.async { [stream = state.stream] in stream.value.open() } }
        }
        readAhead()
    }

    /// Takes what was read; asks for more.
    public func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let result = state.withLock { state -> BodyRead in
            guard state.bytes.isEmpty else {
                let count = min(buffer.count, state.bytes.count)
                state.bytes.copyBytes(to: buffer, count: count)
                state.bytes = count == state.bytes.count ? Data() : Data(state.bytes.dropFirst(count))
                return .bytes(count)
            }
            if let failure = state.failure { return .failed(failure) }
            return state.isAtEnd ? .end : .unavailable
        }
        readAhead()
        return result
    }

    /// Not possible, but before the first byte was taken.
    public func rewind() -> Bool {
        state.withLock { !$0.isStarted }
    }

    /// Restarts with another stream, which has to give the same bytes; returns `false` without one.
    func restart(with stream: InputStream?) -> Bool {
        guard let stream else { return false }
        let old = state.withLock { state in
            defer { state = State(stream: StreamBox(value: stream)) }
            return state.stream
        }
        queue.async { old.value.close() }
        return true
    }

    private func readAhead() {
        let stream = state.withLock { state -> StreamBox? in
            // A piece of the last attempt's stream may end when the next one's is not open yet.
            guard state.isStarted, !state.isReading, !state.isAtEnd, state.failure == nil, state.bytes.count < Self.capacity else {
                return nil
            }
            state.isReading = true
            return state.stream
        }
        if let stream { queue.async { self.readPiece(of: stream) } }
    }

    /// Reads one piece, for as long as that takes.
    private func readPiece(of stream: StreamBox) {
        var piece = [UInt8](repeating: 0, count: Self.capacity / 4)
        let count = stream.value.read(&piece, maxLength: piece.count)
        // Asking the stream for its error traps on Linux; what it says of itself is all there is.
        let failure = count < 0 ? CocoaError(.fileReadUnknown) : nil
        if count <= 0 { stream.value.close() }
        let onReadable = state.withLock { state -> (@Sendable () -> Void)? in
            // The body has begun anew meanwhile.
            guard state.stream.value === stream.value else { return nil }
            state.isReading = false
            if count > 0 { state.bytes.append(contentsOf: piece[..<count]) }
            state.isAtEnd = count == 0
            if state.failure == nil { state.failure = failure }
            return state.onReadable
        }
        onReadable?()
        readAhead()
    }
}
