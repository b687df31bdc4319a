// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Curlew
import CurlewEvents
import CurlewWebSocket

/// The options of `ws` and `sse`, which are those of a connection.
struct StreamOptions: ParsableArguments {
    @Option(name: .long, help: "send a bearer token") var token: String?
    @Option(name: [.customShort("u", allowingJoined: true), .long, .customShort("a", allowingJoined: true)], help: "NAME:PASSWORD")
    var user: String?
    @Option(name: .long, help: "the limit for connecting, in seconds") var connectTimeout: Seconds?
    @Option(name: .long, help: "trust these certificates (PEM)", completion: .file()) var cacert: String?
    @Flag(name: .long, help: "don't verify the server's certificate") var insecure = false
    @Option(name: .long, help: "the proxy's URL, or none") var proxy: String?
    @Option(name: .long, help: "the limit for everything, in seconds") var deadline: Seconds?
    @Argument(help: "URL [Header:value…]") var words: [String] = []

    /// The words of a request with these options.
    var requestWords: [String] {
        var result = words
        for (name, value) in [("--token", token), ("--user", user), ("--cacert", cacert), ("--proxy", proxy)] {
            if let value { result += ["\(name)=\(value)"] }
        }
        if insecure { result.append("--insecure") }
        return result
    }

    /// The request that the words describe, and the configuration of a session for it.
    func request(_ environment: [String: String]) throws(UsageError) -> (plan: RequestPlan, configuration: SessionConfiguration) {
        guard let url = words.first else { throw UsageError("the URL is missing") }
        var words = requestWords
        // The plan's URLs are those of HTTP; a WebSocket begins as one.
        for (scheme, other) in [("ws://", "http://"), ("wss://", "https://")] where url.lowercased().hasBytePrefix(scheme) {
            words[0] = other + url.dropFirstScalars(scheme.utf8.count)
        }
        let arguments = try Arguments(["GET"] + words)
        if let item = arguments.items.first(where: \.isField) {
            throw UsageError("\(item.name.quoted) is a field of a body, which is not sent here")
        }
        if let user, !user.unicodeScalars.contains(":") { throw UsageError("--user needs NAME:PASSWORD") }
        var configuration: SessionConfiguration
        do { configuration = try TransferSetup.configuration(arguments) } catch { throw UsageError("\(error)") }
        if let connectTimeout { configuration.connectTimeout = connectTimeout.duration }
        return (try RequestPlan(arguments, environment: environment), configuration)
    }
}

/// `curlew sse URL`
struct EventsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sse", abstract: "Prints server-sent events as they come, reconnecting where the server closes.", helpNames: .long)

    @OptionGroup var options: StreamOptions
    @Flag(name: .long, help: "print each event as an object of JSON, one a line") var json = false
    @Flag(name: .long, help: "end when the server closes, in place of connecting again") var once = false
    @Option(name: [.customShort("n", allowingJoined: true), .long], help: "end after this many events") var count: Int?
    @Option(name: .long, help: "the id of the last event that was seen") var lastEventID: String?

    func run(environment: [String: String]) async throws(UsageError) -> Outcome {
        let (plan, sessionConfiguration) = try options.request(environment)
        if let count, count < 1 { throw UsageError("--count needs a number above 0") }
        let command = self
        return await Tool.stoppable(timeout: options.deadline?.duration) {
            let manager = SessionManager(configuration: sessionConfiguration)
            var configuration = EventStreamConfiguration()
            if command.once { configuration.reconnection = .never }
            configuration.lastEventID = command.lastEventID ?? ""
            configuration.onChange = { change in
                guard case .waiting(let delay, let error) = change else { return }
                let reason = error.map { Outcome($0).message ?? "failed" } ?? "the server has closed the stream"
                Output.error.note("curlew: \(reason); connecting again in \(Retry.text(delay))")
            }
            var headers = plan.headers
            headers.remove(name: "Accept")
            let events = manager.eventStream(plan.url, headers: headers, configuration: configuration)
            var left = command.count ?? .max
            do {
                for try await event in events {
                    try Output.standard.write(Data(command.text(event).utf8))
                    left -= 1
                    if left == 0 { break }
                }
                return .success
            } catch {
                return Outcome(error)
            }
        }
    }

    private func text(_ event: ServerSentEvent) -> String {
        if json {
            let members = [("event", event.type), ("id", event.id), ("data", event.data)].map { "\"\($0)\":\(NestedJSON.quoted($1))" }
            return "{\(members.joined(separator: ","))}\n"
        }
        let data =
            Output.standard.isTerminal ? event.data.components(separatedBy: "\n").map(SafeText.escaped).joined(separator: "\n") : event.data
        return event.type == "message" ? data + "\n" : "\(SafeText.escaped(event.type)): \(data)\n"
    }
}

/// `curlew ws URL`
struct WebSocketCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ws", abstract: "Sends the lines of standard input as messages of a WebSocket, and prints those that it receives.",
        helpNames: .long)

    @OptionGroup var options: StreamOptions
    @Option(name: .long, help: "a subprotocol to offer; may be repeated") var subprotocol: [String] = []
    @Option(name: [.customShort("n", allowingJoined: true), .long], help: "end after this many messages") var count: Int?
    @Option(name: .long, help: "how long to wait for messages after the end of a pipe on standard input, in seconds; 1 by default")
    var wait: Seconds?
    @Flag(name: .long, help: "stay connected after the end of a pipe on standard input; so it is with --count") var keepOpen = false

    func run(environment: [String: String]) async throws(UsageError) -> Outcome {
        let (plan, configuration) = try options.request(environment)
        if let count, count < 1 { throw UsageError("--count needs a number above 0") }
        let command = self
        return await Tool.stoppable(timeout: options.deadline?.duration) {
            let manager = SessionManager(configuration: configuration)
            var headers = plan.headers
            headers.remove(name: "Accept")
            headers.remove(name: "Accept-Encoding")
            let socket = manager.webSocket(plan.url, subprotocols: command.subprotocol, headers: headers)
            do {
                let handshake = try await socket.open()
                if Output.error.isTerminal {
                    Output.error.note("connected\(handshake.subprotocol.map { ", \($0)" } ?? ""); Control-D closes")
                }
                let failure = LineFailure()
                command.sendLines(to: socket, failure)
                var left = command.count ?? .max
                for try await message in socket.messages {
                    try Output.standard.write(command.shown(message))
                    left -= 1
                    if left == 0 { break }
                }
                let closure = try await left == 0 ? socket.close() : socket.waitUntilClosed()
                return failure.outcome ?? Self.outcome(closure)
            } catch {
                socket.cancel()
                return Outcome(error)
            }
        }
    }

    /// Reads lines on a thread of its own, as reading blocks. The thread ends with the process.
    ///
    /// - Parameter failure: gets the outcome if a line can't be sent.
    private func sendLines(to socket: WebSocket, _ failure: LineFailure) {
        let (lines, continuation) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .unbounded)
        let isAtTerminal = isatty(0) == 1
        let keepsOpen = (keepOpen || count != nil) && !isAtTerminal
        // What arrives while a WebSocket closes is discarded.
        let wait = isAtTerminal ? Duration.zero : wait?.duration ?? .seconds(1)
        Thread.detachNewThread {
            var input = InputLines(descriptor: 0)
            var number = 0
            while let line = input.next() {
                number += 1
                // A text message has to be UTF-8 (RFC 6455, section 5.6); others would arrive as something else.
                guard let text = String(validating: line, as: UTF8.self) else {
                    failure.outcome = Outcome(status: .file)
                    // At once, as closing takes until the server agrees.
                    Output.error.note("curlew: line \(number) of standard input is not UTF-8, and was not sent")
                    break
                }
                continuation.yield(text)
            }
            continuation.finish()
        }
        Task {
            for await line in lines { try await socket.send(line) }
            guard !keepsOpen || failure.outcome != nil else { return }
            try await Task.sleep(for: wait)
            try await socket.close()
        }
    }

    private func shown(_ message: WebSocketMessage) -> Data {
        switch message {
        case .text(let text):
            let isTerminal = Output.standard.isTerminal
            return Data((isTerminal ? text.components(separatedBy: "\n").map(SafeText.escaped).joined(separator: "\n") : text).utf8)
                + Data("\n".utf8)
        case .binary(let data):
            return Output.standard.isTerminal ? Data("(\(data.count) bytes)\n".utf8) : data
        }
    }

    private static func outcome(_ closure: WebSocketClosure) -> Outcome {
        switch closure.code {
        case .normalClosure, .goingAway, .noStatus: .success
        default: Outcome(status: .transfer, message: "the server closed the WebSocket with \(closure)")
        }
    }
}

/// That a line can't be sent.
private final class LineFailure: @unchecked Sendable {  // the value is guarded by the lock
    private let lock = NSLock()
    private var value: Outcome?

    var outcome: Outcome? {
        get { lock.withLock { value } }
        set { lock.withLock { value = newValue } }
    }
}
