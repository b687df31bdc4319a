// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A request as a `curl` command line for a POSIX shell.
struct CurlCommand {
    /// The largest body in the command, in bytes: Linux limits an argument to 128 KiB.
    private static let longestArgument = 100_000

    private let request: TransferRequest
    /// The credential as `user:password`; `nil` without one.
    private let credential: String?
    /// The secrets to redact; `nil` for a command that runs.
    private let redaction: Redaction?

    init(_ request: TransferRequest, credential: String?, redaction: Redaction?) {
        self.request = request
        self.credential = credential
        self.redaction = redaction
    }

    /// The lines of the command, one option each.
    var lines: [String] {
        let data = dataOption
        var lines = ["curl -v"]
        lines += methodOption(hasData: data != nil)
        // The scheme is taken from the server's challenge, as by the request.
        if let credential, !has("Authorization") { lines += ["-u \(quoted(secret(credential)))", "--anyauth"] }
        lines += cookieOption
        lines += headerOptions(hasData: data != nil)
        if let data { lines.append(data) }
        lines += urlOptions
        switch request.unixSocket {
        case .path(let path)?: lines.append("--unix-socket \(quoted(path))")
        case .abstract(let name)?: lines.append("--abstract-unix-socket \(quoted(name))")
        case nil: break
        }
        return lines + [quoted(redaction?.url(request.url) ?? request.url)]
    }

    private func secret(_ text: String) -> String { redaction == nil ? text : Redaction.placeholder }

    private func has(_ name: String) -> Bool { request.headers.contains { $0.isNamed(name) } }

    /// HEAD is `-I`: after `-X HEAD` curl waits for a body that does not come.
    private func methodOption(hasData: Bool) -> [String] {
        switch request.method {
        case .head: ["-I"]
        case .get where !hasData: []
        default: ["-X \(isPlain(request.method.rawValue) ? request.method.rawValue : quoted(request.method.rawValue))"]
        }
    }

    private func isPlain(_ word: String) -> Bool {
        word.unicodeScalars.allSatisfy { $0.isASCII && ($0.properties.isAlphabetic || $0.properties.numericType != nil || $0 == "-") }
    }

    /// The cookies as `-b`, which combines them with those of a cookie file; in `-H` they would replace them.
    private var cookieOption: [String] {
        let all = request.headers.values(for: "Cookie")
        // curl takes an argument without an equals sign, or with an at sign before it, for the name of a file.
        guard all.contains(where: { $0.utf8.contains(UInt8(ascii: "=")) }), all.first?.hasBytePrefix("@") == false else { return [] }
        return ["-b \(quoted(secret(all.joined(separator: "; "))))"]
    }

    private func headerOptions(hasData: Bool) -> [String] {
        let isCookieElsewhere = !cookieOption.isEmpty
        var options = request.headers.filter { header in
            // curl derives these from the body.
            !header.isNamed("Content-Length") && !header.isNamed("Transfer-Encoding") && !(isCookieElsewhere && header.isNamed("Cookie"))
        }.map { header in
            let isBlank = header.value.utf8.allSatisfy { $0.isBlank }
            // An empty field is "Name;": "Name:" removes a field that curl adds itself.
            let value = redaction?.value(of: header) ?? header.value
            return "-H \(quoted(isBlank ? "\(header.name);" : "\(header.name): \(value)"))"
        }
        // Removes the fields that curl would add.
        if hasData, !has("Content-Type") { options.append("-H \(quoted("Content-Type:"))") }
        if hasData, !has("Expect"), (request.body?.length ?? 0) > 1_000_000 { options.append("-H \(quoted("Expect:"))") }
        return options
    }

    /// The option with the body; `nil` without a body, and for a stream, a binary or a large body.
    private var dataOption: String? {
        switch request.body {
        case nil: return [.post, .put, .patch].contains(request.method) ? "-d \"\"" : nil
        case let body as DataBody:
            guard body.data.count <= Self.longestArgument, !body.data.contains(0), let text = String(validating: body.data, as: UTF8.self)
            else { return nil }
            // `-d` takes an argument with a leading @ for the name of a file.
            return (text.utf8.first == UInt8(ascii: "@") ? "--data-raw " : "-d ") + quoted(redaction?.body(text) ?? text)
        // A slice is as little an argument as a stream.
        case let body as FileBody where body.length == body.fileSize: return "--data-binary \(quoted("@" + body.path))"
        default: return nil
        }
    }

    private var urlOptions: [String] {
        var options: [String] = []
        if request.options.decodesContent, has("Accept-Encoding") { options.append("--compressed") }
        // curl expands brackets and braces to several URLs.
        if request.url.utf8.contains(where: { "[]{}".utf8.contains($0) }) { options.append("-g") }
        if request.url.containsScalars(of: "/.") { options.append("--path-as-is") }
        if request.isServerWide { options.append("--request-target '*'") }
        return options
    }

    private func quoted(_ word: String) -> String { (redaction == nil ? word : Redaction.escaped(word)).quotedForShell() }
}
