// SPDX-License-Identifier: Apache-2.0

/// Parameters as AFNetworking 2 writes them: as ``URLEncoding`` does but for two things. A null gives its name alone, and the elements of a
/// set have the set's own name, sorted.
enum QueryPairs {
    private static let encoding = URLEncoding.default

    /// The text of a query, percent-encoded.
    ///
    /// - Throws: ``OperationError/parametersNotSupported`` for what has no names.
    static func text(of parameters: Any) throws -> String {
        guard let parameters = parameters as? [String: Any] else { throw OperationError.parametersNotSupported }
        return leaves(of: parameters, nil).map { leaf in
            let name = encoding.escape(leaf.name)
            return leaf.value is NSNull ? name : "\(name)=\(encoding.escape(text(ofLeaf: leaf.value)))"
        }.joined(separator: "&")
    }

    /// Names and values as they are fields of a form: not encoded, `Data` as it is, a null empty.
    static func pairs(of parameters: [String: Any]) -> [(name: String, value: Data)] {
        leaves(of: parameters, nil).map { leaf in
            switch leaf.value {
            case let data as Data: (leaf.name, data)
            case is NSNull: (leaf.name, Data())
            default: (leaf.name, Data(text(ofLeaf: leaf.value).utf8))
            }
        }
    }

    private static func leaves(of value: Any, _ name: String?) -> [(name: String, value: Any)] {
        switch value {
        case let dictionary as [String: Any]:
            return dictionary.sorted { $0.key < $1.key }.flatMap { key, value in
                leaves(of: value, name.map { "\($0)[\(key)]" } ?? key)
            }
        case let array as [Any]: return array.flatMap { leaves(of: $0, "\(name ?? "")[]") }
        case let set as Set<AnyHashable>: return set.sorted { "\($0)" < "\($1)" }.flatMap { leaves(of: $0.base, name ?? "") }
        default: return [(name ?? "", value)]
        }
    }

    /// A single value as ``URLEncoding`` writes it, before it is escaped.
    private static func text(ofLeaf value: Any) -> String {
        let pair = encoding.queryComponents(fromKey: "", value: value).first
        return pair?.1.removingPercentEncoding ?? ""
    }
}
