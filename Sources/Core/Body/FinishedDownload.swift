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
    /// The SHA-256 digest of the request's URL and its responder.
    private let url: String
    /// The same of the URL that responded, after redirects.
    private let source: String
    /// The same without its query; `nil` in marks of earlier versions.
    private var place: String?
    /// The response's `ETag`, strong or weak, or else its `Last-Modified` (RFC 9110, section 8.8); empty if it had none of use.
    private let validator: String
    /// The response's content type, which a 304 need not repeat.
    let contentType: String?
    /// `nil` for a request without credentials, otherwise empty: others may read the attribute, and could find a password by its digest. So
    /// a file that was sent to a user is that of no other request unless a strong entity tag says so.
    private var sender: String?
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
        let sender: String?

        /// The version of a response with the whole body; `nil` for another one.
        init?(_ request: ResumableRequest, _ head: ResponseHead) {
            guard head.statusCode == 200 else { return nil }
            self.init(request.identity, head, request.senderDigest)
        }

        /// The version of a part file that a request has completed.
        init(_ record: ResumeRecord, _ request: ResumableRequest?) {
            url = record.identity
            validator = record.validator
            contentType = record.contentType
            sender = request?.senderDigest
        }

        /// The version of a response, which may lack a validator.
        init(_ url: URL, by responder: String, for sender: String?, _ head: ResponseHead) {
            self.init(ResumableRequest(url, [:]).answered(by: responder).identity, head, sender)
        }

        private init(_ identity: String, _ head: ResponseHead, _ sender: String?) {
            url = identity
            validator = head.finishedValidator ?? ""
            contentType = head.value(for: "Content-Type")
            self.sender = sender
        }
    }

    /// Marks a complete file, which must not be written to afterwards. Without an effect where the file system has no attributes.
    ///
    /// - Parameter source: the URL that responded.
    static func mark(_ descriptor: Int32, as version: Version, from source: String) {
        guard version.validator.utf8.count <= longestValidator, let (length, modified) = identity(of: descriptor) else { return }
        let download = FinishedDownload(
            version: currentVersion, url: digest(version.url), source: digest(source), place: place(of: source),
            validator: version.validator, contentType: version.contentType.flatMap { $0.utf8.count <= longestValidator ? $0 : nil },
            sender: version.sender.map { _ in "" }, length: length, modified: modified)
        guard let value = try? JSONEncoder().encode(download) else { return }
        FileAttribute.set(value, of: attributeName, in: descriptor)
    }

    /// Marks a complete file of which some responses had parts, which must not be written to afterwards.
    ///
    /// - Parameters:
    ///   - url: the URL of the request.
    ///   - responder: its responder (``TransferRequest/responder``).
    ///   - sender: its sender (``DataRequest/sender(cookies:)``).
    ///   - head: one of the responses.
    ///   - source: the URL that responded.
    package static func mark(
        _ descriptor: Int32, as url: URL, by responder: String, for sender: String?, _ head: ResponseHead, from source: String
    ) {
        mark(descriptor, as: Version(url, by: responder, for: sender, head), from: source)
    }

    /// Reads the mark of a file; `nil` if there is none, it is of another URL, or the file has changed since. Opens the file, so it may
    /// block briefly.
    package init?(of url: URL, by responder: String, at file: URL) {
        self.init(of: ResumableRequest(url, [:]).answered(by: responder), at: file)
    }

    /// The same for a request.
    init?(of request: ResumableRequest, at file: URL) {
        guard let download = Self.stored(at: file), download.url == Self.digest(request.identity) else { return nil }
        self = download
    }

    private static func stored(at file: URL) -> FinishedDownload? {
        guard let file = PrivateFile.open(file.path, O_RDONLY) else { return nil }
        return withExtendedLifetime(file) {
            guard let value = FileAttribute.value(of: attributeName, in: file.number),
                let download = try? JSONDecoder().decode(FinishedDownload.self, from: value),
                let (length, modified) = identity(of: file.number)
            else { return nil }
            return download.isValid && download.length == length && download.modified == modified ? download : nil
        }
    }

    /// Whether the fields can be used: an attribute may have been tampered with, and nothing of it reaches a request unchecked.
    private var isValid: Bool {
        guard version == Self.currentVersion, validator.isEmpty || validator.isEntityTag || HTTPDate.date(from: validator) != nil else {
            return false
        }
        return contentType.map { HTTPHeader(name: "Content-Type", value: $0).isValid } ?? true
    }

    /// The length and modification time of a regular file.
    private static func identity(of descriptor: Int32) -> (length: Int64, modified: [Int])? {
        var status = stat()
        // Another user can mark a file of his own as any download.
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else { return nil }
        let time = status.modificationTime
        return (Int64(status.st_size), [Int(time.tv_sec), Int(time.tv_nsec)])
    }

    /// A digest of a URL without its query.
    package static func place(of url: String) -> String { digest(String(url.prefixScalars { $0 != "?" && $0 != "#" })) }

    private static func digest(_ url: String) -> String {
        Data(SHA256.digest(of: url.utf8)).base64EncodedString()
    }
}

// MARK: - Asking for changes

extension FinishedDownload {
    /// The fields that make a request conditional (RFC 9110, section 13.1): with one of the user, the response is not about this file.
    private static let conditions = ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"]

    /// The field by which a request asks for the body only if it has changed (RFC 9110, sections 13.1.2 and 13.1.3); `nil` without a
    /// validator.
    package var condition: HTTPHeader? {
        guard isVersioned else { return nil }
        return HTTPHeader(name: validator.isEntityTag ? "If-None-Match" : "If-Modified-Since", value: validator)
    }

    /// Whether the server has named the version by a validator.
    package var isVersioned: Bool { !validator.isEmpty }

    /// Whether a request has no conditions of its own.
    static func mayAsk(_ headers: HTTPHeaders) -> Bool {
        !headers.contains { header in conditions.contains { header.isNamed($0) } }
    }

    /// Whether a response comes from the URL that has sent the file. A signed URL, to which a server redirects, has another query each time:
    /// then the response has to repeat the entity tag. To a user with credentials, it has to repeat a strong one.
    private func isSource(_ source: String, of head: ResponseHead, for sender: String?) -> Bool {
        let isRepeated = validator.isEntityTag && head.value(for: "ETag")?.matchesWeakly(validator) == true
        guard sender == self.sender || isRepeated && head.strongTag == validator else { return false }
        return self.source == Self.digest(source) || isRepeated && place == Self.place(of: source)
    }

    /// Whether a 304 says that the server still has this version: it comes from the same URL, after redirects, and names no other version.
    package func isConfirmed(by head: ResponseHead, from source: String, for sender: String?) -> Bool {
        guard head.statusCode == 304, isVersioned, isSource(source, of: head, for: sender) else { return false }
        let named = head.value(for: validator.isEntityTag ? "ETag" : "Last-Modified")
        return named?.matchesWeakly(validator) ?? true
    }

    /// Whether a response with a body, of a server that ignores conditions, is of this version: it comes from the same URL, after
    /// redirects, and has the same entity tag, or else the same date and length. Without a validator the length decides, unless the
    /// response says that it was changed since.
    ///
    /// - Parameter length: the length of the whole; `nil` if it is unknown.
    package func isRepeated(by head: ResponseHead, length: Int64?, from source: String, for sender: String?) -> Bool {
        guard isSource(source, of: head, for: sender), length ?? self.length == self.length else { return false }
        if validator.isEntityTag { return head.value(for: "ETag")?.matchesWeakly(validator) == true }
        let date = head.value(for: "Last-Modified")
        guard length != nil, !isVersioned else { return length != nil && date == validator }
        return date.flatMap { HTTPDate.date(from: $0) }.map { Int($0.timeIntervalSince1970) <= modified[0] } ?? true
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

extension ResponseHead {
    /// The header fields without those that describe this response's own body.
    var headersWithoutBody: HTTPHeaders {
        let own = ["Content-Length", "Content-Type", "Content-Encoding", "Content-Language", "Transfer-Encoding", "Trailer"]
        return HTTPHeaders(headers.filter { header in !own.contains { header.isNamed($0) } })
    }
}
