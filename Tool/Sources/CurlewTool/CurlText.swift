// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A request as a command of curl, to be pasted into a POSIX shell. With its secrets.
enum CurlText {
    static func command(_ plan: RequestPlan, headers: HTTPHeaders, _ arguments: Arguments) -> String {
        var words = ["curl"]
        let hasData = plan.body != .none
        if plan.method == .head {
            words.append("-I")
        } else if plan.method != (hasData ? .post : .get) {
            words += ["-X", plan.method.rawValue]
        }
        words += ["-L", "--max-redirs", "\(arguments.maxRedirects ?? 20)"]
        for header in headers {
            // curl adds the field itself, and decodes the response, with this.
            if header.name.lowercased() == "accept-encoding", arguments.decodes {
                words.append("--compressed")
            } else {
                words += ["-H", header.value.isEmpty ? "\(header.name);" : "\(header.name): \(header.value)"]
            }
        }
        switch plan.body {
        case .none, .standardInput: break
        case .bytes(let data): words += ["--data-binary", String(decoding: data, as: UTF8.self)]
        case .file(let path): words += ["--data-binary", "@\(path)"]
        case .parts(let fields):
            for field in fields {
                switch field {
                case .field(let name, let value): words += ["--form-string", "\(name)=\(value)"]
                case .file(let name, let path, let type): words += ["-F", "\(name)=@\(path)" + (type.map { ";type=\($0)" } ?? "")]
                default: break
                }
            }
        }
        if let user = arguments.user, arguments.authType == .challenge { words += ["--anyauth", "-u", user] }
        if arguments.insecure { words.append("-k") }
        for (option, value) in [
            ("--cacert", arguments.cacert), ("--cert", arguments.cert), ("--key", arguments.key), ("--interface", arguments.interface),
            ("-o", arguments.download),
        ] {
            if let value { words += [option, value] }
        }
        if let proxy = arguments.proxy { words += proxy == "none" ? ["--noproxy", "*"] : ["--proxy", proxy] }
        if !arguments.pin.isEmpty { words += ["--pinnedpubkey", arguments.pin.joined(separator: ";")] }
        switch arguments.http {
        case .http1: words.append("--http1.1")
        case .http3: words.append("--http3")
        case .http2: words.append(plan.url.lowercased().hasPrefix("https") ? "--http2" : "--http2-prior-knowledge")
        case nil: break
        }
        words.append(plan.url)
        return words.map(quoted).joined(separator: " ")
    }

    /// A word of a shell.
    static func quoted(_ word: String) -> String {
        let isPlain =
            !word.isEmpty
            && word.unicodeScalars.allSatisfy {
                $0.isASCII && ($0.properties.isAlphabetic || "0123456789-_./:=,@%+".unicodeScalars.contains($0))
            }
        return isPlain ? word : "'" + word.replacingOccurrences(of: "'", with: "'\\''") + "'"
    }
}
