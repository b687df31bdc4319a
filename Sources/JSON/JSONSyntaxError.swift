// SPDX-License-Identifier: Apache-2.0

/// What is wrong with a text that is no JSON, or with a number that its type cannot hold.
///
/// Thrown as it is while values are decoded, as `JSONDecoder` does with its own: an `init(from:)` that catches `DecodingError`
/// must not mistake broken JSON for a missing key. The decoder makes a `DecodingError` of it where it leaves.
struct JSONSyntaxError: Error, CustomStringConvertible {
    enum Reason: UInt8 {
        case unexpectedCharacter, unexpectedEnd, tooDeep, invalidUTF8, invalidEscape, controlCharacter, invalidSurrogate
        case invalidNumber, numberNotRepresentable, encoding, tooLarge
    }

    let reason: Reason
    /// Where in the text, in bytes of its UTF-8 form.
    let offset: Int
    /// Where, in lines and columns from 1; known when the error leaves the decoder.
    var position: (line: Int, column: Int)?

    init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    var description: String {
        guard let position else { return text }
        return "\(text) around line \(position.line), column \(position.column)"
    }

    private var text: String {
        switch reason {
        case .unexpectedCharacter: "Unexpected character"
        case .unexpectedEnd: "Unexpected end of the text"
        case .tooDeep: "Too many nested arrays or dictionaries"
        case .invalidUTF8: "Invalid UTF-8 in a string"
        case .invalidEscape: "Invalid escape sequence"
        case .controlCharacter: "Unescaped control character"
        case .invalidSurrogate: "Unpaired surrogate"
        case .invalidNumber: "Malformed number"
        case .numberNotRepresentable: "Number that the type cannot represent"
        case .encoding: "Bytes that are not text in the detected encoding"
        case .tooLarge: "More than 4 GiB"
        }
    }
}

/// Why a value is not what was asked for. Containers make a `DecodingError` of it, as only they know the way to the value.
enum ValueFailure: Error {
    case isNull
    case isOfOtherType
    case invalid(JSONSyntaxError)
}
