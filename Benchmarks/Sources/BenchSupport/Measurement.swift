// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Wall and CPU time of the process, taken before and after what is measured.
struct Clock: Sendable {
    let wallSeconds: Double
    let cpuSeconds: Double

    static func now() -> Clock {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return Clock(wallSeconds: monotonicSeconds(), cpuSeconds: seconds(usage.ru_utime) + seconds(usage.ru_stime))
    }

    private static func monotonicSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) / 1e6
    }
}

/// What was asked for and what came back.
struct Tally: Sendable {
    var requests = 0
    var failed = 0
    var bytes = 0
}

/// What was measured, as the line of JSON that `report.py` reads.
struct Report {
    let program: String
    let tally: Tally
    let start: Clock
    let end: Clock
    /// The memory before the requests.
    let residentKiB: Int

    var line: String {
        let cpu = end.cpuSeconds - start.cpuSeconds
        let fields = [
            #""program": "\#(program)""#,
            #""requests": \#(tally.requests)"#, #""failed": \#(tally.failed)"#, #""bytes": \#(tally.bytes)"#,
            #""wall_seconds": \#(end.wallSeconds - start.wallSeconds)"#, #""cpu_seconds": \#(cpu)"#,
            #""cpu_us_per_request": \#(cpu * 1e6 / Double(max(tally.requests, 1)))"#,
            #""base_rss_kib": \#(residentKiB)"#, #""peak_rss_kib": \#(residentMemoryKiB("VmHWM"))"#,
        ]
        return "{" + fields.joined(separator: ", ") + "}"
    }
}

/// A figure of this program alone, in KiB: `VmRSS` now, `VmHWM` at most; `ru_maxrss` would also count the program that started it.
func residentMemoryKiB(_ name: String) -> Int {
    guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
        let line = status.split(separator: "\n").first(where: { $0.hasPrefix(name + ":") })
    else { return 0 }
    return Int(line.filter(\.isNumber)) ?? 0
}
