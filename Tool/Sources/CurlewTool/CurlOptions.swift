// SPDX-License-Identifier: Apache-2.0

/// What an option of curl is to this program. With ``CurlRefusal``, all options of curl 8.14 and some later ones are classified.
enum CurlOption {
    /// Nothing to do: it is so anyway, it changes only what curl prints, or curl itself ignores it for HTTP.
    case nothing
    /// An option of ours, without a value.
    case flag(String)
    /// An option of ours with the value.
    case value(String)
    /// An option of curl with a value that has no effect here.
    case ignoredValue
    /// An option with a value of which only this one is supported, which is so anyway.
    case onlyValue(String)
    /// A flag that ``CurlOperation`` looks for by its name.
    case state
    /// An option with a value that ``CurlOperation`` reads, with what completes it.
    case text
    case file
    case item
    case header
    case data(isRaw: Bool)
    case encodedData
    case json
    case form(isString: Bool)
    case method
    case field(String)
    case cookie
    case upload
    case output
    case outputFolder
    case remoteName
    case proxy(scheme: String)
    /// Ends the options of one operation.
    case next

    var takesValue: Bool {
        switch self {
        case .nothing, .flag, .state, .remoteName, .next: false
        default: true
        }
    }

    /// Those that are no errors, by their long names.
    static let long: [String: CurlOption] = [ofRequest, ofCredentials, ofOutput, ofConnections, without].reduce(into: [:]) { all, some in
        all.merge(some) { first, _ in first }
    }

    private static let ofRequest: [String: CurlOption] = [
        "--header": .header, "--data": .data(isRaw: false), "--data-ascii": .data(isRaw: false), "--data-binary": .data(isRaw: true),
        "--data-raw": .data(isRaw: true), "--data-urlencode": .encodedData, "--json": .json, "--form": .form(isString: false),
        "--form-string": .form(isString: true), "--request": .method, "--head": .state, "--get": .state, "--url": .item,
        "--url-query": .item, "--globoff": .state, "--path-as-is": .state, "--user-agent": .field("User-Agent"),
        "--referer": .field("Referer"), "--cookie": .cookie, "--cookie-jar": .file, "--range": .field("Range"), "--upload-file": .upload,
        "--compressed": .state, "--time-cond": .item, "--etag-save": .file, "--etag-compare": .file, "--config": .file,
        "--variable": .item, "--next": .next, "--disallow-username-in-url": .state, "--junk-session-cookies": .state,
        // Redirects, failures and limits.
        "--location": .state, "--location-trusted": .state, "--max-redirs": .text, "--fail": .state, "--fail-with-body": .state,
        "--fail-early": .state, "--max-time": .value("--timeout"), "--connect-timeout": .value("--connect-timeout"),
        "--retry": .text, "--retry-delay": .text, "--retry-max-time": .text, "--retry-connrefused": .state, "--retry-all-errors": .state,
        "--limit-rate": .text, "--speed-limit": .text, "--speed-time": .text, "--max-filesize": .text, "--parallel": .state,
        "--parallel-max": .text,
    ]

    private static let ofCredentials: [String: CurlOption] = [
        "--user": .value("--user"), "--basic": .state, "--digest": .state, "--ntlm": .state, "--negotiate": .state, "--anyauth": .state,
        "--oauth2-bearer": .value("--token"),
        "--aws-sigv4": .text, "--netrc": .flag("--netrc"), "--netrc-file": .file, "--netrc-optional": .state,
    ]

    private static let ofOutput: [String: CurlOption] = [
        "--output": .output, "--output-dir": .outputFolder, "--remote-name": .remoteName, "--remote-name-all": .state,
        "--remote-header-name": .state, "--remote-time": .state, "--continue-at": .text, "--create-dirs": .state,
        "--create-file-mode": .text, "--remove-on-error": .state, "--no-clobber": .state, "--clobber": .state, "--skip-existing": .state,
        "--include": .state, "--show-headers": .state, "--dump-header": .file, "--write-out": .item, "--verbose": .state,
        "--silent": .state, "--show-error": .state, "--stderr": .file,
    ]

    private static let ofConnections: [String: CurlOption] = [
        // TLS.
        "--insecure": .flag("--insecure"), "--cacert": .value("--cacert"), "--cert": .file, "--key": .file, "--pass": .text,
        "--cert-type": .text, "--key-type": .onlyValue("PEM"), "--pinnedpubkey": .value("--pin"), "--crlfile": .file,
        "--cert-status": .state, "--tlsv1": .state, "--tlsv1.0": .state, "--tlsv1.1": .state, "--tlsv1.2": .state, "--tlsv1.3": .state,
        "--tls-max": .text, "--hsts": .file, "--proto": .text, "--proto-redir": .text, "--proto-default": .text,
        // Connections.
        "--proxy": .proxy(scheme: "http"), "--socks4": .proxy(scheme: "socks4"), "--socks4a": .proxy(scheme: "socks4a"),
        "--socks5": .proxy(scheme: "socks5"), "--socks5-hostname": .proxy(scheme: "socks5h"), "--proxy-user": .text, "--noproxy": .text,
        "--interface": .value("--interface"), "--local-port": .text, "--ipv4": .flag("--ipv4"), "--ipv6": .flag("--ipv6"),
        "--resolve": .value("--resolve"), "--connect-to": .text, "--unix-socket": .value("--unix-socket"), "--abstract-unix-socket": .text,
        "--doh-url": .text, "--doh-insecure": .state, "--happy-eyeballs-timeout-ms": .text, "--keepalive-time": .text,
        "--keepalive-cnt": .text, "--no-keepalive": .state, "--keepalive": .state, "--tcp-fastopen": .state,
        "--http1.1": .flag("--http=1.1"), "--http2": .nothing, "--http2-prior-knowledge": .flag("--http=2"),
        "--http3": .flag("--http=3"), "--http3-only": .state,
    ]

    static let short: [Character: String] = [
        "H": "--header", "d": "--data", "F": "--form", "X": "--request", "I": "--head", "G": "--get", "A": "--user-agent",
        "e": "--referer", "b": "--cookie", "c": "--cookie-jar", "r": "--range", "L": "--location", "T": "--upload-file", "u": "--user",
        "i": "--show-headers", "v": "--verbose", "o": "--output", "O": "--remote-name", "J": "--remote-header-name", "R": "--remote-time",
        "D": "--dump-header", "w": "--write-out", "K": "--config", "k": "--insecure", "E": "--cert", "x": "--proxy", "m": "--max-time",
        "s": "--silent", "S": "--show-error", "#": "--progress-bar", "N": "--no-buffer", "g": "--globoff", "f": "--fail",
        "n": "--netrc", "q": "--disable", "C": "--continue-at", "U": "--proxy-user", "1": "--tlsv1", "Z": "--parallel", "B": "--use-ascii",
        "j": "--junk-session-cookies", "4": "--ipv4", "6": "--ipv6", "z": "--time-cond", "Y": "--speed-limit", "y": "--speed-time",
        ":": "--next", "0": "--http1.0", "2": "--sslv2", "3": "--sslv3", "a": "--append", "l": "--list-only", "M": "--manual",
        "h": "--help", "V": "--version", "P": "--ftp-port", "Q": "--quote", "t": "--telnet-option", "p": "--proxytunnel",
    ]
}
