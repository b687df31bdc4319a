// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// Mirrors a site in this process, whose connections are cut in the middle of large files, twice: the second time nothing comes.
@main
enum Program {
    static func main() async throws {
        let sizes = ["/small.txt": 2_000, "/medium.bin": 400_000, "/large.bin": 3_000_000]
        let server = try LoopbackServer(recording: false) { request, _ in
            if request.path == "/index.json" { return try .json(sizes.map { Entry(path: $0.key, size: $0.value) }) }
            guard let size = sizes[request.path] else { return .status(404) }
            let response = ServerResponse.generated(length: Int64(size), for: request)
            return size > 1_000_000 ? response.misbehaving(.cut(after: 900_000)) : response
        }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        let mirror = Mirror(site: server.url(""), folder: directory.url)
        let first = try await mirror.update { print($0) }
        let second = try await mirror.update { print($0) }
        print("\(first) files came the first time, \(second) the second")
        for (path, size) in sizes {
            let data = try Data(contentsOf: directory.file(String(path.dropFirst())))
            guard data == GeneratedBody().data(count: size) else { exit(1) }
        }
        guard first == 3, second == 0 else { exit(1) }
    }
}
