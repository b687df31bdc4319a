// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import Dispatch
import Testing

@testable import CurlewServices

/// Streams: a service's WebSockets.
@Suite(.timeLimit(.minutes(1)))
struct ServiceStreamTests {
    private struct TextStream: ServiceStreamRequest {
        typealias Message = String
        typealias Result = String
        var routes: HTTPRoute = []
        var query: HTTPQuery = [:]
        var header: HTTPHeaders = [:]
        var timeout: Duration?
        var subprotocols: [String] = []
        var webSocketConfiguration = WebSocketConfiguration()
        var usesSecureProtocol: Bool? { false }
    }

    private struct DataStream: ServiceStreamRequest {
        typealias Message = Data
        typealias Result = Data
    }

    private struct SilentStream: ServiceStreamRequest {
        typealias Result = Void
    }

    private struct Post: Codable, Sendable, Equatable {
        var firstName: String
    }

    private struct PostStream: JSONServiceStreamRequest {
        typealias Message = Post
        typealias Result = Post
        var encodesSnakeCase = true
        var decodesSnakeCase = true
    }

    private struct RefusingStream: ServiceStreamRequest {
        typealias Message = String
        typealias Result = String
        func encode(_ message: String) throws -> WebSocketMessage {
            guard message != "no" else { throw UserError() }
            return .text(message)
        }
        func decode(_ message: WebSocketMessage) throws -> String {
            guard case .text(let text) = message, text != "bad" else { throw UserError() }
            return text
        }
    }

    private static func makeServer(
        _ script: @escaping WebSocketServer.Script = { try $0.echo() },
        answer: @escaping @Sendable (ServerRequest) -> String? = { _ in nil },
        fields: @escaping @Sendable (ServerRequest) -> [String] = { _ in [] }
    ) throws -> WebSocketServer {
        try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }, answer: answer, fields: fields, script: script)
    }

    // MARK: The handshake

    @Test func streamCombinesRequestAndService() async throws {
        let server = try Self.makeServer(fields: { _ in ["Sec-WebSocket-Protocol: chat"] })
        defer { server.stop() }
        var service = TestService(server)
        service.header = ["A": "service", "B": "service", "C": "service"]
        service.makeAsyncHeader = { ["B": "async", "C": "async"] }
        let request = TextStream(routes: "rooms/a b", query: ["since": 7], header: ["C": "request"], subprotocols: ["chat", "talk"])
        let handshake = try await request.schedule(with: service).socket.open()
        #expect(handshake.subprotocol == "chat")
        let head = try #require(server.requests.first)
        #expect(head.path == "/rooms/a b" && head.query("since") == "7")
        #expect(["A", "B", "C"].map { head.header($0) } == ["service", "async", "request"])
    }

    @Test func anyStreamKeepsItsPartsAndNeedsNoService() async throws {
        let server = try Self.makeServer()
        defer { server.stop() }
        var service = TestService(server)
        service.apiURL = "127.0.0.1:1"
        let stream = AnyServiceStreamRequest(url: server.url("/any"), header: ["A": "1"]).schedule(with: service)
        try await stream.socket.open()
        #expect(server.requests.first?.path == "/any" && server.requests.first?.header("A") == "1")
        #expect(await serviceError { for try await _ in AnyServiceStreamRequest().schedule().results {} }?.name == "invalidURL")
    }

    @Test func streamIsOpenedOnFirstUse() async throws {
        let server = try Self.makeServer()
        defer { server.stop() }
        let stream = TextStream().schedule(with: TestService(server))
        #expect(server.requests.isEmpty)
        try await stream.send("a")
        var results = stream.results.makeAsyncIterator()
        #expect(try await results.next()?.get() == "a")
        try await stream.send("b")
        #expect(try await results.next()?.get() == "b")
        #expect(server.requests.count == 1)
    }

    @Test(arguments: [(401, "requestFailed"), (200, "requestFailed")])
    func refusalReportsItsStatus(_ status: Int, _ expected: String) async throws {
        let server = try Self.makeServer(answer: { _ in "HTTP/1.1 \(status) No\r\nContent-Length: 2\r\n\r\nno" })
        defer { server.stop() }
        let stream = TextStream().schedule(with: TestService(server))
        let error = await serviceError {
            try await stream.send("a"); for try await _ in stream.results {}
        }
        guard case .requestFailed(status, Data("no".utf8), _) = error else { Issue.record("\(String(describing: error))"); return }
    }

    @Test func timeoutLimitsTheHandshake() async throws {
        let server = try LoopbackServer { _, connection in
            connection.waitUntilClosed()
            return nil
        }
        defer { server.stop() }
        let stream = TextStream(timeout: .milliseconds(30)).schedule(with: TestService(server))
        #expect(await serviceError { for try await _ in stream.results {} }?.name == "timeout")
    }

    // MARK: Messages

    @Test func textAndBinaryMessagesAreSentBothWays() async throws {
        let server = try Self.makeServer()
        defer { server.stop() }
        let service = TestService(server)
        let bytes = DataStream().schedule(with: service)
        try await bytes.send(Data([1, 2]))
        var received = bytes.results.makeAsyncIterator()
        #expect(try await received.next()?.get() == Data([1, 2]))

        let any = AnyServiceStreamRequest().schedule(with: service)
        try await any.send(.text("t"))
        try await any.send(.binary(Data("b".utf8)))
        var messages = any.results.makeAsyncIterator()
        #expect(try await messages.next()?.get() == .text("t"))
        #expect(try await messages.next()?.get() == .binary(Data("b".utf8)))

        let silent = SilentStream().schedule(with: service)
        try await silent.send(())
        var nothing = silent.results.makeAsyncIterator()
        #expect(try await nothing.next() != nil)
    }

    @Test func bytesThatAreNotUTF8FailDecoding() throws {
        #expect(try TextStream().decode(.binary(Data("ä".utf8))) == "ä")
        #expect(throws: ServiceError.self) { try TextStream().decode(.binary(Data([0xFF]))) }
    }

    @Test(arguments: [(true, #"{"first_name":"Ada"}"#), (false, #"{"firstName":"Ada"}"#)])
    func jsonIsInSnakeCaseByDefault(_ isSnakeCase: Bool, _ text: String) throws {
        let request = PostStream(encodesSnakeCase: isSnakeCase, decodesSnakeCase: isSnakeCase)
        #expect(try request.encode(Post(firstName: "Ada")) == .text(text))
        #expect(try request.decode(.text(text)) == Post(firstName: "Ada"))
    }

    @Test func undecodableMessageYieldsAFailure() async throws {
        let server = try Self.makeServer()
        defer { server.stop() }
        let stream = RefusingStream().schedule(with: TestService(server))
        try await stream.send(
            from: AsyncStream { continuation in
                for text in ["a", "bad", "b"] { continuation.yield(text) }
                continuation.finish()
            })
        var results = stream.results.makeAsyncIterator()
        #expect(try await results.next()?.get() == "a")
        guard case .failure(.unknown(let cause)) = try await results.next(), cause is UserError else { Issue.record("no failure"); return }
        #expect(try await results.next()?.get() == "b")
    }

    @Test func unencodableMessageIsNotSent() async throws {
        let server = try Self.makeServer()
        defer { server.stop() }
        let stream = RefusingStream().schedule(with: TestService(server))
        #expect(await serviceError { try await stream.send("no") }?.name == "encodingFailed")
        try await stream.send("yes")
        var results = stream.results.makeAsyncIterator()
        #expect(try await results.next()?.get() == "yes")
    }

    // MARK: Readers

    @Test func readersReceiveTheSameResults() async throws {
        let server = try Self.makeServer()
        defer { server.stop() }
        let stream = TextStream().schedule(with: TestService(server))
        var first = stream.results.makeAsyncIterator()
        try await stream.send("1")
        #expect(try await first.next()?.get() == "1")
        var second = stream.results.makeAsyncIterator()
        try await stream.send("2")
        #expect(try await first.next()?.get() == "2")
        #expect(try await second.next()?.get() == "2")
        #expect(server.requests.count == 1)
    }

    @Test func nothingIsLostBetweenTwoLoops() async throws {
        let server = try Self.makeServer { peer in
            for number in 1...100 { try peer.send(.text, Data("\(number)".utf8)) }
            try peer.sendClose(1000)
            try peer.answerClose()
        }
        defer { server.stop() }
        let stream = TextStream().schedule(with: TestService(server))
        var values: [String] = []
        for try await result in stream.results {
            values.append(try result.get())
            if values.count == 3 { break }
        }
        let end = await serviceError { for try await result in stream.results { values.append(try result.get()) } }
        #expect(values == (1...100).map(String.init) && end?.name == "closedStream")
    }

    @Test func slowestReaderAppliesBackpressure() {
        var inbox = StreamInbox<Int, ServiceError>()
        #expect(!inbox.hasDemand)
        let (fast, slow) = (inbox.addReader(), inbox.addReader())
        for number in 1...StreamInbox<Int, ServiceError>.limit {
            #expect(inbox.hasDemand)
            inbox.receive(number)
            _ = inbox.take(fast)
        }
        #expect(!inbox.hasDemand)
        _ = inbox.take(slow)
        #expect(inbox.hasDemand)
        inbox.removeReader(slow)
        inbox.removeReader(fast)
        #expect(!inbox.hasDemand)
    }

    @Test func closuresAreCalledOnTheirQueueInOrder() async throws {
        let server = try Self.makeServer { peer in
            for text in ["a", "b"] { try peer.send(.text, Data(text.utf8)) }
            try peer.sendClose(4001)
            try peer.answerClose()
        }
        defer { server.stop() }
        let queue = DispatchQueue(label: "services.stream")
        let stream = TextStream().schedule(with: TestService(server))
        let (events, continuation) = AsyncStream<String>.makeStream()
        let subscription = stream.sink(on: queue) { completion in
            dispatchPrecondition(condition: .onQueue(queue))
            if case .failure(.closedStream(let code)) = completion { continuation.yield("\(code)") }
            continuation.finish()
        } receiveValue: { result in
            dispatchPrecondition(condition: .onQueue(queue))
            continuation.yield((try? result.get()) ?? "?")
        }
        var seen: [String] = []
        for await event in events { seen.append(event) }
        #expect(seen == ["a", "b", "4001"])
        subscription.cancel()
    }

    @Test func cancellingAReaderLeavesTheStreamOpen() async throws {
        let server = try Self.makeServer()
        defer { server.stop() }
        let stream = TextStream().schedule(with: TestService(server))
        try await stream.socket.open()
        let reading = Task { await serviceError { for try await _ in stream.results {} } }
        reading.cancel()
        #expect(await reading.value?.name == "cancelled")
        try await stream.send("a")
        var results = stream.results.makeAsyncIterator()
        #expect(try await results.next()?.get() == "a")
    }

    // MARK: Completion

    @Test(arguments: [1000, 1001, 4001, 1006])
    func streamFailsWithItsCloseCode(_ code: Int) async throws {
        let server = try Self.makeServer { peer in
            guard code != 1006 else { return }
            try peer.sendClose(UInt16(code))
            try peer.answerClose()
        }
        defer { server.stop() }
        let stream = TextStream().schedule(with: TestService(server))
        var results = stream.results.makeAsyncIterator()
        do {
            _ = try await results.next()
            Issue.record("The stream did not fail")
        } catch {
            guard case .closedStream(code) = error as? ServiceError else { Issue.record(error); return }
        }
        #expect(try await results.next() == nil)
        guard case .closedStream(code) = await serviceError({ for try await _ in stream.results {} }) else {
            Issue.record("A later reader received another error"); return
        }
        #expect(await serviceError { try await stream.send("a") }?.name == "closedStream")
    }

    @Test func serviceMapsTheClosingError() async throws {
        struct MappedService: HTTPService {
            struct Failure: Error, Equatable { let text: String }
            let apiURL: any URLConvertible
            let usesSecureProtocol: Bool? = false
            let sessionManager = makeManager()
            func mapError(_ error: ServiceError) -> Failure { Failure(text: error.name) }
        }
        let server = try Self.makeServer { try $0.sendClose(4000) }
        defer { server.stop() }
        let stream = RefusingStream().schedule(with: MappedService(apiURL: server.url("")))
        await #expect(throws: MappedService.Failure(text: "closedStream")) { for try await _ in stream.results {} }
        await #expect(throws: MappedService.Failure(text: "encodingFailed")) { try await stream.send("no") }
    }

    @Test func releasingTheStreamClosesWithGoingAway() async throws {
        let (codes, continuation) = AsyncStream<Data>.makeStream()
        let server = try Self.makeServer { peer in
            while let frame = try peer.receive() {
                guard frame.opcode == .close else { continue }
                continuation.yield(frame.payload)
                return try peer.send(.close, frame.payload)
            }
        }
        defer { server.stop() }
        let service = TestService(server)
        do {
            let stream = TextStream().schedule(with: service)
            try await stream.socket.open()
        }
        // Releasing the manager as well would end the connection without a close frame.
        #expect(await codes.first { _ in true } == Data([0x03, 0xE9]))
        withExtendedLifetime(service) {}
    }

    @Test func streamCanBeClosed() async throws {
        let server = try Self.makeServer()
        defer { server.stop() }
        let stream = TextStream().schedule(with: TestService(server))
        try await stream.socket.open()
        #expect(try await stream.close(code: WebSocketCloseCode(rawValue: 4002)).code.rawValue == 4002)
        guard case .closedStream(4002) = await serviceError({ for try await _ in stream.results {} }) else {
            Issue.record("The stream ended with another error"); return
        }
    }

    /// Records the failures of streams.
    private final class RecordingHook: ServiceHook {
        let failures = AsyncStream<String>.makeStream()

        func onFailure<Request: NetworkServiceRequest>(_ request: Request, _ urlRequest: URLRequest?, error: ServiceError) async {
            failures.continuation.yield("\(Request.self) \(urlRequest?.url?.path ?? "no request") \(error.name)")
        }
    }

    @Test func hookObservesAFailureWithoutReaders() async throws {
        let server = try Self.makeServer { try $0.sendClose(4000) }
        defer { server.stop() }
        let hook = RecordingHook()
        var service = TestService(server)
        service.hook = hook
        let stream = TextStream(routes: "x").schedule(with: service)
        _ = try? await stream.socket.open()
        #expect(await hook.failures.stream.first { _ in true } == "TextStream /x closedStream")
    }

    // MARK: Reconnection

    @Test func reconnectionEvaluatesTheHeaderAgain() async throws {
        let server = try Self.makeServer { peer in
            guard peer.number > 1 else { return try peer.sendClose(1012) }
            try peer.echo()
        }
        defer { server.stop() }
        let tokens = Lock(0)
        var service = TestService(server)
        service.makeAsyncHeader = { ["Authorization": "Bearer \(tokens.next())"] }
        var request = TextStream()
        request.webSocketConfiguration.reconnection = WebSocketReconnection(limit: 3, firstDelay: .zero)
        let stream = request.schedule(with: service)
        for await state in stream.socket.states {
            if case .open = state, server.requests.count == 2 { break }
        }
        try await stream.send("again")
        var results = stream.results.makeAsyncIterator()
        #expect(try await results.next()?.get() == "again")
        #expect(server.requests.map { $0.header("Authorization") } == ["Bearer 1", "Bearer 2"])
    }

    @Test func asyncHeaderErrorEndsTheStream() async throws {
        let server = try Self.makeServer()
        defer { server.stop() }
        var service = TestService(server)
        service.makeAsyncHeader = { throw UserError() }
        let stream = TextStream().schedule(with: service)
        #expect(await serviceError { for try await _ in stream.results {} }?.name == "unknown")
        #expect(server.requests.isEmpty)
    }
}
