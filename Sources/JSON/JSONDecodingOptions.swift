// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A decoder's options, as an immutable snapshot for one decoding.
final class JSONDecodingOptions: Sendable {
    let date: JSONDecoder.DateDecodingStrategy
    let data: JSONDecoder.DataDecodingStrategy
    let keys: JSONDecoder.KeyDecodingStrategy
    /// `nil` if no string represents a number.
    let nonConformingFloats: NonConformingFloats?
    let userInfo: [CodingUserInfoKey: any Sendable]
    let usesDefaultKeys: Bool
    let assumesTopLevelDictionary: Bool

    init(_ decoder: FastJSONDecoder) {
        date = decoder.dateDecodingStrategy
        data = decoder.dataDecodingStrategy
        keys = decoder.keyDecodingStrategy
        userInfo = decoder.userInfo
        assumesTopLevelDictionary = decoder.assumesTopLevelDictionary
        nonConformingFloats = NonConformingFloats(decoder.nonConformingFloatDecodingStrategy)
        if case .useDefaultKeys = keys { usesDefaultKeys = true } else { usesDefaultKeys = false }
    }

    /// Returns the conversion of an object's keys to coding keys.
    func keyConversion(in decoder: JSONValueDecoder) -> (String) -> String {
        switch keys {
        case .useDefaultKeys: return { $0 }
        case .convertFromSnakeCase: return { $0.convertedFromSnakeCase }
        case .custom(let convert):
            let path = decoder.codingPath
            return { convert(path + [JSONKey.name($0)]).stringValue }
        @unknown default: return { $0 }
        }
    }
}

/// The strings for the floating-point values that JSON cannot represent.
struct NonConformingFloats: Sendable {
    private let infinity: String
    private let negativeInfinity: String
    private let nan: String

    init?(_ strategy: JSONDecoder.NonConformingFloatDecodingStrategy) {
        guard case .convertFromString(let infinity, let negativeInfinity, let nan) = strategy else { return nil }
        (self.infinity, self.negativeInfinity, self.nan) = (infinity, negativeInfinity, nan)
    }

    /// Returns the value that the string at an index represents. Strings with escapes are not matched.
    func value<T: BinaryFloatingPoint>(of tape: JSONTape, at index: Int) -> T? {
        guard tape[index].kind == .string, tape[index].has(TapeWord.isPlain) else { return nil }
        let text = tape.text(at: index)
        if text.elementsEqual(infinity.utf8) { return .infinity }
        if text.elementsEqual(negativeInfinity.utf8) { return -.infinity }
        if text.elementsEqual(nan.utf8) { return .nan }
        return nil
    }
}

extension String {
    /// Converts `one_two_three` to `oneTwoThree`; leading and trailing underscores are kept.
    var convertedFromSnakeCase: String {
        guard let first = firstIndex(where: { $0 != "_" }), let last = lastIndex(where: { $0 != "_" }) else { return self }
        let words = self[first...last].split(separator: "_")
        guard words.count > 1, let head = words.first else { return self }
        let tail = words.dropFirst().map(\.capitalized).joined()
        return "\(self[..<first])\(head.lowercased())\(tail)\(self[index(after: last)...])"
    }
}
