// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The version of a finished download, kept as an extended attribute of its file, so that a later download of the same URL to the same file
/// can ask the server whether it has changed.
///
/// The attribute is set before the file gets its name, and describes the file by length and modification time: it doesn't count for a file
/// that was edited, and a file that replaces this one does not have it. URLs are stored as digests, because others may read the attribute,
/// and URLs may have secrets.
package struct FinishedDownload: Codable, Equatable, Sendable {
    static let attributeName = "user.curlew.validator"
    private static let currentVersion = 1
    /// The longest validator that is kept, in bytes: some file systems have 4 KiB for all attributes of a file.
    private static let longestValidator = 1024

    /// The version of the JSON's form. One of another version does not count.
    private let version: Int
    /// The SHA-256 digest of the request's URL.
    private let url: String
    /// The same of the URL that responded, after redirects.
    private let source: String
    /// The response's `ETag`, strong or weak, or else its `Last-Modified` (RFC 9110, section 8.8).
    private let validator: String
    /// The response's content type, which a 304 need not repeat.
    let contentType: String?
    /// The file's length in bytes.
    package let length: Int64
    /// The file's modification time: seconds and nanoseconds.
    private let modified: [Int]
}

// MARK: - Creation

extension FinishedDownload {
    /// The version of a body that is being received.
    struct Version: Equatable, Sendable {
        let url: String
        let validator: String
        let contentType: String?

        /// The version of a response with the whole body; `nil` if it has no validator by which a later request can ask for changes.
        init?(_ request: ResumableRequest, _ head: ResponseHead) {
            guard head.statusCode == 200, let validator = head.finishedValidator else { return nil }
            self.init(url: request.url, validator: validator, contentType: head.value(for: "Content-Type"))
        }

        /// The version of which a part file is.
        init(_ record: ResumeRecord) {
            self.init(url: record.url, validator: record.validator, contentType: record.contentType)
        }

        init?(_ url: URL, _ head: ResponseHead) {
            guard let validator = head.finishedValidator else { return nil }
            self.init(url: ResumableRequest(url, [:]).url, validator: validator, contentType: head.value(for: "Content-Type"))
        }

        private init(url: String, validator: String, contentType: String?) {
            self.url = url
            self.validator = validator
            self.contentType = contentType
        }
    }

    /// Marks a complete file, which must not be written to afterwards. Without an effect where the file system has no attributes.
    ///
    /// - Parameter source: the URL that responded.
    static func mark(_ descriptor: Int32, as version: Version, from source: String) {
        guard version.validator.utf8.count <= longestValidator, let (length, modified) = identity(of: descriptor) else { return }
        let download = FinishedDownload(
            version: currentVersion, url: digest(version.url), source: digest(source), validator: version.validator,
            contentType: version.contentType.flatMap { $0.utf8.count <= longestValidator ? $0 : nil }, length: length, modified: modified)
        guard let value = try? JSONEncoder().encode(download) else { return }
        FileAttribute.set(value, of: attributeName, in: descriptor)
    }

    /// Marks a complete file of which some responses had parts, which must not be written to afterwards.
    ///
    /// - Parameters:
    ///   - url: the URL of the request.
    ///   - head: one of the responses. Without a validator in it there is no mark.
    ///   - source: the URL that responded.
    package static func mark(_ descriptor: Int32, as url: URL, _ head: ResponseHead, from source: String) {
        guard let version = Version(url, head) else { return }
        mark(descriptor, as: version, from: source)
    }

    /// Reads the mark of a file; `nil` if there is none, it is of another URL, or the file has changed since. Opens the file, so it may
    /// block briefly.
    package init?(of url: URL, at file: URL) {
        self.init(of: ResumableRequest(url, [:]), at: file)
    }

    /// The same for a request.
    init?(of request: ResumableRequest, at file: URL) {
        guard let download = Self.stored(at: file), download.url == Self.digest(request.url) else { return nil }
        self = download
    }

    private static func stored(at file: URL) -> FinishedDownload? {
        // Does not follow symbolic links, nor block on a pipe without a writer.
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        guard let value = FileAttribute.value(of: attributeName, in: descriptor),
            let download = try? JSONDecoder().decode(FinishedDownload.self, from: value),
            let (length, modified) = identity(of: descriptor)
        else { return nil }
        return download.isValid && download.length == length && download.modified == modified ? download : nil
    }

    /// Whether the fields can be used: an attribute may have been tampered with, and nothing of it reaches a request unchecked.
    private var isValid: Bool {
        guard version == Self.currentVersion, validator.isEntityTag || HTTPDate.date(from: validator) != nil else { return false }
        return contentType.map { HTTPHeader(name: "Content-Type", value: $0).isValid } ?? true
    }

    /// The length and modification time of a regular file.
    private static func identity(of descriptor: Int32) -> (length: Int64, modified: [Int])? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let time = status.modificationTime
        return (Int64(status.st_size), [Int(time.tv_sec), Int(time.tv_nsec)])
    }

    private static func digest(_ url: String) -> String {
        Data(SHA256.digest(of: url.utf8)).base64EncodedString()
    }
}

// MARK: - Asking for changes

extension FinishedDownload {
    /// The fields that make a request conditional (RFC 9110, section 13.1): with one of the user, the response is not about this file.
    private static let conditions = ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"]

    /// The field by which a request asks for the body only if it has changed (RFC 9110, sections 13.1.2 and 13.1.3).
    package var condition: HTTPHeader {
        HTTPHeader(name: validator.isEntityTag ? "If-None-Match" : "If-Modified-Since", value: validator)
    }

    /// Whether a request has no conditions of its own.
    static func mayAsk(_ headers: HTTPHeaders) -> Bool {
        !headers.contains { header in conditions.contains { header.isNamed($0) } }
    }

    /// Whether a 304 says that the server still has this version: it comes from the same URL, after redirects, and names no other version.
    package func isConfirmed(by head: ResponseHead, from source: String) -> Bool {
        guard head.statusCode == 304, self.source == Self.digest(source) else { return false }
        let named = head.value(for: validator.isEntityTag ? "ETag" : "Last-Modified")
        return named.map { $0.withoutWeakness == validator.withoutWeakness } ?? true
    }

    /// Whether the file is still the one that the server was asked about.
    package func isIntact(at file: URL) -> Bool { Self.stored(at: file) == self }
}

extension ResponseHead {
    /// The `ETag` or, without one, a `Last-Modified` that can be relied on.
    fileprivate var finishedValidator: String? {
        if let tag = value(for: "ETag") { return tag.isEntityTag ? tag : nil }
        return strongDate
    }
}

extension String {
    /// Whether this is an entity tag, strong or weak (RFC 9110, section 8.8.3).
    fileprivate var isEntityTag: Bool { ResumeRecord.isStrongTag(withoutWeakness) }

    /// An entity tag as the weak comparison sees it (RFC 9110, section 8.8.3.2), which If-None-Match uses.
    fileprivate var withoutWeakness: String { hasBytePrefix("W/") ? String(dropFirstScalars(2)) : self }
}

extension ResponseHead {
    /// The header fields without those that describe this response's own body.
    var headersWithoutBody: HTTPHeaders {
        let own = ["Content-Length", "Content-Type", "Content-Encoding", "Content-Language", "Transfer-Encoding", "Trailer"]
        return HTTPHeaders(headers.filter { header in !own.contains { header.isNamed($0) } })
    }
}
