// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Curlew

/// A first word that is no URL and no method.
enum Subcommand: String, CaseIterable {
    case download, dl, ws, sse, curl, bench, help

    func run(_ words: [String], environment: [String: String]) async throws(UsageError) -> Outcome {
        if words.contains("--help") { return Tool.show(helpText) }
        switch self {
        case .help: return Tool.show(words.first.flatMap(Subcommand.init)?.helpText ?? Help.text)
        case .ws: return try await WebSocketCommand.parsed(words).run(environment: environment)
        case .sse: return try await EventsCommand.parsed(words).run(environment: environment)
        case .bench: return try await BenchCommand.parsed(words).run(environment: environment)
        case .curl: return try await Tool.send(try Arguments(CurlCommandLine.translated(words)), environment: environment)
        case .download, .dl: return try await DownloadCommand.parsed(words).run(environment: environment)
        }
    }

    private var helpText: String {
        switch self {
        case .download, .dl: CurlewCommand.helpMessage(for: DownloadCommand.self, columns: 100) + "\n"
        case .ws: CurlewCommand.helpMessage(for: WebSocketCommand.self, columns: 100) + "\n"
        case .sse: CurlewCommand.helpMessage(for: EventsCommand.self, columns: 100) + "\n"
        case .bench: CurlewCommand.helpMessage(for: BenchCommand.self, columns: 100) + "\n"
        default: Help.text
        }
    }

    /// The help's part about subcommands.
    static let usage = """
        A first word that is exactly one of these is no URL; a host of that name is written with a slash, as in bench/:
          download, dl URL…       download files over several connections, and resume what was interrupted: -o FILE,
                                  -d FOLDER, -s SEGMENTS, -j JOBS, -i FILE, --sha256 HEX, --limit-rate RATE
          ws URL                  send lines as messages of a WebSocket, and print those received
          sse URL                 print server-sent events as they come
          curl WORDS…             do what a command of curl says; options that are not supported are errors
          bench URL               send a request many times: -n REQUESTS, -c CONCURRENCY, --rate PER_SECOND
          help [COMMAND]          print this help, or that of download, ws, sse or bench

        """
}

/// The whole command, for scripts of completion.
struct CurlewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "curlew", subcommands: [DownloadCommand.self, WebSocketCommand.self, EventsCommand.self, BenchCommand.self],
        helpNames: [])

    @OptionGroup var options: SendOptions
}
