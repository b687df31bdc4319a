// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1))) struct CorpusTests {
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

    @Test("small mutations of the corpus pass as well", arguments: FuzzTarget.all.map(\.name))
    func mutations(name: String) throws {
        let target = try #require(FuzzTarget.named(name))
        let folder = Self.corpus.appendingPathComponent(name)
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).prefix(6) {
            let input = [UInt8](try Data(readingFrom: file))
            for index in input.indices.prefix(24) {
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
