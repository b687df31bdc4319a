// SPDX-License-Identifier: Apache-2.0

/// What to write in place of an option of curl that this program does not have.
enum OptionHints {
    static let hints: [(words: Set<String>, hint: String)] = [
        (["-H", "--header"], "a header field is written Name:value"),
        (
            ["-d", "--data", "--data-raw", "--data-binary", "--data-ascii"],
            "a field is written name=value, another body --raw TEXT or --body FILE"
        ),
        (["--data-urlencode"], "a field is written name=value, with --form"),
        (["-F", "--form-string"], "a part is written name=value or name@file, with --multipart"),
        (["-o", "--output", "-O", "--remote-name"], "a file is written with --download FILE"),
        (["-L", "--location", "--follow"], "redirects are followed; --max-redirects 0 follows none"),
        (["--max-redirs"], "the option is --max-redirects"),
        (["-k", "--verify"], "the options are --insecure and --cacert"),
        (["-X", "--request"], "the method is written before the URL"),
        (["--head"], "write HEAD before the URL"),
        (["-x", "--preproxy", "--socks5", "--socks5-hostname", "--socks4", "--socks4a"], "the option is --proxy URL"),
        (["--noproxy"], "the option is --proxy none"),
        (["-U", "--proxy-user"], "write the user in the URL of --proxy"),
        (["-i", "--include", "--show-headers"], "the option is -p hb"),
        (["-D", "--dump-header"], "the options are --headers and -p hb"),
        (["-s", "-S", "--silent", "--show-error"], "nothing but the response is printed anyway"),
        (["-w", "--write-out"], "--meta prints times, connection and sizes"),
        (["--all"], "-v prints the exchanges of redirects too"),
        (["-G", "--get", "--url-query"], "a query item is written name==value"),
        (["-e", "--referer"], "write Referer:URL"),
        (["--user-agent"], "write User-Agent:TEXT"),
        (["--cookie"], "write Cookie:name=value"),
        (["-r", "--range"], "write Range:bytes=FIRST-LAST"),
        (["--compressed"], "compression is requested and decoded anyway"),
        (["-E"], "the option is --cert"),
        (["-c", "--cookie-jar"], "--session NAME keeps cookies"),
        (["-T", "--upload-file"], "write PUT before the URL, and --body FILE"),
        (["-C", "--continue-at"], "the option is --continue, with --download FILE"),
        (["--limit-rate"], "curlew download has it"),
        (["-n"], "the option is --netrc"),
        (["--digest", "--ntlm", "--negotiate", "--anyauth"], "the option is --auth-type challenge"),
        (["--oauth2-bearer"], "the option is --token"),
        (["--auth"], "the option is --user"),
        (["--pinnedpubkey"], "the option is --pin"),
        (["--max-time"], "the option is --timeout"),
        (["--retry-max-time"], "the option is --deadline"),
        (["--tlsv1.2", "--tlsv1.3", "--ssl"], "the option is --tls 1.2 or 1.3"),
        (["--fail", "--fail-with-body", "--check-status"], "the exit status tells an error anyway"),
        (["-N", "--no-buffer", "--stream"], "the body is printed as it comes anyway"),
        (["--http1", "--http1.1"], "the option is --http 1.1"),
        (["--http2", "--http2-prior-knowledge"], "the option is --http 2"),
        (["--http3", "--http3-only"], "the option is --http 3"),
    ]

    /// Returns a message of the parser in our form, with a hint for an option of curl.
    static func message(_ text: String, _ words: [String]) -> String {
        let line = text.prefix { $0 != "\n" }.trimmingCharacters(in: .whitespaces)
        let first = line.prefix(1).lowercased() + line.dropFirst()
        // A cluster of short options is reported by its letter.
        let unknown = first.hasPrefix("unknown option '") ? first.dropFirst(16).prefix { $0 != "'" && $0 != "=" } : ""
        guard let hint = hints.first(where: { $0.words.contains(String(unknown)) })?.hint else { return String(first) }
        return "unknown option \(unknown): \(hint)"
    }
}
