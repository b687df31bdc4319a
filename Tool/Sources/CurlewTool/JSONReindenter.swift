// SPDX-License-Identifier: Apache-2.0

/// Formats JSON text (RFC 8259) with line breaks and indentation, and changes nothing else: the order of names, the digits of numbers and
/// the escapes in strings are kept.
///
/// Processes the text piece by piece. Text that turns out to be invalid is returned unchanged, so there is no output before the end. So is text
/// whose indentation takes too much memory: at 500 levels that of each digit has a thousand bytes.
struct JSONReindenter {
    private enum Expected {
        case value
        case valueOrEnd
        case nameOrEnd
        case name
        case colon
        case commaOrEnd
        case nothing
    }

    private enum Number {
        case sign
        case zero
        case integer
        case point
        case fraction
        case exponent
        case exponentSign
        case exponentDigits

        var isComplete: Bool {
            switch self {
            case .zero, .integer, .fraction, .exponentDigits: true
            case .sign, .point, .exponent, .exponentSign: false
            }
        }

        /// Returns the state after another byte of the number; `nil` if the number ends before it.
        func next(_ byte: UInt8) -> Number? {
            let isDigit = byte.isASCIIDigit
            switch (self, byte) {
            case (.sign, UInt8(ascii: "0")): return .zero
            case (.sign, _) where isDigit, (.integer, _) where isDigit: return .integer
            case (.zero, UInt8(ascii: ".")), (.integer, UInt8(ascii: ".")): return .point
            case (.point, _) where isDigit, (.fraction, _) where isDigit: return .fraction
            case (.zero, UInt8(ascii: "e")), (.integer, UInt8(ascii: "e")), (.fraction, UInt8(ascii: "e")): return .exponent
            case (.zero, UInt8(ascii: "E")), (.integer, UInt8(ascii: "E")), (.fraction, UInt8(ascii: "E")): return .exponent
            case (.exponent, UInt8(ascii: "+")), (.exponent, UInt8(ascii: "-")): return .exponentSign
            case (.exponent, _) where isDigit, (.exponentSign, _) where isDigit, (.exponentDigits, _) where isDigit:
                return .exponentDigits
            default: return nil
            }
        }
    }

    /// The current token.
    private enum Token {
        case none
        case string
        case escape
        case unicode(digitsLeft: Int)
        case number(Number)
        case literal(rest: ArraySlice<UInt8>)
    }

    private enum Container {
        case object
        case array
    }

    /// Deeper text is not formatted, because each level adds indentation to each of its lines.
    private static let maximumDepth = 512

    private let maximumOutput: Int
    /// Whether text is kept, not only checked.
    private let keepsText: Bool
    private var source: [UInt8] = []
    private var output: [UInt8] = []
    private var containers: [Container] = []
    private var expected = Expected.value
    private var token = Token.none
    /// Whether what was appended can't be the beginning of JSON.
    private(set) var isInvalid = false

    /// - Parameter maximumOutput: the size of the formatted text, in bytes, beyond which it is not formatted.
    init(maximumOutput: Int = 256 << 20) {
        self.maximumOutput = maximumOutput
        keepsText = true
    }

    private init(keepsText: Bool) {
        maximumOutput = 0
        self.keepsText = keepsText
    }

    /// The number of bytes of input.
    var count: Int { source.count }

    /// The unchanged input.
    var original: [UInt8] { source }

    /// Whether the bytes are a single JSON text.
    static func isValid(_ bytes: some Sequence<UInt8>) -> Bool {
        var text = JSONReindenter(keepsText: false)
        text.append(bytes)
        text.endNumber()
        return text.isComplete
    }

    /// Appends a piece, split anywhere.
    mutating func append(_ bytes: some Sequence<UInt8>) {
        for byte in bytes {
            if keepsText { source.append(byte) }
            guard !isInvalid else { continue }
            isInvalid = !consume(byte) || output.count > maximumOutput
            if isInvalid { output = [] }
        }
    }

    /// Returns the formatted text, without a trailing line break; the unchanged input if it is not JSON.
    mutating func finish() -> [UInt8] {
        endNumber()
        return isComplete ? output : source
    }

    private var isComplete: Bool {
        guard !isInvalid, case .nothing = expected, case .none = token else { return false }
        return true
    }

    private mutating func endNumber() {
        if case .number(let number) = token, number.isComplete { endValue() }
    }

    // MARK: Bytes

    private mutating func put(_ byte: UInt8) {
        if keepsText { output.append(byte) }
    }

    /// Processes a byte. Returns `false` if the text is not JSON.
    private mutating func consume(_ byte: UInt8) -> Bool {
        switch token {
        case .none: return consumeBetweenTokens(byte)
        case .string: return consumeInString(byte)
        case .escape:
            put(byte)
            token = byte == UInt8(ascii: "u") ? .unicode(digitsLeft: 4) : .string
            return #"u"\/bfnrt"#.utf8.contains(byte)
        case .unicode(let left):
            put(byte)
            token = left > 1 ? .unicode(digitsLeft: left - 1) : .string
            return "0123456789abcdefABCDEF".utf8.contains(byte)
        case .number(let number):
            guard let next = number.next(byte) else {
                guard number.isComplete else { return false }
                endValue()
                return consumeBetweenTokens(byte)
            }
            put(byte)
            token = .number(next)
            return true
        case .literal(let rest):
            guard byte == rest.first else { return false }
            put(byte)
            if rest.count > 1 { token = .literal(rest: rest.dropFirst()) } else { endValue() }
            return true
        }
    }

    private mutating func consumeInString(_ byte: UInt8) -> Bool {
        put(byte)
        switch byte {
        case UInt8(ascii: "\\"): token = .escape
        case UInt8(ascii: "\"") where expected == .colon: token = .none
        case UInt8(ascii: "\""): endValue()
        default: return byte >= 0x20
        }
        return true
    }

    private mutating func consumeBetweenTokens(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): return true
        case UInt8(ascii: ","): return consumeComma()
        case UInt8(ascii: ":"): return consumeColon()
        case UInt8(ascii: "]"): return close(.array, byte, ifEmpty: .valueOrEnd)
        case UInt8(ascii: "}"): return close(.object, byte, ifEmpty: .nameOrEnd)
        case UInt8(ascii: "\"") where expected == .name || expected == .nameOrEnd:
            beginLine()
            put(byte)
            token = .string
            expected = .colon
            return true
        default: return beginValue(byte)
        }
    }

    private mutating func consumeComma() -> Bool {
        guard expected == .commaOrEnd else { return false }
        put(UInt8(ascii: ","))
        expected = containers.last == .object ? .name : .value
        return true
    }

    private mutating func consumeColon() -> Bool {
        guard expected == .colon else { return false }
        put(UInt8(ascii: ":"))
        put(UInt8(ascii: " "))
        expected = .value
        return true
    }

    private mutating func beginValue(_ byte: UInt8) -> Bool {
        guard expected == .value || expected == .valueOrEnd else { return false }
        if containers.last == .array { beginLine() }
        put(byte)
        switch byte {
        case UInt8(ascii: "{"): return open(.object, .nameOrEnd)
        case UInt8(ascii: "["): return open(.array, .valueOrEnd)
        case UInt8(ascii: "\""):
            token = .string
            // A string is a name only if a colon is expected after it.
            expected = .value
        case UInt8(ascii: "-"): token = .number(.sign)
        case UInt8(ascii: "0"): token = .number(.zero)
        case UInt8(ascii: "1")...UInt8(ascii: "9"): token = .number(.integer)
        case UInt8(ascii: "t"): token = .literal(rest: Array("rue".utf8)[...])
        case UInt8(ascii: "f"): token = .literal(rest: Array("alse".utf8)[...])
        case UInt8(ascii: "n"): token = .literal(rest: Array("ull".utf8)[...])
        default: return false
        }
        return true
    }

    private mutating func endValue() {
        token = .none
        expected = containers.isEmpty ? .nothing : .commaOrEnd
    }

    private mutating func open(_ container: Container, _ next: Expected) -> Bool {
        containers.append(container)
        expected = next
        return containers.count <= Self.maximumDepth
    }

    private mutating func close(_ container: Container, _ byte: UInt8, ifEmpty empty: Expected) -> Bool {
        guard containers.last == container, expected == .commaOrEnd || expected == empty else { return false }
        containers.removeLast()
        if expected == .commaOrEnd { beginLine() }
        put(byte)
        endValue()
        return true
    }

    private mutating func beginLine() {
        guard keepsText else { return }
        output.append(UInt8(ascii: "\n"))
        output.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * containers.count))
    }
}
