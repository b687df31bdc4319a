// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct BodyStreamTests {
    @Test("nothing is received before somebody reads")
    func held() async throws {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let request = manager.streamRequest("http://mock/")
        let exchange = await mock.started[0]
        #expect(exchange.request.mayPause)
        exchange.perform(.head(200), .bytes(Data("abc".utf8)), .complete())
        #expect(exchange.isPaused)
        var body = Data()
        for try await piece in request.bodyStream() { body += piece }
        #expect(body == Data("abc".utf8))
        #expect(request.delegate.data == nil)
    }

    @Test("a status that is refused stops the body before its first piece", arguments: [true, false])
    func refusedStatus(_ readsFirst: Bool) async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let request = manager.streamRequest("http://mock/").validate()
        let exchange = await mock.started[0]
        if !readsFirst { exchange.perform(.head(500), .bytes(Data("abc".utf8)), .complete()) }
        let stream = request.bodyStream()
        if readsFirst { exchange.perform(.head(500), .bytes(Data("abc".utf8)), .complete()) }
        let pieces = Inbox<Data>()
        do {
            for try await piece in stream { pieces.put(piece) }
            Issue.record("nothing was thrown")
        } catch {
            #expect(statusOf(error) == 500)
        }
        #expect(pieces.all.isEmpty)
    }

    @Test("the head of a refused status is there after the request has failed") func headOfRefusedStatus() async throws {
        let manager = SessionManager(mock: .answering(416, [:], ""))
        let request = manager.streamRequest("http://mock/").validate(statusCode: [206])
        let stream = request.bodyStream()
        #expect(statusOf(await request.serializingData().response.error) == 416)
        #expect(try await stream.head().statusCode == 416)
        var error: (any Error)?
        do { for try await _ in stream { Issue.record("a piece came through") } } catch let thrown { error = thrown }
        #expect(statusOf(error) == 416)
    }

    @Test("a content type counts when there is a body", arguments: ["", "abc"])
    func contentType(_ text: String) async {
        let manager = SessionManager(mock: .answering(200, [:], text))
        var error: (any Error)?
        do {
            for try await _ in manager.streamRequest("http://mock/").validate(contentType: ["text/html"]).bodyStream() {
                Issue.record("a piece came through")
            }
        } catch let thrown {
            error = thrown
        }
        #expect((error == nil) == text.isEmpty)
    }

    @Test("a failure in the middle is thrown behind what came before")
    func failure() async {
        let mock = MockTransport { _ in [.head(200), .bytes(Data("abc".utf8)), .complete(CurlewError.failure(.connectionLost))] }
        let manager = SessionManager(mock: mock)
        var body = Data()
        do {
            for try await piece in manager.streamRequest("http://mock/").bodyStream() { body += piece }
            Issue.record("nothing was thrown")
        } catch {
            #expect(kindOf(error) == .connectionLost)
        }
        #expect(body == Data("abc".utf8))
    }

    @Test("letting go of the stream cancels the request")
    func droppedStream() async throws {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let request = manager.streamRequest("http://mock/")
        let exchange = await mock.started[0]
        exchange.add([.head(200), .bytes(Data("abc".utf8))])
        exchange.pumpLater()
        for try await _ in request.bodyStream() { break }
        #expect(isCancelled(await request.serializingData().response.error))
    }

    @Test("cancelling the reader cancels the request and ends the reading")
    func cancelledReader() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let request = manager.streamRequest("http://mock/")
        let exchange = await mock.started[0]
        let reading = Task {
            for try await _ in request.bodyStream() {}
        }
        exchange.perform(.head(200))
        reading.cancel()
        guard case .failure(let error) = await reading.result else {
            Issue.record("nothing was thrown")
            return
        }
        #expect(error is CancellationError)
        #expect(isCancelled(await request.serializingData().response.error))
    }

    @Test("a body of which pieces were read is not asked for again; one that nobody read is")
    func retries() async throws {
        let broken: [MockTransport.Step] = [.head(200), .bytes(Data("abc".utf8)), .complete(CurlewError.failure(.connectionLost))]
        let mock = MockTransport.answering(inTurn: [broken, .response(200, [:], "whole")])
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let read = Inbox<Data>()
        do {
            for try await piece in manager.streamRequest("http://mock/").bodyStream() { read.put(piece) }
            #expect(mock.started.count == 2)
            #expect(read.all == [Data("whole".utf8)])
        } catch {
            #expect(mock.started.count == 1)
            #expect(read.all == [Data("abc".utf8)])
        }

        let second = MockTransport.answering(inTurn: [.failure(), .response(200, [:], "whole")])
        let other = SessionManager(mock: second)
        other.retrier = manager.retrier
        var body = Data()
        for try await piece in other.streamRequest("http://mock/").bodyStream() { body += piece }
        #expect(body == Data("whole".utf8))
    }

    @Test("a closure attached late gets everything, in order, before the handlers", arguments: [0, 1, 2, 3])
    func lateClosure(_ steps: Int) async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock) { $0.callbackQueue = DispatchQueue(label: "x") }
        let request = manager.request("http://mock/")
        let exchange = await mock.started[0]
        let all: [MockTransport.Step] = [.head(200), .bytes(Data("abc".utf8)), .bytes(Data("def".utf8)), .complete()]
        for step in all.prefix(steps) { exchange.perform(step) }
        let order = Inbox<String>()
        request.stream { order.put(String(decoding: $0, as: UTF8.self)) }.response { order.put($0.data == nil ? "end" : "data") }
        for step in all.dropFirst(steps) { exchange.perform(step) }
        _ = await request.serializingData().response
        #expect(await eventually { order.all.last == "end" })
        #expect(order.all.joined() == "abcdefend")
    }
}
