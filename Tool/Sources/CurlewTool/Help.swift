// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The tool's help and version texts.
enum Help {
    /// The versions of the tool and the libcurl in use, and what that can do.
    static var version: String {
        let curl = CurlInfo.current
        let features = [
            ("HTTP/2", curl.supportsHTTP2), ("HTTP/3", curl.supportsHTTP3), ("NTLM", curl.supportsNTLM),
            ("Negotiate", curl.supportsNegotiate),
        ]
        .filter(\.1).map(\.0)
        return "curlew \(CurlewInfo.version)\nlibcurl \(curl.version)\(curl.tlsLibrary.map { " (\($0))" } ?? "")\n"
            + "features: \(features.joined(separator: ", "))\n"
    }

    /// The text in lines that fit the terminal, if standard output is one.
    static var shown: String { fitted(text) }

    static func fitted(_ text: String) -> String {
        guard let width = Output.standard.width else { return text }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.flatMap { wrapped($0, width: max(width, 40)) }.joined(separator: "\n")
    }

    /// Breaks a line between words. What follows stands below the text behind the term that the line begins with, if it has one.
    static func wrapped(_ line: Substring, width: Int) -> [String] {
        guard line.count > width else { return [String(line)] }
        let margin = line.prefix { $0 == " " }.count
        // A term is followed by two spaces at least; a line that only continues one begins with many.
        let gap = line.dropFirst(margin).firstRange(of: "  ")
        let text = gap.map { line[$0.lowerBound...].drop { $0 == " " } }
        let column = text.map { line.distance(from: line.startIndex, to: $0.startIndex) } ?? margin
        let indent = min(column, width / 2)
        // A word that is too long for its column begins further left.
        func begun(_ word: Substring, at column: Int) -> String {
            String(repeating: " ", count: max(min(column, width - word.count), 0)) + word
        }
        var lines: [String] = []
        var current: String?
        for word in line.dropFirst(margin).split(separator: " ", omittingEmptySubsequences: false) {
            guard let begunLine = current else {
                current = begun(word, at: margin)
                continue
            }
            if word.isEmpty || begunLine.count + 1 + word.count <= width {
                current = "\(begunLine) \(word)"
            } else {
                lines.append(begunLine)
                current = begun(word, at: indent)
            }
        }
        return (lines + [current ?? ""]).map { line in String(line.reversed().drop { $0 == " " }.reversed()) }
    }

    static var text: String {
        let statuses = ExitStatus.allCases.map { status in
            let number = "\(status.rawValue)"
            return "  \(String(repeating: " ", count: 3 - number.count))\(number)  \(status.summary)"
        }
        return usage + statuses.joined(separator: "\n") + "\n"
    }

    private static let usage = """
        Sends an HTTP request and prints the response.

        curlew [OPTION…] [METHOD] URL [ITEM…]

        METHOD defaults to GET, or to POST for a request with a body. A URL without a scheme gets https://, on localhost and
        loopback addresses http://; :8080/path is http://localhost:8080/path. A file or pipe on standard input is the body of a
        request without another one if METHOD is POST, PUT, PATCH or of another name that takes one, or with -j; a bare URL
        leaves the lines of "while read" alone.

        Items:
          name=value     a field of the JSON body, or of a form with --form or --multipart
          name:=json     a field of the JSON body with a raw JSON value; with --multipart a part of that type
          name==value    a query item
          name@file      a file as a part of --multipart; name@file;type=text/csv;filename=x with a type and another name
          Header:value   a header field; "Header:" removes a default, but for Accept: */*; "Header;" sends an empty one
          name=@file     the same with the text of a file as the value; likewise :=@, ==@ and :@
          a[b][0]=x      a field in nested objects and arrays; a[]=x appends
          @file, -       all of the body from a file, or from standard input
          A backslash escapes a separator in a name: a\\:b=c

        Body:
          -j, --json              send the fields as JSON, the default; with --raw or --body, say that it is JSON
          -f, --form              send the fields as a form
          --multipart             send the fields and files as multipart/form-data
          --raw TEXT              send TEXT as the body
          --body FILE|-           send a file, or standard input, as the body
          -I, --ignore-stdin      don't send what a pipe or file on standard input has

        Output:
          -v, --verbose           print heads and bodies of all exchanges, redirects too: -p HBhb
          -h, --headers           print the heads of the responses only
          -b, --body-only         print the body only, which is the default in a pipe; on a terminal it is -p hb
          -m, --meta              print times, addresses, protocol and sizes of each exchange, in place of the response or
                                  beside what -v, -h, -b or -p prints
          -p, --print WHAT        print what the letters say: H and B the request's head and body (up to 16 MiB), h and
                                  b the response's, m as --meta
          --pretty HOW            all, format or none: by default colours and formatted JSON on a terminal, unless
                                  NO_COLOR is set, and neither in a pipe
          --filter PATH           print what this path selects in a JSON body (RFC 9535), one value a line and strings without
                                  quotes: items[0].name, items[?@.size>10].name, ..id; the exit status is 1 if nothing does
          --pager                 show what is longer than the screen in the program of CURLEW_PAGER or PAGER, or in less
          --raw-output            don't escape control characters of a body on a terminal, which may control it, and show
                                  binary bodies too
          --show-secrets          don't redact credentials and cookies in heads
          --offline               print the request, and send nothing
          --curl                  print the request as a command of curl, with its secrets, and send nothing
          --no-decode             don't request or decode compression; else a given Accept-Encoding is sent without the
                                  codings that can't be decoded
          --download FILE         write the body to a file, which appears only when complete
          --continue              resume an earlier download of the URL to the file, and keep a partial download for
                                  resumption; the server must send an ETag. A finished download is success and costs no
                                  byte of the body; one that has changed is loaded again with --force
          --force                 replace an existing file
          --waterfall FILE        draw the exchanges into a file (SVG)
          --har FILE              record the exchanges, redacted, in an HTTP Archive
          --record FOLDER         record the exchanges, redacted, to be replayed
          --replay FOLDER         respond from what was recorded, without a network; if a body was sent with the request, it has
                                  to be the recorded one: JSON by value, text by lines, and others by bytes
          --diff                  with --replay, send the request, and print how status, type and body of the response differ
                                  from the recorded ones; the exit status is 1 if they do

        Credentials:
          --token TOKEN           send "Authorization: Bearer TOKEN"; prefer the environment variable CURLEW_TOKEN,
                                  as other users may read the command line
          -u, -a, --user NAME:PASSWORD
                                  send "Authorization: Basic …"; without :PASSWORD it is asked for on the terminal
          -A, --auth-type TYPE    basic sends the password at once; challenge waits for what the server asks for (Basic,
                                  Digest, NTLM, Negotiate)
          --netrc                 take name and password of the host, or the password of the user that --user or the URL
                                  names, from ~/.netrc, or the file in NETRC
          --session NAME          keep under this name, in ~/.config/curlew/sessions, cookies as a browser does, and for the
                                  origin of the URL given header fields and what --user and --token say, and send them

        Connection:
          --timeout SECONDS       the limit of each attempt; without it only 60 s without data end a transfer
          --deadline SECONDS      the limit for everything, all attempts and the waits between them
          --connect-timeout SECONDS
                                  the limit for connecting; 30 s by default
          --retry N               try again up to N times, after Retry-After or with growing delays, where a connection
                                  fails or the status is 408, 429, 500, 502, 503 or 504; not POST and PATCH
          --max-redirects N       how many redirects to follow; 20 by default, 0 prints the redirect itself
          --cacert FILE           trust these certificates (PEM) instead of the system's
          --cert FILE [--key FILE]
                                  the client's certificate and its key (PEM), in two files or one, or a PKCS #12 archive; for
                                  the URL's own origin: redirects to others are sent without it. The password of an encrypted
                                  key is that of the environment variable CURLEW_KEY_PASSWORD, or is asked for
          --pin sha256//BASE64    demand this public key of the server; may be repeated
          --tls 1.2|1.3           the oldest version of TLS to accept; 1.2 by default
          --insecure              don't verify the server's certificate
          --proxy URL|none        use this proxy: http, https, socks4, socks4a, socks5 or socks5h; by default that of the
                                  environment
          --interface NAME        send from this network interface, or from this address of the machine
          -4, --ipv4              connect over IPv4 only
          -6, --ipv6              connect over IPv6 only
          --resolve HOST:PORT:ADDRESS[,ADDRESS…]
                                  connect to these addresses in place of those of the name; may be repeated
          --unix-socket PATH      connect to this Unix domain socket; the URL still names the host
          --cache                 keep responses in a cache on disk, and respond from it where HTTP allows
          --http 1.1|2|3          use HTTP/1.1; or HTTP/2, without TLS by prior knowledge, with TLS if the server has it;
                                  or HTTP/3, if libcurl and the server have it

          --completions SHELL     print a script of completion for bash, zsh or fish
          --help                  print this help
          --version               print the versions of curlew, libcurl and TLS

        \(Subcommand.usage)
        Exit status:

        """
}
