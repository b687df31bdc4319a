// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite struct RetryAfterTests {
    private static let now = Date(timeIntervalSince1970: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

    private static func delay(_ value: String?, date: String? = nil) -> Duration? {
        var headers = HTTPHeaders()
        if let value { headers.append(name: "Retry-After", value: value) }
        if let date { headers.append(name: "Date", value: date) }
        let delay = RetryAfter(ResponseHead(statusCode: 503, headers: headers), now: now)?.delay
        let url = URL(fileURLWithPath: "/")
        let response = HTTPURLResponse(url: url, statusCode: 503, httpVersion: nil, headerFields: headers.dictionary)
        #expect(response.flatMap { RetryAfter($0, now: now) }?.delay == delay)
        return delay
    }

    @Test("seconds", arguments: [("0", 0), ("120", 120), (" 7 ", 7), ("0010", 10), ("2147483647", 2_147_483_647)])
    func seconds(_ value: String, _ wait: Int) {
        #expect(Self.delay(value) == .seconds(wait))
    }

    @Test(
        "a delay of more than 68 years is clamped",
        arguments: ["2147483648", "18446744073709551616", String(repeating: "9", count: 400), "Fri, 31 Dec 9999 23:59:59 GMT"])
    func clamped(_ value: String) {
        #expect(Self.delay(value) == .seconds(Int32.max))
    }

    @Test("a date is relative to now, a past one is 0")
    func dates() {
        #expect(Self.delay("Sun, 06 Nov 1994 08:50:37 GMT") == .seconds(60))
        #expect(Self.delay("Sun, 06 Nov 1994 08:49:36 GMT") == .zero)
        #expect(Self.delay("Sun Nov  6 08:49:39 1994") == .seconds(2))
    }

    @Test("a date is relative to the response's Date")
    func serverClock() {
        #expect(Self.delay("Sun, 06 Nov 1994 10:00:30 GMT", date: "Sun, 06 Nov 1994 10:00:00 GMT") == .seconds(30))
        #expect(Self.delay("Sun, 06 Nov 1994 08:49:47 GMT", date: "nonsense") == .seconds(10))
    }

    @Test("other values are invalid", arguments: [nil, "", "-1", "1.5", "1e3", "soon", "+5", "٣", "5 seconds", "Sun, 06 Nov 1994"])
    func nothing(_ value: String?) {
        #expect(Self.delay(value) == nil)
    }
}
