// SPDX-License-Identifier: Apache-2.0
#if Redis
import CHiredis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A script that the server runs atomically (`EVALSHA`). Sent once to a server, and again to one that has lost it.
package struct RedisScript: Sendable {
    let source: String
    let digest: String
    /// Whether it may run twice for one call, the first time without a response, and in the meantime scripts of other processes.
    let isIdempotent: Bool

    /// A script in Lua.
    package init(_ source: String, isIdempotent: Bool = false) {
        self.source = source
        self.isIdempotent = isIdempotent
        digest = SHA1.digest(of: source.utf8).hexDigits
    }
}

extension RedisClient {
    /// The argument of a script that publishes by slot in a cluster, where the server can do that (7.0): otherwise each message goes to all
    /// nodes. The script's keys need the channel's hash tag, and it has `redis.call(redis.REDIS_VERSION_NUM and ARGV[n] or 'PUBLISH', …)`.
    var publishCommand: RedisArgument { if case .cluster = configuration.address { "SPUBLISH" } else { "PUBLISH" } }

    /// Runs a script with its keys, all of one hash tag, and its arguments.
    package func submit(
        _ script: RedisScript, keys: [String], _ arguments: [RedisArgument],
        completion: @escaping @Sendable (Result<RedisValue, RedisError>) -> Void
    ) {
        let timeout = configuration.commandTimeout
        let deadline = MonotonicTime.now() + timeout.nanoseconds
        let rest = [.number(keys.count)] + keys.map { RedisArgument.text($0) } + arguments
        // The client need not be retained for the second step: without it there is no response to the first.
        let isRepeatable = script.isIdempotent
        submit(["EVALSHA", .text(script.digest)] + rest, timeout, deadline, isRepeatable: isRepeatable) { [weak self] result in
            guard let self, case .failure(.refused(_, "NOSCRIPT", _)) = result else { return completion(result) }
            submit(["EVAL", .text(script.source)] + rest, timeout, deadline, isRepeatable: isRepeatable, completion)
        }
    }

    /// Runs a script, and waits for its result.
    package func run(_ script: RedisScript, keys: [String], _ arguments: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await withCheckedContinuation { continuation in
            submit(script, keys: keys, arguments) { continuation.resume(returning: $0) }
        }.get()
    }

    /// Runs a script, and blocks until its result has arrived, at most for the timeout.
    package func block(_ script: RedisScript, keys: [String], _ arguments: [RedisArgument]) throws(RedisError) -> RedisValue {
        try blocking("EVALSHA") { submit(script, keys: keys, arguments, completion: $0) }
    }

    /// The key of what a store has under a name: with the prefix, and the name as its hash tag, so that all keys of one name are in one slot
    /// of a cluster.
    package func key(_ store: String, _ name: String) -> String { "\(configuration.prefix):\(store):{\(Self.token(name))}" }

    /// A name of letters, digits and `_-.:/` as it is; the digest of any other.
    static func token(_ name: String) -> String {
        let isPlain =
            !name.isEmpty && name.utf8.count <= 128
            && name.utf8.allSatisfy { ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A || $0 >= 0x2D && $0 <= 0x3A || $0 == 0x5F }
        return isPlain ? name : SHA256.digest(of: name.utf8).hexDigits
    }
}
#endif
