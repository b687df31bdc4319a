// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// Turns a response's bytes into the object the request asked for.
enum ResponseSerialization {
    /// Sets the object of a response that has a body, even if the transfer failed; an existing error is kept.
    static func serialize(_ result: inout RequestResult, for request: BaseRequest, _ configuration: RequestsConfiguration) {
        guard !result.isDownload, result.response != nil, let data = result.data else { return }
        let type = request.responseSerializerType()
        do {
            if !data.isEmpty { try checkContentType(result.response, among: request.acceptableContentTypes()) }
            switch type {
            case .http: result.object = data
            case .xmlParser: result.object = try xmlParser(data)
            case .json:
                result.jsonObject = try json(data, removesNulls: configuration.removeNullValues)
                result.object = result.jsonObject
            }
        } catch {
            if result.error == nil { result.error = error }
        }
    }

    /// Returns a parser for XML that it can parse in reasonable time.
    static func xmlParser(_ data: Data) throws -> XMLParser {
        if let excess = XMLBounds.excess(in: data) {
            let error = DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "The XML can't be parsed: \(excess)"))
            throw CurlewError.responseSerializationFailed(reason: .decodingFailed(error: error))
        }
        return XMLParser(data: data)
    }

    /// Parses JSON; returns `nil` for an empty body or a single space, which some servers send as an empty response.
    static func json(_ data: Data, removesNulls: Bool) throws -> Any? {
        if data.isEmpty || data == Data(" ".utf8) { return nil }
        do {
            let object = try parse(data)
            return removesNulls ? withoutNulls(object) : object
        } catch {
            throw CurlewError.responseSerializationFailed(reason: .jsonSerializationFailed(error: error))
        }
    }

    /// Serializes a JSON object; throws for values that JSON cannot represent.
    static func data(of json: Any) throws -> Data {
        let urlRequest = URLRequest(url: URL(fileURLWithPath: "/"))
        return try JSONEncoding(options: .fragmentsAllowed).encode(urlRequest, withJSONObject: json).httpBody ?? Data()
    }

    /// Parses JSON, replacing escaped lone surrogates, which some servers send.
    private static func parse(_ data: Data) throws -> Any {
        do {
            return try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
        } catch {
            guard let repaired = LoneSurrogates.replaced(in: data) else { throw error }
            return try JSONSerialization.jsonObject(with: repaired, options: .fragmentsAllowed)
        }
    }

    private static func withoutNulls(_ object: Any) -> Any {
        if let members = object as? [String: Any] { return members.filter { !($0.value is NSNull) }.mapValues(withoutNulls) }
        if let elements = object as? [Any] { return elements.map(withoutNulls) }
        return object
    }

    // MARK: Content type

    private static func checkContentType(_ response: HTTPURLResponse?, among acceptable: [String]?) throws(CurlewError) {
        guard let acceptable else { return }
        let ranges = acceptable.map { $0.mediaType.lowercased() }
        if ranges.contains("*/*") { return }
        guard let field = response?.value(forHTTPHeaderField: "Content-Type") else {
            throw .responseValidationFailed(reason: .missingContentType(acceptableContentTypes: acceptable))
        }
        let type = field.mediaType.lowercased()
        let isAcceptable = ranges.contains { $0 == type || $0.hasByteSuffix("/*") && type.hasBytePrefix($0.dropLastScalars()) }
        guard !isAcceptable else { return }
        throw .responseValidationFailed(
            reason: .unacceptableContentType(acceptableContentTypes: acceptable, responseContentType: type))
    }
}
