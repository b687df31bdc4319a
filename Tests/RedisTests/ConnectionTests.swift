// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewRedis

/// Connections without a server, whose events the tests make.
@Suite struct ConnectionTests {
    /// Has a connection, and keeps why that has failed.
    private final class User: ConnectionUser {
        var reasons: [RedisError.Reason] = []
        var greeting: [[RedisArgument]] { [] }
        func receiveGreeting(_ value: RedisValue, at index: Int) -> RedisError.Reason? { nil }
        func didBecomeReady() {}
        func receive(_ value: RedisValue) -> RedisError.Reason? { nil }
        func didFail(_ reason: RedisError.Reason) { reasons.append(reason) }
    }

    private let now: Nanoseconds = 1_000

    private func connection(to address: RedisConfiguration.Address, _ credentials: RedisCredentials) throws -> RedisConnection {
        let poller = try SystemPoller()
        return RedisConnection(
            1, to: address, credentials,
            ConnectionContext(
                configuration: RedisConfiguration(address), poller: poller, mailbox: RedisMailbox(poller.wakeUp, limit: 1),
                secureStreams: nil))
    }

    @Test("a host's name that takes too long is reported as that, also after a password was obtained", arguments: [false, true])
    func slowHost(hasPassword: Bool) throws {
        // The mailbox is not emptied, so that no address ever arrives.
        let connection = try connection(to: .tcp(host: "localhost", port: 1), RedisCredentials { "secret" })
        let user = User()
        connection.user = user
        connection.start(now)
        if hasPassword { connection.prepared(.password("secret"), attempt: 1, now) }
        let deadline = try #require(connection.nextTime)
        connection.advance(deadline)
        let message = "no response within 1.0 seconds"
        #expect(user.reasons == [hasPassword ? .unresolvable(message) : .credentialsFailed(message)])
        connection.stop()
    }

    @Test("what a server repeats of an unknown AUTH is in no error of subscriptions or commands", arguments: [false, true])
    func unknownAuthentication(isSubscription: Bool) throws {
        let connection = try connection(
            to: .tcp(host: "127.0.0.1", port: 1), RedisCredentials(username: "app", password: "secret"))
        let error = RedisValue.error("ERR unknown command `AUTH`, with args beginning with: `app`, `secret`, ")
        let shown = RedisError.Reason.rejected("ERR unknown command `AUTH`")
        guard isSubscription else {
            let poller = try SystemPoller()
            let nodes = RedisNodes(
                ConnectionContext(
                    configuration: connection.configuration, poller: poller, mailbox: RedisMailbox(poller.wakeUp, limit: 1),
                    secureStreams: nil))
            let channel = CommandChannel(connection, mailbox: nodes.context.mailbox, role: .any, owner: nodes)
            return #expect(channel.receiveGreeting(error, at: 0) == shown)
        }
        for isInCluster in [false, true] {
            let channel = SubscriptionChannel(connection, isInCluster: isInCluster)
            #expect(channel.greeting.count == (isInCluster ? 2 : 1))
            #expect(channel.receiveGreeting(error, at: 0) == shown)
            #expect(channel.receive(error) == shown)
        }
    }

    @Test("a response to PING is one of subscriptions, also when the last one has ended", arguments: [false, true])
    func ping(isInCluster: Bool) throws {
        let connection = try connection(to: .tcp(host: "127.0.0.1", port: 1), RedisCredentials(password: "secret"))
        let channel = SubscriptionChannel(connection, isInCluster: isInCluster)
        #expect(channel.receive(.array([.bytes(Data("pong".utf8)), .bytes(Data())])) == nil)
        #expect(channel.receive(.status("PONG")) == nil)
        #expect(channel.receive(.status("OK")) == .notRedis("a response that is no message"))
    }
}
#endif
