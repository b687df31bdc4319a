// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewJSON
import CurlewTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1)))
struct FastJSONDecoderTests {
    @Test func `conforms to DataDecoder`() throws {
        let decoders: [any DataDecoder] = [JSONDecoder(), FastJSONDecoder()]
        for decoder in decoders { #expect(try decoder.decode([Int].self, from: Data("[1, 2]".utf8)) == [1, 2]) }
    }

    @Test func `malformed text is located by line and column`() {
        let text = Data("{\n  \"a\": 1,\n  \"b\": x\n}".utf8)
        #expect {
            try FastJSONDecoder().decode([String: Int].self, from: text)
        } throws: { error in
            guard case DecodingError.dataCorrupted(let context) = error else { return false }
            return context.underlyingError.map { "\($0)" } == "Unexpected character around line 3, column 8"
        }
    }

    /// Foundation 6.3 mistakes the exponent's digits for the number's and rejects these as too small.
    @Test(arguments: ["0e5", "-0.000e9", "0E-400", "0e999999999999999999999"])
    func `zero is zero with any exponent`(_ text: String) throws {
        #expect(try FastJSONDecoder().decode(Double.self, from: Data(text.utf8)) == 0)
        #expect(try FastJSONDecoder().decode(Float.self, from: Data(text.utf8)) == 0)
    }

    @Test(arguments: [1, 512, 513, 100_000])
    func `nesting is limited to 512 levels`(_ depth: Int) {
        let texts = [
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth),
            // Foundation 6.3 traps if the text ends after the 513th bracket.
            String(repeating: "[", count: depth) + " ",
            String(repeating: #"{"a":"#, count: depth) + "1" + String(repeating: "}", count: depth),
            String(repeating: #"{"a":["#, count: depth / 2) + String(repeating: "]}", count: depth / 2),
        ]
        compare(Tree.self, texts)
        compare(Int.self, texts)
        #expect(throws: DecodingError.self) { try FastJSONDecoder().decode(Tree.self, from: Data(texts[1].utf8.dropLast())) }
    }

    @Test func `objects with many keys`() {
        for count in [63, 64, 65, 1000] {
            let pairs = (0..<count).map { #""key number \#($0)": \#($0)"# }
            for text in [pairs, pairs.reversed(), pairs + [#""key number 3": 0"#]].map({ "{\($0.joined(separator: ","))}" }) {
                compare([String: Int].self, [text])
                compare(Wide.self, [text])
            }
        }
    }

    private struct Wide: Decodable {
        let first: Int, last: Int?
        enum CodingKeys: String, CodingKey {
            case first = "key number 3"
            case last = "key number 62"
        }
    }

    /// Strings whose length does not fit into 24 bits.
    @Test func `strings of many megabytes`() throws {
        let long = String(repeating: "x", count: 17 << 20)
        let array = try FastJSONDecoder().decode(Mixed.self, from: Data(#"["\#(long)", 1]"#.utf8))
        #expect(array.text == long && array.number == 1)
        #expect(try FastJSONDecoder().decode(Two.self, from: Data(#"{"\#(long)": [], "a": 1, "b": 2}"#.utf8)).b == 2)
    }

    /// A short text reserves no memory for many large elements.
    @Test func `arrays of large elements`() {
        let text = "[" + String(repeating: "1,", count: 5000)
        compare([Large].self, [text + "2]", text + "null]", text + #""x"]"#])
    }

    private struct Large: Decodable {
        var first: Int
        var others: (Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int, Int) = (
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
        )
        init(from decoder: any Decoder) throws { first = try decoder.singleValueContainer().decode(Int.self) }
    }

    private struct Mixed: Decodable {
        let text: String, number: Int
        init(from decoder: any Decoder) throws {
            var container = try decoder.unkeyedContainer()
            text = try container.decode(String.self)
            number = try container.decode(Int.self)
        }
    }

    @Test func `a stored decoder still decodes`() throws {
        struct Keeper: Decodable {
            let decoder: any Decoder
            init(from decoder: any Decoder) { self.decoder = decoder }
        }
        let decoder = try FastJSONDecoder().decode(Keeper.self, from: Data(#"{"a": 1, "b": [2]}"#.utf8)).decoder
        #expect(try Point?(from: FastJSONDecoder().decode(Keeper.self, from: Data("null".utf8)).decoder) == nil)
        let container = try decoder.container(keyedBy: AnyKey.self)
        #expect(try container.decode(Int.self, forKey: AnyKey("a")) == 1)
        #expect(try container.decode([Int].self, forKey: AnyKey("b")) == [2])
    }

    @Test func `Double and Float values round-trip`() throws {
        var random = SplitMix(state: 1)
        let doubles = (0..<2000).map { _ in Double(bitPattern: random.next()) }.filter(\.isFinite)
        #expect(try FastJSONDecoder().decode([Double].self, from: Data("\(doubles)".utf8)) == doubles)
        let floats = (0..<2000).map { _ in Float(bitPattern: UInt32(truncatingIfNeeded: random.next())) }.filter(\.isFinite)
        #expect(try FastJSONDecoder().decode([Float].self, from: Data("\(floats)".utf8)) == floats)
    }
}
