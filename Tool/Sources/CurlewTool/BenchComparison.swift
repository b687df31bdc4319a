// SPDX-License-Identifier: Apache-2.0

/// How the latencies of two URLs differ whose requests took turns.
///
/// The intervals are percentile intervals of a block bootstrap: the run is cut into slices of time, as neighbours in time are alike, and each
/// resample draws as many slices as there are, the same ones for both URLs, so that what slowed both of them for a while does not count. The
/// seed is fixed: the same samples have the same intervals.
struct BenchComparison: Equatable, Sendable {
    struct Difference: Equatable, Sendable {
        let percent: Double
        /// Of the second URL from the first, in milliseconds.
        let value: Double
        /// `nil` for too few responses.
        let interval: ClosedRange<Double>?
    }

    /// How many responses of each URL an interval needs.
    static let minimumCount = 100
    private static let resampleCount = 1000

    let differences: [Difference]

    /// - Returns: `nil` if one of them has no response.
    init?(_ first: BenchFigures, _ second: BenchFigures) {
        guard !first.latencies.isEmpty, !second.latencies.isEmpty else { return nil }
        let percents = [50.0, 99]
        let count = min(first.latencies.count, second.latencies.count)
        var resampled: [[Double]] = percents.map { _ in [] }
        if count >= Self.minimumCount {
            let sliceCount = min(count / 5, 100)
            let length = max(first.lastDue, second.lastDue) / .seconds(1) / Double(sliceCount)
            let slices = [first, second].map { SlicedLatencies($0, count: sliceCount, length: length) }
            var random = FixedRandom()
            for _ in 0..<Self.resampleCount {
                var weights = [Int](repeating: 0, count: sliceCount)
                for _ in 0..<sliceCount { weights[Int.random(in: 0..<sliceCount, using: &random)] += 1 }
                for (index, percent) in percents.enumerated() {
                    guard let a = slices[0].percentile(percent, weights), let b = slices[1].percentile(percent, weights) else { continue }
                    resampled[index].append(b - a)
                }
            }
        }
        differences = zip(percents, resampled).map { percent, values in
            let sorted = values.sorted()
            let value = BenchRun.percentile(percent, of: second.latencies) - BenchRun.percentile(percent, of: first.latencies)
            let interval = sorted.isEmpty ? nil : BenchRun.percentile(2.5, of: sorted)...BenchRun.percentile(97.5, of: sorted)
            return Difference(percent: percent, value: value, interval: interval)
        }
    }

    /// A line for each difference.
    var lines: [(name: String, text: String)] {
        differences.map { difference in
            let name = difference.percent == 50 ? "median" : BenchFigures.title(of: difference.percent)
            guard let interval = difference.interval else {
                return (
                    name, "\(Self.signed(difference.value)), without an interval: fewer than \(Self.minimumCount) responses of each URL"
                )
            }
            let verdict = interval.contains(0) ? "no difference" : difference.value > 0 ? "slower" : "faster"
            return (
                name,
                "\(Self.signed(difference.value)), \(Self.signed(interval.lowerBound)) to \(Self.signed(interval.upperBound)): \(verdict)"
            )
        }
    }

    private static func signed(_ milliseconds: Double) -> String {
        let text = MetaText.text(abs(milliseconds))
        return text == "0.00 ms" ? text : (milliseconds < 0 ? "-" : "+") + text
    }
}

extension BenchFigures {
    fileprivate var lastDue: Duration { samples.map(\.due).max() ?? .zero }
}

/// The latencies of a run in slices of time.
private struct SlicedLatencies {
    /// The most values that a percentile may have: of more latencies, as many parts of them are distinguished.
    private static let maximumCount = 2000

    /// Some of the latencies, or all of them, in ascending order.
    private let values: [Double]
    /// For each value, how many latencies of each slice do not exceed it.
    private let counts: [[Int]]

    /// - Parameter length: of a slice, in seconds.
    init(_ figures: BenchFigures, count: Int, length: Double) {
        var slices = [[Double]](repeating: [], count: count)
        for sample in figures.samples where sample.failure == nil {
            let place = length > 0 ? Int(max(sample.due / .seconds(1), 0) / length) : 0
            slices[min(place, count - 1)].append(sample.latency / .milliseconds(1))
        }
        for index in slices.indices { slices[index].sort() }
        let step = (figures.latencies.count - 1) / Self.maximumCount + 1
        // The last one is among them.
        let values = stride(from: (figures.latencies.count - 1) % step, to: figures.latencies.count, by: step).map { figures.latencies[$0] }
        var reached = [Int](repeating: 0, count: count)
        counts = values.map { value in
            for (index, slice) in slices.enumerated() {
                while reached[index] < slice.count, slice[reached[index]] <= value { reached[index] += 1 }
            }
            return reached
        }
        self.values = values
    }

    /// The percentile of a resample in which each slice is as often as its weight; `nil` if all of these are empty.
    func percentile(_ percent: Double, _ weights: [Int]) -> Double? {
        let total = count(upTo: values.count - 1, weights)
        guard total > 0 else { return nil }
        let rank = max(Int((percent / 100 * Double(total)).rounded(.up)), 1)
        var range = 0..<values.count - 1
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = count(upTo: middle, weights) >= rank ? range.lowerBound..<middle : middle + 1..<range.upperBound
        }
        return values[range.lowerBound]
    }

    /// How many latencies of a resample do not exceed a value.
    private func count(upTo index: Int, _ weights: [Int]) -> Int {
        var sum = 0
        for (slice, weight) in weights.enumerated() where weight > 0 { sum += counts[index][slice] * weight }
        return sum
    }
}

/// SplitMix64, with the same seed each time.
private struct FixedRandom: RandomNumberGenerator {
    private var state: UInt64 = 0

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
