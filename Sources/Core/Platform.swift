// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

#if canImport(Network)
import Network
#endif

/// What the system knows of the way to a host, or to the network as a whole; `nil` when it does not tell.
func systemNetworkPathProvider(host: String?) -> (any NetworkPathProvider)? {
    #if canImport(Network)
    return MonitorPathProvider()
    #else
    return NetlinkPathProvider(host: host)
    #endif
}

#if os(Linux)
/// A new file in a directory that does not know it (open(2), `O_TMPFILE`), to be read and written; `nil` where the file system has no such
/// files, or where it could not get a name later.
func openUnnamedFile(in directory: String, mode: mode_t) -> Int32? {
    // O_TMPFILE, which is no constant in Swift.
    let descriptor = open(directory, 0o20_000_000 | O_DIRECTORY | O_RDWR | O_CLOEXEC, mode)
    guard descriptor >= 0 else { return nil }
    if access("/proc/self/fd/\(descriptor)", F_OK) == 0 { return descriptor }
    _ = close(descriptor)
    return nil
}

/// Gives a file of ``openUnnamedFile(in:mode:)`` a name that is free; 0, or the number of the error.
func linkUnnamedFile(_ descriptor: Int32, to path: String) -> Int32 {
    linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno
}
#else
/// There are none.
func openUnnamedFile(in directory: String, mode: mode_t) -> Int32? { nil }

/// Not possible.
func linkUnnamedFile(_ descriptor: Int32, to path: String) -> Int32 { ENOTSUP }
#endif

#if canImport(Network)
/// Apple's systems, where the way to a host is taken for the way to the network.
private struct MonitorPathProvider: NetworkPathProvider {
    func currentPath() -> NetworkPath? {
        let answer = Lock<NetworkPath?>(nil)
        let isThere = DispatchSemaphore(value: 0)
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in
            let interface = path.status == .satisfied ? path.availableInterfaces.first : nil
            answer.withLock { $0 = NetworkPath(interface: interface?.name, isCellular: interface?.type == .cellular) }
            isThere.signal()
        }
        monitor.start(queue: DispatchQueue(label: "curlew.path"))
        defer { monitor.cancel() }
        return isThere.wait(timeout: .now() + 1) == .success ? answer.withLock { $0 } : nil
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
