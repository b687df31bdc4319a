// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The body of a request. ``HTTPData`` has the common ones.
public protocol HTTPBody: Sendable, CustomStringConvertible {
    /// Adds the body to a request: its bytes, and a `Content-Type` if it has one. `Content-Length` need not be set.
    ///
    /// Called for each attempt, after the header fields are set. An error that it throws, other than a ``ServiceError``, becomes the cause
    /// of ``ServiceError/encodingFailed(_:)``.
    func add(to request: inout URLRequest) throws

    /// The file that is sent as the body, streamed from disk; `nil`, the default, if the bytes are in the request.
    var fileURL: URL? { get }
}

extension HTTPBody {
    /// `nil`: no file.
    public var fileURL: URL? { nil }
}

/// The bodies that come with the library.
public enum HTTPData {
    /// No body. POST and PUT requests then send `Content-Length: 0`.
    public struct Empty: HTTPBody {
        /// Makes an empty body.
        public init() {}

        /// Leaves the request without a body.
        public func add(to request: inout URLRequest) throws {}

        /// `<empty>`.
        public var description: String { "<empty>" }
    }

    /// Bytes of any media type.
    public struct Raw: HTTPBody {
        /// The media type, sent as `Content-Type`; `nil` for none.
        public let mimeType: MIMEType?
        /// The bytes.
        public let data: Data

        /// Makes a body of bytes.
        public init(_ mimeType: MIMEType?, _ data: Data) {
            self.mimeType = mimeType
            self.data = data
        }

        /// Sets the request's body, and its `Content-Type` if there is one.
        public func add(to request: inout URLRequest) throws {
            if let mimeType { request.setField("Content-Type", mimeType.rawValue) }
            request.httpBody = data
        }

        /// The media type and the number of bytes.
        public var description: String { "<\(mimeType?.rawValue ?? "bytes"), \(data.count) bytes>" }
    }

    /// An image, or any other file content held in memory.
    public struct Image: HTTPBody {
        private let raw: Raw

        /// Makes a body of an image's bytes, which are sent unchanged.
        public init(_ mimeType: MIMEType, _ data: Data) {
            raw = Raw(mimeType, data)
        }

        /// Sets the request's body and its `Content-Type`.
        public func add(to request: inout URLRequest) throws { try raw.add(to: &request) }

        /// The media type and the number of bytes.
        public var description: String { raw.description }
    }

    /// A file, streamed from disk and never loaded whole; it must not change until it has been sent.
    public struct File: HTTPBody {
        /// The media type, sent as `Content-Type`.
        public let mimeType: MIMEType
        /// The file.
        public let fileURL: URL?

        /// Makes a body of a file. A file that can't be read fails the request.
        public init(_ mimeType: MIMEType, _ fileURL: URL) {
            self.mimeType = mimeType
            self.fileURL = fileURL
        }

        /// Sets the request's `Content-Type`.
        public func add(to request: inout URLRequest) throws {
            request.setField("Content-Type", mimeType.rawValue)
        }

        /// The media type and the file's name.
        public var description: String { "<\(mimeType.rawValue), \(fileURL?.lastPathComponent ?? "no file")>" }
    }
}

/// Reflection shows no more than the description does.
extension HTTPData.Raw: RedactedReflectable {}

/// A media type (RFC 9110, section 8.3.1). An open set: any string makes one.
public struct MIMEType: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    /// The type as written in `Content-Type`.
    public let rawValue: String

    /// Makes a media type of a string, which is not checked: a request with an invalid one fails.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Makes a media type of a literal.
    public init(stringLiteral value: String) { rawValue = value }

    /// `application/json` (RFC 8259).
    public static let json: MIMEType = "application/json"
    /// `image/png`.
    public static let png: MIMEType = "image/png"
    /// `image/jpeg`.
    public static let jpeg: MIMEType = "image/jpeg"
}

// MARK: - Builder

/// Selects a body: that of the branch taken, or none.
@resultBuilder
public enum HTTPBodyBuilder {
    /// Returns the body.
    public static func buildExpression(_ body: any HTTPBody) -> any HTTPBody { body }
    /// Returns the empty body.
    public static func buildBlock() -> any HTTPBody { HTTPData.Empty() }
    /// Returns the body. Only one is allowed.
    public static func buildBlock(_ body: any HTTPBody) -> any HTTPBody { body }
    /// Returns the body, or the empty one.
    public static func buildOptional(_ body: (any HTTPBody)?) -> any HTTPBody { body ?? HTTPData.Empty() }
    /// Returns the body of the first branch.
    public static func buildEither(first body: any HTTPBody) -> any HTTPBody { body }
    /// Returns the body of the second branch.
    public static func buildEither(second body: any HTTPBody) -> any HTTPBody { body }
}
