// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// A value that a blocking call waits for.
private final class Promise<Value: Sendable>: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let value = Lock<Value?>(nil)

    func fulfill(_ value: Value) {
        self.value.withLock { $0 = value }
        semaphore.signal()
    }

    func wait() -> Value? {
        semaphore.wait()
        return value.withLock { $0 }
    }
}

/// The receiving side of a raw connection as an `InputStream`.
final class StreamRequestInput: InputStream {
    private struct State {
        var status = Stream.Status.notOpen
        var rest = Data()
        var error: (any Error)?
    }

    private let request: StreamRequest
    private let state: Lock<State>

    /// - Parameter rest: what is read before the bytes of the connection.
    init(_ request: StreamRequest, _ rest: Data) {
        self.request = request
        state = Lock(State(rest: rest))
        super.init(data: Data())
    }

    override func open() { state.withLock { $0.status = .open } }
    override var streamStatus: Stream.Status { state.withLock { $0.status } }
    override var streamError: (any Error)? { state.withLock { $0.error } }
    override var hasBytesAvailable: Bool { ![.atEnd, .closed, .error].contains(streamStatus) }

    override func close() {
        state.withLock { $0.status = .closed }
        request.connection.buffer.drop()
        request.connection.closed(.input)
    }

    /// Blocks until bytes are available; returns 0 at the end of the stream, −1 if the connection failed.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let (status, isEmpty) = state.withLock { ($0.status, $0.rest.isEmpty) }
        if status == .atEnd { return 0 }
        guard status == .open, maxLength > 0 else { return -1 }
        if isEmpty, let count = refill() { return count }
        return state.withLock { state in
            let count = min(maxLength, state.rest.count)
            state.rest.copyBytes(to: buffer, count: count)
            state.rest = Data(state.rest.dropFirst(count))
            return count
        }
    }

    /// Waits for the next piece; `nil` once it is in `rest`, else what `read` returns.
    private func refill() -> Int? {
        let next = Promise<Result<Data?, any Error>>()
        let buffer = request.connection.buffer
        Task { next.fulfill(await Result { try await buffer.next() }) }
        // Outside the lock, so that `close` can end the wait.
        let piece = next.wait()
        return state.withLock { state in
            guard state.status == .open else { return -1 }
            switch piece {
            case .success(let piece?):
                state.rest = piece
                return nil
            case .failure(let error):
                state.error = error
                state.status = .error
                return -1
            case .success(nil), nil:
                state.status = .atEnd
                return 0
            }
        }
    }
}

/// The sending side of a raw connection as an `OutputStream`.
final class StreamRequestOutput: OutputStream {
    private struct State {
        var status = Stream.Status.notOpen
        var error: (any Error)?
    }

    private let request: StreamRequest?
    private let state = Lock(State())

    init(_ request: StreamRequest) {
        self.request = request
        super.init(toMemory: ())
    }

    /// Creates a stream that accepts no bytes; the superclass requires this initializer.
    required init(toMemory: ()) {
        request = nil
        super.init(toMemory: ())
    }

    override func open() { state.withLock { $0.status = .open } }
    override var streamStatus: Stream.Status { state.withLock { $0.status } }
    override var streamError: (any Error)? { state.withLock { $0.error } }
    override var hasSpaceAvailable: Bool { streamStatus == .open }

    override func close() {
        state.withLock { $0.status = .closed }
        request?.closeWrite()
        request?.connection.closed(.output)
    }

    /// Blocks until the bytes have been sent; returns −1 if the connection failed.
    override func write(_ buffer: UnsafePointer<UInt8>, maxLength: Int) -> Int {
        guard let request, streamStatus == .open, maxLength > 0 else { return -1 }
        let sent = Promise<Result<Void, any Error>>()
        request.connection.write(Data(bytes: buffer, count: maxLength)) { sent.fulfill($0) }
        guard case .failure(let error) = sent.wait() else { return maxLength }
        state.withLock {
            $0.error = error
            $0.status = .error
        }
        return -1
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
