// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// A raw TCP connection.
struct StreamStep: Step {
    let title = "A raw stream to a server that sends everything back"

    func run(on stage: Stage) async throws {
        let stream = stage.manager.stream(withHostName: "127.0.0.1", port: stage.echo.port)
        let lines = ["curlew, curlew", "over the marsh"]
        for line in lines {
            try await stream.write(Data("\(line)\n".utf8))
            Console.say("   sent \"\(line)\"")
        }
        // The server sees the end, sends what it still has, and ends too.
        stream.closeWrite()

        var received = Data()
        for try await piece in stream.bytes() { received += piece }
        try await stream.waitUntilCompleted()
        let text = String(decoding: received, as: UTF8.self)
        try check(text == lines.map { $0 + "\n" }.joined(), "\(received.count) bytes came back, the same ones")
    }
}
