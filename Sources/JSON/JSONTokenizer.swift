// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Parses a text in one pass and writes its tape.
///
/// Checks the structure only. Escapes, UTF-8 and numbers are checked when they are decoded, so values that are never decoded may be
/// invalid, as with `JSONDecoder`, which also allows a trailing comma. Not recursive, so nesting takes no stack. The text is untrusted:
/// `Tests/FuzzTests` decodes arbitrary bytes.
struct JSONTokenizer {
    static let maximumDepth = 512

    private let start: UnsafePointer<UInt8>
    private let end: UnsafePointer<UInt8>
    private var position: UnsafePointer<UInt8>
    /// The tape; owned by the caller, which frees it.
    private(set) var words: UnsafeMutablePointer<UInt64>
    private var count = 0
    private var capacity: Int
    /// The containers around the innermost one, outermost first.
    private let open: UnsafeMutableBufferPointer<Int>
    private var depth = 0
    /// The innermost container and its closing bracket.
    private var container = 0
    private var closing: UInt8 = 0

    /// - Parameter open: room for ``maximumDepth`` indices.
    init(_ start: UnsafePointer<UInt8>, count: Int, open: UnsafeMutableBufferPointer<Int>) {
        self.start = start
        end = start + count
        position = start
        self.open = open
        // Typical texts have an entry for every 6 to 12 bytes.
        capacity = count / 6 + 16
        words = .allocate(capacity: capacity)
    }

    /// Writes the tape of the whole text.
    mutating func run(assumesTopLevelDictionary: Bool) throws(JSONSyntaxError) {
        append(TapeWord(.null))
        skipSpace()
        let isBare = assumesTopLevelDictionary && position.pointee != .openBrace
        if isBare {
            try scanBareDictionary()
        } else {
            try scanValue()
        }
        skipSpace()
        guard position == end else { throw failure(.unexpectedCharacter) }
    }

    /// Scans a value with everything nested in it.
    private mutating func scanValue() throws(JSONSyntaxError) {
        let outermost = depth
        repeat {
            if try !scanOpening() { continue }
            // After a value: continue with the next one, closing the containers that end here.
            while depth > outermost {
                if try scanSeparator() { break }
            }
        } while depth > outermost
    }

    /// Scans a scalar, an empty container, or the opening of another container.
    ///
    /// - Returns: whether the value is complete; if not, a nested value follows.
    @inline(__always)
    private mutating func scanOpening() throws(JSONSyntaxError) -> Bool {
        skipSpace()
        switch position.pointee {
        case .quote: try scanString()
        case .openBrace:
            try enter(.object)
            skipSpace()
            if position.pointee != .closeBrace {
                try scanKey()
                return false
            }
            leave()
        case .openBracket:
            try enter(.array)
            skipSpace()
            if position.pointee != .closeBracket { return false }
            leave()
        case .minus, .zero ... .nine: scanNumber()
        case UInt8(ascii: "t"): try scan("true", .true)
        case UInt8(ascii: "f"): try scan("false", .false)
        case UInt8(ascii: "n"): try scan("null", .null)
        default: throw failure(.unexpectedCharacter)
        }
        return true
    }

    /// Scans what follows a value in a container: a comma or the closing bracket.
    ///
    /// - Returns: whether another value follows.
    @inline(__always)
    private mutating func scanSeparator() throws(JSONSyntaxError) -> Bool {
        words[container &+ 1] &+= 1
        skipSpace()
        if position.pointee == .comma {
            position += 1
            skipSpace()
            if position.pointee != closing {
                if closing == .closeBrace { try scanKey() }
                return true
            }
        }
        guard position.pointee == closing else { throw failure(.unexpectedCharacter) }
        leave()
        return false
    }

    /// Scans the pairs of a dictionary without braces, up to the end of the text.
    private mutating func scanBareDictionary() throws(JSONSyntaxError) {
        try enter(.object, brace: 0)
        skipSpace()
        while position < end {
            try scanKey()
            try scanValue()
            words[container + 1] &+= 1
            skipSpace()
            guard position < end else { break }
            guard position.pointee == .comma else { throw failure(.unexpectedCharacter) }
            position += 1
            skipSpace()
        }
        position -= 1
        leave()
    }

    @inline(__always)
    private mutating func enter(_ kind: TapeWord.Kind, brace: Int = 1) throws(JSONSyntaxError) {
        guard depth < Self.maximumDepth else { throw failure(.tooDeep) }
        position += brace
        open[depth] = container
        depth &+= 1
        container = count
        closing = kind == .array ? .closeBracket : .closeBrace
        append(TapeWord(kind))
        append(TapeWord(bits: 0))
    }

    @inline(__always)
    private mutating func leave() {
        position += 1
        words[container] |= UInt64(truncatingIfNeeded: count) << 32
        words[container &+ 1] |= UInt64(truncatingIfNeeded: container &+ 2) << 32
        depth &-= 1
        container = open[depth]
        closing = TapeWord(bits: words[container]).kind == .array ? .closeBracket : .closeBrace
    }

    /// Scans a key and the colon after it.
    @inline(__always)
    private mutating func scanKey() throws(JSONSyntaxError) {
        let key = count
        try scanString()
        let plain = TapeWord.isPlain | TapeWord.isASCII
        if words[key] & (plain | TapeWord.isLong) != plain { words[container] |= TapeWord.hasComplexKeys }
        skipSpace()
        guard position.pointee == .colon else { throw failure(.unexpectedCharacter) }
        position += 1
    }

    @inline(__always)
    private mutating func scanString() throws(JSONSyntaxError) {
        guard position.pointee == .quote else { throw failure(.unexpectedCharacter) }
        let text = position + 1
        var next = text
        var all: UInt64 = 0
        var word = load(next)
        var stops = bytesThatEndPlainText(in: word)
        while stops == 0 {
            all |= word
            next += 8
            word = load(next)
            stops = bytesThatEndPlainText(in: word)
        }
        // The zero padding after the text stops the loop too.
        let rest = stops.trailingZeroBitCount & ~7
        all |= word & ((1 &<< UInt64(truncatingIfNeeded: rest)) &- 1)
        position = next + (rest >> 3)
        var flags = all & 0x8080_8080_8080_8080 == 0 ? TapeWord.isPlain | TapeWord.isASCII : TapeWord.isPlain
        if position.pointee != .quote {
            try skipEscapedText()
            flags = 0
        }
        appendText(.string, flags, from: text)
        position += 1
    }

    /// Advances to the closing quote of a string with escapes or control characters.
    private mutating func skipEscapedText() throws(JSONSyntaxError) {
        while position < end {
            switch position.pointee {
            case .quote: return
            case .backslash:
                position += 1
                guard position < end else { throw failure(.unexpectedEnd) }
                let escaped = position.pointee
                position += 1
                guard escaped == UInt8(ascii: "u") else { continue }
                guard end - position >= 4 else { throw JSONSyntaxError(.unexpectedEnd, at: end - start) }
                for offset in 0..<4 where position[offset] == .quote { throw failure(.invalidEscape) }
                position += 4
            default: position += 1
            }
        }
        throw failure(.unexpectedEnd)
    }

    @inline(__always)
    private mutating func scanNumber() {
        let text = position
        var next = text
        repeat { next += 1 } while next.pointee &- .zero < 10
        var flags = TapeWord.isInteger
        while isNumeric(next.pointee) {
            flags = 0
            next += 1
        }
        position = next
        appendText(.number, flags, from: text)
    }

    private mutating func scan(_ word: StaticString, _ kind: TapeWord.Kind) throws(JSONSyntaxError) {
        for offset in 0..<word.utf8CodeUnitCount {
            guard position.pointee == word.utf8Start[offset] else { throw failure(.unexpectedCharacter) }
            position += 1
        }
        append(TapeWord(kind))
    }

    // MARK: Bytes

    @inline(__always)
    private mutating func skipSpace() {
        while position.pointee <= .space {
            switch position.pointee {
            case .space, .lineFeed, .carriageReturn, .tab: position += 1
            default: return
            }
        }
    }

    /// Returns the error for the current position.
    @inline(never)
    private func failure(_ reason: JSONSyntaxError.Reason) -> JSONSyntaxError {
        JSONSyntaxError(position < end || reason != .unexpectedCharacter ? reason : .unexpectedEnd, at: position - start)
    }

    // MARK: The tape

    @inline(__always)
    private mutating func appendText(_ kind: TapeWord.Kind, _ flags: UInt64, from text: UnsafePointer<UInt8>) {
        let length = position - text
        guard length > TapeWord.maximumInlineLength else {
            append(TapeWord(kind, flags: flags, length: length, offset: text - start))
            return
        }
        append(TapeWord(kind, flags: flags | TapeWord.isLong, offset: text - start))
        append(TapeWord(bits: UInt64(truncatingIfNeeded: length)))
    }

    @inline(__always)
    private mutating func append(_ word: TapeWord) {
        if count == capacity { grow() }
        words[count] = word.bits
        count += 1
    }

    @inline(never)
    private mutating func grow() {
        let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: capacity * 2)
        larger.moveInitialize(from: words, count: count)
        words.deallocate()
        words = larger
        capacity *= 2
    }
}

/// Loads eight bytes, the first one lowest.
@inline(__always)
func load(_ bytes: UnsafePointer<UInt8>) -> UInt64 {
    UInt64(littleEndian: UnsafeRawPointer(bytes).loadUnaligned(as: UInt64.self))
}

/// Sets the high bit of the first quote, backslash or control character among eight bytes; higher bits are undefined.
@inline(__always)
private func bytesThatEndPlainText(in word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let quotes = word ^ (ones &* UInt64(UInt8.quote))
    let backslashes = word ^ (ones &* UInt64(UInt8.backslash))
    let found = (quotes &- ones) & ~quotes | (backslashes &- ones) & ~backslashes | (word &- ones &* 0x20) & ~word
    return found & (ones &* 0x80)
}

/// Whether a byte can occur in a number, at any position.
@inline(__always)
private func isNumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case .zero ... .nine, .minus, .plus, .dot, UInt8(ascii: "e"), UInt8(ascii: "E"): true
    default: false
    }
}

extension UInt8 {
    static let tab: UInt8 = 0x09
    static let lineFeed: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
    static let space: UInt8 = 0x20
    static let quote = UInt8(ascii: "\"")
    static let plus = UInt8(ascii: "+")
    static let comma = UInt8(ascii: ",")
    static let minus = UInt8(ascii: "-")
    static let dot = UInt8(ascii: ".")
    static let zero = UInt8(ascii: "0")
    static let nine = UInt8(ascii: "9")
    static let colon = UInt8(ascii: ":")
    static let openBracket = UInt8(ascii: "[")
    static let backslash = UInt8(ascii: "\\")
    static let closeBracket = UInt8(ascii: "]")
    static let openBrace = UInt8(ascii: "{")
    static let closeBrace = UInt8(ascii: "}")
}
