// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct NetworkReachabilityManagerTests {
    /// A network that the test changes.
    private final class Fake: NetworkPathProvider {
        private struct State {
            var path: NetworkPath?
            var watchers: [AsyncStream<Void>.Continuation] = []
        }

        private let state: Lock<State>
        private let tellsChanges: Bool
        let ended = Inbox<Void>()

        init(_ path: NetworkPath?, tellsChanges: Bool = true) {
            state = Lock(State(path: path))
            self.tellsChanges = tellsChanges
        }

        func currentPath() -> NetworkPath? { state.withLock { $0.path } }

        func changes() -> AsyncStream<Void>? {
            guard tellsChanges else { return nil }
            let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
            continuation.onTermination = { [ended] _ in ended.put(()) }
            state.withLock { $0.watchers.append(continuation) }
            return stream
        }

        func change(to path: NetworkPath?) {
            let watchers = state.withLock { state in
                state.path = path
                return state.watchers
            }
            for watcher in watchers { watcher.yield() }
        }
    }

    private typealias Status = NetworkReachabilityManager.NetworkReachabilityStatus

    private static let none = NetworkPath(interface: nil)
    private static let wired = NetworkPath(interface: "eth0")
    private static let mobile = NetworkPath(interface: "wwan0")

    private static func listening(to provider: Fake) -> (NetworkReachabilityManager, Inbox<Status>) {
        let manager = NetworkReachabilityManager(provider: provider)
        let heard = Inbox<Status>()
        manager.listenerQueue = DispatchQueue(label: "listener")
        manager.listener = { heard.put($0) }
        return (manager, heard)
    }

    @Test("the status follows from the path")
    func status() {
        let cases: [(NetworkPath?, Status, Bool, Bool, Bool)] = [
            (nil, .unknown, false, false, false), (Self.none, .notReachable, false, false, false),
            (Self.wired, .reachable(.ethernetOrWiFi), true, true, false), (Self.mobile, .reachable(.wwan), true, false, true),
            (NetworkPath(interface: "pdp_ip0", isCellular: true), .reachable(.wwan), true, false, true),
            (NetworkPath(interface: "lo"), .reachable(.ethernetOrWiFi), true, true, false),
        ]
        for (path, status, isReachable, isWired, isMobile) in cases {
            let manager = NetworkReachabilityManager(provider: Fake(path))
            #expect(manager.networkReachabilityStatus == status)
            #expect(manager.isReachable == isReachable)
            #expect(manager.isReachableOnEthernetOrWiFi == isWired)
            #expect(manager.isReachableOnWWAN == isMobile)
            #expect(manager.path == path)
        }
    }

    @Test(
        "modems are recognized by their names",
        arguments: [
            ("wwan0", true), ("wwp0s20u4", true), ("rmnet_data0", true), ("ppp0", true), ("eth0", false), ("wlan0", false),
            ("wlp2s0", false), ("tun0", false), ("lo", false),
        ])
    func modems(_ name: String, _ isCellular: Bool) {
        #expect(NetworkPath(interface: name).isCellular == isCellular)
    }

    @Test("the listener gets the initial status on its queue, then each change once")
    func changes() async {
        let fake = Fake(Self.none)
        let (manager, heard) = Self.listening(to: fake)
        #expect(manager.startListening())
        #expect(await heard[0] == .notReachable)
        fake.change(to: Self.none)
        fake.change(to: Self.wired)
        #expect(await heard[1] == .reachable(.ethernetOrWiFi))
        fake.change(to: NetworkPath(interface: "wlan0"))
        fake.change(to: Self.mobile)
        #expect(await heard[2] == .reachable(.wwan))
        fake.change(to: nil)
        #expect(await heard[3] == .unknown)
    }

    @Test("after a stop the listener is not called; a new start reports the status again")
    func stopAndStart() async {
        let fake = Fake(Self.wired)
        let (manager, heard) = Self.listening(to: fake)
        manager.startListening()
        #expect(await heard[0] == .reachable(.ethernetOrWiFi))
        manager.stopListening()
        _ = await fake.ended[0]
        fake.change(to: Self.none)
        fake.change(to: Self.wired)
        manager.startListening()
        #expect(await heard[1] == .reachable(.ethernetOrWiFi))
        manager.startListening()
        #expect(await heard[2] == .reachable(.ethernetOrWiFi))
    }

    @Test("releasing the manager stops listening")
    func release() async {
        let fake = Fake(Self.wired)
        var pair: (NetworkReachabilityManager, Inbox<Status>)? = Self.listening(to: fake)
        pair?.0.startListening()
        _ = await pair?.1[0]
        let box = pair.map { WeakBox($0.0) }
        pair = nil
        _ = await fake.ended[0]
        #expect(await eventually { box?.isEmpty == true })
    }

    @Test("startListening fails if the provider reports no changes")
    func noChanges() {
        let (manager, _) = Self.listening(to: Fake(Self.wired, tellsChanges: false))
        #expect(!manager.startListening())
        #expect(manager.isReachable)
    }

    @Test("netlink: this machine is reachable by name and by address")
    func thisMachine() throws {
        for host in ["localhost", "127.0.0.1"] {
            let manager = try #require(NetworkReachabilityManager(host: host))
            #expect(manager.networkReachabilityStatus == .reachable(.ethernetOrWiFi), "\(host)")
            #expect(manager.path?.interface == "lo" || manager.path?.interface == "lo0", "\(host)")
        }
        #expect(NetworkReachabilityManager(host: "") == nil)
        let nowhere = try #require(NetworkReachabilityManager(host: "no such name"))
        #expect(nowhere.networkReachabilityStatus == .notReachable)
    }

    @Test("netlink: the default route is reported, and its changes are listened to")
    func network() async throws {
        let manager = try #require(NetworkReachabilityManager())
        #expect(manager.networkReachabilityStatus != .unknown)
        #expect(manager.path?.interface != "lo")
        let heard = Inbox<Status>()
        manager.listenerQueue = DispatchQueue(label: "listener")
        manager.listener = { heard.put($0) }
        #expect(manager.startListening())
        #expect(await heard[0] == manager.networkReachabilityStatus)
    }
}
