// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP

/// An error with which a server says that it has not executed a command that another one, or itself later, may execute.
enum ServerRefusal: Sendable, Hashable {
    /// The host and port that a redirect names; no host means that of the server itself.
    struct Target: Sendable, Hashable {
        let host: String?
        let port: Int
    }

    /// Another node owns the slot.
    case moved(slot: Int, Target)
    /// Another node has the key already, as the slot is being migrated there.
    case ask(Target)
    /// The keys of the command are on two nodes, as their slot is being migrated.
    case tryAgain
    /// The cluster, or the slot's part of it, has no node that may execute it.
    case clusterDown
    /// The server is a replica, since a fail-over perhaps.
    case readOnly
    /// The server loads its data, or is a replica that has lost its master.
    case loading
    /// The server has fewer replicas than it needs to write: it may be cut off from the others.
    case noReplicas

    /// The refusal that an error is; `nil` for any other error. A script's errors begin with the code of the failed command in it only since
    /// 7.0; before, they contain its text.
    init?(_ error: String) {
        let words = error.splitScalars(separator: " ")
        switch words.first.map({ String($0) }) {
        case "MOVED"?:
            guard words.count >= 3, let slot = Int(words[1]), (0..<HashSlot.count).contains(slot), let target = Target(words[2]) else {
                return nil
            }
            self = .moved(slot: slot, target)
        case "ASK"?:
            guard words.count >= 3, let target = Target(words[2]) else { return nil }
            self = .ask(target)
        case "TRYAGAIN"?: self = .tryAgain
        case "CLUSTERDOWN"?: self = .clusterDown
        case "LOADING"?, "MASTERDOWN"?: self = .loading
        case _ where error.contains("NOREPLICAS Not enough good replicas"): self = .noReplicas
        default:
            guard error.hasBytePrefix("READONLY ") || error.contains("READONLY You can't write against a read only") else { return nil }
            self = .readOnly
        }
    }
}

extension ServerRefusal.Target {
    /// Parses `host:port`, of which the host may be an IPv6 address without brackets, or missing.
    fileprivate init?(_ text: Substring) {
        guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")), let port = Int(text[text.utf8.index(after: colon)...]),
            (1...65_535).contains(port)
        else { return nil }
        host = colon == text.startIndex ? nil : String(text[..<colon])
        self.port = port
    }
}
#endif
