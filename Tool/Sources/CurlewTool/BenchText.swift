// SPDX-License-Identifier: Apache-2.0

/// The report of `bench` on standard output.
struct BenchText {
    let figures: [BenchFigures]
    let comparison: BenchComparison?
    let width: Int

    var text: String {
        let lines = figures.count == 1 ? report(figures[0]) : table + notes + difference
        return lines.joined(separator: "\n") + "\n"
    }

    private func report(_ figures: BenchFigures) -> [String] {
        let lines = figures.facts.map { Self.padded($0.label) + $0.text }
        guard !figures.latencies.isEmpty else { return lines }
        let latencies = BenchFigures.percentiles.map { percent in
            Self.padded(BenchFigures.title(of: percent)) + MetaText.text(BenchRun.percentile(percent, of: figures.latencies))
        }
        return lines + [""] + latencies + [""] + BenchRun.histogram(figures.latencies, width: width)
    }

    /// A row for each step, or each URL.
    private var table: [String] {
        let columns = [50.0, 90, 99, 100]
        let titles = [comparison == nil ? "rate" : "URL", "a second"] + columns.map(BenchFigures.title) + ["failed"]
        let rows = figures.map { figures in
            [comparison == nil ? figures.rate.map(BenchRun.plain) ?? "" : figures.name ?? "", BenchRun.number(figures.perSecond)]
                + columns.map { figures.latencies.isEmpty ? "-" : MetaText.text(BenchRun.percentile($0, of: figures.latencies)) }
                + ["\(figures.failureCount)"]
        }
        let urls = comparison == nil ? [] : figures.map { Self.padded($0.name ?? "") + SafeText.escaped($0.url) } + [""]
        return urls
            + ([titles] + rows).map { row in
                row.enumerated().map { index, cell in
                    index == 0 ? Self.padded(cell) : String(repeating: " ", count: max((index == 6 ? 8 : 12) - cell.count, 1)) + cell
                }.joined()
            }
    }

    /// What went wrong in each.
    private var notes: [String] {
        let lines = figures.flatMap { figures in figures.troubles.map { "\(figures.name ?? ""), \($0.label) \($0.text)" } }
        return lines.isEmpty ? [] : [""] + lines
    }

    private var difference: [String] {
        guard let comparison else { return [] }
        return ["", "difference of the second URL, with a 95 % confidence interval:"]
            + comparison.lines.map { Self.padded($0.name) + $0.text }
    }

    private static func padded(_ label: String) -> String { label + String(repeating: " ", count: max(12 - label.count, 1)) }
}

extension BenchRun {
    /// The latency that a part of the samples does not exceed.
    static func percentile(_ percent: Double, of sorted: [Double]) -> Double {
        let rank = Int((percent / 100 * Double(sorted.count)).rounded(.up))
        return sorted[min(max(rank - 1, 0), sorted.count - 1)]
    }

    /// How many of the values are in each of some parts, of equal width, of the range from the first to the last one.
    static func counts(_ values: [Double], from first: Double, to last: Double, parts: Int) -> [Int] {
        let step = max((last - first) / Double(parts), 1e-6)
        var counts = [Int](repeating: 0, count: parts)
        for value in values { counts[min(Int((value - first) / step), parts - 1)] += 1 }
        return counts
    }

    /// Ten lines from the fastest to the slowest, with bars that fit the width.
    static func histogram(_ sorted: [Double], width: Int) -> [String] {
        guard let first = sorted.first, let last = sorted.last else { return [] }
        let step = max((last - first) / 10, 1e-6)
        let counts = counts(sorted, from: first, to: last, parts: 10)
        let most = counts.max() ?? 1
        let digits = "\(most)".count
        return counts.enumerated().map { index, count in
            let edge = MetaText.text(first + step * Double(index + 1))
            let bar = max(width - 14 - digits - 3, 1)
            let length = count == 0 ? 0 : max(count * bar / most, 1)
            return String(repeating: " ", count: max(12 - edge.count, 0)) + edge + "  "
                + String(repeating: " ", count: digits - "\(count)".count) + "\(count)"
                + (length > 0 ? " " + String(repeating: "█", count: length) : "")
        }
    }

    static func number(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }

    /// A number without a fraction of zero.
    static func plain(_ value: Double) -> String { value == value.rounded() && abs(value) < 1e15 ? "\(Int(value))" : "\(value)" }
}
