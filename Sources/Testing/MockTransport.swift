// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewLoopback
import CurlewTransport
import Dispatch

/// A transport that responds from memory: no socket, no thread, no time.
///
/// ```swift
/// let mock = MockTransport()
/// mock.stub(.get, "/users/{id}", respond: .status(503), .json(user))
/// mock.stub(.post, "/users") { request in .json(try request.decode(User.self), status: 201) }
/// let manager = SessionManager(mock: mock, interceptor: RetryPolicy())
/// …
/// #expect(mock.requests.map(\.path) == ["/users/7", "/users/7"])
/// ```
///
/// Everything above the transport is the library's own: encoding, adapters, redirects, cookies, credentials, the cache, validation, retries,
/// files, resumption. The kinds of requests that use it are data, download, upload, stream and event-stream requests; raw streams and
/// WebSockets, which are bytes over a connection, take ``onStream(_:_:)``. There is no HTTP on a wire: framing, connections, TLS, proxies,
/// HTTP/2, content codings (bodies are delivered as they are given) and timeouts of transfers are not simulated. For those use
/// `LoopbackServer`.
///
/// Of the responses enqueued by ``enqueue(_:)`` each is used once, before any stub. Otherwise the stub decides that was added last among
/// those that match. A request that none matches fails with ``UnmatchedRequest``.
///
/// Thread-safe. One transport may serve several managers until one of them ends, which ends it as well.
public final class MockTransport: Transport {
    let stubs: StubTable
    let engine: ScriptedTransport
    /// The clock of its delays; `nil` for the system's.
    public let clock: VirtualClock?
    private let partition = Lock<String?>("mock")
    /// What keeps its responses apart from those of the network in caches and files that sessions share; `mock` by default. With `nil`, set
    /// before the session is created, they may answer requests of other sessions with the same cache.
    public var cachePartition: String? {
        get { partition.withLock { $0 } }
        set { partition.withLock { $0 = newValue } }
    }

    /// Creates a transport without stubs.
    ///
    /// - Parameter clock: the clock on which responses are delayed; with `nil`, the default, delays take real time. `SessionManager` gets it
    ///   by `init(mock:…)`.
    public init(clock: VirtualClock? = nil) {
        let stubs = StubTable()
        self.stubs = stubs
        self.clock = clock
        engine = ScriptedTransport(keepsExchanges: false, clock: clock) { _ in
            [.sendBody, .ask { stubs.respond(to: $0) }]
        } serve: {
            stubs.serve($0)
        }
    }

    /// Creates a transport that gives these responses to all requests, one after the other, and repeats the last one.
    public convenience init(_ first: MockResponse, _ more: MockResponse..., clock: VirtualClock? = nil) {
        self.init(clock: clock)
        stubs.add(MockStub(RequestPattern(), .sequence([first] + more)))
    }

    // MARK: Stubs

    /// Adds a stub with responses that are given one after the other, of which the last one repeats.
    ///
    /// - Parameters:
    ///   - method: the method; `nil`, the default, for any.
    ///   - url: the URL; any by default.
    ///   - headers: header fields that the request must have; of repeated fields all.
    ///   - body: what the body must be; any by default.
    ///   - first: the first response.
    ///   - more: the following ones.
    /// - Returns: the stub, which counts its requests and can be removed.
    @discardableResult
    public func stub(
        _ method: HTTPMethod? = nil, _ url: URLPattern = .any, headers: HTTPHeaders = [:], body: BodyPattern = .any,
        respond first: MockResponse, _ more: MockResponse...
    ) -> MockStub {
        stubs.add(MockStub(RequestPattern(method, url, headers, body), .sequence([first] + more)))
    }

    /// Adds a stub with a closure that responds.
    ///
    /// - Parameters:
    ///   - method: the method; `nil`, the default, for any.
    ///   - url: the URL; any by default.
    ///   - headers: header fields that the request must have; of repeated fields all.
    ///   - body: what the body must be; any by default.
    ///   - respond: returns the response, in a task of its own; may suspend. What it throws is the error of the transfer, unchanged.
    /// - Returns: the stub, which counts its requests and can be removed.
    @discardableResult
    public func stub(
        _ method: HTTPMethod? = nil, _ url: URLPattern = .any, headers: HTTPHeaders = [:], body: BodyPattern = .any,
        respond: @escaping @Sendable (MockRequest) async throws -> MockResponse
    ) -> MockStub {
        stubs.add(MockStub(RequestPattern(method, url, headers, body), .closure(respond)))
    }

    /// Adds a stub for any method; see ``stub(_:_:headers:body:respond:_:)``.
    @discardableResult
    public func stub(
        _ url: URLPattern, headers: HTTPHeaders = [:], body: BodyPattern = .any, respond first: MockResponse, _ more: MockResponse...
    ) -> MockStub {
        stubs.add(MockStub(RequestPattern(nil, url, headers, body), .sequence([first] + more)))
    }

    /// Adds a stub for any method, with a closure that responds; see ``stub(_:_:headers:body:respond:)``.
    @discardableResult
    public func stub(
        _ url: URLPattern, headers: HTTPHeaders = [:], body: BodyPattern = .any,
        respond: @escaping @Sendable (MockRequest) async throws -> MockResponse
    ) -> MockStub {
        stubs.add(MockStub(RequestPattern(nil, url, headers, body), .closure(respond)))
    }

    /// Adds responses for the next requests of any kind: each is used once, in order, before any stub.
    public func enqueue(_ responses: MockResponse...) {
        stubs.enqueue(responses)
    }

    /// Removes a stub. Does nothing for one that was removed.
    public func remove(_ stub: MockStub) {
        stubs.remove(stub)
    }

    /// Removes all stubs and enqueued responses; the recorded requests are kept.
    public func removeAllStubs() {
        stubs.removeAll()
    }

    // MARK: Requests

    /// The requests so far, each attempt, redirect and authenticated retry of its own, in the order in which their bodies were received.
    public var requests: [MockRequest] { stubs.requests.all }

    /// The requests so far that match.
    public func requests(_ method: HTTPMethod? = nil, _ url: URLPattern = .any) -> [MockRequest] {
        let pattern = RequestPattern(method, url)
        return requests.filter { pattern.parameters(of: $0) != nil }
    }

    /// The requests that no stub has matched.
    public var unmatchedRequests: [MockRequest] { requests.filter { !$0.isMatched } }

    /// Waits until there are that many requests, and returns them.
    ///
    /// - Parameters:
    ///   - count: the number of requests to wait for, those before the call included.
    ///   - timeout: the longest wait, in real time.
    /// - Throws: ``MockWaitTimedOut`` after the timeout; `CancellationError` if the task is cancelled.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: Duration = .seconds(10)) async throws -> [MockRequest] {
        let start = ContinuousClock.now
        while stubs.requests.count < count {
            guard start.duration(to: .now) < timeout else {
                throw MockWaitTimedOut(expected: count, requests: requests)
            }
            try await Task.sleep(for: .milliseconds(1))
        }
        return requests
    }

    // MARK: Transport

    /// Makes a transfer, which receives the request's body and responds as the stubs say; see ``Transport/makeTransfer(_:id:observer:)``.
    public func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        engine.makeTransfer(request, id: id, observer: observer)
    }

    /// Makes a raw stream, which the closure of ``onStream(_:_:)`` serves; without one it fails with ``UnmatchedRequest``. See
    /// ``Transport/makeStream(_:id:observer:)``.
    public func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        engine.makeStream(request, id: id, observer: observer)
    }

    /// Ends all exchanges and streams with `CurlewError.sessionInvalidated`, and refuses new ones.
    public func shutDown() { engine.shutDown() }

    /// Returns when all exchanges and streams have ended after ``shutDown()``.
    public func waitUntilShutDown() async { await engine.waitUntilShutDown() }
}

/// The requests for which a test has waited were not received in time.
public struct MockWaitTimedOut: LocalizedError, Sendable, CustomStringConvertible {
    /// The number of requests that were expected.
    public let expected: Int
    /// The requests that were received.
    public let requests: [MockRequest]

    /// Both numbers, and the requests, redacted.
    public var description: String {
        let list = requests.map { "\n  \($0)" }.joined()
        return "\(expected) requests were expected, \(requests.count) have come\(requests.isEmpty ? "" : ":")\(list)"
    }

    /// The same text.
    public var errorDescription: String? { description }
}
