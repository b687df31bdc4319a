// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// Asks the Linux kernel for the way to a host, or to the network as a whole.
struct NetlinkPathProvider: NetworkPathProvider {
    /// Addresses to which the way is the way to the network: root name servers', which are not ours, and stay. Nothing is sent there.
    private static let anywhere: [[UInt8]] = [
        [198, 41, 0, 4], [0x20, 0x01, 0x05, 0x03, 0xBA, 0x3E, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0x30],
    ]

    /// `nil` for the network as a whole.
    let host: String?

    /// `nil` where there is no netlink.
    init?(host: String?) {
        guard NetlinkSocket() != nil else { return nil }
        self.host = host
    }

    func currentPath() -> NetworkPath? {
        guard let socket = NetlinkSocket() else { return nil }
        // A host whose name is not resolved can't be reached.
        let addresses = host.map(Self.addresses) ?? Self.anywhere
        for address in addresses {
            guard let answer = socket.ask(NetlinkRoute.request(to: address, sequence: 1)) else { return nil }
            guard let interface = NetlinkRoute(answer)?.interface else { continue }
            guard let answer = socket.ask(NetlinkLink.request(interface, sequence: 2)) else { return nil }
            if let link = NetlinkLink(answer), link.isWorking { return NetworkPath(interface: link.name) }
        }
        return NetworkPath(interface: nil)
    }

    private static func addresses(of host: String) -> [[UInt8]] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        var list: UnsafeMutablePointer<addrinfo>?
        let name = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        guard getaddrinfo(name, nil, &hints, &list) == 0, let first = list else { return [] }
        defer { freeaddrinfo(first) }
        return sequence(first: first) { $0.pointee.ai_next }.compactMap { entry in
            guard let address = entry.pointee.ai_addr else { return nil }
            // Behind family and port, and before an IPv6 address its flow's label.
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
            // What has changed is of no interest: the path is asked for anew. Also after too much had come at once.
            socket.drain()
            continuation.yield()
        }
        // The descriptor has to stay until the source is done with it.
        source.setCancelHandler { withExtendedLifetime(socket) {} }
        let box = SourceBox(source: source)
        continuation.onTermination = { _ in box.source.cancel() }
        source.activate()
        return stream
    }
}

private struct SourceBox: @unchecked Sendable {  // only cancelled, which any thread may do
    let source: any DispatchSourceRead
}

/// A socket to the kernel; closed with its last reference.
private final class NetlinkSocket: Sendable {
    /// Interfaces, addresses and routes of IPv4 and IPv6.
    static let changes: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

    private static let family: UInt16 = 16
    private static let doNotWait: Int32 = 0x40

    let descriptor: Int32

    /// - Parameter groups: of which changes the kernel tells.
    init?(groups: UInt32 = 0) {
        let raw: Int32 = 3
        descriptor = SystemSocket.open(Int32(Self.family), raw, 0)
        guard descriptor >= 0 else { return nil }
        var timeout = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        // A `sockaddr_nl`: family, nothing, a number that the kernel gives, groups.
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

    /// The kernel's answer, an error message included; `nil` when there is none in a second.
    func ask(_ message: NetlinkMessage) -> NetlinkMessage? {
        let bytes = message.bytes
        guard send(descriptor, bytes, bytes.count, 0) == bytes.count else { return nil }
        while let received = receive() {
            if let answer = NetlinkMessage.messages(in: received).first(where: { $0.sequence == message.sequence }) { return answer }
        }
        return nil
    }

    private func receive(flags: Int32 = 0) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 32 * 1024)
        var count = recv(descriptor, &buffer, buffer.count, flags)
        while count < 0, errno == EINTR { count = recv(descriptor, &buffer, buffer.count, flags) }
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    /// Takes what has come, and leaves it.
    func drain() {
        while receive(flags: Self.doNotWait) != nil {}
    }
}
