// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Uses files of cookies, and of hosts, that other processes use, too.
struct JarProbe {
    let file: URL

    init(_ path: String) {
        file = URL(fileURLWithPath: path)
    }

    /// Sets cookies and hosts of its own, one at a time; returns how many of its earlier ones were missing.
    func churn(name: String, count: Int) throws -> Int {
        let (store, hosts) = (CookieStore.file(file), HSTSStore.file(URL(fileURLWithPath: file.path + ".hsts")))
        var missing = 0
        for number in 0..<count {
            let expiry = Date(timeIntervalSinceNow: 1e6)
            try Self.repeated {
                try store.set(Cookie(name: "\(name)-\(number)", value: name, domain: "example.org", expirationDate: expiry))
            }
            try Self.repeated { try hosts.set(HSTSHost(host: "\(name)-\(number).example.org", expirationDate: expiry)) }
            let (cookies, known) = (try store.cookies(), try hosts.hosts())
            missing += number + 1 - cookies.count { $0.value == name }
            missing += number + 1 - known.count { $0.host.hasPrefix("\(name)-") }
        }
        return missing
    }

    /// Makes a change again that has not had the lock in time, which many processes and a slow disk may keep from one.
    private static func repeated(_ change: () throws -> Void) throws {
        while true {
            do { return try change() } catch CookieStoreError.locked {}
        }
    }

    /// Sets cookies of one generation after the other, all of one at once, so many times or until it is killed.
    func fill(from start: Int, count: Int = .max) throws {
        let store = CookieStore.file(file)
        let expiry = Int(Date().timeIntervalSince1970) + 1_000_000
        var generation = start
        while generation - start < count {
            generation += 1
            let lines = (0..<40).map { "example.org\tFALSE\t/\tFALSE\t\(expiry)\tc\($0)\t\(generation)" }
            do {
                try store.importNetscape(lines.joined(separator: "\n"))
                Probe.report("failed", 0)
            } catch let error as CocoaError {
                Probe.report("failed", error.code == .fileWriteUnknown || error.code == .fileWriteOutOfSpace ? 1 : 2)
                // What could not be written counts in memory.
                let value = "\(generation)"
                let held = store.lastError != nil && (try? store.cookies().allSatisfy { $0.value == value }) == true
                Probe.report("held", held ? 1 : 0)
            }
        }
    }
}
