// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Decodes the body of a refused response as an API's error.
final class RefusalDecoder: Sendable {
    /// The largest body that is decoded, in bytes.
    let limit: Int
    private let body: @Sendable (Data) throws -> any Sendable

    init<Value: Decodable & Sendable>(_ type: Value.Type, _ decoder: any DataDecoder, limit: Int) {
        // One byte more is read, to see that a body is longer.
        self.limit = min(max(limit, 0), Int.max - 1)
        body = { try Serializers.decode(type, from: $0, decoder) }
    }

    /// Returns the decoded body; `nil` if it is empty, too large, or not of this type. Calls users' code.
    func decode(_ data: Data) -> (any Sendable)? {
        data.isEmpty || data.count > limit ? nil : try? body(data)
    }
}

extension [RefusalDecoder] {
    /// Returns the body as the first of them that can has decoded it; `nil` if none can.
    func decode(_ data: Data) -> (any Sendable)? {
        for decoder in self {
            if let value = decoder.decode(data) { return value }
        }
        return nil
    }
}
