// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The exchanges of an HTTP Archive as a picture: one row for each, with its phases as coloured bars over time.
///
/// ```swift
/// try Waterfall(archive: recorder.data ?? Data()).html.write(to: page, atomically: true, encoding: .utf8)
/// ```
///
/// The rows of a request are together, in the order in which the requests began; its follow-ups and retries are indented below its first
/// exchange. Pointing at a row shows its details. The picture needs no other file, and runs no script.
public struct Waterfall: Sendable {
    private struct Row {
        let entry: HAREntry
        /// From the first exchange of all, in milliseconds.
        let start: Double
        let isNested: Bool
    }

    private static let labelWidth = 340.0
    private static let chartWidth = 860.0
    private static let rowHeight = 22.0
    private static let headerHeight = 58.0
    /// The phases, in their order, with the colours of their bars.
    private static let phases = [
        ("queue", "#9aa0a6"), ("DNS", "#12858d"), ("connect", "#e37400"), ("TLS", "#a142f4"), ("send", "#1967d2"), ("wait", "#34a853"),
        ("receive", "#4285f4"),
    ]

    private let rows: [Row]
    /// In milliseconds.
    private let length: Double

    /// Reads an HTTP Archive, such as one that ``HARRecorder`` has written.
    ///
    /// - Throws: `DecodingError` if the data is no archive of Curlew's.
    public init(archive data: Data) throws {
        let entries = try JSONDecoder().decode(HARArchive.self, from: data).log.entries
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        let dated = try entries.map { entry in
            guard let date = try? style.parse(entry.startedDateTime) else {
                let message = "\(entry.startedDateTime) is no date with a fraction of seconds"
                throw DecodingError.dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: message))
            }
            return (entry: entry, date: date)
        }
        let first = dated.map(\.date).min() ?? Date(timeIntervalSince1970: 0)
        var starts: [UInt64: Date] = [:]
        for (entry, date) in dated { starts[entry._requestID] = min(starts[entry._requestID] ?? date, date) }
        let sorted = dated.sorted { one, other in
            let (start, otherStart) = (starts[one.entry._requestID] ?? first, starts[other.entry._requestID] ?? first)
            return (start, one.entry._requestID, one.entry._exchange) < (otherStart, other.entry._requestID, other.entry._exchange)
        }
        rows = sorted.map { entry, date in
            Row(entry: entry, start: date.timeIntervalSince(first) * 1000, isNested: entry._exchange > 1)
        }
        length = max(rows.map { $0.start + $0.entry.time }.max() ?? 0, 0.001)
    }

    // MARK: The picture

    /// The picture as SVG: well-formed XML, to be shown by itself or inside a page.
    public var svg: String {
        let width = Self.labelWidth + Self.chartWidth + 20
        let height = Self.headerHeight + Double(rows.count) * Self.rowHeight + 12
        var parts = [
            """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(width.text)" height="\(height.text)" viewBox="0 0 \(width.text) \(height.text)" \
            font-family="system-ui, sans-serif" font-size="12">
            """,
            #"<rect width="100%" height="100%" fill="white"/>"#, legend, axis(height),
        ]
        for (index, row) in rows.enumerated() { parts.append(draw(row, at: Self.headerHeight + Double(index) * Self.rowHeight)) }
        parts.append("</svg>")
        return parts.joined(separator: "\n")
    }

    /// The picture as an HTML page.
    public var html: String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head><meta charset="utf-8"/><title>Curlew: \(rows.count) exchanges</title>
        <style>body { margin: 16px; } g.row:hover rect.band { fill: #e8f0fe; }</style></head>
        <body>
        \(svg)
        </body>
        </html>

        """
    }

    private var legend: String {
        var x = 8.0
        let items = Self.phases.map { name, colour in
            defer { x += 26 + Double(name.count) * 7 }
            return """
                <rect x="\(x.text)" y="8" width="12" height="12" fill="\(colour)"/>\
                <text x="\((x + 16).text)" y="18" fill="#202124">\(name)</text>
                """
        }
        return items.joined(separator: "\n")
    }

    /// The lines of the time axis, at most ten of them.
    private func axis(_ height: Double) -> String {
        var step = 0.001
        while length / step > 10 {
            for factor in [2.0, 2.5, 2.0] where length / step > 10 { step *= factor }
        }
        return stride(from: 0, through: length, by: step).map { time in
            let x = position(time).text
            return """
                <line x1="\(x)" y1="40" x2="\(x)" y2="\((height - 8).text)" stroke="#dadce0"/>\
                <text x="\(x)" y="36" fill="#5f6368" text-anchor="middle">\(Self.label(time))</text>
                """
        }.joined(separator: "\n")
    }

    private func draw(_ row: Row, at y: Double) -> String {
        let entry = row.entry
        let isFailed = entry.response._error != nil || entry.response.status >= 400
        let indent = row.isNested ? 22.0 : 8.0
        let title = (row.isNested ? "↳ " : "") + "\(entry._name ?? "\(entry.request.method) \(Self.shortened(entry.request.url))")"
        var parts = [
            #"<g class="row"><title>\#(details(of: entry).escapedForXML)</title>"#,
            """
            <rect class="band" x="0" y="\(y.text)" width="\((Self.labelWidth + Self.chartWidth + 20).text)" height="\(Self.rowHeight.text)" \
            fill="#ffffff" fill-opacity="0"/>
            """,
            """
            <text x="\(indent.text)" y="\((y + 15).text)" fill="\(isFailed ? "#c5221f" : "#202124")">\
            \(title.cut(to: row.isNested ? 40 : 43).escapedForXML)</text>
            """,
            """
            <text x="\((Self.labelWidth - 8).text)" y="\((y + 15).text)" text-anchor="end" fill="\(isFailed ? "#c5221f" : "#5f6368")">\
            \(entry.response.status == 0 ? "failed" : "\(entry.response.status)")</text>
            """,
        ]
        var time = row.start
        for (duration, phase) in zip(bars(of: entry.timings), Self.phases) where duration > 0 {
            let width = max(position(time + duration) - position(time), 0.5)
            parts.append(
                """
                <rect x="\(position(time).text)" y="\((y + 4).text)" width="\(width.text)" height="\((Self.rowHeight - 8).text)" \
                fill="\(phase.1)"/>
                """)
            time += duration
        }
        parts.append(
            """
            <text x="\((position(time) + 4).text)" y="\((y + 15).text)" fill="#5f6368" font-size="11">\
            \(entry._fromCache ? "cache" : Self.label(entry.time))</text></g>
            """)
        return parts.joined(separator: "\n")
    }

    private func bars(of timings: HAREntry.Timings) -> [Double] {
        let ssl = max(timings.ssl, 0)
        return [
            timings.blocked, timings.dns, max(timings.connect, 0) - ssl, ssl, timings.send, timings.wait, timings.receive,
        ].map { max($0, 0) }
    }

    private func details(of entry: HAREntry) -> String {
        var lines = [
            "\(entry.request.method) \(entry.request.url)",
            "\(entry.response.status) \(entry.response.statusText) \(entry.response.httpVersion)",
            "request \(entry._requestID), attempt \(entry._attempt), exchange \(entry._exchange) (\(entry._reason))",
            "sent \(entry.request.bodySize) bytes, received \(entry.response.bodySize) bytes",
        ]
        if let address = entry.serverIPAddress { lines.append("server \(address), connection \(entry.connection ?? "?")") }
        if entry._fromCache { lines.append("from the cache") }
        if let error = entry.response._error { lines.append(error) }
        lines += zip(bars(of: entry.timings), Self.phases).filter { $0.0 > 0 }.map { "\($0.1.0): \(Self.label($0.0))" }
        return lines.joined(separator: "\n")
    }

    private func position(_ time: Double) -> Double { Self.labelWidth + time / length * (Self.chartWidth - 60) }

    private static func label(_ milliseconds: Double) -> String {
        milliseconds >= 1000 ? "\((milliseconds / 1000).text) s" : "\(milliseconds.text) ms"
    }

    /// The path and the query of a URL, with the host in front.
    private static func shortened(_ url: String) -> String {
        url.firstScalarRange(of: "://").map { String(url[$0.upperBound...]) } ?? url
    }
}

extension Double {
    /// With at most two digits after the point, as SVG reads numbers.
    fileprivate var text: String {
        let hundredths = (self * 100).rounded()
        guard hundredths.isFinite, abs(hundredths) < 1e15 else { return "0" }
        let value = Int64(hundredths)
        let fraction = String(abs(value) % 100 + 100).dropFirst()
        let trimmed = fraction.hasByteSuffix("00") ? "" : fraction.hasByteSuffix("0") ? fraction.dropLast() : fraction
        return "\(value < 0 ? "-" : "")\(abs(value) / 100)\(trimmed.isEmpty ? "" : ".\(trimmed)")"
    }
}

extension String {
    fileprivate func cut(to count: Int) -> String { self.count > count ? prefix(count - 1) + "…" : self }

    /// With the characters that XML reserves as entities, and without those that it forbids.
    fileprivate var escapedForXML: String {
        var result = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\n", "\t": result.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x20 || scalar.value == 0x7F || scalar.value & 0xFFFE == 0xFFFE: result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
