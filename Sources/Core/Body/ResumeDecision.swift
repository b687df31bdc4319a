// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// What the response to a range request means for the part file.
///
/// Bytes are appended only if the response states that they belong there, and contradicts neither itself nor the record. Any other response
/// starts over, or leaves the part file as it is.
enum ResumeDecision: Equatable, Sendable {
    /// The body is the rest: it is appended to the part file, up to this length.
    case append(total: Int64)
    /// The part file is complete.
    case complete
    /// The body is the whole, possibly of another version: it replaces the part file.
    case startOver
    /// Neither the part file nor the body can be used: the whole is requested.
    case requestWhole
    /// The response is about something else, most likely an error: the part file stays as it is.
    case unrelated

    /// Judges the head of the response to the `Range: bytes=offset-` of a request; `nil` for the one whose record it is.
    init(_ record: ResumeRecord, offset: Int64, _ head: ResponseHead, to request: ResumableRequest? = nil) {
        let isContinued = request.map { record.isContinued(by: head, to: $0) } ?? true
        switch head.statusCode {
        case 206 where !isContinued, 416 where !isContinued: self = .requestWhole
        case 200: self = .startOver
        case 206: self = Self.partial(record, offset, head)
        case 416: self = Self.unsatisfiable(record, offset, head)
        default: self = .unrelated
        }
    }

    /// Judges a 206 (RFC 9110, section 15.3.7). Without a `Content-Range` it is multipart, or not the requested range. Without the validator
    /// of the request it may be of another version: servers exist that ignore `If-Range`, and a 206 has to repeat the `ETag` of the
    /// corresponding 200. It may omit `Last-Modified`, which servers hardly do; such a download starts over.
    private static func partial(_ record: ResumeRecord, _ offset: Int64, _ head: ResponseHead) -> ResumeDecision {
        guard !head.isCoded, record.isConfirmed(by: head), let range = head.value(for: "Content-Range").flatMap({ ContentRange($0) }),
            case .part(let first, let last, let total) = range, first == offset
        else { return .requestWhole }
        // A server may send less than was requested. That is so rare that the whole is requested, instead of range after range.
        guard let length = total ?? record.total, length - 1 == last, record.total ?? length == length else { return .requestWhole }
        guard head.expectedBodyLength.map({ $0 == length - offset }) ?? true else { return .requestWhole }
        return .append(total: length)
    }

    /// Judges a 416 (RFC 9110, section 15.5.17). A range that begins at the end of the file can't be satisfied: then the part file is
    /// complete.
    private static func unsatisfiable(_ record: ResumeRecord, _ offset: Int64, _ head: ResponseHead) -> ResumeDecision {
        guard !record.isContradicted(by: head), let range = head.value(for: "Content-Range").flatMap({ ContentRange($0) }),
            case .none(let total) = range, total == offset, record.total ?? total == total
        else { return .requestWhole }
        return .complete
    }
}

extension ResumeRecord {
    fileprivate var hasEntityTag: Bool { validator.hasBytePrefix("\"") }

    /// The validator of a response that is comparable with the record's.
    private func validator(of head: ResponseHead) -> String? { head.value(for: hasEntityTag ? "ETag" : "Last-Modified") }

    /// Whether a response has the same validator, and so is of the same version.
    fileprivate func isConfirmed(by head: ResponseHead) -> Bool { validator(of: head)?.hasSameBytes(as: validator) ?? false }

    /// Whether the bytes may become the beginning of what a request receives. Those of another user only if the response confirms their strong
    /// entity tag, which belongs to the same bytes only, at the same place: a date may be that of another user's file as well, and of another
    /// URL a tag says nothing.
    fileprivate func isContinued(by head: ResponseHead, to request: ResumableRequest) -> Bool {
        sender == request.senderDigest || hasEntityTag && place == request.place && isConfirmed(by: head)
    }

    /// Whether a response has another validator, and so may be of another version. A 416 need not have any.
    fileprivate func isContradicted(by head: ResponseHead) -> Bool { validator(of: head).map { !$0.hasSameBytes(as: validator) } ?? false }
}

extension ResponseHead {
    /// The bytes that a partial response has, and the length of the whole if that is known (RFC 9110, section 14.4); `nil` without a valid
    /// `Content-Range` in bytes.
    package var byteRange: (range: Range<Int64>, total: Int64?)? {
        guard let text = value(for: "Content-Range"), case .part(let first, let last, let total)? = ContentRange(text), last < .max
        else { return nil }
        return (first..<(last + 1), total)
    }

    /// Whether the body has a content coding (RFC 9110, section 8.4).
    package var isCoded: Bool {
        headers.contains { $0.isNamed("Content-Encoding") && !$0.value.isEmpty && !$0.value.equalsIgnoringASCIICase("identity") }
    }
}
