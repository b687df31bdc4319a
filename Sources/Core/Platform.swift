// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

#if canImport(Network)
import Network
#endif

#if !canImport(Darwin)
/// Seconds since 1 January 2001, 00:00 UTC.
typealias CFAbsoluteTime = Double
#endif

/// The system's provider for the path to a host, or for the default route; `nil` if the system does not report paths.
func systemNetworkPathProvider(host: String?) -> (any NetworkPathProvider)? {
    #if canImport(Network)
    return MonitorPathProvider()
    #else
    return NetlinkPathProvider(host: host)
    #endif
}

extension stat {
    /// The time of the last change of the file's contents: seconds and nanoseconds.
    var modificationTime: [Int] {
        #if canImport(Darwin)
        [Int(st_mtimespec.tv_sec), Int(st_mtimespec.tv_nsec)]
        #else
        [Int(st_mtim.tv_sec), Int(st_mtim.tv_nsec)]
        #endif
    }
}

#if os(Linux)
/// Opens a new unnamed file in a directory for reading and writing (open(2), `O_TMPFILE`); `nil` if the file system does not support that,
/// or the file could not be linked later.
func openUnnamedFile(in directory: String, mode: mode_t) -> Int32? {
    // O_TMPFILE, which Swift does not import.
    let descriptor = open(directory, 0o20_000_000 | O_DIRECTORY | O_RDWR | O_CLOEXEC, mode)
    guard descriptor >= 0 else { return nil }
    if access("/proc/self/fd/\(descriptor)", F_OK) == 0 { return descriptor }
    _ = close(descriptor)
    return nil
}

/// Links a file of ``openUnnamedFile(in:mode:)`` to a path, which must not exist; returns 0 or `errno`.
func linkUnnamedFile(_ descriptor: Int32, to path: String) -> Int32 {
    linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno
}
#else
/// Always `nil`: only Linux has unnamed files.
func openUnnamedFile(in directory: String, mode: mode_t) -> Int32? { nil }

/// Always `ENOTSUP`.
func linkUnnamedFile(_ descriptor: Int32, to path: String) -> Int32 { ENOTSUP }
#endif

#if canImport(Network)
/// The provider on Apple's systems, which reports the default route for every host.
private struct MonitorPathProvider: NetworkPathProvider {
    func currentPath() -> NetworkPath? {
        let result = Lock<NetworkPath?>(nil)
        let isKnown = DispatchSemaphore(value: 0)
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in
            let interface = path.status == .satisfied ? path.availableInterfaces.first : nil
            result.withLock { $0 = NetworkPath(interface: interface?.name, isCellular: interface?.type == .cellular) }
            isKnown.signal()
        }
        monitor.start(queue: DispatchQueue(label: "curlew.path"))
        defer { monitor.cancel() }
        return isKnown.wait(timeout: .now() + 1) == .success ? result.withLock { $0 } : nil
    }

    func changes() -> AsyncStream<Void>? {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { _ in continuation.yield() }
        continuation.onTermination = { _ in monitor.cancel() }
        monitor.start(queue: DispatchQueue(label: "curlew.path"))
        return stream
    }
}
#endif
