// SPDX-License-Identifier: Apache-2.0

/// What a server says about an error: a problem details object (RFC 9457).
///
/// ``CurlewError/problemDetails`` of a refused response, or from a body:
///
/// ```swift
/// if let problem = ProblemDetails(data, contentType: head.value(for: "Content-Type")) { show(problem.title ?? problem.type) }
/// ```
public struct ProblemDetails: Sendable, Hashable {
    /// The forms in which problem details are sent.
    public enum Format: Sendable, Hashable {
        /// `application/problem+json`.
        case json
        /// `application/problem+xml`: recognized, but not decoded.
        case xml

        /// The format that a `Content-Type` names, compared without case and parameters; `nil` for any other type.
        public init?(contentType: String?) {
            guard let type = contentType.flatMap({ MediaType($0) }), type.type.equalsIgnoringASCIICase("application") else { return nil }
            switch type.subtype {
            case let name where name.equalsIgnoringASCIICase("problem+json"): self = .json
            case let name where name.equalsIgnoringASCIICase("problem+xml"): self = .xml
            default: return nil
            }
        }
    }

    /// The kind of problem, a URI reference as received; `about:blank` by default: the status says all (section 3.1.1).
    public var type = "about:blank"
    /// The status code that the server has sent, which an intermediary may have replaced in the response (section 3.1.2).
    public var status: Int?
    /// A short summary of the kind of problem, for people (section 3.1.3).
    public var title: String?
    /// What is wrong in this case, for people (section 3.1.4).
    public var detail: String?
    /// A URI reference of this occurrence, as received (section 3.1.5).
    public var instance: String?
    /// The other members (section 3.2), by their names.
    public var members: [String: JSONValue] = [:]

    /// Creates problem details of the type `about:blank` without members.
    public init() {}

    /// Decodes a body. `nil` unless its `Content-Type` is `application/problem+json`, and it is a JSON object.
    ///
    /// Members of other types than they should have are ignored (section 3.1), as are further members with more than 64 levels of arrays
    /// and objects.
    public init?(_ body: Data, contentType: String?) {
        guard Format(contentType: contentType) == .json, let problem = try? JSONDecoder().decode(Self.self, from: body) else { return nil }
        self = problem
    }
}

extension ProblemDetails: Codable {
    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Decodes an object, and ignores members that are invalid. Throws `DecodingError` if it is none.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        for key in container.allKeys {
            guard let value = try? container.decode(JSONValue.self, forKey: key) else { continue }
            switch (key.stringValue, value) {
            case ("type", .string(let text)): type = text
            case ("status", .integer(let code)): status = code
            case ("title", .string(let text)): title = text
            case ("detail", .string(let text)): detail = text
            case ("instance", .string(let text)): instance = text
            case ("type", _), ("status", _), ("title", _), ("detail", _), ("instance", _): break
            default: members[key.stringValue] = value
            }
        }
    }

    /// Encodes an object with the further members among the others, which take precedence.
    public func encode(to encoder: any Encoder) throws {
        var all = members
        all["type"] = .string(type)
        all["status"] = status.map { .integer($0) }
        all["title"] = title.map { .string($0) }
        all["detail"] = detail.map { .string($0) }
        all["instance"] = instance.map { .string($0) }
        try all.encode(to: encoder)
    }
}

extension CurlewError {
    /// The problem details in the body of a refused response (RFC 9457); `nil` for another body, and for one of more than 64 KiB that no
    /// `validate(decoding: ProblemDetails.self)` has decoded.
    ///
    /// Decoded at each access.
    public var problemDetails: ProblemDetails? {
        if let decoded = decodedBody(as: ProblemDetails.self) { return decoded }
        guard let request, let body = request.bodyData else { return nil }
        return ProblemDetails(body, contentType: request.contentType)
    }
}
