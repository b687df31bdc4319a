// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// A large download to a file.
struct DownloadStep: Step {
    let title = "A download of 100 MB to a file, with progress"

    func run(on stage: Stage) async throws {
        let size: Int64 = 100_000_000
        let destination = stage.directory.file("downloads/large.bin")
        let line = ProgressLine("received")

        let response = await stage.manager
            .download(stage.server.url("/bytes/\(size)?seed=7"), to: destination, options: .createIntermediateDirectories)
            .downloadProgress { line.update($0) }
            .validate()
            .serializingURL()
            .response
        let file = try response.result.get()
        line.finish(size)

        Console.say("   it took \(response.timeline.requestDuration.inSeconds)")
        let checksum = try CRC32(ofFileAt: file).value
        let expected = GeneratedBody(seed: 7).checksum(count: size)
        try check(checksum == expected, "the file has the checksum \(String(checksum, radix: 16)), as on the server")
    }
}

extension CRC32 {
    /// The checksum of a file, read piece by piece.
    init(ofFileAt url: URL) throws {
        self.init()
        let file = try FileHandle(forReadingFrom: url)
        defer { try? file.close() }
        while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { update(piece) }
    }
}
