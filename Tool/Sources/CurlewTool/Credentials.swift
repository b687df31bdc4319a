// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Passwords that are typed or stored.
enum Credentials {
    /// Asks for a password on the terminal, without showing it; `nil` if there is no terminal.
    static func prompt(_ question: String) -> String? {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard terminal >= 0 else { return nil }
        defer { close(terminal) }
        let output = Output(descriptor: terminal)
        var before = termios()
        guard tcgetattr(terminal, &before) == 0 else { return nil }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        try? output.write(Data(SafeText.escaped(question).utf8))
        tcsetattr(terminal, TCSAFLUSH, &silent)
        defer {
            tcsetattr(terminal, TCSAFLUSH, &before)
            try? output.write(Data("\n".utf8))
        }
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while read(terminal, &byte, 1) == 1, byte != UInt8(ascii: "\n") { bytes.append(byte) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Finds the name and password of a host in the text of a netrc file.
    static func netrc(_ text: String, host: String) -> (user: String, password: String)? {
        var words = text.split(whereSeparator: \.isNewline)
            .filter { !$0.drop(while: \.isWhitespace).hasPrefix("#") }
            .flatMap { $0.split(whereSeparator: \.isWhitespace).map(String.init) }[...]
        var isMatch = false
        var user: String?
        var password: String?
        while let word = words.popFirst() {
            switch word {
            case "machine", "default":
                if isMatch, let user { return (user, password ?? "") }
                isMatch = word == "default" || words.popFirst()?.lowercased() == host.lowercased()
                (user, password) = (nil, nil)
            case "login": user = words.popFirst()
            case "password": password = words.popFirst()
            case "account": _ = words.popFirst()
            default: break
            }
        }
        return isMatch ? user.map { ($0, password ?? "") } : nil
    }
}
