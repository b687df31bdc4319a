// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

extension HTTPData {
    /// Names and values as HTML forms send them, `application/x-www-form-urlencoded`; each is percent-encoded exactly once.
    public struct URLEncoded: HTTPBody, ExpressibleByDictionaryLiteral {
        /// How the name of an array element is written.
        public typealias ArrayEncoding = URLEncoding.ArrayEncoding
        /// How a Boolean is written.
        public typealias BoolEncoding = URLEncoding.BoolEncoding

        /// The encoded pairs, as sent.
        public let encoded: String

        /// Makes a form of a dictionary's entries, sorted by name. Values may be strings, numbers, Booleans, dates (written as their
        /// description), and arrays and dictionaries of them.
        ///
        /// - Parameters:
        ///   - parameters: the entries, encoded immediately.
        ///   - arrayEncoding: `key[]` by default.
        ///   - boolEncoding: `1` and `0` by default.
        public init(_ parameters: [String: Any], arrayEncoding: ArrayEncoding = .brackets, boolEncoding: BoolEncoding = .numeric) {
            let encoding = URLEncoding(destination: .httpBody, arrayEncoding: arrayEncoding, boolEncoding: boolEncoding)
            encoded = Self.text(of: parameters.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }, encoding)
        }

        /// Makes a form of the items listed by the closure, in order.
        public init(@HTTPQueryBuilder _ build: () -> HTTPQuery) {
            encoded = build().encoded
        }

        /// Makes a form of a literal's entries, in order, keeping repeated names, with brackets for arrays and `1` and `0` for Booleans.
        public init(dictionaryLiteral elements: (String, Any)...) {
            encoded = Self.text(of: elements, URLEncoding(destination: .httpBody))
        }

        private static func text(of entries: [(String, Any)], _ encoding: URLEncoding) -> String {
            entries.flatMap { encoding.queryComponents(fromKey: $0.0, value: $0.1) }.map { "\($0)=\($1)" }.joined(separator: "&")
        }

        /// Sets the request's body and its `Content-Type`.
        public func add(to request: inout URLRequest) throws {
            request.httpBody = Data(encoded.utf8)
            request.setValue("application/x-www-form-urlencoded; charset=utf-8", forHTTPHeaderField: "Content-Type")
        }

        /// The number of bytes only, since forms carry passwords.
        public var description: String { "<form, \(encoded.utf8.count) bytes>" }
    }
}

// MARK: - CustomReflectable

/// Reflection shows no more than the description does.
extension HTTPData.URLEncoded: RedactedReflectable {}
