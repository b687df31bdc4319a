// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The report of `bench --html`: one page that needs nothing else, and has no scripts and no secrets of URLs.
struct BenchPage {
    let run: BenchRun
    let figures: [BenchFigures]
    let comparison: BenchComparison?
    let isInterrupted: Bool

    /// The bars of a histogram.
    private static let barCount = 60
    private static let size = (width: 720.0, height: 180.0)

    var html: String {
        let title = "\(run.plans[0].method) \(figures.map(\.url).first ?? "")"
        var parts = [
            """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <meta name="viewport" content="width=device-width">
            <title>curlew bench: \(Self.escaped(title))</title>
            <style>\(Self.style)</style>
            </head>
            <body>
            <h1>\(Self.escaped(title))</h1>
            """
        ]
        if isInterrupted { parts.append("<p class=\"bad\">The run was interrupted; the figures are those until then.</p>") }
        parts.append(Self.table(settings.map { [$0.label, $0.text] }))
        if !run.assertions.isEmpty { parts.append(assertions) }
        if figures.count > 1 { parts.append(overview) }
        if let comparison { parts.append(difference(comparison)) }
        let edges = (figures.compactMap(\.latencies.first).min() ?? 0, figures.compactMap(\.latencies.last).max() ?? 0)
        parts += figures.map { section($0, from: edges.0, to: edges.1) }
        return (parts + ["</body>", "</html>"]).joined(separator: "\n") + "\n"
    }

    private static let style = """
        body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:760px;padding:0 1em;color:#1d2430;background:#fff}
        h1{font-size:1.3em;overflow-wrap:anywhere}h2{font-size:1.1em;margin-top:2em}
        table{border-collapse:collapse}td,th{padding:.15em 1em .15em 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}
        .figures td,.figures th{text-align:right}.figures td:first-child,.figures th:first-child{text-align:left}
        .bad{color:#b3261e}svg{max-width:100%;height:auto}
        """

    private var settings: [(label: String, text: String)] {
        var rows: [(String, String)] =
            figures.first?.name == nil || comparison == nil && run.plans.count == 1
            ? [("URL", figures.first?.url ?? "")] : figures.map { ($0.name ?? "URL", $0.url) }
        if let count = run.count { rows.append(("requests", "\(count)\(scope)")) }
        if let duration = run.duration { rows.append(("duration", "\(BenchRun.plain(duration / .seconds(1))) s\(scope)")) }
        rows.append(("concurrency", "\(run.concurrency)"))
        if !run.rates.isEmpty { rows.append(("rate", run.rates.map(BenchRun.plain).joined(separator: ", ") + " a second")) }
        if let body = run.body { rows.append(("body", "\(body.count) bytes")) }
        rows.append(("date", Date().formatted(.iso8601)))
        rows.append(("program", "curlew \(CurlewInfo.version), libcurl \(CurlInfo.current.version)"))
        return rows
    }

    private var scope: String { run.rates.count > 1 ? " in each step" : run.count != nil && run.plans.count > 1 ? " to each URL" : "" }

    private var assertions: String {
        let unmet = run.unmet(by: figures)
        guard !unmet.isEmpty else {
            return "<p>All of these hold: \(Self.escaped(run.assertions.map(\.text).joined(separator: ", "))).</p>"
        }
        return "<p class=\"bad\">Not met:</p>\n<ul>\n" + unmet.map { "<li class=\"bad\">\(Self.escaped($0))</li>\n" }.joined() + "</ul>"
    }

    private var overview: String {
        let columns = [50.0, 90, 99, 100]
        let rows = figures.map { figures in
            [figures.name ?? "", BenchRun.number(figures.perSecond)]
                + columns.map { figures.latencies.isEmpty ? "–" : MetaText.text(BenchRun.percentile($0, of: figures.latencies)) }
                + ["\(figures.failureCount)"]
        }
        return Self.table(rows, head: ["", "a second"] + columns.map(BenchFigures.title) + ["failed"])
    }

    private func difference(_ comparison: BenchComparison) -> String {
        "<h2>Difference of the second URL, with a 95 % confidence interval</h2>\n"
            + Self.table(comparison.lines.map { [$0.name, $0.text] })
    }

    private func section(_ figures: BenchFigures, from first: Double, to last: Double) -> String {
        let title = figures.name.map { "\($0.prefix(1).uppercased())\($0.dropFirst())" } ?? "Figures"
        let facts = "<h2>\(Self.escaped(title))</h2>\n" + Self.table(figures.facts.map { [$0.label, $0.text] })
        guard !figures.latencies.isEmpty else { return facts }
        let titles = BenchFigures.percentiles.map(BenchFigures.title)
        let values = BenchFigures.percentiles.map { MetaText.text(BenchRun.percentile($0, of: figures.latencies)) }
        return [facts, Self.table([values], head: titles), Self.histogram(figures.latencies, from: first, to: last)].joined(separator: "\n")
    }

    /// The bars of the latencies, with lines at the median and at 99 %. All histograms of a page have the same axis.
    static func histogram(_ sorted: [Double], from first: Double, to last: Double) -> String {
        let counts = BenchRun.counts(sorted, from: first, to: last, parts: barCount)
        let most = Double(max(counts.max() ?? 1, 1))
        let (width, height) = size
        let bar = width / Double(barCount)
        func place(_ value: Double) -> Double { last > first ? (value - first) / (last - first) * width : 0 }
        var shapes = counts.enumerated().filter { $0.element > 0 }.map { index, count in
            let length = max(Double(count) / most * height, 1)
            let edges = [index, index + 1].map { MetaText.text(first + (last - first) * Double($0) / Double(barCount)) }
            return """
                <rect x="\(text(Double(index) * bar))" y="\(text(20 + height - length))" width="\(text(bar - 1))" height="\(text(length))" \
                fill="#0b5cad"><title>\(edges[0]) to \(edges[1]): \(count)</title></rect>
                """
        }
        for percent in [50.0, 99] {
            let x = place(BenchRun.percentile(percent, of: sorted))
            let anchor = x > width / 2 ? "end" : "start"
            shapes.append(
                """
                <line x1="\(text(x))" y1="16" x2="\(text(x))" y2="\(text(20 + height))" stroke="#b3261e"/>\
                <text x="\(text(x))" y="12" font-size="11" text-anchor="\(anchor)" fill="#b3261e">\(text(percent)) %</text>
                """)
        }
        for part in 0...4 {
            let x = width * Double(part) / 4
            let anchor = part == 0 ? "start" : part == 4 ? "end" : "middle"
            shapes.append(
                """
                <text x="\(text(x))" y="\(text(height + 36))" font-size="11" text-anchor="\(anchor)" \
                fill="#5b6675">\(MetaText.text(first + (last - first) * Double(part) / 4))</text>
                """)
        }
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(text(width)) \(text(height + 40))" width="\(text(width))" \
            height="\(text(height + 40))" role="img" font-family="system-ui, sans-serif">
            <title>Histogram of \(sorted.count) latencies</title>
            \(shapes.joined(separator: "\n"))
            </svg>
            """
    }

    /// A number with at most two digits behind the point.
    private static func text(_ value: Double) -> String { BenchRun.plain((value * 100).rounded() / 100) }

    private static func table(_ rows: [[String]], head: [String] = []) -> String {
        let titles = head.isEmpty ? "" : "<tr>" + head.map { "<th>\(escaped($0))</th>" }.joined() + "</tr>\n"
        let cells = rows.map { row in
            // Without titles, the first cell of a row is one.
            "<tr>"
                + row.enumerated().map { index, cell in
                    head.isEmpty && index == 0 ? "<th>\(escaped(cell))</th>" : "<td>\(escaped(cell))</td>"
                }.joined() + "</tr>\n"
        }
        return "<table\(head.isEmpty ? "" : " class=\"figures\"")>\n\(titles)\(cells.joined())</table>"
    }

    /// Text within an element or an attribute, with control characters made visible.
    static func escaped(_ text: String) -> String {
        [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("'", "&#39;")].reduce(SafeText.escaped(text)) {
            $0.replacingScalars($1.0, with: $1.1)
        }
    }
}
