// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Notes the exchanges of the request as they are on the wire: redirects, authenticated repetitions and retries too.
final class ExchangeLog: ExchangeInstrument, @unchecked Sendable {  // the entries are guarded by the lock
    final class Entry: ExchangeObservation, @unchecked Sendable {  // head and metrics are guarded by the lock
        let exchange: OutgoingExchange
        private let lock = NSLock()
        private var received: ResponseHead?
        private var completion: ExchangeCompletion?

        init(_ exchange: OutgoingExchange) {
            self.exchange = exchange
        }

        var head: ResponseHead? { lock.withLock { received ?? completion?.head } }
        var metrics: TransferMetrics? { lock.withLock { completion?.metrics } }

        func didReceive(_ head: ResponseHead) {
            lock.withLock { received = head }
        }

        func didEnd(_ completion: ExchangeCompletion) {
            lock.withLock { self.completion = completion }
        }
    }

    private let lock = NSLock()
    private var all: [Entry] = []

    var entries: [Entry] { lock.withLock { all } }

    func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
        let entry = Entry(exchange)
        lock.withLock { all.append(entry) }
        return entry
    }
}

/// Prints heads, and bodies of requests, as asked for.
struct ExchangePrinter {
    /// The letters of `--print`.
    let parts: String
    let style: Style
    let output: Output
    let showsSecrets: Bool
    /// Whether a body of JSON is formatted as that of a response is.
    let formatsBody: Bool
    /// Whether control characters of a body are escaped.
    let escapesBody: Bool
    /// The body that each exchange sends.
    let body: PlannedBody
    private var printed = 0
    private var hasPrintedStored = false

    init(parts: String, style: Style, output: Output, showsSecrets: Bool, formatsBody: Bool, escapesBody: Bool, body: PlannedBody) {
        self.parts = parts
        self.style = style
        self.output = output
        self.showsSecrets = showsSecrets
        self.body = body
        self.formatsBody = formatsBody
        self.escapesBody = escapesBody
    }

    /// Prints the exchanges that were not printed yet.
    mutating func print(_ entries: [ExchangeLog.Entry]) throws(Output.Failure) {
        for entry in entries.dropFirst(printed) {
            printed += 1
            let exchange = entry.exchange
            try printRequest(
                method: exchange.method, url: exchange.url, headers: exchange.headers, bodyLength: exchange.bodyLength,
                isFirst: exchange.number == 1, version: entry.head.map(\.httpVersion))
            if let head = entry.head { try printHead(head) }
        }
    }

    /// Prints the head of a response from the cache, once.
    mutating func printStored(_ head: ResponseHead) throws(Output.Failure) {
        guard !hasPrintedStored else { return }
        hasPrintedStored = true
        try printHead(head)
    }

    /// - Parameter isFirst: whether it is the first exchange, the only one that a body can be sent with that is read once.
    func printRequest(
        method: HTTPMethod, url: String, headers: HTTPHeaders, bodyLength: Int64?, isFirst: Bool = true, version: String?
    ) throws(Output.Failure) {
        let sendsStream = isFirst && body.isReadOnce
        if parts.unicodeScalars.contains("H") {
            let target = showsSecrets ? Self.target(url) : VerboseText.target(url)
            var lines = [style.paint("\(method)", .green) + " " + style.paint(target, .cyan) + (version.map { " \($0)" } ?? "")]
            if headers["Host"] == nil { lines.append(line("Host", Self.host(of: url))) }
            lines += headers.map { line($0.name, $0.value) }
            if let bodyLength, bodyLength >= 0, headers["Content-Length"] == nil { lines.append(line("Content-Length", "\(bodyLength)")) }
            if sendsStream, version == "HTTP/1.1", headers["Content-Length"] == nil { lines.append(line("Transfer-Encoding", "chunked")) }
            try write(lines.joined(separator: "\n") + "\n\n")
        }
        if parts.unicodeScalars.contains("B"), bodyLength != nil || sendsStream, let body = body.shown, !body.isEmpty {
            try write(shown(body, contentType: headers["Content-Type"]) + "\n\n")
        }
    }

    private func shown(_ body: Data, contentType: String?) -> String {
        if formatsBody, body.contains(0) { return "(\(body.count) bytes)" }
        func safe(_ bytes: some Collection<UInt8>) -> String {
            let text = String(decoding: bytes, as: UTF8.self)
            return escapesBody ? TerminalText.escaped(text) : text
        }
        guard formatsBody, BodyPrinter.isJSON(contentType), body.count <= BodyPrinter.maximumFormattedSize else { return safe(body) }
        var text = JSONReindenter()
        text.append(body)
        return String(decoding: style.json(Array(safe(text.finish()).utf8)), as: UTF8.self)
    }

    private func printHead(_ head: ResponseHead) throws(Output.Failure) {
        guard parts.unicodeScalars.contains("h") else { return }
        for interim in head.interimResponses { try printHead(interim) }
        let status = "\(head.statusCode)" + (head.reasonPhrase.isEmpty ? "" : " \(SafeText.escaped(head.reasonPhrase))")
        var lines = [SafeText.escaped(head.httpVersion) + " " + style.status(head.statusCode, status)]
        lines += head.headers.map { line($0.name, $0.value) }
        try write(lines.joined(separator: "\n") + "\n\n")
    }

    private func line(_ name: String, _ value: String) -> String {
        let text = showsSecrets ? SafeText.escaped("\(name): \(value)") : VerboseText.line(name, value)
        guard style.isOn, let colon = text.unicodeScalars.firstIndex(of: ":") else { return text }
        return style.paint(String(text[..<colon]), .cyan) + text[colon...]
    }

    private func write(_ text: String) throws(Output.Failure) {
        try output.write(Data(text.utf8))
    }

    static func target(_ url: String) -> String {
        let start = url.firstScalarRange(of: "//").map { url[$0.upperBound...] } ?? url[...]
        let target = start.dropScalars { $0 != "/" && $0 != "?" && $0 != "#" }.prefixScalars { $0 != "#" }
        return SafeText.escaped(target.unicodeScalars.first == "/" ? String(target) : "/" + target)
    }

    static func host(of url: String) -> String {
        let start = url.firstScalarRange(of: "//").map { url[$0.upperBound...] } ?? url[...]
        let authority = start.prefixScalars { $0 != "/" && $0 != "?" && $0 != "#" }
        return String(authority.splitScalars(separator: "@", omittingEmptySubsequences: false).last ?? "")
    }
}
