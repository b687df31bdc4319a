// SPDX-License-Identifier: Apache-2.0
import Curlew

/// What the tool says of itself.
enum Help {
    /// The versions of the tool and of the libcurl it runs on.
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
        Sends an HTTP request and puts out the response.

        curlew [OPTION…] [METHOD] URL [ITEM…]

        METHOD is GET, or POST for a request with a body, unless given. A URL without a scheme gets https://, on localhost and
        loopback addresses http://; :8080/path is http://localhost:8080/path.

        Items:
          name=value     a field of the body: JSON, or a form with --form
          name:=json     a field of the body with a value in JSON
          name==value    an item of the query
          Header:value   a header field; "Header:" leaves out a default, "Header;" sends an empty one
          A backslash makes the separator behind it a part of the name: a\\:b=c

        Body:
          --form                  send the fields as a form
          --body FILE|-           send a file, or standard input, as the body

        Output:
          --headers               put out the response's head too
          --pretty                lay out JSON in a pipe too
          --raw                   don't lay out JSON; show binary bodies on a terminal too
          --no-decode             neither ask for compression nor undo it
          --download FILE         write the body to a file, which has its name only when it is whole
          --continue              go on with what an earlier download of the URL to the file has left, and leave it if this one
                                  does not get to the end; the server must name a version of the file (ETag)
          --force                 replace the file if it is there
          -v, --verbose           show both heads on standard error, without secrets

        Credentials:
          --token TOKEN           send "Authorization: Bearer TOKEN"; better in the variable CURLEW_TOKEN, as others may read
                                  the command line
          --user NAME:PASSWORD    send "Authorization: Basic …"

        Connection:
          --timeout SECONDS       the longest time for everything; without it only silence ends a transfer, after 60 s
          --connect-timeout SECONDS
                                  the longest time for connecting; 30 s by default
          --max-redirects N       how many redirects to follow; 20 by default, 0 puts out the redirect itself
          --cacert FILE           trust these certificates (PEM) instead of the system's
          --insecure              don't check the server's certificate
          --http1                 speak HTTP/1.1

          -h, --help              show this
          --version               show the versions of curlew and libcurl

        Exit status:

        """
}
