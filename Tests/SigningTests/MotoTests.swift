// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

/// AWS's services by another implementation: the package moto for Python, which verifies signatures with botocore.
private final class MotoServer: Sendable {
    private struct Description: Decodable {
        let port: Int
        let id: String
        let secret: String
        let role: String
    }

    private let process: ChildProcess
    let url: String
    /// Those of a user who may do everything.
    let credentials: AWSCredentials
    /// Has asked for its credentials, which the server gives to signed requests only later.
    let webIdentity: AWSWebIdentityCredentials

    /// Whether tests with it are to be run.
    static func isInstalled() async throws -> Bool {
        if Servers.areRequired { return true }
        guard ChildProcess.path(of: Servers.python) != nil else { return false }
        return try await ChildProcess(
            Servers.python, "-c",
            // Without importing it, which takes seconds.
            "from importlib import metadata; metadata.version('flask-cors'); raise SystemExit(metadata.version('moto') < '5.2.5')"
        ).finish().status == 0
    }

    /// Starts a server that verifies signatures.
    init() async throws {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("moto-server.py").path
        process = try ChildProcess(Servers.python, "-W", "ignore", script)
        guard let line = await process.readLine() else { throw TestError("the server has not started") }
        let description = try JSONDecoder().decode(Description.self, from: Data(line.utf8))
        url = "http://127.0.0.1:\(description.port)"
        credentials = AWSCredentials(accessKeyID: description.id, secretAccessKey: description.secret)
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("token".utf8), to: "token")
        webIdentity = AWSWebIdentityCredentials(
            environment: [
                "AWS_WEB_IDENTITY_TOKEN_FILE": file.path, "AWS_ROLE_ARN": description.role, "AWS_ROLE_SESSION_NAME": "session",
                "AWS_ENDPOINT_URL_STS": url,
            ], duration: .seconds(1800), timeout: .seconds(60))
        _ = try await webIdentity.credentials()
        // From now on, all requests have to be signed.
        _ = try await MotoTests.manager(nil).upload(Data("0".utf8), to: "\(url)/moto-api/reset-auth").validate().serializingData().value
    }
}

// A3.1
@Suite(.timeLimit(.minutes(2)), .enabled { try await MotoServer.isInstalled() }) struct MotoTests {
    /// One for all tests, as it takes seconds to start; its input ends with this process.
    private static let server = Task { try await MotoServer() }

    fileprivate static func manager(_ signer: AWSSigner?) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = callbackQueue
        configuration.proxy = .none
        configuration.signer = signer
        return SessionManager(configuration: configuration)
    }

    private static func manager(_ service: String, _ credentials: any AWSCredentialsProvider) -> SessionManager {
        manager(AWSSigner(AWSSignatureV4(service: service, region: "us-east-1"), credentials: credentials))
    }

    /// Keys of objects, percent-encoded as a URL has them.
    private static let keys = ["a", "a%20b/c%2Bd", "%C3%BC/%25", "a//b/../c/", "~_-.%3A%40", "a%2Fb"]

    @Test func `objects of S3 with all kinds of keys are put, fetched and listed`() async throws {
        let server = try await Self.server.value
        let manager = Self.manager("s3", server.credentials)
        _ = try await manager.request("\(server.url)/objects", method: .put).validate().serializingData().value
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("file".utf8), to: "body")
        for (index, key) in Self.keys.enumerated() {
            let url = "\(server.url)/objects/\(key)"
            let body = Data("body \(index)".utf8)
            _ = try await manager.upload(body, to: url, method: .put).validate().serializingData().value
            #expect(try await manager.request(url).validate().serializingData().value == body, "\(key)")
            let options = RequestOptions(
                signer: AWSSigner(AWSSignatureV4(service: "s3", region: "us-east-1"), credentials: server.credentials, digestsBody: false))
            _ = try await manager.upload(file, to: url, method: .put, options: options).validate().serializingData().value
            #expect(try await manager.request(url).validate().serializingData().value == Data("file".utf8), "\(key)")
        }
        let list = try await manager.request("\(server.url)/objects?list-type=2&prefix=a%20b%2F&delimiter=&max-keys=5").validate()
            .serializingString().value
        #expect(list.contains("<Key>a b/c+d</Key>") && !list.contains("<Key>a</Key>"))
    }

    @Test func `an object is uploaded in parts`() async throws {
        let server = try await Self.server.value
        let manager = Self.manager("s3", server.credentials)
        _ = try await manager.request("\(server.url)/parts", method: .put).validate().serializingData().value
        let url = "\(server.url)/parts/large%20object"
        let begun = try await manager.request("\(url)?uploads", method: .post).validate().serializingString().value
        let id = try #require(begun.components(separatedBy: "<UploadId>").last?.components(separatedBy: "<").first)
        let parts = [Data(repeating: 1, count: 5 << 20), Data("end".utf8)]
        var list = ""
        for (index, part) in parts.enumerated() {
            let response = await manager.upload(part, to: "\(url)?partNumber=\(index + 1)&uploadId=\(id)", method: .put).validate()
                .serializingData().response
            let tag = try #require(response.responseHead?.value(for: "ETag"))
            list += "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(tag)</ETag></Part>"
        }
        let body = Data("<CompleteMultipartUpload>\(list)</CompleteMultipartUpload>".utf8)
        _ = try await manager.upload(body, to: "\(url)?uploadId=\(id)", headers: [.contentType("application/xml")]).validate()
            .serializingData().value
        #expect(try await manager.request(url).validate().serializingData().value == parts[0] + parts[1])
    }

    @Test(arguments: [false, true]) func `a stream is uploaded in signed chunks`(sendsChecksum: Bool) async throws {
        let server = try await Self.server.value
        let signer = AWSSigner(AWSSignatureV4(service: "s3", region: "us-east-1"), credentials: server.credentials)
        let manager = Self.manager(signer)
        _ = try await manager.request("\(server.url)/chunks-\(sendsChecksum)", method: .put).validate().serializingData().value
        let bytes = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 >> 3) })
        let url = "\(server.url)/chunks-\(sendsChecksum)/a%20stream"
        _ = try await manager.uploadInChunks(
            {
                AsyncStream<Data> { continuation in
                    for start in stride(from: 0, to: bytes.count, by: 7000) { continuation.yield(bytes[start...].prefix(7000)) }
                    continuation.finish()
                }
            }, length: Int64(bytes.count), to: url, signer: signer, sendsChecksum: sendsChecksum
        ).validate().serializingData().value
        #expect(try await manager.request(url).validate().serializingData().value == bytes)
    }

    @Test func `a request signed with another key is refused`() async throws {
        let server = try await Self.server.value
        let wrong = AWSCredentials(accessKeyID: server.credentials.accessKeyID, secretAccessKey: "wrong")
        let response = await Self.manager("s3", wrong).request("\(server.url)/bucket", method: .put).serializingString().response
        #expect(response.responseHead?.statusCode == 403)
        #expect(try response.result.get().contains("<Code>SignatureDoesNotMatch</Code>"))
    }

    @Test func `an item of DynamoDB is put and fetched`() async throws {
        let server = try await Self.server.value
        let manager = Self.manager("dynamodb", server.credentials)
        func call(_ operation: String, _ body: String) async throws -> String {
            let headers: HTTPHeaders = [
                .contentType("application/x-amz-json-1.0"), HTTPHeader(name: "X-Amz-Target", value: "DynamoDB_20120810.\(operation)"),
            ]
            return try await manager.upload(Data(body.utf8), to: "\(server.url)/", headers: headers).validate().serializingString().value
        }
        _ = try await call(
            "CreateTable",
            """
            {"TableName": "t", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
             "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}]}
            """)
        _ = try await call("PutItem", #"{"TableName": "t", "Item": {"k": {"S": "ü"}, "v": {"N": "7"}}}"#)
        #expect(try await call("GetItem", #"{"TableName": "t", "Key": {"k": {"S": "ü"}}}"#).contains(#""N": "7""#))
    }

    @Test func `the credentials of a web identity sign`() async throws {
        let server = try await Self.server.value
        let provider = server.webIdentity
        let credentials = try await provider.credentials()
        #expect(try (1500...1900).contains(#require(credentials.expiration).timeIntervalSinceNow))
        let identity = try await Self.manager("sts", provider).request(
            "\(server.url)/", method: .post, parameters: ["Action": "GetCallerIdentity", "Version": "2011-06-15"]
        ).validate().serializingString().value
        #expect(identity.contains("<Arn>arn:aws:sts::123456789012:assumed-role/role/session</Arn>"))
        _ = try await Self.manager("s3", provider).request("\(server.url)/bucket", method: .put).validate().serializingData().value
    }

    @Test func `the credentials of an instance are found`() async throws {
        let server = try await Self.server.value
        let provider = AWSInstanceCredentials(
            environment: ["AWS_EC2_METADATA_SERVICE_ENDPOINT": server.url], timeout: .seconds(60), attempts: 1)
        let credentials = try await provider.credentials()
        #expect(credentials.accessKeyID == "test-key" && credentials.secretAccessKey == "test-secret-key")
        #expect(credentials.sessionToken == "test-session-token")
    }
}
