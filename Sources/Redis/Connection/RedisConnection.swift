// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// What the connections of a client have in common. Confined to the client's thread.
struct ConnectionContext {
    let configuration: RedisConfiguration
    let poller: SystemPoller
    let mailbox: RedisMailbox
    /// Makes TLS connections; `nil` if no address is one of TLS.
    let secureStreams: SecureStreams?
}

/// A connection to a server, which establishes itself again whenever it ends. Confined to the client's thread.
final class RedisConnection {
    private enum Phase {
        case idle
        case waiting(until: Nanoseconds)
        case preparing(deadline: Nanoseconds)
        case connecting(RedisLink, deadline: Nanoseconds)
        case greeting(RedisLink, received: Int, deadline: Nanoseconds)
        case ready(RedisLink)
    }

    /// What an attempt needs that takes longer than the thread may wait.
    enum Preparation: Sendable {
        case password(String)
        case addresses([SocketAddress])
        case failed(RedisError.Reason)
    }

    /// Distinguishes the client's connections.
    let id: Int
    let address: RedisConfiguration.Address
    private let context: ConnectionContext
    private let credentials: RedisCredentials?
    /// Who has the connection, and owns it.
    weak var user: (any ConnectionUser)?
    private var phase = Phase.idle
    private var attempt = 0
    private var failures = 0
    private var password: String?
    /// The task that obtains a password, until it has returned: not all end when they are cancelled.
    private var obtaining: (task: Task<Void, Never>, attempt: Int)?
    private var addresses: [SocketAddress] = []
    private var parser: ResponseParser?
    private var output: [UInt8] = []
    private var sent = 0
    private var watched: SocketEvents = []

    init(_ id: Int, to address: RedisConfiguration.Address, _ credentials: RedisCredentials?, _ context: ConnectionContext) {
        self.id = id
        self.address = address
        self.credentials = credentials
        self.context = context
        password = credentials?.knownPassword
    }

    var configuration: RedisConfiguration { context.configuration }

    /// The command that authenticates, if that is needed.
    var authentication: [[RedisArgument]] {
        guard let password else { return [] }
        return [["AUTH"] + (credentials?.username.map { [.text($0)] } ?? []) + [.text(password)]]
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
        case .waiting(let time), .preparing(let time), .connecting(_, let time), .greeting(_, _, let time): time
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
        case .preparing(let time) where time <= now:
            let message = "no response within \(configuration.connectTimeout)"
            fail(obtaining == nil ? .unresolvable(message) : .credentialsFailed(message), now)
        case .connecting(_, let time) where time <= now, .greeting(_, _, let time) where time <= now: fail(.silent, now)
        default: break
        }
    }

    private func connect(_ now: Nanoseconds) {
        let deadline = now + configuration.connectTimeout.nanoseconds
        phase = .preparing(deadline: deadline)
        attempt += 1
        guard let credentials, credentials.knownPassword == nil else { return resolve(deadline, now) }
        guard obtaining == nil else { return }
        let task = Task { [prepared] in
            do {
                prepared(.password(try await credentials.password()))
            } catch {
                prepared(.failed(.credentialsFailed("\(error)")))
            }
        }
        obtaining = (task, attempt)
    }

    /// Brings what the attempt has waited for.
    private var prepared: @Sendable (Preparation) -> Void {
        { [mailbox = context.mailbox, id, attempt] in mailbox.prepared(id, attempt, $0) }
    }

    private func resolve(_ deadline: Nanoseconds, _ now: Nanoseconds) {
        guard case .tcp(let host, let port) = address else { return open(deadline, now) }
        if case .success(let addresses) = SocketAddress.resolve(host, port: port, onlyDigits: true) {
            self.addresses = addresses
            return open(deadline, now)
        }
        // Elsewhere, because it blocks, for longer than any command may wait.
        DispatchQueue.global().async { [prepared] in
            switch SocketAddress.resolve(host, port: port) {
            case .success(let addresses): prepared(.addresses(addresses))
            case .failure(let error): prepared(.failed(.unresolvable(error.message)))
            }
        }
    }

    /// Continues with what an attempt needs.
    func prepared(_ preparation: Preparation, attempt: Int, _ now: Nanoseconds) {
        if attempt == obtaining?.attempt {
            obtaining = nil
            // Cancelled, and the next attempt has waited for its end.
            if case .preparing = phase, attempt != self.attempt { return connect(now) }
        }
        guard case .preparing(let deadline) = phase, attempt == self.attempt else { return }
        switch preparation {
        case .password(let password):
            self.password = password
            resolve(deadline, now)
        case .addresses(let addresses):
            self.addresses = addresses
            open(deadline, now)
        case .failed(let reason): fail(reason, now)
        }
    }

    private func open(_ deadline: Nanoseconds, _ now: Nanoseconds) {
        switch address {
        // Checked when the client was created.
        case .unix(let path): open(SocketAddress(path: path).map { [$0] } ?? [], deadline, now)
        case .tcp: open(addresses, deadline, now)
        case .tls(let host, let port):
            guard let secureStreams = context.secureStreams else { return fail(.system(EPROTONOSUPPORT), now) }
            phase = .connecting(.secure(secureStreams.open(host, port)), deadline: deadline)
        case .sentinels, .cluster: fail(.unresolvable("no single server"), now)
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
        guard let parser = ResponseParser(largest: configuration.maximumResponseSize), let user else { return fail(.system(ENOMEM), now) }
        self.parser = parser
        phase = .greeting(link, received: 0, deadline: deadline)
        for command in user.greeting { output.appendCommand(command) }
        flush(now)
        becomeReadyIfGreeted()
    }

    private func becomeReadyIfGreeted() {
        guard case .greeting(let link, let received, _) = phase, let user, received == user.greeting.count else { return }
        phase = .ready(link)
        user.didBecomeReady()
    }

    /// The connection does what it is for: when it ends, the next attempt follows at once.
    func succeeded() { failures = 0 }

    // MARK: Ending

    /// Ends the connection, and tries again after the backoff.
    func fail(_ reason: RedisError.Reason, _ now: Nanoseconds) {
        closeLink()
        let longest = configuration.maximumBackoff.seconds
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
        obtaining?.task.cancel()
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
        _ = context.poller.watch(descriptor, from: watched, to: events)
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
#endif
