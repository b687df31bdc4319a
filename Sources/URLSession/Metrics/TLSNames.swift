// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// Versions and cipher suites of TLS by OpenSSL's names.
enum TLSNames {
    static func version(_ name: String) -> tls_protocol_version_t? {
        let number: UInt16? =
            switch name {
            case "TLSv1": 0x0301
            case "TLSv1.1": 0x0302
            case "TLSv1.2": 0x0303
            case "TLSv1.3": 0x0304
            default: nil
            }
        return number.flatMap { tls_protocol_version_t(rawValue: $0) }
    }

    static func suite(_ name: String) -> tls_ciphersuite_t? { suites[name].flatMap { tls_ciphersuite_t(rawValue: $0) } }

    /// The numbers of the suites that Apple's type has, as registered with IANA.
    private static let suites: [String: UInt16] = [
        "DES-CBC3-SHA": 0x000A, "AES128-SHA": 0x002F, "AES256-SHA": 0x0035, "AES128-SHA256": 0x003C, "AES256-SHA256": 0x003D,
        "AES128-GCM-SHA256": 0x009C, "AES256-GCM-SHA384": 0x009D, "TLS_AES_128_GCM_SHA256": 0x1301, "TLS_AES_256_GCM_SHA384": 0x1302,
        "TLS_CHACHA20_POLY1305_SHA256": 0x1303, "ECDHE-ECDSA-DES-CBC3-SHA": 0xC008, "ECDHE-ECDSA-AES128-SHA": 0xC009,
        "ECDHE-ECDSA-AES256-SHA": 0xC00A, "ECDHE-RSA-DES-CBC3-SHA": 0xC012, "ECDHE-RSA-AES128-SHA": 0xC013,
        "ECDHE-RSA-AES256-SHA": 0xC014, "ECDHE-ECDSA-AES128-SHA256": 0xC023, "ECDHE-ECDSA-AES256-SHA384": 0xC024,
        "ECDHE-RSA-AES128-SHA256": 0xC027, "ECDHE-RSA-AES256-SHA384": 0xC028, "ECDHE-ECDSA-AES128-GCM-SHA256": 0xC02B,
        "ECDHE-ECDSA-AES256-GCM-SHA384": 0xC02C, "ECDHE-RSA-AES128-GCM-SHA256": 0xC02F, "ECDHE-RSA-AES256-GCM-SHA384": 0xC030,
        "ECDHE-RSA-CHACHA20-POLY1305": 0xCCA8, "ECDHE-ECDSA-CHACHA20-POLY1305": 0xCCA9,
    ]
}

/// The interfaces of this machine by their addresses.
enum LocalInterface {
    /// The name of the interface with an address; `nil` if there is none, any more.
    static func name(of address: String) -> String? {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0, let first = list else { return nil }
        defer { freeifaddrs(first) }
        for entry in sequence(first: first, next: { $0.pointee.ifa_next }) {
            if let socketAddress = entry.pointee.ifa_addr, text(of: socketAddress) == address {
                return String(cString: entry.pointee.ifa_name)
            }
        }
        return nil
    }

    private static func text(of address: UnsafeMutablePointer<sockaddr>) -> String? {
        let family = Int32(address.pointee.sa_family)
        guard family == AF_INET || family == AF_INET6 else { return nil }
        let length = family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
        var host = [CChar](repeating: 0, count: 64)
        guard getnameinfo(address, socklen_t(length), &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST) == 0 else { return nil }
        // Without the zone of a link-local address.
        let bytes = host.prefix { $0 != 0 && $0 != CChar(UInt8(ascii: "%")) }.map { UInt8(bitPattern: $0) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
