// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// Functions that programs call directly throw, or return, Alamofire's errors.
@Suite struct DirectCallTests {
    private let response = HTTPURLResponse(
        url: URL(fileURLWithPath: "/"), statusCode: 200, httpVersion: "HTTP/1.1",
        headerFields: ["Content-Type": "text/plain; charset=utf-8"])
    private let noContent = HTTPURLResponse(url: URL(fileURLWithPath: "/"), statusCode: 204, httpVersion: "HTTP/1.1", headerFields: nil)

    private func error(of body: () throws -> Void) -> AFError? {
        do {
            try body()
            return nil
        } catch {
            return error as? AFError
        }
    }

    private func request() throws -> URLRequest {
        try URLRequest(url: "https://example.org/path", method: .get)
    }

    // MARK: URLs and requests

    @Test("asURL of a string and of components") func asURL() throws {
        #expect(try "https://example.org".asURL().host == "example.org")
        #expect(error { _ = try "x y".asURL() }?.urlConvertible as? String == "x y")
        var components = URLComponents()
        components.host = "example.org"
        #expect(try components.asURL().host == "example.org")
        components.path = "no slash"
        #expect(error { _ = try components.asURL() }?.isInvalidURLError == true)
    }

    @Test("a URLRequest from a URL, a method and header fields") func urlRequest() throws {
        let headers: HTTPHeaders = ["X-One": "1"]
        let request = try URLRequest(url: "https://example.org", method: .patch, headers: headers)
        #expect(request.httpMethod == "PATCH" && request.value(forHTTPHeaderField: "X-One") == "1")
        #expect(try URLRequest(url: "https://example.org", method: .get, headers: ["X-One": "1"]).value(forHTTPHeaderField: "X-One") == "1")
        #expect(error { _ = try URLRequest(url: "x y", method: .get) }?.isInvalidURLError == true)
        #expect(error { _ = try URLRequest(url: "x y", method: .get, headers: headers) }?.isInvalidURLError == true)
    }

    @Test("urlRequest is nil if asURLRequest throws") func urlRequestOfConvertible() {
        struct Broken: URLRequestConvertible {
            func asURLRequest() throws -> URLRequest { throw TestError("mine") }
        }
        #expect(Broken().urlRequest == nil)
        #expect(URLRequest(url: URL(fileURLWithPath: "/")).urlRequest != nil)
    }

    // MARK: Encodings

    @Test("URLEncoding") func urlEncoding() throws {
        let encoded = try URLEncoding.queryString.encode(request(), with: ["a": 1])
        #expect(encoded.url?.query == "a=1")
        struct Broken: URLRequestConvertible {
            func asURLRequest() throws -> URLRequest { throw TestError("mine") }
        }
        #expect(throws: TestError("mine")) { try URLEncoding.default.encode(Broken(), with: nil) }
    }

    @Test("JSONEncoding, with parameters and with any object") func jsonEncoding() throws {
        let encoded = try JSONEncoding.default.encode(request(), withJSONObject: [1, 2])
        #expect(encoded.httpBody == Data("[1,2]".utf8))
        #expect(try JSONEncoding.default.encode(request(), withJSONObject: nil).httpBody == nil)
        let failed = error { _ = try JSONEncoding.default.encode(request(), with: ["a": Date()]) }
        #expect(failed?.isParameterEncodingError == true && failed?.underlyingError != nil)
        #expect(error { _ = try JSONEncoding.default.encode(request(), withJSONObject: [Date()]) }?.isParameterEncodingError == true)
    }

    @Test("PropertyListEncoding") func propertyListEncoding() throws {
        #expect(try PropertyListEncoding.default.encode(request(), with: ["a": 1]).httpBody?.isEmpty == false)
        let failed = error { _ = try PropertyListEncoding.default.encode(request(), with: ["a": NSNull()]) }
        #expect(failed?.isParameterEncodingError == true && failed?.underlyingError != nil)
    }

    // MARK: Serializers

    @Test("the functions on Request: a value, no value, a given error, no content") func functionsOnRequest() {
        let text = Data("text".utf8)
        #expect(Request.serializeResponseData(response: response, data: text, error: nil).value == text)
        #expect(Request.serializeResponseData(response: nil, data: nil, error: nil).error is AFError)
        #expect(Request.serializeResponseData(response: response, data: text, error: TestError("given")).error is TestError)
        #expect(Request.serializeResponseData(response: noContent, data: nil, error: nil).value == Data())
        #expect(Request.serializeResponseString(encoding: nil, response: response, data: Data("ä".utf8), error: nil).value == "ä")
        let broken = Request.serializeResponseString(encoding: .utf8, response: response, data: Data([0xFF]), error: nil)
        #expect((broken.error as? AFError)?.failedStringEncoding == .utf8)
        let json = Request.serializeResponseJSON(options: .allowFragments, response: response, data: Data("[1]".utf8), error: nil)
        #expect(json.value as? [Int] == [1])
        #expect(Request.serializeResponseJSON(options: [], response: noContent, data: nil, error: nil).value is NSNull)
        let noJSON = Request.serializeResponseJSON(options: [], response: response, data: text, error: nil)
        #expect((noJSON.error as? AFError)?.underlyingError is CocoaError)
        let list = Request.serializeResponsePropertyList(options: [], response: nil, data: Data("{a=1;}".utf8), error: nil)
        #expect(list.value as? [String: String] == ["a": "1"])
        let noList = Request.serializeResponsePropertyList(options: [], response: nil, data: Data(), error: nil)
        #expect((noList.error as? AFError)?.isResponseSerializationError == true)
    }

    @Test("the serializers of data requests") func dataSerializers() {
        #expect(DataRequest.dataResponseSerializer().serializeResponse(nil, nil, nil, nil).error is AFError)
        #expect(DataRequest.stringResponseSerializer().serializeResponse(nil, response, Data("ä".utf8), nil).value == "ä")
        #expect(DataRequest.stringResponseSerializer(encoding: .utf8).serializeResponse(nil, nil, Data([0xFF]), nil).error is AFError)
        #expect(DataRequest.jsonResponseSerializer().serializeResponse(nil, nil, Data("7".utf8), nil).value as? Int == 7)
        #expect(DataRequest.jsonResponseSerializer().serializeResponse(nil, nil, Data(), nil).error is AFError)
        #expect(DataRequest.propertyListResponseSerializer().serializeResponse(nil, nil, Data(), nil).error is AFError)
        #expect(DataRequest.jsonResponseSerializer().serializeResponse(nil, nil, nil, TestError("given")).error is TestError)
    }

    @Test(
        "text is UTF-8 if it is valid, in a charset decoded by that, and in an unknown one Alamofire's error",
        arguments: [
            ("text/plain", [0xC3, 0xA9], "é"), ("text/plain", [0xE9], "é"), ("text/plain; charset=gbk", [0xC4, 0xE3], "你"),
            ("text/plain; charset=unheard-of", [0x41], nil), ("text/plain; charset=utf-8", [0xE9], nil),
        ] as [(String, [UInt8], String?)])
    func charsets(_ type: String, _ bytes: [UInt8], _ text: String?) {
        let response = HTTPURLResponse(
            url: URL(fileURLWithPath: "/"), statusCode: 200, httpVersion: "HTTP/1.1", headerFields: ["Content-Type": type])
        let result = Request.serializeResponseString(encoding: nil, response: response, data: Data(bytes), error: nil)
        #expect(result.value == text)
        let expected: String.Encoding? = text == nil ? bytes == [0x41] ? .init(rawValue: 0xFFFF_FFFF) : .utf8 : nil
        #expect((result.error as? AFError)?.failedStringEncoding == expected)
    }

    @Test("the serializers of downloads read the file") func downloadSerializers() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("[1]".utf8), to: "file")
        let missing = directory.file("missing")
        #expect(DownloadRequest.dataResponseSerializer().serializeResponse(nil, nil, file, nil).value == Data("[1]".utf8))
        #expect(DownloadRequest.stringResponseSerializer().serializeResponse(nil, nil, file, nil).value == "[1]")
        #expect(DownloadRequest.jsonResponseSerializer().serializeResponse(nil, nil, file, nil).value as? [Int] == [1])
        #expect(DownloadRequest.propertyListResponseSerializer().serializeResponse(nil, nil, nil, nil).error is AFError)
        let failed = DownloadRequest.dataResponseSerializer().serializeResponse(nil, nil, missing, nil).error as? AFError
        guard case .responseSerializationFailed(.inputFileReadFailed(missing))? = failed else {
            Issue.record("not inputFileReadFailed: \(String(describing: failed))")
            return
        }
    }
}
