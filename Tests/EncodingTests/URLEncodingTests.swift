// SPDX-License-Identifier: Apache-2.0

import CurlewEncoding
import CurlewHTTP
import Testing

@Suite struct URLEncodingTests {
    private func query(_ parameters: Parameters, _ encoding: URLEncoding = .queryString) throws -> String? {
        try encoding.encode(request(), with: parameters).url?.absoluteString.split(separator: "?", maxSplits: 1).last.map(String.init)
    }

    // MARK: Destination

    @Test(
        "GET, HEAD and DELETE have a query, all other methods a body",
        arguments: [
            ("GET", true), ("HEAD", true), ("DELETE", true), ("POST", false), ("PUT", false), ("PATCH", false), ("OPTIONS", false),
            ("TRACE", false), ("CONNECT", false), ("QUERY", false), ("PURGE", false), ("GETS", false),
        ])
    func methodDecides(_ name: String, _ isQuery: Bool) throws {
        let method = try #require(HTTPMethod(rawValue: name))
        for encoding in [URLEncoding.default, .methodDependent, URLEncoding()] {
            let encoded = try encoding.encode(request("https://example.org/", method), with: ["a": "b"])
            #expect(encoded.url?.absoluteString == (isQuery ? "https://example.org/?a=b" : "https://example.org/"))
            #expect(encoded.bodyText == (isQuery ? nil : "a=b"))
            let contentType = encoded.value(forHTTPHeaderField: "Content-Type")
            #expect(contentType == (isQuery ? nil : "application/x-www-form-urlencoded; charset=utf-8"))
        }
    }

    @Test("queryString encodes a POST's parameters in the query and leaves the body unchanged")
    func queryStringOverridesMethod() throws {
        var post = try request("https://example.org/", .post)
        post.httpBody = Data("body".utf8)
        let encoded = try URLEncoding.queryString.encode(post, with: ["a": 1])
        #expect(encoded.url?.query == "a=1")
        #expect(encoded.bodyText == "body")
        #expect(encoded.value(forHTTPHeaderField: "Content-Type") == nil)
    }

    @Test("httpBody encodes a GET's parameters in the body and leaves the query unchanged")
    func httpBodyOverridesMethod() throws {
        let encoded = try URLEncoding.httpBody.encode(request("https://example.org/?q"), with: ["a": 1])
        #expect(encoded.url?.absoluteString == "https://example.org/?q")
        #expect(encoded.bodyText == "a=1")
    }

    @Test("nil parameters leave the request unchanged", arguments: [URLEncoding.queryString, .httpBody])
    func nilChangesNothing(_ encoding: URLEncoding) throws {
        let original = try request("https://example.org/?a#b", .post)
        let encoded = try encoding.encode(original, with: nil)
        #expect(encoded == original)
        #expect(encoded.httpBody == nil)
        #expect(encoded.value(forHTTPHeaderField: "Content-Type") == nil)
    }

    @Test("parameters without pairs leave the URL unchanged")
    func nothingLeavesURL() throws {
        for url in ["https://example.org/", "https://example.org/?", "https://example.org/?a=%20#f"] {
            for parameters in [[:], ["a": [Any]()], ["a": Int?.none as Any], ["a": [String: Any]()]] as [Parameters] {
                #expect(try URLEncoding.queryString.encode(request(url), with: parameters).url?.absoluteString == url)
            }
        }
    }

    @Test("empty parameters make an empty body")
    func emptyBody() throws {
        let encoded = try URLEncoding.default.encode(request("https://example.org/", .post), with: [:])
        #expect(encoded.httpBody == Data())
        #expect(encoded.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded; charset=utf-8")
    }

    @Test("an existing content type is kept")
    func contentTypeStays() throws {
        let post = try request("https://example.org/", .post, headers: ["content-type": "text/x"])
        #expect(try URLEncoding.default.encode(post, with: ["a": 1]).value(forHTTPHeaderField: "Content-Type") == "text/x")
    }

    @Test("a query without a URL is an error")
    func missingURL() throws {
        var request = try request()
        request.url = nil
        let error = #expect(throws: CurlewError.self) { try URLEncoding.default.encode(request, with: [:]) }
        guard case .parameterEncodingFailed(.missingURL, _) = error else {
            return #expect(Bool(false), "not missingURL but \(String(describing: error))")
        }
    }

    private static let bodyEncodings: [any ParameterEncoding] = [URLEncoding.httpBody, JSONEncoding.default, PropertyListEncoding.binary]

    @Test("a body for a request without a URL is an error, not a trap", arguments: bodyEncodings)
    func missingURLForBody(_ encoding: any ParameterEncoding) throws {
        var request = try request()
        request.url = nil
        let error = #expect(throws: CurlewError.self) { try encoding.encode(request, with: ["a": 1]) }
        guard case .urlRequestValidationFailed(.missingURL, _) = error else {
            return #expect(Bool(false), "not missingURL but \(String(describing: error))")
        }
    }

    @Test("errors of the convertible are rethrown unchanged")
    func convertibleThrows() {
        #expect(throws: NoRequest.Failure()) { try URLEncoding.default.encode(NoRequest(), with: ["a": 1]) }
        #expect(throws: NoRequest.Failure()) { try URLEncoding.default.encode(NoRequest(), with: nil) }
    }

    // MARK: URL

    @Test(
        "the query is appended to the existing one, before the fragment",
        arguments: [
            ("https://example.org", "https://example.org?k=v%20w"),
            ("https://example.org/", "https://example.org/?k=v%20w"),
            ("https://example.org/?", "https://example.org/?k=v%20w"),
            ("https://example.org/?a", "https://example.org/?a&k=v%20w"),
            ("https://example.org/?a=1", "https://example.org/?a=1&k=v%20w"),
            ("https://example.org/?a=1&", "https://example.org/?a=1&&k=v%20w"),
            ("https://example.org/?a=1?", "https://example.org/?a=1?&k=v%20w"),
            ("https://example.org/#f", "https://example.org/?k=v%20w#f"),
            ("https://example.org/?#f", "https://example.org/?k=v%20w#f"),
            ("https://example.org/?a=1#f?g", "https://example.org/?a=1&k=v%20w#f?g"),
            ("https://example.org/#?", "https://example.org/?k=v%20w#?"),
            ("https://example.org/?a=%20b%2Bc%25", "https://example.org/?a=%20b%2Bc%25&k=v%20w"),
            ("https://example.org/?z=1&a=+%2b@:/", "https://example.org/?z=1&a=+%2b@:/&k=v%20w"),
            ("https://u:p@example.org:8443/a%2Fb/../c;d", "https://u:p@example.org:8443/a%2Fb/../c;d?k=v%20w"),
            ("http://[::1]:80/%E2%82%AC", "http://[::1]:80/%E2%82%AC?k=v%20w"),
        ])
    func extendsURL(_ url: String, _ expected: String) throws {
        #expect(try URLEncoding.default.encode(request(url), with: ["k": "v w"]).url?.absoluteString == expected)
    }

    @Test("a relative URL keeps its base")
    func extendsRelativeURL() throws {
        let url = try #require(URL(string: "b?x=1#f", relativeTo: URL(string: "https://example.org/a/")))
        let encoded = try URLEncoding.default.encode(URLRequest(url: url), with: ["k": 1])
        #expect(encoded.url?.absoluteString == "https://example.org/a/b?x=1&k=1#f")
    }

    @Test("encoding twice appends twice and escapes once")
    func encodesTwice() throws {
        let once = try URLEncoding.default.encode(request("https://example.org/"), with: ["a": "1 % é"])
        let twice = try URLEncoding.default.encode(once, with: ["b[]": "&"])
        #expect(twice.url?.absoluteString == "https://example.org/?a=1%20%25%20%C3%A9&b%5B%5D=%26")
    }

    // MARK: Names

    @Test("keys are sorted, at every depth")
    func sortsNames() throws {
        let names = (0..<50).map { "n\($0)" }
        let inner = Dictionary(uniqueKeysWithValues: names.map { ($0, 1) })
        let sorted = names.sorted()
        #expect(try query(inner) == sorted.map { "\($0)=1" }.joined(separator: "&"))
        #expect(try query(["k": ["l": inner]]) == sorted.map { "k%5Bl%5D%5B\($0)%5D=1" }.joined(separator: "&"))
    }

    @Test("keys are escaped, including brackets and separators")
    func escapesNames() throws {
        #expect(try query(["a&b=c d": 1]) == "a%26b%3Dc%20d=1")
        #expect(try query(["a[b]": 1]) == "a%5Bb%5D=1")
        #expect(try query(["k": ["é&": 1]]) == "k%5B%C3%A9%26%5D=1")
        #expect(try query(["": ""]) == "=")
    }

    @Test(
        "a value's text is escaped",
        arguments: [
            ("a b", "a%20b"), ("a+b", "a%2Bb"), ("a&b=c", "a%26b%3Dc"), ("#?/", "%23?/"), ("100%", "100%25"), ("%20", "%2520"), ("", ""),
            ("😀", "%F0%9F%98%80"), (":#[]@!$&'()*+,;=", "%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D"),
            ("\r\n\0\"<>\\^`{|}", "%0D%0A%00%22%3C%3E%5C%5E%60%7B%7C%7D"), ("-._~", "-._~"),
        ])
    func escapesValues(_ value: String, _ escaped: String) throws {
        #expect(try query(["k": value]) == "k=\(escaped)")
        #expect(try URLEncoding.httpBody.encode(request(), with: ["k": value]).bodyText == "k=\(escaped)")
        #expect(URLEncoding.default.escape(value) == escaped)
    }

    // MARK: Values

    private static let values: [Sample<String?>] = [
        Sample("String", "v", "k=v"),
        Sample("NSString", NSString("v"), "k=v"),
        Sample("Substring", "v"[...], "k=v"),
        Sample("Character", Character("v"), "k=v"),
        Sample("true", true, "k=1"),
        Sample("false", false, "k=0"),
        Sample("NSNumber of true", NSNumber(value: true), "k=1"),
        Sample("Int", 42, "k=42"),
        Sample("Int.min", Int.min, "k=-9223372036854775808"),
        Sample("UInt64.max", UInt64.max, "k=18446744073709551615"),
        Sample("Int8", Int8(-5), "k=-5"),
        Sample("Double", 1.5, "k=1.5"),
        Sample("whole Double", 1.0, "k=1"),
        Sample("large Double", 1e15, "k=1000000000000000"),
        Sample("huge Double", 1e20, "k=1e%2B20"),
        Sample("small Double", 1e-7, "k=1e-07"),
        Sample("0.1", 0.1, "k=0.1"),
        Sample("10.0", 10.0, "k=10"),
        Sample("Float", Float(0.1), "k=0.1"),
        Sample("whole Float", Float(2), "k=2"),
        Sample("CGFloat", CGFloat(1), "k=1"),
        Sample("CGFloat with a fraction", CGFloat(1.25), "k=1.25"),
        Sample("NSNumber of 1.0", NSNumber(value: 1.0), "k=1"),
        Sample("NSNumber of 1", NSNumber(value: 1), "k=1"),
        Sample("NSNumber of 2.5", NSNumber(value: 2.5), "k=2.5"),
        Sample("NSNumber of a Float", NSNumber(value: Float(0.1)), "k=0.1"),
        Sample("Decimal", Decimal(string: "12.50") as Any, "k=12.5"),
        Sample("long Decimal", Decimal(string: "1234567890123456789012345.678") as Any, "k=1234567890123456789012345.678"),
        Sample("NSDecimalNumber", NSDecimalNumber(string: "0.10"), "k=0.1"),
        Sample("not a number", Double.nan, "k=nan"),
        Sample("Date", Date(timeIntervalSince1970: 0), "k=1970-01-01%2000%3A00%3A00%20%2B0000"),
        Sample("Date that is no number", Date(timeIntervalSince1970: .nan), "k=nan"),
        Sample("endless Date", Date(timeIntervalSince1970: .infinity), "k=inf"),
        Sample("URL", URL(string: "b", relativeTo: URL(string: "http://a/")) as Any, "k=http%3A//a/b"),
        Sample("UUID", UUID(uuid: (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)), "k=00010203-0405-0607-0809-0A0B0C0D0E0F"),
        Sample("Data", Data([0xFB, 0xFF, 0xFE, 0x00]), "k=%2B//%2BAA%3D%3D"),
        Sample("NSNull", NSNull(), "k="),
        Sample("nil", Int?.none as Any, nil),
        Sample("nil in two optionals", Int??.some(nil) as Any, nil),
        Sample("Optional Int", Int?.some(1) as Any, "k=1"),
        Sample("Optional String", String?.some("v") as Any, "k=v"),
        Sample("Optional of an Optional", Int??.some(.some(1)) as Any, "k=1"),
        Sample("Optional Bool", Bool?.some(true) as Any, "k=1"),
        Sample("Optional array", [Int]?.some([1]) as Any, "k%5B%5D=1"),
        Sample("array of Optionals", [1, nil, 2] as [Int?], "k%5B%5D=1&k%5B%5D=2"),
        Sample("dictionary of Optionals", ["a": 1, "b": nil] as [String: Int?], "k%5Ba%5D=1"),
        Sample("AnyHashable", AnyHashable(1.0), "k=1"),
        Sample("AnyHashable of true", AnyHashable(true), "k=1"),
        Sample("empty array", [Int](), nil),
        Sample("array", ["a", 1, true, 1.0] as [Any], "k%5B%5D=a&k%5B%5D=1&k%5B%5D=1&k%5B%5D=1"),
        Sample("array of a type", [1, 2], "k%5B%5D=1&k%5B%5D=2"),
        Sample("NSArray", NSArray(array: ["a", 2]), "k%5B%5D=a&k%5B%5D=2"),
        Sample("array of arrays", [[1], [2, 3]], "k%5B%5D%5B%5D=1&k%5B%5D%5B%5D=2&k%5B%5D%5B%5D=3"),
        Sample("array of dictionaries", [["a": 1], ["a": 2]], "k%5B%5D%5Ba%5D=1&k%5B%5D%5Ba%5D=2"),
        Sample("set", Set(["c", "a", "b"]), "k%5B%5D=a&k%5B%5D=b&k%5B%5D=c"),
        Sample("empty dictionary", [String: Int](), nil),
        Sample("dictionary", ["b": [1], "a": ["c": "d"]] as [String: Any], "k%5Ba%5D%5Bc%5D=d&k%5Bb%5D%5B%5D=1"),
        Sample("NSDictionary", NSDictionary(dictionary: ["a": 1]), "k%5Ba%5D=1"),
        Sample("dictionary with numbers for keys", [2: "b", 1: "a"], "k%5B1%5D=a&k%5B2%5D=b"),
        Sample("dictionary with AnyHashable for keys", [AnyHashable("a"): 1], "k%5Ba%5D=1"),
    ]

    @Test("every type of value is encoded", arguments: values)
    func encodesValues(_ sample: Sample<String?>) throws {
        let pairs = URLEncoding.default.queryComponents(fromKey: "k", value: sample.value()).map { "\($0)=\($1)" }
        #expect((pairs.isEmpty ? nil : pairs.joined(separator: "&")) == sample.expected)
        let body = try URLEncoding.httpBody.encode(request(), with: ["k": sample.value()]).bodyText
        #expect(body == sample.expected ?? "")
    }

    private static let booleans: [Sample<String>] = [
        Sample("true", true, "true"),
        Sample("false", false, "false"),
        Sample("NSNumber of true", NSNumber(value: true), "true"),
        Sample("NSNumber of false", NSNumber(value: false), "false"),
        Sample("Optional Bool", Bool?.some(false) as Any, "false"),
        Sample("AnyHashable of true", AnyHashable(true), "true"),
        Sample("1", 1, "1"),
        Sample("0", 0, "0"),
        Sample("1.0", 1.0, "1"),
        Sample("Int8", Int8(1), "1"),
        Sample("UInt8", UInt8(0), "0"),
        Sample("NSNumber of 1", NSNumber(value: 1), "1"),
        Sample("NSNumber of 0", NSNumber(value: 0), "0"),
        Sample("NSNumber of 1.0", NSNumber(value: 1.0), "1"),
        Sample("NSNumber of an Int8", NSNumber(value: Int8(1)), "1"),
        Sample("Decimal", Decimal(1), "1"),
        Sample("String", "true", "true"),
    ]

    @Test("only real Booleans are written as words", arguments: booleans)
    func literalBooleans(_ sample: Sample<String>) {
        let pairs = URLEncoding(boolEncoding: .literal).queryComponents(fromKey: "k", value: sample.value())
        #expect(pairs.map(\.1) == [sample.expected])
    }

    @Test("values parsed from JSON and property lists are encoded like Swift's own")
    func encodesParsedValues() throws {
        let expected = "a=true&b=1&c=1&d=false&e=0&f%5B%5D=1&f%5B%5D=true&f%5B%5D=1.5&f%5B%5D="
        let json = #"{"a": true, "b": 1, "c": 1.0, "d": false, "e": 0, "f": [1, true, 1.5, null]}"#
        let parsed = try #require(JSONSerialization.jsonObject(with: Data(json.utf8)) as? Parameters)
        #expect(try query(parsed, URLEncoding(boolEncoding: .literal)) == expected)

        let list: Parameters = ["a": true, "b": 1, "c": 1.0, "d": false, "e": 0]
        let data = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
        let read = try #require(PropertyListSerialization.propertyList(from: data, format: nil) as? Parameters)
        #expect(try query(read, URLEncoding(boolEncoding: .literal)) == "a=true&b=1&c=1&d=false&e=0")
    }

    @Test("without brackets an array repeats its key, at every depth")
    func arraysWithoutBrackets() throws {
        let encoding = URLEncoding(arrayEncoding: .noBrackets)
        #expect(try query(["k": [1, [2, 3]] as [Any]], encoding) == "k=1&k=2&k=3")
        #expect(try query(["k": ["a": [1, 2]]], encoding) == "k%5Ba%5D=1&k%5Ba%5D=2")
    }

    @Test("an array nested as deep as JSON allows is encoded")
    func deepArray() {
        let pairs = URLEncoding(arrayEncoding: .noBrackets).queryComponents(fromKey: "k", value: nested(512))
        #expect(pairs.map(\.0) == ["k"])
    }

    @Test("encoded pairs are added to the given destination")
    func encodedPairs() throws {
        var query = try request("https://example.org/path?a=1", .post)
        try query.setPairs("b%20=2", .queryString)
        #expect(query.url?.query == "a=1&b%20=2" && query.httpBody == nil)
        try query.setPairs("", .httpBody)
        #expect(query.bodyText?.isEmpty == true && query.value(forHTTPHeaderField: "Content-Type") != nil)
    }

    @Test("the named encodings have their destinations")
    func namedEncodings() {
        #expect(URLEncoding.default.destination == .methodDependent)
        #expect(URLEncoding.methodDependent.destination == .methodDependent)
        #expect(URLEncoding.queryString.destination == .queryString)
        #expect(URLEncoding.httpBody.destination == .httpBody)
        #expect(URLEncoding().arrayEncoding == .brackets)
        #expect(URLEncoding().boolEncoding == .numeric)
    }
}
