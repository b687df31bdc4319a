// SPDX-License-Identifier: Apache-2.0

extension JSONDecoder {
    /// Returns the decoder of responses and messages that don't specify one.
    static func forServices(fromSnakeCase: Bool) -> JSONDecoder {
        let decoder = JSONDecoder()
        if fromSnakeCase { decoder.keyDecodingStrategy = .convertFromSnakeCase }
        return decoder
    }
}

extension JSONEncoder {
    /// Returns the encoder of bodies and messages that don't specify one.
    static func forServices(toSnakeCase: Bool) -> JSONEncoder {
        let encoder = JSONEncoder()
        if toSnakeCase { encoder.keyEncodingStrategy = .convertToSnakeCase }
        return encoder
    }
}
