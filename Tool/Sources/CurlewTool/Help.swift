// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The tool's help and version texts.
enum Help {
    /// The versions of the tool and the libcurl in use.
    static var version: String {
        let curl = CurlInfo.current
        return "curlew \(CurlewInfo.version)\nlibcurl \(curl.version)\(curl.tlsLibrary.map { " (\($0))" } ?? "")\n"
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
        loopback addresses http://; :8080/path is http://localhost:8080/path.

        Items:
          name=value     a field of the JSON body, or of a form with --form
          name:=json     a field of the JSON body with a raw JSON value
          name==value    a query item
          Header:value   a header field; "Header:" removes a default, "Header;" sends an empty one
          A backslash escapes a separator in a name: a\\:b=c

        Body:
          --form                  send the fields as a form
          --body FILE|-           send a file, or standard input, as the body

        Output:
          --headers               print the response's head, too
          --pretty                format JSON when writing to a pipe, too
          --raw                   don't format JSON; show binary bodies on a terminal, too
          --no-decode             don't request or decode compression
          --download FILE         write the body to a file, which appears only when complete
          --continue              resume an earlier download of the URL to the file, and keep a partial download for
                                  resumption; the server must send an ETag. A finished
                                  download is loaded again only if it has changed
          --force                 replace an existing file
          -v, --verbose           print both heads to standard error, without secrets

        Credentials:
          --token TOKEN           send "Authorization: Bearer TOKEN"; prefer the environment variable CURLEW_TOKEN,
                                  as other users may read the command line
          --user NAME:PASSWORD    send "Authorization: Basic …"

        Connection:
          --timeout SECONDS       the limit for the entire request; without it only 60 s without data end a transfer
          --connect-timeout SECONDS
                                  the limit for connecting; 30 s by default
          --max-redirects N       how many redirects to follow; 20 by default, 0 prints the redirect itself
          --cacert FILE           trust these certificates (PEM) instead of the system's
          --insecure              don't verify the server's certificate
          --http1                 use HTTP/1.1

          -h, --help              print this help
          --version               print the versions of curlew and libcurl

        Exit status:

        """
}
