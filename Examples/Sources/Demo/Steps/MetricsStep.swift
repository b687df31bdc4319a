// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// What was measured of a response.
struct MetricsStep: Step {
    let title = "What is measured of every response"

    func run(on stage: Stage) async throws {
        let response = await stage.manager.request(stage.server.url("/bytes/65536")).validate().serializingData().response
        _ = try response.result.get()
        guard let metrics = response.metrics.last else { throw Unexpected(description: "a response without metrics") }
        Console.say("   \(metrics.line)")
        try check(metrics.responseBodyBytes == 65_536, "\(metrics.responseBodyBytes) body bytes were counted")
    }
}

extension TransferMetrics {
    /// Connection, bytes and times in a line.
    fileprivate var line: String {
        let connection = "\(httpVersion?.rawValue ?? "no response") from \(remoteAddress ?? "nowhere"):\(remotePort ?? 0)"
        let sent = requestHeaderBytes + requestBodyBytes
        let received = responseHeaderBytes + responseBodyBytes
        return [
            "\(connection), \(reusedConnection ? "kept" : "new") connection", "\(sent) bytes out, \(received) in",
            "queue \(text(queueDuration))", "connect \(text(connectEnd))", "first byte \(text(responseStart))", "total \(text(total))",
        ].joined(separator: ", ")
    }

    private func text(_ duration: Duration?) -> String {
        duration?.inMilliseconds ?? "–"
    }
}
