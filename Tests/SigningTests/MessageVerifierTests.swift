// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

// A3.2
@Suite struct MessageVerifierTests {
    private static let now = Date(timeIntervalSince1970: 1_700_000_000)
    private static let url = "https://example.com/orders?id=7"
    private static var body: Data { Data("{\"hello\": \"world\"}".utf8) }

    private static func key(_ id: String? = "k") throws -> SigningKey { try SigningKey(secret: Array("secret of both".utf8), id: id) }

    private static func verifier(_ components: [MessageComponent] = [.method, .targetURI]) throws -> MessageVerifier {
        let key = try key().verificationKey
        return MessageVerifier(requiring: components) { $0 == "k" ? key : nil }
    }

    private static func message(
        _ components: [MessageComponent] = [.method, .targetURI, "content-digest"], created: Date? = now, expires: Date? = nil,
        keyID: String? = "k", algorithm: SignatureAlgorithm? = nil, nonce: String? = nil, tag: String? = nil, label: String = "sig1",
        in message: SignableMessage? = nil
    ) throws -> SignableMessage {
        var headers: HTTPHeaders = [:]
        headers.contentDigest = ContentDigest(of: body)
        var message = message ?? .request(.post, url, headers: headers)
        let input = SignatureInput(
            components, created: created, expires: expires, keyID: keyID, algorithm: algorithm, nonce: nonce, tag: tag)
        for field in try message.signed(as: label, with: key(), covering: input) { message.headers.update(field) }
        return message
    }

    private static func error(
        _ message: SignableMessage, _ verifier: MessageVerifier? = nil, body: Data? = nil, at date: Date = now
    ) throws -> MessageSignatureError? {
        let verifier = try verifier ?? self.verifier()
        do throws(MessageSignatureError) {
            try verifier.verify(message, body: body, at: date)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Coverage

    @Test("required components have to be covered") func coverage() throws {
        #expect(try Self.error(Self.message()) == nil)
        #expect(try Self.error(Self.message([.method])) == .notCovered("\"@target-uri\""))
        let verifier = try Self.verifier([MessageComponent.field("a").structured.inTrailers])
        let message = SignableMessage.request(.get, Self.url, trailers: ["a": "b"])
        #expect(try Self.error(Self.message([.field("a").inTrailers.structured], in: message), verifier) == nil)
        #expect(try Self.error(Self.message([.field("a").inTrailers], in: message), verifier) == .notCovered("\"a\";sf;tr"))
    }

    @Test("a body has to be covered, and to have the digest") func bodies() throws {
        let message = try Self.message()
        #expect(try Self.error(message, body: Self.body) == nil)
        #expect(try Self.error(message, body: Self.body + [0]) == .wrongDigest)
        #expect(try Self.error(message, body: Data()) == .wrongDigest)
        let uncovered = try Self.message([.method, .targetURI])
        #expect(try Self.error(uncovered, body: Self.body) == .notCovered("\"content-digest\""))
        #expect(try Self.error(uncovered, body: Data()) == nil)
        var verifier = try Self.verifier()
        verifier.requiresCoveredBody = false
        #expect(try Self.error(uncovered, verifier, body: Self.body) == nil)
        let unknown = SignableMessage.request(.post, Self.url, headers: ["Content-Digest": "md5=:AA==:"])
        #expect(try Self.error(Self.message(in: unknown), body: Self.body) == .wrongDigest)
    }

    @Test("what was changed is refused") func changes() throws {
        let message = try Self.message()
        let headers = message.headers
        #expect(try Self.error(.request(.put, Self.url, headers: headers)) == .wrongSignature)
        #expect(try Self.error(.request(.post, Self.url + "0", headers: headers)) == .wrongSignature)
        #expect(try Self.error(.request(.post, "https://other.example/orders?id=7", headers: headers)) == .wrongSignature)
        var changed = message
        changed.headers["Signature-Input"] = headers["Signature-Input"]?.replacing("1700000000", with: "1700000001")
        #expect(try Self.error(changed) == .wrongSignature)
        changed.headers["Signature-Input"] = headers["Signature-Input"]?.replacing("\"@method\" ", with: "")
        #expect(try Self.error(changed, Self.verifier([.targetURI])) == .wrongSignature)
    }

    @Test("parameters that are unknown are signed") func unknownParameters() throws {
        var message = try Self.message()
        message.headers["Signature-Input"]?.append(";other=1")
        #expect(try Self.error(message) == .wrongSignature)
    }

    // MARK: Time

    @Test(
        "a signature is accepted for its time, with the clocks' difference",
        arguments: [
            (-31, false), (-30, true), (0, true), (330, true), (331, false),
        ] as [(Int, Bool)])
    func ages(seconds: Int, isAccepted: Bool) throws {
        let error = try Self.error(Self.message(), at: Self.now.addingTimeInterval(TimeInterval(seconds)))
        #expect(error == (isAccepted ? nil : seconds < 0 ? .notYetValid(created: Self.now) : .expired))
    }

    @Test("a signature ends when it says so, and has to have a time if its age counts") func ends() throws {
        let message = try Self.message(expires: Self.now.addingTimeInterval(10))
        #expect(try Self.error(message, at: Self.now.addingTimeInterval(40)) == nil)
        #expect(try Self.error(message, at: Self.now.addingTimeInterval(41)) == .expired)
        #expect(try Self.error(Self.message(created: nil)) == .missingParameter("created"))
        var verifier = try Self.verifier()
        verifier.maximumAge = nil
        #expect(try Self.error(Self.message(created: nil), verifier) == nil)
        #expect(try Self.error(Self.message(), verifier, at: .distantFuture) == nil)
    }

    // MARK: Keys and signatures

    @Test("keys are found by their identifiers, and sign by their algorithms only") func keys() throws {
        #expect(try Self.error(Self.message(keyID: "other")) == .unknownKey(id: "other"))
        #expect(try Self.error(Self.message(keyID: nil)) == .unknownKey(id: nil))
        #expect(try Self.error(Self.message(algorithm: .hmacSHA256)) == nil)
        #expect(try Self.error(Self.message(algorithm: .ed25519)) == .wrongAlgorithm("ed25519"))
    }

    @Test("of several signatures, the one with the label or tag counts, otherwise any") func several() throws {
        let one = try Self.message(tag: "a")
        let both = try Self.message(keyID: "other", tag: "b", label: "sig2", in: one)
        #expect(try both.signatures().map(\.label) == ["sig1", "sig2"])
        var verifier = try Self.verifier()
        #expect(try verifier.verify(both, at: Self.now).label == "sig1")
        verifier.tag = "b"
        #expect(try Self.error(both, verifier) == .unknownKey(id: "other"))
        verifier.tag = "a"
        #expect(try Self.error(both, verifier) == nil)
        verifier.label = "sig2"
        #expect(try Self.error(both, verifier) == .noSignature)
        #expect(try Self.error(.request(.get, Self.url)) == .noSignature)
    }

    @Test("a signature that was seen is refused") func nonces() throws {
        var verifier = try Self.verifier()
        let seen = Lock<Set<String>>([])
        verifier.accepts = { signature in seen.withLock { $0.insert(signature.input.nonce ?? "").inserted } }
        let message = try Self.message(nonce: "n")
        #expect(try Self.error(message, verifier) == nil)
        #expect(try Self.error(message, verifier) == .refused)
    }

    @Test(
        "fields that don't parse are named",
        arguments: [
            ("sig1=(\"a\"", "sig1=:AA==:", "Signature-Input"), ("sig1=1", "sig1=:AA==:", "Signature-Input"),
            ("sig1=(a)", "sig1=:AA==:", "Signature-Input"), ("sig1=();created=\"1\"", "sig1=:AA==:", "Signature-Input"),
            ("sig1=();keyid=1", "sig1=:AA==:", "Signature-Input"), ("sig1=()", "sig1=\"a\"", "Signature"),
            ("sig1=()", "sig2=:AA==:", "Signature"),
            ("sig1=()", "", "Signature"), ("sig1=()", "sig1=:AA", "Signature"),
        ] as [(String, String, String)])
    func malformed(input: String, signature: String, field: String) throws {
        let message = SignableMessage.request(.get, Self.url, headers: ["Signature-Input": input, "Signature": signature])
        #expect(try Self.error(message) == .malformedField(field))
    }

    @Test("a signature of many components is refused, before they are put together", arguments: [(64, false), (65, true)] as [(Int, Bool)])
    func manyComponents(count: Int, isRefused: Bool) throws {
        var message = SignableMessage.request(.post, Self.url)
        let components = (0..<count).map { MessageComponent.field("x-\($0)") }
        for index in 0..<count { message.headers.append(HTTPHeader(name: "x-\(index)", value: "v")) }
        message = try Self.message(components, in: message)
        #expect(try Self.error(message, Self.verifier([])) == (isRefused ? .malformedField("Signature-Input") : nil))
    }

    @Test("a message with many signatures is refused, before they are verified") func many() throws {
        let labels = (0..<17).map { "s\($0)" }
        let message = SignableMessage.request(
            .get, Self.url,
            headers: [
                "Signature-Input": labels.map { "\($0)=()" }.joined(separator: ", "),
                "Signature": labels.map { "\($0)=:AA==:" }.joined(separator: ", "),
            ])
        #expect(try Self.error(message) == .malformedField("Signature-Input"))
    }
}
