// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewWebSocket
import Dispatch

/// Executes the commands of an external test kit with public API, and responds in JSON.
///
///     curlew-kit hostile  reads the requests of one case with their options; reports each one's outcome
///     curlew-kit download URL FILE    downloads to a file, resuming from an earlier process's partial data
///     curlew-kit upload URL FILE      uploads a file
///     curlew-kit many COUNT WIDTH BASE    sends requests to BASE/n1 and so on, up to WIDTH at a time
///     curlew-kit version  prints the version of libcurl in use
///     curlew-kit tls     reads one case from standard input: a URL, or a sequence of such, with TLS settings; reports whether it succeeded
///     curlew-kit autobahn URL AGENT     runs the WebSocket client through the cases of a fuzzing server
///     curlew-kit websocket-echo URL COUNT SIZE WINDOW [deflate]     measures a server's echo
@main
enum Driver {
    static func main() async {
        do {
            switch CommandLine.arguments.dropFirst() {
            case ["version"]:
                try FileHandle.standardOutput.write(contentsOf: Data("\(CurlInfo.current.version)\n".utf8))
            case ["hostile"]:
                let input = FileHandle.standardInput.readDataToEndOfFile()
                let answer = try await JSONDecoder().decode(HostileCase.self, from: input).run()
                try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(answer))
            case ["tls"]:
                let input = FileHandle.standardInput.readDataToEndOfFile()
                let answer = try await JSONDecoder().decode(TLSCase.self, from: input).run()
                try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(answer))
            case let rest where rest.count == 3 && rest.first == "download":
                try await Drills.download(CommandLine.arguments[2], to: URL(fileURLWithPath: CommandLine.arguments[3]))
            case let rest where rest.count == 3 && rest.first == "upload":
                try await Drills.upload(URL(fileURLWithPath: CommandLine.arguments[3]), to: CommandLine.arguments[2])
            case let rest where rest.count == 4 && rest.first == "many":
                try await Drills.many(
                    Int(CommandLine.arguments[2]) ?? 0, Int(CommandLine.arguments[3]) ?? 1, base: CommandLine.arguments[4])
            case let arguments where arguments.first == "autobahn" && arguments.count == 3:
                let words = Array(arguments)
                let manager = SessionManager(configuration: makeConfiguration())
                try await AutobahnClient(manager: manager, url: words[1], agent: words[2]).run()
            case let arguments where arguments.first == "websocket-echo" && arguments.count >= 5:
                let words = Array(arguments)
                let benchmark = EchoBenchmark(
                    manager: SessionManager(configuration: makeConfiguration()), url: words[1], count: Int(words[2]) ?? 0,
                    size: Int(words[3]) ?? 0, window: max(Int(words[4]) ?? 1, 1), compresses: words.dropFirst(5).contains("deflate"))
                FileHandle.standardOutput.write(Data(try await benchmark.run().utf8))
            default:
                throw Misuse()
            }
        } catch {
            try? FileHandle.standardError.write(contentsOf: Data("curlew-kit: \(error)\n".utf8))
            exit(1)
        }
    }

    private struct Misuse: Error {}

    /// A configuration for a program without a main queue.
    static func makeConfiguration() -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "driver")
        configuration.proxy = .none
        return configuration
    }
}

/// The outcome of a case.
struct Answer: Encodable {
    let ok: Bool
    let error: String?
}
