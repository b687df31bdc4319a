// SPDX-License-Identifier: Apache-2.0

/// A parsed `multipart/form-data` body, in strict conformance with RFC 2046, section 5.1: any deviation is an error.
public struct MultipartBody: Sendable {
    /// One part.
    public struct Part: Sendable {
        /// The header fields in the order they were sent.
        public let headers: [ServerField]
        /// The content.
        public let body: Data

        /// Returns the value of the first field with a name, case-insensitively.
        public func header(_ name: String) -> String? {
            headers.first { $0.isNamed(name) }?.value
        }

        /// The content as UTF-8.
        public var text: String { String(decoding: body, as: UTF8.self) }
    }

    /// A violation of the format.
    public struct Malformed: Error, CustomStringConvertible {
        /// The rule that was violated.
        public let description: String
    }

    /// The parts in the order they were sent.
    public let parts: [Part]

    /// Parses the body of a request.
    public init(_ request: ServerRequest) throws {
        try self.init(request.body, contentType: request.header("Content-Type") ?? "")
    }

    /// Parses a body.
    public init(_ body: Data, contentType: String) throws {
        let prefix = "multipart/form-data; boundary="
        guard contentType.hasPrefix(prefix) else { throw Malformed(description: "the type is \(contentType.debugDescription)") }
        let boundary = contentType.dropFirst(prefix.count).trimmingCharacters(in: CharacterSet(charactersIn: "\""))
        let delimiter = Data("--\(boundary)".utf8)
        guard body.starts(with: delimiter) else { throw Malformed(description: "it does not begin with the boundary") }

        var parts: [Part] = []
        var rest = body.dropFirst(delimiter.count)
        while !rest.starts(with: Data("--".utf8)) {
            guard rest.starts(with: Data("\r\n".utf8)) else { throw Malformed(description: "no line break after a boundary") }
            rest = rest.dropFirst(2)
            guard let end = rest.firstRange(of: Data("\r\n".utf8) + delimiter) else { throw Malformed(description: "no closing boundary") }
            parts.append(try Self.part(rest[..<end.lowerBound]))
            rest = rest[end.upperBound...]
        }
        guard rest.elementsEqual(Data("--\r\n".utf8)) else { throw Malformed(description: "unexpected data after the closing boundary") }
        self.parts = parts
    }

    private static func part(_ bytes: Data) throws -> Part {
        // Without fields, the line break that ends them is at the start.
        if bytes.starts(with: Data("\r\n".utf8)) { return Part(headers: [], body: Data(bytes.dropFirst(2))) }
        guard let end = bytes.firstRange(of: Data("\r\n\r\n".utf8)) else { throw Malformed(description: "a part's head has no end") }
        guard let head = String(bytes: bytes[..<end.lowerBound], encoding: .utf8) else {
            throw Malformed(description: "a part's head is not UTF-8")
        }
        let fields = try head.components(separatedBy: "\r\n").map { line in
            guard let colon = line.range(of: ": "), !line.unicodeScalars.contains(where: { $0.value < 0x20 && $0 != "\t" }) else {
                throw Malformed(description: "not a field: \(line.debugDescription)")
            }
            return ServerField(String(line[..<colon.lowerBound]), String(line[colon.upperBound...]))
        }
        return Part(headers: fields, body: Data(bytes[end.upperBound...]))
    }
}
