// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Which server is the master, by what sentinels say. A value without connections and clock of its own.
///
/// Of the answers of those sentinels that respond, the one with the greatest configuration epoch counts: each fail-over gets a greater one
/// (`config-epoch`), and a sentinel that was cut off from the others has the old one. Sentinels are asked while the master is in doubt,
/// which it is until a connection to it has seen its role.
struct SentinelTopology: Sendable {
    typealias Address = RedisConfiguration.Address

    /// What a sentinel says.
    struct Answer: Sendable, Hashable {
        let master: Address
        let epoch: Int
    }

    /// The time between two questions while the master is in doubt, at first and at most, in seconds.
    private static let pauses = Backoff(first: 0.02, limit: 0.2)

    private var answers: [Int: Answer] = [:]
    private var failures: [Int: RedisError.Reason] = [:]
    private let count: Int
    /// When the sentinels are asked next; `nil` while the master is not in doubt.
    private(set) var nextTime: Nanoseconds?
    private var isInDoubt = true
    /// Whether another master was announced, and the sentinels were not asked since.
    private var isAnnounced = false
    private var lastQuestion: Nanoseconds = 0
    private var questions = 0
    /// The master, as far as it is known.
    private(set) var master: Address?

    /// Begins with sentinels of the numbers from 0 on, which are asked when they are connected, and again until the master is confirmed.
    init(count: Int) { self.count = count }

    /// Why no master is known: all sentinels have failed, for a reason of the first of them.
    var failure: RedisError.Reason? {
        guard master == nil, failures.count == count else { return nil }
        return failures.min { $0.key < $1.key }?.value
    }

    /// A sentinel has answered.
    mutating func answered(_ sentinel: Int, _ answer: Answer) {
        failures[sentinel] = nil
        answers[sentinel] = answer
        choose()
    }

    /// A sentinel can't be asked, or knows no such master.
    mutating func failed(_ sentinel: Int, _ reason: RedisError.Reason) {
        failures[sentinel] = reason
        answers[sentinel] = nil
        choose()
    }

    private mutating func choose() {
        // Without an answer the last master remains: sentinels that are away are no reason to leave it.
        guard let best = answers.values.max(by: { $0.epoch < $1.epoch }) else { return }
        // Equal epochs with different addresses are those of a master that is announced by another name.
        if let master, answers.values.contains(Answer(master: master, epoch: best.epoch)) { return }
        if best.master != master { isInDoubt = true }
        master = best.master
    }

    /// The master has lost its connection, is none by its role, or refuses to write: sentinels are asked at once, and then until
    /// ``confirmed()``.
    mutating func doubt(_ now: Nanoseconds) {
        if !isInDoubt { questions = 0 }
        isInDoubt = true
        nextTime = nextTime ?? now
    }

    /// Another master was announced: sentinels are asked at once, also if the one before is confirmed meanwhile.
    mutating func announced(_ now: Nanoseconds) { (isAnnounced, nextTime) = (true, now) }

    /// The master does not have its data yet, or no replicas: sentinels are asked once, after the longest pause, as it may say so often.
    mutating func suspect(_ now: Nanoseconds) {
        nextTime = nextTime ?? max(now, lastQuestion + Duration.seconds(Self.pauses.limit).nanoseconds)
    }

    /// A connection to the master has seen its role.
    mutating func confirmed() {
        isInDoubt = false
        if !isAnnounced { nextTime = nil }
    }

    /// Whether the sentinels are to be asked now.
    mutating func asks(_ now: Nanoseconds) -> Bool {
        guard let time = nextTime, time <= now else { return false }
        (isAnnounced, lastQuestion) = (false, now)
        nextTime = isInDoubt ? now + Duration.seconds(Self.pauses.delay(after: questions)).nanoseconds : nil
        questions = min(questions + 1, 16)
        return true
    }
}

extension SentinelTopology.Answer {
    /// Reads the responses to `SENTINEL GET-MASTER-ADDR-BY-NAME`, which has a new master earlier than the other one, and to
    /// `SENTINEL MASTER`: names and values in turn, of which that of the epoch counts.
    init?(address: RedisValue, details: RedisValue, isSecure: Bool) {
        guard let parts = address.elements, parts.count == 2, let host = parts[0].text, let port = parts[1].integer,
            let master = RedisConfiguration.Address(host: host, port: port, isSecure: isSecure)
        else { return nil }
        let fields = details.elements?.map { $0.text ?? "" } ?? []
        // Services that only speak as sentinels do may have no epochs.
        let epoch = fields.firstIndex(of: "config-epoch").flatMap { $0 + 1 < fields.count ? Int(fields[$0 + 1]) : nil }
        self.init(master: master, epoch: epoch ?? 0)
    }
}

extension RedisConfiguration.Address {
    /// The address of a node that a server has named; `nil` for what is none.
    init?(host: String, port: Int, isSecure: Bool) {
        guard !host.isEmpty, host.utf8.count <= 1_024, !host.utf8.contains(0), host != "?", (1...65_535).contains(port) else { return nil }
        self = isSecure ? .tls(host: host, port: port) : .tcp(host: host, port: port)
    }
}
#endif
