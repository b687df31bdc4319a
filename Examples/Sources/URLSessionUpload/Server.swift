// SPDX-License-Identifier: Apache-2.0
import DemoServer

/// A server that takes uploads, in the same process.
final class UploadServer: Sendable {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer { request, _ in
            switch request.path {
            case "/moved": .redirect(to: "/stream", status: 307)
            case "/stream": .ok("\(request.body.count) bytes")
            case "/form":
                ServerResponse(status: 201, body: .data(Data(Self.names(in: request.body).joined(separator: ", ").utf8)))
            default: .status(404)
            }
        }
    }

    var url: URL { server.url }

    func stop() { server.stop() }

    /// The names of a form's fields.
    private static func names(in body: Data) -> [String] {
        String(decoding: body, as: UTF8.self).components(separatedBy: "; name=\"").dropFirst().compactMap {
            $0.components(separatedBy: "\"").first
        }
    }
}
