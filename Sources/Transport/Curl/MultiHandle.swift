// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// A member of a multi handle: a transfer, or a raw stream while it connects. `CURLOPT_PRIVATE` points to it.
class MultiMember {
    @exclusivity(unchecked) final private(set) var handle: EasyHandle
    // The loop owns its members and outlives them; reference counting would cost more than each access.
    unowned(unsafe) let loop: EventLoopThread
    /// The group to which it belongs, or did last. The loop moves the members of a group that ends to its main one.
    @exclusivity(unchecked) final private(set) unowned(unsafe) var group: ConnectionGroup

    /// Creates a member; `nil` if libcurl is out of memory.
    init?(loop: EventLoopThread, group: ConnectionGroup) {
        guard let handle = EasyHandle() else { return nil }
        self.handle = handle
        self.loop = loop
        self.group = group
    }

    /// Moves the member to a group, while it is in no multi handle.
    final func enter(_ other: ConnectionGroup) {
        guard group !== other else { return }
        // The options that are kept for the next request name the TLS sessions of the other group.
        handle.leaveShare()
        group = other
    }

    /// Whether it is in a multi handle, and not known to have a connection.
    var isConnecting: Bool { false }

    /// The member is about to leave its multi handle before libcurl is done with it: a name may still be resolved for it.
    final func giveUp() {
        guard group.isShared, isConnecting, handle.setUpPhase(isSecure: false) == .resolving, let host = HTTPOrigin(url: url)?.host,
            NetworkAddress(host) == nil
        else { return }
        group.resolvesUntil = loop.now + ConnectionGroup.resolverTime
    }

    /// Replaces the easy handle with a new one, free of state from earlier transfers; `false` if libcurl is out of memory.
    final func renewHandle() -> Bool {
        guard let fresh = EasyHandle() else { return false }
        handle = fresh
        return true
    }

    /// The addresses that it may connect to.
    var addresses: AddressPolicy { .any }
    /// Why the last address or port was refused.
    final var addressRefusal: String?
    /// The proxy that it uses; `nil` for none.
    var proxy: Proxy? { nil }

    /// The TLS options and the URL of its connection.
    var tls: TLSOptions { TLSOptions() }
    var url: String { "" }
    /// How many times its connection was configured, so that what belongs to an earlier one is recognized.
    final var setUpCount = 0

    /// How many decisions on certificates it has waited for.
    final var questionCount = 0
    /// The choice of a client certificate by which its connection was configured, if something chooses; `nil` before one was made. Weak, so that
    /// it neither keeps the certificate nor has to be reset.
    final weak var choice: CertificateChoices.Choice?

    /// Records why the host's certificates are not accepted, or that a decision is needed.
    func note(_ decision: TrustRegister.Decision) {}

    /// The options of its sockets; `nil` for the system's.
    var socketOptions: SocketOptions? { nil }
    /// The option that a socket did not accept, with the reason.
    final var rejectedSocketOption: String?
    /// Where it connects to, if not to its URL's host.
    final var route: Route?

    /// Sets the options of a new socket; `false` if the system rejects one, which is recorded.
    final func configure(_ socket: Int32, for address: curl_sockaddr) -> Bool {
        guard let socketOptions else { return true }
        let isStream = address.socktype != SystemSocket.datagrams
        rejectedSocketOption = SystemSocket.configure(socket, family: address.family, isStream: isStream, socketOptions)
        return rejectedSocketOption == nil
    }

    /// Whether connecting to an address is allowed; the reason for a refusal is recorded.
    final func mayConnect(to address: UnsafePointer<sockaddr>) -> Bool {
        // A Unix domain socket and a proxy are named by the program, not by a URL.
        guard addresses.isLimited, Int32(address.pointee.sa_family) != AF_UNIX, proxy == nil else { return true }
        guard let end = NetworkAddress(address) else { return false }
        addressRefusal = addresses.refusal(of: end, port: NetworkAddress.port(of: address))
        return addressRefusal == nil
    }

    /// Why a limit of addresses forbids a transfer before its host is resolved; `nil` if it does not.
    final func guardRefusal(of url: String, _ options: TransferOptions) -> (kind: TransferFailure.Kind, message: String)? {
        guard options.addresses.isLimited, let proxy else { return nil }
        return options.addresses.refusal(of: proxy, for: url, policy: options.proxy)
    }

    /// The failure of a socket that libcurl was not given.
    final func socketFailure(_ code: CURLcode) -> (kind: TransferFailure.Kind, message: String)? {
        guard code == CURLE_COULDNT_CONNECT else { return nil }
        if let rejectedSocketOption { return (.configuration, "The socket rejected the option \(rejectedSocketOption)") }
        return addressRefusal.map { (.addressNotAllowed, $0) }
    }

    /// A connection that libcurl could not set up.
    final func setUpFailure(_ code: CURLcode, _ message: String, url: String, socket: UnixSocket?) -> FailedSetUp {
        FailedSetUp(url: url, proxy: proxy, socket: socket, systemError: handle.systemError, code: code, message: message)
    }

    /// libcurl has opened a socket for the member.
    func opened(_ socket: Int32) {
        loop.didOpen(socket)
    }

    /// libcurl has completed the member.
    func completed(_ code: CURLcode) {}
}

/// A libcurl multi handle: a connection pool and the transfers on it, driven by socket events and a timer.
///
/// `curl_multi_socket_action` processes one socket with an event, or an expired timer, so that the cost of an event doesn't grow with the
/// number of transfers. `curl_multi_perform` and `curl_multi_poll` go through all of them.
///
/// For the event loop's thread only.
final class MultiHandle: DeadlineHolder {
    /// The number of transfers that a multi handle should have at most; see ``ConnectionPools``.
    static let capacity = 64

    private let pointer: UnsafeMutableRawPointer
    // The loop owns its multi handles, as it owns the members.
    private unowned(unsafe) let loop: EventLoopThread
    // The owner of this multi handle.
    private unowned(unsafe) var pools: ConnectionPools?
    /// Its index among the pools.
    let place: Int
    @exclusivity(unchecked) var deadline: Nanoseconds = 0
    @exclusivity(unchecked) var heapIndex = -1
    @exclusivity(unchecked) private(set) var memberCount = 0
    @exclusivity(unchecked) private var connectionCacheSize = 0
    /// When libcurl's timer expires.
    @exclusivity(unchecked) private(set) var timerDeadline: Nanoseconds?
    /// When to close it if it is still unused by then.
    @exclusivity(unchecked) var closesAt: Nanoseconds?
    /// Whether libcurl was called since completed members were last collected.
    @exclusivity(unchecked) var wasCalled = false
    @exclusivity(unchecked) private var isClosed = false

    /// Creates a multi handle; `nil` if libcurl is out of memory.
    init?(loop: EventLoopThread, place: Int) {
        guard let pointer = curl_multi_init() else { return nil }
        self.pointer = pointer
        self.loop = loop
        self.place = place
    }

    /// Sets callbacks and options; `false` if libcurl rejects one, in which case the multi handle is closed.
    ///
    /// - Parameters:
    ///   - multiplexes: whether transfers share HTTP/2 connections.
    ///   - maximumConnectionsPerHost: enforced by libcurl where transfers share connections.
    func setUp(for pools: ConnectionPools, multiplexes: Bool = false, maximumConnectionsPerHost: Int? = nil) -> Bool {
        self.pools = pools
        let context = borrowedPointer(to: self)
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

    /// Closes all connections. Not done in `deinit`, because libcurl calls back meanwhile.
    func close() {
        guard !isClosed else { return }
        curl_multi_cleanup(pointer)
        isClosed = true
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

    /// Removes a member.
    ///
    /// - Parameter host: a hash of the host to which the member may have left an idle connection.
    func remove(_ handle: EasyHandle, host: UInt64? = nil) {
        curl_multi_remove_handle(pointer, handle.raw)
        memberCount -= 1
        pools?.left(self, host: host)
    }

    /// Resizes the connection cache for `count` connections.
    ///
    /// libcurl counts connections in use as well: with a cache smaller than the number of live transfers, each connection is closed after
    /// its first use. The cache shrinks after a burst, with hysteresis.
    func reserveConnections(_ count: Int) {
        guard count > connectionCacheSize || count < connectionCacheSize / 2 else { return }
        connectionCacheSize = count + count / 4
        _ = ccurlew_multi_set_long(pointer, CURLMOPT_MAXCONNECTS, connectionCacheSize)
    }

    /// Reports a socket's events to libcurl.
    func socketAction(_ socket: Int32, _ events: SocketEvents) {
        var mask: Int32 = 0
        if events.contains(.readable) { mask |= CURL_CSELECT_IN }
        if events.contains(.writable) { mask |= CURL_CSELECT_OUT }
        if events.contains(.failed) { mask |= CURL_CSELECT_ERR }
        call(socket, mask)
    }

    /// The time has passed for which it was scheduled.
    func timerPassed(at now: Nanoseconds) { pools?.timerPassed(of: self, at: now) }

    /// Calls libcurl if its timer has expired.
    func timerAction(at now: Nanoseconds) {
        guard let deadline = timerDeadline, deadline <= now else { return }
        timerDeadline = nil
        call(CURL_SOCKET_TIMEOUT, 0)
    }

    private func call(_ socket: Int32, _ mask: Int32) {
        guard !isClosed else { return }
        if !wasCalled {
            wasCalled = true
            pools?.willCall(self)
        }
        var running: Int32 = 0
        curl_multi_socket_action(pointer, socket, mask, &running)
    }

    /// The next member that libcurl has completed, and its result.
    func nextCompleted() -> (MultiMember, CURLcode)? {
        guard !isClosed else { return nil }
        var left: Int32 = 0
        while let message = curl_multi_info_read(pointer, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let context = ccurlew_get_private(message.pointee.easy_handle) else { continue }
            return (context.object(MultiMember.self), message.pointee.data.result)
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
    context.borrow(MultiHandle.self) { $0.socketChanged(socket, what, for: handle) }
    return 0
}

private let timerCallback: ccurlew_timer_callback = { _, milliseconds, context in
    guard let context else { return 0 }
    context.borrow(MultiHandle.self) { $0.timerChanged(milliseconds) }
    return 0
}
