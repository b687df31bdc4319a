// SPDX-License-Identifier: Apache-2.0
import ArgumentParser

/// A number of seconds above 0.
struct Seconds: ExpressibleByArgument, Equatable {
    let duration: Duration

    init?(argument: String) {
        let isPlain = argument.utf8.allSatisfy { $0.isASCIIDigit || $0 == UInt8(ascii: ".") }
        guard isPlain, let seconds = Double(argument), seconds > 0, seconds <= 1e9 else { return nil }
        duration = .seconds(seconds)
    }
}

/// How bodies are shown.
enum Pretty: String, ExpressibleByArgument, CaseIterable {
    case all, format, none
}

/// How `--user` is sent.
enum AuthenticationType: String, ExpressibleByArgument, CaseIterable {
    case basic, challenge
}

/// The HTTP version of `--http`.
enum HTTPChoice: String, ExpressibleByArgument, CaseIterable {
    case http1 = "1.1"
    case http2 = "2"
    case http3 = "3"
}

/// The oldest version of TLS of `--tls`.
enum TLSChoice: String, ExpressibleByArgument, CaseIterable {
    case tls12 = "1.2"
    case tls13 = "1.3"
}

/// The options of a request. What each does is in ``Help``.
struct SendOptions: ParsableArguments {
    // MARK: Body

    @Flag(name: [.short, .long], help: "send the fields as JSON, the default") var json = false
    @Flag(name: [.short, .long], help: "send the fields as a form") var form = false
    @Flag(name: .long, help: "send the fields as multipart/form-data") var multipart = false
    @Option(name: .long, help: "send TEXT as the body") var raw: String?
    @Option(name: .customLong("body"), help: "send a file, or standard input, as the body", completion: .file()) var bodyFile: String?
    @Flag(name: [.customShort("I"), .long], help: "don't read standard input") var ignoreStdin = false

    // MARK: Output

    @Flag(name: [.short, .long], help: "print both heads and bodies of each exchange") var verbose = false
    @Flag(name: [.customShort("h"), .long], help: "print the heads of the responses only") var headers = false
    @Flag(name: [.customShort("b"), .customLong("body-only")], help: "print the body of the response only") var bodyOnly = false
    @Flag(name: [.short, .long], help: "print times, connection and sizes") var meta = false
    @Option(name: [.customShort("p", allowingJoined: true), .long], help: "print these parts: H, B, h, b and m") var print: String?
    @Option(name: .long, help: "print what a JSON path selects, one a line") var filter: String?
    @Flag(name: .long, help: "show what is longer than the screen in a pager") var pager = false
    @Option(name: .long, help: "all, format or none") var pretty: Pretty?
    @Flag(name: .long, help: "don't escape control characters of a body on a terminal") var rawOutput = false
    @Flag(name: .long, help: "don't redact credentials and cookies in heads") var showSecrets = false
    @Flag(name: .long, help: "print the request, and send nothing") var offline = false
    @Flag(name: .customLong("curl"), help: "print the request as a curl command, and send nothing") var printsCurl = false
    @Flag(name: .long, help: "don't request or decode compression") var noDecode = false
    @Option(name: .long, help: "write the body to a file", completion: .file()) var download: String?
    @Flag(name: .customLong("continue"), help: "resume an earlier download") var resumesDownload = false
    @Flag(name: .customLong("force"), help: "replace an existing file") var replacesFile = false
    @Option(name: .long, help: "draw the exchanges into a file (SVG)", completion: .file()) var waterfall: String?
    @Option(name: .long, help: "record the exchanges in an HTTP Archive", completion: .file()) var har: String?
    @Option(name: .long, help: "record the exchanges in a folder", completion: .directory) var record: String?
    @Option(name: .long, help: "respond from a folder, without a network", completion: .directory) var replay: String?
    @Flag(name: .long, help: "send the request, and compare the response with the recorded one") var diff = false

    // MARK: Credentials

    @Option(name: .long, help: "send a bearer token") var token: String?
    @Option(
        name: [.customShort("u", allowingJoined: true), .long, .customShort("a", allowingJoined: true)],
        help: "NAME:PASSWORD, or NAME for a prompt")
    var user: String?
    @Option(name: [.customShort("A", allowingJoined: true), .long], help: "basic, or challenge: what the server asks for")
    var authType = AuthenticationType.basic
    @Flag(name: .long, help: "take credentials from ~/.netrc") var netrc = false
    @Option(name: .long, help: "keep cookies, header fields and credentials under a name") var session: String?

    // MARK: Connection

    @Option(name: .long, help: "the limit of each attempt, in seconds") var timeout: Seconds?
    @Option(name: .long, help: "the limit of all attempts together, in seconds") var deadline: Seconds?
    @Option(name: .long, help: "the limit for connecting, in seconds") var connectTimeout: Seconds?
    @Option(name: .long, help: "how many times to try again") var retry: UInt?
    @Option(name: .long, help: "how many redirects to follow") var maxRedirects: Int?
    @Option(name: .long, help: "trust these certificates (PEM)", completion: .file()) var cacert: String?
    @Option(name: .long, help: "the client's certificate and key (PEM, or PKCS #12)", completion: .file()) var cert: String?
    @Option(name: .long, help: "the key, if it has a file of its own (PEM)", completion: .file()) var key: String?
    @Option(name: .long, help: "sha256//BASE64 of a public key that the server must have") var pin: [String] = []
    @Flag(name: .long, help: "don't verify the server's certificate") var insecure = false
    @Option(name: .long, help: "the oldest version of TLS to accept: 1.2 or 1.3") var tls: TLSChoice?
    @Option(name: .long, help: "the proxy's URL, or none") var proxy: String?
    @Option(name: .long, help: "the network interface, or the address of this machine, to send from") var interface: String?
    @Flag(name: [.customShort("4"), .customLong("ipv4")], help: "connect over IPv4 only") var ipv4 = false
    @Flag(name: [.customShort("6"), .customLong("ipv6")], help: "connect over IPv6 only") var ipv6 = false
    @Option(name: .long, help: "HOST:PORT:ADDRESS, where to connect to; may be repeated") var resolve: [String] = []
    @Option(name: .long, help: "connect to a Unix domain socket", completion: .file()) var unixSocket: String?
    @Flag(name: .long, help: "keep responses in a cache on disk, and respond from it") var cache = false
    @Option(name: .long, help: "the HTTP version: 1.1, 2 or 3") var http: HTTPChoice?

    // MARK: Others

    @Flag(name: .customLong("help"), help: "print the help") var showsHelp = false
    @Flag(name: .customLong("version"), help: "print the versions") var showsVersion = false
    @Option(
        name: .long, help: "print a script of completion: bash, zsh or fish",
        completion: .list(CompletionScript.allCases.map(\.rawValue)))
    var completions: String?
    @Argument(help: "[METHOD] URL [ITEM…]", completion: .list(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]))
    var words: [String] = []
}

/// What parses the options of a request: no subcommands, as these are words that come first.
struct SendCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "curlew", helpNames: [])

    @OptionGroup var options: SendOptions
}

extension ParsableCommand {
    /// Parses the words, with an error of one line.
    static func parsed(_ words: [String]) throws(UsageError) -> Self {
        do {
            return try parse(words)
        } catch {
            throw UsageError(OptionHints.message(message(for: error), words))
        }
    }
}
