// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct RequestOptionsTests {
    private static let options = RequestOptions(
        deadline: .seconds(100), deadlineHeader: "X-Deadline", connectTimeout: .seconds(1), firstByteTimeout: .seconds(2),
        idleTimeout: .seconds(3), totalTimeout: .seconds(4), redirects: RedirectPolicy(), proxy: .url("http://proxy.example"),
        addresses: .publicOnly, maximumBodySize: 5, cachePolicy: .reloadIgnoringLocalCacheData, httpVersion: .http1, priority: 9,
        interceptor: Interceptor(), signer: SignedResponseTests.Signer(identity: "a"), name: "GET /", userInfo: ["tenant": "blue"],
        resolve: ["mock": ["127.0.0.1"]],
        isServerWide: true)

    @Test("the initializer sets every option") func initializer() {
        // Those of the layers above, and of pages and parts of a download from several places, are not among the initializer's.
        #expect(Self.unset(in: Self.options) == ["certificateURL", "ownership", "withholdsCredentials"])
    }

    @Test("options that are filled from others have all of them but the deadline, which counts from its own call") func filled() {
        let others = Self.options.withoutCredentials(of: "http://mock/")
        #expect(Self.unset(in: RequestOptions().filled(from: others)) == ["deadline", "ownership"])
    }

    private static func unset(in options: RequestOptions) -> Set<String> {
        let members = Mirror(reflecting: options).children.map { ($0.label ?? "", "\($0.value)") }
        return Set(members.filter { ["nil", "[:]", "false"].contains($0.1) }.map(\.0))
    }

    @Test("each option of transfers is the request's own; the session's others apply") func transfers() async {
        let mock = MockTransport.answering(200)
        let manager = SessionManager(mock: mock) { $0.maximumHeadSize = 1000 }
        var options = Self.options
        options.isServerWide = false
        for request in [manager.request("http://mock/", options: options), manager.request("http://mock/")] {
            _ = await request.serializingData().response
        }
        let (own, sessions) = (mock.started.all[0].request, mock.started.all[1].request)
        #expect(own.options.connectTimeout == .seconds(1) && own.options.firstByteTimeout == .seconds(2))
        #expect(own.options.idleTimeout == .seconds(3) && own.options.totalTimeout == .seconds(4))
        #expect(own.options.proxy == .url("http://proxy.example") && own.options.addresses == .publicOnly)
        #expect(own.options.httpVersion == .http1 && own.options.maximumHeadSize == 1000)
        #expect(own.cachePolicy == .reloadIgnoringLocalCacheData)
        #expect(own.headers["Priority"] == "u=7")
        #expect(own.headers["X-Deadline"].flatMap(Double.init).map { 50...100 ~= $0 } == true)
        #expect(sessions.options == manager.session.configuration.options && sessions.headers["Priority"] == nil)
    }

    @Test("the idle timeout takes precedence over timeoutInterval, which counts unless it is 60", arguments: [60, 7.5, 0])
    func timeoutInterval(_ seconds: Double) async throws {
        let mock = MockTransport.answering(200)
        let manager = SessionManager(mock: mock) { $0.idleTimeout = .seconds(20) }
        var request = URLRequest(url: try "http://mock/".asURL())
        request.timeoutInterval = seconds
        _ = await manager.request(request).serializingData().response
        _ = await manager.request(request, options: RequestOptions(idleTimeout: .seconds(60))).serializingData().response
        #expect(mock.started.all.map(\.request.options.idleTimeout) == [seconds == 7.5 ? .seconds(7.5) : .seconds(20), .seconds(60)])
    }

    @Test("the header fields of its redirect policy are redacted") func redaction() {
        var policy = RedirectPolicy()
        policy.sensitiveHeaders = ["X-Request-Options-Secret"]
        _ = RequestOptions(redirects: policy)
        #expect(!HTTPHeader(name: "X-Request-Options-Secret", value: "s3cret").description.contains("s3cret"))
    }
}
