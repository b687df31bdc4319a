// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How a response's body is delimited (RFC 9112, section 6.3), determined from the lines of the head as they are received.
///
/// Checked here because libcurl is lenient: before 8.0 it accepts transfer codings that were not requested, and in every version lengths
/// beyond 64 bits, several differing lengths, and numbers followed by other characters.
struct BodyFraming {
    private enum Length: Equatable {
        case none
        case value(Int64)
        /// Not a number, a number beyond 64 bits, or several differing numbers.
        case invalid
    }

    private enum TransferCoding {
        case none
        case chunked
        /// A coding other than chunked, or more than one.
        case unknown
    }

    private enum Field {
        case contentLength
        case transferEncoding
        case other
    }

    private var length = Length.none
    private var transferCoding = TransferCoding.none
    private var lastField = Field.other
    /// Whether there is a `Content-Encoding`.
    private(set) var hasContentCoding = false
    /// Whether white space follows the name of a field that frames the body (RFC 9112, section 5.1): such a line is no field for libcurl, and
    /// may be one for a proxy.
    private var hasBlankAfterName = false
    /// What the lines begin with.
    private(set) var initials = LineInitials()

    /// The value of `Content-Length`; `nil` without a valid one.
    var contentLength: Int64? {
        if case .value(let length) = length { length } else { nil }
    }

    /// Whether the body is chunked, in which case `Content-Length` is ignored.
    var isChunked: Bool { transferCoding != .none }

    /// Records a field line of the head.
    mutating func note(_ line: UnsafeRawBufferPointer) {
        initials.note(line[0])
        // Names with another first letter are irrelevant; the bit converts to lower case.
        switch line[0] | 0x20 {
        case UInt8(ascii: "c"):
            if isField(.contentLength, "content-length", line) {
                line.forEachElement(behind: "content-length") { noteLength($0) }
            } else if line.delimiter(behind: "content-encoding") == UInt8(ascii: ":") {
                hasContentCoding = true
            }
        case UInt8(ascii: "t"):
            guard isField(.transferEncoding, "transfer-encoding", line) else { return }
            line.forEachElement(behind: "transfer-encoding") { noteTransferCoding($0) }
        case UInt8(ascii: " "), UInt8(ascii: "\t") | 0x20: noteFoldedLine()
        default: lastField = .other
        }
    }

    /// Whether a line is that of a field; notes it, and white space between its name and the colon.
    private mutating func isField(_ field: Field, _ name: StaticString, _ line: UnsafeRawBufferPointer) -> Bool {
        let delimiter = line.delimiter(behind: name)
        if delimiter == UInt8(ascii: " ") || delimiter == UInt8(ascii: "\t") { hasBlankAfterName = true }
        lastField = delimiter == UInt8(ascii: ":") ? field : .other
        return lastField == field
    }

    /// Invalidates a folded value (RFC 9112, section 5.2): the line belongs to the value before it, but not in every version of libcurl.
    private mutating func noteFoldedLine() {
        switch lastField {
        case .contentLength: length = .invalid
        case .transferEncoding: transferCoding = .unknown
        case .other: break
        }
    }

    /// Why the body's framing is invalid; `nil` if it is valid.
    ///
    /// - Parameter head: the head of which the lines are part, for the message.
    func violation(in head: ResponseHead) -> String? {
        if hasBlankAfterName { return "The response's Content-Length or Transfer-Encoding has white space before its colon" }
        if transferCoding == .unknown {
            return "The response's Transfer-Encoding is not chunked, and no other was requested: \(head.joined("Transfer-Encoding"))"
        }
        guard transferCoding == .none, length == .invalid else { return nil }
        return "The response's Content-Length is not a number below 2^63: \(head.joined("Content-Length"))"
    }

    /// Several equal lengths are valid (RFC 9110, section 8.6).
    private mutating func noteLength(_ element: UnsafeRawBufferPointer) {
        let noted: Length = element.number.map { .value($0) } ?? .invalid
        length = length == .none || length == noted ? noted : .invalid
    }

    /// `chunked` must not be applied more than once (RFC 9112, section 6.1). `identity` used to mean no coding (RFC 2616, section 3.6).
    private mutating func noteTransferCoding(_ element: UnsafeRawBufferPointer) {
        if element.isEmpty || element.equals("identity") { return }
        transferCoding = transferCoding == .none && element.equals("chunked") ? .chunked : .unknown
    }
}

extension UnsafeRawBufferPointer {
    /// What follows a field's name, which must be given in lower case: a colon, or white space; `nil` if that is another name.
    fileprivate func delimiter(behind name: StaticString) -> UInt8? {
        let length = name.utf8CodeUnitCount
        // Looked at first, as most other names end elsewhere.
        guard count > length, self[length] == UInt8(ascii: ":") || self[length].isBlankOrBreak else { return nil }
        return (0..<length).allSatisfy { self[$0].asciiLowercased == name.utf8Start[$0] } ? self[length] : nil
    }

    /// Calls `body` for each element of the comma-separated list after a field's name; once, with an empty element, for an empty value.
    fileprivate func forEachElement(behind name: StaticString, _ body: (UnsafeRawBufferPointer) -> Void) {
        var rest = UnsafeRawBufferPointer(rebasing: self[(name.utf8CodeUnitCount + 1)...])
        while let comma = rest.firstIndex(of: UInt8(ascii: ",")) {
            body(UnsafeRawBufferPointer(rebasing: rest[..<comma]).trimmed)
            rest = UnsafeRawBufferPointer(rebasing: rest[(comma + 1)...])
        }
        body(rest.trimmed)
    }

    /// Whether the bytes equal a word case-insensitively, which must be given in lower case.
    fileprivate func equals(_ word: StaticString) -> Bool {
        count == word.utf8CodeUnitCount && indices.allSatisfy { self[$0].asciiLowercased == word.utf8Start[$0] }
    }

    /// The bytes without surrounding white space and line breaks.
    fileprivate var trimmed: UnsafeRawBufferPointer {
        var start = startIndex
        var end = endIndex
        while start < end, self[start].isBlankOrBreak { start += 1 }
        while end > start, self[end - 1].isBlankOrBreak { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: self[start..<end])
    }

    /// The decimal number in the bytes; `nil` if there is none, and beyond 64 bits.
    fileprivate var number: Int64? {
        guard !isEmpty else { return nil }
        var number: Int64 = 0
        for byte in self {
            guard byte.isASCIIDigit else { return nil }
            let (tens, isTooMany) = number.multipliedReportingOverflow(by: 10)
            let (sum, isTooMuch) = tens.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            guard !isTooMany, !isTooMuch else { return nil }
            number = sum
        }
        return number
    }
}

extension UInt8 {
    /// Excludes other control characters: what one parser takes for white space and another for part of a coding's name enables request
    /// smuggling.
    var isBlankOrBreak: Bool { isBlank || self == 0x0D || self == 0x0A }
}

extension ResponseHead {
    /// All values of a field, quoted and truncated for a message.
    fileprivate func joined(_ name: String) -> String {
        let values = headers.values(for: name).joined(separator: ", ")
        return (values.count > 100 ? values.prefix(100) + "…" : values).debugDescription
    }
}
