// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What has to be known to go on with a download: what was asked for, which version of it came, and where that lies.
///
/// As JSON it is what users get as resume data, and what lies beside the part file of a download that outlives its process. User names,
/// passwords and the header fields that carry credentials are left out: they come from the adapter and the session again.
struct ResumeRecord: Codable, Hashable, Sendable {
    struct Field: Codable, Hashable, Sendable {
        let name: String
        let value: String
    }

    /// The version of this form; a reader refuses those it does not know.
    static let currentVersion = 1

    /// Header fields that are not kept: credentials, and those that a resumed request sets itself.
    private static let omittedFields = [
        "Authorization", "Proxy-Authorization", "Cookie", "Range", "If-Range", "Accept-Encoding", "If-Match", "If-None-Match",
        "If-Modified-Since", "If-Unmodified-Since",
    ]

    let version: Int
    let url: String
    let method: String
    private(set) var headers: [Field]
    /// The strong entity tag or, without one, the date of the last change, as the response said it (RFC 9110, section 8.8).
    let validator: String
    /// The number of bytes that were there when this was written; the part file's own length counts.
    var offset: Int64
    var total: Int64?
    /// The content type of the response, which one to a range need not repeat (RFC 9110, section 15.3.7).
    let contentType: String?
    var partFile: String
    /// Whether the part file has a name that other downloads use too: then the record that lies beside it says what it is.
    var isStable: Bool
    let created: Date
}

// MARK: - Descriptions

extension ResumeRecord: CustomStringConvertible, CustomReflectable {
    /// What is resumed and where, without secrets.
    var description: String { "\(method) \(url.redactedURL) from \(offset)" }

    /// Nothing beyond the description.
    var customMirror: Mirror { .redacted(self) }
}

// MARK: - Making one

extension ResumeRecord {
    /// A record of a download at its response's head; `nil` when such a response can't be resumed.
    ///
    /// It can when it is the whole thing, not coded (an offset in decoded bytes is no offset in the coded ones), and has a validator by
    /// which a server tells whether it still has the same.
    init?(_ request: ResumableRequest, _ head: ResponseHead, partFile: String = "", now: Date = Date()) {
        guard head.statusCode == 200, !head.isCoded, let validator = Self.validator(of: head) else { return nil }
        if head.value(for: "Accept-Ranges")?.equalsIgnoringASCIICase("none") == true { return nil }
        self.init(
            version: Self.currentVersion, url: request.url, method: HTTPMethod.get.rawValue,
            headers: request.headers.filter { header in !Self.omittedFields.contains { header.isNamed($0) } }
                .map { Field(name: $0.name, value: $0.value) },
            validator: validator, offset: 0, total: head.expectedBodyLength, contentType: head.value(for: "Content-Type"),
            partFile: partFile, isStable: false, created: now)
    }

    /// What can be sent in `If-Range` (RFC 9110, section 13.1.5): a strong entity tag; a date only if there is no tag at all, and the
    /// response is younger than it, so that nothing can have changed within that second (section 8.8.2.2).
    private static func validator(of head: ResponseHead) -> String? {
        if let tag = head.value(for: "ETag") { return isStrongTag(tag) ? tag : nil }
        guard let changed = head.value(for: "Last-Modified"), let date = head.value(for: "Date"),
            let changedAt = HTTPDate.date(from: changed), let sentAt = HTTPDate.date(from: date), sentAt > changedAt
        else { return nil }
        return changed
    }

    /// Whether a text is an entity tag in quotes, not a weak one (RFC 9110, section 8.8.3). Ours are ASCII: others can't be sent back as
    /// they came.
    private static func isStrongTag(_ text: String) -> Bool {
        let bytes = text.utf8
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") else { return false }
        return bytes.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
    }

    private var hasEntityTag: Bool { validator.hasPrefix("\"") }

    /// Whether a response with these fields may be of another version than the one that is there.
    func isContradicted(by head: ResponseHead) -> Bool {
        let field = head.value(for: hasEntityTag ? "ETag" : "Last-Modified")
        return field.map { $0 != validator } ?? false
    }
}

// MARK: - As data

extension ResumeRecord {
    /// Reads a record that was kept.
    init(_ data: Data) throws(CurlewError) {
        guard let form = try? JSONDecoder().decode(Form.self, from: data) else { throw .resumeDataInvalid(reason: .notResumeData) }
        guard form.version == Self.currentVersion else { throw .resumeDataInvalid(reason: .unsupportedVersion(form.version)) }
        guard let record = try? JSONDecoder().decode(ResumeRecord.self, from: data) else {
            throw .resumeDataInvalid(reason: .notResumeData)
        }
        if let name = record.nameOfInvalidField { throw .resumeDataInvalid(reason: .invalidField(name)) }
        self = record
    }

    /// What any version of a record has.
    private struct Form: Decodable {
        let version: Int
        let validator: String
        let partFile: String
    }

    /// Data may have been changed on its way: what can't be is said, and nothing of it reaches a request or a file system.
    var nameOfInvalidField: String? {
        if method != HTTPMethod.get.rawValue { return "method" }
        if URL(string: url)?.host == nil { return "url" }
        if !Self.isStrongTag(validator), HTTPDate.date(from: validator) == nil { return "validator" }
        if offset < 0 || offset > total ?? .max { return "offset" }
        if let contentType, !HTTPHeader(name: "Content-Type", value: contentType).isValid { return "contentType" }
        return PartFile.isName(URL(fileURLWithPath: partFile).lastPathComponent) && partFile.hasPrefix("/") ? nil : "partFile"
    }

    /// The record as it lies in a file beside its part file: whoever goes on has the header fields.
    var withoutHeaders: ResumeRecord {
        var record = self
        record.headers = []
        return record
    }

    var data: Data? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try? encoder.encode(self)
    }
}

/// What is asked for, as the user said it, before an adapter and the session added their part.
struct ResumableRequest: Equatable, Sendable {
    let url: String
    let headers: HTTPHeaders

    init(_ url: URL, _ headers: HTTPHeaders) {
        self.url = Self.text(of: url)
        self.headers = headers
    }

    /// Without user name and password, and without the fragment, which is not sent.
    private static func text(of url: URL) -> String {
        guard url.user != nil || url.password != nil || url.fragment != nil,
            var components = URLComponents(url: url, resolvingAgainstBaseURL: true)
        else { return url.absoluteString }
        components.user = nil
        components.password = nil
        components.fragment = nil
        return components.string ?? url.absoluteString
    }
}
