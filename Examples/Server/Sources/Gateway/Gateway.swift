// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTPTypes
import Hummingbird
import NIOCore

// Curlew's `Request` has Alamofire's name, and Hummingbird has one, too: this line says which one the program means.
typealias Request = Hummingbird.Request

// snippet: route
/// A context that knows the client's address.
struct GatewayContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let client: String?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        client = source.channel.remoteAddress?.ipAddress
    }
}

/// Forwards `/users` and what is below it.
func gateway(to upstream: String, by manager: SessionManager) -> Router<GatewayContext> {
    let router = Router(context: GatewayContext.self)
    for method in [.get, .head, .post, .put, .patch, .delete] as [HTTPRequest.Method] {
        router.on("users/**", method: method) { request, context in
            try await forward(request, from: context.client, to: upstream, by: manager)
        }
    }
    return router
}

private func forward(_ request: Request, from client: String?, to upstream: String, by manager: SessionManager) async throws -> Response {
    // The server could take `..` for a path that is not the route's.
    let segments = request.uri.path.split(separator: "/").map { String($0).removingPercentEncoding }
    guard let target = request.head.path, target.hasPrefix("/"), !segments.contains(".."), !segments.contains(nil) else {
        throw HTTPError(.badRequest)
    }
    var headers = HTTPHeaders(request.headers)
    headers["Host"] = request.head.authority
    let hasBody = headers["Content-Length"] != nil || headers["Transfer-Encoding"] != nil
    // The seconds that the client will wait, 30 at most. The server gets what is left of them in the same field.
    let seconds = headers["X-Deadline"].flatMap { Double($0) }.map { $0 > 0 ? min($0, 30) : 0 } ?? 30
    let options = RequestOptions(deadline: .seconds(seconds), deadlineHeader: "X-Deadline")
    let forwarded = ForwardedRequest(HTTPMethod(request.method), to: upstream + target, headers: headers, client: client)
    do {
        let response =
            hasBody
            ? try await manager.forward(forwarded, body: request.body.map(\.readableBytesView), options: options)
            : try await manager.forward(forwarded, options: options)
        return try answer(request, with: response, isOpenEnded: !hasBody && response.headers["Content-Length"] == nil)
    } catch CurlewError.transferFailed(let failure) {
        throw HTTPError(failure.isTimeout ? .gatewayTimeout : .badGateway)
    }
}

private func answer(_ request: Request, with response: ForwardedResponse, isOpenEnded: Bool) throws -> Response {
    let body = ResponseBody { writer in
        // An error closes the client's connection, so that it does not take the body for complete.
        func copy() async throws {
            for try await piece in response.body { try await writer.write(ByteBuffer(bytes: piece)) }
            try await writer.finish(HTTPFields(response.trailers))
        }
        guard isOpenEnded else { return try await copy() }
        // Ends with the client, also while the server sends nothing. Its connection is closed afterwards.
        try await request.body.consumeWithCancellationOnInboundClose { _ in try await copy() }
    }
    return Response(status: HTTPResponse.Status(code: response.statusCode), headers: try HTTPFields(response.headers), body: body)
}
// end
