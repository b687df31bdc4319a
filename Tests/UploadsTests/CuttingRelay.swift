// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport

/// A line to a port of 127.0.0.1 that is cut, or reports, after given numbers of bytes of the client, those of all connections together.
final class CuttingRelay: Sendable {
    private struct State {
        var passed: Int64 = 0
        /// What had passed at the last mark.
        var marked: Int64 = 0
        var marks: [Int64]
    }

    private let listener: SocketListener
    private let state: Lock<State>

    /// - Parameters:
    ///   - isReady: is asked, with what had passed at the last mark, until it lets a connection through, for half a minute at most.
    ///   - onMark: is called at each mark, and returns whether the line is cut there.
    init(
        to port: UInt16, marks: [Int64], isReady: @escaping @Sendable (Int64) -> Bool = { _ in true },
        onMark: @escaping @Sendable () -> Bool = { true }
    ) throws {
        let state = Lock(State(marks: marks))
        self.state = state
        listener = try SocketListener { client, _ in
            let start = ContinuousClock.now
            while !isReady(state.withLock { $0.marked }), start.duration(to: .now) < .seconds(30) { Thread.sleep(forTimeInterval: 0.005) }
            guard let server = Self.connect(to: port) else { return }
            let back = WorkerThread(name: "relay") { Self.pump(server, client) { _ in true } }
            Self.pump(client, server) { count in
                let isDue = state.withLock { state in
                    state.passed += Int64(count)
                    guard let mark = state.marks.first, state.passed >= mark else { return false }
                    state.marks.removeFirst()
                    state.marked = state.passed
                    return true
                }
                return !isDue || !onMark()
            }
            client.shutDown()
            // What the server still has in its buffers, it reads before it sees the end.
            server.shutDownWriting()
            back?.join()
        }
    }

    deinit { listener.stop(timeout: .seconds(10)) }

    var port: Int { listener.port }
    var passed: Int64 { state.withLock { $0.passed } }
    var cutsLeft: Int { state.withLock { $0.marks.count } }

    private static func connect(to port: UInt16) -> ConnectedSocket? {
        let descriptor = Platform.makeStreamSocket()
        var address = Platform.loopbackAddress(port: port)
        let status = withGenericAddress(&address) { Platform.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        guard status == 0 else {
            closeDescriptor(descriptor)
            return nil
        }
        return ConnectedSocket(descriptor)
    }

    private static func pump(_ source: ConnectedSocket, _ sink: ConnectedSocket, _ passes: (Int) -> Bool) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 16)
        defer { buffer.deallocate() }
        while let count = try? source.receive(into: buffer), count > 0 {
            guard (try? sink.send(UnsafeRawBufferPointer(rebasing: buffer[..<count]))) != nil, passes(count) else { break }
        }
        sink.shutDownWriting()
    }
}
