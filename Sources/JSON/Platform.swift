// SPDX-License-Identifier: Apache-2.0

// Everything else in this module is plain Swift over the Foundation types that CurlewHTTP brings along.
import CurlewHTTP

#if canImport(Darwin)
/// Parses a date by Darwin's `formatted` strategy; `nil` if the string does not match.
///
/// Linux has no such case: `formatted` is a `custom` strategy there.
func date(of string: String, by strategy: JSONDecoder.DateDecodingStrategy) -> Date? {
    guard case .formatted(let formatter) = strategy else { return nil }
    return formatter.date(from: string)
}
#else
/// Returns `nil`: on Linux, all strategies are handled by name.
func date(of string: String, by strategy: JSONDecoder.DateDecodingStrategy) -> Date? {
    nil
}
#endif
