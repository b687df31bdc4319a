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
