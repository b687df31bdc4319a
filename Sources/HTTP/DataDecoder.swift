// SPDX-License-Identifier: Apache-2.0

/// Decodes values from bytes. `JSONDecoder` and `PropertyListDecoder` conform, and so does `FastJSONDecoder` of `CurlewJSON`.
@preconcurrency public protocol DataDecoder: Sendable {
    /// Decodes a value from bytes. A thrown error becomes the underlying error of `decodingFailed(error:)`.
    func decode<Value: Decodable & Sendable>(_ type: Value.Type, from data: Data) throws -> Value
}

extension JSONDecoder: DataDecoder {}
extension PropertyListDecoder: DataDecoder {}
