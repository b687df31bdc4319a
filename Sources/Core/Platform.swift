// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

#if canImport(Network)
import Network
#endif

#if !canImport(Darwin)
/// Seconds since 1 January 2001, 00:00 UTC.
typealias CFAbsoluteTime = Double
#endif

#if !canImport(Security)
/// The method of a server trust challenge, which ``SessionDelegate/sessionDidReceiveChallenge`` receives for each host. Foundation has it on
/// Apple's systems only.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

/// The method of a challenge for the client's certificate, which ``SessionDelegate/sessionDidReceiveChallenge`` receives for a server that
/// requests one. Foundation has it on Apple's systems only.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

extension URLProtectionSpace {
    /// The server's certificates, in a challenge with the method ``NSURLAuthenticationMethodServerTrust``; `nil` in others.
    public var serverTrust: ServerTrust? { shownTrust }
}
#endif

/// The system's provider for the path to a host, or for the default route; `nil` if the system does not report paths.
func systemNetworkPathProvider(host: String?) -> (any NetworkPathProvider)? {
    #if canImport(Network)
    return MonitorPathProvider()
    #else
    return NetlinkPathProvider(host: host)
    #endif
}

/// The time of Dispatch's clock for deadlines.
@inline(__always)
func uptimeOfDispatch() -> Nanoseconds {
    #if os(Linux)
    // The same, for half of the instructions.
    return MonotonicTime.now()
    #else
    return DispatchTime.now().uptimeNanoseconds
    #endif
}

#if os(Linux)
/// Opens a new unnamed file in a directory for reading and writing (open(2), `O_TMPFILE`); `nil` if the file system does not support that,
/// or the file could not be linked later.
func openUnnamedFile(in directory: String, mode: mode_t) -> Descriptor? {
    // O_TMPFILE, which Swift does not import.
    guard let file = Descriptor.open(directory, 0o20_000_000 | O_DIRECTORY | O_RDWR, mode: mode) else { return nil }
    return access("/proc/self/fd/\(file.number)", F_OK) == 0 ? file : nil
}

/// Links a file of ``openUnnamedFile(in:mode:)`` to a path, which must not exist; returns 0 or `errno`.
func linkUnnamedFile(_ file: Descriptor, to path: String) -> Int32 {
    linkat(AT_FDCWD, "/proc/self/fd/\(file.number)", AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno
}

/// The argument of `FICLONERANGE` (ioctl_ficlonerange(2)).
private struct FileCloneRange {
    var source: Int64
    var sourceOffset: UInt64
    var sourceLength: UInt64
    var destinationOffset: UInt64
}

/// Makes a file share the blocks of a range of another one; `false` if the file system can't, or the range does not begin and end with a
/// block, or at the end of the file.
func cloneRange(_ range: FileRange, to file: Descriptor, at offset: Int64) -> Bool {
    var argument = FileCloneRange(
        source: Int64(range.descriptor), sourceOffset: UInt64(range.offset), sourceLength: UInt64(range.count),
        destinationOffset: UInt64(offset))
    // FICLONERANGE, which Swift does not import: _IOW(0x94, 13, struct file_clone_range).
    return withUnsafeMutablePointer(to: &argument) { ioctl(file.number, 0x4020_940D, UnsafeMutableRawPointer($0)) } == 0
}

private typealias CopyFileRange =
    @convention(c) (Int32, UnsafeMutablePointer<Int64>?, Int32, UnsafeMutablePointer<Int64>?, Int, UInt32) -> Int

/// copy_file_range(2), which Swift does not import; `nil` where the C library does not have it.
private let copyFileRange = processFunction("copy_file_range", as: CopyFileRange.self)

/// Copies the first bytes of a range of a file to the position of another one, which moves; returns their number, `nil` if the system can't
/// copy between these files, or nothing is there.
func copyRange(_ range: FileRange, atMost limit: Int64, to file: Descriptor) -> Int64? {
    guard let copyFileRange else { return nil }
    var offset = range.offset
    while true {
        let count = copyFileRange(range.descriptor, &offset, file.number, nil, Int(min(range.count, limit)), 0)
        if count < 0, errno == EINTR { continue }
        // A full disk is reported by the write that follows.
        return count > 0 ? Int64(count) : nil
    }
}
#else
/// Always `false`: macOS shares the blocks of whole files only.
func cloneRange(_ range: FileRange, to file: Descriptor, at offset: Int64) -> Bool { false }

/// Always `nil`.
func copyRange(_ range: FileRange, atMost limit: Int64, to file: Descriptor) -> Int64? { nil }

/// Always `nil`: only Linux has unnamed files.
func openUnnamedFile(in directory: String, mode: mode_t) -> Descriptor? { nil }

/// Always `ENOTSUP`.
func linkUnnamedFile(_ file: Descriptor, to path: String) -> Int32 { ENOTSUP }
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
