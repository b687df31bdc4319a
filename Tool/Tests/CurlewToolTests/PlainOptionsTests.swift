// SPDX-License-Identifier: Apache-2.0
import Curlew
import Testing

@testable import CurlewTool

/// What is parsed without swift-argument-parser is what that would have parsed.
@Suite(.timeLimit(.minutes(2))) struct PlainOptionsTests {
    /// An option as swift-argument-parser describes it.
    private struct Description: Decodable {
        struct Name: Decodable {
            let kind: String
            let name: String
            var word: String { (kind == "short" ? "-" : "--") + name }
        }
        struct Argument: Decodable {
            let kind: String
            let names: [Name]?
        }
        struct Command: Decodable {
            let arguments: [Argument]
        }
        let command: Command
    }

    private static func options() throws -> [Description.Argument] {
        try JSONDecoder().decode(Description.self, from: Data(SendCommand._dumpHelp().utf8)).command.arguments
    }

    /// The names of all options.
    static func names() throws -> Set<String> { Set(try options().flatMap { $0.names ?? [] }.map(\.word)) }

    private static let values = [
        "--pretty": "format", "--auth-type": "challenge", "-A": "challenge", "--timeout": "1.5", "--deadline": "2",
        "--connect-timeout": "3",
        "--retry": "4", "--max-redirects": "5", "--http": "1.1", "--tls": "1.3",
    ]

    private static func isSame(_ words: [String]) throws -> Bool {
        guard let plain = SendOptions(plain: words) else { return false }
        return try "\(plain)" == "\(SendCommand.parse(words).options)"
    }

    @Test("each name of each option") func names() throws {
        var count = 0
        for option in try Self.options() where option.kind != "positional" {
            for name in option.names ?? [] {
                count += 1
                let value = Self.values[name.word] ?? "x=1"
                let forms =
                    option.kind == "flag" ? [[name.word]] : [[name.word, value]] + (name.kind == "long" ? [["\(name.word)=\(value)"]] : [])
                for form in forms {
                    #expect(try Self.isSame(form + ["u"]), "\(form)")
                    #expect(try Self.isSame(["GET", "u"] + form), "\(form)")
                }
            }
        }
        #expect(count > 60)
    }

    @Test(
        "unusual forms, valid or not, are left to the other",
        arguments: [
            ["--", "-a=1"], ["--token="], ["--token", ""], ["--token"], ["--token", "-x"], ["-uu:p"], ["-u=a"], ["--verbose=1"], ["--what"],
            ["-jx"],
            ["--timeout", "0"], ["--pretty", "x"], ["--retry", "-1"], ["--auth-type", "x"], ["---a"], ["--max-redirects", "1x"], ["-é"],
            ["--http=3.0"],
        ])
    func others(_ words: [String]) {
        #expect(SendOptions(plain: ["x"] + words) == nil)
    }

    @Test("lines of many words") func lines() throws {
        var generator = Sequence(state: 42)
        let words =
            try Self.options().flatMap { $0.names ?? [] }.map(\.word) + [
                "GET", "x", "a=1", "b==2", "-", "", "-jv", "--token=a", "--", "-hb",
            ]
        var same = 0
        for _ in 0..<150 {
            var line: [String] = []
            for _ in 0..<Int.random(in: 0...6, using: &generator) {
                let word = words.randomElement(using: &generator) ?? ""
                line.append(word)
                if Bool.random(using: &generator) { line.append(Self.values[word] ?? "1.1") }
            }
            guard let plain = SendOptions(plain: line) else { continue }
            same += 1
            let parsed = try SendCommand.parse(line).options
            #expect("\(plain)" == "\(parsed)", "\(line)")
        }
        #expect(same > 25)
    }

    /// Numbers that are the same in each run (SplitMix64).
    private struct Sequence: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }
}
