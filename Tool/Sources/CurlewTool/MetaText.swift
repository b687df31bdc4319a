// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The measurements of a request's exchanges, as a waterfall of text.
struct MetaText {
    let style: Style
    /// The width of the terminal in columns.
    let width: Int

    /// Returns the lines of all exchanges.
    func lines(_ metrics: TaskMetrics) -> [String] {
        metrics.transactionMetrics.enumerated().flatMap { number, exchange in
            let title = metrics.transactionMetrics.count > 1 ? [style.paint("exchange \(number + 1)", .cyan)] : []
            return title + lines(exchange)
        }
    }

    private func lines(_ metrics: TransferMetrics) -> [String] {
        let phases = Self.phases(metrics)
        let names = phases.map(\.name.count).max() ?? 0
        let total = max(Self.milliseconds(metrics.total), 0.001)
        // Name, two spaces, ten columns of time, two spaces, the bar.
        let bar = max(width - names - 14, 0)
        var lines = phases.map { phase in
            let from = min(Int(phase.start / total * Double(bar)), max(bar - 1, 0))
            let length = max(Int(((phase.end - phase.start) / total * Double(bar)).rounded()), 1)
            let name = phase.name + String(repeating: " ", count: names - phase.name.count)
            let time = Self.text(phase.end - phase.start)
            let filled = String(repeating: " ", count: from) + style.paint(String(repeating: "█", count: min(length, bar - from)), .green)
            return "\(name)  \(String(repeating: " ", count: max(10 - time.count, 0)))\(time)" + (bar > 0 ? "  \(filled)" : "")
        }
        lines += Self.facts(metrics).map { style.paint($0.name, .cyan) + ": " + SafeText.escaped($0.value) }
        return lines
    }

    /// The phases in milliseconds since the transfer was handed over.
    static func phases(_ metrics: TransferMetrics) -> [(name: String, start: Double, end: Double)] {
        var phases: [(name: String, start: Double, end: Double)] = []
        var start = 0.0
        func add(_ name: String, _ end: Duration?) {
            guard let end = end.map(milliseconds), end >= start else { return }
            phases.append((name, start, end))
            start = end
        }
        add("queue", metrics.queueDuration)
        if !metrics.reusedConnection {
            add("dns", metrics.nameLookupEnd)
            add("connect", metrics.connectEnd)
            add("tls", metrics.secureConnectionEnd)
        }
        add("first byte", metrics.responseStart)
        add("body", metrics.total)
        phases.append(("total", 0, milliseconds(metrics.total)))
        return phases
    }

    private static func facts(_ metrics: TransferMetrics) -> [(name: String, value: String)] {
        var facts: [(name: String, value: String)] = []
        func address(_ host: String?, _ port: Int?) -> String? {
            host.map { ($0.unicodeScalars.contains(":") ? "[\($0)]" : $0) + (port.map { ":\($0)" } ?? "") }
        }
        if let remote = address(metrics.remoteAddress, metrics.remotePort) {
            let local = address(metrics.localAddress, metrics.localPort).map { ", from \($0)" } ?? ""
            facts.append(("connection", "\(remote)\(local), \(metrics.reusedConnection ? "reused" : "new")"))
        }
        if let version = metrics.httpVersion { facts.append(("protocol", version.rawValue)) }
        if let version = metrics.tlsVersion {
            facts.append(("tls", ([version] + [metrics.tlsCipher].compactMap { $0 }).joined(separator: ", ")))
        }
        facts.append(("sent", "\(metrics.requestHeaderBytes) bytes of head, \(metrics.requestBodyBytes) of body"))
        facts.append(("received", "\(metrics.responseHeaderBytes) bytes of head, \(metrics.responseBodyBytes) of body"))
        return facts
    }

    static func milliseconds(_ duration: Duration) -> Double { duration / .milliseconds(1) }

    static func text(_ milliseconds: Double) -> String {
        let hundredths = Int((milliseconds * 100).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest) ms"
    }
}
