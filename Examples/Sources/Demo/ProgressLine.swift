// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Shows the progress of a request: a bar on a terminal, elsewhere a line for every tenth.
final class ProgressLine: @unchecked Sendable {  // used under its lock only
    private let verb: String
    private let lock = NSLock()
    private var shownTenths = 0
    private var isOver = false

    init(_ verb: String) {
        self.verb = verb
    }

    /// Takes what a request tells.
    func update(_ progress: Progress) {
        guard progress.totalUnitCount > 0 else { return }
        show(progress.completedUnitCount, of: progress.totalUnitCount)
    }

    /// Shows that all is done. What a request tells later than that comes too late.
    func finish(_ count: Int64) {
        show(count, of: count)
    }

    private func show(_ count: Int64, of total: Int64) {
        lock.withLock {
            let tenths = Int(count * 10 / total)
            guard !isOver, Console.isTerminal || tenths > shownTenths else { return }
            shownTenths = tenths
            isOver = count == total
            let amounts = "\(tenths * 10) % (\(count / 1_000_000) of \(total / 1_000_000) MB)"
            guard Console.isTerminal else { return Console.say("   \(verb) \(amounts)") }
            let bar = String(repeating: "#", count: Int(count * 40 / total)).padding(toLength: 40, withPad: ".", startingAt: 0)
            Console.rewrite("   \(verb) [\(bar)] \(amounts)\(isOver ? "\n" : "")")
        }
    }
}
