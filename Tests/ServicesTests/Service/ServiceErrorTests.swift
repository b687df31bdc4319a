// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import Testing

@testable import CurlewServices

@Suite(.timeLimit(.minutes(1)))
struct ServiceErrorTests {
    private static func failure(_ kind: TransferFailure.Kind) -> CurlewError {
        .transferFailed(TransferFailure(kind: kind, url: "http://h/", phase: .waiting, message: "It failed"))
    }

    @Test(
        arguments: [
            (failure(.idleTimeout), "timeout"), (failure(.connectTimeout), "timeout"), (failure(.connect), "noConnection"),
            (failure(.connectionLost), "noConnection"), (failure(.nameResolution), "unknownHost"),
            (failure(.protocolViolation), "invalidResponse"), (failure(.serverCertificate), "unknown"),
            (CurlewError.invalidURL(url: "a b"), "invalidURL"), (CurlewError.urlRequestValidationFailed(reason: .missingURL), "invalidURL"),
            (CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: "a b")), "invalidRequest"),
            (CurlewError.parameterEncodingFailed(reason: .missingURL), "encodingFailed"),
            (CurlewError.redirectFailed(reason: .tooMany(limit: 1)), "invalidResponse"), (CurlewError.cancelled, "cancelled"),
            (CurlewError.sessionInvalidated, "unknown"), (CancellationError(), "cancelled"), (UserError(), "unknown"),
            (ServiceError.requestFinished, "requestFinished"),
        ] as [(any Error, String)])
    func otherErrorsAreConverted(_ error: any Error, _ expected: String) {
        #expect(ServiceError(error).name == expected)
    }

    @Test(arguments: [
        (WebSocketError.invalidRequest(reason: .unsupportedScheme("ftp")), "invalidURL"),
        (.invalidRequest(reason: .notAGet), "invalidRequest"), (.handshakeFailed(reason: .wrongAccept), "invalidResponse"),
        (.protocolViolation(code: .protocolError, message: ""), "closedStream"), (.messageTooLarge(message: ""), "closedStream"),
        (.closed(WebSocketClosure(code: .goingAway)), "closedStream"), (.timedOut(.pong), "timeout"),
        (.pingTooLarge(byteCount: 126), "invalidRequest"), (.encodingFailed(error: UserError()), "encodingFailed"),
        (.encodingFailed(error: ServiceError.decodingFailed), "decodingFailed"),
        (.decodingFailed(message: .text(""), error: UserError()), "unknown"),
    ])
    func webSocketErrorsAreConverted(_ error: WebSocketError, _ expected: String) {
        #expect(ServiceError(error as any Error).name == expected)
    }

    private enum APIError: Error, Equatable {
        case notFound
        case other
    }

    private struct MappingService: HTTPService {
        let apiURL: any URLConvertible
        var usesSecureProtocol: Bool? { false }
        var sessionManager: SessionManager { sharedManager }

        func mapError(_ error: ServiceError) -> APIError {
            if case .requestFailed(404, _, _) = error { .notFound } else { .other }
        }
    }

    @Test func serviceMapsErrorsToItsOwn() async throws {
        let server = try LoopbackServer { _, _ in .status(404) }
        defer { server.stop() }
        let service = MappingService(apiURL: server.url(""))
        await #expect(throws: APIError.notFound) { try await TestRequest().schedule(with: service).value }
        #expect(await TestRequest(routes: "..").schedule(with: service).result.isFailure(with: .other))
        await #expect(throws: APIError.notFound) {
            for try await _ in TestRequest().pages(from: service, by: .link()) {}
        }
    }

    @Test func refusedConnectionIsNoConnection() async throws {
        let server = try LoopbackServer { _, _ in .ok("") }
        let service = TestService(server)
        server.stop()
        #expect(await serviceError { try await TestRequest().schedule(with: service).value }?.name == "noConnection")
    }

    @Test func anErrorNamesItsRequest() async throws {
        let server = try LoopbackServer { _, _ in .ok("text") }
        var service = TestService(server)
        let url = server.url("/users?token=<hidden>")
        let undecodable = TestRequest(
            method: .put, routes: "users", query: ["token": "s3cret"], make: { _ in throw ServiceError.decodingFailed })
        let error = try #require(await serviceError { try await undecodable.schedule(with: service).value })
        #expect("\(error)" == "PUT \(url) (attempt 1): the response or message could not be decoded")
        #expect(error.request?.method == .put && error.request?.url == url)
        server.stop()
        // Attempts of the session's retrier and of the service's are counted together.
        service.retrierFactory = TestRetrier.factory { _ in true }
        service.sessionManager = makeManager()
        service.sessionManager.retrier = Retrier { _, request, _, completion in completion(request.retryCount == 0, 0) }
        let unreachable = TestRequest(routes: "users", query: ["token": "s3cret"])
        let last = try #require(await serviceError { try await unreachable.schedule(with: service).value })
        #expect("\(last)" == "GET \(url) (attempt 4): the connection to the host could not be established, or was lost")
        let timeout = ServiceError(Self.failure(.idleTimeout).describing(FailedRequest(method: .get, url: "http://h/", attempt: 2)))
        #expect("\(timeout)" == "GET http://h/ (attempt 2): the request timed out")
        #expect(timeout.errorDescription == "\(timeout)")
    }

    @Test func anErrorOfNoRequestIsASentence() {
        #expect("\(ServiceError.timeout)" == "The request timed out." && ServiceError.timeout.request == nil)
        #expect("\(ServiceError.requestFailed(statusCode: 503, response: Data()))".hasPrefix("Status 503 is not accepted"))
    }
}

extension Result where Failure: Equatable {
    fileprivate func isFailure(with expected: Failure) -> Bool {
        if case .failure(let error) = self { error == expected } else { false }
    }
}
