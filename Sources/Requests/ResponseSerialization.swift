// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// Makes of an answer's bytes what the request wants.
enum ResponseSerialization {
    /// Sets the object of an answer that has bytes, also where the transfer has failed; an error that is there stays.
    static func serialize(_ answer: inout RequestAnswer, for request: BaseRequest, _ configuration: RequestsConfiguration) {
        guard !answer.isDownload, answer.response != nil, let data = answer.data else { return }
        let type = request.responseSerializerType()
        do {
            if !data.isEmpty { try checkContentType(answer.response, among: request.acceptableContentTypes()) }
            switch type {
            case .http: answer.object = data
            case .xmlParser: answer.object = XMLParser(data: data)
            case .json:
                answer.jsonObject = try json(data, removesNulls: configuration.removeNullValues)
                answer.object = answer.jsonObject
            }
        } catch {
            if answer.error == nil { answer.error = error }
        }
    }

    /// The JSON of the bytes; `nil` for none, as for a lone space, which some servers send for nothing.
    static func json(_ data: Data, removesNulls: Bool) throws -> Any? {
        if data.isEmpty || data == Data(" ".utf8) { return nil }
        do {
            let object = try parse(data)
            return removesNulls ? withoutNulls(object) : object
        } catch {
            throw CurlewError.responseSerializationFailed(reason: .jsonSerializationFailed(error: error))
        }
    }

    /// The text of a JSON object; throws for what JSON can't hold.
    static func data(of json: Any) throws -> Data {
        let urlRequest = URLRequest(url: URL(fileURLWithPath: "/"))
        return try JSONEncoding(options: .fragmentsAllowed).encode(urlRequest, withJSONObject: json).httpBody ?? Data()
    }

    /// The JSON, also with escapes of half characters, which some servers send.
    private static func parse(_ data: Data) throws -> Any {
        do {
            return try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
        } catch {
            guard let mended = LoneSurrogates.replaced(in: data) else { throw error }
            return try JSONSerialization.jsonObject(with: mended, options: .fragmentsAllowed)
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
        let ranges = acceptable.map { essence($0) }
        if ranges.contains("*/*") { return }
        guard let field = response?.value(forHTTPHeaderField: "Content-Type") else {
            throw .responseValidationFailed(reason: .missingContentType(acceptableContentTypes: acceptable))
        }
        let type = essence(field)
        let isAcceptable = ranges.contains { $0 == type || $0.hasSuffix("/*") && type.hasPrefix($0.dropLast()) }
        guard !isAcceptable else { return }
        throw .responseValidationFailed(
            reason: .unacceptableContentType(acceptableContentTypes: acceptable, responseContentType: type))
    }

    /// The type without its parameters (RFC 9110, section 8.3.1), in lower case.
    private static func essence(_ type: String) -> String {
        type.prefix { $0 != ";" }.filter { !$0.isWhitespace }.lowercased()
    }
}
