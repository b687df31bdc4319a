// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct CertificateTests {
    private let leaf: Certificate

    init() throws {
        leaf = try #require(Certificate(pem: Data(TestCertificates.leaf.utf8)))
    }

    @Test("a certificate has its subject, issuer and validity") func fields() throws {
        #expect(leaf.subject == #"CN=www.example.org,O=Curlew\, \"Tests\"\; Zürich,C=CH"#)
        #expect(leaf.issuer == "CN=Curlew Test Intermediate,O=Curlew,C=CH")
        #expect(leaf.commonName == "www.example.org")
        #expect(leaf.serialNumber.count == 20)
        #expect(leaf.serialNumber.first == 0x7B)
        #expect(leaf.notBefore == Date(timeIntervalSince1970: 1_577_836_800))
        #expect(leaf.notAfter == Date(timeIntervalSince1970: 5_680_281_599))
    }

    @Test("a certificate has its alternative names of all types") func alternativeNames() {
        #expect(
            leaf.alternativeNames == [
                .dnsName("www.example.org"), .dnsName("*.example.net"), .ipAddress("192.0.2.1"), .ipAddress("2001:db8::1"),
                .emailAddress("root@example.org"), .uri("https://example.org/"), .other(Data([0x88, 0x03, 0x2A, 0x03, 0x04])),
            ])
    }

    @Test("a certificate has its subject's key") func publicKey() throws {
        let key = try #require(PublicKey(pem: Data(TestCertificates.leafKey.utf8)))
        #expect(leaf.publicKey == key)
        #expect(key.algorithm == "1.2.840.10045.2.1")
        #expect(PublicKey(der: key.der) == key)
        #expect(PublicKey(der: key.der + [0]) == nil)
        #expect(PublicKey(der: leaf.der) == nil)
        #expect(PublicKey(pem: Data(TestCertificates.leaf.utf8)) == nil)
        #expect(try #require(Certificate(pem: Data(TestCertificates.expired.utf8))).publicKey == key)
        #expect(try #require(Certificate(pem: Data(TestCertificates.root.utf8))).publicKey != key)
    }

    @Test("all certificates are read from text with other blocks") func pem() {
        let others = """

            -----BEGIN CERTIFICATE-----
            bm8gY2VydGlmaWNhdGU=
            -----END CERTIFICATE-----
            -----BEGIN PUBLIC KEY-----
            AAAA
            -----END PUBLIC KEY-----

            """
        let broken = "\n-----BEGIN CERTIFICATE-----\nAAAA"
        let text = "Words\r\n" + TestCertificates.root.replacing("\n", with: "\r\n") + others + TestCertificates.leaf + broken
        #expect(Certificate.all(inPEM: Data(text.utf8)).map(\.commonName) == ["Curlew Test Root", "www.example.org"])
        #expect(Certificate.all(inPEM: leaf.pem) == [leaf])
        #expect(Certificate(pem: Data([0xFF, 0x00, 0x0A])) == nil)
    }

    @Test(
        "a certificate is valid for the hosts in it",
        arguments: [
            ("www.example.org", true), ("WWW.Example.ORG", true), ("www.example.org.", true), ("a.example.net", true),
            ("192.0.2.1", true), ("2001:db8::1", true), ("[2001:DB8:0::1]", true),
            ("example.org", false), ("a.www.example.org", false), ("example.net", false), ("a.b.example.net", false),
            (".example.net", false), ("*.example.net", false), ("192.0.2.2", false), ("", false), (".", false),
        ])
    func host(_ host: String, _ isValid: Bool) {
        #expect(leaf.isValid(forHost: host) == isValid)
    }

    @Test("a certificate has addresses without a zone") func zone() throws {
        let identity = try CertificateAuthority().issue("fe80::1")
        let certificate = try #require(Certificate(pem: Data(identity.chain.utf8)))
        for host in ["fe80::1", "fe80::1%no-such", "[fe80::1%25no-such]"] { #expect(certificate.isValid(forHost: host)) }
        for host in ["fe80::2%no-such", "fe80::1%", "fe80::1%a/b"] { #expect(!certificate.isValid(forHost: host)) }
    }

    @Test("the common name is not a host's name") func commonName() throws {
        let root = try #require(Certificate(pem: Data(TestCertificates.root.utf8)))
        #expect(!root.isValid(forHost: "Curlew Test Root"))
    }

    @Test("names in a subject are escaped, so that they are unambiguous") func escapes() throws {
        func name(_ value: String) throws -> String {
            let string = [0x0C, UInt8(value.utf8.count)] + Array(value.utf8)
            let attribute = [0x30, UInt8(string.count + 5), 0x06, 0x03, 0x55, 0x04, 0x03] + string
            let set = [0x31, UInt8(attribute.count)] + attribute
            var reader = DERReader(([0x30, UInt8(set.count)] + set)[...])
            return try DistinguishedName(from: reader.next()).description
        }
        #expect(try name("a,O=b") == #"CN=a\,O=b"#)
        #expect(try name(" #a ") == #"CN=\ #a\ "#)
        #expect(try name("#a") == "CN=\\#a")
        #expect(try name("a\u{0}\nb") == #"CN=a\00\0ab"#)
        #expect(try name("") == "CN=")
    }

    @Test("descriptions do not contain the client's key and password") func clientCertificate() {
        var options = TLSOptions()
        options.clientCertificate = .pkcs12(Data("key material".utf8), password: "secret")
        var other = options
        other.clientCertificate = .pem(file: "/a.pem", keyFile: "/k.pem", password: "secret")
        #expect(options != other)
        for options in [options, other] {
            var dumped = ""
            dump(options, to: &dumped)
            for text in ["\(options)", String(reflecting: options), dumped, "\(String(describing: options.clientCertificate))"] {
                #expect(!text.contains("secret"))
                #expect(!text.contains("k.pem"))
                #expect(text.contains("ClientCertificate"))
            }
        }
    }
}
