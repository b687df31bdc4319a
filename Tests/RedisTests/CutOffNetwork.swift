// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewTestSupport
import Dispatch

/// A network namespace that can be cut off from the rest of the machine, with a thread in it: the processes and clients that this thread
/// starts are in it too, and so are the threads of these clients. It has no name, so that it ends with the last of them, and with it the link
/// to the rest; the processes end with the thread, however the tests end.
final class CutOffNetwork: Sendable {
    /// Why tests are skipped that need one.
    static let need = "needs network namespaces: Linux, root, ip (iproute2), unshare and setpriv (util-linux)"
    /// How many were made, so that each has other addresses.
    private static let count = Lock(0)

    /// The address in the namespace, and that of the rest of the machine: of the network for benchmarks (RFC 2544), which is routed nowhere.
    let inner, outer: String
    private let link: String
    private let jobs = Lock<[@Sendable () -> Void]>([])
    private let signal = DispatchSemaphore(value: 0)
    /// What `unshare` has returned; the thread sets it first.
    private let status = Lock<Int32>(-1)

    /// Whether the system allows namespaces and links.
    static func isAllowed() async -> Bool {
        guard ChildProcess.path(of: "setpriv") != nil else { return false }
        let attempt = try? ChildProcess("unshare", "--net", "ip", "link", "add", "type", "veth")
        return await attempt?.finish().status == 0
    }

    /// Makes a namespace that is connected to the rest.
    init() async throws {
        let number = Self.count.withLock { count in
            count += 1
            return (Int(getpid()) * 4 + count) % 32_768
        }
        func address(_ host: Int) -> String { "198.\(18 + number >> 14).\(number >> 6 & 255).\((number & 63) << 2 + host)" }
        (inner, outer, link) = (address(1), address(2), "curlew\(number)")
        Thread.detachNewThread { [jobs, signal, status] in
            // Swift imports neither the function nor CLONE_NEWNET, of <sched.h>.
            let unshare = processFunction("unshare", as: (@convention(c) (Int32) -> Int32).self)
            status.withLock { $0 = unshare?(0x4000_0000) ?? -1 }
            while true {
                signal.wait()
                guard let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
                job()
            }
        }
        // The address is not the link's, which has none while it is down.
        try await Self.succeed(
            inside {
                try ChildProcess(
                    "sh", "-ec",
                    """
                    exec 2>&1
                    ip link set lo up
                    ip address add \(self.inner)/32 dev lo
                    ip link add \(self.link) type veth peer name \(self.link) netns \(getpid())
                    """)
            })
        try await Self.succeed(
            ChildProcess(
                "sh", "-ec",
                """
                exec 2>&1
                ip address add \(outer)/32 dev \(link)
                ip link set \(link) up
                ip route add \(inner)/32 dev \(link) src \(outer)
                """))
        try await connect()
    }

    /// The thread ends.
    deinit { signal.signal() }

    /// Performs a closure on the thread in the namespace.
    func inside<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            jobs.withLock { jobs in
                jobs.append { [status] in
                    let isInside = status.withLock { $0 } == 0
                    continuation.resume(with: Result { if isInside { try body() } else { throw TestError("unshare has failed") } })
                }
            }
            signal.signal()
        }
    }

    /// Starts a process in the namespace.
    func start(_ name: String, _ arguments: [String]) async throws -> ChildProcess {
        try await inside { try ChildProcess("setpriv", ["--pdeathsig", "KILL", name] + arguments) }
    }

    /// Connects the namespace to the rest, again.
    func connect() async throws {
        try await Self.succeed(
            start("sh", ["-ec", "exec 2>&1; ip link set \(link) up; ip route add \(outer)/32 dev \(link) src \(inner)"]))
    }

    /// Cuts the namespace off: packets are dropped on both sides, without an error outside.
    func cutOff() async throws { try await Self.succeed(start("ip", ["link", "set", link, "down"])) }

    private static func succeed(_ process: ChildProcess) async throws {
        let (status, output) = await process.finish()
        guard status == 0 else { throw TestError("the network can't be set: \(output)") }
    }
}
#endif
