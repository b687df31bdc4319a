// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct DeflaterTests {
    private func inflate(_ bytes: Data, _ coding: InflateDecoder.Coding) throws -> Data {
        let decoder = InflateDecoder(coding)
        var output = Data()
        try bytes.withUnsafeBytes { bytes in
            var input = bytes
            while !input.isEmpty || decoder.hasMore { output.append(contentsOf: try decoder.step(&input)) }
        }
        #expect(decoder.failureAtEnd == nil)
        return output
    }

    @Test("compressed bytes decompress to the same", arguments: [0, 1, 1000, 65_536, 3_000_000], [Deflater.Format.zlib, .gzip])
    func roundTrip(_ count: Int, _ format: Deflater.Format) throws {
        for bytes in [GeneratedBody().data(count: count), Data(repeating: 7, count: count)] {
            for level in [1, 6, 9] {
                let compressed = try Deflater.compress(bytes, as: format, level: level)
                #expect(try inflate(compressed, format == .gzip ? .gzip : .deflate) == bytes)
            }
        }
    }

    @Test("the formats are those of RFC 1950 and RFC 1952") func formats() throws {
        let zlib = try Deflater.compress(Data("curlew".utf8), as: .zlib, level: 6)
        #expect(zlib[0] == 0x78)
        let header = Int(zlib[0]) * 256 + Int(zlib[1])
        #expect(header % 31 == 0)
        let gzip = try Deflater.compress(Data("curlew".utf8), as: .gzip, level: 6)
        #expect(gzip.prefix(9) == Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0]))
        #expect(try Deflater.compress(Data("curlew".utf8), as: .gzip, level: 6) == gzip)
    }

    @Test("the result is smaller, and levels are clamped") func levels() throws {
        let text = Data(String(repeating: "A curlew calls at dusk. ", count: 1000).utf8)
        #expect(try Deflater.compress(text, as: .gzip, level: 1).count < text.count / 20)
        #expect(try Deflater.compress(text, as: .zlib, level: 100) == Deflater.compress(text, as: .zlib, level: 9))
        #expect(try Deflater.compress(text, as: .zlib, level: -1) == Deflater.compress(text, as: .zlib, level: 1))
    }

    @Test("a slice is compressed from its own start") func slices() throws {
        let bytes = Data("0123456789".utf8)
        #expect(try inflate(Deflater.compress(bytes[3..<7], as: .gzip, level: 6), .gzip) == Data("3456".utf8))
    }
}
