// SPDX-License-Identifier: Apache-2.0
import Curlew
import ExampleServer

/// Downloads a file whose connection is lost halfway, and resumes it: the bytes on disk are not sent again.
@main
enum Program {
    private static let length: Int64 = 8 << 20

    static func main() async throws {
        let offsets = Log<Int64>()
        let server = try LoopbackServer { request, connection in
            let offset = request.header("Range").flatMap { Int64($0.dropFirst("bytes=".count).prefix { $0 != "-" }) } ?? 0
            offsets.append(offset)
            let isFirst = offset == 0
            var headers = [ServerField("ETag", "\"1\""), ServerField("Accept-Ranges", "bytes")]
            guard isFirst else {
                headers.append(ServerField("Content-Range", "bytes \(offset)-\(length - 1)/\(length)"))
                return ServerResponse(status: 206, headers: headers, body: .generated(length: length - offset, seed: 7, offset: offset))
            }
            let head = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\(head)\r\n")
            try connection.send(raw: GeneratedBody(seed: 7).data(count: Int(length / 2)))
            connection.close()
            return nil
        }
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let file = directory.file("archive")
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        let manager = SessionManager(configuration: configuration)

        // Each call continues where the last one, of this process or an earlier one, was interrupted.
        func download() async throws -> URL {
            try await manager.download(server.url("/archive"), to: file, options: [.resumePreviousDownload, .removePreviousFile])
                .validate().serializingURL().value
        }
        do {
            _ = try await download()
            throw TestError("The connection was not lost")
        } catch CurlewError.transferFailed(let failure) where failure.kind == .connectionLost {
            print("Interrupted: \(failure.bytesReceived) bytes received")
        }
        let url = try await download()
        let data = try Data(contentsOf: url)
        guard GeneratedBody(seed: 7).matches(data, offset: 0), Int64(data.count) == length, offsets.count == 2, offsets.elements[1] > 0
        else {
            throw TestError("\(data.count) bytes, offsets \(offsets.elements)")
        }
        print("Resumed at \(offsets.elements[1]) of \(length) bytes")
    }
}
