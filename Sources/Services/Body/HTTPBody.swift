// SPDX-License-Identifier: Apache-2.0

/// The body of a request. ``HTTPData`` has the usual ones.
public protocol HTTPBody: Sendable, CustomStringConvertible {
    /// Writes the body into a request: its bytes, and a `Content-Type` if it has one. The length need not be said.
    ///
    /// Called for each attempt, after the header fields were set. What it throws, other than a ``ServiceError``, is the cause of
    /// ``ServiceError/encodingFailed(_:)``.
    func add(to request: inout URLRequest) throws

    /// The file that is the body, which is read while it is sent; `nil`, the default, where the bytes are in the request.
    var fileURL: URL? { get }
}

extension HTTPBody {
    /// No file.
    public var fileURL: URL? { nil }
}

/// The bodies that come with the library.
public enum HTTPData {
    /// No body. A POST or PUT says so with `Content-Length: 0`.
    public struct Empty: HTTPBody {
        /// Makes an empty body.
        public init() {}

        /// Leaves the request without a body.
        public func add(to request: inout URLRequest) throws {}

        /// `<empty>`.
        public var description: String { "<empty>" }
    }

    /// Bytes of any type.
    public struct Raw: HTTPBody {
        /// The type, which goes out as `Content-Type`; `nil` for none.
        public let mimeType: MIMEType?
        /// The bytes.
        public let data: Data

        /// Makes a body of bytes.
        public init(_ mimeType: MIMEType?, _ data: Data) {
            self.mimeType = mimeType
            self.data = data
        }

        /// Puts the bytes into the request.
        public func add(to request: inout URLRequest) throws {
            if let mimeType { request.setValue(mimeType.rawValue, forHTTPHeaderField: "Content-Type") }
            request.httpBody = data
        }

        /// The type and the number of bytes.
        public var description: String { "<\(mimeType?.rawValue ?? "bytes"), \(data.count) bytes>" }
    }

    /// A picture, or another file's content that is in memory.
    public struct Image: HTTPBody {
        private let raw: Raw

        /// Makes a body of a picture's bytes, which are sent as they are.
        public init(_ mimeType: MIMEType, _ data: Data) {
            raw = Raw(mimeType, data)
        }

        /// Puts the picture into the request.
        public func add(to request: inout URLRequest) throws { try raw.add(to: &request) }

        /// The type and the number of bytes.
        public var description: String { raw.description }
    }

    /// A file, which is read while it is sent and never as a whole; it has to stay as it is until then.
    public struct File: HTTPBody {
        /// The type, which goes out as `Content-Type`.
        public let mimeType: MIMEType
        /// The file.
        public let fileURL: URL?

        /// Makes a body of a file. One that can't be read fails the request.
        public init(_ mimeType: MIMEType, _ fileURL: URL) {
            self.mimeType = mimeType
            self.fileURL = fileURL
        }

        /// Sets the request's type.
        public func add(to request: inout URLRequest) throws {
            request.setValue(mimeType.rawValue, forHTTPHeaderField: "Content-Type")
        }

        /// The type and the file's name.
        public var description: String { "<\(mimeType.rawValue), \(fileURL?.lastPathComponent ?? "no file")>" }
    }
}

/// The type of a body (RFC 9110, section 8.3.1). An open set: any text makes one.
public struct MIMEType: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    /// The type as it stands in `Content-Type`.
    public let rawValue: String

    /// Makes a type of a text, which is not checked: a request with an invalid one fails.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Makes a type of a literal.
    public init(stringLiteral value: String) { rawValue = value }

    /// `application/json` (RFC 8259).
    public static let json: MIMEType = "application/json"
    /// `image/png`.
    public static let png: MIMEType = "image/png"
    /// `image/jpeg`.
    public static let jpeg: MIMEType = "image/jpeg"
}

// MARK: - Builder

/// Chooses a body: the one of the branch that is taken, or none.
@resultBuilder
public enum HTTPBodyBuilder {
    /// A body.
    public static func buildExpression(_ body: any HTTPBody) -> any HTTPBody { body }
    /// No body.
    public static func buildBlock() -> any HTTPBody { HTTPData.Empty() }
    /// The body. There can be one only.
    public static func buildBlock(_ body: any HTTPBody) -> any HTTPBody { body }
    /// The body, or none.
    public static func buildOptional(_ body: (any HTTPBody)?) -> any HTTPBody { body ?? HTTPData.Empty() }
    /// The body of a branch.
    public static func buildEither(first body: any HTTPBody) -> any HTTPBody { body }
    /// The body of a branch.
    public static func buildEither(second body: any HTTPBody) -> any HTTPBody { body }
}
