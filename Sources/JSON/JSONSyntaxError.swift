// SPDX-License-Identifier: Apache-2.0

/// Malformed JSON, or a number that its type cannot represent.
///
/// Thrown unwrapped during decoding, as `JSONDecoder` does with its own error: an `init(from:)` that catches `DecodingError` must not
/// mistake malformed JSON for a missing key. ``FastJSONDecoder`` wraps it in a `DecodingError` before throwing to the caller.
struct JSONSyntaxError: Error, CustomStringConvertible {
    enum Reason: UInt8 {
        case unexpectedCharacter, unexpectedEnd, tooDeep, invalidUTF8, invalidEscape, controlCharacter, invalidSurrogate
        case invalidNumber, numberNotRepresentable, encoding, tooLarge
    }

    let reason: Reason
    /// The byte offset in the text's UTF-8 form.
    let offset: Int
    /// Line and column, counted from 1; set when the error leaves the decoder.
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
        case .numberNotRepresentable: "Number not representable in the type"
        case .encoding: "Bytes invalid in the detected encoding"
        case .tooLarge: "Text of 4 GiB or more"
        }
    }
}

/// Why a value does not have the requested type. Containers turn it into a `DecodingError`, as only they know the coding path.
enum ValueFailure: Error {
    case isNull
    case typeMismatch
    case invalid(JSONSyntaxError)
}
