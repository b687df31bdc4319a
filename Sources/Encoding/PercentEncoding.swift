// SPDX-License-Identifier: Apache-2.0

/// Percent-encoding (RFC 3986, section 2.1) for queries and forms: the only place where characters are escaped.
package enum PercentEncoding {
    /// Escapes every byte of the string's UTF-8 except letters, digits and `-._~/?`.
    ///
    /// `/` and `?` are valid in a query (RFC 3986, section 3.4); all other delimiters are escaped, and so is `%`, which means that
    /// escaping twice differs from escaping once.
    package static func escape(_ string: String) -> String {
        var string = string
        return string.withUTF8 { bytes in
            let escaped = bytes.reduce(into: 0) { count, byte in count += isUnescaped(byte) ? 0 : 1 }
            guard escaped > 0 else { return String(decoding: bytes, as: UTF8.self) }
            return String(unsafeUninitializedCapacity: bytes.count + 2 * escaped) { write(bytes, into: $0) }
        }
    }

    /// Escapes a name or file name for the quoted parameters of a multipart body: only quotation marks, carriage returns and line feeds
    /// are escaped (HTML, "Multipart form data"; RFC 7578, section 4.2).
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

    /// Writes the escaped bytes to `output`, which has room for them, and returns their number.
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

    /// Returns an uppercase hexadecimal digit, as RFC 3986, section 2.1 recommends.
    @inline(__always)
    private static func hexDigit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "A") + nibble - 10
    }
}
