// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP

/// Why something could not be done on a Redis server.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum RedisError: Error, Sendable, Hashable {
    /// The server of an address can't be used now; it is tried again by itself.
    case unavailable(RedisConfiguration.Address, Reason)
    /// The server took longer than ``RedisConfiguration/commandTimeout``. The command may still be executed.
    case timedOut(command: String, after: Duration)
    /// The connection ended before the response arrived. The command may have been executed.
    case connectionLost(command: String, Reason)
    /// More commands wait than ``RedisConfiguration/maximumPending``.
    case overloaded(limit: Int)
    /// The server has no memory left (`maxmemory`) for what was to be stored.
    case serverFull(command: String, message: String)
    /// The server refused a command, with a code such as `NOPERM` or `READONLY`, and a message. With sentinels or a cluster, refusals that
    /// another node or a later attempt may not repeat (`READONLY`, `LOADING`, `MOVED`, `CLUSTERDOWN` and others) are errors only when the time
    /// of the command has passed.
    case refused(command: String, code: String, message: String)
    /// A response was none that the command has.
    case unexpectedResponse(command: String)
    /// A stored value is damaged, of a later version, or can't be opened with the keys given.
    case unreadableValue(key: String, UnreadableReason)
    /// Values can't be sealed: the process has no libcrypto with AES-256-GCM (libcurl with another TLS library).
    case sealingUnavailable
    /// A setting is invalid; a sentence says which.
    case invalidSetting(String)
    /// The client was closed.
    case closed

    /// Why a server is unavailable, or a connection ended.
    ///
    /// Later versions may add cases, so a `switch` needs a `default`.
    public enum Reason: Sendable, Hashable {
        /// No attempt has succeeded within the time; the first one is in progress.
        case connecting
        /// The host's name could not be resolved; the system's message.
        case unresolvable(String)
        /// The system refused the connection or broke it; its error number.
        case system(Int32)
        /// The TLS connection could not be established, or broke; libcurl's message, which says what is wrong with a certificate.
        case connectionFailed(String)
        /// The server closed the connection.
        case closedByServer
        /// The server does not respond, while responses are due.
        case silent
        /// The server responded with something that is not RESP2, or not Redis; a sentence says what.
        case notRedis(String)
        /// The server's version is older than 5.0.
        case unsupportedVersion(String)
        /// `AUTH`, `SELECT`, `SUBSCRIBE` or the question for a cluster's slots was refused; the server's message.
        case rejected(String)
        /// A closure of ``RedisCredentials`` has thrown, or returned nothing in time; its error's text.
        case credentialsFailed(String)
        /// The server is no master by its role, or was replaced as the master, or no longer owns the slots of its cluster.
        case notMaster
        /// The sentinels know no master of the name.
        case noMaster
        /// The client was closed.
        case closed
    }

    /// Why a stored value can't be read.
    ///
    /// Later versions may add cases, so a `switch` needs a `default`.
    public enum UnreadableReason: Sendable, Hashable {
        /// It has the format of a later version.
        case version(UInt8)
        /// It is not what this product writes.
        case damaged
        /// It is sealed with a key of this identifier, which is not among those given, or it is sealed and no keys are given.
        case unknownKey(String)
        /// It was not sealed, although keys are given: what anyone who may write to the server could have stored.
        case notSealed
        /// Its seal does not match: it was changed, moved from another key, or sealed with another key of the same identifier.
        case wrongSeal
    }
}

extension RedisError: CustomStringConvertible, LocalizedError {
    /// What failed, and why, as a sentence.
    public var description: String { Redaction.escaped(text) }

    private var text: String {
        switch self {
        case .unavailable(let address, let reason): "Redis at \(address) is unavailable: \(reason)."
        case .timedOut(let command, let time): "\(command): Redis did not respond within \(time)."
        case .connectionLost(let command, let reason): "\(command): the connection to Redis was lost: \(reason)."
        case .overloaded(let limit): "More than \(limit) commands wait for Redis."
        case .serverFull(let command, let message): "\(command): Redis has no memory left: \(message)."
        case .refused(let command, let code, let message): "\(command): Redis refused with \(code): \(message)."
        case .unexpectedResponse(let command): "\(command): the response is none of this command."
        case .unreadableValue(let key, let reason): "The value of \(key) can't be read: \(reason)."
        case .sealingUnavailable: "Values can't be sealed: the process has no libcrypto with AES-256-GCM."
        case .invalidSetting(let what): what
        case .closed: "The Redis client was closed."
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }
}

extension RedisError.Reason: CustomStringConvertible {
    /// The reason, as part of a sentence.
    public var description: String {
        switch self {
        case .connecting: "the connection is not established yet"
        case .unresolvable(let message): "its name can't be resolved (\(message))"
        case .system(let number): String(cString: strerror(number))
        case .connectionFailed(let message): "its TLS connection failed (\(message))"
        case .closedByServer: "the server closed the connection"
        case .silent: "it does not respond"
        case .notRedis(let what): "it is no Redis server (\(what))"
        case .unsupportedVersion(let version): "its version \(version) is older than 5.0"
        case .rejected(let message): message
        case .credentialsFailed(let message): "there is no password (\(message))"
        case .notMaster: "it is not the master"
        case .noMaster: "the sentinels know no such master"
        case .closed: "the client was closed"
        }
    }
}

extension RedisError.UnreadableReason: CustomStringConvertible {
    /// The reason, as part of a sentence.
    public var description: String {
        switch self {
        case .version(let version): "it has version \(version) of the format"
        case .damaged: "it is damaged"
        case .unknownKey(let id): id.isEmpty ? "it is sealed, and no keys are given" : "it is sealed with the unknown key \(id)"
        case .notSealed: "it is not sealed"
        case .wrongSeal: "its seal does not match"
        }
    }
}
#endif
