// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@Suite struct RangeResumptionTests {
    private let request: URLRequest
    private let head = ResponseHead(statusCode: 200, headers: ["ETag": "\"1\"", "Content-Length": "100"])

    init() throws {
        request = URLRequest(url: try #require(URL(string: "http://example.org/file")))
    }

    @Test("it asks for the rest by the version that came, and knows what the answer means")
    func answers() throws {
        let resumption = try #require(RangeResumption(request, head))
        #expect(resumption.validator == "\"1\"")
        #expect(resumption.headers(offset: 40).dictionary == ["Range": "bytes=40-", "If-Range": "\"1\"", "Accept-Encoding": "identity"])
        func answer(_ status: Int, _ headers: HTTPHeaders = [:]) -> RangeResumption.Answer {
            resumption.answer(ResponseHead(statusCode: status, headers: headers), offset: 40)
        }
        #expect(answer(206, ["Content-Range": "bytes 40-99/100", "ETag": "\"1\""]) == .append(total: 100))
        #expect(answer(206, ["Content-Range": "bytes 41-99/100", "ETag": "\"1\""]) == .askForWhole)
        // A 206 has to repeat the validator that was sent in If-Range.
        #expect(answer(206, ["Content-Range": "bytes 40-99/100"]) == .askForWhole)
        #expect(answer(206, ["Content-Range": "bytes 40-99/100", "ETag": "W/\"1\""]) == .askForWhole)
        #expect(answer(206, ["Content-Range": "bytes 40-99/100", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]) == .askForWhole)
        #expect(answer(416, ["Content-Range": "bytes */40"]) == .askForWhole && resumption.total == 100)
        let end = ResponseHead(statusCode: 416, headers: ["Content-Range": "bytes */100"])
        #expect(resumption.answer(end, offset: 100) == .complete)
        #expect(answer(200) == .startOver)
        #expect(answer(503) == .setAside)
    }

    @Test("what can't be gone on with gives none")
    func impossible() throws {
        #expect(RangeResumption(request, ResponseHead(statusCode: 200)) == nil)
        #expect(RangeResumption(request, ResponseHead(statusCode: 404, headers: ["ETag": "\"1\""])) == nil)
        var other = request
        other.httpMethod = "POST"
        #expect(RangeResumption(other, head) == nil)
        other = request
        other.setValue("bytes=0-1", forHTTPHeaderField: "Range")
        #expect(RangeResumption(other, head) == nil)
    }

    @Test("it is kept as JSON, and refused when it was changed into what could break a request")
    func kept() throws {
        let resumption = try #require(RangeResumption(request, head))
        let data = try JSONEncoder().encode(resumption)
        #expect(try JSONDecoder().decode(RangeResumption.self, from: data) == resumption)
        let changed = String(decoding: data, as: UTF8.self).replacingOccurrences(of: #"\"1\""#, with: #"\"1\"\r\nX: y"#)
        #expect(throws: (any Error).self) { try JSONDecoder().decode(RangeResumption.self, from: Data(changed.utf8)) }
    }
}
