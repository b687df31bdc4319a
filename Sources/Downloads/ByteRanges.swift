// SPDX-License-Identifier: Apache-2.0

/// A set of the positions of bytes, as disjoint ranges in ascending order.
struct ByteRanges: Equatable, Sendable {
    private(set) var ranges: [Range<Int64>] = []

    /// The number of bytes.
    var count: Int64 { ranges.reduce(0) { $0 + Int64($1.count) } }

    /// The end of the last range; 0 if there is none.
    var end: Int64 { ranges.last?.upperBound ?? 0 }

    /// Adds a range, which is joined with those that it touches.
    mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        let first = ranges.firstIndex { $0.upperBound >= range.lowerBound } ?? ranges.endIndex
        let last = ranges[first...].firstIndex { $0.lowerBound > range.upperBound } ?? ranges.endIndex
        let touched = ranges[first..<last]
        let lower = min(range.lowerBound, touched.first?.lowerBound ?? range.lowerBound)
        let upper = max(range.upperBound, touched.last?.upperBound ?? range.upperBound)
        ranges.replaceSubrange(first..<last, with: [lower..<upper])
    }

    /// Returns the ranges of a whole of this length that are not in the set.
    func gaps(in total: Int64) -> [Range<Int64>] {
        var gaps: [Range<Int64>] = []
        var position: Int64 = 0
        for range in ranges where position < total {
            if range.lowerBound > position { gaps.append(position..<min(range.lowerBound, total)) }
            position = max(position, range.upperBound)
        }
        if position < total { gaps.append(position..<total) }
        return gaps
    }
}
