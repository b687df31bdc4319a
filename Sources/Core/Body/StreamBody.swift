// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A request body that is read from an `InputStream`, on a queue of its own because a stream may block, and the event loop must not.
///
/// It can be sent once. The stream is opened when the transfer begins, and closed at its end. Up to 256 KiB are read ahead.
package final class StreamBody: BodySource {
    private struct State {
        var stream: StreamBox
        var bytes = Data()
        var isStarted = false
        var isReading = false
        var isAtEnd = false
        var failure: (any Error)?
        var onReadable: (@Sendable () -> Void)?
    }

    /// Used on the queue only.
    private struct StreamBox: @unchecked Sendable {
        let value: InputStream
    }

    /// The number of bytes that are read ahead.
    private static let capacity = 256 * 1024

    private let queue = DispatchQueue(label: "curlew.body", target: .global(qos: .utility))
    private let state: Lock<State>

    /// Creates a body from a stream, which must not be used elsewhere from then on.
    package init(_ stream: InputStream) {
        state = Lock(State(stream: StreamBox(value: stream)))
    }

    /// `nil`, as a stream's length is unknown: the body is sent chunked, unless the request has a `Content-Length`.
    package var length: Int64? { nil }

    /// Opens the stream and starts reading it; `onReadable` is called on the body's queue.
    package func prepare(onReadable: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.onReadable = onReadable
            if state.isStarted { state.failure = CurlewError.redirectFailed(reason: .bodyNotRepeatable) }
            defer { state.isStarted = true }
            // Inside the lock, so that no read is queued before the stream is opened.
            if !state.isStarted { queue.async { [stream = state.stream] in stream.value.open() } }
        }
        readAhead()
    }

    /// Copies bytes that were read ahead, and reads more.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
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

    /// Whether the stream has not been opened: a stream can't be read twice.
    var isRepeatable: Bool { state.withLock { !$0.isStarted } }

    /// Returns ``isRepeatable``: nothing has been read that would have to be rewound.
    package func rewind() -> Bool { isRepeatable }

    /// Restarts with another stream, which must have the same bytes; returns `false` without one.
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
            // A read of the last attempt's stream may return before the next attempt has opened its own.
            guard state.isStarted, !state.isReading, !state.isAtEnd, state.failure == nil, state.bytes.count < Self.capacity else {
                return nil
            }
            state.isReading = true
            return state.stream
        }
        if let stream { queue.async { self.readPiece(of: stream) } }
    }

    /// Reads one piece, blocking the queue.
    private func readPiece(of stream: StreamBox) {
        var piece = [UInt8](repeating: 0, count: Self.capacity / 4)
        let count = stream.value.read(&piece, maxLength: piece.count)
        // Reading the stream's error traps on Linux, so its cause is not reported.
        let failure = count < 0 ? CocoaError(.fileReadUnknown) : nil
        if count <= 0 { stream.value.close() }
        let onReadable = state.withLock { state -> (@Sendable () -> Void)? in
            // The body was restarted in the meantime.
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

// MARK: - SharedBody

extension StreamBody: SharedBody {}

/// The stream that a closure has returned for a body that is sent again.
struct NewBodyStream: @unchecked Sendable {  // handed over: the closure does not use it any more
    let value: InputStream?
}
