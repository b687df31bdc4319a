// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewDownloads
import CurlewTestSupport
import CurlewUploads
import Dispatch

/// Performs one task in a separate process and prints measurements as lines of `name=number`. Trusts the authority of CURLEW_TEST_CA.
///
///     curlew-probe download URL FILE     downloads to a file, with the range of CURLEW_PROBE_RANGE if that is set; with 0 in
///                                        CURLEW_PROBE_ENVIRONMENT without the authorities of the environment
///     curlew-probe modes URL DIRECTORY UMASK   downloads with a umask (octal); prints the modes of the files
///     curlew-probe resume URL FILE       downloads to a file, resuming from an earlier run's partial data; prints its "offset"
///     curlew-probe upload URL FILE       uploads a file; the response's text, if it is a number, is "answer"
///     curlew-probe tus URL FILE          uploads a file to a tus server, continuing an earlier run's; prints what is "resumed" and "sent"
///     curlew-probe form URL FILE         uploads a form with a file; prints the bytes that were "written" to disk
///     curlew-probe stream URL            reads a body, waiting for a line of input every 16 MiB
///     curlew-probe sessions URL COUNT    creates, uses and releases sessions in 8 threads
///     curlew-probe together URL COUNT    sends COUNT concurrent requests; prints how many were "right"
///     curlew-probe soak URL COUNT        sends COUNT requests, 64 at a time; prints the memory after a tenth, and at the end
///     curlew-probe cancel URL COUNT      cancels COUNT requests at each stage of their lives
///     curlew-probe pause URL COUNT       makes COUNT transfers, and suspends and resumes them at random
///     curlew-probe end [URL]             makes a request, if there is a URL; after the libraries' clean-up, "made" is whether OpenSSL works
///     curlew-probe cut                   takes its network down and up again; for a network namespace of its own
///     curlew-probe cache DIRECTORY NAME  stores, reads and removes entries in a shared directory; prints how many were "wrong"
///     curlew-probe fill DIRECTORY NAME [LIMIT]   stores entries until it is killed, or fails on the file size limit
///     curlew-probe jar FILE NAME COUNT   sets cookies and hosts in shared files; prints how many were "missing"
///     curlew-probe jar-fill FILE START [LIMIT COUNT]   sets cookies, all at once, until it is killed, or COUNT times with a file size limit
///     curlew-probe request URL FILE      downloads with a request of CurlewRequests, to be killed and resumed
///     curlew-probe task DATA FILE        resumes a download task of CurlewURLSession by the data of a file; prints its "offset"
///     curlew-probe cookies URL           sends three requests of CurlewRequests, the last one without cookies
///     curlew-probe operate URL           runs an operation that requests time to end when the process is terminated
///     curlew-probe output URL FILE       runs an operation that writes to a file, to be killed
///     curlew-probe websocket URL COUNT   sends messages to an echo WebSocket
///     curlew-probe reachability HOST     reports "network" and "host" until it is killed: 0 not reachable, 1 by Ethernet, 2 by modem
@main
enum Probe {
    static func main() async {
        let arguments = CommandLine.arguments
        do {
            switch (arguments.dropFirst().first ?? "", arguments.count) {
            case ("download", 4): try await download(arguments[2], to: URL(fileURLWithPath: arguments[3]))
            case ("modes", 5):
                try await FileModes(directory: URL(fileURLWithPath: arguments[3])).report(
                    arguments[2], mask: mode_t(arguments[4], radix: 8) ?? 0)
            case ("resume", 4): try await resume(arguments[2], to: URL(fileURLWithPath: arguments[3]))
            case ("segments", 5...6):
                if arguments.count == 6 { ProcessProbe.limitFileSizes(to: Int(arguments[5]) ?? 0) }
                try await segments(arguments[2], to: URL(fileURLWithPath: arguments[3]), minimum: Int64(arguments[4]) ?? 0)
            case ("upload", 4): try await upload(URL(fileURLWithPath: arguments[3]), to: arguments[2])
            case ("tus", 4): try await resumeUpload(URL(fileURLWithPath: arguments[3]), to: arguments[2])
            case ("form", 4): try await uploadForm(URL(fileURLWithPath: arguments[3]), to: arguments[2])
            case ("stream", 3): try await stream(arguments[2])
            case ("sessions", 4): try await SessionChurn(url: arguments[2], count: Int(arguments[3]) ?? 0).run()
            case ("together", 4): try await LoadRun(url: arguments[2], count: Int(arguments[3]) ?? 0).together()
            case ("soak", 4): try await LoadRun(url: arguments[2], count: Int(arguments[3]) ?? 0).soak()
            case ("cancel", 4):
                let environment = ProcessInfo.processInfo.environment
                try await CancelRun(url: arguments[2], count: Int(arguments[3]) ?? 0, environment: environment).run()
            case ("pause", 4): try await PauseRun(url: arguments[2], count: Int(arguments[3]) ?? 0).run()
            case ("end", 2...3): try await end(after: arguments.dropFirst(2).first)
            case ("cut", 2): try await NetworkCut().run()
            case ("cache", 4...5):
                let rounds = arguments.count == 5 ? Int(arguments[4]) ?? 0 : 600
                let wrong = try CacheProbe(directory: arguments[2], capacity: 40_000).churn(rounds: rounds, name: arguments[3])
                report("wrong", wrong)
                if wrong > 0 { exit(2) }
            case ("fill", 4...5):
                if arguments.count == 5 { ProcessProbe.limitFileSizes(to: Int(arguments[4]) ?? 0) }
                try CacheProbe(directory: arguments[2], capacity: 40_000).fill(name: arguments[3])
            case ("jar", 5):
                let missing = try JarProbe(arguments[2]).churn(name: arguments[3], count: Int(arguments[4]) ?? 0)
                report("missing", missing)
                if missing > 0 { exit(2) }
            case ("jar-fill", 4): try JarProbe(arguments[2]).fill(from: Int(arguments[3]) ?? 0)
            case ("jar-fill", 6):
                ProcessProbe.limitFileSizes(to: Int(arguments[4]) ?? 0)
                try JarProbe(arguments[2]).fill(from: Int(arguments[3]) ?? 0, count: Int(arguments[5]) ?? 0)
            case ("request", 4): try await ProbeDownload(arguments[2], to: arguments[3]).response()
            case ("task", 4): try await ResumedTask.run(URL(fileURLWithPath: arguments[2]), to: URL(fileURLWithPath: arguments[3]))
            case ("cookies", 3): try await ProbeDownload.askThrice(arguments[2])
            case ("operate", 3...): try await operate(arguments[2])
            case ("output", 4): try await operate(arguments[2], to: URL(fileURLWithPath: arguments[3]))
            case ("websocket", 4): try await WebSocketEcho(url: arguments[2], count: Int(arguments[3]) ?? 0).run()
            case ("reachability", 3): try await reachability(of: arguments[2])
            default: throw Misuse()
            }
        } catch {
            // Standard error may be a file, for which a limit on the size of files counts as well.
            try? FileHandle.standardError.write(contentsOf: Data("curlew-probe: \(error)\n".utf8))
            exit(1)
        }
    }

    private struct Misuse: Error {}

    static func report(_ name: String, _ value: Int?) {
        print("\(name)=\(value ?? -1)")
        fflush(nil)
    }

    /// A configuration for a program without a main queue.
    static func makeConfiguration() -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "probe")
        configuration.proxy = .none
        configuration.tls.certificateAuthorityFile = ProcessInfo.processInfo.environment["CURLEW_TEST_CA"].flatMap { $0.isEmpty ? nil : $0 }
        configuration.tls.usesEnvironment = ProcessInfo.processInfo.environment["CURLEW_PROBE_ENVIRONMENT"] != "0"
        return configuration
    }

    /// Exit handlers run in the reverse order of their registration: this one after those of the libraries that are used below.
    private static func end(after url: String?) async throws {
        atexit { Probe.report("made", (try? CertificateAuthority()) == nil ? 0 : 1) }
        if let url {
            let manager = SessionManager(configuration: makeConfiguration())
            _ = try await manager.request(url).validate().serializingData().value
        } else {
            _ = try CertificateAuthority()
        }
        exit(0)
    }

    private static func download(_ url: String, to file: URL) async throws {
        let manager = SessionManager(configuration: makeConfiguration())
        let range = ProcessInfo.processInfo.environment["CURLEW_PROBE_RANGE"]
        let headers: HTTPHeaders? = range.flatMap { $0.isEmpty ? nil : ["Range": $0] }
        report("before", ProcessProbe.peakResidentBytes)
        _ = try await manager.download(url, headers: headers, to: file).validate().serializingURL().value
        report("peak", ProcessProbe.peakResidentBytes)
    }

    private static func resumeUpload(_ file: URL, to url: String) async throws {
        var options = ResumableUpload.Options()
        options.metadata = ["filename": file.lastPathComponent, "filetype": "application/octet-stream"]
        let manager = SessionManager(configuration: makeConfiguration())
        let response = try await manager.resumableUpload(file, to: url, options: options).response
        report("resumed", Int(response.resumed))
        report("sent", Int(response.sent))
    }

    private static func resume(_ url: String, to file: URL) async throws {
        var configuration = makeConfiguration()
        // A drill that disrupts the network must not wait long.
        configuration.idleTimeout = .seconds(6)
        let manager = SessionManager(configuration: configuration)
        manager.delegate.downloadTaskDidResumeAtOffset = { _, _, offset, _ in report("offset", Int(offset)) }
        let options: DownloadRequest.DownloadOptions = [.resumePreviousDownload, .removePreviousFile]
        _ = try await manager.download(url, to: file, options: options).validate().serializingURL().value
        report("whole", 1)
    }

    private static func segments(_ url: String, to file: URL, minimum: Int64) async throws {
        let manager = SessionManager(configuration: makeConfiguration())
        var options = SegmentedDownload.Options()
        options.minimumSegmentSize = minimum
        let result = try await manager.segmentedDownload(url, to: file, options: options).run()
        report("resumed", Int(result.resumed))
        report("received", Int(result.received))
    }

    private static func upload(_ file: URL, to url: String) async throws {
        let manager = SessionManager(configuration: makeConfiguration())
        report("before", ProcessProbe.peakResidentBytes)
        let text = try await manager.upload(file, to: url).validate().serializingString().value
        report("answer", Int(text.trimmingCharacters(in: .whitespacesAndNewlines)))
        if let reply = try? JSONDecoder().decode(EchoReply.self, from: Data(text.utf8)) {
            report("length", Int(reply.bodyLength))
            report("checksum", Int(reply.bodyChecksum))
        }
        report("peak", ProcessProbe.peakResidentBytes)
    }

    private static func uploadForm(_ file: URL, to url: String) async throws {
        var configuration = makeConfiguration()
        configuration.totalTimeout = nil
        let manager = SessionManager(configuration: configuration)
        let form = MultipartFormData()
        form.append(Data("curlew".utf8), withName: "species")
        form.append(file, withName: "sound", fileName: "sound", mimeType: "audio/ogg")
        let written = ProcessProbe.writtenBytes
        let reply = try await manager.upload(form, to: url).validate().serializingDecodable(EchoReply.self).value
        report("written", ProcessProbe.writtenBytes.flatMap { now in written.map { now - $0 } })
        report("length", Int(reply.bodyLength))
        report("announced", reply.header("Content-Length").flatMap { Int($0) })
        report("peak", ProcessProbe.peakResidentBytes)
    }

    private static func reachability(of host: String) async throws {
        guard let network = NetworkReachabilityManager(), let host = NetworkReachabilityManager(host: host) else { throw Misuse() }
        for (name, manager) in [("network", network), ("host", host)] {
            manager.listenerQueue = DispatchQueue(label: name)
            manager.listener = { status in
                switch status {
                case .unknown: report(name, -1)
                case .notReachable: report(name, 0)
                case .reachable(.ethernetOrWiFi): report(name, 1)
                case .reachable(.wwan): report(name, 2)
                }
            }
            manager.startListening()
        }
        try await Task.sleep(for: .seconds(120))
    }

    private static func stream(_ url: String) async throws {
        let manager = SessionManager(configuration: makeConfiguration())
        // A first request, so that one-time allocations are not attributed to the stream.
        _ = try await manager.request(url, method: .head).serializingData().value
        report("before", ProcessProbe.residentBytes)
        var count = 0
        var gate = 0
        var checksum = CRC32()
        for try await piece in manager.streamRequest(url).validate().bodyStream() {
            checksum.update(piece)
            count += piece.count
            guard count >= gate else { continue }
            gate += 16 << 20
            report("gate", count)
            _ = readLine()
        }
        report("length", count)
        report("checksum", Int(checksum.value))
        report("peak", ProcessProbe.peakResidentBytes)
    }
}
