// SPDX-License-Identifier: Apache-2.0

/// Recognizes URLs that need no parsing: most are plain, and Foundation's parser costs more than the rest of creating a request.
package enum PlainURL {
    /// The longest name of DNS (RFC 1035, section 2.3.4).
    private static let longestHost = 253

    /// Whether a string is an absolute URL with the scheme `http` or `https` in lower case, a host of at most 253 letters, digits, hyphens
    /// and dots, with no empty label, an optional port from 1 to 65,535, and a path and query of characters without special treatment (RFC
    /// 3986, appendix A).
    ///
    /// `false` means only that the URL has to be parsed.
    package static func isPlain(_ string: String) -> Bool {
        var string = string
        return string.withUTF8 { isPlain($0) }
    }

    private static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var index = 0
        for byte in "http".utf8 {
            guard index < bytes.count, bytes[index] == byte else { return false }
            index += 1
        }
        if index < bytes.count, bytes[index] == UInt8(ascii: "s") { index += 1 }
        for byte in "://".utf8 {
            guard index < bytes.count, bytes[index] == byte else { return false }
            index += 1
        }
        guard skipHost(bytes, &index), skipPort(bytes, &index) else { return false }
        // A path, or the end: a query without a path is left to the parser.
        return index == bytes.count || (bytes[index] == UInt8(ascii: "/") && isPathAndQuery(bytes, from: index))
    }

    private static func skipHost(_ bytes: UnsafeBufferPointer<UInt8>, _ index: inout Int) -> Bool {
        let start = index
        var isLabelEmpty = true
        while index < bytes.count {
            if isAlphanumeric(bytes[index]) || bytes[index] == UInt8(ascii: "-") {
                isLabelEmpty = false
            } else if bytes[index] == UInt8(ascii: "."), !isLabelEmpty {
                isLabelEmpty = true
            } else {
                break
            }
            index += 1
        }
        // A name with the dot of the root is parsed: an address has none.
        return !isLabelEmpty && index - start <= longestHost && (index == bytes.count || bytes[index] != UInt8(ascii: "."))
    }

    private static func skipPort(_ bytes: UnsafeBufferPointer<UInt8>, _ index: inout Int) -> Bool {
        guard index < bytes.count, bytes[index] == UInt8(ascii: ":") else { return true }
        index += 1
        var port = 0
        while index < bytes.count, bytes[index].isASCIIDigit {
            port = port * 10 + Int(bytes[index] - UInt8(ascii: "0"))
            guard port <= 65_535 else { return false }
            index += 1
        }
        return port > 0
    }

    private static func isPathAndQuery(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Bool {
        var hasQuery = false
        var index = start
        while index < bytes.count {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "="),
                UInt8(ascii: "&"), UInt8(ascii: ","), UInt8(ascii: "+"), UInt8(ascii: ":"), UInt8(ascii: "@"):
                break
            case UInt8(ascii: "?"):
                guard !hasQuery else { return false }
                hasQuery = true
            default:
                guard isAlphanumeric(byte) else { return false }
            }
            index += 1
        }
        return true
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) || byte.isASCIIDigit
    }
}
