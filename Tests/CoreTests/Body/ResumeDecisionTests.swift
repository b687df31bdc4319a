// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct ResumeDecisionTests {
    /// 400 of 1000 bytes are there.
    private func decide(_ status: Int, _ headers: HTTPHeaders, total: Int64? = 1000, validator: String = "\"v1\"") -> ResumeDecision {
        let record = ResumeRecord(
            version: 1, url: "http://host/", method: "GET", headers: [], validator: validator, offset: 400, total: total, contentType: nil,
            partFile: "/tmp/.a.part", isStable: false, created: Date())
        return ResumeDecision(record, offset: 400, ResponseHead(statusCode: status, headers: headers))
    }

    private static let fits = "bytes 400-999/1000"

    /// The fields, with the tag that the record has unless they have another.
    private static func tagged(_ headers: HTTPHeaders) -> HTTPHeaders {
        var headers = headers
        if headers["ETag"] == nil { headers.append(name: "ETag", value: "\"v1\"") }
        return headers
    }

    @Test(
        "the rest is put behind what is there",
        arguments: [
            ["Content-Range": fits], ["Content-Range": fits, "Content-Length": "600"], ["Content-Range": "bytes 400-999/*"],
            ["Content-Range": "BYTES 400-999/1000"], ["Content-Range": fits, "Content-Encoding": "identity"],
            ["Content-Range": fits, "Last-Modified": "ever"],
        ] as [HTTPHeaders])
    func append(_ headers: HTTPHeaders) {
        #expect(decide(206, Self.tagged(headers)) == .append(total: 1000))
    }

    @Test("a length that was not known is learnt") func learnt() {
        #expect(decide(206, Self.tagged(["Content-Range": Self.fits]), total: nil) == .append(total: 1000))
        #expect(decide(206, Self.tagged(["Content-Range": "bytes 400-999/*"]), total: nil) == .requestWhole)
    }

    @Test(
        "what does not fit is asked for anew",
        arguments: [
            [:], ["Content-Range": "bytes 0-999/1000"], ["Content-Range": "bytes 401-999/1000"], ["Content-Range": "bytes 399-999/1000"],
            ["Content-Range": "bytes 400-999/1001"], ["Content-Range": "bytes 400-1999/2000"], ["Content-Range": "bytes 400-899/1000"],
            ["Content-Range": "bytes 400-899/900"], ["Content-Range": "bytes 400-1000/1000"], ["Content-Range": "bytes */1000"],
            ["Content-Range": "items 400-999/1000"], ["Content-Range": "400-999/1000"], ["Content-Range": "bytes=400-999/1000"],
            ["Content-Range": "bytes 400-999"], ["Content-Range": "bytes 400-99999999999999999999/1000"],
            ["Content-Range": "bytes 400-9223372036854775807/*"], ["Content-Range": "bytes -400-999/1000"], ["Content-Range": ""],
            ["Content-Range": fits, "ETag": "\"v2\""], ["Content-Range": fits, "ETag": "W/\"v1\""],
            ["Content-Range": fits, "Content-Encoding": "gzip"], ["Content-Range": fits, "Content-Length": "605"],
            ["Content-Range": fits, "Content-Length": "599"], ["Content-Type": "multipart/byteranges; boundary=b"],
        ] as [HTTPHeaders])
    func misfits(_ headers: HTTPHeaders) {
        #expect(decide(206, Self.tagged(headers)) == .requestWhole)
    }

    @Test("a range that does not repeat the validator of the request may be of another version")
    func unconfirmed() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        for headers in [["Content-Range": Self.fits], ["Content-Range": Self.fits, "Last-Modified": date]] as [HTTPHeaders] {
            #expect(decide(206, headers) == .requestWhole)
        }
        for headers in [["Content-Range": Self.fits], ["Content-Range": Self.fits, "ETag": "\"v1\""]] as [HTTPHeaders] {
            #expect(decide(206, headers, validator: date) == .requestWhole)
        }
    }

    @Test("a date validates as a tag does") func dates() {
        let (date, other) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT")
        let headers = { (changed: String) -> HTTPHeaders in ["Content-Range": Self.fits, "Last-Modified": changed, "ETag": "\"new\""] }
        #expect(decide(206, headers(date), validator: date) == .append(total: 1000))
        #expect(decide(206, headers(other), validator: date) == .requestWhole)
    }

    @Test("the whole takes the place of what is there") func whole() {
        #expect(decide(200, [:]) == .startOver)
        #expect(decide(200, ["Content-Range": Self.fits, "Content-Encoding": "gzip", "ETag": "\"v2\""]) == .startOver)
    }

    @Test("behind the end there is nothing: it is all there") func complete() {
        let all = { (total: Int64?, range: String, tag: String?) -> ResumeDecision in
            var headers: HTTPHeaders = ["Content-Range": range]
            if let tag { headers.append(name: "ETag", value: tag) }
            return decide(416, headers, total: total)
        }
        #expect(all(400, "bytes */400", nil) == .complete)
        #expect(all(nil, "bytes */400", "\"v1\"") == .complete)
        #expect(all(400, "bytes */400", "\"v2\"") == .requestWhole)
        #expect(all(1000, "bytes */400", nil) == .requestWhole)
        #expect(all(1000, "bytes */1000", nil) == .requestWhole)
        #expect(all(nil, "bytes */300", nil) == .requestWhole)
        #expect(all(nil, "bytes */*", nil) == .requestWhole)
        #expect(decide(416, [:]) == .requestWhole)
    }

    @Test("other answers leave alone what is there", arguments: [201, 204, 304, 401, 404, 412, 429, 500, 503])
    func aside(_ status: Int) {
        #expect(decide(status, ["Content-Range": Self.fits]) == .unrelated)
    }
}
