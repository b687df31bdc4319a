// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// The client's thread: waits for its two connections and for callers. Ends when the client is closed or released.
final class RedisThread {
    private let poller: SystemPoller
    private let mailbox: RedisMailbox
    private let commands: CommandChannel
    private let subscriptions: SubscriptionChannel
    private let secureStreams: SecureStreams?

    private init(_ configuration: RedisConfiguration, poller: SystemPoller, mailbox: RedisMailbox) {
        self.poller = poller
        self.mailbox = mailbox
        let secureStreams: SecureStreams? =
            if case .tls(let host, let port) = configuration.address {
                SecureStreams(configuration, host: host, port: port) { mailbox.secureStreamChanged() }
            } else {
                nil
            }
        self.secureStreams = secureStreams
        func connection(isForCommands: Bool) -> RedisConnection {
            RedisConnection(configuration, poller: poller, secureStreams: secureStreams) { attempt in
                guard case .tcp(let host, let port) = configuration.address else { return }
                // Elsewhere, because it blocks, for longer than any command may wait.
                DispatchQueue.global().async {
                    let result = SocketAddress.resolve(host, port: port)
                    mailbox.resolved(.init(isForCommands: isForCommands, attempt: attempt, result: result))
                }
            }
        }
        commands = CommandChannel(connection(isForCommands: true), mailbox: mailbox)
        subscriptions = SubscriptionChannel(connection(isForCommands: false))
    }

    /// What a thread begins with; handed over once, and used by that thread only from then on.
    private struct Start: @unchecked Sendable {
        let configuration: RedisConfiguration
        let poller: SystemPoller
        let mailbox: RedisMailbox
    }

    /// Starts the thread of a client; throws the system's error if the process has no descriptors left.
    static func start(_ configuration: RedisConfiguration) throws -> RedisMailbox {
        let poller = try SystemPoller()
        let start = Start(
            configuration: configuration, poller: poller,
            mailbox: RedisMailbox(poller.wakeUp, limit: configuration.maximumPending))
        let thread = Thread {
            nameThisThread("curlew.redis")
            blockPipeSignal()
            RedisThread(start.configuration, poller: start.poller, mailbox: start.mailbox).run()
        }
        thread.start()
        return start.mailbox
    }

    private static func blockPipeSignal() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    private func run() {
        commands.connection.start(MonotonicTime.now())
        while true {
            let work = mailbox.take()
            guard !work.isClosed else { return stop(work) }
            perform(work)
            _ = poller.wait(milliseconds: timeout, onWake: {}) { descriptor, events in
                let now = MonotonicTime.now()
                if descriptor == commands.connection.descriptor {
                    commands.handle(events, now)
                } else if descriptor == subscriptions.connection.descriptor {
                    subscriptions.handle(events, now)
                }
            }
            let now = MonotonicTime.now()
            commands.advance(now)
            subscriptions.advance(now)
        }
    }

    private var timeout: Int32 {
        guard let next = [commands.nextTime, subscriptions.nextTime].compactMap({ $0 }).min(), next != .max else { return -1 }
        let now = MonotonicTime.now()
        return next <= now ? 0 : Int32(min((next - now + 999_999) / 1_000_000, 60_000))
    }

    private func perform(_ work: RedisMailbox.Work) {
        let now = MonotonicTime.now()
        for resolved in work.resolved {
            let connection = resolved.isForCommands ? commands.connection : subscriptions.connection
            connection.resolved(resolved.result, attempt: resolved.attempt, now)
        }
        if work.hasSecureStreamChanged {
            commands.handleSecureStream(now)
            subscriptions.handleSecureStream(now)
        }
        for subscription in work.added { subscriptions.add(subscription, now) }
        for id in work.removed { subscriptions.remove(id, now) }
        if !work.commands.isEmpty { commands.submit(work.commands, now) }
    }

    private func stop(_ work: RedisMailbox.Work) {
        commands.stop()
        subscriptions.stop()
        secureStreams?.shutDown()
        for command in work.commands { command.completion(.failure(.closed)) }
    }
}
#endif
