// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct ContentDecoderTests {
    /// Forty times "curlew ", then each byte value once.
    private static var text: Data { Data(String(repeating: "curlew ", count: 40).utf8) + Data(UInt8.min...UInt8.max) }
    private static let base64 = """
        Sy4tykktV0gepVApBkYmZhZWNnYOTi5uHl4+fgFBIWERUTFxCUkpaRlZOXkFRSVlFVU1dQ1NLW0dXT19A0MjYxNTM3MLSytrG1s7ewdHJ2cXVzd3D08vbx9f\
        P/+AwKDgkNCw8IjIqOiY2Lj4hMSk5JTUtPSMzKzsnNy8/ILCouKS0rLyisqq6prauvqGxqbmlta29o7Oru6e3r7+CRMnTZ4yddr0GTNnzZ4zd978BQsXLV6y\
        dNnyFStXrV6zdt36DRs3bd6yddv2HTt37d6zd9/+AwcPHT5y9NjxEydPnT5z9tz5CxcvXb5y9dr1Gzdv3b5z9979Bw8fPX7y9NnzFy9fvX7z9t37Dx8/ff7y\
        9dv3Hz9//f7z999/AA==
        """
    private static let brotliBase64 = """
        HxcC6J0JdqwvQG2B1wbOCQYjycrH4LyS805xYJ4pj/BZuh4bW9e9AxMLRYw0ZDblUinBqUuACUFU4NGHoA/dAUAIRlAMJ0iKZliOF0RJVlRNN0zLdlzPD8IoTtIs\
        L8qqbtquH8ZpXtZtP87rdn88X29tLDgfYspYauuD5uIt577/+f7+IAQjKIYTJEUzLMcLoiQrqqYbpmU7rucHYRQnaZYXZVU3bdcP4zQv67Yf53U/7+f7+wMIRlAM\
        J0iKZliOF0RJVlRNN0zLdlzPD8IoTtIsL8qqbtquH8ZpXtZtP87rft7vBw==
        """
    private static let zstdBase64 = """
        KLUv/QRofQgAdBBjdXJsZXcgAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElK\
        S0xNTk9QUVJTVFVWV1hZWltcXV5fYGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn+AgYKDhIWGh4iJiouMjY6PkJGSk5SVlpeYmZqbnJ2en6ChoqOkpaan\
        qKmqq6ytrq+wsbKztLW2t7i5uru8vb6/wMHCw8TFxsfIycrLzM3Oz9DR0tPU1dbX2Nna29zd3t/g4eLj5OXm5+jp6uvs7e7v8PHy8/T19vf4+fr7/P3+/wEADlKL\
        ETYZC38=
        """
    private static var rawDeflate: Data { Data(base64Encoded: base64) ?? Data() }
    private static var gzip: Data {
        Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 3]) + rawDeflate + Data([0x62, 0xBD, 0xF1, 0x80, 0x18, 0x02, 0x00, 0x00])
    }
    private static var zlib: Data { Data([0x78, 0xDA]) + rawDeflate + Data([0xD5, 0x4F, 0xEB, 0x51]) }

    struct Coded: Sendable, CustomTestStringConvertible {
        let name: String
        let coding: String
        // Not Data, in which the leak checker does not find memory retained by a static.
        let bytes: [UInt8]
        init(name: String, coding: String, bytes: Data) {
            (self.name, self.coding, self.bytes) = (name, coding, [UInt8](bytes))
        }
        var testDescription: String { name }
        var hasChecksum: Bool { name != "raw deflate" && !name.hasPrefix("brotli") }
    }

    static let valid = always + brotli + zstd
    #if Brotli
    private static let brotli = [
        Coded(name: "brotli", coding: "br", bytes: Data(base64Encoded: brotliBase64) ?? Data()),
        Coded(name: "brotli in deflate", coding: "BR, deflate", bytes: StoredDeflate.zlib(Data(base64Encoded: brotliBase64) ?? Data())),
    ]
    #else
    private static let brotli: [Coded] = []
    #endif
    #if Zstd
    private static let zstd = [Coded(name: "zstd", coding: "zstd", bytes: Data(base64Encoded: zstdBase64) ?? Data())]
    #else
    private static let zstd: [Coded] = []
    #endif
    private static let others = (brotli + zstd).filter { !$0.coding.contains(",") }
    private static let always = [
        Coded(name: "gzip", coding: "gzip", bytes: gzip), Coded(name: "x-gzip", coding: "X-GZip", bytes: gzip),
        Coded(name: "zlib", coding: "deflate", bytes: zlib), Coded(name: "raw deflate", coding: "deflate", bytes: rawDeflate),
        Coded(name: "stored gzip", coding: "gzip", bytes: StoredDeflate.gzip(text)),
        Coded(name: "stored zlib", coding: " identity , deflate ,", bytes: StoredDeflate.zlib(text)),
        Coded(name: "gzip in deflate", coding: "gzip, deflate", bytes: StoredDeflate.zlib(gzip)),
        Coded(name: "gzip in gzip in gzip", coding: "gzip,gzip,gzip", bytes: StoredDeflate.gzip(StoredDeflate.gzip(gzip))),
    ]

    /// Decodes a body received in pieces of the given size; the second result is the error at its end.
    private static func decode(_ bytes: Data, _ codings: String, piece size: Int = .max) throws -> (Data, ContentDecodingError?) {
        let decoder = try #require(try ContentDecoder(codings: codings))
        var output = Data()
        var rest = bytes[...]
        while !rest.isEmpty {
            try rest.prefix(size).withUnsafeBytes { piece in
                var input = piece
                while let step = try decoder.step(&input) {
                    if step.isDecoded { output.append(contentsOf: step.bytes) }
                }
                #expect(input.isEmpty && !decoder.hasMore)
            }
            rest = rest.dropFirst(size)
        }
        return (output, decoder.failureAtEnd)
    }

    @Test("every coding is decoded, for all sizes of pieces", arguments: valid)
    func decodes(coded: Coded) throws {
        for size in [1, 2, 3, 7, 100, .max] {
            let (output, failure) = try Self.decode(Data(coded.bytes), coded.coding, piece: size)
            #expect(output == Self.text)
            #expect(failure == nil)
        }
    }

    @Test("a body truncated at any byte is an error", arguments: valid)
    func truncated(coded: Coded) throws {
        for count in 1..<coded.bytes.count {
            let result = Result { try Self.decode(Data(coded.bytes.prefix(count)), coded.coding) }
            guard case .success(let (output, failure)) = result else {
                // The first two bytes distinguish a raw DEFLATE stream from a zlib one.
                Issue.record("\(count) bytes: \(result)")
                continue
            }
            #expect(failure?.kind == .decoding, "\(count) of \(coded.bytes.count) bytes")
            #expect(Self.text.starts(with: output))
        }
    }

    @Test("a wrong byte in a checksum or a block is an error", arguments: valid.filter { $0.hasChecksum })
    func corrupt(coded: Coded) throws {
        for index in [coded.bytes.count - 1, coded.bytes.count - 4, coded.bytes.count / 2] {
            var bytes = Data(coded.bytes)
            bytes[index] ^= 0x55
            let result = Result { try Self.decode(bytes, coded.coding) }
            switch result {
            case .success(let (_, failure)): #expect(failure != nil, "byte \(index)")
            case .failure(let error): #expect((error as? ContentDecodingError)?.kind == .decoding)
            }
        }
    }

    @Test("an empty body needs no decoding", arguments: ["gzip", "deflate", "gzip, deflate"])
    func empty(codings: String) throws {
        let (output, failure) = try Self.decode(Data(), codings)
        #expect(output.isEmpty)
        #expect(failure == nil)
    }

    @Test("gzip members are concatenated; padding after the last is skipped", arguments: [1, 5, 309, .max])
    func members(size: Int) throws {
        let (output, failure) = try Self.decode(
            Self.gzip + Self.gzip + StoredDeflate.gzip(Self.text) + Data(count: 700), "gzip", piece: size)
        #expect(output == Self.text + Self.text + Self.text)
        #expect(failure == nil)
        #expect(try Self.decode(Self.gzip + Self.gzip.dropLast(), "gzip", piece: size).1 != nil)
    }

    @Test("a member that exactly fills the output buffer does not hide the next one", arguments: [32_767, 32_768, 65_536])
    func fullBuffer(count: Int) throws {
        let zeros = StoredDeflate.gzip(Data(count: count))
        let (output, failure) = try Self.decode(zeros + Self.gzip, "gzip", piece: zeros.count)
        #expect(output == Data(count: count) + Self.text)
        #expect(failure == nil)
    }

    @Test("bytes after a zlib stream are skipped")
    func behindZlib() throws {
        let (output, failure) = try Self.decode(Self.zlib + Data([1, 2, 3]), "deflate", piece: 50)
        #expect(output == Self.text)
        #expect(failure == nil)
    }

    @Test("bytes after a brotli stream, or after a zstd frame, are an error unless they are a frame", arguments: others, [50, .max])
    func behindOthers(coded: Coded, size: Int) {
        #expect(throws: ContentDecodingError.self) {
            if let failure = try Self.decode(Data(coded.bytes) + Data("behind".utf8), coded.coding, piece: size).1 { throw failure }
        }
    }

    @Test("a stream that needs a preset dictionary is an error")
    func dictionary() {
        #expect(throws: ContentDecodingError.self) { try Self.decode(Data([0x78, 0xBB, 1, 2, 3, 4, 5, 6]), "deflate") }
    }

    @Test(
        "a body without codings or with an unknown one is not decoded",
        arguments: [
            "", "identity", " , identity ,", "Identity", "none", "identity;q=1", "\"gzip\"", "utf-8", "aws-chunked", "compress", "exi",
            "g z i p", "gzip, aws-chunked", "aws-chunked, gzip", "gzip, none", "gzip,gzip,gzip,gzip,gzip,gzip,none",
        ])
    func leftAlone(codings: String) throws {
        #expect(try ContentDecoder(codings: codings) == nil)
        #expect(!ContentDecoder.knows(codings))
    }

    @Test(
        "known codings are recognized case-insensitively",
        arguments: ["gzip", "X-GZip", "gzip, identity", "gzip,\tDeflate"])
    func known(codings: String) throws {
        #expect(try ContentDecoder(codings: codings) != nil)
        #expect(ContentDecoder.knows(codings))
    }

    @Test("more than three codings are refused, and named, the first eight of them")
    func tooMany() {
        let error = #expect(throws: ContentDecodingError.self) { try ContentDecoder(codings: "gzip, deflate,gzip,X-GZIP") }
        #expect(error?.kind == .decoding)
        #expect(error?.message == "4 content codings, at most 3 are decoded: gzip, deflate, gzip, x-gzip")
        let many = #expect(throws: ContentDecodingError.self) {
            try ContentDecoder(codings: [String](repeating: "gzip", count: 10_000).joined(separator: ","))
        }
        #expect(many?.message.hasSuffix("gzip, …") == true && many?.message.utf8.count ?? 0 < 200)
    }

    private static func body(_ codings: String, expansion: Int?) throws -> BodyDecoder {
        let head = ResponseHead(statusCode: 200, headers: ["Content-Encoding": codings])
        return try #require(try BodyDecoder(for: head, maximumExpansion: expansion))
    }

    @Test("decoding stops when the receiver cancels")
    func stops() throws {
        var decoder = try Self.body("gzip", expansion: nil)
        var slice = DecodingSlice()
        var calls = 0
        let ending = try StoredDeflate.gzip(Data(count: 200_000)).withUnsafeBytes { bytes in
            try decoder.decode(bytes, received: Int64(bytes.count), &slice) { _ in
                calls += 1
                return .cancel
            }
        }
        #expect(ending == .cancelled)
        #expect(calls == 1)
    }

    @Test("an interrupted piece is continued where it was, also if it is given with more, or in parts", arguments: [1, 2, 3])
    func interrupted(layers: Int) throws {
        var bytes = GeneratedBody().data(count: 300_000) + Data(count: 300_000)
        let expected = bytes
        for _ in 0..<layers { bytes = try Deflater.compress(bytes, as: .gzip, level: 6) }
        let codings = [String](repeating: "gzip", count: layers).joined(separator: ",")
        for (first, second) in [(100_000, 100_000), (100_000, 200_000), (200_000, 150_000)] {
            var decoder = try Self.body(codings, expansion: nil)
            var slice = DecodingSlice()
            var output = Data()
            var interruptions = 0
            func give(_ range: Range<Int>) throws -> BodyDecoder.Ending {
                try bytes[range].withUnsafeBytes { piece in
                    try decoder.decode(piece, received: Int64(range.upperBound), &slice) { decoded in
                        output.append(contentsOf: decoded)
                        return .pause
                    }
                }
            }
            // The piece is given again until it is decoded, the first time with another length.
            var start = 0
            var size = first
            while start < bytes.count {
                let range = start..<min(start + size, bytes.count)
                if try give(range) == .interrupted { interruptions += 1 } else { start = range.upperBound }
                size = second
            }
            #expect(output == expected)
            #expect(interruptions > 10)
        }
    }

    @Test("a step takes little input, and a slice whose time is used up ends after one: what a byte costs is the peer's choice")
    func smallSteps() throws {
        let bytes = StoredDeflate.gzip(GeneratedBody().data(count: 100_000))
        var decoder = try Self.body("gzip", expansion: nil)
        // It was not begun, so that it has no time.
        var slice = DecodingSlice()
        var sizes: [Int] = []
        try bytes.withUnsafeBytes { piece in
            var ending = BodyDecoder.Ending.interrupted
            while ending == .interrupted {
                var size = 0
                ending = try decoder.decode(piece, received: Int64(bytes.count), &slice) { decoded in
                    size += decoded.count
                    return .proceed
                }
                sizes.append(size)
            }
        }
        #expect(sizes.reduce(0, +) == 100_000)
        #expect(sizes.allSatisfy { $0 <= 4096 })
    }

    #if Brotli
    @Test("a step that fills a window of brotli uses up a slice, also if the body is cancelled or corrupt after it")
    func longStep() throws {
        let window = BrotliWindows.body(1)
        for (bytes, action) in [(window, ReceiveAction.proceed), (window, .cancel), (BrotliWindows.corrupt, .proceed)] {
            var decoder = try Self.body("br", expansion: nil)
            var slice = DecodingSlice()
            slice.begin()
            #expect(slice.hasBegun && !slice.isOver)
            var size = 0
            let result = Result {
                try bytes.withUnsafeBytes { piece in
                    try decoder.decode(piece, received: Int64(piece.count), &slice) { decoded in
                        size += decoded.count
                        return action
                    }
                }
            }
            #expect(slice.isOver)
            switch result {
            case .success(let ending): #expect(ending == (action == .cancel ? .cancelled : .interrupted) && size == 32 << 10)
            case .failure(let error): #expect(bytes == BrotliWindows.corrupt && (error as? ContentDecodingError)?.kind == .decoding)
            }
        }
        #expect(try Self.decode(Data(BrotliWindows.body(2)), "br").0.count == 32 << 20)
    }
    #endif

    @Test("input that all stages together take without a byte of the body is no progress, also if it comes from a stage")
    func innerSilence() throws {
        // Padding after a member without contents, which itself is a hundredth of it.
        let bytes = try Deflater.compress(StoredDeflate.gzip(Data()) + Data(count: 1 << 20), as: .gzip, level: 9)
        var decoder = try Self.body("gzip, gzip", expansion: nil)
        var slice = DecodingSlice()
        try bytes.withUnsafeBytes { piece in
            while try decoder.decode(piece, received: Int64(bytes.count), &slice, { _ in .proceed }) == .interrupted {}
        }
        #expect(bytes.count < 64 << 10)
        #expect(!decoder.isProgressing)
    }

    @Test("the output of every stage counts as expansion, also if the body is empty in the end")
    func innerExpansion() throws {
        // A gzip member without contents, followed by zeros, which are padding.
        let zeros = try Deflater.compress(Data(count: 32 << 20), as: .gzip, level: 9)
        let inner = try Deflater.compress(StoredDeflate.gzip(Data()), as: .gzip, level: 9) + zeros
        let bytes = try Deflater.compress(inner, as: .gzip, level: 9)
        var slice = DecodingSlice()
        var decoder = try Self.body("gzip, gzip, gzip", expansion: 256)
        let error = #expect(throws: ContentDecodingError.self) {
            try bytes.withUnsafeBytes { piece in
                while try decoder.decode(piece, received: Int64(bytes.count), &slice, { _ in .proceed }) == .interrupted {}
            }
        }
        #expect(error?.kind == .tooLarge)
    }
}
