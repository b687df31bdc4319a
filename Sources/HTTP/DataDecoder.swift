// SPDX-License-Identifier: Apache-2.0

/// Makes values of bytes. `JSONDecoder` and `PropertyListDecoder` are such decoders, and so is the `FastJSONDecoder` of `CurlewJSON`.
@preconcurrency public protocol DataDecoder: Sendable {
    /// Makes a value of bytes. What it throws is the underlying error of a failed serialization's `decodingFailed(error:)`.
    func decode<Value: Decodable & Sendable>(_ type: Value.Type, from data: Data) throws -> Value
}

extension JSONDecoder: DataDecoder {}
extension PropertyListDecoder: DataDecoder {}
