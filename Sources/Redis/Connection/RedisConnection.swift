// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// What a connection is for: the commands, or the messages of channels.
protocol ConnectionUser: AnyObject {
    /// The first commands, after which the connection is ready.
    var greeting: [[RedisArgument]] { get }
    /// Accepts a response to one of them; what is wrong with it, or `nil`.
    func receiveGreeting(_ value: RedisValue, at index: Int) -> RedisError.Reason?
    /// The greeting is complete.
    func didBecomeReady()
    /// Receives what follows; returns what is wrong with it.
    func receive(_ value: RedisValue) -> RedisError.Reason?
    /// The connection ended, or could not be established.
    func didFail(_ reason: RedisError.Reason)
}

/// A connection to the server, which establishes itself again whenever it ends. Confined to the client's thread.
final class RedisConnection {
    private enum Phase {
        case idle
        case waiting(until: Nanoseconds)
        case resolving(deadline: Nanoseconds)
        case connecting(RedisLink, deadline: Nanoseconds)
        case greeting(RedisLink, received: Int, deadline: Nanoseconds)
        case ready(RedisLink)
    }

    let configuration: RedisConfiguration
    private let poller: SystemPoller
    /// Resolves a host elsewhere, and brings the addresses back with the number of the attempt.
    private let resolve: (Int) -> Void
    /// Makes TLS connections; `nil` if the address is none of TLS.
    private let secureStreams: SecureStreams?
    /// Who has the connection, and owns it.
    weak var user: (any ConnectionUser)?
    private var phase = Phase.idle
    private var attempt = 0
    private var failures = 0
    private var addresses: [SocketAddress] = []
    private var parser: ResponseParser?
    private var output: [UInt8] = []
    private var sent = 0
    private var watched: SocketEvents = []

    init(
        _ configuration: RedisConfiguration, poller: SystemPoller, secureStreams: SecureStreams?, resolve: @escaping (Int) -> Void
    ) {
        self.configuration = configuration
        self.poller = poller
        self.secureStreams = secureStreams
        self.resolve = resolve
    }

    var isReady: Bool { if case .ready = phase { true } else { false } }
    /// Whether the attempt in progress is the first since the last success, so that commands wait for it.
    var isFirstAttempt: Bool { failures == 0 }

    private var link: RedisLink? {
        switch phase {
        case .connecting(let link, _), .greeting(let link, _, _), .ready(let link): link
        default: nil
        }
    }

    /// What the thread polls; `nil` for none.
    var descriptor: Int32? { link?.descriptor }

    /// The time at which ``advance(_:)`` has something to do.
    var nextTime: Nanoseconds? {
        switch phase {
        case .waiting(let time), .resolving(let time), .connecting(_, let time), .greeting(_, _, let time): time
        case .idle, .ready: nil
        }
    }

    // MARK: Establishing

    /// Connects, unless that has begun.
    func start(_ now: Nanoseconds) {
        if case .idle = phase { connect(now) }
    }

    /// Does what is due.
    func advance(_ now: Nanoseconds) {
        switch phase {
        case .waiting(let time) where time <= now: connect(now)
        case .resolving(let time) where time <= now: fail(.unresolvable("no response within \(configuration.connectTimeout)"), now)
        case .connecting(_, let time) where time <= now, .greeting(_, _, let time) where time <= now: fail(.silent, now)
        default: break
        }
    }

    private func connect(_ now: Nanoseconds) {
        let deadline = now + configuration.connectTimeout.nanoseconds
        attempt += 1
        if let secureStreams {
            phase = .connecting(.secure(secureStreams.open()), deadline: deadline)
            return
        }
        switch configuration.address {
        case .unix(let path):
            // Checked when the client was created.
            open(SocketAddress(path: path).map { [$0] } ?? [], deadline, now)
        case .tcp, .tls:
            phase = .resolving(deadline: deadline)
            resolve(attempt)
        }
    }

    /// Continues with the addresses of a host.
    func resolved(_ result: Result<[SocketAddress], SocketAddress.Unresolvable>, attempt: Int, _ now: Nanoseconds) {
        guard case .resolving(let deadline) = phase, attempt == self.attempt else { return }
        switch result {
        case .success(let addresses): open(addresses, deadline, now)
        case .failure(let error): fail(.unresolvable(error.message), now)
        }
    }

    /// Connects to the first of the addresses; the others follow if that fails.
    private func open(_ addresses: [SocketAddress], _ deadline: Nanoseconds, _ now: Nanoseconds) {
        guard let first = addresses.first else { return fail(.unresolvable("no address"), now) }
        self.addresses = Array(addresses.dropFirst())
        do {
            let socket = try RedisSocket(connectingTo: first)
            phase = .connecting(.socket(socket), deadline: deadline)
            watch([.writable])
        } catch {
            connectionFailed(error.number, deadline, now)
        }
    }

    private func connectionFailed(_ number: Int32, _ deadline: Nanoseconds, _ now: Nanoseconds) {
        guard !addresses.isEmpty else { return fail(.system(number), now) }
        closeLink()
        open(addresses, deadline, now)
    }

    private func greet(_ link: RedisLink, _ deadline: Nanoseconds, _ now: Nanoseconds) {
        guard let parser = ResponseParser(largest: configuration.largestResponse), let user else { return fail(.system(ENOMEM), now) }
        self.parser = parser
        phase = .greeting(link, received: 0, deadline: deadline)
        for command in user.greeting { output.appendCommand(command) }
        flush(now)
        becomeReadyIfGreeted()
    }

    private func becomeReadyIfGreeted() {
        guard case .greeting(let link, let received, _) = phase, let user, received == user.greeting.count else { return }
        phase = .ready(link)
        failures = 0
        user.didBecomeReady()
    }

    // MARK: Ending

    /// Ends the connection, and tries again after the backoff.
    func fail(_ reason: RedisError.Reason, _ now: Nanoseconds) {
        closeLink()
        let longest = configuration.longestBackoff.seconds
        // A server of another kind does not become Redis soon.
        let first = if case .unsupportedVersion = reason { longest } else { 0.01 }
        let delay = Backoff(first: first, limit: longest).delay(after: failures, jitter: .random(in: 0.5...1))
        failures += 1
        phase = .waiting(until: now + Duration.seconds(delay).nanoseconds)
        user?.didFail(reason)
    }

    /// Ends the connection for good.
    func stop() {
        closeLink()
        phase = .idle
        failures = 0
    }

    private func closeLink() {
        watch([])
        link?.end()
        phase = .idle
        parser = nil
        output = []
        sent = 0
    }

    // MARK: Input and output

    /// Appends a command to what is sent; ``flush(_:)`` sends it. The connection has to be ready.
    func append(_ command: [UInt8]) { output += command }

    /// Appends a command to what is sent.
    func append(_ command: [RedisArgument]) { output.appendCommand(command) }

    /// Sends as much as the socket takes.
    func flush(_ now: Nanoseconds) {
        switch phase {
        case .greeting(let link, _, _), .ready(let link): flush(to: link, now)
        default: break
        }
    }

    private func flush(to link: RedisLink, _ now: Nanoseconds) {
        while sent < output.count {
            switch output.withUnsafeBytes({ link.write(UnsafeRawBufferPointer(rebasing: $0[sent...])) }) {
            case .count(let count): sent += count
            case .wouldBlock: return watch([.readable, .writable])
            case .failed(let reason): return fail(reason, now)
            }
        }
        output.removeAll(keepingCapacity: output.count < 1 << 16)
        sent = 0
        watch([.readable])
    }

    private func watch(_ events: SocketEvents) {
        guard let descriptor, events != watched else { return }
        _ = poller.watch(descriptor, from: watched, to: events)
        watched = events
    }

    /// Handles what the poller has reported.
    func handle(_ events: SocketEvents, _ now: Nanoseconds) {
        switch phase {
        case .connecting(.socket(let socket), let deadline):
            let number = socket.error
            if number == 0 { greet(.socket(socket), deadline, now) } else { connectionFailed(number, deadline, now) }
        case .greeting(let link, _, _), .ready(let link):
            if events.contains(.writable) { flush(now) }
            if events != .writable { read(from: link, now) }
        default: break
        }
    }

    /// Handles what has happened on a TLS connection, if anything has.
    func handleSecureStream(_ now: Nanoseconds) {
        if case .connecting(.secure(let stream), let deadline) = phase {
            switch stream.status {
            case (true, _): greet(.secure(stream), deadline, now)
            case (false, let reason?): fail(reason, now)
            case (false, nil): break
            }
        }
        switch phase {
        case .greeting(.secure(let stream), _, _), .ready(.secure(let stream)): read(from: .secure(stream), now)
        default: break
        }
    }

    /// Reads until nothing is left. A socket that has given less than asked for has nothing left.
    private func read(from link: RedisLink, _ now: Nanoseconds) {
        withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { buffer in
            // Without a parser the connection has ended.
            while let parser {
                switch link.read(into: buffer) {
                case .count(let count):
                    let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                    var wrong: RedisError.Reason?
                    let problem = parser.parse(bytes) { value in
                        wrong = accept(value)
                        return wrong == nil
                    }
                    if let problem { return fail(.notRedis(problem), now) }
                    if let wrong { return fail(wrong, now) }
                    if count < buffer.count, link.descriptor != nil { return }
                case .wouldBlock: return
                case .failed(let reason): return fail(reason, now)
                }
            }
        }
    }

    private func accept(_ value: RedisValue) -> RedisError.Reason? {
        guard case .greeting(let link, let received, let deadline) = phase else {
            // The connection may have ended while the responses that it had received are parsed.
            return isReady ? user?.receive(value) : nil
        }
        if let wrong = user?.receiveGreeting(value, at: received) { return wrong }
        phase = .greeting(link, received: received + 1, deadline: deadline)
        becomeReadyIfGreeted()
        return nil
    }
}

extension RedisConfiguration {
    /// The commands that authenticate, and select the database.
    var authentication: [[RedisArgument]] {
        var commands: [[RedisArgument]] = []
        if let password { commands.append(["AUTH"] + (username.map { [.text($0)] } ?? []) + [.text(password)]) }
        if database != 0 { commands.append(["SELECT", .number(database)]) }
        return commands
    }
}
#endif
