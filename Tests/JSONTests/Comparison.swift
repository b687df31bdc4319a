// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewJSON
import Foundation
import Testing

/// The outcome of a decoding, with everything a caller can observe.
enum Outcome: Equatable {
    case value(String)
    case failure(kind: String, path: [String], text: String)

    /// Foundation before 6.3 has other words for some failures, its own type of keys in them, and no path for a date that is not ISO 8601.
    #if compiler(>=6.3)
    private static let hasSameTexts = true
    #else
    private static let hasSameTexts = false
    #endif

    static func of<T: Decodable>(_ type: T.Type, _ decode: () throws -> T) -> Outcome {
        do {
            return .value(canonical(try decode()))
        } catch let error as DecodingError {
            switch error {
            case .typeMismatch(let type, let context): return failure("typeMismatch \(type)", context)
            case .valueNotFound(let type, let context): return failure("valueNotFound \(type)", context)
            case .keyNotFound(let key, let context): return failure("keyNotFound \(key.stringValue)", context)
            case .dataCorrupted(let context): return failure("dataCorrupted", context)
            @unknown default: return .value("an unknown error")
            }
        } catch {
            return .failure(kind: String(reflecting: error), path: [], text: "")
        }
    }

    private static func failure(_ kind: String, _ context: DecodingError.Context) -> Outcome {
        let path = context.codingPath.map { "\($0.stringValue)|\($0.intValue.map(String.init) ?? "-")" }
        guard hasSameTexts else {
            return .failure(kind: kind, path: context.debugDescription.contains("ISO8601") ? [] : path, text: "")
        }
        return .failure(kind: kind, path: path, text: context.debugDescription)
    }

    /// A description that equal values share and different values do not: dictionaries are sorted, and zeros keep their signs.
    private static func canonical(_ value: Any) -> String {
        if let string = value as? String {
            let string = hasSameTexts ? string : string.replacingOccurrences(of: "_CodingKey(", with: "JSONKey(")
            return string.unicodeScalars.map { String($0.value, radix: 16) }.joined(separator: " ")
        }
        if let data = value as? Data { return data.base64EncodedString() }
        let mirror = Mirror(reflecting: value)
        guard !mirror.children.isEmpty else { return String(reflecting: value) }
        let parts = mirror.children.map { "\($0.label ?? ""):\(canonical($0.value))" }
        let isUnordered = mirror.displayStyle == .dictionary || mirror.displayStyle == .set
        return "\(Swift.type(of: value))(\((isUnordered ? parts.sorted() : parts).joined(separator: ",")))"
    }
}

/// The options for both decoders.
struct Options: Sendable {
    var date = JSONDecoder.DateDecodingStrategy.deferredToDate
    var data = JSONDecoder.DataDecodingStrategy.base64
    var keys = JSONDecoder.KeyDecodingStrategy.useDefaultKeys
    var floats = JSONDecoder.NonConformingFloatDecodingStrategy.throw
    var userInfo: [CodingUserInfoKey: any Sendable] = [:]
    var assumesTopLevelDictionary = false

    var fast: FastJSONDecoder {
        var decoder = FastJSONDecoder()
        decoder.dateDecodingStrategy = date
        decoder.dataDecodingStrategy = data
        decoder.keyDecodingStrategy = keys
        decoder.nonConformingFloatDecodingStrategy = floats
        decoder.userInfo = userInfo
        decoder.assumesTopLevelDictionary = assumesTopLevelDictionary
        return decoder
    }

    var foundation: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = date
        decoder.dataDecodingStrategy = data
        decoder.keyDecodingStrategy = keys
        decoder.nonConformingFloatDecodingStrategy = floats
        decoder.userInfo = userInfo
        // Setting it, even to false, adds an entry to the decoder's userInfo.
        if assumesTopLevelDictionary { decoder.assumesTopLevelDictionary = true }
        return decoder
    }
}

/// Records an issue unless both decoders have the same outcome.
func compare<T: Decodable>(
    _ type: T.Type, _ json: Data, fast: FastJSONDecoder, foundation: JSONDecoder, sourceLocation: SourceLocation = #_sourceLocation
) {
    let expected = Outcome.of(type) { try foundation.decode(type, from: json) }
    let actual = Outcome.of(type) { try fast.decode(type, from: json) }
    guard actual != expected else { return }
    let text = String(decoding: json.prefix(300), as: UTF8.self)
    Issue.record("\(type) of \(text)\nactual:   \(actual)\nexpected: \(expected)", sourceLocation: sourceLocation)
}

/// Records an issue unless both decoders have the same outcome for each of the texts.
func compare<T: Decodable>(
    _ type: T.Type, _ texts: [String], _ options: Options = Options(), sourceLocation: SourceLocation = #_sourceLocation
) {
    let (fast, foundation) = (options.fast, options.foundation)
    for text in texts { compare(type, Data(text.utf8), fast: fast, foundation: foundation, sourceLocation: sourceLocation) }
}
