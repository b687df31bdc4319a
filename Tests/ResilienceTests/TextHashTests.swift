// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

@testable import CurlewResilience

@Suite(.timeLimit(.minutes(1))) struct TextHashTests {
    @Test("equal texts have equal numbers, and those that differ in a byte, a length or an order do not", arguments: [0, 1, 7, 8, 9, 64])
    func texts(_ length: Int) {
        let hash = TextHash()
        let base = [UInt8](repeating: UInt8(ascii: "a"), count: length)
        var texts: Set<String> = [String(decoding: base, as: UTF8.self)]
        for index in base.indices {
            for byte in UInt8(1)...127 {
                var changed = base
                changed[index] = byte
                texts.insert(String(decoding: changed, as: UTF8.self))
            }
        }
        for more in 1...20 {
            texts.insert(String(repeating: "a", count: length + more))
            texts.insert(String(repeating: "\0", count: length + more))
        }
        texts.formUnion(["12345678abcdefgh", "abcdefgh12345678", "12345678", "\0\0\0\0\0\0\0\012345678", "12345678\0\0\0\0\0\0\0\0"])
        #expect(Set(texts.map { hash.number(of: $0) }).count == texts.count)
        for text in texts {
            #expect(hash.number(of: text) == hash.number(of: String(Array(text.utf8).map { Character(UnicodeScalar($0)) })))
        }
    }

    @Test("a hundred thousand URLs have numbers of their own, which differ with each value") func urls() {
        let urls = (0..<100_000).map { "https://api.example.org/users/\($0)/posts?page=\($0 % 7)" }
        let (hash, other) = (TextHash(), TextHash())
        let numbers = urls.map { hash.number(of: $0) }
        #expect(Set(numbers).count == urls.count)
        #expect(zip(urls, numbers).allSatisfy { other.number(of: $0) != $1 })
    }

    /// Coalesces as the policy does, with a hash that is the same for all texts.
    private struct CollidingLayer: TransportLayer {
        var neededSources: NeededSources { .none }

        func transport(over base: any Transport, at place: TransportLayerPlace, in context: LayerContext) -> any Transport {
            guard place == .aboveCache else { return base }
            let hash = TextHash(seed: 7, factor: 0)
            return CoalescingTransport(base, Coalescing(), PolicyReporter(Resilience(), context), hash: hash)
        }
    }

    @Test("requests whose URLs have the same hash are kept apart, whichever of them ends or is joined first", arguments: 0..<30)
    func collisions(_ seed: Int) async throws {
        #expect(TextHash(seed: 7, factor: 0).number(of: "a") == TextHash(seed: 7, factor: 0).number(of: "https://b"))
        var random = SplitMix(state: UInt64(seed))
        let session = ScriptedSession(Resilience()) { $0.layers.append(CollidingLayer()) }
        /// Of each path the exchange that may be joined, and the requests that have it.
        var open: [String: (exchange: Int, members: [DataRequest])] = [:]
        var count = 0
        for _ in 0..<60 {
            let path = "\(Int.random(in: 0..<6, using: &random))"
            switch (open[path], Int.random(in: 0..<4, using: &random)) {
            case (nil, _):
                open[path] = (count, [session.request(path)])
                count += 1
            case (let entry?, 0):
                let exchange = await session.exchange(entry.exchange)
                #expect(exchange.request.url.hasSuffix("/\(path)"))
                exchange.respond(200, [:], "\(path), \(entry.exchange)")
                for member in entry.members { #expect(try await member.serializingString().value == "\(path), \(entry.exchange)") }
                open[path] = nil
            case (let entry?, 1):
                for member in entry.members { member.cancel() }
                for member in entry.members { #expect(await fails(member, isCancelled)) }
                let exchange = await session.exchange(entry.exchange)
                #expect(await eventually { exchange.isOver })
                open[path] = nil
            default: open[path]?.members.append(session.request(path))
            }
            #expect(session.count == count)
        }
        // None is left in flight.
        for member in open.values.flatMap(\.members) {
            member.cancel()
            #expect(await fails(member, isCancelled))
        }
    }

    @Test("of many requests in flight each is joined by those equal to it, and by no other", arguments: [true, false])
    func many(_ collide: Bool) async throws {
        let session = ScriptedSession(collide ? Resilience() : Resilience(coalescing: Coalescing())) {
            if collide { $0.layers.append(CollidingLayer()) }
        }
        let firsts = (0..<100).map { session.request("\($0)") }
        let seconds = (0..<100).reversed().map { session.request("\($0)") }
        #expect(session.count == 100)
        for index in (0..<100).filter({ $0 % 3 == 0 }) + (0..<100).filter({ $0 % 3 != 0 }) {
            await session.exchange(index).respond(200, [:], "\(index)")
        }
        for (index, request) in firsts.enumerated() { #expect(try await request.serializingString().value == "\(index)") }
        for (index, request) in seconds.reversed().enumerated() { #expect(try await request.serializingString().value == "\(index)") }
        #expect(session.count == 100)
    }
}
