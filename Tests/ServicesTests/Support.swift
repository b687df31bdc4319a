// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewServices
import CurlewTestSupport
import Dispatch
import Testing

/// One manager for all tests with requests.
let sharedManager = makeManager()

/// A manager on loopback, without a proxy, its callbacks on a queue of their own.
func makeManager() -> SessionManager {
    var configuration = SessionConfiguration()
    configuration.callbackQueue = DispatchQueue(label: "services.callbacks")
    configuration.proxy = .none
    return SessionManager(configuration: configuration)
}

/// A service on a loopback server.
struct TestService: HTTPService {
    var apiURL: any URLConvertible
    var usesSecureProtocol: Bool? = false
    var header: HTTPHeaders = [:]
    var makeAsyncHeader: @Sendable () async throws -> HTTPHeaders = { [:] }
    var asyncHeader: HTTPHeaders { get async throws { try await makeAsyncHeader() } }
    var sessionManager = sharedManager
    var retrierFactory: any ServiceRetrierFactory = NilServiceRetrier.factory()
    var hook: any ServiceHook = NilServiceHook()

    init(_ server: LoopbackServer) {
        apiURL = server.url("")
    }

    /// With a manager of its own: when that goes, no connection is left.
    init(_ server: WebSocketServer) {
        apiURL = server.url("")
        sessionManager = makeManager()
    }
}

/// A request with a text for its result, whose parts a test sets.
struct TestRequest: ServiceRequest {
    var method = HTTPMethod.get
    var routes: HTTPRoute = []
    var query: HTTPQuery = [:]
    var header: HTTPHeaders = [:]
    var body: any HTTPBody = HTTPData.Empty()
    var url: (any URLConvertible)?
    var timeout: Duration?
    var acceptedStatusCodes = 200...299
    var change: @Sendable (URLRequest) throws -> URLRequest = { $0 }
    var make: @Sendable (Data) throws -> String = { String(decoding: $0, as: UTF8.self) }

    func prepare(_ request: URLRequest) throws -> URLRequest { try change(request) }
    func decode(_ data: Data) throws -> String { try make(data) }
}

/// A retrier that does what a closure says, and counts how often it is asked.
struct TestRetrier: ServiceRetrier {
    var allowsMultipleRetries = false
    let body: @Sendable (ServiceError) async -> Bool

    func retry<Request: ServiceRequest>(_ request: Request, failingWith error: ServiceError) async -> Bool { await body(error) }

    /// A factory of retriers with one closure.
    static func factory(
        allowsMultipleRetries: Bool = false, _ body: @escaping @Sendable (ServiceError) async -> Bool
    ) -> any ServiceRetrierFactory {
        AnyServiceRetrierFactory { _ in TestRetrier(allowsMultipleRetries: allowsMultipleRetries, body: body) }
    }
}

/// An error of the user's.
struct UserError: Error, Equatable {}

/// A clock on which no time passes: it notes for how long it was to wait.
final class NotingClock: Clock {
    typealias Instant = ContinuousClock.Instant

    let waits = Lock<[Duration]>([])
    private let start = ContinuousClock.now

    var now: Instant { start }
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        waits.withLock { $0.append(deadline - start) }
        try Task.checkCancellation()
    }
}

extension Lock where State == Int {
    /// Counts, and gives the new number.
    func next() -> Int {
        withLock { number in
            number += 1
            return number
        }
    }

    var value: Int { withLock { $0 } }
}

/// Waits until something holds that others are about to bring about; `false` when it did not within half a minute.
func eventually(_ condition: () -> Bool) async -> Bool {
    let start = ContinuousClock.now
    while !condition() {
        guard start.duration(to: .now) < .seconds(30) else { return false }
        await Task.yield()
    }
    return true
}

/// The service error that something throws.
func serviceError<Value>(_ body: () async throws -> Value) async -> ServiceError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? ServiceError
    }
}

extension ServiceError {
    /// The case's name.
    var name: String {
        switch self {
        case .decodingFailed: "decodingFailed"
        case .timeout: "timeout"
        case .noConnection: "noConnection"
        case .invalidURL: "invalidURL"
        case .unknownHost: "unknownHost"
        case .invalidResponse: "invalidResponse"
        case .requestInProgress: "requestInProgress"
        case .requestFinished: "requestFinished"
        case .cancelled: "cancelled"
        // Of a case with values, reflection knows the name.
        default: Mirror(reflecting: self).children.first?.label ?? ""
        }
    }
}
