// SPDX-License-Identifier: Apache-2.0

/// AFNetworking 2's parameter encoding: like ``URLEncoding``, except that a null is encoded as its name alone, and that the elements of a
/// set have the set's name and are sorted.
enum QueryPairs {
    private static let encoding = URLEncoding.default

    /// Returns the percent-encoded query.
    ///
    /// - Throws: ``OperationError/parametersNotSupported`` for parameters without names.
    static func text(of parameters: Any) throws -> String {
        guard let parameters = parameters as? [String: Any] else { throw OperationError.parametersNotSupported }
        return leaves(of: parameters, nil).map { leaf in
            let name = encoding.escape(leaf.name)
            return leaf.value is NSNull ? name : "\(name)=\(encoding.escape(text(ofLeaf: leaf.value)))"
        }.joined(separator: "&")
    }

    /// Returns the names and values of form fields: not percent-encoded, `Data` unchanged, a null as an empty value.
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

    /// Returns a single value as ``URLEncoding`` encodes it, before percent-encoding.
    private static func text(ofLeaf value: Any) -> String {
        let pair = encoding.queryComponents(fromKey: "", value: value).first
        return pair?.1.removingPercentEncoding ?? ""
    }
}
