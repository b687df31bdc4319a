// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewJSON
import CurlewTestSupport
import Foundation
import Testing

/// Mutated texts: both decoders have the same outcome, and neither traps.
@Suite(.timeLimit(.minutes(1)))
struct MutationTests {
    private struct Item: Decodable {
        var id: Int, name: String, price: Double, tags: [String], isNew: Bool, parent: Parent?, at: Date?, note: String?, big: UInt64?,
            ratio: Float?
        struct Parent: Decodable { var id: Int8, url: URL? }
    }

    private static let seeds = [
        #"[{"id": 1, "name": "Mühle \u00e9\n", "price": 12.50, "tags": ["a", "b\"c"], "isNew": true, "parent": {"id": -7, "url": "https://example.org/x"}, "at": 1.5e3}]"#,
        #"[{"tags":[],"price":-0.125e-3,"id":-9007199254740993,"note":null,"name":"😀 \ud83d\ude00","isNew":false,"big":18446744073709551615,"ratio":0.1,"extra":[[{}]]}]"#,
        #"[[1,2,[3.25,[null,[-4e2]]]],[],null,17]"#,
        #"{"a":1,"b":{"a":[1,"x",{"a":null}]},"c":"\u0041","é":[true]}"#,
    ]
    private static let interesting =
        Array("\"\\{}[]:,0123456789-+.eE \n\ttrufalsn\u{1}".utf8) + [0, 0x80, 0xC3, 0xED, 0xA0, 0xF0, 0x9F, 0xFF]

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `mutated texts`(_ seed: UInt64) {
        var random = SplitMix(state: seed)
        let (fast, foundation) = (Options().fast, Options().foundation)
        for _ in 0..<1500 {
            var text = Array((Self.seeds.randomElement(using: &random) ?? "").utf8)
            for _ in 0..<Int.random(in: 1...3, using: &random) { Self.mutate(&text, &random) }
            let data = Data(text)
            compare([Item].self, data, fast: fast, foundation: foundation)
            compare(Tree.self, data, fast: fast, foundation: foundation)
            compare(Peeker.self, data, fast: fast, foundation: foundation)
        }
    }

    /// Applies one mutation: a byte changed, inserted, removed or swapped, a range removed or doubled, or the end truncated.
    private static func mutate(_ text: inout [UInt8], _ random: inout SplitMix) {
        guard let index = text.indices.randomElement(using: &random) else { return }
        let end = min(text.count, index + Int.random(in: 1...12, using: &random))
        switch Int.random(in: 0..<7, using: &random) {
        case 0: text[index] = interesting.randomElement(using: &random) ?? 0
        case 1: text.insert(interesting.randomElement(using: &random) ?? 0, at: index)
        case 2: text.remove(at: index)
        case 3: text.swapAt(index, end - 1)
        case 4: text.removeSubrange(index..<end)
        case 5: text.insert(contentsOf: text[index..<end], at: index)
        default: text.removeSubrange(index...)
        }
    }
}
