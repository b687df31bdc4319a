// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension MockTransport {
    /// Serves raw streams to a host, and with them WebSockets.
    ///
    /// ```swift
    /// mock.onStream("example.org:7") { connection in
    ///     while let bytes = await connection.receive() { await connection.send(bytes) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: host and port, as `example.org:443`; `*` for any.
    ///   - serve: the peer, in a task of its own for each stream. When it returns, the stream is closed; what it throws fails the stream.
    public func onStream(_ name: String = "*", _ serve: @escaping @Sendable (MockConnection) async throws -> Void) {
        stubs.onStream(name, serve)
    }
}

/// The peer's side of a raw stream of a ``MockTransport``. For one task.
public final class MockConnection: Sendable {
    private struct State {
        var index = 0
        var resumptions = 0
        var sent: Int64 = 0
        var isAtEnd = false
    }

    private let stream: ScriptedStream
    private let state = Lock(State())

    init(_ stream: ScriptedStream) {
        self.stream = stream
        // Resumes a task that waits for bytes or for a resumption.
        stream.afterCompletion { [weak stream] in
            stream?.written.put((Data(), true))
            stream?.resumed.put(())
        }
    }

    /// The host's name.
    public var host: String { stream.request.host }
    /// The port.
    public var port: Int { stream.request.port }
    /// Whether TLS was asked for, which is not simulated.
    public var isSecure: Bool { stream.request.isSecure }

    /// Returns the next bytes that the client has sent; `nil` at the end of what it sends, and of the stream.
    public func receive() async -> Data? {
        while !state.withLock({ $0.isAtEnd }) {
            let index = state.withLock { state in
                defer { state.index += 1 }
                return state.index
            }
            let (bytes, isLast) = await stream.written[index]
            let sent = state.withLock { state in
                state.sent += Int64(bytes.count)
                state.isAtEnd = isLast
                return state.sent
            }
            guard !bytes.isEmpty else { continue }
            stream.sent(sent)
            return bytes
        }
        return nil
    }

    /// Sends bytes to the client; waits while it has paused the stream. Bytes after its end are dropped.
    public func send(_ bytes: Data) async {
        guard !bytes.isEmpty, stream.receive(bytes) == .pause else { return }
        let count = state.withLock { state in
            state.resumptions += 1
            return state.resumptions
        }
        _ = await stream.resumed.first(count)
    }

    /// Ends what is sent to the client, which may still send.
    public func finish() { stream.endReceiving() }

    /// Closes the stream, without an error. Further calls do nothing.
    public func close() {
        stream.endReceiving()
        stream.complete()
    }

    /// Ends the stream with an error, such as a `TransferFailure`. Further calls do nothing.
    public func fail(_ error: any Error) { stream.complete(error) }
}
