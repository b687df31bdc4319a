// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import Testing

@testable import CurlewGraphQL

/// How subscriptions end when the server, or the line, does not do what it should.
// A2.3
@Suite(.timeLimit(.minutes(1))) struct SubscriptionFailureTests {
    // MARK: What a good server never does

    private static let violations = [
        "nonsense", "[]", "{}", #"{"type":1}"#, #"{"type":"next"}"#, #"{"type":"complete"}"#, #"{"type":"error","id":"1"}"#,
        #"{"type":"error","id":"1","payload":{}}"#, #"{"type":"unknown"}"#, #"{"type":"connection_ack"}"#,
        #"{"type":"ping","id":7}"#,
    ]

    @Test("a message that the protocol does not have closes the connection with 4400, for all", arguments: violations)
    func violation(message: String) async throws {
        let code = Log<Data>()
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let ids = [try peer.receive()?.id, try peer.receive()?.id]
            for id in ids { try peer.next(id, 1) }
            try peer.send(message)
            while let frame = try peer.peer.receive() {
                guard frame.opcode == .close else { continue }
                code.append(frame.payload)
                return try peer.peer.send(.close, frame.payload)
            }
        }
        defer { server.stop() }
        let client = GraphQLClient(server)
        async let first = error { try await counts(client, .count("A")) }
        async let second = error { try await counts(client, .count("B")) }
        for failure in await [first, second] {
            guard case GraphQLClientError.invalidMessage? = failure else {
                Issue.record("\(message): \(String(describing: failure))")
                return
            }
        }
        await code.wait(for: 1)
        #expect(code.elements.first?.prefix(2) == Data([0x11, 0x30]))
    }

    @Test func `a binary message and one before the acknowledgement are violations`() async throws {
        let server = try makeSubscriptionServer { peer in
            if peer.number == 1 {
                try peer.acknowledge()
                try peer.peer.send(.binary, Data(#"{"type":"ping"}"#.utf8))
            } else {
                try peer.next("1", 1)
            }
            while try peer.receive() != nil {}
        }
        defer { server.stop() }
        for reason in ["binary", "before"] {
            let failure = await error { try await counts(GraphQLClient(server)) }
            guard case GraphQLClientError.invalidMessage(let text)? = failure, text.contains(reason) else {
                Issue.record("\(String(describing: failure))")
                return
            }
        }
    }

    @Test func `an acknowledgement that never comes is an error, and the connection is closed with 4504`() async throws {
        let code = Log<Data>()
        let server = try makeSubscriptionServer { peer in
            _ = try peer.receive()
            try peer.send(#"{"type":"ping"}"#)
            while let frame = try peer.peer.receive() {
                guard frame.opcode == .close else { continue }
                code.append(frame.payload)
                return try peer.peer.send(.close, frame.payload)
            }
        }
        defer { server.stop() }
        let client = GraphQLClient(server) { $0.acknowledgementTimeout = .milliseconds(200) }
        // With the client its session ends, and what that has still to send.
        defer { withExtendedLifetime(client) {} }
        let failure = await error { try await counts(client) }
        guard case GraphQLClientError.acknowledgementTimedOut? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        await code.wait(for: 1)
        #expect(code.elements.first?.prefix(2) == Data([0x11, 0x98]))
    }

    @Test(arguments: [nil, "graphql-ws"] as [String?]) func `another subprotocol is an error`(subprotocol: String?) async throws {
        let server = try makeSubscriptionServer(subprotocol: subprotocol) { peer in while try peer.receive() != nil {} }
        defer { server.stop() }
        let failure = await error { try await counts(GraphQLClient(server)) }
        switch failure {
        case GraphQLClientError.subprotocolNotAccepted(nil)? where subprotocol == nil: break
        // One that was not offered fails the handshake.
        case WebSocketError.handshakeFailed(.unexpectedSubprotocol("graphql-ws"))? where subprotocol != nil: break
        default: Issue.record("\(String(describing: failure))")
        }
    }

    private static let codes: [WebSocketCloseCode] = [
        .graphQLBadRequest, .graphQLUnauthorized, .graphQLForbidden, .graphQLInitialisationTimeout, .graphQLSubscriberAlreadyExists,
        .graphQLTooManyInitialisationRequests, .normalClosure, .goingAway, .internalError,
    ]

    @Test("a server that closes is a typed error for all, and never the end", arguments: codes, [false, true])
    func closed(code: WebSocketCloseCode, isAcknowledged: Bool) async throws {
        let server = try makeSubscriptionServer { peer in
            if isAcknowledged {
                try peer.acknowledge()
                for id in [try peer.receive()?.id, try peer.receive()?.id] { try peer.next(id, 1) }
            } else {
                _ = try peer.receive()
            }
            try peer.peer.sendClose(code.rawValue, "why")
            try peer.peer.answerClose()
        }
        defer { server.stop() }
        let client = GraphQLClient(server)
        let seen = Log<Int>()
        let outcomes = await withTaskGroup(of: (any Error)?.self) { group in
            for name in ["A", "B"] {
                group.addTask {
                    await error {
                        for try await event in client.subscribe(to: .count(name), as: Count.self) { seen.append(try event.get().count) }
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for outcome in outcomes {
            guard case GraphQLClientError.closed(let closure)? = outcome, closure.code == code, closure.reason == "why" else {
                Issue.record("\(String(describing: outcome))")
                return
            }
        }
        // Not acknowledged, the second may have come too late for the first connection, and be on another one.
        #expect(seen.count == (isAcknowledged ? 2 : 0))
    }

    @Test func `an overlong message ends all, typed`() async throws {
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let id = try peer.receive()?.id ?? ""
            try peer.send("{\"type\":\"next\",\"id\":\"\(id)\",\"payload\":{\"data\":\"\(String(repeating: "x", count: 100_000))\"}}")
            while try peer.receive() != nil {}
        }
        defer { server.stop() }
        let failure = await error { try await counts(GraphQLClient(server) { $0.webSocket.maximumMessageSize = 10_000 }) }
        guard case WebSocketError.messageTooLarge? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
    }

    @Test func `a refused handshake, and a payload that can't be had, are the errors that they are`() async throws {
        let server = try LoopbackServer { _, _ in .status(401) }
        defer { server.stop() }
        let refused = await error { try await counts(GraphQLClient(server)) }
        guard case WebSocketError.handshakeRejected(let rejection)? = refused, rejection.response.statusCode == 401 else {
            Issue.record("\(String(describing: refused))")
            return
        }
        let failed = await error { try await counts(GraphQLClient(server) { $0.connectionPayload = { throw TestError("no token") } }) }
        #expect(failed is TestError)
        #expect(server.requestCount == 1)
    }

    // MARK: Lost connections

    @Test(arguments: [false, true]) func `a lost connection ends all subscriptions`(isReset: Bool) async throws {
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            for id in [try peer.receive()?.id, try peer.receive()?.id] { try peer.next(id, 1) }
            if isReset { peer.peer.reset() }
        }
        defer { server.stop() }
        let client = GraphQLClient(server)
        async let first = error { try await counts(client, .count("A")) }
        async let second = error { try await counts(client, .count("B")) }
        for failure in await [first, second] {
            switch failure {
            case GraphQLClientError.closed(let closure)? where closure.code == .abnormalClosure: break
            case CurlewError.transferFailed(let failure)? where failure.kind == .connectionLost: break
            default: Issue.record("\(String(describing: failure))")
            }
        }
        #expect(server.requests.count == 1)
    }

    /// - Parameter isSuspended: whether the connection waits for events to be read, so that its end is seen late.
    @Test(arguments: [false, true], [false, true])
    func `a subscription that begins while the connection is being lost has another`(isSuspended: Bool, reconnects: Bool) async throws {
        let (wasRead, answered, ended) = (Gate(), Gate(), Gate())
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let id = try peer.receive()?.id
            try peer.next(id, 1)
            if peer.number == 1 {
                peer.peer.wait(until: wasRead)
                if isSuspended { for count in 2...4 { try peer.next(id, count) } }
                try peer.peer.sendClose(4000)
                // The client's close frame; the TCP connection stays.
                #expect(try peer.peer.receive()?.opcode == .close)
                answered.open()
                peer.peer.wait(until: ended)
            } else {
                try peer.complete(id)
                _ = try peer.receive()
            }
        }
        defer { server.stop() }
        let client = GraphQLClient(server) {
            $0.eventBufferSize = 1
            if reconnects {
                $0.webSocket.reconnection = WebSocketReconnection { if case WebSocketError.closed = $0 { false } else { true } }
            }
        }
        var first = client.subscribe(to: .count("A"), as: Count.self).makeAsyncIterator()
        #expect(try await first.next()?.data == Count(count: 1))
        wasRead.open()
        #expect(await answered.wait())
        #expect(try await counts(client, .count("B")) == [1])
        ended.open()
        if isSuspended { for count in 2...4 { #expect(try await first.next()?.data == Count(count: count)) } }
        let failure = await error { try await first.next() }
        guard case GraphQLClientError.closed(let closure)? = failure, closure.code.rawValue == 4000 else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(server.requests.count == 2)
    }

    @Test func `a payload that fails at once is asked for once by each subscription`() async throws {
        let calls = Monitor(0)
        let client = GraphQLClient(
            "http://127.0.0.1:1/", manager: makeManager(),
            configuration: {
                var configuration = GraphQLConfiguration()
                configuration.connectionPayload = {
                    calls.update { $0 += 1 }
                    throw TestError("no token")
                }
                return configuration
            }())
        for _ in 0..<1_000 { #expect(await error { try await counts(client) } is TestError) }
        #expect(calls.read { $0 } == 1_000)
    }

    @Test func `with a reconnection policy all are requested again, with a new payload`() async throws {
        let payloads = Log<JSONValue?>()
        let subscribed = Log<String>()
        let server = try makeSubscriptionServer { peer in
            payloads.append(try peer.acknowledge()?.payload)
            for _ in 0..<2 {
                guard let message = try peer.receive(), let id = message.id else { return }
                subscribed.append("\(peer.number): \(message.type)")
                try peer.next(id, peer.number)
                if peer.number == 3 { try peer.complete(id) }
            }
            if peer.number < 3 { return peer.peer.reset() }
            _ = try peer.receive()
        }
        defer { server.stop() }
        let numbers = Log<Int>()
        let client = GraphQLClient(server) {
            $0.connectionPayload = {
                numbers.append(1)
                return ["n": .integer(numbers.count)]
            }
            $0.webSocket.reconnection = WebSocketReconnection(limit: 2, firstDelay: .milliseconds(1)) { _ in true }
        }
        async let first = counts(client, .count("A"))
        async let second = counts(client, .count("B"))
        let (one, two) = try await (first, second)
        // What was on its way when the line was reset may be lost.
        #expect(one.last == 3 && two.last == 3)
        #expect(one == one.sorted() && two == two.sorted())
        #expect(subscribed.elements == (1...3).flatMap { ["\($0): subscribe", "\($0): subscribe"] })
        #expect(payloads.elements == (1...3).map { .object(["n": .integer($0)]) })
    }

    /// Ends each connection after its subscription was requested; from the fifth on it is completed.
    private func makeFailingServer(event: Bool) throws -> WebSocketServer {
        try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let id = try peer.receive()?.id
            if event { try peer.next(id, peer.number) }
            if peer.number > 4 {
                try peer.complete(id)
            } else {
                try peer.peer.sendClose(1001)
            }
            try peer.peer.answerClose()
        }
    }

    @Test func `a server that acknowledges and fails is not asked without end`() async throws {
        let server = try makeFailingServer(event: false)
        defer { server.stop() }
        let client = GraphQLClient(server) { $0.webSocket.reconnection = WebSocketReconnection(limit: 2, firstDelay: .milliseconds(1)) }
        let failure = await error { try await counts(client) }
        guard case GraphQLClientError.closed(let closure)? = failure, closure.code == .goingAway else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(server.requests.count == 3)
    }

    @Test(arguments: [false, true]) func `a connection that was useful, or lasted, is no failure`(event: Bool) async throws {
        let server = try makeFailingServer(event: event)
        defer { server.stop() }
        let client = GraphQLClient(server) {
            $0.webSocket.reconnection = WebSocketReconnection(
                limit: 1, firstDelay: .milliseconds(1), maximumDelay: event ? .seconds(60) : .zero)
        }
        #expect(try await counts(client) == (event ? [1, 2, 3, 4, 5] : []))
        #expect(server.requests.count == 5)
    }

    @Test func `timeouts of the protocol are transient`() async throws {
        let server = try makeSubscriptionServer { peer in
            switch peer.number {
            case 1:
                try peer.peer.sendClose(4408)
                try peer.peer.answerClose()
            case 2: while try peer.receive() != nil {}
            default:
                try peer.acknowledge()
                try peer.complete(try peer.receive()?.id)
                try peer.peer.answerClose()
            }
        }
        defer { server.stop() }
        let client = GraphQLClient(server) {
            $0.acknowledgementTimeout = .seconds(1)
            $0.webSocket.reconnection = WebSocketReconnection(firstDelay: .milliseconds(1))
        }
        #expect(try await counts(client) == [])
        #expect(server.requests.count >= 3)
    }

    @Test func `a payload that takes too long is an error`() async throws {
        let client = GraphQLClient(
            "http://127.0.0.1:1/", manager: makeManager(),
            configuration: {
                var configuration = GraphQLConfiguration()
                configuration.webSocket.handshakeTimeout = .milliseconds(100)
                configuration.connectionPayload = {
                    try await Task.sleep(for: .seconds(50))
                    return [:]
                }
                return configuration
            }())
        let failure = await error { try await counts(client) }
        guard case WebSocketError.timedOut(.handshake)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
    }

    @Test func `a reconnection policy has a limit, and is not for refusals`() async throws {
        let server = try makeSubscriptionServer { peer in
            if peer.number > 3 {
                try peer.acknowledge()
                try peer.peer.sendClose(4403)
                return try peer.peer.answerClose()
            }
            peer.peer.reset()
        }
        defer { server.stop() }
        let client = GraphQLClient(server) {
            // Shorter than an attempt, which does not prove a connection that is not acknowledged.
            $0.webSocket.reconnection = WebSocketReconnection(limit: 2, firstDelay: .milliseconds(1), maximumDelay: .zero)
            $0.webSocket.reconnection.shouldReconnect = { error in
                if case WebSocketError.closed(let closure) = error, closure.code.rawValue >= 4400 { false } else { true }
            }
        }
        #expect(await error { try await counts(client) } != nil)
        #expect(server.requests.count == 3)
        let refused = await error { try await counts(client) }
        guard case GraphQLClientError.closed(let closure)? = refused, closure.code == .graphQLForbidden else {
            Issue.record("\(String(describing: refused))")
            return
        }
        #expect(server.requests.count == 4)
    }
}
