// SPDX-License-Identifier: Apache-2.0
// snippet: manager
import CurlewCore
import CurlewHTTP
import CurlewSigning

func makeManager(from provider: any AWSCredentialsProvider = AWSCredentialsChain()) -> SessionManager {
    let signer = AWSSigner(AWSSignatureV4(service: "s3", region: "eu-central-1"), credentials: provider)
    var configuration = SessionConfiguration()
    configuration.signer = signer
    return SessionManager(configuration: configuration, interceptor: signer)
}
// end

// snippet: objects
func put(_ file: URL, at url: String, with manager: SessionManager) async throws {
    _ = try await manager.upload(file, to: url, method: .put).validate().serializingData().value
}

func get(_ url: String, with manager: SessionManager) async throws -> Data {
    try await manager.request(url).validate().serializingData().value
}
// end

// snippet: link
func link(to key: String, from provider: any AWSCredentialsProvider = AWSCredentialsChain()) async throws -> String {
    let signer = AWSSignatureV4(service: "s3", region: "eu-central-1")
    return try signer.presign(
        url: "https://bucket.s3.eu-central-1.amazonaws.com/\(key)", expiresIn: .seconds(900),
        credentials: try await provider.credentials(), at: Date())
}
// end

// snippet: fields
func publish(_ body: Data, to url: String, with credentials: AWSCredentials) throws -> HTTPHeaders {
    var headers: HTTPHeaders = ["Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.SendMessage"]
    let signer = AWSSignatureV4(service: "sqs", region: "eu-central-1")
    let fields = try signer.sign(
        method: "POST", url: url, headers: headers, payload: .body(body), credentials: credentials, at: Date())
    for field in fields { headers.update(field) }
    return headers
}
// end

// snippet: store
func store(
    _ rows: @escaping @Sendable () -> AsyncStream<Data>, size: Int64, at url: String, with manager: SessionManager, signer: AWSSigner
) async throws {
    _ = try await manager.uploadInChunks(rows, length: size, to: url, signer: signer, sendsChecksum: true)
        .validate().serializingData().value
}
// end

// snippet: chunks
func encoded(_ chunks: [Data], to url: String, with credentials: AWSCredentials) throws -> (fields: HTTPHeaders, body: Data) {
    let length = chunks.reduce(0) { $0 + $1.count }
    let signer = AWSSignatureV4(service: "s3", region: "eu-central-1")
    let headers: HTTPHeaders = ["Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": "\(length)"]
    let fields = try signer.sign(
        method: "PUT", url: url, headers: headers, payload: .streaming, credentials: credentials, at: Date())
    var chunkSigner = try AWSChunkSigner(signer, continuing: fields, credentials: credentials)
    var body = Data()
    for chunk in chunks { body += chunkSigner.header(of: chunk) + chunk }
    return (HTTPHeaders(Array(headers) + fields), body + (try chunkSigner.end()))
}
// end
