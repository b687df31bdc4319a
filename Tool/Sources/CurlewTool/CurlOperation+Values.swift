// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSigning

// What flags and values mean, once all of an operation are known.

extension CurlOperation {
    /// Returns the extras of all transfers, and words for options of ours.
    func checked() throws(UsageError) -> (CurlExtras, [String]) {
        var extras = extras
        var words: [String] = []
        extras.hidesErrors = flags.contains("--fail")
        extras.failsOnErrors = extras.hidesErrors || flags.contains("--fail-with-body")
        extras.writesHeads = !flags.isDisjoint(with: ["--show-headers", "--include", "--head"])
        extras.headFile = values["--dump-header"]
        extras.trustsLocations = flags.contains("--location-trusted")
        extras.dropsSessionCookies = flags.contains("--junk-session-cookies")
        extras.cookieJar = values["--cookie-jar"]
        if extras.cookieJar != nil { extras.keepsCookies = true }
        extras.etagFile = values["--etag-save"]
        if flags.contains("--netrc-optional") || values["--netrc-file"] != nil { words.append("--netrc") }
        extras.netrcIsOptional = flags.contains("--netrc-optional")
        extras.netrcFile = values["--netrc-file"]
        let schemes = [
            "--basic": NSURLAuthenticationMethodHTTPBasic, "--digest": NSURLAuthenticationMethodHTTPDigest,
            "--ntlm": NSURLAuthenticationMethodNTLM, "--negotiate": NSURLAuthenticationMethodNegotiate,
        ].filter { flags.contains($0.key) }
        // Basic by itself is not asked for.
        if flags.contains("--anyauth") || schemes.contains(where: { $0.key != "--basic" }) {
            words.append("--auth-type=challenge")
            if !flags.contains("--anyauth") { extras.challenges = Set(schemes.values) }
        }
        try readOutput(&extras.output)
        try readLimits(&extras)
        try readTLS(&extras, &words)
        try readPlaces(&extras)
        try readConnection(&extras)
        try readSignature(&extras)
        return (extras, words)
    }

    private func readOutput(_ output: inout CurlExtras.Output) throws(UsageError) {
        output.createsFolders = flags.contains("--create-dirs")
        output.replacesFile = !flags.contains("--no-clobber")
        output.skipsExisting = flags.contains("--skip-existing")
        output.removesOnError = flags.contains("--remove-on-error")
        output.keepsTime = flags.contains("--remote-time")
        if let text = values["--create-file-mode"] {
            guard let mode = UInt32(text, radix: 8), mode <= 0o777 else { throw Self.invalid("--create-file-mode", text) }
            output.mode = mode_t(mode)
        }
        if let text = values["--continue-at"] {
            guard text == "-" || text.isAllDigits, let offset = text == "-" ? -1 : Int64(text) else {
                throw Self.invalid("--continue-at", text)
            }
            output.offset = offset
            if output.removesOnError { throw UsageError("curl's options --continue-at and --remove-on-error can't be combined") }
            if !output.replacesFile { throw UsageError("curl's options --continue-at and --no-clobber can't be combined") }
        }
    }

    private func readLimits(_ extras: inout CurlExtras) throws(UsageError) {
        if let count = try number("--retry", 0...1_000_000) { extras.retries.limit = UInt(count) }
        extras.retries.delay = try seconds("--retry-delay").flatMap { $0 == .zero ? nil : $0 }
        extras.retries.window = try seconds("--retry-max-time").flatMap { $0 == .zero ? nil : $0 }
        extras.retries.repeatsRefused = flags.contains("--retry-connrefused")
        extras.retries.repeatsAllErrors = flags.contains("--retry-all-errors")
        extras.rate = try size("--limit-rate")
        extras.maximumSize = try size("--max-filesize")
        if let limit = try number("--speed-limit", 0...Int.max) { extras.slowLimit.bytesPerSecond = Int64(limit) }
        if let time = try seconds("--speed-time"), time > .zero {
            extras.slowLimit.duration = time
            // One without the other has its default.
            if values["--speed-limit"] == nil { extras.slowLimit.bytesPerSecond = 1 }
        }
    }

    private func readTLS(_ extras: inout CurlExtras, _ words: inout [String]) throws(UsageError) {
        if var certificate = values["--cert"] {
            var password = values["--pass"]
            if let (path, secret) = Self.split(certificate: certificate) {
                certificate = path
                password = password ?? secret
            }
            let type = values["--cert-type"]?.uppercased()
            guard let form = ClientIdentity.Form(curl: type) else {
                throw UsageError("curl's option --cert-type is supported with PEM, DER and P12 only")
            }
            extras.files += [certificate] + (values["--key"].map { [$0] } ?? [])
            let identity = ClientIdentity(file: certificate, keyFile: values["--key"], password: password, form: form)
            extras.identity = identity
        } else if values["--key"] != nil {
            throw UsageError("curl's option --key needs --cert")
        }
        if let path = values["--crlfile"] {
            extras.files.append(path)
            extras.settings.append { $0.tls.revocationListFile = path }
        }
        if flags.contains("--cert-status") { extras.settings.append { $0.tls.requiresStapledResponse = true } }
        let versions: [(String, TLSOptions.Version)] = [("1.0", .v1_0), ("1.1", .v1_1), ("1.2", .v1_2), ("1.3", .v1_3)]
        if flags.contains("--tlsv1") { extras.settings.append { $0.tls.minimumVersion = .v1_0 } }
        for (name, version) in versions where flags.contains("--tlsv\(name)") { extras.settings.append { $0.tls.minimumVersion = version } }
        if let text = values["--tls-max"], text != "default" {
            guard let version = versions.first(where: { $0.0 == text })?.1 else { throw Self.invalid("--tls-max", text) }
            if versions.contains(where: { flags.contains("--tlsv\($0.0)") && $0.1 > version }) {
                throw UsageError("curl's option --tls-max has a version below the least that is allowed")
            }
            extras.settings.append { settings in
                settings.tls.maximumVersion = version
                settings.tls.minimumVersion = min(settings.tls.minimumVersion, version)
            }
        }
        if let path = values["--hsts"] {
            let store: HSTSStore = path.isEmpty ? .memory : .file(URL(fileURLWithPath: path))
            extras.settings.append { $0.hsts = store }
        }
    }

    /// Splits `file:password`; a colon of the file's name is written `\:`, and a backslash `\\`.
    static func split(certificate text: String) -> (path: String, password: String)? {
        guard !text.hasBytePrefix("pkcs11:"), text.unicodeScalars.contains(where: { $0 == ":" || $0 == "\\" }) else { return nil }
        var path = String.UnicodeScalarView()
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            if scalar == ":" { return (String(path), String(rest)) }
            if scalar == "\\", let next = rest.first, next == "\\" || next == ":" {
                path.append(next)
                rest = rest.dropFirst()
            } else {
                path.append(scalar)
            }
        }
        return nil
    }

    /// `HOST1:PORT1:HOST2:PORT2`, where each part may be empty.
    private func readPlaces(_ extras: inout CurlExtras) throws(UsageError) {
        var found: [String: String] = [:]
        for place in places {
            var parts: [String] = []
            var rest = place[...]
            while parts.count < 4 {
                let isBracketed = rest.hasBytePrefix("[")
                let end =
                    isBracketed
                    ? rest.unicodeScalars.firstIndex(of: "]").map { rest.unicodeScalars.index(after: $0) }
                    : rest.unicodeScalars.firstIndex(of: ":")
                let part = rest[..<(end ?? rest.endIndex)]
                parts.append(String(part))
                rest = rest[part.endIndex...]
                guard rest.unicodeScalars.first == ":" else { break }
                rest = rest.dropFirstScalars()
            }
            guard parts.count == 4, rest.isEmpty, [parts[1], parts[3]].allSatisfy({ $0.isEmpty || UInt16($0) ?? 0 > 0 }) else {
                throw Self.invalid("--connect-to", place)
            }
            let key = (parts[0].isEmpty ? "*" : parts[0]) + (parts[1].isEmpty ? "" : ":\(parts[1])")
            let target = parts[2] + (parts[3].isEmpty ? "" : ":\(parts[3])")
            // The first that matches counts, and one without a target changes nothing.
            if !target.isEmpty, found[key] == nil { found[key] = target }
        }
        guard !found.isEmpty else { return }
        extras.settings.append { [found] in $0.connectTo.merge(found) { $1 } }
    }

    private func readConnection(_ extras: inout CurlExtras) throws(UsageError) {
        try readProxy(&extras)
        if let path = values["--abstract-unix-socket"] { extras.settings.append { $0.abstractUnixSocket = path } }
        if let url = values["--doh-url"], !url.isEmpty { extras.settings.append { $0.dohURL = url } }
        if flags.contains("--doh-insecure") { extras.settings.append { $0.dohVerifiesServer = false } }
        if let delay = try number("--happy-eyeballs-timeout-ms", 1...3_600_000) {
            extras.settings.append { $0.connectionAttemptDelay = .milliseconds(delay) }
        }
        if !flags.contains("--no-keepalive") {
            let idle = try number("--keepalive-time", 1...100_000).map { Duration.seconds($0) } ?? .seconds(60)
            let count = try number("--keepalive-cnt", 1...1000)
            if values["--keepalive-time"] != nil || count != nil {
                extras.settings.append { $0.socket.keepAlive = .init(idle: idle, interval: idle, count: count) }
            }
        }
        if flags.contains("--tcp-fastopen") { extras.settings.append { $0.socket.usesFastOpen = true } }
        if flags.contains("--http3-only") {
            guard CurlInfo.current.supportsHTTP3 else {
                throw UsageError("--http3-only: libcurl \(CurlInfo.current.version) is built without HTTP/3")
            }
            extras.settings.append { $0.httpVersion = .http3Only }
        }
        if let text = values["--local-port"] {
            let bounds = text.splitScalars(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map { Int($0) ?? 0 }
            guard let first = bounds.first, let last = bounds.last, 1...65_535 ~= first, first...65_535 ~= last else {
                throw Self.invalid("--local-port", text)
            }
            extras.settings.append { $0.localPorts = first...last }
        }
    }

    /// Which hosts have no proxy, and the proxies of the environment with the user that the options give.
    private func readProxy(_ extras: inout CurlExtras) throws(UsageError) {
        let (list, user) = (values["--noproxy"], values["--proxy-user"])
        func variable(_ names: String...) -> String? {
            names.lazy.compactMap { getenv($0).map { String(cString: $0) } }.first { !$0.isEmpty }
        }
        if proxy == nil, list != nil || user != nil {
            let all = variable("all_proxy", "ALL_PROXY")
            // As for curl, HTTP_PROXY does not count: a CGI program has it from its client.
            let found = [variable("http_proxy") ?? all, variable("https_proxy", "HTTPS_PROXY") ?? all]
            var proxies: [String?] = []
            for url in found { proxies.append(try url.map { url throws(UsageError) in try Self.proxy(url, user: user) }) }
            let hosts = list ?? variable("no_proxy", "NO_PROXY")
            extras.settings.append { [proxies] in
                $0.proxy = .schemes(http: proxies[0], https: proxies[1], except: hosts.map { [$0] } ?? [])
            }
        } else if let list {
            extras.settings.append { settings in
                if case .url(let url, _) = settings.proxy { settings.proxy = .url(url, except: [list]) }
            }
        }
    }

    /// `aws:amz[:region[:service]]`
    private func readSignature(_ extras: inout CurlExtras) throws(UsageError) {
        guard let text = values["--aws-sigv4"] else { return }
        let parts = text.splitScalars(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard (2...4).contains(parts.count), parts[0].lowercased() == "aws", parts[1].lowercased() == "amz" else {
            throw UsageError("curl's option --aws-sigv4 is supported with aws:amz[:REGION[:SERVICE]] only")
        }
        extras.signature = CurlExtras.Signature(
            region: parts.count > 2 && !parts[2].isEmpty ? parts[2] : nil, service: parts.count > 3 && !parts[3].isEmpty ? parts[3] : nil)
    }

    // MARK: Values

    private func number(_ name: String, _ range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = values[name] else { return nil }
        guard text.isAllDigits, let number = Int(text), range.contains(number) else { throw Self.invalid(name, text) }
        return number
    }

    private func seconds(_ name: String) throws(UsageError) -> Duration? {
        guard let text = values[name] else { return nil }
        if text == "0" { return .zero }
        guard let seconds = Seconds(argument: text) else { throw Self.invalid(name, text) }
        return seconds.duration
    }

    private func size(_ name: String) throws(UsageError) -> Int64? {
        guard let text = values[name] else { return nil }
        if text == "0" { return nil }
        guard let size = ByteRate(argument: text) else { throw Self.invalid(name, text) }
        return size.bytesPerSecond
    }
}
