// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Dispatch
import Testing

@Suite(.timeLimit(.minutes(2))) struct HandlerTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("handlers run in the order in which they were added") func order() async throws {
        let order = Log<String>()
        manager.request(server.url("/json")).validate()
            .response { _ in order.append("response") }
            .responseData { _ in order.append("data") }
            .responseString { _ in order.append("string") }
            .responseJSON { _ in order.append("json") }
            .responseDecodable(of: Sample.self) { _ in order.append("decodable") }
            .response { _ in order.append("response again") }
        await order.wait(for: 6)
        #expect(order.elements == ["response", "data", "string", "json", "decodable", "response again"])
    }

    @Test("handlers receive their serializers' results") func serializers() async throws {
        let results = Log<String>()
        manager.request(server.url("/json"))
            .responseData { results.append("\($0.value?.count ?? -1)") }
            .responseJSON { results.append((($0.value as? [String: Any])?["name"] as? String) ?? "none") }
            .responseDecodable(of: Sample.self) { results.append("\($0.value?.numbers ?? [])") }
        await results.wait(for: 3)
        #expect(results.elements == ["60", "curlew", "[1, 2, 3]"])
    }

    @Test("a property list is serialized") func propertyList() async throws {
        let list = try PropertyListSerialization.data(fromPropertyList: ["name": "curlew"], format: .binary, options: 0)
        let names = Log<String?>()
        manager.upload(list, to: server.url("/body")).responsePropertyList { names.append(($0.value as? [String: String])?["name"]) }
        await names.wait(for: 1)
        #expect(names.elements == ["curlew"])
    }

    @Test("handlers run on the manager's queue or on the given one") func queues() async throws {
        let (mine, other) = (DispatchSpecificKey<Bool>(), DispatchSpecificKey<Bool>())
        let (own, given) = (DispatchQueue(label: "own"), DispatchQueue(label: "given"))
        own.setSpecific(key: mine, value: true)
        given.setSpecific(key: other, value: true)
        let manager = makeManager { $0.callbackQueue = own }
        let places = Log<Bool>()
        manager.request(server.url("/json"))
            .responseData { _ in places.append(DispatchQueue.getSpecific(key: mine) == true) }
            .responseData(queue: given) { _ in places.append(DispatchQueue.getSpecific(key: other) == true) }
        manager.request(server.url("/json")).downloadProgress { _ in places.append(DispatchQueue.getSpecific(key: mine) == true) }
            .response { _ in }
        await places.wait(for: 3)
        #expect(places.elements.allSatisfy { $0 })
    }

    @Test("the main queue is the default") func mainQueue() async throws {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        let manager = SessionManager(configuration: configuration)
        let isMain: Bool = await withTrackedContinuation { continuation in
            manager.request(server.url("/json")).response { _ in
                dispatchPrecondition(condition: .onQueue(.main))
                continuation.resume(returning: true)
            }
        }
        #expect(isMain)
    }

    @Test("a handler added after the end runs as well") func lateHandler() async throws {
        let request = manager.request(server.url("/bytes/10")).validate()
        let first = await request.serializingData().response
        #expect(first.value?.count == 10)
        let handled = Log<Int?>()
        request.responseData { handled.append($0.value?.count) }
        await handled.wait(for: 1)
        request.responseData { handled.append($0.value?.count) }
        await handled.wait(for: 2)
        #expect(handled.elements == [10, 10])
        #expect(try await request.serializingData().value.count == 10)
        #expect(server.requestCount == 1)
    }

    @Test("a request without handlers finishes") func noHandler() async throws {
        let request = manager.request(server.url("/bytes/10"))
        #expect(await server.waitForRequests(1))
        let released = Log<Void>()
        request.delegate.queue.addOperation { released.append(()) }
        await released.wait(for: 1)
        #expect(request.response?.statusCode == 200)
    }

    @Test("a validation added after the request's end still applies to the first handler")
    func lateValidation() async throws {
        let request = manager.request(server.url("/status/404"))
        let released = Log<Void>()
        request.delegate.queue.addOperation { released.append(()) }
        await released.wait(for: 1)
        let response = await request.validate().serializingData().response
        #expect(response.error?.unacceptableStatus == 404)
    }

    @Test("handlers run even if the request could not be created") func invalidRequest() async throws {
        let errors = Log<Bool>()
        manager.request("no url at all").validate().response { errors.append($0.error is CurlewError) }
            .responseData { errors.append($0.error is CurlewError) }
        manager.download("no url at all").responseURL { errors.append($0.error is CurlewError) }
        manager.upload(Data(), to: "no url at all").responseData { errors.append($0.error is CurlewError) }
        await errors.wait(for: 4)
        #expect(errors.elements == [true, true, true, true])
    }

    @Test("with startRequestsImmediately off, requests start on resume") func manualStart() async throws {
        manager.startRequestsImmediately = false
        let request = manager.request(server.url("/json"))
        async let response = request.serializingData().response
        let other = makeManager()
        _ = try await other.request(server.url("/bytes/1")).serializingData().value
        #expect(server.requests.map(\.path) == ["/bytes/1"])
        request.resume()
        #expect(await response.error == nil)
        #expect(server.requestCount == 2)
    }

    @Test("a suspended request continues when it is resumed") func suspended() async throws {
        let gate = Gate()
        let slow = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok(Data(count: 1 << 20))
        }
        let request = manager.request(slow.url("/"))
        async let response = request.serializingData().response
        #expect(await gate.arrivals())
        request.suspend()
        gate.open()
        #expect(request.task?.state == .suspended)
        request.resume()
        #expect(await response.value?.count == 1 << 20)
    }

    @Test("a body over the limit ends the request") func bodyOverLimit() async throws {
        let manager = makeManager { $0.maximumBodySize = 100_000 }
        let response = await manager.request(server.url("/bytes/100000000")).serializingData().response
        #expect(response.error?.transferFailure?.kind == .tooLarge)
        let fitting = await manager.request(server.url("/bytes/100000")).serializingData().response
        #expect(fitting.value?.count == 100_000)
    }

    enum Consumption: CaseIterable, Sendable {
        case data, post, upload, handler, download, destination, stream, bodyStream, closure, lateClosure, delegate, head
    }

    /// Bodies of 300,000 bytes with a limit of 100,000: those to be kept in memory are rejected before a byte is received.
    @Test("an announced length over the limit fails at the head if the body would be stored", arguments: Consumption.allCases)
    func announcedLengthOverLimit(_ consumption: Consumption) async throws {
        let manager = makeManager { $0.maximumBodySize = 100_000 }
        let url = server.url("/bytes/300000")
        let directory = try TemporaryDirectory()
        switch consumption {
        case .data, .post, .upload:
            let request =
                switch consumption {
                case .data: manager.request(url)
                case .post: manager.request(url, method: .post, parameters: ["a": 1])
                default: manager.upload(Data("abc".utf8), to: url)
                }
            let response = await request.serializingData().response
            let failure = try #require(response.error?.transferFailure)
            #expect(failure.kind == .tooLarge && failure.bytesReceived == 0, "\(failure)")
            #expect(failure.message.contains("300000") && failure.message.contains("100000"))
            #expect(response.response?.statusCode == 200)
        case .handler:
            let response = await withCheckedContinuation { continuation in
                manager.request(url).response { continuation.resume(returning: $0) }
            }
            let failure = try #require(response.error?.transferFailure)
            #expect(failure.kind == .tooLarge && failure.bytesReceived == 0, "\(failure)")
        case .download:
            let response = await manager.download(url).serializingData().response
            #expect(response.value?.count == 300_000)
        case .destination:
            let response = await manager.download(url, to: directory.file("body")).serializingURL().response
            #expect(try response.value.map { try Data(contentsOf: $0).count } == 300_000)
        case .stream:
            var count = 0
            for try await piece in manager.streamRequest(url).bodyStream() { count += piece.count }
            #expect(count == 300_000)
        case .bodyStream:
            var count = 0
            for try await piece in manager.request(url).validate().bodyStream() { count += piece.count }
            #expect(count == 300_000)
        case .closure, .lateClosure, .delegate:
            let count = Lock(0)
            if consumption == .delegate { manager.delegate.dataTaskDidReceiveData = { _, _, data in count.withLock { $0 += data.count } } }
            let error = await withCheckedContinuation { continuation in
                let request = manager.request(url)
                if consumption == .closure { request.stream { data in count.withLock { $0 += data.count } } }
                request.response { continuation.resume(returning: $0.error) }
                if consumption == .lateClosure { request.stream { data in count.withLock { $0 += data.count } } }
            }
            #expect(error == nil && count.withLock { $0 } == 300_000)
        case .head:
            let response = await manager.request(url, method: .head).serializingData().response
            #expect(response.error == nil && response.response?.expectedContentLength == 300_000)
        }
    }

    @Test("responses with a follow-up may announce any length")
    func followedUpResponses() async throws {
        let manager = makeManager { $0.maximumBodySize = 10 }
        let server = try LoopbackServer { request, _ in
            guard request.path == "/" else { return .ok("short") }
            return ServerResponse(status: 302, headers: [ServerField("Location", "/next")], body: .data(Data(count: 1000)))
        }
        #expect(try await manager.request(server.url("/")).serializingString().value == "short")
    }

    @Test("a coded body may be announced up to 64 KiB longer than the limit", arguments: [(65_000, true), (66_000, false)])
    func codedBodyOverLimit(_ excess: Int, _ isReceived: Bool) async throws {
        let manager = makeManager { $0.maximumBodySize = 100_000 }
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Content-Encoding", "gzip")], body: .data(Data(count: 100_000 + excess)))
        }
        let failure = try #require(await manager.request(server.url("/")).serializingData().response.error?.transferFailure)
        // The body is not valid gzip.
        #expect(failure.kind == (isReceived ? .decoding : .tooLarge), "\(failure)")
    }

    private struct Sample: Decodable, Sendable {
        let name: String
        let numbers: [Int]
    }
}
