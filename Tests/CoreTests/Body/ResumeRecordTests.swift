// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct ResumeRecordTests {
    static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    static let later = "Sun, 06 Nov 1994 08:49:38 GMT"

    static let validatorCases: [(HTTPHeaders, String?)] = [
        (["ETag": "\"v1\""], "\"v1\""), (["ETag": "\"\""], "\"\""), (["ETag": "W/\"v1\""], nil), (["ETag": "v1"], nil),
        (["ETag": "\""], nil),
        (["ETag": "\"a\"b\""], nil), (["ETag": "\"v 1\""], nil), (["ETag": "\"é\""], nil),
        (["ETag": "\"v1\"", "Last-Modified": date, "Date": later], "\"v1\""),
        (["ETag": "W/\"v1\"", "Last-Modified": date, "Date": later], nil), (["Last-Modified": date, "Date": later], date),
        (["Last-Modified": date, "Date": date], nil), (["Last-Modified": later, "Date": date], nil), (["Last-Modified": date], nil),
        (["Last-Modified": "yesterday", "Date": later], nil), ([:], nil),
    ]

    private func record(_ headers: HTTPHeaders, status: Int = 200, url: String = "http://host/file", asked: HTTPHeaders = [:]) throws
        -> ResumeRecord?
    {
        let request = ResumableRequest(try #require(URL(string: url)), asked)
        return ResumeRecord(request, ResponseHead(statusCode: status, headers: headers), partFile: "/tmp/.download.abc.part")
    }

    private func fields(_ change: (inout [String: Any]) -> Void) throws -> Data {
        let data = try #require(try record(["ETag": "\"v1\"", "Content-Length": "100"])?.data)
        var object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        change(&object)
        return try JSONSerialization.data(withJSONObject: object)
    }

    private func reason(_ data: Data) -> CurlewError.ResumeDataFailureReason? {
        do throws(CurlewError) {
            _ = try ResumeRecord(data)
            return nil
        } catch {
            if case .resumeDataInvalid(let reason, _) = error { return reason }
            return nil
        }
    }

    @Test(
        "a strong tag is the validator, else the date of the last change",
        arguments: validatorCases)
    func validators(_ headers: HTTPHeaders, _ expected: String?) throws {
        #expect(try record(headers)?.validator == expected)
    }

    @Test(
        "there is no record of what can't be resumed",
        arguments: [
            (206, [:]), (404, [:]), (200, ["Content-Encoding": "gzip"]), (200, ["Content-Encoding": "identity, br"]),
            (200, ["Accept-Ranges": "none"]),
        ] as [(Int, HTTPHeaders)])
    func notResumable(_ status: Int, _ headers: HTTPHeaders) throws {
        var headers = headers
        headers.append(name: "ETag", value: "\"v1\"")
        #expect(try record(headers, status: status) == nil)
    }

    @Test("identity is no coding") func identity() throws {
        #expect(try record(["ETag": "\"v1\"", "Content-Encoding": "Identity"]) != nil)
    }

    @Test("credentials are not kept") func credentials() throws {
        let asked: HTTPHeaders = [
            "Authorization": "Bearer secret", "cookie": "a=secret", "Proxy-Authorization": "Basic secret", "Accept": "text/plain",
            "X-A": "1",
        ]
        let record = try record(["ETag": "\"v1\""], url: "http://user:secret@host/file?q=1#part", asked: asked)
        #expect(record?.headers.map(\.name) == ["Accept", "X-A"])
        #expect(record?.url == "http://host/file?q=1")
        let text = String(decoding: try #require(record?.data), as: UTF8.self)
        #expect(!text.contains("secret"))
    }

    @Test("a record is what it was as data") func roundTrip() throws {
        var record = try #require(
            try record(["ETag": "\"v1\"", "Content-Length": "100", "Content-Type": "text/plain"], asked: ["X-A": "1"]))
        record.offset = 50
        #expect(try ResumeRecord(#require(record.data)) == record)
        #expect(record.total == 100)
        #expect(record.withoutHeaders.headers.isEmpty)
    }

    @Test("anything else is no resume data", arguments: ["", "{}", "[]", "garbage", "<plist/>", #"{"version":1}"#])
    func garbage(_ text: String) {
        #expect(reason(Data(text.utf8)) == .notResumeData)
    }

    @Test("bytes at random are no resume data") func random() {
        var generator = SystemRandomNumberGenerator()
        for count in 0..<200 {
            #expect(reason(Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })) == .notResumeData)
        }
    }

    @Test("a later version is refused as that") func version() throws {
        #expect(reason(try fields { $0["version"] = 2 }) == .unsupportedVersion(2))
        #expect(reason(try fields { $0["created"] = nil }) == .notResumeData)
        #expect(reason(try fields { _ in }) == nil)
    }

    @Test("what this library would not write is refused")
    func fields() throws {
        #expect(reason(try fields { $0["method"] = "POST" }) == .invalidField("method"))
        #expect(reason(try fields { $0["url"] = "file" }) == .invalidField("url"))
        #expect(reason(try fields { $0["validator"] = "\"a\r\nX: y\"" }) == .invalidField("validator"))
        #expect(reason(try fields { $0["validator"] = "W/\"a\"" }) == .invalidField("validator"))
        #expect(reason(try fields { $0["offset"] = -1 }) == .invalidField("offset"))
        #expect(reason(try fields { $0["offset"] = 101 }) == .invalidField("offset"))
        #expect(reason(try fields { $0["contentType"] = "a\nb" }) == .invalidField("contentType"))
        for path in ["/etc/passwd", "relative/.download.part", "/tmp/.part/", "/tmp/download.part", ""] {
            #expect(reason(try fields { $0["partFile"] = path }) == .invalidField("partFile"))
        }
    }
}
