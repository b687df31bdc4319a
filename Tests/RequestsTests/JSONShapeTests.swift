// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import Testing

@testable import CurlewRequests

@Suite(.timeLimit(.minutes(1)))
struct JSONShapeTests {
    private static let shape: [String: any Sendable] = ["id": NSNumber.self, "name": String.self]

    private func matches(_ json: String, _ shape: Any) throws -> Bool {
        JSONShape.matches(try JSONSerialization.jsonObject(with: Data(json.utf8), options: .fragmentsAllowed), shape)
    }

    @Test(arguments: [
        (#"{"id": 1, "name": "a"}"#, true),
        (#"{"id": 1, "name": "a", "more": []}"#, true),
        (#"{"id": true, "name": "a"}"#, true),
        (#"{"id": 1.5, "name": null}"#, true),
        (#"{"id": 1}"#, false),
        (#"{"id": "1", "name": "a"}"#, false),
        (#"{"id": 1, "name": {}}"#, false),
        (#"[]"#, false),
        (#"null"#, false),
    ])
    func `every member of a dictionary is required, and null matches a type`(_ json: String, _ isExpected: Bool) throws {
        #expect(try matches(json, Self.shape) == isExpected)
    }

    @Test(arguments: [
        (#"["a", "b"]"#, true),
        (#"[]"#, true),
        (#"["a", null]"#, false),
        (#"["a", 1]"#, false),
        (#"{}"#, false),
    ])
    func `every element of an array must match the first shape, and null does not match`(_ json: String, _ isExpected: Bool) throws {
        #expect(try matches(json, [String.self]) == isExpected)
    }

    @Test func `an empty array matches any array`() throws {
        #expect(try matches("[1, null, {}]", [Any]()))
        #expect(try !matches("1", [Any]()))
    }

    @Test(arguments: [(#"{"a": [{"b": 1}]}"#, true), (#"{"a": [{"b": "1"}]}"#, false), (#"{"a": null}"#, false), (#"{"a": "b"}"#, false)])
    func `shapes are nested, and a leaf in place of a container does not match`(_ json: String, _ isExpected: Bool) throws {
        #expect(try matches(json, ["a": [["b": Int.self]]]) == isExpected)
    }

    @Test func `an invalid shape matches nothing`() throws {
        #expect(try !matches("1", 1))
        #expect(try !matches(#""a""#, "a"))
        #expect(try matches("[1]", Any.self))
    }
}
