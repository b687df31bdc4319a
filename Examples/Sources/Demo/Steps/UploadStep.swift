// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// An upload of a file, read while it is sent.
struct UploadStep: Step {
    let title = "An upload of 50 MB from a file, with progress"

    func run(on stage: Stage) async throws {
        let size = 50_000_000
        let body = GeneratedBody(seed: 8)
        let file = try stage.directory.write(body.data(count: size), to: "upload.bin")
        let line = ProgressLine("sent")

        let response = await stage.manager
            .upload(file, to: stage.server.url("/upload"), method: .put)
            .uploadProgress { line.update($0) }
            .validate()
            .serializingDecodable(EchoReply.self)
            .response
        let reply = try response.result.get()
        line.finish(Int64(size))

        let isWhole = reply.bodyLength == Int64(size) && reply.bodyChecksum == body.checksum(count: Int64(size))
        let checksum = String(reply.bodyChecksum, radix: 16)
        try check(isWhole, "the server has counted \(reply.bodyLength) bytes with the checksum \(checksum), as in the file")
    }
}
