// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How the end of a response's body is known (RFC 9112, section 6.3), noted while the lines of the head come in.
///
/// Judged here because libcurl lets much of it pass: before 8.0 transfer codings that were not asked for, in every version lengths
/// beyond 64 bits, several lengths that differ, and numbers with something behind them.
struct BodyFraming {
    private enum Length: Equatable {
        case none
        case value(Int64)
        /// No number, a number beyond 64 bits, or several that differ.
        case invalid
    }

    private enum TransferCoding {
        case none
        case chunked
        /// Another coding, or more than one.
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

    /// The value of `Content-Length`; `nil` without a valid one.
    var contentLength: Int64? {
        if case .value(let length) = length { length } else { nil }
    }

    /// Whether the body comes in chunks, so that `Content-Length` doesn't count.
    var isChunked: Bool { transferCoding != .none }

    /// Notes a field line of the head.
    mutating func note(_ line: UnsafeRawBufferPointer) {
        // Any other letter begins none of these names; the bit tells capitals from small letters.
        switch line[0] | 0x20 {
        case UInt8(ascii: "c") where line.hasFieldName("content-length"):
            lastField = .contentLength
            line.forEachElement(behind: "content-length") { noteLength($0) }
        case UInt8(ascii: "c"):
            lastField = .other
            if line.hasFieldName("content-encoding") { hasContentCoding = true }
        case UInt8(ascii: "t") where line.hasFieldName("transfer-encoding"):
            lastField = .transferEncoding
            line.forEachElement(behind: "transfer-encoding") { noteTransferCoding($0) }
        case UInt8(ascii: " "), UInt8(ascii: "\t") | 0x20: noteFoldedLine()
        default: lastField = .other
        }
    }

    /// A folded line (RFC 9112, section 5.2) belongs to the value before it, but not to every version of libcurl.
    private mutating func noteFoldedLine() {
        switch lastField {
        case .contentLength: length = .invalid
        case .transferEncoding: transferCoding = .unknown
        case .other: break
        }
    }

    /// Why the end of the body can't be known; `nil` when it can.
    ///
    /// - Parameter head: the head that the lines belong to, for the message.
    func defect(in head: ResponseHead) -> String? {
        if transferCoding == .unknown {
            return "The response's Transfer-Encoding is not chunked, and no other was asked for: \(head.joined("Transfer-Encoding"))"
        }
        guard transferCoding == .none, length == .invalid else { return nil }
        return "The response's Content-Length is not a number below 2^63: \(head.joined("Content-Length"))"
    }

    /// Several lengths are valid where all are the same (RFC 9110, section 8.6).
    private mutating func noteLength(_ element: UnsafeRawBufferPointer) {
        let noted: Length = element.number.map { .value($0) } ?? .invalid
        length = length == .none || length == noted ? noted : .invalid
    }

    /// `chunked` is applied once at the most (RFC 9112, section 6.1). `identity` was a name for no coding (RFC 2616, section 3.6).
    private mutating func noteTransferCoding(_ element: UnsafeRawBufferPointer) {
        if element.isEmpty || element.equals("identity") { return }
        transferCoding = transferCoding == .none && element.equals("chunked") ? .chunked : .unknown
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the line is a field of that name, which is given in lower case.
    fileprivate func hasFieldName(_ name: StaticString) -> Bool {
        let length = name.utf8CodeUnitCount
        guard count > length, self[length] == UInt8(ascii: ":") else { return false }
        return (0..<length).allSatisfy { self[$0].asciiLowercased == name.utf8Start[$0] }
    }

    /// Calls `body` for each element of the comma-separated list behind a field's name; once, with nothing, for an empty value.
    fileprivate func forEachElement(behind name: StaticString, _ body: (UnsafeRawBufferPointer) -> Void) {
        var rest = UnsafeRawBufferPointer(rebasing: self[(name.utf8CodeUnitCount + 1)...])
        while let comma = rest.firstIndex(of: UInt8(ascii: ",")) {
            body(UnsafeRawBufferPointer(rebasing: rest[..<comma]).trimmed)
            rest = UnsafeRawBufferPointer(rebasing: rest[(comma + 1)...])
        }
        body(rest.trimmed)
    }

    /// Whether the bytes are a word, which is given in lower case.
    fileprivate func equals(_ word: StaticString) -> Bool {
        count == word.utf8CodeUnitCount && indices.allSatisfy { self[$0].asciiLowercased == word.utf8Start[$0] }
    }

    /// The bytes without white space and line breaks around them.
    fileprivate var trimmed: UnsafeRawBufferPointer {
        var start = startIndex
        var end = endIndex
        while start < end, self[start].isBlankOrBreak { start += 1 }
        while end > start, self[end - 1].isBlankOrBreak { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: self[start..<end])
    }

    /// The number that the bytes are in decimal digits; `nil` for anything else, and beyond 64 bits.
    fileprivate var number: Int64? {
        guard !isEmpty else { return nil }
        var number: Int64 = 0
        for byte in self {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            let (tens, isTooMany) = number.multipliedReportingOverflow(by: 10)
            let (sum, isTooMuch) = tens.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            guard !isTooMany, !isTooMuch else { return nil }
            number = sum
        }
        return number
    }
}

extension UInt8 {
    /// No other control character: what one party takes for white space and another for a part of a coding's name is how bodies are smuggled.
    fileprivate var isBlankOrBreak: Bool { self == 0x20 || self == 0x09 || self == 0x0D || self == 0x0A }
}

extension ResponseHead {
    /// All values of a field, quoted and cut to a length fit for a message.
    fileprivate func joined(_ name: String) -> String {
        let values = headers.values(for: name).joined(separator: ", ")
        return (values.count > 100 ? values.prefix(100) + "…" : values).debugDescription
    }
}
