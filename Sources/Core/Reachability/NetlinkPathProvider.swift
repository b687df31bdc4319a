// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Looks up the route to a host, or the default route, in the Linux kernel over netlink.
struct NetlinkPathProvider: NetworkPathProvider {
    /// Addresses whose route stands for the default route: those of a root name server, public and stable. Nothing is sent to them.
    private static let publicAddresses: [[UInt8]] = [
        [198, 41, 0, 4], [0x20, 0x01, 0x05, 0x03, 0xBA, 0x3E, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0x30],
    ]

    /// `nil` for the default route.
    let host: String?

    /// `nil` if the process can't open a netlink socket.
    init?(host: String?) {
        guard NetlinkSocket() != nil else { return nil }
        self.host = host
    }

    func currentPath() -> NetworkPath? {
        guard let socket = NetlinkSocket() else { return nil }
        // A name that can't be resolved has no addresses, and is not reachable.
        let addresses = host.map(Self.addresses) ?? Self.publicAddresses
        for address in addresses {
            guard let response = socket.response(to: NetlinkRoute.request(to: address, sequence: 1)) else { return nil }
            guard let interface = NetlinkRoute(response)?.interface else { continue }
            guard let response = socket.response(to: NetlinkLink.request(interface, sequence: 2)) else { return nil }
            if let link = NetlinkLink(response), link.isWorking { return NetworkPath(interface: link.name) }
        }
        return NetworkPath(interface: nil)
    }

    private static func addresses(of host: String) -> [[UInt8]] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        var list: UnsafeMutablePointer<addrinfo>?
        let name = host.hasBytePrefix("[") && host.hasByteSuffix("]") ? String(host.dropFirstScalars().dropLastScalars()) : host
        guard getaddrinfo(name, nil, &hints, &list) == 0, let first = list else { return [] }
        defer { freeaddrinfo(first) }
        return sequence(first: first) { $0.pointee.ai_next }.compactMap { entry in
            guard let address = entry.pointee.ai_addr else { return nil }
            // The address follows family and port, in IPv6 also the flow label.
            let (offset, size) = entry.pointee.ai_family == AF_INET ? (4, 4) : (8, 16)
            guard Int(entry.pointee.ai_addrlen) >= offset + size else { return nil }
            return Array(UnsafeRawBufferPointer(start: UnsafeRawPointer(address) + offset, count: size))
        }
    }

    func changes() -> AsyncStream<Void>? {
        guard let socket = NetlinkSocket(groups: NetlinkSocket.changes) else { return nil }
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let source = DispatchSource.makeReadSource(
            fileDescriptor: socket.descriptor, queue: DispatchQueue(label: "curlew.netlink", target: .global(qos: .utility)))
        source.setEventHandler {
            // The content is dropped, because listeners look the path up again; this also handles a receive buffer that overflowed.
            socket.drain()
            continuation.yield()
        }
        // The descriptor must stay open until the source's cancellation has completed.
        source.setCancelHandler { withExtendedLifetime(socket) {} }
        let box = SourceBox(source: source)
        continuation.onTermination = { _ in box.source.cancel() }
        source.activate()
        return stream
    }
}

private struct SourceBox: @unchecked Sendable {  // only cancelled, which is thread-safe
    let source: any DispatchSourceRead
}

/// A NETLINK_ROUTE socket; closed in `deinit`.
private final class NetlinkSocket: Sendable {
    /// The multicast groups for links, and for addresses and routes of IPv4 and IPv6.
    static let changes: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

    private static let family: UInt16 = 16
    private static let doNotWait: Int32 = 0x40

    let descriptor: Int32

    /// - Parameter groups: the multicast groups to join; `nil` is returned if the socket can't be opened or bound.
    init?(groups: UInt32 = 0) {
        let raw: Int32 = 3
        descriptor = SystemSocket.open(Int32(Self.family), raw, 0)
        guard descriptor >= 0 else { return nil }
        var timeout = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        // A `sockaddr_nl`: family, padding, port ID (0 for one that the kernel assigns), groups.
        let address = (Self.family, UInt16(0), UInt32(0), groups)
        let status = withUnsafeBytes(of: address) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { address in
                address.baseAddress.map { bind(descriptor, $0, socklen_t(bytes.count)) } ?? -1
            }
        }
        guard status == 0 else { return nil }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Sends a request and returns the kernel's response, which may be an error message; `nil` if none arrives within a second.
    func response(to message: NetlinkMessage) -> NetlinkMessage? {
        let bytes = message.bytes
        guard send(descriptor, bytes, bytes.count, 0) == bytes.count else { return nil }
        while let received = receive() {
            if let response = NetlinkMessage.messages(in: received).first(where: { $0.sequence == message.sequence }) { return response }
        }
        return nil
    }

    private func receive(flags: Int32 = 0) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 32 * 1024)
        var count = recv(descriptor, &buffer, buffer.count, flags)
        while count < 0, errno == EINTR { count = recv(descriptor, &buffer, buffer.count, flags) }
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    /// Discards everything received, without blocking.
    func drain() {
        while receive(flags: Self.doNotWait) != nil {}
    }
}
