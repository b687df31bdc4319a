// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// What libcurl runs in a multi handle: a transfer, or a raw stream while it connects. `CURLOPT_PRIVATE` points to it.
class MultiMember {
    @exclusivity(unchecked) final private(set) var handle: EasyHandle
    // The loop owns its members and outlives them; counting each look at it would cost more than the look.
    unowned(unsafe) let loop: EventLoopThread

    /// `nil` when libcurl has no memory.
    init?(loop: EventLoopThread) {
        guard let handle = EasyHandle() else { return nil }
        self.handle = handle
        self.loop = loop
    }

    /// Replaces the handle by a new one, on which no earlier transfer has left anything; `false` when libcurl has no memory.
    final func renewHandle() -> Bool {
        guard let fresh = EasyHandle() else { return false }
        handle = fresh
        return true
    }

    /// The addresses it may connect to.
    var addresses: AddressPolicy { .any }
    /// The last address that it was not to connect to.
    final var refusedAddress: NetworkAddress?

    /// Whether a connection to an address may be made; a refused one is noted.
    final func mayConnect(to address: UnsafePointer<sockaddr>) -> Bool {
        let addresses = addresses
        guard addresses.isLimited, let address = NetworkAddress(address) else { return !addresses.isLimited }
        guard !addresses.allows(address) else { return true }
        refusedAddress = address
        return false
    }

    /// What to tell of an address that was refused.
    static func refusal(of address: NetworkAddress) -> String { "The host's address \(address) is none that may be connected to" }

    /// libcurl has made a socket for it.
    func opened(_ socket: Int32) {
        loop.didOpen(socket)
    }

    /// libcurl is done with it.
    func ended(_ code: CURLcode) {}
}

/// One of libcurl's multi handles: a pool of connections and the transfers on it, driven by socket events and a timer.
///
/// Event-loop thread only.
final class MultiHandle: DeadlineHolder {
    /// How many transfers it should get.
    static let capacity = 64

    private let pointer: UnsafeMutableRawPointer
    // Owned by the loop, as the members are.
    private unowned(unsafe) let loop: EventLoopThread
    // Owns this one.
    private unowned(unsafe) var pools: ConnectionPools?
    /// Its place among the pools.
    let place: Int
    @exclusivity(unchecked) var deadline: Nanoseconds = 0
    @exclusivity(unchecked) var heapIndex = -1
    @exclusivity(unchecked) private(set) var memberCount = 0
    @exclusivity(unchecked) private var connectionCacheSize = 0
    /// When libcurl wants to be called though no socket has anything.
    @exclusivity(unchecked) private(set) var timerDeadline: Nanoseconds?
    /// When it is to be closed, if nobody uses it until then.
    @exclusivity(unchecked) var closesAt: Nanoseconds?
    /// Whether libcurl was called since the finished members were taken out.
    @exclusivity(unchecked) var wasCalled = false

    /// `nil` when libcurl has no memory.
    init?(loop: EventLoopThread, place: Int) {
        guard let pointer = curl_multi_init() else { return nil }
        self.pointer = pointer
        self.loop = loop
        self.place = place
    }

    /// Has libcurl report to it; `false` when libcurl refuses, and this is closed.
    ///
    /// - Parameters:
    ///   - multiplexes: whether transfers share HTTP/2 connections.
    ///   - maximumConnectionsPerHost: left to libcurl where transfers share connections.
    func setUp(for pools: ConnectionPools, multiplexes: Bool = false, maximumConnectionsPerHost: Int? = nil) -> Bool {
        self.pools = pools
        let context = Unmanaged.passUnretained(self).toOpaque()
        var codes = [
            ccurlew_multi_set_socket_callback(pointer, socketCallback),
            ccurlew_multi_set_pointer(pointer, CURLMOPT_SOCKETDATA, context),
            ccurlew_multi_set_timer_callback(pointer, timerCallback),
            ccurlew_multi_set_pointer(pointer, CURLMOPT_TIMERDATA, context),
            ccurlew_multi_set_long(pointer, CURLMOPT_PIPELINING, multiplexes ? Int(CURLPIPE_MULTIPLEX) : Int(CURLPIPE_NOTHING)),
        ]
        if let maximumConnectionsPerHost {
            codes.append(ccurlew_multi_set_long(pointer, CURLMOPT_MAX_HOST_CONNECTIONS, maximumConnectionsPerHost))
        }
        guard codes.allSatisfy({ $0 == CURLM_OK }) else {
            close()
            return false
        }
        return true
    }

    /// Closes all connections. Not left to `deinit`: libcurl calls back on the way.
    func close() {
        curl_multi_cleanup(pointer)
    }

    /// Whether another transfer should be added.
    var hasRoom: Bool { memberCount < Self.capacity }

    func add(_ handle: EasyHandle) -> CURLMcode {
        let code = curl_multi_add_handle(pointer, handle.raw)
        guard code == CURLM_OK else { return code }
        handle.wasUsed = true
        memberCount += 1
        closesAt = nil
        return code
    }

    /// Takes a member out.
    ///
    /// - Parameter host: a hash of the host to which it may have left a connection.
    func remove(_ handle: EasyHandle, host: UInt64? = nil) {
        curl_multi_remove_handle(pointer, handle.raw)
        memberCount -= 1
        pools?.left(self, host: host)
    }

    /// Sees to it that `count` connections fit into the cache.
    ///
    /// libcurl counts busy connections too: a cache smaller than the live transfers closes each connection after its first use. What a
    /// burst took is given back, but not by every turn of the wind.
    func reserveConnections(_ count: Int) {
        guard count > connectionCacheSize || count < connectionCacheSize / 2 else { return }
        connectionCacheSize = count + count / 4
        _ = ccurlew_multi_set_long(pointer, CURLMOPT_MAXCONNECTS, connectionCacheSize)
    }

    /// Tells libcurl what was found on a socket.
    func socketAction(_ socket: Int32, _ events: SocketEvents) {
        var mask: Int32 = 0
        if events.contains(.readable) { mask |= CURL_CSELECT_IN }
        if events.contains(.writable) { mask |= CURL_CSELECT_OUT }
        if events.contains(.failed) { mask |= CURL_CSELECT_ERR }
        call(socket, mask)
    }

    /// Calls libcurl if its timer has run out.
    func timerAction(at now: Nanoseconds) {
        guard let deadline = timerDeadline, deadline <= now else { return }
        timerDeadline = nil
        call(CURL_SOCKET_TIMEOUT, 0)
    }

    private func call(_ socket: Int32, _ mask: Int32) {
        if !wasCalled {
            wasCalled = true
            pools?.willCall(self)
        }
        var running: Int32 = 0
        curl_multi_socket_action(pointer, socket, mask, &running)
    }

    /// The next member that libcurl is done with, and its result.
    func nextFinished() -> (MultiMember, CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(pointer, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let context = ccurlew_get_private(message.pointee.easy_handle) else { continue }
            return (Unmanaged<MultiMember>.fromOpaque(context).takeUnretainedValue(), message.pointee.data.result)
        }
        return nil
    }

    fileprivate func socketChanged(_ socket: Int32, _ what: Int32, for handle: UnsafeMutableRawPointer?) {
        let wanted: SocketEvents =
            switch what {
            case CURL_POLL_IN: .readable
            case CURL_POLL_OUT: .writable
            case CURL_POLL_INOUT: [.readable, .writable]
            default: []
            }
        loop.want(wanted, of: socket, for: self, handle: handle)
    }

    fileprivate func timerChanged(_ milliseconds: Int) {
        timerDeadline = milliseconds < 0 ? nil : loop.now + Nanoseconds(milliseconds) * 1_000_000
        pools?.setTimer(of: self)
    }
}

private let socketCallback: ccurlew_socket_callback = { handle, socket, what, context, _ in
    guard let context else { return 0 }
    Unmanaged<MultiHandle>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.socketChanged(socket, what, for: handle) }
    return 0
}

private let timerCallback: ccurlew_timer_callback = { _, milliseconds, context in
    guard let context else { return 0 }
    Unmanaged<MultiHandle>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.timerChanged(milliseconds) }
    return 0
}
