// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewDownloads

/// What is printed about downloads: on a terminal a line for each that is redrawn in place, and one for the total; elsewhere, as in a log,
/// a line for each that has ended, and one every ten seconds for those that have not.
final class DownloadBoard: @unchecked Sendable {  // the state is guarded by a lock
    /// A download.
    struct Entry {
        let name: String
        var progress = SegmentedDownload.Progress(completed: 0, total: nil, connections: 0)
        var resumed: Int64?
        let start = ContinuousClock.now
    }

    private let output: Output
    private let lock = NSLock()
    private var entries: [Int: Entry] = [:]
    private var isBegun = false
    private var drawn = 0
    private var ended = (files: 0, bytes: Int64(0))
    private let start = ContinuousClock.now

    init(output: Output) {
        self.output = output
    }

    private var width: Int? { output.width }

    func begin(_ number: Int, name: String) {
        lock.withLock { entries[number] = Entry(name: name) }
    }

    func update(_ number: Int, _ progress: SegmentedDownload.Progress) {
        lock.withLock {
            // What an earlier download has left was not received at any speed.
            if entries[number]?.resumed == nil { entries[number]?.resumed = progress.completed }
            entries[number]?.progress = progress
        }
    }

    func finish(_ number: Int, _ result: SegmentedDownload.Result) {
        lock.withLock {
            guard let entry = entries.removeValue(forKey: number) else { return }
            ended.files += 1
            ended.bytes += result.received
            let elapsed = ContinuousClock.now - entry.start
            erase()
            // The server may have named it.
            let name = result.file.lastPathComponent
            let isNamed = URL(fileURLWithPath: entry.name).lastPathComponent == name
            output.note(Self.line(isNamed ? entry.name : name, result, elapsed: elapsed))
            draw()
        }
    }

    /// Prints why a download waits, or does not.
    func wait(_ number: Int, _ wait: RetryWait, limit: Int) {
        lock.withLock {
            guard let entry = entries[number] else { return }
            erase()
            let message = Outcome(wait.error).message ?? "failed"
            let delay = Retry.text(wait.delay)
            let next = wait.isWaited ? "retry \(wait.failures) of \(limit) in \(delay)" : "not retried: that would take \(delay)"
            output.note("\(entry.name): \(message); \(next)")
            draw()
        }
    }

    func fail(_ number: Int, _ message: String?) {
        lock.withLock {
            guard let entry = entries.removeValue(forKey: number) else { return }
            erase()
            if let message { output.note("\(entry.name): failed: \(message)") }
            draw()
        }
    }

    /// Prints until the task is cancelled.
    func run() async {
        let interval = width == nil ? Duration.seconds(10) : .milliseconds(200)
        while (try? await Task.sleep(for: interval)) != nil {
            lock.withLock {
                erase()
                if width == nil {
                    for line in lines(width: 120) { output.note(line) }
                } else {
                    draw()
                }
            }
        }
    }

    /// Prints the end of more than one.
    func end(count: Int) {
        lock.withLock {
            erase()
            guard count > 1, ended.files > 0 else { return }
            output.note("\(ended.files) of \(count) files, \(ProgressLine.size(Double(ended.bytes))) received")
        }
    }

    // MARK: Drawing

    private func erase() {
        guard drawn > 0 else { return }
        try? output.write(Data("\u{1B}[\(drawn)A\r\u{1B}[J".utf8))
        drawn = 0
    }

    private func draw() {
        guard let width, !entries.isEmpty else { return }
        let lines = lines(width: width)
        for line in lines { output.note(line) }
        drawn = lines.count
    }

    private func lines(width: Int) -> [String] {
        let sorted = entries.sorted { $0.key < $1.key }.map(\.value)
        var lines = sorted.map { Self.line($0, width: width, now: .now) }
        if sorted.count > 1 { lines.append(total(sorted, width: width)) }
        return lines
    }

    private func total(_ entries: [Entry], width: Int) -> String {
        var total = Entry(name: "total (\(ended.files) done, \(entries.count) active)")
        total.progress.completed = entries.reduce(0) { $0 + $1.progress.completed }
        let totals = entries.map(\.progress.total)
        total.progress.total = totals.contains(nil) ? nil : totals.compactMap { $0 }.reduce(0, +)
        total.progress.connections = entries.reduce(0) { $0 + $1.progress.connections }
        total.resumed = entries.reduce(0) { $0 + ($1.resumed ?? 0) }
        return Self.line(total, width: width, elapsed: ContinuousClock.now - start)
    }

    private static func line(_ entry: Entry, width: Int, now: ContinuousClock.Instant) -> String {
        line(entry, width: width, elapsed: now - entry.start)
    }

    /// Formats a download's state: what does not fit is left out, from the right, but never the percentage.
    static func line(_ entry: Entry, width: Int, elapsed: Duration) -> String {
        let (completed, total) = (entry.progress.completed, entry.progress.total)
        let seconds = elapsed / .seconds(1)
        let speed = seconds > 0 ? Double(max(completed - (entry.resumed ?? 0), 0)) / seconds : 0
        var parts: [String] = []
        if let total {
            parts.append("\(total > 0 ? Int(Double(completed) / Double(total) * 100) : 100)%")
            parts.append("\(ProgressLine.size(Double(completed))) of \(ProgressLine.size(Double(total)))")
        } else {
            parts.append(ProgressLine.size(Double(completed)))
        }
        parts.append("\(ProgressLine.size(speed))/s")
        if let total, speed > 0 { parts.append("\(ProgressLine.time(Double(max(total - completed, 0)) / speed)) left") }
        if entry.progress.connections > 1 { parts.append("\(entry.progress.connections) connections") }
        let room = max(width - 1, 8)
        let name = SafeText.escaped(entry.name)
        // Ten characters of a name are enough to tell it.
        while parts.count > 1, min(SafeText.columns(of: name), 10) + parts.reduce(0, { $0 + $1.count + 2 }) > room { parts.removeLast() }
        let state = parts.joined(separator: "  ")
        let space = max(room - state.count - 2, 1)
        return "\(SafeText.fitted(name, columns: space))  \(state)"
    }

    /// The line of a finished download.
    static func line(_ name: String, _ result: SegmentedDownload.Result, elapsed: Duration) -> String {
        let size = ProgressLine.size(Double(result.length))
        let verified = result.verified.isEmpty ? "" : ", \(result.verified.joined(separator: " and ")) verified"
        guard !result.isUnchanged else { return "\(name): \(size), already complete\(verified)" }
        let speed = Double(result.received) / max(elapsed / .seconds(1), 0.001)
        let resumed = result.resumed > 0 ? ", \(ProgressLine.size(Double(result.resumed))) of them resumed" : ""
        return "\(name): \(size) at \(ProgressLine.size(speed))/s\(resumed)\(verified)"
    }
}
