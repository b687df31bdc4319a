// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

// What a socket of the family AF_NETLINK and the protocol NETLINK_ROUTE sends and receives, as described in netlink(7) and rtnetlink(7).
// Numbers are in the machine's own order of bytes.

/// A message of netlink.
struct NetlinkMessage: Equatable {
    /// What it says; other numbers are nobody's here.
    enum Kind: UInt16 {
        case error = 2
        case done = 3
        case newLink = 16
        case getLink = 18
        case newRoute = 24
        case getRoute = 26
    }

    private static let headerSize = 16

    /// `nil` for a kind that is of no interest.
    let kind: Kind?
    let sequence: UInt32
    let payload: ArraySlice<UInt8>

    init(kind: Kind?, sequence: UInt32, payload: [UInt8]) {
        self.kind = kind
        self.sequence = sequence
        self.payload = payload[...]
    }

    /// The messages in what was received at once; ends at the first that is not whole.
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

    /// The message as it is sent, to be answered.
    var bytes: [UInt8] {
        let isRequest: UInt16 = 1
        let length = UInt32(Self.headerSize + payload.count)
        return length.bytes + (kind?.rawValue ?? 0).bytes + isRequest.bytes + sequence.bytes + UInt32(0).bytes + payload
    }

    /// The error of the C library that an error message carries; 0 for an acknowledgement, `nil` for another message.
    var errorNumber: Int32? {
        guard kind == .error, let number = payload.number(at: 0, as: Int32.self) else { return nil }
        // The kernel's are negative.
        return number == .min ? .max : abs(number)
    }

    /// The attributes behind a payload's fixed part, by type; ends at the first that is not whole.
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

/// Where a route leads.
struct NetlinkRoute: Equatable {
    private static let fixedSize = 12
    private static let destination: UInt16 = 1
    private static let outgoingInterface: UInt16 = 4

    /// The number of the interface; `nil` when the route leads nowhere.
    let interface: UInt32?

    /// `nil` for another message, or a broken one.
    init?(_ message: NetlinkMessage) {
        guard message.kind == .newRoute, let type = message.payload.number(at: 7, as: UInt8.self), message.payload.count >= Self.fixedSize
        else { return nil }
        // To others, or to this machine itself; the rest are kinds of refusal.
        let leadsSomewhere = type == 1 || type == 2
        let number = message.attributes(after: Self.fixedSize)[Self.outgoingInterface]?.number(at: 0, as: UInt32.self)
        interface = leadsSomewhere ? number : nil
    }

    /// Asks for the route to an address: 4 or 16 bytes.
    static func request(to address: [UInt8], sequence: UInt32) -> NetlinkMessage {
        let family = UInt8(address.count == 4 ? AF_INET : AF_INET6)
        let fixed = [family, UInt8(address.count * 8)] + [UInt8](repeating: 0, count: fixedSize - 2)
        let attribute = UInt16(4 + address.count).bytes + destination.bytes + address
        return NetlinkMessage(kind: .getRoute, sequence: sequence, payload: fixed + attribute)
    }
}

/// An interface.
struct NetlinkLink: Equatable {
    private static let fixedSize = 16
    private static let name: UInt16 = 3
    /// `IFF_UP` and `IFF_RUNNING`: switched on, and with a carrier.
    private static let working: UInt32 = 0x41

    let index: UInt32
    let name: String
    /// Whether packets can leave by it.
    let isWorking: Bool

    /// `nil` for another message, or a broken one.
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

    /// Asks for the interface of a number.
    static func request(_ index: UInt32, sequence: UInt32) -> NetlinkMessage {
        let fixed = UInt32(0).bytes + index.bytes + [UInt8](repeating: 0, count: 8)
        return NetlinkMessage(kind: .getLink, sequence: sequence, payload: fixed)
    }
}

// MARK: - Numbers

extension ArraySlice<UInt8> {
    /// The number that begins so many bytes from the start; `nil` when it is not all there.
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
