// SPDX-License-Identifier: Apache-2.0
// snippet: first
import Curlew
import CurlewSigning

func deliver(_ event: Data, id: String, to url: String, signedBy webhook: StandardWebhook, with manager: SessionManager) async throws {
    let headers: HTTPHeaders = [.contentType("application/json"), HTTPHeader(name: "Idempotency-Key", value: "\"\(id)\"")]
    let options = RequestOptions(deadline: .seconds(60), signer: webhook.signer(id: id, body: event))
    let policy = RetryPolicy(retryLimit: 4, retryableHTTPMethods: [.post])
    _ = try await manager.upload(event, to: url, headers: headers, interceptor: policy, options: options)
        .validate().serializingData().value
}
// end
