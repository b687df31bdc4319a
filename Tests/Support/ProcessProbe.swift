// SPDX-License-Identifier: Apache-2.0

/// The process's use of system resources, from `/proc/self` (nil on systems without it), and its limits.
public enum ProcessProbe {
    /// The number of threads of the process.
    ///
    /// The kernel removes a thread from its list shortly after the join, so compare inside ``settles(timeout:_:)``.
    public static var threadCount: Int? {
        status("Threads:")
    }

    /// Makes all later writes of this process fail that would extend a file beyond a length, like a full disk.
    public static func limitFileSizes(to bytes: Int) {
        Platform.limitFileSizes(to: bytes)
    }

    /// Returns the number of threads called `name` (its first 15 bytes).
    public static func threadCount(named name: String) -> Int? {
        let path = "/proc/self/task"
        guard let threads = try? FileManager.default.contentsOfDirectory(atPath: path) else { return nil }
        return threads.count { contents(of: "\(path)/\($0)/comm")?.dropLast() == name.prefix(15) }
    }

    /// The number of open file descriptors.
    public static var openDescriptorCount: Int? {
        guard let entries = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") else { return nil }
        return entries.count - 1  // excluding the one that reads the directory
    }

    /// Raises the limit of file descriptors to the maximum the process may set, and returns it.
    @discardableResult
    public static func raiseDescriptorLimit() -> Int {
        Platform.raiseDescriptorLimit()
    }

    /// The resident memory, in bytes.
    public static var residentBytes: Int? {
        status("VmRSS:").map { $0 << 10 }
    }

    /// The peak resident memory since the process started, in bytes.
    public static var peakResidentBytes: Int? {
        status("VmHWM:").map { $0 << 10 }
    }

    /// The number of bytes that the process has caused to be written to disks.
    public static var writtenBytes: Int? {
        value(of: "write_bytes:", in: "/proc/self/io")
    }

    /// Polls `isSettled`, yielding to other threads, until it returns true. Returns false on timeout.
    ///
    /// Only for values kept by the kernel, whose changes are not announced. Everything else in this module can be awaited.
    public static func settles(timeout: Duration = .seconds(10), _ isSettled: () -> Bool) -> Bool {
        let start = ContinuousClock.now
        while !isSettled() {
            guard start.duration(to: .now) < timeout else { return false }
            sched_yield()
        }
        return true
    }

    private static func status(_ key: String) -> Int? {
        value(of: key, in: "/proc/self/status")
    }

    private static func value(of key: String, in path: String) -> Int? {
        guard let line = contents(of: path)?.split(separator: "\n").first(where: { $0.hasPrefix(key) }) else { return nil }
        return line.split { !$0.isNumber }.first.flatMap { Int($0) }
    }

    /// A file of the kernel. Foundation loses its buffer where reading fails, as of a thread that ends meanwhile.
    private static func contents(of path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
