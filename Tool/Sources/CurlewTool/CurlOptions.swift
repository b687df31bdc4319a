// SPDX-License-Identifier: Apache-2.0

/// The options of curl that this program knows.
enum CurlOption {
    /// Nothing to do: it is so anyway, or changes only what curl prints.
    case nothing
    /// An option of ours, without a value.
    case flag(String)
    /// An option of ours with the value.
    case value(String)
    /// An option of curl with a value that has no effect here.
    case ignoredValue
    /// An option with a value of which only this one is supported, which is so anyway.
    case onlyValue(String)
    case header
    case data(isRaw: Bool)
    case encodedData
    case json
    case form(isString: Bool)
    case method
    case head
    case query
    case urlQuery
    case url
    case literalURL
    case pathAsIs
    case field(String)
    case cookie
    case follow
    case followLimit
    case upload
    case challenge
    case compressed
    case fail
    case output
    case outputFolder
    case createFolders
    case remoteName
    case resume
    case protocols
    case proxy(scheme: String)
    case proxyUser
    case noProxy

    var takesValue: Bool {
        switch self {
        case .nothing, .flag, .head, .query, .literalURL, .pathAsIs, .follow, .challenge, .compressed, .fail, .remoteName, .createFolders:
            false
        default: true
        }
    }

    static let long: [String: CurlOption] = [
        // The request.
        "--header": .header, "--data": .data(isRaw: false), "--data-ascii": .data(isRaw: false), "--data-binary": .data(isRaw: true),
        "--data-raw": .data(isRaw: true), "--data-urlencode": .encodedData, "--json": .json, "--form": .form(isString: false),
        "--form-string": .form(isString: true), "--request": .method, "--head": .head, "--get": .query, "--url": .url,
        "--url-query": .urlQuery, "--globoff": .literalURL, "--path-as-is": .pathAsIs, "--user-agent": .field("User-Agent"),
        "--referer": .field("Referer"), "--cookie": .cookie, "--range": .field("Range"), "--upload-file": .upload,
        "--compressed": .compressed,
        // Credentials.
        "--user": .value("--user"), "--basic": .nothing, "--digest": .challenge, "--ntlm": .challenge, "--negotiate": .challenge,
        "--anyauth": .challenge, "--oauth2-bearer": .value("--token"), "--netrc": .flag("--netrc"),
        // Redirects, failures and limits.
        "--location": .follow, "--max-redirs": .followLimit, "--fail": .fail, "--fail-with-body": .nothing, "--fail-early": .nothing,
        "--max-time": .value("--timeout"), "--connect-timeout": .value("--connect-timeout"), "--retry": .value("--retry"),
        "--retry-max-time": .value("--deadline"), "--retry-connrefused": .nothing, "--expect100-timeout": .ignoredValue,
        // Output.
        "--output": .output, "--output-dir": .outputFolder, "--remote-name": .remoteName, "--remote-name-all": .remoteName,
        "--continue-at": .resume, "--create-dirs": .createFolders, "--remove-on-error": .nothing, "--trace-time": .nothing,
        "--use-ascii": .nothing, "--junk-session-cookies": .nothing,
        "--include": .flag("--print=hb"), "--show-headers": .flag("--print=hb"), "--verbose": .flag("--verbose"), "--silent": .nothing,
        "--show-error": .nothing, "--no-progress-meter": .nothing, "--progress-bar": .nothing, "--no-buffer": .nothing,
        "--styled-output": .nothing, "--no-styled-output": .nothing, "--disable": .nothing,
        // TLS.
        "--insecure": .flag("--insecure"), "--cacert": .value("--cacert"), "--cert": .value("--cert"), "--key": .value("--key"),
        "--cert-type": .onlyValue("PEM"), "--key-type": .onlyValue("PEM"), "--pinnedpubkey": .value("--pin"), "--ssl": .nothing,
        "--ssl-reqd": .nothing, "--tlsv1": .nothing, "--tlsv1.0": .nothing, "--tlsv1.1": .nothing, "--tlsv1.2": .nothing,
        "--tlsv1.3": .flag("--tls=1.3"), "--ssl-no-revoke": .nothing, "--ca-native": .nothing, "--no-npn": .nothing,
        "--no-sessionid": .nothing, "--proto": .protocols, "--proto-redir": .protocols, "--proto-default": .onlyValue("http"),
        // Connections.
        "--proxy": .proxy(scheme: "http"), "--socks4": .proxy(scheme: "socks4"), "--socks4a": .proxy(scheme: "socks4a"),
        "--socks5": .proxy(scheme: "socks5"), "--socks5-hostname": .proxy(scheme: "socks5h"), "--proxy-user": .proxyUser,
        "--proxy-basic": .nothing, "--noproxy": .noProxy, "--interface": .value("--interface"), "--ipv4": .flag("--ipv4"),
        "--ipv6": .flag("--ipv6"), "--resolve": .value("--resolve"), "--unix-socket": .value("--unix-socket"),
        "--http1.1": .flag("--http=1.1"), "--http2": .nothing, "--http2-prior-knowledge": .flag("--http=2"),
        "--http3": .flag("--http=3"), "--http3-only": .flag("--http=3"), "--tcp-nodelay": .nothing, "--keepalive-time": .ignoredValue,
        "--no-keepalive": .nothing, "--keepalive-cnt": .ignoredValue, "--parallel": .nothing, "--parallel-immediate": .nothing,
        "--parallel-max": .ignoredValue,
    ]

    static let short: [Character: String] = [
        "H": "--header", "d": "--data", "F": "--form", "X": "--request", "I": "--head", "G": "--get", "A": "--user-agent",
        "e": "--referer", "b": "--cookie", "r": "--range", "L": "--location", "T": "--upload-file", "u": "--user", "i": "--include",
        "v": "--verbose", "o": "--output", "O": "--remote-name", "k": "--insecure", "E": "--cert", "x": "--proxy", "m": "--max-time",
        "s": "--silent", "S": "--show-error", "#": "--progress-bar", "N": "--no-buffer", "g": "--globoff", "f": "--fail",
        "n": "--netrc", "q": "--disable", "C": "--continue-at", "U": "--proxy-user", "1": "--tlsv1", "Z": "--parallel", "B": "--use-ascii",
        "j": "--junk-session-cookies", "4": "--ipv4", "6": "--ipv6",
    ]
}
