// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension JSONTape {
    /// The string at an index.
    @inline(__always)
    func string(at index: Int) throws(ValueFailure) -> String {
        let word = self[index]
        guard word.kind == .string else { throw failure(at: index) }
        let text = text(at: index)
        if word.has(TapeWord.isASCII) { return String(decoding: text, as: UTF8.self) }
        do {
            return word.has(TapeWord.isPlain) ? try validString(text) : try unescapedString(text)
        } catch {
            throw .invalid(error)
        }
    }

    /// Makes a string of bytes without escapes.
    @inline(never)
    private func validString(_ text: UnsafeBufferPointer<UInt8>) throws(JSONSyntaxError) -> String {
        // Invalid bytes would be replaced by U+FFFD, so a string with the same bytes is valid.
        var string = String(decoding: text, as: UTF8.self)
        let isSame = string.withUTF8 { $0.count == text.count && isEqual($0, text) }
        guard isSame else { throw error(.invalidUTF8, at: text.baseAddress) }
        return string
    }

    private func unescapedString(_ text: UnsafeBufferPointer<UInt8>) throws(JSONSyntaxError) -> String {
        // An escape is never shorter than the character it encodes.
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            let byte = text[index]
            guard byte >= 0x20 else { throw error(.controlCharacter, at: text.baseAddress, index) }
            if byte == .backslash {
                // The tokenizer has checked that a byte follows.
                index += 1
                try unescape(text, &index, into: &bytes)
            } else {
                bytes.append(byte)
                index += 1
            }
        }
        do {
            return try bytes.withUnsafeBufferPointer { (whole) throws(JSONSyntaxError) in try validString(whole) }
        } catch {
            throw self.error(.invalidUTF8, at: text.baseAddress)
        }
    }

    /// Appends the character of the escape after a backslash and advances past it.
    private func unescape(_ text: UnsafeBufferPointer<UInt8>, _ index: inout Int, into bytes: inout [UInt8]) throws(JSONSyntaxError) {
        guard index < text.count else { throw error(.invalidEscape, at: text.baseAddress, index) }
        let escaped = text[index]
        index += 1
        switch escaped {
        case .quote, .backslash, UInt8(ascii: "/"): bytes.append(escaped)
        case UInt8(ascii: "b"): bytes.append(0x08)
        case UInt8(ascii: "f"): bytes.append(0x0C)
        case UInt8(ascii: "n"): bytes.append(.lineFeed)
        case UInt8(ascii: "r"): bytes.append(.carriageReturn)
        case UInt8(ascii: "t"): bytes.append(.tab)
        case UInt8(ascii: "u"):
            bytes.append(contentsOf: Unicode.UTF8.encode(try scalar(text, &index)) ?? Unicode.UTF8.encodedReplacementCharacter)
        default: throw error(.invalidEscape, at: text.baseAddress, index - 1)
        }
    }

    /// Returns the scalar of one or two `\u` escapes, starting after the first `\u`.
    private func scalar(_ text: UnsafeBufferPointer<UInt8>, _ index: inout Int) throws(JSONSyntaxError) -> Unicode.Scalar {
        let begin = index
        let first = try hexadecimal(text, &index)
        if let scalar = Unicode.Scalar(first) { return scalar }
        // Half of a surrogate pair.
        guard first < 0xDC00, index + 1 < text.count, text[index] == .backslash, text[index + 1] == UInt8(ascii: "u") else {
            throw error(.invalidSurrogate, at: text.baseAddress, begin)
        }
        index += 2
        let second = try hexadecimal(text, &index)
        guard 0xDC00...0xDFFF ~= second, let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)) else {
            throw error(.invalidSurrogate, at: text.baseAddress, begin)
        }
        return scalar
    }

    private func hexadecimal(_ text: UnsafeBufferPointer<UInt8>, _ index: inout Int) throws(JSONSyntaxError) -> UInt32 {
        guard index + 4 <= text.count else { throw error(.invalidEscape, at: text.baseAddress, index) }
        var value: UInt32 = 0
        for byte in text[index..<index + 4] {
            let digit: UInt8
            switch byte {
            case .zero ... .nine: digit = byte - .zero
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: throw error(.invalidEscape, at: text.baseAddress, index)
            }
            value = value << 4 | UInt32(digit)
        }
        index += 4
        return value
    }

    /// Returns an error at a byte of the text.
    func error(_ reason: JSONSyntaxError.Reason, at byte: UnsafePointer<UInt8>?, _ offset: Int = 0) -> JSONSyntaxError {
        JSONSyntaxError(reason, at: (byte.map { $0 - bytes } ?? 0) + offset)
    }
}

/// Whether two buffers of equal length hold the same bytes.
@inline(__always)
func isEqual(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let first = left.baseAddress, let second = right.baseAddress, !left.isEmpty else { return true }
    return memcmp(first, second, left.count) == 0
}
