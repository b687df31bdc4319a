// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A request as a command line of the program curl, for a POSIX shell.
struct CurlCommand {
    /// What can't be an argument of a program, for its length: Linux takes 128 KiB.
    private static let longestArgument = 100_000

    private let request: TransferRequest
    /// User and password with a colon between them, where the request has a credential.
    private let credential: String?
    /// What is left out; `nil` for a command that runs.
    private let redaction: Redaction?

    init(_ request: TransferRequest, credential: String?, redaction: Redaction?) {
        self.request = request
        self.credential = credential
        self.redaction = redaction
    }

    /// The command's parts, a line each.
    var lines: [String] {
        let data = dataOption
        var lines = ["curl -v"]
        lines += methodOption(hasData: data != nil)
        // Asked for the scheme first, as the request asks.
        if let credential, !has("Authorization") { lines += ["-u \(quoted(secret(credential)))", "--anyauth"] }
        lines += cookieOption
        lines += headerOptions(hasData: data != nil)
        if let data { lines.append(data) }
        lines += urlOptions
        return lines + [quoted(redaction?.url(request.url) ?? request.url)]
    }

    private func secret(_ text: String) -> String { redaction == nil ? text : Redaction.placeholder }

    private func has(_ name: String) -> Bool { request.headers.contains { $0.isNamed(name) } }

    /// Only a HEAD request without a body is one that curl does not wait for a response's body after.
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

    /// The cookies in an option of their own; in a header they would not join those of a cookie file.
    private var cookieOption: [String] {
        let all = request.headers.values(for: "Cookie")
        // Without the sign of equality curl takes it for the name of a file.
        return all.contains { $0.contains("=") } ? ["-b \(quoted(secret(all.joined(separator: "; "))))"] : []
    }

    private func headerOptions(hasData: Bool) -> [String] {
        let isCookieElsewhere = !cookieOption.isEmpty
        var options = request.headers.filter { header in
            // These follow from the body, as they do here.
            !header.isNamed("Content-Length") && !header.isNamed("Transfer-Encoding") && !(isCookieElsewhere && header.isNamed("Cookie"))
        }.map { header in
            let isBlank = header.value.allSatisfy { $0 == " " || $0 == "\t" }
            // "Name:" leaves a field out that curl sends by itself.
            let value = redaction?.value(of: header) ?? header.value
            return "-H \(quoted(isBlank ? "\(header.name);" : "\(header.name): \(value)"))"
        }
        // What curl would add.
        if hasData, !has("Content-Type") { options.append("-H \(quoted("Content-Type:"))") }
        if hasData, !has("Expect"), (request.body?.length ?? 0) > 1_000_000 { options.append("-H \(quoted("Expect:"))") }
        return options
    }

    /// The body; `nil` where there is none, or none that could stand in a command.
    private var dataOption: String? {
        switch request.body {
        case nil: return [.post, .put, .patch].contains(request.method) ? "-d \"\"" : nil
        case let body as DataBody:
            guard body.data.count <= Self.longestArgument, !body.data.contains(0), let text = String(validating: body.data, as: UTF8.self)
            else { return nil }
            // An @ in front is the name of a file to the short option.
            return (text.hasPrefix("@") ? "--data-raw " : "-d ") + quoted(redaction?.form(text) ?? text)
        case let body as FileBody: return "--data-binary \(quoted("@" + body.path))"
        default: return nil
        }
    }

    private var urlOptions: [String] {
        var options: [String] = []
        if request.options.decodesContent, has("Accept-Encoding") { options.append("--compressed") }
        // curl takes these for patterns of several URLs.
        if request.url.contains(where: { "[]{}".contains($0) }) { options.append("-g") }
        if request.url.contains("/.") { options.append("--path-as-is") }
        return options
    }

    /// The text as one word of a POSIX shell: in double quotes, as one reads it best, or in single ones where an interactive shell
    /// would look into its history.
    private func quoted(_ word: String) -> String {
        let text = redaction == nil ? word : Redaction.escaped(word)
        guard !text.contains("!") else { return "'" + text.replacing("'", with: #"'\''"#) + "'" }
        let escaped = text.unicodeScalars.map { #"\"$`"#.unicodeScalars.contains($0) ? "\\\($0)" : String($0) }
        return "\"" + escaped.joined() + "\""
    }
}
