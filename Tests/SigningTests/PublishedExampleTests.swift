// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

/// The examples that AWS has published: those of S3's documentation, of 24 May 2013, and of its test suite, of 30 August 2015.
// A3.1
@Suite struct PublishedExampleTests {
    private static let signer = AWSSignatureV4(service: "s3", region: "us-east-1")
    private static let credentials = AWSCredentials(
        accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    private static let date = Date(timeIntervalSince1970: 1_369_353_600)
    private static let storageClass = HTTPHeader(name: "x-amz-storage-class", value: "REDUCED_REDUNDANCY")

    private static func sign(_ method: String, _ url: String, _ headers: HTTPHeaders, _ payload: AWSSignatureV4.Payload) throws
        -> HTTPHeaders
    {
        try signer.sign(method: method, url: url, headers: headers, payload: payload, credentials: credentials, at: date)
    }

    // MARK: S3

    @Test func `S3, GET of an object`() throws {
        let fields = try Self.sign("GET", "https://examplebucket.s3.amazonaws.com/test.txt", ["Range": "bytes=0-9"], .empty)
        #expect(
            fields["Authorization"] == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                + "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
                + "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
        #expect(fields["X-Amz-Date"] == "20130524T000000Z")
    }

    @Test func `S3, PUT of an object`() throws {
        let fields = try Self.sign(
            "PUT", "https://examplebucket.s3.amazonaws.com/test$file.text",
            [HTTPHeader(name: "Date", value: "Fri, 24 May 2013 00:00:00 GMT"), Self.storageClass],
            .body(Data("Welcome to Amazon S3.".utf8)))
        #expect(fields["X-Amz-Content-Sha256"] == "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072")
        #expect(fields["Authorization"]?.hasSuffix("=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd") == true)
    }

    @Test(
        arguments: [
            ("lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            ("max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        ] as [(String, String)])
    func `S3, GET of a bucket`(query: String, signature: String) throws {
        let fields = try Self.sign("GET", "https://examplebucket.s3.amazonaws.com/?\(query)", [:], .empty)
        #expect(fields["Authorization"]?.hasSuffix("=\(signature)") == true)
    }

    @Test func `S3, a presigned URL`() throws {
        let url = try Self.signer.presign(
            url: "https://examplebucket.s3.amazonaws.com/test.txt", expiresIn: .seconds(86_400), credentials: Self.credentials,
            at: Self.date)
        #expect(
            url == "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
                + "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z"
                + "&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
                + "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
    }

    // MARK: Chunks

    private static var chunks: [Data] { [65_536, 1024].map { Data(repeating: UInt8(ascii: "a"), count: $0) } }

    /// The fields of the examples in chunks.
    private static func chunked(_ others: HTTPHeaders, _ payload: AWSSignatureV4.Payload) throws -> HTTPHeaders {
        let headers: HTTPHeaders = ["Content-Encoding": "aws-chunked", "x-amz-decoded-content-length": "66560"]
        return try sign(
            "PUT", "https://s3.amazonaws.com/examplebucket/chunkObject.txt", HTTPHeaders(Array(headers) + others + [storageClass]), payload)
    }

    /// The encoded body, with a dot for each run of `a`.
    private static func body(_ fields: HTTPHeaders, trailers: HTTPHeaders = [:]) throws -> (text: String, length: Int) {
        var chunks = try AWSChunkSigner(signer, continuing: fields, credentials: credentials)
        let body = Self.chunks.reduce(Data()) { $0 + chunks.header(of: $1) + $1 } + chunks.header(of: Data())
        let whole = body + (try chunks.end(trailers: trailers))
        return (String(decoding: whole, as: UTF8.self).replacing(/aaa+/, with: "."), whole.count)
    }

    @Test func `S3, an upload in chunks`() throws {
        let fields = try Self.chunked(["Content-Length": "66824"], .streaming)
        #expect(fields["Authorization"]?.hasSuffix("=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9") == true)
        let (text, length) = try Self.body(fields)
        #expect(
            text == "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n.\r\n"
                + "400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n.\r\n"
                + "0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n")
        #expect(length == 66_824)
        #expect(AWSChunkSigner.encodedLength(of: 66_560, inChunksOf: 65_536, as: .streaming) == 66_824)
    }

    @Test func `S3, an upload in chunks with a trailer`() throws {
        let fields = try Self.chunked(["x-amz-trailer": "x-amz-checksum-crc32c"], .streamingWithTrailers)
        #expect(fields["Authorization"]?.hasSuffix("=106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e") == true)
        let (text, length) = try Self.body(fields, trailers: ["X-Amz-Checksum-Crc32c": "sOO8/Q=="])
        #expect(
            text == "10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n.\r\n"
                + "400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n.\r\n"
                + "0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n"
                + "x-amz-checksum-crc32c:sOO8/Q==\r\n"
                + "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n")
        let trailers: HTTPHeaders = ["x-amz-checksum-crc32c": "AAAAAA=="]
        #expect(
            AWSChunkSigner.encodedLength(of: 66_560, inChunksOf: 65_536, as: .streamingWithTrailers, trailers: trailers) == Int64(length))
    }

    @Test func `S3, an upload in chunks that are not signed`() throws {
        let fields = try Self.chunked(["x-amz-trailer": "x-amz-checksum-crc32c"], .unsignedStreamingWithTrailers)
        let (text, length) = try Self.body(fields, trailers: ["x-amz-checksum-crc32c": "sOO8/Q=="])
        #expect(text == "10000\r\n.\r\n400\r\n.\r\n0\r\nx-amz-checksum-crc32c:sOO8/Q==\r\n\r\n")
        let trailers: HTTPHeaders = ["x-amz-checksum-crc32c": "AAAAAA=="]
        #expect(
            AWSChunkSigner.encodedLength(of: 66_560, inChunksOf: 65_536, as: .unsignedStreamingWithTrailers, trailers: trailers)
                == Int64(length))
    }

    // MARK: The test suite

    private struct Example: CustomTestStringConvertible {
        let name: String
        var method = "GET"
        var target = "/"
        var headers: HTTPHeaders = [:]
        var body = ""
        let signature: String

        var testDescription: String { name }
    }

    private static let suite: [Example] = [
        Example(name: "get-vanilla", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Example(name: "get-relative", target: "/example/..", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Example(
            name: "get-slashes", target: "//example//", signature: "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
        Example(
            name: "get-space", target: "/example space/", signature: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
        Example(name: "get-utf8", target: "/ሴ", signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        Example(
            name: "get-vanilla-query-order-key-case", target: "/?Param2=value2&Param1=value1",
            signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Example(
            name: "get-vanilla-utf8-query", target: "/?ሴ=bar",
            signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
        Example(
            name: "get-header-key-duplicate",
            headers: ["My-Header1": "value2", "My-Header1": "value2", "My-Header1": "value1"],
            signature: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
        Example(
            name: "get-header-value-trim", headers: ["My-Header1": " value1", "My-Header2": " \"a   b   c\""],
            signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
        Example(name: "post-vanilla", method: "POST", signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Example(
            name: "post-x-www-form-urlencoded", method: "POST", headers: ["Content-Type": "application/x-www-form-urlencoded"],
            body: "Param1=value1", signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
    ]

    @Test(arguments: 0..<11) func `the test suite's signatures`(number: Int) throws {
        let example = Self.suite[number]
        let credentials = AWSCredentials(accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
        let fields = try AWSSignatureV4(service: "service", region: "us-east-1").sign(
            method: example.method, url: "https://example.amazonaws.com\(example.target)", headers: example.headers,
            payload: .body(Data(example.body.utf8)), credentials: credentials, at: Date(timeIntervalSince1970: 1_440_938_160))
        #expect(fields["Authorization"]?.hasSuffix("Signature=\(example.signature)") == true, "\(example.name): \(fields)")
    }
}
