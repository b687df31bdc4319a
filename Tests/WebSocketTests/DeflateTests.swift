// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewWebSocket

@Suite(.timeLimit(.minutes(1))) struct DeflateTests {
    private func compression(_ change: (inout WebSocketCompression) -> Void = { _ in }) -> WebSocketCompression {
        var compression = WebSocketCompression()
        change(&compression)
        return compression
    }

    @Test("the offer lists the requested parameters") func offers() {
        #expect(DeflateAgreement.offer(compression()) == "permessage-deflate; client_max_window_bits")
        let all = compression {
            $0.serverKeepsContext = false
            $0.clientKeepsContext = false
            $0.serverMaximumWindowBits = 10
            $0.clientMaximumWindowBits = 20
        }
        #expect(
            DeflateAgreement.offer(all)
                == "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=10; client_max_window_bits=15"
        )
    }

    private func agreement(_ response: String, to offer: WebSocketCompression) throws -> DeflateAgreement {
        let parsed = try #require(WebSocketExtension.parse("permessage-deflate" + response))
        return try DeflateAgreement(parsed[0].parameters, offer: offer)
    }

    @Test(
        "responses become agreements",
        arguments: [
            ("", true, true, 15, 15), ("; server_no_context_takeover", false, true, 15, 15),
            ("; client_no_context_takeover", true, false, 15, 15),
            ("; server_max_window_bits=8", true, true, 8, 15), ("; client_max_window_bits=\"9\"", true, true, 15, 9),
            (
                " ;client_max_window_bits=10; server_max_window_bits=12 ;  client_no_context_takeover;server_no_context_takeover", false,
                false, 12, 10
            ),
        ])
    func responses(_ response: String, _ serverKeeps: Bool, _ clientKeeps: Bool, _ serverBits: Int, _ clientBits: Int) throws {
        let agreement = try agreement(response, to: compression())
        #expect(agreement.serverKeepsContext == serverKeeps)
        #expect(agreement.clientKeepsContext == clientKeeps)
        #expect(agreement.serverWindowBits == serverBits)
        #expect(agreement.clientWindowBits == clientBits)
    }

    @Test(
        "invalid responses are rejected",
        arguments: [
            "; unknown", "; server_no_context_takeover=1", "; server_max_window_bits", "; client_max_window_bits",
            "; server_max_window_bits=7",
            "; server_max_window_bits=16", "; server_max_window_bits=08", "; client_max_window_bits=+9", "; client_max_window_bits=x",
            "; server_no_context_takeover; server_no_context_takeover",
        ])
    func invalidResponses(_ response: String) {
        #expect(throws: HandshakeViolation.self) { try agreement(response, to: compression()) }
    }

    @Test("required parameters must be accepted") func required() throws {
        let noContext = compression { $0.serverKeepsContext = false }
        #expect(throws: HandshakeViolation.self) { try agreement("", to: noContext) }
        #expect(try agreement("; server_no_context_takeover", to: noContext).serverKeepsContext == false)
        let small = compression { $0.serverMaximumWindowBits = 10 }
        #expect(throws: HandshakeViolation.self) { try agreement("", to: small) }
        #expect(throws: HandshakeViolation.self) { try agreement("; server_max_window_bits=11", to: small) }
        #expect(try agreement("; server_max_window_bits=9", to: small).serverWindowBits == 9)
    }

    @Test("the client's own parameters apply even if the server ignores them") func ownParameters() throws {
        let own = compression {
            $0.clientKeepsContext = false
            $0.clientMaximumWindowBits = 10
        }
        let silent = try agreement("", to: own)
        #expect(!silent.clientKeepsContext)
        #expect(silent.clientWindowBits == 10)
        #expect(try agreement("; client_max_window_bits=9", to: own).clientWindowBits == 9)
    }

    @Test("malformed extensions are rejected", arguments: ["a b", ";x", "a;", "a; =1", "a; b=", "a; b=\"c", "a; b=c d"])
    func malformed(_ value: String) {
        #expect(WebSocketExtension.parse(value) == nil)
    }

    @Test("messages round-trip under every agreement", arguments: [true, false], [9, 12, 15])
    func roundTrips(_ keeps: Bool, _ bits: Int) throws {
        var agreement = DeflateAgreement()
        agreement.serverKeepsContext = keeps
        agreement.clientKeepsContext = keeps
        agreement.serverWindowBits = bits
        agreement.clientWindowBits = bits
        let deflater = MessageDeflater(agreement, compression { $0.minimumSize = 1 })
        let inflater = MessageInflater(agreement)
        var sizes: [Int] = []
        for size in [1, 100, 100, 70_000, 70_000] {
            let message = GeneratedBody(seed: UInt64(size)).data(count: size)
            let bytes = try #require(try deflater.compress(message))
            sizes.append(bytes.count)
            var reader = MessageReader(limits: .init(), inflater: inflater)
            reader.feed(WebSocketPeer.frame(.binary, bytes, isCompressed: true))
            #expect(try reader.next() == .message(.binary(message)))
        }
        // The second message is smaller than the first, which it repeats, only if the context is kept.
        #expect((sizes[2] < sizes[1] / 2) == keeps)
    }

    @Test("small messages, and all with an unsupported window, are sent uncompressed") func uncompressed() throws {
        let deflater = MessageDeflater(DeflateAgreement(), compression())
        #expect(try deflater.compress(Data(count: 63)) == nil)
        #expect(try deflater.compress(Data(count: 64)) != nil)
        var agreement = DeflateAgreement()
        agreement.clientWindowBits = 8
        #expect(try MessageDeflater(agreement, compression()).compress(Data(count: 1000)) == nil)
    }
}
