// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import Testing

@testable import CurlewGraphQL

// A2.3
@Suite(.timeLimit(.minutes(1))) struct SubscriptionTests {
    // MARK: The protocol

    @Test func `a subscription is requested after the acknowledgement, and ends when it is complete`() async throws {
        let received = Log<GraphQLPeer.Message?>()
        let server = try makeSubscriptionServer { peer in
            received.append(try peer.receive())
            try peer.send(#"{"type":"ping","payload":{"a":1}}"#)
            received.append(try peer.receive())
            try peer.send(#"{"type":"connection_ack","payload":{"b":2}}"#)
            let subscribe = try peer.receive()
            received.append(subscribe)
            try peer.next(subscribe?.id, 1)
            try peer.send(#"{"type":"pong"}"#)
            try peer.send(#"{"type":"ping"}"#)
            received.append(try peer.receive())
            try peer.next(subscribe?.id, 2)
            try peer.complete(subscribe?.id)
            received.append(try peer.receive())
        }
        defer { server.stop() }
        let client = GraphQLClient(server) {
            $0.headers = ["X-Api-Key": "k"]
            $0.connectionPayload = { ["token": .string("t")] }
        }
        let request = GraphQLRequest("subscription ($a: Int) { count }", variables: ["a": 1])
        #expect(try await counts(client, request) == [1, 2])
        await received.wait(for: 5)
        let messages = received.elements
        #expect(messages[0] == .init(type: "connection_init", payload: .object(["token": .string("t")])))
        #expect(messages[1] == .init(type: "pong", payload: .object(["a": .integer(1)])))
        #expect(messages[2]?.type == "subscribe")
        #expect(messages[2]?.payload == .object(["query": .string(request.query), "variables": .object(["a": .integer(1)])]))
        #expect(messages[3] == .init(type: "pong"))
        // The client closes after its last subscription.
        #expect(messages[4] == nil)
        let handshake = try #require(server.requests.first)
        #expect(handshake.header("Sec-WebSocket-Protocol") == "graphql-transport-ws" && handshake.header("X-Api-Key") == "k")
        #expect(await server.waitForConnectionsToClose())
    }

    @Test func `several subscriptions share a connection, and one that is cancelled leaves the other`() async throws {
        let completed = Gate()
        let received = Log<GraphQLPeer.Message?>()
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let first = try peer.receive()?.id
            try peer.next(first, 1)
            let second = try peer.receive()?.id
            try peer.next(second, 10)
            let message = try peer.receive()
            received.append(message)
            #expect(message == .init(type: "complete", id: first) && first != second)
            // What has crossed the client's message.
            try peer.next(first, 2)
            try peer.complete(first)
            try peer.next("99", 3)
            try peer.send(#"{"type":"error","id":"x","payload":[{"message":"m"}]}"#)
            completed.open()
            try peer.next(second, 11)
            try peer.complete(second)
            received.append(try peer.receive())
        }
        defer { server.stop() }
        let client = GraphQLClient(server)
        var first: GraphQLSubscription<Count>.Iterator? = client.subscribe(to: .count("A")).makeAsyncIterator()
        #expect(try await first?.next()?.data == Count(count: 1))
        var second = client.subscribe(to: .count("B"), as: Count.self).makeAsyncIterator()
        #expect(try await second.next()?.data == Count(count: 10))
        first = nil
        #expect(await completed.wait())
        #expect(try await second.next()?.data == Count(count: 11))
        #expect(try await second.next() == nil)
        #expect(try await second.next() == nil)
        await received.wait(for: 2)
        #expect(server.requests.count == 1)
    }

    @Test func `cancelling the task ends the subscription, and the last one the connection`() async throws {
        let received = Log<GraphQLPeer.Message?>()
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let id = try peer.receive()?.id
            try peer.next(id, 1)
            while true {
                let message = try peer.receive()
                received.append(message)
                if message == nil { return }
            }
        }
        defer { server.stop() }
        let client = GraphQLClient(server)
        let gate = Gate()
        let task = Task {
            for try await _ in client.subscribe(to: .count(), as: Count.self) { gate.open() }
        }
        #expect(await gate.wait())
        task.cancel()
        await #expect(throws: CurlewError.self) { try await task.value }
        await received.wait(for: 2)
        #expect(received.elements == [.init(type: "complete", id: "1"), nil])
        // The next subscription has a connection of its own.
        var iterator = client.subscribe(to: .count(), as: Count.self).makeAsyncIterator()
        #expect(try await iterator.next()?.data == Count(count: 1))
        #expect(server.requests.count == 2)
    }

    @Test func `a subscription that is dropped while the connection is opening leaves nothing`() async throws {
        let (arrived, received) = (Gate(), Log<GraphQLPeer.Message?>())
        let server = try makeSubscriptionServer { peer in
            _ = try peer.receive()
            arrived.arrive()
            received.append(try peer.receive())
        }
        defer { server.stop() }
        let client = GraphQLClient(server)
        let task = Task { try await counts(client) }
        #expect(await arrived.arrivals())
        task.cancel()
        await #expect(throws: CurlewError.self) { try await task.value }
        await received.wait(for: 1)
        #expect(received.elements == [nil])
        #expect(await server.waitForConnectionsToClose())
        // Before the handshake is answered, too.
        let silent = try LoopbackServer { _, connection in
            arrived.arrive()
            connection.waitUntilClosed()
            return nil
        }
        defer { silent.stop() }
        let other = GraphQLClient(silent)
        let early = Task { try await counts(other) }
        #expect(await arrived.arrivals(2))
        early.cancel()
        await #expect(throws: CurlewError.self) { try await early.value }
        #expect(await silent.waitForConnectionsToClose())
    }

    @Test func `one of two that is dropped while the connection is opening is never requested`() async throws {
        let (arrived, dropped) = (Gate(), Gate())
        let server = try makeSubscriptionServer { peer in
            _ = try peer.receive()
            arrived.arrive()
            peer.peer.wait(until: dropped)
            try peer.send(#"{"type":"connection_ack"}"#)
            let subscribe = try peer.receive()
            guard case .object(let payload)? = subscribe?.payload, case .string(let query)? = payload["query"] else { return }
            try peer.next(subscribe?.id, query.contains("B") ? 2 : 1)
            try peer.complete(subscribe?.id)
            _ = try peer.receive()
        }
        defer { server.stop() }
        let client = GraphQLClient(server)
        let first = Task { try await counts(client, .count("A")) }
        #expect(await arrived.arrivals())
        // What an iterator does first.
        let second = client.begin(Data(#"{"query":"subscription B { count }"}"#.utf8))
        first.cancel()
        await #expect(throws: CurlewError.self) { try await first.value }
        dropped.open()
        #expect(try await second.next().map { String(decoding: $0, as: UTF8.self) }?.contains(#""count":2"#) == true)
        #expect(try await second.next() == nil)
        #expect(server.requests.count == 1)
    }

    @Test func `an interceptor adapts each handshake`() async throws {
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let id = try peer.receive()?.id
            try peer.next(id, 1)
            try peer.complete(id)
            _ = try peer.receive()
        }
        defer { server.stop() }
        let client = GraphQLClient(server) {
            $0.interceptor = Adapter { request in
                var request = request
                request.setValue("Bearer t", forHTTPHeaderField: "Authorization")
                return request
            }
        }
        for _ in 0..<2 { #expect(try await counts(client) == [1]) }
        #expect(server.requests.map { $0.header("Authorization") } == ["Bearer t", "Bearer t"])
    }

    // MARK: Errors of operations

    @Test func `a refused operation ends with its errors, and the others continue`() async throws {
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let first = try peer.receive()?.id
            try peer.next(first, 1)
            let second = try peer.receive()?.id
            let payload = #"[{"message":"no","extensions":[]},{"message":"never"},{"path":[-1]}]"#
            try peer.send("{\"type\":\"error\",\"id\":\"\(second ?? "")\",\"payload\":\(payload)}")
            try peer.next(first, 2)
            try peer.complete(first)
            _ = try peer.receive()
        }
        defer { server.stop() }
        let client = GraphQLClient(server)
        var first = client.subscribe(to: .count("A"), as: Count.self).makeAsyncIterator()
        _ = try await first.next()
        let failure = await error { try await counts(client, .count("B")) }
        #expect(failure?.graphQLErrors.map(\.message) == ["no", "never", ""])
        #expect(try await first.next()?.data == Count(count: 2))
        #expect(try await first.next() == nil)
    }

    @Test func `an event has data beside errors, and one that can't be decoded does not end the rest`() async throws {
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let id = try peer.receive()?.id ?? ""
            for payload in [
                #"{"data":{"count":1},"errors":[{"message":"m"}]}"#, #"{"data":{"count":"x"}}"#, #"{}"#, #"{"errors":{}}"#, "7",
            ] {
                try peer.send("{\"type\":\"next\",\"id\":\"\(id)\",\"payload\":\(payload)}")
            }
            try peer.send("{\"type\":\"next\",\"id\":\"\(id)\"}")
            try peer.next(id, 2)
            try peer.complete(id)
            _ = try peer.receive()
        }
        defer { server.stop() }
        var iterator = GraphQLClient(server).subscribe(to: .count(), as: Count.self).makeAsyncIterator()
        let first = try await iterator.next()
        #expect(first?.data == Count(count: 1) && first?.errors.count == 1)
        var failures: [String] = []
        for _ in 0..<5 {
            do { _ = try await iterator.next() } catch { failures.append("\(error)") }
        }
        #expect(failures.count == 5)
        #expect(
            zip(failures, ["payload.data.count", "payload.data: there is no such entry", "payload.errors", "payload", "payload"])
                .allSatisfy { $0.contains($1) }, "\(failures)")
        #expect(try await iterator.next()?.data == Count(count: 2))
        #expect(try await iterator.next() == nil)
    }

    @Test func `a file can't be sent, and no connection is opened`() async throws {
        let server = try makeSubscriptionServer { _ in }
        defer { server.stop() }
        let request = GraphQLRequest("subscription { count }", variables: ["a": GraphQLUpload(data: Data(), fileName: "a")])
        let failure = await error { try await counts(GraphQLClient(server), request) }
        guard case CurlewError.parameterEncodingFailed? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(server.requests.isEmpty)
    }

    @Test(arguments: ["mutation { count }", "query A { a } mutation B { b }", "nonsense"])
    func `what may not be repeated is not sent, and no connection is opened`(document: String) async throws {
        let server = try makeSubscriptionServer { _ in }
        defer { server.stop() }
        let failure = await error { try await counts(GraphQLClient(server), GraphQLRequest(document)) }
        guard case GraphQLClientError.invalidRequest(.wrongKind)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(server.requests.isEmpty)
    }

    @Test func `cancelling before the acknowledgement is one error, with a deadline too`() async throws {
        let arrived = Gate()
        let server = try makeSubscriptionServer { peer in
            arrived.arrive()
            peer.peer.waitUntilClosed()
        }
        defer { server.stop() }
        let client = GraphQLClient(server) { $0.options = RequestOptions(deadline: .seconds(50)) }
        let tasks = (0..<100).map { _ in Task { try await counts(client) } }
        #expect(await arrived.arrivals())
        for task in tasks { task.cancel() }
        for task in tasks {
            await #expect {
                _ = try await task.value
            } throws: {
                if case CurlewError.cancelled = $0 { true } else { false }
            }
        }
    }

    @Test func `a deadline bounds the time until the acknowledgement, and no longer`() async throws {
        let server = try makeSubscriptionServer { peer in
            if peer.number == 1 { return peer.peer.waitUntilClosed() }
            try peer.acknowledge()
            let id = try peer.receive()?.id
            // Later than the deadline.
            Thread.sleep(forTimeInterval: 2.2)
            try peer.next(id, 1)
            try peer.complete(id)
            _ = try peer.receive()
        }
        defer { server.stop() }
        let client = GraphQLClient(server)
        let late = await error { try await withDeadline(.seconds(1)) { try await counts(client) } }
        guard case CurlewError.transferFailed(let failure)? = late, failure.kind == .deadline else {
            Issue.record("\(String(describing: late))")
            return
        }
        var configuration = GraphQLConfiguration()
        configuration.options = RequestOptions(deadline: .seconds(2))
        let patient = GraphQLClient(server.url("/graphql"), manager: makeManager(), configuration: configuration)
        #expect(try await counts(patient) == [1])
    }

    // MARK: Buffers

    @Test func `events that are not read suspend the server, and none is lost`() async throws {
        let sent = Monitor(0)
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let id = try peer.receive()?.id ?? ""
            let filler = String(repeating: "x", count: 20_000)
            for number in 0..<1_000 {
                try peer.send("{\"type\":\"next\",\"id\":\"\(id)\",\"payload\":{\"data\":{\"count\":\(number),\"filler\":\"\(filler)\"}}}")
                sent.update { $0 = number }
            }
            try peer.complete(id)
            _ = try peer.receive()
        }
        defer { server.stop() }
        let client = GraphQLClient(server) {
            $0.eventBufferSize = 50_000
            $0.webSocket.receiveBufferSize = 50_000
        }
        var iterator = client.subscribe(to: .count(), as: Count.self).makeAsyncIterator()
        #expect(try await iterator.next()?.data == Count(count: 0))
        // 20 MB are more than the buffers of two sockets, which fill meanwhile.
        var last = -1
        while true {
            let now = sent.read { $0 }
            if now > 10, now == last { break }
            last = now
            try await Task.sleep(for: .milliseconds(300))
        }
        #expect(last < 999)
        var expected = 1
        while let event = try await iterator.next() {
            #expect(event.data == Count(count: expected))
            expected += 1
        }
        #expect(expected == 1_000)
    }

    @Test func `or end the subscription with a typed error, and the others continue`() async throws {
        let received = Log<GraphQLPeer.Message?>()
        let server = try makeSubscriptionServer { peer in
            try peer.acknowledge()
            let first = try peer.receive()?.id
            try peer.next(first, 0)
            let second = try peer.receive()?.id
            for number in 1...100 { try peer.next(first, number) }
            try peer.next(second, 7)
            received.append(try peer.receive())
            try peer.complete(second)
            received.append(try peer.receive())
        }
        defer { server.stop() }
        let client = GraphQLClient(server) {
            $0.eventBufferSize = 1_000
            $0.overflow = .fail
        }
        var first = client.subscribe(to: .count("A"), as: Count.self).makeAsyncIterator()
        #expect(try await first.next()?.data == Count(count: 0))
        #expect(try await counts(client, .count("B")) == [7])
        await received.wait(for: 1)
        #expect(received.elements.first == .init(type: "complete", id: "1"))
        var read = 0
        do {
            while let event = try await first.next() {
                read += 1
                #expect(event.data == Count(count: read))
            }
            Issue.record("the subscription has ended without an error")
        } catch {
            guard case GraphQLClientError.eventBufferOverflow(limit: 1_000) = error else {
                Issue.record("\(error)")
                return
            }
        }
        #expect(read > 1 && read < 20)
    }
}
