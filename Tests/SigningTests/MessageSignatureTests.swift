// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

/// The signatures that RFC 9421 has published.
// A3.2
@Suite(.enabled(if: RFC9421.hasLibcrypto)) struct MessageSignatureTests {
    private struct Example: CustomTestStringConvertible {
        let name: String
        var isResponse = false
        let input: String
        let signature: String

        var testDescription: String { name }

        /// The message with the fields of the signature.
        var message: SignableMessage {
            var message = isResponse ? RFC9421.response : RFC9421.request
            message.headers.append(name: "Signature-Input", value: "\(name)=\(input)")
            message.headers.append(name: "Signature", value: "\(name)=:\(signature):")
            return message
        }
    }

    private static let examples: [Example] = [
        Example(
            name: "sig-b21", input: "();created=1618884473;keyid=\"test-key-rsa-pss\";nonce=\"b3k2pp5k7z-50gnwp.yemd\"",
            signature: "d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJM"
                + "kA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfx"
                + "VrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ"
                + "98Xw9Q=="),
        Example(
            name: "sig-b22",
            input: "(\"@authority\" \"content-digest\" \"@query-param\";name=\"Pet\");created=1618884473;keyid=\"test-key-rsa-pss\""
                + ";tag=\"header-example\"",
            signature: "LjbtqUbfmvjj5C5kr1Ugj4PmLYvx9wVjZvD9GsTT4F7GrcQEdJzgI9qHxICagShLRiLMlAJjtq6N4CDfKtjvuJyE5qH7KT8UCMkSowOB4+"
                + "ECxCmT8rtAmj/0PIXxi0A0nxKyB09RNrCQibbUjsLS/2YyFYXEu4TRJQzRw1rLEuEfY17SARYhpTlaqwZVtR8NV7+4UKkjqpcAoFqWFQh62s7Cl+H2f"
                + "jBSpqfZUJcsIk4N6wiKYd4je2U/lankenQ99PZfB4jY3I5rSV2DSBVkSFsURIjYErOs0tFTQosMTAoxk//0RoKUqiYY8Bh0aaUEb0rQl3/XaVe4bXTu"
                + "gEjHSw=="),
        Example(
            name: "sig-b23",
            input: "(\"date\" \"@method\" \"@path\" \"@query\" \"@authority\" \"content-type\" \"content-digest\" \"content-length\")"
                + ";created=1618884473;keyid=\"test-key-rsa-pss\"",
            signature: "bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb"
                + "38K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy"
                + "7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKE"
                + "gM4cUA=="),
        Example(
            name: "sig-b24", isResponse: true,
            input: "(\"@status\" \"content-type\" \"content-digest\" \"content-length\");created=1618884473;keyid=\"test-key-ecc-p256\"",
            signature: "wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw=="),
        Example(
            name: "sig-b25", input: "(\"date\" \"@authority\" \"content-type\");created=1618884473;keyid=\"test-shared-secret\"",
            signature: "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8="),
        Example(
            name: "sig-b26",
            input: "(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\");created=1618884473"
                + ";keyid=\"test-key-ed25519\"",
            signature: "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="),
    ]

    /// Accepts what is covered, with the published keys.
    private static func verifier(_ components: [MessageComponent] = []) -> MessageVerifier {
        MessageVerifier(requiring: components) { try? RFC9421.key($0) }
    }

    @Test("the signatures of appendix B.2 are verified", arguments: 0..<6) func published(number: Int) throws {
        let example = Self.examples[number]
        let found = try Self.verifier().verify(example.message, at: RFC9421.created)
        #expect(found.label == example.name)
        #expect(found.input.created == RFC9421.created)
        var changed = example.message
        changed.headers.update(name: "Content-Type", value: "text/plain")
        changed.headers.update(name: "Content-Digest", value: "sha-256=:AA==:")
        if number > 0 {
            #expect(throws: MessageSignatureError.wrongSignature) { try Self.verifier().verify(changed, at: RFC9421.created) }
        }
    }

    @Test("the published signatures by HMAC and Ed25519 are made", arguments: [4, 5]) func equal(number: Int) throws {
        let example = Self.examples[number]
        let key = try number == 4 ? RFC9421.secret() : SigningKey(pem: RFC9421.ed25519Private, id: "test-key-ed25519")
        let components: [MessageComponent] =
            number == 4
            ? ["date", "@authority", "content-type"] : ["date", .method, .path, .authority, "Content-Type", .field("Content-Length")]
        let fields = try RFC9421.request.signed(
            as: example.name, with: key, covering: SignatureInput(components, created: RFC9421.created, keyID: key.id))
        #expect(fields["Signature-Input"] == "\(example.name)=\(example.input)")
        #expect(fields["Signature"] == "\(example.name)=:\(example.signature):")
    }

    @Test("the text that is signed is that of appendix B.2.2 and B.2.3") func base() throws {
        let input = SignatureInput(
            [.authority, "content-digest", .queryParameter("Pet")], created: RFC9421.created, keyID: "test-key-rsa-pss",
            tag: "header-example")
        #expect(
            try RFC9421.request.signatureBase(input) == """
                "@authority": example.com
                "content-digest": \(RFC9421.requestDigest)
                "@query-param";name="Pet": dog
                "@signature-params": \(Self.examples[1].input)
                """)
        let whole = try Self.examples[2].message.signatures()[0].input
        #expect(
            try RFC9421.request.signatureBase(whole) == """
                "date": Tue, 20 Apr 2021 02:07:55 GMT
                "@method": POST
                "@path": /foo
                "@query": ?param=Value&Pet=dog
                "@authority": example.com
                "content-type": application/json
                "content-digest": \(RFC9421.requestDigest)
                "content-length": 18
                "@signature-params": \(Self.examples[2].input)
                """)
    }

    @Test("the signature of a response that covers its request is verified, as in section 2.4") func ofRequest() throws {
        let headers: HTTPHeaders = [
            "Content-Type": "application/json", "Content-Length": "62",
            "Content-Digest": "sha-512=:0Y6iCBzGg5rZtoXS95Ijz03mslf6KAMCloESHObfwnHJDbkkWWQz6PhhU9kxsTbARtY2PTBOzq24uJFpHsMuAg==:",
            "Signature-Input": "reqres=(\"@status\" \"content-digest\" \"content-type\" \"@authority\";req \"@method\";req \"@path\";req "
                + "\"content-digest\";req);created=1618884479;keyid=\"test-key-ecc-p256\"",
            "Signature": "reqres=:dMT/A/76ehrdBTD/2Xx8QuKV6FoyzEP/I9hdzKN8LQJLNgzU4W767HK05rx1i8meNQQgQPgQp8wq2ive3tV5Ag==:",
        ]
        let verifier = Self.verifier([.status, "content-digest", MessageComponent.method.ofRequest])
        try verifier.verify(.response(503, headers: headers, to: RFC9421.request), at: RFC9421.created)
        #expect(throws: MessageSignatureError.missingComponent("\"@authority\";req")) {
            try verifier.verify(.response(503, headers: headers), at: RFC9421.created)
        }
        let other = SignableMessage.request(.get, "https://example.com/foo", headers: RFC9421.request.headers)
        #expect(throws: MessageSignatureError.wrongSignature) {
            try verifier.verify(.response(503, headers: headers, to: other), at: RFC9421.created)
        }
    }

    @Test("the signature of a proxy that has ended TLS is verified, as in appendix B.3") func proxy() throws {
        let certificate =
            "MIIBqDCCAU6gAwIBAgIBBzAKBggqhkjOPQQDAjA6MRswGQYDVQQKDBJMZXQncyBBdXRoZW50aWNhdGUxGzAZBgNVBAMMEkxBIEludGVybWVkaWF0ZSBDQTA"
            + "eFw0yMDAxMTQyMjU1MzNaFw0yMTAxMjMyMjU1MzNaMA0xCzAJBgNVBAMMAkJDMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8YnXXfaUgmnMtOXU/IncWal"
            + "RhebrXmckC8vdgJ1p5Be5F/3YC8OthxM4+k1M6aEAEFcGzkJiNy6J84y7uzo9M6NyMHAwCQYDVR0TBAIwADAfBgNVHSMEGDAWgBRm3WjLa38lbEYCuiCPct0"
            + "ZaSED2DAOBgNVHQ8BAf8EBAMCBsAwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYDVR0RAQH/BBMwEYEPYmRjQGV4YW1wbGUuY29tMAoGCCqGSM49BAMCA0gAMEU"
            + "CIBHda/r1vaL6G3VliL4/Di6YK0Q6bMjeSkC3dFCOOB8TAiEAx/kHSB4urmiZ0NX5r5XarmPk0wmuydBVoU4hBVZ1yhk="
        let headers: HTTPHeaders = [
            "Client-Cert": ":\(certificate):",
            "Signature-Input":
                "ttrp=(\"@path\" \"@query\" \"@method\" \"@authority\" \"client-cert\");created=1618884473;keyid=\"test-key-ecc-p256\"",
            "Signature": "ttrp=:xVMHVpawaAC/0SbHrKRs9i8I3eOs5RtTMGCWXm/9nvZzoHsIg6Mce9315T6xoklyy0yzhD9ah4JHRwMLOgmizw==:",
        ]
        let message = SignableMessage.request(
            .post, "https://service.internal.example/foo?param=Value&Pet=dog", headers: headers)
        #expect(try Self.verifier(["client-cert"]).verify(message, at: RFC9421.created).label == "ttrp")
    }

    @Test("a message may be changed where the signature does not cover it, as in appendix B.4") func transformations() throws {
        func message(_ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders) -> SignableMessage {
            let signed: HTTPHeaders = [
                "Signature-Input":
                    "transform=(\"@method\" \"@path\" \"@authority\" \"accept\");created=1618884473;keyid=\"test-key-ed25519\"",
                "Signature": "transform=:ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA==:",
            ]
            return .request(method, url, headers: HTTPHeaders(Array(headers) + signed))
        }
        let url = "https://example.org/demo?name1=Value1&Name2=value2"
        let accepted = [
            message(.get, url, ["Accept": "application/json", "Accept": "*/*"]),
            message(.get, url + "&param=added", ["Accept": "application/json", "Accept": "*/*", "Accept-Language": "en"]),
            message(.get, "https://EXAMPLE.org:443/demo", ["Accept": "application/json, */*", "Referer": "https://developer.example.org"]),
        ]
        let verifier = Self.verifier([.method, .path, .authority, "accept"])
        for message in accepted { try verifier.verify(message, at: RFC9421.created) }
        let refused = [
            message(.post, "https://example.com/demo", ["Accept": "application/json", "Accept": "*/*"]),
            message(.get, url, ["Accept": "*/*", "Accept": "application/json"]),
        ]
        for message in refused {
            #expect(throws: MessageSignatureError.wrongSignature) { try verifier.verify(message, at: RFC9421.created) }
        }
    }
}
