// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

/// The queue of the tests' handlers: the main queue belongs to the test runner.
let callbackQueue = DispatchQueue(label: "end-to-end.callbacks")

/// A manager that delivers results on ``callbackQueue`` and uses no proxy.
func makeManager(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
    var configuration = SessionConfiguration()
    configuration.callbackQueue = callbackQueue
    configuration.proxy = .none
    change(&configuration)
    return SessionManager(configuration: configuration)
}

// MARK: - Environment

/// The servers started by `scripts/servers`, as named in its environment.
enum Servers {
    struct Nginx {
        /// Without TLS.
        let http: String
        /// TLS with HTTP/2 and HTTP/1.1.
        let tls: String
        /// TLS with HTTP/1.1 only.
        let tlsHTTP1: String
        /// The file of the authority that issued localhost's certificate.
        let authorities: String
    }

    /// Whether a missing server is a failure rather than a reason to skip the test.
    static let areRequired = variable("CURLEW_TEST_REQUIRED") == "1"

    static var hasNginx: Bool { areRequired || (try? nginx()) != nil }
    static var hasHttpbin: Bool { areRequired || (try? httpbin()) != nil }

    static func nginx() throws -> Nginx {
        try Nginx(
            http: #require(variable("CURLEW_TEST_NGINX_HTTP")), tls: #require(variable("CURLEW_TEST_NGINX_TLS")),
            tlsHTTP1: #require(variable("CURLEW_TEST_NGINX_TLS_H1")), authorities: #require(variable("CURLEW_TEST_CA")))
    }

    static func httpbin() throws -> String {
        try #require(variable("CURLEW_TEST_HTTPBIN"))
    }

    /// The proxies' addresses, as `host:port`.
    struct Proxies {
        let open: String
        /// Requires user "user" with password "passwd".
        let authenticated: String
        let secure: String
        let socks: String
        /// Requires the same user.
        let authenticatedSocks: String
    }

    static var hasProxies: Bool { areRequired || (try? proxies()) != nil }

    static func proxies() throws -> Proxies {
        try Proxies(
            open: #require(variable("CURLEW_TEST_PROXY")), authenticated: #require(variable("CURLEW_TEST_PROXY_AUTH")),
            secure: #require(variable("CURLEW_TEST_PROXY_TLS")), socks: #require(variable("CURLEW_TEST_SOCKS")),
            authenticatedSocks: #require(variable("CURLEW_TEST_SOCKS_AUTH")))
    }

    private static func variable(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name]
    }
}

extension Trait where Self == ConditionTrait {
    static var needsNginx: Self { .enabled(if: Servers.hasNginx, "needs the nginx of scripts/servers") }
    static var needsProxies: Self { .enabled(if: Servers.hasProxies, "needs the proxies of scripts/servers") }
    static var needsHttpbin: Self { .enabled(if: Servers.hasHttpbin, "needs the httpbin of scripts/servers") }
}

/// The scale of the stress tests. `CURLEW_TEST_SHORT=1` is for runs under a sanitizer, which are ten times slower, `CURLEW_TEST_LONG=1` for
/// runs of about an hour.
enum Scale {
    private static let isShort = ProcessInfo.processInfo.environment["CURLEW_TEST_SHORT"] == "1"
    static let isLong = ProcessInfo.processInfo.environment["CURLEW_TEST_LONG"] == "1"

    static let requests = isShort ? 1_000 : 10_000
    static let sessions = isShort ? 200 : 2_000
    static let largeFile: Int64 = isShort ? 64 << 20 : 1 << 30
    static let streamedBody: Int64 = isShort ? 64 << 20 : 256 << 20
    static let together = isShort ? 500 : isLong ? 10_000 : 5_000
    static let soak = isShort ? 2_000 : isLong ? 1_000_000 : 20_000
    static let cancels = isShort ? 200 : isLong ? 4_000 : 1_000
    static let pauses = isShort ? 24 : isLong ? 2_000 : 96
    /// Whether memory figures are meaningful: a sanitizer's shadow memory would be counted too.
    static let limitsMemory = !isShort
}

// MARK: - Recording events

/// A thread-safe list of recorded elements.
final class Log<Element: Sendable>: Sendable {
    private struct Waiter {
        let id: Int
        let count: Int
        let continuation: TrackedContinuation<Void>
    }

    private struct State {
        var elements: [Element] = []
        var waiters: [Waiter] = []
        var lastWaiter = 0
    }

    private let state = Lock(State())

    var elements: [Element] { state.withLock { $0.elements } }
    var count: Int { state.withLock { $0.elements.count } }

    func append(_ element: Element) {
        let ready = state.withLock { state -> [Waiter] in
            state.elements.append(element)
            let ready = state.waiters.filter { $0.count <= state.elements.count }
            state.waiters.removeAll { $0.count <= state.elements.count }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// Waits until there are `count` elements, or the test's time limit is reached.
    func wait(for count: Int) async {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withTrackedContinuation { continuation in
                let isReady = state.withLock { state in
                    guard state.elements.count < count, !Task.isCancelled else { return true }
                    state.waiters.append(Waiter(id: id, count: count, continuation: continuation))
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume()
        }
    }
}

extension Error {
    /// The transfer failure, if the error is one.
    var transferFailure: TransferFailure? {
        if case .transferFailed(let failure) = self as? CurlewError { failure } else { nil }
    }

    var redirectFailure: CurlewError.RedirectFailureReason? {
        if case .redirectFailed(let reason) = self as? CurlewError { reason } else { nil }
    }

    var validationFailure: CurlewError.ResponseValidationFailureReason? {
        if case .responseValidationFailed(let reason) = self as? CurlewError { reason } else { nil }
    }

    var unacceptableStatus: Int? {
        if case .unacceptableStatusCode(let code) = validationFailure { code } else { nil }
    }

    var invalidHeader: String? {
        if case .urlRequestValidationFailed(.invalidHeader(let name)) = self as? CurlewError { name } else { nil }
    }

    var isCancelled: Bool {
        if case .cancelled = self as? CurlewError { true } else { false }
    }

    var isSessionInvalidated: Bool {
        if case .sessionInvalidated = self as? CurlewError { true } else { false }
    }
}

/// An error thrown by the tests themselves.
struct TestError: Error, Equatable {
    let name: String

    init(_ name: String) {
        self.name = name
    }
}

/// An adapter made from a closure.
struct Adapter: RequestAdapter {
    let change: @Sendable (inout URLRequest) throws -> Void

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        var request = urlRequest
        try change(&request)
        return request
    }
}

/// A retrier made from a closure.
struct Retrier: RequestRetrier {
    let decide: @Sendable (Request, any Error, RequestRetryCompletion) -> Void

    func should(_ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion) {
        decide(request, error, completion)
    }

    /// Retries up to `count` times, each time after a delay.
    static func attempts(_ count: UInt, delay: TimeInterval = 0) -> Retrier {
        Retrier { request, _, completion in completion(request.retryCount < count, delay) }
    }
}

/// Returns the names in a directory, including hidden ones.
func contents(of directory: TemporaryDirectory) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory.url.path).sorted()
}

extension SessionManager {
    /// Returns what `/echo` reports about a request, and the request's response.
    func echo(
        _ url: String, method: HTTPMethod = .get, parameters: Parameters? = nil, encoding: any ParameterEncoding = URLEncoding.default,
        headers: HTTPHeaders? = nil
    ) async throws -> EchoReply {
        try await request(url, method: method, parameters: parameters, encoding: encoding, headers: headers)
            .validate().serializingDecodable(EchoReply.self).value
    }
}
