// SPDX-License-Identifier: Apache-2.0

extension JSONDecoder {
    /// What decodes responses and messages unless somebody wants another.
    static func forServices(fromSnakeCase: Bool) -> JSONDecoder {
        let decoder = JSONDecoder()
        if fromSnakeCase { decoder.keyDecodingStrategy = .convertFromSnakeCase }
        return decoder
    }
}

extension JSONEncoder {
    /// What encodes bodies and messages unless somebody wants another.
    static func forServices(toSnakeCase: Bool) -> JSONEncoder {
        let encoder = JSONEncoder()
        if toSnakeCase { encoder.keyEncodingStrategy = .convertToSnakeCase }
        return encoder
    }
}
