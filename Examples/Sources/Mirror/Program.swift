// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewDownloads
import DemoServer

/// Mirrors the site that is named, into a folder that exists:
///
///     mirror https://mirror.example.org/files folder [BYTES-PER-SECOND]
///
/// Without arguments it mirrors a site in this process, which cuts the connections of a large file: once, again, where nothing is
/// received, and after the site has changed.
@main
enum Program {
    static func main() async {
        do {
            let arguments = Array(CommandLine.arguments.dropFirst())
            if arguments.isEmpty { try await demonstrate() } else { try await update(arguments) }
        } catch {
            print("mirror: \(error)")
            exit(1)
        }
    }

    static func update(_ arguments: [String]) async throws {
        let limit = arguments.count == 3 ? Int64(arguments[2]) : nil
        guard arguments.count == 2 || (limit ?? 0) > 0 else {
            print("mirror SITE FOLDER [BYTES-PER-SECOND]")
            exit(64)
        }
        let mirror = Mirror(site: arguments[0], folder: URL(fileURLWithPath: arguments[1], isDirectory: true), bytesPerSecond: limit)
        let received = try await mirror.update { print($0) }
        print("\(received) files received")
    }

    static func demonstrate() async throws {
        let site = Site()
        let server = try LoopbackServer { request, _ in try site.response(to: request) }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        var mirror = Mirror(site: server.url(""), folder: directory.url)
        mirror.options.minimumSegmentSize = 500_000
        check(try await mirror.update { print($0) }, is: 3, "the first run")
        check(try await mirror.update { print($0) }, is: 0, "the second, with nothing new")
        site.change()
        check(try await mirror.update { print($0) }, is: 1, "the third, after the site has changed")
        for (path, file) in site.files {
            let data = try Data(contentsOf: directory.file(String(path.dropFirst())))
            guard data == GeneratedBody(seed: file.seed).data(count: file.size) else { exit(1) }
        }
        guard try contents(of: directory) == site.files.keys.map({ String($0.dropFirst()) }).sorted() else { exit(1) }
    }

    private static func check(_ received: Int, is expected: Int, _ run: String) {
        print("\(run): \(received) files received")
        guard received == expected else { exit(1) }
    }
}

/// A site whose connections are cut in the middle of its large file, and whose small one changes once.
private struct Site: Sendable {
    struct File: Sendable {
        let size: Int
        let seed: UInt64
        let sha256: String?
    }

    private let changes = Log<Date>()

    var files: [String: File] {
        let small =
            changes.count == 0
            ? File(size: 2_000, seed: 0, sha256: "6301b4cdd334aea0f2c88cdc2d5c7b3f1de161565585f4ce61b70afaf77347f1")
            : File(size: 2_000, seed: 1, sha256: "3b66b85f81ce34a7e0cd4c447005722656fcc3d7b4bab373eb038cbd605a950a")
        return [
            "/small.txt": small,
            "/medium.bin": File(size: 400_000, seed: 0, sha256: nil),  // recognized by its ETag
            "/large.bin": File(size: 3_000_000, seed: 0, sha256: "6b44e06f140d9dda814b99288bf7272d70011472a3710c523aa4d3b3a67d667a"),
        ]
    }

    func change() { changes.append(Date()) }

    func response(to request: ServerRequest) throws -> ServerResponse {
        if request.path == "/index.json" { return try .json(files.map { Entry(path: $0.key, sha256: $0.value.sha256) }) }
        guard let file = files[request.path] else { return .status(404) }
        let response = ServerResponse.generated(length: Int64(file.size), seed: file.seed, for: request)
        return file.size > 1_000_000 ? response.misbehaving(.cut(after: 300_000)) : response
    }
}
