// SPDX-License-Identifier: Apache-2.0
import Curlew
import Foundation

// The code of CookiesAndHSTS.md, region by region: the lines between `// snippet: NAME` and `// end` are the same in both files, up to
// indentation. `CookiesGuideTests` checks that, and runs the code.

enum CookiesGuideSnippets {
    static func memory() -> SessionManager {
        // snippet: memory
        var configuration = SessionConfiguration()
        configuration.cookies = .memory
        let manager = SessionManager(configuration: configuration)
        // end
        return manager
    }

    static func files(_ configuration: inout SessionConfiguration, _ directory: URL) {
        // snippet: files
        configuration.cookies = .file(directory.appendingPathComponent("cookies.txt"))
        configuration.hsts = .file(directory.appendingPathComponent("hsts.txt"))
        // end
    }

    static func editing(print: (String, String) -> Void) throws -> CookieStore {
        // snippet: editing
        let store = CookieStore.memory
        try store.set(Cookie(name: "session", value: "42", domain: "api.example.org", isSecure: true))
        for cookie in try store.cookies(for: "https://api.example.org/users") { print(cookie.name, cookie.value) }
        try store.remove { $0.domain == "old.example.org" }
        try store.removeSessionCookies()
        // end
        return store
    }

    static func netscape(_ store: CookieStore, from file: URL, to copy: URL, print: (String, [Int]) -> Void) throws {
        // snippet: netscape
        let found = try store.importNetscape(String(contentsOf: file, encoding: .utf8))
        if !found.invalidLines.isEmpty { print("skipped lines", found.invalidLines) }
        try Data(store.exportNetscape().utf8).write(to: copy)
        // end
    }

    static func hsts(_ configuration: inout SessionConfiguration) {
        // snippet: hsts
        configuration.hsts = .memory
        // end
    }

    static func hosts(_ configuration: inout SessionConfiguration) throws {
        // snippet: hosts
        let hosts = HSTSStore.memory
        try hosts.set(HSTSHost(host: "example.org", includesSubdomains: true, expirationDate: .distantFuture))
        configuration.hsts = hosts
        // end
    }
}
