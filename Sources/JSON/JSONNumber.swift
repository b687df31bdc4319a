// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A number in JSON's notation (RFC 8259, section 6): `mantissa × 10^exponent`.
struct JSONNumber {
    private(set) var isNegative = false
    private(set) var mantissa: UInt64 = 0
    private(set) var exponent = 0
    /// Whether nonzero digits did not fit into the mantissa.
    private(set) var isTruncated = false
    private let text: UnsafeBufferPointer<UInt8>

    /// Returns `nil` for a malformed number.
    init?(_ text: UnsafeBufferPointer<UInt8>) {
        self.text = text
        var index = 0
        if text.first == .minus {
            isNegative = true
            index = 1
        }
        let begin = index
        skipDigits(&index, isFraction: false)
        guard index > begin, index == begin + 1 || text[begin] != .zero else { return nil }
        if index < text.count, text[index] == .dot {
            index += 1
            let fraction = index
            skipDigits(&index, isFraction: true)
            guard index > fraction else { return nil }
        }
        if index < text.count, text[index] | 0x20 == UInt8(ascii: "e") {
            index += 1
            guard readExponent(&index) else { return nil }
        }
        guard index == text.count else { return nil }
    }

    private mutating func skipDigits(_ index: inout Int, isFraction: Bool) {
        while index < text.count {
            let digit = text[index] &- .zero
            guard digit < 10 else { return }
            // Below this, another digit fits into 64 bits.
            if mantissa < 1_000_000_000_000_000_000 {
                mantissa = mantissa &* 10 &+ UInt64(digit)
                if isFraction { exponent &-= 1 }
            } else {
                if digit != 0 { isTruncated = true }
                if !isFraction { exponent &+= 1 }
            }
            index += 1
        }
    }

    private mutating func readExponent(_ index: inout Int) -> Bool {
        var isNegative = false
        if index < text.count, text[index] == .minus || text[index] == .plus {
            isNegative = text[index] == .minus
            index += 1
        }
        let begin = index
        var value = 0
        while index < text.count, text[index] &- .zero < 10 {
            // Clamped: no text has enough digits to offset a larger exponent.
            value = min(value * 10 + Int(text[index] - .zero), 1_000_000_000_000)
            index += 1
        }
        exponent += isNegative ? -value : value
        return index > begin
    }

    var isZero: Bool { mantissa == 0 }

    /// The nearest `Double`; infinite or zero if the number is out of range.
    var double: Double {
        // Both operands are exact, so the product or quotient is rounded once (Clinger's fast path).
        if mantissa <= 1 << 53, !isTruncated, -22...22 ~= exponent {
            let magnitude = exponent < 0 ? Double(mantissa) / powers[-exponent] : Double(mantissa) * powers[exponent]
            return isNegative ? -magnitude : magnitude
        }
        return Double(string) ?? .nan
    }

    /// The nearest `Float`; infinite or zero if the number is out of range.
    var float: Float {
        if mantissa <= 1 << 24, !isTruncated, -10...10 ~= exponent {
            let power = Float(powers[abs(exponent)])
            let magnitude = exponent < 0 ? Float(mantissa) / power : Float(mantissa) * power
            return isNegative ? -magnitude : magnitude
        }
        return Float(string) ?? .nan
    }

    var string: String { String(decoding: text, as: UTF8.self) }
}

/// The powers of ten that `Double` represents exactly; the first eleven are exact in `Float` too.
private let powers: [Double] = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
]

extension JSONTape {
    // MARK: Integers

    /// Returns the integer at an index. A number with a fraction or an exponent is accepted if its value is an integer.
    @inline(__always)
    func integer<T: FixedWidthInteger>(at index: Int, as type: T.Type = T.self) throws(ValueFailure) -> T {
        let word = self[index]
        guard word.kind == .number else { throw failure(at: index) }
        // 18 digits always fit.
        if word.has(TapeWord.isInteger), word.length <= 18, !word.has(TapeWord.isLong) {
            var digit = bytes + word.offset
            let end = digit + word.length
            let isNegative = digit.pointee == .minus
            if isNegative { digit += 1 }
            if digit < end, digit.pointee != .zero || end - digit == 1 {
                var value: Int64 = 0
                while digit < end {
                    value = value &* 10 &+ Int64(truncatingIfNeeded: digit.pointee &- .zero)
                    digit += 1
                }
                if let result = T(exactly: isNegative ? 0 &- value : value) { return result }
            }
        }
        do {
            return try slowInteger(text(at: index), isPlain: word.has(TapeWord.isInteger))
        } catch {
            throw .invalid(error)
        }
    }

    /// Parses long integers and numbers with a fraction or an exponent.
    @inline(never)
    private func slowInteger<T: FixedWidthInteger>(_ text: UnsafeBufferPointer<UInt8>, isPlain: Bool) throws(JSONSyntaxError) -> T {
        guard let number = JSONNumber(text) else { throw error(.invalidNumber, at: text.baseAddress) }
        if isPlain {
            guard let value = T(number.string) else { throw error(.numberNotRepresentable, at: text.baseAddress) }
            return value
        }
        guard let value = T(exactly: number.double) else { throw error(.numberNotRepresentable, at: text.baseAddress) }
        if number.double.magnitude < 0x1p53 { return value }
        // Beyond 2^53 the Double may be a neighbour of the exact value. Foundation falls back to Decimal and drops the fraction.
        guard let exact = T(truncating: number.string) else { throw error(.numberNotRepresentable, at: text.baseAddress) }
        return exact
    }

    // MARK: Floating point

    @inline(__always)
    func double(at index: Int) throws(ValueFailure) -> Double {
        let word = self[index]
        guard word.kind == .number else { throw failure(at: index) }
        let text = text(at: index)
        guard let number = JSONNumber(text) else { throw .invalid(error(.invalidNumber, at: text.baseAddress)) }
        let value = number.double
        guard value.isFinite, value != 0 || number.isZero else {
            throw .invalid(error(.numberNotRepresentable, at: text.baseAddress))
        }
        return value
    }

    @inline(__always)
    func float(at index: Int) throws(ValueFailure) -> Float {
        let word = self[index]
        guard word.kind == .number else { throw failure(at: index) }
        let text = text(at: index)
        guard let number = JSONNumber(text) else { throw .invalid(error(.invalidNumber, at: text.baseAddress)) }
        let value = number.float
        guard value.isFinite, value != 0 || number.isZero else {
            throw .invalid(error(.numberNotRepresentable, at: text.baseAddress))
        }
        return value
    }

    func decimal(at index: Int) throws(ValueFailure) -> Decimal {
        guard self[index].kind == .number else { throw failure(at: index) }
        let text = text(at: index)
        guard let number = JSONNumber(text) else { throw .invalid(error(.invalidNumber, at: text.baseAddress)) }
        guard let value = Decimal(string: number.string) else { throw .invalid(error(.numberNotRepresentable, at: text.baseAddress)) }
        return value
    }
}

extension FixedWidthInteger {
    /// Creates the integer part of a decimal number whose digits together fit into 64 bits.
    fileprivate init?(truncating number: String) {
        guard let plain = Decimal(string: number)?.description else { return nil }
        let digits = plain.utf8.filter { $0 != .minus && $0 != .dot }
        guard UInt64(String(decoding: digits, as: UTF8.self)) != nil else { return nil }
        let whole = plain.prefixScalars { $0 != "." }
        guard whole.unicodeScalars.first == "-" else {
            self.init(whole)
            return
        }
        // The magnitude must fit, as in Foundation, so the least signed integer is never a result.
        guard let magnitude = Self(whole.dropFirst()) else { return nil }
        self = 0 - magnitude
    }
}
