// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Curlew

/// What a command line may have, for scripts of completion: read from the definitions that the command line is parsed with.
struct CompletionTable {
    /// What stands behind an option, or in place of a word.
    enum Value: Equatable {
        case text
        case choices([String])
        case file
        case folder
        /// Text in which a file's name may follow an at sign.
        case item
    }

    struct Option: Equatable {
        var names: [String]
        var summary: String
        /// `nil` for an option without a value.
        var value: Value?
        var isRepeating: Bool
    }

    struct Command {
        /// The words that it begins with; none for a request, which has no such word.
        var names: [String]
        var summary: String
        var options: [Option]
        /// The choices for the first word that is no option.
        var first: [String]
        /// What each word is that is no option.
        var word: Value
        /// Whether an option's value may follow it as `--name=value`.
        var joinsValues = true

        /// The name in a script.
        var name: String { names.first ?? "main" }
    }

    let request: Command
    let subcommands: [Command]

    var commands: [Command] { [request] + subcommands }

    init() throws {
        let root = try JSONDecoder().decode(Definition.self, from: Data(CurlewCommand._dumpHelp().utf8)).command
        let request = Command(root, names: [], leavingOut: [])
        self.request = request
        var subcommands: [Command] = []
        for subcommand in Subcommand.allCases where !subcommands.contains(where: { $0.names.contains(subcommand.rawValue) }) {
            switch subcommand {
            case .curl: subcommands.append(Self.curl(request))
            case .help: subcommands.append(Self.help)
            case .download, .dl, .ws, .sse, .bench, .serve:
                guard let definition = root.subcommands?.first(where: { $0.names.contains(subcommand.rawValue) }) else { continue }
                let refused = subcommand == .bench ? BenchCommand.refused.map(\.name) : []
                subcommands.append(Command(definition, names: definition.names, leavingOut: refused))
            }
        }
        self.subcommands = subcommands
    }

    private static let helpOption = Option(names: ["--help"], summary: "print the help", value: nil, isRepeating: false)

    private static let help = Command(
        names: ["help"], summary: "Prints the help, or that of a subcommand.", options: [helpOption],
        first: Subcommand.allCases.map(\.rawValue), word: .text)

    /// The command that reads curl's options, which have the summaries and values of the options that they stand for.
    private static func curl(_ request: Command) -> Command {
        let options = CurlOption.long.sorted { $0.key < $1.key }.map { name, option in
            // zsh has another use for a colon.
            let letters = CurlOption.short.filter { $0.value == name && $0.key != ":" }.map { "-\($0.key)" }.sorted()
            let ours = option.replacement.flatMap { word in request.options.first { $0.names.contains(word) } }
            return Option(
                names: letters + [name], summary: ours?.summary ?? "", value: option.completion(ours, methods: request.first),
                isRepeating: true)
        }
        return Command(
            names: ["curl"], summary: "Does what a command of curl says.", options: options + [helpOption], first: [], word: .text,
            joinsValues: false)
    }
}

extension CurlOption {
    /// The option of ours that it stands for.
    fileprivate var replacement: String? {
        switch self {
        case .flag(let option), .value(let option): option
        default: nil
        }
    }

    /// - Parameter ours: the option of ours that it stands for.
    fileprivate func completion(_ ours: CompletionTable.Option?, methods: [String]) -> CompletionTable.Value? {
        guard takesValue else { return nil }
        switch self {
        case .value: return ours?.value ?? .text
        case .onlyValue(let value): return .choices([value])
        case .method: return .choices(methods)
        case .output, .upload, .file: return .file
        case .outputFolder: return .folder
        case .data, .encodedData, .json, .form(isString: false), .header, .item: return .item
        default: return .text
        }
    }
}

// MARK: - Definitions

/// The definition of a command in swift-argument-parser's description of it.
private struct Definition: Decodable {
    struct Command: Decodable {
        let commandName: String
        let aliases: [String]?
        let abstract: String?
        let arguments: [Argument]?
        let subcommands: [Command]?

        var names: [String] { [commandName] + (aliases ?? []) }
    }

    struct Argument: Decodable {
        struct Name: Decodable {
            let kind: String
            let name: String
        }

        struct Completion: Decodable {
            struct List: Decodable { let values: [String] }
            struct File: Decodable {}

            let list: List?
            let file: File?
            let directory: File?
        }

        let kind: String
        let names: [Name]?
        let valueName: String?
        let abstract: String?
        let isRepeating: Bool
        let allValueStrings: [String]?
        let allValues: [String]?
        let completionKind: Completion?

        var words: [String] { (names ?? []).map { ($0.kind == "long" ? "--" : "-") + $0.name } }
        var choices: [String]? { completionKind?.list?.values ?? allValueStrings ?? allValues }

        var value: CompletionTable.Value {
            if let choices { return .choices(choices) }
            if completionKind?.file != nil { return .file }
            return completionKind?.directory != nil ? .folder : .text
        }
    }

    let command: Command
}

extension CompletionTable.Command {
    fileprivate init(_ definition: Definition.Command, names: [String], leavingOut refused: [String]) {
        let arguments = definition.arguments ?? []
        let positional = arguments.first { $0.kind == "positional" }
        var seen: Set<String> = []
        let options = arguments.filter { $0.kind != "positional" }.compactMap { argument -> CompletionTable.Option? in
            let words = argument.words
            guard Set(words).isDisjoint(with: refused), seen.isDisjoint(with: words) else { return nil }
            seen.formUnion(words)
            return CompletionTable.Option(
                names: words, summary: argument.abstract ?? "", value: argument.kind == "flag" ? nil : argument.value,
                isRepeating: argument.isRepeating)
        }
        self.init(
            names: names, summary: definition.abstract ?? "", options: options, first: positional?.choices ?? [],
            word: positional?.valueName == "words" ? .item : .text)
    }
}
