// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCache
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport

@testable import CurlewRedis

/// Processes that need a new token all the time.
final class TokenLoad: Sendable {
    typealias Authorization = PromiseTests.Authorization

    private let isEnded = Lock(false)
    private let counts: Lock<[(gotten: Int, failed: Int)]>
    private let tasks: [Task<Void, Never>]

    /// Begins with the token of number 1.
    init(_ authenticators: [FleetAuthenticator<Authorization>]) {
        let counts = Lock(authenticators.map { _ in (gotten: 0, failed: 0) })
        self.counts = counts
        tasks = authenticators.enumerated().map { [isEnded] index, authenticator in
            Task {
                let manager = makeManager()
                var current: Authorization.Token? = Authorization.Token(number: 1)
                while !isEnded.withLock({ $0 }) {
                    if let next = try? await authenticator.credential(replacing: current, for: manager) {
                        current = next
                        counts.withLock { $0[index].gotten += 1 }
                    } else {
                        counts.withLock { $0[index].failed += 1 }
                        try? await Task.sleep(for: .milliseconds(2))
                    }
                }
            }
        }
    }

    /// The tokens that all have got, and those of one.
    var gotten: Int { counts.withLock { $0.reduce(0) { $0 + $1.gotten } } }
    func gotten(by index: Int) -> Int { counts.withLock { $0[index].gotten } }
    func failed(by index: Int) -> Int { counts.withLock { $0[index].failed } }

    func end() async {
        isEnded.withLock { $0 = true }
        for task in tasks { await task.value }
    }
}

/// Processes that store and read entries with the bodies of their keys and versions, each on a thread, as the members of the store block.
final class CacheLoad: Sendable {
    private let isEnded = Lock(false)
    private let wrong = Log<String>()
    private let right: Lock<[Int]>
    private let ended = Log<Bool>()

    init(_ clients: [RedisClient]) {
        let newest = Lock([Int](repeating: 0, count: 20))
        right = Lock(clients.map { _ in 0 })
        for (number, client) in clients.enumerated() {
            Thread.detachNewThread { [isEnded, wrong, right, ended] in
                let storage = RedisCacheStorage(client)
                var turn = number
                while !isEnded.withLock({ $0 }) {
                    turn += 1
                    let isStored = turn % 5 == 0
                    let key = isStored ? turn / 5 % 20 : turn % 20
                    if isStored {
                        let version = newest.withLock { newest in
                            newest[key] += 1
                            return newest[key]
                        }
                        try? storage.store(CacheEntry(body: Data("\(key) \(version)".utf8)), for: CacheKey("\(key)"))
                    } else if let entry = try? storage.entry(for: CacheKey("\(key)")) {
                        let parts = String(decoding: entry.body, as: UTF8.self).split(separator: " ").map { Int($0) }
                        let versions = 1...max(newest.withLock { $0[key] }, 1)
                        let isRight = parts.count == 2 && parts[0] == key && versions.contains(parts[1] ?? 0)
                        if isRight { right.withLock { $0[number] += 1 } } else { wrong.append("\(key): \(parts)") }
                    } else {
                        Thread.sleep(forTimeInterval: 0.001)
                    }
                }
                ended.append(true)
            }
        }
    }

    /// The entries that all have read, and those of one.
    var reads: Int { right.withLock { $0.reduce(0, +) } }
    func reads(by index: Int) -> Int { right.withLock { $0[index] } }

    /// Returns the bodies that were wrong.
    func end() async -> [String] {
        isEnded.withLock { $0 = true }
        await ended.wait(for: right.withLock { $0.count })
        return wrong.elements
    }
}
#endif
