// SPDX-License-Identifier: Apache-2.0
import Curlew
import Foundation

// The code of Gateway.md but for its handler, which is that of Examples/Server, region by region. `GatewayGuideTests` checks that, and runs it.

// snippet: first
struct UsersGateway {
    let upstream: String  // such as http://users.internal:8080
    let manager: SessionManager

    func forward(_ method: HTTPMethod, _ target: String, _ headers: HTTPHeaders, from client: String) async throws -> ForwardedResponse {
        guard target.hasPrefix("/") else { throw URLError(.badURL) }
        let request = ForwardedRequest(method, to: upstream + target, headers: headers, client: client)
        return try await manager.forward(request, options: RequestOptions(deadline: .seconds(30)), timeout: .seconds(5))
    }
}
// end

enum GatewayGuideSnippets {
    static func makeManager() -> SessionManager {
        // snippet: manager
        var configuration = SessionConfiguration()
        configuration.decodesContent = false  // a body in gzip passes as it is
        configuration.proxy = .none
        configuration.connectTimeout = .seconds(1)
        configuration.maximumConnectionsPerHost = 200
        let manager = SessionManager(configuration: configuration)
        // end
        return manager
    }

    static func fields(_ request: ForwardedRequest) -> ForwardedRequest {
        // snippet: fields
        var request = request
        request.clientFields = .forwarded  // `Forwarded` in place of `X-Forwarded-For`, `-Host` and `-Proto`
        request.trustsClientFields = true  // behind another gateway, whose fields are kept
        request.scheme = "https"  // by which the client has sent it
        request.gatewayName = "edge"  // in `Via`
        // end
        return request
    }

    static func upload<Body: AsyncSequence & Sendable>(_ request: ForwardedRequest, _ body: Body, _ manager: SessionManager) async throws
        -> Data where Body.Element == Data
    {
        // snippet: body
        let response = try await manager.forward(request, body: body, trailers: { ["X-Checksum": "7"] }) { interim in
            print("\(interim.statusCode)", interim.headers["Link"] ?? "-")  // 103 Early Hints
        }
        var received = Data()
        for try await piece in response.body { received += piece }
        print(response.statusCode, response.headers.count, response.trailers["X-Checksum"] ?? "-")
        // end
        return received
    }

    // snippet: status
    /// The status of a gateway that has no response to forward.
    static func status(of error: any Error) -> Int {
        guard case CurlewError.transferFailed(let failure)? = error.asCurlewError else { return 500 }
        return failure.isTimeout ? 504 : 502
    }
    // end
}
