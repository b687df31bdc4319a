// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewServices
import CurlewTestSupport
import CurlewTesting
import Testing

/// Compiles and runs the code of the guide "Requests as values".
@Suite(.timeLimit(.minutes(1)))
struct ValuesGuideTests {
    // snippet: request
    struct Bird: Codable, Sendable, Equatable {
        let id: Int
        let commonName: String
    }

    struct BirdRequest: JSONServiceRequest {
        typealias Result = Bird
        let id: Int
        var routes: HTTPRoute { ["birds", id] }
    }

    struct BirdsRequest: JSONServiceRequest {
        typealias Result = [Bird]
        var family: String?
        var routes: HTTPRoute { "birds" }
        var query: HTTPQuery {
            if let family { ("family", family) }
            ("limit", 50)
        }
    }

    struct AddBirdRequest: JSONServiceRequest {
        typealias Result = Bird
        let bird: Bird
        let key: UUID
        var method: HTTPMethod { .post }
        var routes: HTTPRoute { "birds" }
        var header: HTTPHeaders { ["Idempotency-Key": key.uuidString] }
        var body: any HTTPBody { HTTPData.JSON(bird) }
        var acceptedStatusCodes: ClosedRange<Int> { 201...201 }
    }
    // end

    // snippet: service
    struct BirdAPI: HTTPService {
        let sessionManager: SessionManager
        let token: @Sendable () async throws -> String

        var apiURL: any URLConvertible { "api.example.org/v1" }
        var header: HTTPHeaders { ["Accept-Language": "en"] }
        var asyncHeader: HTTPHeaders {
            get async throws { [.authorization(bearerToken: try await token())] }
        }
        var requestOptions: RequestOptions? { RequestOptions(deadline: .seconds(10)) }
        var retrierFactory: any ServiceRetrierFactory { BackoffServiceRetrier.factory(strategy: .jittered()) }
    }
    // end

    // snippet: use
    func commonName(of id: Int, from api: BirdAPI) async throws(ServiceError) -> String? {
        do {
            return try await BirdRequest(id: id).schedule(with: api).value.commonName
        } catch .requestFailed(statusCode: 404, _, _) {
            return nil
        }
    }
    // end

    // snippet: pages
    func allNames(from api: BirdAPI) async throws -> [String] {
        var names: [String] = []
        for try await bird in BirdsRequest().pages(from: api, by: .link()).elements() {
            names.append(bird.commonName)
        }
        return names
    }
    // end

    // snippet: own error
    enum BirdError: Error {
        case unknownBird
        case unavailable(ServiceError)
    }

    struct PickyBirdAPI: HTTPService {
        var apiURL: any URLConvertible { "api.example.org/v1" }
        func mapError(_ error: ServiceError) -> BirdError {
            if case .requestFailed(statusCode: 404, _, _) = error { return .unknownBird }
            return .unavailable(error)
        }
    }
    // end

    @Test func guideContainsThisCode() throws {
        let file = URL(fileURLWithPath: #filePath)
        let page = file.deletingLastPathComponent().appendingPathComponent("../../Sources/Services/CurlewServices.docc/RequestsAsValues.md")
        #expect(try DocumentedCode.differences(page: page, sources: file) == [])
    }

    // snippet: test
    @Test func birdIsRequestedWithTheToken() async throws {
        let mock = MockTransport()
        mock.stub(.get, "/v1/birds/{id}", respond: .text(#"{"id": 7, "common_name": "Curlew"}"#))
        let api = BirdAPI(sessionManager: SessionManager(mock: mock), token: { "secret" })
        #expect(try await commonName(of: 7, from: api) == "Curlew")
        #expect(mock.requests.map { $0.headers["Authorization"] } == ["Bearer secret"])
    }
    // end

    @Test func missingBirdIsNoError() async throws {
        let mock = MockTransport()
        mock.stub(respond: .status(404), .status(403))
        let api = Self.api(on: mock)
        #expect(try await commonName(of: 7, from: api) == nil)
        await #expect { try await commonName(of: 7, from: api) } throws: { error in
            if case ServiceError.requestFailed(statusCode: 403, _, _) = error { true } else { false }
        }
    }

    @Test func pagesFollowTheirLinks() async throws {
        let mock = MockTransport()
        mock.stub(.get, "/v1/birds") { request in
            let next = request.url.contains("after=1") ? "" : #"<https://api.example.org/v1/birds?after=1>; rel="next""#
            return .text(#"[{"id": 1, "common_name": "Bird \#(next.isEmpty ? 2 : 1)"}]"#).header("Link", next)
        }
        #expect(try await allNames(from: Self.api(on: mock)) == ["Bird 1", "Bird 2"])
    }

    @Test("a request with a key is repeated, with the same key") func addingIsRepeated() async throws {
        let clock = VirtualClock(.automatic)
        let mock = MockTransport(clock: clock)
        let bird = Bird(id: 7, commonName: "Curlew")
        let added = MockResponse.text(#"{"id": 7, "common_name": "Curlew"}"#, status: 201)
        mock.stub(.post, "/v1/birds", respond: .status(503).header("Retry-After", "0"), added)
        let key = UUID()
        #expect(try await AddBirdRequest(bird: bird, key: key).schedule(with: Self.api(on: mock)).value == bird)
        #expect(mock.requests.map { $0.headers["Idempotency-Key"] } == [key.uuidString, key.uuidString])
        #expect(mock.requests.map { String(decoding: $0.body, as: UTF8.self) }.allSatisfy { $0.contains("common_name") })
    }

    @Test func errorsAreTheServicesOwn() {
        let api = PickyBirdAPI()
        guard case .unknownBird = api.mapError(.requestFailed(statusCode: 404, response: Data())) else {
            Issue.record("404 is an unknown bird")
            return
        }
        guard case .unavailable(.timeout) = api.mapError(.timeout) else {
            Issue.record("a timeout is not")
            return
        }
    }

    private static func api(on mock: MockTransport) -> BirdAPI {
        BirdAPI(sessionManager: SessionManager(mock: mock), token: { "secret" })
    }
}
