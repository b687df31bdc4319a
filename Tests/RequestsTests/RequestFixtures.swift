// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRequests

/// A server with routes, and an agent with its own callback queue that sends requests to it.
final class Stage: Sendable {
    private static let key = DispatchSpecificKey<String>()

    let server: LoopbackServer
    let agent: RequestAgent
    let delays: Delays
    var configuration: RequestsConfiguration { agent.configuration }

    init(_ route: @escaping LoopbackServer.Route) throws {
        server = try LoopbackServer(route: route)
        let configuration = RequestsConfiguration()
        configuration.baseUrl = server.url("/")
        let queue = DispatchQueue(label: "callbacks")
        queue.setSpecific(key: Self.key, value: "callback")
        configuration.callbackQueue = queue
        let delays = Delays()
        self.delays = delays
        agent = RequestAgent(configuration: configuration, manager: nil, clock: delays.clock)
        agent.processingQueue.setSpecific(key: Self.key, value: "agent")
    }

    deinit { server.stop() }

    /// The name of the queue on which the caller runs.
    static var queue: String { DispatchQueue.getSpecific(key: key) ?? "caller" }

    /// Waits until the callback queue has run the work enqueued so far.
    func settle() async {
        await withTrackedContinuation { continuation in
            configuration.callbackQueue.async { continuation.resume() }
        }
    }

    /// Responds by path: `/json`, `/status/N`, `/text`, `/echo`; `/flaky/N` with N times 500 first; 404 for anything else.
    static func standard() throws -> Stage {
        let failures = Lock([String: Int]())
        return try Stage { request, _ in
            let parts = request.path.split(separator: "/")
            switch parts.first {
            case "json": return json(#"{"id": 1, "name": "a"}"#)
            case "text": return .ok("text")
            case "status": return json(#"{"code": 7}"#, status: Int(parts.last ?? "") ?? 500)
            case "echo": return .ok(request.body, type: "application/json")
            case "flaky":
                let count = failures.withLock { failures in
                    failures[request.path, default: 0] += 1
                    return failures[request.path] ?? 0
                }
                return count <= Int(parts.last ?? "") ?? 0 ? .status(500) : json("{}")
            default: return .status(404)
            }
        }
    }

    static func json(_ text: String, status: Int = 200) -> ServerResponse {
        var response = ServerResponse.ok(text, type: "application/json")
        response.status = status
        return response
    }
}

/// A clock whose delays pass at once and alone advance its time.
final class Delays: Sendable {
    private let passed = Lock<[TimeInterval]>([])
    private let start = ContinuousClock.now

    var all: [TimeInterval] { passed.withLock { $0 } }

    var clock: RequestClock {
        RequestClock(
            now: { self.start + .seconds(self.all.reduce(0, +)) },
            schedule: { delay, queue, work in
                self.passed.withLock { $0.append(delay) }
                queue.async(execute: work)
            })
    }
}

/// Records events in order, each with its queue.
final class Log: Sendable {
    private let events = Lock<[String]>([])

    var all: [String] { events.withLock { $0 } }

    func note(_ event: String) {
        let line = "\(event) @\(Stage.queue)"
        events.withLock { $0.append(line) }
    }
}

/// A request configured by the test.
final class SampleRequest: BaseRequest, @unchecked Sendable {  // its properties are set before it is started
    var path = "json"
    var method = HTTPMethod.get
    var argument: Any?
    var serializer = RequestSerializerType.http
    var responseSerializer = ResponseSerializerType.json
    var shape: Any?
    var headers: [String: String]?
    var credentials: [String]?
    var contentTypes: [String]??
    var base = ""
    var cdn = ""
    var usesCDN = false
    var custom: URLRequest?
    var retries = 0
    var interval: TimeInterval = 0
    var window: TimeInterval = 0
    var onSend: (@Sendable (inout URLRequest) throws -> Void)?
    var onResponse: (@Sendable (BaseRequest) throws -> Void)?
    var onMock: (@Sendable (BaseRequest) -> Bool)?
    var onComplete: (@Sendable (BaseRequest) -> Void)?
    var mayRetry: (@Sendable (HTTPURLResponse?, Any?, (any Error)?) -> Bool)?
    var onRetry: (@Sendable (@escaping @Sendable (Bool) -> Void) -> Void)?

    init(_ stage: Stage, _ path: String = "json") {
        super.init()
        self.path = path
        agent = stage.agent
    }

    override func requestUrl() -> String { path }
    override func requestMethod() -> HTTPMethod { method }
    override func requestArgument() -> Any? { argument }
    override func requestSerializerType() -> RequestSerializerType { serializer }
    override func responseSerializerType() -> ResponseSerializerType { responseSerializer }
    override func jsonValidator() -> Any? { shape }
    override func requestHeaderFieldValueDictionary() -> [String: String]? { headers }
    override func requestAuthorizationHeaderFieldArray() -> [String]? { credentials }
    override func acceptableContentTypes() -> [String]? { contentTypes ?? super.acceptableContentTypes() }
    override func baseUrl() -> String { base }
    override func cdnUrl() -> String { cdn }
    override func useCDN() -> Bool { usesCDN }
    override func buildCustomUrlRequest() -> URLRequest? { custom }
    override func requestRetryCount() -> Int { retries }
    override func requestRetryInterval() -> TimeInterval { interval }
    override func requestRetryTimeout() -> TimeInterval { window }
    override func filterUrlRequest(_ urlRequest: inout URLRequest) throws { try onSend?(&urlRequest) }
    override func filterResponse() throws { try onResponse?(self) }
    override func responseMockProcessor() -> Bool { onMock?(self) ?? false }
    override func requestCompleteFilter() { onComplete?(self) }
    override func requestRetryValidator(_ response: HTTPURLResponse?, responseObject: Any?, error: (any Error)?) -> Bool {
        mayRetry?(response, responseObject, error) ?? super.requestRetryValidator(response, responseObject: responseObject, error: error)
    }
    override func requestRetryProcessor(
        _ response: HTTPURLResponse?, responseObject: Any?, error: (any Error)?, completionHandler: @escaping @Sendable (Bool) -> Void
    ) {
        guard let onRetry else { return completionHandler(true) }
        onRetry(completionHandler)
    }
}

/// Starts a request and awaits its end.
func run(_ request: BaseRequest) async -> RequestEnding {
    await withTrackedContinuation { continuation in
        request.start { continuation.resume(returning: $0) }
    }
}

/// An error thrown by the caller's code.
struct UserError: Error, Equatable {
    var number = 0
}
