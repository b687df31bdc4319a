// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// Where the tests' handlers run: the main queue belongs to the test runner.
let callbackQueue = DispatchQueue(label: "alamofire-tests.callbacks")

/// What a handler gets, awaited: `start` gives the function it is handed to the handler.
func outcome<Value: Sendable>(_ start: (@escaping @Sendable (Value) -> Void) -> Void) async -> Value {
    await withTrackedContinuation { continuation in
        start { continuation.resume(returning: $0) }
    }
}

extension DataRequest {
    /// The response as it came.
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
    /// The response as it came.
    func plainResponse() async -> DefaultDownloadResponse {
        await outcome { response(queue: callbackQueue, completionHandler: $0) }
    }
}

/// An error of the tests' own.
struct TestError: Error, Equatable {
    let name: String

    init(_ name: String) {
        self.name = name
    }
}
