// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@testable import CurlewCore

@Suite struct NetlinkMessageTests {
    private static func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

    private static func message(_ kind: UInt16, sequence: UInt32 = 7, length: UInt32? = nil, _ payload: [UInt8]) -> [UInt8] {
        let header = bytes(length ?? UInt32(16 + payload.count)) + bytes(kind) + bytes(UInt16(0)) + bytes(sequence) + bytes(UInt32(0))
        return header + payload + [UInt8](repeating: 0, count: (4 - payload.count % 4) % 4)
    }

    private static func attribute(_ type: UInt16, _ value: [UInt8], length: UInt16? = nil) -> [UInt8] {
        let bytes = bytes(length ?? UInt16(4 + value.count)) + bytes(type) + value
        return bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
    }

    private static func route(type: UInt8 = 1, _ attributes: [UInt8]) -> [UInt8] {
        message(24, [2, 32, 0, 0, 254, 0, 0, type, 0, 0, 0, 0] + attributes)
    }

    private static func link(flags: UInt32, _ attributes: [UInt8]) -> [UInt8] {
        message(16, [0, 0, 1, 0] + bytes(UInt32(2)) + bytes(flags) + [0, 0, 0, 0] + attributes)
    }

    private static func first(_ bytes: [UInt8]) throws -> NetlinkMessage { try #require(NetlinkMessage.messages(in: bytes).first) }

    @Test("messages in one datagram are parsed in order, with padding")
    func several() {
        let messages = NetlinkMessage.messages(in: Self.message(24, sequence: 1, [1, 2, 3]) + Self.message(99, sequence: 2, []))
        #expect(messages.map(\.kind) == [.newRoute, nil])
        #expect(messages.map(\.sequence) == [1, 2])
        #expect(messages.map { Array($0.payload) } == [[1, 2, 3], []])
    }

    @Test("a usable route has an interface, a rejecting one has none")
    func routes() throws {
        let attributes = Self.attribute(15, [1, 0, 0, 0]) + Self.attribute(1, [1, 2, 3, 4, 5]) + Self.attribute(4, Self.bytes(UInt32(3)))
        #expect(NetlinkRoute(try Self.first(Self.route(attributes)))?.interface == 3)
        #expect(NetlinkRoute(try Self.first(Self.route(type: 2, attributes)))?.interface == 3)
        let refusal = try #require(NetlinkRoute(try Self.first(Self.route(type: 7, attributes))))
        #expect(refusal.interface == nil)
        let pathless = try #require(NetlinkRoute(try Self.first(Self.route([]))))
        #expect(pathless.interface == nil)
        #expect(NetlinkRoute(try Self.first(Self.link(flags: 0, []))) == nil)
    }

    @Test("an interface works if it is up and running")
    func links() throws {
        let name = Self.attribute(3, Array("eth0\0".utf8))
        let cases: [(UInt32, Bool)] = [(0x41, true), (0x1, false), (0x40, false), (0, false), (0x1_1043, true)]
        for (flags, isWorking) in cases {
            let link = try #require(NetlinkLink(try Self.first(Self.link(flags: flags, name))))
            #expect(link.isWorking == isWorking)
            #expect(link.name == "eth0")
            #expect(link.index == 2)
        }
        #expect(NetlinkLink(try Self.first(Self.link(flags: 0x41, []))) == nil)
        #expect(NetlinkLink(try Self.first(Self.link(flags: 0x41, Self.attribute(3, [0xFF, 0xFE])))) == nil)
    }

    @Test("error messages have an errno")
    func errors() throws {
        #expect(try Self.first(Self.message(2, Self.bytes(Int32(-101)))).errorNumber == 101)
        #expect(try Self.first(Self.message(2, Self.bytes(Int32(0)))).errorNumber == 0)
        #expect(try Self.first(Self.message(2, Self.bytes(Int32.min))).errorNumber == .max)
        #expect(try Self.first(Self.message(2, [1])).errorNumber == nil)
        #expect(try Self.first(Self.message(24, Self.bytes(Int32(-101)))).errorNumber == nil)
    }

    @Test("truncated input is parsed up to the last complete message")
    func truncated() {
        let whole =
            Self.route(Self.attribute(4, Self.bytes(UInt32(3)))) + Self.link(flags: 0x41, Self.attribute(3, Array("wwan0\0".utf8)))
        for count in 0..<whole.count {
            let messages = NetlinkMessage.messages(in: Array(whole[..<count]))
            #expect(messages.count < 2)
            for message in messages { _ = (NetlinkRoute(message), NetlinkLink(message), message.errorNumber) }
        }
        #expect(NetlinkMessage.messages(in: whole).count == 2)
    }

    @Test("an invalid message length ends parsing", arguments: [0, 1, 15, 17, 1000, UInt32.max])
    func lyingMessages(_ length: UInt32) {
        #expect(NetlinkMessage.messages(in: Self.message(24, length: length, [])).isEmpty)
    }

    @Test("an invalid attribute length ends parsing", arguments: [0, 1, 3, 9, 1000, UInt16.max])
    func lyingAttributes(_ length: UInt16) throws {
        let route = try Self.first(Self.route(Self.attribute(4, Self.bytes(UInt32(3)), length: length)))
        #expect(NetlinkRoute(route)?.interface == nil)
    }

    @Test("random bytes do not crash the parser")
    func noise() {
        var generator = SystemRandomNumberGenerator()
        let kinds: [UInt16] = [2, 3, 16, 24]
        for _ in 0..<2000 {
            let noise = (0..<Int.random(in: 0...80)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            _ = NetlinkMessage.messages(in: noise)
            for message in NetlinkMessage.messages(in: Self.message(kinds.randomElement() ?? 16, noise)) {
                _ = (NetlinkRoute(message), NetlinkLink(message), message.errorNumber)
            }
        }
    }

    @Test("encoded requests can be parsed")
    func questions() throws {
        let route = try Self.first(NetlinkRoute.request(to: [1, 2, 3, 4], sequence: 9).bytes)
        #expect(route.kind == .getRoute)
        #expect(route.sequence == 9)
        #expect(route.payload.prefix(2) == [2, 32])
        #expect(route.attributes(after: 12)[1].map { Array($0) } == [1, 2, 3, 4])
        #expect(try Self.first(NetlinkLink.request(5, sequence: 1).bytes).payload.dropFirst(4).first == Self.bytes(UInt32(5)).first)
    }
}
