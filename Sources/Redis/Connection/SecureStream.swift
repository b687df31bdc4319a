// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Makes the TLS connections of a client, on a transport of its own. Confined to the client's thread.
final class SecureStreams {
    private let transport = CurlTransport()
    private let options: TransferOptions
    private let didChange: @Sendable () -> Void

    /// - Parameter didChange: called on the transport's thread when one of the connections has something for the client's thread.
    init(_ configuration: RedisConfiguration, didChange: @escaping @Sendable () -> Void) {
        var options = TransferOptions()
        options.tls = configuration.tls
        options.proxy = .none
        // The client's own limit ends an attempt before libcurl does, for one reason whichever part of it was slow.
        options.connectTimeout = nil
        self.options = options
        self.didChange = didChange
    }

    /// Begins to connect.
    func open(_ host: String, _ port: Int) -> SecureStream {
        let request = StreamTransferRequest(host: host, port: port, isSecure: true, options: options)
        let stream = SecureStream(didChange: didChange)
        stream.run(transport.makeStream(request, id: 0, observer: stream))
        return stream
    }

    func shutDown() { transport.shutDown() }
}

/// A TLS connection to the server, which libcurl sets up and encrypts. What it has received waits here for the client's thread.
///
/// Thread-safe: its events come on the transport's thread.
final class SecureStream: StreamTransferObserver {
    private struct State {
        /// Released at the completion.
        var handle: (any StreamHandle)?
        var isOpen = false
        var received: [UInt8] = []
        /// How many of the received bytes were read.
        var read = 0
        var isPaused = false
        var end: RedisError.Reason?
    }

    /// The bytes that wait at most, but for one piece.
    private static let capacity = 1 << 20

    private let didChange: @Sendable () -> Void
    private let state = Lock(State())

    fileprivate init(didChange: @escaping @Sendable () -> Void) {
        self.didChange = didChange
    }

    fileprivate func run(_ handle: any StreamHandle) {
        state.withLock { $0.handle = handle }
        handle.start()
    }

    // MARK: For the client's thread

    /// Whether the connection was established, and why it has ended.
    var status: (isOpen: Bool, end: RedisError.Reason?) { state.withLock { ($0.isOpen, $0.end) } }

    /// Reads what was received; its end only after all of that.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> SocketProgress {
        state.withLock { state in
            let rest = state.received[state.read...].prefix(buffer.count)
            guard !rest.isEmpty else { return state.end.map { .failed($0) } ?? .wouldBlock }
            buffer.copyBytes(from: rest)
            state.read += rest.count
            guard state.read == state.received.count else { return .count(rest.count) }
            state.received.removeAll(keepingCapacity: state.received.count <= 1 << 16)
            state.read = 0
            if state.isPaused { state.handle?.resumeReceiving() }
            state.isPaused = false
            return .count(rest.count)
        }
    }

    /// Sends bytes, after those sent before.
    func write(_ bytes: UnsafeRawBufferPointer) { handle?.send(Data(bytes), endOfStream: false) }

    /// Ends the connection.
    func close() { handle?.cancel() }

    private var handle: (any StreamHandle)? { state.withLock { $0.handle } }

    // MARK: StreamTransferObserver

    func stream(_ id: Int, didOpen metrics: TransferMetrics) {
        state.withLock { $0.isOpen = true }
        didChange()
    }

    func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        let isPaused = state.withLock { state in
            state.received += bytes
            state.isPaused = state.received.count - state.read >= Self.capacity
            return state.isPaused
        }
        didChange()
        return isPaused ? .pause : .proceed
    }

    func streamDidEndReceiving(_ id: Int) { end(.closedByServer) }

    func stream(_ id: Int, didSend count: Int64) {}

    func stream(_ id: Int, didComplete completion: TransferCompletion) {
        state.withLock { $0.handle = nil }
        end(RedisError.Reason(completion.error))
    }

    /// The first reason counts.
    private func end(_ reason: RedisError.Reason) {
        state.withLock { $0.end = $0.end ?? reason }
        didChange()
    }
}

extension RedisError.Reason {
    /// Why a TLS connection has ended.
    fileprivate init(_ error: (any Error)?) {
        guard let error else {
            self = .closedByServer
            return
        }
        guard case CurlewError.transferFailed(let failure) = error else {
            self = .closed
            return
        }
        self = failure.kind == .nameResolution ? .unresolvable(failure.message) : .connectionFailed(failure.message)
    }
}
#endif
