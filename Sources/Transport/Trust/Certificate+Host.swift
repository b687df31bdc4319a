// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension Certificate {
    /// Whether the certificate is valid for a host (RFC 9525, section 6): by name, by a wildcard for the first label, or by address.
    ///
    /// The common name is ignored, and wildcards don't match addresses.
    public func isValid(forHost host: String) -> Bool {
        guard let name = URLHost.comparable(ifValid: host) else { return false }
        if let address = IPAddress(name.withoutZone) { return alternativeNames.contains(.ipAddress(address.description)) }
        return alternativeNames.contains { if case .dnsName(let pattern) = $0 { Self.covers(pattern.lowercased(), name) } else { false } }
    }

    private static func covers(_ pattern: String, _ name: String) -> Bool {
        guard pattern.hasBytePrefix("*.") else { return pattern == name && !name.isEmpty }
        // A wildcard below a single label would match a whole top-level domain.
        let base = pattern.dropFirstScalars(2)
        guard base.unicodeScalars.contains("."), !base.unicodeScalars.contains("*"), !name.unicodeScalars.contains("*") else {
            return false
        }
        guard let dot = name.unicodeScalars.firstIndex(of: "."), dot > name.startIndex else { return false }
        return name.suffix(afterScalarAt: dot) == base
    }
}

/// An IPv4 or IPv6 address.
struct IPAddress: CustomStringConvertible {
    /// The address in its shortest textual form.
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
