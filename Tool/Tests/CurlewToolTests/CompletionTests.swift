// SPDX-License-Identifier: Apache-2.0
import Curlew
import Testing

@testable import CurlewTool

/// What the shells offer with the scripts of `--completions`, each asked by its own means.
@Suite(
    .timeLimit(.minutes(2)),
    .enabled(if: CompletionScript.allCases.allSatisfy(\.isTested), "needs bash, zsh and fish, which scripts/setup test installs"))
struct CompletionTests {
    /// A folder with two files and a folder.
    private let folder: TemporaryDirectory

    init() throws {
        folder = try TemporaryDirectory()
        for name in ["alpha.txt", "al pha"] { try folder.write(Data(), to: name) }
        try FileManager.default.createDirectory(at: folder.file("folder"), withIntermediateDirectories: false)
    }

    /// Returns what is offered at the end of each line, without what stands before it in the same word.
    private func offers(_ lines: [String], in shell: CompletionScript) async throws -> [Set<String>] {
        let script = try await ToolRun.run("--completions", shell.rawValue)
        #expect(script.status == 0 && script.error == "")
        let place = try TemporaryDirectory()
        // zsh finds a function by the name of its file.
        try place.write(script.output, to: "_curlew")
        let driver = try place.write(Data(shell.driver.utf8), to: "driver")
        let text = try await shell.run(driver, place.file("_curlew"), in: folder.url, input: lines.joined(separator: "\n") + "\n")
        let sections = text.components(separatedBy: "LINE\n").dropFirst()
        #expect(sections.count == lines.count, "\(text)")
        return zip(lines, sections).map { line, section in
            let last = line.splitScalars(separator: " ", omittingEmptySubsequences: false).last ?? ""
            let end = last.unicodeScalars.lastIndex { $0 == "=" || $0 == "@" }
            let head = end.map { String(last[...$0]) } ?? ""
            let words = section.split(separator: "\n").map { line in
                // fish adds a description, zsh escapes what it inserts, and some add a slash to a folder.
                let word = line.prefix { $0 != "\t" }.replacingOccurrences(of: "\\", with: "")
                let plain = word.hasPrefix(head) ? String(word.dropFirst(head.count)) : word
                return plain.hasSuffix("/") ? String(plain.dropLast()) : plain
            }
            return Set(words)
        }
    }

    private static let methods: Set = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    private static let files: Set = ["alpha.txt", "al pha"]

    private static let lines: [(line: String, offers: Set<String>)] = [
        ("curlew ", methods.union(Subcommand.allCases.map(\.rawValue))), ("curlew do", ["download"]), ("curlew -v do", []),
        ("curlew help w", ["ws"]), ("curlew help download w", []), ("curlew help curl d", []),
        ("curlew P", ["POST", "PUT", "PATCH"]), ("curlew bench P", ["POST", "PUT", "PATCH"]), ("curlew -v P", ["POST", "PUT", "PATCH"]),
        ("curlew --timeout 3 P", ["POST", "PUT", "PATCH"]), ("curlew GET P", []), ("curlew bench example.org P", []),
        // Choices.
        ("curlew --http ", ["1.1", "2", "3"]), ("curlew --http=", ["1.1", "2", "3"]), ("curlew --pretty=f", ["format"]),
        ("curlew --auth-type c", ["challenge"]), ("curlew -A ", ["basic", "challenge"]), ("curlew --tls ", ["1.2", "1.3"]),
        ("curlew --completions ", ["bash", "zsh", "fish"]), ("curlew bench --tls=1.", ["1.2", "1.3"]),
        ("curlew download --http ", ["1.1", "2", "3"]), ("curlew curl --request P", ["POST", "PUT", "PATCH"]),
        ("curlew curl -X D", ["DELETE"]), ("curlew curl --key-type ", ["PEM"]),
        // Files and folders.
        ("curlew --body al", files), ("curlew --body=al", files), ("curlew --download al", files), ("curlew --record fo", ["folder"]),
        ("curlew --record al", []), ("curlew --unix-socket al", files), ("curlew bench --cert al", files), ("curlew ws --cacert al", files),
        ("curlew sse --cacert=al", files), ("curlew download -i al", files), ("curlew dl --output al", files),
        ("curlew dl -d ", ["folder"]), ("curlew dl --directory=fo", ["folder"]), ("curlew curl -o al", files),
        ("curlew curl --output-dir ", ["folder"]), ("curlew curl -T al", files), ("curlew curl -E al", files),
        ("curlew --multipart POST example.org a@al", files), ("curlew example.org a=@al", files), ("curlew POST :80/x a:=@al", files),
        ("curlew bench example.org X:@al", files), ("curlew example.org a@fo", ["folder"]),
        ("curlew curl -d @al", files), ("curlew curl -F a=@al", files),
        // Neither.
        ("curlew al", []), ("curlew --token al", []), ("curlew --raw=al", []), ("curlew download al", []), ("curlew curl -H al", []),
        ("curlew -- -", []), ("curlew sse -- --", []), ("curlew bench --verb", []), ("curlew ws --what", []),
    ]

    @Test("subcommands, choices and files are offered", arguments: CompletionScript.allCases)
    func words(_ shell: CompletionScript) async throws {
        let offered = try await offers(Self.lines.map(\.line), in: shell)
        for (expected, offer) in zip(Self.lines, offered) { #expect(offer == expected.offers, "\(expected.line)") }
    }

    @Test("all options of each command are offered", arguments: CompletionScript.allCases)
    func options(_ shell: CompletionScript) async throws {
        let table = try CompletionTable()
        let words = [""] + Subcommand.allCases.map(\.rawValue)
        let offered = try await offers(words.map { "curlew \($0) -" }, in: shell)
        for (word, offer) in zip(words, offered) {
            let command = try #require(table.commands.first { word.isEmpty ? $0.names.isEmpty : $0.names.contains(word) })
            #expect(offer == Set(command.options.flatMap(\.names)), "\(word)")
            #expect(offer.contains("--help"), "\(word)")
        }
        #expect(offered[0].isSuperset(of: try PlainOptionsTests.names().filter { $0.hasPrefix("-") && $0.count > 1 }))
        #expect(offered[words.firstIndex(of: "curl") ?? 0].isSuperset(of: CurlOption.long.keys))
    }

    @Test("a script that is read in place of installed has no errors", arguments: CompletionScript.allCases)
    func reading(_ shell: CompletionScript) async throws {
        let script = try await ToolRun.run("--completions", shell.rawValue)
        let place = try TemporaryDirectory()
        let lines = shell == .zsh ? "autoload -Uz compinit\ncompinit -u -D\nsource \"$1\"\nprint $_comps[curlew]\n" : "source $1\n"
        let driver = try place.write(Data((shell == .fish ? "source $argv[1]\n" : lines).utf8), to: "driver")
        let text = try await shell.run(driver, try place.write(script.output, to: "script"), in: folder.url, input: "")
        #expect(text == (shell == .zsh ? "_curlew\n" : ""))
    }
}

extension CompletionScript {
    /// Whether tests are to be run: a shell that is missing is a failure where `CURLEW_TEST_REQUIRED` is 1.
    fileprivate var isTested: Bool { ProcessInfo.processInfo.environment["CURLEW_TEST_REQUIRED"] == "1" || program != nil }

    private var program: String? {
        let candidates = ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map { "\($0)/\(rawValue)" }
        return candidates.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Runs a file of the shell's commands, without the user's settings. Returns both outputs.
    fileprivate func run(_ driver: URL, _ script: URL, in folder: URL, input: String) async throws -> String {
        let option = [.bash: "--norc", .zsh: "-f", .fish: "--no-config"][self] ?? ""
        let home = script.deletingLastPathComponent().path
        let run = try ToolRun(
            [option, driver.path, script.path], environment: ["PATH": "/usr/bin:/bin", "HOME": home, "TERM": "dumb", "LC_ALL": "C.UTF-8"],
            hasInput: true, program: URL(fileURLWithPath: #require(program, "\(rawValue) is not installed")), folder: folder)
        run.feed(Data(input.utf8))
        let result = await run.result()
        return result.text + result.error
    }

    /// Prints for each line of the input `LINE`, and what is offered at its end. The first argument is the script.
    fileprivate var driver: String {
        switch self {
        case .bash:
            #"""
            source "$1"
            while IFS= read -r line; do
                # As readline splits a line.
                rest=$line COMP_WORDS=() COMPREPLY=()
                while [[ $rest =~ ^' '*([=:@]+|[^ =:@]+)(.*)$ ]]; do
                    COMP_WORDS+=("${BASH_REMATCH[1]}")
                    rest=${BASH_REMATCH[2]}
                done
                [[ $line != *' ' ]] || COMP_WORDS+=('')
                COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
                "$(complete -p curlew | sed 's/.*-F \([^ ]*\) .*/\1/')"
                # What readline leaves: the word until the last of these characters, without an at sign.
                [[ ${line##* } =~ ^(.*[=:@])?[^=:@]*$ ]]
                echo LINE
                for reply in "${COMPREPLY[@]}"; do printf '%s\n' "${BASH_REMATCH[1]%@}$reply"; done
            done

            """#
        case .zsh:
            // In a shell in a terminal of its own, whose tab prints what is added to the list of matches.
            #"""
            zmodload zsh/zpty
            zpty shell zsh -f -i
            zpty -w shell "PS1=; fpath=(${(q)1:h} \$fpath); autoload -Uz compinit; compinit -u -D"
            zpty -w shell 'compadd() {
                if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
                local -a hits
                builtin compadd -A hits "$@"
                print -rl -- "HIT:"${^hits}
                (( $#hits ))
            }
            capture() { print BEGIN; _main_complete; print END; compstate[insert]=; compstate[list]= }
            zle -C capture complete-word capture
            bindkey "^I" capture
            print RE""ADY'
            zpty -r shell out $'*READY*'
            while IFS= read -r line; do
                zpty -w -n shell $'\C-u'"$line"$'\t'
                zpty -r shell out '*BEGIN*END*'
                print LINE
                # Errors, too.
                print -rl -- ${${${(@f)${${${out//$'\r'/}##*BEGIN}%%END*}}#HIT:}:#}
            done

            """#
        case .fish:
            #"""
            source $argv[1]
            while read -l line
                echo LINE
                complete -C $line
            end

            """#
        }
    }
}
