// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The servers of a client: one, the master that sentinels know, or the nodes of a cluster. Has a connection for the commands of each that is
/// used, and sends each command where it belongs, again if a server says that it belongs elsewhere. Confined to the client's thread.
final class RedisNodes {
    typealias Address = RedisConfiguration.Address

    /// The pause before a command is sent again, at first and at most, in seconds.
    private static let pauses = Backoff(first: 0.001, limit: 0.02)

    let context: ConnectionContext
    private var lastConnection = 0
    // What is known of the servers: one of the three.
    private let fixed: Address?
    private(set) var sentinelTopology: SentinelTopology?
    private(set) var clusterTopology: ClusterTopology?
    // The connections.
    private(set) var channels: [any RedisChannel] = []
    private var commandChannels: [Address: CommandChannel] = [:]
    private var subscriptionChannels: [Address: SubscriptionChannel] = [:]
    private var sentinelChannels: [SentinelChannel] = []
    private var subscriptions: [Int: (subscription: Subscription, node: Address?)] = [:]
    /// Commands that are sent when it is known where, or again at a time.
    private var waiting: [(command: RedisCommand, time: Nanoseconds)] = []
    /// Whether the servers may be others than those that have connections.
    private var hasChanged = false
    /// Whether a connection is not needed any more, and was busy.
    private var hasBusyOthers = false

    init(_ context: ConnectionContext) {
        self.context = context
        switch context.configuration.address {
        case .unix, .tcp, .tls: fixed = context.configuration.address
        case .sentinels(let servers, _):
            fixed = nil
            sentinelTopology = SentinelTopology(count: servers.count)
        case .cluster(let seeds):
            fixed = nil
            clusterTopology = ClusterTopology(seeds: seeds, turn: .random(in: 0..<ClusterTopology.mostNodes))
        }
    }

    /// Begins to connect.
    func start(_ now: Nanoseconds) {
        if let fixed { _ = commandChannel(at: fixed, now) }
        let configuration = context.configuration
        guard case .sentinels(let servers, let master) = configuration.address else { return settle(now) }
        let isMasterSecure = configuration.masterUsesTLS ?? configuration.address.isSecure
        for (index, server) in servers.enumerated() {
            let channel = SentinelChannel(
                connection(to: server, configuration.sentinelCredentials), index, master: master, isMasterSecure: isMasterSecure,
                owner: self)
            sentinelChannels.append(channel)
            channels.append(channel)
            channel.connection.start(now)
        }
    }

    // MARK: Connections

    private func connection(to address: Address, _ credentials: RedisCredentials?) -> RedisConnection {
        lastConnection += 1
        return RedisConnection(lastConnection, to: address, credentials, context)
    }

    private func commandChannel(at address: Address, _ now: Nanoseconds) -> CommandChannel {
        if let channel = commandChannels[address] { return channel }
        let configuration = context.configuration
        let channel = CommandChannel(
            connection(to: address, isSentinel(address) ? configuration.sentinelCredentials : configuration.dataCredentials),
            mailbox: context.mailbox, role: sentinelTopology == nil ? .any : isSentinel(address) ? .sentinel : .master, owner: self)
        commandChannels[address] = channel
        channels.append(channel)
        channel.connection.start(now)
        return channel
    }

    private func isSentinel(_ address: Address) -> Bool { sentinelChannels.contains { $0.connection.address == address } }

    private func subscriptionChannel(at address: Address) -> SubscriptionChannel {
        if let channel = subscriptionChannels[address] { return channel }
        let channel = SubscriptionChannel(
            connection(to: address, context.configuration.dataCredentials), isInCluster: clusterTopology != nil)
        subscriptionChannels[address] = channel
        channels.append(channel)
        return channel
    }

    private func remove(_ channel: any RedisChannel) {
        channels.removeAll { $0 === channel }
        let address = channel.connection.address
        if commandChannels[address] === channel { commandChannels[address] = nil }
        if subscriptionChannels[address] === channel { subscriptionChannels[address] = nil }
    }

    /// Fails everything, for good.
    func stop() {
        for channel in channels { channel.stop() }
        let commands = waiting.map(\.command)
        waiting = []
        for command in commands { context.mailbox.complete(command, .failure(.closed)) }
    }

    // MARK: Commands

    /// Sends commands, each where it belongs; those of one server in one packet.
    func submit(_ commands: [RedisCommand], _ now: Nanoseconds) {
        if let fixed { return commandChannel(at: fixed, now).submit(commands, now) }
        var groups: [Address: [RedisCommand]] = [:]
        for command in commands {
            if let node = node(for: command) {
                groups[node, default: []].append(command)
            } else {
                hold(command, now)
            }
        }
        for (node, commands) in groups { commandChannel(at: node, now).submit(commands, now) }
    }

    /// The server that a command belongs to; `nil` while none is known.
    private func node(for command: RedisCommand) -> Address? {
        if let node = command.migratedTo { return node }
        switch command.target {
        case .node(let node):
            // What was meant for the master before is for no other one.
            return sentinelTopology == nil || node == sentinelTopology?.master || isSentinel(node) ? node : nil
        case .slot(let slot): return clusterTopology?.owner(of: slot)
        case .any:
            guard let clusterTopology else { return fixed ?? sentinelTopology?.master }
            let masters = clusterTopology.masters
            return masters.first { commandChannels[$0].map { $0.connection.isReady && $0.accepts } ?? false } ?? masters.first
        }
    }

    /// Keeps a command until a server is known for it, unless all that could say so have failed.
    private func hold(_ command: RedisCommand, _ now: Nanoseconds) {
        var command = command
        clusterTopology?.doubt(now)
        if let failure { return context.mailbox.complete(command, .failure(unavailable(failure))) }
        if command.error == nil {
            let isUncovered = clusterTopology?.masters.isEmpty == false
            command.error =
                isUncovered
                ? .refused(command: command.name, code: "CLUSTERDOWN", message: "no node owns the slot") : unavailable(.connecting)
        }
        waiting.append((command, now))
    }

    /// Why no server is known.
    private var failure: RedisError.Reason? {
        if let clusterTopology, !clusterTopology.masters.isEmpty { return nil }
        return sentinelTopology?.failure ?? clusterTopology?.failure
    }

    private func unavailable(_ reason: RedisError.Reason) -> RedisError { .unavailable(context.configuration.address, reason) }

    /// Sends a command again: at once after the first redirects, and after pauses otherwise.
    private func sendAgain(_ command: RedisCommand, _ error: RedisError, isRedirected: Bool = false) {
        var command = command
        command.error = error
        command.attempts += 1
        let pause = isRedirected && command.attempts <= 3 ? 0 : Self.pauses.delay(after: command.attempts)
        waiting.append((command, MonotonicTime.now() + Duration.seconds(pause).nanoseconds))
    }

    private func canBeSent(_ command: RedisCommand) -> Bool {
        guard let node = node(for: command) else { return failure != nil }
        return commandChannels[node]?.accepts ?? true
    }

    private func sendWaiting(_ now: Nanoseconds) {
        guard !waiting.isEmpty else { return }
        var (due, late): ([RedisCommand], [RedisCommand]) = ([], [])
        waiting.removeAll { command, time in
            if command.deadline <= now {
                late.append(command)
            } else if time <= now, canBeSent(command) {
                due.append(command)
            } else {
                return false
            }
            return true
        }
        for command in late {
            context.mailbox.complete(command, .failure(command.error ?? .timedOut(command: command.name, after: command.timeout)))
        }
        if !due.isEmpty { submit(due, now) }
    }

    // MARK: Subscriptions

    func add(_ subscription: Subscription, _ now: Nanoseconds) {
        let node = node(for: subscription)
        subscriptions[subscription.id] = (subscription, node)
        if let node { subscriptionChannel(at: node).add(subscription, now) }
    }

    func remove(_ id: Int, _ now: Nanoseconds) {
        if let node = subscriptions.removeValue(forKey: id)?.node { subscriptionChannels[node]?.remove(id, now) }
    }

    /// In a cluster the owner of the channel's slot, also for messages that all nodes have: they are shared out so, and it is one that works.
    private func node(for subscription: Subscription) -> Address? {
        guard let clusterTopology else { return fixed ?? sentinelTopology?.master }
        return clusterTopology.owner(of: HashSlot.slot(of: subscription.channel.utf8))
    }

    // MARK: Changes

    /// The time at which ``advance(_:)`` has something to do, after it was called with a time: no later one, as what has become due since
    /// then has to be done still.
    func nextTime(after now: Nanoseconds) -> Nanoseconds? {
        if hasChanged { return now }
        var times = channels.compactMap(\.nextTime)
        if let time = sentinelTopology?.nextTime ?? clusterTopology?.nextTime { times.append(time) }
        // One whose time has come waits for a connection.
        for (command, time) in waiting { times.append(time > now ? min(time, command.deadline) : command.deadline) }
        return times.min()
    }

    /// Does what is due, and what follows from the events since the last call.
    func advance(_ now: Nanoseconds) {
        for channel in channels { channel.advance(now) }
        if fixed == nil { settle(now) }
    }

    private func settle(_ now: Nanoseconds) {
        if sentinelTopology?.asks(now) == true {
            for channel in sentinelChannels { channel.ask(now) }
        }
        for channel in subscriptionChannels.values where channel.isInDoubt {
            channel.isInDoubt = false
            clusterTopology?.doubt(now)
        }
        if let node = clusterTopology?.question(now) {
            commandChannel(at: node, now).submit([.question(for: node, context.configuration.connectTimeout, now)], now)
        }
        if hasChanged {
            hasChanged = false
            moveSubscriptions(now)
            hasBusyOthers = closeOthers(now)
            if let masters = clusterTopology?.masters ?? sentinelTopology?.master.map({ [$0] }) { context.mailbox.setMasters(masters) }
            updateRefusal()
        } else if hasBusyOthers {
            hasBusyOthers = closeOthers(now)
        }
        sendWaiting(now)
    }

    private func moveSubscriptions(_ now: Nanoseconds) {
        for (id, entry) in subscriptions {
            let node = node(for: entry.subscription)
            guard node != entry.node else { continue }
            if let old = entry.node { subscriptionChannels[old]?.withdraw(id, now) }
            subscriptions[id]?.node = node
            if let node { subscriptionChannel(at: node).add(entry.subscription, now) }
        }
        for channel in subscriptionChannels.values where channel.isEmpty {
            channel.stop()
            remove(channel)
        }
    }

    /// Ends the connections to servers that are masters no longer, and connects to a new one that sentinels know; whether some are busy still.
    private func closeOthers(_ now: Nanoseconds) -> Bool {
        if let topology = sentinelTopology, let master = topology.master {
            for (address, channel) in commandChannels where address != master && !isSentinel(address) {
                remove(channel)
                channel.abandon()
            }
            _ = commandChannel(at: master, now)
        } else if let topology = clusterTopology {
            let masters = Set(topology.masters)
            let others = commandChannels.filter { !masters.contains($0.key) }.map(\.value)
            for channel in others where channel.isIdle {
                remove(channel)
                channel.stop()
            }
            return !others.allSatisfy(\.isIdle)
        }
        return false
    }

    /// Has callers' threads refuse commands while there is only one server, and that can't be used, or while none is known.
    private func updateRefusal() {
        if let server = fixed ?? sentinelTopology?.master {
            context.mailbox.setRefusal(commandChannels[server]?.refusal)
        } else {
            context.mailbox.setRefusal(failure.map { unavailable($0) })
        }
    }
}

// MARK: - CommandChannelOwner

extension RedisNodes: CommandChannelOwner {
    func didConnect(_ channel: CommandChannel) {
        // Its role was seen.
        if channel.connection.address == sentinelTopology?.master { sentinelTopology?.confirmed() }
        clusterTopology?.works(channel.connection.address)
    }

    func didDisconnect(_ channel: CommandChannel) {
        let now = MonotonicTime.now()
        if !isSentinel(channel.connection.address) { sentinelTopology?.doubt(now) }
        clusterTopology?.lost(channel.connection.address, now)
        // A connection to a node that is none of the cluster is not needed.
        hasChanged = hasChanged || clusterTopology != nil
    }

    func didChangeRefusal(of channel: CommandChannel) {
        if channel.connection.address == fixed ?? sentinelTopology?.master { updateRefusal() }
    }

    func takes(_ command: RedisCommand, lostWith error: RedisError, wasSent: Bool) -> Bool {
        guard fixed == nil, !wasSent || command.isRepeatable else { return false }
        var command = command
        command.migratedTo = nil
        sendAgain(command, error)
        return true
    }

    func takes(_ command: RedisCommand, refusedWith error: RedisError, _ message: String, by channel: CommandChannel) -> Bool {
        guard fixed == nil, let refusal = ServerRefusal(message) else { return false }
        let now = MonotonicTime.now()
        let address = channel.connection.address
        var command = command
        command.migratedTo = nil
        switch refusal {
        case .moved(let slot, let target):
            guard let node = address.neighbour(target), clusterTopology != nil else { return false }
            clusterTopology?.moved(slot, to: node, now)
            hasChanged = true
            sendAgain(command, error, isRedirected: true)
        case .ask(let target):
            guard let node = address.neighbour(target), clusterTopology != nil,
                commandChannels[node] != nil || commandChannels.count < 2 * ClusterTopology.mostNodes
            else { return false }
            command.migratedTo = node
            sendAgain(command, error, isRedirected: true)
        case .tryAgain: sendAgain(command, error)
        case .clusterDown:
            clusterTopology?.doubt(now)
            sendAgain(command, error)
        case .readOnly:
            sentinelTopology?.doubt(now)
            clusterTopology?.doubt(now)
            if sentinelTopology != nil { channel.leave() }
            sendAgain(command, error)
        case .loading:
            sentinelTopology?.suspect(now)
            clusterTopology?.doubt(now)
            sendAgain(command, error)
        case .noReplicas:
            sentinelTopology?.suspect(now)
            clusterTopology?.doubt(now)
            return false
        }
        return true
    }

    func answered(_ result: Result<RedisValue, RedisError>, by channel: CommandChannel) {
        let (now, node) = (MonotonicTime.now(), channel.connection.address)
        hasChanged = true
        switch result {
        case .success(let value):
            if let ranges = ClusterTopology.ranges(value, from: node) {
                clusterTopology?.learn(ranges, from: node, now)
            } else {
                clusterTopology?.failed(node, .notRedis("a response to CLUSTER SLOTS that has none"), now)
            }
        case .failure(let error): clusterTopology?.failed(node, error.reason, now)
        }
        updateRefusal()
    }
}

// MARK: - SentinelChannelOwner

extension RedisNodes: SentinelChannelOwner {
    func answered(_ answer: SentinelTopology.Answer?, _ failure: RedisError.Reason?, by channel: SentinelChannel) {
        let before = sentinelTopology?.master
        if let answer { sentinelTopology?.answered(channel.index, answer) }
        if let failure { sentinelTopology?.failed(channel.index, failure) }
        if sentinelTopology?.master != before { hasChanged = true }
        updateRefusal()
    }

    func didSwitch(_ channel: SentinelChannel) { sentinelTopology?.announced(MonotonicTime.now()) }
}
#endif
