// SPDX-License-Identifier: Apache-2.0

// One normal form of a host, in which hosts are compared wherever they are: trust policies, cookies, HSTS, credentials, redirects, routes,
// exceptions of proxies. A second form would be a way around a rule.

extension URLHost {
    /// Returns a host in normal form, that of the connection; a text that is no host in lower case only, so that it equals no host.
    ///
    /// Percent-decoded, in ASCII by IDNA, in lower case, without the dot of the root. An IPv4 address is four decimal numbers, also where
    /// it was one of the other forms that libcurl and `inet_aton` read (`127.1`, `0x7f.1`, `2130706433`); an IPv6 address is in the form of
    /// `inet_ntop`, without brackets, and with its zone after a percent sign, unless it stands for an IPv4 address (`::ffff:127.0.0.1`). A
    /// zone is an interface by name, also where it was given by number; one that is none of this system stays as it is.
    package static func comparable(_ host: Slice<UnsafeRawBufferPointer>) -> String {
        if isPlain(host) { return host.lowercasedText }
        return parsed(String(decoding: host, as: UTF8.self)) ?? host.lowercasedText
    }

    /// The same; `nil` for a text that is no host.
    package static func comparable(ifValid host: String) -> String? {
        var host = host
        if let plain = host.withUTF8({ isPlain(UnsafeRawBufferPointer($0)[...]) ? $0.lowercasedText : nil }) {
            return plain
        }
        return parsed(host)
    }

    /// Whether a host differs from its normal form by capitals at most: an ASCII name, or an IPv4 address of four decimal numbers.
    package static func isPlain(_ host: Slice<UnsafeRawBufferPointer>) -> Bool {
        // Of the current label: its length, whether it begins with a digit, and its value while all labels are canonical numbers.
        var (length, isNumeric, value, isQuad, dots) = (0, false, 0, true, 0)
        for byte in host {
            switch byte {
            case UInt8(ascii: "."):
                guard length > 0 else { return false }
                dots += 1
                (length, value) = (0, 0)
                continue
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                if length == 0 { isNumeric = true }
                if length > 2 || length > 0 && value == 0 { isQuad = false }
                if isQuad { value = value * 10 + Int(byte & 0x0F) }
                if value > 255 { isQuad = false }
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                if length == 0 { isNumeric = false }
                isQuad = false
            default: return false
            }
            length += 1
        }
        return length > 0 && (!isNumeric || isQuad && dots == 3)
    }

    private static func parsed(_ host: String) -> String? {
        if host.utf8.contains(where: { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: ":") }) { return addressV6(host) }
        guard let name = try? normalized(host[...]) else { return nil }
        var bytes = name.utf8.map(\.asciiLowercased)
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard !labels.contains(where: \.isEmpty) else { return nil }
        return addressV4(labels) ?? String(decoding: bytes, as: UTF8.self)
    }

    /// Whether a name is an IPv4 address, in any notation, with the dot of the root.
    ///
    /// libcurl, `getaddrinfo` and a server of names look it up as a name, and it is none; others, a proxy among them, read the address.
    static func isAddressWithRoot(_ name: [UInt8]) -> Bool {
        guard name.last == UInt8(ascii: ".") else { return false }
        let bytes = name.dropLast().map(\.asciiLowercased)
        return addressV4(bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)) != nil
    }

    /// The address of one to four numbers, of which the last one takes all the bytes that are left.
    private static func addressV4(_ labels: [ArraySlice<UInt8>]) -> String? {
        guard labels.count <= 4 else { return nil }
        var address: UInt32 = 0
        for (index, label) in labels.enumerated() {
            let isLast = index == labels.count - 1
            guard let number = number(label), number <= (isLast ? UInt32.max >> UInt32(8 * index) : 255) else { return nil }
            address |= isLast ? number : number << UInt32(24 - 8 * index)
        }
        return [24, 16, 8, 0].map { String(UInt8(truncatingIfNeeded: address >> $0)) }.joined(separator: ".")
    }

    /// A number in C's notation: hexadecimal after `0x`, octal after `0`, otherwise decimal.
    private static func number(_ label: ArraySlice<UInt8>) -> UInt32? {
        let isHexadecimal = label.starts(with: "0x".utf8)
        let digits = isHexadecimal ? label.dropFirst(2) : label
        // A sign would be read too.
        guard digits.allSatisfy({ $0.hexValue != nil }) else { return nil }
        let radix = isHexadecimal ? 16 : digits.first == UInt8(ascii: "0") ? 8 : 10
        return UInt32(String(decoding: digits, as: UTF8.self), radix: radix)
    }

    private static func addressV6(_ host: String) -> String? {
        var bytes = Array(host.utf8)[...]
        if bytes.first == UInt8(ascii: "[") {
            guard bytes.last == UInt8(ascii: "]") else { return nil }
            bytes = bytes.dropFirst().dropLast()
        }
        let text = bytes.prefix { $0 != UInt8(ascii: "%") }
        var zone = bytes.dropFirst(text.count + 1)
        // In a URL the percent sign is escaped (RFC 6874).
        if zone.count > 2, zone.starts(with: "25".utf8) { zone = zone.dropFirst(2) }
        guard text.count == bytes.count || !zone.isEmpty, zone.allSatisfy(isUnreserved),
            text.allSatisfy({ $0.hexValue != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
        else { return nil }
        var address = in6_addr()
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_pton(AF_INET6, String(decoding: text, as: UTF8.self), &address) == 1 else { return nil }
        if let mapped = mappedV4(address) { return mapped }
        guard
            inet_ntop(AF_INET6, &address, &buffer, socklen_t(buffer.count)) != nil
        else { return nil }
        let name = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // Only the address of a link needs a zone; that of another one is ignored, by libcurl or by the system.
        guard !zone.isEmpty, isOfLink(address), let zone = normalZone(String(decoding: zone, as: UTF8.self)) else { return name }
        // What begins like an escaped percent sign is escaped, so that the normal form is that of itself.
        return "\(name)%\(zone.utf8.count > 2 && zone.hasBytePrefix("25") ? "25" : "")\(zone)"
    }

    /// The name of the interface that a zone stands for, by number or by any of its names, read as libcurl does: as a number if it is one.
    /// The zone itself where this system has no such interface, and `nil` for zone 0, which is none.
    private static func normalZone(_ zone: String) -> String? {
        let number = zone.isAllDigits ? UInt32(zone).flatMap { $0 < .max ? $0 : nil } : nil
        if number == 0 { return nil }
        let index = number ?? if_nametoindex(zone)
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard index > 0, if_indextoname(index, &name) != nil else { return number.map { String($0) } ?? zone }
        let text = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // Of an interface whose name can't stand in a URL the number is one form as well, and so it is of one whose name is a number.
        return text.utf8.allSatisfy { isUnreserved($0) } && UInt32(text) == nil ? text : String(index)
    }

    /// The IPv4 address that an IPv6 address stands for, and leads to (RFC 4291, section 2.5.5.2); `nil` for another one.
    private static func mappedV4(_ address: in6_addr) -> String? {
        withUnsafeBytes(of: address) { bytes in
            guard bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF else { return nil }
            return bytes[12...].map { String($0) }.joined(separator: ".")
        }
    }

    /// Whether an address is local to a link (RFC 4291, sections 2.5.6 and 2.7), unicast or multicast.
    private static func isOfLink(_ address: in6_addr) -> Bool {
        withUnsafeBytes(of: address) { bytes in
            bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80 || bytes[0] == 0xFF && bytes[1] & 0x0F == 2
        }
    }
}

extension String {
    /// The host in the form in which hosts are compared (``URLHost/comparable(_:)``).
    package var comparableHost: String {
        var host = self
        return host.withUTF8 { URLHost.comparable(UnsafeRawBufferPointer($0)[...]) }
    }
}

extension URL {
    /// The URL's host in the form in which hosts are compared (``URLHost/comparable(_:)``); `nil` without one.
    ///
    /// Taken from the text: what Foundation takes for the host differs between its types and systems, some of which decode IDNA.
    package var comparableHost: String? {
        guard let host = absoluteString.host, !host.isEmpty else { return nil }
        return String(host).comparableHost
    }
}

extension String {
    /// A host without the zone of an IPv6 address, which has a meaning on this system only (RFC 6874, section 1): neither peers nor
    /// certificates know it.
    package var withoutZone: String { unicodeScalars.contains(":") ? String(prefixScalars { $0 != "%" }) : self }
}
