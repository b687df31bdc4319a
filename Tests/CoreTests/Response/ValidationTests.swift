// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct ValidationTests {
    @Test(
        "media types match case-insensitively, without parameters",
        arguments: [
            ("text/html", "text/html", true), ("text/*", "text/html; charset=utf-8", true), ("*/html", "text/html", true),
            ("*/*", "anything/at-all", true), ("text/html; q=0.5", "TEXT/HTML", true), (" text / html ", "text/html", true),
            ("text/html", "text/plain", false), ("image/*", "text/html", false), ("*/html", "text/plain", false),
            ("text", "text/html", false),
            ("application/json", "application/problem+json", false),
        ])
    func mediaTypes(_ range: String, _ type: String, _ isAccepted: Bool) {
        #expect((MediaType.failure(of: type, among: [range]) == nil) == isAccepted)
    }

    @Test("a missing or invalid content type passes only with */*", arguments: [nil, "", "nonsense"])
    func missingType(_ type: String?) {
        #expect(MediaType.failure(of: type, among: ["text/html"]) == .missingContentType(acceptableContentTypes: ["text/html"]))
        #expect(MediaType.failure(of: type, among: ["text/html", "*/*"]) == nil)
    }

    @Test("an empty list accepts no content type")
    func noTypes() {
        let failure = MediaType.failure(of: "text/html; a=b", among: [])
        #expect(failure == .unacceptableContentType(acceptableContentTypes: [], responseContentType: "text/html"))
    }

    private static func error(
        _ status: Int = 200, _ headers: HTTPHeaders = [:], _ body: String = "", request headersSent: HTTPHeaders = [:],
        session: HTTPHeaders = [:], _ validate: (DataRequest) -> Void
    ) async -> (any Error)? {
        let manager = SessionManager(mock: .answering(status, headers, body)) { $0.headers = session }
        let request = manager.request("http://mock/", headers: headersSent)
        validate(request)
        return await request.serializingData().response.error
    }

    @Test(
        "statuses are accepted by ranges, sets and lists", arguments: [(200, true), (204, true), (299, true), (300, false), (199, false)])
    func statuses(_ status: Int, _ isAccepted: Bool) async {
        #expect((await Self.error(status) { $0.validate(statusCode: 200..<300) } == nil) == isAccepted)
        #expect((await Self.error(status) { $0.validate(statusCode: 200...299) } == nil) == isAccepted)
        #expect((await Self.error(status) { $0.validate(statusCode: Set(200..<300)) } == nil) == isAccepted)
        #expect((await Self.error(status) { $0.validate(statusCode: [200, 204, 299]) } == nil) == isAccepted)
        #expect((await Self.error(status) { $0.validate() } == nil) == isAccepted)
    }

    @Test("an empty body passes every content type")
    func emptyBody() async {
        #expect(await Self.error { $0.validate(contentType: ["text/html"]) } == nil)
        #expect(await Self.error(200, [:], "x") { $0.validate(contentType: ["text/html"]) } != nil)
    }

    @Test("validate() checks the content type against the request's Accept")
    func accept() async {
        let type: HTTPHeaders = ["Content-Type": "text/plain"]
        #expect(await Self.error(200, type, "x") { $0.validate() } == nil)
        #expect(await Self.error(200, type, "x", request: ["Accept": "application/json, text/*;q=0.5"]) { $0.validate() } == nil)
        #expect(await Self.error(200, type, "x", request: ["Accept": "application/json"]) { $0.validate() } != nil)
        #expect(await Self.error(200, type, "x", session: ["Accept": "application/json"]) { $0.validate() } != nil)
    }

    @Test("the first failure counts, and later validations are not called")
    func firstFailure() async {
        let asked = Inbox<Int>()
        let error = await Self.error(500) { request in
            request.validate { _, response, data in
                asked.put(response.statusCode)
                return data == Data() ? .success : .failure(UserError(number: 1))
            }.validate { _, _, _ in .failure(UserError(number: 2)) }.validate().validate { _, _, _ in
                asked.put(0)
                return .success
            }
        }
        #expect(error as? UserError == UserError(number: 2))
        #expect(asked.all == [500])
    }

    @Test("a failed transfer is not validated")
    func failedTransfer() async {
        let manager = SessionManager(mock: MockTransport { _ in [.head(500), .complete(CurlewError.failure(.connectionLost))] })
        let request = manager.request("http://mock/").validate { _, _, _ in .failure(UserError()) }
        #expect(kindOf(await request.validate().serializingData().response.error) == .connectionLost)
    }
}
