// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// The value passed to a handler: `start` receives the function to use as the handler.
func outcome<Value: Sendable>(_ start: (@escaping @Sendable (Value) -> Void) -> Void) async -> Value {
    await withTrackedContinuation { continuation in
        start { continuation.resume(returning: $0) }
    }
}

extension DataRequest {
    /// The response without serialization.
    func plainResponse() async -> DefaultDataResponse {
        await outcome { response(queue: callbackQueue, completionHandler: $0) }
    }

    /// The response as an echo's reply.
    func echoed() async throws -> EchoReply {
        let response = await outcome { (handler: @escaping @Sendable (DataResponse<Data>) -> Void) in
            validate().responseData(queue: callbackQueue, completionHandler: handler)
        }
        return try JSONDecoder().decode(EchoReply.self, from: response.result.unwrap())
    }
}

extension DownloadRequest {
    /// The response without serialization.
    func plainResponse() async -> DefaultDownloadResponse {
        await outcome { response(queue: callbackQueue, completionHandler: $0) }
    }
}
