// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

// The wire format of NETLINK_ROUTE sockets; see netlink(7) and rtnetlink(7). Numbers are in native byte order.

/// A netlink message. Parsed without a socket, so that it can be fuzzed (`FuzzTests`, `netlink`).
struct NetlinkMessage: Equatable {
    /// The message types in use here.
    enum Kind: UInt16 {
        case error = 2
        case done = 3
        case newLink = 16
        case getLink = 18
        case newRoute = 24
        case getRoute = 26
    }

    private static let headerSize = 16

    /// `nil` for other types.
    let kind: Kind?
    let sequence: UInt32
    let payload: ArraySlice<UInt8>

    init(kind: Kind?, sequence: UInt32, payload: [UInt8]) {
        self.kind = kind
        self.sequence = sequence
        self.payload = payload[...]
    }

    /// The messages of a datagram, up to the first truncated one.
    static func messages(in bytes: [UInt8]) -> [NetlinkMessage] {
        var messages: [NetlinkMessage] = []
        var rest = bytes[...]
        while let length = rest.number(at: 0, as: UInt32.self).map(Int.init), length >= headerSize, length <= rest.count,
            let kind = rest.number(at: 4, as: UInt16.self), let sequence = rest.number(at: 8, as: UInt32.self)
        {
            let payload = Array(rest.prefix(length).dropFirst(headerSize))
            messages.append(NetlinkMessage(kind: Kind(rawValue: kind), sequence: sequence, payload: payload))
            rest = rest.dropFirst(length.padded)
        }
        return messages
    }

    /// The encoded request.
    var bytes: [UInt8] {
        let isRequest: UInt16 = 1
        let length = UInt32(Self.headerSize + payload.count)
        return [length.bytes, (kind?.rawValue ?? 0).bytes, isRequest.bytes, sequence.bytes, UInt32(0).bytes].flatMap(\.self) + payload
    }

    /// The `errno` of an error message; 0 for an acknowledgement, `nil` for other types.
    var errorNumber: Int32? {
        guard kind == .error, let number = payload.number(at: 0, as: Int32.self) else { return nil }
        // The kernel sends negative numbers; `abs(.min)` would overflow.
        return number == .min ? .max : abs(number)
    }

    /// The attributes after the payload's fixed part by type, up to the first truncated one.
    func attributes(after fixedSize: Int) -> [UInt16: ArraySlice<UInt8>] {
        var attributes: [UInt16: ArraySlice<UInt8>] = [:]
        var rest = payload.dropFirst(fixedSize.padded)
        while let length = rest.number(at: 0, as: UInt16.self).map(Int.init), length >= 4, length <= rest.count,
            let type = rest.number(at: 2, as: UInt16.self)
        {
            attributes[type] = rest.prefix(length).dropFirst(4)
            rest = rest.dropFirst(length.padded)
        }
        return attributes
    }
}

/// A route, as the kernel answers a lookup.
struct NetlinkRoute: Equatable {
    private static let fixedSize = 12
    private static let destination: UInt16 = 1
    private static let outgoingInterface: UInt16 = 4

    /// The index of the outgoing interface; `nil` for an unreachable, prohibited or blackhole route.
    let interface: UInt32?

    /// `nil` for a message of another type or a truncated one.
    init?(_ message: NetlinkMessage) {
        guard message.kind == .newRoute, let type = message.payload.number(at: 7, as: UInt8.self), message.payload.count >= Self.fixedSize
        else { return nil }
        // RTN_UNICAST and RTN_LOCAL; packets are dropped by routes of the other types.
        let isUsable = type == 1 || type == 2
        let number = message.attributes(after: Self.fixedSize)[Self.outgoingInterface]?.number(at: 0, as: UInt32.self)
        interface = isUsable ? number : nil
    }

    /// The request for the route to an address of 4 or 16 bytes.
    static func request(to address: [UInt8], sequence: UInt32) -> NetlinkMessage {
        let family = UInt8(address.count == 4 ? AF_INET : AF_INET6)
        let fixed = [family, UInt8(address.count * 8)] + [UInt8](repeating: 0, count: fixedSize - 2)
        let attribute = UInt16(4 + address.count).bytes + destination.bytes + address
        return NetlinkMessage(kind: .getRoute, sequence: sequence, payload: fixed + attribute)
    }
}

/// A network interface.
struct NetlinkLink: Equatable {
    private static let fixedSize = 16
    private static let name: UInt16 = 3
    /// `IFF_UP` and `IFF_RUNNING`: enabled, and with a carrier.
    private static let working: UInt32 = 0x41

    let index: UInt32
    let name: String
    /// Whether it is up and running.
    let isWorking: Bool

    /// `nil` for a message of another type or a truncated one.
    init?(_ message: NetlinkMessage) {
        guard message.kind == .newLink, message.payload.count >= Self.fixedSize,
            let index = message.payload.number(at: 4, as: UInt32.self),
            let flags = message.payload.number(at: 8, as: UInt32.self),
            let name = message.attributes(after: Self.fixedSize)[Self.name],
            let text = String(validating: name.prefix { $0 != 0 }, as: UTF8.self)
        else { return nil }
        self.index = index
        self.name = text
        isWorking = flags & Self.working == Self.working
    }

    /// The request for the interface with an index.
    static func request(_ index: UInt32, sequence: UInt32) -> NetlinkMessage {
        let fixed = UInt32(0).bytes + index.bytes + [UInt8](repeating: 0, count: 8)
        return NetlinkMessage(kind: .getLink, sequence: sequence, payload: fixed)
    }
}

// MARK: - Numbers

extension ArraySlice<UInt8> {
    /// The number at an offset from the start; `nil` if the slice is too short.
    fileprivate func number<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type) -> Number? {
        let size = MemoryLayout<Number>.size
        guard count >= offset + size else { return nil }
        return dropFirst(offset).prefix(size).withUnsafeBytes { $0.loadUnaligned(as: Number.self) }
    }
}

extension FixedWidthInteger {
    fileprivate var bytes: [UInt8] { Swift.withUnsafeBytes(of: self) { Array($0) } }
}

extension Int {
    /// The next multiple of four.
    fileprivate var padded: Int { (self + 3) & ~3 }
}
