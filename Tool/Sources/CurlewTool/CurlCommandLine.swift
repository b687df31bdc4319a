// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A transfer of a command of curl: words of ours, and what they can't say.
struct CurlCommand: Sendable {
    var words: [String]
    /// The parts of a form, which may be what a word can't say.
    var parts: [RequestItem] = []
    /// What differs from curl, to be printed.
    var note: String?
    var extras = CurlExtras()
}

/// `curlew curl …`: reads a command of curl.
struct CurlCommandLine {
    /// The transfers, in the order in which they are begun.
    private(set) var commands: [CurlCommand] = []
    /// How many transfers there are at a time.
    var parallel: Int { global.contains("--parallel") ? most : 1 }
    /// Whether the first failure ends all.
    var failsEarly: Bool { global.contains("--fail-early") }
    /// Where standard error goes.
    private(set) var errorFile: String?

    private static let deepestFile = 10

    /// The flags that count for all operations.
    private var global: Set<String> = []
    /// How many transfers `--parallel` has at a time.
    private var most = 50
    private var operation = CurlOperation()
    private var variables = CurlVariables()

    /// Reads the words behind `curlew curl`.
    init(_ words: [String]) throws(UsageError) {
        // A pasted line begins with the program's name.
        try read(words.first == "curl" ? Array(words.dropFirst()) : words, depth: 0)
        try finishOperation()
        guard !commands.isEmpty else { throw UsageError("the URL is missing") }
        for index in commands.indices {
            commands[index].extras.isVerbose = global.contains("--verbose")
            commands[index].extras.isSilent = global.contains("--silent")
            commands[index].extras.showsErrors = !global.contains("--silent") || global.contains("--show-error")
        }
    }

    /// Reads words, also those of a file, whose options belong to the same operation.
    private mutating func read(_ words: [String], depth: Int) throws(UsageError) {
        var rest = words[...]
        var hasOptions = true
        while let word = rest.popFirst() {
            if hasOptions, word == "--" {
                hasOptions = false
            } else if hasOptions, word.hasBytePrefix("--") {
                try read(word, attached: nil, &rest, depth)
            } else if hasOptions, word.hasBytePrefix("-"), word.utf8.count > 1 {
                try readCluster(word.dropFirst(), &rest, depth)
            } else {
                operation.add(url: word)
            }
        }
    }

    private mutating func readCluster(_ cluster: Substring, _ rest: inout ArraySlice<String>, _ depth: Int) throws(UsageError) {
        var letters = cluster
        while let letter = letters.popFirst() {
            guard let name = CurlOption.short[letter] else { throw UsageError("curl's option -\(letter) is not known") }
            let takesValue = CurlOption.long[name]?.takesValue ?? false
            try read(name, attached: takesValue && !letters.isEmpty ? String(letters) : nil, &rest, depth)
            if takesValue { return }
        }
    }

    private mutating func read(
        _ word: String, attached: String?, _ rest: inout ArraySlice<String>, _ depth: Int
    ) throws(UsageError) {
        let isExpanded = word.hasBytePrefix("--expand-")
        let name = isExpanded ? "--\(word.dropFirstScalars(9))" : word
        guard let option = CurlOption.long[name] else {
            if let refusal = CurlRefusal.all[name] { throw UsageError("curl's option \(name) is not supported: \(refusal.reason)") }
            let positive = "--\(name.dropFirstScalars(5))"
            guard name.hasBytePrefix("--no-"), let option = CurlOption.long[positive], !option.takesValue else {
                throw UsageError("curl's option \(name) is not known")
            }
            global.remove(positive)
            return operation.set(option, positive, isOn: false)
        }
        guard option.takesValue else {
            guard !isExpanded else { throw UsageError("curl's option \(name) has no value to be expanded") }
            if case .next = option { return try finishOperation() }
            switch name {
            case "--parallel", "--fail-early", "--silent", "--show-error", "--verbose": global.insert(name)
            default: operation.set(option, name, isOn: true)
            }
            return
        }
        guard var value = attached ?? rest.popFirst() else { throw UsageError("curl's option \(name) needs a value") }
        if isExpanded { value = try variables.expanded(value) }
        switch name {
        case "--config":
            guard depth < Self.deepestFile else { throw UsageError("files of curl's option --config are nested more than \(depth) deep") }
            try read(try CurlConfigFile.words(of: value), depth: depth + 1)
        case "--variable": try variables.set(value)
        case "--stderr": errorFile = value
        case "--parallel-max":
            guard let count = Int(value), (1...65_535).contains(count) else { throw CurlOperation.invalid(name, value) }
            most = min(count, 300)
        default: try operation.read(option, value, name)
        }
    }

    private mutating func finishOperation() throws(UsageError) {
        commands += try operation.commands(after: commands.count)
        operation = CurlOperation()
    }
}
