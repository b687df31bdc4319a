// SPDX-License-Identifier: Apache-2.0
// snippet: session
import CurlewCore
import CurlewHTTP
import CurlewSigning

func makeSigningManager(key pem: String) throws -> SessionManager {
    var configuration = SessionConfiguration()
    configuration.signer = MessageSigner(try SigningKey(pem: pem, id: "client-7"))
    return SessionManager(configuration: configuration)
}
// end

// snippet: strict
func makeStrictSigner(_ key: SigningKey) -> MessageSigner {
    var signer = MessageSigner(key)
    signer.components = [.method, .authority, .path, .query, "content-digest", .queryParameter("account")]
    signer.lifetime = .seconds(60)
    signer.sendsNonce = true
    signer.tag = "payments"
    return signer
}
// end

// snippet: response
func balance(at url: String, with manager: SessionManager, serverKey: VerificationKey) async throws -> Data {
    let response = await manager.request(url, headers: ["Accept-Encoding": "identity"]).validate().serializingData().response
    let (body, head) = (try response.result.get(), response.responseHead)
    var verifier = MessageVerifier(requiring: [.status, MessageComponent.targetURI.ofRequest]) { $0 == "server" ? serverKey : nil }
    verifier.maximumAge = .seconds(60)
    let message = SignableMessage.response(head?.statusCode ?? 0, headers: head?.headers ?? [:], to: .request(.get, url))
    try verifier.verify(message, body: body)
    return body
}
// end

// snippet: deliver
func deliver(_ event: Data, id: String, to url: String, secret: String, with manager: SessionManager) async throws {
    let webhook = try StandardWebhook(secret)
    let options = RequestOptions(signer: webhook.signer(id: id, body: event))
    let policy = RetryPolicy(retryLimit: 4, retryableHTTPMethods: [.post])
    let headers: HTTPHeaders = [.contentType("application/json")]
    _ = try await manager.upload(event, to: url, method: .post, headers: headers, interceptor: policy, options: options)
        .validate().serializingData().value
}
// end

// snippet: receive
func receive(_ headers: HTTPHeaders, _ body: Data, secrets: [String]) throws -> String {
    try StandardWebhook(secrets).verify(headers, body: body).id
}
// end

// snippet: others
func receiveFromOthers(_ headers: HTTPHeaders, _ body: Data, secret: String) throws {
    try HMACWebhook(.gitHub, secrets: secret).verify(headers, body: body)
}

func makeShopWebhook(secret: String) throws -> HMACWebhook {
    let form = HMACWebhook.Form(field: "X-Shop-Hmac", encoding: .base64, timestamp: .field("X-Shop-Time"), separator: "\n")
    return try HMACWebhook(form, secrets: secret)
}
// end
