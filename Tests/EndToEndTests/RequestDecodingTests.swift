// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewJSON
import CurlewTestSupport
import Dispatch
import Foundation
import Testing

/// The decoder, passed to requests.
@Suite(.timeLimit(.minutes(1)))
struct RequestDecodingTests {
    private struct User: Decodable, Equatable, Sendable { var firstName: String }

    private let server: LoopbackServer
    private let manager: SessionManager
    private let decoder: FastJSONDecoder

    init() throws {
        server = try LoopbackServer { request, _ in
            request.path == "/user" ? .ok(#"{"first_name": "Ada"}"#, type: "application/json") : .ok("{", type: "application/json")
        }
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "json.callbacks")
        configuration.proxy = .none
        manager = SessionManager(configuration: configuration)
        var decoder = FastJSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        self.decoder = decoder
    }

    @Test func `awaits a decoded value`() async throws {
        let user = try await manager.request(server.url("/user")).validate().serializingDecodable(User.self, decoder: decoder).value
        #expect(user == User(firstName: "Ada"))
    }

    @Test func `passes a decoded value to a handler`() async {
        let response = await withTrackedContinuation { continuation in
            manager.request(server.url("/user")).responseDecodable(of: User.self, decoder: decoder) { continuation.resume(returning: $0) }
        }
        #expect(response.value == User(firstName: "Ada"))
    }

    @Test func `reports the decoder's error`() async {
        let response = await manager.request(server.url("/broken")).serializingDecodable(User.self, decoder: decoder).response
        guard case .responseSerializationFailed(reason: .decodingFailed(error: let error), _) = response.error as? CurlewError else {
            Issue.record("not a failed decoding: \(String(describing: response.error))")
            return
        }
        guard case DecodingError.dataCorrupted(let context) = error else {
            Issue.record("another error: \(error)")
            return
        }
        #expect(context.debugDescription == "The given data was not valid JSON.")
    }
}
