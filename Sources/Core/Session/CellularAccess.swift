// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A network interface that requests may be bound to.
struct NetworkInterface: Sendable, Hashable {
    let name: String
    let isCellular: Bool
}

/// Lists the interfaces with a default route.
protocol InterfaceProvider: Sendable {
    /// Returns the interfaces that are up and have a default route, in the system's order of preference.
    func routedInterfaces() -> [NetworkInterface]
}

extension TransferRequest {
    /// Binds the transfer to a non-cellular interface with a default route if the system would choose a cellular one.
    ///
    /// - Throws: ``TransferFailure/Kind/cellularNotAllowed`` if only cellular interfaces have a route.
    mutating func avoidCellular(_ provider: any InterfaceProvider) throws(CurlewError) {
        allowsCellularAccess = false
        if let name = try options.nonCellularInterface(to: url, provider) { options.interface = name }
    }
}

extension StreamTransferRequest {
    /// Binds the connection to a non-cellular interface, as ``TransferRequest/avoidCellular(_:)`` does.
    mutating func avoidCellular(_ provider: any InterfaceProvider) throws(CurlewError) {
        if let name = try options.nonCellularInterface(to: url, provider) { options.interface = name }
    }
}

extension TransferOptions {
    /// The non-cellular interface to which a transfer to a URL is to be bound; `nil` if the system chooses none that is cellular.
    fileprivate func nonCellularInterface(to url: String, _ provider: any InterfaceProvider) throws(CurlewError) -> String? {
        guard let host = URL(string: url)?.comparableHost, !Self.isLoopback(host) else { return nil }
        let interfaces = provider.routedInterfaces()
        // A source address does not choose the route.
        let bound = isBoundToAddress ? nil : interface
        let chosen = bound.map { name in interfaces.first { $0.name == name } } ?? interfaces.first
        guard let chosen, chosen.isCellular else { return nil }
        guard interface == nil, let other = interfaces.first(where: { !$0.isCellular }) else {
            throw .transferFailed(
                TransferFailure(
                    kind: .cellularNotAllowed, url: url, phase: .queued,
                    message: "Cellular access is not allowed, and no other interface has a default route"))
        }
        return other.name
    }

    private static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasByteSuffix(".localhost") || host == "::1"
            || (host.hasBytePrefix("127.") && CookieRules.isAddress(host))
    }
}

/// The interfaces in the routing tables of Linux; other systems have none in this form, so that all requests are allowed there.
struct SystemInterfaces: InterfaceProvider {
    private let directory: String

    init(directory: String = "/proc/net") {
        self.directory = directory
    }

    func routedInterfaces() -> [NetworkInterface] {
        var names: [String] = []
        for name in (routes("route", Self.ipv4) + routes("ipv6_route", Self.ipv6)).map(\.name) where !names.contains(name) {
            names.append(name)
        }
        return names.map { name in NetworkInterface(name: name, isCellular: NetworkPath.isCellular(name)) }
    }

    private struct Route {
        let name: String
        let metric: Int
    }

    /// The default routes in a table, by metric, which is the system's preference.
    private func routes(_ file: String, _ route: ([Substring]) -> Route?) -> [Route] {
        guard let table = try? String(contentsOfFile: "\(directory)/\(file)", encoding: .utf8) else { return [] }
        let routes = table.splitScalars(separator: "\n").compactMap { route($0.splitScalars { $0 == " " || $0 == "\t" }) }
        return routes.enumerated().sorted { ($0.element.metric, $0.offset) < ($1.element.metric, $1.offset) }.map(\.element)
    }

    // Interface, destination, gateway, flags, references, use, metric (in decimals), mask.
    private static func ipv4(_ fields: [Substring]) -> Route? {
        guard fields.count > 7, fields[1] == "00000000", fields[7] == "00000000", isUsable(fields[3]) else { return nil }
        return Route(name: String(fields[0]), metric: Int(fields[6]) ?? 0)
    }

    // Destination, its prefix, source, its prefix, next hop, metric, references, use, flags, interface; all numbers hexadecimal.
    private static func ipv6(_ fields: [Substring]) -> Route? {
        guard fields.count > 9, fields[0].unicodeScalars.allSatisfy({ $0 == "0" }), fields[1] == "00", isUsable(fields[8]),
            fields[9] != "lo"
        else {
            return nil
        }
        return Route(name: String(fields[9]), metric: Int(fields[5], radix: 16) ?? 0)
    }

    /// Whether a route's flags have `RTF_UP`, and not `RTF_REJECT`.
    private static func isUsable(_ flags: Substring) -> Bool {
        guard let flags = Int(flags, radix: 16) else { return false }
        return flags & 0x1 != 0 && flags & 0x200 == 0
    }
}
