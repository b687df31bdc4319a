// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A request as a command of curl, to be pasted into a POSIX shell. With its secrets.
enum CurlText {
    static func command(_ plan: RequestPlan, headers: HTTPHeaders, _ arguments: Arguments) -> String {
        var words = ["curl"] + method(plan)
        words += ["-L", "--max-redirs", "\(arguments.maxRedirects ?? 20)"]
        // With this curl decodes the response; the field that names codings is ours.
        if arguments.decodes, headers["Accept-Encoding"] != nil { words.append("--compressed") }
        for header in headers {
            // Without a value, or with spaces only, curl would remove a field in the other form.
            let isBlank = header.value.utf8.allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            words += ["-H", isBlank ? "\(header.name);" : "\(header.name): \(header.value)"]
        }
        var removed = ["User-Agent", "Accept"].filter { headers[$0] == nil }
        // curl types a body as a form, unless it makes a multipart form itself.
        if plan.sendsLength, !plan.isMultipart, headers["Content-Type"] == nil { removed.append("Content-Type") }
        for name in removed { words += ["-H", "\(name):"] }
        words += body(plan)
        words += connection(arguments, plan)
        if plan.url.containsScalars(of: "/."), RequestURL.withoutDotSegments(plan.url) != plan.url { words.append("--path-as-is") }
        words.append(plan.url)
        return words.map(quoted).joined(separator: " ")
    }

    private static func method(_ plan: RequestPlan) -> [String] {
        if plan.method == .head { return ["-I"] }
        return plan.method == (plan.body != .none || plan.sendsLength ? .post : .get) ? [] : ["-X", plan.method.rawValue]
    }

    private static func body(_ plan: RequestPlan) -> [String] {
        switch plan.body {
        case .none: plan.sendsLength ? ["--data-binary", ""] : []
        case .standardInput: ["--data-binary", "@-"]
        case .file(let path), .stream(let path): ["--data-binary", "@\(path)"]
        case .bytes(let data):
            // Only this one takes an @ at the beginning as it is.
            [data.first == UInt8(ascii: "@") ? "--data-raw" : "--data-binary", String(decoding: data, as: UTF8.self)]
        case .parts(let fields): fields.flatMap(CurlForm.words)
        }
    }

    private static func connection(_ arguments: Arguments, _ plan: RequestPlan) -> [String] {
        var words: [String] = []
        if let user = arguments.user, arguments.authType == .challenge { words += ["--anyauth", "-u", user] }
        if arguments.insecure { words.append("-k") }
        if let tls = arguments.tls { words.append("--tlsv\(tls.rawValue)") }
        func seconds(_ value: Seconds?) -> String? { value.map { Stopper.number($0.duration / .seconds(1)) } }
        for (option, value) in [
            ("--cacert", arguments.cacert), ("--cert", arguments.cert), ("--key", arguments.key), ("--interface", arguments.interface),
            ("--unix-socket", arguments.unixSocket), ("--connect-timeout", seconds(arguments.connectTimeout)),
            ("--max-time", seconds(arguments.timeout)), ("--retry", arguments.retry.map { "\($0)" }),
            // Whole seconds only.
            ("--retry-max-time", arguments.deadline.map { Stopper.number(($0.duration / .seconds(1)).rounded(.up)) }),
            ("-o", arguments.download),
        ] {
            if let value { words += [option, value] }
        }
        if let file = arguments.cert, ClientIdentity.isArchive(file) { words += ["--cert-type", "P12"] }
        for entry in arguments.resolve { words += ["--resolve", entry] }
        if arguments.ipv4 { words.append("-4") }
        if arguments.ipv6 { words.append("-6") }
        if let proxy = arguments.proxy { words += proxy == "none" ? ["--noproxy", "*"] : ["--proxy", proxy] }
        if !arguments.pin.isEmpty { words += ["--pinnedpubkey", arguments.pin.joined(separator: ";")] }
        switch arguments.http {
        case .http1: words.append("--http1.1")
        case .http3: words.append("--http3")
        case .http2: words.append(plan.url.lowercased().hasBytePrefix("https") ? "--http2" : "--http2-prior-knowledge")
        case nil: break
        }
        return words
    }

    /// A word of a shell.
    static func quoted(_ word: String) -> String {
        let isPlain =
            // zsh replaces a word after an equals sign by the path of a program.
            !word.isEmpty && !word.hasBytePrefix("=")
            && word.unicodeScalars.allSatisfy {
                $0.isASCII && ($0.properties.isAlphabetic || "0123456789-_./:=,@%+".unicodeScalars.contains($0))
            }
        return isPlain ? word : word.quotedForShell(singly: true)
    }
}
