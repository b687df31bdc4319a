// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A canonical text for a value: equal for equal values, regardless of the order of a dictionary's members, and different for different
/// ones. What is not `Encodable`, and an object or has a mirror of its own, is equal to nothing, not even
/// itself.
///
/// Each part is prefixed with its kind and length, so that no value can produce another one's text.
enum CanonicalText {
    static func of(_ value: Any?) -> String {
        guard let value = value.flatMap(unwrapped) else { return "nil" }
        return switch value {
        case let text as String: part("s", text)
        case let text as Substring: part("s", String(text))
        case let flag as Bool: part("b", "\(flag)")
        case is NSNull: "null"
        case let number as NSNumber: part("n", number.stringValue)
        case let number as any BinaryInteger: part("n", "\(number)")
        case let number as any BinaryFloatingPoint: part("n", "\(number)")
        case let data as Data: part("x", data.hexDigits)
        case let date as Date: part("t", "\(date.timeIntervalSinceReferenceDate)")
        case let url as URL: part("u", url.absoluteString)
        case let members as [AnyHashable: Any]: part("d", members.map { of($0.key.base) + of($0.value) }.sorted().joined())
        case let elements as [Any]: part("a", elements.map { of($0) }.joined())
        case let elements as Set<AnyHashable>: part("e", elements.map { of($0.base) }.sorted().joined())
        default: ofOther(value)
        }
    }

    private static func part(_ kind: String, _ text: String) -> String { "\(kind)\(text.utf8.count):\(text)," }

    private static func ofOther(_ value: Any) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        if let value = value as? any Encodable, let json = try? encoder.encode(value) {
            return part("j", String(decoding: json, as: UTF8.self))
        }
        let (mirror, name) = (Mirror(reflecting: value), String(reflecting: type(of: value)))
        // The description of an object is usually the name of its class, and a mirror of its own may hide what a value has: a text of its own
        // is equal to no other.
        guard mirror.displayStyle != .class, !(value is any CustomReflectable) else { return part("r", UUID().uuidString) }
        guard !mirror.children.isEmpty else { return part("o", "\(name) \(value)") }
        return part("m", part("t", name) + mirror.children.map { part("l", $0.label ?? "") + of($0.value) }.joined())
    }

    /// Unwraps nested optionals; returns `nil` for an optional without a value.
    private static func unwrapped(_ value: Any) -> Any? {
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle == .optional else { return value }
        return mirror.children.first.flatMap { unwrapped($0.value) }
    }
}
