// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

// A3.1
@Suite struct AWSSignatureV4Tests {
    private static let credentials = AWSCredentials(accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "secret+key")
    private static let date = Date(timeIntervalSince1970: 1_369_353_600)
    private static let s3 = AWSSignatureV4(service: "s3", region: "us-east-1")
    private static let other = AWSSignatureV4(service: "sqs", region: "us-east-1")

    private static func signature(_ url: String, _ headers: HTTPHeaders = [:], by signer: AWSSignatureV4 = s3) throws -> String {
        let fields = try signer.sign(method: "GET", url: url, headers: headers, payload: .empty, credentials: credentials, at: date)
        return fields["Authorization"] ?? ""
    }

    /// Spellings of a URL that S3 sees as one.
    @Test(
        arguments: [
            ("/%7Euser/%c3%a9", "/~user/%C3%A9"), ("/a:b@c+d(e)", "/a%3Ab%40c%2Bd%28e%29"), ("/é", "/%C3%A9"), ("?a", "/?a="),
            ("/?b=1&a=%2f", "/?a=%2F&b=1"), ("/?a=b+c", "/?a=b%20c"), ("/?a=b:c", "/?a=b%3Ac"), ("/?&a=1&&b=2&", "/?a=1&b=2"),
            ("/?a=b=c", "/?a=b%3Dc"), ("/a#b?c", "/a"), ("/a?", "/a"), ("", "/"),
        ] as [(String, String)])
    func `spellings of a path and query have one signature`(one: String, other: String) throws {
        #expect(try Self.signature("https://example.org\(one)") == Self.signature("https://example.org\(other)"))
    }

    @Test(arguments: [("/a/../b", "/b"), ("/a//b", "/a/b"), ("/a%2Fb", "/a/b"), ("/a/", "/a")] as [(String, String)])
    func `S3 normalizes no path`(one: String, other: String) throws {
        #expect(try Self.signature("https://example.org\(one)") != Self.signature("https://example.org\(other)"))
    }

    @Test func `the host is that of the field, otherwise the URL's without the port of the scheme`() throws {
        let expected = try Self.signature("https://example.org/")
        #expect(try Self.signature("https://user:pass@example.org:443/") == expected)
        #expect(try Self.signature("https://other.org/", ["host": "example.org"]) == expected)
        #expect(try Self.signature("https://example.org:80/") != expected)
        #expect(try Self.signature("https://Example.org/") != expected)
    }

    @Test func `fields that are set again and fields that a proxy may change are not signed`() throws {
        let expected = try Self.signature("https://example.org/")
        let headers: HTTPHeaders = [
            "Authorization": "AWS4-HMAC-SHA256 old", "x-amz-date": "20000101T000000Z", "X-AMZ-CONTENT-SHA256": "old", "User-Agent": "x",
        ]
        #expect(try Self.signature("https://example.org/", headers) == expected)
        var signer = Self.s3
        signer.unsignedHeaders = ["Accept-Encoding"]
        #expect(try Self.signature("https://example.org/", ["accept-encoding": "gzip"], by: signer) == expected)
        #expect(try Self.signature("https://example.org/", ["Accept-Encoding": "gzip"]) != expected)
    }

    @Test func `the digest is sent to S3, and elsewhere only if it is none`() throws {
        func hash(_ signer: AWSSignatureV4, _ payload: AWSSignatureV4.Payload) throws -> String? {
            try signer.sign(
                method: "PUT", url: "https://example.org/", headers: [:], payload: payload, credentials: Self.credentials, at: Self.date
            )["X-Amz-Content-Sha256"]
        }
        #expect(try hash(Self.s3, .empty) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(try hash(Self.s3, .digest("ABCD")) == "abcd")
        #expect(try hash(Self.other, .empty) == nil)
        #expect(try hash(Self.other, .unsigned) == "UNSIGNED-PAYLOAD")
        var signer = Self.other
        signer.sendsContentHash = true
        #expect(try hash(signer, .empty) != nil)
    }

    @Test func `the clock's offset is that of the response's date`() throws {
        let offset = try #require(AWSSignatureV4.clockOffset(of: ["Date": "Fri, 24 May 2013 01:30:00 GMT"], receivedAt: Self.date))
        #expect(offset == .seconds(5400))
        #expect(AWSSignatureV4.clockOffset(of: [:], receivedAt: Self.date) == nil)
        #expect(AWSSignatureV4.clockOffset(of: ["Date": "now"], receivedAt: Self.date) == nil)
        var signer = Self.s3
        signer.clockOffset = offset
        let fields = try signer.sign(
            method: "GET", url: "https://example.org/", headers: [:], payload: .empty, credentials: Self.credentials,
            at: Self.date.addingTimeInterval(0.9))
        #expect(fields["X-Amz-Date"] == "20130524T013000Z")
        signer.clockOffset = .seconds(-1)
        #expect(try Self.signature("https://example.org/", by: signer).containsScalars(of: "/20130523/"))
    }

    // MARK: Presigned URLs

    private static func presign(_ url: String, _ headers: HTTPHeaders = [:], expiresIn time: Duration = .seconds(60)) throws -> String {
        try s3.presign(url: url, headers: headers, expiresIn: time, credentials: credentials, at: date)
    }

    @Test(arguments: [0, -1, 604_801, Int64.max] as [Int64]) func `a presigned URL is valid for a second to seven days`(seconds: Int64) {
        #expect(throws: AWSSigningError.invalidExpiration(.seconds(seconds))) {
            try Self.presign("https://example.org/", expiresIn: .seconds(seconds))
        }
    }

    @Test func `a presigned URL can be signed again`() throws {
        let url = try Self.presign("HTTPS://user@Example.ORG?b+c&a#d")
        #expect(url.hasBytePrefix("https://example.org/?b%20c=&a=&X-Amz-Algorithm="))
        #expect(try Self.presign(url) == url)
    }

    @Test func `fields and a digest of a presigned URL are signed`() throws {
        let url = try Self.presign("https://example.org/", ["Content-Type": "a/b", "User-Agent": "x"])
        #expect(url.containsScalars(of: "&X-Amz-SignedHeaders=content-type%3Bhost&"))
        let given = try Self.s3.presign(
            method: "PUT", url: "https://example.org/", payload: .digest("abcd"), credentials: Self.credentials, at: Self.date)
        let unsigned = try Self.s3.presign(method: "PUT", url: "https://example.org/", credentials: Self.credentials, at: Self.date)
        #expect(given != unsigned)
    }

    // MARK: Errors and secrets

    @Test(arguments: ["", "/a", "example.org", "https:///a", "https://example.org:x/", "mailto:a@b"])
    func `a URL without a host can't be signed`(url: String) {
        #expect(throws: AWSSigningError.invalidURL(url)) { try Self.signature(url) }
    }

    @Test func `only what was signed in chunks can be sent in chunks`() throws {
        func chunks(_ payload: AWSSignatureV4.Payload) throws -> AWSChunkSigner {
            let fields = try Self.s3.sign(
                method: "PUT", url: "https://example.org/", headers: [:], payload: payload, credentials: Self.credentials, at: Self.date)
            return try AWSChunkSigner(Self.s3, continuing: fields, credentials: Self.credentials)
        }
        #expect(throws: AWSSigningError.notChunked) { try chunks(.unsigned) }
        #expect(throws: AWSSigningError.notChunked) { try AWSChunkSigner(Self.s3, continuing: [:], credentials: Self.credentials) }
        var signer = try chunks(.streaming)
        #expect(throws: AWSSigningError.undeclaredTrailers) { try signer.end(trailers: ["x-amz-checksum-crc32c": "sOO8/Q=="]) }
        #expect("\(signer)" == "AWSChunkSigner(20130524/us-east-1/s3/aws4_request)")
        #expect(AWSChunkSigner.encodedLength(of: 0, inChunksOf: 65_536, as: .streaming) == Int64(try signer.end().count))
        #expect(AWSChunkSigner.encodedLength(of: 20, inChunksOf: 10, as: .unsignedStreamingWithTrailers) == 2 * 15 + 5)
    }

    @Test func `descriptions have no secrets`() throws {
        let credentials = AWSCredentials(
            accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "the-secret", sessionToken: "the-secret", expiration: Self.date)
        #expect("\(credentials)" == "AWSCredentials(…MPLE, expires 2013-05-24T00:00:00Z)")
        let url = try Self.s3.presign(url: "https://u:the-secret@example.org/", credentials: credentials, at: Self.date)
        let signed = try Self.s3.sign(
            method: "PUT", url: "https://example.org/", headers: [:], payload: .streaming, credentials: credentials, at: Self.date)
        let chunks = try AWSChunkSigner(Self.s3, continuing: signed, credentials: credentials)
        var texts = "\(signed)\(AWSSigningError.invalidURL(url))\(AWSSigningError.invalidURL("/?X-Amz-Signature=the-secret"))"
        dump(credentials, to: &texts)
        dump(chunks, to: &texts)
        dump(signed, to: &texts)
        dump(AWSSigningError.invalidURL("/?X-Amz-Signature=the-secret"), to: &texts)
        dump(AWSCredentialsChain([credentials, AWSEnvironmentCredentials(["AWS_SECRET_ACCESS_KEY": "the-secret"])]), to: &texts)
        #expect(!texts.containsScalars(of: "the-secret") && !texts.containsScalars(of: "AKIA"), "\(texts)")
    }
}
