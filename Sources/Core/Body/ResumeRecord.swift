// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What resuming a download takes: the request, the version that was received, and the part file.
///
/// As JSON it is the resume data that users read, and the record beside the part file of a download that outlives its process. It has no
/// user names, passwords and header fields with credentials: the adapter and the session add those again. It does have the query of the URL,
/// which may be signed: without it the data alone could not resume.
struct ResumeRecord: Codable, Hashable, Sendable {
    struct Field: Codable, Hashable, Sendable {
        let name: String
        let value: String
    }

    /// The version of the JSON's form. Data of another version is rejected.
    static let currentVersion = 1

    /// Header fields that are not recorded: credentials, and those that a resumed request sets itself.
    private static let omittedFields = [
        "Authorization", "Proxy-Authorization", "Cookie", "Range", "If-Range", "Accept-Encoding", "If-Match", "If-None-Match",
        "If-Modified-Since", "If-Unmodified-Since",
    ]

    let version: Int
    let url: String
    let method: String
    private(set) var headers: [Field]
    /// The response's strong `ETag` or, without one, its `Last-Modified`, unchanged (RFC 9110, section 8.8).
    let validator: String
    /// The number of bytes received when the record was written, for information: the part file's length is the offset.
    var offset: Int64
    var total: Int64?
    /// The content type of the response, which the response to a range request need not repeat (RFC 9110, section 15.3.7).
    let contentType: String?
    var partFile: String
    /// Whether the part file has a name that other downloads use too: then the record beside it says which version it has.
    var isStable: Bool
    let created: Date
    /// The responder (``TransferRequest/responder``): bytes from another one are not appended. `nil` for a plain request.
    var responder: String?

    /// The sender of the request (``ResumableRequest/senderDigest``); empty in the resume data of a request with credentials.
    var sender: String?
    /// Where the response came from (``ResumableRequest/place``); `nil` in records of earlier versions.
    private(set) var place: String?

    /// The request and its responder.
    var identity: String { ResumableRequest.identity(url, responder) }

    /// Whether another record, which may be from resume data, is about the same version, sent by the same to the same.
    func describesSameBytes(as other: ResumeRecord) -> Bool {
        url == other.url && validator == other.validator && responder == other.responder && place == other.place
            && (sender == other.sender || sender != nil && other.sender == "")
    }
}

// MARK: - Descriptions

extension ResumeRecord: CustomStringConvertible, CustomReflectable {
    /// Method, URL and offset, redacted.
    var description: String { "\(method) \(url.redactedURL) from \(offset)" }

    /// Shows nothing beyond the description, as the fields may have secrets.
    var customMirror: Mirror { .redacted(self) }
}

// MARK: - Creation

extension ResumeRecord {
    /// Records a download by the head of its response; `nil` if that can't be resumed.
    ///
    /// It can if it is the whole, has no content coding (because an offset in decoded bytes is none in the coded ones), does not have
    /// `Accept-Ranges: none`, and has a validator that can be sent in `If-Range`.
    init?(_ request: ResumableRequest, _ head: ResponseHead, partFile: String = "", now: Date = Date()) {
        guard head.statusCode == 200, !head.isCoded, let validator = Self.validator(of: head) else { return nil }
        if head.value(for: "Accept-Ranges")?.equalsIgnoringASCIICase("none") == true { return nil }
        self.init(
            version: Self.currentVersion, url: request.url, method: HTTPMethod.get.rawValue,
            headers: request.headers.filter { !Self.isOmitted($0) }.map { Field(name: $0.name, value: $0.value) },
            validator: validator, offset: 0, total: head.expectedBodyLength, contentType: head.value(for: "Content-Type"),
            partFile: partFile, isStable: false, created: now, responder: request.responder,
            sender: request.senderDigest, place: request.place)
    }

    private static func isOmitted(_ header: HTTPHeader) -> Bool {
        omittedFields.contains { header.isNamed($0) } || Redaction.current.hides(header: header.name)
    }

    /// Returns what can be sent in `If-Range` (RFC 9110, section 13.1.5): a strong entity tag; a date only if there is no tag at all, and
    /// the response is younger than it, so that nothing can have changed within that second (section 8.8.2.2).
    private static func validator(of head: ResponseHead) -> String? {
        if let tag = head.value(for: "ETag") { return tag.isStrongEntityTag ? tag : nil }
        return head.strongDate
    }
}

extension ResponseHead {
    /// A `Last-Modified` that is older than the response, so that nothing can have changed within that second (RFC 9110, section 8.8.2.2).
    package var strongDate: String? {
        guard let changed = value(for: "Last-Modified"), let date = value(for: "Date"),
            let changedAt = HTTPDate.date(from: changed), let sentAt = HTTPDate.date(from: date), sentAt > changedAt
        else { return nil }
        return changed
    }
}

extension ResponseHead {
    /// A strong entity tag, which is the same only for the same bytes (RFC 9110, section 8.8.3).
    package var strongTag: String? { value(for: "ETag").flatMap { $0.isStrongEntityTag ? $0 : nil } }
}

extension DownloadRequest {
    /// The URL that resume data is about; `nil` for other data.
    package static func url(ofResumeData data: Data) -> URL? { (try? ResumeRecord(data)).flatMap { URL(string: $0.url) } }
}

// MARK: - Serialization

extension ResumeRecord {
    /// Decodes a record.
    ///
    /// - Throws: ``CurlewError/resumeDataInvalid(reason:in:)``.
    init(_ data: Data) throws(CurlewError) {
        guard let form = try? JSONDecoder().decode(Form.self, from: data) else { throw .resumeDataInvalid(reason: .notResumeData) }
        guard form.version == Self.currentVersion else { throw .resumeDataInvalid(reason: .unsupportedVersion(form.version)) }
        guard let record = try? JSONDecoder().decode(ResumeRecord.self, from: data) else {
            throw .resumeDataInvalid(reason: .notResumeData)
        }
        if let name = record.nameOfInvalidField { throw .resumeDataInvalid(reason: .invalidField(name)) }
        self = record
    }

    /// The fields that every version of a record has.
    private struct Form: Decodable {
        let version: Int
        let validator: String
        let partFile: String
    }

    /// The name of the first invalid field; `nil` if all are valid. Resume data may have been tampered with, so that nothing of it reaches
    /// a request or the file system unchecked.
    var nameOfInvalidField: String? {
        if method != HTTPMethod.get.rawValue { return "method" }
        if URL(string: url)?.host == nil { return "url" }
        if !validator.isStrongEntityTag, HTTPDate.date(from: validator) == nil { return "validator" }
        if offset < 0 || offset > total ?? .max { return "offset" }
        if let contentType, !HTTPHeader(name: "Content-Type", value: contentType).isValid { return "contentType" }
        let isPath = partFile.hasBytePrefix("/") && !partFile.utf8.contains(0)
        return isPath && PartFile.isName(URL(fileURLWithPath: partFile).lastPathComponent) ? nil : "partFile"
    }

    /// The record as it is stored beside its part file, without the header fields: the request that resumes has its own.
    var withoutHeaders: ResumeRecord {
        var record = self
        record.headers = []
        return record
    }

    /// The record as resume data, which may be kept where others read it: a password could be found by its digest.
    var withoutSender: ResumeRecord {
        var record = self
        if sender != nil { record.sender = "" }
        return record
    }

    var data: Data? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try? encoder.encode(self)
    }
}

/// The request of a download as the user made it, without what the adapter and the session add.
struct ResumableRequest: Equatable, Sendable {
    let url: String
    let headers: HTTPHeaders
    /// As in ``ResumeRecord/responder``.
    private(set) var responder: String?
    /// The sender of its first exchange (``TransferRequest/sender``).
    private var sender = ""
    /// The name of the user whose credential has answered a challenge; `nil` if none has.
    var user: String?
    /// The URL that has responded, after redirects.
    var source = ""
    /// As in ``ResumeRecord/identity``.
    var identity: String { Self.identity(url, responder) }

    static func identity(_ url: String, _ responder: String?) -> String { responder.map { "\(url) \($0)" } ?? url }

    init(_ url: URL, _ headers: HTTPHeaders) {
        self.url = Self.text(of: url)
        self.headers = headers
    }

    /// Returns the same request with the responder and the sender of its first exchange.
    func sent(as first: TransferRequest) -> ResumableRequest {
        var request = answered(by: first.responder)
        request.sender = first.sender
        return request
    }

    /// Returns the same request with a responder, which is empty for a plain request.
    func answered(by responder: String) -> ResumableRequest {
        var request = self
        request.responder = responder.isEmpty ? nil : responder
        return request
    }

    /// A digest that distinguishes the credentials of requests, by their values; `nil` for a request without any. Those of a challenge
    /// count by the user, because Digest has other values each time.
    var senderDigest: String? { Self.senderDigest(sender, user) }

    static func senderDigest(_ sender: String, _ user: String?) -> String? {
        guard !sender.isEmpty || user != nil else { return nil }
        return SHA256.digest(of: "\(sender) \(user ?? "")".utf8).hexDigits
    }

    /// A digest of the URL that has responded, without its query, which is another one each time if it is signed.
    var place: String { FinishedDownload.place(of: source) }

    /// The URL without user name and password, and without the fragment, which is not sent.
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

extension DataRequest {
    /// Returns the sender of the request, as in ``ResumableRequest/senderDigest``.
    ///
    /// - Parameter cookies: the session's cookies when it was sent, which the response may have changed.
    package func sender(cookies: String?) -> String? {
        guard var transfer = task?.originalTransfer else { return nil }
        if let cookies { transfer.headers.append(name: "Cookie", value: cookies) }
        let user = driver.state.withLock { $0.authentication }?.answer?.credential.user
        return ResumableRequest.senderDigest(transfer.sender, user)
    }
}
