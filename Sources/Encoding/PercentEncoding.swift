// SPDX-License-Identifier: Apache-2.0

/// Percent-encoding (RFC 3986, section 2.1) of what goes into a query or a form: the one place where characters are escaped.
package enum PercentEncoding {
    /// The string with every byte of its UTF-8 escaped but letters, digits and `-._~/?`.
    ///
    /// `/` and `?` may stand in a query as they are (RFC 3986, section 3.4); all other delimiters are escaped, and so is `%`:
    /// escaping twice is not the same as escaping once.
    package static func escape(_ string: String) -> String {
        var string = string
        return string.withUTF8 { bytes in
            let escaped = bytes.reduce(into: 0) { count, byte in count += isUnescaped(byte) ? 0 : 1 }
            guard escaped > 0 else { return String(decoding: bytes, as: UTF8.self) }
            return String(unsafeUninitializedCapacity: bytes.count + 2 * escaped) { write(bytes, into: $0) }
        }
    }

    /// The string as a name or file name of a multipart body, between quotation marks: those and the two halves of a line break escaped,
    /// nothing else (HTML, "Multipart form data"; RFC 7578, section 4.2).
    package static func escapeQuoted(_ string: String) -> String {
        func mustEscape(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == 0x0D || byte == 0x0A }
        guard string.utf8.contains(where: mustEscape) else { return string }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(string.utf8.count + 16)
        for byte in string.utf8 {
            if mustEscape(byte) {
                bytes += [UInt8(ascii: "%"), hexDigit(byte >> 4), hexDigit(byte & 0x0F)]
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Writes the bytes, escaped, and gives the number of bytes written. `output` has room for them.
    private static func write(_ bytes: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var end = 0
        for byte in bytes {
            if isUnescaped(byte) {
                output[end] = byte
                end += 1
            } else {
                output[end] = UInt8(ascii: "%")
                output[end + 1] = hexDigit(byte >> 4)
                output[end + 2] = hexDigit(byte & 0x0F)
                end += 3
            }
        }
        return end
    }

    @inline(__always)
    private static func isUnescaped(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "/"), UInt8(ascii: "?"):
            true
        default:
            false
        }
    }

    /// A digit of a percent-encoding, in capitals as RFC 3986, section 2.1 wants it.
    @inline(__always)
    private static func hexDigit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "A") + nibble - 10
    }
}
