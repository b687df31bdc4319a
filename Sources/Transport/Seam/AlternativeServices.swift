// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Where hosts also offer HTTP/3, as their responses have said (Alt-Svc, RFC 7838).
///
/// ```swift
/// configuration.alternativeServices = AlternativeServices()
/// ```
///
/// With a store, the first request to a host uses TCP; if its response offers HTTP/3, later ones use that, until the offer expires. An
/// alternative to which no connection is made within two seconds is left: the same transfer is sent over TCP, and the alternative is not
/// tried again for five minutes. Offers are accepted from `https` only, over connections whose certificate and name were verified, and an
/// alternative has to show a certificate for the host's own name. Used with ``HTTPVersionPolicy/automatic`` and
/// ``HTTPVersionPolicy/http3``, by a libcurl with HTTP/3, without a proxy or a Unix domain socket, and for hosts to which
/// ``TransferOptions/resolve``, ``TransferOptions/connectTo`` and ``TransferOptions/resolver`` do not apply.
///
/// Thread-safe. Sessions with the same store share it; it keeps at most 1,000 hosts.
public final class AlternativeServices: Sendable, ComparedByKey {
    /// An offer of a host.
    package struct Entry: Sendable, Hashable, Codable {
        /// The host's name, in lower case.
        package let host: String
        /// The host's port.
        package let port: Int
        /// The name or address of the alternative.
        package let alternativeHost: String
        /// The UDP port of the alternative.
        package let alternativePort: Int
        /// When the offer expires.
        package let expirationDate: Date
        /// Whether the offer outlives a change of the network (`persist=1`).
        package let isPersistent: Bool
    }

    private struct State {
        var entries: [RouteTarget: Entry] = [:]
        /// Alternatives that could not be reached, and until when they are not tried.
        var broken: [RouteTarget: Date] = [:]
    }

    private static let capacity = 1_000
    /// The longest lifetime of an offer, a year.
    private static let longestLifetime = 365 * 86_400
    /// How long an alternative that could not be reached is not tried, five minutes.
    static let brokenTime: TimeInterval = 300
    /// The longest time in which an alternative has to be connected, in milliseconds.
    static let connectTimeoutMilliseconds = 2_000

    private let file: URL?
    private let state: Lock<State>

    /// Creates a store in memory.
    public init() {
        file = nil
        state = Lock(State())
    }

    /// Creates a store that begins with the contents of a file, if it is there, and that ``save()`` writes to it. Blocks while reading.
    ///
    /// - Throws: `CocoaError` if the file can't be read, is no regular file (a symbolic link is not followed) or has more than 4 MiB, and
    ///   `DecodingError` if its contents were not written by ``save()``.
    public init(file: URL) throws {
        self.file = file
        var state = State()
        if FileManager.default.fileExists(atPath: file.path) {
            let entries = try JSONDecoder().decode([Entry].self, from: PrivateFile.read(file.path, upTo: 4 << 20))
            for entry in entries.prefix(Self.capacity) {
                state.entries[RouteTarget(host: entry.host.comparableHost, port: entry.port)] = entry
            }
        }
        self.state = Lock(state)
    }

    /// Writes the offers that have not expired to the store's file, by replacing it; does nothing for a store in memory. Blocks while writing.
    ///
    /// Only the user may read the file, because it reveals which hosts were visited. A symbolic link in its place is replaced.
    ///
    /// - Throws: the system's error if the file can't be written.
    public func save() throws {
        guard let file else { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try PrivateFile.replace(file.path, with: encoder.encode(entries))
    }

    /// The offers that have not expired, by host and port.
    package var entries: [Entry] {
        let now = Date()
        let entries = state.withLock { $0.entries.values.filter { $0.expirationDate > now } }
        return entries.sorted { ($0.host, $0.port) < ($1.host, $1.port) }
    }

    /// Forgets all offers, and which alternatives could not be reached.
    public func removeAll() { state.withLock { $0 = State() } }

    /// Forgets the offers that hold for one network only, and which alternatives could not be reached: call it after a change of the network
    /// (RFC 7838, section 2.2).
    package func networkDidChange() {
        state.withLock { state in
            state.entries = state.entries.filter(\.value.isPersistent)
            state.broken = [:]
        }
    }

    // MARK: For transfers

    /// The alternative for a host; `nil` if there is none to be tried.
    func alternative(for host: RouteTarget, at now: Date) -> RouteTarget? {
        state.withLock { state in
            guard let entry = state.entries[host] else { return nil }
            guard entry.expirationDate > now else {
                state.entries[host] = nil
                return nil
            }
            let alternative = RouteTarget(host: entry.alternativeHost, port: entry.alternativePort)
            guard let end = state.broken[alternative] else { return alternative }
            guard end <= now else { return nil }
            state.broken[alternative] = nil
            return alternative
        }
    }

    /// Records that no connection to an alternative could be made.
    func failed(_ alternative: RouteTarget, at now: Date) {
        state.withLock { state in
            if state.broken.count >= Self.capacity { state.broken.removeAll() }
            state.broken[alternative] = now + Self.brokenTime
        }
    }

    /// Records what a response of a host offers; a field replaces the host's earlier offer.
    func received(_ field: String, from host: RouteTarget, at now: Date) {
        switch AlternativeOffer(field, host: host) {
        case .invalid: break
        case .clear: state.withLock { $0.entries[host] = nil }
        case .http3(let target, let lifetime, let isPersistent):
            let entry = Entry(
                host: host.host, port: host.port, alternativeHost: target.host, alternativePort: target.port,
                expirationDate: now + TimeInterval(min(lifetime, Self.longestLifetime)), isPersistent: isPersistent)
            state.withLock { state in
                if state.entries[host] == nil, state.entries.count >= Self.capacity,
                    let first = state.entries.min(by: { $0.value.expirationDate < $1.value.expirationDate })
                {
                    state.entries[first.key] = nil
                }
                state.entries[host] = entry
            }
        }
    }

    package var comparisonKey: ObjectIdentifier { ObjectIdentifier(self) }
}

/// The value of a field `Alt-Svc` (RFC 7838, section 3), as far as it concerns HTTP/3.
enum AlternativeOffer: Equatable {
    /// Not a valid value: ignored.
    case invalid
    /// No alternative with HTTP/3: `clear`, a lifetime of 0, or other protocols only.
    case clear
    case http3(RouteTarget, lifetime: Int, isPersistent: Bool)

    init(_ field: String, host: RouteTarget) {
        self = .clear
        if field.trimmingBlanks == "clear" { return }
        let offers = FieldParser.members(of: field)
        if offers.isEmpty { self = .invalid }
        for offer in offers {
            let parameters = FieldParser.members(of: offer, separator: ";").map(Self.pair)
            guard let (protocolName, authority) = parameters.first ?? nil else {
                self = .invalid
                return
            }
            guard protocolName == "h3" else { continue }
            guard let target = host.moved(to: authority) else {
                self = .invalid
                return
            }
            let values = parameters.dropFirst().compactMap { $0 }
            let lifetime = values.last { $0.0.lowercased() == "ma" }.map { Int($0.1) ?? ($0.1.isAllDigits ? .max : 0) } ?? 86_400
            guard lifetime > 0 else { return }
            // The first one is the host's preference.
            self = .http3(target, lifetime: lifetime, isPersistent: values.contains { $0.0.lowercased() == "persist" && $0.1 == "1" })
            return
        }
    }

    /// The name and the value of `name=value` or `name="value"`.
    private static func pair(_ text: Substring) -> (Substring, String)? {
        let (name, argument) = FieldParser.pair(text)
        guard let argument, !name.isEmpty, !argument.isEmpty, !argument.hasBytePrefix("\"") else { return nil }
        return (name, argument)
    }
}
