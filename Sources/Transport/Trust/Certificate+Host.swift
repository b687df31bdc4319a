// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension Certificate {
    /// Whether the certificate names a host (RFC 9525, section 6): by name, by a pattern for its first label, or by address.
    ///
    /// The common name doesn't count, and no pattern stands for an address.
    public func isValid(forHost host: String) -> Bool {
        let name = host.comparableHost
        if let address = IPAddress(name) { return alternativeNames.contains(.ipAddress(address.description)) }
        return alternativeNames.contains { if case .dnsName(let pattern) = $0 { Self.covers(pattern.lowercased(), name) } else { false } }
    }

    private static func covers(_ pattern: String, _ name: String) -> Bool {
        guard pattern.hasPrefix("*.") else { return pattern == name && !name.isEmpty }
        // A pattern for all names below a name of one label would be one for a whole top-level domain.
        let base = pattern.dropFirst(2)
        guard base.contains("."), !base.contains("*"), !name.contains("*") else { return false }
        guard let dot = name.firstIndex(of: "."), dot > name.startIndex else { return false }
        return name[name.index(after: dot)...] == base
    }
}

extension String {
    /// The name by which a host is compared: in lower case, without the brackets of an address and the dot at the end of a name.
    package var comparableHost: String {
        var name = lowercased()[...]
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        if name.hasSuffix(".") { name.removeLast() }
        return String(name)
    }
}

/// An IP address of either version.
struct IPAddress: CustomStringConvertible {
    /// The address as text in its shortest form.
    let description: String

    init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard inet_ntop(family, Array(bytes), &buffer, socklen_t(buffer.count)) != nil else { return nil }
        description = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    init?(_ text: String) {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self.init(bytes: bytes.prefix(4))
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            self.init(bytes: bytes)
        } else {
            return nil
        }
    }
}
