// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Interim responses (RFC 9110, section 15.2) that requests hand over as they come.
@Suite(.timeLimit(.minutes(1))) struct InterimResponseTests {
    private static let hint = ServerField("Link", "</a.css>; rel=preload")

    @Test("a handler runs, and a sequence continues, before the server sends the final response", arguments: [true, false])
    func inTime(byHandler: Bool) async throws {
        let seen = Gate()
        let server = try LoopbackServer { _, connection in
            try connection.sendInterim(103, headers: [Self.hint])
            return connection.wait(until: seen, timeout: .seconds(20)) ? .ok("ok") : .status(504)
        }
        let manager = makeManager()
        let request = manager.request(server.url("/"))
        if byHandler {
            request.onInterimResponse { head in
                if head.value(for: "Link") == Self.hint.value { seen.open() }
            }
        } else {
            for await head in request.interimResponses.prefix(1) where head.statusCode == 103 { seen.open() }
        }
        #expect(try await request.validate().serializingString().value == "ok")
    }

    @Test("the 104 of an upload that is then cut is received") func cutUpload() async throws {
        let seen = Gate()
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            try connection.sendInterim(104, headers: [ServerField("Location", "/uploads/1")])
            connection.wait(until: seen, timeout: .seconds(20))
            connection.close()
            return nil
        }
        let manager = makeManager()
        let request = manager.upload(Data(count: 32 << 20), to: server.url("/")).onInterimResponse { _ in seen.open() }
        let error = await request.serializingData().response.error
        #expect(error?.transferFailure?.kind == .connectionLost && seen.isOpen)
        #expect(request.responseHead == nil)
        let locations = await request.interimResponses.reduce(into: []) { $0.append($1.value(for: "Location")) }
        #expect(locations == ["/uploads/1"])
    }

    @Test("a redirect's and its target's are handed over in order, before the response") func redirect() async throws {
        let server = try LoopbackServer { request, connection in
            try connection.sendInterim(request.path == "/" ? 102 : 103)
            return request.path == "/" ? .redirect(to: "/next") : .ok("ok")
        }
        let manager = makeManager()
        let events = Log<Int>()
        manager.request(server.url("/")).onInterimResponse { events.append($0.statusCode) }.responseString {
            events.append($0.response?.statusCode ?? 0)
        }
        await events.wait(for: 3)
        #expect(events.elements == [102, 103, 200])
    }
}
