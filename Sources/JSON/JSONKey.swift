// SPDX-License-Identifier: Apache-2.0

/// A key that no type of the user's stands for: an index, a dictionary's key, `super`.
enum JSONKey: CodingKey {
    case name(String)
    case index(Int)

    static let `super` = JSONKey.name("super")

    init?(stringValue: String) { self = .name(stringValue) }
    init?(intValue: Int) { self = .index(intValue) }

    var stringValue: String {
        switch self {
        case .name(let name): name
        case .index(let index): "Index \(index)"
        }
    }

    var intValue: Int? {
        switch self {
        case .name: nil
        case .index(let index): index
        }
    }
}

/// The last step of the way to a value. Made for arrays and objects only; values in them get by without one unless they fail.
final class CodingPath {
    private let parent: CodingPath?
    private let key: any CodingKey

    init(_ parent: CodingPath?, _ key: any CodingKey) {
        self.parent = parent
        self.key = key
    }

    /// The keys from the root on.
    var keys: [any CodingKey] {
        var keys = [key]
        var next = parent
        while let step = next {
            keys.append(step.key)
            next = step.parent
        }
        keys.reverse()
        return keys
    }
}

extension CodingPath? {
    /// The keys from the root on.
    var keys: [any CodingKey] { self?.keys ?? [] }
}
