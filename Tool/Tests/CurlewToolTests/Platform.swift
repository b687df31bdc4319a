// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Platform differences.
enum Platform {
    /// Opens a pseudo terminal: the user's end and the terminal's end; `nil` if there are none.
    ///
    /// - Parameter columns: the width, 0 for one that is not known.
    static func makeTerminal(columns: Int) -> (user: Int32, terminal: Int32)? {
        #if os(Linux)
        // posix_openpt and related functions are not in the C library's module.
        let user = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        var number: Int32 = 0
        var lock: Int32 = 0
        guard user >= 0, ioctl(user, 0x4004_5431, &lock) == 0, ioctl(user, 0x8004_5430, &number) == 0 else { return nil }
        let terminal = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
        #else
        let user = posix_openpt(O_RDWR | O_NOCTTY)
        guard user >= 0, grantpt(user) == 0, unlockpt(user) == 0, let name = ptsname(user) else { return nil }
        let terminal = open(name, O_RDWR | O_NOCTTY)
        #endif
        guard terminal >= 0 else { return nil }
        var size = winsize(ws_row: 24, ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        guard columns == 0 || ioctl(user, UInt(TIOCSWINSZ), &size) == 0 else { return nil }
        return (user, terminal)
    }

    /// The words of util-linux's or BSD's `script` that run a command of the shell with a terminal of its own.
    static func scriptWords(_ command: String) -> [String] {
        #if os(Linux)
        ["-qec", command, "/dev/null"]
        #else
        ["-q", "/dev/null", "/bin/sh", "-c", command]
        #endif
    }
}
