// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Draws the runs of an outage as SVG: attempts a second above, the share of the requests served below.
enum Chart {
    private static let (width, height, left, top) = (900.0, 260.0, 60.0, 30.0)
    private static let colours = ["#b00020", "#e07000", "#2060c0", "#20a0a0", "#208020", "#a060c0", "#000000"]

    static func svg(_ outcomes: [Outcome]) -> String {
        let total = 2 * height + 160 + 18 * Double(outcomes.count)
        var parts = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(Int(width + 100))\" height=\"\(Int(total))\" font-family=\"sans-serif\" font-size=\"12\">",
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
        ]
        let most = outcomes.map { $0.tally.attempts.max() ?? 0 }.max() ?? 1
        parts += panel(outcomes, "attempts a second", at: top, most: Double(most)) { Double($0.tally.attempts[$1]) }
        parts += panel(outcomes, "share of requests served", at: top + height + 50, most: 1) { $0.servedShare($1..<($1 + 1)) }
        for (index, outcome) in outcomes.enumerated() {
            let y = top + 2 * height + 90 + Double(index) * 18
            parts.append("<rect x=\"\(left)\" y=\"\(y - 9)\" width=\"20\" height=\"4\" fill=\"\(colours[index % colours.count])\"/>")
            parts.append("<text x=\"\(left + 28)\" y=\"\(y - 3)\">\(outcome.name)</text>")
        }
        return (parts + ["</svg>", ""]).joined(separator: "\n")
    }

    private static func panel(
        _ outcomes: [Outcome], _ title: String, at y: Double, most: Double, _ value: (Outcome, Int) -> Double
    ) -> [String] {
        let seconds = outcomes.first?.scenario.seconds ?? 1
        var parts = [
            "<text x=\"\(left)\" y=\"\(y - 8)\">\(title), 0 to \(most == 1 ? "1" : "\(Int(most))"); \(seconds) seconds</text>",
            "<rect x=\"\(left)\" y=\"\(y)\" width=\"\(width)\" height=\"\(height)\" fill=\"none\" stroke=\"#888\"/>",
        ]
        for border in [60, 120, 180] {
            let x = left + width * Double(border) / Double(seconds)
            parts.append("<line x1=\"\(x)\" y1=\"\(y)\" x2=\"\(x)\" y2=\"\(y + height)\" stroke=\"#ccc\"/>")
        }
        for (index, outcome) in outcomes.enumerated() {
            let points = (0..<seconds).map { second in
                let x = left + width * Double(second) / Double(seconds)
                return String(format: "%.1f,%.1f", x, y + height * (1 - min(value(outcome, second) / most, 1)))
            }
            let colour = colours[index % colours.count]
            parts.append("<polyline fill=\"none\" stroke=\"\(colour)\" stroke-width=\"1.2\" points=\"\(points.joined(separator: " "))\"/>")
        }
        return parts
    }
}
