// SPDX-License-Identifier: Apache-2.0

/// A coding key made by the decoder: an index, a dictionary key or `super`.
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
