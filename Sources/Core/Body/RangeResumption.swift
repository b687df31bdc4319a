// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Which version of a body has come so far, to ask for the rest of it (RFC 9110, section 14) and to judge what is answered.
///
/// For code that keeps the bytes itself; ``SessionManager/download(_:method:parameters:encoding:headers:interceptor:to:)`` does all of it.
/// A value can be kept as JSON, and used in another process.
public struct RangeResumption: Sendable, Hashable, Codable {
    /// What an answer means for the bytes that are there.
    public enum Answer: Sendable, Hashable {
        /// The rest comes, and goes behind what is there, up to this length.
        case append(total: Int64)
        /// Everything is there already; the answer's body is none of it.
        case complete
        /// The whole comes, of whatever version, and takes the place of what is there.
        case startOver
        /// Neither what is there nor the answer is of use: ask for the whole.
        case askForWhole
        /// The answer is about something else, an error most likely: what is there stays as it is.
        case setAside
    }

    private let record: ResumeRecord

    /// The strong entity tag or, without one, the date of the last change, as the response said it (RFC 9110, section 8.8).
    public var validator: String { record.validator }

    /// The length of the whole in bytes, if the response said it.
    public var total: Int64? { record.total }

    /// Takes note of a response's version; `nil` when it can't be resumed.
    ///
    /// It can if its status is 200, its body is not coded, it has a validator by which the server tells whether it still has the same, and
    /// does not say that it knows no ranges.
    public init?(_ request: URLRequest, _ head: ResponseHead) {
        guard request.httpMethod ?? "GET" == HTTPMethod.get.rawValue, request.value(forHTTPHeaderField: "Range") == nil,
            let url = request.url,
            let record = ResumeRecord(ResumableRequest(url, [:]), head)
        else { return nil }
        self.record = record
    }

    /// The header fields that ask for what comes behind `offset` bytes, if the version is still the same; the body must not be coded.
    public func headers(offset: Int64) -> HTTPHeaders {
        ["Range": "bytes=\(offset)-", "If-Range": validator, "Accept-Encoding": "identity"]
    }

    /// Judges the head of the answer to a request with ``headers(offset:)``.
    public func answer(_ head: ResponseHead, offset: Int64) -> Answer {
        switch ResumeDecision(record, offset: offset, head) {
        case .append(let total): .append(total: total)
        case .complete: .complete
        case .startOver: .startOver
        case .askForWhole: .askForWhole
        case .setAside: .setAside
        }
    }

    /// Reads what was encoded.
    ///
    /// - Throws: ``CurlewError/resumeDataInvalid(reason:)`` where it was changed into what this library does not write.
    public init(from decoder: any Decoder) throws {
        let record = try decoder.singleValueContainer().decode(ResumeRecord.self)
        guard record.version == ResumeRecord.currentVersion else {
            throw CurlewError.resumeDataInvalid(reason: .unsupportedVersion(record.version))
        }
        // The part is whoever's who keeps the bytes: it has no name here.
        if let field = record.nameOfInvalidField, field != "partFile" { throw CurlewError.resumeDataInvalid(reason: .invalidField(field)) }
        self.record = record
    }

    /// Writes it for another process.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(record)
    }
}
