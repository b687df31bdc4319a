// SPDX-License-Identifier: Apache-2.0
import Curlew
import ExampleServer

/// Downloads a file from a server that sends a quarter of it at a time: the bytes on disk are not sent again.
@main
enum Program {
    private static let length: Int64 = 8 << 20

    static func main() async throws {
        let offsets = Log<Int64>()
        let server = try LoopbackServer { request, connection in
            let offset = request.header("Range").flatMap { Int64($0.dropFirst("bytes=".count).prefix { $0 != "-" }) } ?? 0
            offsets.append(offset)
            let status = offset == 0 ? "200 OK" : "206 Partial Content\r\nContent-Range: bytes \(offset)-\(length - 1)/\(length)"
            try connection.send(raw: "HTTP/1.1 \(status)\r\nContent-Length: \(length - offset)\r\nETag: \"1\"\r\n\r\n")
            let bytes = GeneratedBody(seed: 7).data(count: Int(length)).dropFirst(Int(offset)).prefix(Int(length / 4))
            try connection.send(raw: Data(bytes))
            connection.close()
            return nil
        }
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let file = directory.file("archive")
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        do {
            // Two retries, each of which resumes. The fourth quarter is left for the next call.
            _ = try await Archive(manager: SessionManager(configuration: configuration)).download(server.url("/archive"), to: file)
            throw TestError("The connection was not lost")
        } catch CurlewError.transferFailed(let failure) where failure.kind == .connectionLost {
            print("Interrupted at \(offsets.count) of 4 quarters")
        }
        let url = try await Archive(manager: SessionManager(configuration: configuration)).download(server.url("/archive"), to: file)
        let data = try Data(contentsOf: url)
        guard GeneratedBody(seed: 7).matches(data, offset: 0), offsets.elements == (0..<4).map({ $0 * length / 4 }) else {
            throw TestError("\(data.count) bytes, offsets \(offsets.elements)")
        }
        print("Resumed at \(offsets.elements[3]) of \(length) bytes")
    }
}
