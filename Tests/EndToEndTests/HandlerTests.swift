// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Dispatch
import Testing

@Suite(.timeLimit(.minutes(2))) struct HandlerTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("handlers run in the order they were added") func handlersRunInTheOrderTheyWereAdded() async throws {
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

    @Test("handlers get what their serializers make") func handlersGetWhatTheirSerializersMake() async throws {
        let results = Log<String>()
        manager.request(server.url("/json"))
            .responseData { results.append("\($0.value?.count ?? -1)") }
            .responseJSON { results.append((($0.value as? [String: Any])?["name"] as? String) ?? "none") }
            .responseDecodable(of: Sample.self) { results.append("\($0.value?.numbers ?? [])") }
        await results.wait(for: 3)
        #expect(results.elements == ["60", "curlew", "[1, 2, 3]"])
    }

    @Test("a property list arrives as one") func aPropertyListArrivesAsOne() async throws {
        let list = try PropertyListSerialization.data(fromPropertyList: ["name": "curlew"], format: .binary, options: 0)
        let names = Log<String?>()
        manager.upload(list, to: server.url("/body")).responsePropertyList { names.append(($0.value as? [String: String])?["name"]) }
        await names.wait(for: 1)
        #expect(names.elements == ["curlew"])
    }

    @Test("handlers run on the manager's queue, or on the given one") func handlersRunOnTheManagerSQueueOrOnTheGivenOne() async throws {
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

    @Test("the main queue is the default") func theMainQueueIsTheDefault() async throws {
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

    @Test("a handler attached after the end runs too") func aHandlerAttachedAfterTheEndRunsToo() async throws {
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

    @Test("a request that nobody listens to ends by itself") func aRequestThatNobodyListensToEndsByItself() async throws {
        let request = manager.request(server.url("/bytes/10"))
        #expect(await server.waitForRequests(1))
        let released = Log<Void>()
        request.delegate.queue.addOperation { released.append(()) }
        await released.wait(for: 1)
        #expect(request.response?.statusCode == 200)
    }

    @Test("a validation added after the request had ended still counts for the first handler")
    func aValidationAddedAfterTheRequestHadEndedStillCountsForTheFirstHandler() async throws {
        let request = manager.request(server.url("/status/404"))
        let released = Log<Void>()
        request.delegate.queue.addOperation { released.append(()) }
        await released.wait(for: 1)
        let response = await request.validate().serializingData().response
        #expect(response.error?.unacceptableStatus == 404)
    }

    @Test("handlers run although the request could not be made") func handlersRunAlthoughTheRequestCouldNotBeMade() async throws {
        let errors = Log<Bool>()
        manager.request("no url at all").validate().response { errors.append($0.error is CurlewError) }
            .responseData { errors.append($0.error is CurlewError) }
        manager.download("no url at all").responseURL { errors.append($0.error is CurlewError) }
        manager.upload(Data(), to: "no url at all").responseData { errors.append($0.error is CurlewError) }
        await errors.wait(for: 4)
        #expect(errors.elements == [true, true, true, true])
    }

    @Test("requests start when they are told to") func requestsStartWhenTheyAreToldTo() async throws {
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

    @Test("a suspended request goes on when it is resumed") func aSuspendedRequestGoesOnWhenItIsResumed() async throws {
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

    @Test("a body over the limit ends the request") func aBodyOverTheLimitEndsTheRequest() async throws {
        let manager = makeManager { $0.maximumBodySize = 100_000 }
        let response = await manager.request(server.url("/bytes/100000000")).serializingData().response
        #expect(response.error?.transferFailure?.kind == .tooLarge)
        let fitting = await manager.request(server.url("/bytes/100000")).serializingData().response
        #expect(fitting.value?.count == 100_000)
    }

    private struct Sample: Decodable, Sendable {
        let name: String
        let numbers: [Int]
    }
}
