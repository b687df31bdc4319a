// SPDX-License-Identifier: Apache-2.0

/// What to write in place of an option of curl that this program does not have.
enum OptionHints {
    private static let hints: [(words: Set<String>, hint: String)] = [
        (["-H", "--header"], "a header field is written Name:value"),
        (["-d", "--data", "--data-raw", "--data-binary"], "a field is written name=value, another body --raw TEXT or --body FILE"),
        (["-F"], "a part is written name=value or name@file, with --multipart"),
        (["-o", "--output", "-O", "--remote-name"], "a file is written with --download FILE"),
        (["-L", "--location"], "redirects are followed; --max-redirects 0 follows none"),
        (["-k"], "the option is --insecure"),
        (["-X", "--request"], "the method is written before the URL"),
        (["-x"], "the option is --proxy"),
        (["-i", "--include"], "the option is -p hb"),
        (["-s", "-S", "--silent"], "nothing but the response is printed anyway"),
        (["-G", "--get"], "a query item is written name==value"),
        (["-e", "--referer"], "write Referer:URL"),
        (["-E"], "the option is --cert"),
        (["-c"], "--session NAME keeps cookies"),
        (["-T", "--upload-file"], "write PUT before the URL, and --body FILE"),
        (["--compressed"], "compression is requested and decoded anyway"),
        (["--http1"], "the option is --http 1.1"),
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
