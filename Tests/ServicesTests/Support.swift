// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewServices
import CurlewSessionTestSupport
import CurlewTestSupport
import Dispatch
import Testing

/// One manager shared by all tests that send requests.
let sharedManager = makeManager()

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

    /// With its own manager: when that is released, no connection remains.
    init(_ server: WebSocketServer) {
        apiURL = server.url("")
        sessionManager = makeManager()
    }
}

/// A request with a text result, whose parts the test sets.
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

/// A retrier whose decisions a closure makes.
struct TestRetrier: ServiceRetrier {
    var allowsMultipleRetries = false
    let body: @Sendable (ServiceError) async -> Bool

    func retry<Request: ServiceRequest>(_ request: Request, failingWith error: ServiceError) async -> Bool { await body(error) }

    /// Returns a factory of retriers that share one closure.
    static func factory(
        allowsMultipleRetries: Bool = false, _ body: @escaping @Sendable (ServiceError) async -> Bool
    ) -> any ServiceRetrierFactory {
        AnyServiceRetrierFactory { _ in TestRetrier(allowsMultipleRetries: allowsMultipleRetries, body: body) }
    }
}

/// An error thrown by the user's code.
struct UserError: Error, Equatable {}

extension Lock where State == Int {
    /// Increments the count and returns it.
    func next() -> Int {
        withLock { number in
            number += 1
            return number
        }
    }

    var value: Int { withLock { $0 } }
}

/// Returns the service error that the closure throws.
func serviceError<Value>(_ body: () async throws -> Value) async -> ServiceError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? ServiceError
    }
}

extension ServiceError {
    /// The name of the case.
    var name: String {
        switch self {
        case .requestInProgress: "requestInProgress"
        case .requestFinished: "requestFinished"
        default: caseName ?? ""
        }
    }
}
