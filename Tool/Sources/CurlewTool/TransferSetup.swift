// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewCaching
import CurlewHAR
import CurlewTesting
import CurlewURLLoading
import Dispatch

/// What a transfer needs, made from the options: the session, the printers, and what is written at the end.
final class TransferSetup: @unchecked Sendable {  // used by one task at a time
    let manager: SessionManager
    let style: Style
    /// The header fields of the request, with those of `--session`.
    let headers: HTTPHeaders
    let body: PlannedBody
    /// What answers a challenge.
    let credential: (user: String, password: String)?

    let arguments: Arguments
    let plan: RequestPlan
    private let log = ExchangeLog()
    private var printer: ExchangePrinter
    private let output: Output
    private let archive: HARRecorder?
    private let cassette: Cassette?
    /// The recorded response for `--diff`; `nil` without it.
    private let replay: Replay?
    private var attemptStart = 0
    private var stored: KeptSession?

    init(_ arguments: Arguments, _ plan: RequestPlan, environment: [String: String]) throws {
        self.arguments = arguments
        self.plan = plan
        // With --download, standard output stays empty, and with a command of curl it has the body only.
        output = arguments.download == nil && arguments.curl == nil ? .standard : .error
        style = Style(isOn: Style.isWanted(arguments.pretty, isTerminal: output.isTerminal, environment: environment))
        var configuration = try Self.configuration(arguments)
        if let signature = arguments.curl?.signature {
            configuration.signer = try signature.signer(url: plan.url, user: arguments.user)
        }
        var headers = plan.headers
        if let name = arguments.session {
            let session = try KeptSession(name, for: plan.url, arguments, environment)
            session.apply(to: &configuration)
            session.apply(to: &headers)
            stored = session
        }
        let credential = try Self.credential(arguments, plan, environment, &headers)
        stored?.note(arguments, headers, credential)
        self.credential = credential ?? stored?.login.map { (user: $0.user, password: $0.password) }
        self.headers = headers
        var parts = arguments.parts(isTerminal: output.isTerminal && arguments.download == nil, method: plan.method)
        if arguments.offline, arguments.print == nil { parts = "HB" }
        if let curl = arguments.curl { parts = curl.isVerbose ? "Hh" : "" }
        body = PlannedBody(plan, isShown: parts.unicodeScalars.contains("B"))
        printer = ExchangePrinter(
            parts: parts, style: style,
            output: output, showsSecrets: arguments.showSecrets, formatsBody: arguments.formats(isTerminal: output.isTerminal),
            escapesBody: output.isTerminal && !arguments.rawOutput, body: body)
        configuration.instruments.append(log)
        if let path = arguments.har {
            do {
                archive = try HARRecorder(file: URL(fileURLWithPath: path))
            } catch let error as POSIXError {
                throw FileFailure(path: path, code: error.code.rawValue)
            }
        } else {
            archive = arguments.waterfall == nil ? nil : HARRecorder()
        }
        if let archive { configuration.eventMonitors.append(archive) }
        var replay: Replay?
        if let path = arguments.record {
            let cassette = try Cassette(directory: URL(fileURLWithPath: path, isDirectory: true))
            self.cassette = cassette
            manager = SessionManager(
                configuration: configuration,
                transport: RecordingTransport(cassette, base: CurlTransport(configuration: configuration.connections)))
        } else if let path = arguments.replay {
            let sent = BodyDifference.Body(bytes: try body.bytes(), type: headers["Content-Type"] ?? body.contentType)
            let recorded = try Replay(path, plan, sent, arguments.diff ? Self.configuration(arguments) : configuration)
            cassette = nil
            manager = arguments.diff ? SessionManager(configuration: configuration) : recorded.manager
            if arguments.diff { replay = recorded }
        } else {
            cassette = nil
            manager = SessionManager(configuration: configuration)
        }
        self.replay = replay
    }

    /// The settings of a session that the options of a connection make.
    static func configuration(_ arguments: Arguments) throws -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "curlew.tool")
        if let timeout = arguments.connectTimeout { configuration.connectTimeout = timeout.duration }
        configuration.totalTimeout = arguments.timeout?.duration
        if let limit = arguments.maxRedirects { configuration.redirects.limit = limit }
        if arguments.insecure { configuration.tls.verifiesServer = false }
        if arguments.tls == .tls13 { configuration.tls.minimumVersion = .v1_3 }
        configuration.tls.certificateAuthorityFile = arguments.cacert
        if let identity = arguments.identity { configuration.tls.clientCertificate = try identity.certificate() }
        configuration.tls.publicKeyHashes = Set(arguments.pin.compactMap(Arguments.hash))
        if let proxy = arguments.proxy { configuration.proxy = proxy == "none" ? .none : .url(proxy) }
        configuration.interface = arguments.interface
        if arguments.ipv4 { configuration.ipVersion = .v4 }
        if arguments.ipv6 { configuration.ipVersion = .v6 }
        for (name, addresses) in arguments.resolve.compactMap(Arguments.resolved) { configuration.resolve[name] = addresses }
        configuration.unixSocketPath = arguments.unixSocket
        if arguments.cache { configuration.cache = .disk() }
        switch arguments.http {
        case .http1: configuration.httpVersion = .http1
        case .http2: configuration.httpVersion = .http2PriorKnowledge
        case .http3: configuration.httpVersion = .http3
        case nil: break
        }
        // Without the field, no coding is asked for.
        let isUncoded = arguments.items.contains { item in
            if case .removedHeader(let name) = item { name.lowercased() == "accept-encoding" } else { false }
        }
        configuration.decodesContent = arguments.decodes && !isUncoded
        for change in arguments.curl?.settings ?? [] { change(&configuration) }
        return configuration
    }

    /// Finds the user's name and password: sent at once, or for a challenge.
    private static func credential(
        _ arguments: Arguments, _ plan: RequestPlan, _ environment: [String: String], _ headers: inout HTTPHeaders
    ) throws -> (user: String, password: String)? {
        // It signs, and is not sent.
        guard arguments.curl?.signature == nil else { return nil }
        var found: (user: String, password: String)?
        if arguments.netrc, headers["Authorization"] == nil || arguments.user != nil {
            found = try netrcCredential(arguments, plan, environment)
        }
        if found != nil {
            // That of the user.
        } else if let user = arguments.user {
            if let colon = user.unicodeScalars.firstIndex(of: ":") {
                found = (String(user[..<colon]), String(user.suffix(afterScalarAt: colon)))
            } else if let password = try Credentials.prompt("password of \(user): ") {
                found = (user, password)
            } else {
                throw UsageError("--user needs NAME:PASSWORD where there is no terminal to ask for the password")
            }
        }
        guard let found, arguments.authType == .basic else { return found }
        if headers["Authorization"] == nil || arguments.items.allSatisfy({ $0.name.lowercased() != "authorization" }) {
            headers.update(.authorization(username: found.user, password: found.password))
        }
        return nil
    }

    /// Finds the credential of a request in the netrc file, if the options ask for it.
    static func netrcCredential(
        _ arguments: Arguments, _ plan: RequestPlan, _ environment: [String: String]
    ) throws -> (user: String, password: String)? {
        guard arguments.netrc else { return nil }
        let user = arguments.user ?? RequestURL.user(of: plan.url)
        return try netrcCredential(user, plan, environment, isOptional: arguments.curl?.netrcIsOptional ?? false)
    }

    /// Finds a host's credential in the netrc file.
    ///
    /// - Parameter user: the one to find; `nil` for the first. With a password, nothing is to be found.
    private static func netrcCredential(
        _ user: String?, _ plan: RequestPlan, _ environment: [String: String], isOptional: Bool
    ) throws -> (user: String, password: String)? {
        guard user?.unicodeScalars.contains(":") != true else { return nil }
        let path = environment["NETRC"] ?? (environment["HOME"] ?? "") + "/.netrc"
        guard let data = FileManager.default.contents(atPath: path) else {
            if isOptional { return nil }
            throw UsageError("\(path.quoted) can't be read")
        }
        do {
            let netrc = try Netrc(String(decoding: data, as: UTF8.self))
            return netrc.credential(for: HTTPOrigin(url: plan.url)?.host ?? "", user: user)
        } catch {
            throw UsageError("line \(error.line) of \(path.quoted) has a quote without an end")
        }
    }

    // MARK: Attempts

    /// The exchanges of the present attempt.
    var attempt: ArraySlice<ExchangeLog.Entry> { log.entries.dropFirst(attemptStart) }

    func beginAttempt() { attemptStart = log.entries.count }

    // MARK: Printing

    /// Prints the exchanges that have begun since the last call.
    ///
    /// - Parameter head: the head of the response, which is printed if there was no exchange, because it is from the cache.
    func printExchanges(_ head: ResponseHead? = nil) throws {
        guard printer.parts.unicodeScalars.contains(where: { "HBh".unicodeScalars.contains($0) }) else { return }
        let entries = log.entries
        try printer.print(entries)
        if entries.isEmpty, let head { try printer.printStored(head) }
    }

    func printMeta(_ metrics: TaskMetrics) throws {
        let lines = MetaText(style: style, width: output.width ?? 80).lines(metrics)
        try output.write(Data((lines.joined(separator: "\n") + "\n").utf8))
    }

    /// The header fields with the cookies of `--session`, which the session adds when it sends them.
    private var headersWithCookies: HTTPHeaders {
        guard let cookies = try? stored?.cookies.cookies(for: plan.url), !cookies.isEmpty else { return headers }
        let text = cookies.map { $0.name.isEmpty ? $0.value : "\($0.name)=\($0.value)" }.joined(separator: "; ")
        var headers = headers
        headers.update(name: "Cookie", value: headers["Cookie"].map { "\($0); \(text)" } ?? text)
        return headers
    }

    /// Prints the request without sending it.
    func showOffline() -> Outcome {
        do {
            if arguments.printsCurl {
                try Output.standard.write(Data((CurlText.command(plan, headers: headersWithCookies, arguments) + "\n").utf8))
                return .success
            }
            try body.readCopy()
            var headers = headersWithCookies
            if let type = body.contentType, headers["Content-Type"] == nil { headers.append(.contentType(type)) }
            let parts = arguments.print ?? "HB"
            let printer = ExchangePrinter(
                parts: parts, style: style, output: .standard, showsSecrets: arguments.showSecrets,
                formatsBody: self.printer.formatsBody, escapesBody: self.printer.escapesBody, body: body)
            try printer.printRequest(
                method: plan.method, url: plan.url, headers: headers, bodyLength: body.length,
                version: arguments.http == .http3 ? "HTTP/3" : arguments.http == .http2 ? "HTTP/2" : "HTTP/1.1")
            return .success
        } catch {
            return Outcome(error)
        }
    }

    // MARK: The end

    /// Compares a response with the recorded one.
    ///
    /// - Throws: ``Replay/Difference``.
    func compare(_ response: HTTPURLResponse?, _ body: Data) async throws {
        guard let replay, let response else { return }
        let type = response.value(forHTTPHeaderField: "Content-Type")
        try await replay.compare(
            Replay.Response(status: response.statusCode, body: .init(bytes: body, type: type)), with: request(through: replay.manager))
    }

    /// Writes the files that were asked for. Returns what failed.
    func finish() async -> Outcome? {
        do {
            try stored?.save()
            // Monitors are told later, on a queue of the session, and so does the cache store; a shutdown waits for both.
            if archive != nil || cassette != nil || arguments.cache { await manager.shutdown(gracePeriod: .seconds(1)) }
            try await cassette?.flush()
            if let archive {
                archive.close()
                if let error = archive.error as? POSIXError, let path = arguments.har {
                    throw FileFailure(path: path, code: error.code.rawValue)
                }
                if let error = archive.error { throw error }
                if let path = arguments.waterfall {
                    let data = try archive.data ?? Data(contentsOf: URL(fileURLWithPath: arguments.har ?? ""))
                    try Data(try Waterfall(archive: data).svg.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
                }
            }
            return nil
        } catch {
            let outcome = Outcome(error)
            return outcome.status == .other ? Outcome(status: .file, message: outcome.message) : outcome
        }
    }
}

extension Arguments {
    /// Whether JSON is formatted for a reader.
    func formats(isTerminal: Bool) -> Bool {
        switch options.pretty {
        case .all, .format: true
        case .some(.none): false
        case nil: isTerminal
        }
    }

    /// The letters of the parts to print: on a terminal head and body, else the body. Not a set, for which each start would look up at run
    /// time that characters are hashable.
    func parts(isTerminal: Bool, method: HTTPMethod) -> String {
        var parts: String
        if let print = options.print {
            parts = print
        } else if options.verbose {
            parts = "HBhb"
        } else if options.headers {
            parts = "h"
        } else if options.bodyOnly {
            parts = "b"
        } else if options.filter != nil {
            parts = "b"
        } else if options.diff {
            parts = ""
        } else if method == .head {
            parts = "h"
        } else if options.meta {
            parts = ""
        } else {
            parts = isTerminal ? "hb" : "b"
        }
        if options.meta { parts += "m" }
        return parts
    }
}
