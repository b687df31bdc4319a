// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewServices
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

// A1.2: the error of an API that services decode.
@Suite(.timeLimit(.minutes(1))) struct ServiceErrorBodyTests {
    private struct Problem: Decodable, Equatable {
        let userMessage: String
    }

    /// A service whose requests fail with the API's error.
    private struct API: HTTPService {
        enum Failure: Error, Equatable {
            case refused(String, status: Int?)
            case other
        }

        let apiURL: any URLConvertible
        var usesSecureProtocol: Bool? { false }
        var sessionManager = sharedManager
        var retrierFactory: any ServiceRetrierFactory = NilServiceRetrier.factory()
        var errorBodyType: (any (Decodable & Sendable).Type)? { Problem.self }

        func mapError(_ error: ServiceError) -> Failure {
            guard let problem = error.decodedBody(as: Problem.self) else { return .other }
            return .refused(problem.userMessage, status: error.request?.statusCode)
        }
    }

    private static func server() throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            let type = ServerField("X-Request-Id", "7")
            switch request.path {
            case "/error": return ServerResponse(status: 409, headers: [type], body: .data(Data(#"{"user_message": "taken"}"#.utf8)))
            case "/plain": return ServerResponse(status: 500, headers: [type], body: .data(Data("oops".utf8)))
            default: return .ok("fine")
            }
        }
    }

    @Test func `a service maps the decoded error to its own, for await and closures`() async throws {
        let server = try Self.server()
        let api = API(apiURL: server.url(""))
        for (path, expected) in [("error", API.Failure.refused("taken", status: 409)), ("plain", .other)] {
            let response = TestRequest(routes: [path]).schedule(with: api)
            #expect(await response.result == .failure(expected))
            let results = Log<Result<String, API.Failure>>()
            let subscription = TestRequest(routes: [path]).schedule(with: api).sink(on: .global()) { results.append($0) }
            await results.wait(for: 1)
            #expect(results.elements == [.failure(expected)])
            withExtendedLifetime(subscription) {}
        }
        #expect(await TestRequest().schedule(with: api).result == .success("fine"))
    }

    @Test func `a retrier of the service and one of the session see it`() async throws {
        let server = try Self.server()
        let messages = Log<String?>()
        let manager = makeManager()
        manager.retrier = SessionRetrier { messages.append($0.asCurlewError?.decodedBody(as: Problem.self)?.userMessage) }
        var api = API(apiURL: server.url(""), sessionManager: manager)
        api.retrierFactory = TestRetrier.factory { error in
            messages.append(error.decodedBody(as: Problem.self)?.userMessage)
            return false
        }
        #expect(await TestRequest(routes: ["error"]).schedule(with: api).result == .failure(.refused("taken", status: 409)))
        #expect(messages.elements == ["taken", "taken"])
    }

    @Test func `the error has status, fields, the whole body and the request; a service without a type decodes nothing`() async throws {
        let server = try Self.server()
        let api = AnyHTTPService(at: server.url(""), usesSecureProtocol: false, errorBodyType: Problem.self)
        for (service, problem) in [
            (api, Problem(userMessage: "taken")), (AnyHTTPService(at: server.url(""), usesSecureProtocol: nil), nil),
        ] {
            guard case .failure(let error) = await TestRequest(routes: ["error"]).schedule(with: service).result else {
                throw TestError("no error")
            }
            #expect(error.decodedBody(as: Problem.self) == problem)
            guard case .requestFailed(409, let body, let request?) = error else { throw error }
            #expect(body == Data(#"{"user_message": "taken"}"#.utf8))
            #expect(request.headers.value(for: "X-Request-Id") == "7" && request.url == server.url("/error"))
            #expect(!"\(error)".contains("taken"))
        }
    }
}

private struct SessionRetrier: RequestRetrier {
    let notice: @Sendable (any Error) -> Void

    func should(_ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion) {
        notice(error)
        completion(false, 0)
    }
}
