// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Testing

/// An output stream that behaves as configured.
final class TestStream: OutputStream {
    enum Behaviour {
        case takes
        /// Accepts a number of bytes at a time, and has no space on every other call.
        case takesSlowly(Int)
        /// Has no space, and an error.
        case hasError
        /// Returns −1.
        case refuses
        case neverHasSpace
        /// Has space once a gate opens.
        case waits(Gate)
    }

    private struct State {
        var data = Data()
        var status = Stream.Status.notOpen
        var asked = 0
        var behaviour: Behaviour
    }

    private let state: Lock<State>

    init(_ behaviour: Behaviour = .takes) {
        state = Lock(State(behaviour: behaviour))
        super.init(toMemory: ())
    }

    required init(toMemory: ()) {
        state = Lock(State(behaviour: .takes))
        super.init(toMemory: ())
    }

    var data: Data { state.withLock { $0.data } }

    override func open() { state.withLock { $0.status = .open } }
    override func close() { state.withLock { $0.status = .closed } }
    override var streamStatus: Stream.Status { state.withLock { $0.status } }

    override var streamError: (any Error)? {
        if case .hasError = state.withLock({ $0.behaviour }) { CocoaError(.fileWriteOutOfSpace) } else { nil }
    }

    override var hasSpaceAvailable: Bool {
        state.withLock { state in
            state.asked += 1
            return switch state.behaviour {
            case .takes, .refuses: true
            case .takesSlowly: state.asked.isMultiple(of: 2)
            case .hasError, .neverHasSpace: false
            case .waits(let gate): gate.isOpen
            }
        }
    }

    override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        state.withLock { state in
            var count = len
            if case .refuses = state.behaviour { return -1 }
            if case .takesSlowly(let most) = state.behaviour { count = min(most, len) }
            state.data.append(buffer, count: count)
            return count
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct OutputStreamTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func operation(_ stream: OutputStream, _ path: String = "/bytes/100000") throws -> URLConnectionOperation {
        let operation = try URLConnectionOperation.make(server.url(path))
        operation.outputStream = stream
        return operation
    }

    @Test("a body is written to the stream as it has space, and is not kept in memory as well")
    func backpressure() async throws {
        let stream = TestStream(.takesSlowly(20_000))
        let operation = try operation(stream)
        #expect(try await operation.run() == Data())
        #expect(stream.data == GeneratedBody().data(count: 100_000))
        #expect(operation.responseData == nil && stream.streamStatus == .closed)
        #expect(operation.totalBytesRead == 100_000)
    }

    @Test("while a stream has no space, backpressure stops the server")
    func waitingServer() async throws {
        let length = 24 << 20
        let (gate, isSent) = (Gate(), Log<Bool>())
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(count: length))
            isSent.append(true)
            return nil
        }
        let stream = TestStream(.waits(gate))
        let session = makeSession()
        let operation = try URLConnectionOperation.make(server.url("/"), session: session)
        operation.outputStream = stream
        operation.start()
        #expect(await server.waitForRequests(1))
        // In the time in which another receives everything, it receives no more than the buffers hold.
        #expect(try await URLConnectionOperation.make(server.url("/"), session: session).run().count == length)
        await isSent.wait(for: 1)
        #expect(isSent.count == 1)
        gate.open()
        _ = try await operation.value
        await isSent.wait(for: 2)
        #expect(stream.data == GeneratedBody().data(count: length) && isSent.count == 2)
    }

    @Test("Foundation's streams to memory and to files receive the body")
    func foundationStreams() async throws {
        let memory = OutputStream.toMemory()
        try await operation(memory).run()
        #expect(memory.property(forKey: .dataWrittenToMemoryStreamKey) as? Data == GeneratedBody().data(count: 100_000))
        let directory = try TemporaryDirectory()
        let file = try #require(OutputStream(toFileAtPath: directory.file("body").path, append: false))
        try await operation(file).run()
        #expect(try Data(contentsOf: directory.file("body")) == GeneratedBody().data(count: 100_000))
    }

    @Test("a stream without space but with an error, and one that returns −1, fail the operation", arguments: [true, false])
    func failures(hasError: Bool) async throws {
        let operation = try operation(TestStream(hasError ? .hasError : .refuses))
        await operation.runToEnd()
        guard case OperationError.outputStreamFailed(let underlying)? = operation.error else { throw TestError("no error") }
        #expect((underlying as? CocoaError)?.code == (hasError ? .fileWriteOutOfSpace : nil))
    }

    @Test("a stream that has reached its end fails the operation")
    func full() async throws {
        let operation = try operation(OutputStream(toBuffer: Self.buffer.bytes, capacity: 1000))
        await operation.runToEnd()
        #expect(operation.error != nil && operation.isFinished)
    }

    private static let buffer = Buffer()

    private final class Buffer: @unchecked Sendable {  // one test writes to it, and nothing reads it
        let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: 1000)

        deinit { bytes.deallocate() }
    }

    @Test("an operation whose stream never has space can be cancelled")
    func waiting() async throws {
        let operation = try operation(TestStream(.neverHasSpace))
        operation.start()
        await operation.reach(.executing)
        #expect(await server.waitForRequests(1))
        operation.cancel()
        await operation.waitForEnd()
        #expect(operation.urlErrorCode == .cancelled)
    }

    @Test("replacing the stream closes the previous one")
    func replaced() throws {
        let first = TestStream()
        first.open()
        let operation = try operation(first)
        operation.outputStream = TestStream()
        #expect(first.streamStatus == .closed)
        operation.outputStream = nil
        #expect(operation.outputStream == nil)
    }

    @Test("a request's body can be a stream")
    func inputStream() async throws {
        let operation = try URLConnectionOperation.make(server.url("/body")) { $0.httpMethod = "POST" }
        operation.inputStream = InputStream(data: Data("streamed".utf8))
        #expect(try await operation.run() == Data("streamed".utf8))
        #expect(server.requests.last?.header("Transfer-Encoding") == "chunked")
    }
}

extension URLConnectionOperation {
    /// Runs the operation, ignoring its outcome.
    func runToEnd() async {
        start()
        await waitForEnd()
    }
}
