// SPDX-License-Identifier: Apache-2.0

/// A JSON value whose form is known only when it is read (RFC 8259).
public enum JSONValue: Sendable, Hashable, Codable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without a fraction, also one that is written with one, such as `1.0`.
    case integer(Int)
    /// Another number.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object.
    case object([String: JSONValue])

    /// Arrays and objects are decoded to this depth, so that no text exhausts a stack: it needs less than 384 KiB in a debug build.
    private static var maximumDepth: Int { 64 }

    /// Decodes any value. Throws `DecodingError.dataCorrupted` for arrays and objects of more than 64 levels, and for numbers out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if decoder.codingPath.count >= Self.maximumDepth {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "More than \(Self.maximumDepth) levels.")
        } else if let values = try? container.decode([JSONValue].self) {
            self = .array(values)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    /// Encodes the value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let values): try container.encode(values)
        }
    }
}
