// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewDownloads
import CurlewEvents
import CurlewGraphQL
import CurlewHTTP
import CurlewOperations
import CurlewRequests
import CurlewServices
import CurlewSigning
import CurlewTesting
import CurlewUploads
import CurlewWebSocket
import Foundation
import Testing

/// Public types of the layers that carry requests, URLs, header fields and secrets show no secret in their texts, nor in reflection.
@Suite(.timeLimit(.minutes(1))) struct SecretTextsTests {
    private static let secret = "s3cr3tV4lue9"
    private static let url = "https://user:\(secret)@api.example.org/a?b=1&access_token=\(secret)"
    private static let header: HTTPHeaders = ["X-Api-Key": secret, "Authorization": "Basic \(secret)"]

    private struct Login: Encodable, Sendable {
        let password = SecretTextsTests.secret
    }

    private final class Sample: BaseRequest, @unchecked Sendable {  // immutable
        private let argument: any Sendable

        init(_ argument: any Sendable) { self.argument = argument }

        override func requestUrl() -> String { SecretTextsTests.url }
        override func requestMethod() -> HTTPMethod { .post }
        override func requestArgument() -> Any? { argument }
    }

    private static func values(_ manager: SessionManager) throws -> [(name: String, value: Any)] {
        let exchange = StoredExchange(
            method: "POST", url: url, headers: header, body: Data(secret.utf8),
            outcome: .response(status: 200, headers: header, body: Data(secret.utf8), trailers: [:]))
        let redaction = CassetteRedaction(values: [secret])
        let configuration = RequestsConfiguration()
        configuration.baseUrl = url
        configuration.addUrlFilter(UrlArgumentsFilter(arguments: ["token": secret]))
        var graphQL = GraphQLConfiguration()
        graphQL.headers = header
        graphQL.subscriptionURL = url
        let serializer = HTTPRequestSerializer()
        serializer.setAuthorizationHeader(username: "user", password: secret)
        let variables = [
            "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": secret,
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/\(secret)", "AWS_CONTAINER_AUTHORIZATION_TOKEN": secret,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": url, "AWS_WEB_IDENTITY_TOKEN_FILE": "/\(secret)", "AWS_ROLE_ARN": secret,
        ]
        let chain = AWSCredentialsChain([
            AWSCredentials(accessKeyID: "id", secretAccessKey: secret, sessionToken: secret), AWSEnvironmentCredentials(variables),
            AWSContainerCredentials(environment: variables), AWSInstanceCredentials(environment: variables),
            AWSWebIdentityCredentials(environment: variables),
        ])
        return [
            ("credentials of AWS", chain), ("signer", AWSSigner(AWSSignatureV4(service: "s3", region: "a"), credentials: chain)),
            ("request with a dictionary", Sample(["password": secret, "to": url])), ("request with a value", Sample(Login())),
            ("request with values", Sample(["a": [Login()]])), ("request with JSON", Sample(#"{"password": "\#(secret)"}"#)),
            ("request with a form", Sample("user=u&password=\(secret)")), ("configuration of requests", configuration),
            ("filter", UrlArgumentsFilter(arguments: ["token": secret])),
            ("service request", AnyServiceRequest(.post, url: url, query: ["api_key": secret], header: header)),
            ("service stream request", AnyServiceStreamRequest(url: url, query: ["api_key": secret], header: header)),
            ("body of a service", HTTPData.Raw(.json, Data(secret.utf8))), ("image", HTTPData.Image(.png, Data(secret.utf8))),
            ("JSON of a service", HTTPData.JSON(Login())), ("part of a form", MultipartPart.text("password", secret)),
            ("form", HTTPData.Multipart([MultipartPart.text("password", secret)])),
            ("message to be signed", SignableMessage.request(.get, url, headers: header)),
            ("error of a signature of AWS", AWSSigningError.invalidURL("/a?access_token=\(secret)")),
            ("error of a signature", MessageSignatureError.invalidURL("/a?access_token=\(secret)")),
            ("error of events", EventStreamError.decodingFailed(data: Data(secret.utf8), error: CancellationError())),
            ("links", WebLink.parse(["<\(url)>; rel=next"])), ("query", HTTPQuery(["api_key": secret])),
            ("segmented download", manager.segmentedDownload(url, mirrors: [url], to: URL(fileURLWithPath: "/tmp/x"))),
            ("resumable upload", manager.resumableUpload(URL(fileURLWithPath: "/tmp/x"), to: url)),
            ("configuration of GraphQL", graphQL), ("GraphQL client", GraphQLClient(url, manager: manager)),
            ("GraphQL request", GraphQLRequest("{ a(t: \"\(secret)\") }", variables: ["password": secret])),
            ("file for GraphQL", GraphQLUpload(data: Data(secret.utf8), fileName: "a")),
            ("event stream", manager.eventStream(url)), ("WebSocket", manager.webSocket(url.replacing("https", with: "wss"))),
            ("operation manager", HTTPRequestOperationManager(baseURL: URL(string: url))), ("serializer", serializer),
            ("exchange", exchange), ("redaction of a cassette", redaction), ("cassette", Cassette([exchange], redaction: redaction)),
            ("key of a cache", CacheKey("GET", "k=\(secret)")), ("cookie", Cookie(name: "a", value: secret, domain: "example.org")),
        ]
    }

    @Test func `no text shows a secret`() throws {
        let manager = SessionManager(mock: MockTransport())
        defer { manager.invalidateAndCancel() }
        let bytes = Self.secret.utf8.map { "\($0)" }
        for (name, value) in try Self.values(manager) {
            var reflection = ""
            dump(value, to: &reflection)
            // The elements of bytes are lines of a dump.
            let numbers = reflection.split(separator: "\n").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "- ")) }
            #expect(!numbers.joined(separator: " ").contains(bytes.joined(separator: " ")), "\(name)")
            for text in ["\(value)", String(reflecting: value), "\([value])", reflection] {
                #expect(!text.contains(Self.secret), "\(name): \(text)")
            }
        }
    }

    @Test func `entries of a cache show no secret`() async throws {
        let cache = ResponseCache(storage: MemoryCacheStorage())
        let manager = SessionManager(mock: .text("a", type: "text/plain").header("Cache-Control", "max-age=60")) { $0.cache = cache }
        _ = await manager.request("https://api.example.org/a?access_token=\(Self.secret)").serializingData().response
        await manager.shutdown(gracePeriod: .seconds(5))
        let entries = try cache.entries()
        #expect(entries.count == 1)
        var reflection = ""
        dump(entries, to: &reflection)
        for text in ["\(entries)", String(reflecting: entries), reflection] { #expect(!text.contains(Self.secret), "\(text)") }
    }
}
