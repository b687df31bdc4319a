// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewURLLoading
import Testing

@Suite(.timeLimit(.minutes(2))) struct CookieTests {
    private let server: LoopbackServer
    private let storage: HTTPCookieStorage
    private let manager: SessionManager

    init() throws {
        let storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        self.storage = storage
        // Sets the cookies in the query, with the status in the path.
        server = try LoopbackServer { request, _ in
            if request.path == "/show" { return .ok(request.headers(named: "Cookie").joined(separator: "|")) }
            var headers = request.query("to").map { [ServerField("Location", $0)] } ?? []
            headers += request.query.filter { $0.name == "set" }.map { ServerField("Set-Cookie", $0.value) }
            return .status(Int(request.path.dropFirst()) ?? 200, headers: headers)
        }
        manager = makeManager { $0.cookieStorage = storage }
    }

    private func shown(_ path: String = "/show", host: String = "127.0.0.1", headers: HTTPHeaders? = nil) async -> String? {
        await manager.request("http://\(host):\(server.port)\(path)", headers: headers).serializingString().response.value
    }

    private func set(_ cookies: String, status: Int = 200) async {
        _ = await manager.request(server.url("/\(status)?set=\(cookies)")).serializingData().response
    }

    @Test("a cookie is sent back to its host until it is removed") func roundTrip() async {
        await set("a=1;+Path=/&set=b=2;+Path=/")
        #expect(await shown() == "a=1; b=2")
        await set("a=;+Path=/;+Max-Age=0")
        #expect(await shown() == "b=2")
        #expect(storage.cookies?.map(\.name) == ["b"])
    }

    @Test("any response may set a cookie", arguments: [200, 204, 401, 404, 500])
    func statuses(_ status: Int) async {
        await set("a=1;+Path=/", status: status)
        #expect(await shown() == "a=1")
    }

    @Test("a redirect's cookie is sent with the follow-up request", arguments: [301, 302, 303, 307, 308])
    func redirect(_ status: Int) async {
        #expect(await shown("/\(status)?to=/show&set=a=1;+Path=/") == "a=1")
    }

    @Test("each follow-up request gets its host's cookies, and the caller's own stay at their origin") func followUps() async throws {
        await set("a=1;+Path=/")
        let other = try LoopbackServer { request, _ in .ok(request.headers(named: "Cookie").joined(separator: "|")) }
        let elsewhere = "http://localhost:\(other.port)/show"
        let headers: HTTPHeaders = ["Cookie": "mine=1"]
        #expect(await shown("/302?to=/show", headers: headers) == "mine=1; a=1")
        #expect(await shown("/302?to=\(elsewhere)", headers: headers) == "")
    }

    @Test("a host cannot set another host's cookies") func foreign() async {
        await set("a=1;+Domain=example.org&set=b=1;+Domain=0.0.1&set=c=1;+Secure&set=__Host-d=1;+Path=/")
        #expect(storage.cookies?.isEmpty == true)
    }

    @Test("a cookie's path is respected") func paths() async {
        await set("a=1;+Path=/elsewhere&set=b=1;+Path=/show")
        #expect(await shown() == "b=1")
    }

    @Test("a request may opt out of cookies") func unhandled() async throws {
        await set("a=1;+Path=/")
        var request = try URLRequest(url: server.url("/show"), method: .get)
        request.httpShouldHandleCookies = false
        #expect(await manager.request(request).serializingString().response.value == "")
        request.url = URL(string: server.url("/200?set=b=1;+Path=/"))
        _ = await manager.request(request).serializingData().response
        #expect(storage.cookies?.map(\.name) == ["a"])
    }

    @Test("a session without a storage handles no cookies") func noStorage() async {
        let manager = makeManager()
        _ = await manager.request(server.url("/200?set=a=1;+Path=/")).serializingData().response
        #expect(await manager.request(server.url("/show")).serializingString().response.value == "")
    }
}
