// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

extension HTTPData {
    /// A multipart form, `multipart/form-data` (RFC 7578).
    ///
    /// ```swift
    /// HTTPData.Multipart {
    ///     MultipartPart.text("species", "Numenius arquata")
    ///     MultipartPart.file("call", URL(fileURLWithPath: "/tmp/call.ogg"))
    /// }
    /// ```
    ///
    /// Encoded again for each attempt. A form of 10 MB or more is encoded into a temporary file and streamed from there.
    public struct Multipart: HTTPBody, ExpressibleByArrayLiteral {
        /// The parts, in order.
        public let parts: [MultipartPart]

        /// Makes a form of parts.
        public init(_ parts: [MultipartPart]) {
            self.parts = parts
        }

        /// Makes a form of the parts listed by the closure.
        public init(@MultipartBuilder _ build: () -> [MultipartPart]) {
            parts = build()
        }

        /// Makes a form of a literal's parts.
        public init(arrayLiteral elements: MultipartPart...) {
            parts = elements
        }

        /// Sets the request's body and its `Content-Type`, unless the form is so large that it is sent from a file.
        public func add(to request: inout URLRequest) throws {
            let form = MultipartFormData()
            fill(form)
            guard form.contentLength < SessionManager.multipartFormDataEncodingMemoryThreshold else { return }
            request.httpBody = try form.encode()
            request.setValue(form.contentType, forHTTPHeaderField: "Content-Type")
        }

        func fill(_ form: MultipartFormData) {
            for part in parts { part.append(to: form) }
        }

        /// The names of the parts.
        public var description: String { "<form of \(parts.map { Redaction.escaped($0.name) }.joined(separator: ", "))>" }
    }
}

/// A part of an ``HTTPData/Multipart`` body.
public struct MultipartPart: Sendable {
    private enum Content {
        case data(Data, fileName: String?, MIMEType?)
        case file(URL, fileName: String?, MIMEType?)
    }

    /// The part's name.
    public let name: String
    private let content: Content

    /// Makes a text field.
    public static func text(_ name: String, _ text: String) -> MultipartPart {
        MultipartPart(name: name, content: .data(Data(text.utf8), fileName: nil, nil))
    }

    /// Makes a part of bytes: a file if it has a file name, of type `application/octet-stream` unless given.
    public static func data(_ name: String, _ data: Data, fileName: String? = nil, mimeType: MIMEType? = nil) -> MultipartPart {
        MultipartPart(name: name, content: .data(data, fileName: fileName, mimeType))
    }

    /// Makes a part of a file, with its own name and the type derived from it, unless others are given. A file that can't be read fails the
    /// request.
    public static func file(_ name: String, _ fileURL: URL, fileName: String? = nil, mimeType: MIMEType? = nil) -> MultipartPart {
        MultipartPart(name: name, content: .file(fileURL, fileName: fileName, mimeType))
    }

    func append(to form: MultipartFormData) {
        switch content {
        case .data(let data, .some(let fileName), let type):
            form.append(data, withName: name, fileName: fileName, mimeType: type?.rawValue ?? "application/octet-stream")
        case .data(let data, nil, .some(let type)): form.append(data, withName: name, mimeType: type.rawValue)
        case .data(let data, nil, nil): form.append(data, withName: name)
        case .file(let url, nil, nil): form.append(url, withName: name)
        case .file(let url, let fileName, let type):
            form.append(
                url, withName: name, fileName: fileName ?? url.lastPathComponent, mimeType: type?.rawValue ?? "application/octet-stream")
        }
    }
}

extension MultipartPart: CustomStringConvertible, CustomReflectable {
    /// The name.
    public var description: String { "<part \(Redaction.escaped(name))>" }
    /// Shows the name only: contents may be secret.
    public var customMirror: Mirror { .redacted(self, ["name": name]) }
}

/// Reflection shows no more than the description does.
extension HTTPData.Multipart: RedactedReflectable {}

/// Lists the parts of an ``HTTPData/Multipart`` body, one per line.
@resultBuilder
public enum MultipartBuilder {
    /// Returns the part.
    public static func buildExpression(_ part: MultipartPart) -> [MultipartPart] { [part] }
    /// Returns the parts, in order.
    public static func buildBlock(_ parts: [MultipartPart]...) -> [MultipartPart] { parts.flatMap { $0 } }
    /// Returns the parts, or none.
    public static func buildOptional(_ parts: [MultipartPart]?) -> [MultipartPart] { parts ?? [] }
    /// Returns the parts of the first branch.
    public static func buildEither(first parts: [MultipartPart]) -> [MultipartPart] { parts }
    /// Returns the parts of the second branch.
    public static func buildEither(second parts: [MultipartPart]) -> [MultipartPart] { parts }
    /// Returns the parts of all iterations.
    public static func buildArray(_ parts: [[MultipartPart]]) -> [MultipartPart] { parts.flatMap { $0 } }
}
