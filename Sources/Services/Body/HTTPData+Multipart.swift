// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding

extension HTTPData {
    /// A form of parts, `multipart/form-data` (RFC 7578).
    ///
    /// ```swift
    /// HTTPData.Multipart {
    ///     MultipartPart.text("species", "Numenius arquata")
    ///     MultipartPart.file("call", URL(fileURLWithPath: "/tmp/call.ogg"))
    /// }
    /// ```
    ///
    /// Put together anew for each attempt. A form over 10 MB is put together in a file of its own, and sent from there.
    public struct Multipart: HTTPBody, ExpressibleByArrayLiteral {
        /// The parts in their order.
        public let parts: [MultipartPart]

        /// Makes a form of parts.
        public init(_ parts: [MultipartPart]) {
            self.parts = parts
        }

        /// Makes a form of the parts that the closure lists.
        public init(@MultipartBuilder _ build: () -> [MultipartPart]) {
            parts = build()
        }

        /// Makes a form of a literal's parts.
        public init(arrayLiteral elements: MultipartPart...) {
            parts = elements
        }

        /// Puts the form into the request, with its type; one that is sent from a file is left out.
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
        public var description: String { "<form of \(parts.map(\.name).joined(separator: ", "))>" }
    }
}

/// A part of a ``HTTPData/Multipart`` body.
public struct MultipartPart: Sendable {
    private enum Content {
        case data(Data, fileName: String?, MIMEType?)
        case file(URL, fileName: String?, MIMEType?)
    }

    /// The part's name.
    public let name: String
    private let content: Content

    /// A text field.
    public static func text(_ name: String, _ text: String) -> MultipartPart {
        MultipartPart(name: name, content: .data(Data(text.utf8), fileName: nil, nil))
    }

    /// Bytes, as a file if they have a file name; without a type then `application/octet-stream`.
    public static func data(_ name: String, _ data: Data, fileName: String? = nil, mimeType: MIMEType? = nil) -> MultipartPart {
        MultipartPart(name: name, content: .data(data, fileName: fileName, mimeType))
    }

    /// A file, under its own name and with the type that follows from it, unless other ones are given. One that can't be read fails the
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

/// Lists the parts of a ``HTTPData/Multipart`` body, one a line.
@resultBuilder
public enum MultipartBuilder {
    /// A part.
    public static func buildExpression(_ part: MultipartPart) -> [MultipartPart] { [part] }
    /// The parts in their order.
    public static func buildBlock(_ parts: [MultipartPart]...) -> [MultipartPart] { parts.flatMap { $0 } }
    /// The parts, or none.
    public static func buildOptional(_ parts: [MultipartPart]?) -> [MultipartPart] { parts ?? [] }
    /// The parts of a branch.
    public static func buildEither(first parts: [MultipartPart]) -> [MultipartPart] { parts }
    /// The parts of a branch.
    public static func buildEither(second parts: [MultipartPart]) -> [MultipartPart] { parts }
    /// The parts of a loop.
    public static func buildArray(_ parts: [[MultipartPart]]) -> [MultipartPart] { parts.flatMap { $0 } }
}
