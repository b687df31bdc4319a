// SPDX-License-Identifier: Apache-2.0

/// What this process holds of the system's resources, from `/proc/self`: nil on systems without it; and what it may have of them.
public enum ProcessProbe {
    /// How many threads the process has.
    ///
    /// The kernel takes a joined thread from its list a moment after the join: compare with ``settles(timeout:_:)``.
    public static var threadCount: Int? {
        status("Threads:")
    }

    /// From now on, writes of this process fail that would make a file longer: what a full disk says to all.
    public static func limitFileSizes(to bytes: Int) {
        Platform.limitFileSizes(to: bytes)
    }

    /// How many threads bear `name` (at most 15 bytes of it).
    public static func threadCount(named name: String) -> Int? {
        let path = "/proc/self/task"
        guard let threads = try? FileManager.default.contentsOfDirectory(atPath: path) else { return nil }
        return threads.count { thread in
            let found = FileManager.default.contents(atPath: "\(path)/\(thread)/comm").map { String(decoding: $0, as: UTF8.self) }
            return found?.dropLast() == name.prefix(15)
        }
    }

    /// How many file descriptors are open.
    public static var openDescriptorCount: Int? {
        guard let entries = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") else { return nil }
        return entries.count - 1  // without the one that reads the directory
    }

    /// Allows as many file descriptors as the process may allow itself; how many those are.
    @discardableResult
    public static func raiseDescriptorLimit() -> Int {
        Platform.raiseDescriptorLimit()
    }

    /// The memory that is resident, in bytes.
    public static var residentBytes: Int? {
        status("VmRSS:").map { $0 << 10 }
    }

    /// The most memory that was resident since the process began, in bytes.
    public static var peakResidentBytes: Int? {
        status("VmHWM:").map { $0 << 10 }
    }

    /// Whether `isSettled` answers true within the time; asks again and again, giving way to other threads in between.
    ///
    /// For values of the kernel alone, that nothing announces. Everything else in this module can be waited for.
    public static func settles(timeout: Duration = .seconds(10), _ isSettled: () -> Bool) -> Bool {
        let start = ContinuousClock.now
        while !isSettled() {
            guard start.duration(to: .now) < timeout else { return false }
            sched_yield()
        }
        return true
    }

    private static func status(_ key: String) -> Int? {
        guard let contents = FileManager.default.contents(atPath: "/proc/self/status") else { return nil }
        let lines = String(decoding: contents, as: UTF8.self).split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix(key) }) else { return nil }
        return line.split { !$0.isNumber }.first.flatMap { Int($0) }
    }
}
