// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Passwords that are typed.
enum Credentials {
    /// Ctrl-C was typed in place of a password.
    struct Interruption: Error {}

    /// The passwords that were typed, by their questions. Locked while one is asked for, so that questions come one after the other.
    private static let answers = Answers()

    private final class Answers: @unchecked Sendable {  // guarded by the lock
        let lock = NSLock()
        var known: [String: String] = [:]
    }

    /// Asks for a password on the terminal, without showing it, once for all transfers of a command; `nil` if there is no terminal.
    static func prompt(_ question: String) throws(Interruption) -> String? {
        answers.lock.lock()
        defer { answers.lock.unlock() }
        if let known = answers.known[question] { return known }
        let answer = try ask(question)
        answers.known[question] = answer
        return answer
    }

    private static func ask(_ question: String) throws(Interruption) -> String? {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard terminal >= 0 else { return nil }
        defer { close(terminal) }
        let output = Output(descriptor: terminal)
        var before = termios()
        guard tcgetattr(terminal, &before) == 0 else { return nil }
        var silent = before
        // The keys that end or stop a program are read too: without that, Ctrl-C would leave a terminal that shows nothing typed.
        silent.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
        silenced = (terminal, before)
        let handler = signal(SIGTERM) { number in
            Credentials.restoreTerminal()
            signal(number, SIG_DFL)
            raise(number)
        }
        defer { signal(SIGTERM, handler) }
        tcsetattr(terminal, TCSAFLUSH, &silent)
        try? output.write(Data(SafeText.escaped(question).utf8))
        var line = TypedLine()
        var byte: UInt8 = 0
        while !line.isComplete, read(terminal, &byte, 1) == 1 { line.type(byte) }
        silenced = nil
        tcsetattr(terminal, TCSAFLUSH, &before)
        try? output.write(Data("\n".utf8))
        if line.isInterrupted { throw Interruption() }
        return String(decoding: line.bytes, as: UTF8.self)
    }

    /// A terminal that shows nothing of what is typed, and its settings before; set by the thread that asks.
    nonisolated(unsafe) private static var silenced: (terminal: Int32, before: termios)?

    /// Has the terminal show again what is typed, before the program ends at a prompt. Calls nothing that a signal's handler may not.
    static func restoreTerminal() {
        guard var silenced else { return }
        tcsetattr(silenced.terminal, TCSANOW, &silenced.before)
    }

    /// What is typed on a terminal that edits no lines.
    struct TypedLine {
        private(set) var bytes: [UInt8] = []
        private(set) var isComplete = false
        private(set) var isInterrupted = false

        mutating func type(_ byte: UInt8) {
            switch byte {
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"): isComplete = true
            case 0x03, 0x1C: (isComplete, isInterrupted) = (true, true)  // Ctrl-C, Ctrl-\
            case 0x04: isComplete = true  // Ctrl-D
            case 0x15: bytes = []  // Ctrl-U
            case 0x1A: break  // Ctrl-Z, which must not stop the program while its terminal shows nothing
            case 0x08, 0x7F:  // Backspace
                // With the continuation bytes of a character of UTF-8.
                while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
            default: bytes.append(byte)
            }
        }
    }
}
