// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Curlew

/// A first word that is no URL and no method.
enum Subcommand: String, CaseIterable {
    case download, dl, ws, sse, curl, bench, serve, help

    func run(_ words: [String], environment: [String: String]) async throws(UsageError) -> Outcome {
        if words.contains("--help") { return Tool.show(helpText) }
        switch self {
        case .help:
            guard let name = words.first else { return Tool.show(helpText) }
            guard let command = Subcommand(rawValue: name) else { throw UsageError("there is no subcommand \(name.quoted)") }
            return Tool.show(command.helpText)
        case .ws: return try await WebSocketCommand.parsed(words).run(environment: environment)
        case .sse: return try await EventsCommand.parsed(words).run(environment: environment)
        case .bench: return try await BenchCommand.parsed(words).run(environment: environment)
        case .serve: return try await ServeCommand.parsed(words).run()
        case .curl:
            return try await CurlRun(CurlCommandLine(words), environment: environment).run()
        case .download, .dl: return try await DownloadCommand.parsed(words).run(environment: environment)
        }
    }

    private var helpText: String {
        switch self {
        case .download, .dl: Self.helpText(of: DownloadCommand.self)
        case .ws: Self.helpText(of: WebSocketCommand.self)
        case .sse: Self.helpText(of: EventsCommand.self)
        case .serve: Self.helpText(of: ServeCommand.self)
        case .bench: BenchCommand.supported(Self.helpText(of: BenchCommand.self))
        case .curl, .help: Help.shown
        }
    }

    private static func helpText(of command: any ParsableCommand.Type) -> String {
        let columns = min(max(Output.standard.width ?? 100, 40), 100)
        return Help.fitted(CurlewCommand.helpMessage(for: command, columns: columns) + "\n")
    }

    /// The help's part about subcommands.
    static let usage = """
        A first word that is exactly one of these is no URL; a host of that name is written with a slash, as in bench/:
          download, dl URL…       download files over several connections, and resume what was interrupted: -o FILE,
                                  -d FOLDER, -s SEGMENTS, -j JOBS, -i FILE, --sha256 HEX, --limit-rate RATE, or all
                                  files of a folder with -r
          ws URL                  send lines as messages of a WebSocket, and print those received
          sse URL                 print server-sent events as they come
          curl WORDS…             do what a command of curl says; options that are not supported are errors
          bench URL               send a request many times: -n REQUESTS or --duration SECONDS, -c CONCURRENCY,
                                  --rate PER_SECOND[,…], --compare URL, --assert LIMIT, --html FILE
          serve [FOLDER]          serve the files of a folder to this machine: --port N, --upload, --tls
          help [COMMAND]          print this help, or that of download, ws, sse, bench or serve

        """
}

/// The whole command, for help and completion.
struct CurlewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "curlew",
        subcommands: [DownloadCommand.self, WebSocketCommand.self, EventsCommand.self, BenchCommand.self, ServeCommand.self],
        helpNames: [])

    @OptionGroup var options: SendOptions
}
