// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(3))) struct CorpusTests {
    /// How many files, and how many places in each. `scripts/fuzz` changes more of them.
    private static let count = TestLength.value(8, long: 16)

    static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Corpus")

    @Test("the corpus of each fuzz target passes", arguments: FuzzTarget.all.map(\.name))
    func replay(name: String) throws {
        let target = try #require(FuzzTarget.named(name))
        let folder = Self.corpus.appendingPathComponent(name)
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        #expect(!files.isEmpty)
        for file in files {
            let input = [UInt8](try Data(readingFrom: file))
            #expect(throws: Never.self, "\(file.lastPathComponent)") { try target.check(input) }
        }
    }

    /// Targets whose input is no text.
    private static let binary: Set = [
        "cache-entry", "content-coding", "image-header", "json", "netlink", "operation-archive", "public-key", "websocket-frames",
    ]

    @Test("so does the corpus with marks after delimiters", arguments: FuzzTarget.all.map(\.name).filter { !binary.contains($0) })
    func marks(name: String) throws {
        let target = try #require(FuzzTarget.named(name))
        let folder = Self.corpus.appendingPathComponent(name)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().prefix(Self.count)
        for file in files {
            let input = [UInt8](try Data(readingFrom: folder.appendingPathComponent(file)))
            let delimiters = input.indices.filter { (0x20..<0x30).contains(input[$0]) || ":;<=>?@[\\]^_`{|}~\0".utf8.contains(input[$0]) }
            for mark in ["\u{301}", "\u{200D}", "\u{FE0F}", "\u{20DD}"] {
                for index in delimiters.prefix(Self.count) {
                    let changed = input[...index] + Array(mark.utf8) + input[(index + 1)...]
                    #expect(throws: Never.self, "\(file), \(mark.debugDescription) after byte \(index)") {
                        try target.check(Array(changed))
                    }
                }
                let all = input.indices.flatMap { delimiters.contains($0) ? [input[$0]] + Array(mark.utf8) : [input[$0]] }
                #expect(throws: Never.self, "\(file), \(mark.debugDescription) after all delimiters") { try target.check(all) }
            }
        }
    }

    @Test("small mutations of the corpus pass as well", arguments: FuzzTarget.all.map(\.name))
    func mutations(name: String) throws {
        let target = try #require(FuzzTarget.named(name))
        let folder = Self.corpus.appendingPathComponent(name)
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).prefix(6) {
            let input = [UInt8](try Data(readingFrom: file))
            for index in input.indices.prefix(Self.count) {
                for byte: UInt8 in [0, 10, 13, 32, 44, 59, 255] {
                    var changed = input
                    changed[index] = byte
                    #expect(throws: Never.self, "\(file.lastPathComponent), byte \(index) is \(byte)") { try target.check(changed) }
                }
                #expect(throws: Never.self) { try target.check(Array(input.prefix(index))) }
            }
        }
    }
}
