// SPDX-License-Identifier: Apache-2.0

/// A type that is compared and hashed by one value in place of its stored properties.
package protocol ComparedByKey: Hashable {
    associatedtype ComparisonKey: Hashable
    /// Equal for equal values.
    var comparisonKey: ComparisonKey { get }
}

extension ComparedByKey {
    /// Whether both are the same in all that counts for the type.
    public static func == (lhs: Self, rhs: Self) -> Bool { lhs.comparisonKey == rhs.comparisonKey }

    /// Hashes what is compared.
    public func hash(into hasher: inout Hasher) { hasher.combine(comparisonKey) }
}

/// An enum that is ordered by its raw values.
package protocol OrderedByRawValue: RawRepresentable, Comparable where RawValue: Comparable {}

extension OrderedByRawValue {
    /// Whether `lhs` has the lower raw value: is the earlier, or the older.
    public static func < (lhs: Self, rhs: Self) -> Bool { lhs.rawValue < rhs.rawValue }
}
