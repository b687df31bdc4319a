// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

/// Replaces lone surrogate escapes in JSON (`\uD800` without its other half), which some servers send and parsers reject.
enum LoneSurrogates {
    /// Returns the JSON with the replacement character in their place; `nil` if there are none.
    static func replaced(in json: Data) -> Data? {
        var bytes = Array(json)
        var (index, isChanged) = (0, false)
        while index < bytes.count {
            guard bytes[index] == UInt8(ascii: "\\") else {
                index += 1
                continue
            }
            guard let unit = unit(at: index, bytes) else {
                // Skip two bytes: an escaped backslash does not begin an escape.
                index += 2
                continue
            }
            let isHigh = unit & 0xFC00 == 0xD800
            if isHigh, let low = self.unit(at: index + 6, bytes), low & 0xFC00 == 0xDC00 {
                index += 12
                continue
            }
            if isHigh || unit & 0xFC00 == 0xDC00 {
                bytes.replaceSubrange((index + 2)..<(index + 6), with: "FFFD".utf8)
                isChanged = true
            }
            index += 6
        }
        return isChanged ? Data(bytes) : nil
    }

    /// Returns the code unit of an escape `\uXXXX`.
    private static func unit(at index: Int, _ bytes: [UInt8]) -> UInt16? {
        guard index + 6 <= bytes.count, bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u") else { return nil }
        return UInt16(String(decoding: bytes[(index + 2)..<(index + 6)], as: UTF8.self), radix: 16)
    }
}
