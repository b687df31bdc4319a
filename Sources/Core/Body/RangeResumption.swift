// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Identifies the version of a partly received body, requests the rest of it (RFC 9110, section 14), and judges the response.
///
/// For code that stores the bytes itself; ``SessionManager/download(_:method:parameters:encoding:headers:interceptor:to:)`` does all of
/// this. A value can be stored as JSON, and used in another process. It has no credentials.
package struct RangeResumption: Sendable, Hashable, Codable {
    /// What a response means for the stored bytes.
    package enum Answer: Sendable, Hashable {
        /// The body is the rest: append it to the stored bytes, up to this length.
        case append(total: Int64)
        /// The stored bytes are complete; the response's body is no part of them.
        case complete
        /// The body is the whole, possibly of another version: it replaces the stored bytes.
        case startOver
        /// Neither the stored bytes nor the body can be used: request the whole.
        case askForWhole
        /// The response is about something else, most likely an error: keep the stored bytes as they are.
        case setAside
    }

    private let record: ResumeRecord

    /// The response's strong `ETag` or, without one, its `Last-Modified`, unchanged (RFC 9110, section 8.8).
    package var validator: String { record.validator }

    /// The length of the whole in bytes; `nil` if the response did not announce it.
    package var total: Int64? { record.total }

    /// Records the version of a response; `nil` if it can't be resumed.
    ///
    /// It can if it answers a GET without `Range`, its status is 200, its body is not coded, it has a validator that can be sent in
    /// `If-Range`, and it does not have `Accept-Ranges: none`.
    package init?(_ request: URLRequest, _ head: ResponseHead) {
        guard request.httpMethod ?? "GET" == HTTPMethod.get.rawValue, request.value(forHTTPHeaderField: "Range") == nil,
            let url = request.url,
            let record = ResumeRecord(ResumableRequest(url, [:]), head)
        else { return nil }
        self.record = record
    }

    /// Returns the header fields that request the bytes from `offset` on if the version is still the same, and the whole otherwise; without
    /// a content coding.
    package func headers(offset: Int64) -> HTTPHeaders {
        ["Range": "bytes=\(offset)-", "If-Range": validator, "Accept-Encoding": "identity"]
    }

    /// Judges the head of the response to a request with ``headers(offset:)``.
    package func answer(_ head: ResponseHead, offset: Int64) -> Answer {
        switch ResumeDecision(record, offset: offset, head) {
        case .append(let total): .append(total: total)
        case .complete: .complete
        case .startOver: .startOver
        case .requestWhole: .askForWhole
        case .unrelated: .setAside
        }
    }

    /// Decodes a value.
    ///
    /// - Throws: ``CurlewError/resumeDataInvalid(reason:in:)`` if the data was changed into something that this library does not write.
    package init(from decoder: any Decoder) throws {
        let record = try decoder.singleValueContainer().decode(ResumeRecord.self)
        guard record.version == ResumeRecord.currentVersion else {
            throw CurlewError.resumeDataInvalid(reason: .unsupportedVersion(record.version))
        }
        // The bytes are stored by the caller, so the record names no part file.
        if let field = record.nameOfInvalidField, field != "partFile" { throw CurlewError.resumeDataInvalid(reason: .invalidField(field)) }
        self.record = record
    }

    /// Encodes the value, for another process.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(record)
    }
}
