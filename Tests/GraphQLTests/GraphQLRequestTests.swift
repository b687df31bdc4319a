// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import Testing

@testable import CurlewGraphQL

// A2.3
@Suite struct GraphQLRequestTests {
    private static let documents: [(String, String?, String?)] = [
        ("{ a }", nil, "query"), ("query { a }", nil, "query"), ("query A { a }", nil, "query A"),
        ("\u{FEFF}# mutation X { a }\n,, query # c\n A($a: [Int!] = [1, 2]) @live { a }", nil, "query A"),
        ("mutation B { a }", nil, "mutation B"), ("subscription { a }", nil, "subscription"),
        ("fragment mutation on A { a } query B { a }", nil, "query B"), ("query @mutation { a }", nil, "query"),
        ("query A { a } mutation B { b }", "A", "query A"), ("query A { a } mutation B { b }", "B", "mutation B"),
        ("query A { a } mutation B { b }", nil, nil), ("query A { a } mutation B { b }", "C", nil),
        ("query A { a(b: \"} mutation B {\") }", nil, "query A"), ("query A { a(b: \"\\\"} mutation B {\") }", nil, "query A"),
        ("query A { a(b: \"\"\" } \\\"\"\" mutation B { \" \"\" \"\"\") }", nil, "query A"),
        ("query A($s: String = \"\"\"\"\"\") { a }", nil, "query A"), ("query A { a(b: \"x\\\\\") } # } \" \n", nil, "query A"),
        ("\"\"\"a description\"\"\" query A { mutation { subscription } }", nil, "query A"), ("query A { a", nil, nil),
        ("query A } {", nil, nil),
        ("query A { a(b: \"x) }", nil, nil), ("query A { a(b: \"\"\"x\\) }", nil, nil), ("", nil, nil), ("nonsense", nil, nil),
        ("schema { query: Q }", nil, nil), ("scalar Date query A { a }", nil, nil), ("query\u{301} A { a }", nil, "query A"),
    ]

    @Test("a document's operation is found by its first words", arguments: documents)
    func operations(document: String, name: String?, expected: String?) {
        let request = GraphQLRequest(document, operationName: name)
        #expect(request.kind.map { ([$0.rawValue] + (request.name.map { [$0] } ?? [])).joined(separator: " ") } == expected, "\(document)")
    }

    private struct Variables: Encodable, Sendable {
        struct Part: Encodable, Sendable {
            let file: GraphQLUpload?
            let caption: String
        }

        let parts: [Part]
        let cover: GraphQLUpload
        let big = UInt64.max
    }

    private func parameters(_ request: GraphQLRequest, _ encoder: JSONEncoder = JSONEncoder()) throws -> GraphQLParameters {
        try GraphQLParameters(request, encoder, allowsUploads: true)
    }

    @Test func `parameters are a JSON object, and items of a query`() throws {
        var request = GraphQLRequest("query A { a(b: \"+\") }", operationName: "A", variables: ["b": 1, "a": "x/é", "c": [1.5]])
        request.extensions = ["k": .bool(true)]
        let parameters = try parameters(request)
        let json = try JSONDecoder().decode(JSONValue.self, from: parameters.json())
        #expect(
            json
                == .object([
                    "query": .string("query A { a(b: \"+\") }"), "operationName": .string("A"),
                    "variables": .object(["a": .string("x/é"), "b": .integer(1), "c": .array([.number(1.5)])]),
                    "extensions": .object(["k": .bool(true)]),
                ]))
        let query = try parameters.items()
        #expect(query["query"] == request.query && query["operationName"] == "A" && query["extensions"] == #"{"k":true}"#)
        #expect(query["variables"]?.hasPrefix(#"{"a":"#) == true)
        #expect(query.encoded.contains("%2B"))
        #expect(try String(decoding: self.parameters(GraphQLRequest("{ a }")).json(), as: UTF8.self) == #"{"query":"{ a }"}"#)
        #expect(try self.parameters(GraphQLRequest("{ a }", variables: nil as [String: Int]?)).variables == nil)
    }

    @Test func `files are null in the variables, and known by their places`() throws {
        let file = GraphQLUpload(data: Data("a".utf8), fileName: "a.txt")
        let variables = Variables(parts: [.init(file: nil, caption: "x"), .init(file: file, caption: "y")], cover: file)
        let parameters = try parameters(GraphQLRequest("mutation { a }", variables: variables))
        #expect(parameters.uploads.map(\.path).sorted() == ["variables.cover", "variables.parts.1.file"])
        let text = String(decoding: try #require(parameters.variables), as: UTF8.self)
        #expect(text.contains("18446744073709551615") && text.contains("\"file\":null"))
        let listed = try self.parameters(GraphQLRequest("mutation { a }", variables: ["files": [file, file]]))
        #expect(listed.uploads.map(\.path) == ["variables.files.0", "variables.files.1"])
    }

    @Test func `names of variables are sent as they are, and values as the encoder encodes them`() throws {
        struct Part: Encodable, Sendable { let aName = 1 }
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .secondsSince1970
        let variables: [String: any Encodable & Sendable] = [
            "firstName": "a", "someDate": Date(timeIntervalSince1970: 5), "aURL": URL(string: "http://a/b"), "none": nil as Int?,
            "parts": [Part()],
        ]
        let json = try #require(try parameters(GraphQLRequest("{ a }", variables: variables), encoder).variables)
        #expect(
            try JSONDecoder().decode(JSONValue.self, from: json)
                == .object([
                    "firstName": .string("a"), "someDate": .integer(5), "aURL": .string("http://a/b"), "none": .null,
                    "parts": .array([.object(["a_name": .integer(1)])]),
                ]))
    }

    @Test func `a file is known by its key's name, if that has a number too`() throws {
        struct Numbered: Encodable, Sendable {
            enum CodingKeys: Int, CodingKey { case files = 7 }
            let files: [GraphQLUpload]
        }
        let file = GraphQLUpload(data: Data("a".utf8), fileName: "a.txt")
        let parameters = try parameters(GraphQLRequest("mutation { a }", variables: Numbered(files: [file, file])))
        #expect(parameters.uploads.map(\.path) == ["variables.files.0", "variables.files.1"])
        #expect(parameters.variables == Data(#"{"files":[null,null]}"#.utf8))
    }

    @Test func `variables that can't be sent are refused`() {
        #expect {
            try parameters(GraphQLRequest("{ a }", variables: [1, 2]))
        } throws: {
            if case GraphQLClientError.invalidRequest(.variablesNotAnObject) = $0 { true } else { false }
        }
        #expect {
            try parameters(GraphQLRequest("{ a }", variables: ["a": Double.nan]))
        } throws: {
            if case CurlewError.parameterEncodingFailed(.jsonEncodingFailed, _) = $0 { true } else { false }
        }
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let file = GraphQLUpload(data: Data(), fileName: "a")
        #expect {
            try parameters(GraphQLRequest("mutation { a }", variables: ["aFile": file]), encoder)
        } throws: {
            if case GraphQLClientError.invalidRequest(.convertedKeys) = $0 { true } else { false }
        }
        #expect {
            try GraphQLParameters(GraphQLRequest("{ a }", variables: ["file": file]), JSONEncoder(), allowsUploads: false)
        } throws: {
            if case CurlewError.parameterEncodingFailed(.jsonEncodingFailed, _) = $0 { true } else { false }
        }
    }

    @Test func `texts show no variables`() {
        let request = GraphQLRequest("query Login { a(p: \"s3cret\") }", variables: ["password": "s3cret"])
        for text in ["\(request)", String(reflecting: request), "\(Mirror(reflecting: request).children.map { "\($0)" })"] {
            #expect(!text.contains("s3cret"), "\(text)")
            #expect(text.contains("Login"))
        }
    }
}
