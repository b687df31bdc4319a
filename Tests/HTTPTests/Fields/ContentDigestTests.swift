// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct ContentDigestTests {
    private static let sha256 = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
    private static let sha512 = "YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg=="
    private static let hello = "{\"hello\": \"world\"}\n"

    @Test func `the examples of RFC 9530 are computed and verified`() {
        // A1.4: appendices B.1 and D of RFC 9530.
        let data = Data(Self.hello.utf8)
        var headers = HTTPHeaders()
        headers.contentDigest = ContentDigest(of: data)
        #expect(headers["Content-Digest"] == "sha-256=:\(Self.sha256):")
        headers.reprDigest = ContentDigest(of: data, by: [.sha512, .sha256])
        #expect(headers["Repr-Digest"] == "sha-256=:\(Self.sha256):, sha-512=:\(Self.sha512):")
        #expect(headers.contentDigest?.matches(data) == true && headers.reprDigest?.matches(data) == true)
        #expect(headers.contentDigest?.matches(data.dropLast()) == false)
        headers.contentDigest = nil
        #expect(headers.contentDigest == nil && headers.count == 1)
    }

    @Test func `all digests have to match, those of other algorithms do not count`() {
        let data = Data(Self.hello.utf8)
        func matches(_ text: String) -> Bool? { HTTPHeaders(["Content-Digest": text]).contentDigest?.matches(data) }
        #expect(matches("sha-256=:\(Self.sha256):, unknown=?1, md5=:1B2M2Y8AsgTpgAmY7PhCfg==:, sha=5") == true)
        let other = ContentDigest(of: Data(), by: [.sha512]).digests[.sha512]?.base64EncodedString() ?? ""
        #expect(matches("sha-256=:\(Self.sha256):, sha-512=:\(other):") == false)
        // A digest of the wrong size or type is none.
        #expect(matches("sha-256=:\(Self.sha256):, sha-512=:AAAA:") == true)
    }

    @Test(
        arguments: [
            "", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:", "sha-256=:AAAA:", "sha-256", "sha-256=\(sha256)", "sha-256=\"\(sha256)\"",
            "sha-512=:\(sha256):", "sha-256=:\(sha256):,", "sha-256=:\(sha256):, =", "sha-256=(:\(sha256):)", "SHA-256=:\(sha256):",
            "\u{301}sha-256=:\(sha256):", "sha-256=\u{301}:\(sha256):", "sha-256=:\(sha256):\u{37E}a",
        ] as [String])
    func `a field without a known digest, or that does not parse, is ignored`(_ text: String) {
        #expect(HTTPHeaders(["Content-Digest": text]).contentDigest == nil)
    }

    @Test func `lines of a field are one dictionary, of which the last member of a name counts`() {
        let headers: HTTPHeaders = [
            "Repr-Digest": "sha-256=:\(Data(count: 32).base64EncodedString()):", "repr-digest": "sha-256=:\(Self.sha256):",
        ]
        #expect(headers.reprDigest?.matches(Data(Self.hello.utf8)) == true)
    }
}
