// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport

/// Takes the network down during a transfer and up again. Must run in a network namespace of its own.
struct NetworkCut {
    private static let size: Int64 = 2 << 20

    private struct Failure: Error {
        let step: String
    }

    func run() async throws {
        try Self.setLoopback("up")
        try await short()
        try await long()
    }

    /// A short outage: a transfer in flight completes afterwards, a request started meanwhile cannot connect.
    private func short() async throws {
        let gate = Gate()
        let server = try Self.makeServer(gate)
        var configuration = Probe.makeConfiguration()
        configuration.connectTimeout = .seconds(2)
        let manager = SessionManager(configuration: configuration)
        let request = manager.request(server.url("/file"))
        request.resume()
        guard await gate.arrivals() else { throw Failure(step: "half of the body") }
        try Self.setLoopback("down")
        gate.open()
        let other = await manager.request(server.url("/other")).serializingData().response
        Probe.report("unreachable", Self.kind(other.error) == .connectTimeout ? 1 : 0)
        try Self.setLoopback("up")
        let data = try await request.serializingData().value
        Probe.report("whole", data.count == Self.size && GeneratedBody().matches(data) ? 1 : 0)
        server.stop()
    }

    /// An outage longer than the idle timeout ends the transfer; the next one resumes.
    private func long() async throws {
        let gate = Gate()
        let server = try Self.makeServer(gate)
        let directory = try TemporaryDirectory()
        let file = directory.file("file")
        var configuration = Probe.makeConfiguration()
        configuration.idleTimeout = .seconds(2)
        let manager = SessionManager(configuration: configuration)
        manager.delegate.downloadTaskDidResumeAtOffset = { _, _, offset, _ in Probe.report("offset", Int(offset)) }
        let request = manager.download(server.url("/file"), to: file, options: .resumePreviousDownload)
        request.resume()
        guard await gate.arrivals() else { throw Failure(step: "half of the file") }
        // Wait until a part of the file is on disk before the network goes down.
        let part = directory.file(".file.part").path
        let hasBegun = ProcessProbe.settles {
            let size = try? FileManager.default.attributesOfItem(atPath: part)[.size] as? Int
            return (size ?? 0) > 0
        }
        guard hasBegun else { throw Failure(step: "a part of the file") }
        try Self.setLoopback("down")
        let cut = await request.serializingURL().response
        Probe.report("idleTimeout", Self.kind(cut.error) == .idleTimeout ? 1 : 0)
        Probe.report("early", FileManager.default.fileExists(atPath: file.path) ? 1 : 0)
        try Self.setLoopback("up")
        gate.open()
        _ = try await manager.download(server.url("/file"), to: file, options: .resumePreviousDownload).validate().serializingURL().value
        let data = try Data(readingFrom: file)
        Probe.report("resumed", data.count == Self.size && GeneratedBody().matches(data) ? 1 : 0)
        server.stop()
    }

    /// Sends half of a file, and the rest when the gate is open.
    private static func makeServer(_ gate: Gate) throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            let response = ServerResponse.generated(length: size, for: request)
            guard !gate.isOpen else { return response }
            let lines = (response.headers + [ServerField("Content-Length", "\(size)")]).map { "\($0.name): \($0.value)\r\n" }.joined()
            try connection.send(raw: "HTTP/1.1 200 OK\r\n\(lines)\r\n")
            try connection.send(raw: GeneratedBody().data(count: Int(size / 2)))
            guard connection.wait(until: gate) else { return nil }
            try connection.send(raw: GeneratedBody().data(offset: size / 2, count: Int(size / 2)))
            return nil
        }
    }

    private static func kind(_ error: (any Error)?) -> TransferFailure.Kind? {
        if case .transferFailed(let failure)? = error as? CurlewError { failure.kind } else { nil }
    }

    /// Does not use Foundation's `Process`, which itself waits over the network.
    private static func setLoopback(_ state: String) throws {
        let words = ["/bin/sh", "-c", "PATH=/usr/sbin:/sbin:/usr/bin:/bin; ip link set lo \(state)"]
        let arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        var status: Int32 = 0
        guard posix_spawn(&process, words[0], nil, nil, arguments, nil) == 0, waitpid(process, &status, 0) == process, status == 0 else {
            throw Failure(step: "ip link set lo \(state)")
        }
    }
}
