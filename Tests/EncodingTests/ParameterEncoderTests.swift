// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Testing

@Suite struct ParameterEncoderTests {
    private struct Bird: Encodable {
        var name = "curlew"
        var age = 3
    }

    private struct Refusing: Encodable {
        struct Refusal: Error {}
        func encode(to encoder: any Encoder) throws { throw Refusal() }
    }

    @Test("JSON is sent in the body, with its content type unless there is one")
    func json() throws {
        let encoded = try JSONParameterEncoder.sortedKeys.encode(Bird(), into: request(method: .get))
        #expect(encoded.bodyText == #"{"age":3,"name":"curlew"}"#)
        #expect(encoded.value(forHTTPHeaderField: "Content-Type") == "application/json")
        let typed = try JSONParameterEncoder.default.encode(Bird(), into: request(method: .post, headers: ["Content-Type": "x/y"]))
        #expect(typed.value(forHTTPHeaderField: "Content-Type") == "x/y")
        let pretty = try JSONParameterEncoder.prettyPrinted.encode(Bird(), into: request(method: .post))
        #expect(pretty.bodyText?.contains("\n") == true)
        #expect(try JSONParameterEncoder.default.encode([1, 2], into: request(method: .post)).bodyText == "[1,2]")
    }

    @Test("a custom JSONEncoder is used")
    func ownEncoder() throws {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let encoded = try JSONParameterEncoder(encoder: encoder).encode(["oneTwo": Bird?.none], into: request(method: .post))
        #expect(encoded.bodyText == #"{"oneTwo":null}"#)
        struct Value: Encodable { let oneTwo = 1 }
        #expect(try JSONParameterEncoder(encoder: encoder).encode(Value(), into: request(method: .post)).bodyText == #"{"one_two":1}"#)
    }

    @Test(
        "a form is sent to its destination",
        arguments: [
            (URLEncodedFormParameterEncoder.Destination.methodDependent, HTTPMethod.get, true), (.methodDependent, .head, true),
            (.methodDependent, .delete, true), (.methodDependent, .post, false), (.methodDependent, .put, false),
            (.queryString, .post, true),
            (.httpBody, .get, false),
        ])
    func form(_ destination: URLEncodedFormParameterEncoder.Destination, _ method: HTTPMethod, _ isQuery: Bool) throws {
        let original = try request("https://example.org/p?x=1#f", method)
        let encoded = try URLEncodedFormParameterEncoder(destination: destination).encode(Bird(), into: original)
        #expect(encoded.url?.absoluteString == (isQuery ? "https://example.org/p?x=1&age=3&name=curlew#f" : "https://example.org/p?x=1#f"))
        #expect(encoded.bodyText == (isQuery ? nil : "age=3&name=curlew"))
        let type = encoded.value(forHTTPHeaderField: "Content-Type")
        #expect(type == (isQuery ? nil : "application/x-www-form-urlencoded; charset=utf-8"))
    }

    @Test("nil leaves the request unchanged") func nilParameters() throws {
        let original = try request("https://example.org/?a#b", .post)
        for encoder in [JSONParameterEncoder.default, URLEncodedFormParameterEncoder.default] as [any ParameterEncoder] {
            #expect(try encoder.encode(Bird?.none, into: original) == original)
        }
    }

    @Test("an encoding failure keeps its cause") func failures() throws {
        let request = try request("https://example.org/", .post)
        for (encoder, value) in [(JSONParameterEncoder.default, "json"), (URLEncodedFormParameterEncoder.default, "form")]
            as [(any ParameterEncoder, String)]
        {
            do {
                _ = try encoder.encode(Refusing(), into: request)
                Issue.record("\(value) was encoded")
            } catch CurlewError.parameterEncodingFailed(.jsonEncodingFailed(let error), _) {
                #expect(error is Refusing.Refusal && value == "json")
            } catch CurlewError.parameterEncodingFailed(.formEncodingFailed(let error), _) {
                #expect(error is Refusing.Refusal && value == "form")
            }
        }
        #expect(throws: CurlewError.self) { try JSONParameterEncoder.default.encode(Double.nan, into: request) }
        #expect(throws: CurlewError.self) { try URLEncodedFormParameterEncoder.default.encode([1], into: request) }
    }

    @Test("a request without a URL is an error") func missingURL() throws {
        var original = try request("https://example.org/", .post)
        original.url = nil
        for encoder in [
            JSONParameterEncoder.default, URLEncodedFormParameterEncoder.default, URLEncodedFormParameterEncoder(destination: .queryString),
        ] as [any ParameterEncoder] {
            #expect(throws: CurlewError.self) { try encoder.encode(Bird(), into: original) }
        }
    }

    @Test("encoders have static shorthands") func shorthands() throws {
        func encode(_ encoder: any ParameterEncoder) throws -> String? {
            try encoder.encode(["a b": 1], into: request(method: .post)).bodyText
        }
        #expect(try encode(.json) == #"{"a b":1}"#)
        #expect(try encode(.json(encoder: JSONEncoder())) == #"{"a b":1}"#)
        #expect(try encode(.urlEncodedForm) == "a%20b=1")
        #expect(try encode(.urlEncodedForm(encoder: URLEncodedFormEncoder(spaceEncoding: .plusReplaced))) == "a+b=1")
    }

    private func request(method: HTTPMethod, headers: HTTPHeaders? = nil) throws -> URLRequest {
        try EncodingTests.request("https://example.org/path", method, headers: headers)
    }

    private func request(_ url: String, _ method: HTTPMethod) throws -> URLRequest { try EncodingTests.request(url, method) }
}
