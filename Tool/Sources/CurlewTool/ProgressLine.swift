// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The progress line of a download, redrawn in place.
final class ProgressLine: @unchecked Sendable {  // used on the progress closure's queue only, and after its last call
    private let output: Output
    private let start = ContinuousClock.now
    private var lastDrawn: ContinuousClock.Instant?

    init(output: Output) {
        self.output = output
    }

    /// Draws the progress, at most ten times a second.
    func update(completed: Int64, total: Int64) {
        let now = ContinuousClock.now
        if let lastDrawn, now - lastDrawn < .milliseconds(100), completed != total { return }
        lastDrawn = now
        // A line that the terminal breaks can't be redrawn.
        let columns = max((output.width ?? 80) - 1, 4)
        let line = Self.text(completed: completed, total: total, elapsed: now - start, width: 20, columns: columns)
        try? output.write(Data("\r\u{1B}[K\(line)".utf8))
    }

    /// Ends the line, if one was drawn.
    func end() {
        if lastDrawn != nil { output.note("") }
    }

    /// Formats the progress: bar, percentage, size, speed and remaining time. A negative total is unknown.
    ///
    /// - Parameters:
    ///   - width: the width of the bar.
    ///   - columns: the width of the line. What does not fit is left out, from the right, and the bar before the percentage.
    static func text(completed: Int64, total: Int64, elapsed: Duration, width: Int, columns: Int = .max) -> String {
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        let speed = seconds > 0 ? Double(completed) / seconds : 0
        guard total >= 0 else { return fitted([size(Double(completed)), "\(size(speed))/s"], columns) }
        let part = total > 0 ? min(Double(completed) / Double(total), 1) : 1
        let filled = Int(part * Double(width))
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
        let percent = "\(Int(part * 100))%".leftPadded(to: 4)
        let sizes = "\(size(Double(completed))) of \(size(Double(total)))"
        let left = speed > 0 ? ["\(time(Double(max(total - completed, 0)) / speed)) left"] : []
        let first = width + 3 + percent.count <= columns ? "[\(bar)] \(percent)" : percent
        return fitted([first, sizes, "\(size(speed))/s"] + left, columns)
    }

    private static func fitted(_ parts: [String], _ columns: Int) -> String {
        var parts = parts
        while parts.count > 1, parts.reduce(-2, { $0 + $1.count + 2 }) > columns { parts.removeLast() }
        return parts.joined(separator: "  ")
    }

    static func size(_ bytes: Double) -> String {
        var value = bytes
        var units = ["KiB", "MiB", "GiB", "TiB"][...]
        guard value >= 1024 else { return "\(Int(value)) B" }
        var unit = ""
        while value >= 1024, let next = units.popFirst() {
            value /= 1024
            unit = next
        }
        let tenths = Int(value * 10)
        return "\(tenths / 10).\(tenths % 10) \(unit)"
    }

    static func time(_ seconds: Double) -> String {
        let seconds = Int(min(seconds.rounded(.up), 359_999))
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let minutes = seconds / 60
        return minutes < 60 ? "\(minutes):\(two(seconds % 60))" : "\(minutes / 60):\(two(minutes % 60)):\(two(seconds % 60))"
    }
}

extension String {
    fileprivate func leftPadded(to width: Int) -> String {
        String(repeating: " ", count: max(width - count, 0)) + self
    }
}
