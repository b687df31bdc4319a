// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// The client's thread: waits for its connections and for callers. Ends when the client is closed or released.
final class RedisThread {
    private let poller: SystemPoller
    private let mailbox: RedisMailbox
    private let nodes: RedisNodes
    private let secureStreams: SecureStreams?

    private init(_ configuration: RedisConfiguration, poller: SystemPoller, mailbox: RedisMailbox) {
        self.poller = poller
        self.mailbox = mailbox
        let isSecure = configuration.address.isSecure || configuration.masterUsesTLS == true
        secureStreams = isSecure ? SecureStreams(configuration) { mailbox.secureStreamChanged() } : nil
        nodes = RedisNodes(
            ConnectionContext(configuration: configuration, poller: poller, mailbox: mailbox, secureStreams: secureStreams))
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
        nodes.start(MonotonicTime.now())
        while true {
            let work = mailbox.take()
            guard !work.isClosed else { return stop(work) }
            perform(work)
            // What follows from the work, and from the events of the last round.
            let now = MonotonicTime.now()
            nodes.advance(now)
            _ = poller.wait(milliseconds: timeout(nodes.nextTime(after: now)), onWake: {}) { descriptor, events in
                nodes.channels.first { $0.connection.descriptor == descriptor }?.handle(events, MonotonicTime.now())
            }
        }
    }

    private func timeout(_ next: Nanoseconds?) -> Int32 {
        guard let next, next != .max else { return -1 }
        let now = MonotonicTime.now()
        return next <= now ? 0 : Int32(min((next - now + 999_999) / 1_000_000, 60_000))
    }

    private func perform(_ work: RedisMailbox.Work) {
        let now = MonotonicTime.now()
        for prepared in work.prepared {
            nodes.channels.first { $0.connection.id == prepared.connection }?.handle(prepared.preparation, attempt: prepared.attempt, now)
        }
        if work.hasSecureStreamChanged {
            for channel in nodes.channels { channel.handleSecureStream(now) }
        }
        for subscription in work.added { nodes.add(subscription, now) }
        for id in work.removed { nodes.remove(id, now) }
        if !work.commands.isEmpty { nodes.submit(work.commands, now) }
    }

    private func stop(_ work: RedisMailbox.Work) {
        nodes.stop()
        secureStreams?.shutDown()
        for command in work.commands { command.completion(.failure(.closed)) }
    }
}
#endif
