// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The two outputs. Lines are written at once, also into a pipe.
enum Console {
    static let isTerminal = isatty(STDOUT_FILENO) == 1

    static func say(_ line: String) {
        write(line + "\n", to: .standardOutput)
    }

    static func complain(_ line: String) {
        write(line + "\n", to: .standardError)
    }

    /// Writes over the line on which the cursor is.
    static func rewrite(_ line: String) {
        write("\r" + line, to: .standardOutput)
    }

    private static func write(_ text: String, to file: FileHandle) {
        try? file.write(contentsOf: Data(text.utf8))
    }
}

extension Duration {
    /// As "1.25 s".
    var inSeconds: String { String(format: "%.2f s", self / .seconds(1)) }
    /// As "0.481 ms".
    var inMilliseconds: String { String(format: "%.3f ms", self / .milliseconds(1)) }
}
