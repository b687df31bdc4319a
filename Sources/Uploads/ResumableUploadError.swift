// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Why a resumable upload has failed, where the server or the file is the reason. Lost connections and timeouts are a `CurlewError`, files
/// that can't be read or written a `CocoaError`.
public struct ResumableUploadError: Error, Sendable {
    /// The kind of a failure.
    ///
    /// An open set: later versions may add kinds, so a `switch` needs a `default`.
    public struct Kind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The kind's name.
        public let rawValue: String

        /// The kind's name, such as `tooLarge`.
        public var description: String { rawValue }

        /// Creates a kind from a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The file is no regular file.
        public static let notAFile = Kind(rawValue: "notAFile")
        /// The file changed while it was uploaded. The next upload starts over.
        public static let fileChanged = Kind(rawValue: "fileChanged")
        /// Another upload has the state file, in this process or another.
        public static let inUse = Kind(rawValue: "inUse")
        /// A key of the metadata is empty, or has a space, a comma or a character beyond ASCII.
        public static let invalidMetadata = Kind(rawValue: "invalidMetadata")
        /// The server does not support this version of the protocol (412).
        public static let unsupportedVersion = Kind(rawValue: "unsupportedVersion")
        /// The server does not support what the upload needs, such as its removal.
        public static let unsupported = Kind(rawValue: "unsupported")
        /// The file, or the body of one request, is larger than the server accepts (413, `Tus-Max-Size`, `Upload-Limit`). Smaller chunks may
        /// help in the latter case; uploads by the draft for HTTP try them.
        public static let tooLarge = Kind(rawValue: "tooLarge")
        /// The server forbids it (403).
        public static let forbidden = Kind(rawValue: "forbidden")
        /// The server has lost the upload (404, 410), also when it was begun again.
        public static let gone = Kind(rawValue: "gone")
        /// The server has another offset than the one it reported (409), again and again.
        public static let offsetConflict = Kind(rawValue: "offsetConflict")
        /// Another request has locked the upload (423), for longer than the retries took.
        public static let locked = Kind(rawValue: "locked")
        /// A chunk did not have its checksum when it arrived, again and again; or the server has received other bytes than the file has.
        public static let checksumMismatch = Kind(rawValue: "checksumMismatch")
        /// The server named an upload of another origin, which is not allowed, or one without TLS.
        public static let otherOrigin = Kind(rawValue: "otherOrigin")
        /// The upload that is to be removed was begun with other credentials.
        public static let otherCredentials = Kind(rawValue: "otherCredentials")
        /// The server's response contradicts the protocol.
        public static let invalidResponse = Kind(rawValue: "invalidResponse")
        /// The server refused a request with another status.
        public static let refused = Kind(rawValue: "refused")
    }

    /// The kind of the failure.
    public let kind: Kind
    /// What it is about: the URL of the request, redacted, or the path of the file.
    public let subject: String
    /// The reason, in a sentence.
    public let message: String
    /// The status of the response; `nil` without one.
    public let statusCode: Int?
    /// The error of the request, with the body of the response and its problem details; `nil` if there was none.
    public let underlyingError: CurlewError?

    /// Creates an error.
    public init(kind: Kind, subject: String, message: String, underlyingError: CurlewError? = nil) {
        self.kind = kind
        self.subject = subject
        self.message = message
        self.statusCode = underlyingError?.statusCode
        self.underlyingError = underlyingError
    }
}

// MARK: - Descriptions

extension ResumableUploadError: CustomStringConvertible {
    /// What failed, on what, and why.
    public var description: String { "\(subject): \(message)" }
}

extension ResumableUploadError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

// MARK: - Creation

extension ResumableUploadError {
    static func file(_ kind: Kind, _ file: URL, _ message: String) -> ResumableUploadError {
        ResumableUploadError(kind: kind, subject: file.path, message: message)
    }

    static func invalidResponse(_ url: URL, _ message: String) -> ResumableUploadError {
        ResumableUploadError(kind: .invalidResponse, subject: url.absoluteString.redactedURL, message: message)
    }

    /// Returns the error for a refused request.
    init(refusing url: URL, _ status: Int, _ error: CurlewError?) {
        let (kind, message): (Kind, String) =
            switch status {
            case 403: (.forbidden, "the server forbids the upload")
            case 404, 410: (.gone, "the server has no such upload")
            case 409: (.offsetConflict, "the server has another offset than the one it reported")
            case 412: (.unsupportedVersion, "the server does not support this version of the protocol")
            case 413: (.tooLarge, "the file or the request's body is larger than the server accepts")
            case 423: (.locked, "another request has locked the upload")
            case 460: (.checksumMismatch, "a chunk did not have its checksum when it arrived")
            default: (.refused, "the server refused the request with status \(status)")
            }
        self.init(kind: kind, subject: url.absoluteString.redactedURL, message: message, underlyingError: error)
    }
}
