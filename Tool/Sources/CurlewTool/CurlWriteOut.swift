// SPDX-License-Identifier: Apache-2.0
import Curlew

/// What is known of a transfer when it has ended, for curl's option `--write-out`.
struct CurlReport: Sendable {
    var url = ""
    var method = ""
    var referer: String?
    var number = 0
    var fileName: String?
    /// The exchanges of the last attempt, and those that were on the wire with their measurements.
    var heads: [ResponseHead] = []
    var metrics: [TransferMetrics] = []
    /// Where the last exchange was sent.
    var effectiveURL = ""
    var redirectURL: String?
    var delivered: Int64 = 0
    var retries = 0
    var outcome = Outcome.success
    /// Whether curl has an exit status for the outcome: a status of HTTP is none, unless the command says so.
    var isFailure = false

    var last: TransferMetrics? { metrics.last }
    /// The number of redirects that were followed.
    var redirects: Int { heads.dropLast().count { (300..<400).contains($0.statusCode) } }
}

/// The text of curl's option `--write-out`.
struct CurlWriteOut: Sendable, Equatable {
    enum Part: Equatable {
        case text(String)
        case variable(String)
        /// A field of the last response's head.
        case field(String)
        case standardOutput
        case standardError
        /// Only after a failure is what follows printed.
        case onError
        case file(path: String, appends: Bool)
    }

    let parts: [Part]

    /// - Parameter text: the text, or `@FILE`.
    init(_ text: String) throws(UsageError) {
        var text = text
        if text.hasBytePrefix("@") {
            let path = String(text.dropFirstScalars())
            guard let data = InputFile.contents(path) else { throw UsageError("\(path.quoted) can't be read") }
            text = String(decoding: data, as: UTF8.self)
        }
        var parts: [Part] = []
        var literal = ""
        var rest = text[...]
        while let first = rest.unicodeScalars.first {
            let next = rest.unicodeScalars.dropFirst().first
            if first == "%", next == "%" {
                literal += "%"
                rest = rest.dropFirstScalars(2)
            } else if first == "%", let (part, length) = try Self.command(rest) {
                if !literal.isEmpty { parts.append(.text(literal)) }
                literal = ""
                parts.append(part)
                rest = rest.dropFirstScalars(length)
            } else if first == "\\", let next {
                switch next {
                case "n": literal += "\n"
                case "r": literal += "\r"
                case "t": literal += "\t"
                default: literal += "\\\(next)"
                }
                rest = rest.dropFirstScalars(2)
            } else {
                literal.unicodeScalars.append(first)
                rest = rest.dropFirstScalars()
            }
        }
        if !literal.isEmpty { parts.append(.text(literal)) }
        self.parts = parts
    }

    private static let commands: [String: Part] = ["stdout": .standardOutput, "stderr": .standardError, "onerror": .onError]

    /// Reads `%{name}`, `%header{name}` or `%output{file}`, with its length in scalars; `nil` for any other text.
    private static func command(_ text: Substring) throws(UsageError) -> (Part, Int)? {
        for (prefix, kind) in [("%{", 0), ("%header{", 1), ("%output{", 2)] where text.hasBytePrefix(prefix) {
            let rest = text.dropFirstScalars(prefix.unicodeScalars.count)
            let name = String(rest.prefixScalars { $0 != "}" })
            guard rest.unicodeScalars.count > name.unicodeScalars.count else { return nil }
            let length = prefix.unicodeScalars.count + name.unicodeScalars.count + 1
            switch kind {
            case 1: return (.field(name), length)
            case 2:
                let appends = name.hasBytePrefix(">>")
                return (.file(path: String(appends ? name.dropFirstScalars(2) : name[...]), appends: appends), length)
            default:
                if let command = commands[name] { return (command, length) }
                if let reason = CurlValues.refused[name] { throw UsageError("curl's option --write-out has no %{\(name)} here: \(reason)") }
                // curl writes a message in place of what it does not know.
                guard CurlValues.names.contains(name) else {
                    throw UsageError("curl's option --write-out knows no variable \(name.quoted)")
                }
                return (.variable(name), length)
            }
        }
        return nil
    }

    /// Writes the text.
    func write(_ report: CurlReport) throws {
        var output = Output.standard
        var file: Int32?
        defer { if let file { close(file) } }
        let values = CurlValues(report)
        for part in parts {
            switch part {
            case .text(let text): try output.write(Data(text.utf8))
            case .variable(let name): try output.write(Data(values.text(name).utf8))
            case .field(let name): try output.write(Data((report.heads.last?.value(for: name) ?? "").utf8))
            case .standardOutput: output = .standard
            case .standardError: output = .error
            case .onError: if !report.isFailure { return }
            case .file(let path, let appends):
                let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (appends ? O_APPEND : O_TRUNC), 0o644)
                guard descriptor >= 0 else { throw FileFailure(path: path, code: errno) }
                if let file { close(file) }
                file = descriptor
                output = Output(descriptor: descriptor)
            }
        }
    }
}

/// The variables of ``CurlWriteOut``.
struct CurlValues {
    static let refused = [
        "certs": "the server's certificates are not kept", "num_certs": "the server's certificates are not kept",
        "proxy_used": "it is not known which requests a proxy was used for",
    ]

    static let names: [String] =
        [
            "conn_id", "content_type", "errormsg", "exitcode", "filename_effective", "ftp_entry_path", "header_json", "http_code",
            "http_connect", "http_version", "json", "local_ip", "local_port", "method", "num_connects", "num_headers", "num_redirects",
            "num_retries", "proxy_ssl_verify_result", "redirect_url", "referer", "remote_ip", "remote_port", "response_code",
            "scheme", "size_delivered", "size_download", "size_header", "size_request", "size_upload", "speed_download", "speed_upload",
            "ssl_verify_result", "time_appconnect", "time_connect", "time_namelookup", "time_posttransfer", "time_pretransfer",
            "time_queue",
            "time_redirect", "time_starttransfer", "time_total", "tls_earlydata", "url", "url_effective", "urlnum", "xfer_id",
        ] + parts.map { "url.\($0)" } + parts.map { "urle.\($0)" }

    private static let parts = ["scheme", "user", "password", "options", "host", "port", "path", "query", "fragment", "zoneid"]

    private let report: CurlReport

    init(_ report: CurlReport) { self.report = report }

    /// The value as text; empty for one that there is none of.
    func text(_ name: String) -> String {
        switch value(name) {
        case .text(let text): text ?? ""
        case .number(let number): "\(number)"
        case .seconds(let seconds): Self.text(seconds)
        case .json(let text): text
        }
    }

    private enum Value {
        case text(String?)
        case number(Int64)
        case seconds(Double)
        case json(String)
    }

    private func value(_ name: String) -> Value {
        if name.hasBytePrefix("time_") { return .seconds(seconds(name)) }
        if name.hasBytePrefix("size_") || name.hasBytePrefix("speed_") { return .number(bytes(name)) }
        if name.hasBytePrefix("num_") || name.hasByteSuffix("_id") || name.hasByteSuffix("_port") { return .number(count(name)) }
        if name.hasBytePrefix("url.") { return .text(part(String(name.dropFirst(4)), of: report.url)) }
        if name.hasBytePrefix("urle.") { return .text(part(String(name.dropFirst(5)), of: report.effectiveURL)) }
        switch name {
        case "content_type": return .text(report.heads.last?.value(for: "Content-Type"))
        case "errormsg": return .text(report.outcome.status == .success ? nil : report.outcome.message)
        case "exitcode": return .number(Int64(report.outcome.status.rawValue))
        case "filename_effective": return .text(report.fileName)
        case "header_json": return .json(headers)
        case "http_code", "response_code": return .text(Self.digits(report.heads.last?.statusCode ?? 0))
        case "http_connect": return .text("000")
        case "http_version": return .text(version)
        case "json": return .json(json)
        case "local_ip": return .text(report.last?.localAddress)
        case "remote_ip": return .text(report.last?.remoteAddress)
        case "method": return .text(report.method)
        case "redirect_url": return .text(report.redirectURL)
        case "referer": return .text(report.referer)
        case "scheme": return .text(report.effectiveURL.prefixScalars { $0 != ":" }.lowercased())
        case "url": return .text(report.url)
        case "url_effective": return .text(report.effectiveURL)
        case "urlnum": return .number(Int64(report.number))
        case "ssl_verify_result" where report.outcome.status == .security: return .number(1)
        case "ssl_verify_result", "proxy_ssl_verify_result", "tls_earlydata": return .number(0)
        default: return .text(nil)
        }
    }

    private static func digits(_ status: Int) -> String { status == 0 ? "000" : "\(status)" }

    private var version: String {
        let version = report.heads.last?.httpVersion.dropFirstScalars(5) ?? "0"
        return version.hasByteSuffix(".0") ? String(version.dropLastScalars(2)) : String(version)
    }

    private func count(_ name: String) -> Int64 {
        switch name {
        case "num_connects": Int64(report.metrics.count { !$0.reusedConnection && $0.connectEnd != nil })
        case "num_headers": Int64(report.heads.last?.headers.count ?? 0)
        case "num_redirects": Int64(report.redirects)
        case "num_retries": Int64(report.retries)
        case "local_port": Int64(report.last?.localPort ?? 0)
        case "remote_port": Int64(report.last?.remotePort ?? 0)
        default: Int64(report.number)
        }
    }

    private func bytes(_ name: String) -> Int64 {
        let total = max(time(\.total), 1e-6)
        return switch name {
        case "size_delivered": report.delivered
        case "size_download": report.last?.responseBodyBytes ?? 0
        case "size_upload": report.last?.requestBodyBytes ?? 0
        case "size_header": report.metrics.reduce(0) { $0 + $1.responseHeaderBytes }
        case "size_request": report.metrics.reduce(0) { $0 + $1.requestHeaderBytes }
        case "speed_download": Int64(Double(report.last?.responseBodyBytes ?? 0) / total)
        default: Int64(Double(report.last?.requestBodyBytes ?? 0) / total)
        }
    }

    private func time(_ path: KeyPath<TransferMetrics, Duration>) -> Double {
        report.metrics.reduce(0) { $0 + $1[keyPath: path] / .seconds(1) }
    }

    private func time(_ path: KeyPath<TransferMetrics, Duration?>) -> Double {
        report.metrics.reduce(0) { $0 + ($1[keyPath: path].map { $0 / .seconds(1) } ?? 0) }
    }

    /// As in curl, the times of redirects are part of each.
    private func seconds(_ name: String) -> Double {
        switch name {
        case "time_queue": time(\.queueDuration)
        case "time_namelookup": time(\.nameLookupEnd)
        case "time_connect": time(\.connectEnd)
        case "time_appconnect": time(\.secureConnectionEnd)
        case "time_pretransfer": time(\.requestStart)
        case "time_posttransfer": time(\.requestStart)
        case "time_starttransfer": time(\.responseStart)
        case "time_redirect": report.metrics.dropLast().reduce(0) { $0 + $1.total / .seconds(1) }
        default: time(\.total)
        }
    }

    private static func text(_ seconds: Double) -> String {
        let micros = Int64((max(seconds, 0) * 1e6).rounded())
        let rest = "\(micros % 1_000_000)"
        return "\(micros / 1_000_000).\(String(repeating: "0", count: 6 - rest.count))\(rest)"
    }

    private func part(_ name: String, of url: String) -> String? {
        guard let parsed = URLComponents(string: url) else { return nil }
        switch name {
        case "scheme": return parsed.scheme
        case "user": return parsed.user
        case "password": return parsed.password
        case "host": return parsed.host
        case "port": return "\(parsed.port ?? (parsed.scheme == "https" ? 443 : 80))"
        case "path": return parsed.path.isEmpty ? "/" : parsed.percentEncodedPath
        case "query": return parsed.percentEncodedQuery
        case "fragment": return parsed.percentEncodedFragment
        default: return nil
        }
    }

    /// The fields of the last response: names in lower case, in the order received, each with its values.
    private var headers: String {
        var fields: [(name: String, values: [String])] = []
        for field in report.heads.last?.headers ?? [:] {
            let name = field.name.lowercased()
            if let index = fields.firstIndex(where: { $0.name == name }) {
                fields[index].values.append(field.value)
            } else {
                fields.append((name, [field.value]))
            }
        }
        let lines = fields.map { "\(NestedJSON.quoted($0.name)):[\($0.values.map(NestedJSON.quoted).joined(separator: ","))]" }
        return "{" + lines.joined(separator: ",\n") + "\n}"
    }

    private var json: String {
        let members = Self.names.sorted().filter {
            $0 != "json" && $0 != "header_json" && !$0.hasBytePrefix("url.") && !$0.hasBytePrefix("urle.")
        }
        .map { name in
            let shown =
                switch value(name) {
                case .text(let text) where ["http_code", "response_code", "http_connect"].contains(name): "\(Int(text ?? "0") ?? 0)"
                case .text(let text): text.map(NestedJSON.quoted) ?? "null"
                case .number(let number): "\(number)"
                case .seconds(let seconds): Self.text(seconds)
                case .json(let text): text
                }
            return "\"\(name)\":\(shown)"
        }
        return "{\(members.joined(separator: ","))}"
    }
}
