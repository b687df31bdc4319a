// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// The types of values in certificates.

extension DERReader.Element {
    /// An object identifier in dotted form, such as `2.5.4.3`.
    var objectIdentifier: String? {
        guard tag == .objectIdentifier, let last = contents.last, last < 0x80 else { return nil }
        var arcs: [UInt64] = []
        var arc: UInt64 = 0
        for byte in contents {
            guard arc >> 57 == 0 else { return nil }
            arc = arc << 7 | UInt64(byte & 0x7F)
            guard byte < 0x80 else { continue }
            if arcs.isEmpty {
                // The first two arcs are encoded as one number (X.690, section 8.19.4).
                let first = min(arc / 40, 2)
                arcs = [first, arc - first * 40]
            } else {
                arcs.append(arc)
            }
            arc = 0
        }
        return arcs.map { String($0) }.joined(separator: ".")
    }

    /// A string of any string type; `nil` for other types, and for bytes invalid in the type's encoding.
    var string: String? {
        switch tag.rawValue {
        case 0x0C: String(validating: contents, as: UTF8.self)
        // Numeric, printable, IA5 and visible strings are ASCII. Teletex strings contain Latin 1 in practice.
        case 0x12, 0x13, 0x14, 0x16, 0x1A: contents.latin1
        case 0x1C: contents.scalars(ofWidth: 4)
        case 0x1E: contents.scalars(ofWidth: 2)
        default: nil
        }
    }

    /// A time in the forms that certificates use (RFC 5280, section 4.1.2.5): in UTC, with seconds.
    var date: Date? {
        guard contents.last == UInt8(ascii: "Z"), contents.dropLast().allSatisfy({ $0.isASCIIDigit }) else { return nil }
        let digits = contents.dropLast().map { Int($0 & 0x0F) }
        let yearDigits = tag == .generalizedTime ? 4 : 2
        guard tag == .generalizedTime || tag == .utcTime, digits.count == yearDigits + 10 else { return nil }
        let year = digits.prefix(yearDigits).reduce(0) { $0 * 10 + $1 }
        let parts = stride(from: yearDigits, to: digits.count, by: 2).map { (index: Int) -> Int in digits[index] * 10 + digits[index + 1] }
        guard parts[4] < 60 else { return nil }
        return Date(
            utcYear: tag == .utcTime ? year + (year < 50 ? 2000 : 1900) : year, month: parts[0], day: parts[1], hour: parts[2],
            minute: parts[3], second: parts[4])
    }
}

extension ArraySlice<UInt8> {
    /// The bytes decoded as Latin 1, including NULs.
    var latin1: String { String(String.UnicodeScalarView(map { UnicodeScalar($0) })) }

    /// Decodes big-endian characters of a fixed number of bytes.
    fileprivate func scalars(ofWidth width: Int) -> String? {
        guard count % width == 0 else { return nil }
        var result = String.UnicodeScalarView()
        for index in stride(from: startIndex, to: endIndex, by: width) {
            let value = self[index..<index + width].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            guard let scalar = UnicodeScalar(value) else { return nil }
            result.append(scalar)
        }
        return String(result)
    }
}
