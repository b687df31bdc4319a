// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A UTF-8 text and its tape, in memory that it owns, because decoders and containers may outlive the call that created them.
final class JSONDocument {
    // Immutable, except for the tape's notes on objects: distinct keys, and the key to try first.
    let tape: JSONTape
    let options: JSONDecodingOptions
    /// In bytes.
    let length: Int

    /// Parses text in UTF-8, UTF-16 or UTF-32, with or without a byte order mark.
    convenience init(_ data: Data, _ options: JSONDecodingOptions) throws(JSONSyntaxError) {
        let mark = data.prefix(4)
        let encoding = TextEncoding(mark[...])
        let text = data.dropFirst(encoding.markLength)
        guard let other = encoding.encoding else {
            try self.init(copying: text, options)
            return
        }
        guard let string = String(bytes: text, encoding: other) else { throw JSONSyntaxError(.encoding, at: 0) }
        try self.init(copying: Data(string.utf8), options)
    }

    private init(copying text: Data, _ options: JSONDecodingOptions) throws(JSONSyntaxError) {
        length = text.count
        self.options = options
        // Offsets and indices are 32 bits wide.
        guard length < Int(UInt32.max) - JSONTape.padding else { throw JSONSyntaxError(.tooLarge, at: 0) }
        let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: length + JSONTape.padding)
        text.copyBytes(to: bytes, count: length)
        (bytes + length).initialize(repeating: 0, count: JSONTape.padding)
        var failure: JSONSyntaxError?
        let words = withUnsafeTemporaryAllocation(of: Int.self, capacity: JSONTokenizer.maximumDepth) { open in
            var tokenizer = JSONTokenizer(bytes, count: text.count, open: open)
            do throws(JSONSyntaxError) {
                try tokenizer.run(assumesTopLevelDictionary: options.assumesTopLevelDictionary)
            } catch {
                failure = error
            }
            return tokenizer.words
        }
        tape = JSONTape(bytes: UnsafePointer(bytes), words: words)
        if var failure {
            failure.position = position(of: failure.offset)
            throw failure
        }
    }

    deinit {
        tape.bytes.deallocate()
        tape.words.deallocate()
    }

    /// Returns the line and column of a byte, both counted from 1.
    func position(of offset: Int) -> (line: Int, column: Int) {
        var line = 1
        var column = 1
        for index in 0..<min(offset, length) {
            let byte = tape.bytes[index]
            let endsLine = byte == .lineFeed || byte == .carriageReturn && tape.bytes[index + 1] != .lineFeed
            line += endsLine ? 1 : 0
            column = endsLine ? 1 : column + 1
        }
        return (line, column)
    }
}

/// The encoding of a text, detected from its first bytes (RFC 4627, section 3) as Foundation detects it.
private struct TextEncoding {
    /// `nil` for UTF-8.
    private(set) var encoding: String.Encoding?
    private(set) var markLength = 0

    init(_ head: Data.SubSequence) {
        var bytes: [UInt8?] = head.map { $0 }
        bytes.append(contentsOf: repeatElement(nil, count: 4 - min(4, bytes.count)))
        switch (bytes[0], bytes[1], bytes[2], bytes[3]) {
        case (0, 0, 0xFE, 0xFF): (encoding, markLength) = (.utf32BigEndian, 4)
        case (0xFE, 0xFF, 0, 0): (encoding, markLength) = (.utf32LittleEndian, 4)
        case (0xFE, 0xFF, _, _): (encoding, markLength) = (.utf16BigEndian, 2)
        case (0xFF, 0xFE, _, _): (encoding, markLength) = (.utf16LittleEndian, 2)
        case (0xEF, 0xBB, 0xBF, _): markLength = 3
        case (0, 0, 0, let last?) where last != 0: encoding = .utf32BigEndian
        case (0, let second?, 0, let fourth?) where second != 0 && fourth != 0: encoding = .utf16BigEndian
        case (let first?, 0, 0, 0) where first != 0: encoding = .utf32LittleEndian
        case (let first?, 0, let third?, 0) where first != 0 && third != 0: encoding = .utf16LittleEndian
        // A single digit.
        case (0, let second?, nil, nil) where second != 0: encoding = .utf16BigEndian
        case (let first?, 0, nil, nil) where first != 0: encoding = .utf16LittleEndian
        default: break
        }
    }
}
