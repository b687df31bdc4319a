// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A value being encoded as a form: filled by the containers of ``FormEncoder``, read when encoding is complete.
final class FormNode {
    enum Content {
        /// The value encoded nothing.
        case nothing
        case null
        case value(String)
        /// In the order of encoding; a repeated key has its last value.
        case keyed([(key: String, node: FormNode)])
        case unkeyed([FormNode])
    }

    private(set) var content: Content
    private var positions: [String: Int] = [:]

    init(_ content: Content = .nothing) {
        self.content = content
    }

    func become(_ other: FormNode) { (content, positions) = (other.content, other.positions) }

    /// Turns the node into a keyed container, unless it is one.
    func becomeKeyed() {
        if case .keyed = content {} else { content = .keyed([]) }
    }

    /// Turns the node into an unkeyed container, unless it is one.
    func becomeUnkeyed() {
        if case .unkeyed = content {} else { content = .unkeyed([]) }
    }

    func set(_ node: FormNode, forKey key: String) {
        guard case .keyed(var members) = content else { return }
        // Moved out while it grows: a second reference would copy it.
        content = .nothing
        if let position = positions[key] {
            members[position].node = node
        } else {
            positions[key] = members.count
            members.append((key, node))
        }
        content = .keyed(members)
    }

    func append(_ node: FormNode) {
        guard case .unkeyed(var elements) = content else { return }
        content = .nothing
        elements.append(node)
        content = .unkeyed(elements)
    }

    var count: Int { if case .unkeyed(let elements) = content { elements.count } else { 0 } }
}

/// Encodes a value as a ``FormNode``.
struct FormEncoder: Encoder {
    /// The nesting limit: deeper values, such as one that contains itself, would overflow the stack.
    private static let maximumDepth = 512
    /// The years 1 to 9999, in seconds since 1970: dates outside have no ISO 8601 form, and formatting some of them traps.
    private static let formattableDates: Range<TimeInterval> = -62_135_596_800..<253_402_300_800

    let node: FormNode
    let codingPath: [any CodingKey]
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private let options: URLEncodedFormEncoder
    private let depth: Int

    init(_ options: URLEncodedFormEncoder) {
        self.init(options, FormNode(), [], depth: 0)
    }

    private init(_ options: URLEncodedFormEncoder, _ node: FormNode, _ path: [any CodingKey], depth: Int) {
        self.options = options
        self.node = node
        codingPath = path
        self.depth = depth
    }

    /// Returns an encoder that fills a nested node.
    func nestedEncoder(_ node: FormNode, _ key: (any CodingKey)?) -> FormEncoder {
        FormEncoder(options, node, key.map { codingPath + [$0] } ?? codingPath, depth: depth + 1)
    }

    /// Returns the node of a value, nested under a key or in place of this encoder's value.
    func node(of value: some Encodable, _ key: (any CodingKey)? = nil) throws -> FormNode {
        guard depth < Self.maximumDepth else {
            throw encodingError(for: value, path: [], "The value is nested more than \(Self.maximumDepth) levels deep.")
        }
        if let text = try text(of: value) { return FormNode(.value(text)) }
        let encoder = nestedEncoder(FormNode(), key)
        try value.encode(to: encoder)
        return encoder.node
    }

    // MARK: Encoder

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        node.becomeKeyed()
        return KeyedEncodingContainer(FormKeyedContainer<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        node.becomeUnkeyed()
        return FormUnkeyedContainer(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        FormSingleValueContainer(encoder: self)
    }

    // MARK: Text

    /// Returns the text of a value that has one; `nil` for values that encode themselves.
    private func text(of value: some Encodable) throws -> String? {
        switch value {
        case let string as String: string
        case let bool as Bool: options.boolEncoding == .numeric ? (bool ? "1" : "0") : "\(bool)"
        case let date as Date: try text(of: date)
        case let data as Data: try text(of: data)
        case let url as URL: url.absoluteString
        case let decimal as Decimal: "\(decimal)"
        case let number as any BinaryFloatingPoint: URLEncoding.withoutZeroFraction("\(number)")
        case let number as any BinaryInteger: "\(number)"
        default: nil
        }
    }

    private func text(of date: Date) throws -> String? {
        switch options.dateEncoding {
        case .deferredToDate: return nil
        case .secondsSince1970: return URLEncoding.withoutZeroFraction("\(date.timeIntervalSince1970)")
        case .millisecondsSince1970: return URLEncoding.withoutZeroFraction("\(date.timeIntervalSince1970 * 1000)")
        case .custom(let encoding): return try encoding(date)
        case .iso8601, .formatted: break
        }
        guard Self.formattableDates.contains(date.timeIntervalSince1970) else {
            throw encodingError(for: date.timeIntervalSince1970, path: codingPath, "The date is outside the years 1 to 9999.")
        }
        if case .formatted(let formatter) = options.dateEncoding { return formatter.string(from: date) }
        return date.formatted(.iso8601)
    }

    private func text(of data: Data) throws -> String? {
        switch options.dataEncoding {
        case .deferredToData: nil
        case .base64: data.base64EncodedString()
        case .custom(let encoding): try encoding(data)
        }
    }

    private func encodingError(for value: Any, path: [any CodingKey], _ explanation: String) -> EncodingError {
        EncodingError.invalidValue(value, EncodingError.Context(codingPath: path, debugDescription: explanation))
    }
}

// MARK: - Containers

/// The coding key of an array element or a superclass.
private struct FormKey: CodingKey {
    static let superclass = FormKey(stringValue: "super")

    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }
}

// One generic function implements the overloads that the protocols list.

private struct FormKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: FormEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil(forKey key: Key) {
        encoder.node.set(FormNode(.null), forKey: key.stringValue)
    }

    mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        encoder.node.set(try encoder.node(of: value, key), forKey: key.stringValue)
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        nested(key).container(keyedBy: keyType)
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        nested(key).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { nested(FormKey.superclass) }

    mutating func superEncoder(forKey key: Key) -> any Encoder { nested(key) }

    private func nested(_ key: any CodingKey) -> FormEncoder {
        let child = FormNode()
        encoder.node.set(child, forKey: key.stringValue)
        return encoder.nestedEncoder(child, key)
    }

    // Called by synthesized code for optional members; the default implementations drop the key of a `nil`.

    mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: String?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: Float?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: Int8?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: Int16?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: Int32?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: UInt?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws { try encodeOptional(value, key) }
    mutating func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) throws { try encodeOptional(value, key) }

    private mutating func encodeOptional(_ value: (some Encodable)?, _ key: Key) throws {
        if let value { try encode(value, forKey: key) } else { encodeNil(forKey: key) }
    }
}

private struct FormUnkeyedContainer: UnkeyedEncodingContainer {
    let encoder: FormEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int { encoder.node.count }

    mutating func encodeNil() {
        encoder.node.append(FormNode(.null))
    }

    mutating func encode<Value: Encodable>(_ value: Value) throws {
        encoder.node.append(try encoder.node(of: value, FormKey(intValue: count)))
    }

    mutating func nestedContainer<NestedKey: CodingKey>(keyedBy keyType: NestedKey.Type) -> KeyedEncodingContainer<NestedKey> {
        nested().container(keyedBy: keyType)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nested().unkeyedContainer() }

    mutating func superEncoder() -> any Encoder { nested() }

    private func nested() -> FormEncoder {
        let key = FormKey(intValue: count)
        let child = FormNode()
        encoder.node.append(child)
        return encoder.nestedEncoder(child, key)
    }
}

private struct FormSingleValueContainer: SingleValueEncodingContainer {
    let encoder: FormEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil() {
        encoder.node.become(FormNode(.null))
    }

    mutating func encode<Value: Encodable>(_ value: Value) throws {
        encoder.node.become(try encoder.node(of: value))
    }
}
