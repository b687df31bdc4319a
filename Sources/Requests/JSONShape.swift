// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

/// Checks whether JSON has the shape that ``BaseRequest/jsonValidator()`` describes.
///
/// A shape is made of dictionaries, arrays and types: `["id": NSNumber.self, "names": [String.self]]`.
///
/// - A dictionary: each of its members must be present and have its shape; a member described by a type may also be `null`. Other members
///   are ignored.
/// - An array: each element must have the shape of the first element here, and must not be `null`; an empty array matches any array.
/// - A type: `String`; `NSNumber` or one of Swift's numeric types and `Bool`, which are equivalent; `[String: Any]`; `[Any]`; `NSNull`.
///   `Any` matches everything, Foundation's classes match what their Swift types do.
///
/// Any other value in the shape matches nothing.
public enum JSONShape {
    /// Returns whether `json`, as parsed by `JSONSerialization`, has the shape.
    public static func matches(_ json: Any?, _ shape: Any) -> Bool {
        if let shape = shape as? [String: Any] { return hasMembers(json, shape) }
        if let shape = shape as? [Any] { return hasElements(json, shape) }
        guard let json, let type = shape as? Any.Type else { return false }
        return isKind(json, of: type)
    }

    private static func hasMembers(_ json: Any?, _ shape: [String: Any]) -> Bool {
        guard let members = json as? [String: Any] else { return false }
        return shape.allSatisfy { name, shape in
            guard let value = members[name] else { return false }
            return value is NSNull && shape is Any.Type || matches(value, shape)
        }
    }

    private static func hasElements(_ json: Any?, _ shape: [Any]) -> Bool {
        guard let elements = json as? [Any] else { return false }
        guard let first = shape.first else { return true }
        return elements.allSatisfy { matches($0, first) }
    }

    private static func isKind(_ json: Any, of type: Any.Type) -> Bool {
        if type == Any.self { return true }
        if json is NSNull { return type == NSNull.self || type == NSObject.self }
        if json is String { return type == String.self || type == NSString.self || type == NSObject.self }
        if json is [Any] { return type == [Any].self || type == NSArray.self || type == NSObject.self }
        if json is [String: Any] { return type == [String: Any].self || type == NSDictionary.self || type == NSObject.self }
        return numbers.contains(ObjectIdentifier(type)) && json is NSNumber
    }

    private static let numbers: Set<ObjectIdentifier> = Set(
        ([
            NSNumber.self, Bool.self, Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self, UInt16.self,
            UInt32.self, UInt64.self, Double.self, Float.self, NSValue.self, NSObject.self,
        ] as [Any.Type]).map { ObjectIdentifier($0) })
}
