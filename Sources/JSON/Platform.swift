// SPDX-License-Identifier: Apache-2.0

// Everything else in this module is plain Swift over the Foundation types that CurlewHTTP brings along.
import CurlewHTTP

#if canImport(Darwin)
/// The date that Darwin's `formatted` strategy makes of a string; `nil` for a string that it does not take.
///
/// Linux has no such case: `formatted` is a `custom` one there.
func date(of string: String, by strategy: JSONDecoder.DateDecodingStrategy) -> Date? {
    guard case .formatted(let formatter) = strategy else { return nil }
    return formatter.date(from: string)
}
#else
/// Linux has no strategy besides those that are decoded by name.
func date(of string: String, by strategy: JSONDecoder.DateDecodingStrategy) -> Date? {
    nil
}
#endif
