// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// What the answer to a request for the rest of a file means.
///
/// Bytes are put behind those that are there only if the answer says that they belong there and contradicts itself nowhere. All else starts
/// from nothing, or leaves alone what is there.
enum ResumeDecision: Equatable, Sendable {
    /// The rest comes: it goes behind what is there, up to this length.
    case append(total: Int64)
    /// Everything is there already.
    case complete
    /// The whole comes, of whatever version: it takes the place of what is there.
    case startOver
    /// What is there is of no use, and neither is this answer: the whole is to be asked for.
    case askForWhole
    /// The answer is about something else, an error most likely: what is there stays.
    case setAside

    /// Judges the head of the answer to `Range: bytes=offset-`.
    init(_ record: ResumeRecord, offset: Int64, _ head: ResponseHead) {
        switch head.statusCode {
        case 200: self = .startOver
        case 206: self = Self.partial(record, offset, head)
        case 416: self = Self.unsatisfiable(record, offset, head)
        default: self = .setAside
        }
    }

    /// 206: RFC 9110, section 15.3.7. Without a `Content-Range` it has several parts, or none of ours.
    private static func partial(_ record: ResumeRecord, _ offset: Int64, _ head: ResponseHead) -> ResumeDecision {
        guard !head.isCoded, !record.isContradicted(by: head), let range = head.value(for: "Content-Range").flatMap({ ContentRange($0) }),
            case .part(let first, let last, let total) = range, first == offset
        else { return .askForWhole }
        // A server may send less than was asked for. That is rare enough to ask it for the whole instead of piece by piece.
        guard let length = total ?? record.total, length - 1 == last, record.total ?? length == length else { return .askForWhole }
        guard head.expectedBodyLength.map({ $0 == length - offset }) ?? true else { return .askForWhole }
        return .append(total: length)
    }

    /// 416: RFC 9110, section 15.5.17. Behind the end of the file there is nothing; if we are there, we have it all.
    private static func unsatisfiable(_ record: ResumeRecord, _ offset: Int64, _ head: ResponseHead) -> ResumeDecision {
        guard !record.isContradicted(by: head), let range = head.value(for: "Content-Range").flatMap({ ContentRange($0) }),
            case .none(let total) = range, total == offset, record.total ?? total == total
        else { return .askForWhole }
        return .complete
    }
}

/// A `Content-Range` in bytes (RFC 9110, section 14.4).
enum ContentRange: Equatable {
    case part(first: Int64, last: Int64, total: Int64?)
    /// No part could be given of so many bytes.
    case none(total: Int64)

    /// `nil` for what is malformed, counts in another unit, or contradicts itself.
    init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, words[0].equalsIgnoringASCIICase("bytes") else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let total = Self.number(parts[1])
        guard total != nil || parts[1] == "*" else { return nil }
        if parts[0] == "*" {
            guard let total else { return nil }
            self = .none(total: total)
            return
        }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false).map { Self.number($0) }
        guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < total ?? .max else { return nil }
        self = .part(first: first, last: last, total: total)
    }

    private static func number(_ text: Substring) -> Int64? {
        !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int64(text) : nil
    }
}

extension ResponseHead {
    /// Whether the body is coded (RFC 9110, section 8.4).
    var isCoded: Bool {
        headers.contains { $0.isNamed("Content-Encoding") && !$0.value.isEmpty && !$0.value.equalsIgnoringASCIICase("identity") }
    }
}
