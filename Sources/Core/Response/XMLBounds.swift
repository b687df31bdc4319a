// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

/// A limit on XML from peers, which is checked before it is parsed: libxml2 before 2.12 compares each attribute of an element with all others,
/// so that a megabyte with 100,000 of them takes half a minute.
package enum XMLBounds {
    /// The most attributes of an element.
    static let maximumAttributes = 10_000
    /// The length of the shortest attribute, with the space before it.
    private static let shortestAttribute = #" a="""#.utf8.count

    /// Returns what is wrong with a document that has too many attributes; `nil` if it may be parsed.
    ///
    /// Counts quotation marks that follow equals signs from each `<` to the next one, which no attribute may contain. Zeros are skipped, for
    /// UTF-16 and UTF-32.
    package static func excess(in data: Data) -> String? {
        guard data.count > maximumAttributes * shortestAttribute else { return nil }
        let isExcessive = data.withUnsafeBytes { bytes in
            var (count, last) = (0, UInt8(0))
            for byte in bytes where byte > 0x20 {
                switch byte {
                case UInt8(ascii: "<"): count = 0
                case UInt8(ascii: "\""), UInt8(ascii: "'"): if last == UInt8(ascii: "=") { count += 1 }
                default: break
                }
                if count > maximumAttributes { return true }
                last = byte
            }
            return false
        }
        return isExcessive ? "an element has more than \(maximumAttributes) attributes" : nil
    }
}
