// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Dates as a cache reads them (RFC 9111, section 4.2): their form must be exactly one of the three of RFC 9110, section 5.6.7, with the zone
/// GMT, as a date that was misread could make a response look fresh; upper and lower case do not matter.
package enum CacheDate {
    private static let days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

    /// Parses a date; in seconds since 1970. `nil` for any other text (fuzzed: `FuzzTests`, `cache-control`).
    package static func seconds(from text: String) -> Double? {
        // Kept as short as the longest date, so that a long value costs nothing.
        guard (24...33).contains(text.utf8.count), let canonical = canonical(text) else { return nil }
        return HTTPDate.date(from: canonical)?.timeIntervalSince1970
    }

    /// The date in the case that its grammar has; `nil` for a wrong form.
    private static func canonical(_ text: String) -> String? {
        let lower = text.lowercased()
        let bytes = Array(lower.utf8)
        guard bytes.count == text.utf8.count else { return nil }
        if matches(bytes, "aaa, 99 aaa 9999 99:99:99 gmt") {
            return isDay(bytes.prefix(3)) ? capitalized(bytes) : nil
        }
        if matches(bytes, "aaa aaa 99 99:99:99 9999") || matches(bytes, "aaa aaa  9 99:99:99 9999") {
            return isDay(bytes.prefix(3)) ? capitalized(bytes) : nil
        }
        guard let comma = bytes.firstIndex(of: UInt8(ascii: ",")), days.contains(String(decoding: bytes[..<comma], as: UTF8.self)),
            matches(bytes[comma...], ", 99-aaa-99 99:99:99 gmt")
        else { return nil }
        return capitalized(bytes)
    }

    private static func isDay(_ name: some Collection<UInt8>) -> Bool {
        days.contains { $0.utf8.prefix(3).elementsEqual(name) }
    }

    /// Whether bytes have a form: `a` is any letter, `9` any digit, all else itself.
    private static func matches(_ bytes: some Collection<UInt8>, _ form: StaticString) -> Bool {
        guard bytes.count == form.utf8CodeUnitCount else { return false }
        return zip(bytes, UnsafeBufferPointer(start: form.utf8Start, count: form.utf8CodeUnitCount)).allSatisfy { byte, wanted in
            switch wanted {
            case UInt8(ascii: "9"): byte.isASCIIDigit
            case UInt8(ascii: "a"): (0x61...0x7A).contains(byte)
            default: byte == wanted
            }
        }
    }

    /// The first letter of each word in upper case, and the zone.
    private static func capitalized(_ lower: [UInt8]) -> String {
        var bytes = lower
        let isZone = bytes.suffix(3).elementsEqual("gmt".utf8)
        for index in bytes.indices where (0x61...0x7A).contains(bytes[index]) {
            let isFirst = index == 0 || !(0x61...0x7A).contains(lower[index - 1])
            if isFirst || isZone && index >= bytes.count - 3 { bytes[index] -= 0x20 }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
